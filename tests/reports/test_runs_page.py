"""One page of many runs: it is whole in itself, and what files say is text in it."""

import shutil
from datetime import datetime
from html.parser import HTMLParser

import pytest

import hil
from hil.reports.runs_page import thumbnail, write_page
from hil.runs.catalogue.query import Answer


class Parsed(HTMLParser):
    """Tags of a page, and its links."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.links, self.rows = [], [], 0
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [value for key, value in attrs if key in ("href", "src")]
        self.rows += tag == "tr"


@pytest.fixture
def recording(configs, tmp_path):
    config = hil.load(configs / "miga6/pid.toml", ("experiment.duration_s=0.05",))
    return hil.run(config, out=tmp_path / "runs/a b#1.h5")


def test_a_page_has_every_run_with_a_curve_and_a_safe_link(recording, tmp_path):
    evil = "<img src=x onerror=alert(1)>"
    shutil.copyfile(recording, recording.with_name("javascript:alert(1).h5"))
    (recording.parent / "text.h5").write_text("no recording")
    names = [recording.name, "javascript:alert(1).h5", "text.h5"]
    rows = [(datetime(2026, 10, 1), name, evil, 0.5) for name in names]
    page = tmp_path / "pages/all.html"
    page.parent.mkdir()
    write_page(recording.parent, Answer(["time_utc", "path", "operator", "rms_N"], rows), page)
    text = page.read_text()
    parsed = Parsed(text)
    assert parsed.rows == 1 + 3
    assert parsed.tags.count("svg") == 2
    assert "img" not in parsed.tags
    assert text.count(">SIMULATED<") == 2
    assert evil not in text
    assert parsed.links == [
        "./../runs/a%20b%231.h5", "./../runs/javascript%3Aalert%281%29.h5", "./../runs/text.h5",
    ]  # fmt: skip
    assert "http" not in text


def test_a_thumbnail_has_the_readings_of_a_device_that_is_read_now_and_then(configs, tmp_path):
    """Of every 7th row with a reading in every 20th there was a point in every 140th."""
    sets = ("experiment.duration_s=0.4", "devices.daq.every=20")
    run = hil.run(hil.load(configs / "miga6/all_on.toml", sets), out=tmp_path / "run.h5")
    _, curves = thumbnail(run)
    points = curves[-1][1].split()
    assert len(points) == 20
    assert float(points[-1].partition(",")[0]) == pytest.approx(1 + 118 * 380 / 399, abs=0.06)


def test_a_thumbnail_spans_its_picture(recording):
    simulated, curves = thumbnail(recording)
    assert simulated
    points = [tuple(map(float, pair.split(","))) for _, line in curves for pair in line.split()]
    x, y = zip(*points, strict=True)
    assert (min(y), max(y)) == (2.0, 26.0)
    assert 1.0 <= min(x) < max(x) <= 119.0
