"""Bytes <-> messages, and a reader of protocol.h that takes nothing it does not understand."""

import contextlib
import pickle
import string

import numpy as np
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


def test_noise_without_end_takes_no_memory_and_what_follows_it_is_read():
    """A loose wire that gives bytes for hours, and no delimiter among them."""
    decoder = protocol.Decoder()
    for _ in range(100):
        assert decoder.feed(b"\x55" * 997) == []
        assert len(pickle.dumps(decoder)) < 1000
    frame = protocol.encode("identify", 7)
    assert [m.seq for m in decoder.feed(b"\0" + frame)] == [7]
    assert decoder.n_bad == 1


def test_a_frame_is_at_most_as_long_and_at_least_as_long_as_the_protocol_says():
    """The longest is WIRE_FRAME_MAX bytes with its CRC, the shortest a header with its CRC."""
    longest = protocol._FRAME_MAX - 2
    for size, whole in ((2, False), (3, True), (longest, True), (longest + 1, False), (200, False)):
        decoder = protocol.Decoder()
        assert (
            decoder.feed(protocol.framed(bytes((protocol.VERSION, 255, *[1] * 300))[:size])) == []
        )
        assert (decoder.n_foreign, decoder.n_bad) == ((1, 0) if whole else (0, 1))


def test_every_single_flipped_bit_is_found():
    frame = protocol.encode("set_mask", 3, arming=9, valid_for_ms=100, cells_on=5)
    for bit in range(8 * (len(frame) - 1)):
        spoilt = bytearray(frame)
        spoilt[bit // 8] ^= 1 << bit % 8
        assert protocol.Decoder().feed(bytes(spoilt)) == []


def test_frames_of_another_version_are_counted_as_foreign():
    code, size = protocol.ANSWERS["status"], protocol.layout("status").size
    decoder = protocol.Decoder()
    for version, length in ((protocol.VERSION + 1, size), (protocol.VERSION, size - 1)):
        assert decoder.feed(protocol.framed(bytes((version, code, 0)) + bytes(length))) == []
    assert (decoder.n_bad, decoder.n_foreign) == (0, 2)
    [known] = decoder.feed(protocol.framed(bytes((protocol.VERSION, code, 0)) + bytes(size)))
    assert known.name == "status"


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


TWO_LINES = "#define WIRE_X(F)\\\n    F(u8, a)\\\n    F(u16, b)\n"


def test_a_table_may_go_on_over_lines_and_an_error_names_the_first_of_them():
    found = protocol.Definitions.read("\n" + TWO_LINES)
    assert found.tables == {"WIRE_X": [("F", ["u8", "a"]), ("F", ["u16", "b"])]}
    wrong = "\n\n" + TWO_LINES.replace("F(u16", "G(u16")
    with pytest.raises(protocol.WireError, match="line 3"):
        protocol.Definitions.read(wrong)


NESTED = (
    "#define WIRE_INNER(F, A) F(u8, x) A(u16, y, 3)\n"
    "#define WIRE_OUTER(F, A, N) F(u32, t) A(u8, first, 2) N(inner, i) F(i16, last)\n"
)


def test_every_field_has_its_place_among_the_numbers_also_inside_a_nested_message():
    layout = protocol.Layout(protocol.Definitions.read(NESTED), "WIRE_OUTER")
    values = {"t": 70000, "first": (1, 2), "i": {"x": 9, "y": (500, 501, 502)}, "last": -3}
    # little-endian by hand
    payload = bytes.fromhex("70110100 01 02 09 f401 f501 f601 fdff".replace(" ", ""))
    assert layout.pack(values) == payload
    assert layout.size == len(payload) == 4 + 2 + 7 + 2
    numbers = layout.unpack(payload)
    assert layout.shaped(numbers) == values
    taken = {name: numbers[place] for name, place in layout.places.items()}
    assert taken == {"t": 70000, "first": (1, 2), "x": 9, "y": (500, 501, 502), "last": -3}


def test_several_fields_are_taken_at_once_and_by_their_names():
    frame = protocol.encode("set_mask", 3, arming=9, valid_for_ms=100, cells_on=5)
    (message,) = protocol.Decoder().feed(frame)
    assert protocol.getter("set_mask", "cells_on", "arming")(message.numbers) == (5, 9)
    assert (message["cells_on"], message["arming"], message["valid_for_ms"]) == (5, 9, 100)
    assert "set_mask" in protocol.SET_COMMANDS
    assert "identify" not in protocol.SET_COMMANDS


def test_a_message_without_fields_has_none():
    (message,) = protocol.Decoder().feed(protocol.encode("identify", 3))
    assert message.fields == {}
    with pytest.raises(KeyError):
        message["state"]


def test_frames_made_in_haste_are_the_same_frames():
    fast = protocol.encoder("set_mask")
    assert fast(3, 9, 100, 5) == protocol.encode(
        "set_mask", 3, arming=9, valid_for_ms=100, cells_on=5
    )


def test_a_command_s_number_goes_up_by_one_and_starts_again_after_24_bits():
    for number, then in ((0, 1), (1, 2), (0xFF, 0x100), (0xFFFFFE, 0xFFFFFF), (0xFFFFFF, 0)):
        assert protocol.following(number) == then


def test_limits_have_their_names_and_their_defaults_lie_within_their_range():
    limits = protocol.default_limits()
    assert set(limits) == {name for name, _ in protocol.layout("limits").fields}
    for name, limit in protocol.LIMITS.items():
        assert limit.lowest <= limits[name] <= limit.highest, name
    name = next(iter(limits))
    assert protocol.limits_crc(limits) != protocol.limits_crc(limits | {name: limits[name] + 1})


def test_numbers_have_names_and_unknown_ones_are_told_as_numbers():
    for name, number in protocol.STATES.items():
        assert protocol.state_name(number) == name
    for name, number in protocol.RESULTS.items():
        assert protocol.result_name(number) == name
    assert (protocol.state_name(200), protocol.result_name(201)) == ("state 200", "result 201")
    assert protocol.fault_names(0) == []
    for name, bit in protocol.FAULTS.items():
        assert protocol.fault_names(1 << bit) == [name]


@pytest.mark.parametrize(
    ("p", "sent"),
    [(0.0, 0), (0.5, 32768), (1.0, 65535), (1.0 - 1e-9, 65534), (1.2 / 65536, 1), (0.7 / 65536, 1)],
)
def test_only_what_is_certain_is_sent_as_certain(p, sent):
    assert protocol.probability_per_65536(p) == sent


@pytest.mark.parametrize("p", [-1e-9, 1.0 + 1e-9, float("nan")])
def test_what_is_no_probability_is_not_sent(p):
    with pytest.raises(protocol.WireError, match="is not a probability"):
        protocol.probability_per_65536(p)


def test_draws_are_uniform_and_differ_by_cell_tick_and_seed():
    """Of 4096 draws, each bit is set in half: 4 standard deviations of a fair coin are 128."""
    for vary in (
        lambda n: protocol.draw(7, 3, n), lambda n: protocol.draw(7, n, 3),
        lambda n: protocol.draw(n, 7, 3),
    ):  # fmt: skip
        draws = [vary(n) for n in range(4096)]
        assert 0 <= min(draws) <= max(draws) <= 65535
        for bit in range(16):
            assert abs(sum(d >> bit & 1 for d in draws) - 2048) < 128
        assert len(set(draws)) > 3800  # of 65536: 3970 are expected


def lowbias32(x):
    """The published mixer (C. Wellons, hash-prospector, 2018), in words that wrap by themselves."""
    x = np.uint32(x)
    with np.errstate(over="ignore"):
        x ^= x >> np.uint32(16)
        x *= np.uint32(0x7FEB352D)
        x ^= x >> np.uint32(15)
        x *= np.uint32(0x846CA68B)
        x ^= x >> np.uint32(16)
    return int(x)


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.integers(0, 255))
def test_a_draw_is_the_published_mixer_of_seed_tick_and_cell(seed, tick, cell):
    """Steps of the golden ratio's 32 bits keep neighbouring ticks and cells apart."""
    step, wrap = 0x9E3779B9, 2**32
    key = lowbias32(seed ^ lowbias32((tick + step) % wrap))
    wanted = lowbias32((key + (cell + 1) * step) % wrap) >> 16
    assert protocol.draw(seed, tick, cell) == wanted
