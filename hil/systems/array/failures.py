"""Robustness: the static force that remains when cells fail.

An electrically dead cell keeps its stiffness but adds no force: only its own static gain is lost.
A mechanically broken cell carries no load, so the load paths and all static gains change.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from math import comb
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hil.errors import ModelError
from hil.systems.array.batch_statics import end_gains
from hil.systems.array.cell_array import CellArray
from hil.systems.array.force_levels import static_gains_N

Failure = Literal["electrical", "mechanical"]

SUBSETS_MAX = 100_000
"""Up to this number of sets of failed cells, all are evaluated; beyond it, a random sample."""
MASSES_MAX = 400
"""Largest number of masses for broken cells, which need a dense solve per set."""
NO_FORCE = 1e-9
"""A force counts as zero below this fraction of the sum of all |static gains| before failures."""
_BATCH_BYTES = 2**25


@dataclass(frozen=True)
class AfterFailures:
    """Static force with all cells on, over all sets of n_failed cells, equally likely.

    Attributes
    ----------
    mean_N, min_N, max_N : for a sample, `min_N` and `max_N` are those of the sample
    p_no_force : probability that no force remains
    n_sets : number of sets evaluated; 0 if a closed form gave everything
    exact : False if the sets were sampled
    mean_standard_error_N, p_standard_error : float
        0 if exact. The standard error of p uses the estimate (x + 1)/(n + 2) for x of n sets, so
        it is above 0 even if no set, or every set, left no force.
    """

    n_failed: int
    mean_N: float
    min_N: float
    max_N: float
    p_no_force: float
    n_sets: int
    exact: bool
    mean_standard_error_N: float = 0.0
    p_standard_error: float = 0.0


def after_failures(
    model: CellArray,
    force_on_N: ArrayLike,
    output: str,
    n_failed: int,
    kind: Failure,
    *,
    n_samples: int = 20_000,
    seed: int = 0,
) -> AfterFailures:
    """Return the force that remains at `output`, all cells on, after n_failed more cells failed.

    Any working cells can fail, each set of them with the same probability. All C(n, k) sets are
    evaluated up to SUBSETS_MAX; beyond that, n_samples sets are drawn. For electrical failures,
    mean, min and max always are closed forms, and so is the probability unless static gains differ
    in sign.

    Parameters
    ----------
    model : its existing failures remain
    force_on_N : (K,) array, F of every cell while on
    output : `array.left_N` or `array.right_N`
    n_failed : from 0 to the number of working cells
    kind : 'electrical' or 'mechanical'
    n_samples, seed : size and seed of the sample

    Raises
    ------
    ModelError
        More failures than working cells, or broken cells in a model of more than MASSES_MAX
        masses.
    """
    pull_N = model.coefficients.phi * np.asarray(force_on_N, dtype=float)
    K_N_per_m = model.coefficients.K_static
    able = pull_N != 0.0 if kind == "electrical" else (K_N_per_m != 0.0) | (pull_N != 0.0)
    cells = np.flatnonzero(able)
    if not 0 <= n_failed <= len(cells):
        raise ModelError(f"{n_failed} cells cannot fail: {len(cells)} of this model work")
    intact = static_gains_N(model, force_on_N, output)
    none_N = NO_FORCE * float(np.abs(intact).sum())
    if kind == "electrical":
        return _after_electrical(intact[cells], n_failed, none_N, n_samples, seed)
    n_masses = model.nodes.n
    if n_masses > MASSES_MAX:
        raise ModelError(
            f"broken cells need a dense solve per set: {n_masses} masses exceed {MASSES_MAX}"
        )
    fixed, at_end = ~model.nodes.free, model.cells_at(output)
    n_batch = max(1, _BATCH_BYTES // (8 * n_masses * (n_masses + model.n_cells)))
    forces = []
    for chosen in _sets(len(cells), n_failed, n_batch, n_samples, seed):
        works = np.ones((len(chosen), model.n_cells), dtype=bool)
        np.put_along_axis(works, cells[chosen], False, axis=1)
        gain = end_gains(model.nodes.left, model.nodes.right, K_N_per_m, works, fixed, at_end)
        forces.append(gain @ pull_N)
    return _described(np.concatenate(forces), n_failed, none_N, comb(len(cells), n_failed))


def _after_electrical(
    gains_N: NDArray[np.float64], n_failed: int, none_N: float, n_samples: int, seed: int
) -> AfterFailures:
    """Return the figures of the sums that remain without n_failed of the static gains."""
    n_cells = len(gains_N)
    n_left = n_cells - n_failed
    rising = np.sort(gains_N)
    mean_N = n_left / n_cells * float(gains_N.sum()) if n_cells else 0.0
    min_N, max_N = float(rising[:n_left].sum()), float(rising[n_failed:].sum())
    if n_cells == 0 or rising[0] >= -none_N or rising[-1] <= none_N:
        # Gains of one sign cannot cancel: the force is zero only if all non-zero gains failed.
        n_adding = int((np.abs(gains_N) > none_N).sum())
        n_none = comb(n_cells - n_adding, n_failed - n_adding) if n_failed >= n_adding else 0
        p_none = n_none / comb(n_cells, n_failed)
        return AfterFailures(n_failed, mean_N, min_N, max_N, p_none, 0, True)
    n_batch = max(1, _BATCH_BYTES // (8 * n_cells))
    total_N = float(gains_N.sum())
    forces = [
        total_N - gains_N[chosen].sum(axis=1)
        for chosen in _sets(n_cells, n_failed, n_batch, n_samples, seed)
    ]
    seen = _described(np.concatenate(forces), n_failed, none_N, comb(n_cells, n_failed))
    return AfterFailures(
        n_failed, mean_N, min_N, max_N, seen.p_no_force, seen.n_sets, seen.exact,
        p_standard_error=seen.p_standard_error,
    )  # fmt: skip


def _sets(
    n_cells: int, n_failed: int, n_batch: int, n_samples: int, seed: int
) -> Iterator[NDArray[np.int64]]:
    """Yield all sets of n_failed of n_cells, or n_samples random sets, in batches (S, n_failed)."""
    if comb(n_cells, n_failed) <= SUBSETS_MAX:
        sets = itertools.combinations(range(n_cells), n_failed)
        while batch := list(itertools.islice(sets, n_batch)):
            yield np.array(batch, dtype=np.int64).reshape(len(batch), n_failed)
        return
    draw = np.random.default_rng(seed)
    for first in range(0, n_samples, n_batch):
        size = min(n_batch, n_samples - first)
        keys = draw.random((size, n_cells))
        yield np.argpartition(keys, n_failed - 1, axis=1)[:, :n_failed]


def _described(
    forces_N: NDArray[np.float64], n_failed: int, none_N: float, n_possible: int
) -> AfterFailures:
    n = len(forces_N)
    none = np.abs(forces_N) <= none_N
    forces_N = np.where(none, 0.0, forces_N)
    n_none = int(none.sum())
    exact = n_possible <= SUBSETS_MAX
    p_near = (n_none + 1) / (n + 2)
    return AfterFailures(
        n_failed=n_failed,
        mean_N=float(forces_N.mean()),
        min_N=float(forces_N.min()),
        max_N=float(forces_N.max()),
        p_no_force=n_none / n,
        n_sets=n,
        exact=exact,
        mean_standard_error_N=0.0 if exact else float(forces_N.std(ddof=1) / np.sqrt(n)),
        p_standard_error=0.0 if exact else float(np.sqrt(p_near * (1.0 - p_near) / n)),
    )
