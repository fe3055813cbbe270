"""The cycles of a fatigue test on disk: one record of fixed size each, beside its settings."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hil.errors import ConfigError, writing

FILE, SETTINGS = "cycles.bin", "settings.json"
SUMMARY = np.dtype(
    [("cycle", "<u4"), ("stroke", "<f4"), ("cold", "<f4"), ("hot_C", "<f4"), ("ohm", "<f4")]
)


class Summaries:
    """The summaries of all cycles in a file; an incomplete record of a killed process is no part.

    Raises
    ------
    ConfigError
        The file is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        last = self.read(max(0, self.n - 1))["cycle"]
        if len(last) and last[0] != self.n:
            raise ConfigError(f"{path}: is damaged: choose another --out")

    @property
    def n(self) -> int:
        """Number of cycles."""
        return self.path.stat().st_size // SUMMARY.itemsize if self.path.exists() else 0

    def read(self, first: int = 0, count: int = -1) -> NDArray[np.void]:
        """Some of the summaries, from an index on."""
        if not self.n:
            return np.zeros(0, SUMMARY)
        count = self.n - first if count < 0 else count
        return np.fromfile(self.path, SUMMARY, count, offset=first * SUMMARY.itemsize)

    def add(self, rows: NDArray[np.void]) -> None:
        """Append summaries; they are on disk when this returns."""
        with writing(self.path):
            whole_B = self.n * SUMMARY.itemsize
            with self.path.open("ab") as file:
                file.truncate(whole_B)
                file.write(rows.tobytes())
                file.flush()
                os.fsync(file.fileno())

    def thinned(self, points: int) -> NDArray[np.void]:
        """At most so many of the summaries, equally spaced, without reading all."""
        rows = np.memmap(self.path, SUMMARY, "r", shape=(self.n,)) if self.n else self.read()
        return np.array(rows[:: max(1, -(-self.n // points))])


class Rule(NamedTuple):
    """A rule that ends a test: how far a level has changed, and how far it may.

    Attributes
    ----------
    change : relative to the first cycles; NaN if it is not measured
    """

    name: str
    change: float
    limit: float

    @property
    def is_met(self) -> bool:
        """Whether it ends the test; a stroke may grow, a resistance may not change either way."""
        change = self.change if self.name == "stroke" else -abs(self.change)
        return bool(change < -self.limit)

    @property
    def text(self) -> str:
        limit = f"limit {100 * self.limit:g} %"
        if self.name == "stroke":
            return f"{-100 * self.change:.1f} % of the stroke is lost, {limit}"
        return f"the resistance has changed by {100 * self.change:+.1f} %, {limit}"


class Book(NamedTuple):
    """A fatigue test as it stands on disk.

    Attributes
    ----------
    n_cycles : cycles after which it is complete
    unit : of the stroke
    block : cycles after which the rules are looked at
    """

    summaries: Summaries
    n_cycles: int
    unit: str
    reference_cycles: int
    stroke_lost_max: float
    resistance_drift_max: float
    block: int

    def rules(self) -> Iterator[Rule]:
        """The rules with their changes; none before there are levels to compare."""
        n = self.reference_cycles
        if self.summaries.n < 2 * n:
            return
        first, last = self.summaries.read(0, n), self.summaries.read(self.summaries.n - n)
        yield from rules(first, last, self.stroke_lost_max, self.resistance_drift_max)


def rules(
    reference: NDArray[np.void],
    latest: NDArray[np.void],
    stroke_lost_max: float,
    resistance_drift_max: float,
) -> list[Rule]:
    """The rules of a test, from its first and its latest cycles."""
    return [
        Rule("stroke", _change(reference["stroke"], latest["stroke"]), stroke_lost_max),
        Rule("resistance", _change(reference["ohm"], latest["ohm"]), resistance_drift_max),
    ]


def _change(before: NDArray[np.float32], now: NDArray[np.float32]) -> float:
    level = mean(before)
    return mean(now) / level - 1.0 if level else 0.0


def mean(values: NDArray[np.floating]) -> float:
    """Mean of the finite values; NaN without one."""
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else float("nan")


def book_in(folder: Path) -> Book | None:
    """The fatigue test of a folder; None if there is none, or it is not readable now."""
    try:
        _, settings, state = (folder / SETTINGS).read_text(encoding="utf-8").splitlines()
        values, test = json.loads(settings), json.loads(state)
        return Book(
            Summaries(folder / FILE), test["cycles"], test["unit"], values["reference_cycles"],
            values["stroke_lost_max"], values["resistance_drift_max"],
            values["block"],
        )  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError, ConfigError):
        return None
