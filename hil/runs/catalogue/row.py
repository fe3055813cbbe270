"""One recording as one flat row of the index: identity, figures, software, configuration."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from hil.config.values import Attributes, Figures
from hil.errors import ConfigError, one_line
from hil.record.layout import text_of
from hil.record.read import attributes_of, experiment_in, open_h5

ENDS_B = 2**20
LIST_MAX = 200
UNREADABLE = "unreadable"
IDENTITY = ("created_utc", "experiment", "seed", "backend", "imported", "recalibrated")


def row_of(folder: Path, name: str) -> Figures:
    """The row of a recording, by its path below a folder.

    Keys are words of letters, digits and underscores: `force_residual_rms_N` of the summary,
    `controller_kind` of the configuration, `software_commit`, `calibration_force`. `rms_N` and
    `tracking_rms_N` are those of the force. Lists are JSON texts. A file that cannot be read has
    the outcome `unreadable`, and why as `error`.
    """
    path = folder / name
    stat = path.stat()
    row: Figures = {"path": name, "size_B": stat.st_size, "modified_ns": stat.st_mtime_ns}
    try:
        with open_h5(path, head=True) as file:
            attributes = {key: _plain(value) for key, value in attributes_of(file).items()}
            calibrations = {
                channel: text_of(group.attrs.get("record_id", group.attrs.get("hash", "")))
                for channel, group in file.get("calibration", {}).items()
            }
        experiment = experiment_in(attributes, path) if "experiment" in attributes else {}
        return _row(row, attributes, calibrations, experiment) | {"hash": _hash(path)}
    except ConfigError as error:
        made = datetime.fromtimestamp(stat.st_mtime, UTC)
        text = one_line(str(error)).removeprefix(f"{path}: ")
        return row | {"time_utc": _time(made), "outcome": UNREADABLE, "error": text,
                      "identity": _hash(path)}  # fmt: skip


def _row(
    row: Figures,
    attributes: Attributes,
    calibrations: Mapping[str, str],
    experiment: Figures,
) -> Figures:
    summary: Figures = json.loads(attributes.get("summary", "{}"))
    force, campaign = summary.get("force", {}), json.loads(attributes.get("campaign", "{}"))
    rig, _, file = attributes["experiment_file"].partition("/")
    identity = json.dumps([attributes.get(key) for key in IDENTITY])
    known = {
        "time_utc": _time(datetime.fromisoformat(attributes["created_utc"])),
        "identity": hashlib.sha256(identity.encode()).hexdigest()[:16],
        "rig": rig, "experiment": Path(file).stem, "name": attributes["experiment_name"],
        "specimen": attributes.get("article"), "operator": attributes.get("operator"),
        "outcome": attributes["outcome"], "faults": ", ".join(summary.get("faults", [])),
        "simulated": bool(attributes.get("simulated")),
        **{key: attributes.get(key) for key in ("backend", "clock", "seed", "injected")},
        "rms_N": force.get("residual_rms_N"), "tracking_rms_N": force.get("tracking_rms_N"),
        "campaign": campaign.get("name"), "trial": campaign.get("trial"),
        "imported": "imported" in attributes,
    }  # fmt: skip
    signals = {key: summary[key] for key in ("signals",) if key in summary}
    rest = {k: v for k, v in summary.items() if k not in (*signals, "faults", "outcome")}
    software = json.loads(attributes["software"])
    tables = (row, known, rest, signals.get("signals", {}), {"calibration": calibrations},
              {"software": software}, {"campaign": campaign}, experiment)  # fmt: skip
    names: dict[str, str] = {}  # SQL does not tell capitals apart
    flat: Figures = {}
    for table in tables:
        for key, value in _flat("", table):
            if value is not None and names.setdefault(key.casefold(), key) not in flat:
                flat[key] = value
    return flat


def _flat(prefix: str, table: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Every value of nested tables; a list is its JSON text, a long one its beginning and hash."""
    for key, value in table.items():
        name = prefix + re.sub(r"\W", "_", str(key))
        if isinstance(value, Mapping):
            yield from _flat(f"{name}_", value)
        elif isinstance(value, list):
            text = json.dumps(value, default=str)
            if len(text) > LIST_MAX:
                digest = hashlib.sha256(text.encode()).hexdigest()[:12]
                text = f"{text[:LIST_MAX]}... sha256 {digest}"
            yield name, text
        else:
            yield name, value if isinstance(value, bool | int | float | str | None) else str(value)


def _plain(value: object) -> object:
    """An attribute as JSON has it."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", 0) == 0 else value


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds")


def _hash(path: Path) -> str:
    """SHA-256 of a file's size and of its first and last mebibyte."""
    size_B = path.stat().st_size
    digest = hashlib.sha256(str(size_B).encode())
    with path.open("rb") as file:
        digest.update(file.read(ENDS_B))
        file.seek(max(ENDS_B, size_B - ENDS_B))
        digest.update(file.read(ENDS_B))
    return digest.hexdigest()
