"""The state machine of a rig, as a table of states and events.

Each rig has one state machine (`Rig.states`). The rig fires connect, test, pass and disconnect. The
guard and the loop fire arm, begin, end, fault and estop. Column `guard_state` and the window show
the state. Only disconnecting the rig leaves a tripped state: the next run connects and tests it
again.
"""

from collections.abc import Callable

EVENTS = (
    "connect", "test", "pass", "arm", "begin", "end", "fault", "estop", "disconnect",
)  # fmt: skip

# Numbers in column `guard_state`. 6 is unused: it was a state that could not be reached.
NUMBERS = {
    "off": 0, "connected": 1, "self_test": 2, "ready": 3, "armed": 4, "running": 5, "fault": 7,
    "estop": 8,
}  # fmt: skip
STATES = tuple(NUMBERS)

# State -> event -> state; an event that is not listed has no effect.
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
    """State machine of a rig.

    Attributes
    ----------
    now : current state, one of STATES
    tell : called with every new state
    """

    def __init__(self, now: str = "off") -> None:
        self.now = now
        self.tell: Callable[[str], None] = _nobody

    @property
    def number(self) -> int:
        """Number of the state, as in column `guard_state`."""
        return NUMBERS[self.now]

    def on(self, event: str) -> bool:
        """Handle an event; returns whether it changed the state."""
        if event not in EVENTS:
            raise ValueError(f"no such event: {event}")
        new_state = TABLE[self.now].get(event)
        if new_state is None:
            return False
        self.now = new_state
        self.tell(new_state)
        return True
