"""Strain gages in a bridge: strain of the specimen and the ratio that the card measures.

V_r = V_ch / V_ex, e the strain of the specimen along the gage, GF the gage factor, nu Poisson's
ratio, R_L and R_g the lead wire's and the gage's resistance, k = 1 + R_L / R_g:

    quarter bridge I, II  e = -4 V_r k / (GF (1 + 2 V_r))
    half bridge I         e = -4 V_r k / (GF ((1 + nu) - 2 V_r (nu - 1)))
    half bridge II        e = -2 V_r k / GF
    full bridge I         e = -V_r / GF
    full bridge II        e = -2 V_r / (GF (nu + 1))
    full bridge III       e = -2 V_r / (GF ((nu + 1) - V_r (nu - 1)))

Source: National Instruments, "Strain Gauge Configuration Types", and application note 078.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nidaqmx.constants import StrainGageBridgeType as Bridge

from simdaq.scales import Scaling


def _law(p: Mapping[str, Any]) -> tuple[float, float, float]:
    """(a, b, c) of e = a V_r / (b - c V_r)."""
    gf, nu = p["ai_strain_gage_gage_factor"], p.get("ai_strain_gage_poisson_ratio", 0.3)
    arm = p.get("ai_bridge_nom_resistance", 0.0)
    leads = 1.0 + (p.get("ai_lead_wire_resistance", 0.0) / arm if arm else 0.0)
    return {
        Bridge.QUARTER_BRIDGE_I.value: (-4.0 * leads, gf, -2.0 * gf),
        Bridge.QUARTER_BRIDGE_II.value: (-4.0 * leads, gf, -2.0 * gf),
        Bridge.HALF_BRIDGE_I.value: (-4.0 * leads, gf * (1.0 + nu), 2.0 * gf * (nu - 1.0)),
        Bridge.HALF_BRIDGE_II.value: (-2.0 * leads, gf, 0.0),
        Bridge.FULL_BRIDGE_I.value: (-1.0, gf, 0.0),
        Bridge.FULL_BRIDGE_II.value: (-2.0, gf * (nu + 1.0), 0.0),
        Bridge.FULL_BRIDGE_III.value: (-2.0, gf * (nu + 1.0), gf * (nu - 1.0)),
    }[p["ai_strain_gage_cfg"]]


def _volts(p: Mapping[str, Any], *, ratiometric: bool) -> float:
    """What the converter measures of a ratio of 1: V/V of a bridge module, else volts."""
    return 1.0 if ratiometric else float(p.get("ai_excit_val", 0.0)) or 1.0


def strain_of(p: Mapping[str, Any], *, ratiometric: bool) -> Scaling:
    """Strain from what the converter measures, as these properties say the gages are wired."""
    a, b, c = _law(p)
    volts = _volts(p, ratiometric=ratiometric)

    def strain(value: Any) -> Any:
        ratio = value / volts
        return a * ratio / (b - c * ratio)

    return strain


def measured_of(p: Mapping[str, Any], *, ratiometric: bool) -> Scaling:
    """What the converter measures of a strain with gages wired as these properties say."""
    a, b, c = _law(p)
    volts = _volts(p, ratiometric=ratiometric)

    def measured(strain: Any) -> Any:
        return volts * b * strain / (a + c * strain)

    return measured
