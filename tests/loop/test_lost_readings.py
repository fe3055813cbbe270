"""A condition lasts until a reading says otherwise, whichever readings are lost.

The oracle counts whole periods as a user would: a reading shows the condition within the allowed
age of its onset, and the trip comes its hold time after that reading, reading or none.
"""

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hil.experiment.load import load
from hil.loop import interlocks
from hil.loop.channels import Channel, RigLayout
from hil.loop.clock import VirtualClock
from hil.loop.frame import Column
from hil.loop.guard import CellHeat, Guard, Limits, SignalLimits, names_of
from hil.loop.wire_watch import WatchedWire
from hil.mechanics.sma.bounds import Surroundings
from hil.mechanics.sma.limits import CellWire
from hil.mechanics.sma.wire import SmaWire
from hil.runs.assembly import build
from hil.runs.plan import Plan
from hil.runs.rehearsal import FaultSink, run_simulated
from rows import BOARD_FAULTS, BoundGuard, row_of

PERIOD_S = 0.01
AGE = 12  # periods for which readings may be lost
LATE_MAX = 3  # periods from one tick to the next
FROZEN, ON_MAX = 9, 6  # periods of `frozen_s` and `cell_on_max_s`
HEATS_K, RISE_MAX_K = 1.0, 9.5  # of a cell in a period; its budget lasts for 9 and is past at 10
SIGNALS = {  # limits of the channel, its value while the condition lasts, the twin's beside it
    "force_high": (SignalLimits(-9.0, 9.0, is_force=True), 9.5, 9.5),
    "signal_out_of_range": (SignalLimits(-9.0, 9.0), -9.5, -9.5),
    "force_residual_high": (SignalLimits(is_force=True, residual_max=5.0), 6.0, 0.5),
    "force_no_rise": (SignalLimits(is_force=True, rise_min=1.0), 0.5, 3.0),
    "sensor_frozen": (SignalLimits(frozen_s=FROZEN * PERIOD_S), 0.5, 0.5),
    "force_rate_high": (SignalLimits(is_force=True, rate_max_per_s=1.0), 20.0, 0.5),
    "signal_fast": (SignalLimits(rate_max_per_s=1.0), -20.0, 0.5),
}
RAMPS = ("force_rate_high", "signal_fast")
BITS = {
    "estop_open": ("card_fault_bits", "estop_open"),
    "gate_stuck": ("card_fault_bits", "a_stuck"),
    "resistance_out_of_range": ("board_resistance_bits", "resistance_high"),
    "supply_silent": ("supply_fault_bits", "silent"),
    "supply_wrong": ("supply_fault_bits", "wrong"),
    "supply_not_off": ("supply_fault_bits", "not_off"),
}
# The reading before and after: a current of two thirds, and a clamp, as quick as its wire, that
# stays as it is while the wire heats.
WIRES = {
    "current_untrue": ("a.resistance_Ohm", 50.4, 75.6),
    "clamp_untrue": ("a.temperature_C", 25.0, 25.0),
}
HOT = SmaWire(n_wires=4, supply_V=80.0, clamp_capacity_J_per_K=1e-6)
AROUND = Surroundings(80.0, 80.0, 25.0, 25.0, left_K=0.0, tolerance=0.1)
AGES = {"reading_stale": "card_age_s", "board_silent": "board_age_s"}
COMMANDS = {"too_many_cells_on": 0, "cell_on_too_long": ON_MAX, "cell_energy_high": 10}
NO_HOLD = {"loop_late", "force_jump", "disk_low"}  # one tick, one reading, one look: never last
HOLDABLE = [*SIGNALS, *BITS, *WIRES, *AGES, *COMMANDS]
LAYOUT = RigLayout(
    (Channel("c", "_N", "further"), Channel("calm", "_N", "further")), (), ("board",),
    ("board", "card"), 2, supplies=("supply",),
)  # fmt: skip
MODEL = LAYOUT.channels[0].column("model")
FLAGS = {
    "card_fault_bits": ("estop_open", "c_at_rail", "a_stuck"),
    "board_resistance_bits": ("resistance_low", "resistance_high"),
    "board_fault_bits": BOARD_FAULTS,
}


def test_every_interlock_that_can_be_held_is_tried_here():
    assert {row.name for row in interlocks.LOOP if row.key} == {*HOLDABLE, *NO_HOLD}


class Bench:
    """A guard on a row, and a condition that begins at a tick and lasts."""

    def __init__(self, kind="", onset=10**6, hold=0):
        self.kind, self.onset = kind, onset
        signal, *self.while_it_lasts = SIGNALS.get(kind, (SignalLimits(is_force=True), 0.5, 0.5))
        heated = CellHeat(HEATS_K / PERIOD_S, 1e9, RISE_MAX_K)
        limits = Limits(
            cell_on_max_s=ON_MAX * PERIOD_S if kind == "cell_on_too_long" else 1e6,
            reading_age_max_s=AGE * PERIOD_S,
            overruns_max=10**9,
            signals=(signal, SignalLimits()),
            cells_on_max=1 if kind == "too_many_cells_on" else 2,
            hold_s={kind: hold * PERIOD_S} if kind else {},
            heat=(heated, CellHeat()) if kind == "cell_energy_high" else (),
            wires=[WatchedWire("board", CellWire("a", HOT), 0, AROUND, True, True)]
            if kind in WIRES
            else (),
        )
        self.guard = Guard(limits, 2, PERIOD_S)
        columns = [Column(name, "1", "fault", "", flags=flags) for name, flags in FLAGS.items()]
        columns += [Column(name, "1", "measured", "") for name, _, _ in WIRES.values()]
        self.frame = row_of(LAYOUT, *columns, Column(MODEL, "N", "model", ""))
        self.readings, self.commands = LAYOUT.bind(self.frame)
        self.guard.bind(self.frame, LAYOUT, self.readings, self.commands)
        assert self.guard.arm()

    def set(self, column, value):
        self.frame.values[self.frame.index(column)] = value

    def tick(self, k, n_periods, comes):
        """The faults of tick k, whose device gives a reading or not."""
        lasts = k >= self.onset
        value, model = self.while_it_lasts if lasts else (0.7 + 0.001 * k, 0.5)
        if lasts and self.kind in RAMPS:
            value *= 1 + k - self.onset
        self.readings.measured[:] = value if comes else np.nan, 0.001 * k
        self.readings.mark_valid(0b111, 0b110 | comes)
        self.set(MODEL, model)
        if self.kind in BITS and comes:  # between its turns a device leaves its bits as they are
            column, bit = BITS[self.kind]
            self.frame.bits[self.frame.bit_index(column)] = lasts * self.frame.flag(column, bit)
        if self.kind in WIRES:
            column, *values = WIRES[self.kind]
            self.set(column, values[lasts] if comes else np.nan)
            self.readings.cells_reported[0] = lasts and self.kind == "clamp_untrue"
        if self.kind in AGES:
            self.set(AGES[self.kind], lasts * (AGE + 1) * PERIOD_S)
        on = lasts and self.kind in COMMANDS
        self.commands.cells[:] = on, on and self.kind == "too_many_cells_on"
        return names_of(self.guard.step(0, n_periods))


@st.composite
def rhythms(draw):
    """Ticks, each with the periods since the last and whether its reading comes.

    The device has a divider and loses readings beside it, but never for longer than AGE.
    """
    chance = Random(draw(st.integers(0, 10**9)))  # draws of each tick take longer than the guard
    every, k, unread, ticks = draw(st.integers(1, AGE)), 0, 0, [(0, 1, True)]
    while k < 120:
        passed = chance.choice([1] * 6 + [2, LATE_MAX])
        k, unread = k + passed, unread + passed
        turns = k // every > (k - passed) // every
        comes = (turns and chance.random() < 0.5) or unread + LATE_MAX > AGE
        unread = 0 if comes else unread
        ticks.append((k, passed, comes))
    return ticks


def first(ticks, least):
    return next((k for k in ticks if k >= least), 10**6)


def shown(kind, ticks, onset):
    """The tick in which the guard first can see the condition."""
    every = [k for k, _, _ in ticks]
    readings = [k for k, _, comes in ticks if comes]
    if kind == "sensor_frozen":
        return first(readings, first(readings, onset) + FROZEN + 1)
    if kind == "current_untrue":
        return first(readings, first(readings, onset) + 1)
    if kind in COMMANDS:
        return first(every, first(every, onset) + COMMANDS[kind])
    return first(every if kind in AGES else readings, onset)


@pytest.mark.parametrize("kind", HOLDABLE)
@settings(max_examples=settings().max_examples * 4 // 5, deadline=None)
@given(ticks=rhythms(), onset=st.integers(2, 40), hold=st.integers(0, 20))
def test_a_trip_comes_within_hold_and_age_whichever_readings_are_lost(kind, ticks, onset, hold):
    bench = Bench(kind, onset, hold)
    tripped = next((tick[0] for tick in ticks if kind in bench.tick(*tick)), None)
    begins = shown(kind, ticks, onset)
    assert tripped == first([k for k, _, _ in ticks], begins + hold)
    limit = COMMANDS.get(kind, 0) + FROZEN * (kind == "sensor_frozen")
    limit += (AGE + 1) * (kind in ("sensor_frozen", "current_untrue"))  # two readings
    assert tripped <= onset + limit + hold + (0 if kind in COMMANDS else AGE) + 2 * LATE_MAX


@settings(max_examples=settings().max_examples, deadline=None)
@given(ticks=rhythms(), ends=st.integers(0, 60))
def test_a_channel_without_readings_is_stale_though_its_device_answers(ticks, ends):
    bench, last = Bench(), -1
    for k, n_periods, comes in ticks:
        comes = comes and k < ends
        last = k if comes else last
        faults = bench.tick(k, n_periods, comes)
        assert faults == (["reading_stale"] if k - max(last, 0) > AGE else [])
        if faults:
            assert bench.guard.seen.ages_s.tolist() == [0.0, 0.0]
            break


@pytest.mark.parametrize("fine_at", [1, 4, 5, None])
def test_a_reading_without_the_condition_starts_its_time_again_and_a_lost_one_does_not(fine_at):
    bench = Bench("force_high", 0, 5)
    for k in range(20):
        bench.onset = 10**6 if k == fine_at else 0
        if bench.tick(k, 1, k == 0 or (fine_at is not None and k - fine_at in (0, 1))):
            break
    assert k == (5 if fine_at is None else fine_at + 1 + 5)


def test_the_time_of_a_condition_that_moves_to_another_channel_counts_on():
    """What one channel shows until another does is one condition: it trips no later than by one."""
    guard = Guard(
        Limits(1e6, 1e6, 9, (SIGNALS["force_high"][0],) * 2, hold_s={"force_high": 0.05}), 0, 0.01
    )
    row = BoundGuard(guard, 2)
    found = []
    for k in range(8):
        row.readings.measured[:] = 9.5 * (k < 3), 9.5 * (k >= 3)
        found.append(names_of(guard.step(0)))
    assert found == [[]] * 5 + [["force_high"]] * 3


@pytest.mark.parametrize("every", [1, 2, 7, 40])
@pytest.mark.parametrize("lost", [0.0, 0.3])
def test_a_run_whose_force_is_read_seldom_or_lost_trips_within_hold_and_age(every, lost, configs):
    """The rig of the bundled runs: at 0.0001 N its residual is high from the first reading on."""
    sets = ["guard.force_residual_max_N=0.0001", f"devices.daq.every={every}"]
    sets += [f"devices.daq.channels.force.sim.reading_lost_probability={lost}"]
    config = load(configs / "miga6/all_on.toml", [*sets, "experiment.duration_s=0.5"])
    pipeline, sink = build(Plan(config)), FaultSink()
    parts = pipeline.context(VirtualClock(), sink)
    assert run_simulated(replace(parts, after_trip_ticks=0)) == "tripped"
    t_s = parts.frame.values[parts.frame.index("t_s")]
    assert [text.split(":")[0] for text in sink.faults] == ["force_residual_high"]
    assert 0.1 - 1e-9 <= t_s <= 0.1 + 0.05
    assert "force measured" in sink.faults[0]
