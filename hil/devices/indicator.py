"""Lines of text from a force indicator: each has a number and its unit."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources

from hil.config.values import TomlTable
from hil.errors import one_line

G_M_PER_S2 = 9.80665  # standard gravity: what an indicator's kilogram is as a force
LBF_N = 4.4482216152605
NEWTONS: Mapping[str, float] = {
    "N": 1.0, "mN": 1e-3, "kN": 1e3, "kgf": G_M_PER_S2, "kg": G_M_PER_S2, "gf": 1e-3 * G_M_PER_S2,
    "g": 1e-3 * G_M_PER_S2, "mg": 1e-6 * G_M_PER_S2, "t": 1e3 * G_M_PER_S2, "lbf": LBF_N,
    "lb": LBF_N, "ozf": LBF_N / 16.0, "oz": LBF_N / 16.0,
}  # fmt: skip
OTHER_WORDS = {"lbs": "lb"}  # beside other cases, such as KG
BAD_LINES_MAX = 20  # in a row, after which the indicator speaks another format
LINE_MAX = 256  # bytes


@cache
def templates() -> Mapping[str, TomlTable]:
    """Output formats by name."""
    text = (resources.files("hil.devices") / "indicators.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


class Lines:
    """Newtons from lines of text; the last reading with the time at which its line was complete.

    Parameters
    ----------
    pattern : matches a whole line, with the groups `value`, and `unit`, `overload` and `minus` if
        any; a line where `minus` matches is negative
    unit : unit of the readings; a line with another one is an error
    begins_whole : whether the first bytes begin a line; else those up to its end are left out,
        because the half of a number is a number
    length : of a line, where lines have no end; 0: lines end with CR, LF or both

    Attributes
    ----------
    last : (force_N, t_s) of the last line; force_N is NaN on overload
    n_lines : lines that have come
    dropped, dropped_last : lines that the pattern does not match: their number, and the last one
    fault : why reading has ended; empty while it goes on
    """

    def __init__(
        self, pattern: str, unit: str, *, begins_whole: bool = True, length: int = 0
    ) -> None:
        self._begun = begins_whole
        self._pattern = re.compile(pattern)
        self._unit, self._length = unit, length
        self._rest = b""
        self._late, self._cut = 0, False  # bytes to be left out; whether that began at a request
        self._bad_lines = 0
        self.last: tuple[float, float] | None = None
        self.n_lines = self.dropped = 0
        self.dropped_last = self.fault = ""

    def forget(self) -> None:
        """Leave out the part of a line that has come, and its end, which may come late.

        Of lines without an end as many bytes are left out as are missing: from the next line, if
        they never come, which is then given up too.
        """
        if self._rest and self._length:
            self._late = 0 if self._cut else -len(self._rest) % self._length
        elif self._rest:
            self._begun = False
        self._cut, self._rest = self._late > 0, b""

    def take(self, data: bytes, t_s: float) -> None:
        """Take bytes that arrived until t_s; the part of a line at their end waits for the rest."""
        data, self._late = data[self._late :], max(0, self._late - len(data))
        *lines, self._rest = re.split(rb"[\r\n]+", self._rest + data)
        if self._length and len(self._rest) >= self._length:
            lines.append(self._rest[: self._length])
            self._rest = self._rest[self._length :]
        if len(self._rest) > LINE_MAX:
            self.fault = f"sends {len(self._rest)} bytes without an end of line: check its baud"
        for line in lines:
            if not self._begun:
                self._begun = True
            elif line.strip(b" \x00"):
                self._parse(line.decode("latin-1").strip(" \x00"), t_s)

    def _parse(self, line: str, t_s: float) -> None:
        self.n_lines += 1
        match = self._pattern.fullmatch(line)
        groups = match.groupdict() if match else {}
        value = _number(groups.get("value") or "")
        if value is None and not groups.get("overload"):
            self._bad_lines += 1
            self.dropped += 1
            self.dropped_last = one_line(line)[:40]
            if self._bad_lines > BAD_LINES_MAX:
                self.fault = (
                    f"sends '{one_line(line)[:40]}', which its template does not describe: choose "
                    "another template, or give a pattern"
                )
            return
        self._bad_lines = 0
        unit = _known(groups.get("unit") or self._unit)
        if unit != self._unit:
            self.fault = f"sends '{unit}', not '{self._unit}': set unit, or the indicator's display"
            return
        overload = groups.get("overload") or value is None
        sign = -1.0 if groups.get("minus") else 1.0
        newtons = float("nan") if overload or value is None else sign * value * NEWTONS[unit]
        self.last = newtons, t_s


def _known(unit: str) -> str:
    """The unit as `NEWTONS` has it, for one in other letters, such as KG; else the unit itself."""
    alike = [name for name in NEWTONS if name.lower() == unit.lower()]
    return alike[0] if len(alike) == 1 and unit not in NEWTONS else OTHER_WORDS.get(unit, unit)


def _number(text: str) -> float | None:
    try:
        return float(text.replace(" ", "").replace(",", "."))
    except ValueError:
        return None
