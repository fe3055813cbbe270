"""Everything that one run of the loop works with."""

from dataclasses import dataclass
from typing import Protocol

from hil.loop.clock import Clock
from hil.loop.frame import Frame
from hil.loop.guard import Guard
from hil.loop.lateness import LatenessCauses
from hil.loop.requests import Inputs, RequestChannel
from hil.loop.stages import Control, Estimator, LoopRig
from hil.loop.trip_report import TripReport
from hil.loop.wait_condition import WaitCondition


class RowSink(RequestChannel, Protocol):
    """Where the rows go, and where requests come from.

    Attributes
    ----------
    disk_low : str
        How low the disk is, where that is why rows are refused; empty where the recorder is dead.
    """

    disk_low: str

    def push(self) -> bool:
        """Take the current row; False when nobody records any more."""
        ...


@dataclass(frozen=True)
class LoopContext:
    """Everything one run works with.

    Attributes
    ----------
    armed : bool
        The run starts at once; otherwise it waits until a window arms it.
    tolerated_overruns : int or None
        Periods missed in a row that are worth an event; None for no event.
    lateness : LatenessCauses or None
        Reports what else ran when a tick was late, after its row.
    until : WaitCondition or None
        Ends a run that only waits.
    """

    clock: Clock
    rig: LoopRig
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
    lateness: LatenessCauses | None = None
    until: WaitCondition | None = None
