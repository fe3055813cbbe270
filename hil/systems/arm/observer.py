"""Observer of a three-link arm: its model, corrected by encoders and motion capture.

An open-loop model would drift. Every period the model advances with the commanded activations. Its
value of a channel, delayed by the known delay of the channel, is compared with the reading. The
rotation e between the two corrects the link's current attitude and angular velocity,

    A <- A exp(g1 e),   Omega += g2 e / h,   g1 = 1 - p^2, g2 = (1 - p)^2, p = exp(-h / T)

so the model bridges the delay. Source: Benedict & Bordner 1962 (alpha-beta filter,
critically damped), applied to attitudes.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from hil.compiled import njit
from hil.devices.tables import DeviceTable
from hil.loop.channels import Channel, Readings, RigLayout
from hil.loop.frame import Column, Commands, Frame, unit_suffix, units
from hil.mechanics.arrays import Array
from hil.rig.calibrated import cards_of
from hil.rig.instruments import outputs_of, signals_of
from hil.systems.arm.control import ArmEstimate
from hil.systems.arm.system import PLACES, ArmSystem
from hil.systems.arm.tables import PointingTable

N_ANGLES = 9


SEEN = np.dtype([("output", np.int64), ("index", np.int64), ("delay_periods", np.int64)])


class LinkObserver:
    """Model and observer of the arm.

    Parameters
    ----------
    seen : index of the system's output that each channel measures, its own in the readings, delay
    inputs : index of the command for each of the system's inputs, -1 for none
    correction_s : T
    """

    def __init__(
        self,
        system: ArmSystem,
        channels: Sequence[Channel],
        seen: Sequence[tuple[int, int, int]],
        inputs: Sequence[int],
        correction_s: float,
    ) -> None:
        self.estimate = ArmEstimate()
        self._system = system
        self._channels = channels
        self._seen = np.array(seen, dtype=SEEN)
        self._taken = np.array(inputs, dtype=np.int64)
        pole = np.exp(-system.period_s / correction_s)
        self._gains = 1.0 - pole**2, (1.0 - pole) ** 2 / system.period_s
        self._past = np.tile(system.y, (int(self._seen["delay_periods"].max(initial=0)) + 1, 1))
        self._newest = 0
        self._activations = np.zeros(len(system.inputs))
        self._none = np.zeros(0)
        self._started = False
        self._estimates = [
            *(f"{name[:-4].replace('.', '_')}_estimate_rad" for name in system.outputs[:N_ANGLES]),
            *(f"{place}_{axis}_estimate_m" for place in ("shoulder", *PLACES) for axis in "xyz"),
        ]

    @property
    def columns(self) -> list[Column]:
        source = "by model and instruments"
        return [
            *(
                Column(c.column("model"), units(c.suffix), "model", f"{c.name} {source}")
                for c in self._channels
            ),
            *(
                Column(
                    name,
                    units(unit_suffix(name)),
                    "model",
                    f"{name.split('_estimate')[0]} {source}",
                )
                for name in self._estimates
            ),
        ]

    def bind(self, frame: Frame, readings: Readings, commands: Commands) -> None:
        names = [column.name for column in self.columns]
        self._model = frame.span(names[: len(self._channels)])
        self._row = frame.span(names[len(self._channels) :])
        self._measured = readings.measured
        self._commanded = commands.outputs

    def step(self, n_periods: int) -> None:
        system = self._system
        if self._started:
            for i, at in enumerate(self._taken):
                self._activations[i] = self._commanded[at] if at >= 0 else 0.0
            for _ in range(n_periods):
                system.step(self._none, self._activations)
                self._newest = (self._newest + 1) % len(self._past)
                self._past[self._newest] = system.y
        self._started = True
        past, newest = self._past, self._newest
        error = _errors(self._seen, past, newest, self._measured, self._model)
        _correct(system.q, system.omega, past, newest, error, self._gains)
        _attitudes(system.q, self.estimate.A)
        self.estimate.omega[:] = system.omega
        system.look()
        self._row[:N_ANGLES] = system.y[:N_ANGLES]
        self._row[N_ANGLES : N_ANGLES + 3] = 0.0
        self._row[N_ANGLES + 3 :] = system.y[N_ANGLES:]


def link_observer(
    table: PointingTable,
    system: ArmSystem,
    layout: RigLayout,
    devices: Mapping[str, DeviceTable],
) -> LinkObserver:
    """Return the observer of a rig; it uses the channels that measure the arm."""
    signals, commanded = signals_of(devices), outputs_of(devices).values()
    channels = [channel for channel in layout.channels if signals[channel.name]]
    drives = [output.drives for output in commanded]
    encoders = {
        name
        for card in cards_of(devices).values()
        for name, channel in card.channels.items()
        if channel.turns
    }
    delays_s = [
        table.encoder_delay_s if c.name in encoders else table.tracker_delay_s for c in channels
    ]
    return LinkObserver(
        system,
        channels,
        [
            (
                system.outputs.index(signals[c.name]),
                layout.index(c.name),
                round(s / system.period_s),
            )
            for c, s in zip(channels, delays_s, strict=True)
        ],
        [drives.index(name) if name in drives else -1 for name in system.inputs],
        table.correction_s,
    )


@njit(cache=True, error_model="numpy")
def _errors(
    seen: NDArray[np.void], past: Array, newest: int, measured: Array, model: Array
) -> Array:
    """Write the model's readings; returns errors of the angles, of NaN readings 0."""
    error = np.zeros((3, 3))
    for c in range(len(seen)):
        output, reading = seen[c]["output"], measured[seen[c]["index"]]
        model[c] = past[(newest - seen[c]["delay_periods"]) % len(past), output]
        if output < N_ANGLES and np.isfinite(reading):
            miss = reading - model[c]
            error[output // 3, output % 3] = np.arctan2(np.sin(miss), np.cos(miss))
    return error


@njit(cache=True, error_model="numpy")
def _correct(
    q: Array, omega: Array, past: Array, newest: int, error: Array, gains: tuple[float, float]
) -> None:
    """Correct the state, and those of the past."""
    for i in range(3):
        e1, e2, e3 = error[i, 0], error[i, 1], error[i, 2]
        for row in range(len(past)):
            for k in range(3):
                past[row, 3 * i + k] += gains[0] * error[i, k]
        t2, t3 = past[newest, 3 * i + 1], past[newest, 3 * i + 2]
        s2, c2, s3, c3 = np.sin(t2), np.cos(t2), np.sin(t3), np.cos(t3)
        # Omega = B^-1 Theta', which holds for small rotations too
        turn = (c2 * c3 * e1 + s3 * e2, -c2 * s3 * e1 + c3 * e2, s2 * e1 + e3)
        w, x, y, z = q[i, 0], q[i, 1], q[i, 2], q[i, 3]
        a, b, d = 0.5 * gains[0] * turn[0], 0.5 * gains[0] * turn[1], 0.5 * gains[0] * turn[2]
        w, x, y, z = (
            w - x * a - y * b - z * d, x + w * a + y * d - z * b,
            y + w * b + z * a - x * d, z + w * d + x * b - y * a,
        )  # fmt: skip
        size = np.sqrt(w * w + x * x + y * y + z * z)
        q[i, 0], q[i, 1], q[i, 2], q[i, 3] = w / size, x / size, y / size, z / size
        for k in range(3):
            omega[i, k] += gains[1] * turn[k]


@njit(cache=True, error_model="numpy")
def _attitudes(q: Array, A: Array) -> None:
    """Of unit quaternions."""
    for i in range(3):
        w, x, y, z = q[i, 0], q[i, 1], q[i, 2], q[i, 3]
        A[i, 0, 0], A[i, 0, 1], A[i, 0, 2] = (
            1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)
        )  # fmt: skip
        A[i, 1, 0], A[i, 1, 1], A[i, 1, 2] = (
            2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)
        )  # fmt: skip
        A[i, 2, 0], A[i, 2, 1], A[i, 2, 2] = (
            2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)
        )  # fmt: skip
