"""A run or a campaign as an RO-Crate: one ZIP file with data, report, provenance and authors.

It follows the profile for process runs: each run is an action of hil with its configuration and
calibrations as objects and its recording as result. `datacite.json` and `zenodo.json` have the
metadata for a DOI.

As an ELN file (`.eln`) for electronic laboratory notebooks the same crate lies in one folder of the
ZIP file's name, and each run is a dataset of its own.

Source: RO-Crate Metadata Specification 1.1; Process Run Crate 0.5; package rocrate; The ELN
Consortium, TheELNFileFormat, specification 1.1.
"""

import json
import re
import tempfile
import zipfile
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from hil.config.values import Attributes
from hil.errors import ConfigError, missing_extra, writing
from hil.platform.whole_files import sha256_of, whole
from hil.record.read import calibrations_of, experiment_of, open_blocks
from hil.reports import citation as citations
from hil.reports.citation import Author, Citation
from hil.reports.run_report import write_report
from hil.runs.campaign.journal import JOURNAL, read_progress
from hil.runs.campaign.page import CSV, NETCDF, PAGE, write_all

if TYPE_CHECKING:
    import xarray as xr
    from rocrate.rocrate import ROCrate

ENDING, ELN = ".crate.zip", ".eln"
PROFILE = "https://w3id.org/ro/wfrun/process/0.5"
COMPLETED = "http://schema.org/CompletedActionStatus"
FAILED = "http://schema.org/FailedActionStatus"
TYPES = {
    ".h5": "application/x-hdf5", ".toml": "application/toml", ".html": "text/html",
    ".png": "image/png", ".json": "application/json", ".csv": "text/csv",
    ".nc": "application/x-netcdf", ".jsonl": "application/jsonl",
}  # fmt: skip


def write_crate(
    source: Path, out: Path | None = None, citation: Path | None = None, *, eln: bool = False
) -> Path:
    """Write the crate of a recording, or of the campaign in a folder; returns its path.

    Parameters
    ----------
    citation : a CITATION.cff that describes the data; by default the operators are the authors
    eln : whether it is an ELN file

    Raises
    ------
    ConfigError
        `source` is no recording or campaign, the package rocrate is missing, or the file cannot be
        written.
    """
    try:
        from rocrate.rocrate import ROCrate
    except ImportError:
        raise missing_extra("a crate", "crate") from None
    about = None if citation is None else citations.read_citation(citation)
    runs, results, operator = _campaign(source) if source.is_dir() else ([source], [], "")
    target = source.with_name(f"{source.stem}{ELN if eln else ENDING}") if out is None else out
    if eln and target.suffix != ELN:
        raise ConfigError(f"{target}: an ELN file ends in {ELN}: choose another --out")
    with tempfile.TemporaryDirectory() as folder:
        crate = _Crate(ROCrate(version="1.1"), Path(folder), operator)
        for file in results:
            crate.add(file, file.name, f"{file.name} of the campaign")
        for path in runs:
            crate.add_run(path, f"{path.stem}/" if results or eln else "")
        crate.describe(source, about)
        if eln:
            crate.make_entries()
        with writing(target), whole(target) as part:
            crate.write(part, target.stem if eln else "")
    return target


def _campaign(folder: Path) -> tuple[list[Path], list[Path], str]:
    """Recordings of a campaign's trials, its own files, its operator."""
    progress = read_progress(folder)
    write_all(folder)
    recorded = [folder / end["file"] for end in progress.ends.values() if end.get("file")]
    runs = [file for file in recorded if file.is_file()]
    if not runs:
        raise ConfigError(f"{folder}: no trial of the campaign has a recording")
    files = [folder / name for name in (JOURNAL, PAGE, CSV, NETCDF)]
    return runs, files, progress.head.get("operator", "")


class _Crate:
    """The crate while it is filled.

    Parameters
    ----------
    folder : for files that are made for the crate
    operator : of all runs; by default that of each recording
    """

    def __init__(self, crate: "ROCrate", folder: Path, operator: str) -> None:
        self._crate, self._folder, self._operator = crate, folder, operator
        self._runs: list[Attributes] = []
        self._mentions: list[object] = []
        self._specimens: dict[str, str] = {}

    def add(self, file: Path, name: str, text: str, **facts: object) -> object:
        """Add a file under a name; returns its entity."""
        properties = {
            "name": text,
            "encodingFormat": TYPES.get(file.suffix, TYPES[".h5"]),  # recordings have any ending
            "contentSize": str(file.stat().st_size),
            "sha256": sha256_of(file),
            **facts,
        }
        return self._crate.add_file(file, name, properties=properties)

    def _made(self, name: str, content: str, text: str) -> object:
        """Add a text file that is made for the crate."""
        file = self._folder / f"{len(list(self._folder.iterdir()))}{Path(name).suffix}"
        file.write_text(content, encoding="utf-8")
        return self.add(file, name, text)

    def add_run(self, path: Path, where: str) -> None:
        """Add a recording with its configuration, calibrations and report below `where`."""
        with open_blocks(path) as blocks:
            run = blocks.head
        attrs = run.attrs
        created = datetime.fromisoformat(attrs["created_utc"])
        summary = json.loads(attrs.get("summary", "{}"))
        title = f"{attrs['experiment_name']} ({attrs['experiment_file']})"
        recording = self.add(
            path,
            f"{where}{path.name}",
            f"Recording: {title}",
            dateCreated=attrs["created_utc"],
            variableMeasured=[self._quantity(run, name) for name in _columns(run)],
        )
        objects = [self._made(f"{where}experiment.toml", attrs["experiment"], f"Setup: {title}")]
        for folder in ("calibration", "records"):
            for kept in calibrations_of(path, folder).values():
                objects += self._calibration(where, kept)
        report = self._folder / f"report{len(self._runs)}"
        for file, kind in zip(write_report(path, report), ("Figure", "Report"), strict=True):
            self.add(file, f"{where}{file.name}", f"{kind} of {title}", about=recording)
        operator = self._operator or attrs.get("operator") or "unknown"
        lasted_s = sum(summary.get(key) or 0.0 for key in ("waited_s", "duration_s"))
        ended = created + timedelta(seconds=lasted_s)
        action = {
            "@type": "CreateAction",
            "name": f"Run of {title}",
            "description": _of_run(attrs, summary),
            "instrument": {"@id": self._software(attrs)},
            "agent": {"@id": self._person(Author(operator))},
            "object": objects,
            "result": recording,
            "startTime": attrs["created_utc"],
            "endTime": ended.isoformat(timespec="milliseconds"),
            "actionStatus": COMPLETED if attrs["outcome"] == "complete" else FAILED,
        }
        specimen = self._specimen(experiment_of(run))
        if specimen:
            action["about"] = {"@id": specimen}
        number = f"#run-{len(self._runs) + 1}"
        self._mentions.append(self._crate.add_jsonld({"@id": number, **action}))
        self._runs.append({"title": title, "text": _of_run(attrs, summary), "operator": operator,
                           "created": created.date().isoformat(), "where": where})  # fmt: skip

    def _calibration(self, where: str, kept: Attributes) -> list[object]:
        if not kept.get("record"):  # of the first versions, or a value that is typed in the rig
            return []
        # The name comes from the recording: it must not become a path.
        name = re.sub(r"[^\w@.-]", "_", str(kept.get("record_id")), flags=re.ASCII).lstrip(".")
        target = f"{where}calibration/{name}.toml"
        text = f"Calibration of {kept.get('article')}, {kept.get('status')}"
        known = self._crate.get(target)
        return [known or self._made(target, kept["record"], text)]

    def _quantity(self, run: "xr.Dataset", name: str) -> object:
        """A column as a property with its unit."""
        facts = run[name].attrs
        return self._entity(
            _local("column", name), "PropertyValue", name=name, unitText=facts["units"],
            description=facts["description"],
        )  # fmt: skip

    def _entity(self, identifier: str, kind: str, /, **facts: object) -> object:
        known = self._crate.get(identifier)
        return known or self._crate.add_jsonld({"@id": identifier, "@type": kind, **facts})

    def _person(self, author: Author) -> str:
        identifier = author.orcid or _local("author", author.name)
        facts: dict[str, object] = {"name": author.name}
        if author.given_name:
            facts |= {"givenName": author.given_name, "familyName": author.family}
        if author.affiliation:
            place = _local("organization", author.affiliation)
            facts["affiliation"] = self._entity(place, "Organization", name=author.affiliation)
        self._entity(identifier, "Person" if author.is_person else "Organization", **facts)
        return identifier

    def _software(self, attrs: Attributes) -> str:
        versions = json.loads(attrs["software"])
        version = str(versions["hil-arrays"])
        commit = versions.get("commit", "")
        identifier = _local("hil", str(commit or version))
        packages = ", ".join(
            f"{k} {v}" for k, v in versions.items() if k not in ("commit", "dirty")
        )
        self._entity(
            identifier, "SoftwareApplication", name="hil-arrays", softwareVersion=version,
            description=packages,
            **({"identifier": f"commit {commit}"} if commit else {}),
        )  # fmt: skip
        return identifier

    def _specimen(self, experiment: Attributes) -> str:
        table = experiment.get("specimen") or experiment.get("article") or {}
        serial = str(table.get("serial", ""))
        if not serial:
            return ""
        name = str(table.get("about") or f"specimen {serial}")
        identifier = _local("specimen", serial)
        self._entity(identifier, "IndividualProduct", name=name, serialNumber=serial)
        self._specimens[serial] = name
        return identifier

    def describe(self, source: Path, about: Citation | None) -> None:
        """Write title, authors and licence of the whole, and the metadata for a DOI."""
        operators = dict.fromkeys(run["operator"] for run in self._runs)
        about = about or Citation(tuple(Author(name) for name in operators))
        first = self._runs[0]
        many = f"Campaign {source.name}: {len(self._runs)} runs"
        title = about.title or (first["title"] if len(self._runs) == 1 else many)
        specimens = "; ".join(f"{name} ({serial})" for serial, name in self._specimens.items())
        parts = [about.abstract, *(dict.fromkeys(run["text"] for run in self._runs))]
        parts += [f"Specimen: {specimens}."] if specimens else []
        facts = {
            "title": title, "description": " ".join(part for part in parts if part),
            "specimen": specimens, "created": min(run["created"] for run in self._runs),
        }  # fmt: skip
        for name, kind in (("datacite", citations.datacite), ("zenodo", citations.zenodo)):
            content = json.dumps(kind(about, facts), indent=2, ensure_ascii=False)
            self._made(f"{name}.json", content, f"Metadata for a DOI, {name}")
        root = self._crate.root_dataset
        root["name"], root["description"] = facts["title"], facts["description"]
        authors = [{"@id": self._person(author)} for author in about.authors]
        root["author"] = authors if len(authors) > 1 else authors[0]
        root["mentions"] = self._mentions if len(self._mentions) > 1 else self._mentions[0]
        root["license"] = self._licence(about)
        if about.keywords:
            root["keywords"] = ", ".join(about.keywords)
        root["conformsTo"] = self._entity(
            PROFILE, "CreativeWork", name="Process Run Crate", version="0.5"
        )

    def _licence(self, about: Citation) -> object:
        if not about.licence:
            return citations.NO_LICENCE
        return self._entity(
            f"https://spdx.org/licenses/{about.licence}", "CreativeWork", name=about.licence,
            description=f"Licence {about.licence} of the SPDX list",
        )  # fmt: skip

    def make_entries(self) -> None:
        """Make each run an entry of a notebook: a dataset with its files; name the publisher."""
        files = {entity.id: entity for entity in self._crate.data_entities}
        for run in self._runs:
            where = run["where"]
            parts = [file for name, file in files.items() if name.startswith(where)]
            entry = self._crate.add_dataset(dest_path=where, properties={
                "name": run["title"], "text": run["text"], "genre": "experiment",
                "author": {"@id": self._person(Author(run["operator"]))},
                "dateCreated": run["created"], "dateModified": run["created"],
            })  # fmt: skip
            entry["hasPart"] = parts
        publisher = self._entity("#hil-arrays", "Organization", name="hil-arrays")
        self._crate.metadata["sdPublisher"] = publisher
        self._crate.metadata["version"] = "1.0"

    def write(self, part: Path, folder: str) -> None:
        """Write the ZIP file, below a folder if one is named."""
        if not folder:
            self._crate.write_zip(part)
            return
        root = self._folder / "written"
        self._crate.write(root)
        with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as file:
            for path in sorted(root.rglob("*")):
                if path.is_file():
                    file.write(path, f"{folder}/{path.relative_to(root)}")


def _local(kind: str, name: str) -> str:
    """Identifier of an entity that only this crate has."""
    return f"#{kind}-{quote(name, safe='')}"


def _columns(run: "xr.Dataset") -> list[str]:
    return [str(name) for name in run.data_vars if run[name].dims[0] == "tick"]


def _of_run(attrs: dict[str, object], summary: dict[str, object]) -> str:
    """One sentence: what was run, on what, and how it ended."""
    where = attrs.get("simulated") or ("IMPORTED" if "imported" in attrs else "on the bench")
    duration_s = summary.get("duration_s") or 0.0
    return f"{attrs['experiment_name']}: {duration_s:g} s, {where}, {attrs['outcome']}."
