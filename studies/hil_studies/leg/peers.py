"""Limbs with muscles in other tools: MuJoCo."""

from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hil.systems.leg.limb import GROUND, Limb


def mujoco_model(limb: Limb, actuator: Literal["motor", "muscle"] = "motor") -> Any:
    """Return the limb in MuJoCo: revolute joints, tendons through the path points, no contact.

    "motor" applies a commanded tension; "muscle" is MuJoCo's own muscle with an activation.
    """
    import mujoco

    def text(values: Iterable[float]) -> str:
        return " ".join(repr(float(v)) for v in values)

    order, sites = limb.order(), {GROUND: ""}
    bodies: dict[str, str] = {}
    origin: dict[str, NDArray[np.float64]] = {GROUND: np.zeros(3)}
    for joint in order:
        body = limb.body(joint.child)
        centre = -np.array(joint.at_child_m)
        at = origin[joint.parent] + np.array(joint.at_parent_m)
        origin[joint.child] = centre
        bodies[joint.child] = (
            f'<body name="{body.name}" pos="{text(at)}">'
            f'<joint name="{joint.name}" axis="{text(joint.axis)}" '
            f'damping="{joint.damping_N_m_s_per_rad!r}"/>'
            f'<inertial pos="{text(centre)}" mass="{body.mass_kg!r}" '
            f'diaginertia="{text(body.inertia_kg_m2)}"/>'
        )
        sites[joint.child] = ""
    tendons, motors = "", ""
    for m in limb.muscles:
        path = ""
        for i, point in enumerate(m.path):
            name = f"{m.name}{i}"
            at = origin[point.body] + np.array(point.at_m)
            sites[point.body] += f'<site name="{name}" pos="{text(at)}"/>'
            path += f'<site site="{name}"/>'
        tendons += f'<spatial name="{m.name}">{path}</spatial>'
        if actuator == "motor":
            motors += f'<motor tendon="{m.name}" gear="-1"/>'  # tension shortens
        else:
            longest = 2.0 * (m.hill.l_SEE_0_m + m.hill.l_CE_opt_m)
            motors += f'<muscle tendon="{m.name}" lengthrange="0.01 {longest!r}"/>'

    def nested(name: str) -> str:
        inner = "".join(nested(j.child) for j in order if j.parent == name)
        return f"{bodies[name]}{sites[name]}{inner}</body>"

    roots = "".join(nested(j.child) for j in order if j.parent == GROUND)
    return mujoco.MjModel.from_xml_string(
        f'<mujoco><compiler angle="radian" balanceinertia="false"/>'
        f'<option gravity="{text(limb.gravity_m_per_s2)}"><flag contact="disable"/></option>'
        f"<worldbody>{sites[GROUND]}{roots}</worldbody><tendon>{tendons}</tendon>"
        f"<actuator>{motors}</actuator></mujoco>"
    )
