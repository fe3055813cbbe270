"""Data acquisition cards: calibrations of their channels, consistency checks of their tables."""

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

from hil.calibration.files import Calibration, load_record, located
from hil.calibration.signal_chain import Chain
from hil.config.files import Merged, folder_of
from hil.devices.sensor_tables import VoltsForceTable
from hil.devices.tables import (
    AnalogChannelTable,
    DeviceTable,
    DisplacementChannelTable,
    ForceChannelTable,
    NidaqTable,
    Role,
)
from hil.rig.run_tables import GuardTable, RigTables

SAMPLES_PER_TICK = 10
AGREEMENT = 1e-6
MV_PER_V = 1e3


def of_role(role: Role, devices: Mapping[str, DeviceTable]) -> dict[str, Any]:
    """The devices of this role, by name."""
    return {name: device for name, device in devices.items() if device.role == role}


def cards_of(devices: Mapping[str, DeviceTable]) -> dict[str, NidaqTable]:
    """The data acquisition cards among the devices."""
    return of_role("card", devices)


def load_records(devices: Mapping[str, DeviceTable], merged: Merged) -> dict[str, Calibration]:
    """Load every channel's calibration; its path is relative to the file that names it.

    Raises
    ------
    ConfigError
        A calibration is missing, invalid, or was edited by hand.
    """
    calibrations = {}
    measuring: dict[str, Any] = cards_of(devices) | of_role("instrument", devices)
    for name, device in measuring.items():
        for channel_name, channel in device.channels.items():
            if channel.force and channel.record is not None:
                key = ("devices", name, "channels", channel_name, "record")
                origin = merged.origin(key)
                folder = folder_of(origin)
                named_by = f"{origin}: {'.'.join(key)}"
                file = located(folder, channel.record, named_by=named_by)
                calibrations[channel_name] = load_record(file, named_by=named_by)
    return calibrations


def range_raw(
    card: NidaqTable, channel: AnalogChannelTable, calibration: Calibration | None
) -> float:
    """Input range of a channel: largest raw reading, V, or mV/V on a bridge input."""
    if calibration is not None and channel.bridge is not None:
        return max(abs(end) for end in calibration.record.model.range_mV_per_V)
    return card.range_V


def per_tick(card: NidaqTable, period_s: float) -> int:
    """Number of samples of each channel per tick."""
    if card.acquisition != "block":
        return 1
    return SAMPLES_PER_TICK if card.rate_Hz is None else round(card.rate_Hz * period_s)


def check(tables: RigTables, records: Mapping[str, Calibration]) -> Iterator[tuple[str, str]]:
    """Check cards against their calibrations, the loop and the guard: (key, text) pairs."""
    for name, card in cards_of(tables.devices).items():
        yield from _rate(f"devices.{name}", card, tables.loop.period_s)
        yield from _following(name, card, tables)
        for channel_name, channel in card.channels.items():
            if channel.kind == "force":
                key = f"devices.{name}.channels.{channel_name}"
                record = records.get(channel_name)
                yield from _agreement(key, channel, record)
                chain, end = channel.chain(record), range_raw(card, channel, record)
                yield from _reach(key, channel, chain, end, tables.guard)
            elif channel.kind == "displacement":
                key = f"devices.{name}.channels.{channel_name}"
                yield from _travel(key, card, channel_name, channel, tables.guard)
    for name, device in of_role("instrument", tables.devices).items():
        for channel_name, channel in device.channels.items():
            range_V = getattr(channel, "range_V", None)
            if not isinstance(channel, VoltsForceTable) or range_V is None:
                continue
            excitation_V = getattr(channel, "excitation_V", None)
            end = range_V if excitation_V is None else MV_PER_V * range_V / excitation_V
            key, record = f"devices.{name}.channels.{channel_name}", records.get(channel_name)
            if (read := channel.chain(record)) is not None:
                yield from _reach(key, channel, read, end, tables.guard)


def _rate(key: str, card: NidaqTable, period_s: float) -> Iterator[tuple[str, str]]:
    if card.rate_Hz is None:
        return
    if card.acquisition != "block":
        yield f"{key}.rate_Hz", f"needs acquisition = 'block', not '{card.acquisition}'"
        return
    n = card.rate_Hz * period_s
    if n < 1.0 - 1e-9 or abs(n - round(n)) > 1e-9 * n:
        yield (
            f"{key}.rate_Hz = {card.rate_Hz:g}",
            f"give a whole multiple of the loop's {1.0 / period_s:g} Hz",
        )


def _following(name: str, card: NidaqTable, tables: RigTables) -> Iterator[tuple[str, str]]:
    """Require that the card whose clock or start is used has one, at this card's rate."""
    cards = cards_of(tables.devices)
    others = [n for n, other in cards.items() if n != name and other.follows is None]
    for key in ("clock_from", "start_from"):
        followed = getattr(card, key)
        if followed is None:
            continue
        where = f"devices.{name}.{key} = '{followed}'"
        if followed not in others:
            yield where, f"choose a card with a clock of its own: {', '.join(others) or 'none'}"
            continue
        both = (card, cards[followed])
        if any(c.acquisition != "block" for c in both):
            yield where, "needs acquisition = 'block' on both cards"
        elif any(all(c.kind == "encoder" for c in one.channels.values()) for one in both):
            yield where, "needs an analogue input on both cards: their clock is shared"
        elif len({per_tick(c, tables.loop.period_s * c.every) / c.every for c in both}) > 1:
            yield where, "give both cards the same rate_Hz"


def _agreement(
    key: str, channel: ForceChannelTable, calibration: Calibration | None
) -> Iterator[tuple[str, str]]:
    if calibration is None:
        return
    if channel.zero_V:
        yield f"{key}.zero_V", "the calibration's conditioner has an offset already: remove one"
    slope = channel.chain(calibration).slope()
    stated = channel.newtons_per_V
    if stated is not None and abs(stated - slope) > AGREEMENT * abs(slope):
        yield (
            f"{key}.newtons_per_V = {stated:g}",
            f"calibration {calibration.id} gives {slope:.9g}: remove one of them",
        )


def _reach(
    key: str,
    channel: ForceChannelTable | VoltsForceTable,
    chain: Chain,
    end: float,
    guard: GuardTable,
) -> Iterator[tuple[str, str]]:
    """Require that the channel, of raw readings up to `end`, can measure beyond the guard's limit.

    An instrument does not tell that an input is at an end of its range.
    """
    if guard.force_max_N is None:
        return
    largest_N = min(abs(chain.value(end)), abs(chain.value(-end)))
    if largest_N <= guard.force_max_N:
        text = (
            f"the channel's range ends at {largest_N:g} N, within guard.force_max_N = "
            f"{guard.force_max_N:g}: the guard would never trip"
        )
        if channel.record is not None:
            yield f"{key}.record", text
        else:
            yield f"{key}.newtons_per_V = {channel.newtons_per_V:g}", text


def _travel(
    key: str, card: NidaqTable, name: str, channel: DisplacementChannelTable, guard: GuardTable
) -> Iterator[tuple[str, str]]:
    """Require limits of a displacement, and that the channel can measure beyond both."""
    limits = guard.signals.get(name)
    if limits is None:
        yield f"guard.signals.{name}", "missing: give min and max of this displacement, in m"
        return
    chain, end = channel.chain(None), card.range_V
    low_m, high_m = sorted((chain.value(-end), chain.value(end)))
    if low_m >= limits.min or high_m <= limits.max:
        yield (
            f"{key}.metres_per_V = {channel.metres_per_V:g}",
            f"the channel's range is {low_m:g} to {high_m:g} m, within guard.signals.{name}: the "
            "guard would never trip",
        )


def calibrations(
    tables: RigTables, records: Mapping[str, Calibration], today: date
) -> dict[str, dict[str, object]]:
    """Metadata of every channel for the recording: its table and its complete calibration."""
    by_channel: dict[str, dict[str, object]] = {}
    for card in cards_of(tables.devices).values():
        for name, channel in card.channels.items():
            entry = channel.model_dump(exclude={"sim", "bridge", "record"}, exclude_none=True)
            calibration = records.get(name)
            if channel.kind != "encoder":
                chain, bridge = channel.chain(calibration), channel.bridge
                entry |= {
                    "raw_unit": "mV/V" if bridge else "V",
                    "raw_per_ratio": chain.raw_per_ratio,
                    "raw_offset": chain.offset,
                    "coefficients": list(chain.coefficients),
                }
            if calibration is not None:
                entry |= _record_facts(calibration, today)
            by_channel[name] = entry
    for device_name, device in of_role("instrument", tables.devices).items():
        for name, channel in device.channels.items():
            chain = channel.chain(records.get(name))
            if chain is None:
                continue
            by_channel[name] = {
                "kind": channel.kind,
                "terminal": device_name,
                "raw_unit": channel.raw_unit,
                "raw_per_ratio": chain.raw_per_ratio,
                "raw_offset": chain.offset,
                "coefficients": list(chain.coefficients),
            }
            if name in records:
                by_channel[name] |= _record_facts(records[name], today)
    return by_channel


def _record_facts(calibration: Calibration, today: date) -> dict[str, object]:
    """Facts about a channel's calibration."""
    return {
        "record": calibration.text,
        "record_id": calibration.id,
        "hash": calibration.record.hash,
        "status": calibration.record.status,
        "capacity_N": calibration.record.article.capacity_N,
        "uncertainty_N": calibration.force_uncertainty_N(calibration.record.article.capacity_N),
        "article": calibration.record.article.name,
        "serial": calibration.record.article.serial,
        "valid_until": calibration.record.act.valid_until.isoformat(),
        "expired": calibration.expired(today),
    }
