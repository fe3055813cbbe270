"""The leg of Makkonen 2021 as the tests need it, from the shipped configuration."""

from hil.config.files import read_toml
from hil.systems.leg.limb import Limb
from hil.systems.leg.stepper import LimbStepper
from hil.systems.leg.tables import LimbTable


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
    from hil.systems.leg import minimal

    n = stepper.n_q
    return sum(
        minimal.energy(
            stepper.links, stepper.work, stepper.x[:n].copy(), stepper.x[n : 2 * n].copy()
        )
    )
