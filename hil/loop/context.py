"""Objects that one run of the loop uses."""

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
    """Destination of the rows, and source of requests.

    Attributes
    ----------
    disk_low : description of the free disk space, if rows are refused for that; otherwise empty
    file_harmed : what has become of the recording, if rows are refused for that; otherwise empty
    """

    disk_low: str
    file_harmed: str

    def push(self) -> bool:
        """Take the current row; returns False if it is no longer recorded."""
        ...


@dataclass(frozen=True)
class LoopContext:
    """Objects that one run of the loop uses.

    Attributes
    ----------
    n_ticks : ticks of the experiment
    after_trip_ticks : ticks that are recorded after a trip
    armed : the run starts at once; otherwise it waits until a window arms it
    tolerated_overruns : int or None
        Number of periods missed in a row that is reported as an event; None for no event.
    lateness : reports the kernel's counts for a late tick, after its row
    until : ends a run that only waits for a condition
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
