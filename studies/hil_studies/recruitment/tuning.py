"""Tuning of the recruitment study: a search on a grid that widens until the optimum is inside.

Every parameter of a controller has an axis: a natural limit, then a geometric series without an
end. The search starts inside and evaluates all neighbours, one step along one axis each. It moves
to the best of them until none is better. The setting found is then worse to both sides of every
axis, or at the axis' natural limit.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf

from hil.errors import ModelError
from hil_studies.recruitment.controllers import BROADCASTS, UNTOLD, Setting
from hil_studies.recruitment.plant import PERIOD_S

MOVES_MAX = 40


@dataclass(frozen=True)
class Axis:
    """The values of one parameter: `limit`, then first ratio^i up to `top`, from `start` on.

    Attributes
    ----------
    limit, top : natural ends, beyond which the parameter has no meaning
    start : index of the value at which the search starts
    """

    limit: float
    first: float
    ratio: float
    start: int
    top: float = inf

    def value(self, index: int) -> float:
        if index == 0:
            return self.limit
        return min(self.top, self.first * self.ratio ** (index - 1))

    def neighbours(self, index: int) -> list[int]:
        """The indices beside this one, up to the natural ends."""
        return [i for i in (index - 1, index + 1) if i >= 0 and self.value(i) != self.value(index)]


_GAIN = Axis(0.0, 0.1, 2.0, start=3)
_DWELL = Axis(PERIOD_S, 0.05, 2.0, start=2)
_DRAW = (Axis(PERIOD_S, 0.05, 2.0, start=3), Axis(1.0, 1.25, 1.25, start=1))

AXES: dict[str, tuple[Axis, ...]] = {
    # k_p, k_i 1/s, dwell s
    "PID": (_GAIN, _GAIN, _DWELL),
    # period s, dead zone over half the largest step, gain
    **dict.fromkeys(BROADCASTS, (*_DRAW, Axis(0.0, 0.0, 1.0, start=0))),
    "broadcast, fixed gain": (*_DRAW, Axis(0.001, 0.003, 2.0, start=3, top=1.0)),
    # k_p, hysteresis, dwell s
    "size principle": (_GAIN, Axis(0.0, 0.05, 2.0, start=2, top=0.5), _DWELL),
    # set point ahead by so many commissioned delays, k_p, k_i 1/s, dwell s
    "preview": (Axis(0.0, 0.5, 1.2, start=4), _GAIN, Axis(0.0, 0.1, 2.0, start=1), _DWELL),
    # price, minimum time on and off in s, blocks
    UNTOLD: (Axis(0.0, 0.3, 3.0, start=2), Axis(0.0, 0.7, 1.4, start=3),
             Axis(1, 2, 2, start=2, top=8)),
    # price, ticks between plans, blocks
    "optimal": (Axis(0.0, 0.01, 3.0, start=3), Axis(3, 5, 1.6, start=1),
                Axis(10, 30, 1.5, start=1, top=100)),
}  # fmt: skip


def tune(
    name: str,
    axes: Sequence[Axis],
    costs: Callable[[list[Setting]], list[float]],
) -> Setting:
    """Return the setting with the least cost.

    Raises ModelError if the least cost is at the edge of what MOVES_MAX moves evaluated.
    """

    def setting(place: tuple[int, ...]) -> Setting:
        return tuple(axis.value(i) for axis, i in zip(axes, place, strict=True))

    found: dict[Setting, float] = {}

    def evaluate(places: list[tuple[int, ...]]) -> None:
        new = [s for s in map(setting, places) if s not in found]
        if new:
            found.update(zip(new, costs(new), strict=True))

    here = tuple(axis.start for axis in axes)
    evaluate([here])
    for _ in range(MOVES_MAX):
        around = [
            (*here[:n], i, *here[n + 1 :])
            for n, axis in enumerate(axes)
            for i in axis.neighbours(here[n])
        ]
        evaluate(around)
        best = min(around, key=lambda place: found[setting(place)], default=here)
        if found[setting(best)] >= found[setting(here)]:
            return setting(here)
        here = best
    at = ", ".join(f"{x:g}" for x in setting(here))
    raise ModelError(f"'{name}': the best setting ({at}) is at the edge of its grid: start nearer")
