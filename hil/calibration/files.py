"""Calibration records: one immutable TOML file a session, with a hash of its own content.

A record states the calibrated article, the operator, the date, the standard and the results. Its
`hash` covers everything else in the file, so a value that was changed by hand is detected.
"""

import datetime
import hashlib
import json
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hil.calibration.signal_chain import Chain
from hil.calibration.tables import ForceTransducerRecord, ValuesRecord
from hil.config.files import Merged, read_toml
from hil.config.validate import validated
from hil.config.values import Attributes
from hil.errors import ConfigError, one_line


@dataclass(frozen=True)
class Calibration:
    """The record of a force transducer, as read from its file.

    Attributes
    ----------
    path : Path
    text : the file's content, which a recording keeps
    record : ForceTransducerRecord
    """

    path: Path
    text: str
    record: ForceTransducerRecord

    @property
    def id(self) -> str:
        """Short name: file and the beginning of the hash."""
        return _id(self.path, self.record.hash)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the values; coefficient k is in N/(mV/V)^k."""
        return tuple(f"coefficients_N.{k}" for k in range(len(self.record.model.coefficients_N)))

    @property
    def values(self) -> NDArray[np.float64]:
        """(n,) coefficients of the polynomial."""
        return np.array(self.record.model.coefficients_N)

    @property
    def covariance(self) -> NDArray[np.float64]:
        """(n, n) covariance of the values."""
        return np.array(self.record.model.covariance_N2)

    def chain(self, *, bridge: bool) -> Chain:
        """The chain from volts, or mV/V with a bridge card, to newtons."""
        coefficients = self.record.model.coefficients_N
        conditioner = self.record.conditioner
        if bridge or conditioner is None:
            return Chain(1.0, 0.0, tuple(coefficients))
        return Chain.conditioned(
            conditioner.gain, conditioner.offset_V, conditioner.excitation_V, coefficients
        )

    def expired(self, today: datetime.date) -> bool:
        return today > self.record.act.valid_until

    def force_uncertainty_N(self, force_N: float) -> float:
        """Standard uncertainty of a force due to the coefficients: sqrt(g^T C g), g_k = r^k [N].

        NaN for a force that the polynomial does not reach, such as the capacity of a transducer
        that was calibrated over a small part of it.

        Source: JCGM 100:2008 (GUM), eq. (13).
        """
        model = self.record.model
        try:
            r = Chain(1.0, 0.0, tuple(model.coefficients_N)).raw(force_N)
        except ValueError:
            return math.nan
        g = r ** np.arange(len(model.coefficients_N))
        return float(np.sqrt(g @ np.array(model.covariance_N2) @ g))


@dataclass(frozen=True)
class Source:
    """A record of another kind, as read from its file: the source of values of a configuration.

    Attributes
    ----------
    path : Path
    text : the file's content, which a recording keeps
    record : ValuesRecord
    """

    path: Path
    text: str
    record: ValuesRecord

    @property
    def id(self) -> str:
        """Short name: file and the beginning of the hash."""
        return _id(self.path, self.record.hash)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.record.model.names)

    @property
    def values(self) -> NDArray[np.float64]:
        """(n,) values in the order of the names."""
        return np.array(self.record.model.values)

    @property
    def covariance(self) -> NDArray[np.float64]:
        """(n, n) covariance in the order of the names."""
        model = self.record.model
        return np.array(model.covariance) if model.covariance else np.diag(self._u**2)

    def value(self, name: str) -> float:
        """One value; KeyError if the record has no value of that name."""
        return self.record.model.values[self._at(name)]

    def uncertainty(self, name: str) -> float:
        """Standard uncertainty of one value."""
        return float(self._u[self._at(name)])

    @property
    def _u(self) -> NDArray[np.float64]:
        model = self.record.model
        if model.uncertainties:
            return np.array(model.uncertainties)
        return np.sqrt(np.diag(np.array(model.covariance)))

    def _at(self, name: str) -> int:
        try:
            return self.names.index(name)
        except ValueError:
            raise KeyError(f"{self.id} has no value '{name}'") from None

    def expired(self, today: datetime.date) -> bool:
        return today > self.record.act.valid_until


Record = Calibration | Source


def _id(path: Path, sha256: str) -> str:
    return f"{path.stem}@{sha256.removeprefix('sha256:')[:12]}"


def hash_of(table: Mapping[str, object]) -> str:
    """`sha256:` of a record's content without its own `hash`."""
    return digest({key: value for key, value in table.items() if key != "hash"})


def digest(content: object) -> str:
    """`sha256:` of tables, lists, numbers and texts, independent of the order of keys."""
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), default=str)
    return f"sha256:{hashlib.sha256(canonical.encode()).hexdigest()}"


def load_record(path: Path, *, named_by: str) -> Calibration:
    """Load the record of a force transducer and check its hash.

    Parameters
    ----------
    named_by : file and key that name the record, for the error message

    Raises
    ------
    ConfigError
        The record is missing, invalid, of another kind, or was changed by hand.
    """
    calibration = load_any(path, named_by=named_by)
    if isinstance(calibration, Calibration):
        return calibration
    raise ConfigError(
        f"{named_by}: {path.name} is a record of kind '{calibration.record.kind}': a force channel "
        "needs a force_transducer's"
    )


LOOKED_ABOVE = 3  # folders above that of the file that names a record


def located(folder: Path, name: str, *, named_by: str) -> Path:
    """A record beside the file that names it, or in a folder above that one.

    Raises
    ------
    ConfigError
        It is in none of them; the message names them.
    """
    above = [] if name.startswith("..") else folder.resolve().parents[:LOOKED_ABOVE]
    places = [folder, *above]
    for place in places:
        if (place / name).is_file():
            return place / name
    looked = ", ".join(str(place) for place in places)
    raise ConfigError(
        one_line(
            f"{named_by}: no such file: {name}: looked in {looked}: give a path from one of them"
        )
    )


def load_any(path: Path, *, named_by: str) -> Record:
    """Load a record of any kind and check its hash; ConfigError as `load_record`."""
    if not path.is_file():
        shown = path if str(path).isprintable() else repr(str(path))
        raise ConfigError(
            f"{named_by}: no such file: {shown}: give a path relative to the file that names it"
        )
    return _parsed(path, read_toml(path), path.read_text(encoding="utf-8"))


def transducers_of(path: Path, kept: Mapping[str, Attributes]) -> dict[str, Calibration]:
    """The records of force transducers in a recording, by channel."""
    records = {
        name: parse_any(path, entry["record"]) for name, entry in kept.items() if "record" in entry
    }
    return {name: record for name, record in records.items() if isinstance(record, Calibration)}


def parse_any(path: Path, text: str) -> Record:
    """A record of any kind from the text in a recording; errors name `path`."""
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        what = one_line(str(error)) or type(error).__name__
        raise ConfigError(
            f"{path}: a calibration in it is not TOML ({what}): use the original file"
        ) from None
    return _parsed(path, table, text)


def _parsed(path: Path, table: dict[str, object], text: str) -> Record:
    merged = Merged(table, [(str(path), table)])
    record: ForceTransducerRecord | ValuesRecord
    if table.get("kind") == "force_transducer":
        record = validated(ForceTransducerRecord, merged)
    else:
        record = validated(ValuesRecord, merged)
    content = hash_of(table)
    if record.hash != content:
        raise ConfigError(
            f"{path}: hash: the content was changed after the calibration ({content[:19]}...): "
            "use the original file, or calibrate again"
        )
    if record.raw is not None and record.raw.hash != digest(record.raw.data):
        raise ConfigError(f"{path}: raw.hash: the readings were changed: calibrate again")
    if isinstance(record, ForceTransducerRecord):
        return Calibration(path, text, record)
    return Source(path, text, record)


def overlaps(records: Sequence[Record]) -> list[str]:
    """A line for each pair of records of one article that are valid at the same time.

    Such a pair is ambiguous unless one record supersedes the other. Rehearsals do not count.
    """
    lines = []
    for i, a in enumerate(records):
        for b in records[i + 1 :]:
            first, second = sorted((a, b), key=lambda r: (r.record.act.date, r.record.hash))
            if (
                a.record.hash != b.record.hash
                and "simulated" not in (a.record.status, b.record.status)
                and _of_one_article(a, b)
                and second.record.act.date <= first.record.act.valid_until
                and first.record.hash not in second.record.act.supersedes
                and second.record.hash not in first.record.act.supersedes
            ):
                lines.append(
                    f"{second.path}: act.date = {second.record.act.date}: {first.path.name} of the "
                    f"same article (serial {first.record.article.serial}) is valid until "
                    f"{first.record.act.valid_until}: it is unclear which one is valid: calibrate "
                    f"again with --supersedes {first.path.name}, or remove one"
                )
    return lines


def files_in(folder: Path) -> list[Path]:
    """The TOML files of a folder, without an editor's locks, folders and pipes of such a name."""
    paths = sorted(folder.glob("*.toml"))
    return [path for path in paths if path.is_file() and not path.name.startswith(".")]


def may_be_of(text: str, calibration: Record) -> bool:
    """Whether a text may be a record of the same kind and article; a fast check without parsing."""
    record = calibration.record
    return "hil-calibration/" in text and record.kind in text and record.article.serial in text


def _of_one_article(a: Record, b: Record) -> bool:
    """Whether two records are of the same article and kind."""
    one, other = a.record, b.record
    names = [(r.kind, r.article.maker, r.article.model, r.article.serial) for r in (one, other)]
    return names[0] == names[1]
