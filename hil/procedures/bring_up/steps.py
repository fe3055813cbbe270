"""The steps of a bring-up: what to do at the bench, and what the board is asked then.

Every step belongs to a stage, in which the bench is wired in one way. The stages with nothing
connected and with dummy loads come first, so that a wrong board meets no wire.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from hil.devices.board.self_test import Operator, check_estop
from hil.errors import DeviceError
from hil.platform.terminal import say
from hil.procedures.bring_up.judge import drives_itself, looks_open
from hil.procedures.bring_up.line import Line
from hil.procedures.bring_up.setup import Setup
from hil.procedures.procedure import Step

Stage = Literal["no wire", "supply", "dummy loads", "one wire"]
GATE_S = 0.15  # for which every gate is on in turn
READ_S = 5.0  # for which a current is on to be read, at most
READ_SHARE = 0.8  # of the longest on-time
WIRE_S = 0.5  # for which the wire is on
ESTOP_S = 5.0  # for which the wire is on while somebody presses the e-stop
LEAKS_S = 0.3  # for which relay K1 is closed with every gate off
READ_AGAIN_S = 0.1  # of the supply, twice
PRESSED_S = 0.2  # when a rehearsal presses it
SHOWN_V = 60.0  # more is not a reading of this bench

Look = Callable[[Line, Setup, Operator], dict[str, object]]


@dataclass(frozen=True)
class Act(Step):
    """One step.

    Attributes
    ----------
    stage : how the bench is wired
    look : asks the board, or does nothing
    looks_first : the board is asked before the reading is typed, not after
    waits : somebody has to do something before
    marks : the step is to reset the board
    loads_table : with the table of limits for dummy loads
    likely : what a reading is, about; another one is asked for twice
    """

    stage: Stage
    look: Look
    looks_first: bool = False
    waits: bool = True
    marks: bool = False
    loads_table: bool = False
    likely: tuple[float, float] = (0.0, SHOWN_V)


def connections(stage: str, setup: Setup) -> str:
    """How the bench is wired in a stage."""
    if stage == "no wire":
        return (
            "connect no wire and no load, leave the cells' supply off, release the e-stop, and "
            "power the board's 5 V through USB or a bench supply"
        )
    supply = f"set the cells' supply to {setup.supply_V:g} V"
    if stage == "supply":
        return (
            f"connect no wire and no load; {supply}, with its current limit at "
            f"{1.5e-3 * setup.table['current_max_mA']:.2g} A, switch it on, and press START, if "
            "the board has that button"
        )
    if stage == "dummy loads":
        watts = setup.supply_V * setup.load_A
        amperes = 1.5e-3 * setup.table["current_max_mA"]
        return (
            f"connect a resistor of {setup.load_Ohm:g} Ohm, {2.0 * watts:.1f} W or more, at every "
            f"output, and an ammeter in the common line of the supply; {supply}, with its current "
            f"limit at {amperes:.2g} A, and switch it on"
        )
    return (
        "switch the cells' supply off, remove every resistor and the ammeter, connect one wire at "
        f"output 1, in its mount; {supply} and switch it on"
    )


def steps_of(setup: Setup) -> list[Act]:
    """Every step for this board, in order."""
    supply = _with_supply(setup) if setup.measures else ()
    return [*_without_wire(setup), *supply, *_with_loads(setup), *_with_one_wire(setup)]


def _without_wire(setup: Setup) -> Iterator[Act]:
    yield Act(
        "gates_in_reset",
        "hold the board in reset (its button, or RESET to ground), measure every gate against "
        "ground, release it, and give the highest",
        "V", "no wire", _reset, marks=True,
    )  # fmt: skip
    yield Act("inputs", "the board reads its inputs", "", "no wire", _idle, waits=False)
    if setup.estop:
        yield Act("estop_seen", "press the e-stop and release it when asked", "", "no wire", _estop)
    yield Act(
        "watchdog",
        "stop the chip's clock for a second: XTAL1 (pin 7 of the TQFP, 9 of the DIP) to ground "
        "through 1 kOhm",
        "", "no wire", _reset, marks=True,
    )  # fmt: skip
    yield Act(
        "brown_out",
        f"lower the board's 5 V to {sag_V(setup):g} V for a second, never below 2 V, and raise it "
        "again",
        "", "no wire", _reset, marks=True,
    )  # fmt: skip


def _with_supply(setup: Setup) -> Iterator[Act]:
    """The relays; a board that measures nothing does not know of them."""
    V = setup.supply_V
    yield Act(
        "rail_dead",
        "the board is not armed: measure the voltage at an output's pole of the supply, behind "
        "relay K1",
        "V", "supply", _idle_volts, likely=(0.0, 2.0),
    )  # fmt: skip
    yield Act(
        "supply", "measure the voltage before relay K1, against ground", "V", "supply", _idle_volts,
        likely=(0.5 * V, 2.0 * V),
    )  # fmt: skip
    if setup.estop:
        yield Act(
            "estop_cuts", "press the e-stop, keep it pressed, and measure the voltage before relay "
            "K1 again", "V", "supply", _open_now, likely=(0.0, 2.0 * V),
        )  # fmt: skip
        yield Act(
            "estop_released", "release the e-stop, and press START, if the board has that button",
            "", "supply", _idle,
        )  # fmt: skip
    yield Act("relay", "the board closes relay K1 and opens it", "", "supply", _relay, waits=False)
    yield Act(
        "open_loads", "the board looks for a load at every output", "", "supply", _each_armed,
        waits=False,
    )  # fmt: skip


def sag_V(setup: Setup) -> float:
    """Below the brown-out level, 4.3 V, or 2.7 V in an Arduino as it is sold (at worst 2.5 V)."""
    return 2.3 if setup.as_delivered else 3.9


def _with_loads(setup: Setup) -> Iterator[Act]:
    V, A = setup.supply_V, setup.load_A
    if not setup.measures:
        yield Act(
            "supply", "with the e-stop released, measure the voltage of the supply at the loads",
            "V", "dummy loads", _idle, likely=(0.5 * V, 2.0 * V),
        )  # fmt: skip
    if not setup.measures and setup.estop:
        yield Act(
            "estop_cuts", "press the e-stop, keep it pressed, and measure the same voltage",
            "V", "dummy loads", _open_now, likely=(0.0, 2.0 * V),
        )  # fmt: skip
        yield Act("estop_released", "release the e-stop", "", "dummy loads", _idle)
    if setup.measures:
        yield Act(
            "leaks", "relay K1 closes, and every gate stays off", "", "dummy loads",
            lambda line, setup, operator: line.powered(LEAKS_S).as_dict(), waits=False,
        )  # fmt: skip
        yield Act(
            "gates", "every gate goes on alone", "", "dummy loads", _each_held, waits=False,
            loads_table=True,
        )  # fmt: skip
    for i, cell in enumerate(setup.cells):
        alone = "" if setup.measures else f"leave the load at output {i + 1} alone connected: "
        yield Act(
            f"current.{i + 1}",
            f"{alone}gate {i + 1} ({cell}) goes on for {read_s(setup):g} s: read the ammeter",
            "A", "dummy loads", _read_current(i), looks_first=True, loads_table=True,
            likely=(0.5 * A, 2.0 * A),
        )  # fmt: skip
    if setup.measures:
        yield Act(
            "shorted", "replace the load at output 1 by a link of wire", "", "dummy loads",
            lambda line, setup, operator: line.armed(1).as_dict(),
        )  # fmt: skip
    yield Act(
        "silence", "connect a load at every output again, without a link", "", "dummy loads",
        lambda line, setup, operator: line.silence(_all(setup)).as_dict(),
    )  # fmt: skip


def read_s(setup: Setup) -> float:
    """For how long a gate is on while its ammeter is read."""
    return min(READ_S, READ_SHARE * 1e-3 * setup.table["on_time_max_ms"])


def _with_one_wire(setup: Setup) -> Iterator[Act]:
    on_s = min(WIRE_S, READ_SHARE * 1e-3 * setup.table["on_time_max_ms"])
    yield Act(
        "wire", f"the wire goes on for {on_s:g} s", "", "one wire",
        lambda line, setup, operator: line.hold(1, on_s).as_dict(),
    )  # fmt: skip
    if setup.estop:
        yield Act(
            "wire_stopped", f"the wire goes on for {ESTOP_S:g} s: press the e-stop meanwhile", "",
            "one wire", _stopped,
        )  # fmt: skip


# --- what the board is asked ----------------------------------------------------------------------


def _all(setup: Setup) -> int:
    return (1 << len(setup.cells)) - 1


def _idle(line: Line, setup: Setup, operator: Operator) -> dict[str, object]:
    return line.idle().as_dict()


def _reset(line: Line, setup: Setup, operator: Operator) -> dict[str, object]:
    return {"reset_by": line.reset_since_mark()}


def _tell(text: str) -> None:
    say(text, file=sys.stderr)


def _estop(line: Line, setup: Setup, operator: Operator) -> dict[str, object]:
    line.idle()
    try:
        check_estop(line.name, line.ask, operator, _tell)
    except DeviceError as error:
        return {"seen": str(error)}
    return {"seen": "yes"}


def _idle_volts(line: Line, setup: Setup, operator: Operator) -> dict[str, object]:
    return {**line.idle().as_dict(), **line.volts()}


def _relay(line: Line, setup: Setup, operator: Operator) -> dict[str, object]:
    """The board's readings with relay K1 closed, and open again."""
    reading, closed = line.powered(READ_AGAIN_S).as_dict(), line.volts()
    line.open_relay()
    return {**reading, "closed": closed, "opened": line.volts()}


def _open_now(line: Line, setup: Setup, operator: Operator) -> dict[str, object]:
    is_open = line.estop_is_open()
    return {"open": is_open, **line.volts()} if setup.measures else {"open": is_open}


def _each_armed(line: Line, setup: Setup, operator: Operator) -> dict[str, object]:
    """Until the first output at which a load was found, though there is none."""
    outputs = []
    for i in range(len(setup.cells)):
        outputs.append(line.armed(1 << i).as_dict())
        if not looks_open(outputs[-1], i):
            break
    return {"outputs": outputs}


def _each_held(line: Line, setup: Setup, operator: Operator) -> dict[str, object]:
    """Until the first gate that does not drive its own input, and no other."""
    gates = []
    for i in range(len(setup.cells)):
        gates.append(line.hold(1 << i, GATE_S).as_dict())
        if not drives_itself(gates[-1], setup, i):
            break
    return {"gates": gates}


def _read_current(cell: int) -> Look:
    def look(line: Line, setup: Setup, operator: Operator) -> dict[str, object]:
        return line.hold(1 << cell, read_s(setup)).as_dict()

    return look


def _stopped(line: Line, setup: Setup, operator: Operator) -> dict[str, object]:
    def press(on_s: float) -> None:
        if on_s >= PRESSED_S:
            operator.set_estop(True)

    on_s = min(ESTOP_S, READ_SHARE * 1e-3 * setup.table["on_time_max_ms"])
    return line.hold(1, on_s, press).as_dict()
