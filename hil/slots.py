"""Where a tick's readings and commands stand: the channels, outputs, boards and cells of a rig."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from hil.frame import Commands, Frame
from hil.frame import units as units_of

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True)
class Channel:
    """One measured signal of a rig, and the names of its columns.

    The main force is the rig's force; any other force is named after its channel.

    Attributes
    ----------
    suffix : str
        The unit at the end of its names, as `hil.frame.unit_suffix` gives it.
    force : {"", "main", "further"}
        Whether it is a force, and whether it is the one that is controlled.
    unit : str
        Of a reading that the model knows nothing of; else the suffix says it.
    """

    name: str
    suffix: str
    force: Literal["", "main", "further"] = ""
    unit: str = ""

    @property
    def units(self) -> str:
        """Its unit, as a column's attribute gives it."""
        return self.unit or units_of(self.suffix)

    def column(self, role: str) -> str:
        """The column of this role, such as `force_measured_N` or `height_model_m`."""
        if self.force == "main":
            return f"force_{role}_N"
        own = f"{self.name}.force" if self.force else self.name
        return f"{own}_{role}{self.suffix}"


@dataclass(frozen=True)
class Readings:
    """What the devices of a rig have read at the current tick, one slot a source.

    Attributes
    ----------
    measured : (S,) array
        Every channel in its own unit; NaN where it gave no reading.
    valid : (S + B,) bool array
        Channels, then boards: there is a reading of this tick.
    ages_s : (D,) array
        Age of every device's last reading.
    cells_reported : (N,) uint8 array
        1 on, 0 off, 255 not known.
    board_faults : (B,) int array
        Faults that each board has latched.
    board_links : (B,) int array
        What each armed board's answers betray: bit 0 it was reset, 1 it refused a command.
    supply_faults : (P,) int array
        What is wrong with each supply: bit 0 silent, 1 wrong, 2 not off.
    cells_open : (N,) uint8 array
        1 where a cell's board has found its wire broken and has set it apart; no places where
        boards do not.
    card_faults : (C,) int array
        What is wrong with each card at this tick: bit 0 an open e-stop loop, the others a channel.
    """

    measured: NDArray[np.float64]
    valid: NDArray[np.bool_]
    ages_s: NDArray[np.float64]
    cells_reported: NDArray[np.uint8]
    board_faults: NDArray[np.int64]
    cells_open: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, dtype=np.uint8))
    board_links: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    card_faults: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    supply_faults: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


@dataclass(frozen=True)
class RigLayout:
    """What a rig consists of, in the order of its readings and commands.

    Attributes
    ----------
    channels : every measured signal
    outputs : columns of the actuators' outputs
    boards : names of the driver boards
    devices : names of all devices: boards, then cards, then all others
    others : names of those that are neither boards nor cards
    supplies : names of the bench supplies, which are not among the devices: they are slow
    n_cells : int
    cell_names : in the model's order
    gate_of : the rig's number of the gate of every cell, board after board
    waits : something has to come on before the run: a supply, an enable line
    sets_apart : a board may set cells apart whose wires are broken, `open_cells_max`
    """

    channels: tuple[Channel, ...]
    outputs: tuple[str, ...]
    boards: tuple[str, ...]
    devices: tuple[str, ...]
    n_cells: int
    gate_of: tuple[int, ...] = ()
    others: tuple[str, ...] = ()
    supplies: tuple[str, ...] = ()
    waits: bool = False
    sets_apart: bool = False
    cell_names: tuple[str, ...] = ()

    @property
    def force(self) -> str:
        """Name of the channel whose force is controlled; empty where there is none."""
        return next((channel.name for channel in self.channels if channel.force == "main"), "")

    def slot(self, name: str) -> int:
        """Where a channel stands in the readings; KeyError where there is none of this name."""
        for i, channel in enumerate(self.channels):
            if channel.name == name:
                return i
        raise KeyError(name)

    @property
    def cards(self) -> tuple[str, ...]:
        """Names of the data acquisition cards."""
        known = {*self.boards, *self.others}
        return tuple(name for name in self.devices if name not in known)

    def bind(self, frame: Frame) -> tuple[Readings, Commands]:
        """Slots for the readings, and views of the row for the commands."""
        none = np.zeros(0, dtype=np.uint8)
        readings = Readings(
            measured=np.full(len(self.channels), np.nan),
            valid=np.zeros(len(self.channels) + len(self.boards), dtype=bool),
            ages_s=np.zeros(len(self.devices)),
            cells_reported=frame.cells("cells_reported") if self.n_cells else none,
            board_faults=np.zeros(len(self.boards), dtype=np.int64),
            board_links=np.zeros(len(self.boards), dtype=np.int64),
            cells_open=frame.cells("cells_open") if self.sets_apart else none,
            card_faults=np.zeros(len(self.cards), dtype=np.int64),
            supply_faults=np.zeros(len(self.supplies), dtype=np.int64),
        )
        cells = frame.cells("cells_commanded") if self.n_cells else none
        return readings, Commands(cells, frame.span(self.outputs))


@dataclass(frozen=True)
class Signal:
    """The columns of one measured signal of a recording; None where there is none."""

    name: str
    suffix: str
    measured: str
    model: str
    reference: str | None


def signals_in(columns: Iterable[str]) -> list[Signal]:
    """The measured signals that a twin stands beside; the rig's force comes first."""
    names = set(columns)
    found = []
    for measured in names:
        name, role, suffix = measured.partition("_measured")
        model, reference = f"{name}_model{suffix}", f"{name}_reference{suffix}"
        if role and model in names:
            there = reference if reference in names else None
            found.append(Signal(name, suffix, measured, model, there))
    return sorted(found, key=lambda signal: (signal.name != "force", signal.name))


def valid_rows(run: xr.Dataset, source: str) -> NDArray[np.bool_]:
    """Rows in which a channel gave a reading, or a board an answer; by its name.

    All rows of a recording that does not tell of it.
    """
    flags = list(run.valid_bits.attrs.get("flags", ()))
    if source not in flags:
        return np.ones(run.sizes["tick"], dtype=bool)
    return np.asarray(run.valid_bits.values >> np.uint64(flags.index(source)) & np.uint64(1) != 0)
