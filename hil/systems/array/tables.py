"""Configuration tables of cellular arrays: cells, activation, arrays between points, observer."""

from typing import TYPE_CHECKING, Annotated, Literal, Union

from pydantic import (
    BeforeValidator,
    Field,
    SerializerFunctionWrapHandler,
    field_serializer,
)

from hil.config.table import (
    Celsius,
    Name,
    NotNegative,
    OhmPerMetre,
    Positive,
    Records,
    SupplyVoltage,
    Table,
    as_list,
)
from hil.mechanics.sma.limits import TEMPERATURE_MAX_C
from hil.mechanics.sma.wire import SmaWire
from hil.systems.array.model.cell_kinds import cell_kinds
from hil.systems.array.tables_recruitment import (
    BroadcastTable,
    CellFailuresTable,
    FailuresTable,
    GroupsTable,
    OptimalTable,
    WireFailuresTable,
    WiresTable,
)

WIRE = SmaWire()
RESISTIVITY = WIRE.resistivity
FORCE_MAX_N = 1e6
TemperatureCoefficient = Annotated[float, Field(ge=-2e-3, le=2e-3)]


class PointTable(Table):
    """An end of arrays; a free point may have a bias spring to the frame."""

    support: Literal["fixed", "free", "driven"]
    mass_kg: NotNegative = 0.0
    spring_N_per_m: NotNegative = 0.0


class StepTable(Table):
    kind: Literal["step"]


class SigmoidTable(Table):
    """Sigmoid rise and fall. The fall has the shape of the rise unless it has its own values.

    `law` is "rescaled" (no force while off, force_on_N when fully on) or "unscaled", the law of
    older recordings that do not name one (see `systems.array.activation`).
    """

    kind: Literal["sigmoid"]
    rate_per_s: Positive = 5.0
    delay_s: Positive = 1.2
    fall_rate_per_s: Positive | None = None
    fall_delay_s: Positive | None = None
    law: Literal["rescaled", "unscaled"] = "rescaled"
    record: Records = None


class ResistivityTable(Table):
    """What moves a wire's resistance beside its phases (`mechanics.sma.resistance`).

    The resistances per metre of martensite and austenite hold at `at_C` and without strain.
    `strain` is martensite's where no stress moves it; a wire of kind "sma" has its own.
    """

    martensite_per_K: TemperatureCoefficient = RESISTIVITY.martensite_per_K
    austenite_per_K: TemperatureCoefficient = RESISTIVITY.austenite_per_K
    at_C: Celsius = RESISTIVITY.at_C
    per_strain: Annotated[float, Field(ge=0.0, le=10.0)] = RESISTIVITY.per_strain
    r_phase_Ohm_per_m: NotNegative = RESISTIVITY.r_phase_Ohm_per_m
    R_s_C: Celsius = RESISTIVITY.R_s_C
    R_f_C: Celsius = RESISTIVITY.R_f_C
    strain: Annotated[float, Field(ge=0.0, le=0.2)] = RESISTIVITY.strain


class WireTable(Table):
    """An SMA wire heated by its current; defaults are Flexinol 0.10 mm HT (`mechanics.sma.wire`).

    In [model] it is driven, as any other kind, by the cells reported on or off. The wire must not
    exceed `temperature_max_C` under any fault: `hil check` compares the boards' limits with it.
    """

    temperature_max_C: Celsius = TEMPERATURE_MAX_C
    length_m: Annotated[float, Field(ge=1e-3)] = WIRE.length_m
    n_wires: Annotated[int, Field(ge=1)] = WIRE.n_wires
    wiring: Literal["series", "parallel"] = WIRE.wiring
    supply_V: SupplyVoltage | None = None
    ambient_C: Celsius = WIRE.ambient_C
    diameter_m: Annotated[float, Field(ge=1e-6, le=0.01)] = WIRE.diameter_m
    density_kg_per_m3: Positive = WIRE.density_kg_per_m3
    specific_heat_J_per_kg_K: Positive = WIRE.specific_heat_J_per_kg_K
    latent_heat_J_per_kg: NotNegative = WIRE.latent_heat_J_per_kg
    convection_W_per_m2_K: Positive = WIRE.convection_W_per_m2_K
    martensite_Ohm_per_m: OhmPerMetre = WIRE.martensite_Ohm_per_m
    austenite_Ohm_per_m: OhmPerMetre = WIRE.austenite_Ohm_per_m
    A_s_C: Celsius = WIRE.A_s_C
    A_f_C: Celsius = WIRE.A_f_C
    M_s_C: Celsius = WIRE.M_s_C
    M_f_C: Celsius = WIRE.M_f_C
    conductivity_W_per_m_K: Positive = WIRE.conductivity_W_per_m_K
    clamp_capacity_J_per_K: Positive = WIRE.clamp_capacity_J_per_K
    clamp_loss_W_per_K: Positive = WIRE.clamp_loss_W_per_K
    resistivity: ResistivityTable = ResistivityTable()
    record: Records = None


class ThermalTable(WireTable):
    """A wire whose transformations do not move with stress (`mechanics.sma.wire`)."""

    kind: Literal["thermal"]


class BranchTable(Table):
    """A measured branch: a core and a shoulder of transformation temperatures (docs/wires.md)."""

    middle_C: Celsius
    core_K: Positive
    shoulder_ratio: Annotated[float, Field(ge=1.0, le=1000.0)] = 3.0
    shoulder_at_K: float = 0.0
    core_share: Annotated[float, Field(ge=0.0, le=1.0)] = 1.0
    widens_per_MPa: Annotated[float, Field(ge=-0.05, le=0.05)] = 0.0
    work_share: float = 0.5


class SmaTable(WireTable):
    """A wire under the stress of its own cell (`mechanics.sma.stress`, `systems.array.sma.loaded`).

    A_s_C to M_f_C hold without stress, unless `heating` or `cooling` gives a measured branch. At
    the tension of rest, `pretension_N` a wire, all of its contraction is force_on_N of the cell.
    Slopes and stroke are Flexinol's, as fitted to measured loops (docs/wires.md). The latent heat
    is that of these slopes and stroke by Clausius and Clapeyron (`mechanics.sma.stress`, eq. 5).

    A step solves for heat, stress and force together. `coupling = "held"` holds the stress of its
    beginning, as older versions did; a period is then one step, with an error of first order.
    """

    kind: Literal["sma"]
    coupling: Literal["implicit", "held"] = "implicit"
    latent_heat_J_per_kg: NotNegative = 17.0e3
    pretension_N: NotNegative = 0.0
    C_A_MPa_per_K: Positive = 8.3
    C_M_MPa_per_K: Positive = 7.5
    stroke_min: Annotated[float, Field(ge=0.0, le=0.2)] = 0.040
    stroke_max: Annotated[float, Field(gt=0.0, le=0.2)] = 0.041
    stroke_rate_per_MPa: Positive = 0.012
    softer_per_TPa: NotNegative = 25.0
    strength_MPa: Positive = 1000.0  # assumed
    minor_loop_slope: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0
    heating: BranchTable | None = None
    cooling: BranchTable | None = None


if TYPE_CHECKING:
    from typing import Any as CellTable
else:
    CellTable = Annotated[
        Union[tuple(cell.table for cell in cell_kinds().values())],  # noqa: UP007  made at import
        Field(discriminator="kind"),
    ]
ActivationTable = Annotated[
    StepTable | SigmoidTable | ThermalTable | SmaTable, Field(discriminator="kind")
]


class ArrayTable(Table):
    fingerprint: str
    start: str = Field(alias="from")
    end: str = Field(alias="to")
    mass_kg: Annotated[list[Positive], BeforeValidator(as_list), Field(min_length=1)]
    force_on_N: Annotated[
        list[Annotated[float, Field(ge=0.0, le=FORCE_MAX_N)]],
        BeforeValidator(as_list),
        Field(min_length=1),
    ] = [1.0]
    dead_cells: list[int] = []
    broken_cells: list[int] = []
    cell: Annotated[list[CellTable], BeforeValidator(as_list), Field(min_length=1)]
    activation: Annotated[list[ActivationTable], BeforeValidator(as_list), Field(min_length=1)] = [
        StepTable(kind="step")
    ]
    record: Records = None

    @field_serializer("activation", mode="wrap")
    def _one_stays_a_table(self, value: object, handler: SerializerFunctionWrapHandler) -> object:
        """The activation that all cells share, in the form in which files have it."""
        tables = handler(value)
        return tables[0] if len(tables) == 1 else tables


class CellArraysTable(Table):
    """Cellular arrays between points; arrays can share points."""

    points: dict[Name, PointTable]
    arrays: Annotated[dict[Name, ArrayTable], Field(min_length=1)]


class ModelTable(CellArraysTable):
    """Cellular arrays only."""

    kind: Literal["cell_array"]


class CellFile(Table):
    """The file of `hil topologies --cell`: the cell used in all places."""

    cell: CellTable
    force_on_N: Annotated[float, Field(gt=0.0, le=FORCE_MAX_N)] = 1.0


class ObserverTable(Table):
    """Steady-state Kalman observer: noise of the model and of the transducer.

    `disturbance_N_per_sqrt_s` is the random-walk rate of an unmodelled force; with 0 there
    is none.
    """

    cell_force_noise_N: Positive = 0.05
    force_noise_N: Positive = 0.002
    disturbance_N_per_sqrt_s: NotNegative = 0.0
    wires: WiresTable | None = None
    failures: FailuresTable | None = None
    wire_failures: WireFailuresTable | None = None
    cell_failures: CellFailuresTable | None = None


RecruitTable = BroadcastTable | GroupsTable | OptimalTable
