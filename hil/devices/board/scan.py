"""How long a board may leave a cell that is on unread, by the commands that it obeys meanwhile."""

from math import inf

LONGEST_S = {
    "set_mask": ((1e-3, 14.0e-3), (2e-3, 9.0e-3), (4e-3, 7.25e-3)),
    "set_duties": ((1e-3, 16.0e-3), (2e-3, 9.5e-3), (4e-3, 7.6e-3)),
    "broadcast": ((1e-3, 17.5e-3), (2e-3, 9.5e-3), (4e-3, 7.6e-3)),
}
"""By command: (time between two commands, longest on-time of a cell between two of its readings),
if the commands switch all twelve cells. At least what the emulated chip takes
(tests/firmware/test_scan.py)."""

SENSE_PULSE_S = 200e-6
"""A pulse that measures resistance takes less: 150 us in emulation, 180 us in `NativeBoard`."""
SENSE_READING_S = 250e-6

CELLS, REFERENCES = 12, 1
"""Readings of a round: every cell and one reference, and again every cell whose turn has found it
off (firmware/core/scan.h)."""


def scan_s(command: str, every_s: float, cells: int = CELLS, sense_every_ms: int = 0) -> float:
    """Longest on-time of a cell between two readings of its current.

    The time does not grow with the interval between commands: between two rows of LONGEST_S the
    shorter interval's row holds. Commands faster than the first row were not measured: infinite.

    Parameters
    ----------
    cells : how many the board may switch; the others are read once a round
    sense_every_ms : the board's limit; its readings of resistance delay the others
    """
    bounds_s = [longest_s for at_s, longest_s in LONGEST_S[command] if at_s <= every_s + 1e-9]
    readings = CELLS + REFERENCES + cells
    plain_s = min(bounds_s, default=inf) * readings / (2 * CELLS + REFERENCES)
    if not sense_every_ms:
        return plain_s
    step_s = 1e-3 * (sense_every_ms // CELLS + 1)
    return (plain_s + SENSE_READING_S) / (1.0 - SENSE_READING_S / step_s)
