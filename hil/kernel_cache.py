"""Numba's cache of compiled kernels, which also knows what a kernel calls.

Numba compiles what a kernel calls into it, and its constants, but compares only the kernel's own
file when it loads the result. After an upgrade that changes the file of a called kernel alone, the
caller would go on with the older one.
"""

import hashlib
import inspect
import marshal
from collections.abc import Callable, Iterator
from functools import cache
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np
from numba.core.caching import FunctionCache
from numba.core.dispatcher import Dispatcher

SCALARS = (bool, int, float, complex, str, bytes, np.generic, np.dtype)


class KernelCache(FunctionCache):
    """A kernel's compiled code, by signature, processor, and the code of all that it calls."""

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        own = super()._index_key(sig, codegen)  # type: ignore[no-untyped-call]
        return (*own, digest(self._py_func))


def digest(kernel: Callable[..., Any]) -> str:
    """SHA-256 of the code and constants of a kernel and of all kernels that it calls."""
    hashed = hashlib.sha256()
    seen, left = {kernel}, [kernel]
    while left:
        used = _used_by(left.pop())
        hashed.update(used.code)
        left += [called for called in used.kernels if called not in seen]
        seen.update(left)
    return hashed.hexdigest()


class _Used(NamedTuple):
    """A kernel's code with its constants, and the kernels that it calls."""

    code: bytes
    kernels: tuple[FunctionType, ...]


@cache
def _used_by(kernel: FunctionType) -> _Used:
    code = kernel.__code__
    parts = [marshal.dumps((code.co_code, code.co_names, code.co_varnames))]
    parts.append(repr([c for c in code.co_consts if _is_constant(c)]).encode())
    kernels = []
    for name, value in _names(kernel):
        if isinstance(value, Dispatcher):
            kernels.append(value.py_func)
        elif isinstance(value, np.ndarray):
            parts += [name.encode(), repr((value.dtype, value.shape)).encode(), value.tobytes()]
        elif _is_constant(value):
            parts += [name.encode(), repr(value).encode()]
        elif isinstance(value, type) and hasattr(value, "_fields"):
            parts += [name.encode(), repr(value._fields).encode()]
    return _Used(b"\0".join(parts), tuple(kernels))


def _is_constant(value: object) -> bool:
    if isinstance(value, tuple):
        return all(_is_constant(item) for item in value)
    return isinstance(value, SCALARS)


def _names(kernel: FunctionType) -> Iterator[tuple[str, Any]]:
    """Names that a kernel uses, with their values; those of a module as `module.name`."""
    used = inspect.getclosurevars(kernel)
    for name, value in [*used.globals.items(), *used.nonlocals.items()]:
        if isinstance(value, ModuleType):
            for attribute in sorted(used.unbound):
                if hasattr(value, attribute):
                    yield f"{name}.{attribute}", getattr(value, attribute)
        else:
            yield name, value
