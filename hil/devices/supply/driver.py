"""A bench supply: the loop's side of it, the same on the bench and in simulation.

A supply answers slowly, so the loop never waits for it: a separate process
(`hil.devices.supply.process`) polls it and puts the last answer and its time into shared memory.
Every command is verified by a later answer.
"""

import json
import math
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hil.errors import DeviceError
from hil.loop.channels import Readings
from hil.loop.frame import Column, Commands, Frame
from hil.loop.stages import Message
from hil.platform import shared_memory
from hil.platform.processes import APART, PYTHON

SILENT, WRONG, NOT_OFF = 1, 2, 4
FLAGS = ("silent", "wrong", "not_off")
# Shared memory between loop and process. `asked_s` is the time of the query, `t_s` the time of its
# answer; `count` is odd while the answer is being written.
SHARED = np.dtype(
    [
        ("count", "<i8"), ("asked_s", "<f8"), ("t_s", "<f8"), ("voltage_V", "<f8"),
        ("current_A", "<f8"), ("on", "<f8"), ("state", "<i8"), ("text", "S240"),
        ("want_on", "<i8"), ("alive_s", "<f8"), ("end", "<i8"),
    ]
)  # fmt: skip
STARTING, READY, FAILED = range(3)
START_MAX_S = 20.0
LOOK_S = 0.005


@dataclass(frozen=True)
class Settings:
    """Set values and limits of a supply; see `hil.devices.supply_table`."""

    voltage_V: float
    current_A: float
    tolerance_V: float
    answer_max_s: float
    obey_max_s: float


@dataclass
class Answer:
    """Last answer, with times on the device's clock; NaN before the first answer."""

    asked_s: float = -math.inf
    t_s: float = -math.inf
    voltage_V: float = math.nan
    current_A: float = math.nan
    on: float = math.nan


class Watch:
    """Compares a supply's answers with its commands.

    Attributes
    ----------
    want_on : last command; off at first
    since_s : time of the last command
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.want_on = False
        self.since_s = -math.inf

    def tell(self, want_on: bool, now_s: float) -> bool:
        """Set the command; returns whether it has changed."""
        if want_on == self.want_on:
            return False
        self.want_on, self.since_s = want_on, now_s
        return True

    def confirmed(self, answer: Answer) -> bool:
        """Whether an answer to a query after the command confirms the command."""
        return answer.asked_s >= self.since_s and self._as_commanded(answer)

    def _as_commanded(self, answer: Answer) -> bool:
        if not self.want_on:
            return answer.on == 0.0
        s = self._settings
        return answer.on == 1.0 and abs(answer.voltage_V - s.voltage_V) <= s.tolerance_V

    def faults(self, answer: Answer, now_s: float) -> int:
        """Faults at a time, as bits of FLAGS."""
        s = self._settings
        late = now_s - self.since_s > s.obey_max_s
        bits = 0
        if now_s - answer.t_s > s.answer_max_s and now_s - self.since_s > s.answer_max_s:
            bits |= SILENT
        heard = answer.asked_s >= self.since_s
        if self.want_on:
            if (late and heard and not self._as_commanded(answer)) or (
                answer.on == 1.0 and answer.voltage_V > s.voltage_V + s.tolerance_V
            ):
                bits |= WRONG
        elif late and not self.confirmed(answer):
            bits |= NOT_OFF
        return bits


class SupplyDevice:
    """Base of the real and the simulated supply: columns, readings and faults."""

    simulated = False

    def __init__(self, name: str, settings: Settings) -> None:
        self.name = name
        self.settings = settings
        self.answer = Answer()
        self.watch = Watch(settings)
        self._messages: list[Message] = []

    @property
    def columns(self) -> list[Column]:
        name, sim = self.name, self.simulated
        s = self.settings
        set_values = f"set to {s.voltage_V:g} V and {s.current_A:g} A"
        rows: tuple[tuple[str, str, str], ...] = (
            (f"{name}_age_s", "s", f"age of {name}'s last answer at the tick"),
            (f"{name}_t_s", "s", f"when {name} gave it"),
            (f"{name}_voltage_V", "V", f"voltage it measures, {set_values}"),
            (f"{name}_current_A", "A", f"current it measures, {set_values}"),
            (f"{name}_on", "1", "whether it reports its output on"),
        )
        columns = [
            Column(n, unit, "timing" if unit == "s" else "measured", about, simulated=sim)
            for n, unit, about in rows
        ]
        columns.append(Column(f"{name}_on_told", "1", "state", "whether it is commanded on"))
        about = f"what is wrong with {name} at this tick"
        columns.append(
            Column(f"{name}_fault_bits", "1", "fault", about, flags=FLAGS, simulated=sim)
        )
        return columns

    def bind(self, frame: Frame, readings: Readings) -> None:
        self._row = frame.span([c.name for c in self.columns if not c.flags])
        self._bits = frame.bits
        self._faults_at = frame.bit_index(f"{self.name}_fault_bits")

    def messages(self) -> list[Message]:
        messages, self._messages = self._messages, []
        return messages

    def _note(self, now_s: float, t_s: float) -> None:
        """Write the last answer and its faults into the row."""
        a = self.answer
        age_s = now_s - a.t_s
        known = math.isfinite(age_s)
        values = (
            age_s if known else math.nan,
            t_s - age_s if known else math.nan,
            a.voltage_V,
            a.current_A,
            a.on,
            float(self.watch.want_on),
        )
        self._row[:] = values
        faults = self.watch.faults(a, now_s)
        self._bits[self._faults_at] = faults

    def troubles(self) -> dict[str, list[str]]:
        """Its faults as text, by the interlock that each one trips."""
        faults = int(self._bits[self._faults_at])
        s, name, (age_s, _, voltage_V, _, on, _) = self.settings, self.name, self._row
        output = f"{name} {voltage_V:.4g} V with its output {'on' if on else 'off'}"
        words = {
            SILENT: f"{name}'s last answer is {age_s:.3g} s old, limit {s.answer_max_s:g} s "
                    f"(devices.{name}.answer_max_s)",
            WRONG: f"{output}, set to {s.voltage_V:g} V, tolerance {s.tolerance_V:g} V "
                   f"(devices.{name}.voltage_tolerance_V)",
            NOT_OFF: f"{output}, commanded off, limit {s.obey_max_s:g} s "
                     f"(devices.{name}.obey_max_s)",
        }  # fmt: skip
        return {f"supply_{flag}": [words[1 << i]]
                for i, flag in enumerate(FLAGS) if faults >> i & 1}  # fmt: skip

    def set_values(self) -> str:
        """Its set values as text."""
        return f"{self.settings.voltage_V:g} V, at most {self.settings.current_A:g} A"


class Supply(SupplyDevice):
    """A supply on the bench, polled by its process.

    Parameters
    ----------
    job : arguments of the process: resource, dialect, values; see `hil.devices.supply.process`
    now_s, sleep_s : the computer's clock, which the process also uses, and a sleep
    """

    def __init__(
        self,
        name: str,
        settings: Settings,
        job: dict[str, object],
        now_s: Callable[[], float],
        sleep_s: Callable[[float], None],
    ) -> None:
        super().__init__(name, settings)
        self._job = job
        self._now_s = now_s
        self._sleep_s = sleep_s
        self._process: subprocess.Popen[str] | None = None
        self._shared: np.ndarray[tuple[int], np.dtype[np.void]] | None = None

    def open(self) -> None:
        """Start its process, which switches the supply off, sets its values and reads them back.

        Raises
        ------
        DeviceError
            The supply is missing, does not answer, or does not accept its values.
        """
        shared_memory.sweep(shared_memory.folder())
        path, file = shared_memory.create(shared_memory.folder(), "supply")
        with file:
            shared = np.memmap(file, dtype=SHARED, mode="w+", shape=(1,))
        shared["on"] = shared["voltage_V"] = shared["current_A"] = math.nan
        shared["asked_s"] = shared["t_s"] = -math.inf
        self._shared = shared
        command = [
            *PYTHON,
            "-m",
            "hil.devices.supply.process",
            str(path),
            json.dumps(self._job),
        ]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,  # closed when the loop's process ends
            stderr=subprocess.PIPE,
            text=True,
            **APART,  # Ctrl-C must reach only the loop, which then switches off
        )
        until_s = self._now_s() + START_MAX_S
        while shared["state"][0] == STARTING and self._now_s() < until_s:
            if self._process.poll() is not None:
                break
            self._sleep_s(LOOK_S)
        path.unlink()
        if shared["state"][0] != READY:
            why = self._why() or f"no answer within {START_MAX_S:g} s"
            self.close()
            raise DeviceError(f"{self.name}: {why}")
        self.watch.since_s = self._now_s()
        identity = shared["text"][0].decode(errors="replace")
        self._messages.append(Message("info", f"{identity}: {self.set_values()}"))

    def _why(self) -> str:
        shared, process = self._shared, self._process
        if shared is not None and shared["state"][0] == FAILED:
            return str(shared["text"][0].decode(errors="replace"))
        if process is None or process.poll() is None:
            return ""
        lines = (process.stderr.read() if process.stderr else "").strip().splitlines()
        return f"its process ended: {lines[-1] if lines else 'without a message'}"

    def _take(self) -> None:
        """Take the last complete answer; skip one that is being written now."""
        shared = self._shared
        if shared is None:
            raise DeviceError(f"{self.name}: is not open")
        before = int(shared["count"][0])
        a = Answer(
            *(float(shared[n][0]) for n in ("asked_s", "t_s", "voltage_V", "current_A", "on"))
        )
        if before % 2 == 0 and int(shared["count"][0]) == before:
            self.answer = a
        if shared["state"][0] == FAILED:
            raise DeviceError(f"{self.name}: {self._why()}")

    def _tell(self, want_on: bool) -> None:
        if self._shared is None:
            raise DeviceError(f"{self.name}: is not open")
        now_s = self._now_s()
        self._shared["alive_s"] = now_s
        if self.watch.tell(want_on, now_s):
            self._shared["want_on"] = int(want_on)

    def enable(self) -> None:
        """Command the output on; `ready` returns whether it is on."""
        self._tell(True)

    def arm(self) -> None:
        """Do nothing: the output is already on."""

    def alive(self) -> None:
        """Send the heartbeat to its process."""
        if self._shared is not None:
            self._shared["alive_s"] = self._now_s()

    def disable(self) -> None:
        """Command the output off; `safe` waits until it is."""
        if self._shared is not None:
            self._tell(False)

    def ready(self) -> bool:
        """Whether it reports its output on at the set voltage."""
        return self.watch.want_on and self.watch.confirmed(self.answer)

    def wait(self) -> None:
        """Block until it is on; called before the first tick.

        Raises
        ------
        DeviceError
            It is not on in time.
        """
        self._wait_until(self.ready, "on")

    def _wait_until(self, confirmed: Callable[[], bool], what: str) -> None:
        s = self.settings
        began_s = self._now_s()
        within_s = s.obey_max_s + s.answer_max_s  # time to execute, and time to answer
        while True:
            self._take()
            if confirmed():
                return
            self._tell(self.watch.want_on)
            if self._now_s() - began_s > within_s:
                break
            self._sleep_s(LOOK_S)
        heard = self.answer.asked_s >= self.watch.since_s
        report = "no answer" if not heard else f"it reports {self._answer_as_text()}"
        remedy = "" if what == "on" else ": SWITCH IT OFF BY HAND"
        raise DeviceError(f"{self.name}: commanded {what}, after {within_s:.3g} s {report}{remedy}")

    def _answer_as_text(self) -> str:
        a = self.answer
        return f"output {'on' if a.on else 'off'}, {a.voltage_V:.4g} V, {a.current_A:.3g} A"

    def self_test(self, say: Callable[[str], None]) -> list[str]:
        """Switch off after the boards' self-test, which needed its power, and verify it.

        Raises
        ------
        DeviceError
            It does not report its output off in time.
        """
        began_s = self._now_s()
        self.safe()
        return [f"was on at its voltage, and off {self._now_s() - began_s:.2g} s after the command"]

    def read(self, t_s: float) -> None:
        self._take()
        self._note(self._now_s(), t_s)

    def write(self, t_s: float, commands: Commands) -> None:
        self._tell(bool(commands.enabled[0]))

    def safe(self) -> None:
        """Switch the output off and verify its answer.

        Raises
        ------
        DeviceError
            It does not report its output off in time.
        """
        if self._shared is None:
            return
        self._tell(False)
        self._wait_until(lambda: self.watch.confirmed(self.answer), "off")

    def close(self) -> None:
        """End its process, which switches the output off again."""
        process, shared = self._process, self._shared
        self._process = self._shared = None
        if shared is not None:
            shared["end"] = 1
        if process is not None:
            try:
                process.communicate(timeout=START_MAX_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                raise DeviceError(
                    f"{self.name}: its process did not end: CHECK THE SUPPLY"
                ) from None
