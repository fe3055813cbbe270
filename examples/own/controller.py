"""A plug-in controller: copy this file, change it, and name it in your experiment:

[controller]
kind = "controller.py:MyController"
k_p = 0.6

`hil check EXPERIMENT.toml` validates it, `pytest --hil-contract controller.py` tests it.
"""

import numpy as np
from pydantic import BaseModel, Field


class MyController:
    """PI on force: switches on as many cells as the demanded force needs.

    u = k_p e + k_i int(e) dt, e = set point - force; the cells are switched on one by one.
    """

    class Values(BaseModel):
        """The keys of its table; hil reports missing, unknown and out-of-range keys."""

        k_p: float = Field(default=0.5, ge=0.0)
        k_i_per_s: float = Field(default=2.0, ge=0.0)
        cell_N: float = Field(default=0.35, gt=0.0)  # assumed: force of one cell

    # Recorded in every tick as controller.integral_N and controller.wanted_cells: name -> unit.
    columns = {"integral_N": "N", "wanted_cells": "1"}  # noqa: RUF012

    def __init__(self, facts, values):
        """`facts`: period, names of cells, channels and outputs (`hil.plugins.code.Facts`)."""
        self.period_s = facts.period_s
        self.n_cells = len(facts.cells)
        self.force = facts.channels.index(facts.force)
        self.values = values
        self.integral_N = 0.0
        self.wanted_cells = 0.0

    def step(self, now):
        """Return 0 or 1 for every cell, then every output, from a tick's `hil.plugins.code.Now`."""
        wanted_N, force_N = now.reference[0], now.measured[self.force]
        if np.isnan(wanted_N) or np.isnan(force_N):  # no set point, or no reading at this tick
            return self.cells_on(self.wanted_cells)
        error_N = wanted_N - force_N
        u_N = wanted_N + self.values.k_p * error_N + self.integral_N
        if (
            0.0 < u_N < self.n_cells * self.values.cell_N
        ):  # the integral rests while all or none are on
            self.integral_N += self.values.k_i_per_s * self.period_s * error_N
        self.wanted_cells = min(max(round(u_N / self.values.cell_N), 0), self.n_cells)
        return self.cells_on(self.wanted_cells)

    def cells_on(self, n):
        """The first n cells on."""
        return (np.arange(self.n_cells) < n).astype(float)
