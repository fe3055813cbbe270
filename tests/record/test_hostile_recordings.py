"""Recordings made by somebody who means harm: each attack, and what every reader answers.

A recording is data. Whoever opens one that came by mail must not run its code, read or write
another file through it, be drawn markup, or run out of memory.
"""

import ast
import hashlib
import json
import os
import re
import resource
import shutil
import stat
import tomllib

import h5py
import numpy as np
import pytest
import tomli_w

import hil
from hil.__main__ import main
from hil.ledger import Ledger
from hil.record.layout import LIBVER
from hil.record.safe_open import OVERRIDE

SECRET = "the key of somebody's safe"
MEMORY_B = 8 * 10**9  # of address space, far below what the files claim


@pytest.fixture
def hostile(all_on, tmp_path):
    """A sound recording in a folder of its own, to be changed for the worse."""
    folder = tmp_path / "mail"
    folder.mkdir()
    path = folder / "run.h5"
    shutil.copyfile(all_on, path)
    return path


@pytest.fixture
def secret(tmp_path):
    """A file that the recording has no business with."""
    path = tmp_path / "secret.h5"
    with h5py.File(path, "w") as file:
        file["values"] = np.zeros(2000)
        file["text"] = np.frombuffer(SECRET.encode(), dtype=np.uint8)
    return path


OPENERS = {
    "verify": ["verify", "{}"],
    "replay": ["replay", "{}"],
    "report": ["report", "{}"],
    "validate": ["report", "{}", "--validate"],
    "export": ["export", "{}"],
    "identify": ["identify", "{}", "--bootstrap", "0"],
    "recalibrate": ["recalibrate", "{}", "--with", "{record}"],
}


def words_of(opener, path, configs):
    record = configs.parent / "calibration/futek_9N.toml"
    return [word.format(path, record=record) for word in OPENERS[opener]]


def refused(words, capsys):
    """The one line with which a command refuses, exit code 2."""
    capsys.readouterr()
    assert main([str(word) for word in words]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1, said.err
    return said.err


def external_link(file, secret):
    del file["ticks/force_measured_N"]
    file["ticks/force_measured_N"] = h5py.ExternalLink(str(secret), "/values")


def soft_link(file, secret):
    del file["ticks/force_measured_N"]
    file["ticks/force_measured_N"] = h5py.SoftLink("/ticks/force_model_N")


def external_storage(file, secret):
    del file["ticks/force_measured_N"]
    file["ticks"].create_dataset(
        "force_measured_N", shape=(2000,), dtype="f8", external=[(str(secret), 0, 16000)]
    )


def virtual_dataset(file, secret):
    del file["ticks/force_measured_N"]
    layout = h5py.VirtualLayout(shape=(2000,), dtype="f8")
    layout[:] = h5py.VirtualSource(str(secret), "values", shape=(2000,))
    file["ticks"].create_virtual_dataset("force_measured_N", layout)


REACHING_OUT = {
    external_link: "an external link",
    soft_link: "a soft link",
    external_storage: "keeps its data in another file",
    virtual_dataset: "a virtual dataset",
}


@pytest.mark.parametrize("attack", REACHING_OUT, ids=lambda attack: attack.__name__)
@pytest.mark.parametrize("opener", OPENERS)
def test_a_recording_that_reads_another_file_is_refused_by_every_reader(
    attack, opener, hostile, secret, configs, capsys
):
    with h5py.File(hostile, "r+", libver=LIBVER) as file:
        attack(file, secret)
    line = refused(words_of(opener, hostile, configs), capsys)
    assert line.startswith(f"{hostile}: 'ticks/force_measured_N'")
    assert REACHING_OUT[attack] in line
    assert sorted(p.name for p in hostile.parent.iterdir()) == ["run.h5"]


def test_nothing_in_hil_opens_a_file_for_reading_but_the_one_that_refuses(configs):
    """Others open what the program itself made: a new file, or a copy of one that passed."""
    package = configs.parent / "hil"
    found = {
        str(path.relative_to(package)): re.findall(r"h5py\.File\((\w+), \"(\S+)\"", text)
        for path in package.rglob("*.py")
        if "h5py.File(" in (text := path.read_text())
    }
    assert found == {
        "record/read.py": [("path", "r")],
        "record/layout.py": [("path", "w"), ("path", "r+"), ("path", "r+")],
        "record/recorder.py": [("path", "r+")],
        "record/repair.py": [("partial", "x")],
        "calibrate/rewrite.py": [("partial", "r+"), ("partial", "r+")],
    }


def test_a_cut_off_recording_with_a_link_is_not_copied_through_it(hostile, secret, capsys):
    with h5py.File(hostile, "r+", libver=LIBVER) as file:
        file.attrs["outcome"] = "running"
        file["model/extra"] = h5py.ExternalLink(str(secret), "/text")
    before = hostile.read_bytes()
    assert "an external link" in refused(["recover", hostile], capsys)
    assert hostile.read_bytes() == before


def many_rows(file):
    for name in [*file["ticks"]]:
        file["ticks"][name].resize(10**11, axis=0)
    file["recorded_rows"][0] = 10**11


def many_rows_in_one_chunk(file):
    for name in [*file["ticks"]]:
        dtype, shape = file["ticks"][name].dtype, file["ticks"][name].shape[1:]
        kept = dict(file["ticks"][name].attrs)
        del file["ticks"][name]
        made = file["ticks"].create_dataset(
            name, shape=(10**11, *shape), dtype=dtype, chunks=(10**6, *shape), compression="gzip",
            compression_opts=9,
        )  # fmt: skip
        made.attrs.update(kept)
    file["recorded_rows"][0] = 10**11


def bomb(file):
    """40 GB of zeros in about 40 MB: deflate packs them a thousandfold."""
    del file["ticks/busy_s"]
    made = file["ticks"].create_dataset(
        "busy_s", shape=(5 * 10**9,), dtype="f8", chunks=(10**8,), compression="gzip"
    )
    with h5py.File("packed", "w", driver="core", backing_store=False) as other:
        source = other.create_dataset(
            "x", shape=(10**8,), dtype="f8", chunks=(10**8,), compression="gzip"
        )
        source[0] = 0.0
        _, chunk = source.id.read_direct_chunk((0,))
    for at in range(0, 5 * 10**9, 10**8):
        made.id.write_direct_chunk((at,), chunk)


def many_cells(file):
    del file["ticks/cells_reported"]
    file["ticks"].create_dataset(
        "cells_reported", shape=(2000, 10**8), dtype="u1", chunks=(256, 10**5)
    )


def one_thing_under_many_names(file):
    for i in range(20_000):
        file[f"ticks/x{i}_N"] = file["ticks/force_measured_N"]


def large_attribute(file):
    """A list of 60 000 texts, which may all lie in one place and be one long text."""
    file.attrs["operator"] = ["x"] * 3
    names = np.array(["x"] * 60_000, dtype=h5py.string_dtype())
    file.attrs.create("operator", names)


TOO_LARGE = {
    many_rows: "GB of rows",
    many_rows_in_one_chunk: "GB of rows",
    bomb: "GB of rows",
    many_cells: "GB of rows",
    one_thing_under_many_names: "a second name of the same thing",
    large_attribute: "attribute 'operator' of '/' has 60000 entries",
}


@pytest.fixture
def little_memory():
    """Whatever takes more memory than a recording of 2 s needs fails at once."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_B, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("attack", TOO_LARGE, ids=lambda attack: attack.__name__)
def test_sizes_that_no_run_could_have_are_refused_before_memory_is_taken(
    attack, hostile, configs, capsys
):
    with h5py.File(hostile, "r+", libver=LIBVER) as file:
        attack(file)
    assert hostile.stat().st_size < 100e6
    before_B = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for opener in ("verify", "replay", "report", "export", "identify"):
        line = refused(words_of(opener, hostile, configs), capsys)
        assert line.startswith(f"{hostile}: ")
        assert TOO_LARGE[attack] in line
    with pytest.raises(hil.errors.ConfigError):
        hil.open_run(hostile)
    after_B = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert after_B - before_B < 200e6


def test_rows_that_are_claimed_but_not_stored_are_no_whole_recording(hostile, capsys):
    with h5py.File(hostile, "r+", libver=LIBVER) as file:
        for name in [*file["ticks"]]:
            file["ticks"][name].resize(50_000, axis=0)
        file["recorded_rows"][0] = 50_000
    assert main(["verify", str(hostile)]) == 5
    said = capsys.readouterr().out
    assert "force_measured_N: claims 50000 rows" in said
    assert "50000 rows: its experiment has 5000 ticks" in said


@pytest.mark.parametrize("text", ["[" * 5000, "duration_s = = 1", "x = " + "[" * 5000])
def test_an_experiment_that_is_no_toml_is_one_line(text, hostile, configs, capsys):
    with h5py.File(hostile, "r+", libver=LIBVER) as file:
        file.attrs["experiment"] = text
    for opener in ("replay", "report", "identify"):
        line = refused(words_of(opener, hostile, configs), capsys)
        assert line.startswith(f"{hostile}: attribute 'experiment' is no TOML")


def test_a_run_that_needs_more_memory_than_there_is_says_so(hostile, capsys, monkeypatch):
    monkeypatch.setenv(OVERRIDE, "1e-4")
    line = refused(["report", hostile], capsys)
    assert f"may be taken: read it on a larger machine, or set {OVERRIDE}" in line
    monkeypatch.setenv(OVERRIDE, "1")
    assert main(["verify", str(hostile)]) == 0
    monkeypatch.setenv(OVERRIDE, "much")
    assert refused(["report", hostile], capsys) == f"{OVERRIDE} = much: give a number of GB\n"


def test_a_recording_that_was_repacked_with_compression_is_read_as_before(hostile):
    before = hil.open_run(hostile)
    with h5py.File(hostile, "r+", libver=LIBVER) as file:
        for name in [*file["ticks"]]:
            values, kept = file["ticks"][name][:], dict(file["ticks"][name].attrs)
            del file["ticks"][name]
            made = file["ticks"].create_dataset(
                name, data=values, maxshape=(None, *values.shape[1:]), compression="gzip"
            )
            made.attrs.update(kept)
    assert before.equals(hil.open_run(hostile))
    assert main(["verify", str(hostile)]) == 0


EVIL = """\
from pathlib import Path
Path({mark!r}).write_text("it ran")
import numpy as np
class Nothing:
    def __init__(self, facts, values):
        self.n = len(facts.cells)
    def step(self, now):
        return np.zeros(self.n)
"""


@pytest.fixture
def state(tmp_path, monkeypatch):
    """A user's state of their own: nothing is trusted."""
    folder = tmp_path / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    return folder / "hil" / "trusted"


@pytest.fixture
def mailed(configs, tmp_path, monkeypatch, state):
    """Somebody else's recording with a controller of their own, and what it leaves when it runs."""
    theirs, mark = tmp_path / "theirs", tmp_path / "mark"
    theirs.mkdir()
    (theirs / "mine.py").write_text(EVIL.format(mark=str(mark)))
    (theirs / "mine.toml").write_text(
        f'rig = "{configs / "miga6/rig.toml"}"\n[experiment]\nname = "gift"\nduration_s = 0.3\n'
        '[reference]\nkind = "steps"\nt_s = [0.1]\nforce_N = [1.0]\n'
        '[controller]\nkind = "mine.py:Nothing"\n'
    )
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("XDG_STATE_HOME", str(theirs / "state"))
        hil.run(theirs / "mine.toml", out=tmp_path / "mail" / "run.h5")
    mark.unlink()
    return tmp_path / "mail" / "run.h5", mark


RUNS_CODE = {
    "replay": OPENERS["replay"],
    "identify": OPENERS["identify"],
    "validate": OPENERS["validate"],
    "recalibrate": OPENERS["recalibrate"],
}


@pytest.mark.parametrize("opener", OPENERS)
def test_code_inside_a_recording_is_not_run_by_whoever_opens_it(opener, mailed, configs, capsys):
    path, mark = mailed
    code = main([str(word) for word in words_of(opener, path, configs)])
    said = capsys.readouterr()
    assert not mark.exists()
    assert code == (2 if opener in RUNS_CODE else 0)
    if opener in RUNS_CODE:
        source = EVIL.format(mark=str(mark))
        sha256 = hashlib.sha256(source.encode()).hexdigest()
        assert said.err.startswith(f"{path}: keeps Python code that has never run here")
        assert f"mine.py for controller, sha256 {sha256}" in said.err
        assert "with theirs/mine.toml, as the file says" in said.err
        assert f"hil replay {path} --show-code" in said.err
        assert f"hil replay {path} --trust {sha256}" in said.err


def test_trust_is_given_to_a_hash_once_and_kept_for_this_user_alone(mailed, state, capsys):
    path, mark = mailed
    assert main(["replay", str(path), "--show-code"]) == 0
    shown = capsys.readouterr().out
    assert EVIL.format(mark=str(mark)) in shown
    sha256 = shown.split("sha256 ")[1][:64]
    assert not mark.exists()
    assert main(["replay", str(path), "--trust", "0" * 64]) == 2
    assert f"keeps no code of that hash: {sha256}" in capsys.readouterr().err
    assert not mark.exists()
    assert main(["replay", str(path), "--trust", sha256]) == 0
    assert mark.read_text() == "it ran"
    assert main(["replay", str(path)]) == 0  # from now on
    assert state.read_text().startswith(f"{sha256} ")
    assert stat.S_IMODE(state.stat().st_mode) == 0o600
    assert stat.S_IMODE(state.parent.stat().st_mode) == 0o700


def test_the_hash_is_that_of_the_code_not_the_one_that_the_file_states(mailed, state, capsys):
    path, mark = mailed
    harmless = "0" * 63 + "1"
    state.parent.mkdir(parents=True)
    state.write_text(f"{harmless} somebody trusts this\n")
    state.chmod(0o600)
    with h5py.File(path, "r+", libver=LIBVER) as file:
        file["own/controller"].attrs["sha256"] = harmless
    assert harmless not in refused_lines(["replay", path], capsys)[0]
    assert not mark.exists()


def test_a_list_of_trust_that_others_may_write_is_not_believed(mailed, state, capsys):
    path, mark = mailed
    sha256 = hashlib.sha256(EVIL.format(mark=str(mark)).encode()).hexdigest()
    state.parent.mkdir(parents=True)
    state.write_text(f"{sha256} put here by somebody\n")
    for mode in (0o666, 0o620):
        state.chmod(mode)
        assert "others may have written it" in refused(["replay", path], capsys)
    state.chmod(0o600)
    os.chown(state, 12345, -1)
    assert "others may have written it" in refused(["replay", path], capsys)
    state.unlink()
    state.symlink_to(path)
    assert "cannot be read" in refused(["replay", path], capsys)
    assert not mark.exists()


def test_what_this_user_ran_here_replays_without_a_question(configs, mailed, state, tmp_path):
    _, mark = mailed
    hil.run(tmp_path / "theirs/mine.toml", out=tmp_path / "again.h5")
    assert main(["replay", str(tmp_path / "again.h5")]) == 0
    assert mark.exists()
    assert stat.S_IMODE(state.stat().st_mode) == 0o600


def test_code_may_come_from_a_file_that_the_user_names(mailed, tmp_path, capsys):
    path, mark = mailed
    mine = tmp_path / "mine.py"
    mine.write_text(EVIL.format(mark=str(mark)).replace('"it ran"', '"mine ran"'))
    assert main(["replay", str(path), "--code", str(mine)]) == 0
    said = capsys.readouterr()
    assert mark.read_text() == "mine ran"
    assert f"--code {mine}: differs from what was recorded: sha256 " in said.err
    assert said.out == f"{path}: identical in 300 rows\n"
    mark.unlink()
    assert "--code no.py: cannot be read" in refused(["replay", path, "--code", "no.py"], capsys)
    assert refused_lines(["replay", path], capsys)[0].startswith(f"{path}: keeps Python code")
    assert not mark.exists()


@pytest.mark.parametrize(
    "kind", ["evil.py:Nothing", "../evil.py:Nothing", "{folder}/evil.py:Nothing"]
)
def test_a_file_beside_the_recording_or_at_a_path_that_it_names_is_not_run(
    kind, hostile, tmp_path, configs, capsys, state
):
    """As when a folder of recordings is unpacked, and hil identify run on one of them."""
    mark, kind = tmp_path / "mark", kind.format(folder=hostile.parent)
    for folder in (hostile.parent, tmp_path):
        (folder / "evil.py").write_text(EVIL.format(mark=str(mark)))
    with h5py.File(hostile, "r+", libver=LIBVER) as file:
        table = tomllib.loads(file.attrs["experiment"])
        table["controller"] = {"kind": kind}
        table["reference"] = {"kind": "steps", "t_s": [0.1], "force_N": [1.0]}
        file.attrs["experiment"] = tomli_w.dumps(table)
    for opener in RUNS_CODE:
        assert main([str(word) for word in words_of(opener, hostile, configs)]) == 2
        assert "keeps no source of it, and no other file is run" in capsys.readouterr().err
    assert not mark.exists()


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


@pytest.mark.parametrize("page", PAGES)
def test_text_in_a_recording_is_no_markup_of_a_page(page, hostile):
    words, name = PAGES[page]
    with h5py.File(hostile, "r+", libver=LIBVER) as file:
        texts_of(file, BREAKING_OUT)
    assert main([word.format(hostile) for word in words]) in (0, 5)
    text = (hostile.parent / name).read_text()
    assert "&lt;" in text
    assert "<script" not in text.lower()
    assert "<img src=x" not in text
    assert text.lower().count("</title>") == text.lower().count("</style>") == 1


def test_dollar_signs_in_a_recording_are_no_formulas_of_a_figure(hostile):
    with h5py.File(hostile, "r+", libver=LIBVER) as file:
        texts_of(file, r"$\\frac{$")
    assert main(["report", str(hostile)]) == 0


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
    assert "no name that a run gives" in line
    assert sorted(p.name for p in hostile.parent.iterdir()) == ["run.h5"]


@pytest.mark.parametrize("name", ["../../x", "/tmp/x", "a<b", "\x1b[2J"])
def test_names_of_cells_are_looked_at_too(name, hostile, capsys):
    with h5py.File(hostile, "r+", libver=LIBVER) as file:
        del file["model/cells"]
        file["model/cells"] = np.array([name.encode()] * 6)
    assert "no name that a run gives" in refused(["export", hostile], capsys)


@pytest.mark.parametrize("to", ["csv", "mat", "mcap"])
def test_names_in_attributes_make_no_file_elsewhere(to, hostile, tmp_path):
    for text in ("../../escaped", str(tmp_path / "escaped")):
        with h5py.File(hostile, "r+", libver=LIBVER) as file:
            texts_of(file, text)
        for words in (["export", hostile, "--to", to], ["report", hostile],
                      ["identify", hostile, "--bootstrap", "0"]):  # fmt: skip
            assert main([str(word) for word in words]) in (0, 2, 5)
    made = {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()}
    assert made <= {f"mail/run{end}" for end in
                    (".h5", f".{to}", ".png", ".html", "-identified.html")}  # fmt: skip


def test_a_journal_names_no_file_outside_of_its_folder(configs, hostile, tmp_path, capsys):
    folder = tmp_path / "campaign"
    campaign = tmp_path / "gains.toml"
    head = {"name": "gains", "experiments": [str(configs / "slider/steps.toml")]}
    length = {"key": "experiment.duration_s", "levels": [0.02]}
    campaign.write_text(tomli_w.dumps({"campaign": head, "factors": {"length": length}}))
    for file in ("../mail/run.h5", str(hostile), "javascript:alert(1)"):
        shutil.rmtree(folder, ignore_errors=True)
        with Ledger(folder / "journal.jsonl") as ledger:
            ledger.add({"kind": "campaign", "name": "x"})
            ledger.add({"kind": "begin", "trial": 1, "attempt": 1, "file": file, "utc": "x"})
        before = hostile.read_bytes()
        for words in (["campaign", campaign, "--status", "--out", folder],
                      ["campaign", campaign, "--out", folder]):  # fmt: skip
            assert "is no recording in its folder" in refused(words, capsys)
        assert hostile.read_bytes() == before


def refused_lines(words, capsys):
    capsys.readouterr()
    assert main([str(word) for word in words]) == 2
    return capsys.readouterr().err.splitlines()


def test_no_module_makes_code_or_objects_of_data_but_the_one_for_code_of_ones_own(configs):
    """No pickle, no eval, no loader that builds objects: calibrations and ledgers are values."""
    package, found = configs.parent / "hil", set()
    for path in [*package.rglob("*.py"), *(configs.parent / "gui").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            name = ""
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func)
                allowed = [k.value for k in node.keywords if k.arg == "allow_pickle"]
                if any(getattr(value, "value", True) for value in allowed):
                    name = "pickle"
            elif isinstance(node, ast.Import | ast.ImportFrom):
                name = " ".join([getattr(node, "module", "") or "", *(a.name for a in node.names)])
            if re.search(r"^(eval|exec)$|pickle|shelve|marshal$|yaml|torch|joblib|dill", name):
                found.add((str(path.relative_to(configs.parent)), name))
    found = {(path, name) for path, name in found if "simdaq" not in path}
    assert found == {("hil/config/own.py", "exec")}
