"""Observer of the impact rig's arm: its model, corrected by the encoders."""

from collections.abc import Sequence

import numpy as np

from hil.loop.channels import Channel, Readings
from hil.loop.frame import Column, Commands, Frame
from hil.systems.pantograph.system import PantographSystem


class ArmObserver:
    """Model of an arm, corrected by the encoders.

    An open-loop model would drift, because a small torque error is integrated twice. Every period
    the model advances with the commanded torques, and its values of all channels are written to
    the row. Then its angles and rates are corrected by the encoder readings,

        q += (1 - p^2) e,   q' += (1 - p)^2 e / h,   p = exp(-h / CORRECTION_S)

    The observer uses no measured force: its forces are those of the model's plate.

    Source: Benedict & Bordner 1962 (alpha-beta filter, critically damped).

    Parameters
    ----------
    outputs : sequence of int, index of the system's output that each channel measures
    indices : sequence of int, index of each channel in the readings
    driven : sequence of int, index of the system's input that each actuator sets
    """

    CORRECTION_S = 0.005  # assumed
    ANGLES = ("arm.q1_rad", "arm.q3_rad")

    _ESTIMATES = (
        Column("tip_x_estimate_m", "m", "model", "the tip by model and encoders"),
        Column("tip_y_estimate_m", "m", "model", "the tip by model and encoders"),
        Column("tip_vx_estimate_m_per_s", "m/s", "model", "the tip by model and encoders"),
        Column("tip_vy_estimate_m_per_s", "m/s", "model", "the tip by model and encoders"),
        Column("T_c_estimate_J", "J", "model", "kinetic energy that an impact would remove"),
        Column("T_a_estimate_J", "J", "model", "kinetic energy that an impact would leave"),
    )

    def __init__(
        self,
        system: PantographSystem,
        channels: Sequence[Channel],
        outputs: Sequence[int],
        indices: Sequence[int],
        driven: Sequence[int],
    ) -> None:
        self._system = system
        self._channels = channels
        self._outputs = np.array(outputs, dtype=np.int64)
        measured = [system.outputs[output] for output in outputs]
        self._angles = [indices[measured.index(name)] for name in self.ANGLES]
        self._driven = np.array(driven, dtype=np.int64)
        self._inputs = np.zeros(len(system.inputs))
        pole = np.exp(-system.period_s / self.CORRECTION_S)
        self._gains = 1.0 - pole**2, (1.0 - pole) ** 2 / system.period_s
        self._cells = np.zeros(0, dtype=np.uint8)
        self._started = False

    @property
    def columns(self) -> list[Column]:
        modelled = [
            Column(c.column("model"), c.units, "model", f"{c.name} by model and encoders")
            for c in self._channels
        ]
        return [*modelled, *self._ESTIMATES]

    def bind(self, frame: Frame, readings: Readings, commands: Commands) -> None:
        names = [column.name for column in self.columns]
        self._model = frame.span(names[: len(self._channels)])
        self._estimates = frame.span(names[len(self._channels) :])
        self._measured = readings.measured
        self._commanded = commands.outputs

    def step(self, n_periods: int) -> None:
        arm, q = self._system.arm, self._measured[self._angles]
        seen = bool(np.isfinite(q).all())
        if self._started:
            self._inputs[self._driven] = self._commanded
            for _ in range(n_periods):
                self._system.step(self._cells, self._inputs)
        if seen and not (self._started and np.isfinite(arm.x).all()):
            arm.place(q)
        self._started = self._started or seen
        self._system.look()
        self._model[:] = self._system.y[self._outputs]
        if seen:
            error = q - arm.x[:2]
            arm.correct(self._gains[0] * error, self._gains[1] * error)
        self._estimates[:4] = arm.tip()[:4]
        self._estimates[4:] = arm.energies_J()
