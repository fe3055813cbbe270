"""A byte stream to a driver board: a serial line, or a simulated far end."""

import contextlib
import math
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol, TypeVar

from hil.errors import DeviceError

if sys.platform != "win32":  # where a port opens once only
    import fcntl
    import termios

BAUD = 1_000_000
ANSWER_S = 0.02  # in which an answer comes that has begun, and late ones before it
LOOK_S = 0.0025  # a quarter of the shortest time after which a card's watchdog acts
HANDLERS = "hil.devices.board"  # of URLs: protocol_emulated


class Port(Protocol):
    """Every method may raise DeviceError, and nothing else."""

    def write(self, data: bytes) -> None: ...

    def read(self, timeout_s: float) -> bytes:
        """What has arrived; waits up to timeout_s for the first byte, b"" if none comes."""
        ...

    def close(self) -> None: ...

    def sent_s(self) -> float:
        """A clock of the line now, for the time that an exchange takes; NaN without one."""
        ...

    def arrived_s(self) -> float:
        """The same clock when the bytes last read had arrived, as far as it can be known."""
        ...


Answer = TypeVar("Answer")


def _no_clock() -> float:
    return math.nan


def _nothing() -> None:
    """The default `meanwhile`: does nothing."""


class SerialPort:
    """A serial line opened exclusively.

    Parameters
    ----------
    address : `usb:SERIAL_NUMBER`, a device path, or any URL that pyserial knows; also
        `emulated://NUMBER`, an emulated board of this process
    sent_s, arrived_s : the clock of the line; without them it has none
    meanwhile : called every LOOK_S during a wait

    Raises
    ------
    DeviceError
        There is no such port, or another process holds it (named if the system shows it).
    """

    def __init__(
        self,
        name: str,
        address: str,
        sent_s: Callable[[], float] = _no_clock,
        arrived_s: Callable[[], float] = _no_clock,
        meanwhile: Callable[[], None] = _nothing,
    ) -> None:
        import serial

        if HANDLERS not in serial.protocol_handler_packages:
            serial.protocol_handler_packages.append(HANDLERS)
        self.sent_s, self.arrived_s = sent_s, arrived_s
        self._meanwhile = meanwhile
        self._name = name
        path = port_path(name, address)
        self._path = path
        options: dict[str, object] = {"baudrate": BAUD, "timeout": 0.0, "write_timeout": 0.1}
        if "://" not in path:
            options["exclusive"] = True
        self._line = self._guarded(
            lambda: serial.serial_for_url(path, **options), "cannot be opened"
        )
        self._keep_others_out(True)

    def _keep_others_out(self, out: bool) -> None:
        """Lock the line against programs that do not use locks (except root's): TTY_IOCTL(2const).

        pyserial's `exclusive` is a lock that only those who ask for it meet.
        """
        if sys.platform != "win32" and "://" not in self._path:
            request = termios.TIOCEXCL if out else termios.TIOCNXCL
            fcntl.ioctl(self._line.fileno(), request)

    def _guarded(self, action: Callable[[], Answer], what: str) -> Answer:
        # An unplugged port shows itself as any of these, depending on platform and moment.
        import serial

        try:
            return action()
        except (serial.SerialException, OSError, TypeError, ValueError) as error:
            holder = holder_of(self._path)
            by = f" (held by {holder})" if holder else ""
            reason = str(error).splitlines()[0]
            raise DeviceError(f"{self._name}: {self._path} {what}{by}: {reason}") from None

    def write(self, data: bytes) -> None:
        self._guarded(lambda: self._line.write(data), "does not take data: is it unplugged?")

    def read(self, timeout_s: float) -> bytes:
        while timeout_s > LOOK_S:
            data = self._arrived_within(LOOK_S)
            if data:
                return data
            timeout_s -= LOOK_S
            self._meanwhile()
        return self._arrived_within(timeout_s)

    def _arrived_within(self, timeout_s: float) -> bytes:
        def arrived() -> bytes:
            self._line.timeout = timeout_s
            first: bytes = self._line.read(1)
            waiting = self._line.in_waiting
            return first + self._line.read(waiting) if first and waiting else first

        data: bytes = self._guarded(arrived, "gives no data: is it unplugged?")
        return data

    def close(self) -> None:
        if self._line.is_open:
            with contextlib.suppress(OSError):  # unplugged: nothing is left to give back
                self._keep_others_out(False)
        self._guarded(self._line.close, "cannot be closed")


def arriving(port: Port, timeout_s: float) -> Iterator[bytes]:
    """What arrives, until the line is silent for timeout_s.

    A line that never falls silent is no board's: after timeout_s and ANSWER_S only what has arrived
    is read. A line without a clock is read for as long as it is not silent.
    """
    end_s = port.sent_s() + timeout_s + ANSWER_S
    while data := port.read(0.0 if port.sent_s() > end_s else timeout_s):
        yield data


def port_path(name: str, address: str) -> str:
    """The device path of an address.

    Raises
    ------
    DeviceError
        No board has that USB serial number, or several have it.
    """
    if not address.startswith("usb:"):
        return address
    from serial.tools import list_ports

    wanted = address.removeprefix("usb:")
    ports = [port for port in list_ports.comports() if port.serial_number]
    paths = [str(port.device) for port in ports if port.serial_number == wanted]
    if len(paths) > 1:
        raise DeviceError(
            f"{name}: {' and '.join(sorted(paths))} have the USB serial number {wanted}: give the "
            "board's path as its port, and the number that hil devices --identify shows as serial"
        )
    if not paths:
        serials = ", ".join(sorted({port.serial_number for port in ports})) or "none"
        raise DeviceError(
            f"{name}: no board with USB serial number {wanted}: there are {serials}: "
            "check cable and power, hil devices lists boards"
        )
    return paths[0]


def holder_of(path: str) -> str:
    """Another process that has this device open, as far as this user may see; else empty.

    The one that has locked it comes first: more may have it open.
    """
    if sys.platform == "win32":
        return ""
    try:
        status = os.stat(path)
    except OSError:
        return ""
    opened = (
        int(link.parts[2])
        for link in Path("/proc").glob("[0-9]*/fd/*")
        if _is_device(link, status.st_rdev)
    )
    others = (pid for pid in (*_lockers(status.st_ino), *opened) if pid != os.getpid())
    pid = next(others, None)
    if pid is None:
        return ""
    try:
        what = Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        what = "gone by now"
    return f"process {pid}, {what}"


def _is_device(link: Path, device: int) -> bool:
    try:
        return device != 0 and getattr(link.stat(), "st_rdev", 0) == device
    except OSError:
        return False


def _lockers(inode: int) -> list[int]:
    """Processes with a lock on a file of this number: proc_locks(5)."""
    try:
        locks = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    except OSError:
        return []
    return [
        int(lock[4])
        for lock in locks
        if lock[1] == "FLOCK" and lock[5].rpartition(":")[2] == str(inode) and int(lock[4]) > 0
    ]
