"""The impact rig as a plant: motor torques in, joint angles and the tip's forces out."""

from dataclasses import dataclass

import numpy as np

from hil.errors import ModelError
from hil.mechanics.arrays import Array
from hil.mechanics.sma.wire import SmaWires
from hil.mechanics.system import Drive
from hil.systems.pantograph.contact import ArmOnPlate, Plate
from hil.systems.pantograph.linkage import Pantograph, Pose


@dataclass(frozen=True)
class Sensor:
    """Mounting of the force sensor on the tip: its rotation from the plate's normal."""

    misalignment_rad: float = 0.0

    def turned(self, f_n_N: float, f_t_N: float) -> tuple[float, float]:
        """Return the force along the sensor's own axes."""
        c, s = np.cos(self.misalignment_rad), np.sin(self.misalignment_rad)
        return float(c * f_n_N + s * f_t_N), float(c * f_t_N - s * f_n_N)


class PantographSystem:
    """An `ArmOnPlate` with the interface of a plant (`hil.mechanics.system`).

    Outputs are the motors' angles and the force on the tip in the sensor's axes: normal (positive
    if the plate pushes) and tangential (positive along x). The tip's true position is for
    comparison only.
    """

    cell_names: tuple[str, ...] = ()
    inputs = ("arm.torque1_N_m", "arm.torque3_N_m")
    outputs = ("arm.q1_rad", "arm.q3_rad", "tip.normal_N", "tip.tangential_N", "tip.x_m", "tip.y_m")

    def __init__(
        self, rig: Pantograph, plate: Plate, start: Pose, sensor: Sensor, period_s: float,
        damping_N_m_s_per_rad: float,
    ) -> None:  # fmt: skip
        if not (np.isfinite(damping_N_m_s_per_rad) and damping_N_m_s_per_rad >= 0.0):
            raise ModelError(
                f"damping_N_m_s_per_rad = {damping_N_m_s_per_rad:g}: must not be below zero"
            )
        self.arm = ArmOnPlate(rig, plate, start, damping_N_m_s_per_rad)
        self.period_s = period_s
        self.wires = SmaWires([], np.zeros(0))
        self._sensor = sensor
        self._y = np.zeros(len(self.outputs))
        self.look()

    @property
    def y(self) -> Array:
        """Current outputs, in the order of `outputs`."""
        return self._y

    def step(self, drive: Drive, inputs: Array) -> None:
        """Advance one period with both torques held constant."""
        self.arm.advance(inputs, self.period_s)
        self.look()

    def look(self) -> None:
        """Update `y` from the arm's state."""
        x, y, _, _, f_t, f_n = self.arm.tip()
        self._y[:2] = self.arm.x[:2]
        self._y[2], self._y[3] = self._sensor.turned(f_n, f_t)
        self._y[4], self._y[5] = x, y
