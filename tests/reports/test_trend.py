"""Control limits and the first run that broke them, against printed values."""

from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from hil.__main__ import main
from hil.errors import ConfigError
from hil.reports.trend import Limits, cumulative_sums, limits_of, save, trend_of

# Montgomery, Introduction to Statistical Quality Control, 6th edition, table 9.1: twenty values of
# mean 10, then ten of mean 11; standard deviation 1.
TABLE_9_1 = np.array([
    9.45, 7.99, 9.29, 11.66, 12.16, 10.18, 8.04, 11.46, 9.20, 10.34,
    9.03, 11.47, 10.51, 9.40, 10.08, 9.37, 10.62, 10.31, 8.52, 10.84,
    10.90, 9.33, 12.29, 11.50, 10.60, 11.08, 10.38, 11.62, 11.31, 10.52,
])  # fmt: skip


def rows(values):
    start = datetime(2026, 10, 1)
    return [(start + timedelta(days=i), f"{i + 1}.h5", float(x)) for i, x in enumerate(values)]


def test_cumulative_sums_are_those_of_the_printed_table():
    up = cumulative_sums(TABLE_9_1, Limits(10.0, 1.0, 20))[:, 0]
    # Table 9.2, column C+: periods 4 and 5, and 26 to 30.
    assert up[3:5] == pytest.approx([1.16, 2.82], abs=0.005)
    assert up[25:] == pytest.approx([3.47, 3.35, 4.47, 5.28, 5.30], abs=0.005)
    assert int(np.argmax(up > 5.0)) + 1 == 29  # "at period 29"


def test_the_standard_deviation_is_the_mean_moving_range_over_its_expectation():
    """d2 = 2 / sqrt(pi) is the mean distance of two values of a normal distribution, in sigma."""
    found = limits_of(np.array([1.0, 3.0, 2.0, 2.5]), 4)
    assert found.centre == pytest.approx(2.125)
    assert found.sigma == pytest.approx((2.0 + 1.0 + 0.5) / 3.0 / (2.0 / np.sqrt(np.pi)), rel=1e-3)


def test_the_first_run_beyond_the_limits_and_a_shift_are_named():
    steady = np.tile([1.0, 1.1, 0.9, 1.05, 0.95], 6)
    far = trend_of("rms_N", rows([*steady[:22], 9.0, *steady[:4]]))
    assert far.paths[far.first_beyond] == "23.h5"
    shifted = trend_of("rms_N", rows([*steady, *(steady[:10] + 0.2)]))
    assert shifted.first_beyond == -1
    assert 30 <= shifted.first_shift <= 40
    quiet = trend_of("rms_N", rows(steady))
    assert (quiet.first_beyond, quiet.first_shift) == (-1, -1)
    assert list(quiet.lines())[-1] == "  within the limits"


@pytest.mark.parametrize("value", [0.1, 1 / 3, 0.7])
def test_equal_runs_are_within_their_limits_and_another_is_not(value):
    """The mean of twenty equal numbers may differ from them by a rounding."""
    equal = trend_of("x", rows([value] * 40))
    assert (equal.first_beyond, equal.first_shift) == (-1, -1)
    other = trend_of("x", rows([value] * 40 + [value * 1.01]))
    assert (other.first_beyond, other.first_shift) == (40, 40)


def test_a_figure_with_an_unknown_ending_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"x\.h5: no figure can end so: give \.png"):
        save([trend_of("x", rows([1.0] * 12))], "x", tmp_path / "x.h5")


def test_a_figure_is_written_for_a_figure_of_one_value(tmp_path):
    path = tmp_path / "trend.svg"
    save([trend_of("x", rows([1.0] * 12))], "x", path)
    assert b"<svg" in path.read_bytes()


def test_the_command_groups_runs_and_refuses_what_is_no_figure(tmp_path, monkeypatch, capsys):
    import json

    from hil.runs.catalogue import index

    monkeypatch.chdir(tmp_path)
    for i, value in enumerate([*TABLE_9_1[:12], 30.0]):
        path = Path(f"runs/{i:02d}.h5")
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x")
        stat = path.stat()
        row = {"path": path.name, "size_B": 1, "modified_ns": stat.st_mtime_ns, "rig": "miga6",
               "identity": f"{i:016d}", "time_utc": f"2026-10-{i + 1:02d}T00:00:00.000",
               "outcome": "complete", "rms_N": value, "specimen": "a"}  # fmt: skip
        index._write_rows(Path("runs"), [row])
    assert main(["runs", "--trend", "rms_N", "--by", "specimen", "--out", "t.png"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("specimen a: 13 runs, ")
    assert out[1] == "  beyond the limits first: 12.h5 (30)"
    assert Path("t.png").read_bytes()[:4] == b"\x89PNG"
    assert main(["runs", "--trend", "rms_N", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["trends"][0]["first_beyond"] == "12.h5"
    for word, said in (
        ("rig", "--trend rig: is no number"),
        ("tracking_rms_N", "--trend tracking_rms_N: needs 5 runs"),
        ("rsm_N", "--trend: no column 'rsm_N': did you mean 'rms_N'?"),
    ):
        assert main(["runs", "--trend", word]) == 2
        assert capsys.readouterr().err.startswith(said)
