"""`emulated://NUMBER` for pyserial: the line of an emulated board of this process.

pyserial looks a scheme up as a module `protocol_SCHEME` with a class `Serial`.
"""

from serial import SerialBase, SerialException

from hil.devices.board.emulated import BOARDS, EmulatedBoard


class Serial(SerialBase):  # type: ignore[misc]
    """A serial port whose far end is an emulated chip."""

    _board: EmulatedBoard

    def open(self) -> None:
        number = str(self.port).removeprefix("emulated://")
        board = BOARDS.get(int(number)) if number.isdigit() else None
        if board is None:
            raise SerialException(f"there is no emulated board {number} in this process")
        self._board = board
        self.is_open = True

    def close(self) -> None:
        self.is_open = False

    @property
    def in_waiting(self) -> int:
        return self._board.in_waiting

    def read(self, size: int = 1) -> bytes:
        return self._board.read(size, self._timeout or 0.0)

    def write(self, data: bytes) -> int:
        self._board.write(bytes(data))
        return len(data)

    def _reconfigure_port(self) -> None:
        """The line has one speed: the board's own."""
