"""Numba's cache of compiled kernels, which also knows what a kernel calls.

Numba compiles what a kernel calls into it, and its constants, but compares only the kernel's own
file when it loads the result. After an upgrade that changes the file of a called kernel alone, the
caller would go on with the older one.
"""

import hashlib
from collections.abc import Callable, Iterator
from functools import cache
from pickle import UnpicklingError
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np
from numba.core.caching import FunctionCache
from numba.core.dispatcher import Dispatcher

SCALARS = (bool, int, float, complex, str, bytes, np.generic, np.dtype)


class KernelCache(FunctionCache):
    """A kernel's compiled code, by signature, processor, and the code of all that it calls."""

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        key = super()._index_key(sig, codegen)  # type: ignore[no-untyped-call]
        return (*key, digest(self._py_func))

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Numba's; None if a power cut has left a file without its content, or a part of it."""
        try:
            return super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        except (EOFError, UnpicklingError, RuntimeError):  # the last from LLVM
            self.flush()  # type: ignore[no-untyped-call]
            return None


def digest(kernel: Callable[..., Any]) -> str:
    """SHA-256 of the code and constants of a kernel and of all kernels that it calls."""
    hashed = hashlib.sha256()
    seen, left = {kernel}, [kernel]
    while left:
        used = _used_by(left.pop())
        hashed.update(used.text.encode())
        left += [called for called in used.kernels if called not in seen]
        seen.update(left)
    return hashed.hexdigest()


class _Used(NamedTuple):
    """A kernel's code and constants as text, and the kernels that it calls."""

    text: str
    kernels: tuple[FunctionType, ...]


@cache
def _used_by(kernel: FunctionType) -> _Used:
    kernels: list[FunctionType] = []

    def text_of(value: object) -> str:
        if isinstance(value, Dispatcher):
            kernels.append(value.py_func)
            return f"kernel {sorted(value.targetoptions.items())!r}"
        if isinstance(value, np.ndarray):
            return f"{value.dtype!r} {value.shape} {value.tobytes().hex()}"
        if isinstance(value, tuple):
            return f"{type(value).__qualname__}({', '.join(map(text_of, value))})"
        if isinstance(value, SCALARS):
            return repr(value)
        fields = getattr(value, "_fields", "") if isinstance(value, type) else ""
        return f"{type(value).__qualname__} {fields}"

    codes = list(_codes(kernel.__code__))
    parts = [
        f"{code.co_code.hex()} {code.co_names} {code.co_varnames} "
        + text_of(tuple(c for c in code.co_consts if not isinstance(c, CodeType)))
        for code in codes
    ]
    parts += [text_of(kernel.__defaults__), text_of(tuple((kernel.__kwdefaults__ or {}).items()))]
    parts += [f"{name} = {text_of(value)}" for name, value in _names(kernel, codes)]
    return _Used("\n".join(parts), tuple(kernels))


def _codes(code: CodeType) -> Iterator[CodeType]:
    """A function's code, and that of functions and comprehensions within."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _names(kernel: FunctionType, codes: list[CodeType]) -> Iterator[tuple[str, Any]]:
    """Names from outside that a kernel uses, with their values; a module's as `module.name`."""
    names = list(dict.fromkeys(name for code in codes for name in code.co_names))
    cells = zip(kernel.__code__.co_freevars, kernel.__closure__ or (), strict=True)
    values = {name: kernel.__globals__[name] for name in names if name in kernel.__globals__}
    for name, value in (values | {name: cell.cell_contents for name, cell in cells}).items():
        if isinstance(value, ModuleType):
            inside = vars(value)
            yield from ((f"{name}.{one}", inside[one]) for one in names if one in inside)
        else:
            yield name, value
