"""Published figures of the thesis, and which of them each interpretation of its PID gives.

Source: Makkonen 2021, Figs. 12, 16, 19, 20 and sections 3 and 4.1; read off by eye.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hil.pages.study import as_table, check

Figures = Mapping[str, Any]
"""Figures of one run, as `hil_studies.leg.study` returns them."""
MOVING, AFTER, LATE, LAST = (
    slice(1000, 1500),
    slice(1500, None),
    slice(2000, None),
    slice(-500, None),
)
"""Periods of the downward scenario: the movement, what follows, after 2 s, the last half second."""


@dataclass(frozen=True)
class Published:
    """A printed figure: its scenario, its text, its value in a run, and what counts as equal."""

    scenario: str
    what: str
    printed: str
    unit: str
    value: Callable[[Figures], float]
    agrees: Callable[[float], bool]


PUBLISHED = (
    Published("still", "drop as in Fig. 12", "3", "mm", lambda c: c["drop_mm"],
              lambda v: 2.0 < v < 4.0),
    Published("up", "q_TA, moving (Fig. 16)", "0.2", "", lambda c: np.max(c["q_TA"][500:2000]),
              lambda v: 0.1 < v < 0.3),
    Published("down", "q_SOL, moving (Fig. 19)", "0.4", "", lambda c: np.max(c["q_SOL"][MOVING]),
              lambda v: 0.3 < v < 0.5),
    Published("down", "swings after (Fig. 19)", "> 0.01", "",
              lambda c: np.max(c["activation_std_last"]), lambda v: v > 0.01),
    Published("down", "q_TA after 2 s (Fig. 19)", "> 0.001", "", lambda c: np.max(c["q_TA"][LATE]),
              lambda v: v > 0.002),
    Published("down", "F_TA after (Fig. 20)", "80", "N", lambda c: np.mean(c["F_TA_N"][LAST]),
              lambda v: 64.0 < v < 96.0),
    Published("down", "F_SOL after (Fig. 20)", "> 50", "N", lambda c: np.mean(c["F_SOL_N"][LAST]),
              lambda v: v > 50.0),
    Published("down", "F_TA, largest (Fig. 20)", "< 90", "N", lambda c: np.max(c["F_TA_N"][AFTER]),
              lambda v: v < 90.0),
)  # fmt: skip


def compare_published(
    cases: Mapping[tuple[str, str], Figures], readings: tuple[str, ...]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the table of readings over printed figures, and a check for each of both.

    Parameters
    ----------
    cases : figures of each (scenario, reading); what was not run is left out
    """
    rows, checks = [], []
    readings = tuple(name for name in readings if any(name == reading for _, reading in cases))
    for p in PUBLISHED:
        if all((p.scenario, reading) not in cases for reading in readings):
            continue
        row = [f"{p.scenario}: {p.what}", f"{p.printed} {p.unit}".strip()]
        for reading in readings:
            case = cases.get((p.scenario, reading))
            if case is None:
                row.append("–")
                continue
            value = float(p.value(case))
            checks.append(check(f"{p.scenario}, {reading}: {p.what}", value, p.printed, p.unit,
                                agrees=p.agrees(value)))  # fmt: skip
            row.append(f"{value:.3g}{'' if p.agrees(value) else ' (no)'}")
        rows.append(row)
    table = as_table("Published figures, by interpretation of the thesis's PID",
                     ["figure", "printed", *readings], rows)  # fmt: skip
    return table, checks
