"""A bench supply: what the loop knows of it, on the bench and simulated alike.

It is slow, so that the loop never waits for it: a process of its own (`hil.devices.supply.process`)
asks it and leaves the last answer where the loop finds it with its age. What it is told is verified
by what it answers.
"""

import json
import math
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hil.errors import DeviceError
from hil.loop.channels import Readings
from hil.loop.frame import Column, Commands, Frame
from hil.loop.stages import Message
from hil.platform import shared_memory

SILENT, WRONG, NOT_OFF = 1, 2, 4
FLAGS = ("silent", "wrong", "not_off")
# What loop and process leave each other, in a file of shared memory. `asked_s` is when the answer
# was asked for, `t_s` when it was there, `count` odd while it is being written.
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
    """What a supply is told, and what is expected of it; see `hil.rig.supply_table`."""

    voltage_V: float
    current_A: float
    tolerance_V: float
    answer_max_s: float
    obey_max_s: float


@dataclass
class Answer:
    """What it said last, on the clock of the device: NaN before the first answer."""

    asked_s: float = -math.inf
    t_s: float = -math.inf
    voltage_V: float = math.nan
    current_A: float = math.nan
    on: float = math.nan


class Watch:
    """Compares what a supply answers with what it was told.

    Attributes
    ----------
    want_on, since_s : what it was told last, and when; off, when it was opened
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.want_on = False
        self.since_s = -math.inf

    def tell(self, want_on: bool, now_s: float) -> bool:
        """It is told this now; whether that is news."""
        if want_on == self.want_on:
            return False
        self.want_on, self.since_s = want_on, now_s
        return True

    def confirmed(self, answer: Answer) -> bool:
        """An answer that was asked for after the command says that it is obeyed."""
        return answer.asked_s >= self.since_s and self._as_commanded(answer)

    def _as_commanded(self, answer: Answer) -> bool:
        if not self.want_on:
            return answer.on == 0.0
        s = self._settings
        return answer.on == 1.0 and abs(answer.voltage_V - s.voltage_V) <= s.tolerance_V

    def faults(self, answer: Answer, now_s: float) -> int:
        """Bits of FLAGS."""
        s = self._settings
        late = now_s - self.since_s > s.obey_max_s
        found = 0
        if now_s - answer.t_s > s.answer_max_s and now_s - self.since_s > s.answer_max_s:
            found |= SILENT
        heard = answer.asked_s >= self.since_s
        if self.want_on:
            if (late and heard and not self._as_commanded(answer)) or (
                answer.on == 1.0 and answer.voltage_V > s.voltage_V + s.tolerance_V
            ):
                found |= WRONG
        elif late and not self.confirmed(answer):
            found |= NOT_OFF
        return found


class SupplyDevice:
    """What both supplies have in common: columns, readings and faults."""

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
        found, self._messages = self._messages, []
        return found

    def _note(self, now_s: float, t_s: float) -> None:
        """The last answer into the row, and what the guard thinks of it."""
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
        """What is wrong with it, in words, by the row of the interlocks that it trips."""
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
        """What it is told, for people."""
        return f"{self.settings.voltage_V:g} V, at most {self.settings.current_A:g} A"


class Supply(SupplyDevice):
    """A supply on the bench, behind its process.

    Parameters
    ----------
    job : what the process is told: resource, dialect, values; see `hil.devices.supply.process`
    now_s, sleep_s : the machine's clock, which the process shares
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
        """Start its process, which finds it, switches it off, and sets and reads back its values.

        Raises
        ------
        DeviceError
            It is not there, does not answer, or does not take its values.
        """
        shared_memory.sweep(shared_memory.folder())
        path, file = shared_memory.create(shared_memory.folder(), "supply")
        with file:
            shared = np.memmap(file, dtype=SHARED, mode="w+", shape=(1,))
        shared["on"] = shared["voltage_V"] = shared["current_A"] = math.nan
        shared["asked_s"] = shared["t_s"] = -math.inf
        self._shared = shared
        command = [
            sys.executable,
            "-m",
            "hil.devices.supply.process",
            str(path),
            json.dumps(self._job),
        ]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,  # its end says that the loop's process has gone
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # a terminal's Ctrl-C is for the loop, which switches off
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
        said = (process.stderr.read() if process.stderr else "").strip().splitlines()
        return f"its process ended: {said[-1] if said else 'no word'}"

    def _take(self) -> None:
        """The last whole answer; one that is being written is taken at the next look."""
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
        """Told to be on; `ready` says when it is."""
        self._tell(True)

    def arm(self) -> None:
        """It is on by then."""

    def alive(self) -> None:
        """Its process hears that the loop lives."""
        if self._shared is not None:
            self._shared["alive_s"] = self._now_s()

    def disable(self) -> None:
        """Told to be off; `safe` waits for it."""
        if self._shared is not None:
            self._tell(False)

    def ready(self) -> bool:
        """It says that it is on, at its voltage."""
        return self.watch.want_on and self.watch.confirmed(self.answer)

    def wait(self) -> None:
        """Return when it is ready, before the first tick.

        Raises
        ------
        DeviceError
            It does not obey in time.
        """
        self._until(self.ready, "on")

    def _until(self, there: Callable[[], bool], what: str) -> None:
        s = self.settings
        began_s = self._now_s()
        within_s = s.obey_max_s + s.answer_max_s  # it may obey and its answer be late
        while True:
            self._take()
            if there():
                return
            self._tell(self.watch.want_on)
            if self._now_s() - began_s > within_s:
                break
            self._sleep_s(LOOK_S)
        heard = self.answer.asked_s >= self.watch.since_s
        said = "no answer" if not heard else f"it reports {self._said()}"
        cut = "" if what == "on" else ": SWITCH IT OFF BY HAND"
        raise DeviceError(f"{self.name}: commanded {what}, after {within_s:.3g} s {said}{cut}")

    def _said(self) -> str:
        a = self.answer
        return f"output {'on' if a.on else 'off'}, {a.voltage_V:.4g} V, {a.current_A:.3g} A"

    def self_test(self, say: Callable[[str], None]) -> list[str]:
        """Told to be on before, it was; told to be off, it is, and says so.

        Raises
        ------
        DeviceError
            It does not say so in time.
        """
        began_s = self._now_s()
        self.safe()
        return [f"was on at its voltage, and off {self._now_s() - began_s:.2g} s after its cut"]

    def read(self, t_s: float) -> None:
        self._take()
        self._note(self._now_s(), t_s)

    def write(self, t_s: float, commands: Commands) -> None:
        self._tell(bool(commands.enabled[0]))

    def safe(self) -> None:
        """Off, and verified by what it answers.

        Raises
        ------
        DeviceError
            It does not say in time that it is off.
        """
        if self._shared is None:
            return
        self._tell(False)
        self._until(lambda: self.watch.confirmed(self.answer), "off")

    def close(self) -> None:
        """End its process, which switches the output off once more."""
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
