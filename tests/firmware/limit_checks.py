"""One sweep a limit, densely around its boundary; each takes any board and raises when it is wrong.

Expected values come from what protocol.h says of a limit: a level at its limit is allowed.
"""

import itertools
import math

from firmware.boards import KNOWN_COUNTS
from hil.devices.board import protocol

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
        for step_us in (*range(-300, 301, 50 if board.every == 1 else 100), late_us):
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


def current_under_toggling(board):
    """Breaks between two samples with the gate on start no count anew.

    On the host, scan and toggling meet again every 12 ms: two samples with the gate on in 24 ms.
    On the chip a command takes time, and a break may last just a scan: toggling drifts along it.
    """
    drift_us = 0 if board.exchange_us == 0 else 37
    board.limit(current_max_mA=1000, current_on_min_mA=125, heat_max_cA2ms=4_000_000_000)
    bound_us = 27_000 if board.exchange_us == 0 else 400_000
    for counts, fault in ((1023, "current_high"), (0, "current_low")):
        for on_ms, off_ms in ((3, 1), (1, 1), (1, 3)):
            board.ready()
            board.set_analog(CELL, on=counts)
            start_us = board.now_us()
            while not board.faults():
                board.set(CELL)
                board.advance(on_ms * 1000)
                board.set()
                board.advance(off_ms * 1000 + drift_us)
                assert board.now_us() - start_us < bound_us, (fault, on_ms, off_ms)
            assert board.faults() == [fault]
    # one bad sample of two is none, with the gate off between them or not
    board.limit(current_max_mA=1000, current_on_min_mA=125, heat_max_cA2ms=4_000_000_000)
    for counts in (1023, 0):
        board.ready()
        board.advance(board.scan_us - board.now_us() % board.scan_us)
        for n in range(10 if board.exchange_us == 0 else 0):
            board.set_analog(CELL, on=counts if n % 2 else 256)
            assert board.set(CELL) == "done"
            board.advance(board.scan_us)
            assert board.set() == "done"
            board.advance(board.scan_us)
        assert board.faults() == []
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
        answer = board.arm_cells()
        assert protocol.result_name(answer["result"]) == ("is_faulted" if expected else "done")
        assert protocol.fault_names(answer["fault_bits"]) == expected, f"{_mA(counts)} mA"
        assert answer["fault_cells"] == (1 << CELL if expected else 0)
        assert not any(board.gates())
        board.command("disarm")
        assert board.result("clear_faults") == "done"
        others = 0xFFF & ~(1 << CELL)
        assert protocol.result_name(board.arm_cells(others)["result"]) == "done"
        board.command("disarm")
    board.set_analog(CELL)
    board.limit()


def _passes_us(board, duration_us):
    """Time passes with all cells off; false as soon as the board has tripped."""
    return board.advance_fed(-(-duration_us // 1000) * 1000)


def references(board):
    """Each has its turn in four scans, and may be 12 counts from its level, on both multiplexers.

    On the chip a level is a voltage, which the converter may read a count beside it.
    """
    slack = 2 if board.exchange_us else 0
    other = {AVCC_V: round(1024 * 4.096 / AVCC_V) - KNOWN_COUNTS[1] for AVCC_V in (4.9, 5.1)}
    assert all(abs(counts) > 12 + slack for counts in other.values())  # 2 % off
    turn_us = 4 * board.scan_us
    board.limit()
    for reference, known in enumerate(KNOWN_COUNTS):
        for off in (-120, -13 - slack, -12 + slack, 12 - slack, 13 + slack, *other.values(), 120):
            if not 0 <= known + off <= 1023:
                continue
            board.ready()
            board.set_reference(reference, known + off)
            survived = _passes_us(board, 3 * turn_us)
            assert survived is (abs(off) <= 12), (reference, off)
            assert board.faults() == ([] if survived else ["scan_untrue"])
            if not survived:
                assert board.result("clear_faults") == "condition_present"
                board.set_reference(reference, known)
                board.advance(2 * turn_us)
                assert board.result("clear_faults") == "done"
    for multiplexer in (1, 2):  # of which one reads half supply where it should read full scale
        board.ready()
        board.set_address(multiplexer, 0, 2)
        assert not _passes_us(board, 3 * turn_us)
        assert board.faults() == ["scan_untrue"]
    if board.exchange_us:
        return
    for reference, known in enumerate(KNOWN_COUNTS):  # one bad turn is none
        board.ready()
        for counts in (known - 100, known) * 3:
            board.set_reference(reference, counts)
            assert _passes_us(board, turn_us)


def gates(board):
    """A pin that is not as its gate is set, and a gate that is set and not commanded."""
    board.limit()
    for cells, how in (((), "high"), ((CELL,), "low")):
        board.ready()
        assert board.set(*cells) == "done"
        board.advance(2000)
        board.set_analog(CELL, on=256, off=256 if cells else 0)
        board.set_stuck(CELL, how)
        assert not board.advance_fed(12_000, *cells)
        assert "gate_stuck" in board.faults()
        if how == "high":
            board.set_analog(CELL, on=0)
            board.advance(20_000)
            assert board.result("clear_faults") == "condition_present"
    if board.exchange_us:
        return
    board.ready()
    board.flip_gate(CELL, in_table=True)
    assert not board.advance_fed(12_000)
    assert board.faults() == ["gate_stuck"]
    for on_ms, off_ms in ((1, 1), (1, 2), (2, 1), (3, 3)):  # no rhythm is a fault
        board.ready()
        for _ in range(40):
            assert board.advance_fed(on_ms * 1000, CELL)
            assert board.advance_fed(off_ms * 1000)
    board.limit(persistence_scans=1)
    board.set_late(True)  # samples show what was a turn ago
    board.ready()
    for _ in range(40):
        assert board.advance_fed(9000, CELL)
        assert board.advance_fed(9000)
    board.set_late(False)
    board.limit()


def persistence(board):
    assert board.scan_us <= board.command("identify")["scan_period_us"]
    for scans in range(1, 11):
        board.limit(persistence_scans=scans)
        for n_bad in (scans - 1, scans):
            board.recover()
            board.set_analog(CELL, temperature=1023)
            late_us = board.exchange_us // 3  # the chip may read a cell a turn sooner or later
            late_us = late_us if n_bad >= scans else -late_us
            board.advance(max(0, n_bad * board.scan_us + late_us))
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


def on_time_exactly(board):
    """A cell may be on for as long as the limit, in whole milliseconds, wherever its turn is."""
    board.limit(on_time_max_ms=50)
    for phase_us in range(0, 12_000, 770):  # each of these readings moves the scan by 230 us
        board.ready()
        board.advance(phase_us)
        due_us = (board.now_us() // 1000 + 51) * 1000
        assert board.set(CELL) == "done"
        while any(board.gates()):
            board.advance(50)
        assert due_us <= board.now_us() <= due_us + board.scan_us + 500, phase_us
        assert board.faults() == ["cell_on_too_long"]
    board.limit()


def energy(board):
    """Of 1 A, 10^4 cA^2: the heat after k ms is k 10^4 cA^2 ms; next to nothing is carried away.

    Of a current the count above counts: 0.4 % more heat, and rounding up of every turn.
    """
    for limit_ms in (99, 100, 101)[:: board.every]:
        heat = limit_ms * 10_000
        board.limit(heat_max_cA2ms=4_000_000_000, heat_time_constant_ms=1)
        board.limit(heat_max_cA2ms=heat, heat_time_constant_ms=1)
        board.recover()  # used up is allowed
        board.cool()
        board.set_analog(CELL, on=512)
        board.arm()
        board.set_analog(CELL, on=512)
        # with the shortest time constant the heat of a step is 9 / 8 of what flowed in it
        assert board.advance_fed(100_000, CELL)
        board.limit(heat_max_cA2ms=heat, heat_time_constant_ms=400)
        board.recover()
        board.cool()
        board.set_analog(CELL, on=512)
        board.arm()
        trip_us = _until_trip_us(board, 3 * limit_ms, CELL)
        assert trip_us is not None
        rises_ms = -400 * math.log(1 - limit_ms / 400)
        last_ms = rises_ms + (board.scan_us + board.exchange_us) / 1000 + 2
        assert 0.98 * rises_ms - 2 <= trip_us / 1000 <= last_ms, (trip_us, heat)
        assert board.faults() == ["cell_energy_high"]
        assert board.result("clear_faults") == "condition_present"
        board.advance(300_000)
        assert board.result("clear_faults") == "done"
    board.limit()


def cooling(board):
    """A used-up cell is not too hot, and no more than an eighth of its heat may be used to arm."""
    board.limit(heat_max_cA2ms=8, heat_time_constant_ms=40)
    crc = board.command("identify")["limits_crc"]
    board.advance(6000)
    assert board.faults() == []
    for _ in range(400):
        before = board.command("read")["heat_per_255"][CELL] * 8 // 255
        result = board.result("arm", limits_crc=crc, cells=1 << CELL)
        if result == "supply_waits":
            break
        assert result == "cooling"
        assert before > 1
        board.advance(1000)
    # whatever the last look had, less than a step's loss has gone since
    assert before <= (1 if board.exchange_us == 0 else 2), before
    board.arm()
    board.limit()


def cooling_law(board):
    """A budget that is used up falls by exp(-t / tau): never faster, and a reading later at most.

    Where a reading comes later than a time constant, half of the heat goes at most.
    """
    for tau_ms in (1, 60, 400):
        board.limit(heat_max_cA2ms=4_000_000, heat_time_constant_ms=tau_ms)
        start_us = board.now_us()
        for _ in range(30):
            board.advance(max(500, 100 * tau_ms))
            passed_ms = (board.now_us() - start_us) / 1000
            share = board.command("read")["heat_per_255"][CELL]
            first_ms = passed_ms + board.exchange_us / 1000  # from storing the table to its answer
            assert share >= 255 * math.exp(-first_ms / tau_ms), (tau_ms, passed_ms)
            last_ms = passed_ms - 1 - board.scan_us / 1000
            if tau_ms > 1:
                assert share <= 1 + 256 * math.exp(-last_ms / tau_ms), (tau_ms, passed_ms)
    board.limit()


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
    reference_us = board.scan_us // 13  # its turn is the last, behind those of the cells
    board.advance(board.scan_us - reference_us)
    board.set_scan(False)
    board.advance(10_000 + reference_us - 50)
    assert board.faults() == []
    board.advance(100)
    assert board.faults() == ["scan_stale"]
    board.limit()


def emergency_stop(board):
    for phase_us in range(0, 3000, 130 if board.every == 1 else 270):
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
    crc = board.command("identify")["limits_crc"]
    assert crc == protocol.limits_crc(board.command("identify")["limits"])
    for bit in range(16):
        assert board.result("arm", limits_crc=crc ^ 1 << bit, cells=1) == "limits_differ"
        assert board.set(CELL) == "not_armed"
    assert protocol.result_name(board.arm_cells(1)["result"]) == "done"
    board.command("disarm")


def _told(board, name, cells):
    """A set command that is to switch these cells on, and its answer."""
    board.tick = getattr(board, "tick", 0) + 1
    fields = {
        "set_mask": {"cells_on": sum(1 << c for c in cells)},
        "set_duties": {"duty_per_255": [255 * (c in cells) for c in range(16)]},
        "broadcast": {
            "p_on_per_65536": protocol.PROBABILITY_ONE,
            "q_off_per_65536": 0,
            "tick": board.tick,
            "seed": 3,
            "first_cell": 0,
        },
    }
    return board.command(name, valid_for_ms=100, **fields[name])


def _break(board, cell, *on):
    """Its wire breaks while these cells are on; whether the board goes on, a few scans later."""
    board.set_analog(cell, on=0)
    return board.advance_fed(round(board.scan_us * 4 / 1000) * 1000, *on)


def open_cells(board):
    """As many as the limit allows are isolated, whoever asks for them; one more is the fault."""
    every, few = range(12), (0, 3, 5, 11)
    for most in (0, 1, 3):
        board.limit(open_cells_max=most)
        board.ready()
        assert board.set(*every) == "done"
        apart = 0
        for cell in few[:most]:
            assert _break(board, cell, *every)
            apart |= 1 << cell
            for name in ("set_mask", "set_duties", "broadcast"):
                answer = _told(board, name, every)
                assert protocol.result_name(answer["result"]) == "done"
                assert answer["cells_open"] == apart
                assert answer["cells_on"] == 0xFFF & ~apart
                assert board.gates() == [0 if apart >> c & 1 else 255 for c in every]
            reading = board.command("read")
            assert (reading["fault_bits"], reading["fault_cells"]) == (0, 0)
            assert reading["cells_open"] == apart
            assert [duty > 0 for duty in reading["duty_per_255"]][:12] == [
                not apart >> c & 1 for c in every
            ]
        for cell in few[:most]:  # a contact that closes again is not trusted
            board.set_analog(cell)
        assert board.advance_fed(20_000, *every)
        assert board.command("read")["cells_open"] == apart
        assert not _break(board, few[most], *every)
        assert not any(board.gates())
        reading = board.command("read")
        assert protocol.fault_names(reading["fault_bits"]) == ["current_low"]
        assert (reading["fault_cells"], reading["cells_open"]) == (1 << few[most], apart)
        board.ready()  # armed anew: all of them are looked at again
        assert board.command("read")["cells_open"] == 0
        assert board.set(*every) == "done"
        assert all(board.gates())
    board.limit()


def open_by_how_much(board):
    """A cell is isolated below current_on_min_mA, and only after persistence_scans."""
    board.limit(current_on_min_mA=125, open_cells_max=2)
    board.ready()
    for counts in (n for n in board.sweep(64) if n < 80):
        board.set_analog(CELL, on=counts)
        assert board.advance_fed(8000, CELL, CELL + 1)
        answer = board.command("read")
        assert answer["cells_open"] == (1 << CELL if _mA(counts) < 125 else 0), counts
        assert answer["fault_bits"] == 0
        board.set_analog(CELL)
        board.ready()
    for scans in (1, 2, 7):
        board.limit(persistence_scans=scans, open_cells_max=2)
        board.ready()
        assert board.set(CELL) == "done"
        start_us = board.now_us()
        board.set_analog(CELL, on=0)
        while board.gates()[CELL]:
            board.advance(50)
            assert board.now_us() - start_us < 60_000
        took_us = board.now_us() - start_us
        # the first reading is out of turn, the second in turn soon after
        assert (scans - 2) * board.scan_us < took_us, scans
        # a reading out of turn delays the others, a conversion is repeated after the gate's edge
        assert took_us <= scans * board.scan_us + board.reaction_us + 2 * 250, scans
        assert board.command("arm", limits_crc=0, cells=1)["cells_on"] == 0  # without a new command
    board.limit()


def open_at_arming(board):
    """The probe's policy is the same: what the limit allows is isolated before anything is on."""
    for most in (0, 1, 2):
        board.limit(open_cells_max=most)
        for n_open in range(most + 2):
            board.recover()
            for cell in range(n_open):
                board.set_analog(2 * cell, on=0)
            answer = board.arm_cells()
            apart = sum(1 << 2 * c for c in range(min(most, n_open)))
            assert answer["cells_open"] == apart
            assert not any(board.gates())
            if n_open > most:
                assert protocol.result_name(answer["result"]) == "is_faulted"
                assert protocol.fault_names(answer["fault_bits"]) == ["current_low"]
                assert answer["fault_cells"] == 1 << 2 * most
            else:
                assert protocol.result_name(answer["result"]) == "done"
                answer = board.command("set_mask", valid_for_ms=100, cells_on=0xFFF)
                assert answer["cells_on"] == 0xFFF & ~apart
                assert board.gates() == [0 if apart >> c & 1 else 255 for c in range(12)]
    board.limit()


def set_apart_and_watched(board):
    """A cell isolated that draws current all the same, or grows hot, trips as any other."""
    for most in (1, 16):
        board.limit(current_off_max_mA=125, open_cells_max=most)
        for counts in (n for n in board.sweep(64) if n < 80):
            board.ready()
            assert board.set(CELL, CELL + 1) == "done"
            assert _break(board, CELL, CELL, CELL + 1)
            board.set_analog(CELL, on=0, off=counts)
            survived = board.advance_fed(8000, CELL, CELL + 1)
            assert survived is (_mA(counts) <= 125), counts
            if not survived:
                assert not any(board.gates())
                reading = board.command("read")
                assert protocol.fault_names(reading["fault_bits"]) == ["current_when_off"]
                assert reading["fault_cells"] == reading["cells_open"] == 1 << CELL
                assert board.result("clear_faults") == "condition_present"
        board.ready()
        assert _break(board, CELL, CELL, CELL + 1)
        board.set_analog(CELL, on=0, temperature=1023)
        assert not board.advance_fed(8000, CELL, CELL + 1)
        assert board.faults() == ["temperature_high", "temperature_range"]
        board.ready()
        board.set_analog(CELL, on=0, temperature=1023)  # found in one sample: the fault counts
        assert board.set(CELL, CELL + 1) == "done"
        while board.gates()[CELL]:
            board.advance(50)
        board.advance(board.reaction_us)
        assert not any(board.gates())
        assert board.faults() == ["temperature_high", "temperature_range"]
    board.recover()
    board.limit()


def sensed_without_supply(board):
    """A reading of no current counts only with a supply; one too high always does."""
    for supply, on, faults in (
        (40, 9, []),
        (41, 9, ["current_low"]),
        (40, 10, []),
        (40, 600, ["current_high"]),
        (41, 10, []),
        (700, 0, ["current_low"]),
    ):
        board.recover()
        board.limit(sense_every_ms=20, current_on_min_mA=_mA(10), current_max_mA=_mA(599))
        board.ready()
        board.set_supply(supply)
        board.set_analog(4, on=on)
        board.advance_fed(150_000)
        assert board.faults() == faults, (supply, on)
        board.command("disarm")


def sensed_beside_cells_on(board):
    """A cell that is off is measured only while one more cell may be on."""
    board.limit(sense_every_ms=20, cells_on_max=2)
    board.set_supply(700)
    board.ready()
    assert {cell for cell, *_ in board.sensed(100_000, cells_on=0x003)} == {0, 1}
    assert len({cell for cell, *_ in board.sensed(100_000, cells_on=0x001)}) == 12


def open_without_a_command(board):
    """A cell set apart is off, counts as off and is measured no more before the next command."""
    board.limit(sense_every_ms=20, cells_on_max=2, open_cells_max=1)
    board.set_supply(700)
    board.ready()
    assert board.set(0, 1) == "done"
    board.set_analog(0, on=0)
    board.advance(12_000)
    reading = board.command("read")
    assert (reading["cells_open"], reading["duty_per_255"][:3]) == (1, (0, 255, 0))
    seen = set()
    for _ in range(60):
        board.advance(1000)
        first_cell = board.command("clear_faults")["first_cell"]  # an answer, but no set command
        seen |= {first_cell - protocol.SENSED} if first_cell >= protocol.SENSED else set()
    assert 0 not in seen
    assert seen > {1, 2}  # one more cell may be on
    board.limit()


def sensed_heat(board):
    """Pulses alone use up a budget that is small enough."""
    board.limit(sense_every_ms=20, heat_max_cA2ms=80_000, heat_time_constant_ms=60_000)
    board.set_supply(700)
    board.lib.libboard_rest(board.memory)
    board.recover()
    assert protocol.result_name(board.arm_cells()["result"]) == "done"
    board.advance_fed(8_000_000)
    assert board.faults() == ["cell_energy_high"]


CHECKS = [
    silence,
    hold,
    cells_at_once,
    current_with_the_gate_on,
    current_under_toggling,
    current_with_the_gate_off,
    temperature,
    probing,
    open_cells,
    open_by_how_much,
    open_at_arming,
    set_apart_and_watched,
    persistence,
    references,
    gates,
    on_time,
    energy,
    cooling,
    cooling_law,
    scan_age,
    emergency_stop,
    wrong_table,
]
NATIVE_CHECKS = [
    *CHECKS,
    scan_age_exactly,
    on_time_exactly,
    open_without_a_command,
    sensed_without_supply,
    sensed_beside_cells_on,
    sensed_heat,
]
