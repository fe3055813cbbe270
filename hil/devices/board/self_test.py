"""Self-test of a board before a run: it stops by itself, and its e-stop is seen open.

The board is armed with every cell off and not fed: it must latch `host_silent` within its own
limit. Then its e-stop loop must open once; a simulated operator opens it, a real one is asked to.
The supply is on meanwhile, and relay K2 must cut it.
"""

from collections.abc import Callable
from typing import Protocol

from hil.devices.board import protocol
from hil.devices.board.words import SUPPLY_STUCK
from hil.errors import DeviceError

MARGIN_S = 0.05
ESTOP_WAIT_S = 30.0
LOOK_EVERY_S = 0.05
ALIVE_PER_255 = 11  # of a supply's full scale: 0.8 of 20 V
RESET_REMEDY = "check its supply, and what resets it"

Ask = Callable[..., protocol.Message]
Say = Callable[[str], None]


class Operator(Protocol):
    """The operator at a board: waits, and operates its e-stop."""

    def wait(self, duration_s: float) -> None: ...

    def set_estop(self, is_open: bool) -> bool:
        """Open or close the loop; False if a person must do it."""
        ...


class FarEnd(Protocol):
    """The part of a simulated board that an operator uses."""

    def advance(self, duration_us: int) -> None: ...

    def set_estop(self, is_open: bool) -> None: ...


class SimulatedOperator:
    """Operates the e-stop of a simulated board."""

    def __init__(self, board: FarEnd) -> None:
        self._board = board

    def wait(self, duration_s: float) -> None:
        self._board.advance(round(1e6 * duration_s))

    def set_estop(self, is_open: bool) -> bool:
        self._board.set_estop(is_open)
        return True


class SomebodyAtTheBench:
    """A person, who is prompted.

    Parameters
    ----------
    sleep_s : waits in real time
    """

    def __init__(self, sleep_s: Callable[[float], None]) -> None:
        self._sleep_s = sleep_s

    def wait(self, duration_s: float) -> None:
        self._sleep_s(duration_s)

    def set_estop(self, is_open: bool) -> bool:
        return False


def check_silence(name: str, ask: Ask, arm: Callable[[], None], operator: Operator) -> None:
    """Arm, send nothing, and wait for the board to latch; it is left disarmed and clear.

    Raises
    ------
    DeviceError
        It did not stop by itself.
    """
    arm()
    silence_s = 1e-3 * ask("identify")["limits"]["silence_max_ms"]
    operator.wait(silence_s + MARGIN_S)
    reading = ask("read")
    if protocol.state_name(reading["state"]) == "disarmed":
        raise DeviceError(f"{name}: was reset during its watchdog test: {RESET_REMEDY}")
    if "host_silent" not in protocol.fault_names(reading["fault_bits"]):
        raise DeviceError(
            f"{name}: left alone for {silence_s + MARGIN_S:g} s it did not stop by itself: do not "
            "use this board"
        )
    clear(name, ask)


def check_estop(name: str, ask: Ask, operator: Operator, say: Say) -> None:
    """Wait for the e-stop loop to open and close once; the board is left disarmed and clear.

    Raises
    ------
    DeviceError
        It was not seen open, or not closed again, in time.
    """
    for is_open, what in ((True, "open"), (False, "close")):
        if not operator.set_estop(is_open):
            say(f"{name}: {what} its e-stop now ({ESTOP_WAIT_S:g} s)")
        _wait_for(name, ask, operator, is_open)
    clear(name, ask)


def _wait_for(name: str, ask: Ask, operator: Operator, is_open: bool) -> None:
    for _ in range(round(ESTOP_WAIT_S / LOOK_EVERY_S)):
        operator.wait(LOOK_EVERY_S)
        if is_open:
            reading = ask("read")
            faults = protocol.fault_names(reading["fault_bits"])
            if "supply_stuck" in faults:
                raise DeviceError(f"{name}: its e-stop is open: {SUPPLY_STUCK}")
            matches = "estop_open" in faults and feed_is_dead(reading)
        else:
            matches = protocol.result_name(ask("clear_faults")["result"]) == "done"
        if matches:
            return
    state = "open" if is_open else "closed again"
    raise DeviceError(
        f"{name}: its e-stop was not seen {state} within {ESTOP_WAIT_S:g} s: nothing was armed; "
        f'a rig without one says estop = "none" in devices.{name}'
    )


def clear(name: str, ask: Ask) -> None:
    """Clear the board's faults.

    Raises
    ------
    DeviceError
        One persists.
    """
    answer = ask("clear_faults")
    if answer["fault_bits"]:
        raise DeviceError(cannot_be_armed(name, answer))


def cannot_be_armed(name: str, answer: protocol.Message) -> str:
    """Which faults have not been cleared."""
    faults = protocol.fault_names(answer["fault_bits"])
    text = f"{name}: cannot be armed while this persists: {', '.join(faults)}"
    return f"{text}: {SUPPLY_STUCK}" if "supply_stuck" in faults else text


def feed_is_dead(reading: protocol.Message) -> bool:
    """Whether there is no supply before relay K1, by the answer to `read`."""
    return bool(reading["feed_per_255"] < ALIVE_PER_255)
