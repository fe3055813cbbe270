"""Plans the switches of every cell over the next seconds, for cells that heat and cool.

The effect of a switch depends on the temperature of the wire, so effects of blocks do not add up.
Each cell is therefore predicted with its own law (`hil.mechanics.sma.stressed`, along the branches
of `hil.systems.array.wires.cells`) and lag,

    f(t) = sum_n s_n (c_n xi_n + (1 - c_n) z_n) + d,    z_n' = r_n (xi_n - z_n),

and the plan minimises over M blocks, sampled at their ends,

    sum_j (set point - f)_j^2 + price x (number of switches)

by coordinate descent: each cell in turn gets the best sequence that differs in one interval from
its plan, or from no switch, while the others keep theirs. An interval is abandoned once its error
exceeds that of the best one. A cell that was switched stays so for its minimum on or off time. The
search starts from the last plan, continued, so there is a plan whenever it is stopped.

Source: Tseng 2001 (convergence of block coordinate descent); Camacho & Bordons 2007, ch. 2
(receding horizon).
"""

import numpy as np
from numpy.typing import NDArray

from hil.mechanics.arrays import Array, Mask
from hil.systems.array.recruitment import wire_plan_kernel as kernel
from hil.systems.array.wires.cells import WireModel


class WirePlanner:
    """The search.

    Parameters
    ----------
    lead_s, block_s : time from now to the first block, and between times at which cells can switch
    n_blocks : length of a plan
    price_N2 : cost of a switch
    on_blocks, off_blocks : minimum number of blocks for which a cell stays on, and off

    Attributes
    ----------
    plan : (N, M) array, on or off in every block
    n_looked_at : predicted cell steps for the last problem
    """

    def __init__(
        self,
        model: WireModel,
        lead_s: float,
        block_s: float,
        n_blocks: int,
        price_N2: float,
        on_blocks: int,
        off_blocks: int,
    ) -> None:
        n_cells = len(model.static_gains_N)
        self._laws, self._gains_N = model.laws.copy(), model.static_gains_N.copy()
        self._knots_C = model.knots_C
        self._direct = model.direct
        self._lead_s, self._block_s = lead_s, block_s
        self._price = price_N2
        self._least = np.array([off_blocks, on_blocks], dtype=np.int64)
        self._lead_lag = kernel.lag_weights(model.rate_per_s, lead_s)
        self._lag = kernel.lag_weights(model.rate_per_s, block_s)
        self.plan = np.zeros((n_cells, n_blocks), dtype=np.uint8)
        self._state = np.zeros((n_cells, 3))
        self._on = np.zeros(n_cells, dtype=np.uint8)
        self._locked = np.zeros(n_cells, dtype=np.int64)
        self._usable = np.ones(n_cells, dtype=np.uint8)
        self._y = np.zeros((n_cells, n_blocks))
        self._error = np.zeros(n_blocks)
        self._work = np.zeros((2, n_blocks + 1, 4))
        self._rest = np.zeros(n_blocks)
        self._tried = np.zeros((3, n_blocks), dtype=np.uint8)
        self._at, self._best = np.zeros(3, dtype=np.int64), np.zeros(1)
        self._better = False
        self._next = 0
        self._since_better = 0
        self.n_looked_at = 0

    @property
    def finished(self) -> bool:
        """Whether no change of a single cell's sequence improves the plan."""
        return self._since_better >= len(self.plan)

    @property
    def error_N(self) -> Array:
        """Set point minus predicted force at the end of every block."""
        return self._error

    def pose(
        self, wires: tuple[Array, Array, Array], on: Mask, locked: NDArray[np.int64],
        usable: Mask, wanted_N: Array,
    ) -> None:  # fmt: skip
        """Start a new problem from the plan, continued by a block.

        Parameters
        ----------
        wires : (N, 13), (N,), (N, 3) arrays
            Law and static gain of every cell; its present temperature (degC), austenite and lag.
        on : (N,) array, cells on from now until the first block
        locked : (N,) array, number of blocks for which each cell must not switch
        wanted_N : (M,) array, set point minus the unknown force, at the end of every block
        """
        self._laws[:], self._gains_N[:], self._state[:] = wires
        self._on[:], self._locked[:], self._usable[:] = on, locked, usable
        kernel.pose(
            self._laws, self._knots_C, self._gains_N, self._direct, self._lead_lag, self._lag,
            self._lead_s, self._block_s, self._state, self._on, self._locked, self._usable,
            wanted_N, self.plan, self._y, self._error,
        )  # fmt: skip
        if self._at[0]:
            self._turn()  # its search was cut off: another's first, or the rest never have theirs
        self._since_better = 0
        self.n_looked_at = 0

    def search(self, n_steps: int) -> None:
        """Continue, cell by cell, until about this many cell steps have been predicted."""
        done = 0
        while done < n_steps and not self.finished:
            n, better, over = self._next, False, True
            if self._usable[n] and self._gains_N[n] != 0.0:
                steps, better, over = kernel.improve(
                    self._laws[n], self._knots_C[n], self._gains_N[n], self._direct[n],
                    self._lag[n], self._block_s, self._state[n], self._on[n], self._locked[n],
                    self._least, self._price, self.plan[n], self._y[n], self._error, self._rest,
                    self._work, self._tried, self._at, self._best, n_steps - done,
                )  # fmt: skip
                done += steps
            self._better = self._better or better
            if over:
                self._since_better = 0 if self._better else self._since_better + 1
                self._turn()
        self.n_looked_at += done

    def _turn(self) -> None:
        """Continue with the next cell."""
        self._next = (self._next + 1) % len(self.plan)
        self._at[0], self._better = 0, False
