"""Compilation of kernels by Numba; without it, an extra, they run as the Python that they are.

See decision record 0015.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

MISSING = ""
if TYPE_CHECKING:
    from numba import njit as njit
else:
    try:
        from numba import njit
    except ImportError:
        MISSING = (
            "Numba is not installed: models run 4 to 30 times slower, too slow for most runs on "
            "the real clock: pip install 'hil-arrays[fast]'"
        )

        def njit(function: Callable[..., Any] | None = None, **options: Any) -> Any:
            """`numba.njit` for functions that stay Python."""
            return function if function is not None else lambda decorated: decorated
