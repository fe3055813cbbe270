"""Signals instead of wires: the plant runs on a card, from a board's gates to the rig's inputs."""

import numpy as np
import pytest

import hil
from hil.__main__ import main
from hil.calibration.signal_chain import Chain
from hil.devices.nidaq.plant_card import PlantCard, Played, Terminals
from hil.loop.frame import Frame
from hil.runs import session
from hil.runs.plan import Plan
from hil.runs.recording import Output
from hil.runs.replay import replay
from simdaq import System, install

BACKEND = "emulated,plant=realtime"


def run(configs, out, *sets, backend=BACKEND):
    config = hil.load(configs / "miga6/all_on.toml", ["experiment.duration_s=0.6", *sets])
    return session.run(Plan(config, backend=backend, seed=1), Output(out=out))


@pytest.fixture(scope="module")
def path(configs, tmp_path_factory):
    path = tmp_path_factory.mktemp("signals") / "run.h5"
    run(configs, path, "controller.steps=[{t_s=0.0, on=[1, 3]}, {t_s=0.3, on='all'}]")
    return path


@pytest.fixture(scope="module")
def signals(path):
    return hil.open_run(path)


def test_the_plant_sees_the_gates_that_were_commanded_a_period_before(signals):
    """What a command of tick k drives is high by tick k + 1: the exchange takes 0.7 ms.

    The first command meets the board's main loop at any phase, and its gates rise about 0.5 ms
    after their tick: a period of which they are high for less than half counts as off.
    """
    driven, commanded = signals["cells_driven"].values, signals.cells_commanded.values
    np.testing.assert_array_equal(driven[2:], commanded[1:-1])
    assert not driven[0].any()
    assert set(driven.sum(axis=1)) == {0, 2, 6}


@pytest.mark.slow
def test_the_force_is_that_of_the_emulated_bench_at_most_a_period_later(configs, signals, tmp_path):
    """There a transducer follows the plant within the period; here its voltage is held for one."""
    run(
        configs,
        tmp_path / "whole.h5",
        "controller.steps=[{t_s=0.0, on=[1, 3]}, {t_s=0.3, on='all'}]",
        backend="emulated",
    )
    whole = hil.open_run(tmp_path / "whole.h5")
    rise_N = np.abs(np.diff(whole.force_model_N.values, prepend=0.0))
    rise_N = np.maximum(rise_N, np.roll(rise_N, 1))
    # six standard deviations of two means of ten samples of 1.9 mN, and a step of both converters
    limit_N = 6.0 * np.hypot(0.0019, 0.0019) / np.sqrt(10.0) + 2.0 * 0.95 * 20.0 / 2**16
    difference_N = signals.force_measured_N.values - whole.force_measured_N.values
    assert (np.abs(difference_N) <= limit_N + 1.5 * rise_N).all()


def test_its_volts_are_those_of_the_transducer(signals):
    """0.95 N a volt, as the record says; the twin differs from the plant by its masses only."""
    volts = signals["force.played_V"].values
    assert volts[0] == 0.0
    np.testing.assert_allclose(0.95 * volts[-1], signals.force_model_N.values[-1], rtol=0.05)


def test_the_recording_says_that_the_plant_is_simulated_and_replays(path, signals):
    assert signals.attrs["simulated"] == "SIMULATED: plant, board, daq"
    assert signals.attrs["backend"] == BACKEND
    assert replay(path) == (len(signals.t_s), None)


@pytest.mark.slow
def test_a_dead_cell_of_the_plant_is_felt_through_the_volts(configs, signals, tmp_path):
    run(
        configs,
        tmp_path / "dead.h5",
        "controller.steps=[{t_s=0.0, on=[1, 3]}, {t_s=0.3, on='all'}]",
        "plant.arrays.muscle.dead_cells=[1]",
    )
    dead = hil.open_run(tmp_path / "dead.h5")
    assert dead.force_measured_N.values[-1] < 0.8 * signals.force_measured_N.values[-1]
    np.testing.assert_array_equal(dead["cells_driven"], signals["cells_driven"])


def test_a_trip_takes_the_gates_down_within_two_ticks(configs, tmp_path):
    run(configs, tmp_path / "trip.h5", "guard.force_max_N=0.3")
    trip = hil.open_run(tmp_path / "trip.h5")
    tripped = int(np.flatnonzero(trip.fault_bits.values)[0])
    assert trip.attrs["outcome"] == "tripped"
    assert trip["cells_driven"].values[tripped].all()
    assert not trip["cells_driven"].values[tripped + 2 :].any()


def test_a_card_of_its_own_follows_lines_and_puts_out_volts(configs):
    """As on a bench: nothing but the card's library between it and the wires."""
    system = System("free")
    system.add("PCIe-6363", "Dev2")
    install(system)
    lines = [f"port0/line{i}" for i in range(6)]
    for line in lines:
        system.feed(f"Dev2/{line}", 0.0)
    config = hil.load(configs / "miga6/all_on.toml")
    plants = [config.system(plant=True), config.system(plant=True)]
    chain = Chain(1.0, 0.0, (0.0, 0.95))
    index = list(plants[0].outputs).index("muscle.right_N")
    terminals = Terminals("Dev2", lines, [Played("force", "ao0", index, chain)], 10.0)
    card = PlantCard(terminals, plants[0], None, lock=False)
    frame = Frame(card.columns)
    card.bind(frame, None)
    card.open()
    assert system.output("Dev2/ao0") == 0.0
    on = np.array([1, 0, 1, 0, 0, 1], dtype=np.uint8)
    for line, level in zip(lines, on, strict=True):
        system.feed(f"Dev2/{line}", float(level))
    for k in (1, 2, 5):  # two ticks were late: the plant takes three periods at once
        card.read(k * 0.001)
    for _ in range(5):
        plants[1].step(on, np.zeros(0))
    step_V = 20.0 / 2**16
    assert system.output("Dev2/ao0") == pytest.approx(plants[1].y[index] / 0.95, abs=step_V)
    np.testing.assert_array_equal(frame.cells("cells_driven"), on)
    card.close()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("plant_card.gates=['port0/line0']", "1 lines for 6 cells: give one for each cell"),
        ("plant_card.gates=['a','b','c','d','e','a']", "'a' is listed twice"),
        ("plant_card.outputs.torque='ao1'", "no such channel: choose force"),
        ("plant_card.range_V=11.0", "plant_card.range_V"),
        ("plant_card.speed=1", "unknown key"),
    ],
)
def test_what_does_not_fit_the_rig_is_refused_in_one_line(configs, capsys, change, says):
    words = ["check", str(configs / "miga6/all_on.toml"), "--set", change]
    assert main(words) == 2
    said = capsys.readouterr().err.splitlines()
    (line,) = (line for line in said if not line.startswith("warning: "))
    assert says in line


@pytest.mark.parametrize(
    ("experiment", "backend", "says"),
    [
        (
            "miga6/all_on.toml",
            "sim,plant=realtime",
            "all of them must be on the bench, or all emulated",
        ),
        ("miga6/all_on.toml", "board=emulated,plant=realtime", "or all emulated"),
        ("array14/pid.toml", "plant=realtime", "the rig has no [plant_card]"),
        (
            "miga6/all_on.toml",
            "plant=sometimes",
            "'sometimes' is not one of sim, emulated, pty, bench",
        ),
    ],
)
def test_backends_that_no_wire_joins_are_refused(
    configs, capsys, tmp_path, experiment, backend, says
):
    words = ["run", str(configs / experiment), "--backend", backend]
    assert main([*words, "--out", str(tmp_path / "run.h5")]) == 2
    said = capsys.readouterr().err.splitlines()
    (line,) = (line for line in said if not line.startswith("warning: "))
    assert says in line
    assert list(tmp_path.iterdir()) == []


def test_without_nis_driver_a_bench_says_so_and_nothing_is_recorded(
    configs, capsys, tmp_path, monkeypatch
):
    from nidaqmx.errors import DaqNotFoundError

    def not_there(*_):
        raise DaqNotFoundError("no library")

    monkeypatch.setattr("hil.devices.nidaq.abilities.find", not_there)
    words = ["run", str(configs / "miga6/all_on.toml"), "--backend", "plant=realtime"]
    assert main([*words, "--out", str(tmp_path / "run.h5")]) == 4
    said = capsys.readouterr().err.splitlines()
    (line,) = (line for line in said if not line.startswith("warning: "))
    assert line.startswith("plant: NI-DAQmx is not installed")
