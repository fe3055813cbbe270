"""Whole runs of the recruitment controllers on the simulated rig, boards and all."""

import gc
import tracemalloc

import h5py
import numpy as np
import pytest

import hil
from hil.devices.board import protocol
from hil.errors import ConfigError
from hil.experiment.load import load
from hil.loop.channels import DUTY
from hil.loop.states import NUMBERS
from hil.record.memory import MemorySink
from hil.runs import assembly
from hil.runs.plan import Plan
from hil.runs.replay import replay
from hil.systems.array.recruitment.stage import OnTimeBreaks

SHORT = "experiment.duration_s=2.5"


def run_of(configs, tmp_path, name, *sets, seed=5):
    path = hil.run(load(configs / name, (SHORT, *sets)), out=tmp_path / "run.h5", seed=seed)
    return path, hil.open_run(path)


def elsewhere(configs, path):
    """A configuration's text, to be put into another folder."""
    return path.read_text().replace("../../calibration", str(configs.parent / "calibration"))


def drawn(run, seed, gate_of):
    """The cells after every message, from the definition of a draw and the row's p, q and tick."""
    cells = np.zeros(len(gate_of), dtype=int)
    before, rows = 0, []
    for p, q, tick in zip(
        run.p_on.values, run.q_off.values, run.broadcast_tick.values, strict=True
    ):
        if tick != before:
            for n, gate in enumerate(gate_of):
                chance = protocol.probability_per_65536(float(q if cells[n] else p))
                draw = protocol.draw(seed, int(tick), gate)
                if chance == protocol.PROBABILITY_ONE or draw < chance:
                    cells[n] = 1 - cells[n]
            before = tick
        rows.append(cells.copy())
    return np.array(rows)


def test_a_cell_that_is_on_for_long_gets_a_break_of_one_command():
    breaks, commanded = OnTimeBreaks(2, most=10, length=4), [[False, False]]
    for k in range(40):
        wanted = np.array([True, k % 8 != 0])  # the other is off by itself now and then
        commanded.append(wanted & ~breaks.due(np.array(commanded[-1])))
    first, other = np.array(commanded[1:]).T
    assert np.flatnonzero(first == 0.0).tolist() == [10, 11, 12, 13, 24, 25, 26, 27, 38, 39]
    assert np.flatnonzero(other == 0.0).tolist() == [0, 8, 16, 24, 32]


def test_a_break_lasts_a_whole_command_also_of_a_cell_that_was_not_wanted_meanwhile():
    """Otherwise the board, which looks once a command, would not see it off."""
    breaks, on, commanded = OnTimeBreaks(1, most=10, length=4), np.array([False]), []
    for tick in range(1, 17):
        on = np.array([tick != 12]) & ~breaks.due(on)
        commanded.append(bool(on[0]))
    assert commanded == [True] * 10 + [False] * 4 + [True] * 2


def test_commands_that_were_missed_count_for_a_break_and_a_restart_forgets_them():
    breaks, on = OnTimeBreaks(1, 4.0), np.array([True])
    assert not breaks.due(on, 3)
    breaks.restart()
    assert not breaks.due(on, 3)
    assert breaks.due(on, 3)


@pytest.mark.parametrize(("name", "n_cells"), [("miga6", 6), ("array14", 14)])
def test_the_row_has_the_mask_that_the_cells_of_all_boards_drew(configs, tmp_path, name, n_cells):
    _, run = run_of(configs, tmp_path, f"{name}/broadcast.toml")
    expected = drawn(run, 5, range(n_cells))
    assert np.array_equal(run.cells_commanded.values, expected)
    assert np.array_equal(run.cells_reported.values[1:], expected[:-1])
    assert 0 < run.cells_commanded.values.sum() < run.cells_commanded.values.size
    assert run.broadcast_tick.values[-1] == 1 + int(2.499 / {"miga6": 0.2, "array14": 0.25}[name])


def test_the_bundled_broadcast_ends_at_its_set_points(configs, tmp_path):
    """Within a tenth of the largest step between its levels, 0.172 N."""
    run = hil.open_run(hil.run(load(configs / "miga6/broadcast.toml"), out=tmp_path / "run.h5"))
    error_N = (run.force_measured_N - run.force_reference_N).values
    for ends in (3000, 6000, 9000):
        assert abs(error_N[ends - 200 : ends].mean()) < 0.0172


def test_a_cell_draws_by_the_number_of_its_gate_however_boards_are_wired(configs, tmp_path):
    cells = [f"muscle.{n}" for n in (3, 1, 2, 6, 5, 4)]
    sets = (f"devices.board.cells={cells}", "controller.period_s=1.0")
    _, run = run_of(configs, tmp_path, "miga6/broadcast.toml", *sets)
    gate_of = [cells.index(f"muscle.{n}") for n in range(1, 7)]
    assert np.array_equal(run.cells_commanded.values, drawn(run, 5, gate_of))


@pytest.mark.slow
def test_a_broadcast_run_replays_draw_for_draw(configs, tmp_path):
    path, run = run_of(configs, tmp_path, "array14/broadcast.toml")
    assert replay(path) == (run.sizes["tick"], None)
    with h5py.File(path, "r+") as file:
        file.attrs["seed"] = 6
    _, difference = replay(path)
    assert difference is not None
    assert difference.column == "cells_commanded"


def test_lost_answers_leave_unknown_cells_until_the_board_says_what_it_drew(configs, tmp_path):
    lost = [f"devices.board_{b}.sim.reply_lost_probability=0.2" for b in "ab"]
    path, run = run_of(configs, tmp_path, "array14/broadcast.toml", *lost)
    commanded = run.cells_commanded.values
    unknown = commanded == 255
    assert unknown.any()
    expected = drawn(run, 5, range(14))
    assert np.array_equal(commanded[~unknown], expected[~unknown])
    assert replay(path) == (run.sizes["tick"], None)


def test_a_trip_ends_the_draws_and_all_cells_go_off(configs, tmp_path):
    _, run = run_of(configs, tmp_path, "miga6/broadcast.toml", "guard.force_max_N=0.62",
                    "reference.force_N=[0.6, 0.6, 0.6]", "reference.t_s=[0.0, 1.0, 2.0]",
                    "controller.law=\"fixed_gain\"", "controller.gain=1.0",
                    "controller.error='measured'", "controller.period_s=1.0")  # fmt: skip
    assert run.attrs["outcome"] == "tripped"
    tripped = np.flatnonzero(run.fault_bits.values)
    assert not run.cells_commanded.values[tripped].any()
    assert not run.cells_reported.values[tripped[1:]].any()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["size_principle", "optimal"])
def test_runs_of_masks_replay_too(configs, tmp_path, name):
    path, run = run_of(configs, tmp_path, f"array14/{name}.toml")
    assert run.attrs["outcome"] == "complete"
    assert run.cells_commanded.values.any()
    assert replay(path) == (run.sizes["tick"], None)


def test_a_plan_cut_off_is_marked_late_and_the_run_goes_on(configs, tmp_path):
    _, run = run_of(configs, tmp_path, "array14/optimal.toml", "controller.levels_per_tick=1",
                    "controller.budget_s=0.001")  # fmt: skip
    assert run.attrs["outcome"] == "complete"
    assert run.plan_late.values.any()


@pytest.mark.parametrize(
    ("name", "sets", "said"),
    [
        ("array14/broadcast", ["controller.gain=1.5"], "controller.gain = 1.5: must be less than"),
        ("array14/broadcast", ["controller.gain=-0.1"], "controller.gain = -0.1: must be greater"),
        ("array14/broadcast", ["controller.law=\"bang\""], "controller.law = 'bang': must be"),
        ("miga6/broadcast", ["controller.error='measured'"], "cells need 0."),
        ("miga6/broadcast", ["controller.dead_zone_N=0.01"], "largest step between force levels"),
        ("miga6/broadcast", ["reference.force_N=[0.1, 2.5, 0.1]"], "all cells on give 0 to 1.8"),
        ("miga6/broadcast", ["devices.board.every=2"], "a broadcast is repeated in every period"),
        ("array14/size_principle", ["controller.groups=[[1, 2], [2, 3]]"], "is in two groups"),
        ("array14/size_principle", ["controller.groups=[[1, 2], []]"], "has no cell"),
        ("array14/size_principle", ["controller.groups=[[1, 99]]"], "there is no cell 99"),
        ("array14/size_principle", ["controller.groups=[[5, 7]]"],
         "all its groups' cells on give 0 to 1.115"),
        ("array14/size_principle", ["observer.disturbance_N_per_sqrt_s=0.0"], "unknown forces"),
        ("array14/optimal", ["controller.plan_s=0.12"], "give a whole multiple"),
        ("array14/optimal", ["controller.budget_s=0.5"], "a plan is due every 0.1 s"),
        ("array14/optimal", ["controller.horizon_s=40.0"],
         "more than 200 times controller.sample_s = "),
        ("array14/optimal", ["controller.horizon_s=0.2"], "4 blocks of 0.1 s do not fit"),
        ("array14/optimal", ["reference.mean_N=4.0"], "all cells on give 0 to 4.46"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_refused_with_the_reason(configs, name, sets, said):
    with pytest.raises(ConfigError) as error:
        load(configs / f"{name}.toml", sets)
    assert said in str(error.value)
    assert len(str(error.value).splitlines()) == 1


def test_an_observer_that_cannot_be_stable_is_refused(configs, tmp_path):
    """A cell whose inside grows by itself and that no force shows: no gain can hold it."""
    text = elsewhere(configs, configs / "miga6/rig.toml")
    start, end = text.index('kind = "miga"'), text.index("[model.arrays.muscle.activation]")
    cell = 'kind = "custom"\nKe = 300.0\nKf = 0.3\nKd = [0.0]\nZe = [0.0]\nZv = [0.0]\n'
    grows = f"{cell}I = [[0.5]]\nKp = [0.0]\n"
    text = (text[:start] + grows + text[end:]).replace("k_se_N_per_m = 390.0", "Ke = 301.0")
    (tmp_path / "rig.toml").write_text(text)
    (tmp_path / "all_on.toml").write_text((configs / "miga6/all_on.toml").read_text())
    with pytest.raises(ConfigError, match=r"observer: .*observer"):
        load(tmp_path / "all_on.toml")


@pytest.mark.slow
def test_a_trace_is_read_from_its_file_and_kept_in_the_recording(configs, tmp_path):
    folder = tmp_path / "rig"
    folder.mkdir()
    for name in ("rig.toml", "size_principle.toml"):
        (folder / name).write_text(elsewhere(configs, configs / "array14" / name))
    (folder / "reach.csv").write_text("# recorded\nt_s,force_N\n0.0,0.0\n1.0,2.0\n2.0,0.5\n")
    text = (folder / "size_principle.toml").read_text()
    start, end = text.index("[reference]"), text.index("[controller]")
    trace = '[reference]\nkind = "trace"\nfile = "reach.csv"\n\n'
    (folder / "size_principle.toml").write_text(text[:start] + trace + text[end:])
    path = hil.run(load(folder / "size_principle.toml", (SHORT,)), out=tmp_path / "run.h5")
    (folder / "reach.csv").unlink()
    run = hil.open_run(path)
    expected = np.interp(run.t_s.values, [0.0, 1.0, 2.0], [0.0, 2.0, 0.5])
    assert run.force_reference_N.values == pytest.approx(expected, abs=1e-12)
    assert replay(path) == (run.sizes["tick"], None)
    for words in ("t_s,force_N\n0.0,much\n", "t_s,newton\n0,1\n1,1\n", "t_s,force_N\n0.0\n"):
        (folder / "reach.csv").write_text(words)
        with pytest.raises(ConfigError, match="columns t_s and force_N"):
            load(folder / "size_principle.toml")
    (folder / "reach.csv").unlink()
    with pytest.raises(ConfigError, match="cannot be read"):
        load(folder / "size_principle.toml")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pid", "broadcast", "size_principle"])
def test_a_thousand_ticks_keep_nothing_and_need_next_to_none(configs, name):
    """Python's own numbers come and go; no tick holds more than a few hundred of them."""
    config = load(configs / f"array14/{name}.toml")
    pipeline = assembly.build(Plan(config))
    readings, commands, values = pipeline.rig.readings, pipeline.rig.commands, pipeline.frame.values
    pipeline.estimator.isolation = None
    t_at = pipeline.frame.index("t_s")

    def ticks(first, n):
        for k in range(first, first + n):
            values[t_at] = 0.001 * k
            readings.mark_valid(0, (1 << readings.n_sources) - 1)
            readings.measured[0] = 0.3 * (k % 7)
            readings.cells_reported[:] = k % 2
            pipeline.estimator.step(1)
            pipeline.control.step(0.001 * k)

    ticks(0, 600)
    gc.collect()
    tracemalloc.start()
    ticks(600, 10)
    kept, peaks = [], []
    for round_ in range(3):  # what ticks keep shows in every round; other threads in none or one
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        ticks(610 + 1000 * round_, 1000)
        after, peak = tracemalloc.get_traced_memory()
        kept.append(after - before)
        peaks.append(peak - before)
    tracemalloc.stop()
    assert commands.cells.size == 14
    assert min(kept) < 1000
    assert min(peaks) < 3000


def test_a_dead_cell_is_named_and_recruited_no_more(configs, tmp_path):
    """Cell 12 of the plant is dead; the rig's tests name it and no other, and the planner goes on
    without it.
    """
    path = hil.run(
        load(configs / "array14/optimal.toml",
             ("experiment.duration_s=4.0", "plant.arrays.muscle.dead_cells=[12]")),
        out=tmp_path / "run.h5", seed=1,
    )  # fmt: skip
    run = hil.open_run(path)
    failed = run.cells_failed.values == 1
    assert np.flatnonzero(failed.any(axis=0)).tolist() == [11]
    named = np.flatnonzero(failed[:, 11])[0]
    assert run.t_s.values[named] < 3.0
    # the plan under way is carried out before the next one leaves the cell out
    assert not run.cells_commanded.values[named + 250 :, 11].any()


@pytest.mark.parametrize(
    ("name", "sets", "planned_s"),
    [
        ("array14/optimal.toml", (), 0.02),
        ("array14/size_principle.toml", ("controller.dwell_s=10.0",), 0.3),
        ("wires4/follow.toml", (), 0.05),
        ("wires4/follow.toml", ("controller.power='switched'",), 0.05),
    ],
)
def test_a_run_that_is_armed_again_switches_nothing_on_that_was_decided_before(
    configs, monkeypatch, name, sets, planned_s
):
    """Until a plan of the new set point is due, all stays off."""
    config = load(configs / name, ("experiment.duration_s=1.8", *sets))
    off, again = round(1.0 / config.period_s) + 7, round(1.2 / config.period_s) + 3
    asked = {off: [("arm", 0.0, "")], again: [("arm", 1.0, ""), ("force_reference_N", 0.0, "")]}
    monkeypatch.setattr(MemorySink, "requests", lambda _, tick: asked.get(tick, ()))
    run = hil.simulate(config, seed=1)
    commanded = run[DUTY if DUTY in run else "cells_commanded"].values
    assert commanded[off - 1].any()
    runs = again + int(np.argmax(run.guard_state.values[again:] == NUMBERS["running"]))
    assert run.guard_state.values[runs] == NUMBERS["running"]
    assert not commanded[off : runs + round(planned_s / config.period_s)].any()


@pytest.mark.parametrize("name", ["array14/optimal.toml", "wires4/follow.toml"])
def test_a_plan_of_before_the_arming_is_not_continued(configs, name):
    """Else it is the plan that a search begins from, and ends with if it is short."""
    control = assembly.build(Plan(load(configs / name))).control
    planned = control.recruiter._optimal._search.plan
    planned[:] = 1
    control.restart()
    assert not planned.any()
