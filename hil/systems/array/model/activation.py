"""Activation: from cells switched on and off to their activation forces F.

`step`: F changes at once.

`sigmoid` (SMA heating and cooling): each cell has a state theta with theta' = +rate while on and
-rate_f while off, clipped to -a = -rate x delay and b = rate_f x delay_f:

    F = force_on (s(theta) - s(-a)) / (s(b) - s(-a)),   s(theta) = 1 / (1 + exp(-theta))

F is 0 while off and force_on when fully on. rate_f and delay_f default to the values of the
rise; F is then half of force_on at `delay`. A cell at rest has theta = -a. F is continuous at every
switch. `law = "unscaled"` gives F = force_on s(theta): s(-a) remains while off, and 1 - s(b) is
missing when on, 0.25 % each for the paper's wire. Older recordings were made with this law.

`thermal` (a simulated wire): F = force_on xi, with the austenite fraction xi of
`hil.mechanics.sma.wire`. This is eq. (1), F = k_ae s, with a contraction s proportional to xi.
`sma` is a wire under stress, stepped with the array that it pulls
(`hil.systems.array.model.wire_load`).

Source: MacNair & Ueda, activation profile of Fig. 10: F / (1 + exp(-(5 t - 6))), with the sign
corrected (the printed expression for switching on falls). The rescaling of the ends is ours.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hil.compiled import njit
from hil.mechanics.sma.wire import SmaWire, SmaWires
from hil.mechanics.system import Drive
from hil.systems.array.model.wire_load import Loaded

Law = Literal["rescaled", "unscaled"]
STEP, SIGMOID, THERMAL, UNSCALED, SMA = range(5)
KINDS = {"step": STEP, "sigmoid": SIGMOID, "thermal": THERMAL, "sma": SMA}
WIRES = ("thermal", "sma")
FLEXINOL = SmaWire()


@dataclass(frozen=True)
class CellActivation:
    """Activation profile of one cell.

    Attributes
    ----------
    force_on_N : F of a cell that is fully on
    rate_per_s, delay_s : float
        Sigmoid: rate and delay of the rise; 5/s and 1.2 s for the paper's SMA wire.
    fall_rate_per_s, fall_delay_s : sigmoid: rate and delay of the fall of a cell that was fully on
    law : {"rescaled", "unscaled"}, sigmoid: whether F reaches 0 and force_on exactly
    wire : wire of a thermal cell; of a wire under stress, its heat, with its branches at rest
    loaded : law and load of a wire under stress
    """

    force_on_N: float
    kind: Literal["step", "sigmoid", "thermal", "sma"] = "step"
    rate_per_s: float = 5.0
    delay_s: float = 1.2
    wire: SmaWire = FLEXINOL
    fall_rate_per_s: float | None = None
    fall_delay_s: float | None = None
    law: Law = "rescaled"
    loaded: Loaded | None = None

    @property
    def has_wire(self) -> bool:
        """Whether the cell is a wire, with or without stress."""
        return self.kind in WIRES

    @property
    def code(self) -> int:
        """Integer code of kind and law, for the compiled `switched` and `sigmoid_N`."""
        unscaled = self.kind == "sigmoid" and self.law == "unscaled"
        return UNSCALED if unscaled else KINDS[self.kind]

    @property
    def rates_per_s(self) -> tuple[float, float]:
        """Rates of rise and fall."""
        return self.rate_per_s, self.fall_rate_per_s or self.rate_per_s

    @property
    def stops(self) -> tuple[float, float]:
        """Limits a and b: theta is clipped to [-a, b]."""
        fall_s = self.delay_s if self.fall_delay_s is None else self.fall_delay_s
        return self.rate_per_s * self.delay_s, self.rates_per_s[1] * fall_s


class Activation:
    """Activation of all cells, stepped with a fixed period.

    Attributes
    ----------
    has_wires, has_switched : whether a cell is a wire; whether one is none
    theta : (N,) array, state of the sigmoid cells
    wires : state and electrical quantities of the cells that are wires
    arrays : arguments of `switched`
    F_before_N, F_N : (N,) arrays
        Activation forces at the start (after switching) and at the end of the last period.
    """

    def __init__(self, cells: Sequence[CellActivation], period_s: float) -> None:
        self._force_on = np.array([c.force_on_N for c in cells])
        self._kind = np.array([c.code for c in cells], dtype=np.uint8)
        self._period_s = period_s
        self.has_wires = any(c.has_wire for c in cells)
        self.has_switched = not all(c.has_wire for c in cells)
        wires = [c.wire if c.has_wire else None for c in cells]
        loaded = frozenset(n for n, c in enumerate(cells) if c.loaded is not None)
        self.wires = SmaWires(wires, self._force_on, loaded)
        self._stop = two_rows([c.stops for c in cells])
        self._step = two_rows([c.rates_per_s for c in cells]) * period_s
        self.theta = np.empty(len(cells))
        self.F_before_N = np.empty(len(cells))
        self.F_N = np.empty(len(cells))
        laws = (self._force_on, self._kind, self._stop, self._step)
        state = (self.theta, self.F_before_N, self.F_N)
        self.arrays: tuple[NDArray[np.generic], ...] = (*laws, *state)
        self.reset()

    def reset(self) -> None:
        """Set all cells cold."""
        self.theta[:] = -self._stop[0]
        at_rest(self._force_on, self._kind, self._stop, self.theta, self.F_N)
        self.F_before_N[:] = self.F_N
        self.wires.reset(self.F_before_N, self.F_N)

    def step(self, drive: Drive) -> None:
        """Advance one period with `drive` held constant; wires under stress are left alone.

        Parameters
        ----------
        drive : (N,) array
            Duties 0 to 1. Heats a thermal cell proportionally; switches other cells on from 0.5.
        """
        if self.has_wires:
            self.wires.step(drive, self._period_s, self.F_before_N, self.F_N)
        if self.has_switched:
            switched(drive, self.arrays)


def two_rows(pairs: Sequence[tuple[float, float]]) -> NDArray[np.float64]:
    """Return N pairs as a (2, N) array; N may be 0."""
    return np.ascontiguousarray(np.array(pairs, dtype=float).reshape(-1, 2).T)


@njit(cache=True)
def sigmoid_N(force_on, kind, below, above, theta):  # type: ignore[no-untyped-def]
    """Return F at theta. s(theta) = (1 + tanh(theta / 2)) / 2 makes F exact at both ends."""
    if kind == UNSCALED:
        return force_on / (1.0 + np.exp(-theta))
    low, high = np.tanh(0.5 * below), np.tanh(0.5 * above)
    return force_on * ((np.tanh(0.5 * theta) + low) / (high + low))


@njit(cache=True)
def at_rest(force_on, kind, stop, theta, F):  # type: ignore[no-untyped-def]
    """Write F of the cold state of every cell."""
    for n in range(len(F)):
        remains = kind[n] == UNSCALED
        F[n] = sigmoid_N(force_on[n], kind[n], stop[0, n], stop[1, n], theta[n]) if remains else 0.0


@njit(cache=True)
def switched(drive, arrays):  # type: ignore[no-untyped-def]
    """Advance all cells but thermal ones by a period, given `ArrayActivation.arrays`.

    Rows: `stop` a, b; `step` on, off.
    """
    force_on, kind, stop, step, theta, F_before, F = arrays
    for n in range(len(drive)):
        on = 0.5 <= drive[n] <= 1.0
        if kind[n] == SIGMOID or kind[n] == UNSCALED:
            F_before[n] = F[n]
            change = step[0, n] if on else -step[1, n]
            theta[n] = min(stop[1, n], max(-stop[0, n], theta[n] + change))
            F[n] = sigmoid_N(force_on[n], kind[n], stop[0, n], stop[1, n], theta[n])
        elif kind[n] == STEP:
            F[n] = force_on[n] if on else 0.0
            F_before[n] = F[n]
