"""Figures of long runs, from sums over parts, against those of all rows at once."""

import itertools

import h5py
import numpy as np
import pytest

from hil.record import summary
from hil.record.device_clocks import WRAP_S, fit_clock
from hil.record.sums import ClockSums, Quantiles, SignalSums

PARTS = (0, 1, 15, 700, 703, 2000, 5000)
EXACT = {"rel": 1e-9, "abs": 1e-12}


def by_parts(sums, *columns):
    for a, b in itertools.pairwise(PARTS):
        sums.add(*(column[a:b] for column in columns))
    return sums.figures()


@pytest.mark.parametrize("noise", ["white", "brown", "none", "far"])
def test_a_signals_figures_are_those_of_all_its_rows(noise):
    rng = np.random.default_rng(4)
    e = 0.01 * rng.standard_normal(5000)
    model = 100.0 + np.sin(0.01 * np.arange(5000))
    measured = (
        model + {"white": e, "brown": np.cumsum(e), "none": 0.0, "far": 1e4 + 1e-3 * e}[noise]
    )
    measured[[3, 702, 703, 4999]] = np.nan
    reference = np.where(np.arange(5000) > 900, 100.5, np.nan)
    found = by_parts(SignalSums(), measured, model, reference)
    expected = summary.signal_figures(measured, model, reference)
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        assert found[key] == pytest.approx(value, rel=1e-6, abs=1e-9, nan_ok=True), key


def test_a_residual_that_never_changes_has_no_correlations():
    nothing = np.full(5000, np.nan)
    found = by_parts(SignalSums(), np.full(5000, 0.1), np.full(5000, 0.3), nothing)
    assert np.isnan([found["p_uncorrelated"], found["p_zero_mean"]]).all()


def test_a_clocks_line_is_that_of_all_its_readings_over_the_end_of_its_counter():
    loop_s = 0.001 * np.arange(5000)
    device_s = np.mod(WRAP_S - 2.5 + loop_s * (1 + 37e-6) + 1e-6 * np.sin(loop_s * 900), WRAP_S)
    device_s[::7] = np.nan
    device_s[1::11] = device_s[::11][: len(device_s[1::11])]  # repeated
    expected = fit_clock(loop_s, device_s)
    found = by_parts(ClockSums(), loop_s, device_s)
    assert found["drift_ppm"] == pytest.approx(expected["drift_ppm"], rel=1e-4)
    for key in ("offset_s", "residual_rms_s"):
        assert found[key] == pytest.approx(expected[key], rel=1e-3)


def test_quantiles_are_within_a_512th():
    values = np.random.default_rng(1).lognormal(-10.0, 2.0, 100_000)
    found = Quantiles()
    for part in np.array_split(values, 7):
        found.add(part)
    for share in (0.5, 0.99, 0.999):
        assert found.at(share) == pytest.approx(np.quantile(values, share), rel=1 / 500)
    assert found.most == values.max()
    assert np.isnan(Quantiles().at(0.5))


def test_a_long_run_has_the_summary_that_a_short_one_has(all_on, monkeypatch):
    whole = summary.summarise(all_on, 0.001, "real", 5000)
    monkeypatch.setattr(summary, "ROWS_MAX", 333)
    with h5py.File(all_on) as file:
        assert len(file["ticks/t_s"]) > 3 * 333
    parts = summary.summarise(all_on, 0.001, "real", 5000)

    def compare(a, b, key=""):
        if isinstance(a, dict):
            assert a.keys() == b.keys(), key
            for name in a:
                compare(a[name], b[name], f"{key}.{name}")
        elif isinstance(a, float):
            assert b == pytest.approx(a, rel=1 / 256 if "p50" in key or "p99" in key else 1e-6,
                                      abs=1e-12), key  # fmt: skip
        elif key != ".responses":
            assert a == b, key

    compare(whole, parts)
