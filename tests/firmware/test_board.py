"""What the board does with commands, with silence, with resets and with noise."""

import binascii
import ctypes

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firmware.boards import NativeBoard
from hil.devices.board import protocol

FRAME_MAX = 128  # bytes before stuffing, protocol.h

# one board serves all examples of a property: what it did before must not matter
PROPERTY = settings(
    deadline=None,
    max_examples=150,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def test_a_board_says_who_it_is_and_what_it_enforces(board):
    identity = board.command("identify")
    assert identity.name == "identity"
    assert identity["wire_hash"] == protocol.WIRE_HASH
    assert identity["firmware_hash"] != 0
    assert (identity["serial"], identity["n_cells"]) == (7, 12)
    assert identity["scan_period_us"] == 3000
    assert identity["limits"] == protocol.default_limits()
    assert identity["limits_crc"] == protocol.limits_crc(protocol.default_limits())


def test_a_board_boots_disarmed_and_obeys_no_set_command(any_board):
    assert any_board.state() == "disarmed"
    for name, fields in SET_COMMANDS.items():
        assert any_board.result(name, **fields) == "not_armed"
        assert not any(any_board.gates())


SET_COMMANDS = {
    "set_mask": {"valid_for_ms": 100, "cells_on": 0xFFF},
    "set_duties": {"valid_for_ms": 100, "duty_per_255": (255,) * 12 + (0,) * 4},
    "broadcast": {
        "valid_for_ms": 100,
        "p_on_per_65536": protocol.PROBABILITY_ONE,
        "q_off_per_65536": 0,
        "tick": 1,
        "seed": 1,
        "first_cell": 0,
    },
}


def test_every_set_command_switches_cells_once_armed(any_board):
    for name, fields in SET_COMMANDS.items():
        any_board.ready()
        answer = any_board.command(name, **fields)
        assert protocol.result_name(answer["result"]) == "done"
        assert answer["cells_on"] == 0xFFF
        assert any_board.gates() == [255] * 12
        any_board.command("disarm")
        assert not any(any_board.gates())


@PROPERTY
@given(duties=st.lists(st.just(0) | st.integers(16, 255), min_size=12, max_size=12))
def test_duties_reach_the_gates_as_they_are(board, duties):
    board.ready()
    answer = board.command("set_duties", valid_for_ms=50, duty_per_255=(*duties, 0, 0, 0, 0))
    assert board.gates() == duties
    assert answer["cells_on"] == sum(1 << i for i, duty in enumerate(duties) if duty)
    assert board.command("read")["duty_per_255"][:12] == tuple(duties)
    board.command("disarm")


@pytest.mark.parametrize("duty", [1, 8, 15])
def test_a_duty_too_short_for_a_reading_of_its_current_is_refused(any_armed, duty):
    assert any_armed.set(1) == "done"
    for cell in (0, 11):
        duties = [0] * 16
        duties[cell] = duty
        assert any_armed.result("set_duties", valid_for_ms=50, duty_per_255=duties) == "bad_value"
        assert any_armed.gates()[1] == 255
        assert sum(any_armed.gates()) == 255


def test_cells_that_a_board_does_not_have_are_refused(libboard):
    board = NativeBoard(libboard, n_cells=6)
    board.ready()
    assert board.set(0, 5) == "done"
    assert board.set(6) == "bad_value"
    assert board.set(15) == "bad_value"
    assert board.gates() == [255, 0, 0, 0, 0, 255]


def test_cells_without_a_wire_cannot_be_switched_on_and_are_not_drawn(any_board):
    any_board.recover()
    for cell in (0, 2, 11):  # open ends: no current whatever the gate does
        any_board.set_analog(cell, on=0)
    crc = any_board.command("identify")["limits_crc"]
    for nonsense in (1 << 12, 0xFFFF):
        assert any_board.result("arm", limits_crc=crc, cells=nonsense) == "bad_value"
    wired = 0xFFF & ~(1 << 0 | 1 << 2 | 1 << 11)
    assert protocol.result_name(any_board.arm_cells(wired)["result"]) == "done"
    assert any_board.set(2) == "bad_value"
    assert not any(any_board.gates())
    assert any_board.set(1, 3) == "done"
    answer = any_board.command("broadcast", **SET_COMMANDS["broadcast"])
    assert answer["cells_on"] == wired
    assert any_board.command("disarm")["cells_on"] == 0


def test_a_command_that_holds_for_no_time_is_refused(any_armed):
    assert any_armed.set(1, ms=0) == "bad_value"
    assert not any(any_armed.gates())


def test_a_few_cells_readings_travel_with_each_answer_in_turn(armed):
    for cell in range(12):
        armed.set_analog(cell, on=100 + 10 * cell, temperature=150 + cell)
    armed.set(*range(12))
    armed.advance_fed(8000, *range(12))
    seen = {}
    for _ in range(12 // protocol.CELLS_PER_STATUS):
        answer = armed.command("set_mask", valid_for_ms=100, cells_on=0xFFF)
        for i in range(protocol.CELLS_PER_STATUS):
            seen[answer["first_cell"] + i] = (answer["current_mA"][i], answer["temperature_cC"][i])
    reading = armed.command("read")
    for cell in range(12):
        current_mA = (100 + 10 * cell) * 2000 // 1024
        temperature_cC = (150 + cell) * 50000 // 1024 - 5000
        assert seen[cell] == (current_mA, temperature_cC)
        assert reading["current_mA"][cell] == current_mA
        assert reading["temperature_cC"][cell] == temperature_cC


def test_time_goes_on_across_the_wrap_of_its_counter(libboard):
    board = NativeBoard(libboard, now_us=2**32 - 150_000)
    board.limit()
    board.ready()
    assert board.advance_fed(300_000, 1, 2)
    assert board.gates()[1:3] == [255, 255]
    board.advance(101_000)
    assert board.faults() == ["host_silent"]


# --- silence, faults, resets ---


def test_reading_does_not_feed_the_dead_man(any_armed):
    any_armed.set(1)
    for _ in range(11):
        any_armed.advance(10_000)
        any_armed.command("read")
        any_armed.command("identify")
    assert any_armed.faults() == ["host_silent"]
    assert not any(any_armed.gates())


def test_traffic_alone_never_re_enables_a_silent_board(any_armed):
    any_armed.set(1)
    any_armed.advance(101_000)
    for _ in range(50):
        any_armed.advance(1000)
        assert any_armed.set(1) == "is_faulted"
        assert not any(any_armed.gates())
    assert (
        any_armed.result(
            "arm", limits_crc=protocol.limits_crc(protocol.default_limits()), cells=0xFFF
        )
        == "is_faulted"
    )
    assert any_armed.result("clear_faults") == "done"
    assert any_armed.state() == "disarmed"
    assert any_armed.set(1) == "not_armed"


def test_the_first_cause_and_all_causes_are_kept(any_armed):
    any_armed.set_estop(True)
    any_armed.advance(100)
    any_armed.set_estop(False)
    any_armed.set_analog(4, off=900)
    any_armed.advance(10_000)
    reading = any_armed.command("read")
    assert protocol.fault_names(reading["first_fault_bits"]) == ["estop_open"]
    assert protocol.fault_names(reading["fault_bits"]) == ["estop_open", "current_when_off"]
    assert reading["fault_cells"] == 1 << 4
    any_armed.set_analog(4, off=0)
    any_armed.set_analog(2, off=900)
    any_armed.advance(10_000)
    assert any_armed.command("read")["fault_cells"] == 1 << 4 | 1 << 2


def test_an_emergency_stop_after_another_fault_is_kept_too(armed):
    armed.set_analog(4, off=900)
    armed.advance(10_000)
    assert armed.faults() == ["current_when_off"]
    armed.set_estop(True)
    armed.advance(100)
    armed.set_estop(False)
    reading = armed.command("read")
    assert protocol.fault_names(reading["first_fault_bits"]) == ["current_when_off"]
    assert protocol.fault_names(reading["fault_bits"]) == ["estop_open", "current_when_off"]


def test_another_duty_does_not_start_a_cell_s_time_on_again(board):
    """A controller that modulates changes the duty in every tick."""
    board.limit(on_time_max_ms=30)
    board.ready()
    for k in range(5):
        duties = (100 + 20 * (k % 2), *[0] * 15)
        board.command("set_duties", valid_for_ms=50, duty_per_255=duties)
        assert board.faults() == [], k
        board.advance(5_000)
    board.advance(15_000)
    assert board.faults() == ["cell_on_too_long"]


@pytest.mark.parametrize("cause", protocol.RESETS)
@pytest.mark.parametrize("state", ["armed", "faulted"])
def test_a_reset_never_restarts(any_armed, cause, state):
    board = any_armed
    board.set(0, 1, 2)
    if state == "faulted":
        board.advance(150_000)
    board.reset(cause)
    assert not any(board.gates())
    assert board.state() == "disarmed"
    assert protocol.RESETS[cause] == board.command("identify")["reset_cause"]
    board.advance(20_000)
    assert board.set(0, 1, 2) == "not_armed"
    assert not any(board.gates())


def test_a_board_is_not_armed_before_its_first_scan_is_complete(board):
    crc = protocol.limits_crc(protocol.default_limits())
    assert board.result("arm", limits_crc=crc, cells=0xFFF) == "condition_present"
    board.advance(3000)
    assert board.result("arm", limits_crc=crc, cells=0xFFF) == "cooling"


def test_the_hardware_watchdog_starves_when_the_scan_stops(board):
    feeds = board.lib.libboard_watchdog_feeds
    board.advance(50_000)
    before = feeds(board.memory)
    board.advance(10_000)
    assert feeds(board.memory) > before
    board.set_scan(False)
    board.advance(30_000)
    before = feeds(board.memory)
    board.advance(200_000)
    assert feeds(board.memory) == before


# --- limits ---


def test_limits_are_kept_across_a_reset(any_board):
    any_board.limit(on_time_max_ms=1234)
    any_board.reset("power_on")
    limits = any_board.command("identify")["limits"]
    assert limits["on_time_max_ms"] == 1234
    assert limits["heat_time_constant_ms"] != protocol.default_limits()["heat_time_constant_ms"]
    assert (
        any_board.result(
            "arm", limits_crc=protocol.limits_crc(protocol.default_limits()), cells=0xFFF
        )
        == "limits_differ"
    )


@pytest.mark.parametrize("name", protocol.LIMITS)
def test_a_limit_outside_its_range_is_refused_and_one_at_its_end_is_taken(board, name):
    limit = protocol.LIMITS[name]
    layout = protocol.layout("limits")
    pairs = {"temperature_counts_min": 1022, "temperature_counts_max": 1}
    for value in (limit.lowest - 1, limit.lowest, limit.highest, limit.highest + 1):
        table = protocol.default_limits() | {name: value}
        try:
            layout.pack(table)
        except protocol.WireError:
            continue  # the wire itself cannot say it
        inside = limit.lowest <= value <= limit.highest and pairs.get(name) != value
        expected = "done" if inside else "bad_value"
        assert board.result("set_limits", limits=table) == expected, value


def test_limits_that_cannot_be_stored_do_not_hold_until_the_next_reset_either(board):
    before = board.command("identify")
    board.set_memory(works=False)
    table = before["limits"] | {"on_time_max_ms": 1234}
    assert board.result("set_limits", limits=table) == "store_failed"
    after = board.command("identify")
    assert (after["limits"], after["limits_crc"]) == (before["limits"], before["limits_crc"])


def test_limits_are_not_changed_while_armed(any_armed):
    assert any_armed.result("set_limits", limits=protocol.default_limits()) == "is_armed"


def test_a_spoilt_table_refuses_arming_until_a_new_one_is_stored(any_board):
    any_board.limit(on_time_max_ms=1234)
    good = any_board.stored()
    for bit in range(0, 8 * len(good), 1 if any_board.every == 1 else 13):
        spoilt = bytearray(good)
        spoilt[bit // 8] ^= 1 << bit % 8
        any_board.store(bytes(spoilt))
        any_board.reset("power_on")
        any_board.advance(10_000)
        assert any_board.faults() == ["limits_corrupt"], bit
        assert any_board.result("clear_faults") == "condition_present"
    any_board.limit()
    assert any_board.result("clear_faults") == "done"
    any_board.arm()


def test_storing_a_table_of_which_every_byte_changes_is_no_hang(any_board):
    """The memory takes 3.3 ms a byte, longer in all than a scan may be late."""
    any_board.limit()
    for value in (0x0101, 0x0202):
        limits = protocol.default_limits()
        for name, limit in protocol.LIMITS.items():
            limits[name] = min(max(value, limit.lowest), limit.highest)
        limits |= {"temperature_counts_min": value, "temperature_counts_max": value + 1}
        assert any_board.result("set_limits", limits=limits) == "done"
        any_board.advance(200_000)
        assert "scan_stale" not in any_board.faults()
    any_board.limit()


def test_a_stored_table_that_no_host_could_send_refuses_arming(any_board):
    """Its checksum is right: memory was written by another firmware, or by another program."""
    any_board.limit()
    limits = protocol.default_limits()
    limits["temperature_counts_min"] = limits["temperature_counts_max"]
    table = protocol.layout("limits").pack(limits)
    checksum = protocol.limits_crc(limits).to_bytes(2, "little")
    assert len(any_board.stored()) == len(table + checksum)
    any_board.store(table + checksum)
    any_board.reset("power_on")
    any_board.advance(10_000)
    assert any_board.faults() == ["limits_corrupt"]


def test_a_new_arming_serves_broadcasts_of_an_earlier_tick(any_armed):
    any_armed.limit()  # its heat is gone at once
    any_armed.ready()
    sure = {"valid_for_ms": 100, "seed": 1, "first_cell": 0}
    sure |= {"p_on_per_65536": protocol.PROBABILITY_ONE, "q_off_per_65536": 0}
    for tick in (9, 3):
        assert any_armed.result("broadcast", tick=tick, **sure) == "done"
        assert any(any_armed.gates()), tick
        any_armed.command("disarm")
        any_armed.cool()
        any_armed.arm()


# --- bytes that are no command ---


def test_the_longest_frame_is_answered_and_a_longer_one_that_begins_with_it_is_not(board):
    longest = bytes((protocol.VERSION, 0xEE, 1)) + bytes(FRAME_MAX - 5)
    whole = longest + binascii.crc_hqx(longest, 0xFFFF).to_bytes(2, "little")
    assert len(whole) == FRAME_MAX
    assert protocol.framed(longest) == _stuffed(whole)
    assert board.exchange(_stuffed(whole)) != b""
    for n_more in (1, 2, 100):
        assert board.exchange(_stuffed(whole + bytes(n_more))) == b"", n_more


def _stuffed(whole):
    """Consistent overhead byte stuffing, of less than 254 bytes."""
    return b"".join(bytes((len(run) + 1,)) + run for run in whole.split(b"\0")) + b"\0"


def _whole_frames():
    sets = SET_COMMANDS.items()
    return [protocol.encode(name, 9, arming=0x1234, **fields) for name, fields in sets] + [
        protocol.encode(name, 9) for name in ("identify", "read", "disarm", "clear_faults")
    ]


@PROPERTY
@given(noise=st.binary(max_size=400))
def test_noise_changes_no_gate(armed_once, noise):
    board, before = armed_once
    board.set(2, 5)
    board.exchange(b"\0" + noise + b"\0")
    assert board.gates() == before


@PROPERTY
@given(frame=st.sampled_from(_whole_frames()), data=st.data())
def test_a_truncated_frame_changes_no_gate_and_gets_no_answer(armed_once, frame, data):
    board, before = armed_once
    board.set(2, 5)
    length = data.draw(st.integers(0, len(frame) - 2))
    assert board.exchange(frame[:length] + b"\0") == b""
    assert board.gates() == before


def test_a_frame_with_one_bit_flipped_changes_no_gate_and_gets_no_answer(armed_once):
    board, before = armed_once
    for frame in _whole_frames():
        for bit in range(8 * (len(frame) - 1)):
            board.set(2, 5)
            spoilt = bytearray(frame)
            spoilt[bit // 8] ^= 1 << bit % 8
            assert board.exchange(bytes(spoilt) + b"\0") == b""
            assert board.gates() == before


def test_whole_frames_that_make_no_sense_are_answered_and_change_no_gate(armed_once):
    board, before = armed_once
    for body, result in [
        (bytes((protocol.VERSION + 1, protocol.COMMANDS["disarm"], 3)), "version_differs"),
        (bytes((protocol.VERSION, 0x7F, 3)), "unknown_command"),
        (bytes((protocol.VERSION, protocol.ANSWERS["status"], 3)), "unknown_command"),
        (bytes((protocol.VERSION, protocol.COMMANDS["disarm"], 3, 0)), "bad_length"),
        (bytes((protocol.VERSION, protocol.COMMANDS["set_mask"], 3, 100, 255)), "bad_length"),
    ]:
        board.set(2, 5)
        (answer,) = protocol.Decoder().feed(board.exchange(protocol.framed(body)))
        assert (answer.seq, protocol.result_name(answer["result"])) == (3, result)
        assert board.gates() == before


def test_broken_frames_are_counted(board):
    for _ in range(5):
        board.exchange(b"\x05abcd\0")
    assert board.command("read")["bad_frames"] == 5


def test_a_command_that_comes_in_single_bytes_and_after_noise_is_obeyed(armed):
    frame = armed.frame("set_mask", valid_for_ms=50, cells_on=6)
    answer = b"".join(armed.exchange(bytes((byte,))) for byte in b"noise\0" + frame)
    assert [m.seq for m in protocol.Decoder().feed(answer)] == [armed.number & 255]
    assert armed.gates()[:4] == [0, 255, 255, 0]


@pytest.fixture
def armed_once(armed):
    armed.set(2, 5)
    return armed, armed.gates()


# --- instances ---


def test_two_boards_in_one_process_are_independent(libboard):
    one, two = NativeBoard(libboard, serial=1), NativeBoard(libboard, serial=2, n_cells=6)
    one.ready()
    two.ready()
    one.set(1)
    two.set(2)
    before = bytes(two.memory)
    one.advance(50_000)
    one.set(*range(12))
    one.set_estop(True)
    one.advance(200_000)
    assert bytes(two.memory) == before
    assert (one.command("identify")["serial"], two.command("identify")["serial"]) == (1, 2)
    assert two.gates() == [0, 0, 255, 0, 0, 0]


def test_the_same_bytes_and_times_give_the_same_board_bit_for_bit(libboard):
    answers = []
    for _ in range(2):
        board = NativeBoard(libboard)
        board.ready()
        log = []
        for tick in range(200):
            fields = SET_COMMANDS["broadcast"] | {"tick": tick, "p_on_per_65536": 9000}
            log.append(board.exchange(board.frame("broadcast", **fields)))
            board.advance(1000)
        answers.append(log)
    assert answers[0] == answers[1]


def test_a_board_with_no_or_too_many_cells_is_refused(libboard):
    memory = ctypes.create_string_buffer(libboard.libboard_size())
    for n_cells in (0, 17, 255):
        assert libboard.libboard_init(memory, n_cells, 1, 3000, 0) == -1
