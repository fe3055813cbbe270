"""`hil bench --only arm`: accelerations of the three-link arm compared with pinocchio and MuJoCo.

All are called from Python, on one thread, in alternating rounds; every figure is the minimum over
the rounds. The peers have ball joints, with the torques of the muscle pairs.
"""

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from hil.mechanics.recursion import Recursion
from hil.mechanics.rotations import attitude
from hil.runs.timing import least_s
from hil.systems.arm.links import Arm
from hil.systems.arm.pointing import printed_motion
from hil.systems.arm.system import ArmSystem, Pairs

OURS, PERIOD = "recursion", "a period of 1 ms, 18 muscles"
TURNS = 40
PAIRS = Pairs((40.0, 15.0, 4.0), (2.0, 0.4, 0.24))

Row = dict[str, Any]


def compare(turns: int = TURNS) -> list[Row]:
    """Return a row per tool, in s per evaluation of all accelerations; plus a complete period."""
    arm, rng = Arm(), np.random.default_rng(3)
    tree = Recursion(arm.bodies(), fixed=True)
    theta, omega, N = rng.uniform(-1, 1, (3, 3)), rng.normal(size=(3, 3)), rng.normal(size=(3, 3))
    tools: dict[str, Callable[[], object]] = {
        OURS: partial(tree.solve, attitude(theta), omega, N, gravity=arm.gravity)
    }
    v, tau = rng.normal(size=9), rng.normal(size=9)
    if find_spec("pinocchio") is not None:
        import pinocchio as pin

        model = pinocchio_model(arm)
        tools["pinocchio ABA"] = partial(
            pin.aba, model, model.createData(), pin.randomConfiguration(model), v, tau
        )
    if find_spec("mujoco") is not None:
        import mujoco

        scene = mujoco.MjModel.from_xml_string(mujoco_xml(arm))
        data = mujoco.MjData(scene)
        data.qvel[:], data.qfrc_applied[:] = v, tau
        tools["MuJoCo mj_forward"] = partial(mujoco.mj_forward, scene, data)
    system = ArmSystem(arm, PAIRS, printed_motion(0.0).theta, 0.001)
    tools[PERIOD] = partial(system.step, np.zeros(0), np.full(18, 0.2))
    least = least_s(tools, turns)
    return [{"tool": name, "s": s, "ratio": s / least[OURS]} for name, s in least.items()]


def as_text(rows: list[Row]) -> str:
    """Return the rows as a table."""
    lines = [f"{'three-link arm: accelerations':<32}{'an evaluation':>16}{'ratio':>10}"]
    lines += [f"  {r['tool']:<30}{1e6 * r['s']:>13.1f} us{r['ratio']:>10.1f}" for r in rows]
    return "\n".join(lines)


def pinocchio_model(arm: Arm) -> Any:
    """Return the arm with a spherical joint at every joint."""
    import pinocchio as pin

    model = pin.Model()
    model.gravity.linear = np.array(arm.gravity)
    below, place = 0, pin.SE3.Identity()
    for i, (link, J) in enumerate(zip(arm.links, arm.inertia_kg_m2, strict=True)):
        below = model.addJoint(below, pin.JointModelSpherical(), place, f"joint{i}")
        inertia = pin.Inertia(link.mass_kg, np.array([link.com_m, 0.0, 0.0]), np.diag(J))
        model.appendBodyToJoint(below, inertia, pin.SE3.Identity())
        place = pin.SE3(np.eye(3), np.array([link.length_m, 0.0, 0.0]))
    return model


def mujoco_xml(arm: Arm) -> str:
    """Return the arm as a MuJoCo scene."""
    text, at = f'<mujoco><option gravity="0 0 {-arm.gravity_m_per_s2}"/><worldbody>', 0.0
    for link, J in zip(arm.links, arm.inertia_kg_m2, strict=True):
        moments = " ".join(f"{moment:.17g}" for moment in J)
        text += (
            f'<body pos="{at:.17g} 0 0"><joint type="ball"/><inertial pos="{link.com_m:.17g} 0 0" '
            f'mass="{link.mass_kg:.17g}" diaginertia="{moments}"/>'
        )
        at = link.length_m
    return text + "</body>" * 3 + "</worldbody></mujoco>"
