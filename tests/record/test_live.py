"""A run shown live, against the published Foxglove WebSocket protocol and the run's recording."""

import importlib.util
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from hil.__main__ import main
from hil.errors import ConfigError
from hil.loop import tap as taps
from hil.loop.frame import Column, Frame
from hil.loop.states import NUMBERS
from hil.record.live import Address, Server
from hil.record.read import open_run

WAIT_S = 300.0
SUBPROTOCOL = "foxglove.sdk.v1"
MESSAGE_DATA, ERROR = 1, 2  # binary opcode, status level
CREATED = "2026-11-23T12:00:00.000+00:00"
COMMANDED = {"topic": "/commanded", "encoding": "json", "schemaName": "hil.commanded"}
COLUMNS = [
    Column("t_s", "s", "timing", "scheduled time"),
    Column("force_measured_N", "N", "measured", "a force"),
]


class Viewer:
    """A client of the protocol: channels by topic, messages by topic as (time in ns, content)."""

    def __init__(self, socket) -> None:
        self.socket = socket
        self.info = self._next_text("serverInfo")
        self.channels = {c["topic"]: c for c in self._next_text("advertise")["channels"]}
        self.messages = {topic: [] for topic in self.channels}
        self.statuses = []
        self._topics = {}

    def _next_text(self, op):
        message = json.loads(self.socket.recv(WAIT_S))
        assert message["op"] == op
        return message

    def send(self, op, **fields) -> None:
        self.socket.send(json.dumps({"op": op, **fields}))

    def subscribe(self, *topics) -> None:
        self._topics |= dict(enumerate(topics, start=7))
        wanted = [{"id": i, "channelId": self.channels[t]["id"]} for i, t in self._topics.items()]
        self.send("subscribe", subscriptions=wanted)

    def receive_until(self, done) -> None:
        """Take messages until a condition holds or the server closes the connection."""
        deadline_s = time.monotonic() + WAIT_S
        while not done():
            assert time.monotonic() < deadline_s
            try:
                data = self.socket.recv(WAIT_S)
            except ConnectionClosed:
                return
            if isinstance(data, str):
                message = json.loads(data)
                if message["op"] == "status":
                    self.statuses.append(message)
                continue
            opcode, subscription, time_ns = struct.unpack_from("<BIQ", data)
            assert opcode == MESSAGE_DATA
            self.messages[self._topics[subscription]].append((time_ns, json.loads(data[13:])))


@pytest.fixture(scope="module")
def shown(configs, tmp_path_factory):
    """A run that waits to be armed, what its viewer received, and its recording."""
    out = tmp_path_factory.mktemp("live") / "run.h5"
    words = ["run", str(configs / "miga6/all_on.toml"), "--out", str(out)]
    command = [sys.executable, "-m", "hil", *words, "--disarmed", "--foxglove", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as run:
        try:
            line = next(line for line in run.stderr if line.startswith("foxglove: "))
            with connect(line.split()[1], subprotocols=[SUBPROTOCOL], max_size=None) as socket:
                viewer = Viewer(socket)
                viewer.subscribe(*viewer.channels)
                viewer.send("advertise", channels=[{"id": 1, **COMMANDED}])
                viewer.send("setParameters", parameters=[{"name": "arm", "value": 1}])
                viewer.receive_until(lambda: len(viewer.messages["/guard"]) >= 300)
                run.send_signal(signal.SIGINT)
                viewer.receive_until(lambda: False)
        finally:
            run.send_signal(signal.SIGINT)
    return viewer, open_run(out)


def test_a_viewer_receives_the_rows_of_the_recording_with_their_times(shown):
    viewer, run = shown
    row_of = {t_s: i for i, t_s in enumerate(run.t_s.values.tolist())}
    start_ns = np.datetime64(run.attrs["created_utc"][:-6], "ns").astype(int)
    for topic, key, column in (
        ("/measured", "force_measured_N", run.force_measured_N),
        ("/model", "force_model_N", run.force_model_N),
        ("/residual", "force_residual_N", run.force_measured_N - run.force_model_N),
        ("/timing", "late_s", run.late_s),
    ):
        rows = [row_of[content["t_s"]] for _, content in viewer.messages[topic]]
        assert len(rows) >= 300
        assert rows == list(range(rows[0], rows[0] + len(rows)))
        found = [content[key] for _, content in viewer.messages[topic]]
        np.testing.assert_array_equal(found, column.values[rows], err_msg=topic)
        times_s = [1e-9 * (time_ns - start_ns) for time_ns, _ in viewer.messages[topic]]
        np.testing.assert_allclose(times_s, run.t_s.values[rows], rtol=0.0, atol=1e-6)


def test_a_viewer_sees_cells_guard_and_all_events_by_name(shown):
    viewer, run = shown
    _, cells = viewer.messages["/cells"][-1]
    assert cells["muscle_3"] == {"commanded": 0, "reported": 0}
    states = [NUMBERS[content["state"]] for _, content in viewer.messages["/guard"]]
    first = np.flatnonzero(run.t_s.values == viewer.messages["/measured"][0][1]["t_s"])[0]
    assert states == run.guard_state.values[first : first + len(states)].tolist()
    assert NUMBERS["ready"] in states
    texts = [content["message"] for _, content in viewer.messages["/events"]]
    assert texts == run.event_text.values.tolist()
    assert viewer.channels["/events"]["schemaName"] == "foxglove.Log"


def test_every_message_has_the_fields_of_its_schema(shown):
    viewer, _ = shown
    for topic, channel in viewer.channels.items():
        schema = json.loads(channel["schema"])
        assert (channel["encoding"], channel["schemaEncoding"]) == ("json", "jsonschema")
        assert set(viewer.messages[topic][-1][1]) <= set(schema["properties"])
    force = json.loads(viewer.channels["/measured"]["schema"])["properties"]["force_measured_N"]
    assert force["description"].endswith(", N; SIMULATED")


def test_a_viewer_cannot_change_the_run(shown):
    viewer, run = shown
    assert viewer.info["capabilities"] == []
    assert [status["level"] for status in viewer.statuses] == [ERROR, ERROR]
    assert [content["name"] for _, content in viewer.messages["/inputs"]] == ["start", "stop"]
    assert run.input_name.values.tolist() == ["start", "stop"]


@pytest.fixture
def tap(tmp_path, monkeypatch):
    monkeypatch.setattr(taps, "_folder", lambda: tmp_path)
    made = taps.create(Frame(COLUMNS).dtype, 4096)
    yield made
    made.close_writer()
    made.unlink()


def test_the_server_maps_the_tap_for_reading_only(tap):
    with Server(Address(port=0), "a run", CREATED) as server:
        server.start(tap.path, COLUMNS, ())
        server.wait_ready()
        maps = Path(f"/proc/{server.pid}/maps").read_text().splitlines()
        assert [line.split()[1] for line in maps if line.endswith(str(tap.path))] == ["r--s"]
        tap.close_writer()


def port_of(url):
    return int(url.rpartition(":")[2])


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_other_interfaces_are_served_only_if_asked(host, tap):
    """127.0.0.2 is an address of this computer to which a server on 127.0.0.1 does not listen."""
    with Server(Address(host, 0), "a run", CREATED) as server:
        server.start(tap.path, COLUMNS, ())
        port = port_of(server.wait_ready())
        with socket.socket() as other:
            assert (other.connect_ex(("127.0.0.2", port)) == 0) == (host == "0.0.0.0")
        tap.close_writer()


def test_a_run_does_not_wait_for_a_server_that_was_killed(tap):
    with Server(Address(port=0), "a run", CREATED) as server:
        server.start(tap.path, COLUMNS, ())
        server.wait_ready()
        os.kill(server.pid, signal.SIGKILL)
    assert not tap.closed


def test_a_port_in_use_is_one_line_before_anything_opens(configs, tmp_path, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        out, port = tmp_path / "run.h5", taken.getsockname()[1]
        words = ["run", str(configs / "miga6/all_on.toml"), "--out", str(out)]
        assert main([*words, "--foxglove", str(port)]) == 2
    line = capsys.readouterr().err.strip()
    assert line == (
        f"--foxglove 127.0.0.1:{port}: Address already in use: choose another port, or 0 for any "
        "that is free"
    )
    assert not out.exists()


@pytest.mark.parametrize("port", ["65536", "-1", "eight", "1.2.3.4", "::", "²"])
def test_a_wrong_port_is_one_line(port, capsys):
    with pytest.raises(SystemExit) as left:
        main(["run", "x.toml", f"--foxglove={port}"])
    assert left.value.code == 2
    line = capsys.readouterr().err.strip()
    assert "has no port from 0 to 65535" in line
    assert "\n" not in line


def test_without_the_package_the_run_does_not_begin(configs, tmp_path, capsys, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        "hil.record.live.find_spec", lambda name: None if name == "foxglove" else found(name)
    )
    out = tmp_path / "run.h5"
    words = ["run", str(configs / "miga6/all_on.toml"), "--out", str(out), "--foxglove"]
    assert main(words) == 2
    assert "pip install 'hil-arrays[foxglove]'" in capsys.readouterr().err
    assert not out.exists()


def test_a_server_that_cannot_listen_says_why(tap):
    with Server(Address("192.0.2.1", 0), "a run", CREATED) as server:  # of no interface: RFC 5737
        server.start(tap.path, COLUMNS, ())
        with pytest.raises(ConfigError, match="Cannot assign requested address"):
            server.wait_ready()
