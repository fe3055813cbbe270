"""The room's temperature: recorded, and the air around the twin's wires."""

import json
import tomllib

import numpy as np
import pytest

from hil import open_run
from hil.__main__ import main
from hil.errors import ConfigError
from hil.experiment.load import load
from hil.mechanics.sma.wire import SmaWire, SmaWires
from hil.record.metrics import rms

NOISE_N = 0.0022  # of the simulated force channel, and with it the floor of any residual
TYPED = ["ambient.ambient_C=20.5", "ambient.ambient_uncertainty_C=0.5"]
ROOM = """
[devices.daq.channels.room]
kind = "voltage"
terminal = "ai1"
signal = "ambient_C"
units_per_V = 10.0
[devices.daq.channels.room.sim]
noise_rms_V = 0.01
[ambient]
ambient_channel = "room"
ambient_uncertainty_C = 0.3
"""


@pytest.fixture
def bench(rigs, monkeypatch):
    monkeypatch.chdir(rigs / "wires4")
    return rigs / "wires4"


def run(capsys, *sets):
    words = [word for text in sets for word in ("--set", text)]
    assert main(["run", "pulse.toml", "--out", "a.h5", "--force", "--json", *words]) == 0
    return open_run("a.h5"), json.loads(capsys.readouterr().out)


def test_a_temperature_read_off_is_recorded_and_is_the_air_of_the_models_wires(bench, capsys):
    recording, summary = run(capsys, *TYPED)
    assert recording.attrs["ambient_C"] == 20.5
    assert recording.attrs["ambient_uncertainty_C"] == 0.5
    assert summary["room"] == {"ambient_C": 20.5, "uncertainty_C": 0.5, "from": "read off"}
    tables = tomllib.loads(recording.attrs["experiment"])
    assert tables["model"]["arrays"]["muscle"]["activation"]["ambient_C"] == 20.5
    assert tables["plant"]["arrays"]["muscle"]["activation"]["ambient_C"] == 23.0  # its own


def test_the_plant_without_one_of_its_own_is_in_the_same_room(bench):
    rig = bench / "rig.toml"
    rig.write_text(rig.read_text().replace("ambient_C = 23.0", "supply_V = 8.0"))
    config = load("pulse.toml", TYPED)
    for plant in (False, True):
        assert config.system(plant=plant).wires.T_C == pytest.approx(20.5)


@pytest.mark.parametrize(("room_C", "outcome"), [(28.5, "complete"), (29.5, "tripped")])
def test_a_measured_room_is_one_for_which_the_wires_limits_hold(room_C, outcome, bench, capsys):
    """The rig is for 27 degC, and its channel may be 2 K off; the wires would be as much hotter."""
    rig = bench / "rig.toml"
    text = rig.read_text().replace("ambient_C = 23.0", f"ambient_C = {room_C}")
    rig.write_text(text + ROOM)
    code = main(["run", "pulse.toml", "--out", "a.h5", "--set", "experiment.duration_s=0.3"])
    told = capsys.readouterr()
    assert code == {"complete": 0, "tripped": 3}[outcome]
    limit = "limit 29 degC (devices.board.ambient_range_C)"
    assert (limit in told.out + told.err) == (outcome == "tripped")


@pytest.mark.slow
def test_a_measured_room_takes_its_share_out_of_the_residual(bench, capsys):
    def residual_N(recording):
        return rms((recording.force_measured_N - recording.force_model_N).values)

    believed, _ = run(capsys)  # 25 degC, in a room of 23
    rig = bench / "rig.toml"
    rig.write_text(rig.read_text() + ROOM)
    measured, summary = run(capsys)
    assert np.mean(measured.room_measured_C.values) == pytest.approx(23.0, abs=0.05)
    assert measured.room_measured_C.attrs["units"] == "degC"
    assert summary["room"]["from"] == "channel room"
    assert summary["room"]["ambient_C"] == pytest.approx(23.0, abs=0.05)
    # Left are the transducer's noise and a stiffness that is 1 % off, of at most 0.4 N.
    assert residual_N(measured) < NOISE_N + 0.01 * 0.4
    assert residual_N(believed) > 5.0 * residual_N(measured)


@pytest.mark.slow
def test_a_run_with_a_measured_room_replays_to_the_same_decisions(bench, capsys):
    rig = bench / "rig.toml"
    rig.write_text(rig.read_text() + ROOM)
    run(capsys)
    assert main(["replay", "a.h5"]) == 0


@pytest.mark.slow
def test_a_room_may_stand_still(bench, capsys):
    rig = bench / "rig.toml"
    rig.write_text(rig.read_text() + ROOM.replace("noise_rms_V = 0.01", "noise_rms_V = 0.0"))
    recording, summary = run(capsys)
    assert np.ptp(recording.room_measured_C.values) == 0.0
    assert summary["outcome"] == "complete"


def test_a_wire_comes_to_the_temperature_of_the_air_around_it():
    wires = SmaWires([SmaWire(), None, SmaWire()], np.ones(3))
    F = np.zeros((2, 3))
    wires.reset(*F)
    wires.set_ambient(10.0, settled=False)
    assert wires.T_C[[0, 2]] == pytest.approx(25.0)
    wire = SmaWire()
    tau_s = wire.capacity_J_per_m_K / wire.loss_W_per_m_K
    wires.step(np.zeros(3), tau_s, *F)
    assert wires.T_C[[0, 2]] == pytest.approx(10.0 + 15.0 * np.exp(-1.0))
    wires.set_ambient(30.0, settled=True)
    assert wires.T_C[[0, 2]] == pytest.approx(30.0)
    assert np.isnan(wires.T_C[1])


@pytest.mark.parametrize(
    ("sets", "said"),
    [
        (TYPED[:1], "ambient_uncertainty_C: missing"),
        (TYPED[1:], "give either ambient_C, the value, or ambient_channel"),
        ([*TYPED, "ambient.ambient_channel=force"], "give either ambient_C, the value, or"),
        (["ambient.ambient_C=300.0", TYPED[1]], "ambient.ambient_C = 300"),
        (["ambient.ambient_channel=force", TYPED[1]], "no channel of kind 'voltage' with"),
        (["ambient.humidity=3"], "ambient.humidity: unknown key"),
    ],
)
def test_wrong_rooms_are_refused(bench, sets, said):
    with pytest.raises(ConfigError, match=said):
        load("pulse.toml", sets)
