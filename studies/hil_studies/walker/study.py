"""`hil study walker`: heel strikes of the compass walker, Figs. 2 to 5, and its passive gait.

Source: Font-Llagunes & Koevecses, "Analytical and Experimental Studies of the Dynamics of Variable
Topology Systems", section 4.
"""

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field

from hil.config.table import Table, as_list
from hil.errors import ModelError
from hil.pages.study import check, saved
from hil.pages.style import CELL, MEASURED, MODEL, REFERENCE, RESIDUAL, styled_figure
from hil_studies.walker.gait import PassiveWalker, multipliers
from hil_studies.walker.model import HeelStrikes, Walker, heel_strikes, largest_lift_off_deg

PRINTED_LIFT_OFF_DEG = "43"
DERIVED_LIFT_OFF_DEG = "44.48"
DERIVED = {"T_c_J": ("2.0476", "J"), "T_a_J": ("5.2643", "J"), "lambda_n_N_s": ("9.978", "N s"),
           "lambda_t_N_s": ("-2.637", "N s")}  # fmt: skip
ROWS_MAX = 200_000
COLOURS = (MODEL, MEASURED, RESIDUAL)
DISTURBED = np.array([1.02, 0.99, 1.01])


def _several(*default: float) -> Any:
    return Field(default_factory=lambda: list(default), min_length=1, max_length=1000)


Several = Annotated[list[float], BeforeValidator(as_list)]


class Values(Table):
    """Values that `--set` can change; the rows are all combinations of the first four."""

    theta_deg: Several = _several(40.0)
    rho: Several = _several(0.25)
    mu: Several = _several(1.0)
    torso_deg: Several = _several(0.0)
    rate_rad_per_s: Annotated[float, Field(gt=0.0, le=100.0)] = 1.0
    slope_deg: Annotated[float, Field(gt=0.0, lt=45.0)] = 2.0
    n_steps: Annotated[int, Field(ge=1, le=10_000)] = 40


def run(out: Path, values: Values) -> dict[str, Any]:
    """Sweep into the folder `out`; return the results, as in results.json."""
    rows = _rows(values)
    curves = {"fig2_3": _over_theta(values), "fig4_5": _over_torso(values)}
    gait = _gait(values)
    figures = [
        saved(out, "fig2.png", _draw(curves["fig2_3"], "theta_deg", "rho", _energies, 2),
              _CAPTION[2]),
        saved(out, "fig3.png", _draw(curves["fig2_3"], "theta_deg", "rho", _impulses, 3),
              _CAPTION[3]),
        saved(out, "fig4.png", _draw(curves["fig4_5"], "torso_deg", "mu", _energies, 4),
              _CAPTION[4]),
        saved(out, "fig5.png", _draw(curves["fig4_5"], "torso_deg", "mu", _impulses, 5),
              _CAPTION[5]),
    ]  # fmt: skip
    if gait["found"]:
        figures.append(saved(out, "gait.png", _draw_gait(values, gait), _CAPTION_GAIT))
    return {
        "title": "The compass walker: energy lost at heel strike, and passive gait",
        "rows": rows,
        **curves,
        "gait": {key: value for key, value in gait.items() if key != "walk"},
        "tables": [_table(rows)],
        "checks": _checks(),
        "figures": figures,
        "notes": _notes(curves, gait),
    }


_GREY = (
    " Grey: the old stance foot would not lift off, so walking is not possible. Legs turn at "
    "1 rad/s unless --set rate_rad_per_s changes it."
)
_CAPTION = {
    2: "Fig. 2: kinetic energy lost (T_c) and kept (T_a) at heel strike over the angle between "
       "the legs, for three foot radii." + _GREY,
    3: "Fig. 3: impulses on the new stance foot, normal and tangential (magnitude; it points "
       "backward), over the angle between the legs." + _GREY,
    4: "Fig. 4: kinetic energy lost and kept over the torso's angle (forward above zero), for "
       "three distributions of mass; legs 40 deg apart, R = 0.25 l." + _GREY,
    5: "Fig. 5: impulses on the new stance foot over the torso's angle." + _GREY,
}  # fmt: skip
_CAPTION_GAIT = (
    "Passive steps down a slope without hip torque, the torso's mass at the hip (a freely "
    "hinged torso would fall): angles of both legs over the first steps from a disturbed start, "
    "and the decay of the disturbance compared with the map's largest multiplier."
)


def _row(
    theta: float, rho: float, mu: float, torso: float, h: HeelStrikes, i: int
) -> dict[str, Any]:
    return {
        "theta_deg": theta, "rho": rho, "mu": mu, "torso_deg": torso,
        "T_c_J": float(h.split.T_c_J[i]), "T_a_J": float(h.split.T_a_J[i]),
        "lambda_n_N_s": float(h.split.impulse[i, 1]),
        "lambda_t_N_s": float(h.split.impulse[i, 0]),
        "lift_off": bool(h.lift_off[i]), "friction_needed": float(h.friction_needed[i]),
    }  # fmt: skip


def _rows(values: Values) -> list[dict[str, Any]]:
    arguments = values.theta_deg, values.rho, values.mu, values.torso_deg
    if (wanted := math.prod(map(len, arguments))) > ROWS_MAX:
        raise ModelError(f"{wanted} combinations of the given values: {ROWS_MAX} at most")
    pairs = list(itertools.product(values.theta_deg, values.torso_deg))
    theta, torso = np.array(pairs).T
    results = {
        (rho, mu): heel_strikes(Walker(rho=rho, mu=mu), theta, torso, values.rate_rad_per_s)
        for rho, mu in itertools.product(values.rho, values.mu)
    }
    at = {pair: i for i, pair in enumerate(pairs)}
    return [
        _row(t, rho, mu, tilt, results[rho, mu], at[t, tilt])
        for t, rho, mu, tilt in itertools.product(
            values.theta_deg, values.rho, values.mu, values.torso_deg
        )
    ]


def _over_theta(values: Values) -> list[dict[str, Any]]:
    theta = np.linspace(10.0, 60.0, 201)
    return [
        {"rho": rho, "theta_deg": theta,
         **_curve(heel_strikes(Walker(rho=rho), theta, 0.0, values.rate_rad_per_s))}
        for rho in (0.0, 0.25, 0.5)
    ]  # fmt: skip


def _over_torso(values: Values) -> list[dict[str, Any]]:
    torso = np.linspace(-20.0, 20.0, 161)
    return [
        {"mu": mu, "torso_deg": torso,
         **_curve(heel_strikes(Walker(mu=mu), np.full(161, 40.0), torso, values.rate_rad_per_s))}
        for mu in (0.1, 1.0, 10.0)
    ]  # fmt: skip


def _curve(h: HeelStrikes) -> dict[str, NDArray[Any]]:
    return {
        "T_c_J": h.split.T_c_J, "T_a_J": h.split.T_a_J, "lambda_n_N_s": h.split.impulse[:, 1],
        "lambda_t_N_s": h.split.impulse[:, 0], "lift_off": h.lift_off,
        "friction_needed": h.friction_needed,
    }  # fmt: skip


def _gait(values: Values) -> dict[str, Any]:
    walker = Walker(rho=values.rho[0], mu=values.mu[0], l_T_m=0.0)
    passive = PassiveWalker(walker, values.slope_deg)
    results: dict[str, Any] = {
        "slope_deg": values.slope_deg, "rho": walker.rho, "mu": walker.mu, "found": False,
    }  # fmt: skip
    try:
        start = passive.gait()
        walk = passive.walk(start * DISTURBED, values.n_steps, samples_s=0.01)
    except ModelError as error:
        return results | {"why": str(error)}
    step, values_of_map = passive.step(start), multipliers(passive.slope_of_map(start))
    theta, R = float(start[0]), walker.R_m
    length_m = 2.0 * (walker.l_m - R) * float(np.sin(theta / 2.0)) + R * theta
    return results | {
        "found": True,
        "theta_deg": float(np.rad2deg(theta)),
        "stance_rad_per_s": float(start[1]),
        "swing_rad_per_s": float(start[2]),
        "step_s": float(step.t_s[-1]),
        "step_m": length_m,
        "speed_m_per_s": length_m / float(step.t_s[-1]),
        "multipliers": [{"real": float(v.real), "imaginary": float(v.imag),
                         "magnitude": float(abs(v))} for v in values_of_map],
        "stable": bool(np.all(np.abs(values_of_map) < 1.0)),
        "T_c_J": step.T_c_J,
        "slope_pays_J": passive.mass_kg * passive.g_m_per_s2 * length_m
        * float(np.sin(passive.slope_rad)),
        "lambda_n_N_s": float(step.impulse_N_s[1]),
        "lambda_t_N_s": float(step.impulse_N_s[0]),
        "lift_off": step.lift_off,
        "friction_needed": step.friction_needed,
        "steps_theta_deg": [float(np.rad2deg(s.after[0])) for s in walk],
        "steps_miss": [float(np.abs(s.after - start).max()) for s in walk],
        "walk": walk,
    }  # fmt: skip


def _checks() -> list[dict[str, Any]]:
    row = _row(40.0, 0.25, 1.0, 0.0, heel_strikes(Walker(), 40.0), 0)
    checks = [
        check(f"40 deg, rho 0.25, mu 1, torso upright: {key.rpartition('_N_s')[0] or key[:3]}",
               row[key], expected, unit)
        for key, (expected, unit) in DERIVED.items()
    ]  # fmt: skip
    closed_J = row["lambda_n_N_s"] * 0.75 * 0.8 * float(np.sin(np.deg2rad(20.0)))
    angle = largest_lift_off_deg(Walker(rho=0.0)) or 0.0
    return [
        *checks,
        check("T_c = lambda_n (1 - rho) l w sin(theta / 2)", closed_J, DERIVED["T_c_J"][0], "J"),
        check("Lift-off lost beyond, rho = 0 (derived)", angle, DERIVED_LIFT_OFF_DEG, "deg"),
        check("Lift-off lost beyond, rho = 0 (printed)", angle, PRINTED_LIFT_OFF_DEG, "deg"),
    ]


def _notes(curves: dict[str, Any], gait: dict[str, Any]) -> list[str]:
    angle = largest_lift_off_deg(Walker(rho=0.0))
    notes = [
        f"Not reproduced: with point feet the old foot lifts off up to {angle:.2f} deg between the "
        f"legs; the paper prints {PRINTED_LIFT_OFF_DEG} deg.",
        "Slipping: the step needs a coefficient of friction of at least friction_needed.",
    ]
    if gait["found"]:
        largest = max(v["magnitude"] for v in gait["multipliers"])
        notes.append(
            f"Down {gait['slope_deg']:g} deg the passive walker (rho = {gait['rho']:g}, "
            f"mu = {gait['mu']:g}) steps {gait['theta_deg']:.2f} deg wide every "
            f"{gait['step_s']:.4f} s at {gait['speed_m_per_s']:.3f} m/s; largest multiplier "
            f"{largest:.3f}: {'stable' if gait['stable'] else 'unstable'}."
        )
    else:
        notes.append(f"No passive gait: {gait['why']}.")
    return notes


def _table(rows: list[dict[str, Any]]) -> dict[str, Any]:
    shown = rows[:50]
    more = "" if len(rows) == len(shown) else f" (first 50 of {len(rows)})"
    return {
        "title": f"Heel strikes{more}",
        "columns": ["theta deg", "rho", "mu", "torso deg", "T_c J", "T_a J", "lambda_n N s",
                    "lambda_t N s", "lift-off", "friction needed"],
        "rows": [
            [f"{r['theta_deg']:g}", f"{r['rho']:g}", f"{r['mu']:g}", f"{r['torso_deg']:g}",
             f"{r['T_c_J']:.4f}", f"{r['T_a_J']:.4f}", f"{r['lambda_n_N_s']:.3f}",
             f"{r['lambda_t_N_s']:.3f}", "yes" if r["lift_off"] else "no",
             f"{r['friction_needed']:.3f}"]
            for r in shown
        ],
    }  # fmt: skip


Panels = list[tuple[str, Callable[[dict[str, Any]], NDArray[Any]]]]
_energies: Panels = [
    ("$T_c$, lost [J]", lambda c: c["T_c_J"]),
    ("$T_a$, stays [J]", lambda c: c["T_a_J"]),
]
_impulses: Panels = [
    ("normal impulse [N s]", lambda c: c["lambda_n_N_s"]),
    ("tangential impulse [N s]", lambda c: np.abs(c["lambda_t_N_s"])),
]
_AXIS = {"theta_deg": "angle between the legs [deg]", "torso_deg": "torso, forward above 0 [deg]"}


def _draw(
    curves: list[dict[str, Any]], over: str, parameter: str, panels: Panels, number: int
) -> Figure:
    with styled_figure(8.0, 3.8) as figure:
        axes = figure.subplots(1, 2)
        for axis, (label, of) in zip(axes, panels, strict=True):
            for curve, colour in zip(curves, COLOURS, strict=True):
                x, y, lifts = curve[over], of(curve), curve["lift_off"]
                axis.plot(x, y, color="0.8", lw=1.0)
                axis.plot(x, np.ma.masked_array(y, ~lifts), color=colour, lw=1.4,
                          label=f"{parameter} = {curve[parameter]:g}")  # fmt: skip
            axis.set(xlabel=_AXIS[over], ylabel=label)
            axis.set_ylim(bottom=0.0)
        axes[0].legend(frameon=False)
        what = "Kinetic energy at" if panels is _energies else "Impulses of"
        axes[0].set_title(f"Fig. {number}: {what} the heel strike")
    return figure


def _draw_gait(values: Values, gait: dict[str, Any]) -> Figure:
    walk = gait["walk"]
    with styled_figure(8.0, 5.6) as figure:
        above, below = figure.subplots(2, 1)
        begin_s = 0.0
        for k, step in enumerate(walk[:8]):
            t_s, deg = begin_s + step.t_s, np.rad2deg(step.z[:, :2])
            label = ("stance leg", "swing leg") if k == 0 else (None, None)
            above.plot(t_s, deg[:, 0], color=MODEL, lw=1.2, label=label[0])
            above.plot(t_s, deg[:, 1], color=MEASURED, lw=1.2, label=label[1])
            begin_s += step.t_s[-1]
            above.axvline(begin_s, color="0.8", lw=0.6, zorder=0)
        above.set(xlabel="time [s]", ylabel="from the slope's normal [deg]")
        above.legend(frameon=False, loc="upper right", ncols=2)
        above.set_ylim(top=1.35 * above.get_ylim()[1])
        above.set_title(
            f"Passive steps down {values.slope_deg:g} deg, rho = {gait['rho']:g}, "
            f"mu = {gait['mu']:g}"
        )
        miss = np.array(gait["steps_miss"])
        n, shown = np.arange(1, len(miss) + 1), miss > 0.0
        below.semilogy(n[shown], miss[shown], "o", color=REFERENCE, ms=3,
                       label="distance from the gait")  # fmt: skip
        largest = max(v["magnitude"] for v in gait["multipliers"])
        below.semilogy(n, miss[0] * largest ** (n - 1), color=CELL, lw=1.2,
                       label=f"largest multiplier, {largest:.3f}")  # fmt: skip
        below.set_ylim(bottom=max(1e-12, 0.3 * miss[shown].min()))
        below.set(xlabel="heel strikes", ylabel="largest deviation [rad, rad/s]")
        below.legend(frameon=False)
    return figure
