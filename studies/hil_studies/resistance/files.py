"""Resistance, duty and, where known, strain of a real wire: a CSV file or a recording."""

import csv
from pathlib import Path

import numpy as np

from hil.errors import ModelError
from hil.mechanics.arrays import Array
from hil.record.read import open_run
from hil_studies.resistance.wires import Record, of_run

COLUMNS = ("t_s", "resistance_Ohm", "duty")


def read(path: Path, cell: str) -> Record:
    """The measurements of a wire in a CSV file or a recording.

    Raises
    ------
    ModelError
        Columns are missing or not numbers, times do not rise, or there is no resistance.
    """
    if not path.is_file():
        raise ModelError(f"{path}: no such file")
    record = _recorded(path, cell) if path.suffix == ".h5" else _columns(path)
    if len(record.t_s) < 2 or not (np.diff(record.t_s) > 0.0).all():
        raise ModelError(f"{path}: t_s must rise from row to row")
    if not ((record.duty >= 0.0) & (record.duty <= 1.0)).all():
        raise ModelError(f"{path}: duty must be within 0 to 1")
    if not (record.R_Ohm > 0.0).any():
        raise ModelError(f"{path}: no resistance: every value of resistance_Ohm is empty or 0")
    return record


def _columns(path: Path) -> Record:
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    names = list(rows[0]) if rows else []
    if missing := [name for name in COLUMNS if name not in names]:
        raise ModelError(f"{path}: has no column {', '.join(missing)}: it has {', '.join(names)}")
    try:
        columns = {n: np.array([float(r[n] or "nan") for r in rows]) for n in names}
    except (TypeError, ValueError):
        raise ModelError(f"{path}: a value is not a number: every column must be numbers") from None
    none = np.full(len(rows), np.nan)

    def known(name: str) -> Array:
        return columns.get(name, none)

    return Record(
        columns["t_s"], columns["duty"], columns["resistance_Ohm"], known("resistance_u_Ohm"),
        known("strain"), np.zeros(len(rows)),
    )  # fmt: skip


def _recorded(path: Path, cell: str) -> Record:
    run = open_run(path)
    if f"{cell}.resistance_Ohm" not in run:
        has = [str(c).removesuffix(".resistance_Ohm") for c in run if str(c).endswith("ce_Ohm")]
        remedy = f"give cell, one of {', '.join(has)}" if has else "its board measured none"
        raise ModelError(f"{path}: no resistance of cell '{cell}': {remedy}")
    return of_run(run, cell)
