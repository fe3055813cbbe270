"""Rewrites a copy of a recording whose readings of one channel come from another record."""

import hashlib
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import h5py
import numpy as np
import tomli_w
from numpy.typing import NDArray

from hil.calibration.files import Calibration, Record, parse_any
from hil.calibration.signal_chain import Chain
from hil.config.values import Attributes
from hil.platform.provenance import software
from hil.record.checksums import write_checksums
from hil.record.layout import LIBVER, RECORDED
from hil.record.read import experiment_in
from hil.record.summary import plain


def linear_of(values_by_name: dict[str, float], entry: Attributes) -> tuple[float, float]:
    """Slope and zero_V of a linear channel; the offset of the card is added to its zero.

    It replaces the offset that an earlier recalibration has added.
    """
    values = entry | values_by_name
    zero_V = float(values["zero_V"])
    if "offset_V" in values_by_name:
        earlier_V = 0.0 if "zero_V" in values_by_name else _added_V(entry)
        zero_V += values_by_name["offset_V"] - earlier_V
    return float(values[slope_key(entry)]), zero_V


def _added_V(entry: Attributes) -> float:
    """The offset of a card that the last recalibration has added to a channel's zero."""
    if "was_record" not in entry:
        return 0.0
    model = tomllib.loads(entry["record"])["model"]
    return float(dict(zip(model["names"], model["values"], strict=True)).get("offset_V", 0.0))


def as_taken(path: Path, entry: Attributes) -> Chain:
    """The chain of a channel at the time of the run, whatever recalibrations followed."""
    if "was_record" not in entry:
        return Chain.recorded(entry)
    if entry["was_record"]:
        record = parse_any(path, entry["was_record"])
        assert isinstance(record, Calibration)
        return record.chain(bridge=entry.get("raw_unit") == "mV/V")
    return Chain.linear(entry["newtons_per_V"], entry["zero_V"])


def slope_key(entry: dict[str, object]) -> str:
    """The key of a linear channel's slope."""
    return "metres_per_V" if entry.get("kind") == "displacement" else "units_per_V"


class Exchange(NamedTuple):
    """A channel, what the recording has of its calibration, and the record that replaces it."""

    channel: str
    entry: dict[str, object]
    record: Record


def rewrite(
    partial: Path,
    path: Path,
    exchange: Exchange,
    columns: Mapping[str, NDArray[np.float64]],
    messages: list[str],
) -> None:
    """Write the new columns, the channel's calibration and the history into the copy.

    Parameters
    ----------
    partial : the copy
    path : the original recording
    columns : values by column
    messages : warnings, which become events
    """
    name, entry, record = exchange
    history = {
        "from": path.name,
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "channel": name,
        "was": entry.get("record_id", "no record"),
        "with": record.id,
        "software": software(),
    }
    with h5py.File(partial, "r+", libver=LIBVER) as file:
        for column, values in columns.items():
            file[f"ticks/{column}"][: len(values)] = values
        group = file[f"calibration/{name}"]
        changes = _channel_attributes(entry, record, str(file.attrs["created_utc"]))
        for key, value in changes.items():
            group.attrs[key] = value
        earlier = json.loads(file.attrs.get("recalibrated", "[]"))
        file.attrs["recalibrated"] = json.dumps([*earlier, plain(history)])
        if "experiment_as_run" not in file.attrs:
            file.attrs["experiment_as_run"] = file.attrs["experiment"]
        table = experiment_in(file.attrs, path)
        for device in table["devices"].values():
            if name in device.get("channels", {}):
                channel = device["channels"][name]
                channel.pop("newtons_per_V", None)
                channel |= {key: changes[key] for key in channel.keys() & changes.keys()}
                if isinstance(record, Calibration):
                    channel["record"] = record.path.name
                    channel.pop("zero_V", None)
        file.attrs["experiment"] = tomli_w.dumps(table)
        text = f"{name}: recalibrated from {history['was']} to {record.id}"
        _add_events(file, [("info", text), *(("warning", f"{name}: {r}") for r in messages)])


def _channel_attributes(
    entry: dict[str, object], record: Record, created: str
) -> dict[str, object]:
    """What the new file keeps of the channel: the new record, and that of the run."""
    changes: dict[str, object] = {
        "was_record_id": entry.get("was_record_id", entry.get("record_id", "")),
        "was_record": entry.get("was_record", entry.get("record", "")),
        "record": record.text,
        "record_id": record.id,
        "hash": record.record.hash,
        "status": record.record.status,
        "article": record.record.article.name,
        "serial": record.record.article.serial,
        "valid_until": record.record.act.valid_until.isoformat(),
        "expired": created[:10] > record.record.act.valid_until.isoformat(),
    }
    if isinstance(record, Calibration):
        chain = record.chain(bridge=entry.get("raw_unit") == "mV/V")
        capacity_N = record.record.article.capacity_N
        return changes | {
            "raw_per_ratio": chain.raw_per_ratio,
            "raw_offset": chain.offset,
            "coefficients": list(chain.coefficients),
            "capacity_N": capacity_N,
            "uncertainty_N": record.force_uncertainty_N(capacity_N),
        }
    values_by_name = dict(zip(record.names, record.values.tolist(), strict=True))
    whole = {"counts_per_turn", "direction"}
    changes |= {
        key: round(v) if key in whole else v for key, v in values_by_name.items() if key in entry
    }
    if entry.get("kind") in ("voltage", "displacement"):
        units_per_V, zero_V = linear_of(values_by_name, entry)
        chain = Chain.linear(units_per_V, zero_V)
        changes |= {slope_key(entry): units_per_V, "zero_V": zero_V}
        changes |= {"raw_offset": chain.offset, "coefficients": list(chain.coefficients)}
    return changes


def _add_events(file: h5py.File, values_by_name: list[tuple[str, str]]) -> None:
    events = file["events"]
    recorded = file[RECORDED][:] if RECORDED in file else None
    n = len(events) if recorded is None or len(recorded) < 2 else int(recorded[1])
    t_s = float(file["ticks/t_s"][-1]) if len(file["ticks/t_s"]) else 0.0
    events.resize(n + len(values_by_name), axis=0)
    for i, (level, text) in enumerate(values_by_name):
        events[n + i] = np.array(
            (t_s, level, "recalibrate", text.encode()[:256]), dtype=events.dtype
        )
    if recorded is not None and len(recorded) >= 2:
        recorded[1] = n + len(values_by_name)
        file[RECORDED][:] = recorded


def settle(
    partial: Path, figures: dict[str, object], name: str, record: Record, created: str
) -> None:
    """Update the figures and the calibration status of the channel in the summary."""
    with h5py.File(partial, "r+", libver=LIBVER) as file:
        summary = json.loads(file.attrs["summary"])
        started = summary.get("timing", {})
        summary |= figures | {"timing": started}
        calibration = summary.setdefault("calibration", {})
        for key, lines in calibration.items():
            kept_lines = [x for x in lines if x != name and not x.startswith(f"{name}: ")]
            calibration[key] = kept_lines
        label = f"{name}: calibration {record.id}"
        until = record.record.act.valid_until.isoformat()
        if created[:10] > until:
            calibration.setdefault("expired", []).append(f"{label} expired on {until}")
        if record.record.status in ("assumed", "simulated"):
            which = {"assumed": "assumed", "simulated": "rehearsed"}[record.record.status]
            calibration.setdefault(which, []).append(f"{label} is {record.record.status}")
        file.attrs["summary"] = json.dumps(summary)
        write_checksums(file)
