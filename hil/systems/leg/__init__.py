"""Limbs of rigid bodies moved by Hill-type muscles: mechanics, muscles, stepping, statics.

Source: Makkonen 2021, *Simulated Muscle Driven Leg* (LUT), with the muscle of Haeufle et al. 2014.
"""

from hil.experiment.kind import BenchPart, SystemKind
from hil.experiment.twin import Twin, twin_of
from hil.loop.channels import RigLayout
from hil.rig.run_tables import RunTables
from hil.systems.leg.build import build_limb_system
from hil.systems.leg.controllers import CONTROLLERS, check_activations
from hil.systems.leg.system import LimbSystem
from hil.systems.leg.tables import LimbTable


def _estimator(tables: RunTables, system: LimbSystem, layout: RigLayout) -> Twin:
    return twin_of(tables, system, layout, system.shown)


SYSTEM = SystemKind(
    kind="musculoskeletal",
    table=LimbTable,
    build=build_limb_system,
    estimator=_estimator,
    controllers=CONTROLLERS,
    check_rig=check_activations,
    figure="hil.systems.leg.figure:figure",
    studies={"leg": "hil.systems.leg.study"},
    bench={
        "leg": BenchPart("hil.systems.leg.bench:compare", "hil.systems.leg.bench:as_text", "usual"),
    },
)
