"""Data acquisition cards: their calibration records, and what their tables say of each other."""

from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

from hil.config import schema
from hil.config.calibration import Calibration, load_record
from hil.config.files import Merged
from hil.signals import Chain

SAMPLES_PER_TICK = 10
AGREEMENT = 1e-6


def cards_of(devices: Mapping[str, schema.DeviceTable]) -> dict[str, schema.NidaqTable]:
    """The data acquisition cards among the devices."""
    return {name: d for name, d in devices.items() if isinstance(d, schema.NidaqTable)}


def load_records(
    devices: Mapping[str, schema.DeviceTable], merged: Merged
) -> dict[str, Calibration]:
    """Every channel's record; its path is relative to the file that names it.

    Raises
    ------
    ConfigError
        A record is missing, wrong, or was changed by hand.
    """
    records = {}
    for name, card in cards_of(devices).items():
        for channel_name, channel in card.channels.items():
            if isinstance(channel, schema.ForceChannelTable) and channel.record is not None:
                key = ("devices", name, "channels", channel_name, "record")
                origin = merged.origin(key)
                folder = Path() if origin.startswith("--set") else Path(origin).parent
                records[channel_name] = load_record(
                    folder / channel.record, named_by=f"{origin}: {'.'.join(key)}"
                )
    return records


def chain_of(
    channel: schema.ForceChannelTable | schema.VoltageChannelTable, record: Calibration | None
) -> Chain:
    """From volts (mV/V on a bridge input) to what they mean."""
    if isinstance(channel, schema.VoltageChannelTable):
        return Chain.linear(channel.units_per_V, channel.zero_V)
    if record is not None:
        return record.chain(bridge=channel.bridge is not None)
    if channel.newtons_per_V is None:
        raise ValueError("a channel has neither record nor newtons_per_V")
    return Chain.linear(channel.newtons_per_V, channel.zero_V)


def range_raw(
    card: schema.NidaqTable, channel: schema.AnyChannelTable, record: Calibration | None
) -> float:
    """Largest raw reading that a channel is asked for, V or mV/V."""
    if isinstance(channel, schema.ForceChannelTable) and channel.bridge is not None and record:
        return max(abs(end) for end in record.record.model.range_mV_per_V)
    return card.range_V


def per_tick(card: schema.NidaqTable, period_s: float) -> int:
    """Samples of every channel in a tick."""
    if card.acquisition != "block":
        return 1
    return SAMPLES_PER_TICK if card.rate_Hz is None else round(card.rate_Hz * period_s)


def check(
    tables: schema.RigTables, records: Mapping[str, Calibration]
) -> Iterator[tuple[str, str]]:
    """Cards against their records, the loop and the guard: (key, text) pairs."""
    for name, card in cards_of(tables.devices).items():
        yield from _rate(f"devices.{name}", card, tables.loop.period_s)
        for channel_name, channel in card.channels.items():
            if isinstance(channel, schema.ForceChannelTable):
                key = f"devices.{name}.channels.{channel_name}"
                record = records.get(channel_name)
                yield from _agreement(key, channel, record)
                yield from _reach(key, card, channel, record, tables.guard)


def _rate(key: str, card: schema.NidaqTable, period_s: float) -> Iterator[tuple[str, str]]:
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
    key: str, channel: schema.ForceChannelTable, record: Calibration | None
) -> Iterator[tuple[str, str]]:
    if record is None:
        return
    if channel.zero_V:
        yield f"{key}.zero_V", "the record's conditioner has the offset: remove one"
    slope = chain_of(channel, record).slope()
    stated = channel.newtons_per_V
    if stated is not None and abs(stated - slope) > AGREEMENT * abs(slope):
        yield (
            f"{key}.newtons_per_V = {stated:g}",
            f"record {record.id} says {slope:.9g}: take one of them",
        )


def _reach(
    key: str,
    card: schema.NidaqTable,
    channel: schema.ForceChannelTable,
    record: Calibration | None,
    guard: schema.GuardTable,
) -> Iterator[tuple[str, str]]:
    """A force beyond the guard's limit must still be seen."""
    if guard.force_max_N is None:
        return
    chain, end = chain_of(channel, record), range_raw(card, channel, record)
    largest_N = min(abs(chain.value(end)), abs(chain.value(-end)))
    if largest_N <= guard.force_max_N:
        text = (
            f"the channel ends at {largest_N:g} N, below guard.force_max_N = "
            f"{guard.force_max_N:g}: the guard would never see it"
        )
        if channel.record is not None:
            yield f"{key}.record", text
        else:
            yield f"{key}.newtons_per_V = {channel.newtons_per_V:g}", text


def calibrations(
    tables: schema.RigTables, records: Mapping[str, Calibration], today: date
) -> dict[str, dict[str, Any]]:
    """What a recording keeps of every channel: its table, and the whole record it used."""
    kept: dict[str, dict[str, Any]] = {}
    for card in cards_of(tables.devices).values():
        for name, channel in card.channels.items():
            own = channel.model_dump(exclude={"sim", "bridge", "record"}, exclude_none=True)
            found = records.get(name)
            if not isinstance(channel, schema.EncoderChannelTable):
                chain = chain_of(channel, found)
                bridge = isinstance(channel, schema.ForceChannelTable) and channel.bridge
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
