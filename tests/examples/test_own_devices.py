"""The laser, the stage and the bank of examples/own speak to their instruments as they say."""

import os
import runpy
import subprocess
import sys

import numpy as np
import pytest


@pytest.fixture
def own(pytestconfig):
    return pytestconfig.rootpath / "examples" / "own"


class Line:
    """A serial line that answers in turn and keeps what it was sent."""

    def __init__(self, *answers):
        self.answers, self.sent = list(answers), []

    def write(self, data):
        self.sent.append(data)

    def readline(self):
        return self.answers.pop(0)

    def reset_input_buffer(self):
        """Whatever has come before the question."""


class Late(Line):
    """A serial line on which bytes wait that came before the question."""

    def __init__(self, waiting, *answers):
        super().__init__(*answers)
        self.waiting = waiting

    def write(self, data):
        super().write(data)
        self.waiting += self.answers.pop(0)

    def readline(self):
        return self.read(self.waiting.find(b"\n") + 1 or len(self.waiting))

    def read(self, size):
        data, self.waiting = self.waiting[:size], self.waiting[size:]
        return data

    def reset_input_buffer(self):
        self.waiting = b""


def device(path, cls, line, **values):
    made = runpy.run_path(str(path))[cls]
    one = made(made.Values(**values))
    one.line = line
    return one


def test_a_laser_gives_metres_and_nothing_where_it_sees_no_target(own):
    """Quarter points of 0 to 16383 over 20 mm lie 5 mm from the middle."""
    line = Line(b"4095\n", b"12287\n", b"no target\n", b"16383\n", b"0\n", b"")
    laser = device(own / "laser.py", "Laser", line, range_m=0.02)
    read = [laser.read(0.0)[0] for _ in range(6)]
    np.testing.assert_allclose(read[:2], [-0.005, 0.005], atol=1e-6)
    assert np.isnan(read[2:]).all()


@pytest.mark.parametrize(
    ("name", "cls", "expected"), [("laser.py", "Laser", 0.0025), ("stage.py", "Stage", 0.012287)]
)
def test_neither_a_late_answer_nor_the_half_of_one_is_a_reading(own, name, cls, expected):
    line = Late(b"4095\n", b"12287\n", b"122", b"87\n12287\n")
    one = device(own / name, cls, line)
    assert one.read(0.0)[0] == pytest.approx(expected, abs=1e-6)
    assert np.isnan(one.read(0.0)[0])
    line.waiting = b"12"
    assert one.read(0.0)[0] == pytest.approx(-0.00494689 if cls == "Laser" else 87e-6, abs=1e-6)


def test_a_stage_is_told_a_target_once_and_stopped_when_safe(own):
    stage = device(own / "stage.py", "Stage", line := Line(b"1500\n", b""))
    for target_m in (0.0015, 0.0015000001, 0.002):
        stage.write(np.array([target_m]))
    assert line.sent == [b"P1500\n", b"P2000\n"]
    assert stage.read(0.0)[0] == pytest.approx(0.0015)
    assert np.isnan(stage.read(0.0)[0])
    stage.safe()
    stage.write(np.array([0.002]))
    assert line.sent[-2:] == [b"S\n", b"P2000\n"]


def test_a_zaber_stage_is_told_in_microsteps_and_answers_as_its_manual_says(own):
    taken, at, refused, stopped = (b"@01 0 %s\r\n" % text for text in (
        b"01 OK IDLE -- 0", b"02 OK BUSY -- 20997", b"03 RJ IDLE -- BADDATA",
        b"05 OK IDLE -- 0"))  # fmt: skip
    stage = device(own / "zaber_stage.py", "Stage", line := Line(taken, at, refused, b"", stopped))
    for target_m in (0.001, 0.00100000001):
        stage.write(np.array([target_m]))
    assert line.sent == [b"/1 0 01 move abs 20997\n"]  # 1000 um in steps of 0.047625 um
    assert stage.read(0.0)[0] == pytest.approx(0.001, abs=0.03e-6)
    assert np.isnan([stage.read(0.0)[0], stage.read(0.0)[0]]).all()
    stage.safe()
    assert line.sent[-1] == b"/1 0 05 stop\n"


def test_no_answer_to_another_command_is_the_position_of_a_zaber_stage(own):
    """The answer to `move` has the data 0; an alert begins with "!"."""
    line = Late(b"", b"", b"@01 0 01 OK IDLE -- 20000\r\n@01 0 02 OK BUSY -- 0\r\n",
                b"!01 1 IDLE --\r\n@01 0 03 OK IDLE -- 20997\r\n")  # fmt: skip
    stage = device(own / "zaber_stage.py", "Stage", line)
    assert np.isnan(stage.read(0.0)[0])
    stage.write(np.array([0.001]))
    assert stage.read(0.0)[0] == pytest.approx(0.001, abs=0.03e-6)


def test_a_thorlabs_stage_is_told_in_counts_and_answers_as_its_protocol_says(own):
    """APT protocol, MGMSG_MOT_MOVE_ABSOLUTE: 53 04 06 00 d0 01, channel 01 00, counts."""
    at = bytes.fromhex("12 04 06 00 81 50 01 00") + (34304).to_bytes(4, "little")
    stage = device(own / "thorlabs_stage.py", "Stage", line := Late(b"", b"", at, at[:7], b""))
    stage.write(np.array([0.001]))
    assert line.sent == [bytes.fromhex("53 04 06 00 d0 01 01 00 00 86 00 00")]
    assert stage.read(0.0)[0] == pytest.approx(0.001)
    assert np.isnan(stage.read(0.0)[0])
    assert line.sent[-1] == bytes.fromhex("11 04 01 00 50 01")
    stage.safe()
    assert line.sent[-1] == bytes.fromhex("65 04 01 02 50 01")


def test_the_end_of_a_move_that_a_thorlabs_stage_reports_is_no_position(own):
    """APT protocol, MGMSG_MOT_MOVE_COMPLETED: 64 04 0e 00 81 50 and 14 bytes, unasked."""
    at = bytes.fromhex("12 04 06 00 81 50 01 00") + (34304).to_bytes(4, "little")
    ended = bytes.fromhex("64 04 0e 00 81 50") + bytes(14)
    line = Late(ended + at[:7], ended + at, at)
    stage = device(own / "thorlabs_stage.py", "Stage", line)
    assert [stage.read(0.0)[0] for _ in range(2)] == [pytest.approx(0.001)] * 2


def test_a_bank_gets_a_mask_and_tells_whether_it_has_stopped_by_itself(own):
    bank = device(own / "relays.py", "Relays", line := Line(b"0\n", b"1\n", b""))
    bank.switch(np.array([1, 0, 0, 0, 1], dtype=np.uint8))
    bank.switch(np.zeros(5, dtype=np.uint8))
    assert line.sent == [b"S11\n", b"S00\n"]
    assert [bank.stopped() for _ in range(3)] == [False, True, False]  # no answer is no proof


@pytest.mark.slow
def test_the_contract_accepts_all(own, tmp_path):
    names = ("laser.py", "stage.py", "zaber_stage.py", "thorlabs_stage.py", "relays.py")
    files = [str(own / name) for name in names]
    command = [sys.executable, "-m", "pytest", "-p", "hil.contract", "-q"]
    command += [word for file in files for word in ("--hil-contract", file)]
    found = subprocess.run(
        command, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(own.parents[1])},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert found.returncode == 0, found.stdout
