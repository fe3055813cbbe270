"""The sanitised core, and the board as a process on a pseudo-terminal."""

import contextlib
import os
import select
import subprocess
import termios
import tty

from firmware.boards import make
from hil import wire


def test_a_fuzz_loop_finds_no_memory_error_under_the_sanitisers(tmp_path):
    fuzz = make(tmp_path, "asan") / "fuzz"
    for seed in ("1", "2"):
        done = subprocess.run([fuzz, "100000", seed], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        # it means something only if some of the rounds ran with cells switched on
        assert int(done.stdout.split(",")[1].split()[0]) > 1000


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
    decoder = wire.Decoder()
    os.write(terminal, frame)
    while True:
        assert select.select([terminal], [], [], 10)[0], "no answer within 10 s"
        if messages := decoder.feed(os.read(terminal, 4096)):
            return messages[0]


def test_a_board_answers_on_a_pseudo_terminal(firmware_build):
    with _on_a_terminal(firmware_build / "board_pty") as terminal:
        identity = _answer(terminal, wire.encode("identify", 5))
        assert (identity.seq, identity["serial"], identity["n_cells"]) == (5, 42, 6)
        answers = {_answer(terminal, wire.encode("read", i))["time_us"] for i in range(20)}
        assert len(answers) == 20
