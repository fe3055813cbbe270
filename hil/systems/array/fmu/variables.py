"""The variables of an array as a functional mock-up unit: names, units, start values."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hil.systems.array.activation import CellActivation
from hil.systems.array.cell_array import CellArray

#: Units by the end of a name, longest first, with their exponents of SI base units.
UNITS = {
    "m/s2": {"m": 1, "s": -2},
    "m/s": {"m": 1, "s": -1},
    "N": {"kg": 1, "m": 1, "s": -2},
    "N/s": {"kg": 1, "m": 1, "s": -3},
    "m": {"m": 1},
    "s": {"s": 1},
    "1/s": {"s": -1},
    "1": {},
}
ENDS = {"_m_per_s2": "m/s2", "_m_per_s": "m/s", "_N": "N", "_m": "m"}


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


def has_sigmoids(cells: Sequence[CellActivation]) -> bool:
    """Whether the cells' own states are states of the unit."""
    return any(cell.kind == "sigmoid" for cell in cells)


def variables_of(model: CellArray, cells: Sequence[CellActivation]) -> Variables:
    """List the variables in the order of the value references in `c/unit.h`."""
    every = [Variable(0, "time", "independent", "continuous", "time", "s")]
    every += _numbered(len(every), _inputs(model))
    outputs = _numbered(
        len(every),
        (("output", "continuous", name, "force or position", _unit(name), {"initial": "calculated"})
         for name in model.outputs),
    )  # fmt: skip
    every += outputs
    every += _numbered(len(every), _forces(model, cells))
    states = _numbered(len(every), _states(model, cells))
    every += states
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
    return Variables(every, outputs, states, derivatives)


Words = tuple[str, str, str, str, str, dict[str, object]]


def _numbered(first: int, rows: Iterator[Words]) -> list[Variable]:
    return [
        Variable(first + i, name, causality, variability, text, unit, **more)  # type: ignore[arg-type]
        for i, (causality, variability, name, text, unit, more) in enumerate(rows)
    ]


def _unit(name: str) -> str:
    return next((unit for end, unit in ENDS.items() if name.endswith(end)), "1")


def _inputs(model: CellArray) -> Iterator[Words]:
    for cell in model.cell_names:
        more: dict[str, object] = {"start": 0.0, "limits": (0.0, 1.0)}
        yield "input", "continuous", f"{cell}.duty", "duty: a cell is on from 0.5", "1", more
    for name in model.inputs[model.n_cells :]:
        text = "force on a free point, or motion of a driven point"
        yield "input", "continuous", name, text, _unit(name), {"start": 0.0}


def _forces(model: CellArray, cells: Sequence[CellActivation]) -> Iterator[Words]:
    for cell, activation in zip(model.cell_names, cells, strict=True):
        text = "activation force of the cell while fully on"
        more: dict[str, object] = {"start": activation.force_on_N, "initial": "exact"}
        yield "parameter", "fixed", f"{cell}.force_on_N", text, "N", more
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


def nominals(states: Sequence[Variable]) -> np.ndarray:
    """Order of magnitude of every state: a millimetre, a millimetre per second, 1."""
    return np.array([1.0 if state.unit == "1" else 1e-3 for state in states])
