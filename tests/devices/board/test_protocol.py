"""Bytes <-> messages, and a reader of protocol.h that takes nothing it does not understand."""

import contextlib
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hil.devices.board import protocol

RANGES = {"B": (0, 255), "H": (0, 65535), "I": (0, 2**32 - 1), "h": (-32768, 32767)}


def _values(layout):
    """A strategy for every message of a layout."""
    codes = iter(layout.codes)

    def shaped(one):
        fields = {}
        for name, shape in one.fields:
            if isinstance(shape, protocol.Layout):
                fields[name] = shaped(shape)
            else:
                numbers = [st.integers(*RANGES[next(codes)]) for _ in range(shape or 1)]
                fields[name] = numbers[0] if shape is None else st.tuples(*numbers)
        return st.fixed_dictionaries(fields)

    return shaped(layout)


MESSAGES = sorted(protocol.COMMANDS | protocol.ANSWERS)


@settings(deadline=None)
@given(name=st.sampled_from(MESSAGES), seq=st.integers(0, 255), data=st.data())
def test_what_is_encoded_is_decoded_again_in_any_portions(name, seq, data):
    layout = protocol.layout(name)
    fields = data.draw(_values(layout)) if layout else {}
    frame = protocol.encode(name, seq, **fields)
    assert frame.count(0) == 1
    assert frame[-1] == 0
    cut = data.draw(st.integers(0, len(frame)))
    decoder = protocol.Decoder()
    messages = decoder.feed(frame[:cut]) + decoder.feed(frame[cut:])
    assert [(m.name, m.seq, m.fields) for m in messages] == [(name, seq, fields)]
    assert all(messages[0][field] == value for field, value in fields.items())
    assert (decoder.n_bad, decoder.n_foreign) == (0, 0)


def test_the_crc_is_the_published_one():
    """CRC-16/CCITT-FALSE of "123456789" is 0x29B1 (catalogue of parametrised CRC algorithms)."""
    frame = protocol.framed(b"123456789")
    assert frame[-3:-1] == b"\xb1\x29"


def test_cobs_stuffs_as_published():
    """Examples of S. Cheshire and M. Baker (1999): runs led by their length + 1."""
    frame = protocol.encode("identify", 0)
    body = bytes((protocol.VERSION, protocol.COMMANDS["identify"], 0))
    assert frame[0] == 3
    assert frame[1:3] == body[:2]


@given(data=st.binary(max_size=600))
def test_noise_never_decodes_to_a_message_nor_raises(data):
    """By chance 1 in 65536 would pass the CRC; none of these do."""
    decoder = protocol.Decoder()
    assert all(isinstance(m, protocol.Message) for m in decoder.feed(data + b"\0"))


def test_every_single_flipped_bit_is_found():
    frame = protocol.encode("set_mask", 3, arming=9, valid_for_ms=100, cells_on=5)
    for bit in range(8 * (len(frame) - 1)):
        spoilt = bytearray(frame)
        spoilt[bit // 8] ^= 1 << bit % 8
        assert protocol.Decoder().feed(bytes(spoilt)) == []


def test_frames_of_another_version_are_counted_as_foreign():
    decoder = protocol.Decoder()
    assert decoder.feed(protocol.framed(bytes((protocol.VERSION + 1, 0x83, 0)) + bytes(31))) == []
    assert decoder.feed(protocol.framed(bytes((protocol.VERSION, 0x83, 0)) + bytes(30))) == []
    assert (decoder.n_bad, decoder.n_foreign) == (0, 2)


@pytest.mark.parametrize(
    ("name", "fields", "says"),
    [
        ("set_msk", {}, "no message 'set_msk'"),
        ("disarm", {"cells_on": 1}, "has no fields"),
        ("set_mask", {"cells_on": 1}, "has the fields"),
        ("set_mask", {"arming": 1, "valid_for_ms": 1, "cells": 1}, "cells_on is missing"),
        ("set_mask", {"arming": 1, "valid_for_ms": 256, "cells_on": 1}, "WIRE_SET_MASK"),
        ("set_mask", {"arming": 1, "valid_for_ms": 1, "cells_on": -1}, "WIRE_SET_MASK"),
        (
            "set_duties",
            {"arming": 1, "valid_for_ms": 1, "duty_per_255": (0,) * 12},
            "16 places, not 12",
        ),
    ],
)
def test_a_message_that_does_not_fit_is_an_error(name, fields, says):
    with pytest.raises(protocol.WireError, match=says):
        protocol.encode(name, 0, **fields)


HEADER = protocol.header_path().read_text()


def test_the_header_is_read_whole():
    defined = protocol.Definitions.read(HEADER)
    n_definitions = sum(line.startswith("#define WIRE_") for line in HEADER.splitlines())
    assert len(defined.constants) + len(defined.tables) == n_definitions


@pytest.mark.parametrize(
    "line",
    [
        "#define WIRE_NEW (1 + 2)",
        "#define WIRE_NEW 3u",
        "#define WIRE_new 3",
        "#define OTHER 3",
        "#include <stdint.h>",
        "struct status { uint8_t state; };",
        "#define WIRE_NEW(F) F(u8, a) + F(u8, b)",
        "#define WIRE_NEW(F) F(u8, sizeof(int))",
        "#define WIRE_NEW(F) G(u8, a)",
        "#define WIRE_VERSION 1",
        "#define WIRE_STATUS(F, A, N) F(u8, a)",
        "#if 0",
        "#define WIRE_NEW(F) \\",
    ],
)
def test_a_line_that_it_cannot_read_is_an_error_that_names_it(line):
    number = HEADER.count("\n") + 1
    with pytest.raises(protocol.WireError, match=f"protocol.h line {number}"):
        protocol.Definitions.read(HEADER + line)


@pytest.mark.parametrize(
    "entry",
    [
        "F(u64, a)",
        "F(u8)",
        "F(u8, a, b)",
        "A(u8, a, UNKNOWN)",
        "F(u8, a) F(u16, a)",
        "N(nothing, a)",
    ],
)
def test_a_field_that_it_cannot_read_is_an_error(entry):
    text = f"#define WIRE_X(F, A, N) {entry}\n"
    with pytest.raises(protocol.WireError):
        protocol.Layout(protocol.Definitions.read(text), "WIRE_X")


@given(st.text(string.printable, max_size=80))
def test_the_reader_of_the_header_raises_one_error_only(text):
    with contextlib.suppress(protocol.WireError):
        protocol.Definitions.read(text)


def test_faults_shared_with_the_host_carry_the_same_name():
    from hil.loop.guard import FAULTS

    assert "cell_on_too_long" in FAULTS
    assert "cell_on_too_long" in protocol.FAULTS
    assert all(bit < 16 for bit in protocol.FAULTS.values())
