"""`[devices.NAME]` of instruments that measure: serial indicators, FUTEK, LabJack, Phidgets, NI."""

import re
from typing import Annotated, ClassVar, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from hil.calibration.files import Calibration
from hil.calibration.signal_chain import Chain
from hil.config.table import Address, Name, Positive, Slope, Table
from hil.devices.indicator import NEWTONS, templates
from hil.devices.tables import (
    ActuatorTable,
    DisplacementReadingTable,
    ForceReadingTable,
    InstrumentTable,
    Wiring,
    kind_of_channel,
)

NoOutputs = Annotated[dict[Name, ActuatorTable], Field(max_length=0)]
OneForce = Annotated[dict[Name, ForceReadingTable], Field(min_length=1, max_length=1)]
Input = Annotated[int, Field(ge=0, le=15)]
Ain = Annotated[str, Field(pattern="^AIN[0-9]{1,3}$")]
Digital = Annotated[str, Field(pattern="^([FE]IO[0-7]|CIO[0-3]|MIO[0-2])$")]
ANALOG_OF_T4 = ("FIO0", "FIO1", "FIO2", "FIO3")


def _calibrated_itself(channels: dict[str, ForceReadingTable]) -> None:
    if any(channel.record is not None for channel in channels.values()):
        raise ValueError("record: it gives force, by its own calibration: remove it")


class IndicatorTable(InstrumentTable):
    """A force indicator with a serial output, such as A&D's.

    `template` names its output format (`hil/devices/indicators.toml`); `pattern` and `request`
    replace those of the template. `unit` is that of its display: another one in a line is an error.
    `port` is a device path or any address that pyserial knows. A reading has the age of its line.
    """

    kind: Literal["serial_indicator"]
    port: Address
    template: str = "and"
    unit: str = "N"
    baud: Annotated[int, Field(ge=300, le=4_000_000)] = 9600
    data_bits: Literal[7, 8] = 8
    parity: Literal["none", "even", "odd"] = "none"
    stop_bits: Literal[1, 2] = 1
    pattern: str | None = None
    request: str | None = None
    channels: OneForce
    outputs: NoOutputs = {}

    @model_validator(mode="after")
    def _can_be_read(self) -> "IndicatorTable":
        if self.template not in templates():
            raise ValueError(f"template = '{self.template}': choose {', '.join(templates())}")
        if self.unit not in NEWTONS:
            raise ValueError(f"unit = '{self.unit}': choose {', '.join(NEWTONS)}")
        try:
            groups = re.compile(self.pattern or "(?P<value>)").groupindex
        except re.error as error:
            raise ValueError(f"pattern: not a regular expression ({error})") from None
        if "value" not in groups:
            raise ValueError("pattern: needs a group (?P<value>...)")
        _calibrated_itself(self.channels)
        return self


class FutekTable(InstrumentTable):
    """A USB or digital instrument of FUTEK (USB225, QIA128, IDC150, IEM100) at a serial port.

    It gives force by its own calibration, in the unit that is set in it. `rate_Hz` sets the rate of
    its converter; without it the rate stays. `input` is the channel of an instrument with several.
    """

    kind: Literal["futek"]
    port: Address
    input: Input = 0
    rate_Hz: Positive | None = None
    channels: OneForce
    outputs: NoOutputs = {}

    @model_validator(mode="after")
    def _gives_force(self) -> "FutekTable":
        _calibrated_itself(self.channels)
        return self


class PhidgetChannelTable(ForceReadingTable):
    """A load cell on bridge input `input`; `record` is the file of its calibration, in N/(mV/V)."""

    input: Input = 0
    record: str


class PhidgetTable(InstrumentTable):
    """A bridge input of Phidgets; a sample each `interval_s`, in whole milliseconds.

    `serial` is the serial number of the Phidget or its hub, `hub_port` the port of a hub; without
    them the only one that is plugged in is used. `gain` is that of its amplifier.
    """

    kind: Literal["phidget_bridge"]
    serial: Annotated[int, Field(ge=0)] | None = None
    hub_port: Annotated[int, Field(ge=0, le=5)] | None = None
    gain: Literal[1, 2, 4, 8, 16, 32, 64, 128] = 128
    interval_s: Annotated[float, Field(ge=0.001, le=60.0)] = 0.008
    channels: Annotated[dict[Name, PhidgetChannelTable], Field(min_length=1, max_length=4)]
    outputs: NoOutputs = {}


class VoltsForceTable(ForceReadingTable):
    """A force transducer on an analogue input.

    Its amplifier gives volts, which `record`, the file of a calibration, converts, or
    force_N = newtons_per_V (volts - zero_V).
    """

    newtons_per_V: Slope | None = None
    zero_V: float = 0.0
    raw_unit = "V"

    @property
    def on_bridge(self) -> bool:
        """Whether the instrument excites the bridge itself and gives mV/V."""
        return False

    @model_validator(mode="after")
    def _has_calibration(self) -> "VoltsForceTable":
        if (self.record is None) == (self.newtons_per_V is None):
            raise ValueError("give either record, the file of its calibration, or newtons_per_V")
        if self.record is None and self.on_bridge:
            raise ValueError("excitation_V: a bridge needs record, the file of its calibration")
        return self

    def chain(self, calibration: Calibration | None) -> Chain | None:
        if calibration is not None:
            return calibration.chain(bridge=self.on_bridge)
        return None if self.newtons_per_V is None else Chain.linear(self.newtons_per_V, self.zero_V)


class VoltsDisplacementTable(DisplacementReadingTable):
    """A displacement sensor on an analogue input: metres = metres_per_V (volts - zero_V)."""

    metres_per_V: Slope
    zero_V: float = 0.0
    raw_unit = "V"

    def chain(self, calibration: Calibration | None) -> Chain:
        return Chain.linear(self.metres_per_V, self.zero_V)


class LabJackInputTable(Table):
    """An analogue input: against ground, or against the input `negative`; `range_V` as in LJM."""

    terminal: Ain
    negative: Annotated[str, Field(pattern="^(GND|AIN[0-9]{1,3})$")] | None = None
    range_V: Positive | None = None


class LabJackForceTable(LabJackInputTable, VoltsForceTable):
    """A force transducer on a LabJack.

    With `excitation_V`, the bridge is connected directly and needs `record`, the file of its
    calibration. Otherwise its amplifier gives volts, which `record` converts, or
    force_N = newtons_per_V (volts - zero_V).
    """

    excitation_V: Positive | None = None

    @property
    def on_bridge(self) -> bool:
        return self.excitation_V is not None


class LabJackDisplacementTable(LabJackInputTable, VoltsDisplacementTable):
    """A displacement sensor on a LabJack: metres = metres_per_V (volts - zero_V)."""

    excitation_V: ClassVar[None] = None


LabJackChannel = Annotated[
    Annotated[LabJackForceTable, Tag("force")]
    | Annotated[LabJackDisplacementTable, Tag("displacement")],
    Discriminator(kind_of_channel),
]


class LabJackLineTable(Table):
    """A digital line that holds the relay in the cells' supply, and one that senses this relay.

    `readback` is wired to the relay's second contact, and is high while the relay is closed.
    """

    kind: Literal["enable"]
    terminal: Digital
    readback: Digital


class LabJackTable(InstrumentTable):
    """A LabJack T4, T7 or T8; its inputs are read one after the other, as fast as it answers.

    `identifier` is its serial number, address or name; "ANY" takes the first one found. An `enable`
    line of it switches the cells' power, as one of a card does: it goes high before the boards are
    armed, and low when the guard trips or the run ends. A relay that does not follow its line
    within `enable_settle_s` ends the run. The LabJack's own watchdog sets the line low when the
    program is silent for `watchdog_s`.
    """

    kind: Literal["labjack"]
    model: Literal["ANY", "T4", "T7", "T8"] = "ANY"
    connection: Literal["ANY", "USB", "ETHERNET", "WIFI"] = "ANY"
    identifier: Address = "ANY"
    channels: Annotated[dict[Name, LabJackChannel], Field(min_length=1, max_length=16)]
    outputs: NoOutputs = {}
    lines: Annotated[dict[Name, LabJackLineTable], Field(max_length=4)] = {}
    watchdog_s: Annotated[int, Field(ge=1, le=30)] = 1
    enable_settle_s: Annotated[float, Field(ge=0.0, le=30.0)] = 0.1

    @property
    def enable_lines(self) -> dict[str, str]:
        return {name: f"{line.terminal} of LabJack {self.identifier}"
                for name, line in self.lines.items()}  # fmt: skip

    @model_validator(mode="after")
    def _lines_are_apart(self) -> "LabJackTable":
        used: set[str] = set()
        for name, line in self.lines.items():
            for key, terminal in (("terminal", line.terminal), ("readback", line.readback)):
                where = f"lines.{name}.{key} = '{terminal}'"
                if terminal in used:
                    raise ValueError(f"{where}: is used by another line")
                if self.model == "T4" and terminal in ANALOG_OF_T4:
                    raise ValueError(f"{where}: is an analogue input of a T4: choose EIO4 to EIO7")
                used.add(terminal)
        return self


class RemoteInputTable(Table):
    """A voltage input of a card in another computer, between -`range_V` and `range_V`."""

    terminal: Annotated[str, Field(pattern="^ai[0-9]{1,3}$")]
    wiring: Wiring = "default"
    range_V: Positive = 10.0


class RemoteForceTable(RemoteInputTable, VoltsForceTable):
    """A force transducer whose amplifier gives volts to a card in another computer."""


class RemoteDisplacementTable(RemoteInputTable, VoltsDisplacementTable):
    """A displacement sensor on a card in another computer."""


RemoteChannel = Annotated[
    Annotated[RemoteForceTable, Tag("force")]
    | Annotated[RemoteDisplacementTable, Tag("displacement")],
    Discriminator(kind_of_channel),
]


class RemoteNidaqTable(InstrumentTable):
    """Voltage inputs of an NI card in another computer, such as one with Windows.

    `server` is the address of NI's gRPC Device Server there, such as "192.168.1.20:31763"; `card`
    is the card's name in NI's tools on that computer. The inputs are read on demand, as fast as the
    server answers.
    """

    kind: Literal["nidaq_remote"]
    server: Annotated[str, Field(pattern=r"^[^\s/]+:[0-9]{1,5}$")]
    card: Address
    channels: Annotated[dict[Name, RemoteChannel], Field(min_length=1, max_length=32)]
    outputs: NoOutputs = {}
