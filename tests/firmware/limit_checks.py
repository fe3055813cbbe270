"""One sweep a limit, densely around its boundary; each takes any board and raises when it is wrong.

Expected values come from what wire.h says of a limit: a level at its limit is allowed.
"""

import itertools

from hil import wire

CELL = 3


def _mA(counts):
    return counts * 2000 >> 10


def _cC(counts):
    return (counts * 50000 >> 10) - 5000


def _until_trip_us(board, at_most_ms, *cells):
    """Time from switching cells on to the trip; None without one."""
    board.advance(1000 - board.now_us() % 1000)  # the board counts whole milliseconds
    start_us = board.now_us()
    assert board.set(*cells) == "done"
    while board.now_us() - start_us < at_most_ms * 1000:
        for _ in range(4):
            board.advance(250)
            if not any(board.gates()):
                return board.now_us() - start_us
        board.set(*cells)
    return None


def silence(board):
    late_us = board.exchange_us + board.reaction_us + 50
    for silence_ms in (5, 50, 99, 100):
        board.limit(silence_max_ms=silence_ms)
        for step_us in (*range(-300, 301, 50), late_us):
            board.ready()
            fed_us = board.now_us()
            assert board.set(CELL) == "done"
            board.advance(silence_ms * 1000 + step_us - (board.now_us() - fed_us))
            tripped = not any(board.gates())
            if step_us <= 0:
                assert not tripped, f"{silence_ms} ms {step_us:+d} us"
            if step_us >= late_us:
                assert tripped, f"{silence_ms} ms {step_us:+d} us"
                assert board.faults() == ["host_silent"]
            board.command("disarm")
    board.limit()


def hold(board):
    for hold_max_ms in (50, 100):
        board.limit(hold_max_ms=hold_max_ms)
        board.recover()
        for asked_ms in (*board.sweep_ms(97), 100, 150, 255):
            board.arm()
            hold_us = min(asked_ms, hold_max_ms) * 1000
            start_us = board.now_us()
            assert board.set(CELL, ms=asked_ms) == "done"
            board.advance(hold_us - (board.now_us() - start_us))
            assert board.gates()[CELL] == 255
            board.advance(board.exchange_us + board.reaction_us + 50)
            assert not any(board.gates())
            if hold_us < 97_000:
                assert board.faults() == []
            else:
                board.command("clear_faults")
            board.command("disarm")
    board.limit()


def cells_at_once(board):
    for most in range(1, 17):
        board.limit(cells_on_max=most)
        board.ready()
        for n in range(min(most, board.n_cells) + 1):
            assert board.set(*range(n)) == "done"
            assert sum(duty > 0 for duty in board.gates()) == n
        if most < board.n_cells:
            assert board.set(*range(most + 1)) == "is_faulted"
            assert not any(board.gates())
            assert board.faults() == ["too_many_cells_on"]
    board.limit()


def current_with_the_gate_on(board):
    # limits that a count of the converter hits exactly, and no trip for energy
    board.limit(current_max_mA=1000, current_on_min_mA=125, heat_max_cA2ms=4_000_000_000)
    board.ready()
    for counts in board.sweep(64, 512):
        board.set_analog(CELL, on=counts)
        expected = ["current_high"] if _mA(counts) > 1000 else []
        expected += ["current_low"] if _mA(counts) < 125 else []
        survived = board.advance_fed(8000, CELL)
        assert board.faults() == expected, f"{_mA(counts)} mA"
        assert survived is not bool(expected)
        if expected:
            board.set_analog(CELL)
            board.ready()
        else:
            board.set()
    board.limit()


def current_with_the_gate_off(board):
    board.limit(current_off_max_mA=125)
    board.recover()
    for counts in board.sweep(64):
        board.set_analog(CELL, off=counts)
        board.advance(8000)
        expected = ["current_when_off"] if _mA(counts) > 125 else []
        assert board.faults() == expected, f"{_mA(counts)} mA"
        if expected:
            if counts % 256 == 0:
                board.advance(200_000)  # many scans later it is still so
            assert board.result("clear_faults") == "condition_present"
            board.recover()
    board.limit()


def temperature(board):
    board.limit(temperature_max_cC=7500)
    board.recover()
    for counts in board.sweep(20, 256, 1000):
        board.set_analog(CELL, temperature=counts)
        board.advance(8000)
        expected = ["temperature_high"] if _cC(counts) > 7500 else []
        expected += ["temperature_range"] if counts < 20 or counts > 1000 else []
        assert board.faults() == expected, f"{counts} counts, {_cC(counts)} cC"
        if expected:
            if counts % 256 == 0:
                board.advance(200_000)
            assert board.result("clear_faults") == "condition_present"
            board.recover()
    board.limit()


def probing(board):
    """A wire that is broken or shorted is found at arming, by a pulse."""
    board.limit(current_max_mA=1000, current_on_min_mA=125)
    board.recover()
    for counts in board.sweep(64, 512):
        board.set_analog(CELL, on=counts)
        expected = ["current_high"] if _mA(counts) > 1000 else []
        expected += ["current_low"] if _mA(counts) < 125 else []
        crc = board.command("identify")["limits_crc"]
        answer = board.command("arm", limits_crc=crc, cells=0xFFF)
        assert wire.result_name(answer["result"]) == ("is_faulted" if expected else "done")
        assert wire.fault_names(answer["fault_bits"]) == expected, f"{_mA(counts)} mA"
        assert answer["fault_cells"] == (1 << CELL if expected else 0)
        assert not any(board.gates())
        board.command("disarm")
        assert board.result("clear_faults") == "done"
        others = 0xFFF & ~(1 << CELL)
        assert board.result("arm", limits_crc=crc, cells=others) == "done"
        board.command("disarm")
    board.set_analog(CELL)
    board.limit()


def persistence(board):
    assert board.scan_us <= board.command("identify")["scan_period_us"]
    for scans in range(1, 11):
        board.limit(persistence_scans=scans)
        for n_bad in (scans - 1, scans):
            board.recover()
            board.set_analog(CELL, temperature=1023)
            board.advance(n_bad * board.scan_us)
            board.set_analog(CELL)
            assert (board.faults() != []) is (n_bad >= scans), f"{n_bad} of {scans}"
    board.limit()


def _trip_ms(board, limit_ms):
    """First and last time of a trip that is due once a whole millisecond exceeds limit_ms."""
    whole = board.whole_ms
    last_ms = limit_ms + 1 + (not whole) + (board.scan_us + board.exchange_us) / 1000
    return limit_ms + whole, last_ms + 0.5


def on_time(board):
    for limit_ms, phase_ms in itertools.product((199, 200, 201), board.phases_ms):
        board.limit(on_time_max_ms=limit_ms)
        board.ready()
        board.advance(board.scan_us - board.now_us() % board.scan_us + phase_ms * 1000)
        trip_us = _until_trip_us(board, 2 * limit_ms, CELL)
        assert trip_us is not None
        first_ms, last_ms = _trip_ms(board, limit_ms)
        assert first_ms <= trip_us / 1000 <= last_ms, f"{trip_us} us, limit {limit_ms} ms"
        assert board.faults() == ["cell_on_too_long"]
        board.recover()
        board.advance(limit_ms * 2000)  # a cell that is off is never on too long
        assert board.faults() == []
        board.arm()
        for _ in range(3):  # a break starts the time anew
            start_us = board.now_us()
            while board.now_us() - start_us < (limit_ms - 3) * 1000:
                assert board.set(CELL) == "done"
                board.advance(1000)
            board.set()
    board.limit()


def energy(board):
    """Of 1 A, 10^4 cA^2: the heat after k ms is k 10^4 cA^2 ms, less what is carried away."""
    for limit_ms in (99, 100, 101):
        for more in (-1, 0, 1):
            heat = limit_ms * 10_000 + more
            board.limit(heat_max_cA2ms=heat, current_continuous_mA=0)
            _forget_heat(board)
            board.set_analog(CELL, on=512)
            trip_us = _until_trip_us(board, 3 * limit_ms, CELL)
            assert trip_us is not None
            # exactly at the limit is allowed
            first_ms, last_ms = _trip_ms(board, limit_ms - (more < 0))
            assert first_ms - (not board.whole_ms) <= trip_us / 1000 <= last_ms, (trip_us, heat)
            assert board.faults() == ["cell_energy_high"]
            assert board.result("clear_faults") == "condition_present"
    board.limit()
    _forget_heat(board)


def _forget_heat(board):
    board.reset("external")
    board.ready()


def scan_age(board):
    for age_ms in (10, 20, 35, 50):
        board.limit(scan_age_max_ms=age_ms)
        board.ready()
        assert board.set(CELL) == "done"
        board.advance(7_000)  # arming has held the scan up
        board.set_scan(False)
        start_us = board.now_us()
        while any(board.gates()):
            board.advance(50)
            assert board.now_us() - start_us < 90_000
        stopped_us = board.now_us() - start_us
        late_us = (age_ms + 1) * 1000 + 1050 + board.reaction_us
        assert (age_ms + 1) * 1000 - board.scan_us - board.exchange_us - 50 <= stopped_us <= late_us
        assert board.faults() == ["scan_stale"]
        assert board.result("clear_faults") == "condition_present"
        board.set_scan(True)
    board.limit()


def scan_age_exactly(board):
    """The scan may be as old as the limit: seen where a scan's end is known to the millisecond."""
    board.limit(scan_age_max_ms=10)
    board.ready()
    board.advance(board.scan_us - board.now_us() % board.scan_us)
    board.set_scan(False)
    board.advance(10_950)
    assert board.faults() == []
    board.advance(100)
    assert board.faults() == ["scan_stale"]
    board.limit()


def emergency_stop(board):
    for phase_us in range(0, 3000, 130):
        board.ready()
        assert board.set(*range(12)) == "done"
        board.advance(phase_us)
        assert all(board.gates())
        board.set_estop(True)
        board.advance(1000)
        assert not any(board.gates())
        assert board.faults() == ["estop_open"]
        assert board.result("clear_faults") == "condition_present"
        assert board.set(CELL) == "is_faulted"
    board.recover()


def wrong_table(board):
    """Arming is refused to a host that believes in other limits, and only to it."""
    board.recover()
    crc = wire.limits_crc(wire.default_limits())
    for bit in range(16):
        assert board.result("arm", limits_crc=crc ^ 1 << bit, cells=1) == "limits_differ"
        assert board.set(CELL) == "not_armed"
    assert board.result("arm", limits_crc=crc, cells=1) == "done"
    board.command("disarm")


CHECKS = [
    silence,
    hold,
    cells_at_once,
    current_with_the_gate_on,
    current_with_the_gate_off,
    temperature,
    probing,
    persistence,
    on_time,
    energy,
    scan_age,
    emergency_stop,
    wrong_table,
]
NATIVE_CHECKS = [*CHECKS, scan_age_exactly]
