"""The page of a run in Chromium: its curves are zoomed and read with the mouse, and it prints."""

import re

import pytest

import hil
from hil.reports.run_report import write_report
from watch.chromium import browser

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]
PLOT = "document.querySelectorAll('.u-over')[{}].getBoundingClientRect().toJSON()"
TIME = "document.querySelectorAll('.uplot')[{}].querySelector('.u-value').textContent"


@pytest.fixture(scope="module")
def tab(tmp_path_factory, configs):
    folder = tmp_path_factory.mktemp("page")
    run = hil.run(hil.load(configs / "miga6/pid.toml", ("experiment.duration_s=4.0",)),
                  out=folder / "run.h5")  # fmt: skip
    _, page = write_report(run)
    with browser(folder / "chromium") as one:
        one.open(page.as_uri(), height=1200)
        one.wait("document.querySelectorAll('.uplot').length > 2")
        yield one


def time_at(tab, chart, share):
    """What the legend of a chart says of the time at this share of its width."""
    box = tab.evaluate(PLOT.format(chart))
    tab.point(box["left"] + share * box["width"], box["top"] + 0.5 * box["height"])
    return float(tab.wait(f"parseFloat({TIME.format(chart)}) >= 0 && {TIME.format(chart)}"))


def test_dragging_over_a_curve_zooms_all_and_a_double_click_shows_all_again(tab):
    whole_s = [time_at(tab, chart, 0.25) for chart in (0, 1)]
    assert whole_s == pytest.approx([1.0, 1.0], abs=0.02)
    box = tab.evaluate(PLOT.format(0))
    y = box["top"] + 0.5 * box["height"]
    tab.mouse(*((box["left"] + share * box["width"], y) for share in (0.5, 0.6, 0.75)))
    zoomed_s = [time_at(tab, chart, share) for chart in (0, 1) for share in (0.01, 0.99)]
    assert zoomed_s == pytest.approx([2.0, 3.0, 2.0, 3.0], abs=0.03)
    tab.evaluate("document.querySelector('.u-over').dispatchEvent(new MouseEvent('dblclick'))")
    assert time_at(tab, 1, 0.25) == pytest.approx(1.0, abs=0.02)
    assert tab.said == []


def test_a_name_hides_its_curve_and_a_button_changes_the_axis(tab):
    names = "[...document.querySelectorAll('.uplot')[0].querySelectorAll('.u-series')]"
    at = f"{names}[1].querySelector('.u-label').getBoundingClientRect().toJSON()"
    for hidden in (True, False):
        box = tab.evaluate(at)
        tab.mouse((box["left"] + 4.0, box["top"] + 4.0))
        assert tab.evaluate(f"{names}[1].classList.contains('u-off')") is hidden
    tab.evaluate("document.querySelector('.panel button').click()")
    assert tab.evaluate("document.querySelector('.panel button').textContent") == "linear"
    assert time_at(tab, 0, 0.25) == pytest.approx(1.0, abs=0.02)
    assert tab.said == []


def test_it_prints_its_picture_and_no_controls(tab):
    tab.media("print")
    shown = "getComputedStyle(document.querySelector('{}')).display"
    assert [tab.evaluate(shown.format(x)) for x in ("#plots", ".hint")] == ["none", "none"]
    assert tab.evaluate(shown.format(".still")) == "block"
    image, page = (f"document.querySelector('{x}').getBoundingClientRect().right"
                   for x in (".still", "body"))  # fmt: skip
    assert tab.evaluate(f"{image} <= {page}")
    tab.media("")
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", tab.printed())) <= 12
