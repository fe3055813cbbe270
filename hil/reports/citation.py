"""Authors, licence and keywords of a data set, from a file CITATION.cff; metadata for a DOI.

Source: Citation File Format 1.2.0; DataCite Metadata Schema 4.5; Zenodo's deposition metadata.
"""

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from hil.config.values import Attributes
from hil.errors import ConfigError, one_line

NO_LICENCE = "No licence is stated: ask the authors before you use these data."
SPDX = re.compile(r"[A-Za-z0-9.+-]*")
ORCID = re.compile(r"https://orcid\.org/(?:\d{4}-){3}\d{3}[\dX]", re.ASCII)
PUBLISHER = "(:unav)"  # of the schema: not available


@dataclass(frozen=True)
class Author:
    """A person, or an organisation, whose name is `family`."""

    family: str
    given_name: str = ""
    affiliation: str = ""
    orcid: str = ""
    is_person: bool = True

    @property
    def name(self) -> str:
        return f"{self.family}, {self.given_name}" if self.given_name else self.family


@dataclass(frozen=True)
class Citation:
    """How a data set is cited.

    Attributes
    ----------
    licence : SPDX identifier; empty if none is stated
    """

    authors: tuple[Author, ...]
    title: str = ""
    abstract: str = ""
    licence: str = ""
    keywords: tuple[str, ...] = field(default=())


def read_citation(path: Path) -> Citation:
    """Read a file CITATION.cff that describes the data set.

    Raises
    ------
    ConfigError
        The file is missing, is not YAML, or has no authors.
    """
    import yaml

    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"--citation {path}: {error.strerror}: give a CITATION.cff") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"--citation {path}: not YAML ({one_line(str(error))})") from None
    if not isinstance(document, dict) or "cff-version" not in document:
        raise ConfigError(f"--citation {path}: has no key 'cff-version': give a CITATION.cff")
    authors = document.get("authors")
    if not isinstance(authors, list) or not authors:
        raise ConfigError(f"--citation {path}: authors: give at least one")
    title, abstract, licence = (
        _text(path, key, document.get(key, "")) for key in ("title", "abstract", "license")
    )
    if not SPDX.fullmatch(licence):
        raise ConfigError(f"--citation {path}: license: '{licence}': give one SPDX identifier")
    keywords = document.get("keywords", [])
    if not isinstance(keywords, list):
        raise ConfigError(f"--citation {path}: keywords: not a list")
    return Citation(
        tuple(_author(path, i, entry) for i, entry in enumerate(authors, start=1)),
        title,
        abstract,
        licence,
        tuple(_text(path, "keywords", word) for word in keywords),
    )


def _author(path: Path, number: int, entry: object) -> Author:
    where = f"authors, entry {number}"
    about = _table(path, where, entry)
    keys = ("family-names", "given-names", "affiliation", "orcid", "name")
    family, given_name, affiliation, orcid, name = (
        _text(path, f"{where}: {key}", about.get(key, "")) for key in keys
    )
    if not (family or name):
        raise ConfigError(f"--citation {path}: {where}: give family-names, or name")
    if orcid and not ORCID.fullmatch(orcid):
        raise ConfigError(
            f"--citation {path}: {where}: orcid '{orcid}': give it as "
            "https://orcid.org/0000-0002-1825-0097"
        )
    return Author(family or name, given_name, affiliation, orcid, is_person=bool(family))


def _table(path: Path, key: str, value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise ConfigError(f"--citation {path}: {key}: not a table of keys")
    return value


def _text(path: Path, key: str, value: object) -> str:
    if not isinstance(value, str):
        raise ConfigError(f"--citation {path}: {key}: not a text")
    return value.strip()


def datacite(citation: Citation, facts: dict[str, object]) -> dict[str, object]:
    """Metadata for DataCite; the archive adds DOI and publisher.

    `facts` has the texts `title`, `description`, `specimen` and `created` (a date).
    """
    rights = (
        {"rightsIdentifier": citation.licence, "rightsIdentifierScheme": "SPDX"}
        if citation.licence
        else {"rights": NO_LICENCE}
    )
    return {
        "schemaVersion": "http://datacite.org/schema/kernel-4",
        "types": {"resourceTypeGeneral": "Dataset", "resourceType": "Recorded experiment"},
        "creators": [_creator(author) for author in citation.authors],
        "titles": [{"title": facts["title"]}],
        "publisher": {"name": PUBLISHER},
        "publicationYear": str(datetime.now(UTC).year),
        "subjects": [{"subject": word} for word in _subjects(citation, facts)],
        "dates": [{"date": facts["created"], "dateType": "Collected"}],
        "descriptions": [{"description": facts["description"], "descriptionType": "Abstract"}],
        "rightsList": [rights],
        "formats": ["application/x-hdf5"],
    }


def _creator(author: Author) -> dict[str, object]:
    kind = "Personal" if author.is_person else "Organizational"
    creator: dict[str, object] = {"name": author.name, "nameType": kind}
    if author.given_name:
        creator |= {"givenName": author.given_name, "familyName": author.family}
    if author.affiliation:
        creator["affiliation"] = [{"name": author.affiliation}]
    if author.orcid:
        identifier = {"nameIdentifier": author.orcid, "nameIdentifierScheme": "ORCID"}
        creator["nameIdentifiers"] = [{**identifier, "schemeUri": "https://orcid.org"}]
    return creator


def zenodo(citation: Citation, facts: dict[str, object]) -> dict[str, object]:
    """The same metadata for Zenodo's depositions."""
    creators = []
    for author in citation.authors:
        creator = {"name": author.name, "affiliation": author.affiliation}
        creator["orcid"] = author.orcid.rpartition("/")[2]
        creators.append({key: value for key, value in creator.items() if value})
    metadata = {
        "title": facts["title"],
        "upload_type": "dataset",
        "description": facts["description"],
        "creators": creators,
        "keywords": _subjects(citation, facts),
        "dates": [{"start": facts["created"], "end": facts["created"], "type": "Collected"}],
    }
    return metadata | ({"license": citation.licence.lower()} if citation.licence else {})


def _subjects(citation: Citation, facts: Attributes) -> list[str]:
    return [*citation.keywords, *([facts["specimen"]] if facts["specimen"] else [])]
