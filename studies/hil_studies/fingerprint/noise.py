"""Signal-dependent noise: how the fluctuation of the force grows as cells are recruited.

Cells, or groups of cells, are switched on one after the other and stay on, every HOLD_S. The
fluctuation at a level is the standard deviation of the force over the last WINDOW_S of its hold,
after a polynomial of fifth degree, the trend, is removed: underdamped modes ring on. The force is
exact: the array is linear, so that it is a sum of step responses.

The paper's law: fluctuation grows with force, as in muscle, and topology and cell forces give its
profile, "linear, exponential, or any number of other monotonically increasing profiles". The
profile's exponent p is the slope of ln(fluctuation) over ln(force); p = 1 is linear.

Source: MacNair & Ueda, "Simulation"; in muscle, p = 1: Jones, Hamilton & Wolpert 2002, J.
Neurophysiol. 88(3).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from matplotlib.figure import Figure

from hil.mechanics.arrays import Array
from hil.pages.study import as_table, check
from hil.pages.style import MODEL, REFERENCE, styled_figure
from hil.systems.array.model.analysis import poles
from hil.systems.array.model.cell_array import CellArray
from hil.systems.array.model.force_levels import static_gains_N
from hil.systems.array.topology.figures import MIGA
from hil.systems.array.topology.topologies import stands_for_its_mirror_image, topologies

HOLD_S, WINDOW_S, TREND, PERIOD_S = 2.0, 1.0, 5, 0.001
RIGHT = "muscle.right_N"
N_CELLS, MASS_KG, FORCE_ON_N = 6, 0.01583, 4.0
REPORTED_MN = ("1.3", "1.1", "2.8", "5.8", "10.0")
"""Of `configs/array14/groups.toml`, found independently from a recording's force of the model."""


@dataclass(frozen=True)
class Profile:
    """Mean force and fluctuation at every level of recruitment; `rings`: a mode is underdamped."""

    fingerprint: str
    force_N: Array
    fluctuation_N: Array
    rings: bool

    @property
    def exponent(self) -> float:
        """Slope of ln(fluctuation) over ln(force)."""
        return float(np.polyfit(np.log(self.force_N), np.log(self.fluctuation_N), 1)[0])

    @property
    def grows(self) -> bool:
        """Whether the fluctuation grows at every level."""
        return bool(np.all(np.diff(self.fluctuation_N) > 0.0))


def step_responses_N(model: CellArray, duration_s: float) -> Array:
    """Return the right force to a unit step of each cell's F, (n, N), sampled every PERIOD_S."""
    n_states, n_cells = len(model.states), model.n_cells
    at = model.outputs.index(RIGHT)
    held = np.zeros((n_states + n_cells, n_states + n_cells))
    held[:n_states, :n_states], held[:n_states, n_states:] = model.A, model.B[:, :n_cells]
    both = scipy.linalg.expm(held * PERIOD_S)
    x: Array = np.zeros((n_states + n_cells, n_cells))
    x[n_states:] = np.eye(n_cells)
    read = np.concatenate([model.C[at], model.D[at, :n_cells]])
    rows = np.empty((round(duration_s / PERIOD_S), n_cells))
    for k in range(len(rows)):
        rows[k] = read @ x
        x = both @ x
    return rows


def recruited(model: CellArray, groups: Sequence[Sequence[int]], force_on_N: float) -> Profile:
    """Return the profile of an array whose groups of cells (from 0) are switched on in turn."""
    hold = round(HOLD_S / PERIOD_S)
    unit = step_responses_N(model, HOLD_S * len(groups))
    force: Array = np.zeros(len(unit))
    for i, cells in enumerate(groups):
        force[i * hold :] += force_on_N * unit[: len(unit) - i * hold, list(cells)].sum(axis=1)
    last = force.reshape(len(groups), hold)[:, -round(WINDOW_S / PERIOD_S) :]
    rings = any(pole.damping < 1.0 for pole in poles(model))
    text = model.arrays["muscle"].topology.text
    return Profile(text, last.mean(axis=1), np.array([fluctuation(row) for row in last]), rings)


def fluctuation(force_N: Array) -> float:
    """Return the standard deviation of a force, (n,), without its trend."""
    t = np.linspace(-1.0, 1.0, len(force_N))
    trend = np.polynomial.polynomial.polyfit(t, force_N, TREND)
    return float((force_N - np.polynomial.polynomial.polyval(t, trend)).std())


def over_topologies() -> list[Profile]:
    """Return the profile of every array of N_CELLS Miga cells that rings, mirror images once.

    The cells are recruited one by one, weakest first (the size principle).
    """
    rows = []
    for topology in topologies(N_CELLS):
        if not stands_for_its_mirror_image(topology):
            continue
        model = CellArray.from_fingerprint(topology.text, cell=MIGA, mass_kg=MASS_KG, name="muscle")
        gains = static_gains_N(model, np.ones(model.n_cells), RIGHT)
        order = np.argsort(np.round(gains, 12), kind="stable")
        rows.append(recruited(model, [[int(n)] for n in order], FORCE_ON_N))
    return [profile for profile in rows if profile.rings]


def checks(groups: Profile, profiles: Sequence[Profile]) -> list[dict[str, Any]]:
    """Compare the fourteen cells of Fig. 9 and all arrays of six with what the paper claims."""
    made = []
    levels_mN = 1e3 * groups.fluctuation_N
    for g, (value, text) in enumerate(zip(levels_mN, REPORTED_MN, strict=True), start=1):
        made.append(check(f"Fig. 9: fluctuation, groups 1 to {g}", float(value), text, "mN"))
    for g, ratio in enumerate(levels_mN[1:] / levels_mN[:-1], start=2):
        made.append(check(f"Fig. 9: fluctuation grows with group {g}, by", float(ratio), "> 1",
                          agrees=bool(ratio > 1.0)))  # fmt: skip
    p = groups.exponent
    exponents = [profile.exponent for profile in profiles]
    rising = float(np.mean([profile.exponent > 0.0 for profile in profiles]))
    always = float(np.mean([profile.grows for profile in profiles]))
    return [
        *made,
        check("Fig. 9: exponent p of fluctuation over force", p, "1", agrees=0.8 <= p <= 1.2),
        check("Six cells: share of arrays with p > 0", rising, "1", agrees=rising == 1.0),
        check("Six cells: share that grows at every level", always, "1", agrees=always == 1.0),
        check("Six cells: largest p, linear", max(exponents), "1", agrees=max(exponents) > 0.8),
    ]


def table(profiles: Sequence[Profile]) -> dict[str, Any]:
    """Return the exponents of all arrays, from flat to steep."""
    rings = sorted(profiles, key=lambda p: p.exponent)
    return as_table(
        f"Fluctuation over force, arrays of {N_CELLS} cells recruited weakest first",
        ["fingerprint", "exponent p", "least mN", "most mN", "grows at every level"],
        [[p.fingerprint, f"{p.exponent:.2f}", f"{1e3 * p.fluctuation_N.min():.2f}",
          f"{1e3 * p.fluctuation_N.max():.2f}", "yes" if p.grows else "no"] for p in rings],
    )  # fmt: skip


def draw(groups: Profile, profiles: Sequence[Profile]) -> Figure:
    """Draw fluctuation over force."""
    with styled_figure(7.0, 4.6) as figure:
        axis = figure.subplots()
        label: str | None = f"arrays of {N_CELLS} cells"
        for profile in profiles:
            axis.loglog(profile.force_N, 1e3 * profile.fluctuation_N, color="0.75", lw=0.8,
                        label=label, zorder=1)  # fmt: skip
            label = None
        axis.loglog(groups.force_N, 1e3 * groups.fluctuation_N, "o-", color=MODEL, lw=1.4, ms=4,
                    label="groups of Fig. 9")  # fmt: skip
        last_N, last_mN = groups.force_N[-1], 1e3 * groups.fluctuation_N[-1]
        axis.loglog(groups.force_N, last_mN * groups.force_N / last_N, "--", color=REFERENCE,
                    lw=0.9, label="in proportion to force")  # fmt: skip
        axis.set(xlabel="mean force [N]", ylabel="fluctuation, standard deviation [mN]")
        axis.legend(frameon=False)
    return figure
