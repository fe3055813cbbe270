"""Compares what boards read of wires with what the wires can be: their resistance and their clamps.

A current that is read too low makes a resistance, V / I, that the wire cannot have now
(`hil.mechanics.sma.bounds`): `current_untrue`, by PERSISTENCE readings in a row beyond it. A sensor
that shows the same temperature while its wire must have moved that of its clamp by FOLLOWS_K is
stuck: `clamp_untrue`. How warm a clamp was when the run began nobody knows, so a rise counts only
once that has gone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp

import numpy as np
from numpy.typing import NDArray

from hil.compiled import njit
from hil.loop.channels import Readings
from hil.loop.frame import CELL_UNKNOWN, Frame
from hil.mechanics.arrays import Array
from hil.mechanics.sma.bounds import Surroundings, WireBounds, range_bounds, step_bounds
from hil.mechanics.sma.limits import CellWire

PERSISTENCE = 2
LOOK_BACK_S = 0.1  # a reading is so old at most, and its board's report of duties older than it
FOLLOWS_K = 3.0  # assumed: of a clamp as described; one of a third of it moves by 2 counts
MOVES_K = 0.75  # a reading that wanders by one count, 0.49 K, does not move
SETTLES = 3.0  # time constants after which a clamp has forgotten how warm it was at first
CURRENT, CLAMP = 1, 2
WATCHED = np.dtype(
    [(name, float) for name in (
        "tolerance", "ohms", "clamp_C",
        # readings of the clamp, and expectations, since it moved
        "low_C", "high_C", "most_K", "least_K")]
    + [(name, np.int64) for name in (
        "ohms_column", "clamp_column", "streak", "faults", "settles_periods")]
)  # fmt: skip


@dataclass(frozen=True)
class WatchedWire:
    """A cell of a board whose wire is described.

    Attributes
    ----------
    index : of the cell in the rig
    senses : whether its board measures its resistance
    has_clamp_sensor : whether its board's temperature input has a sensor
    every : its board is read once in so many periods
    """

    board: str
    cell: CellWire
    index: int
    around: Surroundings
    senses: bool
    has_clamp_sensor: bool
    every: int = 1


class WireWatch:
    """The comparison of every watched wire, once a tick.

    Parameters
    ----------
    wires : not empty
    """

    def __init__(self, wires: Sequence[WatchedWire], period_s: float) -> None:
        n = len(wires)
        self._wires = wires
        self._bounds = WireBounds([(one.cell, one.around) for one in wires], period_s)
        self._cells = np.array([one.index for one in wires], dtype=np.int64)
        self._keeps = exp(-period_s / LOOK_BACK_S)
        self._every = np.array([one.every for one in wires], dtype=np.int64)
        self._unread = np.zeros(n, dtype=np.int64)  # periods
        self._duty = np.zeros((n, 2))
        self._now = np.zeros((n, 2))
        self._bounds.resistances_Ohm(self._now)
        self._kept = self._now.copy()
        self._watched = np.zeros(n, dtype=WATCHED)
        self._watched["tolerance"] = [one.around.tolerance for one in wires]
        self._watched["ohms"] = self._watched["clamp_C"] = np.nan
        self._watched["low_C"], self._watched["high_C"] = np.inf, -np.inf
        self._watched["settles_periods"] = np.ceil(SETTLES * self._bounds.clamp_periods)
        self._periods, self._period_s = 0, period_s

    def bind(self, frame: Frame, readings: Readings) -> None:
        """Look up the columns of the watched cells."""
        self._values = frame.values
        reported = readings.cells_reported, readings.duty_reported
        of_duty = self._cells, self._every, self._unread, self._duty
        self._reports = (*reported, *of_duty), self._now, self._kept
        self._watched["ohms_column"] = [
            frame.index(f"{one.cell.cell}.resistance_Ohm") if one.senses else -1
            for one in self._wires
        ]
        self._watched["clamp_column"] = [
            frame.index(f"{one.cell.cell}.temperature_C") if one.has_clamp_sensor else -1
            for one in self._wires
        ]

    def step(self, n_periods: int) -> int:
        """Compare this tick's readings; returns CURRENT and CLAMP of what is untrue."""
        self._periods += n_periods
        passed = n_periods, self._period_s, self._keeps**n_periods, self._periods
        return int(_step(passed, self._values, self._reports, self._watched, *self._bounds.arrays))

    def troubles(self) -> dict[str, list[str]]:
        """What is untrue, as text, by the row of the interlocks."""
        lines: dict[str, list[str]] = {}
        for i, one in enumerate(self._wires):
            cell, watched = one.cell.cell, self._watched[i]
            ohms, clamp_C = watched["ohms"], watched["clamp_C"]
            if watched["faults"] & CURRENT:
                why = (
                    "read too low, or one of its wires in parallel is broken"
                    if watched["streak"] > 0
                    else "read too high, or its wire is shorted in part"
                )
                lines.setdefault("current_untrue", []).append(
                    f"{cell} measures {ohms:.4g} Ohm, and its wire may have {self._kept[i, 0]:.4g} "
                    f"to {self._kept[i, 1]:.4g} within {100 * one.around.tolerance:.3g} % "
                    f"(devices.{one.board}.resistance.tolerance): its current is {why}"
                )
            if watched["faults"] & CLAMP:
                lines.setdefault("clamp_untrue", []).append(
                    f"{cell}'s clamp stays at {clamp_C:.4g} C, and its wire must have moved it by "
                    f"{FOLLOWS_K:g} K: its sensor is stuck; without one, name the cell in "
                    f"devices.{one.board}.without_clamp_sensor"
                )
        return lines


@njit(cache=True)
def _step(passed, values, reports, watched, constants, kept):  # type: ignore[no-untyped-def]
    """`WireWatch.step` in one compiled call."""
    n_periods, period_s, keeps, periods = passed
    (reported, duty_reported, cells, every, unread, duty), now, were = reports
    unread += n_periods
    _duties(reported, duty_reported, cells, every, unread, duty)
    step_bounds((duty, n_periods, period_s), constants, kept)
    range_bounds(constants, kept, now)
    _compare(values, watched, now, were, keeps)
    _follow(values, watched, kept[1], periods)
    flags = 0
    for i in range(len(watched)):
        flags |= watched[i]["faults"]
    return flags


@njit(cache=True)
def _duties(reported, duty_reported, cells, every, unread, into):  # type: ignore[no-untyped-def]
    """The duty of the eager and of the lazy copy: the same unless a report has not come."""
    for i in range(len(cells)):
        cell = cells[i]
        known = reported[cell] != CELL_UNKNOWN
        duty = float(reported[cell])
        if len(duty_reported):
            known, duty = not np.isnan(duty_reported[cell]), duty_reported[cell]
        if known:
            into[i, 0], into[i, 1], unread[i] = duty, duty, 0
        elif unread[i] >= every[i]:
            into[i, 0], into[i, 1] = 1.0, 0.0


@njit(cache=True)
def _compare(
    values: Array, watched: NDArray[np.void], now: Array, kept: Array, keeps: float
) -> None:
    """Compare resistances with those that wires may have had since a reading's time."""
    for i in range(len(watched)):
        wire = watched[i]
        kept[i, 0] = min(now[i, 0], now[i, 0] + keeps * (kept[i, 0] - now[i, 0]))
        kept[i, 1] = max(now[i, 1], now[i, 1] + keeps * (kept[i, 1] - now[i, 1]))
        ohms = values[wire["ohms_column"]] if wire["ohms_column"] >= 0 else np.nan
        if np.isnan(ohms):
            continue
        wire["ohms"] = ohms
        streak = wire["streak"]
        if ohms > (1.0 + wire["tolerance"]) * kept[i, 1]:
            streak = max(streak, 0) + 1
        elif ohms < (1.0 - wire["tolerance"]) * kept[i, 0]:
            streak = min(streak, 0) - 1
        else:
            streak = 0
        wire["streak"] = streak
        untrue = CURRENT if abs(streak) >= PERSISTENCE else 0
        wire["faults"] = wire["faults"] & ~CURRENT | untrue


@njit(cache=True)
def _follow(values: Array, watched: NDArray[np.void], expected_K: Array, periods: int) -> None:
    """Compare what clamps have moved with what they must have; at first a rise counts for less."""
    for i in range(len(watched)):
        wire, K = watched[i], expected_K[i]
        wire["most_K"] = max(wire["most_K"], K)
        begins = periods < wire["settles_periods"]
        wire["least_K"] = K if begins else min(wire["least_K"], K)
        T = values[wire["clamp_column"]] if wire["clamp_column"] >= 0 else np.nan
        if np.isnan(T):
            continue
        wire["clamp_C"] = T
        wire["low_C"], wire["high_C"] = min(wire["low_C"], T), max(wire["high_C"], T)
        if wire["high_C"] - wire["low_C"] > MOVES_K:
            wire["low_C"] = wire["high_C"] = T
            wire["most_K"] = wire["least_K"] = K
        stuck = max(wire["most_K"] - K, K - wire["least_K"]) > FOLLOWS_K
        wire["faults"] = wire["faults"] & ~CLAMP | (CLAMP if stuck else 0)
