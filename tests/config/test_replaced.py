"""Configuration keys that were renamed: the old spelling is read, with one warning."""

import pytest

from hil.config import replaced
from hil.config.files import read_merged
from hil.errors import ConfigError
from hil.experiment.load import load
from hil.experiment.recorded import as_it_meant


@pytest.fixture
def pulse(rigs, monkeypatch):
    monkeypatch.setattr(replaced, "_printed", set())
    rig = rigs / "wires4/rig.toml"
    rig.write_text(rig.read_text() + '\n[article]\nserial = "W4-02"\nlogbook = "books"\n')
    return rigs / "wires4/pulse.toml"


def test_a_table_under_its_old_name_is_read_with_one_warning(pulse, capsys):
    config = load(pulse, ["surroundings={ambient_C=20.5, ambient_uncertainty_C=0.5}"])
    load(pulse)
    assert config.tables.specimen.serial == "W4-02"
    assert config.logbook == pulse.parent / "books"
    assert config.tables.ambient.ambient_C == 20.5
    warnings = capsys.readouterr().err.splitlines()
    assert len(warnings) == 2
    assert warnings[0].endswith("rig.toml: [article] is called [specimen] now: rename it")
    assert "--set surroundings=" in warnings[1]


def test_a_change_under_the_new_name_goes_over_a_file_under_the_old(pulse):
    assert load(pulse, ["specimen.serial=W4-03"]).tables.specimen.serial == "W4-03"
    merged = read_merged(pulse, ["article.serial=W4-04"])
    assert merged.table["specimen"] == {"serial": "W4-04", "logbook": "books"}


def test_a_file_with_both_names_is_refused(pulse):
    rig = pulse.parent / "rig.toml"
    rig.write_text(rig.read_text() + '\n[specimen]\nserial = "W4-02"\n')
    with pytest.raises(ConfigError, match=r"rig\.toml: article: unknown in a rig's file"):
        load(pulse)


def test_an_old_recording_is_read_under_present_names(capsys):
    kept = {"article": {"serial": "W4-02"}, "surroundings": {"ambient_channel": "room"}}
    present = {"specimen": kept["article"], "ambient": kept["surroundings"]}
    assert as_it_meant(kept) == present
    assert capsys.readouterr().err == ""
