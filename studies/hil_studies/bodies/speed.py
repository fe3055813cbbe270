"""Times the accelerations of a body of 18 links: recursion, pinocchio, the paper's three forms.

All are called from Python, on one thread, in alternating rounds; every figure is the minimum.
"""

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from hil.bundled_configs import root
from hil.mechanics.recursion import Recursion
from hil.mechanics.rotations import attitude
from hil.runs.timing import least_s
from hil.systems.bodies.build import load_skeleton
from hil.systems.bodies.forms import FORMS, Acting
from hil.systems.bodies.skeleton import Skeleton

OURS, PINOCCHIO = "recursion", "pinocchio ABA"
TURNS = 40


def shipped_body() -> Skeleton:
    """Return the skeleton of `configs/body`."""
    return load_skeleton(root() / "configs" / "body" / "rig.toml")[0]


def cost() -> list[dict[str, Any]]:
    """Return one row per tool: microseconds per evaluation, and ratio to the recursion."""
    return cost_of(shipped_body())


def cost_of(skeleton: Skeleton) -> list[dict[str, Any]]:
    """Return the same figures for any skeleton, without ground contact."""
    rng = np.random.default_rng(18)
    A, omega = attitude(rng.uniform(-1, 1, (skeleton.n, 3))), rng.normal(size=(skeleton.n, 3))
    torques = rng.normal(size=(len(skeleton.joints), 3))
    now = Acting(A, omega, skeleton.paired(A, torques))
    order, carried = skeleton.tree()
    tree = Recursion(carried)
    tools: dict[str, Callable[[], object]] = {
        OURS: partial(tree.solve, A[order], omega[order], now.N[order])
    }
    if find_spec("pinocchio") is not None:
        import pinocchio as pin

        from hil_studies.bodies.peer import Peer

        peer = Peer(skeleton)
        state = peer.state(A, omega, torques)
        tools[PINOCCHIO] = partial(pin.aba, peer.model, peer.data, *state)
    dimensions = dict(zip(FORMS, skeleton.dimensions, strict=True))
    for name, form in FORMS.items():
        tools[f"{name} ({dimensions[name]})"] = partial(form, skeleton, now)
    least = least_s(tools, TURNS)
    return [
        {"tool": name, "us": 1e6 * least[name], "ratio": least[name] / least[OURS]}
        for name in tools
    ]


def as_text(rows: list[dict[str, Any]]) -> str:
    """Return the rows as a table."""
    lines = [f"{'18 links: accelerations':<28}{'an evaluation':>16}{'ratio':>10}"]
    lines += [f"  {row['tool']:<26}{row['us']:>13.1f} us{row['ratio']:>10.1f}" for row in rows]
    return "\n".join(lines)
