"""Every limit of the board, swept densely around its boundary, on host and chip."""

import pytest

from firmware import limit_checks
from firmware.limit_checks import CHECKS


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_board_enforces(check, any_board):
    check(any_board)


def test_the_board_enforces_the_age_of_the_scan_to_the_millisecond(board):
    limit_checks.scan_age_exactly(board)
