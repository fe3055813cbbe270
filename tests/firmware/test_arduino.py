"""The build for an Arduino as it is sold: what it finds without sensors, and what it cannot find.

An Uno's DIP package has no ADC6 and ADC7, and nobody has wired multiplexers: no current and no
temperature is measured. Its heat budget takes `current_max_mA` for the current of every gate that
is on.
"""

import math

import pytest

from firmware.boards import AvrBoard, NativeBoard
from hil.devices.board import protocol

LACKING = {
    "current_high", "current_low", "current_when_off", "temperature_high", "temperature_range",
    "scan_untrue", "supply_stuck",
}  # fmt: skip
CELL = 3


@pytest.fixture(scope="module")
def chip_of_arduino(avr_build):
    board = AvrBoard(avr_build, "arduino.elf")
    yield board
    board.close()


@pytest.fixture(params=["host", "atmega328p"])
def arduino(request, libboard):
    """The core without sensors behind two sets of pins."""
    if request.param == "atmega328p":
        board = request.getfixturevalue("chip_of_arduino")
        board.reset()
    else:
        board = NativeBoard(libboard)
        board.without_sensors()
    board.limit()
    board.recover()
    return board


@pytest.mark.slow_beyond(2)
def test_the_handshake_says_which_faults_a_build_can_find(arduino, any_board):
    assert set(protocol.fault_names(any_board.command("identify")["faults_checked"])) == set(
        protocol.FAULTS
    )
    found = set(protocol.fault_names(arduino.command("identify")["faults_checked"]))
    assert found == set(protocol.FAULTS) - LACKING
    assert protocol.FAULTS_MEASURED == sum(1 << protocol.FAULTS[name] for name in LACKING)


def test_what_stands_at_the_missing_inputs_trips_nothing(arduino):
    """Shorted, broken and hot: it runs on, and its readings are 0."""
    arduino.arm()
    for cell, (on, off, temperature) in enumerate([(1023, 1023, 1023), (0, 0, 0), (1023, 0, 0)]):
        arduino.set_analog(cell, on=on, off=off, temperature=temperature)
    assert arduino.advance_fed(100_000, 0, 1)
    answer = arduino.command("read")
    assert answer["fault_bits"] == 0
    assert set(answer["current_mA"]) == {0}
    assert set(answer["temperature_cC"]) == {0}


def test_arming_pulses_no_wire(arduino):
    before = arduino.on_us() if hasattr(arduino, "on_us") else None
    rises = arduino.rises() if before is None else 0
    arduino.arm()
    if before is None:
        assert (arduino.pulses(), arduino.rises()) == (0, rises)
    else:
        assert arduino.on_us() == before


def test_resistance_is_not_measured(arduino):
    arduino.limit(sense_every_ms=20)
    arduino.recover()
    arduino.arm()
    assert arduino.sensed(100_000, cells_on=0) == []
    assert not any(arduino.gates())


@pytest.mark.parametrize("tau_ms", [100, 683])
def test_the_budget_counts_the_assumed_current_while_a_gate_is_on(arduino, tau_ms):
    """Held on, H = I^2 tau (1 - exp(-t / tau)): the exact law, which the board may only exceed."""
    i_mA, share = 500, 0.5
    heat_max = round((0.1 * i_mA) ** 2 * tau_ms * share)
    arduino.limit(heat_max_cA2ms=heat_max, heat_time_constant_ms=tau_ms, current_max_mA=i_mA)
    arduino.recover()
    arduino.cool()
    arduino.arm()
    start_us = arduino.now_us()
    while arduino.set(CELL) == "done":
        arduino.advance(1000)
    on_s = 1e-6 * (arduino.now_us() - start_us)
    assert arduino.faults() == ["cell_energy_high"]
    assert not any(arduino.gates())
    law_s = -1e-3 * tau_ms * math.log(1.0 - share)
    # A scan late at most; early by the rounding of current, cooling and steps: 20 % (README).
    assert 0.75 * law_s < on_s <= law_s + 1e-6 * (2 * arduino.scan_us + arduino.exchange_us) + 0.002


def test_pulses_shorter_than_a_scan_are_counted_too(arduino):
    """On for 1 ms in 4: a quarter of the heat, and never less."""
    tau_ms, i_mA = 683, 500
    heat_max = round((0.1 * i_mA) ** 2 * tau_ms)
    arduino.limit(heat_max_cA2ms=heat_max, heat_time_constant_ms=tau_ms, current_max_mA=i_mA)
    arduino.recover()
    arduino.cool()
    arduino.arm()
    start_us, on_us = arduino.now_us(), 0
    for _ in range(60):
        arduino.set(CELL)
        arduino.advance(1000)
        arduino.set()
        on_us += 1000
        arduino.advance(3000)
    passed_ms = 1e-3 * (arduino.now_us() - start_us)
    least = (0.1 * i_mA) ** 2 * 1e-3 * on_us * math.exp(-passed_ms / tau_ms)
    used = arduino.command("read")["heat_per_255"][CELL] * heat_max / 255
    assert used >= least - heat_max / 255


@pytest.mark.slow_beyond(1)
def test_it_finds_the_other_faults(arduino):
    """Each on a board that is armed with a cell on: dead man, e-stop, pins, limits, on-time."""

    def ready(**limits):
        arduino.set_good_pins()
        arduino.limit(**limits)
        arduino.recover()
        arduino.arm()
        assert arduino.set(CELL) == "done"

    ready(silence_max_ms=50)
    arduino.advance(60_000)
    assert arduino.faults() == ["host_silent"]
    ready()
    arduino.set_estop(True)
    arduino.advance(1000)
    assert not any(arduino.gates())
    assert arduino.faults() == ["estop_open"]
    ready(on_time_max_ms=30)
    assert not arduino.advance_fed(50_000, CELL)
    assert arduino.faults() == ["cell_on_too_long"]
    ready(cells_on_max=2)
    assert arduino.set(0, 1, 2) == "is_faulted" or arduino.faults() == ["too_many_cells_on"]
    ready()
    arduino.set_stuck(CELL, "low")
    assert not arduino.advance_fed(50_000, CELL)
    assert arduino.faults() == ["gate_stuck"]
    ready()
    arduino.set_stuck(CELL + 1, "high")
    assert not arduino.advance_fed(50_000, CELL)
    assert arduino.faults() == ["gate_stuck"]
    ready()
    arduino.flip_limit(3, 1)
    arduino.advance(20_000)
    assert arduino.faults() == ["limits_corrupt"]


@pytest.mark.slow
def test_on_the_chip_every_gate_follows_and_an_open_loop_ends_it_within_100_us(chip_of_arduino):
    board = chip_of_arduino
    board.reset()
    board.limit()
    board.ready()
    for cell in range(12):
        assert board.set(cell) == "done"
        board.advance(200)
        assert [i for i, high in enumerate(board.gates()) if high] == [cell]
    board.set_estop(True)
    board.advance(100)
    assert not any(board.gates())


def test_on_the_chip_a_main_loop_that_hangs_ends_in_a_reset_with_all_off(chip_of_arduino):
    board = chip_of_arduino
    board.reset()
    board.limit()
    board.ready()
    assert board.set(CELL) == "done"
    resets = board.resets()
    board.hang()
    board.advance(200_000)
    assert board.resets() > resets
    assert not any(board.gates())
