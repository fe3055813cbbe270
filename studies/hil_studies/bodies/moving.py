"""Moving skeletons for `hil study body`: pushed while they stand, and dropped."""

from typing import Any

import numpy as np

from hil.systems.bodies.build import build_bodies
from hil.systems.bodies.system import Push
from hil.systems.bodies.tables import BodiesTable

STEP_S = 0.002
DROP_M, TILT_RAD = 0.02, 0.05
FALLEN = 0.6  # fraction of the initial height of the centre of mass below which a run ends


def pushed(
    table: BodiesTable, coactivation: float, share: float, duration_s: float
) -> dict[str, Any]:
    """Simulate a forward push of 0.2 s at 0.1 s on the first module's top link."""
    system = build_bodies(table.model_copy(update={"coactivation": coactivation}), STEP_S)
    motion, inputs = system.motion, np.zeros(len(system.inputs))
    weight_N = float(motion.skeleton.mass_kg.sum() * 9.81)
    system.pushes = (Push(2, (share * weight_N, 0.0, 0.0), 0.1, 0.3),)
    n = round(duration_s / STEP_S)
    centre, forces, pictures = np.empty((n, 3)), np.empty((n, len(motion.stands))), []
    for i in range(n):
        centre[i], forces[i] = motion.centre_of_mass_m(), motion.support_N[:, 2]
        if i % max(1, n // 20) == 0:
            pictures.append((motion.t_s, motion.X_a.copy(), motion.A))
        if centre[i, 2] < FALLEN * centre[0, 2]:
            n = i + 1
            break
        system.step(np.zeros(0), inputs)
    centre, forces = centre[:n], forces[:n]
    return {
        "coactivation": coactivation,
        "t_s": STEP_S * np.arange(n), "centre_m": centre, "support_z_N": forces,
        "lift_offs": [{"t_s": t, "support": name} for t, name in motion.lift_offs],
        "landings": [
            {"t_s": t, "stands": list(x.stands), "slides": list(x.slides),
             "let_go": list(x.let_go), "impulse_N_s": x.impulse_N_s, "T_c_J": x.T_c_J,
             "T_a_J": x.T_a_J}
            for t, x in motion.landings
        ],
        "lowest_m": float(centre[:, 2].min()),
        "fallen": bool(centre[-1, 2] < FALLEN * centre[0, 2]),
        "pictures": pictures,
    }  # fmt: skip


def dropped(table: BodiesTable, duration_s: float) -> dict[str, Any]:
    """Drop the skeleton, tilted to a side: it lands on one support, then on others."""
    system = build_bodies(table, STEP_S)
    motion = system.motion
    theta = np.zeros((motion.skeleton.n, 3))
    theta[:, 0] = TILT_RAD
    motion.set_attitudes(theta)
    motion.X_a[2] += DROP_M - motion.feet_m()[:, 2].min()
    motion.stand([])
    motion.c[:] = table.coactivation
    least_m = FALLEN * motion.centre_of_mass_m()[2]
    h_s, n = STEP_S / system.n_steps, round(duration_s / STEP_S)
    forces, feet = np.empty((2, n, len(motion.stands)))
    for i in range(n):
        for _ in range(system.n_steps):
            motion.step(h_s)
        forces[i], feet[i] = motion.support_N[:, 2], motion.feet_m()[:, 2]
        if motion.centre_of_mass_m()[2] < least_m:
            forces, feet = forces[: i + 1], feet[: i + 1]
            break
    events = [
        {
            "t_s": t_s,
            "event": "lands",
            "supports": list(x.stands),
            "slides": list(x.slides),
            "let_go": list(x.let_go),
            "impulse_N_s": x.impulse_N_s,
            "T_c_J": x.T_c_J,
            "T_a_J": x.T_a_J,
        }
        for t_s, x in motion.landings
    ] + [{"t_s": t_s, "event": "lifts off", "supports": [name]} for t_s, name in motion.lift_offs]
    return {
        "t_s": STEP_S * np.arange(1, len(forces) + 1), "support_z_N": forces, "foot_z_m": feet,
        "supports": [s.name for s in motion.skeleton.supports],
        "events": sorted(events, key=lambda event: event["t_s"]),
    }  # fmt: skip
