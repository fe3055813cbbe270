"""Layout of a tick's readings and commands: channels, outputs, boards and cells of a rig."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from hil.errors import ConfigError
from hil.loop.frame import Commands, Frame
from hil.loop.frame import units as units_of

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True)
class Channel:
    """One measured signal of a rig, and the names of its columns.

    The main force is the rig's force; any other force is named after its channel.

    Attributes
    ----------
    suffix : str
        The unit at the end of its names, as `hil.loop.frame.unit_suffix` gives it.
    force : {"", "main", "further"}
        Whether it is a force, and whether it is the controlled one.
    unit : str
        Unit of a reading that is not modelled; else the suffix gives it.
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
    """Named views of the row: what the devices have read at the current tick. It stores nothing.

    Ages and faults stand in the columns of their devices, `<device>_age_s` and
    `<device>_fault_bits`.

    Attributes
    ----------
    measured : (S,) array
        Every channel in its own unit; NaN where it gave no reading.
    valid_word : (1,) uint64 array
        `valid_bits`: channels, then boards, from which there is a reading of this tick.
    n_sources : number of channels and boards
    cells_reported : (N,) uint8 array
        1 on, 0 off, 255 not known.
    cells_open : (N,) uint8 array
        1 where a cell's board has found its wire broken and has isolated it; empty where boards
        do not.
    """

    measured: NDArray[np.float64]
    valid_word: NDArray[np.uint64]
    n_sources: int
    cells_reported: NDArray[np.uint8]
    cells_open: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, dtype=np.uint8))

    def is_valid(self, source: int) -> bool:
        """Whether this channel or board gave a reading at this tick."""
        return bool(int(self.valid_word[0]) >> source & 1)

    def mark_valid(self, sources: int, valid: int) -> None:
        """Replace the bits of these sources by those of `valid`, which holds no others."""
        self.valid_word[0] = int(self.valid_word[0]) & ~sources | valid

    @property
    def valid(self) -> NDArray[np.bool_]:
        """Of every channel, then every board, whether it gave a reading; a copy."""
        word = int(self.valid_word[0])
        return np.array([word >> i & 1 for i in range(self.n_sources)], dtype=bool)


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
    waits : power must come on before the run: a supply, an enable line
    sets_apart : a board may isolate cells with open wires, `open_cells_max`
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
        """Name of the channel whose force is controlled; empty if there is none."""
        return next((channel.name for channel in self.channels if channel.force == "main"), "")

    def index(self, name: str) -> int:
        """Slot of a channel in the readings; KeyError unless exactly one has this name."""
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
        """Views of the row for the readings and the commands; nothing has been read yet."""
        none = np.zeros(0, dtype=np.uint8)
        valid_at = frame.bit_index("valid_bits")
        readings = Readings(
            measured=frame.span([channel.column("measured") for channel in self.channels]),
            valid_word=frame.bits[valid_at : valid_at + 1],
            n_sources=len(self.channels) + len(self.boards),
            cells_reported=frame.cells("cells_reported") if self.n_cells else none,
            cells_open=frame.cells("cells_open") if self.sets_apart else none,
        )
        readings.measured[:] = np.nan
        readings.valid_word[:] = 0
        cells = frame.cells("cells_commanded") if self.n_cells else none
        return readings, Commands(cells, frame.span(self.outputs))


@dataclass(frozen=True)
class Signal:
    """The columns of one measured signal of a recording; None for a missing column."""

    name: str
    suffix: str
    measured: str
    model: str
    reference: str | None


def signals_in(columns: Iterable[str]) -> list[Signal]:
    """The measured signals that have a twin; the rig's force comes first."""
    names = set(columns)
    found = []
    for measured in names:
        name, role, suffix = measured.partition("_measured")
        model, reference = f"{name}_model{suffix}", f"{name}_reference{suffix}"
        if role and model in names:
            there = reference if reference in names else None
            found.append(Signal(name, suffix, measured, model, there))
    return sorted(found, key=lambda signal: (signal.name != "force", signal.name))


def require_columns(run: xr.Dataset, names: Iterable[str]) -> None:
    """Refuse a run of `open_run` that lacks columns which its configuration gives.

    Raises
    ------
    ConfigError
        One line that names them.
    """
    if missing := [name for name in names if name not in run]:
        raise ConfigError(
            f"{run.encoding['source']}: has no column {', '.join(missing)}: made by another version"
        )


def valid_rows(run: xr.Dataset, source: str) -> NDArray[np.bool_]:
    """Rows in which a channel gave a reading or a board an answer, by its name.

    All rows if the recording has no such bit.
    """
    flags = list(run.valid_bits.attrs.get("flags", ()))
    if source not in flags:
        return np.ones(run.sizes["tick"], dtype=bool)
    return np.asarray(run.valid_bits.values >> np.uint64(flags.index(source)) & np.uint64(1) != 0)
