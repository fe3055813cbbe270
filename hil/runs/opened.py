"""An opened rig: whatever ends the block, everything is off and every device is closed, once."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

from hil.loop.requests import Stop
from hil.platform.processes import OTHER_ENDS, STOP_SIGNALS, signal_name
from hil.plugins import code as plugin_code
from hil.rig.rig import Rig


@contextlib.contextmanager
def opened(rig: Rig, stop: Stop) -> Iterator[None]:
    """Connect to a rig for the block; a signal meanwhile sets `stop` and interrupts no step.

    Plug-in code is watched, and cannot end the process.

    Raises
    ------
    StopError
        A signal came before the loop.
    """
    rig.stopped = lambda: bool(stop.reason)
    with stop_on_signals(stop), plugin_code.watched(), rig.opened():
        yield


@contextlib.contextmanager
def stop_on_signals(stop: Stop) -> Iterator[None]:
    """Signals that would end the process set `stop` instead; only in the main thread."""

    def end(number: int) -> None:
        stop.reason, stop.by_signal = signal_name(number), True

    with _handled(end):
        yield


@contextlib.contextmanager
def interrupted_by_signals() -> Iterator[None]:
    """Signals that would end the process raise KeyboardInterrupt; only in the main thread."""

    def interrupt(number: int) -> None:
        raise KeyboardInterrupt(signal_name(number))

    with _handled(interrupt):
        yield


class _Handler:
    """A handler of this module, which a block within its block replaces."""

    def __init__(self, act: Callable[[int], None]) -> None:
        self._act = act

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self._act(number)


@contextlib.contextmanager
def _handled(act: Callable[[int], None]) -> Iterator[None]:
    """Handle STOP_SIGNALS, and those of OTHER_ENDS that nobody else handles."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (*STOP_SIGNALS, *OTHER_ENDS)}
    for number, handler in [*before.items()]:
        if number in STOP_SIGNALS or handler is signal.SIG_DFL or isinstance(handler, _Handler):
            signal.signal(number, _Handler(act))
        else:
            del before[number]
    try:
        yield
    finally:
        for number, handler in before.items():
            # None stands for a handler of the program around Python, which cannot be put back.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
