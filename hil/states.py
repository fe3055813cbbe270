"""The states of a rig, as a table: what leads from one to another, and what does not.

A trip leads to `fault` or `estop`, which only a reset leaves, once its condition is gone, and
never for a state in which anything is on.
"""

STATES = (
    "off", "connected", "self_test", "ready", "armed", "running", "cooldown", "fault", "estop",
)  # fmt: skip
EVENTS = (
    "connect", "test", "pass", "arm", "begin", "end", "cooled", "fault", "estop", "reset",
    "disconnect",
)  # fmt: skip

# State -> event -> state; an event that is not named is refused and changes nothing.
TABLE: dict[str, dict[str, str]] = {
    "off": {"connect": "connected"},
    "connected": {"test": "self_test"},
    "self_test": {"pass": "ready"},
    "ready": {"arm": "armed", "test": "self_test"},
    "armed": {"begin": "running", "end": "cooldown"},
    "running": {"end": "cooldown"},
    "cooldown": {"cooled": "ready"},
    "fault": {"reset": "connected", "estop": "estop"},
    "estop": {"reset": "connected"},
}
for _state, _row in TABLE.items():
    if _state != "off":
        _row["disconnect"] = "off"
        if _state not in ("fault", "estop"):
            _row |= {"fault": "fault", "estop": "estop"}

ENERGISED = ("armed", "running")  # the only ones in which a command goes through


class States:
    """The state that a rig is in.

    Attributes
    ----------
    now : str
        One of STATES.
    """

    def __init__(self, now: str = "off") -> None:
        self.now = now

    @property
    def number(self) -> int:
        """Of the state, as in the column `guard_state`."""
        return STATES.index(self.now)

    def on(self, event: str) -> bool:
        """Let this happen; whether it led anywhere."""
        if event not in EVENTS:
            raise ValueError(f"no such event: {event}")
        following = TABLE[self.now].get(event)
        if following is None:
            return False
        self.now = following
        return True
