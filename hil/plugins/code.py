"""Plug-in code in a run: its arguments, and the supervision of its calls.

A controller, reference, model or device can be a class in a user's file. It gets plain values and
read-only arrays. An exception or an invalid answer becomes one `PluginError` with the file, line
and class. A call that does not return is interrupted.
"""

import _thread
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from traceback import walk_tb
from types import FrameType
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from hil.errors import DeviceError, PluginError, one_line
from hil.platform import alarm
from hil.platform.terminal import say

Scalar = TypeVar("Scalar", bound=np.generic)
HUNG_S = 1.0  # timeout of a single call
OPENS_S = 30.0  # timeout of a device's open(), before anything is on
REAL = "biufO"  # NumPy's kinds of real numbers; O: objects, such as large integers
MESSAGE_MAX = 160  # characters of an exception's message


@dataclass(frozen=True)
class Facts:
    """Facts about the rig for a plug-in controller.

    Attributes
    ----------
    channels, units : names and units of the measured signals, in the order of `Now.measured`
    references : names of the set points, in the order of `Now.reference`; "force" on an array
    cells, force_on_N : names of the cells, and the force of an active cell if known
    outputs, lowest, highest : names of the outputs and their ranges
    model : model of the twin, if the rig is a cellular array
    force : the channel whose force is controlled; empty without one
    duty_min : the smallest duty above 0 that a board can measure
    """

    period_s: float
    channels: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    cells: tuple[str, ...] = ()
    force_on_N: tuple[float, ...] = ()
    outputs: tuple[str, ...] = ()
    lowest: tuple[float, ...] = ()
    highest: tuple[float, ...] = ()
    model: Any = None
    force: str = ""
    duty_min: float = 0.0

    @property
    def n_commands(self) -> int:
        """Number of values that a step returns: one a cell, then one an output."""
        return len(self.cells) + len(self.outputs)


@dataclass(frozen=True)
class Now:
    """Inputs of a plug-in controller at one tick; the arrays are read-only.

    `now["force_estimate_N"]` reads a column of twin or observer by name.

    Attributes
    ----------
    t_s : time since the start of the experiment
    reference : (R,) array, set points; NaN if missing
    measured : (S,) array, readings; NaN if missing at this tick
    cells : (N,) uint8 array, 1 on, 0 off, 255 unknown, as the boards report
    """

    t_s: float
    reference: NDArray[np.float64]
    measured: NDArray[np.float64]
    cells: NDArray[np.uint8]
    _values: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0), repr=False)
    _index: Mapping[str, int] = field(default_factory=dict, repr=False)

    def __getitem__(self, column: str) -> float:
        try:
            return float(self._values[self._index[column]])
        except KeyError:
            known = ", ".join(self._index) or "none here"
            raise KeyError(f"no such column: {column}: choose {known}") from None


def read_only(values: NDArray[Scalar]) -> NDArray[Scalar]:
    """A read-only copy."""
    copy = values.copy()
    copy.flags.writeable = False
    return copy


@dataclass(frozen=True)
class Plugin:
    """A loaded plug-in class with the values of its table.

    Attributes
    ----------
    kind : as the configuration names it
    cls : the class
    values : values of its table; an instance of its `Values` if it has this class
    file : source file, as shown in messages
    source : text of that file
    lines : first line of the class (key '') and of each of its methods
    package : installed package with version; empty for a file
    """

    kind: str
    cls: type
    values: object
    file: Path
    source: str
    lines: Mapping[str, int]
    package: str = ""

    def make(self, *args: object) -> "Used":
        """Make an instance with these arguments and the values of the table."""
        with self._guarded():
            return Used(self, self.cls(*args, self.values))

    def refuse(self, method: str, why: str) -> NoReturn:
        """Raise PluginError about one of its methods, or about the class."""
        line = self.lines.get(method, self.lines.get("", 1))
        raise PluginError(f"{self.file}, line {line}, class {self.cls.__name__}: {why}")

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        _start_watch()
        try:
            with exit_refused():
                yield
        except PluginError:
            raise
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # GeneratorExit too: whatever it is, the run is made safe
            raise PluginError(message_of(error, self)) from None
        finally:
            _end_watch()


class Used:
    """One object of a plug-in class, whose calls are guarded and watched."""

    def __init__(self, plugin: Plugin, made: object) -> None:
        self.plugin = plugin
        self.made = made

    def call(self, method: str, *args: object) -> Any:
        """What its method gives; PluginError where it raises or does not return.

        A DeviceError of it passes: its message is about the device, not about the code.
        """
        _start_watch(OPENS_S if method == "open" else 0.0)
        try:
            return getattr(self.made, method)(*args)
        except (DeviceError, KeyboardInterrupt):
            raise
        except BaseException as error:  # GeneratorExit too: whatever it is, the run is made safe
            raise PluginError(message_of(error, self.plugin)) from None
        finally:
            _end_watch()

    def numbers(self, method: str, n: int, *args: object) -> NDArray[np.float64]:
        """A method's answer as n finite numbers."""
        answer = self.call(method, *args)
        try:
            values = real(answer).astype(np.float64, copy=False)
        except Exception:  # answers may be objects whose code fails
            self.plugin.refuse(method, f"{method}() gives {_short(answer)}: give {n} numbers")
        if values.shape != (n,):
            shape = _short(answer) if values.shape == () else f"shape {values.shape}"
            self.plugin.refuse(method, f"{method}() gives {shape}: give an array of shape ({n},)")
        if not np.isfinite(values).all():
            at = int(np.flatnonzero(~np.isfinite(values))[0])
            self.plugin.refuse(method, f"{method}() gives {values[at]} as number {at + 1} of {n}")
        return values

    def number(self, method: str, *args: object) -> float:
        """Call a method that must return one finite number."""
        answer = self.call(method, *args)
        try:
            value = float(real(answer).item())
        except Exception:  # as in numbers()
            self.plugin.refuse(method, f"{method}() gives {_short(answer)}: give a number")
        if not np.isfinite(value):
            self.plugin.refuse(method, f"{method}() gives {value}")
        return value


def message_of(error: BaseException, plugin: Plugin) -> str:
    """One line: place of an exception in the plug-in file, and its message."""
    name = plugin.cls.__name__
    frames = [
        (frame.f_code.co_name, line)
        for frame, line in walk_tb(error.__traceback__)
        if frame.f_code.co_filename == str(plugin.file)
    ]
    function, line = frames[-1] if frames else ("", plugin.lines.get("", 1))
    where = f"{plugin.file}, line {line}, class {name}" + (f", in {function}()" if function else "")
    if isinstance(error, _Hung):
        return f"{where}: has not returned after {error} s"
    return f"{where}: {what(error)}"


def what(error: BaseException) -> str:
    """Type and message of an exception on one line."""
    try:
        text = one_line(" ".join(str(error).split()))
    except Exception:  # its own __str__ fails
        text = ""
    text = text if len(text) <= MESSAGE_MAX else text[: MESSAGE_MAX - 3] + "..."
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def real(answer: object) -> NDArray[Any]:
    """An answer as an array; TypeError if its type is not one of real numbers, as of text."""
    values = np.asarray(answer)
    if values.dtype.kind not in REAL:
        raise TypeError
    return values


def _short(value: object) -> str:
    try:
        text = one_line(repr(value))
    except Exception:  # an integer may have too many digits
        text = f"a {type(value).__name__}"
    return text if len(text) <= 40 else text[:37] + "..."


class _Hung(BaseException):
    """A call was interrupted after these seconds; a BaseException: user code does not catch it."""


class ExitError(SystemExit):
    """Code called os._exit, which would end the process without switching anything off."""


_real_exit = os._exit
_refusing = 0  # blocks of exit_refused in any thread
_refusing_lock = threading.Lock()


@contextlib.contextmanager
def exit_refused() -> Iterator[None]:
    """In the block os._exit raises ExitError; in a thread of its own it also stops the run.

    Blocks of several threads may overlap: the last one that ends puts os._exit back.
    """
    global _refusing

    def refuse(status: int) -> NoReturn:
        text = f"os._exit({status}) would end the program without switching anything off"
        if threading.current_thread() is not threading.main_thread():
            say(f"plug-in: {text}: the run is stopped", file=sys.stderr)
            _thread.interrupt_main(signal.SIGTERM)
        raise ExitError(f"{text}: raise an exception")

    with _refusing_lock:
        _refusing += 1
        os._exit = refuse
    try:
        yield
    finally:
        with _refusing_lock:
            _refusing = max(0, _refusing - 1)  # a fork may end a block of before
            if not _refusing:
                os._exit = _real_exit


def _forget_refusals() -> None:
    """In a fork, such as of multiprocessing, no block of another thread ever ends."""
    global _refusing, _refusing_lock
    _refusing, _refusing_lock, os._exit = 0, threading.Lock(), _real_exit


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_refusals)


_limit_s = 0.0
_call_limit_s = 0.0


@contextlib.contextmanager
def watched(limit_s: float = HUNG_S) -> Iterator[None]:
    """Refuse os._exit; interrupt calls that take longer than limit_s, in the main thread only."""
    global _limit_s
    if threading.current_thread() is not threading.main_thread():
        with exit_refused():
            yield
        return
    before, _limit_s = (signal.signal(alarm.NUMBER, _interrupt), _limit_s), limit_s
    try:
        with exit_refused():
            yield
    finally:
        # None stands for a handler in C, such as faulthandler's: Python cannot put it back.
        signal.signal(alarm.NUMBER, signal.SIG_DFL if before[0] is None else before[0])
        _limit_s = before[1]


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise _Hung(f"{_call_limit_s:g}")


def _start_watch(at_least_s: float = 0.0) -> None:
    global _call_limit_s
    if _limit_s:
        _call_limit_s = max(_limit_s, at_least_s)
        alarm.set_s(_call_limit_s)


def _end_watch() -> None:
    if _limit_s:
        alarm.set_s(0.0)
