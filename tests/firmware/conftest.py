import pytest

from firmware.boards import NativeBoard, load, make


@pytest.fixture(scope="session")
def firmware_build(tmp_path_factory):
    """A folder with libboard.so, board_pty and the sanitised fuzz loop."""
    return make(tmp_path_factory.mktemp("firmware"), "host", "asan")


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
