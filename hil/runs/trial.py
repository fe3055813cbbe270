"""One trial: a rig is opened, tested, run, made safe and closed. The only door to the loop."""

import contextlib
import sys
from collections.abc import Generator, Iterator
from math import nan
from time import perf_counter
from types import TracebackType
from typing import Self

from hil.loop import loop
from hil.loop.clock import RealClock, sees_sleep
from hil.loop.context import LoopContext
from hil.platform import realtime, sleep
from hil.rig.rig import Rig
from hil.runs.opened import opened


class Trial:
    """A context manager around one run of the loop.

    Whatever ends its block, everything is off and every device is closed, once. A signal meanwhile
    stops the loop between two ticks. On a real clock the computer does not sleep, and the
    loop has real-time settings. A recorded rig is not opened: it has nothing to switch.

    Attributes
    ----------
    granted : the real-time settings; empty on another clock
    outcome : of the loop, `aborted` until it ends
    loop_s : time that the loop took; NaN if it did not run
    kernel : the kernel's counts during the loop, if its late ticks are explained
    """

    def __init__(self, context: LoopContext) -> None:
        self.context = context
        self.granted: dict[str, str] = {}
        self.outcome = "aborted"
        self.loop_s = nan
        self.kernel: dict[str, object] = {}
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        rig = self.context.rig
        with contextlib.ExitStack() as stack:
            if isinstance(rig, Rig):
                stack.enter_context(opened(rig, self.context.inputs.stop))
            if isinstance(self.context.clock, RealClock):
                stack.enter_context(self._awake())
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    @contextlib.contextmanager
    def _awake(self) -> Iterator[None]:
        """Prevent sleep of the computer; records the result as an event."""
        with sleep.held_off() as how:
            level = "warning" if how.startswith(sleep.NOT_HELD) else "info"
            detected = "" if sees_sleep() else ", and is not detected on this system"
            text = f"sleep of the machine {how}{detected}"
            self.context.sink.event(0.0, level, "realtime", text)
            yield

    def self_test(self) -> None:
        """Test the rig's protections; records the results as events and prompts the operator."""
        assert isinstance(self.context.rig, Rig)
        for line in self.context.rig.self_test(_ask_somebody):
            self.context.sink.event(0.0, "info", "self-test", line)

    def run(self) -> str:
        """Run the loop; returns its outcome."""
        with self._counted():
            self.outcome = loop.run(self.context)
        return self.outcome

    def ticks(self) -> Generator[None]:
        """Run the loop as `run`, one tick at each `next`."""
        with self._counted():
            self.outcome = yield from loop.ticks(self.context)

    @contextlib.contextmanager
    def _counted(self) -> Iterator[None]:
        """Around the loop: real-time settings, its duration, and the kernel's counts."""
        lateness = self.context.lateness
        with self._real_time():
            if lateness is not None:
                lateness.begin()
            began_s = perf_counter()
            try:
                yield
            finally:
                self.loop_s = perf_counter() - began_s
                if lateness is not None:
                    self.kernel = lateness.total()

    def look_back(self) -> str:
        """The outcome, with faults in the boards' last answers; call after the block."""
        self.outcome = loop.look_back(self.context, self.outcome)
        return self.outcome

    @contextlib.contextmanager
    def _real_time(self) -> Iterator[None]:
        """On a real clock, request real-time settings; records the granted ones as an event."""
        clock = self.context.clock
        if not isinstance(clock, RealClock):
            yield
            return
        with realtime.prepared() as self.granted:
            words = [f"{name.replace('_', ' ')} {what}" for name, what in self.granted.items()]
            words.append(f"spins {1e6 * clock.spin_s:.0f} us before a deadline")
            self.context.sink.event(0.0, "info", "realtime", ", ".join(words))
            yield


def _ask_somebody(what: str) -> None:
    """Prompt the operator on the terminal."""
    print(what, file=sys.stderr, flush=True)
