"""Identifiability of the parameters, from the Fisher information of their logarithms.

A direction v of theta has the information v^T J^T J v / s^2 and the standard uncertainty 1 / sqrt
of it. A direction with a larger uncertainty than LIMIT (a 95 % interval of a factor 1.5 either way)
is weak. It is structural if a change by the factor SHOWN changes no reading by more than NOTHING of
the force's range, or if the information is within rounding errors. Then no run with these
switchings can identify it, however long or quiet. Both statements are local, at the given
parameters.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from hil.identification import parameters
from hil.identification.grey_box import GreyBox, with_zeros
from hil.identification.noise import Noise
from hil.mechanics.arrays import Array

LIMIT = float(np.log(1.5) / 1.96)
SHOWN = 1.1  # a direction is shown as changes by this factor
NOTHING = 1e-7  # of the force's range
ROUNDING = 1e-12  # of the largest information: rounding error of the difference quotients
SHARE_MIN = 0.02  # of the largest entry; a direction omits parameters with smaller entries


@dataclass(frozen=True)
class Weak:
    """A direction of the parameters that the data determine poorly.

    Attributes
    ----------
    factors : dict of str to float, factors by which the parameters change together
    change_N : RMS change of the readings, to first order; 0 if structural
    noise_N : RMS of the channel's noise
    structural : no reading changes
    """

    factors: dict[str, float]
    change_N: float
    noise_N: float
    structural: bool

    def sentence(self, held: Collection[str]) -> str:
        """The finding as a sentence."""
        names = ", ".join(f"{short(key)} x {factor:.4g}" for key, factor in self.factors.items())
        alone = len(self.factors) == 1
        kept = [short(key) for key in self.factors if key in held]
        hold = f"{kept[-1]} is held" if kept else "hold it" if alone else "hold one with --fix"
        if self.structural and alone:
            return f"{names} changes no reading: not identifiable from this channel; {hold}"
        if self.structural:
            return f"{names}, together, change no reading: not identifiable separately; {hold}"
        together = "changes" if alone else ", together, change"
        return (
            f"{names}{' ' if alone else ''}{together} the force by {1e3 * self.change_N:.2g} mN "
            f"RMS, the noise is {1e3 * self.noise_N:.2g} mN: barely identifiable from these "
            f"runs; {hold}"
        )


def short(key: str) -> str:
    """The last part of a key with the number of its cell or mass; of a wire, with its branch."""
    if ".activation." in key:
        return key.rpartition(".activation.")[2]
    parts = key.split(".")
    number = next((p for p in reversed(parts) if p.isdigit()), "")
    name = next(p for p in reversed(parts) if not p.isdigit())
    return f"{name}.{number}" if number else name


def information(box: GreyBox, noise: Noise, rms_N: float, theta: Array) -> Array:
    """(P, P) Fisher information of theta, with unknown zeros of the channel."""
    parts = with_zeros(box.sensitivities(theta))
    J = np.concatenate([noise.whitened(part) for part in parts]) / rms_N
    n = len(box.free)
    on_zeros = np.linalg.lstsq(J[:, n:], J[:, :n], rcond=None)[0]
    seen = J[:, :n] - J[:, n:] @ on_zeros
    return np.asarray(seen.T @ seen)


def chosen(keys: Sequence[str], fisher: Array) -> list[str]:
    """Parameters that are identifiable together, added one by one in this order."""
    taken: list[int] = []
    for i in range(len(keys)):
        some = [*taken, i]
        if _worst(fisher[np.ix_(some, some)]) <= LIMIT:
            taken = some
    return [keys[i] for i in taken]


def _worst(fisher: Array) -> float:
    """Largest standard uncertainty of a parameter."""
    scale = np.sqrt(np.diag(fisher))
    if not (scale > 0.0).all():
        return float("inf")
    R = fisher / np.outer(scale, scale)
    if np.linalg.eigvalsh(R)[0] < 1e-12:
        return float("inf")
    return float(np.sqrt(np.diag(np.linalg.inv(R)) / scale**2).max())


def weak_directions(
    box: GreyBox, fisher: Array, theta: Array, noise_N: float, rms_of_fisher_N: float
) -> list[Weak]:
    """The directions of the box's parameters that the data determine poorly.

    The structural ones come first: a parameter without effect, the common scale of all stiffnesses,
    dampers and masses if only forces are measured (displacements scale inversely, tensions stay the
    same), and that of a wire's power and heats. The last parameter of such a group counts as held.
    The weak directions of the others follow.
    """
    n_readings = sum(len(run.rows) for run in box.runs)
    span_N = float(max(np.ptp(run.measured) for run in box.runs))
    centre = box.readings(theta)
    most_curvature = float(np.diag(fisher).max())

    def weak(v: Array) -> Weak:
        shown = np.where(np.abs(v) < SHARE_MIN * np.abs(v).max(), 0.0, v)
        factors = {key: float(np.exp(x)) for key, x in zip(box.free, shown, strict=True) if x}
        share = box.reach(theta, v)
        moved = box.readings(theta + share * v)
        most_N = max(float(np.abs(a - b).max()) for a, b in zip(moved, centre, strict=True))
        curvature = max(0.0, float(v @ fisher @ v))
        structural = (
            most_N < share * NOTHING * span_N
            or curvature < ROUNDING * most_curvature * float(v @ v)
        )
        rms_N = 0.0 if structural else rms_of_fisher_N * np.sqrt(curvature / n_readings)
        return Weak(factors, float(rms_N), noise_N, structural)

    factor = np.log(SHOWN)
    weaknesses: list[Weak] = []
    left = list(range(len(box.free)))
    sizes = np.sqrt(np.diag(fisher))
    for i in range(len(box.free)):
        if sizes[i] * LIMIT < 1.0:
            alone = weak(factor * np.eye(len(box.free))[i])
            if alone.structural:
                weaknesses.append(alone)
                left.remove(i)
    stiff = [any(p in key for p in (".k_", ".b_", "mass_kg")) for key in box.free]
    for powers in (stiff, [parameters.power_of_scale(key) for key in box.free]):
        together = np.zeros(len(box.free))
        together[left] = factor * np.array(powers, dtype=float)[left]
        if np.count_nonzero(together) > 1:
            group = weak(together)
            if group.structural:
                weaknesses.append(group)
                left.remove(int(np.flatnonzero(together)[-1]))
    left = [i for i in left if not parameters.needed(box.free[i])]
    variance, directions = np.linalg.eigh(fisher[np.ix_(left, left)])
    for along, direction in zip(variance, directions.T, strict=True):
        if along * LIMIT**2 > 1.0:
            break
        v = np.zeros(len(box.free))
        v[left] = direction / direction[np.argmax(np.abs(direction))]
        weaknesses.append(weak(factor * v))
    return weaknesses
