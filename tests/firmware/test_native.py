"""The sanitised core, and the board as a process on a pseudo-terminal."""

import contextlib
import os
import select
import shutil
import subprocess
import termios
import tty

import pytest

from firmware.boards import FIRMWARE, make
from hil.devices.board import protocol


@pytest.mark.slow
def test_a_fuzz_loop_finds_no_memory_error_under_the_sanitisers(tmp_path):
    fuzz = make(tmp_path, "asan") / "fuzz"
    for seed in ("1", "2"):
        done = subprocess.run([fuzz, "130000", seed], capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
        # it means something only if some of the rounds ran with cells switched on, some with open
        # isolated ones, and some into each of the faults
        first, *reached = done.stdout.splitlines()
        assert int(first.split(",")[1].split()[0]) > 1000
        rounds = {name: int(n) for name, n in map(str.split, reached)}
        assert rounds.keys() == {"set_apart", *protocol.FAULTS}
        assert min(rounds.values()) > 50, rounds


def _coverage(folder, source=FIRMWARE):
    command = ["make", "--silent", "-C", source, f"BUILD={folder}", "coverage"]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


@pytest.mark.slow
def test_the_fuzz_loop_takes_every_branch_of_the_core(tmp_path):
    done = _coverage(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = {row.split()[0]: row.split()[1:] for row in done.stdout.splitlines()[1:]}
    assert rows.keys() == {path.name for path in (FIRMWARE / "core").glob("*.c")}
    assert all(taken == ["100.0", "%"] for _, *taken in rows.values())


@pytest.mark.slow
def test_a_branch_that_the_fuzz_loop_never_takes_is_named(tmp_path):
    shutil.copytree(FIRMWARE, tmp_path / "firmware", ignore=shutil.ignore_patterns("build"))
    loop = tmp_path / "firmware/core/loop.c"
    dead = "    if (board->identity.n_cells > WIRE_CELLS_MAX)\n        return;\n"
    source = loop.read_text()
    start = source.index("void board_poll")
    loop.write_text(source[:start] + source[start:].replace("{\n", "{\n" + dead, 1))
    done = _coverage(tmp_path / "build", tmp_path / "firmware")
    assert done.returncode != 0
    (missed,) = (line for line in done.stdout.splitlines() if "not taken" in line)
    assert missed.startswith("core/loop.c:")
    assert "WIRE_CELLS_MAX" in missed


@contextlib.contextmanager
def _on_a_terminal(program):
    with subprocess.Popen([program, "6", "42"], stdout=subprocess.PIPE, text=True) as process:
        try:
            terminal = os.open(process.stdout.readline().strip(), os.O_RDWR | os.O_NOCTTY)
            tty.setraw(terminal, termios.TCSANOW)
            yield terminal
            os.close(terminal)
        finally:
            process.terminate()


def _answer(terminal, frame):
    decoder = protocol.Decoder()
    os.write(terminal, frame)
    while True:
        assert select.select([terminal], [], [], 10)[0], "no answer within 10 s"
        if messages := decoder.feed(os.read(terminal, 4096)):
            return messages[0]


def test_a_board_answers_on_a_pseudo_terminal(firmware_build):
    with _on_a_terminal(firmware_build / "board_pty") as terminal:
        identity = _answer(terminal, protocol.encode("identify", 5))
        assert (identity.seq, identity["serial"], identity["n_cells"]) == (5, 42, 6)
        answers = {_answer(terminal, protocol.encode("read", i))["time_us"] for i in range(20)}
        assert len(answers) == 20
