"""Frames over a line that drops, doubles, turns over and invents bytes."""

import struct

import pytest
from hypothesis import assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from hil.devices.board import protocol

MESSAGES = sorted(protocol.COMMANDS | protocol.ANSWERS)
LONG = ["readings", "identity", "set_limits"]  # often in two portions
BYTES = st.one_of(st.just(0), st.integers(1, 255))
PLACES = st.floats(0.0, 1.0, exclude_max=True)  # on the line, as a share of its length


def is_whole(chunk):
    """Whether damage has made a whole frame, as one of 65536 does: by the text of protocol.h."""
    body, at = bytearray(), 0
    while at < len(chunk):
        body += b"\0" * (at > 0) + chunk[at + 1 : at + chunk[at]]
        at += chunk[at]
    crc = 0xFFFF
    for byte in body[:-2]:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ (0x1021 if crc & 0x8000 else 0)) & 0xFFFF
    return at == len(chunk) and len(body) >= 5 and bytes(body[-2:]) == crc.to_bytes(2, "little")


class Line(RuleBasedStateMachine):
    """The model: what lies between two delimiters is a frame that was sent, or it is none."""

    def __init__(self):
        super().__init__()
        self.decoder = protocol.Decoder()
        self.sent = {}  # bytes of a frame -> the message
        self.line, self.begun = b"", b""  # still to arrive; arrived since the last delimiter
        self.wanted, self.arrived, self.n_bad = [], [], 0

    def frame(self, name, seq, payload):
        layout = protocol.layout(name)
        if layout is None:
            frame, numbers = protocol.encode(name, seq), ()
        else:
            whole = (payload * layout.size)[: layout.size]
            numbers = struct.unpack("<" + layout.codes, whole)
            frame = protocol.encoder(name)(seq, *numbers)
        self.sent[frame[:-1]] = (name, seq, numbers)
        return frame

    @rule(
        names=st.lists(st.sampled_from([*MESSAGES, *LONG]), min_size=1, max_size=6),
        seq=st.integers(0, 250),
        payload=st.lists(BYTES, min_size=1, max_size=7).map(bytes),
    )
    def send(self, names, seq, payload):
        """Frames in a row; their payload repeats a few bytes, zeros among them."""
        for k, name in enumerate(names):
            self.line += self.frame(name, seq + k, payload)

    @precondition(lambda self: self.line)
    @rule(at=PLACES, n=st.integers(1, 40))
    def drop(self, at, n):
        at = int(at * len(self.line))
        self.line = self.line[:at] + self.line[at + n :]

    @precondition(lambda self: self.line)
    @rule(at=PLACES, n=st.integers(1, 40))
    def double(self, at, n):
        at = int(at * len(self.line))
        self.line = self.line[: at + n] + self.line[at:]

    @precondition(lambda self: self.line)
    @rule(at=PLACES, bits=st.integers(1, 255))
    def turn_over(self, at, bits):
        at = int(at * len(self.line))
        self.line = self.line[:at] + bytes((self.line[at] ^ bits,)) + self.line[at + 1 :]

    @rule(at=PLACES, noise=st.binary(min_size=1, max_size=300))
    def invent(self, at, noise):
        at = int(at * len(self.line))
        self.line = self.line[:at] + noise + self.line[at:]

    def arrive(self, data):
        *chunks, self.begun = (self.begun + data).split(b"\0")
        for chunk in filter(None, chunks):
            if chunk in self.sent:
                self.wanted.append(self.sent[chunk])
            else:
                assume(not is_whole(chunk))
                self.n_bad += 1
        self.arrived += [(m.name, m.seq, m.numbers) for m in self.decoder.feed(data)]

    @rule(n=st.integers(0, 60))
    def some_arrive(self, n):
        arriving, self.line = self.line[:n], self.line[n:]
        self.arrive(arriving)

    @precondition(lambda self: self.line)
    @rule(seq=st.integers(0, 255))
    def calm_down(self, seq):
        """What is left of the noise may take the first frame with it; the second arrives."""
        self.arrive(self.line)
        self.line = b""
        for n in (seq, seq ^ 1):
            self.arrive(self.frame("identify", n, b""))
        assert self.arrived[-1] == ("identify", seq ^ 1, ())

    @invariant()
    def what_was_sent_whole_arrives_and_nothing_else_does(self):
        assert self.arrived == self.wanted
        assert (self.decoder.n_bad, self.decoder.n_foreign) == (self.n_bad, 0)


@pytest.mark.hypothesis
def test_no_frame_arrives_that_was_not_sent_and_after_the_noise_the_next_one_does():
    run_state_machine_as_test(Line, settings=settings(max_examples=2 * settings().max_examples))
