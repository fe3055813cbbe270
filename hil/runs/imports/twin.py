"""The twin of an imported recording: the rig's estimator over rows that no loop has made."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hil.loop.channels import RigLayout, known_before
from hil.loop.frame import CELL_UNKNOWN
from hil.loop.stages import StepsRows
from hil.record.layout import Columns
from hil.runs.assembly import Pipeline

BLOCK = 20_000  # rows
OFF = np.uint8(0)


def model_columns(
    pipeline: Pipeline,
    rows: Columns,
    done: Callable[[int], None] = lambda n_more: None,
) -> Columns:
    """Columns of the estimator, from the readings, reported cells and outputs of every row.

    As in the loop, the estimator steps to a row with the outputs of the row before.
    """
    frame, layout = pipeline.frame, pipeline.rig.layout
    readings, commands = layout.bind(frame)
    pipeline.estimator.bind(frame, readings, commands)
    fed = _fed(layout, rows)
    names = [column.name for column in pipeline.estimator.columns]
    n_rows = len(rows["t_s"])
    if isinstance(pipeline.estimator, StepsRows) and layout.n_cells:
        cells = known_before(fed["cells_reported"])
        cells = np.where(cells == CELL_UNKNOWN, OFF, cells)  # until the first report
        values = pipeline.estimator.step_rows(cells, _valid_readings(layout, rows))
        if values is not None:
            done(n_rows)
            return dict(zip(names, values.T, strict=True))
    columns = {name: np.empty((n_rows, *frame.row[name].shape[1:]), frame.dtype[name].base)
             for name in names}  # fmt: skip
    memory = frame.row.view(np.uint8)
    for begin in range(0, n_rows, BLOCK):
        block = np.repeat(frame.row, min(BLOCK, n_rows - begin))
        for name, values in fed.items():
            block[name] = values[begin : begin + len(block)]
        raw = block.view(np.uint8).reshape(len(block), -1)
        for row in raw:
            memory[:] = row
            pipeline.estimator.step(1)
            row[:] = memory
        for name in names:
            columns[name][begin : begin + len(block)] = block[name]
        done(len(block))
    return columns


def _fed(layout: RigLayout, rows: Columns) -> Columns:
    """What an estimator reads in a row."""
    fed = {name: rows[name] for name in ("t_s", "valid_bits")}
    fed |= {name: rows[name] for c in layout.channels if (name := c.column("measured")) in rows}
    if layout.n_cells:
        fed["cells_reported"] = rows["cells_reported"]
    for name in layout.outputs:
        fed[name] = np.concatenate(([0.0], rows[name][:-1]))
    return fed


def _valid_readings(layout: RigLayout, rows: Columns) -> NDArray[np.float64]:
    """(n, S) readings of every channel; NaN where there is none."""
    readings = np.full((len(rows["t_s"]), len(layout.channels)), np.nan)
    for i, channel in enumerate(layout.channels):
        if (name := channel.column("measured")) in rows:
            valid = rows["valid_bits"] >> np.uint64(i) & np.uint64(1)
            readings[:, i] = np.where(valid, rows[name], np.nan)
    return readings
