"""Texts, events and the model of a recording, which HDF5 compares with no checksum."""

import shutil

import h5py
import numpy as np
import pytest

from hil.__main__ import main
from hil.record import repair
from hil.record.checksums import CHECKSUMS
from hil.record.layout import LIBVER
from record.mutations import set_attribute, spoil, unpacked


@pytest.fixture
def run(all_on, tmp_path):
    path = tmp_path / "run.h5"
    shutil.copyfile(all_on, path)
    return path


def change_digit(path):
    """A limit becomes another one, as with a program that edits attributes."""
    with h5py.File(path, "r+", libver=LIBVER) as file:
        text = file.attrs["experiment"]
        assert "vaf_min = 0.99" in text
        file.attrs["experiment"] = text.replace("vaf_min = 0.99", "vaf_min = 0.19")


def change_event(path):
    with h5py.File(path, "r+", libver=LIBVER) as file:
        event = file["events"][0]
        event["text"] = b"all is well"
        file["events"][0] = event


def test_a_recording_that_nobody_has_changed_is_whole(run, capsys):
    assert main(["verify", str(run)]) == 0
    assert f"{run}: whole" in capsys.readouterr().out


def test_a_digit_of_the_configuration_that_was_changed_is_one_line_that_names_it(run, capsys):
    change_digit(run)
    assert main(["verify", str(run)]) == 5
    said = f"{run}: not as it was written: attribute 'experiment'\n"
    assert capsys.readouterr().out == said


def test_a_changed_event_is_found(run):
    change_event(run)
    assert repair.faults_of(run) == ["not as it was written: 'events'"]


def test_a_changed_input_model_and_unit_are_found_and_what_was_added_is_not(run):
    with h5py.File(run, "r+", libver=LIBVER) as file:
        file["inputs"][0] = np.zeros(1, file["inputs"].dtype)[0]
        file["model/force_on_N"][...] = file["model/force_on_N"][...] + 1.0
        file["ticks/force_measured_N"].attrs["units"] = "kN"
        file["events"].attrs["of mine"] = "no"
        del file.attrs["operator"]
        file.attrs["of mine"] = "looked at on Monday"
        file["of mine"] = [1.0, 2.0]
    assert repair.faults_of(run) == [
        "not as it was written: attribute 'operator', attributes of 'events', "
        "attributes of 'ticks/force_measured_N', 'inputs', 'model/force_on_N'"
    ]


def test_of_many_changes_the_first_are_named(run):
    with h5py.File(run, "r+", libver=LIBVER) as file:
        for column in file["ticks"].values():
            column.attrs["role"] = "guessed"
        more = len(file["ticks"]) - 6
    (fault,) = repair.faults_of(run)
    assert fault.endswith(f" and {more} more")


def test_a_recording_of_before_has_no_checksums_and_is_whole_as_before(tmp_path):
    path = unpacked("miga6-pid", tmp_path)
    with h5py.File(path, "r+", libver=LIBVER) as file:
        assert CHECKSUMS not in file
        file.attrs["operator"] = "another"
    assert repair.faults_of(path) == []


def test_a_recovered_recording_has_the_checksums_of_its_new_texts(run):
    with h5py.File(run, "r+", libver=LIBVER) as file:
        file.attrs["outcome"] = "running"
        del file[CHECKSUMS]
    assert repair.recover(run) > 0
    assert repair.faults_of(run) == []
    change_digit(run)
    assert "not as it was written: attribute 'experiment'" in repair.faults_of(run)


def test_a_repair_says_what_was_changed_before_it(run):
    """It kept the changed text, which verified from then on."""
    change_digit(run)
    with h5py.File(run, "r+", libver=LIBVER) as file:
        file["ticks/force_measured_N"].resize(len(file["ticks/t_s"]) - 1, axis=0)
    assert repair.recover(run) > 0
    assert repair.faults_of(run) == []
    with h5py.File(run) as file:
        assert file["events"][-1]["text"] == b"not as it was written: attribute 'experiment'"


@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", '{"attributes": {}, "objects": 3, "values": {}}', "[" * 50_000, None]
)
def test_checksums_that_are_none_are_named(run, text):
    with h5py.File(run, "r+", libver=LIBVER) as file:
        del file[CHECKSUMS]
        if text is None:
            file.create_group(CHECKSUMS)
        else:
            file[CHECKSUMS] = np.frombuffer(text.encode(), np.uint8)
    assert repair.faults_of(run) == ["not as it was written: checksums"]


def test_a_damaged_text_of_checksums_is_a_fault_of_its_own(run):
    spoil(run, CHECKSUMS, 0)
    assert repair.faults_of(run) == ["checksums: damaged, a stored checksum does not match"]


def test_checksums_do_not_depend_on_how_a_text_is_stored(run):
    """Other programs that copy a recording write texts of a fixed length."""
    with h5py.File(run, "r+", libver=LIBVER) as file:
        for key, value in dict(file.attrs).items():
            if isinstance(value, str):
                set_attribute(file, key, value)
    assert repair.faults_of(run) == []
