"""The exchange of frames with a board: one command, one answer, and whether its time ran on."""

import math
from collections import deque
from collections.abc import Callable

from hil.devices.board import protocol
from hil.devices.board.port import Port, arriving
from hil.devices.board.self_test import RESET_REMEDY
from hil.errors import DeviceError

ATTEMPTS = 3
PATIENT_S = 0.1
RESET_SLACK_S = 1.0  # that a board's time may be away from the host's between two answers
RESET_SLACK_SHARE = 0.02  # and of the time between them: a resonator, at its worst
WRAP_S = 1e-6 * 2**32


class Link:
    """The line to one board.

    Parameters
    ----------
    connect : makes the open port
    hold_s : how long a command holds
    timeout_s : longest wait for an answer within a tick
    simulated : the far end is a simulation

    Attributes
    ----------
    port : None while it is closed
    number : of the last command: 24 bits, the arming's above the sequence number
    attempts : that the last exchange outside the tick took
    sent_s, took_s : when the last command was sent, on the line's own clock; the last exchange
    overtaken : answers to earlier commands
    """

    def __init__(
        self,
        name: str,
        connect: Callable[[], Port],
        hold_s: float,
        timeout_s: float,
        simulated: bool,
    ) -> None:
        self.name, self.simulated = name, simulated
        self.hold_ms = math.ceil(1e3 * hold_s)
        self.port: Port | None = None
        self.number = self.attempts = 0
        self.sent_s = self.took_s = math.nan
        self.overtaken: deque[protocol.Message] = deque(maxlen=ATTEMPTS)
        self._connect = connect
        self._timeout_s = timeout_s
        self._decoder = protocol.Decoder()
        self._seen_us: int | None = None  # the board's time in its last answer,
        self._seen_s = math.nan  # and the line's when that was asked for

    def open(self) -> None:
        self.port = self._connect()
        self._seen_us = None
        self.port.write(b"\0")  # ends whatever half a frame stands in the board's buffer

    def close(self) -> None:
        if self.port is not None:
            self.port.close()
            self.port = None

    def send(self, command: str, **fields: int) -> None:
        number = protocol.following(self.number)
        if command in protocol.SET_COMMANDS:
            fields["arming"] = number >> 8
        self._put(number, protocol.encode(command, number & 255, **fields))

    def send_set(self, encode: Callable[..., bytes], *values: int) -> None:
        """Send a command that switches cells, by its encoder; it holds for `hold_s`."""
        number = protocol.following(self.number)
        self._put(number, encode(number & 255, number >> 8, self.hold_ms, *values))

    def was_sent_within(self, duration_s: float) -> bool:
        """Whether the last command is no older; False where the line has no clock."""
        return self._opened().sent_s() - self.sent_s <= duration_s

    def _put(self, number: int, frame: bytes) -> None:
        port = self._opened()
        self.number = number
        self.sent_s = port.sent_s()
        port.write(frame)

    def collect(self, timeout_s: float | None = None) -> protocol.Message | None:
        """The answer to the last command sent; None when it does not come in time."""
        port = self._opened()
        timeout_s = self._timeout_s if timeout_s is None else timeout_s
        for data in arriving(port, timeout_s):
            for message in self._decoder.feed(data):
                if message.seq == self.number & 255:
                    self.took_s = port.arrived_s() - self.sent_s
                    return message
                self.overtaken.append(message)
        return None

    def _opened(self) -> Port:
        if self.port is None:
            raise DeviceError(f"{self.name}: is not open")
        return self.port

    def ask(self, command: str, **fields: int) -> protocol.Message:
        """An exchange before the run: the board must not have been reset since the last one."""
        answer = self.exchange(command, **fields)
        if self.ran_back(answer["time_us"]):
            raise DeviceError(f"{self.name}: was reset while it was being armed: {RESET_REMEDY}")
        return answer

    def exchange(self, command: str, **fields: int) -> protocol.Message:
        """An exchange outside the tick, with time and attempts."""
        for self.attempts in range(1, ATTEMPTS + 1):
            self.send(command, **fields)
            answer = self.collect(PATIENT_S)
            if answer is not None:
                return answer
        if self._decoder.n_foreign:
            raise DeviceError(self.other_wire())
        raise DeviceError(
            f"{self.name}: does not answer: it switches its cells off by itself; check cable, "
            "power and firmware"
        )

    def other_wire(self) -> str:
        remedy = "make -C firmware host" if self.simulated else "hil board flash"
        return f"{self.name}: its firmware speaks another version of the protocol: {remedy}"

    def ran_back(self, time_us: int) -> bool:
        """Whether the board's time, which wraps after 71.6 min, is not what has passed here."""
        last_us, self._seen_us = self._seen_us, time_us
        elapsed_s, self._seen_s = self.sent_s - self._seen_s, self.sent_s
        if last_us is None:
            return False
        passed_s = 1e-6 * (time_us - last_us)
        if elapsed_s < WRAP_S / 4.0 and _wrapped_s(passed_s) < 0.0:
            return True
        off_s = abs(_wrapped_s(passed_s - elapsed_s))
        return off_s > RESET_SLACK_S + RESET_SLACK_SHARE * abs(elapsed_s)


def _wrapped_s(difference_s: float) -> float:
    """A difference of two times of a board, of which whole wraps are not known."""
    return (difference_s + WRAP_S / 2.0) % WRAP_S - WRAP_S / 2.0
