"""The operator of a campaign: a person at the terminal, or a script."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from hil.config.files import read_toml
from hil.config.values import TomlTable
from hil.errors import ConfigError, one_line
from hil.runs.campaign.tables import CampaignTables, QuestionTable

Answer = str | float | bool
YES_NO = {"y": True, "yes": True, "n": False, "no": False}

Choice = TypeVar("Choice", bound=str)


class Operator(Protocol):
    """Answers questions, follows instructions and makes decisions.

    Attributes
    ----------
    waits : whether an answer takes a person, and so time
    """

    waits: bool

    def ask(self, name: str, question: QuestionTable) -> Answer:
        """Return the answer to a question."""
        ...

    def tell(self, text: str) -> None:
        """Give an instruction; blocks until it is done."""
        ...

    def decide(self, text: str, choices: Sequence[Choice]) -> Choice:
        """Return one of the choices."""
        ...


class SomebodyAtTheTerminal:
    """Prompts on standard error and reads standard input until the answer is valid."""

    waits = True

    def ask(self, name: str, question: QuestionTable) -> Answer:
        hint = {"number": " [a number]", "yes_no": " [y/n]", "text": ""}.get(question.kind, "")
        if question.kind == "choice":
            hint = f" [{'/'.join(question.choices)}]"
        while True:
            answer = _parsed(question, _line(f"{question.ask}{hint} "))
            if answer is not None:
                return answer
            print(f"  that is not a valid answer:{hint or ' type some text'}", file=sys.stderr)

    def tell(self, text: str) -> None:
        _line(f"{text}, then press Enter ")

    def decide(self, text: str, choices: Sequence[Choice]) -> Choice:
        while True:
            answer = _line(f"{text} [{'/'.join(choices)}] ").lower()
            fitting = [choice for choice in choices if answer and choice.startswith(answer)]
            if len(fitting) == 1:
                return fitting[0]


class Script:
    """Answers from a mapping; without an entry, the default answer of a rehearsal.

    Parameters
    ----------
    answers : by question; of a list, each call takes the next answer and then repeats the last
    """

    waits = False

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self._answers = {k: list(v) if isinstance(v, list) else [v] for k, v in answers.items()}

    def ask(self, name: str, question: QuestionTable) -> Answer:
        left = self._answers.get(name)
        if left is None:
            return question.scripted
        answer: Answer = left.pop(0) if len(left) > 1 else left[0]
        return answer

    def tell(self, text: str) -> None:
        """Does nothing: the instruction counts as done."""

    def decide(self, text: str, choices: Sequence[Choice]) -> Choice:
        return choices[choices.index("stop")]


def operator_for(
    path: Path, tables: CampaignTables, answers: Path | None, rehearsal: bool
) -> Operator:
    """The operator of a campaign.

    Raises
    ------
    ConfigError
        A person is needed and there is no terminal; or answers do not match the questions.
    """
    if answers is not None:
        return Script(_answers(path, tables, answers, rehearsal))
    if rehearsal:
        return Script({})
    if not sys.stdin.isatty() and (needs := _needs(tables)):
        raise ConfigError(
            f"{path}: {needs} needs somebody at a terminal, and standard input is not a terminal: "
            "run it in a terminal, or give --answers FILE.toml"
        )
    return SomebodyAtTheTerminal()


def _needs(tables: CampaignTables) -> str:
    """The first key that needs a person; empty if none."""
    needs = [f"questions.{name}" for name in tables.questions]
    needs += [f"factors.{name}.tell" for name, f in tables.factors.items() if f.tell is not None]
    if tables.after_trip.do == "ask":
        needs.append("after_trip.do = 'ask'")
    if tables.wait is not None and tables.wait.otherwise == "ask":
        needs.append("wait.otherwise = 'ask'")
    return needs[0] if needs else ""


def _answers(path: Path, tables: CampaignTables, source: Path, rehearsal: bool) -> TomlTable:
    answers = read_toml(source)
    for name, value in answers.items():
        question = tables.questions.get(name)
        if question is None:
            known = ", ".join(tables.questions) or "none"
            raise ConfigError(
                one_line(f"{source}: {name}: {path} has no such question: it has {known}")
            )
        several = value if isinstance(value, list) else [value]
        for one in several or [None]:
            if not question.takes(one):
                raise ConfigError(
                    one_line(f"{source}: {name} = {one!r}: not an answer of kind '{question.kind}'")
                )
    missing = [name for name in tables.questions if name not in answers]
    if missing and not rehearsal:
        raise ConfigError(f"{source}: {missing[0]}: missing: every question needs an answer")
    return answers


def _parsed(question: QuestionTable, text: str) -> Answer | None:
    if question.kind == "number":
        try:
            value = float(text)
        except ValueError:
            return None
        return value if value - value == 0.0 else None
    if question.kind == "yes_no":
        return YES_NO.get(text.lower())
    return text if text and question.takes(text) else None


def _line(prompt: str) -> str:
    """The typed line; end of input counts as Ctrl-C."""
    print(prompt, end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    if not line:
        raise KeyboardInterrupt
    return "".join(c for c in line.strip() if c.isprintable())
