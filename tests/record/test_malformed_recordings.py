"""Recordings whose attributes and datasets are of another kind than a run writes.

Whatever stands in them, a command answers with one line and exit code 2, or does its work: what is
wrong with a file is no internal error.
"""

import itertools
import json
import tomllib

import h5py
import numpy as np
import pytest
import tomli_w

from hil.__main__ import main
from hil.record import shapes
from hil.record.layout import LIBVER
from record.mutations import DEEP, mutated, set_attribute, truncated, unpacked

OPENERS = {
    "verify": ["verify", "{}"],
    "report": ["report", "{}"],
    "validate": ["report", "{}", "--validate"],
    "replay": ["replay", "{}"],
    "show code": ["replay", "{}", "--show-code"],
    "export csv": ["export", "{}"],
    "export mat": ["export", "{}", "--to", "mat"],
    "export mcap": ["export", "{}", "--to", "mcap"],
    "identify": ["identify", "{}", "--bootstrap", "0"],
    "recover": ["recover", "{}"],
    "recalibrate": ["recalibrate", "{}", "--with", "{record}"],
}
WRONG_JSON = {
    "a list where a table belongs": ("software", "[1, 2]", "is no table"),
    "no JSON": ("summary", "{", "is not JSON"),
    "a number": ("summary", "7", "is no table"),
    "nested deeply": ("software", DEEP, "is nested too deeply"),
    "nested in a known table": ("summary", '{"x": ' + "[" * 30 + "]" * 30 + "}", "too deeply"),
    "NaN": ("summary", '{"loop_s": NaN}', "NaN is not a JSON value"),
    "a number too large": ("summary", '{"loop_s": 1e999}', "'loop_s' is not a number"),
    "a number as text": ("summary", '{"room": {"ambient_C": "20"}}', "is not a number"),
    "a text where a list belongs": ("summary", '{"first_fault": "x"}', "'first_fault' is no list"),
    "a key that is missing": ("summary", '{"signals": {"x": {"vaf": 1}}}', "has no 'units'"),
    "a history that is a table": ("recalibrated", "{}", "is no list"),
    "a number for a text": ("software", 3, "is not a text"),
    "a list for a text": ("experiment", [1.0, 2.0], "is not a text"),
    "text that is not UTF-8": ("operator", b"\xff\xfe", "is not a text, a number or a list"),
    "a seed below 0": ("seed", -1, "is not a whole number from 0 on"),
    "a time that is none": ("created_utc", "yesterday", "is not a time"),
}


@pytest.fixture(scope="module")
def pid(tmp_path_factory):
    return unpacked("miga6-pid", tmp_path_factory.mktemp("pid")).read_bytes()


@pytest.fixture
def path(pid, tmp_path):
    path = tmp_path / "run.h5"
    path.write_bytes(pid)
    return path


def answered(opener, path, configs, capsys):
    """Exit code of a command and what it says; no internal error, one line where it refuses."""
    record = configs.parent / "calibration/futek_9N.toml"
    code = main([word.format(path, record=record) for word in OPENERS[opener]])
    said = capsys.readouterr().err
    assert code != 1, said
    if code == 2:
        assert said.count("\n") == 1 or "contains Python code" in said, said
        assert str(path) in said
    return code, said


# Every command with one of them and each of them with one command; all with all in ./slow-tests.
PAIRED = zip(WRONG_JSON, itertools.cycle(OPENERS), strict=False)


@pytest.mark.parametrize(
    ("wrong", "openers"),
    [pytest.param(wrong, (opener,), id=f"{wrong}-{opener}") for wrong, opener in PAIRED]
    + [pytest.param(wrong, tuple(OPENERS), marks=pytest.mark.slow) for wrong in WRONG_JSON],
)
def test_an_attribute_of_another_kind_is_one_line_in_every_command(
    wrong, openers, path, configs, capsys
):
    key, value, expected = WRONG_JSON[wrong]
    with h5py.File(path, "r+", libver=LIBVER) as file:
        set_attribute(file, key, value)
    for opener in openers:
        code, said = answered(opener, path, configs, capsys)
        assert code == 2
        assert said.startswith(f"{path}: attribute '{key}' ")
        assert expected in said
        assert said.endswith(": use the original file\n")


CHANGES = {
    "ticks/force_measured_N": "columns of 'ticks' are missing",
    "ticks/t_s": "column 'ticks/t_s' is missing",
    "ticks": "'ticks' is not a group of columns",
    "events": "'events' is not a list of t_s, level, source, text",
    "calibration/force terminal": "attribute 'terminal' of 'calibration/force' is missing",
    "ticks/t_s units": "attribute 'units' of 'ticks/t_s' is missing",
}


@pytest.mark.slow_beyond(2)
@pytest.mark.parametrize("what", CHANGES)
def test_what_was_taken_out_of_a_recording_is_named(what, path, configs, capsys):
    name, _, key = what.partition(" ")
    with h5py.File(path, "r+", libver=LIBVER) as file:
        if key:
            del file[name].attrs[key]
        else:
            del file[name]
    for opener in OPENERS:
        code, said = answered(opener, path, configs, capsys)
        assert (code, said) == (2, f"{path}: {CHANGES[what]}{said.split(CHANGES[what])[1]}")


def test_a_column_of_other_cells_than_the_run_names_is_refused(path, configs, capsys):
    with h5py.File(path, "r+", libver=LIBVER) as file:
        kept = dict(file["ticks/cells_reported"].attrs)
        del file["ticks/cells_reported"]
        file["ticks/cells_reported"] = np.zeros((100, 5), dtype="u1")
        file["ticks/cells_reported"].attrs.update(kept)
    for opener in OPENERS:
        code, said = answered(opener, path, configs, capsys)
        assert code == 2
        assert "'ticks/cells_reported' has 5 values a row, 'model/cells' names 6" in said


@pytest.mark.parametrize("text", ["...", "a = " + "[" * 5000], ids=["no TOML", "nested deeply"])
@pytest.mark.parametrize("opener", ["replay", "identify"])
def test_a_calibration_that_is_none_is_one_line(path, configs, capsys, opener, text):
    with h5py.File(path, "r+", libver=LIBVER) as file:
        set_attribute(file["calibration/force"], "record", text)
    code, said = answered(opener, path, configs, capsys)
    assert code == 2
    assert said.startswith(f"{path}: ")


def test_rows_without_a_time_are_named(path, capsys):
    with h5py.File(path, "r+", libver=LIBVER) as file:
        file["ticks/t_s"][50:] = np.nan
    for words in (["report", str(path)], ["export", str(path)]):
        assert main(words) == 2
        assert capsys.readouterr().err.startswith(
            f"{path}: 'ticks/t_s' has rows without a time: use"
        )


NAMES = ("miga6-pid", "own-controller", "wires4-follow", "slider-steps", "body-sway")
SEEDS = [
    range(2),
    pytest.param((2, *range(5, 200)), marks=pytest.mark.slow),
]


@pytest.mark.slow_beyond(2)
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::UserWarning")
@pytest.mark.parametrize("seeds", SEEDS, ids=["few", "many"])
@pytest.mark.parametrize("name", NAMES)
def test_no_change_of_a_recording_is_an_internal_error(name, seeds, tmp_path, configs, capsys):
    for seed in seeds:
        path = unpacked(name, tmp_path)
        if seed % 8 == 7:
            truncated(path, seed)
        else:
            mutated(path, seed)
        changed = path.read_bytes()
        for opener in ("verify", "report", "export csv", "export mat", "recover", "show code"):
            for made in tmp_path.iterdir():
                made.unlink()
            path.write_bytes(changed)
            answered(opener, path, configs, capsys)


def test_a_rig_without_cells_is_exported_to_matlab(tmp_path):
    path = unpacked("body-sway", tmp_path)
    assert main(["export", str(path), "--to", "mat"]) == 0
    assert path.with_suffix(".mat").stat().st_size > 1000


def test_what_a_later_version_adds_to_a_summary_passes(path):
    with h5py.File(path, "r+", libver=LIBVER) as file:
        summary = json.loads(file.attrs["summary"])
        summary["later"] = {"any": [1, "x", None]}
        file.attrs["summary"] = json.dumps(summary)
        file.attrs["later"] = "text"
    assert main(["report", str(path)]) == 0


@pytest.mark.parametrize(
    ("text", "fault"), [("{}", ""), ("null", "no table"), ('{"rows": null}', "")]
)
def test_a_shape_says_what_is_wrong(text, fault):
    said = shapes.fault_of(text, shapes.SUMMARY)
    assert fault in said
    assert bool(fault) == bool(said)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("mass_kg", "expected"),
    [(1e-30, "a mass or spring is many orders off"), (1e12, "no stable observer"),
     (1e30, "no stable observer")],
)  # fmt: skip
@pytest.mark.parametrize("opener", ["validate", "replay", "identify"])
def test_masses_that_nobody_can_calculate_with_are_one_line_and_no_warning(
    mass_kg, expected, opener, path, configs, capsys
):
    with h5py.File(path, "r+", libver=LIBVER) as file:
        table = tomllib.loads(file.attrs["experiment"])
        table["model"]["arrays"]["muscle"]["mass_kg"] = [mass_kg]
        file.attrs["experiment"] = tomli_w.dumps(table)
    code, said = answered(opener, path, configs, capsys)
    assert code == 2
    assert said.startswith(f"{path}: observer: ")
    assert expected in said
