"""How long a board may take to look at every cell, by the commands that it obeys meanwhile."""

from math import inf

LONGEST_S = {
    "set_mask": ((1e-3, 7.25e-3), (2e-3, 5.0e-3), (4e-3, 4.35e-3)),
    "broadcast": ((1e-3, 14.75e-3), (2e-3, 7.75e-3), (4e-3, 5.75e-3), (5e-3, 4.6e-3)),
}
"""By command: (time from one command to the next, longest scan), at least what the emulated chip
takes (tests/firmware/test_scan.py)."""


def scan_s(command: str, every_s: float) -> float:
    """The longest scan of a board that obeys such a command every so often.

    A scan gets no longer where commands come less often: between two times of LONGEST_S the
    figure of the shorter one holds. Faster commands than all of them were not measured: infinite.
    """
    found = [longest_s for at_s, longest_s in LONGEST_S[command] if at_s <= every_s + 1e-9]
    return min(found, default=inf)
