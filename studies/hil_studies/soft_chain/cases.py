"""Reference cases of soft structures."""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hil.errors import ModelError
from hil.systems.soft.element import Element, Material
from hil.systems.soft.tree import Beam, Body, Place, SoftTree

ElementKind = Literal["voigt", "maxwell", "solid"]
YOUNGS_PA, DENSITY = 5e6, 1100.0
CRANK_M, CRANK_KG = 0.20, 0.30
SERVO = Element(k=50.0, c=1.5)
TIP_KG = 0.05


def rubber(kind: ElementKind) -> Material:
    """Return the case's rubber as a Voigt, a Maxwell or a standard linear solid."""
    if kind == "voigt":
        return Material.voigt(YOUNGS_PA, DENSITY, loss_s=0.010)
    if kind == "maxwell":
        return Material.maxwell(YOUNGS_PA, DENSITY, tau_s=0.1)
    if kind == "solid":
        return Material.solid(YOUNGS_PA, DENSITY, elastic_share=0.5, tau_s=0.05)
    raise ModelError(f"element '{kind}': choose voigt, maxwell, solid")


def rubber_beam(kind: ElementKind) -> Beam:
    return Beam(0.30, 0.03, 0.02, rubber(kind))


def rubber_manipulator(kind: ElementKind, n_segments: int) -> tuple[SoftTree, Place]:
    """Return RUBBER-MANIP-1 and its tip: a rod on a servo, with a rubber link and a tip mass."""
    inertia = CRANK_KG * CRANK_M**2 / 12.0
    crank = Body(-1, CRANK_KG, (0.0, inertia, inertia), (0.5 * CRANK_M, 0.0, 0.0), element=SERVO)
    beam = rubber_beam(kind)
    link = beam.segments(
        n_segments, first=1, parent=0, joint_at_m=(CRANK_M, 0.0, 0.0), tip_mass_kg=TIP_KG
    )
    tip = Place(n_segments, (beam.length_m / n_segments, 0.0, 0.0))
    return SoftTree((crank, *link), drives=(0,)), tip


def servo_input(t_s: ArrayLike) -> NDArray[np.float64]:
    """Return the servo's reference pi/6 (1 - cos 2 pi t), its rate and zero torque, (k, 3)."""
    phase = 2.0 * np.pi * np.asarray(t_s)
    reference = np.pi / 6.0 * (1.0 - np.cos(phase))
    rate = np.pi**2 / 3.0 * np.sin(phase)
    return np.stack((reference, rate, np.zeros_like(phase)), axis=-1)
