"""One tick = one row: names, units and columns, fixed before the loop starts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Role = Literal["measured", "commanded", "model", "reference", "state", "timing", "fault"]
CELL_UNKNOWN = 255
UNITS = {
    "_rad_per_s": "rad/s",
    "_m_per_s": "m/s",
    "_1_per_m": "1/m",
    "_N_m": "N m",
    "_rad": "rad",
    "_N": "N",
    "_C": "degC",
    "_m": "m",
    "_V": "V",
}


def unit_suffix(name: str) -> str:
    """Unit suffix of a name: `_N_m` for `motor.torque_N_m`; empty for a dimensionless number."""
    return next((suffix for suffix in UNITS if name.endswith(suffix)), "")


def units(name: str) -> str:
    """Unit of a name, from its suffix, in the form of a column's attribute; "1" if it has none."""
    return UNITS.get(unit_suffix(name), "1")


@dataclass(frozen=True)
class Column:
    """One column of every row.

    Attributes
    ----------
    name, units, role, description : as stored with the recording
    n_cells : 0 for a column of floats; otherwise the number of uint8 values in a row, one for each
        cell (255 = unknown)
    fractions : a column of cells has float64 values (NaN = unknown) instead
    flags : names of the bits, lowest first, of a uint64 column; empty for other columns
    simulated : the values come from a simulated device
    """

    name: str
    units: str
    role: Role
    description: str
    n_cells: int = 0
    flags: tuple[str, ...] = ()
    simulated: bool = False
    fractions: bool = False

    @property
    def dtype(self) -> np.dtype[np.generic]:
        if self.flags:
            return np.dtype("<u8")
        if not self.n_cells:
            return np.dtype("<f8")
        return np.dtype(("<f8" if self.fractions else "u1", (self.n_cells,)))


@dataclass
class Broadcast:
    """A broadcast message, used instead of a mask: each cell draws whether to switch.

    Attributes
    ----------
    tick : number of the draw; 0 means no message, so the mask applies. A cell draws only once for
        each number.
    p_on : probability that a cell that is off switches on
    q_off : probability that a cell that is on switches off
    seed : seed of all draws, below 2^32
    """

    tick: int = 0
    p_on: float = 0.0
    q_off: float = 0.0
    seed: int = 0


@dataclass(frozen=True)
class Commands:
    """Commands to a rig, valid from the current tick on; cells and outputs are views of the row.

    Attributes
    ----------
    cells : (N,) uint8 array, 1 switches a cell on, 0 off
    outputs : (M,) array, values of the actuators' outputs, in their own units
    enabled : (1,) bool array, whether supplies may be on; False after a trip
    broadcast : while its tick is not 0, boards write the result of their cells' draws into `cells`;
        255 if a draw is unknown
    duty : (N,) array, share of the time for which a cell is on, 0 to 1; empty unless the
        controller modulates. The guard rounds it as boards do, and sets `cells` from it.
    """

    cells: NDArray[np.uint8]
    outputs: NDArray[np.float64]
    enabled: NDArray[np.bool_] = field(default_factory=lambda: np.ones(1, dtype=bool))
    broadcast: Broadcast = field(default_factory=Broadcast)
    duty: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))


class Frame:
    """The current row, as views that every stage of the tick writes to.

    Attributes
    ----------
    values : (n,) float64 array, all float columns; `index(name)` gives the position
    bits : (m,) uint64 array, all bit columns; `bit_index(name)` gives the position
    row : (1,) structured array, the same memory as one structured row
    """

    def __init__(self, columns: Iterable[Column]) -> None:
        every = list(columns)
        floats = [c for c in every if not c.flags and not c.n_cells]
        bits = [c for c in every if c.flags]
        cells = sorted((c for c in every if c.n_cells), key=lambda c: not c.fractions)
        self.columns = [*floats, *bits, *cells]  # float64 before uint8: every value is aligned
        names = [c.name for c in self.columns]
        if len(set(names)) != len(names):
            raise ValueError(f"two columns have the same name: {names}")
        size = sum(c.dtype.itemsize for c in self.columns)
        offsets = np.cumsum([0] + [c.dtype.itemsize for c in self.columns])[:-1]
        self.dtype = np.dtype(
            {
                "names": names,
                "formats": [c.dtype for c in self.columns],
                "offsets": offsets.tolist(),
                "itemsize": -(-size // 8) * 8,
            }
        )
        self.row = np.zeros(1, dtype=self.dtype)
        self.n_values = len(floats)
        n_words = len(floats) + len(bits)
        words = self.row.view(np.uint8)[: 8 * n_words]
        self.values: NDArray[np.float64] = words[: 8 * len(floats)].view(np.float64)
        self.bits: NDArray[np.uint64] = words[8 * len(floats) :].view(np.uint64)
        self._index = {c.name: i for i, c in enumerate(floats)}
        self._bit_index = {c.name: i for i, c in enumerate(bits)}

    def index(self, name: str) -> int:
        return self._index[name]

    def bit_index(self, name: str) -> int:
        return self._bit_index[name]

    def flag(self, name: str, flag: str) -> int:
        """Mask of a bit of a bit column, by the bit's name; KeyError if there is no such bit."""
        flags = self.columns[self.n_values + self._bit_index[name]].flags
        if flag not in flags:
            raise KeyError(f"{name} has no bit {flag}")
        return 1 << flags.index(flag)

    def span(self, names: Sequence[str]) -> NDArray[np.float64]:
        """View of the current values of adjacent float columns; ValueError if not adjacent."""
        if not names:
            return self.values[:0]
        first = self._index[names[0]]
        if [self._index[name] for name in names] != list(range(first, first + len(names))):
            raise ValueError(f"{names} are not adjacent")
        return self.values[first : first + len(names)]

    def cells(self, name: str) -> NDArray[np.uint8]:
        """View of the current values of a cell column."""
        view: NDArray[np.uint8] = self.row[name][0]
        return view

    def fractions(self, name: str) -> NDArray[np.float64]:
        """View of the current values of a cell column of fractions."""
        view: NDArray[np.float64] = self.row[name][0]
        return view
