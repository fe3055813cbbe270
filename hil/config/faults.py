"""The file of `hil run --inject`: what breaks, when, and for how long."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from hil.config import schema
from hil.config.cards import cards_of
from hil.config.files import Merged, read_toml
from hil.config.instruments import boards_of, supplies_of
from hil.config.table import NotNegative, Positive, Table
from hil.config.validate import validated
from hil.errors import ConfigError, one_line

Kind = Literal[
    "force_offset", "force_ramp", "force_lost", "sensor_stuck", "sensor_rail", "sensor_lost",
    "sensor_nan", "cell_current", "cell_leakage", "cell_temperature", "wire_open", "estop_open",
    "host_silent", "board_silent", "frame_torn", "link_slow", "port_unplugged",
    "limits_differ", "card_estop_open", "machine_stalls", "recorder_killed", "controller_nan",
    "controller_raises", "supply_late", "supply_mute", "supply_voltage", "supply_drops",
    "supply_stays_on", "enable_stuck_low", "board_reset", "command_refused", "converter_dead",
    "limits_spoilt", "machine_sleeps", "gate_stuck_low", "address_stuck",
]  # fmt: skip

ON_A_CELL = frozenset({"cell_current", "cell_leakage", "cell_temperature", "wire_open"})
ON_A_BOARD = ON_A_CELL | {
    "estop_open", "host_silent", "board_silent", "frame_torn", "link_slow", "port_unplugged",
    "limits_differ", "board_reset", "command_refused", "converter_dead", "limits_spoilt",
}  # fmt: skip
OF_VIRTUAL_TIME = frozenset({"machine_stalls", "machine_sleeps"})
OF_SIMULATED_CARDS = frozenset({"sensor_lost", "sensor_nan"})


class FaultTable(Table):
    """One fault; it enters at the plant, a pin, the wire or a process, as its kind says.

    `value` is what the kind needs: newtons, newtons a second, amperes, volts, degrees Celsius,
    seconds.
    """

    kind: Kind
    at_s: NotNegative
    for_s: Positive | None = None
    value: float = 0.0
    cell: Annotated[int, Field(ge=1)] = 1
    device: str | None = None


class FaultFile(Table):
    fault: Annotated[list[FaultTable], Field(min_length=1)]


def load_faults(path: Path) -> list[FaultTable]:
    """The faults of a file; ConfigError with file, key and remedy where it is wrong."""
    table = read_toml(path)
    return list(validated(FaultFile, Merged(table, [(str(path), table)])).fault)


def refuse_absent(
    faults: Sequence[FaultTable],
    devices: Mapping[str, schema.DeviceTable],
    backends: Mapping[str, str],
    clock: str,
    duration_s: float,
) -> None:
    """ConfigError for every fault that this run would never meet: it would seem to bear it.

    Parameters
    ----------
    backends : of every device
    """
    lines = []
    for i, fault in enumerate(faults):
        why = _why_absent(fault, devices, backends, clock)
        if fault.at_s >= duration_s:
            why = why or f"at_s = {fault.at_s:g}: the run ends at {duration_s:g} s"
        if why:
            lines.append(one_line(f"--inject: fault {i + 1}, {fault.kind}: {why}"))
    if lines:
        raise ConfigError("\n".join(lines))


def _why_absent(
    fault: FaultTable,
    devices: Mapping[str, schema.DeviceTable],
    backends: Mapping[str, str],
    clock: str,
) -> str:
    """Why a fault has no place in this run; empty where it has one."""
    if fault.kind in OF_VIRTUAL_TIME and clock != "virtual":
        return "on the virtual clock only"
    cards = cards_of(devices)
    if fault.kind in OF_SIMULATED_CARDS and all(backends.get(c) == "emulated" for c in cards):
        return "not on an emulated card: choose sensor_stuck or sensor_rail, or --backend daq=sim"
    places = _places(fault, devices)
    if places is None:
        return ""
    what, names = places
    if not names:
        return f"the rig has no {what}"
    if fault.device is not None and fault.device not in names:
        return f"device = '{fault.device}': no {what} of this rig: choose {', '.join(names)}"
    if fault.kind in ON_A_CELL:
        boards = boards_of(devices)
        n = max(len(boards[name].cells) for name in names if fault.device in (None, name))
        if fault.cell > n:
            return f"cell = {fault.cell}: cells are counted on a board, 1 to {n}"
    return ""


def _places(
    fault: FaultTable, devices: Mapping[str, schema.DeviceTable]
) -> tuple[str, list[str]] | None:
    """What a fault happens to, and those of the rig by name; None: to no device."""
    cards = cards_of(devices)
    if fault.kind in ON_A_BOARD:
        return "board", list(boards_of(devices))
    if fault.kind.startswith("supply_"):
        return "supply", list(supplies_of(devices))
    if fault.kind.startswith("sensor_"):
        return "channel of a card", [name for card in cards.values() for name in card.channels]
    if fault.kind == "card_estop_open":
        there = [name for name, card in cards.items()
                 if any(line.kind == "estop" for line in card.lines.values())]  # fmt: skip
        return "card with an e-stop line", there
    if fault.kind == "enable_stuck_low":
        lines = [item for card in cards.values() for item in card.lines.items()]
        return "enable line", [name for name, line in lines if line.kind == "enable"]
    return None
