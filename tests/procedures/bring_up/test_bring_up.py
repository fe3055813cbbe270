"""The guided first power-up finds every fault of a board's wiring, names it, and stops there.

The boards carry the shipped firmware; the faults are in the simulated wiring around it.
"""

import ctypes
import io
import json
import os
import signal
from dataclasses import replace
from datetime import UTC, date, datetime

import numpy as np
import pytest

from hil.__main__ import main
from hil.calibration.files import load_any
from hil.devices.board import protocol
from hil.devices.board.emulated import EmulatedBoard, check_tools
from hil.devices.board.native import NativeBoard
from hil.devices.board.port import SerialPort
from hil.errors import ConfigError, DeviceError
from hil.procedures.bring_up import steps
from hil.procedures.bring_up.bench import FAULTS, SimulatedBench
from hil.procedures.bring_up.judge import failure
from hil.procedures.bring_up.line import Line
from hil.procedures.bring_up.people import Person, Rehearsing
from hil.procedures.bring_up.run import BringUpRequest, Failed, bring_up
from hil.procedures.bring_up.setup import Setup
from hil.procedures.run import Done

LIMITS = protocol.default_limits() | {
    "current_max_mA": 222, "heat_max_cA2ms": 217932, "on_time_max_ms": 20000,
}  # fmt: skip
SETUP = Setup("board", "native", ("a.1", "a.2", "a.3", "a.4"), LIMITS, 8.0, 50.0, 0.17, None)


class Quick(Rehearsing):
    """Reads an ammeter in a fifth of a second, and counts what it did."""

    def __init__(self, bench):
        super().__init__(bench)
        self.did = []

    def do(self, step, at):
        self.did.append(step.key)
        return super().do(step, at)

    def measure(self, step, at):
        self.did.append(step.key)
        return super().measure(step, at)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(steps, "READ_S", 0.2)


def board_of(serial=7, limits=LIMITS):
    return NativeBoard(serial, dict(limits), np.random.default_rng(0))


def bench_of(board, *faults, seed=0, setup=SETUP):
    return SimulatedBench(board, setup, faults, seed)


@pytest.fixture
def asked(configs, tmp_path):
    """A bring-up of wires4, with its record in the test's folder."""
    return BringUpRequest(rig=configs / "wires4/rig.toml", by="A. Tester", meter="M 1",
                 out=tmp_path / "record.toml", load_Ohm=50.0)  # fmt: skip


def played(board, bench):
    return board, Quick(bench)


def is_safe(board, limits):
    """Gates low, disarmed or faulted, and its own table in the board."""
    board.advance(1000)
    line = Line("board", board, Quick(bench_of(board)))
    identity = line.meet()
    return not board.gates().any() and identity["state"] != protocol.STATES["armed"] and (
        identity["limits"] == limits)  # fmt: skip


# --- a sound board --------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_sound_board_gets_a_signed_record_with_what_its_currents_are_off(asked, rig_limits, seed):
    board = board_of(limits=rig_limits)
    bench = bench_of(board, seed=seed)
    done = bring_up(asked, played(board, bench))
    assert isinstance(done, Done)
    record = load_any(asked.out, named_by="test").record  # its hash covers it
    assert (record.kind, record.status, record.article.serial) == ("bring_up", "measured", "7")
    assert (record.act.by, record.act.date) == ("A. Tester", datetime.now(UTC).date())
    assert record.notes["estop"] == "seen to cut the supply"
    source = load_any(asked.out, named_by="test")
    for i, gain in enumerate(bench.gain[:4], start=1):
        off = source.value(f"current_ratio.{i}") - 1.0 / gain
        assert abs(off) < 3.0 * source.uncertainty(f"current_ratio.{i}")
    readings = dict(zip(record.raw.data["step"], record.raw.data["reading"], strict=True))
    assert json.loads(readings["watchdog"]) == {"reset_by": "watchdog"}
    assert json.loads(readings["brown_out"]) == {"reset_by": "brown_out"}
    assert not asked.out.with_suffix(".journal").exists()
    assert is_safe(board, rig_limits)


@pytest.fixture
def rig_limits(asked):
    from hil.procedures.bring_up.setup import of_rig

    return dict(of_rig(asked.rig, (), None, None, None).table)


def test_the_uncertainty_of_a_ratio_is_that_of_meter_and_converter(asked, rig_limits):
    """1 % of the meter and a count of 1 A / 1023, both uniform, at 0.16 A."""
    board = board_of(limits=rig_limits)
    done = bring_up(asked, played(board, bench_of(board)))
    reading_A, count_A = 0.16, 1.0 / 1023
    u = np.hypot(0.01 / np.sqrt(3.0), count_A / reading_A / np.sqrt(12.0))
    assert done.record.uncertainty("current_ratio.1") == pytest.approx(u, rel=0.02)


class Stalls(Quick):
    """A computer that stands still for 70 ms now and then: a command holds for 50 ms."""

    n_waits = 0

    def wait(self, duration_s):
        self.n_waits += 1
        super().wait(duration_s if self.n_waits % 5 else max(duration_s, 0.07))


def test_a_computer_that_stalls_makes_no_wrong_current(asked, rig_limits):
    board = board_of(limits=rig_limits)
    bench = bench_of(board)
    done = bring_up(asked, (board, Stalls(bench)))
    assert isinstance(done, Done)
    off = done.record.value("current_ratio.2") - 1.0 / bench.gain[1]
    assert abs(off) < 3.0 * done.record.uncertainty("current_ratio.2")


# --- faults ---------------------------------------------------------------------------------------

FOUND = {
    "no_pull_down": ("gates_in_reset", "a gate is at 1.9 V in reset", "10 kOhm"),
    "stuck_mux": ("inputs", "scan_untrue", "address lines PC0 to PC3"),
    "dead_estop": ("estop_seen", "the e-stop was not seen", "second pair of its contacts"),
    "dead_watchdog": ("watchdog", "was not reset", "WDTON"),
    "dead_brown_out": ("brown_out", "was not reset", "BODLEVEL"),
    "welded_k1": ("rail_dead", "the board finds supply_stuck", "relay K1 and K2, of which one"),
    "low_supply": ("supply", "is 6.4 V before relay K1", "supply's setting"),
    "dead_k1": (
        "relay",
        "relay K1 is to close, and the board reads 8.00 V",
        "its coil and contact",
    ),
    "welded_relay": ("estop_cuts", "8 V are left before relay K1", "contacts are welded"),
    "shorted_gate": ("leaks", "current_when_off at output {cell} (", "MOSFET at this output"),
    "swapped_gates": ("gates", "swapped", "wires from gates"),
    "dead_gate": ("gates", "gate {cell} is on and output {cell} (", "MOSFET at this output"),
    "gain_double": ("current.{cell}", "the gain is off by two", "type of its amplifier"),
    "gain_half": ("current.{cell}", "the gain is off by two", "type of its amplifier"),
    "blind_short": ("shorted", "is shorted, and the board finds no fault", "link is at output 1"),
    "broken_wire": ("wire", "current_low at output 1", "load or wire at this output"),
}


def test_every_fault_of_a_rehearsal_is_tried_here():
    assert set(FOUND) == set(FAULTS)


def check_found(done, fault, bench):
    at, what, check = (text.format(cell=bench.cell + 1) for text in FOUND[fault])
    assert isinstance(done, Failed)
    assert done.key == at
    assert what in done.failure.what
    assert check in done.failure.check


@pytest.mark.parametrize("seed", [0, 3])
@pytest.mark.parametrize("fault", FOUND)
def test_every_fault_is_found_and_named_and_nothing_is_energised_after_it(
    asked, rig_limits, fault, seed
):
    board = board_of(limits=rig_limits)
    bench = bench_of(board, fault, seed=seed)
    guided = Quick(bench)
    done = bring_up(asked, (board, guided))
    check_found(done, fault, bench)
    asked_alone = ("inputs", "relay", "leaks", "gates")
    assert guided.did[-1:] == [done.key] or done.key in asked_alone
    assert not asked.out.exists()
    assert is_safe(board, rig_limits)


@pytest.mark.parametrize("what", ["hold", "armed", "silence"])
def test_a_gate_is_off_and_the_board_disarmed_as_soon_as_it_was_looked_at(what):
    board = board_of()
    bench = bench_of(board)
    bench.connect("dummy loads")
    line = Line("board", board, bench)
    line.open()
    seen = line.hold(1, 0.2) if what == "hold" else getattr(line, what)(1)
    assert seen.result == "done"
    assert not board.gates().any()
    assert line.meet()["state"] == protocol.STATES["disarmed"]


def test_swapped_gates_are_both_named(asked, rig_limits):
    board = board_of(limits=rig_limits)
    bench = bench_of(board, "swapped_gates", seed=1)
    done = bring_up(asked, played(board, bench))
    first, second = sorted((bench.cell + 1, bench.other + 1))
    assert done.failure.what.startswith(f"gate {first} drives the current of input {second}:")


@pytest.mark.parametrize("multiplexers", [1, 2])
@pytest.mark.parametrize(
    ("low", "high", "words"),
    [*((1 << bit, 0, "scan_untrue") for bit in range(4)),
     (0, 1, "scan_untrue"), (0, 2, "scan_untrue"),
     (0, 4, "bit 2 of its multiplexers' address stays at 1"),
     (0, 8, "bit 3 of its multiplexers' address stays at 1")],
)  # fmt: skip
def test_every_stuck_address_is_found(multiplexers, low, high, words):
    board = board_of()
    bench = bench_of(board)
    board._library.libboard_set_address(board._board, multiplexers, low, high)
    line = Line("board", board, bench)
    line.open()
    found = failure("inputs", line.idle().as_dict(), SETUP)
    assert words in found.what
    assert "address lines PC0 to PC3" in found.check


@pytest.mark.slow
@pytest.mark.parametrize("fault", [None, *FOUND])
def test_the_emulated_chip_is_brought_up_and_shows_every_fault(asked, rig_limits, fault):
    """The quick siblings above run the same firmware, compiled for this machine."""
    check_tools()
    _on_the_chip(asked, rig_limits, fault)


def test_the_emulated_chip_shows_swapped_gates(asked, rig_limits):
    check_tools()
    _on_the_chip(asked, rig_limits, "swapped_gates")


def _on_the_chip(asked, rig_limits, fault):
    chip = EmulatedBoard(77, rig_limits)
    port = SerialPort("board", chip.url, chip.sent_s, chip.arrived_s)
    bench = bench_of(chip, *([fault] if fault else []))
    done = bring_up(asked, (port, Quick(bench)))
    if fault is None:
        assert isinstance(done, Done)
        assert done.record.record.article.serial == "77"
    else:
        check_found(done, fault, bench)


# --- every judgement has an edge ------------------------------------------------------------------

SOUND = {"faults": [], "fault_cells": [], "result": "done", "current_A": [0.16] * 4}
ALONE = {"faults": [], "fault_cells": [], "result": "done"}
VOLTS = {"feed_V": 8.0, "rail_V": 8.0}
RELAY = {**ALONE, "result": "not_armed", "closed": VOLTS, "opened": VOLTS | {"rail_V": 0.0}}
OPEN = [{**ALONE, "faults": ["current_low"], "fault_cells": [i]} for i in range(4)]
DRIVES = [{**ALONE, "current_A": [0.16 * (i == k) for k in range(4)]} for i in range(4)]


def with_(found, i, **changed):
    return [{**one, **(changed if k == i else {})} for k, one in enumerate(found)]


@pytest.mark.parametrize(
    ("key", "reading", "is_well"),
    [
        ("gates_in_reset", {"typed": 0.5, "reset_by": "external"}, True),
        ("gates_in_reset", {"typed": 0.51, "reset_by": "external"}, False),
        ("gates_in_reset", {"typed": 0.0, "reset_by": ""}, False),
        ("gates_in_reset", {"typed": -0.51, "reset_by": "external"}, False),  # leads exchanged
        ("inputs", SOUND, True),
        ("inputs", {**SOUND, "faults": ["temperature_range"], "fault_cells": [2]}, False),
        ("estop_seen", {"seen": "yes"}, True),
        ("estop_seen", {"seen": "it was not"}, False),
        ("watchdog", {"reset_by": "watchdog"}, True),
        ("watchdog", {"reset_by": "brown_out"}, False),
        ("brown_out", {"reset_by": "brown_out"}, True),
        ("brown_out", {"reset_by": "power_on"}, False),
        ("open_loads", {"outputs": OPEN}, True),
        ("open_loads", {"outputs": OPEN[:3]}, False),
        ("open_loads", {"outputs": with_(OPEN, 3, fault_cells=[2])}, False),
        ("open_loads", {"outputs": with_(OPEN, 1, faults=[])}, False),
        ("open_loads", {"outputs": with_(OPEN, 1, faults=["current_high"])}, False),
        ("rail_dead", {**SOUND, "typed": 0.5, "rail_V": 0.0}, True),
        ("rail_dead", {**SOUND, "typed": 0.51, "rail_V": 0.0}, False),
        ("rail_dead", {**SOUND, "typed": -8.0, "rail_V": 0.0}, False),
        ("rail_dead", {**SOUND, "typed": 0.0, "rail_V": 8.0, "faults": ["supply_stuck"]}, False),
        ("supply", {**SOUND, "typed": 8.8, "feed_V": 8.8}, True),
        ("supply", {**SOUND, "typed": 7.2, "feed_V": 7.2}, True),
        ("supply", {**SOUND, "typed": 8.81, "feed_V": 8.8}, False),
        ("supply", {**SOUND, "typed": 7.19, "feed_V": 7.2}, False),
        # 5 % of the meter's 8 V and two steps of 20 V / 255: 0.56 V
        ("supply", {**SOUND, "typed": 8.0, "feed_V": 8.55}, True),
        ("supply", {**SOUND, "typed": 8.0, "feed_V": 8.57}, False),
        ("supply", {**SOUND, "typed": 8.0, "feed_V": 7.43}, False),
        ("supply", {**SOUND, "typed": 8.0, "feed_V": 8.0, "faults": ["current_when_off"]}, False),
        ("relay", RELAY, True),
        ("relay", {**RELAY, "closed": {"feed_V": 8.0, "rail_V": 7.45}}, True),
        ("relay", {**RELAY, "closed": {"feed_V": 8.0, "rail_V": 7.43}}, False),
        ("relay", {**RELAY, "opened": {"feed_V": 8.0, "rail_V": 0.5}}, True),
        ("relay", {**RELAY, "opened": {"feed_V": 8.0, "rail_V": 0.51}}, False),
        ("relay", {**RELAY, "opened": {"feed_V": 0.0, "rail_V": 0.0}}, False),  # nothing is proven
        ("relay", {**RELAY, "result": "supply_waits"}, False),
        ("relay", {**RELAY, "faults": ["supply_stuck"]}, False),
        ("estop_cuts", {"open": True, "typed": 0.5, "feed_V": 0.0}, True),
        ("estop_cuts", {"open": True, "typed": 0.51, "feed_V": 0.0}, False),
        ("estop_cuts", {"open": True, "typed": 0.0, "feed_V": 0.51}, False),
        ("estop_cuts", {"open": False, "typed": 0.0, "feed_V": 0.0}, False),
        ("estop_cuts", {"open": True, "typed": -8.0, "feed_V": 0.0}, False),
        ("leaks", {**ALONE, "result": "not_armed"}, True),
        ("leaks", {**ALONE, "result": "supply_waits"}, False),
        ("leaks", {**ALONE, "result": "not_armed", "faults": ["current_when_off"]}, False),
        ("estop_released", SOUND, True),
        ("estop_released", {**SOUND, "faults": ["estop_open"]}, False),
        ("gates", {"gates": DRIVES}, True),
        ("gates", {"gates": DRIVES[:3]}, False),
        ("gates", {"gates": with_(DRIVES, 0, current_A=[0.041, 0, 0, 0])}, True),
        ("gates", {"gates": with_(DRIVES, 0, current_A=[0.039, 0, 0, 0])}, False),
        ("gates", {"gates": with_(DRIVES, 3, current_A=[0.16, 0, 0, 0])}, False),
        ("gates", {"gates": with_(DRIVES, 1, faults=["current_when_off"], fault_cells=[2])}, False),
        ("gates", {"gates": with_(DRIVES, 1, result="not_armed")}, False),
        # 5 % of the meter's 0.16 A and two counts of 2 A / 1023: 11.9 mA
        ("current.2", {**SOUND, "current_A": [0, 0.1719, 0, 0], "typed": 0.16}, True),
        ("current.2", {**SOUND, "current_A": [0, 0.1720, 0, 0], "typed": 0.16}, False),
        ("current.2", {**SOUND, "current_A": [0, 0.1481, 0, 0], "typed": 0.16}, True),
        ("current.2", {**SOUND, "current_A": [0, 0.1480, 0, 0], "typed": 0.16}, False),
        ("current.2", {**SOUND, "current_A": [0.16, 0, 0, 0], "typed": 0.16}, False),
        ("current.2", {**SOUND, "current_A": [0, 0.1910, 0, 0], "typed": 0.1915}, True),
        ("current.2", {**SOUND, "current_A": [0, 0.1930, 0, 0], "typed": 0.1925}, False),
        ("current.2", {**SOUND, "current_A": [0, 0.1275, 0, 0], "typed": 0.1275}, False),
        ("current.2", {**SOUND, "typed": 0.16, "result": "not_armed"}, False),
        ("shorted", {**ALONE, "faults": ["current_high"], "fault_cells": [0]}, True),
        ("shorted", {**ALONE, "faults": ["current_high"], "fault_cells": [1]}, False),
        ("shorted", {**ALONE, "faults": []}, False),
        ("shorted", {**ALONE, "faults": ["current_low"], "fault_cells": [0]}, False),
        ("silence", {**ALONE, "faults": ["host_silent"]}, True),
        ("silence", {**ALONE, "faults": []}, False),
        ("silence", {**ALONE, "faults": ["host_silent"], "result": "is_faulted"}, False),
        # 0.7 to 1.2 times the 0.17 A of the rig's wire
        ("wire", {**SOUND, "current_A": [0.120, 0, 0, 0]}, True),
        ("wire", {**SOUND, "current_A": [0.118, 0, 0, 0]}, False),
        ("wire", {**SOUND, "current_A": [0.203, 0, 0, 0]}, True),
        ("wire", {**SOUND, "current_A": [0.205, 0, 0, 0]}, False),
        ("wire", {**SOUND, "faults": ["current_low"], "fault_cells": [0]}, False),
        ("wire", {**SOUND, "result": "not_armed"}, False),
        ("wire_stopped", {**SOUND, "faults": ["estop_open"], "result": "is_faulted"}, True),
        ("wire_stopped", SOUND, False),
        ("wire_stopped", {**SOUND, "faults": ["cell_energy_high", "estop_open"]}, False),
    ],
)
def test_what_must_be_seen_ends_where_it_says(key, reading, is_well):
    found = failure(key, reading, SETUP)
    assert (found is None) == is_well
    assert is_well or (found.what and found.check)


@pytest.mark.parametrize(
    ("reads_A", "words"),
    [(0.320, "twice"), (0.080, "half of"), (0.290, "twice"), (0.240, "1.5 times"),
     (0.110, "0.688 times")],
)  # fmt: skip
def test_a_gain_off_by_two_is_told_from_one_that_is_off(reads_A, words):
    reading = {**SOUND, "current_A": [reads_A, 0, 0, 0], "typed": 0.16}
    assert words in failure("current.1", reading, SETUP).what


def test_every_fault_of_a_board_has_something_to_check_first():
    for fault in protocol.FAULTS:
        reading = {**SOUND, "faults": [fault], "fault_cells": [0]}
        assert failure("inputs", reading, SETUP).check


def test_the_table_for_loads_lets_a_doubled_reading_pass_and_keeps_every_other_limit():
    table = SETUP.loads_table()
    changed = {k for k, v in table.items() if v != LIMITS[k]}
    assert changed == {"current_on_min_mA", "current_max_mA", "heat_max_cA2ms"}
    twice_mA = 2.0 * 160.0
    assert twice_mA < table["current_max_mA"] < 2.5 * 160.0
    held_on = (0.1 * twice_mA) ** 2 * (LIMITS["heat_time_constant_ms"] + 16)  # firmware/README.md
    assert held_on < table["heat_max_cA2ms"]


# --- it goes on where it stopped ------------------------------------------------------------------


class Leaves(Quick):
    """Stops at a step: by Ctrl-C, or because somebody pulls the plug."""

    def __init__(self, bench, at, error):
        super().__init__(bench)
        self._at, self._error = at, error

    def do(self, step, at):
        if step.key == self._at:
            raise self._error
        return super().do(step, at)

    def measure(self, step, at):
        if step.key == self._at:
            raise self._error
        return super().measure(step, at)


@pytest.mark.parametrize("at", ["brown_out", "estop_cuts", "current.3", "wire"])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), DeviceError("board: is it unplugged?")])
def test_it_goes_on_after_the_last_step_and_leaves_the_board_as_it_was(
    asked, rig_limits, at, error
):
    board = board_of(limits=rig_limits)
    bench = bench_of(board)
    with pytest.raises(type(error)):
        bring_up(asked, (board, Leaves(bench, at, error)))
    assert is_safe(board, rig_limits)
    again = Quick(bench)
    assert isinstance(bring_up(asked, (board, again)), Done)
    keys = [step.key for step in steps.steps_of(SETUP)]
    waiting = [step.key for step in steps.steps_of(SETUP) if step.waits]
    assert list(dict.fromkeys(again.did)) == [k for k in waiting if k in keys[keys.index(at) :]]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_leaves_the_board_as_it_was_and_a_second_one_meanwhile_changes_nothing(
    asked, rig_limits, number
):
    board = board_of(limits=rig_limits)
    bench = bench_of(board)

    class Ends(Quick):
        def measure(self, step, at):
            if step.key == "current.3":
                os.kill(os.getpid(), number)
            return super().measure(step, at)

    close = board.close
    board.close = lambda: (os.kill(os.getpid(), number), close())
    with pytest.raises(KeyboardInterrupt, match=number.name):
        bring_up(asked, (board, Ends(bench)))
    assert is_safe(board, rig_limits)


def test_ctrl_c_says_how_to_continue(asked, rig_limits, capsys):
    board = board_of(limits=rig_limits)
    with pytest.raises(KeyboardInterrupt):
        bring_up(asked, (board, Leaves(bench_of(board), "supply", KeyboardInterrupt())))
    said = capsys.readouterr().err
    assert "record.journal keeps the readings: run the same command to continue" in said


def test_a_failure_repeats_its_stage_and_nothing_before_it(asked, rig_limits):
    board = board_of(limits=rig_limits)
    failed = bring_up(asked, played(board, bench_of(board, "gain_double", seed=3)))
    assert failed.key.startswith("current.")
    repaired = Quick(bench_of(board, seed=3))
    assert isinstance(bring_up(asked, (board, repaired)), Done)
    assert repaired.did[0] == "current.1"


def test_the_table_that_a_killed_bring_up_left_in_the_board_is_replaced_by_its_own(
    asked, rig_limits
):
    """A power cut in the middle of the loads: the board has the table for loads."""
    board = board_of(limits=rig_limits)
    bench = bench_of(board)
    line = Line("board", board, bench)
    line.open()
    line.use(replace(SETUP, limits=rig_limits, load_Ohm=50.0).loads_table())
    assert isinstance(bring_up(asked, played(board, bench)), Done)
    assert is_safe(board, rig_limits)


@pytest.mark.parametrize(("key", "value"), [("current_on_min_mA", 0), ("silence_max_ms", 90)])
def test_a_board_with_other_limits_than_its_rig_is_refused_and_keeps_them(
    asked, rig_limits, key, value
):
    other = rig_limits | {key: value}
    board = board_of(limits=other)
    failed = bring_up(asked, played(board, bench_of(board)))
    assert (failed.key, failed.failure.what) == (
        "identity",
        f"limits differ: {key} is {value} on the board, and should be {rig_limits[key]}",
    )
    assert is_safe(board, other)
    assert not asked.out.with_suffix(".journal").exists()


def test_another_board_is_not_given_the_readings_of_the_first(asked, rig_limits):
    board, other = board_of(7, rig_limits), board_of(8, rig_limits)
    with pytest.raises(KeyboardInterrupt):
        bring_up(asked, (board, Leaves(bench_of(board), "wire", KeyboardInterrupt())))
    with pytest.raises(ConfigError, match="holds readings of another session"):
        bring_up(asked, played(other, bench_of(other)))
    assert is_safe(other, rig_limits)


def test_a_board_that_is_changed_in_the_middle_is_noticed_at_the_next_step(asked, rig_limits):
    board, other = board_of(7, rig_limits), board_of(8, rig_limits)

    class Changed(Quick):
        def measure(self, step, at):
            if step.key == "supply":
                board.__dict__.update(other.__dict__)
            return super().measure(step, at)

    with pytest.raises(DeviceError, match="another board answers: serial 8, not 7"):
        bring_up(asked, (board, Changed(bench_of(board))))
    assert is_safe(other, rig_limits)


@pytest.mark.parametrize("change", ["serial", "firmware", "fuses"])
def test_a_board_that_no_run_would_accept_is_refused_at_once(asked, rig_limits, change, configs):
    board = board_of(limits=rig_limits)
    if change == "fuses":
        board._library.libboard_set_fuses(ctypes.c_void_p(board._board), 0xF7, 0xD6, 0xFC)
        board.reset()
    else:
        value = {"serial": "41", "firmware": "0badcafe"}[change]
        asked = replace(asked, sets=(f'devices.board.{change}="{value}"',))
    guided = Quick(bench_of(board))
    failed = bring_up(asked, (board, guided))
    assert failed.key == "identity"
    words = {"serial": "not 41", "firmware": "not 0badcafe", "fuses": "WDTON"}
    assert words[change] in failed.failure.what
    assert guided.did == []


# --- somebody at the terminal ---------------------------------------------------------------------


class Typing(Person):
    """Somebody who works at a simulated bench and types at the terminal."""

    def __init__(self, bench):
        super().__init__()
        self._bench = bench
        self.wait, self.now_s, self.set_estop = bench.wait, bench.now_s, bench.set_estop

    def connect(self, stage, text):
        super().connect(stage, text)
        self._bench.connect(stage)

    def do(self, step, at):
        self._bench.do(step.key)
        return super().do(step, at)

    def measure(self, step, at):
        self._bench.do(step.key)
        return super().measure(step, at)


def test_somebody_types_readings_and_wrong_answers_are_asked_again(
    asked, rig_limits, monkeypatch, capsys
):
    board = board_of(limits=rig_limits)
    typed = [
        "", "0,01", "nan", "ten", "", "0.01", "yes", "", "", "",  # e-stop, clock, 5 V
        "so", "", "0.0", "80", "8.0", "0.02", "", "",  # rail, supply, e-stop, loads
        *["", "160", "0.16"], *["", "0.16"] * 3, "", "",
        "", "", "",
    ]  # fmt: skip
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(typed) + "\n"))
    done = bring_up(asked, (board, Typing(bench_of(board))))
    assert isinstance(done, Done)
    said = capsys.readouterr().err
    assert "'0,01' is not a number: a reading in V, with a decimal point" in said
    assert "'nan' is not a number: a reading in V" in said
    assert "'ten' is not a number: a reading in V" in said
    assert "'' is not a number" in said
    assert "'so' is not Enter" in said
    assert "'yes' is neither Enter nor u" in said
    assert "80 V: 4 to 16 V was expected: type it again if the meter shows it" in said
    assert "160 A: 0.08 to 0.32 A was expected" in said


def test_an_unlikely_reading_that_is_typed_twice_is_taken_and_judged(
    asked, rig_limits, monkeypatch
):
    board = board_of(limits=rig_limits)
    typed = ["", "0.01", "", "", "", "", "0.0", "1.5", "1.5"]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(typed) + "\n"))
    failed = bring_up(asked, (board, Typing(bench_of(board))))
    assert failed.failure.what.startswith("the cells' supply is 1.5 V before relay K1")


def test_u_goes_back_a_step_and_the_end_of_the_input_keeps_the_readings(
    asked, rig_limits, monkeypatch
):
    board = board_of(limits=rig_limits)
    typed = ["", "0.01", "", "", "", "", "0.0", "8.1", "u", "8.2"]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(typed) + "\n"))
    with pytest.raises(KeyboardInterrupt):
        bring_up(asked, (board, Typing(bench_of(board))))
    lines = asked.out.with_suffix(".journal").read_text().splitlines()
    kept = [json.loads(line) for line in lines]
    supplies = [line["value"]["typed"] for line in kept if line.get("key") == "supply"]
    assert supplies == [8.1, 8.2]


# --- bad input ------------------------------------------------------------------------------------


def refused(capsys, *words):
    assert main(["board", "bring-up", *map(str, words)]) == 2
    captured = capsys.readouterr()
    (line,) = captured.err.splitlines()
    assert captured.out == ""
    return line


def test_bad_input_is_one_line(configs, tmp_path, capsys):
    rig = configs / "wires4/rig.toml"
    assert "give either RIG.toml, or --port" in refused(capsys)
    assert "give --by" in refused(capsys, rig)
    assert "give --by" in refused(capsys, rig, "--by", "  ")
    assert "give --meter" in refused(capsys, rig, "--by", "A", "--meter", " ")
    assert refused(capsys, rig, "--rehearse", "--fault", "gain_doubel") == (
        "--fault gain_doubel: unknown: did you mean 'gain_double'?"
    )
    assert "--fault belongs to --rehearse" in refused(capsys, rig, "--fault", "gain_double")
    assert "--board boad" in refused(capsys, rig, "--rehearse", "--board", "boad")
    assert "--load 0: give a number above 0" in refused(capsys, rig, "--rehearse", "--load", "0")
    assert refused(capsys, rig, "--rehearse", "--backend", "sim", "--load", "10") == (
        "--load 10: 8 V make 0.8 A, and the limits of board want 0.144 to 0.2 A: choose 40 to 55.5 "
        "Ohm"
    )
    assert "add --load OHM and --supply V" in refused(
        capsys, "--port", "/dev/x", "--by", "A", "--meter", "M 1"
    )
    assert "--rehearse: needs a RIG.toml" in refused(capsys, "--port", "/dev/x", "--rehearse")
    assert "no wire is described: add --load" in refused(
        capsys, configs / "miga6/rig.toml", "--rehearse", "--supply", "5"
    )
    assert "names no voltage" in refused(capsys, configs / "miga6/rig.toml", "--rehearse")
    assert "has no driver board" in refused(capsys, configs / "pantograph/rig.toml", "--rehearse")
    assert "--seed -1" in refused(capsys, rig, "--rehearse", "--seed", "-1")
    assert "--load nan" in refused(capsys, rig, "--rehearse", "--load", "nan")
    assert refused(capsys, rig, "--rehearse", "--image", "x.hex") == (
        "--image: has no effect on hil board bring-up: leave it out"
    )
    assert main(["board", "limits", "/dev/x", "--by", "A"]) == 2
    assert "--by: has no effect on hil board limits" in capsys.readouterr().err
    hot = "devices.board.limits.heat_max_cA2ms=400000"
    said = refused(capsys, rig, "--rehearse", "--set", hot)
    assert said.startswith(f"{rig}: devices.board.limits")
    assert "--undo -1" in refused(capsys, rig, "--rehearse", "--undo", "-1")
    assert list(tmp_path.glob("*.journal")) == []


def test_a_record_that_is_there_or_cannot_be_written_is_said_before_anything_is_done(
    asked, rig_limits, tmp_path
):
    board = board_of(limits=rig_limits)
    guided = Quick(bench_of(board))
    asked.out.write_text("")
    with pytest.raises(ConfigError, match="exists already"):
        bring_up(asked, (board, guided))
    below = replace(asked, out=asked.out / "record.toml")
    with pytest.raises(ConfigError, match="cannot be made"):
        bring_up(below, (board, guided))
    assert guided.did == []


def test_a_record_that_cannot_be_written_at_the_end_loses_no_reading(asked, rig_limits):
    board = board_of(limits=rig_limits)
    bench = bench_of(board)

    class Blocks(Quick):
        def do(self, step, at):
            if step.key == "wire_stopped":
                asked.out.write_text("in the way")
            return super().do(step, at)

    with pytest.raises(ConfigError, match="exists already"):
        bring_up(asked, (board, Blocks(bench)))
    assert is_safe(board, rig_limits)
    asked.out.unlink()
    again = Quick(bench)
    assert isinstance(bring_up(asked, (board, again)), Done)
    assert again.did == []


def test_a_reading_that_was_changed_in_the_journal_is_judged_again(asked, rig_limits):
    board = board_of(limits=rig_limits)
    bench = bench_of(board)
    with pytest.raises(KeyboardInterrupt):
        bring_up(asked, (board, Leaves(bench, "wire_stopped", KeyboardInterrupt())))
    journal = asked.out.with_suffix(".journal")
    journal.write_text(journal.read_text().replace('"typed": 0.01', '"typed": 1.01'))
    failed = bring_up(asked, played(board, bench))
    assert failed.key == "gates_in_reset"
    assert not asked.out.exists()


def test_no_gate_goes_on_before_the_readings_of_a_journal_are_judged(asked, rig_limits):
    board = board_of(limits=rig_limits)
    bench = bench_of(board)
    with pytest.raises(KeyboardInterrupt):
        bring_up(asked, (board, Leaves(bench, "wire", KeyboardInterrupt())))
    journal = asked.out.with_suffix(".journal")
    journal.write_text(journal.read_text().replace('"typed": 0.01', '"typed": 1.01'))
    again = Quick(bench)
    assert bring_up(asked, (board, again)).key == "gates_in_reset"
    assert again.did == []


@pytest.mark.parametrize(
    "line",
    ["[]", "3", "{}", '{"undo": "limits"}', '{"key": "limits", "value": {}}',
     '{"key": "watchdog", "value": null}', '{"key": "gates_in_reset", "value": {"typed": "0"}}'],
)  # fmt: skip
def test_a_journal_that_somebody_damaged_is_one_line_and_nothing_goes_on(asked, rig_limits, line):
    board = board_of(limits=rig_limits)
    bench = bench_of(board)
    with pytest.raises(KeyboardInterrupt):
        bring_up(asked, (board, Leaves(bench, "supply", KeyboardInterrupt())))
    journal = asked.out.with_suffix(".journal")
    journal.write_text(journal.read_text() + line + "\n")
    again = Quick(bench)
    with pytest.raises(ConfigError, match="is damaged: remove it"):
        bring_up(asked, (board, again))
    assert again.did == []
    assert is_safe(board, rig_limits)


@pytest.mark.parametrize(
    ("changed", "words"),
    [({"by": "A\n[act]"}, "--by"), ({"meter": "Fl\x1buke"}, "--meter"),
     ({"out": "x.journal"}, "the journal's name")],
)  # fmt: skip
def test_what_no_record_can_hold_is_refused_before_anything_is_done(asked, changed, words):
    changed = {k: asked.out.with_name(v) if k == "out" else v for k, v in changed.items()}
    guided = Quick(bench_of(board_of()))
    with pytest.raises(ConfigError, match=words):
        bring_up(replace(asked, **changed), (board_of(), guided))
    assert guided.did == []


def test_a_supply_above_that_of_the_rigs_limits_meets_no_wire(asked):
    """The limits of wires4 are for 8 V; 3 % is the error of its supply."""
    guided = Quick(bench_of(board_of()))
    with pytest.raises(ConfigError, match=r"--supply 9\.5: the limits of .* are for wires at 8 V"):
        bring_up(replace(asked, supply_V=9.5), (board_of(), guided))
    assert guided.did == []


def test_a_damaged_record_of_the_board_is_told_before_anything_is_done(asked, rig_limits):
    asked.out.with_name("folder.toml").mkdir()  # is no record
    other = asked.out.with_name("other.toml")
    other.write_text('kind = "bring_up" # 7 [[')
    board = board_of(limits=rig_limits)
    guided = Quick(bench_of(board))
    with pytest.raises(ConfigError, match=r"other\.toml"):
        bring_up(asked, (board, guided))
    assert guided.did == []


def test_a_new_record_replaces_the_boards_earlier_ones(asked, rig_limits):
    board = board_of(limits=rig_limits)
    first = bring_up(asked, played(board, bench_of(board)))
    later = replace(asked, out=asked.out.with_name("later.toml"))
    second = bring_up(later, played(board, bench_of(board, seed=1)))
    assert second.record.record.act.supersedes == [first.record.record.hash]


def test_a_board_without_a_number_of_its_own_is_known_by_its_usb_bridge(asked, rig_limits):
    """0xFFFFFFFF is what a chip's memory holds in which nobody has written one."""
    board = board_of(0xFFFF_FFFF, rig_limits)
    done = bring_up(asked, played(board, bench_of(board)))
    assert done.record.record.article.serial == "usb:HIL-0002"
    nameless = replace(asked, sets=("devices.board.port=/dev/ttyUSB0",), out=asked.out / "x")
    with pytest.raises(DeviceError, match="has no serial number of its own"):
        bring_up(nameless, played(board, bench_of(board)))


def test_a_board_without_a_rig_is_brought_up_with_the_limits_that_it_has(tmp_path):
    board = board_of()
    bench = bench_of(board, setup=replace(SETUP, cells=("",) * 12))
    asked = BringUpRequest(port="native", by="A. Tester", meter="M 1", load_Ohm=50.0,
                  supply_V=8.0, out=tmp_path / "r.toml")  # fmt: skip
    done = bring_up(asked, played(board, bench))
    assert isinstance(done, Done)
    assert len(done.record.names) == 12
    assert date.today() <= done.record.record.act.valid_until


@pytest.mark.parametrize(("key", "value"), [("current_off_max_mA", 1900), ("current_on_min_mA", 0)])
def test_a_board_whose_own_limits_disable_a_protection_is_refused_until_they_are_mended(
    key, value, tmp_path
):
    asked = BringUpRequest(port="native", by="A. Tester", meter="M 1", load_Ohm=50.0,
                  supply_V=8.0, out=tmp_path / "r.toml")  # fmt: skip
    for limits in (LIMITS | {key: value}, LIMITS):
        board = board_of(limits=limits)
        bench = bench_of(board, setup=replace(SETUP, cells=("",) * 12))
        done = bring_up(asked, played(board, bench))
        if limits is LIMITS:
            assert isinstance(done, Done)
        else:
            assert done.key == "identity"
            assert done.failure.what.startswith(f"limits: {key} = {value}: ")
        assert is_safe(board, limits)


# --- an Arduino as it is sold, which measures nothing ---------------------------------------------


@pytest.fixture
def arduino(tmp_path, configs):
    return BringUpRequest(
        rig=configs / "wires4/rig.toml", rehearse=True, backend="sim", out=tmp_path / "record.toml",
        sets=('devices.board.build="arduino"', 'devices.board.fuses="as_delivered"',
              "devices.board.limits.sense_every_ms=0"),
    )  # fmt: skip


def test_an_arduino_is_brought_up_with_the_ammeter_alone(arduino):
    done = bring_up(arduino)
    assert isinstance(done, Done)
    assert done.record.names == tuple(f"current_A.{i}" for i in range(1, 5))
    assert done.record.value("current_A.1") == pytest.approx(8.0 / 45.0, abs=1e-4)


@pytest.mark.parametrize(
    ("fault", "at"),
    [("swapped_gates", "current."), ("dead_gate", "current."), ("dead_estop", "estop_seen"),
     ("welded_relay", "estop_cuts"), ("dead_watchdog", "watchdog"),
     ("dead_brown_out", "brown_out"), ("no_pull_down", "gates_in_reset")],
)  # fmt: skip
def test_an_arduino_shows_what_an_ammeter_can_show(arduino, fault, at):
    done = bring_up(replace(arduino, faults=(fault,)))
    assert isinstance(done, Failed)
    assert done.key.startswith(at)
    assert at != "current." or "the ammeter reads 0 A at output" in done.failure.what
