"""By what one driver board is told from another."""

import os
from dataclasses import dataclass
from pathlib import Path

from hil.errors import ConfigError, DeviceError

UNMARKED = 0xFFFF_FFFF  # what a chip reports in whose memory nobody has written a number
USB = "usb:"
NONE = "none"


def serial_of(number: int, address: str) -> str:
    """The serial number in the board's memory, or else that of its USB bridge.

    Parameters
    ----------
    number : as it reports it
    address : of its port

    Raises
    ------
    DeviceError
        It has neither.
    """
    if (serial := _serial(number, address)) != NONE:
        return serial
    raise DeviceError(
        f"board: {address}: has no serial number of its own: give its port as usb:SERIAL_NUMBER "
        "(hil devices lists them)"
    )


def serial_text(number: int) -> str:
    """The serial number in a board's memory, as text."""
    return NONE if number == UNMARKED else str(number)


def _serial(number: int, address: str) -> str:
    is_named = number == UNMARKED and address.startswith(USB)
    return address if is_named else serial_text(number)


def tells_apart(address: str, serial: str | None) -> bool:
    """Whether a rig's file says which board it means, and not only where one is plugged in."""
    return serial is not None or address.startswith(USB)


@dataclass(frozen=True)
class RigBoard:
    """A board as a rig's file names it.

    Attributes
    ----------
    file : the rig's file
    device, address, serial : its name, port and serial number there
    on_bench : whether it is a real one, which the file must tell from others
    """

    file: Path
    device: str
    address: str
    serial: str | None
    on_bench: bool

    @property
    def simulated_number(self) -> int | None:
        """The number in the memory of a simulated board; None: any."""
        if self.serial is None:
            return None
        return int(self.serial) if self.serial.isdecimal() else UNMARKED

    def check(self, number: int) -> None:
        """Refuse another board, and one that the file does not tell from others.

        Parameters
        ----------
        number : as the board reports it

        Raises
        ------
        ConfigError
            The file does not name the serial number of a real board.
        DeviceError
            The board has another one.
        """
        key, serial = f"{self.file}: devices.{self.device}.serial", _serial(number, self.address)
        if self.serial not in (None, serial):
            or_this = f', or if it is this one, write serial = "{serial}"' if serial != NONE else ""
            raise DeviceError(
                f"{key} = '{self.serial}': the board at {self.address} has serial {serial}: "
                f"connect the one that is meant{or_this}"
            )
        if not self.on_bench or tells_apart(self.address, self.serial):
            return
        if serial != NONE:
            raise ConfigError(
                f"{key}: missing: another board may be at {self.address} next time: if the one "
                f'there now is meant, write serial = "{serial}"'
            )
        usb = _usb_serial(self.address)
        remedy = f'write port = "{USB}{usb}"' if usb else (
            "its USB bridge has none either: write one into the board's memory "
            "(docs/how-to/bring-up.md)"
        )  # fmt: skip
        raise ConfigError(
            f"{key}: missing: another board may be at {self.address} next time, and the one there "
            f"now has no serial number of its own: {remedy}"
        )


def _usb_serial(path: str) -> str:
    """The USB serial number of the bridge at a device path; empty if it has none."""
    from serial.tools import list_ports

    ports = list_ports.comports()
    device = os.path.realpath(path)
    return next((p.serial_number or "" for p in ports if p.device in (path, device)), "")
