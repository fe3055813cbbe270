"""What a bring-up knows before it begins: the board as its rig describes it, and the dummy load."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hil.devices.board import protocol
from hil.devices.board.bundled_firmware import shipped_hash
from hil.errors import ConfigError, remedy
from hil.experiment import board_limits
from hil.experiment.load import load_rig
from hil.mechanics.sma.limits import SUPPLY_ERROR

HELD_SHARE = 1.1  # of the budget that this current uses up: the board rounds up
LOAD_SHARE = 1.1  # of the least current that a gate may have on, for a load
NAME = "board"  # of a board without a rig
READING_MAX = 2.2  # a current may read so many times what it is: a gain off by two is measured


@dataclass(frozen=True)
class Setup:
    """A board and its bench.

    Attributes
    ----------
    name, address : of the board
    cells : what is behind its gates, gate by gate
    limits : its table; None until the board was asked, without a rig
    supply_V : of the cells
    load_Ohm : of the dummy load at every output
    wire_A : the current of an intact wire at the first output; None: not described
    firmware_hash : that it must have; None: any with this protocol
    serial : that it must have; None: any
    measures : whether its build measures currents
    estop : it has an e-stop
    as_delivered : its fuses may be those that it was sold with
    """

    name: str
    address: str
    cells: tuple[str, ...]
    limits: Mapping[str, int] | None
    supply_V: float
    load_Ohm: float
    wire_A: float | None
    firmware_hash: int | None
    serial: str | None = None
    measures: bool = True
    estop: bool = True
    as_delivered: bool = False

    @property
    def table(self) -> Mapping[str, int]:
        """The board's table of limits; known once it has been asked."""
        assert self.limits is not None
        return self.limits

    @property
    def load_A(self) -> float:
        return self.supply_V / self.load_Ohm

    @property
    def on_min_A(self) -> float:
        return 1e-3 * self.table["current_on_min_mA"]

    @property
    def off_max_A(self) -> float:
        return 1e-3 * self.table["current_off_max_mA"]

    @property
    def count_A(self) -> float:
        """A step of the board's converter."""
        return 1e-3 * self.table["current_full_scale_mA"] / 1023

    def loads_table(self) -> dict[str, int]:
        """The board's table with dummy loads at every output, and no wire anywhere.

        A gate whose own input sees nothing can be armed, so that the input that does is found. A
        reading of up to READING_MAX times the load's current trips neither the current's limit nor
        the heat budget, so that a wrong gain is measured. Everything else is as ever.
        """
        most_mA = min(
            round(1e3 * READING_MAX * self.load_A), protocol.LIMITS["current_max_mA"].highest
        )
        heat = HELD_SHARE * (0.1 * most_mA) ** 2 * self.table["heat_time_constant_ms"]
        return {
            **self.table,
            "current_on_min_mA": 0,
            "current_max_mA": most_mA,
            "heat_max_cA2ms": round(heat),
        }

    def check_load(self) -> None:
        """Refuse a load whose current the board's own table does not let pass.

        Raises
        ------
        ConfigError
            It says which loads fit.
        """
        low_A = max(LOAD_SHARE * self.on_min_A, 2.0 * self.off_max_A)
        high_A = 0.9e-3 * self.table["current_max_mA"]
        if not low_A <= self.load_A <= high_A:
            raise ConfigError(
                f"--load {self.load_Ohm:g}: {self.supply_V:g} V make {self.load_A:.3g} A, and the "
                f"limits of {self.name} want {low_A:.3g} to {high_A:.3g} A: choose "
                f"{self.supply_V / high_A:.3g} to {self.supply_V / low_A:.3g} Ohm"
            )


def of_rig(
    path: Path,
    sets: tuple[str, ...],
    board: str | None,
    load_Ohm: float | None,
    supply_V: float | None,
) -> Setup:
    """The board of a rig; its dummy load draws what an intact wire draws.

    Raises
    ------
    ConfigError
        The rig is not valid, has no such board, does not say what a wire draws, or its limits
        would let a wire overheat.
    """
    rig = load_rig(path, sets)
    boards = rig.protections
    names = [one.name for one in boards]
    if board is not None and board not in names:
        raise ConfigError(f"--board {board}: {path} has no such board{remedy(board, names)}")
    if board is None and len(boards) != 1:
        what = f"choose one with --board: {', '.join(names)}" if boards else "has no driver board"
        raise ConfigError(f"{path}: {what}")
    one = next(p for p in boards if board in (None, p.name))
    board_limits.refuse(path, [one])
    table = rig.boards[one.name]
    rig_V = one.bench.supply_V
    if supply_V is not None and 0.0 < rig_V * (1.0 + SUPPLY_ERROR) < supply_V:
        raise ConfigError(
            f"--supply {supply_V:g}: the limits of {path} are for wires at {rig_V:g} V: leave out "
            "--supply, or change the rig's voltage and its limits"
        )
    supply_V = supply_V or rig_V
    if supply_V <= 0.0:
        raise ConfigError(f"{path}: names no voltage of the cells' supply: add --supply V")
    drawn = [cell.ordinary_A(supply_V) for cell in one.cells if cell.cell == table.cells[0]]
    wire_A = drawn[0] if drawn else None
    if load_Ohm is None and wire_A is None:
        raise ConfigError(
            f"{path}: devices.{one.name}: no wire is described: add --load OHM, the dummy load"
        )
    if load_Ohm is None:
        assert wire_A is not None
        load_Ohm = float(f"{supply_V / wire_A:.2g}")
    needed = shipped_hash(table.build) if table.firmware is None else int(table.firmware, 16)
    return Setup(
        one.name, table.port, tuple(table.cells), dict(one.limits), supply_V, load_Ohm, wire_A,
        needed, table.serial, measures=table.measures, estop=table.estop == "proved",
        as_delivered=table.fuses == "as_delivered",
    )  # fmt: skip


def of_port(address: str, load_Ohm: float | None, supply_V: float | None) -> Setup:
    """A board without a rig: its gates and limits are those that it reports.

    Raises
    ------
    ConfigError
        Load or supply is missing.
    """
    if load_Ohm is None or supply_V is None:
        raise ConfigError(
            "hil board bring-up --port: without a RIG.toml, add --load OHM and --supply V, the "
            "dummy load and the voltage of the cells' supply"
        )
    return Setup(NAME, address, (), None, supply_V, load_Ohm, None, shipped_hash())
