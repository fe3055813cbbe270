"""Messages of single rows, written by hand."""

import json
from math import nan

import numpy as np

from hil.loop.frame import CELL_UNKNOWN, Column
from hil.record.messages import topics_of

GUARD = [
    Column("guard_state", "1", "state", "of the rig"),
    Column("fault_bits", "1", "fault", "latched", flags=("hot", "late", "silent")),
]
CELLS = [
    Column("cells_reported", "1", "measured", "by the boards", n_cells=2),
    Column("cells_duty", "1", "commanded", "share of time", n_cells=2, fractions=True),
]


def messages(name, columns, rows, cells=()):
    topic = {topic.name: topic for topic in topics_of(columns, cells)}[name]
    table = {key: np.array(values) for key, values in rows.items()}
    return [json.loads(message) for message in topic.messages(table)]


def test_faults_and_states_have_names():
    rows = {"t_s": [0.0, 1.0], "guard_state": [5.0, 7.0], "fault_bits": np.uint64([0, 0b101])}
    assert messages("/guard", GUARD, rows) == [
        {"t_s": 0.0, "state": "running", "faults": []},
        {"t_s": 1.0, "state": "fault", "faults": ["hot", "silent"]},
    ]


def test_a_cell_omits_what_is_not_known():
    rows = {
        "t_s": [0.0],
        "cells_reported": np.uint8([[1, CELL_UNKNOWN]]),
        "cells_duty": [[nan, 0.25]],
    }
    assert messages("/cells", CELLS, rows, ["arm.1", "arm.2"]) == [
        {"t_s": 0.0, "arm_1": {"reported": 1}, "arm_2": {"duty": 0.25}}
    ]


def test_a_residual_is_measured_minus_model_of_every_signal():
    names = ("height_measured_m", "height_model_m", "knee_measured_rad", "knee_model_rad")
    columns = [Column(name, "m", "measured", "") for name in names]
    values = dict(zip(names, ([3.0, 1.0], [1.0, nan], [0.5, 0.5], [0.25, 1.0]), strict=True))
    assert messages("/residual", columns, {"t_s": [0.0, 1.0], **values}) == [
        {"t_s": 0.0, "height_residual_m": 2.0, "knee_residual_rad": 0.25},
        {"t_s": 1.0, "knee_residual_rad": -0.5},
    ]
