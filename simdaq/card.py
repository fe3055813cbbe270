"""A card: its physical channels and terminals, what is wired to them, what it can reserve."""

from __future__ import annotations

import re

from nidaqmx.constants import ProductCategory

from simdaq import errors
from simdaq.catalog import CardModel
from simdaq.errors import DaqmxError
from simdaq.terminals import Output, Pulses, Source, Terminal

# The pins of a counter's inputs and output on X, M and C Series devices: source or A, gate or Z,
# auxiliary or B, output (NI "X Series User Manual", table of default counter terminals).
COUNTER_PINS = {
    0: ("PFI8", "PFI9", "PFI10", "PFI12"),
    1: ("PFI3", "PFI4", "PFI11", "PFI13"),
    2: ("PFI0", "PFI1", "PFI2", "PFI14"),
    3: ("PFI5", "PFI6", "PFI7", "PFI15"),
}
_COUNTER = re.compile(r"_?(?:ctr|freqout)(\d*)$")
_LINE = re.compile(r"port(\d+)/line(\d+)$")
_PORT = re.compile(r"port(\d+)$")
_ANALOG = re.compile(r"_?(ai|ao)(\d+)$")


class Card:
    """One card of a system.

    Attributes
    ----------
    terminals, outputs : by short name, such as ai0, ctr1, port0/line3, PFI0
    plugged : bool
    stalled : bool
        Its clocks deliver nothing, as when a bus hangs.
    transfer_s : float
        Samples go to the computer in packets, this often; 0: one by one.
    expired : bool
        Of a chassis: its watchdog has expired and nobody has reset it since.
    chassis : Card or None
        Where a module sits.
    """

    def __init__(
        self, name: str, model: CardModel, serial: int = 0, chassis: Card | None = None
    ) -> None:
        self.name = name
        self.model = model
        self.serial = serial
        self.chassis = chassis
        self.modules: list[Card] = []
        self.plugged = True
        self.stalled = False
        self.transfer_s = 0.0
        self.expired = False
        self.terminals: dict[str, Terminal] = {}
        self.outputs: dict[str, Output] = {}
        self.default_source: dict[str, Source] = {}
        if chassis is not None:
            chassis.modules.append(self)

    # Names

    def names(self, kind: str) -> list[str]:
        """All physical channels of a kind: ai, ao, ci, co, di, do, port."""
        m, own = self.model, self.name
        if kind == "ai":
            return [f"{own}/ai{i}" for i in range(m.ai.n_channels)] if m.ai else []
        if kind == "ao":
            return [f"{own}/ao{i}" for i in range(m.ao.n_channels)] if m.ao else []
        if kind in ("ci", "co"):
            if m.counters is None or (kind == "co" and not m.counters.outputs):
                return []
            stem = "_ctr" if m.slots else "ctr"
            return [f"{own}/{stem}{i}" for i in range(m.counters.n)]
        if kind == "port":
            return [f"{own}/port{p}" for p in range(len(m.ports))]
        return [
            f"{own}/port{p}/line{i}" for p, port in enumerate(m.ports) for i in range(port.n_lines)
        ]

    def check(self, rest: str, kind: str) -> str:
        """The short name of a physical channel of that kind.

        Raises
        ------
        DaqmxError
            There is none of this name, or it is of another kind.
        """
        found = _ANALOG.match(rest)
        what = ""
        if found:
            what = found[1]
        elif _COUNTER.match(rest):
            what = "ci"
        elif _LINE.match(rest) or _PORT.match(rest):
            what = "di"
        full = f"{self.name}/{rest}"
        exists = full in self.names(what) if what else False
        if not exists and _PORT.match(rest):
            exists = full in self.names("port")
        if not exists:
            raise DaqmxError(
                errors.NO_SUCH_CHANNEL, Physical_Channel_Name=rest, Device_Specified=self.name
            )
        families = {"ci": "counter", "co": "counter", "di": "digital", "do": "digital"}
        if families.get(what, what) != families.get(kind, kind) or (
            kind == "co" and not self.names("co")
        ):
            raise DaqmxError(
                errors.WRONG_CHANNEL_TYPE, Physical_Channel_Name=rest, Device_Specified=self.name
            )
        return rest.removeprefix("_")

    def lines(self, short: str) -> list[str]:
        """The lines of a port, or the line itself."""
        port = _PORT.match(short)
        if port is None:
            return [short]
        return [f"{short}/line{i}" for i in range(self.model.ports[int(port[1])].n_lines)]

    def port_of(self, line: str) -> int:
        found = _LINE.match(line)
        assert found is not None
        return int(found[1])

    def terminal_names(self) -> list[str]:
        """Terminals that can be routed, without the leading device."""
        m = self.model
        found = [f"PFI{i}" for i in range(m.n_pfi)]
        for kind, has in (("ai", m.ai), ("ao", m.ao), ("di", m.ports), ("do", m.ports)):
            if has:
                found += [f"{kind}/{what}" for what in ("SampleClock", "StartTrigger")]
        if m.ai:
            found.append("ai/ReferenceTrigger")
        if m.counters:
            for i in range(m.counters.n):
                found += [f"Ctr{i}InternalOutput", f"Ctr{i}Source", f"Ctr{i}Gate"]
            found += ["100MHzTimebase", "20MHzTimebase", "100kHzTimebase"]
        if m.slots:
            found += ["ai/SampleClock", "ai/StartTrigger", "ao/SampleClock"]
        return found

    # Signals

    def terminal(self, short: str) -> Terminal:
        """What is wired to an input; nothing is 0 V, or what the system's scene says."""
        found = self.terminals.get(short)
        if found is None:
            source = self.default_source.get(short, 0.0)
            found = self.terminals[short] = Terminal(source)
        return found

    def output(self, short: str) -> Output:
        found = self.outputs.get(short)
        if found is None:
            found = self.outputs[short] = Output()
        return found

    def level(self, line: str, t_s: float) -> float:
        """A digital line: as driven from outside, else as driven by the card itself."""
        inside = self.outputs.get(line)
        terminal = self.terminals.get(line)
        if inside is not None and (terminal is None or not terminal.fed):
            return inside.at(t_s)
        return 1.0 if self.terminal(line).at(t_s) > 0.5 else 0.0

    def pulses(self, short: str) -> Pulses | None:
        """The pulse train on a terminal, if it is one."""
        terminal = self.terminals.get(short)
        source = self.default_source.get(short) if terminal is None else terminal.source
        return source if isinstance(source, Pulses) else None

    # Reservation

    @property
    def engines(self) -> Card:
        """Who owns the timing engines: the chassis of a module, else the card."""
        return self.chassis or self

    @property
    def family(self) -> list[Card]:
        """A chassis and its modules; any other card by itself."""
        return [self.engines, *self.engines.modules]

    @property
    def is_chassis(self) -> bool:
        return bool(self.model.category == ProductCategory.COMPACT_DAQ_CHASSIS)

    @property
    def is_module(self) -> bool:
        return bool(self.model.category == ProductCategory.C_SERIES_MODULE)

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
