"""Plug-in code in a run: what it is told, and how its calls are watched.

A controller, reference, model or device can be a class in a user's file. It gets plain values and
read-only arrays. An exception or an invalid answer becomes one `PluginError` with the file, line
and class; a call that does not return is interrupted.
"""

import contextlib
import signal
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from traceback import walk_tb
from types import FrameType
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from hil.errors import PluginError, one_line

HUNG_S = 1.0  # of a single call
SAID_MAX = 160  # characters of what somebody else's exception says


@dataclass(frozen=True)
class Facts:
    """What a plug-in controller is told of its rig.

    Attributes
    ----------
    channels, units : of every measured signal, in the order of `Now.measured`
    references : of the set points, in the order of `Now.reference`; "force" on an array
    cells, force_on_N : the cells' names, and what an active one pulls, where that is known
    outputs, lowest, highest : the actuators' outputs and their ranges
    model : CellArray or None
        The twin's, where the rig is a cellular array.
    force : str
        The channel whose force is controlled; empty where there is none.
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

    @property
    def n_commands(self) -> int:
        """How many numbers a step gives: one a cell, then one an output."""
        return len(self.cells) + len(self.outputs)


@dataclass(frozen=True)
class Now:
    """One tick as a plug-in controller sees it; its arrays may not be written.

    `now["force_estimate_N"]` is any column that twin and observer fill.

    Attributes
    ----------
    t_s : float
        Since the experiment began.
    reference : (R,) array
        Set points; NaN where there is none.
    measured : (S,) array
        Readings; NaN where there is none at this tick.
    cells : (N,) uint8 array
        1 on, 0 off, 255 not known, as the boards report.
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


def read_only(values: NDArray[Any]) -> NDArray[Any]:
    """A copy that its receiver cannot change, and that does not change under it."""
    copy = values.copy()
    copy.flags.writeable = False
    return copy


@dataclass(frozen=True)
class Plugin:
    """A plug-in class, loaded, with the values of its table.

    Attributes
    ----------
    kind : as the configuration names it
    cls : the class
    values : what its table says, an instance of its `Values` where it has one
    file : of its source, as it is shown to people
    source : the text of that file
    lines : where the class and each of its methods begin
    package : what installed package it is from, with version; empty for a file
    """

    kind: str
    cls: type
    values: Any
    file: Path
    source: str
    lines: Mapping[str, int]
    package: str = ""

    def make(self, *args: Any) -> "Used":
        """A new one, told these and its values."""
        with self._guarded():
            return Used(self, self.cls(*args, self.values))

    def refuse(self, method: str, why: str) -> NoReturn:
        """Say what one of its methods, or the class, does wrong."""
        line = self.lines.get(method, self.lines.get("", 1))
        raise PluginError(f"{self.file}, line {line}, class {self.cls.__name__}: {why}")

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        _start_watch()
        try:
            yield
        except PluginError:
            raise
        except (Exception, SystemExit, _Hung) as error:
            raise PluginError(said(error, self)) from None
        finally:
            _end_watch()


class Used:
    """One object of a plug-in class, whose calls are guarded and watched."""

    def __init__(self, plugin: Plugin, made: Any) -> None:
        self.plugin = plugin
        self.made = made

    def call(self, method: str, *args: Any) -> Any:
        """What its method gives; PluginError where it raises or does not return."""
        _start_watch()
        try:
            return getattr(self.made, method)(*args)
        except (Exception, SystemExit, _Hung) as error:
            raise PluginError(said(error, self.plugin)) from None
        finally:
            _end_watch()

    def numbers(self, method: str, n: int, *args: Any) -> NDArray[np.float64]:
        """A method's answer as n finite numbers."""
        answer = self.call(method, *args)
        try:
            values = np.asarray(answer, dtype=np.float64)
        except (TypeError, ValueError):
            self.plugin.refuse(method, f"{method}() gives {_short(answer)}: give {n} numbers")
        if values.shape != (n,):
            shape = _short(answer) if values.shape == () else f"shape {values.shape}"
            self.plugin.refuse(method, f"{method}() gives {shape}: give an array of shape ({n},)")
        if not np.isfinite(values).all():
            at = int(np.flatnonzero(~np.isfinite(values))[0])
            self.plugin.refuse(method, f"{method}() gives {values[at]} as number {at + 1} of {n}")
        return values

    def number(self, method: str, *args: Any) -> float:
        """A method's answer as one finite number."""
        answer = self.call(method, *args)
        try:
            value = float(answer)
        except (TypeError, ValueError):
            self.plugin.refuse(method, f"{method}() gives {_short(answer)}: give a number")
        if not np.isfinite(value):
            self.plugin.refuse(method, f"{method}() gives {value}")
        return value


def said(error: BaseException, plugin: Plugin) -> str:
    """One line: where in the plug-in file an exception came from, and what it says."""
    name = plugin.cls.__name__
    frames = [
        (frame.f_code.co_name, line)
        for frame, line in walk_tb(error.__traceback__)
        if frame.f_code.co_filename == str(plugin.file)
    ]
    function, line = frames[-1] if frames else ("", plugin.lines.get("", 1))
    where = f"{plugin.file}, line {line}, class {name}" + (f", in {function}()" if function else "")
    if isinstance(error, _Hung):
        return f"{where}: has not returned after {_limit_s:g} s"
    return f"{where}: {what(error)}"


def what(error: BaseException) -> str:
    """The kind of an exception and what it says, on one line."""
    text = one_line(" ".join(str(error).split()))
    text = text if len(text) <= SAID_MAX else text[: SAID_MAX - 3] + "..."
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _short(value: Any) -> str:
    text = one_line(repr(value))
    return text if len(text) <= 40 else text[:37] + "..."


class _Hung(BaseException):
    """A call was broken off; no `except Exception` of somebody else's keeps it."""


_limit_s = 0.0


@contextlib.contextmanager
def watched(limit_s: float = HUNG_S) -> Iterator[None]:
    """Break off every call that does not return in time; only in the main thread."""
    global _limit_s
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before, _limit_s = (signal.signal(signal.SIGALRM, _break_off), _limit_s), limit_s
    try:
        yield
    finally:
        signal.signal(signal.SIGALRM, before[0])
        _limit_s = before[1]


def _break_off(number: int, frame: FrameType | None) -> None:
    raise _Hung


def _start_watch() -> None:
    if _limit_s:
        signal.setitimer(signal.ITIMER_REAL, _limit_s)


def _end_watch() -> None:
    if _limit_s:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
