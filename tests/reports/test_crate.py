"""A crate, read with nothing but zipfile and json, against the rules of RO-Crate 1.1."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from importlib import resources
from pathlib import Path
from urllib.parse import unquote

import h5py
import pytest
import tomli_w

import hil
from hil.__main__ import main
from hil.record.read import open_run

CITATION = """
cff-version: 1.2.0
message: Please cite these data.
title: Six cells on and off
license: CC-BY-4.0
keywords: [shape memory alloy]
authors:
  - {family-names: Kästner, given-names: Ada, affiliation: A university,
     orcid: "https://orcid.org/0000-0002-1825-0097"}
  - {name: A laboratory}
"""
CAMPAIGN = {
    "campaign": {"name": "two", "experiments": ["steps.toml"], "operator": "ada"},
    "factors": {"length": {"key": "experiment.duration_s", "levels": [0.02, 0.03]}},
}


class Read:
    """A crate: its members, its entities by id, its two files for a DOI."""

    def __init__(self, path) -> None:
        with zipfile.ZipFile(path) as file:
            self.members = {name: file.read(name) for name in file.namelist()}
        graph = json.loads(self.members["ro-crate-metadata.json"])["@graph"]
        self.entities = {entity["@id"]: entity for entity in graph}
        assert len(self.entities) == len(graph)
        self.root = self.entities["./"]
        self.datacite, self.zenodo = (
            json.loads(self.members[f"{name}.json"]) for name in ("datacite", "zenodo")
        )

    def of_type(self, kind):
        return [entity for entity in self.entities.values() if entity["@type"] == kind]

    def references(self, value=None):
        value = list(self.entities.values()) if value is None else value
        if isinstance(value, dict):
            if set(value) == {"@id"}:
                yield value["@id"]
            value = list(value.values())
        if isinstance(value, list):
            for item in value:
                yield from self.references(item)


def ids(value):
    return [item["@id"] for item in (value if isinstance(value, list) else [value])]


@pytest.fixture(scope="module")
def crate(all_on, tmp_path_factory):
    folder = tmp_path_factory.mktemp("crate")
    (folder / "CITATION.cff").write_text(CITATION)
    out = folder / "out.zip"
    words = ["export", str(all_on), "--to", "crate", "--out", str(out)]
    assert main([*words, "--citation", str(folder / "CITATION.cff")]) == 0
    return Read(out)


class ElnRead(Read):
    """An ELN file, whose members lie in the one folder that has the file's name."""

    def __init__(self, path) -> None:
        with zipfile.ZipFile(path) as file:
            names = file.namelist()
            assert {name.partition("/")[0] for name in names} == {path.stem}
            inner = path.with_suffix(".zip")
            with zipfile.ZipFile(inner, "w") as flat:
                for name in names:
                    flat.writestr(name.partition("/")[2], file.read(name))
        super().__init__(inner)


@pytest.mark.slow
def test_an_eln_file_has_one_folder_and_each_run_as_an_entry(all_on, tmp_path):
    """Source: The ELN Consortium, TheELNFileFormat, specification 1.1."""
    out = tmp_path / "notebook.eln"
    assert main(["export", str(all_on), "--to", "eln", "--out", str(out)]) == 0
    eln = ElnRead(out)
    descriptor = eln.entities["ro-crate-metadata.json"]
    assert descriptor["conformsTo"] == {"@id": "https://w3id.org/ro/crate/1.1"}
    assert eln.entities[descriptor["sdPublisher"]["@id"]]["@type"] == "Organization"
    entry = eln.entities["all_on/"]
    assert entry["@type"] == "Dataset"
    assert "all_on/" in ids(eln.root["hasPart"])
    parts = {unquote(name) for name in ids(entry["hasPart"])}
    assert {"all_on/all_on.h5", "all_on/experiment.toml", "all_on/all_on.html"} <= parts
    for name in ids(entry["hasPart"]):
        content = eln.members[unquote(name)]
        assert eln.entities[name]["sha256"] == hashlib.sha256(content).hexdigest()
    assert eln.members["all_on/all_on.h5"] == all_on.read_bytes()
    assert eln.entities[entry["author"]["@id"]]["@type"] == "Person"
    assert main(["export", str(all_on), "--to", "eln", "--out", str(tmp_path / "a.zip")]) == 2


ASKED_OF_THE_AUTHOR = {"22.1", "22.3", "30.2", "30.3", "31.2"}  # licence, publisher, affiliation


@pytest.mark.slow
@pytest.mark.parametrize("profile", ["ro-crate-1.1", "process-run-crate-0.5"])
def test_an_eln_file_passes_the_validator_of_ro_crate(profile, all_on, tmp_path):
    """roc-validator reads it with rdflib and SHACL. It wants another rich, so it has a folder."""
    out, packages, folder = tmp_path / "book.eln", tmp_path / "packages", tmp_path / "crate"
    assert main(["export", str(all_on), "--to", "eln", "--out", str(out)]) == 0
    with zipfile.ZipFile(out) as file:
        file.extractall(folder)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(packages)]
    subprocess.run([*pip, "roc-validator==0.13.0"], check=True)
    context = resources.files("rocrate") / "data/ro-crate.jsonld"
    script = Path(__file__).with_name("validate_crate.py")
    words = [sys.executable, str(script), str(folder / "book"), profile, str(context)]
    environment = os.environ | {"PYTHONPATH": str(packages)}
    done = subprocess.run(words, capture_output=True, text=True, check=True, env=environment)
    *found, last = map(json.loads, done.stdout.splitlines())
    assert last["checks"] > 60
    assert [issue for issue in found if issue["severity"] == "REQUIRED"] == []
    wished = {issue["check"] for issue in found if issue["check"].startswith("ro-crate")}
    assert {check.partition("_")[2] for check in wished} <= ASKED_OF_THE_AUTHOR


def check_rules(crate):
    """Root, descriptor, links and files. Source: RO-Crate 1.1, root-data-entity, data-entities."""
    descriptor = crate.entities["ro-crate-metadata.json"]
    assert descriptor["conformsTo"] == {"@id": "https://w3id.org/ro/crate/1.1"}
    assert descriptor["about"] == {"@id": "./"}
    assert {"name", "description", "datePublished", "license"} <= set(crate.root)
    for link in crate.references():
        assert link in crate.entities or link.startswith("https://w3id.org/ro/crate/")
    files = {unquote(name) for name in ids(crate.root["hasPart"])}
    assert files | {"ro-crate-metadata.json"} == set(crate.members)
    for name in ids(crate.root["hasPart"]):
        content = crate.members[unquote(name)]
        assert crate.entities[name]["sha256"] == hashlib.sha256(content).hexdigest()
        assert crate.entities[name]["contentSize"] == str(len(content))


@pytest.mark.slow
def test_a_run_is_an_action_of_hil_with_its_files(crate, all_on):
    check_rules(crate)
    [run] = crate.of_type("CreateAction")
    assert ids(crate.root["mentions"]) == [run["@id"]]
    assert ids(run["result"]) == ["all_on.h5"]
    assert crate.members["all_on.h5"] == all_on.read_bytes()
    attrs = open_run(all_on).attrs
    assert crate.members["experiment.toml"].decode() == attrs["experiment"]
    with h5py.File(all_on) as file:
        record = file["calibration/force"].attrs["record"]
    calibrations = [name for name in ids(run["object"]) if name.startswith("calibration/")]
    assert record in [crate.members[unquote(name)].decode() for name in calibrations]
    assert run["startTime"] == attrs["created_utc"]
    software = crate.entities[run["instrument"]["@id"]]
    assert software["softwareVersion"] == json.loads(attrs["software"])["hil-arrays"]
    assert "SIMULATED: board, daq" in crate.root["description"]


@pytest.mark.slow
def test_every_column_is_a_quantity_with_its_unit(crate):
    quantities = [crate.entities[i] for i in ids(crate.entities["all_on.h5"]["variableMeasured"])]
    units = {quantity["name"]: quantity["unitText"] for quantity in quantities}
    assert units["force_measured_N"] == "N"
    assert units["late_s"] == "s"


def test_a_recording_may_have_another_ending(configs, tmp_path):
    run, out = tmp_path / "run.hdf5", tmp_path / "run.zip"
    config = hil.load(configs / "miga6/all_on.toml", ["experiment.duration_s=0.02"])
    shutil.copy(hil.run(config, out=tmp_path / "run.h5"), run)
    assert main(["export", str(run), "--to", "crate", "--out", str(out)]) == 0
    assert Read(out).entities["run.hdf5"]["encodingFormat"] == "application/x-hdf5"


def test_authors_and_licence_are_those_of_the_citation(crate):
    person, laboratory = (crate.entities[i] for i in ids(crate.root["author"]))
    assert (person["@type"], person["name"]) == ("Person", "Kästner, Ada")
    assert person["@id"] == "https://orcid.org/0000-0002-1825-0097"
    assert (laboratory["@type"], laboratory["name"]) == ("Organization", "A laboratory")
    assert crate.root["license"] == {"@id": "https://spdx.org/licenses/CC-BY-4.0"}
    assert crate.root["name"] == "Six cells on and off"


def test_the_metadata_for_a_doi_have_what_their_schemas_require(crate):
    """DataCite 4.5: mandatory are creators, titles, publisher, publicationYear, types."""
    assert crate.datacite["types"]["resourceTypeGeneral"] == "Dataset"
    assert crate.datacite["publicationYear"].isdecimal()
    assert crate.datacite["publisher"]["name"]
    assert crate.datacite["titles"] == [{"title": "Six cells on and off"}]
    person, laboratory = crate.datacite["creators"]
    assert (person["givenName"], person["nameType"]) == ("Ada", "Personal")
    assert laboratory == {"name": "A laboratory", "nameType": "Organizational"}
    assert crate.zenodo["creators"][0]["orcid"] == "0000-0002-1825-0097"
    assert crate.zenodo["license"] == "cc-by-4.0"
    assert crate.zenodo["upload_type"] == "dataset"


@pytest.mark.slow
def test_a_campaign_has_every_run_and_its_tables(rigs, monkeypatch, capsys):
    monkeypatch.chdir(rigs / "slider")
    (rigs / "slider" / "two.toml").write_text(tomli_w.dumps(CAMPAIGN))
    for table in ('[specimen]\nserial = "W-7"\nabout = "seven wires"\n',):
        with open("rig.toml", "a") as file:
            file.write(f"\n{table}")
    assert main(["campaign", "two.toml", "--out", "two"]) == 0
    assert main(["export", "two", "--to", "crate"]) == 0
    capsys.readouterr()
    crate = Read(rigs / "slider" / "two.crate.zip")
    check_rules(crate)
    assert len(crate.of_type("CreateAction")) == 2
    assert {"journal.jsonl", "campaign.html", "trials.csv", "trials.nc"} <= set(crate.members)
    assert [crate.entities[i]["name"] for i in ids(crate.root["author"])] == ["ada"]
    [specimen] = crate.of_type("IndividualProduct")
    assert (specimen["name"], specimen["serialNumber"]) == ("seven wires", "W-7")
    assert crate.zenodo["keywords"] == ["seven wires (W-7)"]


@pytest.mark.slow
def test_names_in_a_recording_never_leave_the_crate(all_on, tmp_path):
    path = tmp_path / "run.h5"
    shutil.copyfile(all_on, path)
    with h5py.File(path, "r+") as file:
        for name in file["records"]:
            file[f"records/{name}"].attrs["record_id"] = "../../../evil"
    assert main(["export", str(path), "--to", "crate"]) == 0
    names = set(Read(tmp_path / "run.crate.zip").members)
    assert "calibration/_.._.._evil.toml" in names
    assert not [name for name in names if ".." in name.split("/") or name.startswith("/")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "No such file"),
        ("a: [", "not YAML"),
        ("title: x", "has no key 'cff-version'"),
        ("cff-version: 1.2.0\nauthors: []", "authors: give at least one"),
        ("cff-version: 1.2.0\nauthors: [x]", "authors, entry 1: not a table"),
        ("cff-version: 1.2.0\nauthors: [{orcid: x}]", "give family-names, or name"),
        ("cff-version: 1.2.0\ntitle: 3\nauthors: [{name: x}]", "title: not a text"),
        ("cff-version: 1.2.0\nkeywords: 3\nauthors: [{name: x}]", "keywords: not a list"),
        ("cff-version: 1.2.0\nlicense: a b\nauthors: [{name: x}]", "give one SPDX identifier"),
        ("cff-version: 1.2.0\nauthors: [{name: x, orcid: 0000-1}]", "orcid '0000-1': give it as"),
    ],
)
def test_a_wrong_citation_is_one_line(text, said, all_on, tmp_path, capsys):
    file, out = tmp_path / "CITATION.cff", tmp_path / "out.zip"
    if text is not None:
        file.write_text(text)
    words = ["export", str(all_on), "--to", "crate", "--out", str(out), "--citation", str(file)]
    assert main(words) == 2
    line = capsys.readouterr().err.strip()
    assert said in line
    assert line.startswith(f"--citation {file}: ")
    assert "\n" not in line
    assert not out.exists()


def test_what_is_no_run_or_campaign_is_one_line(all_on, tmp_path, capsys, monkeypatch):
    for words, said in (
        (["export", str(tmp_path), "--to", "crate"], "no campaign has begun there"),
        (["export", str(tmp_path / "no.h5"), "--to", "crate"], "no such file"),
        (["export", str(all_on), "--citation", "x.cff"], "--citation: not with --to csv"),
    ):
        assert main(words) == 2
        assert said in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "rocrate.rocrate", None)
    assert main(["export", str(all_on), "--to", "crate"]) == 2
    assert "scripts/setup crate" in capsys.readouterr().err
