"""A fatigue test runs every cycle once, goes on after a kill, and is stopped by its rule."""

import numpy as np
import pytest
import xarray as xr

from hil.errors import ConfigError
from hil.procedures.standard_tests import fatigue
from hil.procedures.standard_tests.cycles import SUMMARY, Summaries
from hil.procedures.standard_tests.fatigue import Columns, Values, spans, summarise, verdict
from hil.procedures.standard_tests.subject import subject_of


def rows(first, n, stroke=4.0, ohm=12.0):
    made = np.zeros(n, SUMMARY)
    made["cycle"], made["stroke"], made["ohm"] = np.arange(first, first + n), stroke, ohm
    return made


@pytest.mark.parametrize("done", [0, 1, 7, 99, 100, 101, 333])
def test_every_remaining_cycle_runs_once_and_every_hundredth_alone(done):
    values = Values(cycles=1000, whole_every=100, block=30)
    found = list(spans(done, values))
    cycles = [c for s in found for c in range(s.first, s.last + 1)]
    assert cycles == list(range(done + 1, 1001))
    assert all(s.first == s.last for s in found if s.whole)
    whole = [s.first for s in found if s.whole]
    assert whole == [c for c in cycles if c == 1 or c % 100 == 0]
    assert max(s.last - s.first + 1 for s in found) <= 30


def test_summaries_go_on_after_a_record_that_was_cut_off(tmp_path):
    path = tmp_path / "cycles.bin"
    Summaries(path).add(rows(1, 5))
    with path.open("ab") as file:
        file.write(b"\x06\x00\x00\x00torn")
    book = Summaries(path)
    assert book.n == 5
    book.add(rows(6, 2))
    assert Summaries(path).read()["cycle"].tolist() == [1, 2, 3, 4, 5, 6, 7]
    np.testing.assert_array_equal(book.thinned(3)["cycle"], [1, 4, 7])


def test_a_damaged_file_of_summaries_is_refused(tmp_path):
    path = tmp_path / "cycles.bin"
    Summaries(path).add(rows(3, 5))
    with pytest.raises(ConfigError, match="is damaged"):
        Summaries(path)


@pytest.mark.parametrize(
    ("stroke", "ohm", "words"),
    [
        (3.3, 12.0, ""),
        (3.1, 12.0, "22.5 % of the stroke is lost, limit 20 %"),
        (4.0, 13.1, ""),
        (4.0, 15.0, "the resistance has changed by +25.0 %, limit 20 %"),
        (4.0, 9.0, "the resistance has changed by -25.0 %, limit 20 %"),
        (4.0, np.nan, ""),
    ],
)
def test_the_rule_stops_what_has_lost_its_stroke_or_changed_its_resistance(stroke, ohm, words):
    assert verdict(rows(1, 20), rows(900, 20, stroke, ohm), Values()) == words


@pytest.mark.parametrize("heat_s", [0.05, 0.1, 0.5])
def test_a_stroke_is_whole_however_short_the_heating_is(heat_s):
    """3 mm while the cells are on, from 1 mm; no reading is of another part of a cycle."""
    values = Values(cycles=4, heat_s=heat_s, cool_s=0.3)
    t_s = 0.01 * np.arange(round(4 * (heat_s + 0.3) / 0.01))
    on = np.mod(t_s - 0.005, heat_s + 0.3) < heat_s  # a reading is of the period before it
    run = xr.Dataset({"x_m": ("tick", np.where(on, 0.004, 0.001))}, {"t_s": ("tick", t_s)})
    found = summarise(run, 1, 4, values, Columns("x_m", "", "", "", ""))
    np.testing.assert_allclose(found["stroke"], 0.003, rtol=1e-6)
    np.testing.assert_allclose(found["cold"], 0.001, rtol=1e-6)


def test_a_million_cycles_stay_below_a_gigabyte():
    """Summaries, and recordings of 1.92 MB (measured for a cycle of 6 s on configs/isotonic)."""
    values = Values()
    whole = sum(s.whole for s in spans(0, values))
    assert values.cycles == 1_000_000
    assert values.cycles * SUMMARY.itemsize + whole * 1.92e6 < 1e9


def test_a_folder_of_another_test_is_refused(tmp_path, configs):
    rig = configs / "isotonic" / "rig.toml"
    subject = subject_of(rig, tmp_path)
    fatigue._refuse_other(Values(), subject, tmp_path)
    fatigue._refuse_other(Values(cycles=5), subject, tmp_path)
    with pytest.raises(ConfigError, match="with other settings"):
        fatigue._refuse_other(Values(heat_s=1.0), subject, tmp_path)
    with pytest.raises(ConfigError, match=r"longer than guard\.cell_on_max_s = 20"):
        fatigue._refuse_other(Values(heat_s=30.0), subject, tmp_path)
