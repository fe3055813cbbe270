"""Bytes <-> messages of the driver board; no I/O.

The whole protocol is read from ``firmware/core/protocol.h``, from which the board is compiled;
board and host compare a hash of it when they connect. A wheel contains the file as
``hil/firmware/core/protocol.h``.
"""

from __future__ import annotations

import binascii
import hashlib
import re
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any


class WireError(Exception):
    """protocol.h cannot be parsed, or a message does not match it."""


Fields = dict[str, Any]  # of a message by name: numbers, lists of them, and tables of a cell each


@dataclass(frozen=True)
class Limit:
    """One entry of the board's table of limits."""

    default: int
    lowest: int
    highest: int


class Message:
    """A decoded frame: `name` of command or answer, `seq`, and its fields (arrays are tuples).

    A field is decoded on access, since a tick uses only a few fields of an answer.
    `numbers` are all of them in a row, for what `getter` gives.
    """

    __slots__ = ("_layout", "name", "numbers", "seq")

    def __init__(
        self, name: str, seq: int, layout: Layout | None, numbers: tuple[int, ...]
    ) -> None:
        self.name = name
        self.seq = seq
        self._layout = layout
        self.numbers = numbers

    @property
    def fields(self) -> Fields:
        return {} if self._layout is None else self._layout.shaped(self.numbers)

    def __getitem__(self, field: str) -> Any:
        if self._layout is None:
            raise KeyError(field)
        place = self._layout.places.get(field)
        return self.fields[field] if place is None else self.numbers[place]


# --- reading protocol.h --------------------------------------------------------------------------

_TYPES = {"u8": "B", "u16": "H", "u32": "I", "i16": "h"}
_CONSTANT = re.compile(r"#define (WIRE_[A-Z0-9_]+) +(0x[0-9A-Fa-f]+|\d+)$")
_TABLE = re.compile(r"#define (WIRE_[A-Z0-9_]+)\(([A-Z](?:, [A-Z])*)\)((?: +[A-Z]\([^()]*\))+)$")
_ENTRY = re.compile(r"([A-Z])\(([^()]*)\)")
_FRAMING = ("#ifndef PROTOCOL_H", "#define PROTOCOL_H", "#endif")


@dataclass(frozen=True)
class Definitions:
    """The constants and tables of a header."""

    constants: dict[str, int]
    tables: dict[str, list[tuple[str, list[str]]]]

    @classmethod
    def read(cls, text: str) -> Definitions:
        """Every line of a header, or an error that names the first one not understood."""
        definitions = cls({}, {})
        bare = re.sub(r"/\*.*?\*/", lambda m: "\n" * m[0].count("\n"), text, flags=re.DOTALL)
        pending, start = "", 0
        for number, line in enumerate(bare.splitlines(), 1):
            start = start if pending else number
            pending += line.rstrip()
            if pending.endswith("\\"):
                pending = pending[:-1]
                continue
            if pending.strip() and pending not in _FRAMING:
                definitions._take(pending, start)
            pending = ""
        if pending:
            raise WireError(f"protocol.h line {start}: ends in the middle of a table")
        return definitions

    def _take(self, line: str, number: int) -> None:
        if match := _CONSTANT.match(line):
            name, known = match[1], match[1] in self.constants
            self.constants[name] = int(match[2], 0)
        elif match := _TABLE.match(line):
            name, known = match[1], match[1] in self.tables
            entries = _ENTRY.findall(match[3])
            self.tables[name] = [
                (letter, [arg.strip() for arg in args.split(",")]) for letter, args in entries
            ]
            if wrong := {letter for letter, _ in entries} - set(match[2].split(", ")):
                raise WireError(f"protocol.h line {number}: {name} has no {min(wrong)}(...)")
        else:
            raise WireError(f"protocol.h line {number}: cannot read `{line.strip()}`")
        if known:
            raise WireError(f"protocol.h line {number}: {name} is defined twice")

    def integer(self, text: str) -> int:
        if text in self.constants:
            return self.constants[text]
        try:
            return int(text, 0)
        except ValueError:
            raise WireError(f"protocol.h: `{text}` is neither an integer nor a constant") from None

    def table(self, name: str) -> list[tuple[str, list[str]]]:
        if name not in self.tables:
            raise WireError(f"protocol.h: there is no table {name}")
        return self.tables[name]

    def numbers(self, name: str) -> dict[str, int]:
        """A table of names and numbers, every number once."""
        numbers = {args[0]: self.integer(args[1]) for _, args in self.table(name)}
        if len(set(numbers.values())) != len(self.table(name)):
            raise WireError(f"protocol.h: {name} uses a name or a number twice")
        return numbers


def _moved(place: int | slice, by: int) -> int | slice:
    return place + by if isinstance(place, int) else slice(place.start + by, place.stop + by)


class Layout:
    """The payload of a message: its fields in order, packed and unpacked as one structure.

    Attributes
    ----------
    codes : format of the structure for `struct`
    size : length in bytes
    places : where among the structure's numbers every field stands, those of nested layouts too
    """

    codes: str
    size: int
    places: dict[str, int | slice]

    def __init__(self, definitions: Definitions, table: str) -> None:
        self.table = table
        self.fields: list[tuple[str, int | Layout | None]] = []
        self.places = {}
        codes = ""
        for letter, args in definitions.table(table):
            n_args = {"F": 2, "A": 3, "N": 2, "L": 5}.get(letter)
            if len(args) != n_args:
                raise WireError(f"protocol.h: {table}: cannot read {letter}({', '.join(args)})")
            if letter == "N":
                nested = Layout(definitions, f"WIRE_{args[0].upper()}")
                self.fields.append((args[1], nested))
                for inner, place in nested.places.items():
                    self.places.setdefault(inner, _moved(place, len(codes)))
                codes += nested.codes
                continue
            if args[0] not in _TYPES:
                raise WireError(f"protocol.h: {table}: there is no type {args[0]}")
            n = definitions.integer(args[2]) if letter == "A" else None
            self.fields.append((args[1], n))
            at = len(codes)
            self.places[args[1]] = at if n is None else slice(at, at + n)
            codes += _TYPES[args[0]] * (1 if n is None else n)
        if len({name for name, _ in self.fields}) != len(self.fields):
            raise WireError(f"protocol.h: {table} uses a name twice")
        self.codes = codes
        plain = all(shape is None for _, shape in self.fields)
        self._plain = tuple(name for name, _ in self.fields) if plain else ()
        self._struct = struct.Struct("<" + codes)
        self.size = self._struct.size

    def pack(self, values: Fields) -> bytes:
        """Bytes of a message.

        Raises
        ------
        WireError
            A field is missing, unknown, of the wrong length or out of its type's range.
        """
        try:
            return self._struct.pack(*self._flat(values))
        except struct.error as error:
            raise WireError(f"{self.table}: {error} in {dict(values)}") from None

    def unpack(self, payload: bytes) -> tuple[int, ...]:
        """The numbers of a payload, one after the other."""
        return self._struct.unpack(payload)

    def shaped(self, numbers: tuple[int, ...]) -> Fields:
        """The fields that these numbers make."""
        return self._shaped(iter(numbers))

    def _flat(self, values: Fields) -> list[int]:
        if len(values) != len(self.fields):
            names = [name for name, _ in self.fields]
            raise WireError(f"{self.table} has the fields {names}, not {list(values)}")
        if self._plain:
            try:
                return [values[name] for name in self._plain]
            except KeyError as missing:
                raise WireError(f"{self.table}: {missing.args[0]} is missing") from None
        flat: list[int] = []
        for name, shape in self.fields:
            if name not in values:
                raise WireError(f"{self.table}: {name} is missing")
            value = values[name]
            if shape is None:
                flat.append(value)
            elif isinstance(shape, Layout):
                flat += shape._flat(value)
            elif len(value) != shape:
                raise WireError(f"{self.table}: {name} has {shape} places, not {len(value)}")
            else:
                flat += value
        return flat

    def _shaped(self, numbers: Iterator[int]) -> Fields:
        shaped: Fields = {}
        for name, shape in self.fields:
            if shape is None:
                shaped[name] = next(numbers)
            elif isinstance(shape, Layout):
                shaped[name] = shape._shaped(numbers)
            else:
                shaped[name] = tuple(next(numbers) for _ in range(shape))
        return shaped


def header_path() -> Path:
    """Path of protocol.h: inside the package in a wheel, beside it in a checkout."""
    package = Path(__file__).resolve().parents[2]
    inside = package / "firmware/core/protocol.h"
    return inside if inside.is_file() else package.parent / "firmware/core/protocol.h"


_BYTES = header_path().read_bytes()
_DEFINED = Definitions.read(_BYTES.decode())

#: First four bytes of the SHA-256 of protocol.h; the board says with which it was compiled.
WIRE_HASH = int.from_bytes(hashlib.sha256(_BYTES).digest()[:4], "big")
VERSION = _DEFINED.integer("WIRE_VERSION")
FAULTS_MEASURED = _DEFINED.integer("WIRE_FAULTS_MEASURED")
CELLS_MAX = _DEFINED.integer("WIRE_CELLS_MAX")
CELLS_PER_STATUS = _DEFINED.integer("WIRE_CELLS_PER_STATUS")
HEAT_TO_ARM = _DEFINED.integer("WIRE_HEAT_TO_ARM")
DUTY_MIN_PER_255 = _DEFINED.integer("WIRE_DUTY_MIN_PER_255")
SENSED = _DEFINED.integer("WIRE_SENSED")
SENSE_EVERY_MIN_MS = _DEFINED.integer("WIRE_SENSE_EVERY_MIN_MS")
AHEAD_MAX = _DEFINED.integer("WIRE_AHEAD_MAX")
PROBABILITY_ONE = _DEFINED.integer("WIRE_PROBABILITY_ONE")
_FRAME_MAX = _DEFINED.integer("WIRE_FRAME_MAX")
_CRC_INIT = _DEFINED.integer("WIRE_CRC_INIT")

COMMANDS = _DEFINED.numbers("WIRE_COMMANDS")
ANSWERS = _DEFINED.numbers("WIRE_ANSWERS")
#: Name of the answer to every command.
ANSWER_OF = {args[0]: args[2] for _, args in _DEFINED.table("WIRE_COMMANDS")}
STATES = _DEFINED.numbers("WIRE_STATES")
RESULTS = _DEFINED.numbers("WIRE_RESULTS")
RESETS = _DEFINED.numbers("WIRE_RESETS")
#: Number of the bit of every fault.
FAULTS = _DEFINED.numbers("WIRE_FAULTS")
LIMITS = {
    args[1]: Limit(*(_DEFINED.integer(arg) for arg in args[2:]))
    for _, args in _DEFINED.table("WIRE_LIMITS")
}

_STATE_NAMES = {number: name for name, number in STATES.items()}
_RESULT_NAMES = {number: name for name, number in RESULTS.items()}

_CODES = COMMANDS | ANSWERS
_NAMES = {code: name for name, code in _CODES.items()}
_LAYOUTS = {
    name: Layout(_DEFINED, f"WIRE_{name.upper()}")
    for name in _CODES
    if name in ANSWERS or f"WIRE_{name.upper()}" in _DEFINED.tables
}
_LIMITS_LAYOUT = Layout(_DEFINED, "WIRE_LIMITS")

if len(_NAMES) != len(_CODES):
    raise WireError("protocol.h: two messages share a code")
if any(layout.size + 5 > _FRAME_MAX for layout in _LAYOUTS.values()):
    raise WireError("protocol.h: a message is longer than WIRE_FRAME_MAX")
if set(ANSWER_OF.values()) - set(ANSWERS):
    raise WireError("protocol.h: a command's answer is not in WIRE_ANSWERS")


def layout(name: str) -> Layout | None:
    """The payload of a message, or of the table of limits (`limits`); None: it has no payload."""
    return _LIMITS_LAYOUT if name == "limits" else _LAYOUTS.get(name)


def getter(name: str, *fields: str) -> Callable[[tuple[int, ...]], tuple[Any, ...]]:
    """What takes these fields of a message, none of them nested, out of its numbers at once."""
    places = _LAYOUTS[name].places
    return itemgetter(*(places[field] for field in fields))


#: Commands that carry the number of their arming.
SET_COMMANDS = frozenset(n for n in COMMANDS if n in _LAYOUTS and "arming" in _LAYOUTS[n].places)


def following(number: int) -> int:
    """The number of the command after this one: 24 bits, the arming's above the sequence number."""
    return (number + 1) & 0xFFFFFF


_BYTES_OF = [bytes((n,)) for n in range(256)]

# --- frames -------------------------------------------------------------------------------------


def encode(name: str, seq: int, **fields: object) -> bytes:
    """A frame with its delimiter.

    Parameters
    ----------
    name : a command (or an answer) of protocol.h
    seq : 0..255; the answer repeats it

    Raises
    ------
    WireError
        There is no such message, or the fields do not match it.
    """
    code = _CODES.get(name)
    if code is None:
        raise WireError(f"there is no message '{name}'")
    layout = _LAYOUTS.get(name)
    if layout is not None:
        payload = layout.pack(fields)
    elif fields:
        raise WireError(f"{name} has no fields, not {list(fields)}")
    else:
        payload = b""
    return framed(bytes((VERSION, code, seq)) + payload)


def encoder(name: str) -> Callable[..., bytes]:
    """The frames of one message, made of the sequence number and the payload's numbers in order.

    Faster than `encode`, without its checks: for numbers that are known to be valid.
    """
    pack = struct.Struct("<BBB" + _LAYOUTS[name].codes).pack
    code = _CODES[name]
    return lambda seq, *numbers: framed(pack(VERSION, code, seq, *numbers))


def framed(body: bytes) -> bytes:
    """Header and payload with CRC, stuffed, and the delimiter."""
    whole = body + binascii.crc_hqx(body, _CRC_INIT).to_bytes(2, "little")
    # COBS: every run between zeros, led by its length + 1; frames are shorter than one COBS block
    return b"".join([_BYTES_OF[len(run) + 1] + run for run in whole.split(b"\0")]) + b"\0"


def _unframed(stuffed: bytes) -> bytes | None:
    """Header and payload of what stood before a delimiter, or None."""
    whole = bytearray(stuffed)
    size, at = len(whole), 0
    while at < size:  # every length byte becomes the zero that it stands for; the first is none
        step = whole[at]
        whole[at] = 0
        at += step
    if at != size or not 6 <= size <= _FRAME_MAX + 1:
        return None
    body = bytes(whole[1:-2])
    intact = binascii.crc_hqx(body, _CRC_INIT) == whole[-2] | whole[-1] << 8
    return body if intact else None


class Decoder:
    """Bytes in any portions -> messages; damaged and foreign frames are counted and skipped.

    Attributes
    ----------
    n_bad : frames that were not whole
    n_foreign : whole frames of another version, an unknown code or the wrong length
    """

    def __init__(self) -> None:
        self.n_bad = 0
        self.n_foreign = 0
        self._rest = b""

    def feed(self, received: bytes) -> list[Message]:
        *frames, self._rest = (self._rest + received).split(b"\0")
        self._rest = self._rest[: 2 * _FRAME_MAX]  # bounds the buffer when noise never ends
        messages = []
        for frame in frames:
            if not frame:
                continue
            body = _unframed(frame)
            message = None if body is None else _message(body)
            self.n_bad += body is None
            self.n_foreign += body is not None and message is None
            if message is not None:
                messages.append(message)
        return messages


def _message(body: bytes) -> Message | None:
    version, code, seq = body[:3]
    name = _NAMES.get(code)
    if version != VERSION or name is None:
        return None
    layout = _LAYOUTS.get(name)
    if len(body) - 3 != (layout.size if layout else 0):
        return None
    return Message(name, seq, layout, layout.unpack(body[3:]) if layout else ())


# --- what the numbers mean ----------------------------------------------------------------------


def default_limits() -> dict[str, int]:
    """The table of a board in which none was stored."""
    return {name: limit.default for name, limit in LIMITS.items()}


def limits_crc(limits: Mapping[str, int]) -> int:
    """The CRC that `arm` must send to a board with these limits."""
    return binascii.crc_hqx(_LIMITS_LAYOUT.pack(dict(limits)), _CRC_INIT)


def state_name(number: int) -> str:
    return _STATE_NAMES.get(number, f"state {number}")


def result_name(number: int) -> str:
    return _RESULT_NAMES.get(number, f"result {number}")


def fault_names(bits: int) -> list[str]:
    return [name for name, bit in FAULTS.items() if bits >> bit & 1]


def probability_per_65536(p: float) -> int:
    """A probability as encoded in the protocol: p 65536 rounded; only p = 1 is certain.

    Raises
    ------
    WireError
        p is not within 0..1.
    """
    if not 0.0 <= p <= 1.0:
        raise WireError(f"{p} is not a probability")
    return PROBABILITY_ONE if p == 1.0 else min(round(p * 65536), PROBABILITY_ONE - 1)


def draw(seed: int, tick: int, cell: int) -> int:
    """The board's random number, uniform on 0..65535, of a rig's cell (from 0) at a broadcast.

    The same function as firmware/core/draw.c. A cell changes over if its draw is below the
    probability of the message, or if that is PROBABILITY_ONE.
    """
    key = _mix(seed ^ _mix(tick + _STRIDE))
    return _mix(key + (cell + 1) * _STRIDE) >> 16


_STRIDE = 0x9E3779B9


def _mix(x: int) -> int:
    x &= 0xFFFFFFFF
    x = (x ^ x >> 16) * 0x7FEB352D & 0xFFFFFFFF
    x = (x ^ x >> 15) * 0x846CA68B & 0xFFFFFFFF
    return x ^ x >> 16
