"""Resistance of both phases of a wire, from a record in which it is cold at first and then hot."""

from dataclasses import fields, replace

import numpy as np

from hil.errors import ModelError
from hil.mechanics.arrays import Array
from hil.mechanics.sma.observer import ResistanceObserver, Uncertain
from hil_studies.resistance.wires import Case, Record

HOT_SHARE = 0.97  # of austenite that a hot wire has, by the model
HOTTEST_K = 2.0  # below the hottest reading
U_SHARE = 0.5  # assumed: of the martensite that the model leaves
U_RISE = 0.13  # assumed: of what a wire is warmer than the air, by heating and convection
U_ENDS_MIN = 0.001  # assumed: of what drifts between the two records
CERTAIN = Uncertain(*[0.0] * len(fields(Uncertain)))  # all members are the model's wire


def observed(observer: ResistanceObserver, record: Record) -> Array:
    """(n, 3): strain, its standard uncertainty and the temperature at every sample."""
    told = np.empty((len(record.t_s), 3))
    periods_s = np.diff(record.t_s, prepend=record.t_s[0])
    for k, (duty, period_s) in enumerate(zip(record.duty, periods_s, strict=True)):
        late_s = min(record.age_s[k], period_s) if np.isfinite(record.R_Ohm[k]) else 0.0
        state = observer.step(duty, period_s - late_s, record.R_Ohm[k], record.u_Ohm[k])
        if late_s:
            state = observer.step(duty, late_s)
        told[k] = state.strain, state.u_strain, state.T_C
    return told


def measured_ends(case: Case, record: Record) -> tuple[Case, Uncertain]:
    """The wire with the resistances of a record, and what stays uncertain.

    Cold are the readings before the first duty, hot those at the highest temperature of the model,
    which must have become austenite there but for a share s. Of both the mean R counts, and the
    model's temperature T and strain e:

        r_M = R / (1 + a_M (T - T_0)) / (1 + k e)
        r_A = (R / (1 + k e) - s r_M (1 + a_M (T - T_0))) / (1 - s) / (1 + a_A (T - T_0))

    Raises
    ------
    ModelError
        One of the two ends is missing.
    """
    wire, of = case.wire, case.wire.resistivity
    unmeasured = replace(record, R_Ohm=np.full(len(record.t_s), np.nan))
    strain, _, T_C = observed(ResistanceObserver(wire, case.stress, CERTAIN), unmeasured).T
    martensite, measured = strain / strain.max(), np.isfinite(record.R_Ohm)
    before = np.arange(len(record.duty)) < int(np.argmax(record.duty > 0.0))
    whole = martensite <= 1.0 - HOT_SHARE
    cold, hot = measured & before, measured & whole & (T_C >= T_C.max() - HOTTEST_K)
    for name, end, remedy in (
        ("cold", cold, "let it rest before the first duty"),
        ("hot", hot, "heat it for longer, or with a larger duty"),
    ):
        if end.sum() < 2:
            raise ModelError(f"no two readings at the {name} end of the stroke: {remedy}")
    R_cold, R_hot = (
        record.R_Ohm[end].mean() / wire.cell_m / (1.0 + of.per_strain * strain[end].mean())
        for end in (cold, hot)
    )
    cold_K, hot_K = (float(T_C[end].mean()) - of.at_C for end in (cold, hot))
    left = float(martensite[hot].mean())
    r_M = R_cold / (1.0 + of.martensite_per_K * cold_K)
    rest = left * r_M * (1.0 + of.martensite_per_K * hot_K)
    r_A = (R_hot - rest) / (1.0 - left) / (1.0 + of.austenite_per_K * hot_K)
    u_austenite = np.linalg.norm(
        [
            _relative(record.R_Ohm[hot]),
            of.austenite_per_K * U_RISE * (float(T_C[hot].mean()) - wire.ambient_C),
            U_SHARE * left * (r_M - r_A) / r_A,
            U_ENDS_MIN,
        ]
    )
    uncertain = replace(
        Uncertain(),
        martensite=float(np.hypot(_relative(record.R_Ohm[cold]), U_ENDS_MIN)),
        austenite=float(u_austenite),
    )
    measured_wire = replace(wire, martensite_Ohm_per_m=float(r_M), austenite_Ohm_per_m=float(r_A))
    return replace(case, wire=measured_wire), uncertain


def _relative(R_Ohm: Array) -> float:
    """Standard uncertainty of a mean over the mean."""
    return float(R_Ohm.std(ddof=1) / np.sqrt(len(R_Ohm)) / R_Ohm.mean())
