"""A simulated board in a process of its own: the firmware on a pseudo-terminal, in wall time.

`firmware/port/host/board_pty.c` is the C that a board carries. pyserial opens its terminal as it
opens a real board's port. Its cells draw a constant current, and no fault can be injected.
"""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec

from hil.devices.board import protocol
from hil.devices.board.listing import store_limits
from hil.devices.board.native import built
from hil.devices.board.port import SerialPort
from hil.errors import ConfigError, DeviceError, install

FULL_S = 5e-4  # for which a full terminal is waited for
END_S = 1.0  # after which a board that ignores SIGTERM is killed


def missing() -> str:
    """What this computer lacks for a board on a pseudo-terminal; empty if nothing."""
    if find_spec("serial") is None:
        return f"needs an extra: {install('daq')}"
    if sys.platform == "win32":
        return "needs a pseudo-terminal, which Windows has not"
    try:
        built("board_pty")
        for end in os.openpty():
            os.close(end)
    except ConfigError:
        return "needs its firmware as a program: make -C firmware host (Linux, gcc, make)"
    except OSError as error:
        return f"needs a pseudo-terminal ({error.strerror})"
    return ""


class TerminalBoard:
    """A board that is started when its port is opened and ended when it is closed.

    It is also the operator of its e-stop.

    Parameters
    ----------
    number : its serial number
    limits : its stored table of limits
    sleep_s : waits in real time
    """

    def __init__(
        self,
        name: str,
        number: int,
        n_cells: int,
        limits: Mapping[str, int],
        sleep_s: Callable[[float], None],
    ) -> None:
        self._name, self._limits = name, dict(limits)
        self._sleep_s = sleep_s
        self._words = [str(n_cells), str(number)]
        self._process: subprocess.Popen[str] | None = None
        self._estop_is_open = False

    def connect(self, now_s: Callable[[], float], meanwhile: Callable[[], None]) -> SerialPort:
        """Start the board and open its terminal.

        Raises
        ------
        DeviceError
            It cannot be started, or does not take its limits.
        """
        # In a session of its own: Ctrl-C must reach the loop, and the loop the board.
        self._process = subprocess.Popen(
            [str(built("board_pty")), *self._words],
            stdout=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        self._estop_is_open = False
        try:
            assert self._process.stdout is not None
            address = self._process.stdout.readline().strip()
            if not address:
                raise DeviceError(f"{self._name}: its program ended before it had a terminal")
            if self._limits != protocol.default_limits():
                store_limits(address, self._limits)
            return _Terminal(self, self._name, address, now_s, meanwhile)
        except BaseException:
            self.end()
            raise

    def end(self) -> None:
        """End the process; again does nothing."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.communicate(timeout=END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()

    def wait(self, duration_s: float) -> None:
        """Wait in real time."""
        self._sleep_s(duration_s)

    def set_estop(self, is_open: bool) -> bool:
        """Open or close the e-stop's loop."""
        if sys.platform == "linux" and self._process is not None and is_open != self._estop_is_open:
            self._process.send_signal(signal.SIGUSR2)
            self._estop_is_open = is_open
        return True


class _Terminal(SerialPort):
    """The terminal of a board that ends with it.

    A board that gets no processor takes no bytes. They are lost, as on a line to a chip.
    """

    def __init__(
        self,
        board: TerminalBoard,
        name: str,
        address: str,
        now_s: Callable[[], float],
        meanwhile: Callable[[], None],
    ) -> None:
        super().__init__(name, address, now_s, now_s, meanwhile)
        self._board = board
        self._line.write_timeout = FULL_S

    def write(self, data: bytes) -> None:
        """Write as far as there is room."""
        self._guarded(lambda: self._put(data), "does not take data: has its program ended?")

    def _put(self, data: bytes) -> None:
        import serial

        with contextlib.suppress(serial.SerialTimeoutException):
            self._line.write(data)

    def close(self) -> None:
        """Close the terminal and end the board."""
        try:
            super().close()
        finally:
            self._board.end()
