"""Standard uncertainties of the simulated and the measured force or displacement.

Values of a displacement are in m, although their names here end with _N.

- u_input: uncertainty due to the model's parameters, propagated with the covariances of the run's
  calibration records. The model runs with its parameters moved by one standard uncertainty along
  each principal axis of the covariance, y(+j) and y(-j), beside the model S itself:

      u_input^2 = sum over j of ((y(+j) - S)^2 + (y(-j) - S)^2) / 2

  For a model that is linear within an uncertainty this is JCGM 100:2008, eq. (13), evaluated as in
  its note 2 of 5.1.3. Squares are taken about S, so that a parameter at a turning point counts.
- u_D: uncertainty of the readings: coefficients of the transducer's polynomial (JCGM 100:2008,
  eq. 13) or the slope of a displacement sensor, noise, and the converter's step over sqrt(12).
- u_num: numerical uncertainty: the difference to the same model at half the period.

    u_val = sqrt(u_input^2 + u_D^2 + u_num^2)

Source: ASME V&V 20-2009, sections 1 and 5; principal axes: Julier & Uhlmann 2004, Unscented
filtering and nonlinear estimation, section III.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hil.calibration.files import Calibration
from hil.identification import parameters
from hil.identification.grey_box import GreyBox
from hil.identification.known import Known
from hil.identification.runs import RunData
from hil.mechanics.arrays import Array
from hil.systems.array.model.response import response, responses
from hil.systems.array.model.system import ArraySystem

LEAST = 0.1  # share of its value to which a parameter falls at most: stiffnesses are positive
LONG = 400_000  # steps of all models that take longer than compiling them as one loop
NONE = 1e-9  # share of the largest standard uncertainty below which an axis has none


@dataclass(frozen=True)
class Uncertainty:
    """Standard uncertainties at every reading, and the simulated forces.

    Attributes
    ----------
    simulated_N : (k,) array, simulated force S as the channel would read it
    moved_N : (2J, k) array, the same with moved parameters; empty without records
    u_D_N, u_num_N : (k,) arrays
    systematic_N : (k,) array
        The part of u_D that is equal at every reading of one force, due to the transducer.
    """

    simulated_N: Array
    moved_N: Array
    u_D_N: Array
    u_num_N: Array
    systematic_N: Array

    @property
    def u_input_N(self) -> Array:
        return spread(self.moved_N, self.simulated_N)

    @property
    def u_val_N(self) -> Array:
        return combined(self.u_input_N, self.u_D_N, self.u_num_N)


class MeasuringChannel(NamedTuple):
    """What is known of the channel that measured a run.

    Attributes
    ----------
    transducer : record of a force channel; None if it has none
    noise_N : RMS noise of the readings, that of their rounding included; NaN if unknown
    u_slope : relative standard uncertainty of the slope of a displacement sensor
    """

    transducer: Calibration | None
    noise_N: float
    u_slope: float = 0.0

    def systematic_N(self, measured: Array) -> Array:
        """Uncertainty that is equal at every reading of one value."""
        if self.transducer is None or not len(measured):
            return self.u_slope * np.abs(measured)
        forces = np.linspace(np.nanmin(measured), np.nanmax(measured), 33)
        u_N = [self.transducer.force_uncertainty_N(F) for F in forces]
        return np.asarray(np.interp(measured, forces, u_N))

    def u_D_N(self, systematic_N: Array, step_N: float) -> Array:
        """Uncertainty of the readings of a converter with this step."""
        noise_N = self.noise_N if np.isfinite(self.noise_N) else step_N / np.sqrt(12.0)
        return np.asarray(np.hypot(systematic_N, noise_N))


def combined(u_input: Array, u_D: Array, u_num: Array) -> Array:
    """u_val from its parts."""
    return np.asarray(np.sqrt(u_input**2 + u_D**2 + u_num**2))


def spread(moved: Array, simulated: Array) -> Array:
    """u_input from (2J, k) values with moved parameters, about those of the model."""
    return np.asarray(np.sqrt(0.5 * np.sum((moved - simulated) ** 2, axis=0)))


def moved_parameters(known: Known, start: Array) -> list[Array]:
    """Logarithms of the parameters, one standard uncertainty off along every principal axis."""
    variances, axes = np.linalg.eigh(known.covariance)
    sigma = np.sqrt(np.maximum(variances, 0.0))
    shifts = (axes * sigma).T[sigma > NONE * sigma.max(initial=0.0)]
    return [start + np.log(np.maximum(1.0 + shift, LEAST)) for shift in (*shifts, *-shifts)]


def _whole(moved: Array, simulated: Array, shares: Array) -> Array:
    """Values with moved parameters, (2J, k), from those at a share of each of these steps.

    Of an axis that ends at the model on one side, what is beyond is the mirror of the other side.
    """
    short = np.flatnonzero((shares > 0.0) & (shares < 1.0))
    moved[short] = simulated + (moved[short] - simulated) / shares[short, None]
    other = np.roll(np.arange(len(shares)), len(shares) // 2)
    ends = np.flatnonzero((shares == 0.0) & (shares[other] > 0.0))
    moved[ends] = 2.0 * simulated - moved[other[ends]]
    return moved


def _shares(box: GreyBox, steps: Sequence[Array]) -> Array:
    """The share of every step from the start at whose end there is a model.

    None of a step beyond a parameter's range, such as a `core_share` above 1, whose opposite is
    within.
    """
    low, high = parameters.log_limits(box.free)
    ends = box.start + np.array(steps).reshape(len(steps), len(box.start))
    inside = np.all((ends >= low) & (ends <= high), axis=1)
    mirrored = ~inside & np.roll(inside, len(inside) // 2)
    shares = [0.0 if no else box.reach(box.start, step)
              for step, no in zip(steps, mirrored, strict=True)]  # fmt: skip
    return np.array(shares)


class MovedModels:
    """A model, the same with moved parameters, and at half the period, stepped together.

    Where moved parameters are no model (a wire whose A_s_C is above its A_f_C), a part of the way
    is taken, and its effect in proportion. Where there is no part, or a parameter leaves its range,
    the effect is that of the opposite way, mirrored.

    Parameters
    ----------
    signal : output of the model
    ambient_C : temperature of the air, if it is measured
    """

    def __init__(
        self, box: GreyBox, known: Known, signal: str, period_s: float, ambient_C: float = np.nan
    ) -> None:
        steps = [theta - box.start for theta in moved_parameters(known, box.start)]
        self._shares = _shares(box, steps)
        thetas = [box.start + s * step for s, step in zip(self._shares, steps, strict=True)]
        models = [box.model(theta) for theta in (box.start, *thetas)]
        self._systems = [ArraySystem(model, cells, period_s) for model, cells in models]
        model, cells = box.model(box.start)
        self._halved = ArraySystem(model, cells, period_s / 2.0)
        self._output = model.outputs.index(signal)
        self._before_m = np.zeros(len(model.driven))
        self.set_ambient(ambient_C, settled=True)

    def set_ambient(self, ambient_C: float, *, settled: bool) -> None:
        """Set the temperature of the air, of settled wires and clamps too; NaN leaves it."""
        for system in (*self._systems, self._halved):
            if np.isfinite(ambient_C):
                system.wires.set_ambient(ambient_C, settled=settled)

    def step(self, cells: NDArray[np.uint8], moves_m: Array) -> tuple[Array, Array, Array]:
        """Run further periods; (n + 1, ...) values, of which the first is before them.

        Parameters
        ----------
        cells, moves_m : as in `hil.systems.array.model.response.responses`

        Returns
        -------
        simulated_N : (n + 1,) array
        moved_N : (2J, n + 1) array
        halved_N : (n + 1,) array, of the model at half the period
        """
        twice, moves = np.repeat(cells, 2, axis=0), np.repeat(moves_m, 2, axis=0)
        # A driven point moves evenly within a period, so it is half way after half of it.
        if moves_m.size:
            moves[::2] = 0.5 * (moves_m + np.vstack((self._before_m, moves_m[:-1])))
            self._before_m = moves_m[-1]
        if len(cells) * len(self._systems) > LONG:
            outputs = np.array([self._output])
            forces = [one[:, 0] for one in responses(self._systems, outputs, cells, moves_m)]
            halved = response(self._halved, self._output, twice, moves)[::2]
        else:
            forces = [self._stepped(system, cells, moves_m) for system in self._systems]
            halved = self._stepped(self._halved, twice, moves)[::2]
        moved = np.array(forces[1:]).reshape(-1, len(halved))
        return forces[0], _whole(moved, forces[0], self._shares), halved

    def _stepped(self, system: ArraySystem, cells: NDArray[np.uint8], moves_m: Array) -> Array:
        force_N = np.empty(len(cells) + 1)
        force_N[0] = system.y[self._output]
        moves_m = moves_m if moves_m.size else np.zeros((len(cells), len(system.inputs)))
        for k, on in enumerate(cells):
            system.step(on, moves_m[k])
            force_N[k + 1] = system.y[self._output]
        return force_N


def uncertainty_of(
    tables: parameters.Tables, run: RunData, known: Known, channel: MeasuringChannel
) -> Uncertainty:
    """Uncertainty of one run.

    Parameters
    ----------
    known : covariance of the parameters, from calibration records
    """
    box = GreyBox(tables, known.keys, (run,))
    models = MovedModels(box, known, run.signal, run.period_s, run.ambient_C)
    simulated, moved, halved = models.step(run.cells, run.moves_m)

    def read(force_N: Array) -> Array:
        return np.asarray(run.reading.of(force_N, run.period_s)[run.rows])

    systematic_N = channel.systematic_N(run.measured)
    read_N = read(simulated)
    return Uncertainty(
        read_N,
        np.array([read(force_N) for force_N in moved]).reshape(-1, len(read_N)),
        channel.u_D_N(systematic_N, run.reading.step_N),
        np.abs(read(halved) - read_N),
        systematic_N,
    )


def alone_N(tables: parameters.Tables, run: RunData, known: Known) -> Mapping[str, float]:
    """RMS of half the difference between one standard uncertainty more and less, by parameter."""
    box = GreyBox(tables, known.keys, (run,))
    sigma = np.sqrt(np.diag(known.covariance))
    n = len(known.keys)
    if not n:
        return {}
    steps = [*np.diag(np.log1p(sigma)), *np.diag(np.log(np.maximum(1.0 - sigma, LEAST)))]
    shares = _shares(box, steps)
    thetas = [box.start, *(box.start + s * step for s, step in zip(shares, steps, strict=True))]
    still, *readings = (one for (one,) in box.all_readings(thetas))
    readings = list(_whole(np.array(readings).reshape(2 * n, -1), still, shares))
    return {
        key: float(np.sqrt(np.mean((up - down) ** 2)) / 2.0)
        for key, up, down in zip(known.keys, readings[:n], readings[n:], strict=True)
    }
