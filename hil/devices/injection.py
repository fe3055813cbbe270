"""Fault injection into a simulated rig, with a monitor of its gates.

Each fault is injected at its physical location: the plant, a pin, the serial line or a process. No
fault writes values that the guard checks. Times are those of the plant. The monitor observes the
gates on the plant's clock, independently of loop and guard.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hil.devices.board import protocol
from hil.devices.board.native import Relay
from hil.devices.board.port import Port
from hil.devices.injection_tables import FaultTable
from hil.devices.sim.plant import ON_FROM_DUTY, Gates
from hil.errors import ConfigError, DeviceError
from hil.mechanics.system import Drive, Fails, System, Wrapped

FAILING = frozenset({"cell_broken", "cell_weak"})
K2 = 2.0  # value of the relay that the e-stop opens


class Injection:
    """The faults of a run, and the plant's time.

    Attributes
    ----------
    t_s : the plant's time
    last_on_s : end of the last period in which a gate was on or an input of the plant was not zero
    advance_simulation : advances the plant to a time
    """

    def __init__(self, faults: Sequence[FaultTable]) -> None:
        self._faults = list(faults)
        self._of: dict[str, list[FaultTable]] = {}
        for fault in faults:
            self._of.setdefault(fault.kind, []).append(fault)
        self._tick_of: dict[int, float] = {}  # time of a fault that lasts one tick, by its index
        self._once: list[tuple[FaultTable, Callable[[], None]]] = []
        self.t_s = 0.0
        self.last_on_s = 0.0
        self.advance_simulation: Callable[[float], None] | None = None

    @property
    def faults(self) -> Sequence[FaultTable]:
        return tuple(self._faults)

    def go_on(self, duration_s: float) -> None:
        """Advance the plant's time after the run, to observe its gates without a host."""
        if self.advance_simulation is not None:
            self.advance_simulation(self.t_s + duration_s)

    def active(self, kind: str, device: str | None = None) -> FaultTable | None:
        """The first active fault of this kind; None if there is none."""
        return next(self.every(kind, device), None)

    def every(self, kind: str, device: str | None = None) -> Iterator[FaultTable]:
        """All active faults of this kind."""
        for fault in self._of.get(kind, ()):
            over_s = math.inf if fault.for_s is None else fault.at_s + fault.for_s
            here = device is None or fault.device in (None, device)
            if here and fault.at_s - 1e-9 <= self.t_s < over_s - 1e-9:
                yield fault

    def at_start(self, kind: str, action: Callable[[], None]) -> None:
        """Call `action` once, when a fault of this kind starts."""
        self._once += [(fault, action) for fault in self._faults if fault.kind == kind]

    def advance(self, t_s: float) -> None:
        """Set the plant's time and start the faults that are due."""
        self.t_s = t_s
        due = [entry for entry in self._once if entry[0].at_s <= t_s + 1e-9]
        for entry in due:
            self._once.remove(entry)
            entry[1]()

    def stall_s(self, t_s: float) -> float:
        """Duration for which the computer stalls in the tick at t_s, s."""
        fault = self._in_tick("machine_stalls", t_s)
        return 0.0 if fault is None else fault.for_s or 1.0

    def asleep_s(self, t_s: float) -> float:
        """Duration for which the computer slept before the tick at t_s, s."""
        fault = self._in_tick("machine_sleeps", t_s)
        return 0.0 if fault is None else fault.value or 1.0

    def _in_tick(self, kind: str, t_s: float) -> FaultTable | None:
        """The fault of this kind that acts in this tick, the first one at or after its time."""
        for i, fault in enumerate(self._faults):
            due = fault.kind == kind and t_s > fault.at_s - 1e-6
            if due and abs(self._tick_of.setdefault(i, t_s) - t_s) < 1e-6:
                return fault
        return None

    def limits(self, limits: dict[str, int], device: str) -> dict[str, int]:
        """The limits that a board has before the run."""
        differ = self._of.get("limits_differ", ())
        if any(fault.device in (None, device) for fault in differ):
            return limits | {"on_time_max_ms": limits["on_time_max_ms"] - 1}
        return limits


class FaultySystem(Wrapped):
    """A plant with disturbed forces and a monitor.

    `force_offset` adds a force in N, `force_ramp` a ramp in N/s, `force_lost` sets forces to zero.
    From its time on a cell of `cell_broken` carries no tension, whatever its wire does, and one of
    `cell_weak` pulls with a share of its force. Both last.

    Parameters
    ----------
    cell_of : index among the system's cells of the one that a fault names
    """

    def __init__(
        self, inner: System, injection: Injection, cell_of: Callable[[FaultTable], int]
    ) -> None:
        super().__init__(inner)
        self._injection = injection
        self._failing = [(f, cell_of(f)) for f in injection.faults if f.kind in FAILING]
        if self._failing and not isinstance(inner, Fails):
            raise ConfigError(
                f"--inject: {self._failing[0][0].kind}: not on this kind of plant: only cells of "
                "an array fail during a run"
            )
        self._forces = np.array([name.endswith("_N") for name in inner.outputs])
        self._n = 0

    def step(self, drive: Drive, inputs: NDArray[np.float64]) -> None:
        self._inner.step(drive, inputs)
        self._n += 1
        now = self._injection
        if drive.any() or inputs.any():
            now.last_on_s = self._n * self.period_s
        now.advance(self._n * self.period_s)
        self._fail()
        self.y[:] = self._inner.y
        if now.active("force_lost"):
            self.y[self._forces] = 0.0
        if fault := now.active("force_offset"):
            self.y[self._forces] += fault.value
        if fault := now.active("force_ramp"):
            self.y[self._forces] += fault.value * (now.t_s - fault.at_s)

    def _fail(self) -> None:
        """Break or weaken the cells whose time has come."""
        due = [one for one in self._failing if one[0].at_s <= self._injection.t_s + 1e-9]
        for fault, cell in due:
            self._failing.remove((fault, cell))
            assert isinstance(self._inner, Fails)
            self._inner.fail(cell, fault.value if fault.kind == "cell_weak" else 0.0)


class Chip(Gates, Protocol):
    """A simulated board whose processor, converter and memory can be disturbed."""

    def reset(self) -> None: ...

    def set_converter(self, works: bool) -> None: ...

    def spoil_limits(self) -> None: ...

    def spoil_program(self) -> None: ...

    def hold_low(self, gate: int | None) -> None: ...

    def clear_address(self, bits: int) -> None: ...

    def set_relays(self, k1: Relay = "sound", k2: Relay = "sound") -> None: ...


class FaultyGates:
    """A board with disturbed pins and a disturbed chip.

    `cell_current`, `cell_leakage` and `cell_temperature` act on its inputs, `current_gain` scales
    what it reads of the current of a cell that is on, and `estop_open` opens its e-stop loop. With
    `wire_open` the cell draws no current and is not heated. `board_reset` resets the chip, and with
    `for_s` holds it in reset. `converter_dead` stops its A/D converter. `limits_spoilt` flips a bit
    of the limits in its RAM, `program_spoilt` one of its flash. `gate_stuck_low` holds the pin of
    `cell` low. `address_stuck` holds bit `value` of its multiplexers' address at 0. `relay_welded`
    welds relay K1, or K2 with a `value` of 2.
    """

    def __init__(self, inner: Chip, name: str, injection: Injection) -> None:
        self._inner = inner
        self._name = name
        self._injection = injection
        self._done: list[FaultTable] = []
        self._sensed: dict[int, tuple[float, float, float]] = {}

    def advance(self, duration_us: int) -> None:
        self._weld()
        self._inner.advance(duration_us)

    def _weld(self) -> None:
        fault = self._injection.active("relay_welded", self._name)
        if fault is None:
            return
        if fault.value == K2:
            self._inner.set_relays(k2="welded")
        else:
            self._inner.set_relays(k1="welded")

    def step(self, period_us: int) -> NDArray[np.float64]:
        for cell in self._sensed:
            self._put(cell)
        now = self._injection
        self._weld()
        self._inner.set_estop(now.active("estop_open", self._name) is not None)
        self._inner.set_converter(now.active("converter_dead", self._name) is None)
        stuck = now.active("gate_stuck_low", self._name)
        self._inner.hold_low(None if stuck is None else stuck.cell - 1)
        address = now.active("address_stuck", self._name)
        self._inner.clear_address(0 if address is None else 1 << int(address.value))
        if self._begins("limits_spoilt"):
            self._inner.spoil_limits()
        if self._begins("program_spoilt"):
            self._inner.spoil_program()
        if self._begins("board_reset") or _held_in_reset(now, self._name):
            self._inner.reset()
        duty = self._inner.step(period_us)
        if (duty >= ON_FROM_DUTY).any():  # the gate counts, even without power or with an open wire
            now.last_on_s = max(now.last_on_s, now.t_s + 1e-6 * period_us)
        for cell in self._sensed:
            if self._broken(cell):
                duty[cell] = 0.0
        return duty

    def _begins(self, kind: str) -> bool:
        """Whether a fault of this kind has become active since the last call."""
        fresh = [f for f in self._injection.every(kind, self._name) if f not in self._done]
        self._done += fresh
        return bool(fresh)

    def _broken(self, cell: int) -> bool:
        return any(
            fault.cell == cell + 1 for fault in self._injection.every("wire_open", self._name)
        )

    def sense(self, cell: int, current_A: float, leakage_A: float, temperature_C: float) -> None:
        self._sensed[cell] = (current_A, leakage_A, temperature_C)
        self._put(cell)

    def sense_supply(self, supply_V: float) -> None:
        self._inner.sense_supply(supply_V)

    def set_estop(self, is_open: bool) -> None:
        self._inner.set_estop(is_open)

    def _put(self, cell: int) -> None:
        values = list(self._sensed[cell])
        for i, kind in enumerate(("cell_current", "cell_leakage", "cell_temperature")):
            fault = self._injection.active(kind, self._name)
            if fault is not None and fault.cell == cell + 1:
                values[i] = fault.value
        for fault in self._injection.every("current_gain", self._name):
            if fault.cell == cell + 1:
                values[0] *= fault.value
        if self._broken(cell):
            values[0] = 0.0
        self._inner.sense(cell, *values)


class FaultyPort:
    """A serial line that loses, truncates or delays data, or is unplugged.

    `host_silent` loses all commands, `board_silent` all answers, `frame_torn` the second half of
    every command. With `link_slow` an answer arrives one exchange later. `command_refused` changes
    every command so that the board refuses it. A board held in reset neither receives nor sends.
    """

    def __init__(self, inner: Port, name: str, injection: Injection) -> None:
        self._inner = inner
        self._name = name
        self._injection = injection
        self._late = b""

    def _is_active(self, kind: str) -> bool:
        return self._injection.active(kind, self._name) is not None

    def _plugged(self) -> None:
        if self._is_active("port_unplugged"):
            raise DeviceError(f"{self._name}: the port is gone: is it unplugged?")

    def write(self, data: bytes) -> None:
        self._plugged()
        if self._is_active("host_silent") or _held_in_reset(self._injection, self._name):
            return
        if self._is_active("command_refused"):
            data = _for_no_time(data)
        self._inner.write(data[: len(data) // 2] if self._is_active("frame_torn") else data)

    def read(self, timeout_s: float) -> bytes:
        self._plugged()
        data = self._inner.read(timeout_s)
        if self._is_active("link_slow"):
            data, self._late = self._late, data
        mute = self._is_active("board_silent") or _held_in_reset(self._injection, self._name)
        return b"" if mute else data

    def sent_s(self) -> float:
        return self._inner.sent_s()

    def arrived_s(self) -> float:
        return self._inner.arrived_s()

    def close(self) -> None:
        self._inner.close()


def _held_in_reset(injection: Injection, board: str) -> bool:
    return any(fault.for_s is not None for fault in injection.every("board_reset", board))


def _for_no_time(data: bytes) -> bytes:
    """The same commands with a hold time of 0, which a board refuses."""
    commands = protocol.Decoder().feed(data)
    return (
        b"".join(
            protocol.encode(c.name, c.seq, **(c.fields | {"valid_for_ms": 0}))
            for c in commands
            if "valid_for_ms" in c.fields
        )
        or data
    )
