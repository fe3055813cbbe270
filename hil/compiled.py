"""Compilation of kernels by Numba; without it, an extra, they run as the Python that they are.

See decision record 0015.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hil.errors import install

MISSING = ""
NO_CACHE = (
    "compiled models cannot be kept, neither beside hil nor in your home: every command compiles "
    "them again: name a folder that can be written in NUMBA_CACHE_DIR"
)
uncached: list[str] = []  # kernels for which there is no folder
if TYPE_CHECKING:
    from numba import njit as njit

    def borrowed(arrays: Any) -> Any:
        """The same array, or tuple of arrays, whose views are not counted.

        A count is an atomic operation, which costs more than an exponential. For kernels, whose
        caller holds the arrays.
        """
else:
    try:
        import numba
        import numba.extending

        from hil.kernel_cache import KernelCache
    except ImportError:
        MISSING = (
            "Numba is not installed: models run 4 to 30 times slower, too slow for most runs on "
            f"the real clock: {install('fast')}"
        )

        def njit(function: Callable[..., Any] | None = None, **options: Any) -> Any:
            """`numba.njit` for functions that stay Python."""
            return function if function is not None else lambda decorated: decorated

    else:

        def njit(function: Callable[..., Any] | None = None, **options: Any) -> Any:
            """`numba.njit`, without a cache where no folder for one can be written."""
            if function is None:
                return lambda decorated: njit(decorated, **options)
            try:
                kernel = numba.njit(**options)(function)
                if options.get("cache"):
                    kernel._cache = KernelCache(function)
                return kernel
            except RuntimeError as error:
                if "no locator available" not in str(error):
                    raise
                uncached.append(function.__name__)
                return numba.njit(**options | {"cache": False})(function)

    if MISSING or numba.config.DISABLE_JIT:

        def borrowed(arrays: Any) -> Any:
            return arrays

    else:

        @numba.extending.intrinsic
        def borrowed(_context: Any, arrays: Any) -> Any:
            def bare(context: Any, builder: Any, kind: Any, value: Any) -> Any:
                if isinstance(kind, numba.types.BaseTuple):
                    parts = [builder.extract_value(value, i) for i in range(len(kind))]
                    bared = [bare(context, builder, *one) for one in zip(kind, parts, strict=True)]
                    return context.make_tuple(builder, kind, bared)
                if not isinstance(kind, numba.types.Array):
                    return value
                whole = context.make_array(kind)(context, builder, value)
                whole.meminfo, whole.parent = whole.meminfo.type(None), whole.parent.type(None)
                return whole._getvalue()

            return arrays(arrays), lambda context, builder, _, values: bare(
                context, builder, arrays, values[0]
            )


@njit(cache=True)
def put(of: Any, to: Any) -> None:
    """Copy all values of an array into the first ones of another, in a kernel.

    Numba takes 3 s to compile `to[:] = of`, for the text of its error, and 0.1 s for this, which
    also runs faster.
    """
    for i in range(of.size):
        to.flat[i] = of.flat[i]
