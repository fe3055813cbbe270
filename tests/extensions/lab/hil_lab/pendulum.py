"""A pendulum with a motor at its pivot: model, controller, report section, figure."""

from collections.abc import Iterator, Mapping
from math import cos, sin
from typing import Any, Literal

import numpy as np

from hil.config.table import Positive, Table
from hil.experiment.figure import Figure
from hil.experiment.kind import ControlInputs, ControllerKind, SystemKind, SystemRun
from hil.experiment.signal_pid import SIGNAL_PID
from hil.experiment.twin import twin_of
from hil.loop.frame import Column
from hil.mechanics.sma.wire import SmaWires
from hil.pages.section import Section

G_M_PER_S2 = 9.81
STEPS = 10  # of the integration in a period


class PendulumTable(Table):
    """A point mass on a rod: m l^2 theta'' = u - c theta' - m g l sin(theta)."""

    kind: Literal["pendulum"]
    mass_kg: Positive
    length_m: Positive
    damping_N_m_s: Positive


class Pendulum:
    """Steps the pendulum from rest, hanging down."""

    cell_names = ()
    inputs = ("motor.torque_N_m",)
    outputs = ("pendulum.angle_rad",)

    def __init__(self, table: PendulumTable, period_s: float) -> None:
        self._table, self.period_s = table, period_s
        self.wires = SmaWires([], np.zeros(0))
        self.y = np.zeros(1)
        self._rate = 0.0

    def step(self, drive: Any, inputs: Any) -> None:
        """Advance one period; semi-implicit Euler."""
        t, dt_s = self._table, self.period_s / STEPS
        inertia_kg_m2 = t.mass_kg * t.length_m**2
        for _ in range(STEPS):
            weight_N_m = t.mass_kg * G_M_PER_S2 * t.length_m * sin(self.y[0])
            torque_N_m = inputs[0] - t.damping_N_m_s * self._rate - weight_N_m
            self._rate += dt_s * torque_N_m / inertia_kg_m2
            self.y[0] += dt_s * self._rate


class SwingTable(Table):
    """Pushes for `push_s` with `torque_N_m`, then lets the pendulum swing."""

    kind: Literal["push"]
    push_s: Positive
    torque_N_m: float


class Push:
    """A torque for a while, then none."""

    columns = (Column("push_N_m", "N m", "commanded", "torque that is asked for"),)

    def __init__(self, given: ControlInputs) -> None:
        self._table = given.tables.controller

    def bind(self, frame: Any, measured: Any, commands: Any) -> None:
        self._values, self._at = frame.values, frame.index("push_N_m")
        self._outputs = commands.outputs

    def step(self, t_s: float) -> None:
        torque_N_m = self._table.torque_N_m if t_s < self._table.push_s else 0.0
        self._values[self._at] = self._outputs[0] = torque_N_m

    def restart(self) -> None:
        """Nothing adds up."""


def check_push(run: SystemRun) -> Iterator[tuple[str, str]]:
    """What is wrong with the controller on this rig: (key, text) pairs."""
    push_s = run.tables.controller.push_s
    if push_s > run.duration_s:
        yield f"controller.push_s = {push_s:g}", f"the run ends at {run.duration_s:g} s"


def sections(run: Any) -> list[Section]:
    """What a report adds: the largest swing."""
    largest_rad = float(np.nanmax(np.abs(run["angle_measured_rad"].values)))
    return [Section("The swing", [f"The largest angle is {np.rad2deg(largest_rad):.1f} degrees."])]


class Rod:
    """The rod as a stick figure: forward to the right, up."""

    bones, muscles, activations = ("rod",), (), ()
    angles = ("angle_measured_rad",)
    start = np.zeros(1)

    def __init__(self, length_m: float) -> None:
        self._length_m = length_m

    def place(self, pose: Any) -> tuple[list[Any], list[Any]]:
        end = self._length_m * np.array([sin(pose[0]), -cos(pose[0])])
        return [np.array([[0.0, 0.0], end])], []


def figure(settings: Mapping[str, Any]) -> Figure:
    """What the window draws."""
    return Figure(mechanism=Rod(settings["model"]["length_m"]))


SYSTEM = SystemKind(
    kind="pendulum",
    table=PendulumTable,
    build=Pendulum,
    estimator=twin_of,
    controllers={**SIGNAL_PID, "push": ControllerKind(SwingTable, Push, check_push)},
    sections=sections,
    figure=figure,
)
