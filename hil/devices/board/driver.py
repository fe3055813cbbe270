"""The driver of an SMA driver board: one command and one answer a tick, over any Port.

The command of tick k goes out in `write` and its answer is collected by `read` of tick k + 1, so
that the exchange overlaps whatever else the loop does meanwhile. Every command holds for
`hold_s`: if the host is silent, the board switches all cells off. The board is armed once, at the
start of a run, and never again automatically.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hil.devices.base import time_columns
from hil.devices.board import fuses, protocol
from hil.devices.board.arming import (
    SUPPLY_EVERY_S,
    SUPPLY_S,
    Heat,
    armed_once_ready,
    no_supply,
)
from hil.devices.board.cells import BoardCells, BoardPlace
from hil.devices.board.identity import RigBoard
from hil.devices.board.link import Link
from hil.devices.board.resistance import Resistances
from hil.devices.board.self_test import (
    MARGIN_S,
    RESET_REMEDY,
    Operator,
    cannot_be_armed,
    check_estop,
    check_silence,
    clear,
)
from hil.devices.board.words import (
    CURRENT,
    ON_TIME,
    SUPPLY_STUCK,
    TEMPERATURE,
    VALUES,
    WHEN_OFF,
    fault_order,
    words_of,
)
from hil.errors import DeviceError
from hil.loop.channels import Readings
from hil.loop.duty import STEPS
from hil.loop.frame import CELL_UNKNOWN, Column, Commands, Frame
from hil.loop.stages import Message

FEED_S = 0.02  # between two commands to an armed board whose run has not begun
STARTS, START_S = 10, 0.3  # attempts to identify an Arduino, whose boot loader waits 1 to 2 s
LINK_TROUBLES = ("board_reset", "board_refused")
_RESET, _REFUSED = (1 << i for i in range(len(LINK_TROUBLES)))
_DONE = protocol.RESULTS["done"]
_DISARMED, _ARMED, _FAULTED = (protocol.STATES[name] for name in ("disarmed", "armed", "faulted"))
_HOST_SILENT = 1 << protocol.FAULTS["host_silent"]
ROUND_TRIP = "from sending a command to its answer; on the bench, to collecting it at the next tick"
_status = protocol.getter(
    "status", "cells_on", "cells_open", "fault_bits", "first_cell", "current_mA",
    "temperature_cC", "time_us", "result", "state",
)  # fmt: skip
_readings = protocol.getter(
    "readings", "cells_open", "fault_bits", "current_mA", "temperature_cC", "time_us"
)


@dataclass(frozen=True)
class BoardSpec:
    """A rig's requirements on a board.

    Attributes
    ----------
    limits : the expected table of the board; arming is refused on a mismatch
    estop : it has an e-stop, which the self-test must see open
    board : that of the rig's file; None: any board
    firmware_hash : hash of the required firmware; None: any firmware with this protocol
    power : the path of its cells' power, for error messages
    at_rest_C : lowest and highest temperature of each cell's clamp before a run; empty: any
    measures : whether its build measures currents and temperatures; an Arduino's does not
    as_delivered : it may have the fuses it was sold with, and opening its port may reset it
    """

    limits: Mapping[str, int]
    estop: bool = True
    board: RigBoard | None = None
    firmware_hash: int | None = None
    power: Sequence[str] = ()
    at_rest_C: Sequence[tuple[float, float]] = ()
    measures: bool = True
    as_delivered: bool = False


class CellBoard:
    """A board behind a port.

    Parameters
    ----------
    operator : operates the board's e-stop during the self-test
    resistances : the cells' resistances, of a board that measures them
    advance_simulation : called with the tick's time before the board is read
    """

    def __init__(
        self,
        link: Link,
        place: BoardPlace,
        spec: BoardSpec,
        operator: Operator,
        resistances: Resistances | None = None,
        advance_simulation: Callable[[float], None] | None = None,
    ) -> None:
        self.name, self.simulated = link.name, link.simulated
        self._link, self._place, self._spec, self._operator = link, place, spec, operator
        self._resistances = resistances
        self._advance_simulation = advance_simulation
        self._cells = BoardCells(place, link.simulated)
        self._heat = Heat(self._cells.n, spec.limits)
        self._notes: list[Message] = []
        self._set_mask = protocol.encoder("set_mask")
        self._set_duties = protocol.encoder("set_duties")
        self._sent_duty = np.zeros(len(place.gates))  # duty in the last command
        self._no_gates = (0,) * (protocol.CELLS_MAX - len(place.gates))
        self._asked_s = math.nan  # for relay K1, on the line's clock
        self._is_armed = False  # by the last command; the board may have tripped since
        self._armed_by: protocol.Message | None = None
        self._faults_of_link = 0  # latched until armed again
        self._link_fault_texts: dict[int, str] = {}
        self._answer: protocol.Message | None = None  # the last one
        self._pending: protocol.Message | None = None
        self._asked_tick = self._drawn_tick = 0  # of the broadcast sent last; answered last
        self._sent_t_s = 0.0  # the age of a reading counts from the command that it answers
        self._last_t_s = 0.0
        self._first_time_us: int | None = None
        self.identity: protocol.Message | None = None  # since it was opened

    @property
    def columns(self) -> list[Column]:
        faults = tuple(sorted(protocol.FAULTS, key=lambda fault: protocol.FAULTS[fault]))
        return [
            *time_columns(self.name, self.simulated),
            Column(f"{self.name}_round_trip_s", "s", "timing", ROUND_TRIP,
                   simulated=self.simulated),
            *self._cells.columns,
            *(self._resistances.columns if self._resistances else ()),
            Column(f"{self.name}_fault_bits", "1", "fault", f"faults latched on {self.name}",
                   flags=faults, simulated=self.simulated),
            Column(f"{self.name}_link_bits", "1", "fault",
                   f"{self.name} armed: was reset, or answered anything but done; latched",
                   flags=LINK_TROUBLES, simulated=self.simulated),
        ]  # fmt: skip

    def bind(self, frame: Frame, readings: Readings) -> None:
        self._values, self._bits = frame.values, frame.bits
        self._age = frame.index(f"{self.name}_age_s")
        self._clock = frame.index(f"{self.name}_t_s")
        self._round_trip = frame.index(f"{self.name}_round_trip_s")
        self._faults = frame.bit_index(f"{self.name}_fault_bits")
        self._links = frame.bit_index(f"{self.name}_link_bits")
        self._cells.bind(frame, readings)
        if self._resistances:
            self._resistances.bind(frame)
        self._readings = readings

    def open(self) -> None:
        """Find the board, check its identity and its limits; nothing is energised."""
        self._link.open()
        try:
            self._introduce()
        except BaseException:
            self.close()
            raise

    def _introduce(self) -> None:
        spec = self._spec
        self.identity = identity = self._identify()
        if identity["wire_hash"] != protocol.WIRE_HASH:
            raise DeviceError(self._link.other_wire())
        if spec.board is not None:
            spec.board.check(identity["serial"])
        if spec.firmware_hash not in (None, identity["firmware_hash"]):
            raise DeviceError(
                f"{self.name}: runs firmware {identity['firmware_hash']:08x}, not "
                f"{spec.firmware_hash:08x}: hil board flash PORT, or, if it is meant to, "
                f'devices.{self.name}.firmware = "{identity["firmware_hash"]:08x}"'
            )
        self._check_build(identity["faults_checked"])
        if identity["n_cells"] < self._cells.n:
            raise DeviceError(
                f"{self.name}: the board has {identity['n_cells']} gates, the rig asks for "
                f"{self._cells.n}"
            )
        for key, value in spec.limits.items():
            held = identity["limits"][key]
            if held != value:
                raise DeviceError(
                    f"{self.name}: limits differ: {key} is {held} on the board, {value} in the "
                    "rig: set one to the other"
                )
        wrong = fuses.problems(identity["fuses"])
        if wrong and spec.as_delivered:
            self._notes.append(Message("warning", f"fuses as delivered: {'; '.join(wrong)}"))
        elif wrong:
            raise DeviceError(
                f"{self.name}: its fuses ({fuses.as_text(identity['fuses'])}) do not protect: "
                f"{'; '.join(wrong)}: hil board flash PORT --programmer NAME --fuses"
            )
        self._link.number = identity["seq_taken"]
        self._wait_until_left(identity)
        self._link.ask("disarm")
        cleared = self._link.ask("clear_faults")
        if cleared["fault_bits"]:
            raise DeviceError(cannot_be_armed(self.name, cleared))
        self._heat.note(self._link.ask("read"))

    def _identify(self) -> protocol.Message:
        """Ask for the identity; opening the port resets an Arduino: repeat while it starts."""
        for _ in range(STARTS if self._spec.as_delivered else 0):
            try:
                return self._link.ask("identify")
            except DeviceError:
                self._operator.wait(START_S)
        return self._link.ask("identify")

    def _check_build(self, faults_checked: int) -> None:
        """Refuse a board whose firmware checks fewer or different faults than the rig says."""
        all_faults = sum(1 << bit for bit in protocol.FAULTS.values())
        expected = all_faults if self._spec.measures else all_faults & ~protocol.FAULTS_MEASURED
        if faults_checked == expected:
            return
        lacking = protocol.fault_names(expected & ~faults_checked)
        if lacking:
            raise DeviceError(
                f"{self.name}: its firmware cannot find {', '.join(lacking)}: flash the build that "
                f'the rig means, or say devices.{self.name}.build = "arduino"'
            )
        raise DeviceError(
            f'{self.name}: its firmware measures currents, and the rig says build = "arduino": '
            f"remove devices.{self.name}.build"
        )

    def _wait_until_left(self, identity: protocol.Message) -> None:
        """Wait for a board to latch after its host died; if it does not, it has another host."""
        if protocol.state_name(identity["state"]) != "armed":
            return
        self._operator.wait(1e-3 * identity["limits"]["silence_max_ms"] + MARGIN_S)
        if protocol.state_name(self._link.ask("identify")["state"]) == "armed":
            raise DeviceError(self._other_host())

    def _other_host(self) -> str:
        return f"{self.name}: another host has armed it: end that run first"

    def check_room(self) -> None:
        """Require clamp temperatures of the rig's room before anything is on.

        Raises
        ------
        DeviceError
            A clamp is colder or warmer.
        """
        if not self._spec.at_rest_C:
            return
        read_cC = self._link.ask("read")["temperature_cC"]
        for cell, (low_C, high_C), cC in zip(
            self._place.cell_names, self._spec.at_rest_C, read_cC, strict=False
        ):
            if not low_C <= 1e-2 * cC <= high_C:
                raise DeviceError(
                    f"{self.name}: before anything is on, {cell}'s clamp is at {1e-2 * cC:.4g} C, "
                    f"and in the rig's room it is at {low_C:.3g} to {high_C:.3g} C: let it cool, "
                    f"or change devices.{self.name}.ambient_range_C and derive the limits again"
                )

    def self_test(self, say: Callable[[str], None]) -> list[str]:
        """Test that the board stops without commands and that its e-stop is seen open."""
        check_silence(self.name, self._link.ask, self.arm, self._operator)
        tested = ["watchdog tested"]
        if self._spec.estop:
            check_estop(self.name, self._link.ask, self._operator, say)
            tested.append("e-stop seen open")
        self._heat.note(self._link.ask("read"))
        self._pending = None
        self._is_armed = False
        return tested

    def forget_estop(self) -> None:
        """Clear `estop_open` alone, which the test of another board with the same e-stop latches.

        Raises
        ------
        DeviceError
            The loop is still open.
        """
        faults = protocol.fault_names(self._link.ask("read")["fault_bits"])
        if faults == ["estop_open"]:
            clear(self.name, self._link.ask)

    def arm(self) -> None:
        """Arm the board; its answer is the reading of the first tick.

        The board pulses every wire of this rig. A broken or shorted wire is an error that names
        it, or the cell is isolated if the limits allow it.
        """
        answer = self._armed_once_ready()
        if answer["result"] == protocol.RESULTS["is_armed"]:
            if self._link.attempts == 1:
                raise DeviceError(self._other_host())
            self._link.ask("disarm")  # the answer with the arming's number was lost: arm again
            answer = self._armed_once_ready()
        result = protocol.result_name(answer["result"])
        if result != "done":
            raise DeviceError(f"{self.name}: refused to be armed: {self._reasons(result, answer)}")
        self._link.number = answer["arming"] << 8 | answer.seq
        self._pending = self._armed_by = answer
        self._link.took_s = math.nan  # the run has sent no command yet
        self._is_armed, self._faults_of_link, self._link_fault_texts = True, 0, {}
        self._drawn_tick = 0
        if self._resistances:
            self._resistances.reset()
        self._cells.reset(answer["cells_open"])

    def close_relay(self) -> bool:
        """Ask the board to close relay K1; return whether the supply is on: always, if armed.

        Raises
        ------
        DeviceError
            The supply is still off after `SUPPLY_S`.
        """
        if self._is_armed:
            return True
        link, crc = self._link, protocol.limits_crc(self._spec.limits)
        self._pending, link.took_s = link.ask("arm", limits_crc=crc, cells=0), math.nan
        if protocol.result_name(self._pending["result"]) != "supply_waits":
            self._asked_s = math.nan
            return True  # arming reports any other fault
        self._asked_s = link.sent_s if math.isnan(self._asked_s) else self._asked_s
        if link.sent_s - self._asked_s > SUPPLY_S:
            raise DeviceError(no_supply(self.name, link.ask, self._spec.limits, self._spec.power))
        return False

    def feed(self) -> None:
        """Command all cells off, if it is armed: it would trip while other devices are armed."""
        if self._is_armed and not self._link.was_sent_within(FEED_S):
            self._link.send_set(self._set_mask, 0)

    def wait_for_relay(self) -> None:
        """Wait until it is worth asking for relay K1 again."""
        self._operator.wait(SUPPLY_EVERY_S)

    def has_cooled(self) -> bool:
        """Whether it can be armed without waiting, according to its last readings."""
        return not self._heat.is_hot

    def _armed_once_ready(self) -> protocol.Message:
        cells, spec = int(self._cells.bit.sum()), self._spec
        return armed_once_ready(
            self.name, self._link.ask, self._operator, spec.limits, cells, spec.power
        )

    @property
    def has_news(self) -> bool:
        """Whether a newly isolated cell or an unmeasured supply is still to be reported."""
        resistances = self._resistances
        return self._cells.has_news or (resistances is not None and resistances.has_news)

    def messages(self) -> list[Message]:
        """Newly isolated cells, an unmeasured supply, weak fuses; fault bits hold all else."""
        told = [] if self._resistances is None else self._resistances.messages()
        notes, self._notes = self._notes, []
        return [*notes, *told, *self._cells.messages()]

    def _reasons(self, result: str, answer: protocol.Message) -> str:
        names = protocol.fault_names(answer["fault_bits"])
        faults = ", ".join(names)
        cells = ", ".join(
            cell for i, cell in enumerate(self._place.cell_names) if answer["fault_cells"] >> i & 1
        )
        text = result + (f" ({faults}{': ' + cells if cells else ''})" if faults else "")
        if "supply_stuck" in names:
            text += f": {SUPPLY_STUCK}"
        return text

    def read(self, t_s: float) -> None:
        """Collect the answer to the last command."""
        if self._advance_simulation is not None:
            self._advance_simulation(t_s)
        pending, self._pending = self._pending, None
        answer = pending or self._link.collect()
        bit = 1 << self._place.index
        self._readings.mark_valid(bit, 0 if answer is None else bit)
        self._cells.begin()
        if self._resistances:
            self._resistances.begin(t_s)
        self._values[self._round_trip] = math.nan if answer is None else self._link.took_s
        if answer is None:
            self._cells.unknown()
        else:
            self._take(answer)
            if self._asked_tick and protocol.result_name(answer["result"]) == "done":
                self._drawn_tick = self._asked_tick
        self._values[self._age] = t_s - self._last_t_s

    def _take(self, answer: protocol.Message) -> None:
        cells = self._cells
        self._last_t_s = self._sent_t_s
        if answer.name == "readings":
            self._heat.note(answer)
            readings = _readings(answer.numbers)
            numbers = (0, *readings[:2], 0, *readings[2:], _DONE, _DISARMED)
        else:
            numbers = _status(answer.numbers)
        (cells_on, cells_open, fault_bits, first_cell, currents_mA, temperatures_cC, time_us,
         result, state) = numbers  # fmt: skip
        if answer is not self._armed_by:
            ran_back = self._link.ran_back(time_us)
            if ran_back and not self._is_armed:
                self._heat.is_hot = True  # a reset board counts all heat as used
            if self._is_armed and (ran_back or result != _DONE or state != _ARMED):
                self._note_trouble(_trouble(ran_back, result, state, fault_bits), answer)
        self._answer = answer
        self._show_link()
        if cells_open != cells.open:
            cells.set_apart(cells_open)
        cells.report(cells_on, self._sent_duty if result == _DONE else math.nan)
        self._bits[self._faults] = fault_bits
        if first_cell >= protocol.SENSED:
            if self._resistances:
                cell = first_cell - protocol.SENSED
                self._resistances.take(self._last_t_s, cell, currents_mA, temperatures_cC[0])
        elif self._spec.measures:
            cells.show(first_cell, currents_mA, temperatures_cC)
        if self._first_time_us is None:
            self._first_time_us = time_us
        self._values[self._clock] = 1e-6 * ((time_us - self._first_time_us) % 2**32)

    def _show_link(self) -> None:
        self._bits[self._links] = self._faults_of_link

    def _note_trouble(self, faults: int, answer: protocol.Message) -> None:
        fresh = faults & ~self._faults_of_link
        self._faults_of_link |= faults
        state, result = protocol.state_name(answer["state"]), protocol.result_name(answer["result"])
        if fresh & _RESET:
            self._link_fault_texts[_RESET] = (
                f"{self.name} was reset: it is {state}, its own time is "
                f"{1e-6 * answer['time_us']:.4g} s: {RESET_REMEDY}"
            )
        if fresh & _REFUSED:
            self._link_fault_texts[_REFUSED] = (
                f"{self.name} is {state} and answered '{result}', not 'done'"
            )

    def troubles(self, on_s: NDArray[np.float64]) -> dict[str, list[str]]:
        """The board's faults as text, by the interlock that each trips.

        Asks the board for the sample that tripped; everything is off by now.

        Parameters
        ----------
        on_s : time for which every cell of the rig has been commanded on
        """
        texts_by_fault = {
            name: [self._link_fault_texts[bit]]
            for name, bit in zip(LINK_TROUBLES, (_RESET, _REFUSED), strict=True)
            if bit in self._link_fault_texts
        }
        if self._resistances and (texts := self._resistances.troubles()):
            texts_by_fault["resistance_out_of_range"] = texts
        answer = self._answer
        if answer is not None and answer["fault_bits"]:
            blamed = {name: i for i, name in enumerate(self._place.cell_names)
                      if answer["fault_cells"] >> i & 1}  # fmt: skip
            order = fault_order(answer["first_fault_bits"], answer["fault_bits"])
            values = self._tripped(blamed, order)
            values[ON_TIME] = {name: on_s[self._place.gates[i]] for name, i in blamed.items()}
            words = words_of(order, list(blamed), self._spec.limits, values)
            texts_by_fault["board_fault"] = [f"{self.name}: {text}" for text in words]
        return texts_by_fault

    def _tripped(
        self, cells: Mapping[str, int], faults: Sequence[str]
    ) -> dict[str, dict[str, float]]:
        """Current and temperature of these cells (name: gate) that explain these faults.

        For the cell that tripped first the board keeps the sample. For other cells the last sample
        counts, of currents only if the fault persists with all gates off.
        """
        try:
            self._pending = self._pending or self._link.collect()
            now = self._link.exchange("read")
        except DeviceError:
            return {}  # it does not answer any more, which the loop notices
        if not self._spec.measures:  # its heat budget assumes this current
            return {CURRENT: dict.fromkeys(cells, 1e-3 * self._spec.limits["current_max_mA"])}
        current_mA, temperature_cC = list(now["current_mA"]), list(now["temperature_cC"])
        lasts = {fault for fault in faults if VALUES.get(fault) == CURRENT} <= {WHEN_OFF}
        first = now["trip_cell"]
        if first < len(current_mA):
            current_mA[first], temperature_cC[first] = (
                now["trip_current_mA"], now["trip_temperature_cC"],
            )  # fmt: skip
        return {
            CURRENT: {n: 1e-3 * current_mA[i] for n, i in cells.items() if lasts or i == first},
            TEMPERATURE: {name: 1e-2 * temperature_cC[i] for name, i in cells.items()},
        }

    def write(self, t_s: float, commands: Commands) -> None:
        """Send the command; it holds for `hold_s`."""
        self._sent_t_s = t_s
        self._asked_tick = commands.broadcast.tick
        if not self._is_armed and self._heat.is_due(self._link.sent_s):
            self._link.send("read")  # all is off, and its answer contains all of a status
            return
        if self._asked_tick:
            self._broadcast(commands)
            return
        if len(commands.duty):
            self._modulate(commands.duty[self._cells.gates])
            return
        mask = self._cells.mask(commands.cells[self._cells.gates])
        self._link.send_set(self._set_mask, mask)

    def _modulate(self, duty: NDArray[np.float64]) -> None:
        self._sent_duty[:] = duty
        steps = np.rint(STEPS * duty).astype(int).tolist()
        self._link.send_set(self._set_duties, *steps, *self._no_gates)

    def _broadcast(self, commands: Commands) -> None:
        """Send the message; after a new draw its answer says which cells are on.

        If the answer misses this tick, cell states are unknown until the next.
        """
        message, gates = commands.broadcast, self._cells.gates
        self._link.send(
            "broadcast",
            valid_for_ms=self._link.hold_ms,
            p_on_per_65536=protocol.probability_per_65536(message.p_on),
            q_off_per_65536=protocol.probability_per_65536(message.q_off),
            tick=message.tick,
            seed=message.seed,
            first_cell=self._place.first_gate,
        )
        if message.tick == self._drawn_tick:
            return
        self._pending = answer = self._link.collect()
        if answer is None or protocol.result_name(answer["result"]) != "done":
            commands.cells[gates] = CELL_UNKNOWN
            return
        commands.cells[gates] = self._cells.among(answer["cells_on"])
        fresh = answer["cells_open"] & ~self._cells.open
        if fresh:  # found between reading and drawing: the next reading says so
            commands.cells[gates] |= CELL_UNKNOWN * self._cells.among(fresh).astype(np.uint8)
        self._drawn_tick = message.tick

    def safe(self) -> None:
        """Disarm, which turns every gate off; an armed board's last answers are checked."""
        link = self._link
        if link.port is None:
            return
        was_armed, self._is_armed = self._is_armed, False
        last, self._pending = self._pending, None
        last_seq = link.number & 255
        link.overtaken.clear()
        answer = link.exchange("disarm")
        if was_armed:
            last = last or next((m for m in link.overtaken if m.seq == last_seq), None)
            self._look_back(last, answer)

    def _look_back(self, last: protocol.Message | None, answer: protocol.Message) -> None:
        """Check the answers that came after the last tick: to its command, and to disarming.

        Power may be off by the second answer: its faults do not belong to the run.
        """
        if last is not None:
            self._is_armed = True
            self._take(last)
            self._is_armed = False
        ran_back = self._link.ran_back(answer["time_us"])
        faults = _trouble(
            ran_back, answer["result"], answer["state"], answer["fault_bits"], _DISARMED
        )
        if faults:
            self._note_trouble(faults, answer)
            self._show_link()

    def close(self) -> None:
        self._link.close()


def _trouble(
    ran_back: bool, result: int, state: int, fault_bits: int, expected: int = _ARMED
) -> int:
    """Link faults of an armed board's answer; it names other faults itself.

    `expected` is the state that it should have. `host_silent` latches only in an armed board: a
    board with that fault was not reset, however long the host was silent.
    """
    forgot = state == _DISARMED and expected != _DISARMED
    if forgot or (ran_back and not fault_bits & _HOST_SILENT):
        return _RESET
    names_its_fault = state == _FAULTED and fault_bits
    return _REFUSED if not names_its_fault and (result != _DONE or state != expected) else 0
