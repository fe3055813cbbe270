"""The state machine of a rig, as a table of states and events.

A rig has one machine (`Rig.states`). The rig fires connect, test, pass and disconnect;
the guard and the loop what they let through (arm, begin, end, fault, estop). `guard_state` of a
recording and the window show it. A trip is left by letting go of the rig alone: the next run
connects and tests it again.
"""

from collections.abc import Callable

EVENTS = (
    "connect", "test", "pass", "arm", "begin", "end", "fault", "estop", "disconnect",
)  # fmt: skip

# Numbers as in `guard_state`; 6 was a state that could not be reached.
NUMBERS = {
    "off": 0, "connected": 1, "self_test": 2, "ready": 3, "armed": 4, "running": 5, "fault": 7,
    "estop": 8,
}  # fmt: skip
STATES = tuple(NUMBERS)

# State -> event -> state; other events are refused and change nothing.
_TRIPS = {"fault": "fault", "estop": "estop"}
TABLE: dict[str, dict[str, str]] = {
    "off": {"connect": "connected"},
    "connected": {"test": "self_test", **_TRIPS},
    "self_test": {"pass": "ready", "fault": "fault"},
    "ready": {"arm": "armed", **_TRIPS},
    "armed": {"begin": "running", "end": "ready", **_TRIPS},
    "running": {"end": "ready", **_TRIPS},
    "fault": {"estop": "estop"},
    "estop": {},
}
for _state, _row in TABLE.items():
    if _state != "off":
        _row["disconnect"] = "off"

ENERGISED = ("armed", "running")  # commands are executed only in these


def _nobody(now: str) -> None:
    """The default listener: does nothing."""


class States:
    """The state that a rig is in.

    Attributes
    ----------
    now : str
        One of STATES.
    tell : called with every new state
    """

    def __init__(self, now: str = "off") -> None:
        self.now = now
        self.tell: Callable[[str], None] = _nobody

    @property
    def number(self) -> int:
        """The number of the state, as in the column `guard_state`."""
        return NUMBERS[self.now]

    def on(self, event: str) -> bool:
        """Handle an event; True if it changed the state."""
        if event not in EVENTS:
            raise ValueError(f"no such event: {event}")
        following = TABLE[self.now].get(event)
        if following is None:
            return False
        self.now = following
        self.tell(following)
        return True
