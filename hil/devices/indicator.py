"""Lines of text from a force indicator: each has a number and its unit."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources

from hil.errors import one_line

G_M_PER_S2 = 9.80665  # standard gravity: what an indicator's kilogram is as a force
LBF_N = 4.4482216152605
NEWTONS: Mapping[str, float] = {
    "N": 1.0, "mN": 1e-3, "kN": 1e3, "kgf": G_M_PER_S2, "kg": G_M_PER_S2, "gf": 1e-3 * G_M_PER_S2,
    "g": 1e-3 * G_M_PER_S2, "mg": 1e-6 * G_M_PER_S2, "t": 1e3 * G_M_PER_S2, "lbf": LBF_N,
    "lb": LBF_N, "ozf": LBF_N / 16.0, "oz": LBF_N / 16.0,
}  # fmt: skip
BAD_LINES_MAX = 20  # in a row, after which the indicator speaks another format
LINE_MAX = 256  # bytes


@cache
def templates() -> Mapping[str, Mapping[str, str]]:
    """Output formats by name."""
    text = (resources.files("hil.devices") / "indicators.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


class Lines:
    """Newtons from lines of text; the last reading with the time at which its line was complete.

    Parameters
    ----------
    pattern : matches a whole line, with the groups `value`, and `unit` and `overload` if any
    unit : unit of the readings; a line with another one is an error
    begins_whole : whether the first bytes begin a line; else those up to its end are left out,
        because the half of a number is a number

    Attributes
    ----------
    last : (force_N, t_s) of the last line; force_N is NaN on overload
    fault : why reading has ended; empty while it goes on
    """

    def __init__(self, pattern: str, unit: str, *, begins_whole: bool = True) -> None:
        self._begun = begins_whole
        self._pattern = re.compile(pattern)
        self._unit = unit
        self._rest = b""
        self._bad_lines = 0
        self.last: tuple[float, float] | None = None
        self.fault = ""

    def take(self, data: bytes, t_s: float) -> None:
        """Take bytes that arrived until t_s; the part of a line at their end waits for the rest."""
        *lines, self._rest = re.split(rb"[\r\n]+", self._rest + data)
        if len(self._rest) > LINE_MAX:
            self.fault = f"sends {len(self._rest)} bytes without an end of line: check its baud"
        for line in lines:
            if not self._begun:
                self._begun = True
            elif line.strip(b" \x00"):
                self._parse(line.decode("latin-1").strip(" \x00"), t_s)

    def _parse(self, line: str, t_s: float) -> None:
        match = self._pattern.fullmatch(line)
        groups = match.groupdict() if match else {}
        value = _number(groups.get("value", ""))
        if value is None and not groups.get("overload"):
            self._bad_lines += 1
            if self._bad_lines > BAD_LINES_MAX:
                self.fault = (
                    f"sends '{one_line(line)[:40]}', which its template does not describe: choose "
                    "another template, or give a pattern"
                )
            return
        self._bad_lines = 0
        unit = groups.get("unit") or self._unit
        if unit != self._unit:
            self.fault = f"sends '{unit}', not '{self._unit}': set unit, or the indicator's display"
            return
        overload = groups.get("overload") or value is None
        self.last = (float("nan") if overload else value * NEWTONS[unit], t_s)  # type: ignore[operator]


def _number(text: str) -> float | None:
    try:
        return float(text.replace(" ", "").replace(",", "."))
    except ValueError:
        return None
