"""By what one driver board is told from another."""

from hil.errors import DeviceError

UNMARKED = 0xFFFF_FFFF  # what a chip reports in whose memory nobody has written a number
USB = "usb:"


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
    if number != UNMARKED:
        return str(number)
    if address.startswith(USB):
        return address
    raise DeviceError(
        f"board: {address}: has no serial number of its own: give its port as usb:SERIAL_NUMBER "
        "(hil devices lists them)"
    )
