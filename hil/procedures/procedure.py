"""The readings of a procedure and their journal, which survives a killed process.

Every reading is a line of the journal and is on disk before the next one is requested. The same
command continues after the last reading; a journal of another session is refused.
"""

import json
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from hil.calibration.files import digest
from hil.config.values import Figures
from hil.errors import ConfigError, one_line, writing
from hil.procedures.session_file import AnySession
from hil.record.append_log import Entry


@dataclass(frozen=True)
class Step:
    """One reading.

    Attributes
    ----------
    key : its name in the journal
    prompt : instruction to the person at the bench
    unit : unit of the reading; "" for a reading that the program takes itself
    """

    key: str
    prompt: str
    unit: str


Readings = Figures
Read = Callable[[Step, int], object]


class Rehearsal(Protocol):
    """A simulated article with known values, read with noise."""

    @property
    def truth(self) -> dict[str, float]:
        """The true values, by the names of the record."""
        ...

    def read(self, step: Step, seed: int) -> float: ...


A = TypeVar("A", bound=AnySession)


class Typed(Protocol[A]):
    """A procedure whose readings are typed, or read from a channel at rest."""

    KIND: str
    METHOD: str
    Session: type[A]

    def steps(self, session: A) -> list[Step]:
        """Every reading in order; ConfigError for settings that cannot be calibrated."""
        ...

    def rehearsal(self, session: A, seed: int) -> Rehearsal: ...

    def finish(self, session: A, readings: Readings) -> dict[str, object]:
        """`[model]` and further tables of the record; ConfigError for wrong readings."""
        ...


class Journal:
    """Readings on disk, one line each.

    Parameters
    ----------
    path : beside the future record
    of : identifies the session; a journal of another session is refused
    """

    def __init__(self, path: Path, of: Mapping[str, object]) -> None:
        self.path = path
        self.readings: Figures = {}
        head = {"journal": "hil-calibration-journal/1", "of": digest(dict(of))}
        if path.exists():
            self._read(head)
        else:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise ConfigError(f"{path.parent}: cannot be made ({error.strerror})") from None
            self._append(head)

    def _read(self, head: Entry) -> None:
        try:
            lines = self.path.read_bytes().split(b"\n")
        except OSError as error:
            raise ConfigError(f"{self.path}: cannot be read ({error.strerror})") from None
        # Bytes after the last newline are an incomplete line.
        complete, incomplete = lines[:-1], lines[-1]
        try:
            entries = [json.loads(line) for line in complete]
        except ValueError:
            raise self.damaged() from None
        if entries and entries[0] != head:
            raise ConfigError(
                f"{self.path}: holds readings of another session: finish that session, remove "
                "the journal, or choose another --out"
            )
        for line in entries[1:]:
            match line:
                case {"undo": str(key)}:
                    self.readings.pop(key, None)
                case {"key": str(key), "value": value}:
                    self.readings[key] = value
                case _:
                    raise self.damaged()
        if incomplete or not entries:
            kept = b"".join(line + b"\n" for line in complete)
            with self.path.open("r+b") as file:
                file.truncate(len(kept))
            if not entries:
                self._append(head)

    def damaged(self) -> ConfigError:
        """What a journal that somebody changed by hand is refused with."""
        return ConfigError(f"{self.path}: is damaged: remove it and start again")

    def add(self, key: str, value: object) -> None:
        self._append({"key": key, "value": value})
        self.readings[key] = value

    def undo(self, key: str) -> None:
        self._append({"undo": key})
        self.readings.pop(key, None)

    def _append(self, line: Mapping[str, object]) -> None:
        with writing(self.path), self.path.open("ab") as file:
            file.write(json.dumps(line).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def close(self) -> None:
        """Delete the journal, after the record was written."""
        self.path.unlink(missing_ok=True)


def gather(steps: Sequence[Step], journal: Journal, read: Read) -> Figures:
    """Take every reading that the journal lacks, in order; returns all readings.

    `read` returns None to undo the previous reading.
    """
    i = 0
    while i < len(steps):
        step = steps[i]
        if step.key in journal.readings:
            i += 1
            continue
        value = read(step, i)
        if value is not None:
            journal.add(step.key, value)
            i += 1
        elif i > 0:
            i -= 1
            journal.undo(steps[i].key)
    return dict(journal.readings)


def ask(n_steps: int, channel: Callable[[str], float] | None = None) -> Read:
    """A function that reads standard input for every reading.

    An empty line reads the rig's channel if there is one; `u` undoes the last reading.
    """

    def read(step: Step, i: int) -> float | None:
        how = "Enter reads the channel" if channel is not None else f"type it in {step.unit}"
        while True:
            print(f"[{i + 1}/{n_steps}] {step.prompt}: {how} (u: undo)", file=sys.stderr)
            text = line_typed()
            if text == "u":
                return None
            if not text and channel is not None:
                value = channel(step.unit)
                print(f"    {value:.6g} {step.unit}", file=sys.stderr)
                return value
            try:
                return typed_number(text, step.unit)
            except ValueError as error:
                print(f"    {error}", file=sys.stderr)

    return read


def line_typed() -> str:
    """A line of standard input; KeyboardInterrupt at its end: the journal keeps the readings."""
    line = sys.stdin.readline()
    if not line:
        raise KeyboardInterrupt
    return one_line(line.strip())


def typed_number(text: str, unit: str) -> float:
    """A reading as it was typed; ValueError, with what to type, for anything else."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isfinite(value):
        return value
    point = ", with a decimal point" if "," in text else ""
    raise ValueError(f"'{text}' is not a number: a reading in {unit}{point}")
