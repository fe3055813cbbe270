"""No gate rises after the e-stop has opened: at every moment of arming and of switching."""

import pytest

from firmware.attack_checks import NATIVE
from hil.devices.board import protocol

EVERY_CELL = 0xFFF
INTERRUPT_US = 50  # until all gates are low; what holds the interrupt up may end in a rising edge
ARMING_US = 3_500  # frame, twelve pulses of 0.15 ms and the answer


def _faults(answer):
    return protocol.fault_names(answer["fault_bits"])


@pytest.mark.parametrize("check", NATIVE, ids=lambda check: check.__name__)
def test_the_core_raises_no_gate_after(check, board):
    check(board)


def _chip_arms_as_it_opens(chip, cycles, for_cycles=0):
    """What the chip says of itself afterwards; the interrupt may cost it a byte of the command."""
    chip.recover()
    crc = chip.command("identify")["limits_crc"]
    chip.power()
    chip.open_estop_in(cycles, for_cycles)
    chip.try_command("arm", limits_crc=crc, cells=EVERY_CELL)
    chip.advance(1_000 + (cycles + for_cycles) // 16)
    return chip.command("read")


@pytest.mark.parametrize("every", [737, pytest.param(123, marks=pytest.mark.slow)])
def test_no_gate_of_the_chip_rises_later_than_its_interrupt_whenever_the_loop_opens(chip, every):
    """Every 46 us of arming, or 7.7 us, as odd cycles as even ones."""
    chip.limit()
    latest_us = -1e9
    for cycles in range(1, 16 * ARMING_US, every):
        reading = _chip_arms_as_it_opens(chip, cycles)
        assert "estop_open" in _faults(reading), cycles
        latest_us = max(latest_us, chip.last_rise_us())
        assert chip.last_rise_us() < INTERRUPT_US, cycles
        assert not any(chip.gates())
    print(f"last rising edge {latest_us:.1f} us after the opening")
    assert latest_us > -200.0  # it opened while wires were pulsed


def test_an_opening_of_20_us_at_any_moment_of_arming_is_latched(chip):
    chip.limit()
    for cycles in range(1, 16 * ARMING_US, 1231):
        reading = _chip_arms_as_it_opens(chip, cycles, for_cycles=320)
        assert "estop_open" in _faults(reading), cycles
        assert chip.last_rise_us() < INTERRUPT_US, cycles
        assert not any(chip.gates())
