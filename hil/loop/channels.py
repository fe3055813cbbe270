"""Layout of a tick's readings and commands: channels, outputs, boards and cells of a rig."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from hil.errors import ConfigError
from hil.loop.frame import CELL_UNKNOWN, Commands, Frame
from hil.loop.frame import units as units_of

if TYPE_CHECKING:
    import xarray as xr

WORD_BITS = 64  # of a column of bits; the channels are in the first
_WORD = 2**WORD_BITS - 1
DUTY, DUTY_REPORTED = "cells_duty", "cells_duty_reported"  # columns of a run that modulates


def valid_columns(n_sources: int) -> list[str]:
    """Columns with the bits of so many channels and boards: `valid_bits`, `valid_bits_2`, ..."""
    further = range(2, -(-n_sources // WORD_BITS) + 1)
    return ["valid_bits", *(f"valid_bits_{i}" for i in further)]


@dataclass(frozen=True)
class Channel:
    """One measured signal of a rig, and the names of its columns.

    The columns of the main force are `force_<role>_N`; those of a further force start with the
    name of its channel.

    Attributes
    ----------
    suffix : unit at the end of its column names, as returned by `hil.loop.frame.unit_suffix`
    force : {"", "main", "further"}
        "main" is the controlled force, "further" another force, "" not a force.
    unit : unit of a reading that is not modelled; empty if the suffix gives the unit
    """

    name: str
    suffix: str
    force: Literal["", "main", "further"] = ""
    unit: str = ""

    @property
    def units(self) -> str:
        """Its unit, in the form of a column's attribute."""
        return self.unit or units_of(self.suffix)

    def column(self, role: str) -> str:
        """The column of this role, such as `force_measured_N` or `height_model_m`."""
        if self.force == "main":
            return f"force_{role}_N"
        quantity = f"{self.name}.force" if self.force else self.name
        return f"{quantity}_{role}{self.suffix}"


@dataclass(frozen=True)
class Readings:
    """Named views of the row with the readings of the current tick; it stores nothing itself.

    Ages and faults are in the columns of their devices, `<device>_age_s` and
    `<device>_fault_bits`.

    Attributes
    ----------
    measured : (S,) array, reading of every channel in its own unit; NaN if there is none
    valid_words : (W,) uint64 array, columns `valid_columns`: one bit for each channel, then each
        board; set if it has a reading of this tick
    n_sources : number of channels and boards
    cells_reported : (N,) uint8 array, 1 on, 0 off, 255 unknown
    cells_open : (N,) uint8 array, 1 if the board has found the cell's wire open and has isolated
        the cell; empty on rigs whose boards do not isolate cells
    duty_reported : (N,) array, duty that the boards have confirmed, NaN if unknown; empty unless
        the controller modulates
    """

    measured: NDArray[np.float64]
    valid_words: NDArray[np.uint64]
    n_sources: int
    cells_reported: NDArray[np.uint8]
    cells_open: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, dtype=np.uint8))
    duty_reported: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))

    def is_valid(self, source: int) -> bool:
        """Whether this channel or board gave a reading at this tick."""
        return bool(self.valid_words.item(source // WORD_BITS) >> source % WORD_BITS & 1)

    def mark_valid(self, sources: int, valid: int) -> None:
        """Replace the bits of `sources` by those of `valid`, which has no other bits."""
        words, i = self.valid_words, 0
        while sources:
            if of_word := sources & _WORD:
                words[i] = words.item(i) & ~of_word | valid & _WORD
            sources, valid, i = sources >> WORD_BITS, valid >> WORD_BITS, i + 1

    @property
    def valid(self) -> NDArray[np.bool_]:
        """Whether each channel, then each board, gave a reading at this tick; a copy."""
        return np.array([self.is_valid(i) for i in range(self.n_sources)], dtype=bool)


@dataclass(frozen=True)
class RigLayout:
    """Names of the parts of a rig, in the order of its readings and commands.

    Attributes
    ----------
    channels : every measured signal
    outputs : columns of the actuators' outputs
    boards : names of the driver boards
    devices : names of all devices: boards, then cards, then all others
    others : names of the devices that are neither boards nor cards
    supplies : names of the bench supplies; they are not in `devices`, because they are slow
    n_cells : int
    cell_names : names of the cells in the model's order
    gate_of : index of each cell's gate in the rig, numbered board by board
    isolates : whether a board may isolate cells with open wires (`open_cells_max` above 0)
    modulates : whether the controller commands duties, not only on and off
    senses : whether a board measures resistance (`sense_every_ms` above 0)
    """

    channels: tuple[Channel, ...]
    outputs: tuple[str, ...]
    boards: tuple[str, ...]
    devices: tuple[str, ...]
    n_cells: int
    gate_of: tuple[int, ...] = ()
    others: tuple[str, ...] = ()
    supplies: tuple[str, ...] = ()
    isolates: bool = False
    cell_names: tuple[str, ...] = ()
    modulates: bool = False
    senses: bool = False

    @property
    def force(self) -> str:
        """Name of the channel whose force is controlled; empty if there is none."""
        return next((channel.name for channel in self.channels if channel.force == "main"), "")

    def index(self, name: str) -> int:
        """Index of a channel in the readings; KeyError if no channel has this name."""
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
        """Return views of the row for readings and commands, and mark all readings invalid."""
        none, no_duty = np.zeros(0, dtype=np.uint8), np.zeros(0)
        n_sources = len(self.channels) + len(self.boards)
        words = [frame.bit_index(name) for name in valid_columns(n_sources)]
        readings = Readings(
            measured=frame.span([channel.column("measured") for channel in self.channels]),
            valid_words=frame.bits[words[0] : words[-1] + 1],
            n_sources=n_sources,
            cells_reported=frame.cells("cells_reported") if self.n_cells else none,
            cells_open=frame.cells("cells_open") if self.isolates else none,
            duty_reported=frame.fractions(DUTY_REPORTED) if self.modulates else no_duty,
        )
        readings.measured[:] = np.nan
        readings.valid_words[:] = 0
        cells = frame.cells("cells_commanded") if self.n_cells else none
        duty = frame.fractions(DUTY) if self.modulates else no_duty
        return readings, Commands(cells, frame.span(self.outputs), duty=duty)


@dataclass(frozen=True)
class Signal:
    """The columns of one measured signal of a recording; `reference` is None if it is missing."""

    name: str
    suffix: str
    measured: str
    model: str
    reference: str | None


def signals_in(columns: Iterable[str]) -> list[Signal]:
    """Find the measured signals that have a model column; the rig's force comes first."""
    names = set(columns)
    signals = []
    for measured in names:
        name, role, suffix = measured.partition("_measured")
        model, reference = f"{name}_model{suffix}", f"{name}_reference{suffix}"
        if role and model in names:
            signals.append(
                Signal(name, suffix, measured, model, reference if reference in names else None)
            )
    return sorted(signals, key=lambda signal: (signal.name != "force", signal.name))


def require_columns(run: xr.Dataset, names: Iterable[str]) -> None:
    """Require columns of a run returned by `open_run`.

    Raises
    ------
    ConfigError
        One line with the names of the missing columns.
    """
    if missing := [name for name in names if name not in run]:
        raise ConfigError(
            f"{run.encoding['source']}: has no column {', '.join(missing)}: recorded by another "
            "version of hil: use that version"
        )


def known_before(cells: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """(n, N) reports of cells, each unknown one replaced by the last known one before it."""
    rows = np.where(cells != CELL_UNKNOWN, np.arange(len(cells))[:, None], 0)
    return np.take_along_axis(cells, np.maximum.accumulate(rows, axis=0), axis=0)


def valid_rows(run: xr.Dataset, source: str) -> NDArray[np.bool_]:
    """Rows in which this channel gave a reading, or this board an answer.

    All rows if the recording has no such bit.
    """
    for name in run.data_vars:
        flags = list(run[name].attrs.get("flags", ())) if str(name).startswith("valid_bits") else []
        if source in flags:
            bit = run[name].values >> np.uint64(flags.index(source)) & np.uint64(1)
            return np.asarray(bit != 0)
    return np.ones(run.sizes["tick"], dtype=bool)
