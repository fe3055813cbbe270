"""Conversion between C and Python: texts, arrays, numbers; exceptions to status codes."""

from __future__ import annotations

import locale
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

from simdaq import errors
from simdaq.errors import DaqmxError
from simdaq.library_source import INTERRUPTED
from simdaq.system import System

Handler = Callable[..., int]
Action = Callable[..., int | None]
BUFFER_TOO_SMALL = -200228
WRITE_BUFFER_TOO_SMALL = -200234


class Marshal:
    """What all functions of the embedded library share.

    Parameters
    ----------
    ffi : of the embedded library
    current : the system that programs see
    """

    def __init__(self, ffi: Any, current: Callable[[], System]) -> None:
        self.ffi = ffi
        self.current = current
        self._last = threading.local()
        self._encoding = locale.getlocale()[1] or "ascii"

    # Errors

    def guarded(self, action: Action, within_s: float = 0.0) -> Handler:
        """The action under the system's lock, with exceptions as status codes.

        On wall time the system is then in the present, or within so many seconds of it.
        """

        def handler(*arguments: Any) -> int:
            try:
                system = self.current()
                with system.lock:
                    system.catch_up(within_s)
                    return action(*arguments) or 0
            except DaqmxError as error:
                self._last.detail = error.detail
                return error.code
            except KeyboardInterrupt:
                return INTERRUPTED
            except Exception as error:
                traceback.print_exc(file=sys.stderr)
                defect = DaqmxError(errors.DEFECT, f"{type(error).__name__}: {error}")
                self._last.detail = defect.detail
                return defect.code

        return handler

    def escaped(self, kind: type[BaseException], *_: Any) -> int | None:
        """The answer for an exception outside the action: a Ctrl-C as a call begins or ends."""
        return INTERRUPTED if issubclass(kind, KeyboardInterrupt) else None

    def unsupported(self, name: str) -> Handler:
        def handler(*_: Any) -> int:
            error = DaqmxError(errors.FUNCTION_NOT_SUPPORTED, Function=name)
            self._last.detail = error.detail
            return error.code

        return handler

    def variadic_unsupported(self, name: Any) -> int:
        return self.unsupported(self.text(name))()

    def error_text(self, code: int, pointer: Any, size: int) -> int:
        return self._give_cut(errors.text(code), pointer, size)

    def extended_error(self, pointer: Any, size: int) -> int:
        return self._give_cut(getattr(self._last, "detail", ""), pointer, size)

    def _give_cut(self, text: str, pointer: Any, size: int) -> int:
        """A text as far as there is room; a size of 0 asks how much is needed."""
        data = text.encode(self._encoding, "replace")
        if size == 0 or pointer == self.ffi.NULL:
            return len(data) + 1
        data = data[: size - 1] + b"\0"
        self.ffi.buffer(pointer, len(data))[:] = data
        return 0

    # Values

    def text(self, pointer: Any) -> str:
        if pointer == self.ffi.NULL:
            return ""
        return str(self.ffi.string(pointer).decode(self._encoding, "replace"))

    def handle(self, pointer: Any) -> int:
        return int(self.ffi.cast("uintptr_t", pointer))

    def array(self, pointer: Any, n: int, dtype: Any) -> Any:
        """The memory behind a pointer, as an array of n elements."""
        kind = np.dtype(dtype)
        return np.frombuffer(self.ffi.buffer(pointer, n * kind.itemsize), dtype=kind)

    def store(self, pointer: Any, c_type: str, value: Any) -> None:
        if pointer != self.ffi.NULL:
            self.ffi.cast(c_type, pointer)[0] = value

    def give_text(self, text: str, pointer: Any, size: int) -> int:
        """NI's way: a size of 0 asks how much room is needed."""
        data = text.encode(self._encoding, "replace") + b"\0"
        if size == 0 or pointer == self.ffi.NULL:
            return len(data)
        if size < len(data):
            return BUFFER_TOO_SMALL
        self.ffi.buffer(pointer, len(data))[:] = data
        return 0

    def give_array(self, values: Any, dtype: Any, pointer: Any, size: int) -> int:
        data = np.asarray(values, dtype=dtype)
        if size == 0 or pointer == self.ffi.NULL:
            return len(data)
        if size < len(data):
            return WRITE_BUFFER_TOO_SMALL
        self.array(pointer, len(data), dtype)[:] = data
        return 0
