import fcntl
import os

import pytest

from firmware.boards import AvrBoard, NativeBoard, load, make, need_avr


@pytest.fixture(scope="session")
def build(tmp_path_factory):
    """Builds targets of the firmware for all workers of this session: the first one compiles."""
    session = tmp_path_factory.getbasetemp()
    folder = (session.parent if "PYTEST_XDIST_WORKER" in os.environ else session) / "firmware"
    folder.mkdir(exist_ok=True)

    def targets(*names):
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            return make(folder, *names)

    return targets


@pytest.fixture(scope="session")
def firmware_build(build):
    """A folder with libboard.so and board_pty."""
    return build("host")


@pytest.fixture(scope="session")
def libboard(firmware_build):
    return load(firmware_build / "libboard.so")


@pytest.fixture
def board(libboard):
    """A board just powered up, all pins good."""
    return NativeBoard(libboard)


@pytest.fixture
def armed(board):
    board.ready()
    return board


@pytest.fixture(scope="session")
def avr_build(build):
    """A folder with the ATmega328P image and the library that runs it."""
    need_avr()
    return build("avr", "emulate")


@pytest.fixture
def chip(avr_build):
    board = AvrBoard(avr_build)
    yield board
    board.close()


@pytest.fixture(scope="module")
def chip_of_all(avr_build):
    """One chip for all examples of a property."""
    board = AvrBoard(avr_build)
    yield board
    board.close()


@pytest.fixture(params=["host", "atmega328p"])
def any_board(request):
    """The same core behind two sets of pins, just powered up, all pins good."""
    return request.getfixturevalue({"host": "board", "atmega328p": "chip"}[request.param])


@pytest.fixture
def any_armed(any_board):
    any_board.ready()
    return any_board
