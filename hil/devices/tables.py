"""`[devices.<name>]`: driver boards, data acquisition cards, channels, outputs and lines."""

import re
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    model_validator,
)

from hil.calibration.files import Calibration
from hil.calibration.signal_chain import Chain
from hil.config.replaced import without_replaced
from hil.config.table import (
    Address,
    Delay,
    Name,
    NotNegative,
    Positive,
    Probability,
    Records,
    Slope,
    SupplyVoltage,
    Table,
    Title,
)
from hil.devices.board.identity import USB
from hil.devices.switch_tables import (
    AmbientRange,
    BoardWireTable,
    CardSwitchesTable,
    DeviceSwitchesTable,
)
from hil.plugins.load import PluginTable

Every = Annotated[int, Field(ge=1, le=10_000)]  # read the device once in this many loop periods
Role = Literal["board", "card", "instrument", "supply"]


class DeviceTable(Table):
    """A device of a rig, by its `kind`.

    `role` is its function in the rig: a `board` switches cells, a `card` has terminals, an
    `instrument` has channels and outputs, a `supply` powers the cells.
    """

    role: ClassVar[Role]
    kind: str

    @property
    def follows(self) -> str | None:
        """The device that this one waits for at its start; None if it needs none."""
        return None

    @property
    def cells_switched(self) -> tuple[str, ...]:
        """Names of the cells that it switches."""
        return ()

    @property
    def enable_lines(self) -> dict[str, str]:
        """Its lines that switch the cells' power: where each is, by its name."""
        return {}


class MeasuredTable(Table):
    """A channel of a device, which measures an output of the model.

    It may measure only outputs whose names end in `suffix`; error messages call them `what`. A
    channel with `force` can be the controlled force.
    """

    force: ClassVar[bool] = False
    turns: ClassVar[bool] = False  # an encoder: it counts the pulses of a rotating shaft
    suffix: ClassVar[str] = ""
    what: ClassVar[str] = "signal"


class SimBoardTable(Table):
    """Imperfections of a board with `--backend sim`: replies are lost, its converter has noise."""

    reply_lost_probability: Probability = 0.0
    noise_counts: Annotated[NotNegative, Field(le=50.0)] = 0.0


class BoardResistanceTable(Table):
    """The chain by which a board measures resistance, and the range of its cells' resistance.

    The range of a cell whose wire is described follows from the wire unless it is given here.
    `tolerance` is how far, relative to the described resistance, a sound wire and chain may be off
    together: beyond it `current_untrue` trips, unless the range is given here. `lead_Ohm` is in
    series with every wire. `u_relative` is the relative standard uncertainty of shunt, amplifier
    and divider together, `noise_counts` the noise of the converter.
    """

    lead_Ohm: NotNegative = 0.0
    tolerance: Annotated[float, Field(ge=0.02, le=0.5)] = 0.1  # assumed
    u_relative: Annotated[float, Field(ge=0.0, le=0.5)] = 0.02  # assumed: parts of 1 %
    noise_counts: Annotated[NotNegative, Field(le=50.0)] = 0.5  # assumed
    min_Ohm: NotNegative | None = None
    max_Ohm: Positive | None = None

    @model_validator(mode="after")
    def _in_order(self) -> "BoardResistanceTable":
        if None not in (self.min_Ohm, self.max_Ohm) and not self.min_Ohm < self.max_Ohm:  # type: ignore[operator]
            raise ValueError("min_Ohm must be below max_Ohm")
        return self


def _board_serial(value: object) -> object:
    if type(value) is int:
        value = str(value)
    if isinstance(value, str) and not re.fullmatch(rf"{USB}.+|0|[1-9]\d{{0,9}}", value):
        raise ValueError("give the number that hil devices --identify shows")
    return value


class CellBoardTable(DeviceTable):
    """A driver board; `cells` names the cell at each gate, in gate order.

    `port` is `usb:SERIAL_NUMBER` or a device path. `serial` is the serial number that the board
    reports, or where it has none its port, `usb:SERIAL_NUMBER`; a board with another one is
    refused. With the path of a device a bench needs it: the next start may give that path to
    another board. A command expires after `hold_s`. `limits` are
    the limits of the board's table (firmware/core/protocol.h) that differ from its defaults. The
    board is read and commanded in every `every`-th period. The self-test before each run must see
    its e-stop open, unless `estop = "none"`. The board must run the firmware that comes with hil,
    unless `firmware` gives the hash of another one.

    The protection by its limits depends on the ambient temperature, which is within
    `ambient_range_C`; on the wires, which `wire` describes if [model] has no thermal model of
    them; and on the current of a short circuit, which the rig's supply limits, or otherwise
    `supply_current_max_A`.

    `build` is that of its firmware: `arduino` is an Uno or Nano as it is sold, which measures
    nothing. Then the board computes the heat of every wire with `limits.current_max_mA`. With
    `fuses = "as_delivered"` the board may have the fuses of an Arduino, which no boot loader can
    change.

    `record` names the record of its first power-up, which `hil board bring-up` writes: a run on
    the bench needs that of this board and firmware.

    With `limits.sense_every_ms` the board measures the resistance of every cell, on or off;
    `resistance` describes how.

    Every cell has a temperature sensor at its clamp, except those of `without_clamp_sensor`, whose
    inputs are wired to a room's level.
    """

    role = "board"
    kind: Literal["cell_board"]
    port: Address
    serial: Annotated[str, BeforeValidator(_board_serial)] | None = None
    cells: Annotated[list[str], Field(min_length=1, max_length=12)]
    hold_s: Annotated[float, Field(ge=0.002, le=0.1)] = 0.05
    every: Every = 1
    estop: Literal["proved", "none"] = "proved"
    firmware: Annotated[str, Field(pattern="^[0-9a-f]{8}$")] | None = None
    record: Records = None
    build: Literal["board", "arduino"] = "board"
    fuses: Literal["required", "as_delivered"] = "required"
    limits: Annotated[dict[str, int], BeforeValidator(without_replaced)] = {}
    ambient_range_C: AmbientRange = [15.0, 30.0]
    supply_current_max_A: SupplyVoltage | None = None
    wire: BoardWireTable | None = None
    resistance: BoardResistanceTable = BoardResistanceTable()
    without_clamp_sensor: list[str] = []
    sim: SimBoardTable = SimBoardTable()

    @property
    def cells_switched(self) -> tuple[str, ...]:
        return tuple(self.cells)

    @property
    def measures(self) -> bool:
        """Whether its build measures currents and temperatures."""
        return self.build == "board"


class SimEncoderTable(Table):
    """Imperfections of a simulated encoder."""

    delay_s: Delay = 0.0
    reading_lost_probability: Probability = 0.0
    record: Records = None


class SimChannelTable(Table):
    """Imperfections of a simulated transducer and its conditioner."""

    delay_s: Delay = 0.0
    bandwidth_Hz: Positive = 25000.0
    noise_rms_V: NotNegative = 0.0
    offset_V: float = 0.0
    reading_lost_probability: Probability = 0.0
    record: Records = None


Wiring = Literal["default", "differential", "single_ended", "non_referenced"]


class BridgeTable(Table):
    """A transducer connected directly to a bridge input; the card supplies the excitation.

    A load cell is a full bridge. A half or a quarter bridge is completed by the card, which must
    be able to; `resistance_Ohm` is that of an arm. Its calibration is in mV/V too.
    """

    excitation_V: Annotated[float, Field(gt=0.0, le=20.0)]
    resistance_Ohm: Positive = 350.0
    arms: Literal["full", "half", "quarter"] = "full"


class ForceChannelTable(MeasuredTable):
    """A force transducer, converted by its calibration or by its sensitivity.

    `record` is the file of its calibration. Without one,
    force_N = newtons_per_V (volts - zero_V). If both are given they must agree. With `tare` the
    mean before the run becomes the zero. `shunt_line` is a digital output that closes the
    conditioner's shunt before the run.
    """

    force = True
    suffix = "_N"
    what = "force"
    kind: Literal["force"] = "force"
    terminal: Address
    signal: str | None = None
    record: str | None = None
    newtons_per_V: Slope | None = None
    zero_V: float = 0.0
    wiring: Wiring = "default"
    bridge: BridgeTable | None = None
    tare: bool = False
    shunt_line: str | None = None
    sim: SimChannelTable = SimChannelTable()

    @model_validator(mode="after")
    def _has_calibration(self) -> "ForceChannelTable":
        if self.record is None and self.newtons_per_V is None:
            raise ValueError("give record, the file of its calibration, or newtons_per_V")
        if self.record is None and self.bridge is not None:
            raise ValueError("a bridge input needs record, the file of its calibration")
        return self

    def chain(self, calibration: Calibration | None) -> Chain:
        """Conversion from volts (mV/V on a bridge input) to N."""
        if calibration is not None:
            return calibration.chain(bridge=self.bridge is not None)
        if self.newtons_per_V is None:
            raise ValueError("a channel has neither record nor newtons_per_V")
        return Chain.linear(self.newtons_per_V, self.zero_V)


class VoltageChannelTable(MeasuredTable):
    """Any signal of the model as a voltage: value = units_per_V (volts - zero_V)."""

    kind: Literal["voltage"]
    terminal: Address
    signal: str
    units_per_V: Slope
    zero_V: float = 0.0
    wiring: Wiring = "default"
    record: Records = None
    sim: SimChannelTable = SimChannelTable()
    bridge: ClassVar[None] = None
    tare: ClassVar[bool] = False
    shunt_line: ClassVar[None] = None

    def chain(self, calibration: Calibration | None) -> Chain:
        """Conversion from volts to the signal's unit."""
        return Chain.linear(self.units_per_V, self.zero_V)


class DisplacementChannelTable(MeasuredTable):
    """A displacement sensor, such as a laser: metres = metres_per_V (volts - zero_V).

    `record` is the file of its calibration (`hil calibrate displacement_sensor`), whose values the
    table repeats. With `tare` the mean before the run becomes the zero. The rig must give its range
    in `[guard.signals.NAME]`.
    """

    suffix = "_m"
    what = "displacement"
    kind: Literal["displacement"]
    terminal: Address
    signal: str
    metres_per_V: float
    zero_V: float = 0.0
    wiring: Wiring = "default"
    tare: bool = False
    record: Records = None
    sim: SimChannelTable = SimChannelTable()
    bridge: ClassVar[None] = None
    shunt_line: ClassVar[None] = None

    @model_validator(mode="after")
    def _has_a_slope(self) -> "DisplacementChannelTable":
        if self.metres_per_V == 0.0:
            raise ValueError("metres_per_V must not be 0: a reading would have no effect")
        return self

    def chain(self, calibration: Calibration | None) -> Chain:
        """Conversion from volts to m."""
        return Chain.linear(self.metres_per_V, self.zero_V)


class EncoderChannelTable(MeasuredTable):
    """A quadrature encoder on a counter, with X4 decoding.

    angle_rad = offset_rad + direction 2 pi counts / counts_per_turn, where counts are relative to
    the start of the run. With `index_rad`, the angle at the index pulse (Z), the card sets the
    count to that angle at every pulse, while A and B are in `index_phase`: errors of `offset_rad`
    and lost counts end there. The card ignores pulses on A, B and Z shorter than `filter_s`.
    """

    turns = True
    suffix = "_rad"
    what = "angle"
    kind: Literal["encoder"]
    terminal: Address
    signal: str
    counts_per_turn: Annotated[int, Field(ge=4, multiple_of=4)]
    direction: Literal[1, -1] = 1
    offset_rad: float = 0.0
    index_rad: float | None = None
    index_phase: Literal["high_high", "high_low", "low_high", "low_low"] = "high_high"
    filter_s: Annotated[float, Field(gt=0.0, le=0.01)] | None = None
    record: Records = None
    sim: SimEncoderTable = SimEncoderTable()


def kind_of_channel(value: object) -> str:
    """The `kind` of a channel's table; without one it is a force."""
    kind = (
        value.get("kind", "force") if isinstance(value, dict) else getattr(value, "kind", "force")
    )
    return kind if isinstance(kind, str) else repr(kind)


AnalogChannelTable = ForceChannelTable | DisplacementChannelTable | VoltageChannelTable
AnyChannelTable = AnalogChannelTable | EncoderChannelTable
ChannelTable = Annotated[
    Annotated[ForceChannelTable, Tag("force")]
    | Annotated[DisplacementChannelTable, Tag("displacement")]
    | Annotated[VoltageChannelTable, Tag("voltage")]
    | Annotated[EncoderChannelTable, Tag("encoder")],
    Discriminator(kind_of_channel),
]


class ActuatorTable(Table):
    """An output that sets an input of the model, in the unit of that input.

    The guard limits its value to `min` and `max` and its rate of change to `rate_max_per_s`. Its
    idle value is 0, or the end of its range nearest to 0.
    """

    drives: str
    min: float
    max: float
    rate_max_per_s: Positive


class OutputTable(ActuatorTable):
    """An analogue output of a card: value = units_per_V volts."""

    terminal: Address
    units_per_V: float


class LineTable(Table):
    """A digital line.

    An `estop` line is high while its loop is closed; the guard trips when the loop opens. An
    `enable` line switches the cells' power: it goes high before the boards are armed, and low when
    the guard trips or the run ends.
    """

    kind: Literal["input", "estop", "enable"]
    terminal: Address


class SimCardTable(Table):
    """The card that `--backend emulated` simulates; it transfers samples every `transfer_s`.

    `cards` gives the products of further devices by name, such as a chassis and other modules,
    whose terminals the channels use.
    """

    product: str = "PCIe-6363"
    cards: dict[str, str] = {}
    transfer_s: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0


class NidaqTable(DeviceTable):
    """An NI card; `card` is its name in NI's tools.

    With `acquisition = "block"` the card samples at `rate_Hz` (default: 10 samples per period) and
    a reading is the mean over a period. The card's watchdog switches the outputs off if the program
    does not feed it for `watchdog_s`. The inputs are checked for `before_s` before the run. The
    boards are armed `enable_settle_s` after the enable lines have gone high. With `switches` its
    lines switch cells, and the watchdog must be `required`.

    `clock_from` is the name of another card's table: this card samples on that card's sample clock.
    With `start_from` it starts with that card and keeps a clock of its own. Both need a common
    chassis, or a cable for the signal (RTSI, PFI).
    """

    role = "card"
    kind: Literal["nidaq"]
    card: Address
    range_V: Positive = 10.0
    resolution_bits: Annotated[int, Field(ge=8, le=32)] = 16
    every: Every = 1
    acquisition: Literal["block", "on_demand", "single_point"] = "block"
    rate_Hz: Positive | None = None
    clock_from: Name | None = None
    start_from: Name | None = None
    before_s: Annotated[float, Field(gt=0.0, le=60.0)] = 0.1
    watchdog: Literal["required", "if_present", "off"] = "if_present"
    watchdog_s: Annotated[float, Field(ge=0.01, le=30.0)] = 0.1
    enable_settle_s: Annotated[float, Field(ge=0.0, le=30.0)] = 0.1
    channels: Annotated[dict[Name, ChannelTable], Field(min_length=1)]
    outputs: dict[Name, OutputTable] = {}
    lines: dict[Name, LineTable] = {}
    switches: CardSwitchesTable | None = None
    sim: SimCardTable = SimCardTable()

    @property
    def follows(self) -> str | None:
        return self.clock_from or self.start_from

    @property
    def enable_lines(self) -> dict[str, str]:
        return {name: f"{self.card}/{line.terminal}"
                for name, line in self.lines.items() if line.kind == "enable"}  # fmt: skip

    def clock_device(self) -> str:
        """NI's name of the device of its first analogue input, which has the sample clock."""
        analog = (c.terminal for c in self.channels.values() if c.kind != "encoder")
        first = next(analog, "")
        return first[1:].split("/")[0] if first.startswith("/") else self.card

    @property
    def cells_switched(self) -> tuple[str, ...]:
        return () if self.switches is None else self.switches.names


class PluginSimTable(Table):
    """Simulated channel of a plug-in device: its signal, or `value` if it has none, plus noise."""

    value: float = 0.0
    noise_rms: NotNegative = 0.0


class ReadingTable(MeasuredTable):
    """A reading of an instrument, in the unit of the model's `signal` that it measures."""

    kind: str
    signal: str | None = None
    sim: PluginSimTable = PluginSimTable()
    raw_unit: ClassVar[str] = ""  # of the instrument's own readings, if hil converts them

    def chain(self, calibration: Calibration | None) -> Chain | None:
        """Conversion from the instrument's own readings; None if they need none."""
        return None


class ForceReadingTable(ReadingTable):
    """A force reading of an instrument, in N; without `signal` it is the array's force.

    With `record`, the file of the transducer's calibration, the instrument gives mV/V.
    """

    force = True
    suffix = "_N"
    what = "force"
    kind: Literal["force"] = "force"
    record: str | None = None
    raw_unit = "mV/V"

    def chain(self, calibration: Calibration | None) -> Chain | None:
        return None if calibration is None else calibration.chain(bridge=True)


class TemperatureReadingTable(ReadingTable):
    """A temperature reading of an instrument, in degC."""

    suffix = "_C"
    what = "temperature"
    kind: Literal["temperature"]


class DisplacementReadingTable(ReadingTable):
    """A displacement reading of an instrument, in m."""

    suffix = "_m"
    what = "displacement"
    kind: Literal["displacement"]


class AngleReadingTable(ReadingTable):
    """An angle reading of an instrument, in rad."""

    suffix = "_rad"
    what = "angle"
    kind: Literal["encoder"]


class PluginChannelTable(ReadingTable):
    """A reading of a plug-in device, in the unit of the model's `signal` that it measures.

    If it measures no signal of the model, `units` gives its unit.
    """

    kind: Literal["own"] = "own"
    units: Title = "1"


def _kind_of_reading(value: object) -> str:
    kind = value.get("kind", "own") if isinstance(value, dict) else getattr(value, "kind", "own")
    return kind if isinstance(kind, str) else repr(kind)


AnyReadingTable = Annotated[
    Annotated[ForceReadingTable, Tag("force")]
    | Annotated[TemperatureReadingTable, Tag("temperature")]
    | Annotated[DisplacementReadingTable, Tag("displacement")]
    | Annotated[AngleReadingTable, Tag("encoder")]
    | Annotated[PluginChannelTable, Tag("own")],
    Discriminator(_kind_of_reading),
]


class InstrumentTable(DeviceTable):
    """A device with one value for each channel and each output.

    A call of it may take `budget_s`, by default half a period.
    """

    role = "instrument"
    every: Every = 1
    budget_s: Positive | None = None
    channels: dict[Name, Any] = {}
    outputs: dict[Name, ActuatorTable] = {}

    def lacks(self) -> list[str]:
        """Problems of the class that implements the device, given its outputs."""
        return []


class PluginDeviceTable(PluginTable, InstrumentTable):
    """A plug-in device: a user's class reads its channels, writes its outputs, switches cells."""

    model_config = ConfigDict(extra="allow")

    every: Every = 1
    channels: dict[Name, AnyReadingTable] = {}
    outputs: dict[Name, ActuatorTable] = {}
    switches: DeviceSwitchesTable | None = None

    @property
    def cells_switched(self) -> tuple[str, ...]:
        return () if self.switches is None else self.switches.names

    def lacks(self) -> list[str]:
        """Messages about the methods that its outputs and cells need and its class lacks."""
        cls, file = self.plugin.cls, self.plugin.file
        needed = dict.fromkeys(("write", "safe") if self.outputs else ())
        needed |= dict.fromkeys(("switch", "stopped", "safe") if self.switches else ())
        missing = [m for m in needed if not callable(getattr(cls, m, None))]
        return [f"class {cls.__name__} in {file} has no method {m}()" for m in missing]


class ImportedDeviceTable(InstrumentTable):
    """A device that hil cannot reach: its readings come from files (`hil import`).

    On `--backend sim` its channels are simulated; it has no bench.
    """

    kind: Literal["imported"]
    channels: Annotated[dict[Name, AnyReadingTable], Field(min_length=1)]
    outputs: dict[Name, ActuatorTable] = {}
