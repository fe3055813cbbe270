"""Skeletons and states that several tests use."""

from pathlib import Path

import numpy as np

from hil.bundled_configs import root
from hil.mechanics.rotations import attitude
from hil.systems.bodies.build import load_skeleton
from hil.systems.bodies.forms import Acting
from hil.systems.bodies.joints import Hold
from hil.systems.bodies.system import holds_of


def rig(name):
    return Path(root()) / "configs" / name / "rig.toml"


def shipped(name):
    return load_skeleton(rig(name))[0]


def random_state(skeleton, rng, held=(), spread=1.2):
    A = attitude(rng.uniform(-spread, spread, (skeleton.n, 3)))
    omega = rng.normal(size=(skeleton.n, 3))
    N = skeleton.paired(A, 5.0 * rng.normal(size=(len(skeleton.joints), 3)))
    return Acting(A, omega, N, held)


def upright(skeleton, held=()):
    still = np.zeros((skeleton.n, 3))
    return Acting(np.tile(np.eye(3), (skeleton.n, 1, 1)), still, still, held)


def flat_footed():
    """The shipped body with a heel and a toe on each foot, its pose, and its joints' holds."""
    skeleton, table = load_skeleton(rig("body_flat"))
    theta = np.zeros((skeleton.n, 3))
    for name, pose in table.pose_rad.items():
        theta[skeleton.names.index(name)] = pose
    holds = {name: Hold(**hold.model_dump()) for name, hold in table.holds.items()}
    return skeleton, theta, holds_of(skeleton, holds)
