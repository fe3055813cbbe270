"""A card: its physical channels and terminals, the signals on them, its reservations."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, Literal

import numpy as np
from nidaqmx.constants import BusType, TerminalConfiguration

from simdaq import catalog, errors
from simdaq.catalog import CardModel
from simdaq.edges import EdgeList, EdgeLog, EdgeSource, Pulses
from simdaq.errors import DaqmxError
from simdaq.terminals import Output, PulseOutput, Source, Terminal, Times

# Trigger lines between cards, eight of each.
BUS_LINES = {
    BusType.PCI: ("RTSI",), BusType.PCIE: ("RTSI",), BusType.PXI: ("PXI_Trig",),
    BusType.PXIE: ("PXI_Trig",),
}  # fmt: skip
# Signals of running tasks, in lower case.
CLOCKS = (
    "ai/sampleclock", "ao/sampleclock", "di/sampleclock", "do/sampleclock", "ai/starttrigger",
    "ao/starttrigger", "di/starttrigger", "do/starttrigger", "ai/referencetrigger",
    "changedetectionevent",
)  # fmt: skip
NO_PINS = ("", "", "", "")
# Frequencies of the timebase terminals, Hz.
TIMEBASES = {
    "100MHzTimebase": 100e6, "80MHzTimebase": 80e6, "20MHzTimebase": 20e6, "10MHzRefClock": 10e6,
    "100kHzTimebase": 100e3,
}  # fmt: skip
SIGNALS = ("SampleClock", "SampleClockTimebase", "StartTrigger", "PauseTrigger")
COUNTER_SIGNALS = ("InternalOutput", "Source", "Gate", "Aux", "A", "B", "Z", "SampleClock",
                   "ArmStartTrigger")  # fmt: skip
Idle = Literal["zero", "simulated"]
_COUNTER = re.compile(r"_?(?:ctr|freqout)(\d*)$")
_COUNTER_SIGNAL = re.compile(r"ctr(\d+)(\w+)", re.IGNORECASE)
_LINE = re.compile(r"port(\d+)/line(\d+)$")
_PORT = re.compile(r"port(\d+)$")
_ANALOG = re.compile(r"_?(ai|ao)(\d+)$")
_READ_BACK = re.compile(r"_ao(\d+)_vs_aognd$")


class Card:
    """One card of a system.

    Attributes
    ----------
    terminals, outputs : by short name, such as ai0, ctr1, port0/line3, PFI0
    plugged : bool
    stalled : bool
        Its clocks deliver nothing, as when a bus hangs.
    transfer_s : float
        Samples reach the computer in packets of this length; 0: one by one.
    expired : bool
        Of a chassis: its watchdog has expired and nobody has reset it since.
    chassis : Card or None
        Where a module sits.
    simulated : bool
        What `is_simulated` answers.
    idle : "zero" or "simulated"
        Inputs that nobody feeds: at 0, or as NI's simulated devices give them.
    drivers : Counter of str
        Digital lines and how many output tasks have them.
    """

    def __init__(
        self, name: str, model: CardModel, serial: int = 0, chassis: Card | None = None,
        *, slot: int = 0, simulated: bool = True, idle: Idle = "zero",
        accessories: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        self.name = name
        self.model = model
        self.serial = serial
        self.chassis = chassis
        self.simulated = simulated
        self.idle: Idle = idle
        self.accessories = accessories
        self.modules: list[Card] = []
        self.plugged = True
        self.stalled = False
        self.transfer_s = 0.0
        self.expired = False
        self.terminals: dict[str, Terminal] = {}
        self.outputs: dict[str, Output] = {}
        self.default_source: dict[str, Source] = {}
        self.drivers: Counter[str] = Counter()
        self.clocks: dict[str, EdgeLog] = {}  # what tasks here give, as far as anybody listens
        self.exports: dict[str, str] = {}  # signals of tasks by the pins that they go out at
        self.routed: dict[str, PulseOutput] = {}  # pins that counters put their pulses out at
        self.neighbours: dict[str, Card] = {name: self}  # all cards, for terminals of others
        self.cabled: set[str] = set()  # devices on the same trigger cable (RTSI)
        self.stored: dict[str, object] = {}  # device properties that a program has set
        if chassis is not None:
            chassis.modules.append(self)
        self.slot = slot or (len(chassis.modules) if chassis is not None else 0)

    # Names

    def names(self, kind: str) -> list[str]:
        """All physical channels of a kind: ai, ao, ci, co, di, do, and their ports di_port,
        do_port.
        """
        kind, _, port_only = kind.partition("_")
        names = self.model.terminals.get(kind, ())
        if port_only:
            names = tuple(dict.fromkeys(name.partition("/")[0] for name in names))
        return [f"{self.name}/{name}" for name in names]

    def terminal_configurations(self, short: str) -> list[TerminalConfiguration]:
        """Ways in which an analog input can be wired, the usual one first."""
        ai, ways = self.model.ai, TerminalConfiguration
        assert ai is not None
        if ai.pseudodifferential:
            return [ways.PSEUDO_DIFF, ways.DIFF]
        if ai.differential_only or short.startswith("_"):
            return [ways.DIFF]
        single = [ways.RSE, ways.NRSE] if ai.nrse else [ways.RSE]
        # Channel i pairs with i + 8 within each group of 16 (NI "X Series User Manual").
        index = int(re.sub(r"\D", "", short) or 0)
        return [ways.DIFF, *single] if index % 16 < min(ai.n_channels // 2, 8) else single

    def internal_names(self) -> list[str]:
        """Internal analog inputs: they read back the outputs and the board's references."""
        if self.model.ai is None:
            return []
        n_outputs = self.model.ao.n_channels if self.model.ao else 0
        outputs = [f"_ao{i}_vs_aognd" for i in range(n_outputs)]
        return outputs + list(self.model.internal_channels)

    def read_back(self, short: str) -> Output | None:
        """The analog output that an internal channel reads back."""
        match = _READ_BACK.match(short)
        return None if match is None else self.output(f"ao{match[1]}")

    def check(self, rest: str, kind: str) -> str:
        """The short name of a physical channel of that kind.

        Raises
        ------
        DaqmxError
            There is none of this name, or it is of another kind.
        """
        if kind == "ai" and rest in self.internal_names():
            return rest
        what = self._kind_of(rest)
        full = f"{self.name}/{rest}"
        exists = any(full in self.names(k) for k in {"di": ("di", "do", "di_port", "do_port")}.get(
            what, (what,)))  # fmt: skip
        if not what or not exists:
            raise DaqmxError(
                errors.NO_SUCH_CHANNEL, Physical_Channel_Name=rest, Device_Specified=self.name
            )
        families = {"ci": "counter", "co": "counter", "di": "digital", "do": "digital"}
        right = families.get(what, what) == families.get(kind, kind)
        if right and kind in ("di", "do"):
            right = full in self.names(kind) or full in self.names(f"{kind}_port")
        elif right and kind == "co":
            right = full in self.names("co")
        if not right:
            raise DaqmxError(
                errors.WRONG_CHANNEL_TYPE, Physical_Channel_Name=rest, Device_Specified=self.name
            )
        return rest.removeprefix("_")

    def _kind_of(self, rest: str) -> str:
        match = _ANALOG.match(rest)
        if match:
            return match[1]
        if self.model.ai is not None and rest in self.model.ai.extra_channels:
            return "ai"
        if _COUNTER.match(rest):
            return "ci"
        return "di" if _LINE.match(rest) or _PORT.match(rest) else ""

    def pins(self, counter: str) -> tuple[str, ...]:
        """Default pins of a counter: source or A, gate or Z, auxiliary or B, output; empty names
        where the card has none.
        """
        counters, number = self.model.counters, int(counter.removeprefix("ctr"))
        known = counters is not None and not self.is_module and number < len(counters.pins)
        return counters.pins[number] if counters is not None and known else NO_PINS

    def lines(self, short: str) -> list[str]:
        """The lines of a port, or the line itself."""
        port = _PORT.match(short)
        if port is None:
            return [short]
        return [f"{short}/line{i}" for i in range(self.model.ports[int(port[1])].n_lines)]

    def same_pin(self, short: str) -> str:
        """The line that is the same pin as a PFI, or the other way round; else nothing."""
        ports, line = self.model.pfi_ports, _LINE.match(short)
        if line is not None and int(line[1]) in ports:
            return f"PFI{8 * ports.index(int(line[1])) + int(short.rpartition('line')[2])}"
        number = short.removeprefix("PFI")
        if short.startswith("PFI") and number.isdigit() and int(number) // 8 < len(ports):
            return f"port{ports[int(number) // 8]}/line{int(number) % 8}"
        return ""

    def _driven(self, short: str) -> Output | None:
        """The output of the program on a pin that nobody feeds."""
        line = short if _LINE.match(short) else self.same_pin(short)
        terminal = self.terminals.get(short)
        if not line or not self.drivers[line] or (terminal is not None and terminal.fed):
            return None
        return self.output(line)

    def port_of(self, line: str) -> int:
        match = _LINE.match(line)
        assert match is not None
        return int(match[1])

    def terminal_names(self) -> list[str]:
        """Terminals that can be routed, without the leading device."""
        m = self.model
        terminals = [f"PFI{i}" for i in range(m.n_pfi)] + [f"APFI{i}" for i in range(m.n_apfi)]
        chassis = bool(m.slots)
        for kind, has in (("ai", m.ai), ("ao", m.ao), ("di", m.ports), ("do", m.ports)):
            if has or chassis:
                terminals += [f"{kind}/{what}" for what in SIGNALS]
        if m.ai or chassis:
            terminals += ["ai/ReferenceTrigger", "ai/ConvertClock", "ai/HoldCompleteEvent"]
        if m.ports or chassis:
            terminals += ["di/ReferenceTrigger", "ChangeDetectionEvent"]
        if m.ai or chassis:
            terminals.append("AnalogComparisonEvent")
        if chassis:
            engines = [f"te{i}" for i in range(m.n_ai_engines)]
            terminals += [f"{engine}/{what}" for engine in engines for what in SIGNALS]
        if m.counters and not self.is_module:
            for i in range(m.counters.n):
                terminals += [f"Ctr{i}{what}" for what in COUNTER_SIGNALS]
        if not self.is_module:
            terminals += [*TIMEBASES, "FrequencyOutput", "MasterTimebase"]
        terminals += [f"{line}{i}" for line in BUS_LINES.get(m.bus, ()) for i in range(8)]
        return terminals

    # Signals

    def terminal(self, short: str) -> Terminal:
        """What is wired to an input; nothing is 0 V, or what the system's scene says."""
        terminal = self.terminals.get(short)
        if terminal is None:
            source = self.default_source.get(short, 0.0)
            terminal = self.terminals[short] = Terminal(source)
        return terminal

    def output(self, short: str) -> Output:
        """An output of this card; its counters share those of a chassis."""
        if _COUNTER.match(short):
            return self.pulse_output(short)
        output = self.outputs.get(short)
        if output is None:
            output = self.outputs[short] = Output()
        return output

    @property
    def counter_owner(self) -> Card:
        """Whose counters this card's are: those of the chassis, but for a counter module."""
        counters = self.model.counters
        return self if counters is not None and counters.in_module else self.engines

    def pulse_output(self, counter: str) -> PulseOutput:
        """The output of a counter."""
        outputs = self.counter_owner.outputs
        output = outputs.get(counter)
        if not isinstance(output, PulseOutput):
            output = outputs[counter] = PulseOutput()
        return output

    def is_fed(self, short: str) -> bool:
        """Somebody has wired a signal to this input."""
        terminal = self.terminals.get(short)
        return short in self.default_source or (terminal is not None and terminal.fed)

    def counts(self, line: str) -> bool:
        """The line counts samples, as on NI's simulated devices."""
        return self.idle == "simulated" and not self.is_fed(line) and not self.drivers[line]

    def level(self, line: str, t_s: Times) -> Any:
        """A digital line, 0.0 or 1.0: as driven from outside, else as the card itself drives it."""
        driven = self._driven(line)
        if driven is not None:
            return driven.at(t_s)
        pulses = None if self.is_fed(line) else self.pulses_out(self.same_pin(line))
        if pulses is not None and pulses.train is not None:
            return pulses.at(t_s)
        inside = self.outputs.get(line)
        if inside is not None and not self.is_fed(line):
            return inside.at(t_s)
        return np.where(np.asarray(self.terminal(line).at(t_s)) > 0.5, 1.0, 0.0)

    def pulses(self, short: str) -> EdgeSource | None:
        """Edges that are wired to a terminal, if the signal is known by its edges."""
        if short in TIMEBASES:
            period_s = 1.0 / TIMEBASES[short]
            return Pulses(period_s, 0.5 * period_s)
        driven = self._driven(short)
        if driven is not None:
            return driven.heard()
        terminal = self.terminals.get(short)
        source = self.default_source.get(short) if terminal is None else terminal.source
        if short in self.exports and not (terminal is not None and terminal.fed):
            return self.edges(f"/{self.name}/{self.exports[short]}")
        if not self.is_fed(short) or (short in self.routed and not (terminal and terminal.fed)):
            output = self.pulses_out(short)
            if output is not None:
                return output.edges
        return source if isinstance(source, Pulses | EdgeList) else None

    def pulses_out(self, pin: str) -> PulseOutput | None:
        """The output of the counter that comes out at a pin."""
        return self.routed.get(pin) or self._default_output(pin)

    def _default_output(self, pin: str) -> PulseOutput | None:
        """The output of the counter that comes out at a pin by default."""
        for i in range(self.model.counters.n if self.model.counters else 0):
            if pin and self.pins(f"ctr{i}")[-1] == pin:
                return self.pulse_output(f"ctr{i}")
        return None

    def edges(self, terminal: str) -> EdgeSource | None:
        """The signal of a terminal of this card or another one, if it is known by its edges."""
        device, _, rest = terminal.lstrip("/").partition("/")
        if not terminal.startswith("/") and device not in self.neighbours:
            device, rest = self.engines.name, terminal
        card = self.neighbours.get(device)
        if card is None:
            return None
        match = _COUNTER_SIGNAL.fullmatch(rest)
        if match and match[2].lower() == "internaloutput":
            return card.engines.pulse_output(f"ctr{match[1]}").edges
        if match:
            pins = dict(
                zip(("source", "gate", "aux"), card.engines.pins(f"ctr{match[1]}"), strict=False)
            )
            rest = pins.get(match[2].lower(), rest)
        engines = card.engines
        rest = re.sub("^te0/", "ai/", rest)  # the first timing engine is that of the inputs
        if rest.lower() in CLOCKS:
            return engines.clocks.setdefault(rest.lower(), EdgeLog())
        known = {name.lower(): name for name in (*engines.terminal_names(), *card.terminal_names())}
        rest = known.get(rest.lower(), rest)
        return card.owner_of(rest).pulses(rest)

    # Reservation

    @property
    def engines(self) -> Card:
        """The owner of the timing engines: the chassis of a module, else the card itself."""
        return self.chassis or self

    def owner_of(self, terminal: str) -> Card:
        """Whose terminal it is: a module's pins are its own, all else is its chassis'."""
        return self if terminal.startswith("PFI") and self.model.n_pfi else self.engines

    @property
    def family(self) -> list[Card]:
        """A chassis and its modules; any other card by itself."""
        return [self.engines, *self.engines.modules]

    @property
    def is_chassis(self) -> bool:
        return self.model.category in catalog.CHASSIS

    @property
    def is_module(self) -> bool:
        return self.model.category in catalog.MODULES

    def must_be_there(self) -> None:
        """Raise DaqmxError where the card was unplugged."""
        if not self.plugged or (self.chassis is not None and not self.chassis.plugged):
            raise DaqmxError(errors.LOST_DEVICE, Device=self.name)

    def must_work(self) -> None:
        """Raise DaqmxError where the card was unplugged, or its chassis waits for a reset.

        Source: NI, cDAQ-9185/9189 User Manual, "Watchdog Timer": after it has expired the chassis
        cannot perform any operation until it is reset.
        """
        self.must_be_there()
        if self.engines.expired:
            raise DaqmxError(errors.CHASSIS_EXPIRED, Device=self.engines.name)
