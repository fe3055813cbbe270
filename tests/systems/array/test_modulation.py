"""A controller that modulates: it follows set points, and limits saturate its duties."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import hil
from hil.__main__ import main
from hil.errors import ConfigError
from hil.experiment.load import load
from hil.loop import loop
from hil.loop.clock import VirtualClock
from hil.runs import assembly, rehearsal
from hil.runs.plan import Plan
from hil.systems.array.modulation import ForceLaw

SUPPLY_10V = [
    "model.arrays.muscle.activation.supply_V=10.0",
    "devices.supply.voltage_V=10.0",
    "devices.supply.current_A=1.2",
    "plant.arrays.muscle.activation.ambient_C=25.0",
]
FAR_N = 50.0  # set at a window; four cells give 1.5 N


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch, pytestconfig):
    monkeypatch.chdir(pytestconfig.rootpath)


class Rows(rehearsal.FaultSink):
    """The rows of a run, and the true temperatures of the plant's wires."""

    def __init__(self, frame, plant, set_points, held_N, held_for_s):
        super().__init__()
        self.frame, self.plant, self.rows, self.wire_C = frame, plant, [], []
        self.set_points, self.held_for_s = list(set_points.values()), held_for_s
        for set_point in self.set_points:
            set_point.held = held_N

    def push(self):
        if self.frame.values[self.frame.index("t_s")] >= self.held_for_s:
            self.set_points[0].held = np.nan
        self.rows.append(self.frame.row.copy())
        self.wire_C.append(self.plant.wires.T_C.copy())
        return True


def run(name, *sets, held_N=np.nan, held_for_s=np.inf):
    """Outcome, rows, temperatures (ticks, N) of the plant's wires, texts of faults.

    An operator holds the set point `held_N` at first.
    """
    config = load(f"configs/wires4/{name}.toml", sets)
    plant = config.system(plant=True)
    pipeline = assembly.build(Plan(config, seed=1, plant=plant))
    pipeline.rig.open()
    pipeline.rig.self_test(print)
    sink = Rows(pipeline.frame, plant, pipeline.control.set_points, held_N, held_for_s)
    parts = pipeline.context(VirtualClock(), sink)
    outcome = loop.run(replace(parts, after_trip_ticks=0))
    pipeline.rig.close()
    return outcome, np.concatenate(sink.rows), np.array(sink.wire_C), sink.faults


@pytest.mark.slow
def test_the_force_follows_steps_although_the_plant_differs_from_its_model():
    """The plant's air is 2 K colder and its springs are 1 % softer than the twin's."""
    outcome, rows, _, _ = run("modulate", "experiment.duration_s=5.4")
    assert outcome == "complete"
    for until_s, wanted_N in ((2.9, 0.4), (5.4, 0.8)):
        settled = (rows["t_s"] > until_s - 0.5) & (rows["t_s"] < until_s)
        # the dead band is half a percent of 1.54 N; a reading's noise is 2.2 mN
        assert rows["force_measured_N"][settled].mean() == pytest.approx(wanted_N, abs=0.009)
        assert np.abs(rows["force_measured_N"][settled] - wanted_N).max() < 0.02
    assert rows["force_measured_N"].max() < 0.8 + 0.02  # no overshoot beyond the noise
    duty = rows["cells_duty"]
    np.testing.assert_allclose(duty * 255, np.rint(duty * 255), atol=1e-12)
    assert ((duty > 0.05) & (duty < 0.95)).any()


@pytest.mark.parametrize("every", [1, 5])
def test_a_force_that_is_read_seldom_is_fed_back_as_much(every):
    """An error of 0.1 N: Kp e is 0.3 N, and Ki e grows by 0.002 N in a command of 10 ms."""
    law = ForceLaw(3.0, 2.0)
    for k in range(201):
        u_N = law.demand_N(1.0, 0.9 if k % every == 0 else np.nan, 0.01)
        assert u_N == pytest.approx(1.3 + 0.002 * (k - k % every + 1))


@pytest.mark.slow
def test_a_force_that_is_read_less_often_than_commanded_settles_as_well():
    """A command lasts 16 ms, and a reading comes every 40 ms."""
    outcome, rows, _, _ = run("modulate", "experiment.duration_s=2.5", "devices.daq.every=40")
    assert outcome == "complete"
    settled_N = rows["force_measured_N"][rows["t_s"] > 2.0]
    assert np.nanmean(settled_N) == pytest.approx(0.4, abs=0.009)
    assert np.nanstd(settled_N) < 0.01


def test_the_twin_is_driven_with_the_duties_that_the_boards_confirmed():
    """A plant that is its model exactly stays with the twin to the noise, at partial duties."""
    outcome, rows, _, _ = run(
        "modulate", "experiment.duration_s=3.0", "plant.arrays.muscle.cell.k_se_N_per_m=611.0",
        "plant.arrays.muscle.activation.ambient_C=25.0",
    )  # fmt: skip
    assert outcome == "complete"
    assert rows["force_measured_N"].max() > 0.35
    # 2.2 mN of noise; a duty is confirmed 4 ms later, while the force rises by up to 1 N/s
    assert np.abs(rows["force_measured_N"] - rows["force_model_N"]).max() < 0.04


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize("limit_C", [80.0, 94.0])
def test_a_set_point_out_of_reach_saturates_at_the_temperature_limit_and_never_trips(limit_C):
    outcome, rows, wire_C, faults = run(
        "modulate", "experiment.duration_s=5.0", f"controller.temperature_max_C={limit_C}",
        "plant.arrays.muscle.activation.ambient_C=25.0", held_N=FAR_N,
    )  # fmt: skip
    assert (outcome, faults) == ("complete", [])
    assert limit_C - 1.5 < wire_C.max() <= limit_C
    assert rows["cells_limited"][-1] == 4


@pytest.mark.slow
def test_the_boards_heat_budget_saturates_too_where_a_cell_held_on_trips():
    """At 10 V a wire held on uses its budget up; full contraction needs 8 of 10 V."""
    outcome, _, _, [fault, *_] = run("hold", *SUPPLY_10V, "experiment.duration_s=4.0")
    assert outcome == "tripped"
    assert "cell_energy_high" in fault
    outcome, rows, _, faults = run(
        "modulate", *SUPPLY_10V, "experiment.duration_s=6.0", held_N=FAR_N
    )
    assert (outcome, faults) == ("complete", [])
    assert rows["force_measured_N"][-1] > 1.45


def test_a_cell_gets_a_break_before_the_on_time_limit():
    outcome, rows, _, faults = run(
        "modulate", "guard.cell_on_max_s=0.5", "experiment.duration_s=2.5",
    )  # fmt: skip
    assert (outcome, faults) == ("complete", [])
    off = np.flatnonzero((rows["cells_duty"][:, 0] == 0.0) & (rows["t_s"] > 0.6))
    assert len(off) % 16 == 0  # breaks of one command, 16 ms
    assert 48 <= len(off) <= 96


def test_a_break_comes_before_the_limit_though_that_is_no_whole_number_of_commands():
    outcome, rows, _, faults = run(
        "modulate", "guard.cell_on_max_s=0.5", "controller.command_s=0.2",
        "experiment.duration_s=2.0",
    )  # fmt: skip
    assert (outcome, faults) == ("complete", [])
    on = np.diff(np.flatnonzero(np.diff(np.concatenate(([0], rows["cells_duty"][:, 0] > 0, [0])))))
    assert on[::2].max() == 400  # two commands: three take 0.6 s


def test_a_command_longer_than_a_cell_may_be_on_is_refused():
    sets = ("guard.cell_on_max_s=0.1", "controller.command_s=0.2")
    with pytest.raises(ConfigError, match=r"controller.command_s = 0\.2: a duty is held"):
        load("configs/wires4/modulate.toml", sets)


@pytest.mark.slow
def test_the_integral_does_not_wind_up_while_the_power_is_at_its_limit():
    """Back within reach, the force settles as fast as without the time out of reach."""
    late_N = {}
    for first_N in (1.4, FAR_N):
        _, rows, _, _ = run(
            "modulate", "reference={kind='steps', t_s=[0.0], force_N=[0.6]}",
            "controller.temperature_max_C=110.0", "experiment.duration_s=6.0",
            "plant.arrays.muscle.activation.ambient_C=25.0", held_N=first_N, held_for_s=4.0,
        )  # fmt: skip
        late_N[first_N] = rows["force_measured_N"][rows["t_s"] > 5.5].mean()
    assert late_N[FAR_N] == pytest.approx(late_N[1.4], abs=0.01)
    assert late_N[FAR_N] == pytest.approx(0.6, abs=0.025)


@pytest.mark.slow
def test_a_recording_with_duties_replays_bit_for_bit(tmp_path):
    path = hil.run(
        load("configs/wires4/modulate.toml", ["experiment.duration_s=1.5"]), out=tmp_path / "run.h5"
    )
    assert main(["replay", str(path)]) == 0
    for kind in ("csv", "mcap"):  # unknown duties are gaps, in a list of JSON too
        assert main(["export", str(path), "--to", kind, "--out", str(tmp_path / kind)]) == 0
    recorded = hil.open_run(path)
    known = np.isfinite(recorded.cells_duty_reported.values)
    assert known[:, 0].sum() == pytest.approx(1500 / 4, abs=1)  # the board is asked every 4 ms
    assert recorded.cells_duty.dims == ("tick", "cell")


@pytest.mark.parametrize(
    ("sets", "said"),
    [
        (["controller.temperature_max_C=20.0"], "controller.temperature_max_C = 20: choose more"),
        (["controller.temperature_max_C=200.0"], "at most the wires' own 180"),
        (["controller.temperature_max_C='hot'"], "controller.temperature_max_C = 'hot'"),
        (["controller.command_s=0.001"], "controller.command_s = 0.001"),
        (["controller.response_s=0.0"], "controller.response_s = 0"),
        (["controller.k_i_per_s=-1.0"], "controller.k_i_per_s = -1"),
        (["controller.duty=0.5"], "controller.duty: unknown key"),
    ],
)
def test_a_controller_that_cannot_work_is_one_line(sets, said, capsys):
    args = [arg for value in sets for arg in ("--set", value)]
    assert main(["check", "configs/wires4/modulate.toml", *args]) == 2
    [line] = capsys.readouterr().err.strip().splitlines()
    assert said in line


def test_cells_without_wires_cannot_be_modulated(tmp_path, capsys):
    text = Path("configs/wires4/modulate.toml").read_text(encoding="utf-8")
    path = tmp_path / "modulate.toml"
    path.write_text(text.replace("rig.toml", str(Path("configs/miga6/rig.toml").resolve())))
    assert main(["check", str(path)]) == 2
    [line] = capsys.readouterr().err.strip().splitlines()
    assert "controller.kind = 'modulate': 'muscle.1' has no wire whose heat could be" in line
