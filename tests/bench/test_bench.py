"""The arithmetic of `hil bench`, and that its parts run; what they measure is not asserted."""

import json
import subprocess

import numpy as np
import pytest

from hil.__main__ import main
from hil.bench import long as bench_long
from hil.bench import realtime as bench_realtime
from hil.bench import recorder as bench_recorder
from hil.bench import run as bench
from hil.bench import unit as bench_unit
from hil.record.summary import plain
from hil_studies.arm import speed as bench_arm
from hil_studies.leg import speed as bench_leg
from hil_studies.pantograph import speed as bench_impact
from hil_studies.soft_chain import speed as bench_soft

# Runs on the real clock want the machine one at a time.
pytestmark = pytest.mark.xdist_group("real time")

MS = 1e-3


def ticks(*late_ms, at=None):
    """Deadlines every ms (or at the given ms) and wake-ups this much later."""
    deadline_s = MS * np.array(range(len(late_ms)) if at is None else at, dtype=float)
    return np.stack([deadline_s, deadline_s + MS * np.array(late_ms)], axis=1)


@pytest.mark.parametrize(
    ("begin", "end", "hit"),
    [
        (0.0, 0.9, False),
        (0.0, 1.0, True),
        (1.2, 1.3, True),
        (0.5, 9.0, True),
        (2.0, 2.5, True),
        (2.1, 4.9, False),
        (5.5, 5.6, True),
        (6.1, 9.0, False),
    ],
)
def test_an_interval_is_spoilt_when_a_stall_overlaps_it(begin, end, hit):
    stalls = np.array([[1.0, 2.0], [5.0, 6.0]])
    found = bench_realtime.overlapping(np.array([begin]), np.array([end]), stalls)
    assert found.tolist() == [hit]
    nothing = bench_realtime.overlapping(np.array([begin]), np.array([end]), np.empty((0, 2)))
    assert nothing.tolist() == [False]


def test_late_ticks_within_a_stall_count_only_among_the_raw():
    found = bench_realtime.figures(
        [ticks(0.01, 0.02, 0.6, 0.02, 0.01)], MS, MS * np.array([[1.9, 2.6]])
    )
    assert found["spoilt"] == 2  # the tick at 2 ms, and the one after it, for which work piled up
    assert found["raw"]["max_s"] == pytest.approx(0.6 * MS)
    assert found["stall_free"]["max_s"] == pytest.approx(0.02 * MS)
    assert found["raw"]["missed"] == found["stall_free"]["missed"] == 0


def test_skipped_periods_and_ticks_a_period_late_are_missed():
    # 3 and 4 are skipped; the tick at 5 wakes more than a period late
    run = ticks(0.0, 0.0, 0.0, 1.2, 0.0, at=(0, 1, 2, 5, 7))
    found = bench_realtime.figures([run], MS, np.empty((0, 2)))
    assert found["raw"]["missed"] == 4  # 3, 4, 5 itself and 6
    assert found["periods"] == 8 + 1
    stalled = bench_realtime.figures([run, run], MS, MS * np.array([[2.5, 6.1]]))
    assert stalled["raw"]["missed"] == 8
    assert stalled["stall_free"]["missed"] == 0
    assert stalled["held"]
    assert not found["held"]


def test_the_c_loop_compiles_without_a_warning_and_keeps_absolute_deadlines(tmp_path):
    cc = bench_realtime.compiler()
    assert cc, "the tests' machine has a compiler: it builds the firmware"
    program, out = tmp_path / "loop", tmp_path / "out"
    strict = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
    subprocess.run([cc, *strict, "-o", program, bench_realtime.SOURCE], check=True)
    subprocess.run(
        [program, "0", "1", "500000", "20000", "40", "-1", out], check=True, capture_output=True
    )
    deadline_ns, woke_ns = np.fromfile(out, dtype="<i8").reshape(-1, 2).T
    periods = np.diff(deadline_ns) / 500000
    np.testing.assert_array_equal(periods, np.rint(periods))
    assert (periods >= 1).all()
    assert 1 <= len(deadline_ns) <= 40
    assert (woke_ns >= deadline_ns).all()
    refused = subprocess.run([program, "0", "1", "10", "0", "40", "-1", out], capture_output=True)
    assert refused.returncode == 1
    assert len(refused.stderr.splitlines()) == 1


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    plan = bench_realtime.Plan(1, 0.05, (1000,))
    return bench_realtime.measure(plan, tmp_path_factory.mktemp("bench"))


@pytest.mark.slow
def test_every_loop_is_measured_in_its_turn(measured):
    assert [row["variant"] for row in measured["loops"]] == ["c", "alone", "beside"]
    for row in measured["loops"]:
        assert row["rate_Hz"] == 1000
        assert row["periods"] >= 40
    assert set(measured["stages_s"]) == {"read", "estimate", "control", "guard", "write"}
    assert measured["rows_lost"] == 0
    assert json.loads(json.dumps(plain(measured)))["loops"]


@pytest.mark.slow
def test_the_table_has_a_row_for_every_loop(measured):
    text = bench_realtime.as_text(measured)
    for name in bench_realtime.VARIANTS.values():
        assert text.count(name) == 1


@pytest.mark.slow
def test_without_a_compiler_the_table_says_so(measured):
    without = {
        **measured,
        "c_compiler": None,
        "stalls": {},
        "loops": [row for row in measured["loops"] if row["variant"] != "c"],
    }
    assert "no C compiler" in bench_realtime.as_text(without)


def test_the_recorder_is_measured_by_the_kernels_account(tmp_path):
    found = bench_recorder.feed(0.3, tmp_path / "fed.h5")
    assert found["rows"] == found["rows_kept"] == 3000
    assert found["rows_lost"] == 0
    assert found["core_share"] > 0.0
    assert "64 columns" in bench_recorder.as_text(found)


@pytest.mark.slow
def test_the_impact_rig_is_timed_on_both_clocks(tmp_path):
    sets = ("controller.gamma_deg=[0.0]", "controller.repeats=1", "controller.travel_s=0.2",
            "experiment.duration_s=1.1", "loop.overrun='skip'")  # fmt: skip
    found = bench_impact.measure(tmp_path, sets)
    assert found["real"]["periods"] == 4400
    assert sum(found["stages_s"].values()) > 0.0
    assert "decompositions in a sweep" in bench_impact.as_text(found)


@pytest.mark.slow
def test_the_arm_is_timed_beside_two_other_programs():
    rows = bench_arm.compare(turns=2)
    assert [row["tool"] for row in rows] == [
        "recursion", "pinocchio ABA", "MuJoCo mj_forward", bench_arm.PERIOD,
    ]  # fmt: skip
    assert all(row["s"] > 0.0 for row in rows)
    assert "pinocchio" in bench_arm.as_text(rows)


@pytest.mark.slow
def test_limbs_are_timed_beside_another_program():
    rows = bench_leg.compare(turns=2)
    assert [(row["joints"], row["muscles"]) for row in rows] == [(3, 2), (3, 9)]
    assert all(row["own_evaluation_s"] > 0.0 and row["mujoco_evaluation_s"] > 0.0 for row in rows)
    assert "9 muscles" in bench_leg.as_text(rows)


@pytest.mark.slow
def test_ten_minutes_at_ten_kilohertz_and_64_columns_lose_no_row(tmp_path):
    found = bench_recorder.feed(600.0, tmp_path / "fed.h5")
    assert found["rows"] == found["rows_kept"] == 6_000_000
    assert found["rows_lost"] == 0
    print(bench_recorder.as_text(found))


def test_extents_go_from_quick_to_full():
    extents = list(bench.EXTENTS.values())
    lengths = [extent.loops.rounds * extent.loops.n_s for extent in extents]
    assert list(bench.EXTENTS) == ["quick", "usual", "full"]
    assert lengths == sorted(lengths)
    assert set(extents[0].parts) < set(extents[1].parts) < set(extents[2].parts)
    full = extents[2]
    assert lengths[2] * min(full.loops.rates_Hz) >= 1_000_000
    assert full.recorder_s >= 600.0
    assert full.exchanges >= 100_000


@pytest.mark.slow
def test_the_command_line_names_every_part(capsys):
    assert main(["bench", "--only", "stepp"]) == 2
    said = capsys.readouterr().err
    assert "--only stepp: unknown: did you mean 'step'?" in said
    assert said.count("\n") == 1
    assert main(["bench", "--only", "xyz"]) == 2
    said = capsys.readouterr().err
    assert "--only xyz: unknown: choose " in said
    full = bench.EXTENTS["full"].parts
    assert {"start_up", "step", "impact", "leg", "recruitment", "models", "arm"} <= set(full)
    assert all(part in said for part in full)
    assert main(["bench", "--only", "step", "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)) == {"extent", "step"}
    assert main(["bench", "--only", "step"]) == 0
    assert "model step, 6 cells" in capsys.readouterr().out


@pytest.mark.slow
def test_what_reads_a_long_recording_is_measured_command_by_command(tmp_path, monkeypatch):
    monkeypatch.setattr(bench_long, "COMMANDS", {"verify": ("verify",)})
    found = bench_long.measure(tmp_path, 30_000)
    assert (found["rows"], found["columns"]) == (30_000, 40)
    assert set(found["commands"]) == {bench_long.BARE, "verify"}, "which says that it is whole"
    assert all(cost["peak_MB"] > 1.0 for cost in found["commands"].values())
    assert "verify" in bench_long.as_text(found).splitlines()[2]


@pytest.mark.slow
def test_a_unit_is_timed_as_plant_and_in_fmpy(monkeypatch, tmp_path):
    monkeypatch.setattr(bench_unit, "STEPS", 20)
    monkeypatch.setattr(bench_unit, "SIMULATED_S", 0.05)
    found = bench_unit.measure(tmp_path)
    assert 0.0 < found["step_p50_s"] <= found["step_p99_s"]
    assert found["times_real_time"] > 0.0
    assert bench_unit.as_text(found).count("\n") == 2
    monkeypatch.setattr(bench_unit, "find_spec", lambda name: None)
    assert "extra 'fmu'" in bench_unit.as_text(bench_unit.measure(tmp_path))


@pytest.mark.slow
def test_soft_links_are_timed_beside_their_peers_one_row_a_size(monkeypatch):
    monkeypatch.setattr(bench_soft, "SEGMENTS", (2, 3))
    monkeypatch.setattr(bench_soft, "PINOCCHIO_SEGMENTS_MAX", 2)
    rows = bench_soft.cost_over_segments()
    assert [row["segments"] for row in rows] == [2, 3]
    assert "pinocchio ABA_us" in rows[0]
    assert "pinocchio ABA_us" not in rows[1]
    # Shorter segments have faster poles, which take shorter explicit steps.
    assert rows[0]["explicit_step_us"] > rows[1]["explicit_step_us"]
    lines = bench_soft.as_text(rows).splitlines()
    assert lines[0].split()[:2] == ["soft", "link,"]
    assert [line.split()[0] for line in lines[1:]] == ["2", "3"]
