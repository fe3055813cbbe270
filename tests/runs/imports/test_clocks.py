"""Clocks of files: offset and drift that were put in are found again; bad times are named."""

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pytest

from hil.errors import ConfigError
from hil.runs.imports.clocks import Curve, aligned, increasing, times_of
from hil.runs.imports.source import Series, Source
from hil.runs.imports.tables import AlignTable, SourceTable

OFFSET_S, DRIFT = 37.25, 200e-6


def temperature_C(t_s):
    """Irregular cycles, so that no shift but the true one agrees."""
    return 60.0 + 30.0 * np.sin(t_s / 40.0 + 1e-3 * t_s) + 8.0 * np.sin(t_s / 11.0)


def two_clocks(drift=DRIFT, noise_C=0.0):
    draws = np.random.default_rng(5)
    main_s, own_s = np.arange(0.0, 1200.0, 0.2), np.arange(0.0, 1300.0, 0.35)
    there_s = (own_s - OFFSET_S) / (1.0 + drift)
    noise = noise_C * draws.standard_normal((2, len(main_s)))
    own = Curve(own_s, temperature_C(there_s) + noise[0, : len(own_s)])
    return own, Curve(main_s, temperature_C(main_s) + noise[1])


def by(method, **more):
    return AlignTable(by=method, column="own", to_column="main", **more)


@pytest.mark.parametrize("method", ["event", "correlation"])
def test_offset_and_drift_are_found_again(method):
    clock = aligned(by(method, level=75.0, to_level=75.0), *two_clocks(), "key")
    assert clock.offset_s == pytest.approx(OFFSET_S, abs=0.01)
    assert clock.drift == pytest.approx(DRIFT, abs=max(3.0 * clock.drift_standard_error, 2e-6))


def test_the_stated_error_of_a_drift_covers_it_with_noise():
    clock = aligned(by("correlation"), *two_clocks(drift=2e-3, noise_C=0.5), "key")
    assert abs(clock.drift - 2e-3) < 3.0 * clock.drift_standard_error < 3e-4
    assert clock.correlation > 0.99


def test_a_drift_that_is_not_significant_is_left_out_and_stated():
    clock = aligned(by("correlation"), *two_clocks(drift=0.0, noise_C=2.0), "key")
    assert clock.drift == 0.0
    assert clock.offset_s == pytest.approx(OFFSET_S, abs=0.05)
    assert "not significant" in clock.method


def test_times_of_both_clocks_agree_after_alignment():
    own, main = two_clocks()
    clock = aligned(by("event", level=75.0, to_level=75.0), own, main, "key")
    back_s = clock.to_recording(own.t_s)
    inside = (back_s > 0.0) & (back_s < main.t_s[-1])
    again = np.interp(back_s[inside], main.t_s, main.y)
    np.testing.assert_allclose(again, own.y[inside], atol=0.02)


def test_cycles_that_repeat_are_aligned_over_the_whole_not_over_a_part():
    t_s = np.arange(0.0, 900.0, 0.5)
    y = np.sin(2.0 * np.pi * t_s / 300.0)
    noisy = y + 0.02 * np.random.default_rng(1).standard_normal(len(y))
    clock = aligned(by("correlation"), Curve(t_s + 20.0, noisy), Curve(t_s, y), "key")
    assert clock.offset_s == pytest.approx(20.0, abs=0.5)


def test_columns_that_do_not_agree_are_refused():
    own, main = two_clocks()
    noise = np.random.default_rng(2).standard_normal(len(own.y))
    with pytest.raises(ConfigError, match="name columns of the same quantity"):
        aligned(by("correlation"), Curve(own.t_s, noise), main, "key")
    with pytest.raises(ConfigError, match="edges"):
        aligned(by("event", level=0.0), Curve(own.t_s, noise), main, "key")
    with pytest.raises(ConfigError, match="is constant"):
        aligned(by("event"), Curve(own.t_s, np.ones_like(own.y)), main, "key")


def source(**columns):
    series = {name: Series(np.asarray(values)) for name, values in columns.items()}
    return Source(Path("lab.csv"), "CSV", series)


def table(**more):
    return SourceTable(time={"column": "t"} | more.pop("time", {}), **more)


def test_time_that_runs_back_is_named_with_its_row():
    with pytest.raises(ConfigError, match=r"runs back 1 times, first in row 4 .* 2 s to 1 s"):
        times_of(source(t=[0.0, 1.0, 2.0, 1.0, 3.0]), "lab", table(), 5)


def test_repeated_and_missing_times_are_counted_and_gaps_found():
    times = times_of(source(t=[0.0, 1.0, 1.0, np.nan, 2.0, 3.0, 30.0, 31.0]), "lab", table(), 8)
    assert (times.repeated, times.missing) == (1, 1)
    np.testing.assert_array_equal(times.t_s[times.gaps], [3.0])
    np.testing.assert_array_equal(times.values(np.arange(8.0)), [0, 1, 4, 5, 6, 7])


def test_rows_of_one_time_are_averaged_on_request():
    averaging = table(time={"repeated": "mean"})
    times = times_of(source(t=[0.0, 0.0, 1.0, 1.0, 1.0, 2.0]), "lab", averaging, 6)
    values = times.values(np.array([1.0, 3.0, 4.0, np.nan, 8.0, 5.0]))
    np.testing.assert_array_equal(values, [2.0, 6.0, 5.0])


def test_dates_give_seconds_and_the_start():
    dated = table(time={"format": "%d.%m.%Y %H:%M:%S"})
    stamps = ["31.12.2025 23:59:50", "01.01.2026 00:00:00", "01.01.2026 00:00:10"]
    times = times_of(source(t=np.array(stamps, dtype=object)), "lab", dated, 3)
    np.testing.assert_array_equal(times.t_s, [0.0, 10.0, 20.0])
    assert times.start.isoformat() == "2025-12-31T23:59:50"


def test_all_times_alike_are_refused():
    with pytest.raises(ConfigError, match="all rows have the same time"):
        increasing(np.ones(5), source(t=np.ones(5)), table(), None)


def clock_of(time, **columns):
    series = {name: Series(np.array(values)) for name, values in columns.items()}
    table = SourceTable.model_validate({"time": time})
    return times_of(Source(Path("lab.csv"), "CSV", series), "lab", table, 3)


def texts(*values):
    return np.array(values, dtype=object)


@pytest.mark.parametrize(
    ("dates", "clocks"),
    [
        (("28.11.2026", "29.11.2026"), ("23:59:59,5", "23:59:59,75", "00:00:00,5")),
        (("2026-11-28", "2026-11-29"), ("23:59:59.5", "23:59:59.75", "00:00:00.5")),
        (("11/28/2026", "11/29/2026"), ("11:59:59.5 PM", "11:59:59.75 PM", "12:00:00.5 AM")),
    ],
)
def test_date_and_time_in_two_columns_are_one_clock(dates, clocks):
    days = texts(dates[0], *dates)
    times = clock_of({"column": ["Date", "Time"]}, Date=days, Time=texts(*clocks))
    np.testing.assert_allclose(times.t_s, [0.0, 0.25, 1.0])
    assert times.start == datetime(2026, 11, 28, 23, 59, 59, 500_000)


@pytest.mark.parametrize(
    ("form", "stamps"),
    [
        ({}, ("10:00:00", "10:00:00.250000", "10:00:01")),
        ({"format": "%H:%M:%S.%f"}, ("10:00:00", "10:00:00.250000", "10:00:01")),
        ({}, ("23.11.2026 10:00:00,75", "23.11.2026 10:00:01", "23.11.2026 10:00:01,75")),
        ({}, ("9:59:59.75 AM", "10:00:00 AM", "10:00:00.75 AM")),
    ],
)
def test_a_clock_may_leave_the_fraction_out_of_whole_seconds(form, stamps):
    """As cells of a workbook with times of day do; no format fitted all of them."""
    times = clock_of({"column": "Time"} | form, Time=texts(*stamps))
    np.testing.assert_allclose(times.t_s, [0.0, 0.25, 1.0])


@pytest.mark.parametrize("form", [{}, {"format": "%H:%M:%S"}])
def test_durations_beyond_a_day_are_times(form):
    stamps = ("23:59:59", "24:00:00,5", "24:00:01", "100:00:00")
    times = clock_of({"column": "Time"} | form, Time=texts(*stamps))
    np.testing.assert_allclose(times.t_s, [0.0, 1.5, 2.0, 76 * 3600.0 + 1.0])
    assert times.read_as == "durations as hours:minutes:seconds"
    with pytest.raises(ConfigError, match="'24:00:00': no known form"):
        clock_of({"column": "Time"}, Time=texts("24:00:00", "25:00:00", "later"))


def test_dates_that_may_have_day_or_month_first_are_refused_with_both_forms():
    days = texts("03/04/2026 10:00:00", "03/04/2026 10:00:01", "03/04/2026 10:00:02")
    with pytest.raises(ConfigError, match=r"'%m/%d/%Y %H:%M:%S' or '%d/%m/%Y %H:%M:%S'"):
        clock_of({"column": "Time"}, Time=days)
    times = clock_of({"column": "Time", "format": "%d/%m/%Y %H:%M:%S"}, Time=days)
    assert times.start == datetime(2026, 4, 3, 10)


@pytest.mark.parametrize(
    ("form", "other"),
    [("%m-%d-%Y", "%d-%m-%Y"), ("%y/%m/%d", "%d/%m/%y")], ids=["with dashes", "year first"],
)  # fmt: skip
def test_a_midnight_is_no_month_or_year_of_a_date_that_is_read_in_another_order(form, other):
    """A second passed; with day first it would be a month, or a year."""
    stamps = [datetime(2026, 3, 4, 23, 59, 59), datetime(2026, 3, 5), datetime(2026, 3, 5, 0, 0, 1)]
    days = texts(*(f"{stamp:{form} %H:%M:%S}" for stamp in stamps))
    with pytest.raises(ConfigError, match=f"'{other} %H:%M:%S' or '{form} %H:%M:%S'"):
        clock_of({"column": "Time"}, Time=days)
    times = clock_of({"column": "Time", "format": f"{form} %H:%M:%S"}, Time=days)
    np.testing.assert_allclose(times.t_s, [0.0, 1.0, 2.0])
    assert clock_of({"column": "Time"}, Time=days[1:]).start == datetime.strptime(
        days[1], f"{other} %H:%M:%S"
    )


def test_a_change_to_summer_time_passes_no_hour_where_the_zone_is_stated():
    stamps = texts("2026-03-29T01:59:59+01:00", "2026-03-29T03:00:00+02:00")
    times = clock_of({"column": "Time"}, Time=stamps)
    np.testing.assert_allclose(times.t_s, [0.0, 1.0])
    assert times.start == datetime(2026, 3, 29, 0, 59, 59, tzinfo=UTC)


def test_times_with_seven_decimals_and_a_zone_as_bonsai_writes_them_are_read():
    stamps = [f"2026-11-28T10:00:{s}+01:00" for s in ("01.1234567", "01.2234567", "02.1234567")]
    times = clock_of({"column": "Timestamp"}, Timestamp=texts(*stamps))
    np.testing.assert_allclose(times.t_s, [0.0, 0.1, 1.0], atol=1e-9)


@pytest.mark.parametrize(
    "clock",
    [texts("23:59:59.5", "23:59:59.75", "00:00:00.5"), [86399.5, 86399.75, 0.5]],
    ids=["as text", "as seconds of the day"],
)
def test_times_of_day_go_on_after_midnight_and_it_is_said(clock):
    times = clock_of({"column": "Time"}, Time=clock)
    np.testing.assert_allclose(times.t_s - times.t_s[0], [0.0, 0.25, 1.0])
    assert "1 midnights passed" in times.read_as


@pytest.mark.parametrize(
    ("stamps", "stated", "start"),
    [
        (("23:59:59", "00:00:00", "00:00:01"), datetime(2026, 11, 28, 23, 59, 59), None),
        (
            ("2026-11-28 10:00:00", "2026-11-28 10:00:01", "2026-11-28 10:00:02"),
            datetime(2026, 11, 28, 10, tzinfo=UTC), None,
        ),
        (
            ("2026-11-28 10:00:00", "2026-11-28 10:00:01", "2026-11-28 10:00:02"),
            datetime(2025, 1, 1), datetime(2026, 11, 28, 10),
        ),
    ],
    ids=["of times of day", "of dates without a zone", "beside dates"],
)  # fmt: skip
def test_a_stated_start_gives_what_the_texts_have_not(stamps, stated, start):
    """Two files of times of day could not be aligned over midnight by their clocks."""
    dated = table(time={"column": "t"}, start=stated)
    times = times_of(source(t=texts(*stamps)), "lab", dated, 3)
    np.testing.assert_array_equal(times.t_s, [0.0, 1.0, 2.0])
    assert times.start == (start or stated)


def test_a_clock_that_starts_again_at_another_time_than_midnight_runs_back():
    with pytest.raises(ConfigError, match="time runs back 1 times"):
        clock_of({"column": "Time"}, Time=[50_000.0, 50_000.25, 0.0])


@pytest.mark.parametrize(
    ("stamps", "unit"),
    [([1.7e9, 1.7e9 + 0.5], None), ([1.7e12, 1.7e12 + 500.0], None), ([1.7e15, 1.7e15 + 5e5], None),
     ([1.7e9, 1.7e9 + 0.5], "s"), ([1.7e12, 1.7e12 + 500.0], "ms"),
     ([1.7e9 + 2082844800.0, 1.7e9 + 2082844800.5], None)],
    ids=["s", "ms", "us", "s as stated", "ms as stated", "of LabVIEW"],
)  # fmt: skip
def test_seconds_since_an_epoch_have_a_date(stamps, unit):
    """2082844800 s are the 24107 days from 1904 to 1970."""
    times = clock_of({"column": "Time", **({"unit": unit} if unit else {})}, Time=stamps)
    np.testing.assert_allclose(np.diff(times.t_s), [0.5], rtol=1e-6)
    began = times.start + timedelta(seconds=float(times.t_s[0]))
    assert began == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)


def test_days_of_a_spreadsheet_are_of_no_zone_but_the_one_that_start_has():
    """They were taken for UTC: beside Unix times, a file from Berlin was an hour off."""
    days = [46354.5, 46354.5 + 1.0 / 86400.0]
    berlin = timezone(timedelta(hours=1))
    stated = table(time={"column": "t", "unit": "day"}, start=datetime(2026, 11, 28, tzinfo=berlin))
    times = times_of(source(t=days), "lab", stated, 2)
    began = times.start + timedelta(seconds=float(times.t_s[0]))
    assert abs(began - datetime(2026, 11, 28, 11, tzinfo=UTC)) < timedelta(milliseconds=1)
    assert clock_of({"column": "t", "unit": "day"}, t=days).start.tzinfo is None


@pytest.mark.parametrize(
    ("clocks", "since_s", "start"),
    [((1000, 1010, 1059), [0, 10, 59], datetime(2026, 1, 23, 0, 10)),
     ((0, 5, 10), [0, 5, 10], datetime(2026, 1, 23)),
     ((93203.25, 93203.75, 93204.0), [0, 0.5, 0.75], datetime(2026, 1, 23, 9, 32, 3, 250000))],
    ids=["10 minutes past midnight", "at midnight", "with fractions"],
)  # fmt: skip
def test_clocks_that_are_numbers_keep_the_zeros_in_front_and_their_fractions(
    clocks, since_s, start
):
    """001000 is 1000 as a number, which was read as 10:00:00: 59 s lasted 354 s."""
    times = clock_of({"column": ["Date", "Time"]}, Date=[20260123.0] * 3, Time=list(clocks))
    np.testing.assert_allclose(times.t_s, since_s)
    assert times.start == start


def test_days_of_a_spreadsheet_have_a_date_once_it_is_said_that_they_are_days():
    """Day 46354 is 28 November 2026, as 25569 is 1 January 1970 (Microsoft's DATEVALUE)."""
    days = [46354.5, 46354.5 + 1.0 / 86400.0, 46354.5 + 2.0 / 86400.0]
    with pytest.raises(ConfigError, match=r'spreadsheet.s days give unit = "day", if they are sec'):
        clock_of({"column": "Time"}, Time=days)
    times = clock_of({"column": "Time", "unit": "day"}, Time=days)
    np.testing.assert_allclose(np.diff(times.t_s), [1.0, 1.0], atol=1e-5)
    began = times.start + timedelta(seconds=float(times.t_s[0]))
    assert abs(began - datetime(2026, 11, 28, 12)) < timedelta(milliseconds=1)
    assert clock_of({"column": "Time", "unit": "s"}, Time=days).start is None
    assert clock_of({"column": "Time"}, Time=[40000.0, 40000.1, 40000.2]).start is None
