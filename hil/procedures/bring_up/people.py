"""Who is guided: somebody at the bench, or the simulated bench of a rehearsal."""

import sys
import time
from typing import Protocol

from hil.devices.board.self_test import SomebodyAtTheBench
from hil.platform.terminal import say
from hil.procedures.bring_up.bench import SimulatedBench
from hil.procedures.bring_up.line import Bench
from hil.procedures.bring_up.steps import Act
from hil.procedures.procedure import line_typed, typed_number


def tell(text: str) -> None:
    """A line for whoever is guided; the result alone goes to standard output."""
    say(text, file=sys.stderr)


class Guided(Bench, Protocol):
    """Does what the steps say."""

    def connect(self, stage: str, text: str) -> None:
        """Wire the bench for a stage."""
        ...

    def do(self, step: Act, at: str) -> bool:
        """Do what a step says, where nothing is measured; False: undo the step before."""
        ...

    def measure(self, step: Act, at: str) -> float | None:
        """Do it and read the meter; None: undo the step before."""
        ...


class Person(SomebodyAtTheBench):
    """Somebody at a terminal, who confirms with Enter and types what a meter shows."""

    def __init__(self) -> None:
        super().__init__(time.sleep)

    def now_s(self) -> float:
        return time.monotonic()

    def connect(self, stage: str, text: str) -> None:
        tell(f"{stage}: {text}: Enter once it is so")
        while typed := line_typed():
            tell(f"    '{typed}' is not Enter")

    def do(self, step: Act, at: str) -> bool:
        while True:
            tell(f"{at} {step.prompt}: Enter (u: undo)")
            text = line_typed()
            if text in ("", "u"):
                return not text
            tell(f"    '{text}' is neither Enter nor u")

    def measure(self, step: Act, at: str) -> float | None:
        doubted = None
        low, high = step.likely
        while True:
            tell(f"{at} {step.prompt}: type it in {step.unit} (u: undo)")
            text = line_typed()
            if text == "u":
                return None
            try:
                value = typed_number(text, step.unit)
            except ValueError as error:
                tell(f"    {error}")
                continue
            if low <= value <= high or value == doubted:
                return value
            doubted = value
            tell(
                f"    {value:g} {step.unit}: {low:.3g} to {high:.3g} {step.unit} was expected: "
                "type it again if the meter shows it"
            )


class Rehearsing:
    """The simulated bench, with every step printed beside what was done and read."""

    def __init__(self, bench: SimulatedBench) -> None:
        self._bench = bench

    def wait(self, duration_s: float) -> None:
        self._bench.wait(duration_s)

    def now_s(self) -> float:
        return self._bench.now_s()

    def set_estop(self, is_open: bool) -> bool:
        return self._bench.set_estop(is_open)

    def connect(self, stage: str, text: str) -> None:
        tell(f"{stage}: {text}")
        self._bench.connect(stage)

    def do(self, step: Act, at: str) -> bool:
        tell(f"{at} {step.prompt}")
        self._bench.do(step.key)
        return True

    def measure(self, step: Act, at: str) -> float | None:
        value = self._bench.do(step.key)
        tell(f"{at} {step.prompt}: {value:g} {step.unit}")
        return value
