"""Data acquisition cards: their calibrations, and consistency checks of their tables."""

from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

from hil.calibration.files import Calibration, load_record
from hil.config.files import Merged
from hil.rig.run_tables import GuardTable, RigTables
from hil.rig.tables import (
    AnalogChannelTable,
    DeviceTable,
    ForceChannelTable,
    NidaqTable,
    Role,
)

SAMPLES_PER_TICK = 10
AGREEMENT = 1e-6


def of_role(role: Role, devices: Mapping[str, DeviceTable]) -> dict[str, Any]:
    """The devices of this role, by name."""
    return {name: device for name, device in devices.items() if device.role == role}


def cards_of(devices: Mapping[str, DeviceTable]) -> dict[str, NidaqTable]:
    """The data acquisition cards among the devices."""
    return of_role("card", devices)


def load_records(devices: Mapping[str, DeviceTable], merged: Merged) -> dict[str, Calibration]:
    """Every channel's calibration; its path is relative to the file that names it.

    Raises
    ------
    ConfigError
        A calibration is missing, wrong, or was changed by hand.
    """
    records = {}
    for name, card in cards_of(devices).items():
        for channel_name, channel in card.channels.items():
            if channel.kind == "force" and channel.record is not None:
                key = ("devices", name, "channels", channel_name, "record")
                origin = merged.origin(key)
                folder = Path() if origin.startswith("--set") else Path(origin).parent
                records[channel_name] = load_record(
                    folder / channel.record, named_by=f"{origin}: {'.'.join(key)}"
                )
    return records


def range_raw(card: NidaqTable, channel: AnalogChannelTable, record: Calibration | None) -> float:
    """Largest raw reading that a channel is asked for, V or mV/V."""
    if record is not None and channel.bridge is not None:
        return max(abs(end) for end in record.record.model.range_mV_per_V)
    return card.range_V


def per_tick(card: NidaqTable, period_s: float) -> int:
    """Samples of every channel in a tick."""
    if card.acquisition != "block":
        return 1
    return SAMPLES_PER_TICK if card.rate_Hz is None else round(card.rate_Hz * period_s)


def check(tables: RigTables, records: Mapping[str, Calibration]) -> Iterator[tuple[str, str]]:
    """Check cards against their calibrations, the loop and the guard: (key, text) pairs."""
    for name, card in cards_of(tables.devices).items():
        yield from _rate(f"devices.{name}", card, tables.loop.period_s)
        for channel_name, channel in card.channels.items():
            if channel.kind == "force":
                key = f"devices.{name}.channels.{channel_name}"
                record = records.get(channel_name)
                yield from _agreement(key, channel, record)
                yield from _reach(key, card, channel, record, tables.guard)


def _rate(key: str, card: NidaqTable, period_s: float) -> Iterator[tuple[str, str]]:
    if card.rate_Hz is None:
        return
    if card.acquisition != "block":
        yield f"{key}.rate_Hz", f"only blocks have one, acquisition is '{card.acquisition}'"
        return
    n = card.rate_Hz * period_s
    if n < 1.0 - 1e-9 or abs(n - round(n)) > 1e-9 * n:
        yield (
            f"{key}.rate_Hz = {card.rate_Hz:g}",
            f"give a whole multiple of the loop's {1.0 / period_s:g} Hz",
        )


def _agreement(
    key: str, channel: ForceChannelTable, record: Calibration | None
) -> Iterator[tuple[str, str]]:
    if record is None:
        return
    if channel.zero_V:
        yield f"{key}.zero_V", "the record's conditioner has the offset: remove one"
    slope = channel.chain(record).slope()
    stated = channel.newtons_per_V
    if stated is not None and abs(stated - slope) > AGREEMENT * abs(slope):
        yield (
            f"{key}.newtons_per_V = {stated:g}",
            f"record {record.id} says {slope:.9g}: take one of them",
        )


def _reach(
    key: str,
    card: NidaqTable,
    channel: ForceChannelTable,
    record: Calibration | None,
    guard: GuardTable,
) -> Iterator[tuple[str, str]]:
    """A force beyond the guard's limit must still be measurable."""
    if guard.force_max_N is None:
        return
    chain, end = channel.chain(record), range_raw(card, channel, record)
    largest_N = min(abs(chain.value(end)), abs(chain.value(-end)))
    if largest_N <= guard.force_max_N:
        text = (
            f"the channel ends at {largest_N:g} N, below guard.force_max_N = "
            f"{guard.force_max_N:g}: the guard would never trip"
        )
        if channel.record is not None:
            yield f"{key}.record", text
        else:
            yield f"{key}.newtons_per_V = {channel.newtons_per_V:g}", text


def calibrations(
    tables: RigTables, records: Mapping[str, Calibration], today: date
) -> dict[str, dict[str, Any]]:
    """What a recording stores of every channel: its table, and the whole calibration."""
    kept: dict[str, dict[str, Any]] = {}
    for card in cards_of(tables.devices).values():
        for name, channel in card.channels.items():
            own = channel.model_dump(exclude={"sim", "bridge", "record"}, exclude_none=True)
            found = records.get(name)
            if channel.kind != "encoder":
                chain, bridge = channel.chain(found), channel.bridge
                own |= {
                    "raw_unit": "mV/V" if bridge else "V",
                    "raw_per_ratio": chain.raw_per_ratio,
                    "raw_offset": chain.offset,
                    "coefficients": list(chain.coefficients),
                }
            if found is not None:
                own |= {
                    "record": found.text,
                    "record_id": found.id,
                    "hash": found.record.hash,
                    "status": found.record.status,
                    "capacity_N": found.record.article.capacity_N,
                    "uncertainty_N": found.force_uncertainty_N(found.record.article.capacity_N),
                    "article": found.record.article.name,
                    "serial": found.record.article.serial,
                    "valid_until": found.record.act.valid_until.isoformat(),
                    "expired": found.expired(today),
                }
            kept[name] = own
    return kept
