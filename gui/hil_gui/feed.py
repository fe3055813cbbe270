"""Source of rows: the tap of a run, or a recording, complete or still growing."""

import contextlib
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hil_gui.array_view import Cells
from hil_gui.data import Band, ConfigError, DeviceError, File, Live, Motion
from hil_gui.pyramid import Pyramid
from hil_gui.run_data import DUTY, LIVE_CAPACITY, About, RunData

DUTY_S = 1.0
"""Time over which a cell's duty is averaged, s."""
FILE_S = 0.25
"""Period at which a growing recording is read, s."""
LONG = 500_000
"""Rows from which on a recording is kept as extremes, but for its last ones, as a live run is."""
TOO_LONG = f"the run has more than {LONG} rows"


class Feed:
    """One run and the motion of its array, kept up to date by `poll`.

    Parameters
    ----------
    file : File
        The run's recording.
    live : Live or None
        Its tap, while it runs.
    """

    def __init__(self, file: File, live: Live | None = None) -> None:
        self.file = file
        self.live = live
        is_long = live is None and file.n_at_first > LONG
        capacity = 4 * LIVE_CAPACITY if is_long else LIVE_CAPACITY
        self.data = RunData(file.about, capacity if is_long or live is not None else None)
        self._band = Band(file.about, self.data.signal, without=TOO_LONG if is_long else "")
        self.data.noise, self.data.no_band = self._band.noise, self._band.without
        self._motion = None if is_long else _motion(file.about)
        n_moves = len(self._motion.names) if self._motion else 0
        self._moves = Pyramid(n_moves, self.data.capacity)
        self._follows_file = live is None
        self._looked_s = 0.0

    @property
    def about(self) -> About:
        return self.data.about

    def load(self) -> Iterator[float]:
        """Read the recording; yields the fraction done."""
        for block, share in self.file.blocks():
            self._take(block)
            yield share
        self._settle_file()
        if self.live is not None:
            self.live.skip(self.file.n_rows)

    def _settle_file(self) -> None:
        self.data.outcome = self.file.outcome
        self.data.notes += self.file.notes()

    @property
    def is_growing(self) -> bool:
        """Whether more rows may come."""
        return self.live is not None or (self._follows_file and self.data.outcome == "running")

    def poll(self, now_s: float) -> bool:
        """Read new rows; returns whether there were any. `now_s` is any monotonic time."""
        if self.live is not None:
            is_over = self.live.is_over
            if self.live.has_overtaken:
                self._catch_up(self.live)
            rows = self.live.rows()
            self._take(rows)
            self.data.n_lost = self.live.n_lost
            self.data.notes += self.live.notes()
            if is_over:
                self.close()
            return len(rows) > 0
        if not self.is_growing or now_s - self._looked_s < FILE_S:
            return False
        self._looked_s = now_s
        n_before = self.data.n_rows
        try:
            for block, _ in self.file.blocks():
                self._take(block)
            self._settle_file()
        except ConfigError:
            return False  # the recorder is closing the file: try again later
        return self.data.n_rows > n_before

    def _catch_up(self, live: Live) -> None:
        """Read from the recording what the tap no longer has, since the window stood still."""
        self.file.n_rows = live.n_rows
        with contextlib.suppress(ConfigError):  # the recorder is closing the file
            for block, _ in self.file.blocks():
                self._take(block)
        live.skip(self.file.n_rows)

    def close(self) -> None:
        """Detach from the run; it continues."""
        if self.live is not None:
            self.live.close()
            self.live = None

    def _take(self, rows: dict[str, NDArray] | NDArray[np.void]) -> None:  # type: ignore[type-arg]
        t_s = np.asarray(rows["t_s"])
        if not len(t_s):
            return
        self.data.append(rows, self._band.take(rows))
        self.data.noise, self.data.no_band = self._band.noise, self._band.without
        if self._motion is not None:
            driven = rows[DUTY if DUTY in self.data.cells else "cells_reported"]
            self._moves.append(*self._motion.take(t_s, np.asarray(driven).T))

    def send(self, name: str, value: float = float("nan"), text: str = "") -> None:
        """Send a request to the loop.

        Raises
        ------
        DeviceError
            No run is live, or another window controls it.
        """
        if self.live is None:
            raise DeviceError(f"{name}: not sent, no run is in progress: press Start first")
        self.live.send(name, value, text)

    def cells_at(self, t_s: float) -> Cells | None:
        """State of the cells at an instant; None on rigs without cells."""
        data, names = self.data, self.about.cell_names
        if not names or not data.n_rows or "cells_reported" not in data.cells:
            return None
        _, driven = data.cells[DUTY if DUTY in data.cells else "cells_reported"].samples(
            t_s - DUTY_S, t_s + 1e-9
        )
        share = np.where(driven <= 1.0, driven, 0.0)  # 255 is unknown
        duty = share.mean(axis=1) if driven.size else np.zeros(len(names))
        row = data.at(t_s)
        return Cells(
            reported=data.cells_at("cells_reported", t_s),
            commanded=data.cells_at("cells_commanded", t_s),
            duty=duty,
            heat_C=np.array([row.get(f"{name}.temperature_C", np.nan) for name in names]),
            failed=(data.cells_at("cells_failed", t_s) == 1)
            | (data.cells_at("cells_open", t_s) == 1),
        )

    def moves_at(self, t_s: float) -> dict[str, float]:
        """Displacement of every mass in m, by model output name.

        A recorded column replaces the recomputed value.
        """
        recorded = self.data.at(t_s) if self.data.n_rows else {}
        moves = {}
        if self._motion is not None and self._moves.n_samples:
            row = self._moves.at(t_s)
            moves = {name: float(row[i]) for i, name in enumerate(self._motion.names)}
        return {name: recorded.get(name, value) for name, value in moves.items()}


def _motion(about: About) -> Motion | None:
    if not about.arrays or about.column("cells_reported") is None:
        return None
    try:
        motion = Motion(about)
    except ConfigError:
        return None  # no model for this recording, e.g. of another version: drawn at rest
    return motion if motion.names else None
