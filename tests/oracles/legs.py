"""The leg of Makkonen 2021 as the tests need it, from the shipped configuration, and a peer's."""

import numpy as np

from hil.config.files import read_toml
from hil.config.limb import LimbTable
from hil.models.leg.limb import Limb
from hil.models.leg.stepper import LimbStepper


def table(configs, rig="leg", **changes):
    """`[model]` of configs/leg, with its tables changed: bodies={...}, or muscles={...}."""
    model = read_toml(configs / rig / "rig.toml")["model"]
    for key, values in changes.items():
        for name, own in values.items():
            model[key][name].update(own)
    return LimbTable.model_validate(model)


def pendulum(limb):
    """The same bodies and joints without muscles."""
    return Limb(limb.bodies, limb.joints, (), limb.gravity_m_per_s2)


def energy_J(stepper: LimbStepper):
    """Kinetic and potential energy together."""
    from hil.models.leg import minimal

    n = stepper.n_q
    return sum(
        minimal.energy(
            stepper.links, stepper.work, stepper.x[:n].copy(), stepper.x[n : 2 * n].copy()
        )
    )


def mujoco_model(limb):
    """The limb in MuJoCo: revolute joints, muscles as tendons that motors pull."""
    import mujoco

    def text(values):
        return " ".join(repr(float(v)) for v in values)

    order, sites = limb.order(), {"ground": ""}
    bodies, origin = {}, {"ground": np.zeros(3)}
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
        motors += f'<motor tendon="{m.name}" gear="-1"/>'  # tension shortens

    def nested(name):
        inner = "".join(nested(j.child) for j in order if j.parent == name)
        return f"{bodies[name]}{sites[name]}{inner}</body>"

    roots = "".join(nested(j.child) for j in order if j.parent == "ground")
    return mujoco.MjModel.from_xml_string(
        f'<mujoco><compiler angle="radian" balanceinertia="false"/>'
        f'<option gravity="{text(limb.gravity_m_per_s2)}"><flag contact="disable"/></option>'
        f"<worldbody>{sites['ground']}{roots}</worldbody><tendon>{tendons}</tendon>"
        f"<actuator>{motors}</actuator></mujoco>"
    )
