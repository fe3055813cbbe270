"""The ATmega328P image in emulation: what is the chip's own, beside the cases that it shares."""

import re
import shutil
import subprocess

import numpy as np
import pytest

from firmware.boards import BOOT_US, FIRMWARE, AvrBoard
from hil.devices.board import protocol

RAM = 2048
FLASH_MAX, DATA_MAX = 22 * 1024, 1376  # of 32 KiB and of the RAM
STACK_ROOM = 192  # never touched by any of the commands; an interrupt takes 20 to 60 bytes more


def _size(image):
    """Bytes of flash and of data."""
    size = subprocess.run(
        ["avr-size", "-C", "--mcu=atmega328p", image], capture_output=True, text=True, check=True
    ).stdout
    flash, data = (int(n) for n in re.findall(r"(?:Program|Data): +(\d+) bytes", size))
    return flash, data


def test_the_image_leaves_room_in_the_flash_and_data_leave_the_stack_its_room(avr_build):
    flash, ram = _size(avr_build / "board.elf")
    print(f"flash {flash} bytes, data {ram} bytes")
    assert flash <= FLASH_MAX
    assert ram <= DATA_MAX


def test_the_stack_stays_clear_of_the_data(chip):
    """The RAM is painted before the start; every command is served, some while gates switch."""
    chip.limit()
    chip.ready()
    for k in range(100):
        for kind, (_, fields) in EXCHANGES.items():
            chip.command(kind, valid_for_ms=100, **fields(k))
        chip.command("read")
        chip.advance(k % 53)
    chip.exchange(bytes(range(1, 200)) + b"\0")
    chip.exchange(b"\0")  # the ring may have been full when the first one came
    chip.set_estop(True)
    chip.advance(1_000)
    chip.command("identify")
    chip.recover()
    untouched = chip.untouched_ram()
    data = _size(chip.image)[1]
    print(f"data {data} bytes, stack {RAM - data - untouched} at most, {untouched} never touched")
    assert untouched >= STACK_ROOM


def test_the_chip_says_who_it_is(chip):
    identity = chip.command("identify")
    assert identity["wire_hash"] == protocol.WIRE_HASH
    assert identity["n_cells"] == 12
    assert identity["limits"] == protocol.default_limits()


def test_the_chip_draws_what_the_host_draws(chip):
    chip.ready()
    on = 0
    for tick in range(1, 20):
        answer = chip.command(
            "broadcast",
            valid_for_ms=100,
            p_on_per_65536=20_000,
            q_off_per_65536=30_000,
            tick=tick,
            seed=5,
            first_cell=0,
        )
        for cell in range(12):
            chance = 30_000 if on >> cell & 1 else 20_000
            on ^= (protocol.draw(5, tick, cell) < chance) << cell
        assert answer["cells_on"] == on


def test_a_program_that_hangs_is_reset_by_the_watchdog_and_never_restarts(chip):
    chip.ready()
    assert chip.set(0, 11) == "done"
    chip.hang()
    chip.advance(10_000)
    assert sum(chip.gates()) > 0  # nothing but the watchdog is left
    chip.advance(10_000)  # 16 ms, and its oscillator may be a fifth slow
    assert not any(chip.gates())
    chip.advance(BOOT_US)
    assert chip.command("identify")["reset_cause"] == protocol.RESETS["watchdog"]
    chip.advance(20_000)
    assert chip.state() == "disarmed"
    assert chip.set(0, 11) == "not_armed"


def test_a_converter_that_stops_trips_and_then_starves_the_watchdog(chip):
    chip.ready()
    assert chip.set(0, 11) == "done"
    chip.set_scan(False)
    chip.advance(24_000)
    assert chip.faults() == ["scan_stale"]
    assert chip.resets() == 0
    chip.advance(150_000)
    assert chip.resets() >= 1
    assert not any(chip.gates())


def test_the_emergency_stop_opens_every_gate_within_50_us_at_any_duty(chip):
    """An interrupt of its own does it; 1 ms was asked for. Others hold it up for 20 us at most."""
    chip.recover()
    for phase_us in range(0, 4080, 97):
        chip.ready()
        duties = [16 + (37 * i + phase_us) % 240 for i in range(12)] + [0] * 4
        assert chip.result("set_duties", valid_for_ms=100, duty_per_255=duties) == "done"
        chip.advance(phase_us)
        chip.set_estop(True)
        chip.advance(50)
        before_us = chip.on_us()
        chip.advance(9_000)
        assert chip.on_us() == before_us


PWM_US = 255 * 16


def test_the_on_time_at_the_gates_is_the_commanded_duty(chip):
    """All that are allowed, twelve at a time, over 40 periods of the modulation: half a step."""
    chip.limit(heat_max_cA2ms=4_000_000_000)
    for first in range(16, 256, 12):
        duties = [min(first + i, 255) for i in range(12)]
        chip.ready()
        command = {"valid_for_ms": 100, "duty_per_255": duties + [0] * 4}
        assert chip.result("set_duties", **command) == "done"
        start_us, on_us = chip.now_us(), chip.on_us()
        for part in range(1, 9):
            chip.advance(5 * PWM_US - 2_000)
            chip.result("set_duties", **command)
            chip.advance(start_us + 5 * PWM_US * part - chip.now_us())
        for duty, before, after in zip(duties, on_us, chip.on_us(), strict=True):
            found = 255 * (after - before) / (40 * PWM_US)
            assert abs(found - duty) < 0.5, (duty, found)
            if duty == 255:
                assert abs(found - duty) < 1e-3  # an instruction or two at either end


def test_exchanges_fit_into_a_millisecond_and_lose_no_byte(chip):
    """Masks at 1 kHz; twelve changed duties or twelve draws take longer."""
    chip.limit()
    longest_us = {}
    for kind, (period_us, fields) in EXCHANGES.items():
        chip.ready()
        for k in range(300):
            start_us = chip.now_us()
            assert chip.result(kind, valid_for_ms=100, **fields(k)) == "done"
            took_us = chip.now_us() - start_us
            longest_us[kind] = max(took_us, longest_us.get(kind, 0))
            chip.advance(period_us - took_us + k % 53)  # at every phase of scan and modulation
    print(", ".join(f"{kind} {us} us" for kind, us in longest_us.items()))
    for kind, us in longest_us.items():
        assert us <= EXCHANGES[kind][0], kind
    assert chip.lost_bytes() == 0
    assert chip.command("read")["bad_frames"] == 0


@pytest.mark.slow
def test_no_other_interrupt_spoils_the_clock_of_the_scan(chip):
    """The high byte of timer 1's registers waits in one place for all of them (data sheet 16.3).

    Commands at every phase. A turn that is set wrong comes 33 ms late: the scan is stale by then.
    """
    rng = np.random.default_rng(31)
    chip.limit()
    chip.ready()
    for _ in range(20_000):
        duties = [*rng.choice([0, 16, 40, 200, 255], 12).tolist(), 0, 0, 0, 0]
        assert chip.result("set_duties", valid_for_ms=100, duty_per_255=duties) == "done", (
            chip.faults()
        )
        chip.advance(int(rng.integers(0, 400)))


def test_a_duty_whose_interrupt_is_lost_goes_on_within_a_turn_of_the_timer(chip):
    """A bit of TIMSK1 that turns over: the gate stayed on for good, counted as 16 of 255."""
    timsk1, modulates, duty = 0x6F, 1 << 1, 16
    chip.limit()
    chip.ready()
    duties = [duty] + [0] * (protocol.CELLS_MAX - 1)
    chip.result("set_duties", valid_for_ms=100, duty_per_255=duties)
    while not chip.gates()[0]:
        chip.advance(20)
    enabled = chip.lib.emulate_read(chip.chip, timsk1)
    chip.lib.emulate_write(chip.chip, timsk1, enabled & ~modulates)
    chip.advance(40_000)
    began_us, was_on_us = chip.now_us(), chip.on_us()[0]
    for _ in range(10):
        assert chip.result("set_duties", valid_for_ms=100, duty_per_255=duties) == "done"
        chip.advance(4000)
    share = (chip.on_us()[0] - was_on_us) / (chip.now_us() - began_us)
    assert share == pytest.approx(duty / 255, abs=0.02)


def _duties(k):
    return {"duty_per_255": [16 + (17 * i + 5 * k) % 240 for i in range(12)] + [0] * 4}


def _draws(k):
    chances = {"p_on_per_65536": 20_000, "q_off_per_65536": 30_000}
    return chances | {"tick": k, "seed": 9, "first_cell": 0}


EXCHANGES = {
    "set_mask": (1000, lambda k: {"cells_on": 0x555 * (1 + k % 2)}),
    "set_duties": (1300, _duties),
    "broadcast": (1400, _draws),
}


PINS = (FIRMWARE / "port/atmega328p/pins.h").read_text()
BLINKS = """
#include <avr/io.h>
#include <util/delay.h>
int main(void) {
    DDRB |= 1 << 5; /* as Optiboot does after a reset, three times 62 ms */
    for (;;) { PINB = 1 << 5; _delay_ms(62); }
}
"""
STANDS = "int main(void) { for (;;) { } }"


def running(avr_build, tmp_path, program):
    """The emulated chip with another program."""
    (tmp_path / "main.c").write_text(program)
    flags = ["-mmcu=atmega328p", "-DF_CPU=16000000UL", "-Os"]
    subprocess.run(
        ["avr-gcc", *flags, "-o", tmp_path / "board.elf", tmp_path / "main.c"], check=True
    )
    shutil.copy(avr_build / "libemulate.so", tmp_path)
    return AvrBoard(tmp_path)


def test_a_boot_loader_that_blinks_its_lamp_drives_no_gate(avr_build, tmp_path):
    chip = running(avr_build, tmp_path, BLINKS)
    for _ in range(400):
        chip.advance(1_000)
        assert not any(chip.gates())
    assert not any(chip.on_us())
    chip.close()


def test_no_gate_is_on_the_pin_that_boot_loaders_blink():
    masks = dict(re.findall(r"(\w+) = (0x[0-9A-F]+)", PINS))
    assert int(masks["PERMIT_B"], 16) == 1 << 5
    assert int(masks["GATES_B"], 16) & int(masks["PERMIT_B"], 16) == 0
    pins = sum(int(masks[f"GATES_{port}"], 16).bit_count() for port in "BCD")
    assert pins == 12


def test_a_chip_that_stands_still_from_its_start_is_reset_by_its_fuse(avr_build, tmp_path):
    """WDTON: the watchdog runs from the reset on, 16 ms at first (data sheet 10.9.2)."""
    chip = running(avr_build, tmp_path, STANDS)
    before = chip.resets()
    chip.advance(100_000)
    assert 5 <= chip.resets() - before <= 7
    chip.set_fuses(0xF7, 0xD6, 0xFC)
    chip.reset()
    before = chip.resets()
    chip.advance(100_000)
    assert chip.resets() == before
    chip.close()


@pytest.mark.parametrize("high", [0xC6, 0xD6])
def test_the_program_starts_and_stores_limits_in_time_whether_the_watchdog_is_always_on(chip, high):
    chip.set_fuses(0xF7, high, 0xFC)
    chip.reset()
    before = chip.resets()
    chip.limit(on_time_max_ms=4321)  # every byte differs at most: 3.4 ms each
    chip.ready()
    assert chip.set(0, 11) == "done"
    chip.advance(50_000)
    assert chip.resets() == before
    assert tuple(chip.command("identify")["fuses"]) == (0xF7, high, 0xFC)
