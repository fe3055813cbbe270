"""Limbs of rigid bodies moved by Hill-type muscles: mechanics, muscles, stepping, statics.

Source: Makkonen 2021, *Simulated Muscle Driven Leg* (LUT), with the muscle of Haeufle et al. 2014.
"""

from hil.experiment.kind import SystemKind
from hil.experiment.twin import twin_of
from hil.systems.leg.build import build_limb_system
from hil.systems.leg.controllers import CONTROLLERS, check_activations
from hil.systems.leg.tables import LimbTable

SYSTEM = SystemKind(
    kind="musculoskeletal",
    table=LimbTable,
    build=build_limb_system,
    estimator=twin_of,
    controllers=CONTROLLERS,
    check_rig=check_activations,
    figure="hil.systems.leg.figure:figure",
)
