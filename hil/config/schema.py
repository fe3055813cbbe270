"""Tables of the configuration: every key, its type, range and default.

Unknown keys are errors. Values are SI; the unit is part of the key.
"""

from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    PlainValidator,
    Tag,
    model_validator,
)

from hil.config import recruit_schema
from hil.config.arm import ArmTable, PointingTable
from hil.config.bench import ArticleTable, SurroundingsTable
from hil.config.bodies import BodiesTable
from hil.config.limb import AntagonistsTable, LimbTable
from hil.config.own import OwnTable, kind_tag
from hil.config.pantograph import ImpactTable, PantographTable
from hil.config.plant_card import PlantCardTable
from hil.config.replaced import without_replaced
from hil.config.soft import GroundTable, LinkTable, MuscleTable, Pair
from hil.config.supply import SupplyTable
from hil.config.table import (
    Cells,
    Delay,
    Name,
    NotNegative,
    Positive,
    Probability,
    Records,
    Table,
    Title,
    as_list,
    cell_list,
)
from hil.config.validation import ValidationTable
from hil.models.sma_wire import SmaWire
from hil.models.wire_limits import TEMPERATURE_MAX_C

# [model] and [plant]


class PointTable(Table):
    support: Literal["fixed", "free", "driven"]
    mass_kg: NotNegative = 0.0


class StepTable(Table):
    kind: Literal["step"]


class SigmoidTable(Table):
    """A rise, and a fall that is like it unless it has its own rate and delay.

    `law` is "rescaled", with no force while off and force_on_N when fully on, or "unscaled", by
    which recordings were made that do not say (`models.activation`).
    """

    kind: Literal["sigmoid"]
    rate_per_s: Positive = 5.0
    delay_s: Positive = 1.2
    fall_rate_per_s: Positive | None = None
    fall_delay_s: Positive | None = None
    law: Literal["rescaled", "unscaled"] = "rescaled"
    record: Records = None


WIRE = SmaWire()
Supply = Annotated[float, Field(gt=0.0, le=1000.0)]
OhmPerMetre = Annotated[float, Field(ge=1e-3, le=1e8)]  # of wires as thick and thin as these may be
Celsius = Annotated[float, Field(ge=-273.0, le=1000.0)]


class ThermalTable(Table):
    """An SMA wire heated by its current; defaults are Flexinol 0.10 mm HT (`models.sma_wire`).

    In [model] it is run, as any other kind, on the cells reported on or off. `temperature_max_C` is
    what the wire may come to, whatever fails: `hil check` holds the boards' limits against it.
    """

    kind: Literal["thermal"]
    temperature_max_C: Celsius = TEMPERATURE_MAX_C
    length_m: Annotated[float, Field(ge=1e-3)] = WIRE.length_m
    n_wires: Annotated[int, Field(ge=1)] = WIRE.n_wires
    wiring: Literal["series", "parallel"] = WIRE.wiring
    supply_V: Supply | None = None
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
    record: Records = None


class SpringCellTable(Table):
    """Hill and Miga cells: three springs, one damper."""

    kind: Literal["hill", "miga"]
    k_pe_N_per_m: NotNegative
    k_se_N_per_m: Positive
    k_ae_N_per_m: Positive
    b_N_s_per_m: Positive
    record: Records = None


class TwoDamperCellTable(Table):
    kind: Literal["two_damper"]
    k_pe_N_per_m: NotNegative
    k_se_N_per_m: Positive
    k_ae_N_per_m: Positive
    b_se_N_s_per_m: Positive
    b_ae_N_s_per_m: Positive
    record: Records = None


class CustomCellTable(Table):
    """Coefficients as arrays; see `hil.models.cells`."""

    kind: Literal["custom"]
    Ke: float = 0.0
    Kv: float = 0.0
    Kf: float = 0.0
    Kd: list[float] = []
    Ze: list[float] = []
    Zv: list[float] = []
    I: list[list[float]] = []  # noqa: E741  the paper's letter (iota)
    Kp: list[float] = []


CellTable = Annotated[
    SpringCellTable | TwoDamperCellTable | CustomCellTable, Field(discriminator="kind")
]
ActivationTable = Annotated[StepTable | SigmoidTable | ThermalTable, Field(discriminator="kind")]


class ArrayTable(Table):
    fingerprint: str
    start: str = Field(alias="from")
    end: str = Field(alias="to")
    mass_kg: Annotated[list[Positive], BeforeValidator(as_list), Field(min_length=1)]
    force_on_N: Annotated[list[NotNegative], BeforeValidator(as_list), Field(min_length=1)] = [1.0]
    dead_cells: list[int] = []
    broken_cells: list[int] = []
    cell: Annotated[list[CellTable], BeforeValidator(as_list), Field(min_length=1)]
    activation: ActivationTable = StepTable(kind="step")
    record: Records = None


class ModelTable(Table):
    """Cellular arrays between points, which they may share."""

    kind: Literal["cell_array"]
    points: dict[Name, PointTable]
    arrays: Annotated[dict[Name, ArrayTable], Field(min_length=1)]


class LinearTable(Table):
    """Any linear system, x' = A x + B u, y = C x + D u, from rest.

    Names of `inputs` and `outputs` end with their unit, such as `motor.force_N`; a name
    without one is a pure number.
    """

    kind: Literal["linear"]
    inputs: Annotated[list[str], Field(min_length=1)]
    outputs: Annotated[list[str], Field(min_length=1)]
    A: list[list[float]]
    B: list[list[float]]
    C: list[list[float]]
    D: list[list[float]] | None = None


class SoftTable(Table):
    """Links of rubber, bent by cellular arrays; the plane's y points up.

    Points and arrays are those of a cell_array; every array ends at a driven point of its own,
    which its tendon moves as `muscles` says.
    """

    kind: Literal["soft_links"]
    links: Annotated[dict[Name, LinkTable], Field(min_length=1)]
    points: dict[Name, PointTable]
    arrays: Annotated[dict[Name, ArrayTable], Field(min_length=1)]
    muscles: Annotated[dict[Name, MuscleTable], Field(min_length=1)]
    gravity_m_per_s2: Pair = [0.0, -9.81]
    ground: GroundTable | None = None


def kinds(*tables: type[Table]) -> frozenset[str]:
    """What these tables' `kind` may be."""
    return frozenset(k for t in tables for k in get_args(t.model_fields["kind"].annotation))


KnownSystemTable = LinearTable | PantographTable | SoftTable | LimbTable | ArmTable | BodiesTable
SystemTable = KnownSystemTable | OwnTable
AnyModelTable = Annotated[
    Annotated[ModelTable | KnownSystemTable, Field(discriminator="kind"), Tag("built_in")]
    | Annotated[OwnTable, Tag("own")],
    Discriminator(kind_tag("model", kinds(ModelTable, *get_args(KnownSystemTable)))),
]


class CellFile(Table):
    """The file of `hil topologies --cell`: the one cell that all places hold."""

    cell: CellTable
    force_on_N: Positive = 1.0


# [devices.<name>]


Every = Annotated[int, Field(ge=1, le=10_000)]  # periods from one turn of a device to the next


class SimBoardTable(Table):
    """What a simulated board does worse than a perfect one: answers that miss their tick."""

    reply_lost_probability: Probability = 0.0


class BoardWireTable(Table):
    """The wire of every cell of a board whose cells are not thermal in [model].

    It is what the board's limits protect; `supply_V` stands across a cell whose gate is on.
    """

    diameter_m: Annotated[float, Field(ge=1e-6, le=0.01)]
    length_m: Annotated[float, Field(ge=1e-3)]
    supply_V: Supply
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
        raise ValueError("the coldest room comes first, then the warmest")
    return value


class CellBoardTable(Table):
    """A driver board; `cells` names the cell behind each gate, in gate order.

    `port` is `usb:SERIAL_NUMBER` or a device path. A command holds for `hold_s`. `limits` are
    those of the board's own table (firmware/core/wire.h) that differ from its defaults. It is
    read and commanded in every `every`-th period. Its e-stop must be seen open before every run,
    unless the rig has none.

    What its limits protect depends on the room, from its coldest to its warmest
    (`ambient_range_C`), on the wires, which `wire` describes where they are not thermal cells of
    [model], and on the current that a short can draw: the rig's supply limits it, else
    `supply_current_max_A` says what does.
    """

    kind: Literal["cell_board"]
    port: str
    cells: Annotated[list[str], Field(min_length=1, max_length=12)]
    hold_s: Annotated[float, Field(ge=0.002, le=0.1)] = 0.05
    every: Every = 1
    estop: Literal["proved", "none"] = "proved"
    limits: Annotated[dict[str, int], BeforeValidator(without_replaced)] = {}
    ambient_range_C: Annotated[
        list[Celsius], Field(min_length=2, max_length=2), AfterValidator(_cold_to_warm)
    ] = [15.0, 30.0]
    supply_current_max_A: Supply | None = None
    wire: BoardWireTable | None = None
    sim: SimBoardTable = SimBoardTable()


class SimEncoderTable(Table):
    """What a simulated encoder does worse than a perfect one."""

    delay_s: Delay = 0.0
    reading_lost_probability: Probability = 0.0
    record: Records = None


class SimChannelTable(Table):
    """What a simulated transducer and its conditioner add to the signal."""

    delay_s: Delay = 0.0
    bandwidth_Hz: Positive = 25000.0
    noise_rms_V: NotNegative = 0.0
    offset_V: float = 0.0
    reading_lost_probability: Probability = 0.0
    record: Records = None


Wiring = Literal["default", "differential", "single_ended", "non_referenced"]


class BridgeTable(Table):
    """A transducer straight on a bridge input, which the card feeds."""

    excitation_V: Annotated[float, Field(gt=0.0, le=20.0)]
    resistance_Ohm: Positive = 350.0


class ForceChannelTable(Table):
    """A force transducer: by its calibration record, or force_N = newtons_per_V (volts - zero_V).

    Where both are given they must agree. With `tare` the mean before the run is its zero.
    `shunt_line` is a digital output that closes the conditioner's shunt before the run.
    """

    kind: Literal["force"] = "force"
    terminal: str
    signal: str | None = None
    record: str | None = None
    newtons_per_V: float | None = None
    zero_V: float = 0.0
    wiring: Wiring = "default"
    bridge: BridgeTable | None = None
    tare: bool = False
    shunt_line: str | None = None
    sim: SimChannelTable = SimChannelTable()

    @model_validator(mode="after")
    def _means_something(self) -> "ForceChannelTable":
        if self.record is None and self.newtons_per_V is None:
            raise ValueError("give the record of its calibration, or newtons_per_V")
        if self.record is None and self.bridge is not None:
            raise ValueError("a bridge input needs the record of its calibration")
        return self


class VoltageChannelTable(Table):
    """Any signal of the model as a voltage: value = units_per_V (volts - zero_V)."""

    kind: Literal["voltage"]
    terminal: str
    signal: str
    units_per_V: float
    zero_V: float = 0.0
    wiring: Wiring = "default"
    record: Records = None
    sim: SimChannelTable = SimChannelTable()


class EncoderChannelTable(Table):
    """A quadrature encoder on a counter, all four edges of a pulse counted.

    angle_rad = offset_rad + direction 2 pi counts / counts_per_turn, counts from the run's start.
    """

    kind: Literal["encoder"]
    terminal: str
    signal: str
    counts_per_turn: Annotated[int, Field(ge=4, multiple_of=4)]
    direction: Literal[1, -1] = 1
    offset_rad: float = 0.0
    record: Records = None
    sim: SimEncoderTable = SimEncoderTable()


def _kind_of_channel(value: Any) -> str:
    kind = (
        value.get("kind", "force") if isinstance(value, dict) else getattr(value, "kind", "force")
    )
    return kind if isinstance(kind, str) else repr(kind)


AnyChannelTable = ForceChannelTable | VoltageChannelTable | EncoderChannelTable
ChannelTable = Annotated[
    Annotated[ForceChannelTable, Tag("force")]
    | Annotated[VoltageChannelTable, Tag("voltage")]
    | Annotated[EncoderChannelTable, Tag("encoder")],
    Discriminator(_kind_of_channel),
]


class ActuatorTable(Table):
    """An output that sets an input of the model, in the unit of that input.

    The guard holds its value between `min` and `max` and its change below `rate_max_per_s`;
    at rest it is 0, or the end of its range that is nearest to 0.
    """

    drives: str
    min: float
    max: float
    rate_max_per_s: Positive


class OutputTable(ActuatorTable):
    """An analogue output of a card: value = units_per_V volts."""

    terminal: str
    units_per_V: float


class LineTable(Table):
    """A digital line.

    An `estop` is high while its loop is closed and trips when it opens; an `enable` lets the cells
    have power, and is high from before the boards are armed until the guard trips or the run ends.
    """

    kind: Literal["input", "estop", "enable"]
    terminal: str


class SimCardTable(Table):
    """The card that `--backend emulated` plays; it hands samples over every `transfer_s`.

    `cards` are products by name that terminals name beside it: its chassis and other modules.
    """

    product: str = "PCIe-6363"
    cards: dict[str, str] = {}
    transfer_s: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0


class NidaqTable(Table):
    """An NI card, named as in NI's own tools.

    In `block` the card samples at `rate_Hz` (10 samples a period where it is not given) and a
    reading is the mean over a period. The watchdog switches the outputs off when the program has
    been silent for `watchdog_s`. Before the run the inputs are looked at for `before_s`. Boards are
    armed `enable_settle_s` after the enable lines have gone high.
    """

    kind: Literal["nidaq"]
    card: str
    range_V: Positive = 10.0
    resolution_bits: Annotated[int, Field(ge=8, le=32)] = 16
    every: Every = 1
    acquisition: Literal["block", "on_demand", "single_point"] = "block"
    rate_Hz: Positive | None = None
    before_s: Annotated[float, Field(gt=0.0, le=60.0)] = 0.1
    watchdog: Literal["required", "if_present", "off"] = "if_present"
    watchdog_s: Annotated[float, Field(ge=0.01, le=30.0)] = 0.1
    enable_settle_s: Annotated[float, Field(ge=0.0, le=30.0)] = 0.1
    channels: Annotated[dict[Name, ChannelTable], Field(min_length=1)]
    outputs: dict[Name, OutputTable] = {}
    lines: dict[Name, LineTable] = {}
    sim: SimCardTable = SimCardTable()


class OwnSimTable(Table):
    """What a simulated channel of one's own gives: its signal, or `value`, with noise."""

    value: float = 0.0
    noise_rms: NotNegative = 0.0


class OwnChannelTable(Table):
    """A reading of a device of one's own, in the unit of the model's `signal` that it measures.

    One that measures nothing of the model says its unit in `units`.
    """

    kind: Literal["own"] = "own"
    signal: str | None = None
    units: Title = "1"
    sim: OwnSimTable = OwnSimTable()


class OwnDeviceTable(OwnTable):
    """A device of one's own; its class gives a value a channel and takes one an output."""

    every: Every = 1
    channels: dict[Name, OwnChannelTable] = {}
    outputs: dict[Name, ActuatorTable] = {}


DeviceTable = Annotated[
    Annotated[
        CellBoardTable | NidaqTable | SupplyTable, Field(discriminator="kind"), Tag("built_in")
    ]
    | Annotated[OwnDeviceTable, Tag("own")],
    Discriminator(kind_tag("device", kinds(CellBoardTable, NidaqTable, SupplyTable))),
]


# [loop] [guard] [observer] [record]


class LoopTable(Table):
    """Period, and what to do when a deadline is missed.

    Missed periods are skipped, never caught up in a burst. `trip` and `tolerate` look at
    `overruns_max` periods missed in a row: `trip` ends the run safely, `tolerate` notes an
    event; `skip` only counts them. On the real clock the loop sleeps until `spin_s` before its
    deadline and looks at the clock from then on; left out, as wide as this machine bears
    (`hil.realtime.spin_s`). `force_channel` names the force that is controlled, observed and
    recorded as `force_measured_N`: needed where there are several and none is named `force`.
    """

    period_s: Annotated[float, Field(ge=1e-5, le=1.0)]
    force_channel: Name | None = None
    spin_s: Annotated[float, Field(ge=0.0, le=0.01)] | None = None
    overrun: Literal["trip", "tolerate", "skip"] = "trip"
    overruns_max: Annotated[int, Field(ge=1)] = 20
    after_trip_s: NotNegative = 0.5

    @model_validator(mode="after")
    def _leaves_time_to_sleep(self) -> "LoopTable":
        if self.spin_s is not None and self.spin_s > 0.5 * self.period_s:
            raise ValueError(
                f"spin_s = {self.spin_s:g} is more than half the period of {self.period_s:g} s: "
                "the kernel stops a real-time process that never sleeps"
            )
        return self


class SignalLimitTable(Table):
    """What a channel that is no force may read, in its own unit."""

    min: float
    max: float
    rate_max_per_s: Positive | None = None


class GuardTable(Table):
    """Absolute limits. An experiment may tighten what its rig sets, never loosen it.

    `hil.interlocks` has a row for each. `hold_s` says how long a condition must last, by the name
    of its row.
    """

    force_max_N: Positive | None = None
    force_rate_max_N_per_s: Positive | None = None
    force_jump_max_N: Positive | None = None
    force_residual_max_N: Positive | None = None
    force_rise_min_N: Positive | None = None
    frozen_s: Positive | None = None
    cell_on_max_s: Positive | None = None
    cells_on_max: Annotated[int, Field(ge=1)] | None = None
    signals: dict[Name, SignalLimitTable] = {}
    reading_age_max_s: Positive = 0.05
    disk_free_min_MB: NotNegative = 100.0
    hold_s: dict[str, NotNegative] = {}


class ObserverTable(Table):
    """Steady-state Kalman observer: what it trusts the model and the transducer with.

    `disturbance_N_per_sqrt_s` is how fast a force that no cell explains may wander; with 0 there
    is none.
    """

    cell_force_noise_N: Positive = 0.05
    force_noise_N: Positive = 0.002
    disturbance_N_per_sqrt_s: NotNegative = 0.0
    wires: recruit_schema.WiresTable | None = None
    failures: recruit_schema.FailuresTable | None = None
    wire_failures: recruit_schema.WireFailuresTable | None = None


class RecordTable(Table):
    """How often rows reach the file, and how often the file reaches the disk."""

    flush_s: Annotated[float, Field(ge=0.02, le=10.0)] = 0.25
    fsync_s: Annotated[float, Field(ge=0.1, le=600.0)] = 5.0


# Experiment


class ExperimentTable(Table):
    name: Title
    duration_s: Annotated[float, Field(gt=0.0, le=1e7)]
    operator: Title = ""


class StepsReferenceTable(Table):
    """Piecewise constant: from `t_s[i]` on the value is `force_N[i]`, 0 before the first."""

    kind: Literal["steps"]
    t_s: Annotated[list[NotNegative], Field(min_length=1)]
    force_N: Annotated[list[float], Field(min_length=1)]


class RampReferenceTable(Table):
    """Straight lines between points; the first and last value hold outside."""

    kind: Literal["ramp"]
    t_s: Annotated[list[NotNegative], Field(min_length=2)]
    force_N: Annotated[list[float], Field(min_length=2)]


class SineReferenceTable(Table):
    """mean_N + amplitude_N sin(2 pi frequency_Hz t)."""

    kind: Literal["sine"]
    mean_N: float
    amplitude_N: NotNegative
    frequency_Hz: Positive


class SignalStepsTable(Table):
    """Piecewise constant: `value[i]` from `t_s[i]` on, 0 before the first."""

    kind: Literal["steps"]
    t_s: Annotated[list[NotNegative], Field(min_length=1)]
    value: Annotated[list[float], Field(min_length=1)]


class SignalRampTable(Table):
    """Straight lines between points; the first and last value hold outside."""

    kind: Literal["ramp"]
    t_s: Annotated[list[NotNegative], Field(min_length=2)]
    value: Annotated[list[float], Field(min_length=2)]


class SignalSineTable(Table):
    """mean + amplitude sin(2 pi frequency_Hz t)."""

    kind: Literal["sine"]
    mean: float
    amplitude: NotNegative
    frequency_Hz: Positive


SignalTable = Annotated[
    Annotated[
        SignalStepsTable | SignalRampTable | SignalSineTable,
        Field(discriminator="kind"),
        Tag("built_in"),
    ]
    | Annotated[OwnTable, Tag("own")],
    Discriminator(kind_tag("reference", kinds(SignalStepsTable, SignalRampTable, SignalSineTable))),
]


class SignalsReferenceTable(Table):
    """A set point a channel, in the channel's unit, for rigs that are no arrays."""

    kind: Literal["signals"]
    signals: Annotated[dict[Name, SignalTable], Field(min_length=1)]


KnownReferenceTable = (
    StepsReferenceTable
    | RampReferenceTable
    | SineReferenceTable
    | recruit_schema.ChirpReferenceTable
    | recruit_schema.ReachReferenceTable
    | recruit_schema.TraceReferenceTable
)
ForceReferenceTable = KnownReferenceTable | OwnTable
ReferenceTable = Annotated[
    Annotated[
        KnownReferenceTable | SignalsReferenceTable, Field(discriminator="kind"), Tag("built_in")
    ]
    | Annotated[OwnTable, Tag("own")],
    Discriminator(
        kind_tag("reference", kinds(*get_args(KnownReferenceTable), SignalsReferenceTable))
    ),
]


class ScheduleStepTable(Table):
    """At `t_s` switch cells on or off: "all", or a list of numbers (from 1) or names."""

    t_s: NotNegative
    on: Cells = []
    off: Cells = []

    @model_validator(mode="after")
    def _switches_something(self) -> "ScheduleStepTable":
        if not self.on and not self.off:
            raise ValueError("switches nothing: give on or off, 'all' or a list of cells")
        return self


class ScheduleTable(Table):
    kind: Literal["schedule"]
    steps: Annotated[list[ScheduleStepTable], Field(min_length=1)]


class PidTable(Table):
    """PID on force; its output in newtons becomes a number of cells.

    u = Kp e + Ki int(e) + Kd de/dt with the derivative filtered at `derivative_filter_s`.
    Cells are taken in `order`; a cell joins or leaves when u is `hysteresis` of its step
    beyond the middle between two levels, and no sooner than `dwell_s` after the last change.
    """

    kind: Literal["pid"]
    k_p: NotNegative
    k_i_per_s: NotNegative = 0.0
    k_d_s: NotNegative = 0.0
    derivative_filter_s: Positive = 0.02
    order: Annotated[list[int | str] | None, PlainValidator(cell_list)] = None
    hysteresis: Annotated[float, Field(ge=0.0, le=0.5)] = 0.1
    dwell_s: NotNegative = 0.1


class SignalLoopTable(Table):
    """One PID from a channel to an output; its set point is that of the same name.

    u = Kp e + Ki int(e) + Kd de/dt, the derivative filtered at `derivative_filter_s` and the
    integral held while the output is at the end of its range.
    """

    output: str
    k_p: float
    k_i_per_s: float = 0.0
    k_d_s: float = 0.0
    derivative_filter_s: Positive = 0.02


class SignalPidTable(Table):
    """A PID a channel, for rigs that are no arrays."""

    kind: Literal["signal_pid"]
    loops: Annotated[dict[Name, SignalLoopTable], Field(min_length=1)]


CellControllerTable = ScheduleTable | PidTable
RecruitTable = (
    recruit_schema.BroadcastTable | recruit_schema.GroupsTable | recruit_schema.OptimalTable
)
KnownControllerTable = (
    CellControllerTable
    | RecruitTable
    | SignalPidTable
    | ImpactTable
    | AntagonistsTable
    | PointingTable
)
ControllerTable = Annotated[
    Annotated[KnownControllerTable, Field(discriminator="kind"), Tag("built_in")]
    | Annotated[OwnTable, Tag("own")],
    Discriminator(kind_tag("controller", kinds(*get_args(KnownControllerTable)))),
]


class ModelTables(Table):
    """A file with nothing but a model."""

    model: AnyModelTable
    plant: AnyModelTable


class RigTables(ModelTables):
    """A rig: its model, the simulated plant, devices and limits."""

    loop: LoopTable
    devices: Annotated[dict[Name, DeviceTable], Field(min_length=1)]
    guard: GuardTable
    observer: ObserverTable = ObserverTable()
    plant_card: PlantCardTable | None = None
    article: ArticleTable | None = None
    surroundings: SurroundingsTable | None = None


class RunTables(RigTables):
    """The whole configuration of a run: a rig and an experiment on it, merged."""

    experiment: ExperimentTable
    reference: ReferenceTable | None = None
    controller: ControllerTable
    record: RecordTable = RecordTable()
    validation: ValidationTable | None = None
