"""The curves of a run's page: what is shown, how much of it, and that the page is whole."""

import base64
import hashlib
import json
import re

import numpy as np
import pytest
import xarray as xr

import hil
from hil.loop.frame import CELL_UNKNOWN
from hil.pages.style import MEASURED
from hil.pages.vendored import permitted, plotting
from hil.reports.plots import marks, plots_json, shortened
from hil.reports.run_report import _duration, _p, write_report
from hil.validation.band import band_of


@pytest.fixture(scope="module")
def recording(tmp_path_factory, configs):
    path = tmp_path_factory.mktemp("plots") / "run.h5"
    config = hil.load(configs / "miga6/pid.toml", ["experiment.duration_s=1.0"])
    return hil.run(config, out=path)


def test_every_value_of_a_short_run_is_there(recording):
    run = hil.open_run(recording)
    data = json.loads(plots_json(run, band_of(recording, run)))
    force = data["panels"][0]
    assert force["label"] == "force [N]"
    assert [c["label"] for c in force["curves"]][:3] == [
        "measured",
        "simulated (twin)",
        "set point",
    ]
    assert force["curves"][0]["color"] == MEASURED
    np.testing.assert_allclose(data["t_s"], run.t_s.values, rtol=1e-8)
    np.testing.assert_allclose(force["curves"][0]["values"], run.force_measured_N.values, rtol=1e-4)
    difference = data["panels"][1]["curves"][0]["values"]
    expected = run.force_measured_N.values - run.force_model_N.values
    np.testing.assert_allclose(difference, expected, rtol=1e-4, atol=1e-12)
    assert data["panels"][-1]["steps"]  # a virtual clock has no panel of lateness
    assert len(data["panels"][-1]["curves"]) == 6


def test_a_cell_that_a_late_answer_leaves_unknown_is_drawn_as_it_was(recording):
    run = hil.open_run(recording).load()
    on = run.cells_reported.values == 1
    at = int(np.flatnonzero(on[:, 0])[-1])
    assert on[at - 1, 0]
    run.cells_reported.values[at] = CELL_UNKNOWN
    cells = json.loads(plots_json(run, band_of(recording, run)))["panels"][-1]
    np.testing.assert_allclose(cells["curves"][0]["values"][at], 1.8)
    np.testing.assert_allclose(cells["curves"][5]["values"][at], 6.0 + 0.8 * on[at - 1, 5])


def test_late_ticks_are_no_marks_beside_warnings_and_the_trip():
    """A page of a busy computer began with seventy lines about them, and as many in each chart."""
    events = {
        "t_s": [0.0, 0.1, 0.2, 0.3],
        "level": ["info", "warning", "warning", "fault"],
        "source": ["self-test", "kernel", "board", "guard"],
        "text": ["tested", "late by 600 us", "muscle.1 is open", "force_high"],
    }
    run = xr.Dataset({f"event_{name}": ("event", values) for name, values in events.items()})
    assert [mark["text"] for mark in marks(run)] == ["muscle.1 is open", "force_high"]


@pytest.mark.parametrize("n", [1000, 8000, 8001, 123_457])
def test_a_long_curve_keeps_its_ends_and_its_peaks(n):
    values = np.sin(np.linspace(0.0, 20.0, n))
    values[n // 3], values[-1] = 7.0, -5.0
    short = shortened(values, 600)
    assert len(short) <= max(600, 1)
    assert short.max() == 7.0
    assert short[-2:].min() == -5.0  # the end is not cut off
    gap = np.full(n, np.nan)
    assert np.isnan(shortened(gap, 600)).all()


def test_a_page_is_one_file_that_asks_nothing_of_the_network(recording):
    _, page = write_report(recording)
    text = page.read_text(encoding="utf-8")
    assert page.stat().st_size < 3e6
    assert plotting()["uplot"] in text
    assert not re.search(r"(?:src|href)\s*=\s*[\"']https?:", text)
    assert text.count("SIMULATED") == 1
    assert ">0 µs<" not in text
    assert "p &lt; 0.001" in text


@pytest.mark.parametrize(
    ("value_s", "text"),
    [(0.01479, "14.8 ms"), (2.5, "2.5 s"), (4.85e-5, "48.5 µs"), (0.0, "0 µs"), (None, "–")],
)
def test_a_time_has_the_unit_that_suits_it(value_s, text):
    assert _duration(value_s) == text


def test_a_probability_has_no_digits_that_mean_nothing():
    assert _p(1.937e-286) == "p < 0.001"
    assert _p(0.04321) == "0.0432"


def test_a_server_may_permit_the_scripts_of_a_report_and_no_other(recording):
    _, page = write_report(recording)
    text = page.read_text(encoding="utf-8")
    digests = [hashlib.sha256(one.encode()).digest()
               for one in re.findall(r"<script>(.*?)</script>", text, re.DOTALL)]  # fmt: skip
    shown = [f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests]
    assert permitted().split() == shown
