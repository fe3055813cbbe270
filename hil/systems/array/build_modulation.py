"""Builds and checks the controllers that modulate the power of wires."""

from math import inf

import numpy as np
from numpy.typing import NDArray

from hil.control.steering import Steerable
from hil.control.tables import AntagonistTable
from hil.devices.board import protocol
from hil.experiment.kind import ControlInputs, Faults, SystemRun
from hil.loop.duty import STEPS
from hil.mechanics.sma.limits import CA2MS_PER_A2S
from hil.rig.instruments import boards_of
from hil.systems.array.antagonists import Antagonists
from hil.systems.array.build import wires_of
from hil.systems.array.build_force import nominal_of
from hil.systems.array.modulation import (
    ForceLaw,
    Modulation,
    Sensed,
    Sharing,
    Timing,
    Together,
    command_periods,
)
from hil.systems.array.recruitment.wire_duties import Budget, WireDuties

COOLED_LATE_MS = 16  # a board subtracts cooling in steps: firmware/README.md
CURRENT_COUNTS = 1024


def build_modulation(inputs: ControlInputs, reference: Steerable) -> Modulation:
    """The control stage of `kind = "modulate"` and `"antagonist"`."""
    tables, table = inputs.tables, inputs.tables.controller
    nominal = nominal_of(tables, inputs.model)
    turns = [board.every for board in boards_of(tables.devices).values()]
    every = command_periods(table.command_s, inputs.period_s, turns)
    duties = WireDuties(
        _temperature_max_C(inputs),
        _budget(inputs),
        response_s=table.response_s,
        command_s=every * inputs.period_s,
        duty_min=protocol.DUTY_MIN_PER_255 / STEPS,
        dead_band=table.dead_band,
    )
    twin, gains_N = inputs.estimator.twin, nominal.static_gains_N
    sharing: Sharing = Together(gains_N, twin)
    if isinstance(table, AntagonistTable):
        sharing = Antagonists(gains_N, np.array(inputs.forces_on_N), twin, table.least_N)
    channel, usable = inputs.layout.index(inputs.layout.force), inputs.estimator.estimate.usable
    return Modulation(
        reference,
        ForceLaw(table.k_p, table.k_i_per_s),
        duties,
        sharing,
        Sensed(channel, nominal.output, twin, usable),
        Timing(inputs.period_s, every, tables.guard.cell_on_max_s or inf),
    )


def _temperature_max_C(run: SystemRun) -> NDArray[np.float64]:
    """Largest temperature of every cell's wire: its own, or the controller's if that is lower."""
    cells = wires_of(run.tables.model, run.model).values()
    most_C = np.array([cell.temperature_max_C for cell in cells])
    limit_C = run.tables.controller.temperature_max_C
    return most_C if limit_C is None else np.minimum(most_C, limit_C)


def _budget(run: SystemRun) -> Budget:
    """How the boards count the heat of every cell."""
    of_cell = {
        cell: protocol.default_limits() | board.limits
        for board in boards_of(run.tables.devices).values()
        for cell in board.cells
    }
    limits = [of_cell[cell] for cell in run.model.cell_names]
    cells = wires_of(run.tables.model, run.model).values()
    return Budget(
        most_A2s=np.array([one["heat_max_cA2ms"] / CA2MS_PER_A2S for one in limits]),
        time_constant_s=np.array(
            [1e-3 * (one["heat_time_constant_ms"] + COOLED_LATE_MS) for one in limits]
        ),
        count_A=np.array([1e-3 * one["current_full_scale_mA"] / CURRENT_COUNTS for one in limits]),
        least_Ohm=np.array([1.0 / cell.ordinary_A(1.0) for cell in cells]),
    )


def check(run: SystemRun) -> Faults:
    """Check that every cell has a wire, and that its temperature can be limited."""
    tables, arrays = run.tables, run.model
    bare = [
        name
        for name, cell in zip(arrays.cell_names, run.kind.activation(tables.model), strict=True)
        if not cell.has_wire
    ]
    if bare:
        yield (
            f"controller.kind = '{tables.controller.kind}'",
            f"'{bare[0]}' has no wire whose heat could be controlled: give its array an "
            "activation of kind 'thermal' or 'sma'",
        )
        return
    turns = [board.every for board in boards_of(tables.devices).values()]
    command_s = run.period_s * command_periods(tables.controller.command_s, run.period_s, turns)
    on_max_s = tables.guard.cell_on_max_s
    if on_max_s is not None and command_s > on_max_s:
        yield (
            f"controller.command_s = {tables.controller.command_s:g}",
            f"a duty is held for {command_s:g} s, and guard.cell_on_max_s = {on_max_s:g} trips "
            "before: lower command_s",
        )
    limit_C = tables.controller.temperature_max_C
    cells = wires_of(tables.model, arrays).values()
    warmest_C = max(cell.wire.ambient_C for cell in cells)
    own_C = min(cell.temperature_max_C for cell in cells)
    if limit_C is not None and not warmest_C < limit_C <= own_C:
        yield (
            f"controller.temperature_max_C = {limit_C:g}",
            f"choose more than the air's {warmest_C:g} and at most the wires' own {own_C:g}",
        )


def check_sides(run: SystemRun) -> Faults:
    """Check that cells pull the measured force to both sides."""
    nominal = nominal_of(run.tables, run.model)
    if not (nominal.static_gains_N.min() < 0.0 < nominal.static_gains_N.max()):
        yield (
            "controller.kind = 'antagonist'",
            f"all cells pull '{nominal.signal}' to one side: measure the net_N of a fixed point "
            "between arrays, or choose modulate",
        )
