"""The board during a bring-up: exchanges, one gate held on for a while, its table of limits.

It is not the driver of a run: there is no rig, no tick, and no more than one cell is ever on.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from hil.devices.board import protocol
from hil.devices.board.arming import SUPPLY_S, armed_once_ready, supply_V
from hil.devices.board.driver import START_S, STARTS
from hil.devices.board.link import ATTEMPTS, PATIENT_S
from hil.devices.board.port import Port, arriving
from hil.devices.board.self_test import Operator
from hil.errors import DeviceError

VALID_MS = 50  # of a command
EVERY_S = 0.01  # between two commands
SETTLED_S = 0.05  # of a gate that has just switched: every cell has been read several times
SUPPLY_READ_S = 0.1  # in which the supply is read twice
LOOKS_S = 0.3  # until every check of an idle board has had its readings
MARK = 160  # number of a command: more than AHEAD_MAX above 0, and attempts below 256


class Bench(Operator, Protocol):
    """What waits and works the e-stop; its clock goes on through a board's resets."""

    def now_s(self) -> float: ...


@dataclass(frozen=True)
class Held:
    """What was seen while a gate was to be on.

    Attributes
    ----------
    result : of arming, and of the last command
    faults : names of what the board latched, the first cause first
    fault_cells : gates (from 0) that they name
    current_A : median of every input while the gate was on; empty if it never was
    """

    result: str
    faults: tuple[str, ...]
    fault_cells: tuple[int, ...]
    current_A: tuple[float, ...]

    def as_dict(self) -> dict[str, object]:
        return {"result": self.result, "faults": list(self.faults),
                "fault_cells": list(self.fault_cells),
                "current_A": [round(one, 6) for one in self.current_A]}  # fmt: skip


class Line:
    """A board behind a port.

    Parameters
    ----------
    name : for messages
    bench : waits
    """

    def __init__(self, name: str, port: Port, bench: Bench) -> None:
        self.name = name
        self._port = port
        self._bench = bench
        self._decoder = protocol.Decoder()
        self._number = 0
        self._serial: int | None = None
        self._table: Mapping[str, int] = {}
        self.n_gates = 0

    def open(self) -> protocol.Message:
        """Find the board, and get everything off; returns its identity.

        Raises
        ------
        DeviceError
            It does not answer, or speaks another version of the protocol.
        """
        self._port.write(b"\0")  # ends whatever half a frame stands in the board's buffer
        for _ in range(STARTS - 1):
            try:
                return self.meet()
            except DeviceError:
                if self._decoder.n_foreign:
                    raise
                self._bench.wait(START_S)
        return self.meet()

    def meet(self) -> protocol.Message:
        """Its identity; the same board must be there as at the first time."""
        identity = self._ask("identify")
        if identity["wire_hash"] != protocol.WIRE_HASH:
            raise DeviceError(self._other_wire())
        if self._serial not in (None, identity["serial"]):
            raise DeviceError(
                f"{self.name}: another board answers: serial {identity['serial']}, not "
                f"{self._serial}: connect that one again, or begin anew with this one"
            )
        self._serial = identity["serial"]
        self._number = identity["seq_taken"]
        self._table = identity["limits"]
        self.n_gates = identity["n_cells"]
        return identity

    def _other_wire(self) -> str:
        return f"{self.name}: its firmware speaks another version of the protocol: hil board flash"

    def _ask(self, command: str, **fields: object) -> protocol.Message:
        for _ in range(ATTEMPTS):
            self._number = protocol.following(self._number)
            seq = self._number & 255
            if command in protocol.SET_COMMANDS:
                fields["arming"] = self._number >> 8
            self._port.write(protocol.encode(command, seq, **fields))
            for data in arriving(self._port, PATIENT_S):
                for message in self._decoder.feed(data):
                    if message.seq == seq:
                        return message
        if self._decoder.n_foreign:
            raise DeviceError(self._other_wire())
        raise DeviceError(
            f"{self.name}: does not answer: it switches its gates off by itself; check cable, "
            "power and firmware, then run the same command to continue"
        )

    def idle(self) -> Held:
        """Everything off, faults cleared; then what the board finds by itself with no gate on."""
        self.meet()
        self._ask("disarm")
        self._bench.wait(LOOKS_S)
        self._ask("clear_faults")
        self._bench.wait(LOOKS_S)
        return self._reading_after("done")

    def _reading_after(self, result: str, currents: list[tuple[int, ...]] | None = None) -> Held:
        now = self._ask("read")
        first, every = now["first_fault_bits"], now["fault_bits"]
        names = [*protocol.fault_names(first), *protocol.fault_names(every & ~first)]
        cells = tuple(i for i in range(self.n_gates) if now["fault_cells"] >> i & 1)
        # A computer that stalls lets a command end: the median leaves those readings out.
        middle = 1e-3 * np.median(currents, axis=0)[: self.n_gates] if currents else np.zeros(0)
        return Held(result, tuple(names), cells, tuple(middle.tolist()))

    def armed(self, cells: int) -> Held:
        """Arm these cells, each of which the board pulses for 0.15 ms, and disarm at once."""
        self._clear()
        answer = self._arm(cells)
        reading = self._reading_after(protocol.result_name(answer["result"]))
        self._clear()
        if answer["cells_open"]:  # isolated: its table allows open cells
            apart = tuple(i for i in range(self.n_gates) if answer["cells_open"] >> i & 1)
            return Held("is_faulted", ("current_low",), apart, ())
        return reading

    def hold(
        self, cells: int, duration_s: float, meanwhile: Callable[[float], None] | None = None
    ) -> Held:
        """Arm these cells and have them on for so long, or until the board refuses.

        Parameters
        ----------
        meanwhile : called after every command, with the time since the first
        """
        self._clear()
        result = protocol.result_name(self._arm(cells)["result"])
        currents: list[tuple[int, ...]] = []
        began_s = self._bench.now_s()
        while result == "done" and (on_s := self._bench.now_s() - began_s) < duration_s:
            answer = self._ask("set_mask", valid_for_ms=VALID_MS, cells_on=cells)
            result = protocol.result_name(answer["result"])
            if result == "done" and on_s >= SETTLED_S:
                currents.append(self._ask("read")["current_mA"])
            if meanwhile is not None:
                meanwhile(on_s)
            self._bench.wait(EVERY_S)
        reading = self._reading_after(result, currents)
        self._clear()
        return reading

    def _clear(self) -> None:
        self.meet()
        self._ask("disarm")
        self._bench.wait(SETTLED_S)
        self._ask("clear_faults")

    def _arm(self, cells: int) -> protocol.Message:
        answer = armed_once_ready(self.name, self._ask, self._bench, self._table, cells)
        if answer["arming"]:
            self._number = answer["arming"] << 8 | answer.seq
        return answer

    def volts(self) -> dict[str, float]:
        """The cells' supply as the board reads it now, before relay K1 and behind it."""
        self._bench.wait(SUPPLY_READ_S)
        feed_V, rail_V = supply_V(self._ask("read"), self._table)
        return {"feed_V": round(feed_V, 3), "rail_V": round(rail_V, 3)}

    def powered(self, duration_s: float) -> Held:
        """Have relay K1 closed for so long, with every gate off, or until the board refuses."""
        self._clear()
        table = {"limits_crc": protocol.limits_crc(self._table), "cells": 0}
        left_s, result = SUPPLY_S + duration_s, "supply_waits"
        while left_s > 0.0 and result in ("supply_waits", "not_armed"):
            result = protocol.result_name(self._ask("arm", **table)["result"])
            left_s = min(left_s, duration_s) if result == "not_armed" else left_s
            self._bench.wait(EVERY_S)
            left_s -= EVERY_S
        return self._reading_after(result)

    def open_relay(self) -> None:
        """Disarm, which opens relay K1, and wait until the rail is dead."""
        self._ask("disarm")
        self._bench.wait(LOOKS_S)

    def silence(self, cells: int) -> Held:
        """Arm, send nothing for longer than the board allows, and read what it latched."""
        self._clear()
        answer = self._arm(cells)
        self._bench.wait(1e-3 * self._table["silence_max_ms"] + SETTLED_S)
        reading = self._reading_after(protocol.result_name(answer["result"]))
        self._clear()
        return reading

    def estop_is_open(self) -> bool:
        """Whether the loop is open now: a board whose loop is closed can be cleared of it."""
        self.meet()
        self._ask("clear_faults")
        return "estop_open" in protocol.fault_names(self._ask("read")["fault_bits"])

    def ask(self, command: str, **fields: object) -> protocol.Message:
        """An exchange for `hil.devices.board.self_test`."""
        return self._ask(command, **fields)

    def mark(self) -> None:
        """Number a command so high that a reset, after which numbers begin at 0, will show."""
        self._clear()
        for _ in range(2):  # a number is taken from 1 to AHEAD_MAX above the last one
            ahead = (MARK - self._number) % 256
            self._number += min(ahead, protocol.AHEAD_MAX) - 1
            self.meet()

    def reset_since_mark(self) -> str:
        """What reset the board since `mark`; empty: nothing did."""
        identity = self.open()
        if identity["seq_taken"] >= MARK:
            return ""
        causes = {number: name for name, number in protocol.RESETS.items()}
        return causes.get(identity["reset_cause"], f"cause {identity['reset_cause']}")

    def use(self, table: Mapping[str, int]) -> None:
        """Store this table of limits, if the board has another."""
        if self._table == table:
            return
        self._clear()
        answer = self._ask("set_limits", limits=dict(table))
        result = protocol.result_name(answer["result"])
        if result != "done":
            raise DeviceError(f"{self.name}: its limits were not stored: {result}")
        self._table = dict(table)

    def leave(self, table: Mapping[str, int]) -> None:
        """Everything off and its own table back, if that is known; close."""
        try:
            self._clear()
            if table:
                self.use(table)
        finally:
            self._port.close()
