"""The forecast of a fatigue test, on simulated lives whose end is known."""

import json
from functools import partial

import numpy as np
import pytest

from hil.procedures.standard_tests.cycles import FILE, SETTINGS, SUMMARY, Summaries, book_in
from hil.procedures.standard_tests.forecast import forecasts, life_of, siblings_of

LIMIT, WIDTH, BLOCK = 0.2, 20, 50


def life(folder, cycles, stroke):
    """A test on disk that has run so many cycles."""
    folder.mkdir(parents=True)
    rows = np.zeros(cycles, SUMMARY)
    rows["cycle"], rows["stroke"] = np.arange(1, cycles + 1), stroke[:cycles]
    rows["ohm"] = np.nan
    Summaries(folder / FILE).add(rows)
    values = {"reference_cycles": WIDTH, "stroke_lost_max": LIMIT, "resistance_drift_max": 0.2,
              "block": BLOCK}  # fmt: skip
    text = f"rig.toml\n{json.dumps(values)}\n"
    (folder / SETTINGS).write_text(text + json.dumps({"cycles": 10**6, "unit": "m"}) + "\n")
    return book_in(folder)


def drawn(rng):
    """Stroke of every cycle of a specimen, and the cycle at which its rule is met.

    As the test does, the rule looks after every block of cycles.
    """
    life, exponent = np.exp(rng.normal(np.log(4000.0), 0.5)), np.exp(rng.normal(np.log(0.6), 0.25))
    n = np.arange(1, int(4 * life) + 10 * WIDTH)
    stroke = 4e-3 * (1.0 - LIMIT * (n / life) ** exponent) * (1.0 + 0.01 * rng.normal(size=len(n)))
    means = np.convolve(stroke, np.ones(WIDTH) / WIDTH, "valid")
    lost = 1.0 - means[BLOCK - WIDTH :: BLOCK] / stroke[:WIDTH].mean()
    return stroke, BLOCK * (1 + int(np.flatnonzero(lost > LIMIT)[0]))


def coverage(tmp_path, n_siblings, shares, n_lives):
    """Share of lives that end within the 90 % interval, and the median width over the life.

    Their seed is none with which the forecast was made.
    """
    rng = np.random.default_rng(20261128)
    inside, widths = [], []
    for k in range(n_lives):
        folder = tmp_path / str(k)
        for s in range(n_siblings):
            stroke, end = drawn(rng)
            life(folder / f"sibling{s}", end, stroke)
        stroke, end = drawn(rng)
        now = max(4 * WIDTH, int(shares[k % len(shares)] * end))
        book = life(folder / "this", now, stroke)
        found = forecasts(book, list(siblings_of(folder / "this")))
        if found:
            inside.append(found[0].low <= end - now <= found[0].high)
            widths.append((found[0].high - found[0].low) / end)
    assert len(inside) > 0.9 * n_lives
    return np.mean(inside), np.median(widths)


def test_a_sibling_that_cannot_be_read_takes_no_other_away(tmp_path):
    """The page of a test ended with an error over a damaged file of another test."""
    for name in ("a", "this", "z"):
        life(tmp_path / name, 100, np.ones(100))
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / SETTINGS).write_bytes(b"rig.toml\n\xff")
    assert len(list(siblings_of(tmp_path / "this"))) == 2


@pytest.mark.slow
@pytest.mark.parametrize("n_siblings", [0, 3, 6])
def test_90_percent_intervals_hold_85_to_95_percent_of_simulated_lives(tmp_path, n_siblings):
    held, _ = coverage(tmp_path, n_siblings, (0.1, 0.2, 0.35, 0.5, 0.7), 400)
    assert 0.85 <= held <= 0.95


def test_siblings_make_the_interval_narrower(tmp_path):
    width = partial(coverage, shares=(0.1,), n_lives=12)
    _, alone = width(tmp_path / "alone", 0)
    _, with_siblings = width(tmp_path / "siblings", 6)
    assert with_siblings < alone


@pytest.mark.parametrize("every", [1, 2], ids=["every cycle", "every other cycle is measured"])
def test_without_noise_the_forecast_is_the_exact_life(every, tmp_path):
    """y(n) = L ((n / N)^b - (c / N)^b) = L at n = N (1 + (c / N)^b)^(1 / b)."""
    n, N, b = np.arange(1, 20_000), 10_000.0, 0.7
    stroke = 4e-3 * (1.0 - LIMIT * ((n / N) ** b - (10.0 / N) ** b))
    stroke[n % every > 0] = np.nan
    (found,) = forecasts(life(tmp_path / "one", 5000, stroke))
    exact = BLOCK * np.ceil(N * (1.0 + (10.0 / N) ** b) ** (1.0 / b) / BLOCK) - 5000
    assert found.rule == "stroke"
    assert found.remaining == pytest.approx(exact, rel=0.02)
    assert found.low < exact < found.high


def test_a_stroke_that_does_not_fall_has_no_forecast(tmp_path):
    rng = np.random.default_rng(1)
    stroke = 4e-3 * (1.0 + 1e-6 * np.arange(2000) + 1e-4 * rng.normal(size=2000))
    assert forecasts(life(tmp_path / "one", 2000, stroke)) == []
    assert forecasts(life(tmp_path / "young", 30, stroke)) == []


def test_a_finished_test_has_the_life_and_the_exponent_it_was_made_with(tmp_path):
    rng = np.random.default_rng(3)
    stroke, end = drawn(rng)
    book = life(tmp_path / "one", end, stroke)
    assert life_of(book, "stroke").cycles == end
    assert forecasts(book) == []  # its rule is met
    n, b = np.arange(1, 6001), 0.6
    smooth = 4e-3 * (1.0 - LIMIT * 1.05 * (n / 6000.0) ** b)
    found = life_of(life(tmp_path / "two", 6000, smooth), "stroke")
    assert found.exponent == pytest.approx(b, rel=0.1)
