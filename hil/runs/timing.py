"""Times of calls, for the parts of `hil bench` that compare tools on one machine."""

import time
from collections.abc import Callable, Mapping

TURN_S, CALLS_MAX = 1e-3, 500


def repeated_s(call: Callable[[], object]) -> float:
    """Seconds per call, over about TURN_S of calls, or of a single call that takes longer."""
    began = time.perf_counter()
    call()
    taken_s = time.perf_counter() - began
    calls = min(CALLS_MAX, int(TURN_S / max(taken_s, 1e-6)))
    if calls < 2:
        return taken_s
    began = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - began) / calls


def least_s(tools: Mapping[str, Callable[[], object]], turns: int) -> dict[str, float]:
    """Shortest time of a call of each tool, in s.

    The tools alternate, so that all have the same load. The first call of each, which may compile,
    is not timed.
    """
    for call in tools.values():
        call()
    times: dict[str, list[float]] = {name: [] for name in tools}
    for _ in range(turns):
        for name, call in tools.items():
            times[name].append(repeated_s(call))
    return {name: min(durations_s) for name, durations_s in times.items()}
