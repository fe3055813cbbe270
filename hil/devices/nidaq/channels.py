"""Settings of a card, as plain data."""

import math
from dataclasses import dataclass
from typing import Literal

from hil.calibration.signal_chain import Chain, Encoder

Wiring = Literal["default", "differential", "single_ended", "non_referenced"]
LineKind = Literal["input", "estop", "enable", "readback"]


@dataclass(frozen=True)
class Bridge:
    """Excitation of a transducer by a bridge card."""

    excitation_V: float
    resistance_Ohm: float
    arms: Literal["full", "half", "quarter"] = "full"


@dataclass(frozen=True)
class Baseline:
    """Values of a healthy channel at commissioning; None if not measured.

    Attributes
    ----------
    zero_ratio : reading without force
    zero_tolerance : usual change of the zero, as a force
    noise_rms_raw : float or None
    shunt_ratio, shunt_tolerance : change of the reading when the shunt is closed
    """

    zero_ratio: float | None = None
    zero_tolerance: float | None = None
    noise_rms_raw: float | None = None
    shunt_ratio: float | None = None
    shunt_tolerance: float | None = None


@dataclass(frozen=True)
class AnalogInput:
    """A signal on a voltage or bridge input.

    Attributes
    ----------
    chain : conversion from V (mV/V on a bridge input) to the reading
    range_raw : largest reading expected, V or mV/V
    tare : whether the mean before the run becomes its zero
    shunt_line : line that closes the conditioner's shunt; empty if there is none
    """

    name: str
    terminal: str
    chain: Chain
    range_raw: float
    wiring: Wiring = "default"
    bridge: Bridge | None = None
    tare: bool = False
    baseline: Baseline = Baseline()
    shunt_line: str = ""

    @property
    def unit(self) -> str:
        return "V" if self.bridge is None else "mV/V"

    @property
    def raw_column(self) -> str:
        return f"{self.name}.raw_{'V' if self.bridge is None else 'mV_per_V'}"


@dataclass(frozen=True)
class EncoderInput:
    """A quadrature encoder on a counter.

    Attributes
    ----------
    index_count : count that the index pulse sets; None without an index
    index_phase : levels of A and B at which it does
    filter_s : shorter pulses are ignored; None for all pulses
    """

    name: str
    terminal: str
    encoder: Encoder
    index_count: float | None = None
    index_phase: Literal["high_high", "high_low", "low_high", "low_low"] = "high_high"
    filter_s: float | None = None

    @property
    def raw_column(self) -> str:
        return f"{self.name}.raw_counts"


@dataclass(frozen=True)
class Line:
    """A digital line.

    An `estop` is high while the loop is closed; an `enable` is high from before the boards are
    armed until the guard trips or the run ends. A `readback` is the level of a cell's gate.
    """

    name: str
    terminal: str
    kind: LineKind


@dataclass(frozen=True)
class CellLine:
    """A line that switches a cell; `index` is that of the cell in the rig."""

    cell: str
    terminal: str
    index: int


@dataclass(frozen=True)
class AnalogOutput:
    """Output for an actuator: volts = value / units_per_V, limited to the range; `rest` is idle."""

    name: str
    terminal: str
    units_per_V: float
    range_V: float
    rest: float = 0.0


@dataclass(frozen=True)
class Acquisition:
    """Acquisition of samples.

    Attributes
    ----------
    kind : {"block", "on_demand", "single_point"}
        Blocks on the card's sample clock; one reading on request; one per tick on the card's clock.
    per_tick : samples of every channel per tick; 1 unless in blocks
    """

    kind: Literal["block", "on_demand", "single_point"]
    period_s: float
    per_tick: int = 1

    @property
    def rate_Hz(self) -> float:
        return self.per_tick / self.period_s


@dataclass(frozen=True)
class Place:
    """Indices of a card's first channel and first output in the rig's readings and commands."""

    channel: int
    output: int


@dataclass(frozen=True)
class CardPlan:
    """All settings of one card.

    Attributes
    ----------
    inputs : inputs in the order of the rig's readings
    before_s : duration of the check of the inputs before the run
    enable_settle_s : settling time of the power after the enable lines have gone high
    age_max_s : largest age of a reading that the guard permits
    clock_from, start_from : device whose analogue inputs give the sample clock, or the start;
        empty for the card's own
    cells : lines that switch cells
    cools_s : time with these lines low before a run, in which any wire has cooled
    """

    card: str
    acquisition: Acquisition
    inputs: tuple[AnalogInput | EncoderInput, ...]
    lines: tuple[Line, ...] = ()
    outputs: tuple[AnalogOutput, ...] = ()
    before_s: float = 0.1
    watchdog: Literal["required", "if_present", "off"] = "if_present"
    watchdog_s: float = 0.1
    enable_settle_s: float = 0.0
    age_max_s: float = math.inf
    clock_from: str = ""
    start_from: str = ""
    cells: tuple[CellLine, ...] = ()
    cools_s: float = 0.0

    @property
    def analog(self) -> tuple[AnalogInput, ...]:
        return tuple(c for c in self.inputs if isinstance(c, AnalogInput))

    @property
    def encoders(self) -> tuple[EncoderInput, ...]:
        return tuple(c for c in self.inputs if isinstance(c, EncoderInput))

    @property
    def read_back(self) -> tuple[str, ...]:
        """The cells whose gates are read back."""
        return tuple(line.name for line in self.lines if line.kind == "readback")

    @property
    def lines_in(self) -> tuple[Line, ...]:
        return tuple(line for line in self.lines if line.kind != "enable")

    @property
    def lines_out(self) -> tuple[Line, ...]:
        return tuple(line for line in self.lines if line.kind == "enable")

    def physicals(self) -> dict[str, list[str]]:
        """NI's names of all terminals, by kind of channel."""
        shunts = sorted({c.shunt_line for c in self.analog if c.shunt_line})
        terminals = {
            "analogue input": [c.terminal for c in self.analog],
            "counter": [c.terminal for c in self.encoders],
            "digital input": [line.terminal for line in self.lines_in],
            "digital output": [
                *(line.terminal for line in self.lines_out),
                *(line.terminal for line in self.cells),
                *shunts,
            ],
            "analogue output": [c.terminal for c in self.outputs],
        }
        return {kind: [self.physical(t) for t in names] for kind, names in terminals.items()}

    @property
    def elsewhere(self) -> set[str]:
        """Names of further devices in the terminals."""
        named = {device_of(p) for physicals in self.physicals().values() for p in physicals}
        return named - {self.card}

    def physical(self, terminal: str) -> str:
        """NI's name of a terminal; a terminal that starts with '/' includes its device."""
        return terminal[1:] if terminal.startswith("/") else f"{self.card}/{terminal}"


def device_of(physical: str) -> str:
    """The device of a terminal by NI's name: cDAQ1Mod2 of cDAQ1Mod2/ai0."""
    return physical.split("/")[0]
