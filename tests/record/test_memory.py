"""Rows that a simulation keeps in memory."""

import numpy as np
import pytest

from hil.record.memory import ROWS, Rows

ROW = np.dtype({"names": ["n", "on"], "formats": ["<f8", "u1"], "itemsize": 16})


@pytest.mark.parametrize("n", [1, ROWS, ROWS + 1, 2 * ROWS, 5 * ROWS])
def test_every_row_is_kept_however_many_there_are(n):
    rows, row = Rows(ROW), np.zeros(1, dtype=ROW)
    for i in range(n):
        row["n"], row["on"] = i, i % 2
        rows.push(row)
    kept, lost = rows.read(0)
    assert lost == 0
    np.testing.assert_array_equal(kept["n"], np.arange(n))
    np.testing.assert_array_equal(kept["on"], np.arange(n) % 2)
    assert len(rows.read(n - 1)[0]) == 1


def test_samples_come_in_blocks_of_any_length():
    rows, samples = Rows(ROW), np.zeros(3 * ROWS + 5, dtype=ROW)
    samples["n"] = np.arange(len(samples))
    for part in np.split(samples, [7, 7, ROWS, 3 * ROWS]):
        rows.push_many(part)
    np.testing.assert_array_equal(rows.all, samples)
