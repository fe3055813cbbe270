"""The soft rig's tables -> plant, twin and control stage, and what is wrong with them."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from hil.config import recruit_schema, schema
from hil.config.recruitment import SEED_BITS, indices
from hil.config.soft import LinkTable
from hil.control.broadcast import Broadcaster, BroadcastLaw
from hil.control.controller import Control
from hil.control.force import ForceControl
from hil.control.pid import Pid, PidGains
from hil.control.recruit import BroadcastRecruiter
from hil.control.reference import NoReference, Reference
from hil.control.schedule import Schedule
from hil.control.signal_cells import MaskRecruiter, SignalCells
from hil.control.steering import Steerable
from hil.frame import units
from hil.models import CellArray, ModelError
from hil.models.activation import CellActivation
from hil.models.soft.arrays import Link, Muscle, SoftArraySystem
from hil.models.soft.element import Material
from hil.models.soft.tree import Beam, Ground
from hil.slots import Channel

Found = Iterator[tuple[str, str]]
KINDS = "schedule, pid, broadcast"
LEVEL_MIN = 1e-6


def build_soft(
    table: schema.SoftTable,
    arrays: CellArray,
    activation: Sequence[CellActivation],
    period_s: float,
) -> SoftArraySystem:
    """Links and arrays as a plant or a twin; ModelError naming the key."""
    ground = None
    if table.ground is not None:
        g = table.ground
        if not np.any(g.normal):
            raise ModelError("ground.normal: must not be zero")
        ground = Ground(
            (g.normal[0], g.normal[1], 0.0), (g.at_m[0], g.at_m[1], 0.0), g.k_N_per_m,
            g.c_N_s_per_m, g.friction,
        )  # fmt: skip
    muscles = {name: Muscle(array=name, **m.model_dump()) for name, m in table.muscles.items()}
    return SoftArraySystem(
        {name: _link(name, link) for name, link in table.links.items()},
        muscles,
        arrays,
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
    """An output at rest with the first 0, 1, 2, ... cells of the order on."""
    at, on, levels = system.outputs.index(output), np.zeros(len(F_N)), []
    for cell in [-1, *order]:
        if cell >= 0:
            on[cell] = F_N[cell]
        levels.append(float(system.settled(on)[at]))
    return np.array(levels)


def first_that_falls(levels: NDArray[np.float64], order: Sequence[int]) -> int | None:
    """The first cell that adds nothing to the level before it, if there is one."""
    rises = np.diff(levels) > LEVEL_MIN * np.abs(levels).max()
    return None if rises.all() else order[int(np.argmin(rises))]


def build_soft_control(
    controller: schema.ControllerTable,
    references: Mapping[str, Reference],
    system: SoftArraySystem,
    F_N: Sequence[float],
    channels: Mapping[str, tuple[int, Channel, str]],
    seed: int,
) -> Control:
    """The control stage: cells follow the set point of one channel.

    Parameters
    ----------
    references : the one set point, under its channel's name; none for a schedule
    channels : every channel's slot, itself, and its signal
    """
    model = system.arrays
    if isinstance(controller, schema.ScheduleTable):
        return ForceControl(NoReference(), build_schedule(controller, model), None)
    assert isinstance(controller, schema.PidTable | recruit_schema.BroadcastTable)
    name, follows = next(iter(references.items()))
    slot, channel, signal = channels[name]
    order = recruited_order(controller, model)
    levels = static_levels(system, F_N, order, signal)
    shares = np.diff(levels)
    recruiter: MaskRecruiter | BroadcastRecruiter
    rest = 0.0
    if isinstance(controller, recruit_schema.BroadcastTable):
        rest = float(levels[0])
        zone = 0.5 * float(shares.max()) * (1.0 + 1e-9)
        law = BroadcastLaw(controller.law, controller.gain, zone, controller.period_s)
        caster = Broadcaster(law, shares)
        recruiter = BroadcastRecruiter(caster, shares, "measured", seed % 2**SEED_BITS)
    else:
        gains = PidGains(
            controller.k_p, controller.k_i_per_s, controller.k_d_s, controller.derivative_filter_s
        )
        pid = Pid(gains, levels, order, controller.hysteresis, controller.dwell_s, system.period_s)
        recruiter = MaskRecruiter(pid)
    return SignalCells(
        Steerable(follows), recruiter, slot, channel.column("reference"),
        channel.column("demand"), units(channel.suffix), rest, model.n_cells,
    )  # fmt: skip


def build_schedule(table: schema.ScheduleTable, model: CellArray) -> Schedule:
    """Cells on and off at given times."""
    steps = [(s.t_s, _cells(s.on, model), _cells(s.off, model)) for s in table.steps]
    return Schedule(steps, model.n_cells)


def recruited_order(controller: schema.ControllerTable, model: CellArray) -> list[int]:
    """Cells, from 0, that a controller may switch, in the order in which it takes them."""
    own = controller.order if isinstance(controller, schema.PidTable) else None
    return _cells(own or "all", model)


def _cells(cells: str | list[int | str], model: CellArray) -> list[int]:
    return list(range(model.n_cells)) if isinstance(cells, str) else indices(cells, model)


def check_soft(
    controller: schema.ControllerTable,
    follows: schema.ReferenceTable | None,
    channels: Sequence[str],
) -> Found:
    """What is wrong with an experiment on a soft rig, beside its cells' names."""
    if not isinstance(
        controller, schema.ScheduleTable | schema.PidTable | recruit_schema.BroadcastTable
    ):
        yield f"controller.kind = '{controller.kind}'", f"a soft rig's cells take {KINDS}"
        return
    if isinstance(controller, schema.ScheduleTable):
        if follows is not None:
            yield "reference", "a schedule follows none: remove it"
        return
    if not isinstance(follows, schema.SignalsReferenceTable) or len(follows.signals) != 1:
        yield (
            "reference",
            f"a {controller.kind} controller follows the set point of one channel: give "
            f"kind = 'signals' and signals of one of {', '.join(channels)}",
        )
        return
    for name in follows.signals:
        if name not in channels:
            yield f"reference.signals.{name}", f"no such channel: choose {', '.join(channels)}"
    if isinstance(controller, recruit_schema.BroadcastTable):
        if controller.error != "measured":
            yield (
                "controller.error = 'commanded'",
                "a soft rig forms it from the channel: give 'measured', and a period_s beyond the "
                "time in which cells and links settle",
            )
        if controller.dead_zone_N is not None:
            yield "controller.dead_zone_N", "is a force: leave it out, half the largest step is it"
