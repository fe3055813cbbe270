"""Builds links and arrays from the soft rig's tables, and computes their static levels."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hil.errors import ModelError
from hil.systems.array.build import build_activation, build_model
from hil.systems.soft.element import Material
from hil.systems.soft.system import Link, Muscle, SoftArraySystem
from hil.systems.soft.tables import LinkTable, SoftTable
from hil.systems.soft.tree import Beam, Ground

LEVEL_MIN = 1e-6


def build_soft(table: SoftTable, period_s: float) -> SoftArraySystem:
    """Return links and arrays as a plant or a twin; a ModelError names the key."""
    ground = None
    if table.ground is not None:
        g = table.ground
        if not np.any(g.normal):
            raise ModelError("ground.normal: must not be zero")
        ground = Ground(
            (g.normal[0], g.normal[1], 0.0), (g.at_m[0], g.at_m[1], 0.0), g.k_N_per_m,
            g.c_N_s_per_m, g.friction, pieces_max=g.pieces_max,
        )  # fmt: skip
    activation = build_activation(table)
    if any(cell.loaded is not None for cell in activation):
        raise ModelError("arrays: kind = 'sma' is for cell arrays: give kind = 'thermal'")
    muscles = {name: Muscle(array=name, **m.model_dump()) for name, m in table.muscles.items()}
    return SoftArraySystem(
        {name: _link(name, link) for name, link in table.links.items()},
        muscles,
        build_model(table),
        activation,
        period_s,
        (table.gravity_m_per_s2[0], table.gravity_m_per_s2[1]),
        ground,
    )


def _link(name: str, table: LinkTable) -> Link:
    try:
        material = Material(
            table.youngs_Pa, table.density_kg_per_m3, table.elastic_share, table.loss_s,
            tuple((share, tau_s) for share, tau_s in table.branches),
        )  # fmt: skip
        beam = Beam(table.length_m, table.width_m, table.height_m, material)
    except ModelError as error:
        raise ModelError(f"links.{name}: {error}") from None
    return Link(beam, table.segments, table.angle_rad, table.tip_mass_kg)


def static_levels(
    system: SoftArraySystem, F_N: Sequence[float], order: Sequence[int], output: str
) -> NDArray[np.float64]:
    """Return an output at rest with the first 0, 1, 2, ... cells of `order` on."""
    at, on, levels = system.outputs.index(output), np.zeros(len(F_N)), []
    for cell in [-1, *order]:
        if cell >= 0:
            on[cell] = F_N[cell]
        levels.append(float(system.settled(on)[at]))
    return np.array(levels)


def first_that_falls(levels: NDArray[np.float64], order: Sequence[int]) -> int | None:
    """Return the first cell that does not raise the level, or None."""
    rises = np.diff(levels) > LEVEL_MIN * np.abs(levels).max()
    return None if rises.all() else order[int(np.argmin(rises))]
