"""Tables of whatever switches cells: the wires behind it, and devices other than hil's board."""

from dataclasses import fields
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from hil.config.table import (
    Address,
    Celsius,
    NotNegative,
    OhmPerMetre,
    Positive,
    Records,
    SupplyVoltage,
    Table,
)
from hil.mechanics.sma.limits import TEMPERATURE_MAX_C
from hil.mechanics.sma.resistance import Resistivity
from hil.mechanics.sma.wire import SmaWire

WIRE = SmaWire()
EXPIRED_AFTER = 1.5  # times its time, a dead man that gets no command must have acted


class BoardWireTable(Table):
    """The SMA wire of each cell of a device whose cells have no thermal model in [model].

    The limits of the board, or the heat budget of the loop, protect this wire. `supply_V` is the
    voltage across a cell whose gate is on.
    """

    diameter_m: Annotated[float, Field(ge=1e-6, le=0.01)]
    length_m: Annotated[float, Field(ge=1e-3)]
    supply_V: SupplyVoltage
    martensite_Ohm_per_m: OhmPerMetre
    austenite_Ohm_per_m: OhmPerMetre
    convection_W_per_m2_K: Positive
    n_wires: Annotated[int, Field(ge=1)] = WIRE.n_wires
    wiring: Literal["series", "parallel"] = WIRE.wiring
    density_kg_per_m3: Positive = WIRE.density_kg_per_m3
    specific_heat_J_per_kg_K: Positive = WIRE.specific_heat_J_per_kg_K
    latent_heat_J_per_kg: NotNegative = WIRE.latent_heat_J_per_kg
    A_s_C: Celsius = WIRE.A_s_C
    A_f_C: Celsius = WIRE.A_f_C
    M_s_C: Celsius = WIRE.M_s_C
    M_f_C: Celsius = WIRE.M_f_C
    temperature_max_C: Celsius = TEMPERATURE_MAX_C
    record: Records = None

    @model_validator(mode="after")
    def _is_a_wire(self) -> "BoardWireTable":
        SmaWire(**self.model_dump(exclude={"record", "temperature_max_C"}))
        return self


def _cold_to_warm(value: list[float]) -> list[float]:
    if value[0] > value[1]:
        raise ValueError("give the lowest ambient temperature first, then the highest")
    return value


AmbientRange = Annotated[
    list[Celsius], Field(min_length=2, max_length=2), AfterValidator(_cold_to_warm)
]


class SwitchesTable(Table):
    """Cells that a device other than hil's board switches, and what the loop needs to protect them.

    The loop keeps a heat budget of every wire, from the supply and the wire. The wire is that of
    the cell's thermal model in [model]; `wire` describes it if there is none. It depends on the
    ambient temperature, which is within `ambient_range_C`. The rig's supply, or a fuse of
    `supply_current_max_A`, limits the current of a short circuit, which nothing measures.
    """

    ambient_range_C: AmbientRange = [15.0, 30.0]
    supply_current_max_A: Positive | None = None
    wire: BoardWireTable | None = None


class CardSwitchesTable(SwitchesTable):
    """Digital lines of a card that switch cells, by the name of the cell; high: the cell is on.

    `readback` gives digital inputs that are wired to the gates, by the name of the cell. The guard
    trips if one differs from its command.
    """

    lines: Annotated[dict[str, Address], Field(min_length=1, max_length=32)]
    readback: dict[str, Address] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The cells, in the order of the file."""
        return tuple(self.lines)


class DeviceSwitchesTable(SwitchesTable):
    """Cells that a plug-in device switches.

    Its hardware must switch all of them off by itself `dead_man_s` after the last command; the
    self-test before a run proves that it has, 1.5 times as long after it.
    """

    cells: Annotated[list[str], Field(min_length=1, max_length=64)]
    dead_man_s: Annotated[float, Field(ge=0.001, le=2.0)]

    @property
    def names(self) -> tuple[str, ...]:
        """The cells, in the order of the file."""
        return tuple(self.cells)

    @property
    def proven_s(self) -> float:
        """When the self-test sees that the dead man has acted."""
        return EXPIRED_AFTER * self.dead_man_s


def build_wire(table: Table) -> SmaWire:
    """Build the wire that a table describes.

    Raises
    ------
    ValueError
        The values are inconsistent.
    """
    names = {field.name for field in fields(SmaWire)}
    values = table.model_dump(include=names, exclude_none=True)
    if "resistivity" in values:
        values["resistivity"] = Resistivity(**values["resistivity"])
    return SmaWire(**values)
