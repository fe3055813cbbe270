"""Plans the power of every cell over the next seconds, for cells that heat and cool.

The effect of power depends on the temperature of the wire, so effects of blocks do not add up.
Each cell is therefore predicted with its own law (`hil.mechanics.sma.stressed`, along the branches
of `hil.systems.array.wires.cells`) and lag,

    f(t) = sum_n s_n (c_n xi_n + (1 - c_n) z_n) + d,    z_n' = r_n (xi_n - z_n),

and the plan minimises over M blocks of constant duty D, sampled at their ends,

    sum_j (set point - f)_j^2 + p_x sum |change of xi| + p_e sum D + p_s x (number of switches)

by coordinate descent: each cell in turn gets the best sequence that differs in one interval from
its plan, or from what it has now, while the others keep theirs. An interval is off, on or, where
power is modulated, held: with the power that keeps its temperature, a wire between its branches
keeps its austenite, and does not wear. An interval is abandoned once its cost exceeds that of the
best one. A cell that was switched stays so for its minimum on or off time. The search starts from
the last plan, continued, so there is a plan whenever it is stopped.

Modulated power is refined between the searches by a descent over all duties at once
(`hil.systems.array.recruitment.wire_descent`). A plan has no descent if the one before
it took the time of this search.

Source: Tseng 2001 (convergence of block coordinate descent); Camacho & Bordons 2007, ch. 2
(receding horizon).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hil.mechanics.arrays import Array, Mask, Records
from hil.systems.array.recruitment import wire_plan_kernel as kernel
from hil.systems.array.recruitment.wire_descent import DutyDescent
from hil.systems.array.wires.cells import WireModel


@dataclass(frozen=True)
class PlanGrid:
    """Times of a plan.

    Attributes
    ----------
    lead_s, block_s : time from now to the first block, and between times at which cells can change
    n_blocks : length of a plan
    on_blocks, off_blocks : minimum number of blocks for which a cell stays on, and off
    """

    lead_s: float
    block_s: float
    n_blocks: int
    on_blocks: int = 1
    off_blocks: int = 1


def _cells(model: WireModel, block_s: float) -> Records:
    cells = np.zeros(len(model.laws), kernel.CELL)
    cells["law"], cells["knots_C"] = model.laws, model.knots_C
    cells["gain_N"], cells["direct"] = model.static_gains_N, model.direct
    cells["block_s"], cells["lag"] = block_s, kernel.lag_weights(model.rate_per_s, block_s)
    return cells


class WirePlanner:
    """The search.

    Parameters
    ----------
    modulated : duties are between 0 and 1, not only either

    Attributes
    ----------
    plan : (N, M) array, duty in every block
    n_looked_at : predicted cell steps for the last problem
    """

    def __init__(
        self,
        model: WireModel,
        grid: PlanGrid,
        prices: kernel.PlanPrices,
        *,
        modulated: bool = False,
    ) -> None:
        n_cells, n_blocks = len(model.static_gains_N), grid.n_blocks
        self._lead = kernel.lag_weights(model.rate_per_s, grid.lead_s), grid.lead_s
        self._problem = kernel.Problem(
            _cells(model, grid.block_s),
            prices,
            state=np.zeros((n_cells, 3)),
            on=np.zeros(n_cells),
            locked=np.zeros(n_cells, dtype=np.int64),
            usable=np.ones(n_cells, dtype=np.uint8),
            plan=np.zeros((n_cells, n_blocks)),
            y=np.zeros((n_cells, n_blocks)),
            error=np.zeros(n_blocks),
        )  # fmt: skip
        self._n_levels = 3 if modulated else 2
        self._at = np.zeros(3, dtype=np.int64)
        self._plain = self._problem.plain()
        search = kernel.Search(
            least=np.array([grid.off_blocks, grid.on_blocks], dtype=np.int64),
            rest=np.zeros(n_blocks),
            first=np.zeros((n_blocks + 1, 4)),
            second=np.zeros((n_blocks + 1, 4)),
            base=np.zeros(n_blocks),
            cheapest=np.zeros(n_blocks),
            planned=np.zeros(n_blocks),
            at=self._at,
            best_N2=np.zeros(1),
        )
        self._search = tuple(search)
        self._better = False
        self._next = 0
        self._since_better = 0
        self._descent = DutyDescent(self._problem) if modulated else None
        self._changes_tried = False
        self.plan = self._problem.plan
        self.n_looked_at = 0

    @property
    def finished(self) -> bool:
        """Whether no change of a single cell's sequence improves the plan."""
        refined = self._descent is None or self._descent.finished
        return self._since_better >= len(self.plan) and refined

    @property
    def error_N(self) -> Array:
        """Set point minus predicted force at the end of every block."""
        return self._problem.error

    def pose(
        self, wires: tuple[Records, Array, Array], on: Array, locked: NDArray[np.int64],
        usable: Mask, wanted_N: Array,
    ) -> None:  # fmt: skip
        """Start a new problem from the plan, continued by a block.

        Parameters
        ----------
        wires : (N,), (N,), (N, 3) arrays
            Law and static gain of every cell; its present temperature (degC), austenite and lag.
        on : (N,) array, duties from now until the first block
        locked : (N,) array, number of blocks for which each cell must not switch
        wanted_N : (M,) array, set point minus the unknown force, at the end of every block
        """
        p = self._problem
        p.cells["law"], p.cells["gain_N"], p.state[:] = wires
        p.on[:], p.locked[:], p.usable[:] = on, locked, usable
        kernel.pose(self._plain, *self._lead, wanted_N)
        if self._at[0]:
            self._turn()  # its search was cut off: another's first, or the rest never have theirs
        self._since_better = 0
        if self._descent is not None:
            if self._changes_tried:
                self._descent.begin()
            else:  # the last descent took the whole search: it is the turn of the other
                self._descent.stop()
        self._changes_tried = False
        self.n_looked_at = 0

    def search(self, n_steps: int) -> None:
        """Continue, cell by cell, until about this many cell steps have been predicted."""
        done, descent = 0, self._descent
        while done < n_steps and not self.finished:
            if descent is None or descent.finished:
                done += self._search_cell(n_steps - done)
                continue
            done = descent.search(done, n_steps)
            if not descent.finished:
                break
        self.n_looked_at += done

    def stop(self) -> None:
        """Finish with the plan as it is, until the next problem."""
        self._since_better = len(self.plan)
        if self._descent is not None:
            self._descent.stop()

    def _search_cell(self, n_steps: int) -> int:
        p, n = self._problem, self._next
        better, over, steps = False, True, 0
        self._changes_tried = True
        if p.usable[n] and p.cells["gain_N"][n] != 0.0:
            steps, better, over = kernel.improve(
                self._plain, n, self._search, self._n_levels, n_steps
            )
        self._better = self._better or better
        if over:
            self._since_better = 0 if self._better else self._since_better + 1
            if self._better:
                self._refine()
            self._turn()
        return steps

    def _refine(self) -> None:
        if self._descent is not None:
            self._descent.begin()

    def _turn(self) -> None:
        """Continue with the next cell."""
        self._next = (self._next + 1) % len(self.plan)
        self._at[0], self._better = 0, False
