"""Conditions on recorded quantities that end a run in which everything is off.

`CELL.temperature_C` is the measured temperature of the clamp that holds the cell's wires.
`CELL.wire_model_C` is the temperature of the wire in the twin, which `hil.runs.campaign.waits`
starts at its hottest.
"""

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from hil.errors import ConfigError
from hil.loop.frame import Column, Frame

KNOWN_FOR_S = 1.0
"""Validity of a reading that does not come every tick, such as a board's temperatures, s."""


@dataclass(frozen=True)
class Condition:
    """Requires every float column that matches a pattern to be between two values."""

    column: str
    below: float = inf
    above: float = -inf

    def names(self, columns: Sequence[Column]) -> list[str]:
        """The columns that match.

        Raises
        ------
        ConfigError
            No column matches.
        """
        numbers = [c.name for c in columns if not c.flags and not c.n_cells]
        matches = fnmatch.filter(numbers, self.column)
        if not matches:
            shown = [name for name in numbers if not name.endswith("_stage_s")]
            raise ConfigError(
                f"column = '{self.column}': the rig has no such column: choose "
                f"{', '.join(shown)}, or a pattern such as '*.temperature_C'"
            )
        return matches


class WaitCondition:
    """Checks every row until all conditions have held for a set time, or a time limit.

    If a reading is NaN, the last one stays valid for KNOWN_FOR_S; after that, and before the first
    reading, its condition does not hold.

    Parameters
    ----------
    conditions : conditions that must hold
    for_s : time for which all must hold
    longest_s : time limit
    looked_at : conditions that are reported but need not hold

    Attributes
    ----------
    met : whether all conditions have held for `for_s`
    waited_s : time of the last row
    """

    def __init__(
        self,
        conditions: Sequence[Condition],
        for_s: float,
        longest_s: float,
        looked_at: Sequence[Condition] = (),
    ) -> None:
        self._conditions = [*conditions, *looked_at]
        self._n_rules = len(conditions)
        self._for_s = for_s
        self._longest_s = longest_s
        self.met = False
        self.waited_s = 0.0

    def bind(self, frame: Frame) -> None:
        """Look up the columns."""
        names = [condition.names(frame.columns) for condition in self._conditions]
        self._names = [name for of in names for name in of]
        self._at = np.array([frame.index(name) for name in self._names], dtype=int)
        repeats = [len(of) for of in names]
        self._rules = sum(repeats[: self._n_rules])
        self._below = np.repeat([c.below for c in self._conditions], repeats)
        self._above = np.repeat([c.above for c in self._conditions], repeats)
        self._values = frame.values
        self._last = np.full(len(self._at), np.nan)
        self._since_s = np.full(len(self._at), -np.inf)
        self._held_from_s: float | None = None

    def step(self, t_s: float) -> bool:
        """Check the row of t_s; returns whether the wait is over."""
        now = self._values[self._at]
        valid = np.isfinite(now)
        self._last[valid] = now[valid]
        self._since_s[valid] = t_s
        known = t_s - self._since_s <= KNOWN_FOR_S
        holds = bool(np.all((self.held & known)[: self._rules]))
        self.waited_s = t_s
        if not holds:
            self._held_from_s = None
        elif self._held_from_s is None:
            self._held_from_s = t_s
        # Tolerance of half a nanosecond, since times are rounded multiples of the period.
        if self._held_from_s is not None:
            self.met = t_s - self._held_from_s >= self._for_s - 5e-10
        return self.met or t_s >= self._longest_s - 5e-10

    @property
    def held(self) -> NDArray[np.bool_]:
        """Whether each quantity's last reading is within its bounds."""
        return (self._last < self._below) & (self._last > self._above)

    def readings(self) -> dict[str, float | None]:
        """The last reading of every quantity; None if there has been none."""
        return {
            name: float(value) if np.isfinite(value) else None
            for name, value in zip(self._names, self._last, strict=True)
        }

    def missing(self) -> tuple[list[str], list[str]]:
        """The conditions that do not hold, as text: the required ones, and those only reported."""
        texts: tuple[list[str], list[str]] = ([], [])
        rows = zip(self._names, self._last, self._below, self._above, self.held, strict=True)
        for i, (name, value, below, above, held) in enumerate(rows):
            if not held:
                bounds = [f"below {below:g}"] if below < inf else []
                bounds += [f"above {above:g}"] if above > -inf else []
                what = f"{name} is {value:.4g}, not {' and '.join(bounds)}"
                texts[i >= self._rules].append(what)
        return texts
