"""Rows of a run as protobuf messages, a block of rows at a time.

The topics and fields are those of `messages`. Every field is written, and takes the same number of
bytes in every row, so that the messages of a block are one structured array into which each column
is copied at once. A topic with text is encoded once for each stretch of rows with the same values.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import groupby

import numpy as np
from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)
from numpy.typing import NDArray

from hil.record.messages import Field, Rows, Topic

Parts = list[bytes | Field]
LENGTH = 2  # wire type of what has a length: packed values, messages, text
# Type, wire type and bytes of a value. Protobuf has no smaller integer of constant length.
TYPES: dict[str, tuple[FieldDescriptorProto.Type.ValueType, int, np.dtype[np.generic]]] = {
    "<f8": (FieldDescriptorProto.TYPE_DOUBLE, 1, np.dtype(np.float64)),
    "<u8": (FieldDescriptorProto.TYPE_FIXED64, 1, np.dtype(np.uint64)),
    "|u1": (FieldDescriptorProto.TYPE_FIXED32, 5, np.dtype(np.uint32)),
}
T_S = Field(("t_s",), "scheduled time, s", np.dtype("<f8"), ("t_s",))


class Encoder:
    """Encodes the messages of one topic.

    Attributes
    ----------
    name : of the type of message, with its package
    schema : a serialised FileDescriptorSet; the fields' descriptions are comments
    size_B : bytes of a message, without text
    """

    def __init__(self, topic: Topic) -> None:
        self._topic = topic
        fields = (T_S, *topic.fields)
        message = _identifier(topic.name)
        self.name = f"hil.{message}"
        file = FileDescriptorProto(name=f"{self.name}.proto", package="hil", syntax="proto3")
        _describe(file, message, fields)
        if not topic.fields:
            _describe_text(file, topic)
            pool = descriptor_pool.DescriptorPool()
            pool.Add(file)
            self._text = message_factory.GetMessageClass(pool.FindMessageTypeByName(self.name))
        self.schema = FileDescriptorSet(file=[file]).SerializeToString()
        self._parts = _parts(fields)
        self._blank = _blank(self._parts)
        self.size_B = self._blank.dtype.itemsize

    def stretches(self, rows: Rows) -> Iterator[tuple[slice, NDArray[np.void]]]:
        """Slices of rows that differ only in their fields, each with a message without these."""
        n = len(rows["t_s"])
        if self._topic.fields:
            yield slice(0, n), self._blank
            return
        columns = [rows[name] for name in self._topic.columns]
        changed = np.ones(n, dtype=bool)
        changed[1:] = np.any([values[1:] != values[:-1] for values in columns], axis=0)
        starts = np.flatnonzero(changed).tolist()
        for first, end in zip(starts, (*starts[1:], n), strict=True):
            content = self._topic.content([values[first].item() for values in columns])
            text = self._text(**content).SerializeToString()
            yield slice(first, end), _blank([*self._parts, text] if text else self._parts)

    def fill(self, messages: NDArray[np.void], rows: Rows) -> None:
        """Write the fields of some rows into their messages."""
        for i, part in enumerate(self._parts):
            if isinstance(part, Field):
                messages[str(i)] = part.values(rows)


def _parts(fields: Iterable[Field], depth: int = 0) -> Parts:
    """A message as constant bytes and fields, in turns."""
    parts: Parts = []
    for number, group in enumerate(_groups(fields, depth), start=1):
        if len(group[0].path) > depth + 1:
            inner = _parts(group, depth + 1)
            parts += [_tag(number, LENGTH) + _varint(_blank(inner).dtype.itemsize), *inner]
        elif n := group[0].n_values:
            size_B = n * TYPES[group[0].dtype.str][2].itemsize
            parts += [_tag(number, LENGTH) + _varint(size_B), group[0]]
        else:
            parts += [_tag(number, TYPES[group[0].dtype.str][1]), group[0]]
    return parts


def _groups(fields: Iterable[Field], depth: int) -> list[list[Field]]:
    """Each field of a message by itself, those of a message in it together."""

    def key(field: Field) -> object:
        return field.columns if len(field.path) == depth + 1 else field.cell

    return [list(group) for _, group in groupby(fields, key)]


def _blank(parts: Parts) -> NDArray[np.void]:
    """A message whose fields are zero; part i is called str(i)."""
    formats = [
        (str(i), f"V{len(part)}")
        if isinstance(part, bytes)
        else (str(i), TYPES[part.dtype.str][2], (part.n_values,) if part.n_values else ())
        for i, part in enumerate(parts)
    ]
    message = np.zeros((), dtype=formats)
    for i, part in enumerate(parts):
        if isinstance(part, bytes):
            message[str(i)] = np.void(part)
    return message


def _describe(
    file: FileDescriptorProto, name: str, fields: Iterable[Field], depth: int = 0
) -> None:
    """Add the type of a message; messages in it, which are cells, have one type."""
    message, at = file.message_type.add(name=name), len(file.message_type) - 1
    for group in _groups(fields, depth):
        field = group[0]
        if len(field.path) > depth + 1:
            if len(file.message_type) == 1:
                _describe(file, "cell", group, depth + 1)
            described = _named(message, field.path[depth])
            described.type, described.type_name = FieldDescriptorProto.TYPE_MESSAGE, ".hil.cell"
            continue
        described = _named(message, field.path[depth])
        described.type = TYPES[field.dtype.str][0]
        if field.n_values:
            described.label = FieldDescriptorProto.LABEL_REPEATED
        _comment(file, at, field.description)


def _describe_text(file: FileDescriptorProto, topic: Topic) -> None:
    for key, facts in topic.schema["properties"].items():
        if key == "t_s":
            continue
        described = _named(file.message_type[0], key)
        described.type = FieldDescriptorProto.TYPE_STRING
        if facts["type"] == "array":
            described.label = FieldDescriptorProto.LABEL_REPEATED
        _comment(file, 0, facts["description"])


def _named(message: DescriptorProto, name: str) -> FieldDescriptorProto:
    """A new field, with a name that no other has."""
    taken = {field.name for field in message.field}
    name = plain = _identifier(name)
    while name in taken:
        name = f"{plain}_{len(taken) + 1}"
    return message.field.add(
        name=name, number=len(taken) + 1, label=FieldDescriptorProto.LABEL_OPTIONAL
    )


def _comment(file: FileDescriptorProto, message: int, text: str) -> None:
    """Describe the field that was added last to this message."""
    # 4 and 2 are the numbers of FileDescriptorProto.message_type and DescriptorProto.field
    at = [4, message, 2, len(file.message_type[message].field) - 1]
    file.source_code_info.location.add(path=at, span=[0, 0, 0], leading_comments=text)


def _identifier(name: str) -> str:
    plain = re.sub(r"\W", "_", name.strip("/"), flags=re.ASCII)
    return plain if plain[:1].isalpha() else f"_{plain}"


def _tag(number: int, wire: int) -> bytes:
    return _varint(number << 3 | wire)


def _varint(number: int) -> bytes:
    """Seven bits a byte, lowest first; the highest bit says that more follow."""
    groups = bytearray()
    while number > 0x7F:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*groups, number))
