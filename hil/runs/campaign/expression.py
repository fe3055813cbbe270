"""Arithmetic expressions of a trial's figures, as a campaign's file has them; they run no code."""

from __future__ import annotations

import ast
import math
from collections.abc import Collection, Mapping

from hil.errors import ConfigError, missing_extra, one_line, remedy

FUNCTIONS = {"abs": abs, "max": max, "min": min, "sqrt": math.sqrt, "log": math.log}


class Expression:
    """An expression such as `0.5 * error_N + abs(offset_N)` or `force_max_N < 8.0`.

    Parameters
    ----------
    where : file and key, for messages
    text : numbers, names, `+ - * / ** ()`, comparisons, `and or not`, and FUNCTIONS

    Raises
    ------
    ConfigError
        The text is no expression, or the evaluator (simpleeval) is not installed.
    """

    def __init__(self, where: str, text: str) -> None:
        try:
            from simpleeval import SimpleEval
        except ImportError:
            raise missing_extra(where, "tune") from None
        self._where = f"{where} = '{text}'"
        self._text = text
        self._evaluator = SimpleEval(functions=FUNCTIONS)
        try:
            self._parsed = self._evaluator.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise ConfigError(one_line(f"{self._where}: no expression: {error}")) from None
        nodes = list(ast.walk(self._parsed))
        called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
        named = [node for node in nodes if isinstance(node, ast.Name) and id(node) not in called]
        self.names = list(dict.fromkeys(node.id for node in named))

    def check(self, known: Collection[str], *, answers: bool) -> None:
        """Refuse names that are not `known`, and a result that is no number.

        Parameters
        ----------
        answers : it must be true or false instead
        """
        if not self.names:
            raise ConfigError(f"{self._where}: names no measure: choose {', '.join(known)}")
        for name in self.names:
            if name not in known:
                raise ConfigError(
                    one_line(f"{self._where}: '{name}' is no measure{remedy(name, known)}")
                )
        # Where all are 1: of `a if b else c` only one side, and elsewhere roots may be complex.
        value = self._value(dict.fromkeys(self.names, 1.0))
        if value is not None and isinstance(value, bool) != answers:
            wanted = "a comparison, such as force_max_N < 8.0" if answers else "a number"
            raise ConfigError(f"{self._where}: give {wanted}")

    def value(self, figures: Mapping[str, float | None]) -> float | bool | None:
        """Its value for the figures of a trial.

        None if one of them is unknown, or it cannot be computed or is no finite real number there.
        """
        numbers = {name: figures.get(name) for name in self.names}
        if any(number is None for number in numbers.values()):
            return None
        try:
            value = self._value(numbers)
            return value if value is None or math.isfinite(value) else None
        except (ConfigError, OverflowError):  # an integer may exceed all floating-point numbers
            return None

    def _value(self, names: Mapping[str, float | None]) -> bool | float | None:
        from simpleeval import InvalidExpression

        self._evaluator.names = dict(names)
        try:
            value = self._evaluator.eval(self._text, previously_parsed=self._parsed)
        except (ArithmeticError, ValueError):
            return None
        except (InvalidExpression, TypeError, AttributeError, LookupError, SyntaxError,
                RecursionError, MemoryError) as error:  # fmt: skip
            raise ConfigError(one_line(f"{self._where}: no expression: {error}")) from None
        if isinstance(value, complex):
            return None
        if not isinstance(value, int | float):
            raise ConfigError(f"{self._where}: no expression of numbers")
        return value
