"""The ATmega328P image: how much of the chip it takes, and the host build's cases in emulation."""

import re
import shutil
import subprocess

import pytest

from firmware import limit_checks
from firmware.boards import AvrBoard, make
from hil import wire

INSTALL = "apt-get install -y gcc-avr avr-libc simavr libsimavr-dev libelf-dev"
FLASH_MAX, RAM_MAX = 16 * 1024, 1280  # of 32 KiB and 2048 bytes; the rest of the RAM is stack


@pytest.fixture(scope="session")
def avr_build(tmp_path_factory):
    assert shutil.which("avr-gcc"), f"the AVR compiler is missing: {INSTALL}"
    return make(tmp_path_factory.mktemp("avr"), "avr", "emulate")


@pytest.fixture
def chip(avr_build):
    board = AvrBoard(avr_build)
    yield board
    board.close()


def test_the_image_leaves_half_of_the_flash_and_the_stack_its_room(avr_build):
    size = subprocess.run(
        ["avr-size", "-C", "--mcu=atmega328p", avr_build / "board.elf"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    flash, ram = (int(n) for n in re.findall(r"(?:Program|Data): +(\d+) bytes", size))
    print(f"flash {flash} bytes, RAM {ram} bytes before the stack")
    assert flash <= FLASH_MAX
    assert ram <= RAM_MAX


def test_the_chip_says_who_it_is(chip):
    identity = chip.command("identify")
    assert identity["wire_hash"] == wire.WIRE_HASH
    assert identity["n_cells"] == 12
    assert identity["limits"] == wire.default_limits()


# steps whose timing does not depend on how long an exchange takes on the line
EMULATED = ["cells_at_once", "emergency_stop", "wrong_table"]


@pytest.mark.parametrize("name", EMULATED)
def test_the_chip_enforces(name, chip):
    getattr(limit_checks, name)(chip)


def test_a_silent_host_turns_the_chips_gates_off(chip):
    chip.ready()
    assert chip.set(1, 5) == "done"
    chip.advance(98_000)
    assert chip.gates()[1] == 255
    chip.advance(4_000)
    assert not any(chip.gates())
    assert chip.faults() == ["host_silent"]


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
            on ^= (wire.draw(5, tick, cell) < chance) << cell
        assert answer["cells_on"] == on


def test_a_reset_of_the_chip_never_restarts(chip):
    chip.ready()
    assert chip.set(0, 11) == "done"
    chip.reset()
    assert not any(chip.gates())
    assert chip.state() == "disarmed"
    assert chip.set(0, 11) == "not_armed"
