"""Text and names in a recording are no markup of a page, no paths and no control sequences."""

import json
import shutil
import tomllib

import h5py
import numpy as np
import pytest
import tomli_w

from hil.__main__ import main
from hil.record.append_log import AppendLog
from hil.record.layout import LIBVER
from pages.test_markup import OWN_SCRIPTS
from record.openers import refused, words_of

MARKUP = "<script>alert(1)</script><img src=x onerror=alert(2)>"
BREAKING_OUT = "</title></style></script>" + MARKUP
ESCAPES = "\x1b]0;yours\x07\x1b[2J\x9b31m\u202egnp.exe"


def texts_of(file, text):
    """Put a text wherever a recording has room for any."""
    for group in [file, *file["ticks"].values(), *file["calibration"].values(),
                  *file["records"].values()]:  # fmt: skip
        for key, value in dict(group.attrs).items():
            known = ("format", "created_utc", "outcome", "role", "clock", "place", "force_signal")
            if isinstance(value, str) and key not in (*known, "experiment", "summary", "record"):
                if key == "software":
                    text_there = json.dumps({text: text})
                elif key == "valid_until":
                    continue
                else:
                    text_there = text
                group.attrs[key] = text_there
    file["ticks/fault_bits"].attrs["flags"] = [text] * 8
    summary = json.loads(file.attrs["summary"])
    summary["first_fault"] = summary["faults"] = [text]
    summary["stopped_by"] = summary["error"] = text
    summary["calibration"]["expired"] = summary["calibration"]["assumed"] = [text]
    summary["timing"]["verdict"] = text
    file.attrs["summary"] = json.dumps(summary)
    for name in ("events", "inputs"):
        rows = file[name][:]
        for field in ("level", "source", "text", "name"):
            if field in rows.dtype.names:
                rows[field] = text.encode()[: rows.dtype[field].itemsize]
        file[name][:] = rows
    table = tomllib.loads(file.attrs["experiment"])
    table["experiment"]["name"] = table["experiment"]["operator"] = "".join(
        c for c in text if c.isprintable()
    )
    file.attrs["experiment"] = tomli_w.dumps(table)


PAGES = {
    "report": (["report", "{}"], "run.html"),
    "validate": (["report", "{}", "--validate"], "run-validation.html"),
    "identify": (["identify", "{}", "--bootstrap", "0"], "run-identified.html"),
}


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize("page", PAGES)
def test_text_in_a_recording_is_no_markup_of_a_page(page, hostile):
    words, name = PAGES[page]
    with h5py.File(hostile, "r+", libver=LIBVER) as file:
        texts_of(file, BREAKING_OUT)
    assert main([word.format(hostile) for word in words]) in (0, 5)
    text = (hostile.parent / name).read_text()
    assert "&lt;" in text
    assert text.lower().count("<script") == (OWN_SCRIPTS if page == "report" else 0)
    assert "<img src=x" not in text
    assert text.lower().count("</title>") == text.lower().count("</style>") == 1


def test_dollar_signs_in_a_recording_are_no_formulas_of_a_figure(hostile):
    with h5py.File(hostile, "r+", libver=LIBVER) as file:
        texts_of(file, r"$\\frac{$")
    assert main(["report", str(hostile)]) == 0


@pytest.mark.slow
def test_escape_sequences_in_a_recording_do_not_reach_the_terminal(hostile, configs, capfd):
    with h5py.File(hostile, "r+", libver=LIBVER) as file:
        texts_of(file, ESCAPES)
        file.attrs["outcome"] = ESCAPES
    for opener in ("verify", "report", "replay", "validate", "identify", "recalibrate"):
        main([str(word) for word in words_of(opener, hostile, configs)])
    main(["recover", str(hostile)])
    with h5py.File(hostile, "r+", libver=LIBVER) as file:
        file.attrs["format"] = ESCAPES
    main(["verify", str(hostile)])
    said = capfd.readouterr()
    assert "outcome '\\x1b]0;yours\\x07" in said.out
    for text in (said.out, said.err):
        assert all(c.isprintable() or c == "\n" for c in text.replace("\r", ""))


@pytest.mark.parametrize("name", ["..", "a\\b", "a\x1b[2Jb", "<b>x", "$x$", "a'b"])
@pytest.mark.parametrize("group", ["ticks", "calibration", "records", "model", "raw"])
def test_names_that_lead_out_of_a_folder_or_mean_something_elsewhere_are_refused(
    group, name, hostile, capsys
):
    if group == "records" and not set(name) & set(".\\\x1b"):
        return  # names of records are names of their files, which may have any of these
    with h5py.File(hostile, "r+", libver=LIBVER) as file:
        h5py.h5g.create(file.require_group(group).id, name.encode())
    line = refused(["export", hostile], capsys)
    assert "not a name that a run writes" in line
    assert sorted(p.name for p in hostile.parent.iterdir()) == ["run.h5"]


@pytest.mark.parametrize("name", ["../../x", "/tmp/x", "a<b", "\x1b[2J"])
def test_names_of_cells_are_looked_at_too(name, hostile, capsys):
    with h5py.File(hostile, "r+", libver=LIBVER) as file:
        del file["model/cells"]
        file["model/cells"] = np.array([name.encode()] * 6)
    assert "not a name that a run writes" in refused(["export", hostile], capsys)


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize(
    ("words", "ends"),
    [
        (["export", "--to", "csv"], (".csv",)),
        (["export", "--to", "mat"], (".mat",)),
        (["export", "--to", "mcap"], (".mcap",)),
        (["report"], (".png", ".html")),
        (["identify", "--bootstrap", "0"], ("-identified.html",)),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
@pytest.mark.parametrize(
    "escape",
    ["../../escaped", pytest.param("{tmp_path}/escaped", marks=pytest.mark.slow)],
    ids=["relative", "absolute"],
)
def test_names_in_attributes_make_no_file_elsewhere(escape, words, ends, hostile, tmp_path):
    with h5py.File(hostile, "r+", libver=LIBVER) as file:
        texts_of(file, escape.format(tmp_path=tmp_path))
    assert main([*words, str(hostile)]) in (0, 2, 5)
    made = {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()}
    assert made <= {f"mail/run{end}" for end in (".h5", *ends)}


def test_a_journal_names_no_file_outside_of_its_folder(configs, hostile, tmp_path, capsys):
    folder = tmp_path / "campaign"
    campaign = tmp_path / "gains.toml"
    head = {"name": "gains", "experiments": [str(configs / "slider/steps.toml")]}
    length = {"key": "experiment.duration_s", "levels": [0.02]}
    campaign.write_text(tomli_w.dumps({"campaign": head, "factors": {"length": length}}))
    for file in ("../mail/run.h5", str(hostile), "javascript:alert(1)"):
        shutil.rmtree(folder, ignore_errors=True)
        with AppendLog(folder / "journal.jsonl") as log:
            log.add({"kind": "campaign", "name": "x"})
            log.add({"kind": "begin", "trial": 1, "attempt": 1, "file": file, "utc": "x"})
        before = hostile.read_bytes()
        for words in (["campaign", campaign, "--status", "--out", folder],
                      ["campaign", campaign, "--out", folder]):  # fmt: skip
            assert "is not a recording in its folder" in refused(words, capsys)
        assert hostile.read_bytes() == before
