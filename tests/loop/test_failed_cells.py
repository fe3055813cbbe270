"""Which cells of a run failed, when, and who found out."""

import numpy as np

from hil.loop.failed_cells import BY_FORCE, OPEN_WIRE, failed_cells, failure_lines

T_S = np.arange(5) * 0.1
NAMES = ["a.1", "a.2", "a.3"]


def column(**from_row):
    cells = np.zeros((5, 3), dtype=np.uint8)
    for name, (row, value) in from_row.items():
        cells[row:, int(name[1]) - 1] = value
    return cells


def test_every_cell_is_named_once_with_who_found_it_first_and_when():
    cells_open = column(a3=(1, 1))
    cells_failed = column(a1=(2, 1), a2=(0, 2), a3=(1, 1))  # 2 is a suspect
    found = failed_cells(T_S, NAMES, cells_open, cells_failed)
    assert found == [
        {"cell": "a.3", "t_s": 0.1, "found": OPEN_WIRE},
        {"cell": "a.1", "t_s": 0.2, "found": BY_FORCE},
    ]
    assert failure_lines(found)[0] == f"a.3: {OPEN_WIRE} at 0.100 s"


def test_a_recording_without_these_columns_names_none():
    assert failed_cells(T_S, NAMES, None, None) == []
    assert failed_cells(np.zeros(0), [], None, None) == []
