"""Text from recordings, journals, logbooks and configurations is no markup of a page."""

import json
import re
from html.parser import HTMLParser

import h5py
import pytest
import tomli_w

from hil.__main__ import main
from hil.record.append_log import AppendLog
from hil.record.layout import LIBVER
from hil.runs.logbook import Logbook

TEXTS = {
    "script": "<script>alert(1)</script>",
    "end of title": "</title></style></head><script>alert(1)</script>",
    "attribute": '" onload="alert(1)" x=\'',
    "link": "javascript:alert(1)",
    "picture": "<svg onload=alert(1)><title>x</title></svg>",
    "formula": r"$\frac{$ $\undefined",
    "template": "{{ 7 * 7 }}{% raw %}",
}


SHORT = ["<script>$\\frac{$", "</title><b>"]  # what stands in a figure


class Seen(HTMLParser):
    """Elements and attributes that a browser makes of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.handlers, self.links, self.text = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        for name, value in attrs:
            if name.startswith("on"):
                self.handlers.append(name)
            if name in ("href", "src"):
                self.links.append(value)

    def handle_data(self, data):
        self.text.append(data)


OWN_SCRIPTS = 3  # of a report: its curves, the library that draws them, and what calls it


def assert_is_text(page, text, n_scripts=0):
    """The page says the text, and a browser makes nothing else of it."""
    seen = Seen(page)
    assert not {"svg", "iframe", "object"} & set(seen.tags)
    assert seen.tags.count("script") == page.lower().count("<script") == n_scripts
    assert seen.tags.count("title") == 1
    assert not seen.handlers
    assert all(re.match(r"data:image/png;base64,|[\w./-]+$", link) for link in seen.links)
    assert text in " ".join(seen.text)
    assert "49" not in re.findall(r"<h1>(.*?)</h1>", page, re.DOTALL)[0]


@pytest.mark.slow
def test_texts_of_a_campaign_its_journal_and_recordings_are_no_markup(rigs, monkeypatch):
    text = " ".join(TEXTS.values())
    monkeypatch.chdir(rigs / "slider")
    head = {"name": text, "experiments": ["steps.toml"], "operator": text}
    factors = {
        "length": {"key": "experiment.duration_s", "levels": [0.02, 0.03]},
        "name": {"key": "experiment.name", "levels": SHORT},
    }
    (rigs / "slider/it.toml").write_text(tomli_w.dumps({"campaign": head, "factors": factors}))
    assert main(["campaign", "it.toml", "--out", "out"]) == 0
    recording = next((rigs / "slider/out").rglob("*.h5"))
    with h5py.File(recording, "r+", libver=LIBVER) as file:
        for column in file["ticks"].values():
            for key in ("units", "description", "role"):
                column.attrs[key] = text
        file.attrs["experiment_name"] = file.attrs["operator"] = text
    with AppendLog(rigs / "slider/out/journal.jsonl") as log:
        log.add({"kind": "skip", "trial": 1, "why": text, "utc": "x"})
        log.add({"kind": "stop", "why": text, "utc": "x"})
    assert main(["campaign", "it.toml", "--out", "out", "--status"]) in (0, 5)
    assert_is_text((rigs / "slider/out/campaign.html").read_text(), text)


@pytest.mark.parametrize("name", ["end of title", "formula", "template"])
def test_titles_and_texts_of_a_report_are_no_markup(name, all_on, tmp_path):
    text = TEXTS[name]
    path = tmp_path / "run.h5"
    path.write_bytes(all_on.read_bytes())
    with h5py.File(path, "r+", libver=LIBVER) as file:
        file.attrs["experiment_name"] = file.attrs["operator"] = text
        file.attrs["software"] = json.dumps({text: text})
    assert main(["report", str(path)]) == 0
    assert_is_text(path.with_suffix(".html").read_text(), text, OWN_SCRIPTS)


def test_texts_of_a_logbook_do_not_steer_a_terminal(tmp_path, capsys):
    """Its page is the terminal: there, control sequences are the markup."""
    text = "\x1b]0;yours\x07\x1b[2J\x9b31m\u202egnp.exe\r\nover"
    book = Logbook(tmp_path, "A-1", simulated=False)
    book.add({"kind": "note", "note": text, "by": text})
    book.add({"kind": "begin", "run": "1", "file": text, "pid": 1, "pid_started": "0",
              "host": "elsewhere"})  # fmt: skip
    assert main(["logbook", "--folder", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "\\x1b]0;yours\\x07" in said
    assert all(c.isprintable() or c == "\n" for c in said)
