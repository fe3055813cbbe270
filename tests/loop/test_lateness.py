"""What the kernel tells of a late loop."""

import mmap
from dataclasses import replace

import numpy as np
import pytest

from hil.experiment.load import load
from hil.loop import loop
from hil.loop.clock import VirtualClock
from hil.loop.lateness import EVENTS_MAX, Counts, LatenessCauses, counts
from hil.record.summary import timing
from hil.runs import assembly, session
from hil.runs.plan import Plan
from hil.runs.recording import Output

NONE = Counts(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def test_pages_touched_for_the_first_time_are_page_faults():
    n_pages = 500
    before = counts()
    with mmap.mmap(-1, n_pages * mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as new:
        new.madvise(mmap.MADV_NOHUGEPAGE)
        for page in range(n_pages):
            new[page * mmap.PAGESIZE] = 1
    found = counts().since(before)
    assert found.minor_faults >= n_pages
    assert found.steal_s >= 0.0
    assert found.waited_s >= 0.0


def test_only_what_there_was_is_put_in_words():
    assert NONE.as_text() == "no cause that the kernel counts"
    idle = replace(NONE, waited_s=float("nan"), voluntary_switches=900.0)
    assert idle.as_text() == "no cause that the kernel counts"
    text = replace(NONE, involuntary_switches=2.0, steal_s=0.03).as_text()
    assert text == "2 context switches forced, 30 ms stolen by the hypervisor"


def test_late_ticks_are_looked_at_but_not_all_of_a_burst_nor_without_end():
    said = []
    lateness = LatenessCauses(lambda *event: said.append(event), 0.001)
    for tick in range(10_000):
        lateness.look(tick * 0.001, 0.0007)
    assert len(said) == EVENTS_MAX
    t_s = np.array([event[0] for event in said])
    assert np.diff(t_s).min() >= 0.02 - 1e-12
    assert said[3][3].startswith("late by 700 us; since 0.0")


def test_no_late_tick_is_looked_at_where_the_look_would_make_the_next_one_late():
    assert LatenessCauses(print, 0.00025).late_s == float("inf")
    assert LatenessCauses(print, 0.0005).late_s == 0.00025


def test_the_loop_looks_after_the_row_of_a_late_tick_only(configs):
    class LateAt(VirtualClock):
        def sleep_until_s(self, deadline_s):
            super().sleep_until_s(deadline_s)
            return 0.0006 if deadline_s in (0.1, 0.2) else 0.0004

    order = []

    class Rows(assembly.NoSink):
        def push(self):
            order.append("row")
            return True

        def event(self, t_s, level, source, text):
            order.append((t_s, source))

    config = load(configs / "miga6/all_on.toml", ("experiment.duration_s=0.3",))
    pipeline = assembly.build(Plan(config))
    rows = Rows()
    parts = pipeline.context(LateAt(), rows)
    pipeline.rig.open()
    pipeline.rig.self_test(print)
    loop.run(replace(parts, lateness=LatenessCauses(rows.event, 0.001)))
    assert [i for i in order if i != "row"] == [(0.1, "kernel"), (0.2, "kernel")]
    assert order[101] == (0.1, "kernel")
    assert order[:101] == ["row"] * 101


@pytest.mark.parametrize(
    ("ticks", "late_ms", "worst", "n_late"),
    [
        ((0, 1, 2, 3), (0.1, 0.1, 0.1, 0.1), 0, 0),
        ((0, 1, 2, 3), (0.1, 0.6, 0.6, 0.1), 2, 2),
        # 2, 3 and 4 are missed after a late tick, and the next one is late too
        ((0, 1, 5, 6), (0.1, 0.6, 0.9, 0.1), 5, 2),
        ((0, 4, 5, 6), (0.1, 0.1, 0.6, 0.6), 3, 2),
    ],
)
def test_the_worst_run_counts_periods_late_or_missed_in_a_row(ticks, late_ms, worst, n_late):
    t_s, late_s = 1e-3 * np.array(ticks), 1e-3 * np.array(late_ms)
    found = timing(t_s, late_s, np.full(len(ticks), 1e-5), 1e-3, "real")
    assert found["worst_run_periods"] == worst
    assert found["late_ticks"] == n_late


def test_a_run_on_the_real_clock_has_the_kernels_counts(configs, tmp_path):
    config = load(
        configs / "miga6/all_on.toml", ("experiment.duration_s=0.2", "loop.overrun='skip'")
    )
    result = session.run(Plan(config, clock="real"), Output(out=tmp_path / "run.h5"))
    kernel = result.summary["timing"]["kernel"]
    # it slept for most of its ticks
    assert kernel["voluntary_switches"] > 10
    assert kernel["involuntary_switches"] >= 0
    virtual = session.run(Plan(config), Output(out=tmp_path / "virtual.h5"))
    assert "kernel" not in virtual.summary["timing"]
