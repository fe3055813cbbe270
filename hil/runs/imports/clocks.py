"""Clocks of files: times of their rows, and how one clock stands to another.

    t_file = offset + (1 + drift) t

where `t` is the recording's clock and `t_file` that of the file.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hil.errors import ConfigError, one_line
from hil.mechanics.arrays import Array
from hil.record.device_clocks import fit_clock
from hil.runs.imports.source import Source
from hil.runs.imports.tables import AlignTable, SourceTable, TimeTable
from hil.runs.imports.units import converted

GAP_INTERVALS = 5.0
POINTS_MAX = 2**16  # of the coarse correlation
OVERLAP_MIN = 0.25  # of the shorter recording
SEGMENTS = 8
CORRELATION_MIN = 0.7  # below it, the columns do not show the same quantity
FLAT = 0.1  # of the standard deviation of the whole: a segment that says nothing about time
ROUNDING = 1e-6  # of 1 - r^2, in the transforms
PATTERN_MIN = 3  # events whose intervals tell which of more events they are
SAME_INTERVALS = 0.05  # of the median interval: events further apart are not the same
SMOOTH_INTERVALS = 2.0  # standard deviation of the smoothing in front of a correlation
SIGNIFICANT = 3.0  # standard errors, of a line through few segments
DRIFT_MAX = 5e-3  # of any clock
DAY_S = 86_400.0
EPOCHS = (  # that of Unix for the years 2001 to 2049, that of LabVIEW (1904) for 1999 to 2037
    (1.0e9, 2.5e9, datetime(1970, 1, 1, tzinfo=UTC)),
    (3.0e9, 4.2e9, datetime(1904, 1, 1, tzinfo=UTC)),
)
SPREADSHEET = datetime(1899, 12, 30)  # day 0 of Excel's after February 1900, in no stated zone
SERIAL_DAYS = 32_874.0, 65_746.0  # of the years 1990 to 2079
DAYS = ("d", "day", "days")
POWERS = {"": (0, 3, 6, 9), "s": (0,), "ms": (3,), "us": (6,), "µs": (6,), "ns": (9,)}  # of ten
ISO = "ISO8601"  # pandas' name of it
DATES = ("%Y-%m-%d", "%Y/%m/%d", "%Y%m%d", "%d.%m.%Y", "%d.%m.%y", "%d-%m-%Y", "%m-%d-%Y",
         "%d-%b-%Y", "%m/%d/%Y", "%d/%m/%Y", "%m/%d/%y", "%d/%m/%y", "%y/%m/%d")  # fmt: skip
UNUSUAL = ("%m-%d-%Y", "%y/%m/%d")  # compared with the others only where the date changes
CLOCKS = ("%H:%M:%S", "%H:%M:%S.%f", "%H:%M:%S,%f", "%H:%M:%S:%f", "%H:%M", "%I:%M:%S %p",
          "%I:%M:%S.%f %p", "%I:%M %p", "%H%M%S", "%H%M%S.%f")  # fmt: skip
CLOCK = r"^(.*\d:\d\d:\d\d)([.,]\d+)?(\D*)$"  # what is before and after a fraction of seconds
DURATION = r"^\s*(\d+):(\d\d):(\d\d(?:\.\d+)?)\s*$"  # hours, minutes and seconds
FORMATS = tuple(f"{d}{between}{c}" for d in DATES for c in CLOCKS for between in " T_") + CLOCKS


@dataclass(frozen=True)
class Times:
    """The times of a file's rows by its own clock.

    Attributes
    ----------
    t_s : (k,) array, increasing
    rows : (k,) array, the row of each; of rows with one time, the first
    groups : (n,) array, index in `t_s` of every row that has a time; -1 without one
    mean : whether rows of one time are averaged
    start : date and time of t_s = 0, if the file has dates
    repeated, missing : number of rows with the time of the row before, and without a time
    gap_s : longest interval that is no gap
    read_as : how dates, epochs and midnights were understood, in words
    """

    t_s: Array
    rows: NDArray[np.int64]
    groups: NDArray[np.int64]
    mean: bool
    gap_s: float
    start: datetime | None = None
    repeated: int = 0
    missing: int = 0
    read_as: str = ""

    @property
    def gaps(self) -> NDArray[np.int64]:
        """Indices of the times before a gap."""
        return np.flatnonzero(np.diff(self.t_s) > self.gap_s)

    @property
    def interval_s(self) -> float:
        """Median interval."""
        return float(np.median(np.diff(self.t_s)))

    def values(self, column: NDArray[np.float64]) -> Array:
        """A column at these times."""
        if not self.mean or not self.repeated:
            return column[self.rows]
        mask = (self.groups >= 0) & np.isfinite(column)
        counts = np.bincount(self.groups[mask], minlength=len(self.t_s))
        sums = np.bincount(self.groups[mask], column[mask], minlength=len(self.t_s))
        with np.errstate(invalid="ignore"):
            return np.asarray(sums / counts)


def times_of(source: Source, name: str, table: SourceTable, n_rows: int) -> Times:
    """The clock of a file.

    Raises
    ------
    ConfigError
        The file has no times, or they run back.
    """
    where = f"sources.{name}.time"
    if table.time is None:
        raise ConfigError(f"{where}: {source.path.name} has no times of its own: give column or "
                          "rate_Hz")  # fmt: skip
    time, start, read_as = table.time, table.start, ""
    if time.rate_Hz is not None:
        raw = np.arange(n_rows) / time.rate_Hz
    elif time.format or isinstance(time.column, list) or _are_texts(source, time, where):
        raw, start, read_as = _dates(source, time, table.start, where)
    else:
        assert isinstance(time.column, str)  # the table has a column or a rate
        series = source.column(time.column, f"{where}.column")
        stated = time.unit or series.unit
        if not stated and are_serial_days(series.values):
            raise ConfigError(
                f"{where}: '{time.column}' goes from {np.nanmin(series.values):.9g} to "
                f"{np.nanmax(series.values):.9g}: if these are a spreadsheet's days give unit = "
                '"day", if they are seconds unit = "s"'
            )
        values, epoch = _since_epoch(series.values, stated)
        raw = converted(values, stated or "s", "s", f"{where}.unit")
        steps_s = np.diff(raw[np.isfinite(raw)])
        step_s = float(np.median(steps_s[steps_s > 0.0])) if (steps_s > 0.0).any() else 0.0
        raw, nights = _over_midnight(raw, 10.0 * GAP_INTERVALS * step_s)
        if epoch is not None:
            read_as = f"times since {epoch.year}"
            zone = epoch.tzinfo or (start.tzinfo if start else None)
            start = epoch.replace(tzinfo=zone)
        read_as += f"{nights} midnights passed" if nights else ""
    times = increasing(raw, source, table, start, time.repeated == "mean")
    return replace(times, read_as=read_as)


def _are_texts(source: Source, time: TimeTable, where: str) -> bool:
    name = source.name_of(str(time.column), f"{where}.column")
    return source.columns[name].values.dtype.kind not in "fiub"


def _since_epoch(values: Array, unit: str) -> tuple[Array, datetime | None]:
    """Values, and the date from which they count if they are too large for a duration.

    Without a unit, ms, us and ns since 1970 are recognised as well, and come back in s; a day is a
    spreadsheet's, by the clock of the place where it was written.
    """
    middle = float(np.nanmedian(values)) if np.isfinite(values).any() else 0.0
    if unit in DAYS and SERIAL_DAYS[0] <= middle < SERIAL_DAYS[1]:
        return values, SPREADSHEET
    for power in POWERS.get(unit, ()):
        for low_s, high_s, epoch in EPOCHS:
            if low_s <= middle * 10.0**-power < high_s:
                return values if unit else values * 10.0**-power, epoch
    return values, None


def are_serial_days(values: Array) -> bool:
    """Whether times without a unit may be days of a spreadsheet: of our years, in small steps."""
    known = values[np.isfinite(values)]
    steps = np.diff(known)
    if len(known) < 2 or not (steps > 0.0).any():
        return False
    within = known.min() >= SERIAL_DAYS[0] and known.max() < SERIAL_DAYS[1]
    return bool(within and np.median(steps[steps > 0.0]) < 0.05)


def _over_midnight(t_s: Array, late_s: float) -> tuple[Array, int]:
    """Times of day in s that go on after midnight, and the number of midnights.

    A fall that ends within `late_s` after midnight is one; any other one stays.
    """
    rows = np.flatnonzero(np.isfinite(t_s))
    if len(rows) < 2 or t_s[rows].min() < 0.0 or t_s[rows].max() > DAY_S:
        return t_s, 0
    steps_s = np.diff(t_s[rows])
    nights = np.concatenate(([0], np.cumsum((steps_s < 0.0) & (steps_s + DAY_S <= late_s))))
    unwrapped = t_s.copy()
    unwrapped[rows] += DAY_S * nights
    return unwrapped, int(nights[-1])


def increasing(
    raw: Array, source: Source, table: SourceTable, start: datetime | None, mean: bool = False
) -> Times:
    """Times without missing and repeated ones; ConfigError if they run back."""
    rows = np.flatnonzero(np.isfinite(raw))
    stamp_s = raw[rows]
    if len(rows) < 2:
        raise ConfigError(f"{source.path}: {len(rows)} rows with a time: at least 2 are needed")
    steps_s = np.diff(stamp_s)
    if (back := np.flatnonzero(steps_s < 0.0)).size:
        k = int(back[0])
        raise ConfigError(
            f"{source.path}: time runs back {back.size} times, first in row {rows[k + 1] + 1} of "
            f"the table, from {stamp_s[k]:.9g} s to {stamp_s[k + 1]:.9g} s: cut the file there, or "
            "name another time column"
        )
    new = np.concatenate(([True], steps_s > 0.0))
    if new.sum() < 2:
        raise ConfigError(f"{source.path}: all rows have the same time: name another time column")
    t_s = stamp_s[new]
    groups = np.full(len(raw), -1, dtype=np.int64)
    groups[rows] = np.cumsum(new) - 1
    gap_s = table.gap_s or GAP_INTERVALS * float(np.median(np.diff(t_s)))
    return Times(t_s, rows[new], groups, mean, gap_s, start, int((~new).sum()),
                 len(raw) - len(rows))  # fmt: skip


def _dates(
    source: Source, time: TimeTable, stated: datetime | None, where: str
) -> tuple[Array, datetime, str]:
    """Seconds since the first row, when that was, and how the texts were read.

    What the map has `stated` tells the day of times of day, and the zone of dates without one.
    """
    import pandas as pd

    key = f"{where}.column"
    names = [source.name_of(name, key) for name in time.columns]
    forms = (time.format or "%Y%m%d %H%M%S").split()
    parts = [
        pd.Series(_as_texts(source.columns[name].values, form))
        for name, form in itertools.zip_longest(names, forms[: len(names)], fillvalue="")
    ]
    texts = parts[0] if len(parts) == 1 else parts[0].str.strip() + " " + parts[1].str.strip()
    if time.format in (None, *CLOCKS) and (lasting_s := _durations_s(texts)) is not None:
        first_s = float(lasting_s[np.isfinite(lasting_s)][0])
        start = stated or datetime(1900, 1, 1) + timedelta(seconds=first_s)  # as of times of day
        return lasting_s - first_s, start, "durations as hours:minutes:seconds"
    if time.format is None or "%f" in time.format:
        texts = _with_fractions(texts)
    form = time.format or date_format(texts.dropna().tolist(), f"{source.path.name}: {key}", where)
    try:
        # Texts with a zone may have two of them, in summer and in winter.
        stamps = pd.to_datetime(texts, format=form, utc=_has_zone(texts, form))
    except (ValueError, TypeError) as error:
        raise ConfigError(
            one_line(f"{where}.format = '{form}': {str(error).partition(',')[0][:160]}")
        ) from None
    first = stamps.dropna().iloc[0] if stamps.notna().any() else None
    if first is None:
        raise ConfigError(f"{key} = '{time.column}': has no dates")
    read_as = f"dates and times as '{form}'"
    since_s = (stamps - first).dt.total_seconds().to_numpy()
    start = first.to_pydatetime(warn=False)
    if stated is not None and stated.tzinfo is not None and start.tzinfo is None:
        start = stated
    if form != ISO and not re.search("%[YymbBdjxcDF]", form):
        start = stated or start
        clock_s = (first - first.normalize()).total_seconds()
        since_s, nights = _over_midnight(since_s + clock_s, 0.5 * DAY_S)
        since_s -= clock_s
        read_as += f", {nights} midnights passed" if nights else ""
    return since_s, start, read_as


def _durations_s(texts: Any) -> Array | None:
    """Durations such as 26:30:00 in s; None if a text is none, or all may be times of day."""
    parts = texts.dropna().astype(str).str.replace(",", ".").str.extract(DURATION)
    if parts.empty or parts[0].isna().any():
        return None
    hours, minutes, seconds = (parts[i].astype(float) for i in range(3))
    if hours.max() < DAY_S / 3600.0:
        return None
    return np.asarray((3600.0 * hours + 60.0 * minutes + seconds).reindex(texts.index))


def _with_fractions(texts: Any) -> Any:
    """Clocks that all have a fraction where some have: workbooks leave it out of whole seconds."""
    known = texts.dropna()
    parts = known.astype(str).str.extract(CLOCK)
    bare = parts[1].isna()
    if parts[0].isna().any() or bare.all() or not bare.any():
        return texts
    sign = parts[1].dropna().iloc[0][0]
    return known.where(~bare, parts[0] + f"{sign}0" + parts[2]).reindex(texts.index)


def _has_zone(texts: Any, form: str) -> bool:
    if form != ISO:
        return "%z" in form
    first = next(iter(texts.dropna()), "")
    return _fits(first, ISO) and datetime.fromisoformat(first).tzinfo is not None


def _as_texts(values: NDArray[Any], form: str) -> NDArray[Any]:
    """Dates and clocks that are numbers, such as 20260123, as texts with the zeros of the form."""
    if values.dtype.kind not in "fiu":
        return values
    width = len(datetime(2000, 1, 1).strftime(form.removesuffix(".%f")))
    decimals = 0 if (values[np.isfinite(values)] % 1.0 == 0.0).all() else 6
    spec = f"0{width + 7 if decimals else width}.{decimals}f"
    return np.array([f"{v:{spec}}" if np.isfinite(v) else None for v in values], dtype=object)


def date_format(texts: Sequence[str], what: str, where: str) -> str:
    """The format of dates and times, from the first, the last and some of those between.

    Raises
    ------
    ConfigError
        No known format fits, or several do, which differ in day and month.
    """
    looked_at, fitting = fitting_formats(texts, FORMATS)
    if not fitting and looked_at and all(_fits(text, ISO) for text in looked_at):
        return ISO
    if not fitting:
        first = looked_at[0] if looked_at else ""
        raise ConfigError(
            one_line(f"{what}: '{first:.40}': no known form of date and time: give {where}.format, "
                     "as in Python's strptime, such as '%d.%m.%Y %H:%M:%S,%f'")
        )  # fmt: skip
    meanings = {tuple(datetime.strptime(t, form) for t in looked_at): form for form in fitting}
    usual = {times: form for times, form in meanings.items() if not form.startswith(UNUSUAL)}
    if usual and all(len({t.date() for t in times}) == 1 for times in meanings):
        meanings = usual
    if len(meanings) > 1:
        forms = " or ".join(f"'{form}'" for form in meanings.values())
        raise ConfigError(
            f"{what}: '{looked_at[0]:.40}' may have year, month or day first: give "
            f"{where}.format, {forms}"
        )
    return next(iter(meanings.values()))


def fitting_formats(texts: Sequence[str], formats: Sequence[str]) -> tuple[list[str], list[str]]:
    """Texts from all over a column, and the formats that fit all of them."""
    step = max(1, len(texts) // 50)
    looked_at = [str(text).strip() for text in (*texts[::step], *texts[-1:])]
    fitting = formats if looked_at else ()
    return looked_at, [form for form in fitting if all(_fits(text, form) for text in looked_at)]


def _fits(text: str, form: str) -> bool:
    try:
        datetime.fromisoformat(text) if form == ISO else datetime.strptime(text, form)
    except ValueError:
        return False
    return True


@dataclass(frozen=True)
class Clock:
    """A file's clock against the recording's.

    Attributes
    ----------
    offset_s : its time when the recording's clock is zero
    drift : relative rate, minus one
    method : how it was found, in words
    pairs : number of events or segments; 0 for given offsets
    """

    method: str
    offset_s: float = 0.0
    drift: float = 0.0
    drift_standard_error: float = nan
    residual_s: float = nan
    pairs: int = 0
    correlation: float = nan

    def to_recording(self, other_s: Array) -> Array:
        """Times of the recording's clock."""
        return np.asarray((other_s - self.offset_s) / (1.0 + self.drift))

    def as_dict(self) -> dict[str, float | str]:
        """Figures for the recording; drift in ppm."""
        return {
            "method": self.method,
            "offset_s": self.offset_s,
            "drift_ppm": 1e6 * self.drift,
            "drift_ppm_standard_error": 1e6 * self.drift_standard_error,
            "residual_rms_s": self.residual_s,
            "pairs": self.pairs,
            "correlation": self.correlation,
        }


@dataclass(frozen=True)
class Curve:
    """Values over the own clock of their file."""

    t_s: Array
    y: Array

    @property
    def known(self) -> Curve:
        """Without missing values."""
        mask = np.isfinite(self.y)
        return Curve(self.t_s[mask], self.y[mask])


def aligned(table: AlignTable, other: Curve, main: Curve, key: str) -> Clock:
    """Clock of `other` against that of `main`, by events or by correlation.

    Raises
    ------
    ConfigError
        There is no event, the columns do not agree, or they do not overlap.
    """
    for curve, column in ((other.known, table.column), (main.known, table.to_column)):
        if len(curve.y) < 8 or np.ptp(curve.y) == 0.0:
            raise ConfigError(f"{key}: column '{column}' is constant: no clock can be found by it")
    if table.by == "event":
        return _by_events(table, other.known, main.known, key)
    return _by_correlation(table, other.known, main.known, key)


def crossings_s(curve: Curve, level: float | None, edge: str) -> Array:
    """Interpolated times at which a curve crosses a level, by default the middle of its range."""
    middle = 0.5 * (curve.y.min() + curve.y.max())
    y = curve.y - (middle if level is None else level)
    y = -y if edge == "falling" else y
    k = np.flatnonzero((y[:-1] < 0.0) & (y[1:] >= 0.0))
    share = -y[k] / (y[k + 1] - y[k])
    return np.asarray(curve.t_s[k] + share * (curve.t_s[k + 1] - curve.t_s[k]))


def _by_events(table: AlignTable, other: Curve, main: Curve, key: str) -> Clock:
    other_s = crossings_s(other, table.level, table.edge)
    main_s = crossings_s(main, table.to_level, table.edge)
    few = min(len(other_s), len(main_s))
    if not few or (len(other_s) != len(main_s) and few < PATTERN_MIN):
        raise ConfigError(
            f"{key}: '{table.column}' has {len(other_s)} {table.edge} edges and "
            f"'{table.to_column}' {len(main_s)}: give level and to_level, so that both have the "
            "same ones"
        )
    other_s, main_s = _same_pattern(other_s, main_s)
    if few >= PATTERN_MIN:
        apart_s = np.std(other_s - main_s)
        if apart_s > SAME_INTERVALS * np.median(np.diff(main_s)):
            raise ConfigError(
                f"{key}: the edges of '{table.column}' and '{table.to_column}' have other "
                f"intervals, by {apart_s:.3g} s: give level and to_level, so that both have the "
                "same ones"
            )
    return _fitted(f"{few} shared {table.edge} edges", main_s, other_s, table.drift)


def _same_pattern(other_s: Array, main_s: Array) -> tuple[Array, Array]:
    """The events that both files have: where one has more, those whose intervals agree best."""
    if len(other_s) < len(main_s):
        main_s, other_s = _same_pattern(main_s, other_s)
        return other_s, main_s
    n = len(main_s)
    shifts = range(len(other_s) - n + 1)
    best = min(shifts, key=lambda k: float(np.std(other_s[k : k + n] - main_s)))
    return other_s[best : best + n], main_s


def _fitted(method: str, main_s: Array, other_s: Array, drift: bool, r: float = nan) -> Clock:
    """The line through pairs of times; only an offset if they show no drift, or if asked."""
    fit = fit_clock(main_s, other_s) if drift and len(main_s) >= 3 else {}
    if fit and abs(fit["drift_ppm"]) > SIGNIFICANT * fit["drift_ppm_standard_error"]:
        return Clock(method, fit["offset_s"], 1e-6 * fit["drift_ppm"],
                     1e-6 * fit["drift_ppm_standard_error"], fit["residual_rms_s"],
                     len(main_s), r)  # fmt: skip
    apart_s = other_s - main_s
    residual_s = float(np.std(apart_s)) if len(apart_s) > 1 else nan
    if fit:
        ppm, error = fit["drift_ppm"], fit["drift_ppm_standard_error"]
        method += f", drift {ppm:.3g} +- {error:.2g} ppm is not significant and left out"
    elif drift:
        method += ", too few for a drift"
    return Clock(method, float(apart_s.mean()), residual_s=residual_s, pairs=len(main_s),
                 correlation=r)  # fmt: skip


def _by_correlation(table: AlignTable, other: Curve, main: Curve, key: str) -> Clock:
    lag_s, r = coarse_lag(other, main)
    if not r >= CORRELATION_MIN:
        raise ConfigError(
            f"{key}: '{table.column}' and '{table.to_column}' correlate with at most r = {r:.2f}: "
            "name columns of the same quantity, or align by event, clock or offset"
        )
    begin_s = max(main.t_s[0], other.t_s[0] - lag_s)
    edges_s = np.linspace(begin_s, min(main.t_s[-1], other.t_s[-1] - lag_s), SEGMENTS + 1)
    # Interpolation between noisy readings smooths them, most in the middle: without a common
    # smoothing the correlation would prefer such shifts.
    width_s = SMOOTH_INTERVALS * _interval_s(other, main)
    other, main = _smooth(other, width_s), _smooth(main, width_s)
    reach_s = 3.0 * _interval_s(other, main) + DRIFT_MAX * (edges_s[-1] - edges_s[0])
    pairs = []
    for a_s, b_s in itertools.pairwise(edges_s):
        part = main.t_s[(main.t_s >= a_s) & (main.t_s < b_s)]
        at_s = part if len(part) >= 8 else np.linspace(a_s, b_s, 64, endpoint=False)
        main_y = np.interp(at_s, main.t_s, main.y)
        if np.std(main_y) < FLAT * np.std(main.y):
            continue
        refined_s = _refined(other, at_s, main_y, lag_s, reach_s)
        if abs(refined_s - lag_s) < 0.99 * reach_s:
            pairs.append((float(at_s.mean()), refined_s))
    if not pairs:
        raise ConfigError(f"{key}: no part of '{table.to_column}' fixes the time: align by event")
    middle_s, lags_s = np.array(pairs).T
    return _fitted(f"correlation of {len(pairs)} segments", middle_s, middle_s + lags_s,
                   table.drift, r)  # fmt: skip


def _interval_s(*curves: Curve) -> float:
    return max(float(np.median(np.diff(curve.t_s))) for curve in curves)


def _smooth(curve: Curve, width_s: float) -> Curve:
    """The curve at even times, low-passed by a Gaussian."""
    from scipy.ndimage import gaussian_filter1d

    step_s = _interval_s(curve)
    at_s = np.arange(curve.t_s[0], curve.t_s[-1] + 0.5 * step_s, step_s)
    y = np.interp(at_s, curve.t_s, curve.y)
    return Curve(at_s, gaussian_filter1d(y, width_s / step_s, mode="nearest"))


def _refined(other: Curve, at_s: Array, main_y: Array, lag_s: float, reach_s: float) -> float:
    """The lag near lag_s at which the curve `other` agrees best with main_y at at_s."""
    from scipy.optimize import minimize_scalar

    def disagreement(lag: float) -> float:
        y = np.interp(at_s + lag, other.t_s, other.y)
        return 1.0 if np.std(y) == 0.0 else 1.0 - float(np.corrcoef(y, main_y)[0, 1])

    tried_s = lag_s + np.linspace(-reach_s, reach_s, 81)
    best = int(np.argmin([disagreement(lag) for lag in tried_s]))
    low, high = tried_s[max(0, best - 1)], tried_s[min(len(tried_s) - 1, best + 1)]
    return float(minimize_scalar(disagreement, bounds=(low, high), method="bounded").x)


def coarse_lag(other: Curve, main: Curve) -> tuple[float, float]:
    """Lag of `other` behind `main` that explains most samples, and the correlation there.

    The coefficient r = S_xy / sqrt(S_xx S_yy) is that of the n samples which overlap at a lag; the
    lag maximises -n ln(1 - r^2).
    """
    from scipy.signal import correlate

    spans_s = [float(np.ptp(curve.t_s)) for curve in (other, main)]
    step_s = max(min(float(np.median(np.diff(c.t_s))) for c in (other, main)),
                 max(spans_s) / POINTS_MAX)  # fmt: skip
    x = _even(main, step_s)
    y = _even(other, step_s)
    ones = np.ones(len(x)), np.ones(len(y))

    def over_lags(a: Array, b: Array) -> Array:
        return np.asarray(correlate(b, a, mode="full", method="fft"))

    n = np.maximum(over_lags(*ones), 1.0)
    sum_x, sum_y = over_lags(x, ones[1]), over_lags(ones[0], y)
    s_xx = over_lags(x * x, ones[1]) - sum_x**2 / n
    s_yy = over_lags(ones[0], y * y) - sum_y**2 / n
    s_xy = over_lags(x, y) - sum_x * sum_y / n
    few = n < OVERLAP_MIN * min(len(x), len(y))
    variance = np.where(few, np.inf, np.maximum(s_xx, 1e-9 * n) * np.maximum(s_yy, 1e-9 * n))
    r = s_xy / np.sqrt(variance)
    # The log-likelihood of a straight line between the two: of cycles that repeat, a short overlap
    # may agree as well as the whole.
    unexplained = np.maximum(1.0 - np.maximum(r, 0.0) ** 2, ROUNDING)
    best = int(np.argmax(-n * np.log(unexplained)))
    lag = best - (len(x) - 1)
    return float(other.t_s[0] - main.t_s[0] + lag * step_s), float(r[best])


def _even(curve: Curve, step_s: float) -> Array:
    """The curve at even steps, its mean and scale removed."""
    at_s = np.arange(curve.t_s[0], curve.t_s[-1] + 0.5 * step_s, step_s)
    y = np.interp(at_s, curve.t_s, curve.y)
    return np.asarray((y - y.mean()) / np.std(y))
