"""Who may switch cells: what passed its self-test, what the operator armed, what holds it back."""

from typing import NamedTuple

NOT_TESTED = "Test this configuration in simulation first: Self-test (F2)"
NOT_ARMED = "Arm first (F4): Start will switch cells"
LATCHED = {
    "": "",
    "estop": "The emergency stop is latched: Reset first (F7)",
    "fault": "The last run tripped: check the cause, then Reset (F7)",
}


class Subject(NamedTuple):
    """What Arm and Start act on: the live run, or else the open experiment.

    `sha256` is that of all that decides what it does; empty if the experiment is not valid.
    `hil run` tests a run of its own before it opens a device: `of_others` needs no test here.
    """

    sha256: str
    on_bench: bool
    of_others: bool = False


class Permission:
    """The permission to switch cells, for one subject.

    Attributes
    ----------
    latched : str
        What the operator must acknowledge before the next start: "estop", "fault" or "".
    """

    def __init__(self) -> None:
        self.latched = ""
        self._tested: set[str] = set()
        self._armed: Subject | None = None

    def add_tested(self, sha256: str) -> None:
        """Note that a configuration has passed its self-test."""
        self._tested.add(sha256)

    def grant(self, subject: Subject) -> None:
        """The operator armed this subject, and no other."""
        self._armed = subject

    def withdraw(self) -> None:
        self._armed = None

    @property
    def is_given(self) -> bool:
        """Whether the operator has armed anything."""
        return self._armed is not None

    def holds_for(self, subject: Subject) -> bool:
        """Whether the operator has armed this subject."""
        return bool(subject.sha256) and subject == self._armed

    def trip(self, cause: str) -> None:
        """Hold the next start back until `acknowledge`; an emergency stop outranks a fault."""
        self.latched = "estop" if "estop" in (cause, self.latched) else cause
        self.withdraw()

    def acknowledge(self) -> None:
        self.latched = ""
        self.withdraw()

    @property
    def to_begin(self) -> str:
        """What the operator must acknowledge before anything begins; empty if nothing."""
        return LATCHED[self.latched]

    def to_connect(self, subject: Subject) -> str:
        """What the operator must do before the rig may be connected; empty if nothing."""
        tested = not subject.on_bench or subject.of_others or subject.sha256 in self._tested
        return self.to_begin or ("" if tested else NOT_TESTED)

    def to_switch(self, subject: Subject) -> str:
        """What the operator must do before cells may be switched; empty if nothing."""
        armed = not subject.on_bench or self.holds_for(subject)
        return self.to_connect(subject) or ("" if armed else NOT_ARMED)
