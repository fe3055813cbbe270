"""The file of `hil run --inject`: faults with their kind, time and duration."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from hil.config.files import Merged, read_toml
from hil.config.table import NotNegative, Positive, Table
from hil.config.validate import validated
from hil.errors import ConfigError

Kind = Literal[
    "force_offset", "force_ramp", "force_lost", "sensor_stuck", "sensor_rail", "sensor_lost",
    "sensor_nan", "cell_current", "cell_leakage", "cell_temperature", "wire_open", "estop_open",
    "host_silent", "board_silent", "frame_torn", "link_slow", "port_unplugged",
    "limits_differ", "card_estop_open", "machine_stalls", "recorder_killed", "controller_nan",
    "controller_raises", "supply_late", "supply_mute", "supply_voltage", "supply_drops",
    "supply_stays_on", "enable_stuck_low", "board_reset", "command_refused", "converter_dead",
    "limits_spoilt", "machine_sleeps", "gate_stuck_low", "address_stuck", "line_stuck",
    "program_spoilt", "current_gain", "relay_welded", "card_unplugged", "card_reserved",
    "packets_late", "cell_broken", "cell_weak",
]  # fmt: skip

ON_A_CELL = frozenset(
    {"cell_current", "cell_leakage", "cell_temperature", "current_gain", "wire_open"}
    | {"cell_broken", "cell_weak"}
)
ON_A_BOARD = ON_A_CELL | {
    "estop_open", "host_silent", "board_silent", "frame_torn", "link_slow", "port_unplugged",
    "limits_differ", "board_reset", "command_refused", "converter_dead", "limits_spoilt",
    "program_spoilt",
    "relay_welded",
}  # fmt: skip
WITH_VALUE = frozenset(
    {"force_offset", "force_ramp", "cell_current", "cell_leakage", "cell_temperature"}
    | {"current_gain", "cell_weak", "address_stuck", "relay_welded", "line_stuck"}
    | {"supply_voltage", "supply_late", "machine_sleeps"}
)
OF_VIRTUAL_TIME = frozenset({"machine_stalls", "machine_sleeps"})
OF_EMULATED_CARDS = frozenset({"card_unplugged", "card_reserved", "packets_late"})


class FaultTable(Table):
    """One fault; its kind determines where it acts: the plant, a pin, the serial line, a process.

    `value` is in the unit of the kind: N, N/s, A, V, °C or s; of a gain it is 1 without a fault. Of
    `cell_weak` it is the share of the cell's force that is left. Kinds that are not of WITH_VALUE
    have none.
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
    """Load the faults of a file; ConfigError with file, key and remedy if it is not valid."""
    table = read_toml(path)
    if "fault" not in table:
        what = "an experiment" if "experiment" in table else "no [[fault]]"
        raise ConfigError(f"{path}: {what}: give --inject a file with [[fault]] tables")
    return list(validated(FaultFile, Merged(table, [(str(path), table)])).fault)
