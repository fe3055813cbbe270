"""Every limit of the board, swept densely around its boundary, on host and chip."""

import pytest

from firmware import limit_checks
from firmware.limit_checks import CHECKS


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_board_enforces(check, any_board):
    check(any_board)


NATIVE = [check for check in limit_checks.NATIVE_CHECKS if check not in CHECKS]


@pytest.mark.parametrize("check", NATIVE, ids=lambda check: check.__name__)
def test_the_simulated_board_enforces_to_the_microsecond(check, board):
    check(board)
