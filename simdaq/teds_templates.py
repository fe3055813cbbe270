"""Values in a transducer electronic data sheet, by the templates of IEEE 1451.4."""

from __future__ import annotations

import struct
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from simdaq import errors
from simdaq.errors import DaqmxError

FILE = Path(__file__).parent / "teds_templates.toml"
BASIC_BITS, SELECTOR_BITS, ID_BITS, SINGLE_BITS = 64, 2, 8, 32


class Reader:
    """Takes numbers from bits, the lowest bit of the lowest byte first."""

    def __init__(self, data: bytes, position: int) -> None:
        self._whole = int.from_bytes(data, "little")
        self._n_bits = 8 * len(data)
        self._position = position

    def take(self, n: int) -> int:
        """The next n bits as an unsigned number."""
        if self._position + n > self._n_bits:
            raise DaqmxError(errors.BAD_TEDS, "The data end within the template.")
        value = (self._whole >> self._position) & ((1 << n) - 1)
        self._position += n
        return value


@cache
def templates() -> dict[int, dict[str, Any]]:
    """The templates that are described, by number."""
    return {int(key): table for key, table in tomllib.loads(FILE.read_text()).items()}


def template_id(data: bytes) -> int:
    """The number of the template that follows the basic TEDS."""
    return Reader(data, BASIC_BITS + SELECTOR_BITS).take(ID_BITS)


def decode(data: bytes) -> dict[str, float]:
    """Fields of the template that follows the basic TEDS.

    Raises
    ------
    DaqmxError
        The template, or a variant that the data select, is not described; the data are too short.
    """
    number = template_id(data)
    if number not in templates():
        raise _not_described(number, "")
    reader = Reader(data, BASIC_BITS + SELECTOR_BITS + ID_BITS)
    values: dict[str, float] = {}
    for field in templates()[number]["fields"]:
        if any(values[key] != value for key, value in field.get("when", {}).items()):
            continue
        value = _value(reader, field)
        if value != field.get("only", value):
            raise _not_described(number, field["name"])
        values[field["name"]] = value
    return values


def _value(reader: Reader, field: dict[str, Any]) -> float:
    if "value" in field:
        return float(field["value"])
    if field.get("single"):
        return float(struct.unpack("<f", reader.take(SINGLE_BITS).to_bytes(4, "little"))[0])
    number = reader.take(field["bits"])
    if "step" in field:
        return float(field["start"] + field["step"] * number)
    if "tolerance" in field:
        return float(field["start"] * (1.0 + 2.0 * field["tolerance"]) ** number)
    return number


def _not_described(number: int, variant: str) -> DaqmxError:
    known = ", ".join(str(n) for n in templates())
    return DaqmxError(
        errors.TEDS_TEMPLATE_NOT_SUPPORTED,
        f"simdaq decodes the templates {known}; docs/daq.md says why not the others.",
        Template_ID=number, **({"Variant": variant} if variant else {}),
    )  # fmt: skip
