"""Attacks on the board: replays, a second host, floods, spoilt memory, resets in the middle."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firmware.attack_checks import CHECKS, TABLE
from firmware.boards import Host
from hil.devices.board import protocol

HOLD_MS = 50


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_board_does_not_give_in_to(check, any_board):
    check(any_board)


BAD_CRC = protocol.framed(bytes(range(1, 120)))[:-3] + b"\x7f\x7f\0"
FLOODS = {
    "long frames with a bad CRC": BAD_CRC,
    "short broken frames": b"\3ab\0",
    "delimiters": b"\0",
    "bytes of one": b"\1",
    "a frame without an end": b"\xff",
    "noise": bytes((37 * i * i + 11 * i) % 256 for i in range(1000)),
    "questions": protocol.encode("read", 1),
    "replayed commands": protocol.encode("set_mask", 1, arming=1, valid_for_ms=100, cells_on=0xFFF),
}


@pytest.mark.parametrize("frame", FLOODS.values(), ids=FLOODS)
def test_a_line_that_never_rests_does_not_delay_all_off(chip, frame):
    """A command's hold ends within 3 ms of its time, and a shorted wire trips in three readings."""
    chip.limit()
    chip.ready()
    assert chip.set(0, 5, 11, ms=HOLD_MS) == "done"
    start_us = chip.now_us()
    while any(chip.gates()):
        chip.flood(frame, 1000)
        assert chip.now_us() - start_us <= (HOLD_MS + 3) * 1000
    assert chip.resets() == 0
    for _ in range(10):  # until all that was asked has been answered
        chip.advance(20_000)
        chip.exchange_part(b"\0")
    chip.decoder = protocol.Decoder()
    chip.recover()
    chip.arm()
    assert chip.set(0, 5, 11, ms=100) == "done"
    chip.flood(frame, 5_000)
    chip.set_analog(5, on=1023)
    start_us = chip.now_us()
    while any(chip.gates()):
        chip.flood(frame, 1000)
    took_us = chip.now_us() - start_us
    print(f"a short is off after {took_us} us")
    # three readings, none older than scan_age_max_ms, or the scan is stale
    assert took_us <= 3 * 21_000


ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(("set", "arm", "disarm", "clear_faults")), st.integers(0, 1)),
        st.tuples(st.just("start"), st.integers(0, 1)),
        st.tuples(st.just("replay"), st.integers(0, 400)),
        st.tuples(st.just("half"), st.integers(0, 400)),
        st.tuples(st.just("wait"), st.integers(1, 60)),
        st.tuples(st.just("estop"), st.integers(0, 1)),
        st.tuples(st.just("reset"), st.integers(0, 0)),
    ),
    max_size=80,
)


@settings(
    deadline=None,
    max_examples=4 * settings().max_examples,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(actions=ACTIONS)
def test_gates_obey_only_the_host_whose_arming_stands(board, actions):
    """Two hosts, replays, torn frames, resets and an e-stop in any order."""
    board.reset()
    board.limit()
    board.recover()
    sent = []

    def kept(data):
        sent.append(data)
        return board.exchange(b"\0" + data)

    hosts = [Host(kept), Host(kept)]
    owner, wanted, is_open = None, 0, False
    for k, (what, n) in enumerate(actions):
        before = board.gates()
        if what == "start":
            hosts[n].number = hosts[n].command("identify")["seq_taken"]
        elif what == "set":
            mask = 1 << (k % 12)
            answers = hosts[n].try_command("set_mask", valid_for_ms=100, cells_on=mask)
            if protocol.result_name(answers[0]["result"]) == "done":
                assert n == owner
                wanted = mask
        elif what == "arm":
            crc = protocol.limits_crc(TABLE)
            (answer,) = hosts[n].try_command("arm", limits_crc=crc, cells=0xFFF)
            if answer["arming"]:
                owner, wanted = n, 0
        elif what in ("disarm", "clear_faults"):
            hosts[n].try_command(what)
        elif what == "replay" and sent:
            frame = sent[n % len(sent)]
            board.exchange(b"\0" + frame)
            assert board.gates() in (before, [0] * 12)
        elif what == "half" and sent:
            frame = sent[n % len(sent)]
            board.exchange(frame[: len(frame) // 2])
        elif what == "wait":
            board.advance(1000 * n)
        elif what == "estop":
            is_open = bool(n)
            board.set_estop(is_open)
        elif what == "reset":
            board.reset()
            owner = None
        gates = board.gates()
        assert not (is_open and any(gates))
        assert gates in ([0] * 12, [255 * (wanted >> c & 1) for c in range(12)])
        if owner is None:
            assert not any(gates)
