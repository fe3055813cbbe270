"""A wire under stress from its table."""

from dataclasses import replace
from functools import lru_cache

import numpy as np

from hil.experiment.kind import KindOfTable
from hil.mechanics.sma.stress import Branch, LineBranch, StressLaw
from hil.mechanics.sma.wire import SmaWire
from hil.systems.array.model.wire_load import Loaded, stress_Pa
from hil.systems.array.tables import BranchTable, SmaTable

MPa = 1e6
MODULUS_A_Pa = 70e9  # cancels: the cell's k_ae is austenite's stiffness
REST_SHARES = (0.05, 0.95)  # where a branch begins and ends for laws that take a line


def loaded_wire(
    table: SmaTable, wire: SmaWire, cell: KindOfTable, force_on_N: float
) -> tuple[SmaWire, Loaded]:
    """The wire with its branches at the stress of rest, and its law.

    Raises
    ------
    ValueError
        A cell without a wire's spring, no stroke at rest, or a stress beyond the strength.
    """
    k_ae = getattr(cell, "k_ae_N_per_m", None)
    if k_ae is None:
        raise ValueError(
            f"kind = 'sma' needs a cell with k_ae_N_per_m, and a {cell.kind} cell has none: give "
            "kind = 'thermal'"
        )
    most_MPa = stress_Pa(wire, table.pretension_N + force_on_N / wire.n_wires) / MPa
    if most_MPa > table.strength_MPa:
        raise ValueError(
            f"its wires would carry {most_MPa:.4g} MPa, beyond strength_MPa = "
            f"{table.strength_MPa:.4g}: lower pretension_N or force_on_N, or give thicker wires"
        )
    if table.stroke_max < table.stroke_min:
        raise ValueError("stroke_max must not be below stroke_min")
    if table.stroke_min == 0.0 and table.pretension_N == 0.0:
        raise ValueError(
            "stroke_min = 0 and pretension_N = 0: a wire that nothing stretches does not contract: "
            "give one of them"
        )
    law = law_of(table, wire)
    return at_rest(law, wire, stress_Pa(wire, table.pretension_N)), Loaded(
        law, table.pretension_N, float(k_ae), table.coupling == "implicit"
    )


def law_of(table: SmaTable, wire: SmaWire) -> StressLaw:
    """The law that a table describes."""
    heating = (wire.A_s_C, wire.A_f_C)
    cooling = (wire.M_f_C, wire.M_s_C)
    return StressLaw(
        heating=_branch(table.heating, heating, MPa * table.C_A_MPa_per_K),
        cooling=_branch(table.cooling, cooling, MPa * table.C_M_MPa_per_K),
        stroke_min=table.stroke_min,
        stroke_max=table.stroke_max,
        stroke_rate_per_Pa=table.stroke_rate_per_MPa / MPa,
        modulus_A_Pa=MODULUS_A_Pa,
        modulus_M_Pa=1.0 / (1.0 / MODULUS_A_Pa + 1e-12 * table.softer_per_TPa),
        minor_loop_slope=table.minor_loop_slope,
    )


def _branch(table: BranchTable | None, ends_C: tuple[float, float], slope: float) -> Branch:
    if table is None:
        low_C, high_C = ends_C
        return LineBranch(0.5 * (low_C + high_C), slope, high_C - low_C)
    return Branch(
        middle_C=table.middle_C,
        slope_Pa_per_K=slope,
        core_K=table.core_K,
        shoulder_ratio=table.shoulder_ratio,
        shoulder_at_K=table.shoulder_at_K,
        core_share=table.core_share,
        widens_per_Pa=table.widens_per_MPa / MPa,
        work_share=table.work_share,
    )


def at_rest(law: StressLaw, wire: SmaWire, rest_Pa: float) -> SmaWire:
    """The wire with lines for branches where they lie at the stress of rest."""
    ends = [_ends_C(law, branch, rest_Pa) for branch in (law.heating, law.cooling)]
    (A_s_C, A_f_C), (M_f_C, M_s_C) = ends
    resistivity = replace(wire.resistivity, strain=float(law.stroke(rest_Pa)))
    return replace(
        wire, A_s_C=A_s_C, A_f_C=A_f_C, M_s_C=M_s_C, M_f_C=M_f_C, resistivity=resistivity
    )


@lru_cache(maxsize=1024)  # cells share wires, and a run builds them for twin, plant and limits
def _ends_C(law: StressLaw, branch: Branch, rest_Pa: float) -> tuple[float, float]:
    middle_C = float(law.middle_C(branch, rest_Pa))
    if isinstance(branch, LineBranch):
        return middle_C - 0.5 * branch.core_K, middle_C + 0.5 * branch.core_K
    T_C = np.linspace(middle_C - 300.0, middle_C + 300.0, 60001)
    low_C, high_C = np.interp(REST_SHARES, law.branch(branch, T_C, rest_Pa), T_C)
    return float(low_C), float(high_C)
