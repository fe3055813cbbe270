"""A card in another computer, read over NI's gRPC protocol from a server of simulated cards."""

import re
import time

import numpy as np
import pytest

from hil.devices.nidaq import remote
from hil.devices.nidaq.remote import RemoteCard
from hil.devices.sensor_tables import RemoteNidaqTable
from hil.errors import DeviceError
from simdaq import System
from simdaq.grpc_server import serve

pytestmark = pytest.mark.library_leaks("gRPC closes its sockets some time after its server")
WAIT_S = 120.0
STEP_V = 20.0 / 2**14  # of a USB-6009 between -10 V and 10 V


class Far:
    """The other computer."""

    def __init__(self, simulated=False):
        self.system = System("held")
        self.system.add("USB-6009", "Dev1", simulated=simulated)
        self.server, self.port = serve(self.system)

    def card(self, **more):
        force = {"kind": "force", "terminal": "ai0", "wiring": "differential", "newtons_per_V": 2.0}
        travel = {"kind": "displacement", "terminal": "ai1", "metres_per_V": 0.001}
        travel |= {"signal": "muscle.x_m", "wiring": "differential"}
        table = {"kind": "nidaq_remote", "server": f"localhost:{self.port}", "card": "Dev1"}
        table["channels"] = {"force": force, "travel": travel}
        return RemoteCard(RemoteNidaqTable.model_validate(table | more))


@pytest.fixture
def far(request, monkeypatch):
    monkeypatch.setattr(remote, "ANSWER_S", 5.0)  # a busy machine answers late
    found = Far(**getattr(request, "param", {}))
    yield found
    found.server.stop(None).wait()


def failure_of(card):
    """The message with which reading ends."""
    end_s = time.monotonic() + WAIT_S
    while time.monotonic() < end_s:
        try:
            card.read(0.0)
        except DeviceError as error:
            return str(error)
        time.sleep(0.005)
    raise AssertionError("it goes on reading")


def test_a_remote_card_gives_the_volts_of_now_with_the_age_of_its_request(far):
    far.system.feed("Dev1/ai0", 1.5)
    far.system.feed("Dev1/ai1", -2.5)
    card = far.card()
    card.open()
    try:
        assert np.abs(np.subtract(card.read(0.0), (1.5, -2.5))).max() < 2.0 * STEP_V
        assert 0.0 < card.age_s < WAIT_S
        far.system.feed("Dev1/ai0", 3.0)
        end_s = time.monotonic() + WAIT_S
        while abs(card.read(0.0)[0] - 3.0) > 2.0 * STEP_V:
            assert time.monotonic() < end_s
            time.sleep(0.005)
    finally:
        card.close()
    assert not far.system.tasks


def test_a_remote_card_that_is_lost_is_one_line(far):
    card = far.card()
    card.open()
    far.system.unplug("Dev1")
    said = failure_of(card)
    card.close()
    assert said.startswith(f"Dev1 at localhost:{far.port}: ")
    assert re.search(r"check cable and power .*\[NI-DAQmx -\d+\]$", said)
    assert "\n" not in said


def test_a_server_that_ends_is_one_line(far):
    card = far.card()
    card.open()
    far.server.stop(None).wait()
    assert "does not answer (" in failure_of(card)
    card.close()


def test_a_server_that_hangs_is_one_line_after_a_limited_time(far):
    card = far.card()
    card.open()
    with far.system.lock:
        said = failure_of(card)
        card.close()
    assert "does not answer (" in said


def test_an_absent_server_or_card_or_a_simulated_one_is_refused_in_one_line(far, monkeypatch):
    monkeypatch.setattr(remote, "ANSWER_S", 0.2)
    with pytest.raises(DeviceError, match="start NI's ni_grpc_device_server on that computer"):
        far.card(server="localhost:1").open()
    monkeypatch.setattr(remote, "ANSWER_S", 60.0)
    with pytest.raises(DeviceError, match=r"Dev7 at localhost:\d+: no such card: .*-200220"):
        far.card(card="Dev7").open()
    other = Far(simulated=True)
    with pytest.raises(DeviceError, match="could be mistaken for measured ones"):
        other.card().open()
    other.server.stop(None).wait()


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("server", "192.168.1.20", "pattern"),
        ("channels", {}, "at least 1"),
        ("outputs", {"motor": {"drives": "x_N"}}, "outputs"),
        ("channels", {"force": {"terminal": "ao0", "newtons_per_V": 1.0}}, "pattern"),
        ("channels", {"force": {"terminal": "ai0"}}, "give either record"),
    ],
)
def test_what_a_remote_card_cannot_do_is_refused(key, value, expected):
    channels = {"force": {"terminal": "ai0", "newtons_per_V": 1.0}}
    table = {"kind": "nidaq_remote", "server": "daq-pc:31763", "card": "Dev1", "channels": channels}
    RemoteNidaqTable.model_validate(table)
    with pytest.raises(ValueError, match=expected):
        RemoteNidaqTable.model_validate(table | {key: value})
