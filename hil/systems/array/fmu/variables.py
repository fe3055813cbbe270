"""The variables of an array as a functional mock-up unit: names, units, start values."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from hil.systems.array.model.activation import CellActivation
from hil.systems.array.model.cell_array import CellArray

#: Units with their exponents of SI base units.
UNITS: dict[str, dict[str, float]] = {
    "m/s2": {"m": 1, "s": -2},
    "m/s": {"m": 1, "s": -1},
    "N": {"kg": 1, "m": 1, "s": -2},
    "N/s": {"kg": 1, "m": 1, "s": -3},
    "m": {"m": 1},
    "s": {"s": 1},
    "1/s": {"s": -1},
    "1": {},
    "degC": {"K": 1, "offset": 273.15},
    "V": {"kg": 1, "m": 2, "s": -3, "A": -1},
    "A": {"A": 1},
    "Ohm": {"kg": 1, "m": 2, "s": -3, "A": -2},
    "ms": {"s": 1, "factor": 1e-3},
    "mA": {"A": 1, "factor": 1e-3},
    "mV": {"kg": 1, "m": 2, "s": -3, "A": -1, "factor": 1e-3},
    "cdegC": {"K": 1, "factor": 1e-2, "offset": 273.15},
    "cA2ms": {"A": 2, "s": 1, "factor": 1e-7},
}
#: Units by the end of a name, longest first.
ENDS = {
    "_m_per_s2": "m/s2",
    "_m_per_s": "m/s",
    "_cA2ms": "cA2ms",
    "_Ohm": "Ohm",
    "_ms": "ms",
    "_mA": "mA",
    "_mV": "mV",
    "_cC": "cdegC",
    "_N": "N",
    "_m": "m",
    "_C": "degC",
    "_V": "V",
    "_A": "A",
}
CURRENT_MAX_A = 100.0  # far above the range of a board
SUPPLY_MAX_V = 1000.0  # far above what a wire bears; so that no step overflows
#: The quantities of a wire, in the order of `c/unit.h`.
WIRE_ROWS = {
    "wire_C": "temperature of the cell's wires",
    "austenite": "austenite fraction of the cell's wires",
    "strain": "strain of the cell's wires beyond that of austenite",
    "resistance_Ohm": "resistance of the cell",
    "wire_A": "current of the cell, mean over its duty",
}
#: Inputs of a board, their start and meaning, in the order of `c/host.h`.
ASKS = {
    "arm": (1.0, "1: the host arms the board; 0: it disarms it and clears its faults"),
    "estop_open": (0.0, "1: the e-stop loop of the board is open"),
    "silence": (0.0, "1: the host sends nothing"),
}
#: Quantities of a board and of a gate, in the order of `c/host.c`.
BOARD_ROWS = {
    "state": "0: disarmed, 1: armed, 2: faulted",
    "result": "answer to the last command; 0: done (firmware/core/protocol.h)",
    "fault_bits": "latched faults, one bit each",
}
GATE_ROWS = {
    "gate_duty": "duty of the cell's gate",
    "current_A": "current of the cell as the board measures it",
    "temperature_C": "temperature of the cell's clamp as the board measures it",
    "heat_used": "used share of the cell's heat budget on the board",
    "faulted": "1: a latched fault names the cell",
    "isolated": "1: the board has found the cell's wire open",
}


@dataclass(frozen=True)
class Variable:
    """One variable; `reference` is its value reference and its place in the list.

    `derivative_of` is the reference of the state whose time derivative it is.
    """

    reference: int
    name: str
    causality: str
    variability: str
    description: str
    unit: str = ""
    start: float | None = None
    initial: str = ""
    limits: tuple[float, float] | None = None
    derivative_of: int | None = None


@dataclass(frozen=True)
class Variables:
    """All variables, and those that the structure of the model lists."""

    every: Sequence[Variable]
    outputs: Sequence[Variable]
    states: Sequence[Variable]
    derivatives: Sequence[Variable]


@dataclass(frozen=True)
class BoardNames:
    """What the variables of a board are named after.

    Attributes
    ----------
    cells : cell at each gate
    plain : those that have no wire
    current_on_A : their current while on
    faults : in the order of their bits
    limits : name, value and range
    """

    name: str
    cells: Sequence[str]
    plain: Sequence[str]
    current_on_A: float
    faults: Sequence[str]
    limits: Mapping[str, tuple[int, tuple[int, int]]]


@dataclass(frozen=True)
class Boards:
    """Driver boards of a unit, as `build_boards.build` makes them.

    Attributes
    ----------
    numbers, indices, places, constants : arrays and numbers of `c/host.c`, by their names in C
    firmware : source files of the firmware
    defines : names that its compiler must define
    """

    names: Sequence[BoardNames]
    numbers: dict[str, np.ndarray]
    indices: dict[str, np.ndarray]
    places: dict[str, int]
    constants: dict[str, float]
    firmware: Sequence[Path]
    defines: Mapping[str, str]


def has_sigmoids(cells: Sequence[CellActivation]) -> bool:
    """Whether the cells' own states are states of the unit."""
    return any(cell.kind == "sigmoid" for cell in cells)


def outputs_of(model: CellArray) -> dict[int, str]:
    """Outputs by their rows; a unit has the position of a driven point as input alone."""
    return {i: name for i, name in enumerate(model.outputs) if name not in model.inputs}


def variables_of(
    model: CellArray, cells: Sequence[CellActivation], boards: Sequence[BoardNames] = ()
) -> Variables:
    """List the variables in the order of the value references in `c/unit.h`.

    Units with wires or boards have no derivatives: they have no model exchange.
    """
    every = [Variable(0, "time", "independent", "continuous", "time", "s")]
    every += _numbered(len(every), _inputs(model, cells))
    every += _numbered(
        len(every),
        (("output", "continuous", name, "force or position", _unit(name), {"initial": "calculated"})
         for name in outputs_of(model).values()),
    )  # fmt: skip
    every += _numbered(len(every), _forces(model, cells))
    states = _numbered(len(every), _states(model, cells))
    every += states
    derivatives = []
    if not boards and not any(cell.has_wire for cell in cells):
        derivatives = [
            Variable(
                len(every) + i,
                f"der({state.name})",
                "local",
                "continuous",
                f"time derivative of {state.name}",
                {"m": "m/s", "m/s": "m/s2", "1": "1/s"}[state.unit],
                initial="calculated",
                derivative_of=state.reference,
            )
            for i, state in enumerate(states)
        ]
    every += derivatives
    every += _numbered(len(every), _wires(model, cells))
    every += _numbered(len(every), _boards(boards))
    outputs = [v for v in every if v.causality == "output"]
    return Variables(every, outputs, states, derivatives)


Words = tuple[str, str, str, str, str, dict[str, object]]


def _numbered(first: int, rows: Iterator[Words]) -> list[Variable]:
    return [
        Variable(first + i, name, causality, variability, text, unit, **more)  # type: ignore[arg-type]
        for i, (causality, variability, name, text, unit, more) in enumerate(rows)
    ]


def _unit(name: str) -> str:
    return next((unit for end, unit in ENDS.items() if name.endswith(end)), "1")


def _inputs(model: CellArray, cells: Sequence[CellActivation]) -> Iterator[Words]:
    for cell, activation in zip(model.cell_names, cells, strict=True):
        more: dict[str, object] = {"start": 0.0, "limits": (0.0, 1.0)}
        text = "duty" if activation.has_wire else "duty: a cell is on from 0.5"
        yield "input", "continuous", f"{cell}.duty", text, "1", more
    for name in model.inputs[model.n_cells :]:
        text = "force on a free point, or motion of a driven point"
        yield "input", "continuous", name, text, _unit(name), {"start": 0.0}


def _forces(model: CellArray, cells: Sequence[CellActivation]) -> Iterator[Words]:
    for cell, activation in zip(model.cell_names, cells, strict=True):
        text = "activation force of the cell while fully on"
        more: dict[str, object] = {"start": activation.force_on_N, "initial": "exact"}
        kind = ("local", "constant") if activation.has_wire else ("parameter", "fixed")
        yield *kind, f"{cell}.force_on_N", text, "N", more
    for cell in model.cell_names:
        text = "activation force of the cell"
        yield "local", "continuous", f"{cell}.F_N", text, "N", {"initial": "calculated"}


def _states(model: CellArray, cells: Sequence[CellActivation]) -> Iterator[Words]:
    for name in model.states:
        text = "position, velocity or internal state of the array"
        yield "local", "continuous", f"state.{name}", text, _unit(name), {"initial": "calculated"}
    if has_sigmoids(cells):
        for cell in model.cell_names:
            text = "state of the cell's activation"
            yield "local", "continuous", f"state.{cell}.theta", text, "1", {"initial": "calculated"}


def _output(name: str, text: str, variability: str = "continuous") -> Words:
    return "output", variability, name, text, _unit(name), {"initial": "calculated"}


def _wires(model: CellArray, cells: Sequence[CellActivation]) -> Iterator[Words]:
    wires = [
        (name, cell) for name, cell in zip(model.cell_names, cells, strict=True) if cell.has_wire
    ]
    for name, cell in wires:
        text = "voltage across the cell while its gate is on"
        more: dict[str, object] = {"start": cell.wire.cell_V, "limits": (0.0, SUPPLY_MAX_V)}
        yield "input", "continuous", f"{name}.supply_V", text, "V", more
    for quantity, text in WIRE_ROWS.items():
        for name, _ in wires:
            yield _output(f"{name}.{quantity}", text)
    for name, cell in wires:
        if cell.loaded is not None:
            yield _output(f"{name}.tension_N", "tension of the cell")


def _boards(boards: Sequence[BoardNames]) -> Iterator[Words]:
    for board in boards:
        for name, (start, text) in ASKS.items():
            more: dict[str, object] = {"start": start, "limits": (0.0, 1.0)}
            yield "input", "discrete", f"{board.name}.{name}", text, "1", more
    for board in boards:
        for cell in board.plain:
            text = "current of the cell while on; 0: its wire is broken"
            more = {"start": board.current_on_A, "limits": (0.0, CURRENT_MAX_A)}
            yield "input", "continuous", f"{cell}.current_on_A", text, "A", more
    for board in boards:
        for name, (value, limits) in board.limits.items():
            more = {"start": float(value), "limits": limits, "initial": "exact"}
            at = f"{board.name}.limit.{name}"
            yield "parameter", "fixed", at, "limit of the board", _unit(name), more
    for board in boards:
        faults = {f"fault.{fault}": "1: the fault is latched" for fault in board.faults}
        for name, text in (BOARD_ROWS | faults).items():
            yield _output(f"{board.name}.{name}", text, "discrete")
    for cell in chain.from_iterable(board.cells for board in boards):
        for name, text in GATE_ROWS.items():
            yield _output(f"{cell}.{name}", text, "discrete")


def nominals(states: Sequence[Variable]) -> np.ndarray:
    """Order of magnitude of every state: a millimetre, a millimetre per second, 1."""
    return np.array([1.0 if state.unit == "1" else 1e-3 for state in states])
