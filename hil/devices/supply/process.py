"""The process beside the loop that talks to a bench supply: `python -m hil.devices.supply.process`.

It opens the supply, switches its output off, sets voltage and current and reads them back. Then it
switches the output as the loop commands and writes an answer every `poll_s`. A supply that does not
answer is waited for one timeout at a time, and a command goes out between two of them. The output
goes off if the loop sends no heartbeat for `alive_s`, if the loop's process ends, and when this
process ends. It does not come on again if a hung loop continues. While the computer sleeps, this
process sleeps too and the output stays as it is; it goes off as soon as the computer wakes.
"""

import contextlib
import json
import re
import select
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hil.config.values import TomlTable
from hil.devices.supply.driver import FAILED, READY, SHARED
from hil.errors import one_line
from hil.loop.clock import SleepMeter
from hil.platform import shared_memory
from hil.platform.processes import STOP_SIGNALS

if TYPE_CHECKING:
    from pyvisa.resources import MessageBasedResource

LOOK_S = 0.005
ANSWER_SHARE = 1.0 / 3.0  # timeout of one answer, as a fraction of answer_max_s
LATE_MAX = 20
TOLERANCE = 0.01  # relative tolerance of the set values when read back


@dataclass(frozen=True)
class Dialect:
    """SCPI commands and queries of a supply; `{n}` is the output's number, `{x}` the value."""

    select: str
    voltage: str
    current: str
    output: str
    voltage_set: str
    current_set: str
    voltage_now: str
    current_now: str
    output_now: str
    on: str = "ON"
    off: str = "OFF"


# Source: SCPI-1999, vol. 2, OUTPut, SOURce and MEASure; the makers' programming guides of the
# E36300 (channel lists) and the DP800 (channels by name); Aim-TTi's "Remote Commands" of the PL-P,
# CPX and QPX series, whose answers repeat the command: V1 8.000.
DIALECTS = {
    "scpi": Dialect("", "VOLT {x}", "CURR {x}", "OUTP {x}", "VOLT?", "CURR?", "MEAS:VOLT?",
                    "MEAS:CURR?", "OUTP?"),
    "keysight": Dialect("", "VOLT {x},(@{n})", "CURR {x},(@{n})", "OUTP {x},(@{n})", "VOLT? (@{n})",
                        "CURR? (@{n})", "MEAS:VOLT? (@{n})", "MEAS:CURR? (@{n})", "OUTP? (@{n})"),
    "rigol": Dialect("INST:NSEL {n}", "VOLT {x}", "CURR {x}", "OUTP CH{n},{x}", "VOLT?", "CURR?",
                     "MEAS:VOLT? CH{n}", "MEAS:CURR? CH{n}", "OUTP? CH{n}"),
    "tti": Dialect("", "V{n} {x}", "I{n} {x}", "OP{n} {x}", "V{n}?", "I{n}?", "V{n}O?", "I{n}O?",
                   "OP{n}?", on="1", off="0"),
}  # fmt: skip


NUMBER = re.compile(r"(?:[VI]\d\s+)?([+-]?[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?)\s*[VA]?")


class SupplyError(Exception):
    """An error of the supply, in one line."""


class Scpi:
    """A supply behind VISA.

    Parameters
    ----------
    session : an open VISA session with `write` and `query`
    """

    def __init__(self, session: "MessageBasedResource", dialect: str, channel: int) -> None:
        self._session = session
        self._dialect = DIALECTS[dialect]
        self._n = channel
        self._identity = ""

    def identify(self) -> str:
        """Query and return its identity (*IDN?)."""
        answer = self.ask("*IDN?")
        if answer.count(",") < 3:  # IEEE 488.2, 10.14: maker, model, serial number, version
            raise SupplyError(f"answers '{one_line(answer)}' to *IDN?: no instrument")
        self._identity = answer
        return answer

    def resynchronise(self, between: Callable[[], object]) -> None:
        """Discard late answers after a timeout, so that none is taken for the next answer.

        It reads until nothing arrives within the timeout, then checks the identity again; after
        each wait it calls `between`. Raises SupplyError if that fails.
        """
        with contextlib.suppress(Exception):  # nothing more comes
            for _ in range(LATE_MAX):
                self._session.read()
                between()
        between()
        answer = self.ask("*IDN?")
        if answer != self._identity:
            raise SupplyError(f"answers '{one_line(answer)}' to *IDN?")

    def _text(self, template: str, x: object = "") -> str:
        return template.format(n=self._n, x=x)

    def ask(self, template: str) -> str:
        """Send a query and return the answer; SupplyError if there is none."""
        question = self._text(template)
        try:
            return str(self._session.query(question)).strip()
        except Exception as error:
            raise SupplyError(f"no answer to {question}: {_reason(error)}") from None

    def tell(self, template: str, x: object = "") -> None:
        """Send a command; SupplyError if that fails."""
        command = self._text(template, x)
        try:
            self._session.write(command)
        except Exception as error:
            raise SupplyError(f"did not accept {command}: {_reason(error)}") from None

    def number(self, template: str) -> float:
        """Send a query and return the answer as a number."""
        answer = self.ask(template)
        match = NUMBER.fullmatch(answer.split(",")[0].strip())
        if match is None:
            raise SupplyError(
                f"answers '{one_line(answer)}' to {self._text(template)}: wrong dialect?"
            )
        return float(match[1])

    def set(self, voltage_V: float, current_A: float) -> None:
        """Switch the output off, set voltage and current, and read them back."""
        dialect = self._dialect
        if dialect.select:
            self.tell(dialect.select)
        self.switch(False)
        for template, question, value, unit in (
            (dialect.voltage, dialect.voltage_set, voltage_V, "V"),
            (dialect.current, dialect.current_set, current_A, "A"),
        ):
            self.tell(template, f"{value:g}")
            readback = self.number(question)
            if abs(readback - value) > TOLERANCE * value:
                raise SupplyError(
                    f"set to {value:g} {unit}, it reports {readback:g} {unit}: out of its range?"
                )

    def switch(self, on: bool) -> None:
        """Switch its output on or off."""
        self.tell(self._dialect.output, self._dialect.on if on else self._dialect.off)

    def is_on(self) -> bool:
        """Whether it reports its output on."""
        answer = self.ask(self._dialect.output_now).upper()
        if answer not in ("0", "1", "ON", "OFF"):
            question = self._text(self._dialect.output_now)
            raise SupplyError(f"answers '{one_line(answer)}' to {question}: wrong dialect?")
        return answer in ("1", "ON")

    def voltage_V(self) -> float:
        """The voltage that it measures."""
        return self.number(self._dialect.voltage_now)

    def current_A(self) -> float:
        """The current that it measures."""
        return self.number(self._dialect.current_now)


def _reason(error: Exception) -> str:
    text = one_line(str(error)).split(": ", 1)[-1]
    return text or type(error).__name__


def connect(job: TomlTable) -> tuple[Scpi, str, Callable[[], None]]:
    """Open the supply; returns it, its identity and a function that closes it.

    Raises
    ------
    SupplyError
        It cannot be opened or does not identify itself.
    """
    import pyvisa

    resource = job["resource"]
    try:
        manager = pyvisa.ResourceManager(job["visa"])
        session: Any = manager.open_resource(resource)
    except Exception as error:
        raise SupplyError(f"{resource}: cannot be opened: {_reason(error)}") from None
    session.timeout = 1e3 * ANSWER_SHARE * job["answer_max_s"]
    session.read_termination = session.write_termination = "\n"
    if resource.upper().startswith("ASRL"):
        session.baud_rate = job["baud"]
    supply = Scpi(session, job["dialect"], job["channel"])

    def let_go() -> None:
        session.close()
        manager.close()

    try:
        return supply, supply.identify(), let_go
    except SupplyError as error:
        let_go()
        raise SupplyError(
            f"{resource}: {error}: is it switched on, and set to this line?"
        ) from None


class Post:
    """Shared memory with the loop.

    Parameters
    ----------
    alive_s : without a heartbeat for so long the loop has hung
    now_s : clock of the loop's heartbeat, which stops while the computer sleeps
    sleep : detects that the computer has slept
    """

    def __init__(
        self,
        path: str,
        alive_s: float,
        now_s: Callable[[], float] = time.perf_counter,
        sleep: SleepMeter | None = None,
    ) -> None:
        with shared_memory.open_private(Path(path)) as file:
            self._shared = np.memmap(file, dtype=SHARED, mode="r+", shape=(1,))
        self._now_s, self._sleep = now_s, sleep or SleepMeter()
        self._alive_s = alive_s
        self._hung = False

    def state(self, state: int, text: str) -> None:
        """Report the state of this process to the loop."""
        self._shared["text"] = text.encode()[:240]
        self._shared["state"] = state

    def answer(self, asked_s: float, voltage_V: float, current_A: float, on: bool) -> None:
        """Write an answer of the supply."""
        s = self._shared
        s["count"] += 1
        s["asked_s"], s["t_s"] = asked_s, self._now_s()
        s["voltage_V"], s["current_A"], s["on"] = voltage_V, current_A, float(on)
        s["count"] += 1

    @property
    def wants_on(self) -> bool:
        """Whether the loop commands the output on and sends its heartbeat.

        After the loop has hung, or the computer has slept, the loop must command off before a
        command on counts again.
        """
        slept = self._sleep.slept_s() > 0.0
        if not self._shared["want_on"][0]:
            self._hung = False
            return False
        self._hung |= slept or self._now_s() - float(self._shared["alive_s"][0]) >= self._alive_s
        return not self._hung

    @property
    def ends(self) -> bool:
        """Whether the loop has ended the session, or its process has ended."""
        closed, _, _ = select.select([sys.stdin], [], [], 0.0)
        return bool(self._shared["end"][0]) or bool(closed)


def run(path: str, job: TomlTable) -> int:
    """Serve one loop until it ends the session; returns 0, or 1 if the supply failed."""
    post = Post(path, float(job["alive_s"]))
    let_go: Callable[[], None] | None = None
    supply: Scpi | None = None
    try:
        supply, identity, let_go = connect(job)
        supply.set(job["voltage_V"], job["current_A"])
        post.state(READY, one_line(identity))
        serve(post, supply, float(job["poll_s"]))
    except SupplyError as error:
        is_off = supply is None or _off(supply)
        post.state(FAILED, f"{error}{'' if is_off else ': SWITCH IT OFF BY HAND'}")
        return 1
    finally:
        if supply is not None:
            _off(supply)
        if let_go is not None:
            let_go()
    return 0


class Switch:
    """The output of a supply, switched as the loop commands.

    Attributes
    ----------
    new : whether it was switched after the last query of its state
    """

    def __init__(self, post: Post, supply: Scpi) -> None:
        self._post, self._supply = post, supply
        self._on = False
        self.new = False

    def obey(self) -> None:
        """Switch the output if the command has changed; SupplyError if that fails."""
        want_on = self._post.wants_on
        if want_on != self._on:
            self._supply.switch(want_on)
            self._on, self.new = want_on, True

    def answer(self) -> None:
        """Write an answer to three queries, and obey between them.

        An output that is on though it was switched off, since the command was lost or somebody
        pressed its button, is switched off again; one that went off by itself stays off.
        """
        self.new = False
        asked_s = time.perf_counter()
        is_on = self._supply.is_on()
        if is_on and not self._on:
            self._supply.switch(False)
        self.obey()
        volts = self._supply.voltage_V()
        self.obey()
        self._post.answer(asked_s, volts, self._supply.current_A(), is_on)


def serve(post: Post, supply: Scpi, poll_s: float) -> None:
    """Switch the supply as the loop commands, and write its answers, until the loop ends.

    Raises
    ------
    SupplyError
        It does not accept a command to switch.
    """
    output, due_s, lost = Switch(post, supply), 0.0, False
    while not post.ends:
        output.obey()
        now_s = time.perf_counter()
        if output.new or now_s >= due_s:
            due_s = now_s + poll_s
            try:
                if lost:
                    supply.resynchronise(output.obey)
                output.answer()
                lost = False
            except SupplyError:
                lost = True  # the age of the last answer grows, and the guard trips on it
        time.sleep(LOOK_S)


def _off(supply: Scpi) -> bool:
    """Switch the output off; whether it took the command, else the error is printed."""
    try:
        supply.switch(False)
    except SupplyError as error:
        print(error, file=sys.stderr)
        return False
    return True


def main() -> int:
    """Serve the loop that started this process."""
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # through `finally`
    return run(sys.argv[1], json.loads(sys.argv[2]))


if __name__ == "__main__":
    sys.exit(main())
