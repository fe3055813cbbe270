"""Errors of the NI-DAQmx library as one line with the device, the code and a remedy."""

import contextlib
from collections.abc import Iterator

from hil.errors import DeviceError, one_line

SAMPLES_NOT_YET_AVAILABLE = -200284
WATCHDOG_NOT_SUPPORTED = -200662

EXPIRED = frozenset({-200678, -200644, -200681, -201434, -201478})  # outputs are held, safe

_RESET = (
    "its watchdog has expired: the chassis does nothing until it is reset, in NI MAX or by "
    "nidaqmx.system.Device(CHASSIS).reset_device()"
)
_FIRST = (
    "the watchdog of a chassis starts before any other of its tasks, and one is there: close other "
    "programs, and let one card of the rig have all modules of a chassis"
)
HINTS = {
    -200220: "no such card: hil devices lists those there are",
    -201003: "the card cannot be reached: check cable and power",
    -200324: "the card is absent: check cable and power",
    -200045: "the card was removed: check cable and power",
    -88705: "the card is not there any more: check cable and power",
    -50405: "the transfer broke off: was the card unplugged?",
    -88710: "the acquisition was broken off: was the card reset or unplugged?",
    -201390: "the network connection to the card was lost",
    -200170: "the card has no such terminal",
    -200430: "the terminal is of another type",
    -200077: "the card does not do this",
    -200081: "too fast for so many channels",
    -200332: "too fast for the card",
    -50103: "held by another task or program",
    -200022: "held by another task or program",
    -200587: "the lines are held by another task or program",
    -89137: "a line inside the card is in use by another task",
    -200489: "two channels of one name or terminal",
    -200279: "samples were overwritten before they were read: the loop was too slow",
    -200361: "the card's own buffer ran over: lower rate_Hz",
    -200714: "the computer could not take samples fast enough: lower rate_Hz",
    -201314: "a counter's samples were overwritten: lower rate_Hz",
    -200678: "its watchdog has expired and holds the outputs: run again once the cause is gone",
    -200644: "its watchdog has expired and holds the outputs: run again once the cause is gone",
    -200681: "its watchdog has expired and holds the outputs: run again once the cause is gone",
    -201434: _RESET,
    -201478: _RESET,
    WATCHDOG_NOT_SUPPORTED: "it has no watchdog",
    -201476: _FIRST,
    -201477: _FIRST,
}


@contextlib.contextmanager
def said_by(name: str, doing: str = "") -> Iterator[None]:
    """Convert exceptions of the library in the block to DeviceError.

    Raises
    ------
    DeviceError
        One line with device, code and hint.
    """
    import nidaqmx.errors as ni

    try:
        yield
    except (ni.DaqNotFoundError, ni.DaqNotSupportedError):
        raise DeviceError(
            f"{name}: NI-DAQmx is not installed on this machine: install NI's driver, or use "
            "--backend sim or emulated"
        ) from None
    except ni.DaqFunctionNotSupportedError as error:
        raise DeviceError(f"{name}: NI-DAQmx is too old: {first_line(error)}") from None
    except ni.DaqError as error:
        raise DeviceError(describe(name, error, doing)) from None


def describe(name: str, error: Exception, doing: str = "") -> str:
    """Format an error of the library as one line, with the name of the device."""
    return f"{name}: {doing + ': ' if doing else ''}{described(error)}"


def described(error: Exception) -> str:
    """Format an error of the library as one line: hint, message and code."""
    code = int(getattr(error, "error_code", 0))
    hint = HINTS.get(code)
    text = f"{hint} ({first_line(error)})" if hint else first_line(error)
    return f"{text} [NI-DAQmx {code}]"


def first_line(error: Exception) -> str:
    """First line of the library's message, with the property that it names further down."""
    lines = str(error).strip().splitlines() or ["no reason stated"]
    about = [line for line in lines[1:] if line.startswith("Property:")]
    return one_line(" ".join([lines[0], *about]))
