"""Standard uncertainties of the simulated and the measured force or displacement.

Values of a displacement are in m, although their names here end with _N.

- u_input: uncertainty due to the model's parameters, by Monte Carlo simulation with the covariances
  of the run's calibration records (JCGM 101:2008).
- u_D: uncertainty of the readings: coefficients of the transducer's polynomial (JCGM 100:2008,
  eq. 13) or the slope of a displacement sensor, noise, and the converter's step over sqrt(12).
- u_num: numerical uncertainty: the difference to the same model at half the period.

    u_val = sqrt(u_input^2 + u_D^2 + u_num^2)

Source: ASME V&V 20-2009, sections 1 and 5.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hil.calibration.files import Calibration
from hil.identification import parameters
from hil.identification.grey_box import GreyBox
from hil.identification.known import Known
from hil.identification.runs import RunData
from hil.mechanics.arrays import Array
from hil.systems.array.build import build_activation, build_model
from hil.systems.array.model.response import response
from hil.systems.array.model.system import ArraySystem

DRAWS, AT_ONCE = 200, 20


@dataclass(frozen=True)
class Uncertainty:
    """Standard uncertainties at every reading, and the simulated forces.

    Attributes
    ----------
    simulated_N : (k,) array, simulated force S as the channel would read it
    drawn_N : (m, k) array, the same with drawn parameters; empty without records
    u_input_N, u_D_N, u_num_N : (k,) arrays
    systematic_N : (k,) array
        The part of u_D that is equal at every reading of one force, due to the transducer.
    alone_N : dict of str to float, RMS effect of one standard uncertainty of each single parameter
    """

    simulated_N: Array
    drawn_N: Array
    u_input_N: Array
    u_D_N: Array
    u_num_N: Array
    systematic_N: Array
    alone_N: Mapping[str, float]

    @property
    def u_val_N(self) -> Array:
        return np.asarray(np.sqrt(self.u_input_N**2 + self.u_D_N**2 + self.u_num_N**2))


class MeasuringChannel(NamedTuple):
    """What is known of the channel that measured a run.

    Attributes
    ----------
    transducer : record of a force channel; None if it has none
    noise_N : RMS noise of the channel; NaN if unknown
    u_slope : relative standard uncertainty of the slope of a displacement sensor
    """

    transducer: Calibration | None
    noise_N: float
    u_slope: float = 0.0


def uncertainty_of(
    tables: parameters.Tables,
    run: RunData,
    known: Known,
    channel: MeasuringChannel,
    seed: int = 0,
    done: Callable[[int], None] = lambda n_more: None,
) -> Uncertainty:
    """Uncertainty of one run.

    Parameters
    ----------
    known : covariance of the parameters, from calibration records
    done : is called with the number of further draws
    """
    box = GreyBox(tables, known.keys, (run,))
    simulated = box.readings(box.start)[0]
    drawn = np.zeros((0, len(simulated)))
    if known.keys:
        rng = np.random.default_rng(seed)
        # Normal distribution of the values; at least a tenth, because stiffnesses are positive.
        shifts = rng.multivariate_normal(np.zeros(len(known.keys)), known.covariance, DRAWS)
        thetas = box.start + np.log(np.maximum(1.0 + shifts, 0.1))
        parts = []
        for some in np.array_split(thetas, DRAWS // AT_ONCE):
            parts += [readings for (readings,) in box.all_readings(some)]
            done(len(some))
        drawn = np.array(parts)
    # RMS, because relative uncertainties near or above 1 give a few large deviations.
    u_input = np.sqrt(np.mean((drawn - simulated) ** 2, axis=0)) if len(drawn) else 0.0 * simulated
    systematic = channel.u_slope * np.abs(run.measured)
    transducer, noise_N = channel.transducer, channel.noise_N
    if transducer is not None:
        forces = np.linspace(run.measured.min(), run.measured.max(), 33)
        systematic = np.interp(
            run.measured, forces, [transducer.force_uncertainty_N(F) for F in forces]
        )
    random_N = np.hypot(noise_N if np.isfinite(noise_N) else 0.0, run.reading.step_N / np.sqrt(12))
    return Uncertainty(
        simulated,
        drawn,
        u_input,
        np.hypot(systematic, random_N),
        np.abs(_at_half_the_period(box, run) - simulated),
        systematic,
        _alone(box, known),
    )


def _alone(box: GreyBox, known: Known) -> dict[str, float]:
    """RMS of half the difference between one standard uncertainty more and less, by parameter."""
    sigma = np.sqrt(np.diag(known.covariance))
    more, less = np.diag(np.log1p(sigma)), np.diag(np.log(np.maximum(1.0 - sigma, 0.1)))
    readings = [one for (one,) in box.all_readings([*(box.start + more), *(box.start + less)])]
    n = len(known.keys)
    return {
        key: float(np.sqrt(np.mean((up - down) ** 2)) / 2.0)
        for key, up, down in zip(known.keys, readings[:n], readings[n:], strict=True)
    }


def _at_half_the_period(box: GreyBox, run: RunData) -> Array:
    table = box.table_at(box.start)
    model = build_model(table)
    system = ArraySystem(model, build_activation(table), run.period_s / 2.0)
    if np.isfinite(run.ambient_C):
        system.wires.set_ambient(run.ambient_C, settled=True)
    cells, moves_m = np.repeat(run.cells, 2, axis=0), np.repeat(run.moves_m, 2, axis=0)
    # A driven point moves evenly within a period, so it is half way after half of it.
    moves_m[::2] = 0.5 * (run.moves_m + np.vstack((0.0 * run.moves_m[:1], run.moves_m[:-1])))
    force_N = response(system, model.outputs.index(run.signal), cells, moves_m)
    return np.asarray(run.reading.of(force_N[::2], run.period_s)[run.rows])
