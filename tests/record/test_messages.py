"""Messages of single rows, written by hand."""

import json
from math import inf, isnan, nan

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from hil.loop.frame import CELL_UNKNOWN, Column
from hil.record.messages import topics_of
from hil.record.protobuf_rows import Encoder

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


def encoded(name, columns, rows, cells=()):
    """Messages that Google's library reads from what is written at once."""
    topic = {topic.name: topic for topic in topics_of(columns, cells)}[name]
    encoder = Encoder(topic)
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(encoder.schema).file:
        pool.Add(file)
    of_topic = message_factory.GetMessageClass(pool.FindMessageTypeByName(encoder.name))
    table = {key: np.array(values) for key, values in rows.items()}
    found = []
    for part, blank in encoder.stretches(table):
        messages = np.full(len(range(*part.indices(len(table["t_s"])))), blank)
        encoder.fill(messages, {key: values[part] for key, values in table.items()})
        found += [of_topic.FromString(message.tobytes()) for message in messages]
    return found


def test_of_two_values_without_bounds_the_residual_is_missing():
    names = ("height_measured_m", "height_model_m")
    columns = [Column(name, "m", "measured", "") for name in names]
    table = {"t_s": [0.0, 1.0], **{name: [inf, 1.0] for name in names}}
    first, second = encoded("/residual", columns, table)
    assert isnan(first.height_residual_m)
    assert second.height_residual_m == 0.0


def test_in_protobuf_faults_and_states_have_names_and_times():
    rows = {
        "t_s": [0.0, 1.0, 2.0, 3.0],
        "guard_state": [5.0, 5.0, 7.0, nan],
        "fault_bits": np.uint64([0, 0, 0b101, 0]),
    }
    found = [(m.t_s, m.state, list(m.faults)) for m in encoded("/guard", GUARD, rows)]
    assert found == [
        (0.0, "running", []), (1.0, "running", []), (2.0, "fault", ["hot", "silent"]),
        (3.0, "unknown", []),
    ]  # fmt: skip


def test_in_protobuf_an_unknown_cell_is_255_and_an_unknown_duty_nan():
    rows = {
        "t_s": [0.5, 1.5],
        "cells_reported": np.uint8([[1, CELL_UNKNOWN], [0, 1]]),
        "cells_duty": [[nan, 0.25], [1.0, 0.0]],
    }
    first, second = encoded("/cells", CELLS, rows, ["arm.1", "arm.2"])
    assert (first.t_s, first.arm_1.reported, first.arm_2.reported) == (0.5, 1, 255)
    assert isnan(first.arm_1.duty)
    assert (second.t_s, second.arm_2.reported, second.arm_1.duty) == (1.5, 1, 1.0)
    first, second = encoded("/commanded", CELLS, rows)
    assert list(second.cells_duty) == [1.0, 0.0]


def test_in_protobuf_two_columns_with_nearly_the_same_name_are_both_there():
    columns = [Column(name, "1", "state", "") for name in ("a.b", "a_b", "2 c", "ü")]
    rows = {"t_s": [0.0], "a.b": [1.0], "a_b": [2.0], "2 c": [3.0], "ü": [4.0]}
    (message,) = encoded("/state", columns, rows)
    assert [value for _, value in message.ListFields()] == [1.0, 2.0, 3.0, 4.0]


def test_in_protobuf_a_message_of_many_cells_is_read_back():
    """Numbers of fields and lengths beyond 127 take more than one byte."""
    n = 1152
    column = Column("cells_reported", "1", "measured", "", n_cells=n)
    cells = [f"arm.{i}" for i in range(n)]
    rows = {"t_s": [0.0], "cells_reported": (np.arange(n) % 3).astype(np.uint8)[np.newaxis]}
    (message,) = encoded("/cells", [column], rows, cells)
    assert [getattr(message, f"arm_{i}").reported for i in range(n)] == [i % 3 for i in range(n)]
    (message,) = encoded("/measured", [column], rows, cells)
    assert list(message.cells_reported) == [i % 3 for i in range(n)]
