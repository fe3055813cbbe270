"""Linear massless cells, described by coefficients.

A linear cell carries the tension T (T > 0 pulls its ends together) and may have internal
states d_q::

    T     = Ke e + Kv e' + sum_q Kd_q d_q + Kf F
    d_q'  = Ze_q e + Zv_q e' + sum_r I_qr d_r + Kp_q F

e = x_R - x_L is the stretch in m. F is the activation force in N; F > 0 contracts the cell.

Source: MacNair & Ueda, eqs (2)-(4) and (8), Fig. 5.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Cell:
    """Coefficients of one cell; Q internal states.

    Attributes
    ----------
    Ke, Kv, Kf : N/m, N s/m, N/N
    Kd, Ze, Zv, Kp : (Q,) arrays, per internal state; N/m, 1/s, 1 and m/(N s) where d is a length
    I : (Q, Q) array, coupling between the internal states, 1/s
    """

    Ke: float
    Kv: float
    Kf: float
    Kd: NDArray[np.float64]
    Ze: NDArray[np.float64]
    Zv: NDArray[np.float64]
    I: NDArray[np.float64]  # noqa: E741  the paper's letter (iota)
    Kp: NDArray[np.float64]

    @property
    def n_internal(self) -> int:
        return len(self.Kd)

    @property
    def static(self) -> tuple[float, float]:
        """K in N/m and phi in N/N of the static law T = K e + phi F (no internal state moves)."""
        if not self.n_internal:
            return self.Ke, self.Kf
        d_e, d_F = np.linalg.solve(self.I, np.column_stack((self.Ze, self.Kp))).T
        return float(self.Ke - self.Kd @ d_e), float(self.Kf - self.Kd @ d_F)


def hill(
    *, k_pe_N_per_m: float, k_se_N_per_m: float, k_ae_N_per_m: float, b_N_s_per_m: float
) -> Cell:
    """Hill-type cell: damper across the series spring (eqs 2-4; the silicone array)."""
    _check_springs_and_dampers(
        k_pe_N_per_m=k_pe_N_per_m,
        k_se_N_per_m=k_se_N_per_m,
        k_ae_N_per_m=k_ae_N_per_m,
        b_N_s_per_m=b_N_s_per_m,
    )
    k_pe, k_se, k_ae, b = k_pe_N_per_m, k_se_N_per_m, k_ae_N_per_m, b_N_s_per_m
    return custom(
        Ke=k_pe, Kv=0.0, Kf=1.0, Kd=[k_ae], Ze=[k_se / b], Zv=[1.0],
        I=[[-(k_se + k_ae) / b]], Kp=[-1.0 / b],
    )  # fmt: skip


def miga(
    *, k_pe_N_per_m: float, k_se_N_per_m: float, k_ae_N_per_m: float, b_N_s_per_m: float
) -> Cell:
    """Miga NanoMuscle cell: damper across the actuator (Fig. 5)."""
    _check_springs_and_dampers(
        k_pe_N_per_m=k_pe_N_per_m,
        k_se_N_per_m=k_se_N_per_m,
        k_ae_N_per_m=k_ae_N_per_m,
        b_N_s_per_m=b_N_s_per_m,
    )
    k_pe, k_se, k_ae, b = k_pe_N_per_m, k_se_N_per_m, k_ae_N_per_m, b_N_s_per_m
    return custom(
        Ke=k_pe + k_se, Kv=0.0, Kf=0.0, Kd=[-k_se], Ze=[k_se / b], Zv=[0.0],
        I=[[-(k_se + k_ae) / b]], Kp=[-1.0 / b],
    )  # fmt: skip


def two_damper(
    *,
    k_pe_N_per_m: float,
    k_se_N_per_m: float,
    k_ae_N_per_m: float,
    b_se_N_s_per_m: float,
    b_ae_N_s_per_m: float,
) -> Cell:
    """Cell with a damper across the series spring and one across the actuator."""
    _check_springs_and_dampers(
        k_pe_N_per_m=k_pe_N_per_m,
        k_se_N_per_m=k_se_N_per_m,
        k_ae_N_per_m=k_ae_N_per_m,
        b_se_N_s_per_m=b_se_N_s_per_m,
        b_ae_N_s_per_m=b_ae_N_s_per_m,
    )
    k_pe, k_se, k_ae = k_pe_N_per_m, k_se_N_per_m, k_ae_N_per_m
    b_se, b_ae, s = b_se_N_s_per_m, b_ae_N_s_per_m, b_se_N_s_per_m + b_ae_N_s_per_m
    return custom(
        Ke=k_pe + k_se * b_ae / s,
        Kv=b_se * b_ae / s,
        Kf=1.0 - b_ae / s,
        Kd=[k_ae - b_ae * (k_se + k_ae) / s],
        Ze=[k_se / s],
        Zv=[b_se / s],
        I=[[-(k_se + k_ae) / s]],
        Kp=[-1.0 / s],
    )


def custom(  # noqa: PLR0913 - users write its keywords
    *,
    Ke: float = 0.0,
    Kv: float = 0.0,
    Kf: float = 0.0,
    Kd: ArrayLike = (),
    Ze: ArrayLike = (),
    Zv: ArrayLike = (),
    I: ArrayLike = (),  # noqa: E741  the paper's letter (iota)
    Kp: ArrayLike = (),
) -> Cell:
    """Return any linear cell with Q >= 0 internal states, given as arrays.

    Raises
    ------
    ValueError
        The shapes do not match, a coefficient is not finite, or I is singular.
    """
    vectors = {"Kd": Kd, "Ze": Ze, "Zv": Zv, "Kp": Kp}
    arrays = {name: np.array(value, dtype=float) for name, value in vectors.items()}
    n_internal = arrays["Kd"].size
    for name, array in arrays.items():
        if array.shape != (n_internal,):
            raise ValueError(
                f"{name} has shape {array.shape}, but Kd has {n_internal} internal states: "
                f"give {name} {n_internal} numbers"
            )
    iota = np.array(I, dtype=float)
    if n_internal == 0 and iota.size == 0:
        iota = np.zeros((0, 0))
    if iota.shape != (n_internal, n_internal):
        raise ValueError(
            f"I has shape {iota.shape}, but Kd has {n_internal} internal states: "
            f"give a {n_internal} x {n_internal} matrix"
        )
    cell = Cell(float(Ke), float(Kv), float(Kf), I=iota, **arrays)
    for name in ("Ke", "Kv", "Kf", *arrays, "I"):
        if not np.all(np.isfinite(getattr(cell, name))):
            raise ValueError(f"{name} is not finite")
    if n_internal and np.linalg.matrix_rank(iota) < n_internal:
        raise ValueError("I is singular: the cell has no static equilibrium")
    return cell


def _check_springs_and_dampers(**values: float) -> None:
    """Raise ValueError unless k_pe >= 0 and every other spring and damper is above zero."""
    for name, value in values.items():
        if name == "k_pe_N_per_m":
            if not (np.isfinite(value) and value >= 0.0):
                raise ValueError(f"{name} = {value:g} is negative: a passive spring has k_pe >= 0")
        elif not (np.isfinite(value) and value > 0.0):
            raise ValueError(f"{name} = {value:g} must be above zero")
