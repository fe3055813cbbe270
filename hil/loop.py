"""The loop: read, estimate, control, guard, write, record; on a bench and in simulation alike."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import nan
from time import perf_counter
from types import MappingProxyType
from typing import Protocol

import numpy as np

from hil import guard as guards
from hil.clock import Clock
from hil.control.controller import Control
from hil.devices.replay import ReplayRig
from hil.errors import DeviceError, OwnError
from hil.estimate import Estimator
from hil.evidence import Evidence
from hil.frame import Column, Frame
from hil.guard import Guard
from hil.inputs import Inputs, Way
from hil.rig import Rig
from hil.states import NUMBERS
from hil.trip_report import TripReport
from hil.waiting import Until

FOREVER = 2**62
NOTHING_SAID: Mapping[str, Sequence[str]] = MappingProxyType({})
STAGES = ("read", "estimate", "control", "guard", "write")


class RowSink(Way, Protocol):
    """Where the rows go, and where requests come from.

    Attributes
    ----------
    disk_low : str
        Why rows are not taken any more, if not because the recorder is dead: how low the disk is.
    """

    disk_low: str

    def push(self) -> bool:
        """Take the current row; False when nobody records any more."""
        ...


@dataclass(frozen=True)
class Parts:
    """Everything one run works with.

    Attributes
    ----------
    armed : bool
        Begins at once; else it waits until a window arms it.
    tolerated_overruns : int or None
        Periods missed in a row that are worth an event; None for no event.
    evidence : Evidence or None
        Looks at what else ran when a tick was late, after its row.
    until : Until or None
        Ends a run that only waits.
    """

    clock: Clock
    rig: Rig | ReplayRig
    estimator: Estimator
    control: Control
    guard: Guard
    inputs: Inputs
    frame: Frame
    report: TripReport
    sink: RowSink
    period_s: float
    n_ticks: int
    after_trip_ticks: int
    armed: bool = True
    tolerated_overruns: int | None = None
    evidence: Evidence | None = None
    until: Until | None = None


def _note_remarks(p: Parts, tick: int, t_s: float) -> None:
    """What the devices have to say goes among the events, its figures among the inputs."""
    for device, remark in p.rig.remarks():
        p.sink.event(t_s, remark.level, device, remark.text)
        if remark.name:
            p.sink.input(tick, t_s, remark.name, remark.value, remark.about)


class _Told:
    """Says what tripped, once a fault: who, how much, and which limit."""

    def __init__(self, p: Parts) -> None:
        self._parts = p
        self._bits = 0

    def tell(self, t_s: float, said: Mapping[str, Sequence[str]] = NOTHING_SAID) -> None:
        """What is new goes among the events.

        Parameters
        ----------
        said : what is known of a fault beside what guard and devices know
        """
        p = self._parts
        fresh = p.guard.fault_bits & ~self._bits
        if not fresh:
            return
        self._bits |= fresh
        seen = p.guard.seen
        on_s = np.zeros(p.rig.layout.n_cells) if seen is None else seen.on_s
        known = p.rig.troubles(on_s) | dict(said)
        if fresh & guards.DISK_LOW:
            known["disk_low"] = [p.sink.disk_low]
        for line in p.report.lines(fresh, seen, known):
            p.sink.event(t_s, "fault", "guard", line)


def _note_sleep(p: Parts, told: _Told, t_s: float, slept_s: float) -> None:
    """While the machine slept nobody watched and nothing could be switched off."""
    text = f"the machine slept for {slept_s:.3g} s before this tick"
    if p.guard.armed:
        p.guard.trip(guards.MACHINE_SLEPT)
        told.tell(t_s, {"machine_slept": [text]})
    else:
        p.sink.event(t_s, "warning", "loop", text)


def columns() -> list[Column]:
    """The columns that the loop itself fills."""
    return [
        Column("t_s", "s", "timing", "scheduled time of the tick"),
        Column("late_s", "s", "timing", "start of the tick after its scheduled time"),
        Column("busy_s", "s", "timing", "from the start of the tick until its row was complete"),
        *(Column(f"{name}_stage_s", "s", "timing", f"spent in stage {name}") for name in STAGES),
        Column(
            "guard_state",
            "1",
            "state",
            "of the rig: " + ", ".join(f"{i} {name}" for name, i in NUMBERS.items()),
        ),
        Column("fault_bits", "1", "fault", "faults since the start, latched", flags=guards.FAULTS),
    ]


def run(p: Parts) -> str:
    """Tick until the end, a stop or a trip; the outcome `complete`, `aborted` or `tripped`.

    The experiment begins at the tick at which the run is armed, its time with it; before, all is
    off and set points are NaN; where a supply has to come on first, once it has. Requests take
    effect between two ticks.

    Code of one's own that fails trips; where it is a model, the run ends with it.

    Missed periods are skipped, never caught up in a burst. After a trip all cells stay
    off, all outputs at rest, and the rows go on for a while, so that the recording shows what
    followed.

    Raises
    ------
    DeviceError
        A device failed; the row of that tick carries the fault bit.
    """
    values, row_bits = p.frame.values, p.frame.bits
    t_at, late_at, busy_at = (p.frame.index(name) for name in ("t_s", "late_s", "busy_s"))
    stage_at, state_at = p.frame.index("read_stage_s"), p.frame.index("guard_state")
    faults_at = p.frame.bit_index("fault_bits")
    for column in p.control.columns:
        if not column.n_cells and not column.flags:
            values[p.frame.index(column.name)] = nan
    tick = last_tick = overruns = 0
    told = _Told(p)
    begun = p.armed
    first, end, tripped = 0, p.n_ticks, False
    if begun:
        if not p.guard.arm():
            raise RuntimeError(f"armed while {p.rig.states.now}: a rig proves itself first")
        p.rig.arm()
        p.guard.begin()
        _note_remarks(p, 0, 0.0)
    else:
        end = FOREVER
    p.clock.start()
    while tick < end:
        t_s, n_periods = tick * p.period_s, tick - last_tick
        if not p.inputs.apply(tick, t_s):
            break
        values[t_at] = t_s
        values[late_at] = late_s = p.clock.sleep_until_s(t_s)
        began = perf_counter()
        if slept_s := p.clock.slept_s():
            _note_sleep(p, told, t_s, slept_s)
        try:
            ready = p.guard.armed and not p.guard.running and p.rig.ready()
            if ready and (begun or p.rig.has_cooled()):
                if not begun:
                    p.rig.arm()
                    _note_remarks(p, tick, t_s)
                    begun, first, end = True, tick, tick + p.n_ticks
                p.guard.begin()
            p.rig.read(t_s)
            read = perf_counter()
            p.estimator.step(n_periods)
            estimated = perf_counter()
            if p.guard.running:
                try:
                    p.control.step((tick - first) * p.period_s)
                except OwnError as error:
                    p.guard.trip(guards.OWN_CODE_FAILED)
                    told.tell(t_s, {"own_code_failed": [str(error)]})
            controlled = perf_counter()
            row_bits[faults_at] = p.guard.step(overruns, n_periods)
            guarded = perf_counter()
            p.rig.write(t_s)
        except DeviceError as error:
            p.guard.trip(guards.DEVICE_FAILED)
            row_bits[faults_at] = p.guard.fault_bits
            p.sink.push()
            told.tell(t_s, {"device_failed": [str(error)]})
            raise
        except OwnError as error:  # a model: there is no estimate, or no plant, any more
            p.guard.trip(guards.OWN_CODE_FAILED)
            told.tell(t_s, {"own_code_failed": [str(error)]})
            row_bits[faults_at] = p.guard.fault_bits
            p.sink.push()
            return "tripped"
        written = perf_counter()
        values[stage_at] = read - began
        values[stage_at + 1] = estimated - read
        values[stage_at + 2] = controlled - estimated
        values[stage_at + 3] = guarded - controlled
        values[stage_at + 4] = written - guarded
        values[busy_at] = written - began
        values[state_at] = p.guard.states.number
        if not p.sink.push():
            p.guard.trip(guards.DISK_LOW if p.sink.disk_low else guards.RECORDER_DEAD)
        if p.rig.has_news():
            _note_remarks(p, tick, t_s)
        if p.evidence is not None and late_s > p.evidence.late_s:
            p.evidence.look(t_s, late_s)
        if p.guard.fault_bits:
            told.tell(t_s)
            if not tripped:
                tripped = True
                end = min(end, tick + 1 + p.after_trip_ticks)
        if p.until is not None and p.until.step(t_s):
            end = min(end, tick + 1)
        last_tick, tick = tick, max(tick + 1, int(p.clock.now_s() / p.period_s))
        skipped = min(tick, end) - last_tick - 1
        overruns = overruns + skipped if skipped else 0
        if p.tolerated_overruns is not None and overruns >= p.tolerated_overruns:
            p.sink.event(t_s, "warning", "loop", f"{overruns} periods missed in a row")
            overruns = 0
    if not tripped and p.guard.trip_when_late(overruns):  # missed after the last tick
        told.tell(last_tick * p.period_s)
        tripped = True
    p.guard.disarm()
    if tripped:
        return "tripped"
    return "aborted" if p.inputs.stop.reason else "complete"
