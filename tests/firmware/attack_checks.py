"""Attacks on a board's state: what any of them must not do, on host and chip.

Each takes a board just powered up, all pins good, and raises when the board gives in.
"""

from collections.abc import Callable, Iterator
from functools import wraps

from firmware.boards import PLENTY, Host
from hil.devices.board import protocol

EVERY_CELL = 0xFFF
TABLE = protocol.default_limits() | PLENTY
FAR_US = 1_000_000  # once a second is how often the limits have to be looked at


def _fields(name: str, cells: int, tick: int) -> dict:
    return {
        "set_mask": {"cells_on": cells},
        "set_duties": {"duty_per_255": [255 * (cells >> c & 1) for c in range(16)]},
        "broadcast": {
            "p_on_per_65536": protocol.PROBABILITY_ONE,
            "q_off_per_65536": protocol.PROBABILITY_ONE,
            "tick": tick,
            "seed": 5,
            "first_cell": 0,
        },
    }[name] | {"valid_for_ms": 100}


def _answer(board, frame: bytes) -> protocol.Message:
    (answer,) = protocol.Decoder().feed(board.exchange(frame))
    return answer


def _stream(board, n: int) -> Iterator[bytes]:
    """Frames of a run, each obeyed, every kind of set command among them."""
    names = sorted(protocol.SET_COMMANDS)
    for k in range(n):
        frame = board.frame(names[k % 3], **_fields(names[k % 3], k * 0x9E37 & EVERY_CELL, k + 1))
        assert _result(_answer(board, frame)) == "done"
        board.advance(500)
        yield frame


def _result(answer: protocol.Message) -> str:
    return protocol.result_name(answer["result"])


def replayed_set_commands(board):
    """None of a run's frames is obeyed again, though sequence numbers come round meanwhile."""
    board.ready()
    sent = list(_stream(board, 600))
    board.set(1, 2)
    before = board.gates()
    for age, frame in enumerate(reversed(sent)):
        assert _result(_answer(board, frame)) == "replayed", age
        assert board.gates() == before
        if age % 20 == 0:
            assert board.set(1, 2) == "done"


def replays_do_not_feed_the_dead_man(board):
    board.ready()
    (last,) = _stream(board, 1)
    start_us = board.now_us()
    while board.now_us() - start_us < 110_000:
        board.advance(5000)
        _answer(board, last)
    assert board.faults() == ["host_silent"]


def replayed_arming_clearing_and_limits(board):
    board.recover()
    crc = board.command("identify")["limits_crc"]
    board.set_estop(True)
    board.advance(1000)
    board.set_estop(False)
    clear = board.frame("clear_faults")
    assert _result(_answer(board, clear)) == "done"
    table = board.frame("set_limits", limits=TABLE | {"on_time_max_ms": 777})
    assert _result(_answer(board, table)) == "done"
    assert _result(_answer(board, table)) == "replayed"  # at once too
    board.limit()
    board.advance(40_000)
    board.power()
    arm = board.frame("arm", limits_crc=crc, cells=EVERY_CELL)
    answer = _answer(board, arm)
    assert _result(answer) == "done"
    board.number = answer["arming"] << 8 | answer.seq
    board.command("disarm")
    for frame in (arm, table, clear):
        assert _result(_answer(board, frame)) == "replayed"
    assert board.state() == "disarmed"
    assert board.command("identify")["limits"] == TABLE
    board.set_estop(True)
    board.advance(1000)
    board.set_estop(False)
    board.advance(1000)
    assert _result(_answer(board, clear)) == "replayed"
    assert board.state() == "faulted"
    assert board.result("clear_faults") == "done"


def a_whole_session_replayed(board):
    """Its own arming has gone by: whatever of it is obeyed, no cell goes on."""
    frames = []

    def kept(data: bytes) -> bytes:
        frames.append(data)
        return board.exchange(data)

    board.recover()
    host = Host(kept, board.advance)
    host.take_over()
    for k in range(200):
        assert host.set(k % 12) == "done"
    host.command("disarm")
    for frame in frames * 3:
        board.exchange(frame)
        assert not any(board.gates())


def a_second_host(board):
    """It takes the board over; the first one's stream then switches nothing and feeds nothing."""
    board.ready()
    assert board.set(0, 1) == "done"
    other = Host(board.exchange, board.advance)
    other.number = other.command("identify")["seq_taken"]
    crc = protocol.limits_crc(TABLE)
    assert other.result("clear_faults") == "is_armed"
    assert other.result("arm", limits_crc=crc, cells=EVERY_CELL) == "is_armed"
    assert other.result("set_limits", limits=TABLE) == "is_armed"
    assert board.set(0, 1) == "done"  # none of that has disturbed the first
    other.take_over()
    assert other.set(5) == "done"
    before = board.gates()
    assert before[5] > 0
    for tick, name in enumerate(sorted(protocol.SET_COMMANDS) * 20):
        assert board.result(name, **_fields(name, EVERY_CELL, tick + 1)) == "other_arming"
        assert board.gates() == before
        assert other.set(5) == "done"
    start_us = board.now_us()
    while board.now_us() - start_us < 110_000:
        board.advance(1000)
        board.set(3)
    assert board.faults() == ["host_silent"]
    assert not any(board.gates())


def a_second_host_that_only_asks(board):
    """Whatever it asks and however it counts, a run goes on."""
    board.ready()
    for k in range(300):
        assert board.set(k % 12) == "done"
        for name in ("read", "identify"):
            _answer(board, protocol.encode(name, (k * 37 + 11) % 256))


def frames_may_get_lost(board):
    for lost in (1, 2, 60, protocol.AHEAD_MAX - 1):
        board.ready()
        for _ in range(3):
            for _ in range(lost):
                board.frame("set_mask", valid_for_ms=9, cells_on=0)
            assert board.set(4) == "done"
    for lost in (protocol.AHEAD_MAX, 128, 200, 255):
        board.ready()
        assert board.set(4) == "done"
        for _ in range(lost):
            board.frame("set_mask", valid_for_ms=9, cells_on=0)
        assert board.set(5) == "other_arming"
        assert board.gates()[5] == 0


def disarming_always_works(board):
    for seq in range(0, 256, 17):
        board.ready()
        assert board.set(0, 11) == "done"
        assert _result(_answer(board, protocol.encode("disarm", seq))) == "done"
        assert not any(board.gates())
        assert board.set(0, 11) == "not_armed"


def armings_differ(board):
    """Even two at the same instant: from one to the next at least two apart."""
    board.recover()
    crc = board.command("identify")["limits_crc"]
    last = 0
    for k in range(300 if board.every == 1 else 60):
        answer = board.ask_to_arm(1)
        assert _result(answer) == "done"
        assert (answer["arming"] - last) % 65536 > 1
        last = answer["arming"]
        refused = board.command("arm", limits_crc=crc, cells=1)
        assert (_result(refused), refused["arming"]) == ("is_armed", 0)
        board.command("disarm")
        board.advance(k % 3)


def armings_after_a_reset_differ(board):
    """The golden ratio's multiples leave no gap below 1 / (2.6 n) between any n in a row.

    A number is used up by 256 frames: at 1 kHz, 40 beginnings are more than two minutes apart.
    """
    begun = []
    for _ in range(40):
        board.reset("power_on")
        board.advance(40_000)
        board.ready()
        begun.append(board.number >> 8)
    apart = [(b - a) % 65536 for i, a in enumerate(begun) for b in begun[:i]]
    assert min(min(d, 65536 - d) for d in apart) > 65536 / (2.7 * len(begun))


def a_stream_from_before_a_reset_replayed(board):
    """The board boots and is armed at the same instants as before, and obeys no old frame."""
    for _ in range(4):
        board.reset("brown_out")
        board.advance(40_000)
        board.ready()
        old = list(_stream(board, 300 if board.every == 1 else 75))
        board.reset("brown_out")
        board.advance(40_000)
        board.ready()
        assert board.set(1, 2) == "done"
        before = board.gates()
        for n, frame in enumerate(old):
            assert _result(_answer(board, frame)) == "other_arming", n
            assert board.gates() == before
            if n % 20 == 0:
                assert board.set(1, 2) == "done"


def spoilt_limits(board):
    """A bit of the table flips while the board works: noticed within a second, all cells off."""
    board.limit()
    longest_us = 0
    for byte in range(0, board.limits_size(), 1 if board.every == 1 else 5):
        board.ready()
        assert board.set(0, 1) == "done"
        before = board.command("identify")["limits"]
        board.flip_limit(byte, byte % 8)
        if board.command("identify")["limits"] == before:
            continue  # padding
        start_us = board.now_us()
        while any(board.gates()):
            assert board.now_us() - start_us < FAR_US
            board.set(0, 1)
            board.advance(1000)
        longest_us = max(longest_us, board.now_us() - start_us)
        assert "limits_corrupt" in board.faults(), byte
        assert board.result("clear_faults") == "condition_present"
        board.limit()
        board.advance(60_000)
        if byte == 0:  # its silence: no reading was judged by it
            assert board.result("clear_faults") == "done"
        board.reset("power_on")
    print(f"noticed after {longest_us} us at most")
    assert longest_us > 0


def spoilt_law(board):
    """So too what the board has worked out from its table."""
    for byte in range(4):
        board.ready()
        assert board.set(0, 1) == "done"
        board.flip_limit(board.limits_size() + byte, 3)
        start_us = board.now_us()
        while any(board.gates()):
            assert board.now_us() - start_us < FAR_US
            board.set(0, 1)
            board.advance(1000)
        assert board.faults() == ["limits_corrupt"]
        board.reset("power_on")


def limits_spoilt_just_before_arming(board):
    for byte in range(0, board.limits_size(), 3):
        board.limit()
        board.recover()
        board.advance(board.scan_us // 7 * byte)
        before = board.command("identify")
        board.flip_limit(byte, 0)
        if board.command("identify")["limits"] == before["limits"]:
            continue  # padding
        answer = board.command("arm", limits_crc=before["limits_crc"], cells=EVERY_CELL)
        assert _result(answer) in ("condition_present", "is_faulted")
        assert protocol.fault_names(answer["fault_bits"]) == ["limits_corrupt"]
        assert board.set(1) == "is_faulted"
    board.limit()


def a_reset_in_the_middle_of_a_frame(board):
    for length in range(1, 13):
        board.ready()
        assert board.set(0, 11) == "done"
        frame = board.frame("set_mask", valid_for_ms=100, cells_on=EVERY_CELL)
        board.exchange_part(frame[:length])
        board.reset("brown_out")
        board.exchange_part(frame[length:])
        assert not any(board.gates())
        board.exchange_part(b"\0")
        assert board.state() == "disarmed"


def a_host_that_asks_for_long(board):
    """Numbers that only asked, or only disarmed, count: the next command is no replay."""
    for name in ("read", "identify", "disarm"):
        board.recover()
        for _ in range(200):
            board.command(name)
        assert board.result("clear_faults") == "done"
        board.arm()


def an_opening_at_any_moment_of_arming(board):
    """A moment is a look at the loop, or either side of a gate's edge: each pulse has three."""
    moment = 0
    while True:
        moment += 1
        board.recover()
        crc = board.command("identify")["limits_crc"]
        board.power()
        board.open_estop_at(moment)
        answer = board.command("arm", limits_crc=crc, cells=EVERY_CELL)
        board.open_estop_at(0)
        if not board.is_open():
            break
        assert _result(answer) in ("is_faulted", "condition_present")
        board.set_estop(False)  # however short it was
        board.advance(100)
        reading = board.command("read")
        assert protocol.fault_names(reading["fault_bits"]) == ["estop_open"], moment
        assert reading["fault_cells"] == 0
        assert board.rises() == 0
        assert board.pulses() <= 1  # the one that began as the loop opened
        assert not any(board.gates())
    assert moment > 12 * 3


def an_opening_at_any_moment_of_a_set_command(board):
    for name in sorted(protocol.SET_COMMANDS):
        for moment in (1, 2, 3):
            board.ready()
            board.open_estop_at(moment)
            board.command(name, **_fields(name, EVERY_CELL, 1))
            board.advance(1000)
            assert board.is_open()
            assert board.rises() == 0
            assert not any(board.gates())
            assert board.faults() == ["estop_open"]


def the_first_short_ends_arming(board):
    board.recover()
    board.set_analog(0, on=1023)
    board.set_analog(5, on=0)
    answer = board.ask_to_arm()
    assert protocol.fault_names(answer["fault_bits"]) == ["current_high"]
    assert answer["fault_cells"] == 1


def cold(check: Callable) -> Callable:
    @wraps(check)
    def run(board):
        board.limit()
        check(board)

    return run


CHECKS = [
    cold(check)
    for check in (
        replayed_set_commands,
        replays_do_not_feed_the_dead_man,
        replayed_arming_clearing_and_limits,
        a_whole_session_replayed,
        a_second_host,
        a_second_host_that_only_asks,
        frames_may_get_lost,
        disarming_always_works,
        armings_differ,
        armings_after_a_reset_differ,
        a_stream_from_before_a_reset_replayed,
        spoilt_limits,
        spoilt_law,
        limits_spoilt_just_before_arming,
        a_reset_in_the_middle_of_a_frame,
        a_host_that_asks_for_long,
        the_first_short_ends_arming,
    )
]
NATIVE = [
    cold(check)
    for check in (
        an_opening_at_any_moment_of_arming,
        an_opening_at_any_moment_of_a_set_command,
    )
]
NATIVE_CHECKS = [*CHECKS, *NATIVE]
