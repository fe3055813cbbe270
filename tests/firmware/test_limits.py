"""Every limit of the board, swept densely around its boundary."""

import pytest

from firmware.limit_checks import NATIVE_CHECKS


@pytest.mark.parametrize("check", NATIVE_CHECKS, ids=lambda check: check.__name__)
def test_the_board_enforces(check, board):
    check(board)
