"""What a unit's modelDescription.xml says: variables, units, interfaces; no code of it runs."""

import io
import platform
import re
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hil.errors import ModelError, did_you_mean, missing_extra, one_line
from hil.loop.frame import unit_suffix, units
from hil.systems.fmu import archive

if TYPE_CHECKING:
    from fmpy.model_description import BaseUnit, ModelDescription, ScalarVariable

#: Exponents of SI base units, and the offset, of the units that names in hil end with.
SI = {
    "rad/s": ({"rad": 1, "s": -1}, 0.0),
    "m/s": ({"m": 1, "s": -1}, 0.0),
    "1/m": ({"m": -1}, 0.0),
    "N m": ({"kg": 1, "m": 2, "s": -2}, 0.0),
    "rad": ({"rad": 1}, 0.0),
    "N": ({"kg": 1, "m": 1, "s": -2}, 0.0),
    "degC": ({"K": 1}, 273.15),
    "m": ({"m": 1}, 0.0),
    "V": ({"kg": 1, "m": 2, "s": -3, "A": -1}, 0.0),
    "1": ({}, 0.0),
}
BASE = ("kg", "m", "s", "A", "K", "mol", "cd", "rad")
WHOLE = 1e-6  # of a period: tolerance of a whole number of steps
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Mapped:
    """A variable of the unit: its value is (hil's value - offset) / factor."""

    reference: int
    factor: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True)
class UnitModel:
    """A unit as a rig uses it; the unit itself is not running.

    Attributes
    ----------
    sha256 : hash of the file
    cell_names, inputs, outputs : names in hil
    written, read : variables of cells and inputs, and of outputs, in the order of the names
    start : reference and value of each parameter that is set
    exchange : whether it is solved by model exchange
    """

    file: Path
    sha256: str
    period_s: float
    cell_names: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    written: tuple[Mapped, ...]
    read: tuple[Mapped, ...]
    start: tuple[tuple[int, float], ...]
    exchange: bool
    tolerance: float
    step_max_s: float


def described(table: Any, period_s: float) -> UnitModel:
    """Read the description of the unit that a table names.

    Raises
    ------
    ModelError
        The file is not a unit for this computer, or a name, unit or step does not fit.
    """
    file = Path(table.file)
    content, described = _read(file)
    exchange = _interface(described, table.interface, period_s)
    variables = {variable.name: variable for variable in described.modelVariables}
    unit_of = {unit.name: unit.baseUnit for unit in described.unitDefinitions}

    def mapped(key: str, name: str, variable_name: str, causality: str) -> Mapped:
        place = f"{key}.{name}"
        variable = variables.get(variable_name)
        if variable is None:
            raise ModelError(
                f"{place}: the unit has no variable '{variable_name}'"
                f"{did_you_mean(variable_name, variables)}"
            )
        kind = variable.type
        if kind not in ("Real", "Float64"):
            raise ModelError(f"{place}: '{variable_name}' is of type {kind}: choose a real number")
        if causality == "input" and variable.causality != "input":
            raise ModelError(f"{place}: '{variable_name}' is no input of the unit")
        wanted = "1" if key == "cells" else units(name)
        factor, offset = _conversion(place, variable, unit_of, wanted)
        return Mapped(variable.valueReference, factor, offset)

    written = [mapped("cells", n, v, "input") for n, v in table.cells.items()]
    written += [mapped("inputs", n, v, "input") for n, v in table.inputs.items()]
    read = [mapped("outputs", n, v, "output") for n, v in table.outputs.items()]
    _refuse_unmapped(described, {*table.cells.values(), *table.inputs.values(), *table.start})
    start = []
    for name, value in table.start.items():
        if name not in variables:
            raise ModelError(
                f"start.{name}: the unit has no such variable{did_you_mean(name, variables)}"
            )
        start.append((variables[name].valueReference, value))
    return UnitModel(
        file, content.sha256, period_s,
        tuple(table.cells), tuple(table.inputs), tuple(table.outputs),
        tuple(written), tuple(read), tuple(start), exchange, table.tolerance, table.step_max_s,
    )  # fmt: skip


def parsed(description: bytes) -> "ModelDescription":
    """FMPy's form of a description, and of nothing else that the unit has."""
    from fmpy import read_model_description

    return read_model_description(_packed({archive.DESCRIPTION: description}), validate=False)


def _packed(files: Mapping[str, bytes]) -> io.BytesIO:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as target:
        for name, data in files.items():
            target.writestr(name, data)
    return content


def _read(file: Path) -> "tuple[archive.Archive, ModelDescription]":
    """A unit that has a binary for this computer, and its description."""
    try:
        from fmpy import platform_tuple, supported_platforms
    except ImportError:
        raise missing_extra("an FMU", "fmu") from None
    content = archive.read(file)
    try:
        description = parsed(content.description)
        platforms = supported_platforms(_packed(dict.fromkeys(content.names, b"")))
    except Exception as error:  # FMPy raises Exception itself
        raise ModelError(f"file: '{file}': {one_line(str(error))}") from None
    if not description.fmiVersion.startswith(("2", "3")):
        raise ModelError(f"file: '{file}': FMI {description.fmiVersion}: hil runs FMI 2.0 and 3.0")
    for interface in (description.coSimulation, description.modelExchange):
        if interface is not None and not IDENTIFIER.fullmatch(interface.modelIdentifier):
            raise ModelError(f"file: '{file}': its modelIdentifier is not the name of a file")
    here = {platform_tuple, f"{sys.platform}{platform.architecture()[0][:2]}"}
    if not here & set(platforms):
        raise ModelError(
            f"file: '{file}': has binaries for {', '.join(platforms) or 'no platform'}, not for "
            f"{platform_tuple}"
        )
    return content, description


def _interface(description: "ModelDescription", choice: str | None, period_s: float) -> bool:
    """Whether to use model exchange; checks the step of co-simulation."""
    has = {
        "co_simulation": description.coSimulation is not None,
        "model_exchange": description.modelExchange is not None,
    }
    if choice is None:
        choice = "co_simulation" if has["co_simulation"] else "model_exchange"
    if not has[choice]:
        raise ModelError(f"interface: the unit does not have '{choice}'")
    if choice == "model_exchange":
        return True
    step = description.coSimulation
    fixed = step.fixedInternalStepSize
    if fixed is None and not step.canHandleVariableCommunicationStepSize:
        experiment = description.defaultExperiment
        fixed = None if experiment is None else experiment.stepSize
    if fixed is not None:
        steps = period_s / float(fixed)
        if round(steps) < 1 or abs(steps - round(steps)) > WHOLE:
            raise ModelError(
                f"file: the unit has steps of {float(fixed):g} s, loop.period_s = {period_s:g} is "
                "not a whole number of them"
            )
    return False


def _refuse_unmapped(description: "ModelDescription", mapped: set[str]) -> None:
    """Refuse inputs of the unit that nothing sets and that have no start value."""
    for variable in description.modelVariables:
        if variable.causality != "input" or variable.name in mapped or variable.start is not None:
            continue
        raise ModelError(f"inputs: the unit's input '{variable.name}' is not mapped: set it")


def _conversion(
    place: str, variable: "ScalarVariable", unit_of: "Mapping[str, BaseUnit]", wanted: str
) -> tuple[float, float]:
    """Factor and offset from the variable's unit to that of the name."""
    declared = variable.unit or getattr(variable.declaredType, "unit", None)
    if declared is None or unit_of.get(declared) is None:
        return 1.0, 0.0
    base = unit_of[declared]
    exponents, shift = SI[wanted]
    if any(int(getattr(base, key) or 0) != exponents.get(key, 0) for key in BASE):
        raise ModelError(
            f"{place}: '{variable.name}' is in {declared}, and the name says "
            f"{unit_suffix(place) or 'no unit'}"
        )
    factor = float(base.factor if base.factor is not None else 1.0)
    return factor, float(base.offset or 0.0) - shift
