"""Contraction and cooling times of Flexinol of many diameters, against the maker's table.

A wire contracts under its pull force, 172 MPa, at a constant current from air of 25 degC, until
0.5 % of strain is missing of its 4 %. It then cools under its bias force, 69 MPa, until 0.5 % is
missing again. The maker leaves these out of the cooling time; what he means by a contraction is not
printed, and taken to be the same. Convection follows from the diameter
(`hil.mechanics.sma.convection`).

Source
------
Times and currents: the maker's wire table of 90 degC wire (TCF1140), as sellers reproduce it; not
seen in print here but for 0.10 mm.
"""

from dataclasses import replace

import numpy as np

from hil.experiment.wire_catalogue import shipped
from hil.mechanics.sma.convection import morgan_W_per_m2_K
from hil.mechanics.sma.stress import Branch, StressLaw
from hil.mechanics.sma.stressed import AS_TABULATED, advance, knots_C
from hil.mechanics.sma.wire import SmaWire, wire_laws

FLEXINOL = StressLaw(
    Branch(78.3, 8.3e6, 1.06, 8.3, -4.0, 0.51, 1.8e-9),
    Branch(56.3, 7.5e6, 1.27, 8.3, -3.3, 0.53, 0.6e-9),
    stroke_min=0.040, stroke_max=0.041, stroke_rate_per_Pa=1.2e-8,
)  # fmt: skip
"""Fitted to loops of 50 and 200 MPa, docs/wires.md."""
MAKERS = {
    round(1e3 * w.diameter_m, 3): (w.martensite_Ohm_per_m, w.current_A, w.cools_s or 0.0)
    for name, w in shipped().items() if name.endswith("_HT")
}  # fmt: skip
"""By diameter in mm: Ohm/m, current in A for a contraction in CONTRACTS_S, s to cool."""
CONTRACTS_S = 1.0
PRINTED_HEAT_J_per_kg_K = 837.0  # TCF1140: 0.2 cal/g K
PULL_Pa, BIAS_Pa = 172e6, 69e6
LEFT_OUT = 0.005 / 0.04
CONTRACTED = 1.0 - LEFT_OUT  # assumed
AIR_C, TYPICAL_C = 25.0, 100.0
STEPS, LONGEST_S = 400, 60.0


def contracts_and_cools_s(law: StressLaw, wire: SmaWire, current_A: float) -> tuple[float, float]:
    """Times of a contraction at a constant current and of the cooling that follows, s.

    The first is infinite where the current never contracts the wire.
    """
    [one] = wire_laws([replace(wire, ambient_C=AIR_C)])
    one.E2 = 1.0  # a duty is then the square of the field, V^2/m^2
    h = wire.capacity_J_per_m_K / wire.loss_W_per_m_K / STEPS
    pulled, eased = (
        np.concatenate([knots_C(law, side, s) for side in (law.heating, law.cooling)])
        for s in (PULL_Pa, BIAS_Pa)
    )
    T_C, xi, heated_s, cooled_s = AIR_C, 0.0, 0.0, 0.0
    while xi < CONTRACTED:
        r = wire.martensite_Ohm_per_m + xi * (wire.austenite_Ohm_per_m - wire.martensite_Ohm_per_m)
        T_C, xi = advance(one, pulled, AS_TABULATED, (r * current_A) ** 2, T_C, xi, h)
        heated_s += h
        if heated_s > LONGEST_S:
            return np.inf, np.inf
    while xi > LEFT_OUT:
        T_C, xi = advance(one, eased, AS_TABULATED, 0.0, T_C, xi, h)
        cooled_s += h
    return heated_s, cooled_s


def times(law: StressLaw = FLEXINOL) -> list[dict[str, float]]:
    """The table: for every diameter what is printed, and what follows, also with printed heats."""
    rows = []
    for diameter_mm, (Ohm_per_m, current_A, cools_s) in MAKERS.items():
        h = morgan_W_per_m2_K(1e-3 * diameter_mm, TYPICAL_C, AIR_C)
        wire = SmaWire(
            diameter_m=1e-3 * diameter_mm, martensite_Ohm_per_m=Ohm_per_m,
            austenite_Ohm_per_m=113.0 / 126.0 * Ohm_per_m, convection_W_per_m2_K=h,
        )  # fmt: skip
        printed = replace(wire, specific_heat_J_per_kg_K=PRINTED_HEAT_J_per_kg_K)
        heats = law.latent_heat_J_per_kg(wire.density_kg_per_m3)
        wire = replace(wire, latent_heat_J_per_kg=0.5 * sum(heats))
        times_s = contracts_and_cools_s(law, wire, current_A)
        as_printed = contracts_and_cools_s(law, printed, current_A)
        rows.append({
            "diameter_mm": diameter_mm, "current_A": current_A, "convection_W_per_m2_K": h,
            "contracts_s": times_s[0], "cools_s": times_s[1],
            "contracts_printed_heat_s": as_printed[0], "cools_printed_heat_s": as_printed[1],
            "makers_cools_s": cools_s,
        })  # fmt: skip
    return rows
