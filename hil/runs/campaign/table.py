"""One table of all trials of a campaign: a row a trial, factors as coordinates."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hil.config.values import Figures
from hil.record.csv_text import as_line
from hil.runs.campaign.commission import columns_of as fitted_columns
from hil.runs.campaign.journal import Progress
from hil.runs.campaign.tune_tables import EXACT
from hil.runs.campaign.tuned import columns_of, tunings_of

if TYPE_CHECKING:
    import xarray as xr

COORDINATES = ("experiment", "repeat", "block")
INT32_MAX = 2**31 - 1  # the largest integer of the file for xarray


def rows_of(p: Progress) -> list[dict[str, object]]:
    """A row for each trial, in run order; None for an unknown value."""
    rows, tunings = [], tunings_of(p)
    for plan in p.head["plan"]:
        number = plan["trial"]
        end = p.ends.get(number, {})
        verdict = p.settled.get(number)
        row = {
            "trial": number, "experiment": plan["experiment"], **plan["levels"],
            "repeat": plan["repeat"], "block": plan["block"],
            **({"plant": plan["plant"]} if "plant" in plan else {}), **drawn_columns(plan),
            **columns_of(tunings, plan), **fitted_columns(p.commissioned, plan.get("plant", 0)),
            "seed": str(plan["seed"]),
            "attempts": p.attempts.get(number, 0),
            "outcome": end.get("outcome") or ("left out" if verdict else "to do"),
            "faults": ", ".join(end.get("faults", [])),
            "error": end.get("error") or (verdict if verdict not in (None, "complete") else ""),
            "waited_s": p.waits.get(number, {}).get("waited_s"),
            "started_utc": end.get("begun_utc", ""), "file": end.get("file", ""),
        }  # fmt: skip
        rows.append(row | p.answers.get(number, {}) | end.get("figures", {}))
    keys = list(dict.fromkeys(key for row in rows for key in row))
    return [{key: row.get(key) for key in keys} for row in rows]


def drawn_columns(plan: Figures) -> dict[str, object]:
    """What a trial's plant draws: a list of numbers has a column for each, another is a text."""
    columns: dict[str, object] = {}
    for key, value in plan.get("drawn", {}).items():
        if isinstance(value, list) and value and all(isinstance(one, float) for one in value):
            columns |= {f"{key}.{i}": one for i, one in enumerate(value, start=1)}
        else:
            columns[key] = str(value) if isinstance(value, list | dict) else value
    return columns


def as_csv(rows: list[dict[str, object]]) -> str:
    """The table as CSV; an empty field is an unknown value.

    Text that a spreadsheet would evaluate as a formula has an apostrophe in front
    (`hil.record.csv_text`).
    """
    return "".join(map(as_line, [rows[0], *(row.values() for row in rows)]))


def as_dataset(p: Progress) -> xr.Dataset:
    """The table as an `xarray.Dataset` over `trial`; factors, repeat and block are coordinates.

    `table.set_index(trial=["force", "repeat"]).unstack()` turns coordinates into axes.
    """
    import xarray as xr

    rows = rows_of(p)
    factors = list(dict.fromkeys(name for plan in p.head["plan"] for name in plan["levels"]))
    variables = {key: ("trial", _column([row[key] for row in rows])) for key in rows[0]}
    plant = ("plant",) if "plant" in variables else ()
    coords = {key: variables.pop(key) for key in ("trial", *COORDINATES, *plant, *factors)}
    attrs = {
        "campaign": p.head["name"],
        "backend": p.head["backend"],
        "rehearsal": int(p.head["rehearsal"]),
        "simulated": "" if p.head["backend"] == "bench" else f"SIMULATED: {p.head['backend']}",
        "answers": "; ".join(f"{k}: {v}" for k, v in p.answers.get(0, {}).items()),
    }
    return xr.Dataset(variables, coords=coords, attrs=attrs)


def is_text(known: Iterable[object]) -> bool:
    """Whether a column of these values is text: one is no number, or an integer above EXACT."""
    return any(not isinstance(v, float) and not _is_exact(v) for v in known)


def _is_exact(value: object) -> bool:
    return isinstance(value, int) and abs(value) <= EXACT


def _column(values: list[object]) -> NDArray[np.generic]:
    """An array of numbers if all known values are numbers, else of text."""
    known = [v for v in values if v is not None]
    if is_text(known):
        return np.array(["" if v is None else str(v) for v in values])
    if values and all(isinstance(v, int) and abs(v) <= INT32_MAX for v in values):
        return np.array(values, dtype=np.int32)
    return np.array([np.nan if v is None else v for v in values], dtype=float)
