"""The table of interlocks: hazard, detection, action, reaction time and place of action.

The rows are in `interlocks.toml`. The guard's fault bits and docs/safety.md are generated from
them. Rows that a board enforces have the names of firmware/core/protocol.h.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Where = Literal["loop", "board", "connect", "card", "supply"]


@dataclass(frozen=True)
class Interlock:
    """One row of the table.

    Attributes
    ----------
    name : name of its fault bit
    hazard : what it prevents
    signal : what it checks
    condition : when it trips
    key : configuration key of its limit; empty if the limit is fixed
    held_s : default time for which the condition must last; `guard.hold_s.<name>` overrides it
    action : what it does at once and latches
    reaction : longest time from the condition, after its hold time, to gates off
    where : component that enforces it
    """

    name: str
    hazard: str
    signal: str
    condition: str
    key: str
    held_s: float
    action: str
    reaction: str
    where: Where


def _rows(group: str) -> tuple[Interlock, ...]:
    usual = {"key": "", "held_s": 0.0, **_FILE["defaults"].get(group, {})}
    return tuple(Interlock(**{**usual, **row}) for row in _FILE[group])


_FILE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
LOOP = _rows("loop")  # in the order of the bits of `fault_bits`
BOARD = _rows("board")
OTHER = _rows("other")

RESET = (
    "Trips are latched, with the first cause and all causes, until the rig is disconnected. To "
    "continue, remove the cause and start another run with `hil run`. Cells stay off until the rig "
    "has passed its self-test and is armed again."
)
