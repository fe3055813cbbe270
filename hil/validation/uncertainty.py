"""How sure the two curves are before they are compared.

- u_input: of the model's parameters, from the covariances of the records that the run used, drawn
  many times and run through the model (JCGM 101:2008, Monte Carlo).
- u_D: of the readings: coefficients of the transducer's polynomial (JCGM 100:2008, eq. 13), noise,
  and the converter's step over sqrt(12).
- u_num: of the numerical solution: the same model stepped at half the period.

    u_val = sqrt(u_input^2 + u_D^2 + u_num^2)

Source: ASME V&V 20-2009, sections 1 and 5.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hil.calibration.files import Calibration
from hil.identification import parameters
from hil.identification.grey_box import GreyBox
from hil.identification.known import Known
from hil.identification.runs import RunData
from hil.systems.array.build import build_activation, build_model
from hil.systems.array.response import response
from hil.systems.array.system import ArraySystem

DRAWS = 200
Series = NDArray[np.float64]


@dataclass(frozen=True)
class Uncertainty:
    """Standard uncertainties at every reading, and what the model might have said.

    Attributes
    ----------
    simulated_N : (k,) array
        S, as the channel would read it.
    drawn_N : (m, k) array
        The same with parameters as sure as their records; no rows without records.
    u_input_N, u_D_N, u_num_N : (k,) arrays
    systematic_N : (k,) array
        The part of u_D that is the same at every reading of one force: the transducer's.
    alone_N : dict of str to float
        RMS of what each parameter, a standard uncertainty either way, does by itself.
    """

    simulated_N: Series
    drawn_N: Series
    u_input_N: Series
    u_D_N: Series
    u_num_N: Series
    systematic_N: Series
    alone_N: Mapping[str, float]

    @property
    def u_val_N(self) -> Series:
        return np.asarray(np.sqrt(self.u_input_N**2 + self.u_D_N**2 + self.u_num_N**2))


def uncertainty_of(
    tables: parameters.Tables,
    run: RunData,
    known: Known,
    transducer: Calibration | None,
    noise_N: float,
    seed: int = 0,
    done: Callable[[int], None] = lambda n_more: None,
) -> Uncertainty:
    """Of one run; `done` hears of every draw."""
    box = GreyBox(tables, known.keys, (run,))
    simulated = box.readings(box.start)[0]
    drawn = np.zeros((0, len(simulated)))
    if known.keys:
        rng = np.random.default_rng(seed)
        # Normal in the values, as their covariance says; kept above a tenth, for stiffnesses are.
        shifts = rng.multivariate_normal(np.zeros(len(known.keys)), known.covariance, DRAWS)
        thetas = box.start + np.log(np.maximum(1.0 + shifts, 0.1))
        drawn = np.empty((DRAWS, len(simulated)))
        for i, theta in enumerate(thetas):
            drawn[i] = box.readings(theta)[0]
            done(1)
    # Of relative standard uncertainties near or above 1 few draws reach far: the root mean square.
    u_input = np.sqrt(np.mean((drawn - simulated) ** 2, axis=0)) if len(drawn) else 0.0 * simulated
    systematic = np.zeros(len(simulated))
    if transducer is not None:
        forces = np.linspace(run.force_N.min(), run.force_N.max(), 33)
        systematic = np.interp(
            run.force_N, forces, [transducer.force_uncertainty_N(F) for F in forces]
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
    """Half the way between a standard uncertainty more and less of each parameter."""
    found = {}
    for i, key in enumerate(known.keys):
        sigma = float(np.sqrt(known.covariance[i, i]))
        step = np.eye(len(known.keys))[i]
        up = box.readings(box.start + np.log1p(sigma) * step)[0]
        down = box.readings(box.start + np.log(max(1.0 - sigma, 0.1)) * step)[0]
        found[key] = float(np.sqrt(np.mean((up - down) ** 2)) / 2.0)
    return found


def _at_half_the_period(box: GreyBox, run: RunData) -> Series:
    table = box.table_at(box.start)
    model = build_model(table)
    system = ArraySystem(model, build_activation(table), run.period_s / 2.0)
    twice = response(system, model.outputs.index(run.signal), np.repeat(run.cells, 2, axis=0))
    return np.asarray(run.reading.of(twice[::2], run.period_s)[run.rows])
