"""Cycles that remain to the stop rule of a fatigue test, with a 90 % interval.

The change of a level, relative to the mean of the first cycles whose centre is c, is taken as

    y(n) = L ((n / N)^b - (c / N)^b),    0 < b

with the rule's limit L, the life N and the exponent b of this specimen. The posterior of (N, b) is
computed on a grid. The readings have the noise of the cycles, and a common error of the reference.
Siblings, which are finished tests of the same rig with the same settings, give the prior of log N
and log b, each a t distribution of their mean and spread; with less than three of them log N is
taken as uniform, and log b as normal about B_USUAL with the standard deviation B_SPREAD (assumed).

Source of the posterior: Gelman et al. 2013, Bayesian Data Analysis, 3rd ed., sections 3.7 and 5.5.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hil.procedures.standard_tests.cycles import SETTINGS, Book, book_in, mean

Array = NDArray[np.float64]
POINTS, LIVES, EXPONENTS = 30, 120, 60
DRAWS, LOOKS, WEIGHT_MIN = 4000, 2, 1e-5
LIFE_MAX = 1e4  # times the present cycle
B_USUAL, B_SPREAD, B_RANGE = 0.7, 0.6, (0.08, 4.0)
SIBLINGS_MIN = 3
INTERVAL = (0.05, 0.5, 0.95)
KEYS = {"stroke": "stroke", "resistance": "ohm"}


class Life(NamedTuple):
    """A finished test: cycles to its rule, and its exponent."""

    cycles: float
    exponent: float


class Forecast(NamedTuple):
    """Cycles that remain until a rule is met: the median, and the ends of the 90 % interval.

    Attributes
    ----------
    n_siblings : finished tests that the prior is made of
    """

    rule: str
    remaining: float
    low: float
    high: float
    n_siblings: int

    @property
    def text(self) -> str:
        high = "more" if self.high > 1e3 * max(1.0, self.remaining) else f"{self.high:.3g}"
        whose = "this specimen"
        if self.n_siblings:
            whose += f" and {self.n_siblings} siblings"
        return (
            f"{self.remaining:.3g} cycles to the rule of the {self.rule} "
            f"(90 %: {self.low:.3g} to {high}), from {whose}"
        )


class Changes(NamedTuple):
    """Relative changes of a level at some cycles.

    Attributes
    ----------
    n, y : (k,) arrays, centres of the windows, and the change there; y grows towards the limit
    cov : (k, k) array, of the errors of y
    centre : of the reference
    """

    n: Array
    y: Array
    cov: Array
    centre: float


def forecasts(book: Book, siblings: Sequence[Book] = ()) -> list[Forecast]:
    """Forecasts of the rules of a test whose level has noticeably changed, the earliest first."""
    items = []
    for rule in book.rules():
        changes = changes_of(book, rule.name)
        if changes is None or rule.is_met:
            continue
        lives = [life for one in siblings if (life := life_of(one, rule.name)) is not None]
        n_now = float(book.summaries.n)
        ends = remaining(changes, rule.limit, n_now, book.block, lives)
        used = len(lives) if len(lives) >= SIBLINGS_MIN else 0
        items.append(Forecast(rule.name, ends[1], ends[0], ends[2], used))
    return sorted(items, key=lambda forecast: forecast.remaining)


def changes_of(book: Book, rule: str) -> Changes | None:
    """Changes at POINTS cycles; None without a level, or if it has not changed towards a limit."""
    n_cycles, width = book.summaries.n, book.reference_cycles
    if n_cycles < 4 * width:
        return None
    values = book.summaries.read()[KEYS[rule]].astype(float)
    level = mean(values[:width])
    if not np.isfinite(level) or level == 0.0:
        return None
    spread = np.geomspace(width, n_cycles - width, POINTS).astype(int)
    first = np.unique(spread // width * width)  # windows do not overlap
    y = np.array([mean(values[a : a + width]) for a in first]) / level - 1.0
    steps = np.abs(np.diff(values[np.isfinite(values)] / level))
    noise = 1.4826 * float(np.median(steps)) / np.sqrt(2.0) + 1e-9
    y, n = y[np.isfinite(y)], first[np.isfinite(y)] + 0.5 * width
    if len(y) < 3:
        return None
    sign = -1.0 if rule == "stroke" else float(np.sign(y[-1]))
    cov = noise**2 / width * (np.eye(len(y)) + 1.0)  # 1.0: the reference's own error, in all
    return Changes(n, sign * y, cov, 0.5 * width) if sign * y[-1] > 0.0 else None


def remaining(
    changes: Changes, limit: float, n_now: float, block: int, lives: Sequence[Life]
) -> Array:
    """Quantiles INTERVAL of the cycles that remain after `n_now`, (3,).

    The rule looks at a mean with its noise, so it is met at the highest of some LOOKS, and after
    each block of cycles, so up to a block later.
    """
    log_N = np.log(n_now) + np.linspace(0.0, np.log(LIFE_MAX), LIVES)
    log_b = _exponents()
    for last in (False, False, True):
        log_p = _log_likelihood(changes, limit, log_N, log_b) + _log_prior(log_N, log_b, lives)
        weight = np.exp(log_p - log_p.max())
        if not last:  # the same grid about what is left of the probability
            log_N = _around(log_N, weight.max(axis=1))
            log_b = _around(log_b, weight.max(axis=0))
    rng = np.random.default_rng(0)
    cell = rng.choice(weight.size, DRAWS, p=weight.ravel() / weight.sum())
    i, k = np.divmod(cell, len(log_b))
    N = np.exp(log_N[i] + rng.uniform(-0.5, 0.5, DRAWS) * (log_N[1] - log_N[0]))
    b = np.exp(log_b[k] + rng.uniform(-0.5, 0.5, DRAWS) * (log_b[1] - log_b[0]))
    noise = rng.normal(size=(LOOKS, DRAWS)).max(axis=0) * np.sqrt(0.5 * changes.cov[0, 0])
    reached = np.maximum(1.0 - noise / limit, 0.0) + (changes.centre / N) ** b
    left = np.maximum(N * reached ** (1.0 / b) - n_now, 0.0) + rng.uniform(0.0, block, DRAWS)
    ends: Array = np.quantile(left, INTERVAL)
    return ends


def _exponents() -> Array:
    low, high = np.log(B_RANGE)
    exponents: Array = np.linspace(low, high, EXPONENTS)
    return exponents


def _around(grid: Array, weight: Array) -> Array:
    """As many points where the weight is, and one step more on either side."""
    points = np.flatnonzero(weight > WEIGHT_MIN)
    first, last = max(0, points[0] - 1), min(len(grid) - 1, points[-1] + 1)
    return np.linspace(grid[first], grid[last], len(grid))


def _log_likelihood(changes: Changes, limit: float, log_N: Array, log_b: Array) -> Array:
    """Of every life and exponent, (LIVES, EXPONENTS), with a noise that is known up to a factor."""
    b = np.exp(log_b)[None, :, None]
    ratio = np.log(changes.n)[None, None, :] - log_N[:, None, None]
    start = np.log(changes.centre) - log_N[:, None, None]
    away = changes.y - limit * (np.exp(b * ratio) - np.exp(b * start))
    whitened = np.linalg.solve(np.linalg.cholesky(changes.cov), away.reshape(-1, len(changes.n)).T)
    misfit = np.sum(whitened**2, axis=0).reshape(away.shape[:2])
    free = max(1, len(changes.n) - 2)
    least = float(misfit.min())
    result: Array = -0.5 * free * np.log1p((misfit - least) / max(free, least))
    return result


def _log_prior(log_N: Array, log_b: Array, lives: Sequence[Life]) -> Array:
    """Of every life and exponent, (LIVES, EXPONENTS)."""
    if len(lives) < SIBLINGS_MIN:
        usual = (log_b - np.log(B_USUAL)) / B_SPREAD
        alone: Array = np.zeros((len(log_N), 1)) - 0.5 * usual**2
        return alone
    known = np.log(np.array(lives))
    of_N, of_b = (_log_t(x, known[:, i]) for i, x in enumerate((log_N, log_b)))
    both: Array = of_N[:, None] + of_b[None, :]
    return both


def _log_t(x: Array, known: Array) -> Array:
    """Predictive density of one more value of a normal population, of which some are known."""
    m = len(known)
    scale = max(float(known.std(ddof=1)), 0.02) * np.sqrt(1.0 + 1.0 / m)
    result: Array = -0.5 * m * np.log1p(((x - known.mean()) / scale) ** 2 / (m - 1))
    return result


def life_of(book: Book, rule: str) -> Life | None:
    """Life and exponent of a finished test; None if this rule did not end it."""
    met = [one for one in book.rules() if one.name == rule and one.is_met]
    changes = changes_of(book, rule)
    if not met or changes is None:
        return None
    life = float(book.summaries.n)
    log_b = _exponents()
    fit = _log_likelihood(changes, met[0].limit, np.log(np.array([life])), log_b)
    return Life(life, float(np.exp(log_b[int(fit[0].argmax())])))


def siblings_of(folder: Path) -> Iterator[Book]:
    """Other tests beside this one, of the same rig with the same settings."""
    settings = _settings(folder / SETTINGS)
    for path in sorted(folder.resolve().parent.glob(f"*/{SETTINGS}")):
        if settings and path.parent != folder.resolve() and _settings(path) == settings:
            book = book_in(path.parent)
            if book is not None:
                yield book


def _settings(path: Path) -> list[str]:
    """Rig and settings of a test; none if they cannot be read."""
    try:
        return path.read_text(encoding="utf-8").splitlines()[:2]
    except (OSError, ValueError):
        return []
