"""Wires and actuators by name, as printed (`wires.toml`, and a user's own)."""

import tomllib
from functools import cache
from math import pi
from pathlib import Path
from typing import Annotated, TypeVar

import numpy as np
import pydantic
from pydantic import Field

from hil.config.files import read_toml
from hil.config.table import Celsius, NotNegative, OhmPerMetre, Positive, Table
from hil.config.values import TomlTable
from hil.errors import ConfigError, one_line, remedy
from hil.mechanics.sma.convection import morgan_W_per_m2_K
from hil.mechanics.sma.wire import SmaWire

T = TypeVar("T", bound=Table)
SHIPPED = Path(__file__).with_name("wires.toml")
USER_FILE = Path("wires.toml")
ACTUATORS = "actuators"
AIR_C, HOT_C = 25.0, 100.0  # the convection is evaluated at their mean
AUSTENITE_SHARE = SmaWire.austenite_Ohm_per_m / SmaWire.martensite_Ohm_per_m  # assumed


class Wire(Table):
    """A wire of a maker: `current_A` contracts it in about a second in still air.

    `pull_N` is the largest force for a long life. `heating` and `cooling` are measured branches, as
    an activation of kind "sma" has them. What is heated, and how it cools, is assumed as
    for Flexinol (`hil.mechanics.sma.wire`).
    """

    alloy: str = ""
    source: str
    diameter_m: Annotated[float, Field(ge=5e-6, le=2e-3)]
    martensite_Ohm_per_m: OhmPerMetre
    current_A: Positive
    pull_N: Positive
    cools_s: Positive | None = None
    austenite_Ohm_per_m: OhmPerMetre | None = None
    A_s_C: Celsius = SmaWire.A_s_C
    A_f_C: Celsius = SmaWire.A_f_C
    M_s_C: Celsius = SmaWire.M_s_C
    M_f_C: Celsius = SmaWire.M_f_C
    heating: dict[str, float] | None = None
    cooling: dict[str, float] | None = None

    @property
    def area_m2(self) -> float:
        return pi * self.diameter_m**2 / 4.0

    @property
    def hot_Ohm_per_m(self) -> float:
        """Of austenite; where nobody says it, the share of martensite's that Flexinol has."""
        return self.austenite_Ohm_per_m or AUSTENITE_SHARE * self.martensite_Ohm_per_m

    @property
    def convection_W_per_m2_K(self) -> float:
        """In still air, by Morgan (1975)."""
        return morgan_W_per_m2_K(self.diameter_m, HOT_C, AIR_C)


class Actuator(Table):
    """A bought actuator that is a cell, as [model.arrays.NAME.cell] has it; its wire is not known.

    `pull_N` is its force at rest between fixed ends, before its series spring stretches.
    """

    source: str
    pull_N: Positive
    mass_kg: Positive
    k_pe_N_per_m: NotNegative
    k_se_N_per_m: Positive
    k_ae_N_per_m: Positive
    b_N_s_per_m: Positive


def actuators(user_file: Path = USER_FILE) -> dict[str, Actuator]:
    """Every actuator by name, the user's after those that are shipped; ConfigError as `wires`."""
    shipped_tables = tomllib.loads(SHIPPED.read_text(encoding="utf-8"))
    actuators = _checked(shipped_tables[ACTUATORS], SHIPPED.name, Actuator)
    if user_file.is_file():
        actuators |= _checked(
            read_toml(user_file).get(ACTUATORS, {}), f"{user_file}: [{ACTUATORS}]", Actuator
        )
    return actuators


def wires(user_file: Path = USER_FILE) -> dict[str, Wire]:
    """Every wire by name: those that are shipped, then those of the user's file if there is one.

    Raises
    ------
    ConfigError
        A table of the user's file is not a wire.
    """
    return shipped() | (_of(read_toml(user_file), str(user_file)) if user_file.is_file() else {})


def wire(name: str, user_file: Path = USER_FILE) -> Wire | Actuator:
    """The wire or actuator of this name; ConfigError names the nearest one."""
    known = wires(user_file) | actuators(user_file)
    if name not in known:
        near = remedy(name, known)
        raise ConfigError(f"wire = '{one_line(name)}': unknown{near}, or add it to {user_file}")
    return known[name]


def usual_Ohm_per_m(diameter_m: float) -> tuple[float, str]:
    """What a NiTi wire of this diameter usually has in martensite, and the nearest shipped wire.

    It is interpolated between the shipped wires in the logarithms of both.
    """
    known = sorted(
        (w.diameter_m, w.martensite_Ohm_per_m, name)
        for name, w in shipped().items() if name.endswith("_HT")
    )  # fmt: skip
    d, r = (np.log([row[i] for row in known]) for i in (0, 1))
    at = float(np.log(diameter_m))
    beyond = 2.0 * (float(np.clip(at, d[0], d[-1])) - at)  # in proportion to 1 / d^2
    nearest = known[int(np.argmin(np.abs(d - at)))][2]
    return float(np.exp(np.interp(at, d, r) + beyond)), nearest


def usual_A(diameter_m: float) -> float:
    """The current with which makers have a wire of this diameter contract in a second."""
    known = sorted((w.diameter_m, w.current_A) for w in shipped().values())
    d, amps = np.log(known).T
    slope = (amps[-1] - amps[0]) / (d[-1] - d[0])
    at = float(np.log(diameter_m))
    beyond = slope * (at - float(np.clip(at, d[0], d[-1])))
    return float(np.exp(np.interp(at, d, amps) + beyond))


@cache
def shipped() -> dict[str, Wire]:
    """The wires that come with hil."""
    return _of(tomllib.loads(SHIPPED.read_text(encoding="utf-8")), SHIPPED.name)


def _alloys() -> TomlTable:
    alloys: TomlTable = tomllib.loads(SHIPPED.read_text(encoding="utf-8"))["alloys"]
    return alloys


def _of(tables: TomlTable, where: str) -> dict[str, Wire]:
    own_alloys = tables.pop("alloys", {})
    if not isinstance(own_alloys, dict):
        raise ConfigError(f"{where}: alloys: give tables, such as [alloys.mine]")
    alloys = _alloys() | own_alloys
    tables.pop(ACTUATORS, None)
    for name, table in tables.items():
        alloy = table.get("alloy", "") if isinstance(table, dict) else ""
        if alloy and alloy not in alloys:
            raise ConfigError(
                one_line(f"{where}: {name}: alloy = '{alloy}'{remedy(alloy, alloys)}")
            )
        if alloy:
            tables[name] = {**alloys[alloy], **table}
    return _checked(tables, where, Wire)


def _checked(tables: object, where: str, kind: type[T]) -> dict[str, T]:
    """Each table as one of this kind."""
    if not isinstance(tables, dict):
        raise ConfigError(f"{where}: give tables, such as [{ACTUATORS}.mine]")
    models = {}
    for name, table in tables.items():
        try:
            models[name] = kind.model_validate(table)
        except pydantic.ValidationError as error:
            first = error.errors(include_url=False)[0]
            key = ".".join([name, *map(str, first["loc"])])
            raise ConfigError(one_line(f"{where}: {key}: {first['msg']}")) from None
    return models
