"""A rig made of a recording: every read gives the row that was read then; writes go nowhere."""

import math

import numpy as np
import xarray as xr

from hil.devices.device import Readings
from hil.frame import Column, Frame


class ReplayRig:
    """Stands in for `hil.rig.Rig` in the loop.

    Parameters
    ----------
    run : a recording, as `hil.open_run` gives it
    channels, boards, devices : their names, in the rig's order
    """

    def __init__(
        self, run: xr.Dataset, columns: list[Column], channels: list[str], boards: list[str],
        devices: list[str],
    ) -> None:  # fmt: skip
        self.columns = columns
        self._row = -1
        forces = (
            ["force_measured_N"]
            if len(channels) == 1
            else [f"{name}.force_measured_N" for name in channels]
        )
        self._forces = np.stack([run[name].values for name in forces], axis=1)
        bits = run.valid_bits.values[:, None] >> np.arange(len(channels) + len(boards), dtype="u8")
        self._valid = (bits & np.uint64(1)).astype(bool)
        self._ages = np.stack([run[f"{name}_age_s"].values for name in devices], axis=1)
        self._reported = run.cells_reported.values
        faults = [run[f"{name}_fault_bits"].values for name in boards]
        self._faults = np.stack(faults, axis=1).astype(np.int64)

    def bind(self, frame: Frame) -> None:
        """Give every reading its place in the row."""
        self.cells_commanded = frame.cells("cells_commanded")
        self.readings = Readings(
            forces_N=np.full(self._forces.shape[1], math.nan),
            valid=np.zeros(self._valid.shape[1], dtype=bool),
            ages_s=np.zeros(self._ages.shape[1]),
            cells_reported=frame.cells("cells_reported"),
            board_faults=np.zeros(self._faults.shape[1], dtype=np.int64),
        )

    def arm(self) -> None:
        """Nothing can be switched."""

    def read(self, t_s: float) -> None:
        """The next row's readings."""
        self._row += 1
        r, k = self.readings, self._row
        r.forces_N[:] = self._forces[k]
        r.valid[:] = self._valid[k]
        r.ages_s[:] = self._ages[k]
        r.cells_reported[:] = self._reported[k]
        r.board_faults[:] = self._faults[k]

    def write(self, t_s: float) -> None:
        """Commands of a replay go nowhere."""
