"""Wall time as the pace of a `System`."""

import time
from collections.abc import Callable


def stopwatch() -> Callable[[], float]:
    """A function that gives the seconds since this call."""
    began_s = time.perf_counter()
    return lambda: time.perf_counter() - began_s
