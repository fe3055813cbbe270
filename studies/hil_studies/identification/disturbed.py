"""`hil study validation`: how often bands and intervals hold on readings that are disturbed.

The rigs are those of `hil study identification`; their parameters are drawn from the covariance
that the model states. For each the band of a validation is made, and the share of readings in it is
counted: in the mean over the rigs it should be 95 %. The same readings are then disturbed, and also
identified, where a flag says that the identification noticed it.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import Field
from scipy.signal import lfilter

from hil.config.table import Table
from hil.identification.known import Known
from hil.identification.runs import RunData
from hil.mechanics.arrays import Array
from hil.pages.study import as_table, check
from hil.record.progress import count_progress
from hil.validation.band import Z_95, noise_rms_N
from hil.validation.uncertainty import MeasuringChannel, uncertainty_of
from hil_studies.identification.study import DRAWN, OFF, TABLES, Rig, make_rig, trial

BELIEVED = Known(DRAWN, OFF**2 * np.eye(len(DRAWN)), ())
LATE_READINGS = 2
HUM_Hz = 50.0


class Values(Table):
    """Settings of the study."""

    rigs: Annotated[int, Field(ge=2)] = 100
    identified: Annotated[int, Field(ge=0)] = 20
    seed: Annotated[int, Field(ge=0)] = 20


def _none(force_N: Array, t_s: Array, noise_N: float, rng: np.random.Generator) -> Array:
    return force_N


def _coloured(force_N: Array, t_s: Array, noise_N: float, rng: np.random.Generator) -> Array:
    white = rng.standard_normal(len(force_N)) * noise_N * np.sqrt(1.0 - 0.95**2)
    return force_N + 2.0 * np.asarray(lfilter([1.0], [1.0, -0.95], white))


def _hum(force_N: Array, t_s: Array, noise_N: float, rng: np.random.Generator) -> Array:
    phase = rng.uniform(0.0, 2.0 * np.pi)
    return force_N + 2.0 * noise_N * np.sin(2.0 * np.pi * HUM_Hz * t_s + phase)


def _drift(force_N: Array, t_s: Array, noise_N: float, rng: np.random.Generator) -> Array:
    return np.asarray(force_N + 0.02 * np.ptp(force_N) * t_s / t_s[-1])


def _outliers(force_N: Array, t_s: Array, noise_N: float, rng: np.random.Generator) -> Array:
    out = rng.random(len(force_N)) < 0.01
    return np.asarray(force_N + out * rng.choice([-20.0, 20.0], len(force_N)) * noise_N)


def _late(force_N: Array, t_s: Array, noise_N: float, rng: np.random.Generator) -> Array:
    return np.concatenate([force_N[:LATE_READINGS], force_N[:-LATE_READINGS]])


class Disturbance(NamedTuple):
    """What it does to the readings, and whether the band has a term for it."""

    of: Callable[[Array, Array, float, np.random.Generator], Array]
    in_band: bool


DISTURBANCES = {
    "none": Disturbance(_none, True),
    "coloured noise of twice the RMS, correlated over 20 readings": Disturbance(_coloured, True),
    "hum of 50 Hz, twice the noise's RMS": Disturbance(_hum, True),
    "drift by 2 % of the range over the run": Disturbance(_drift, False),
    "1 % of the readings off by 20 times the noise": Disturbance(_outliers, True),
    "readings 2 ms later than is told": Disturbance(_late, False),
}


def disturbed(rig: Rig, name: str, seed: int) -> RunData:
    """The rig's run with its readings disturbed; its channel is tared at rest before."""
    data, rng = rig.data, np.random.default_rng(seed)
    tared = data.measured - data.measured[: data.first_on].mean()
    measured = DISTURBANCES[name].of(tared, data.t_s, data.reading.noise_rms_N, rng)
    return replace(data, measured=measured)


def run(out: Path, values: Values) -> dict[str, Any]:
    """Count over all rigs; the content of results.json."""
    shares = {name: np.empty(values.rigs) for name in DISTURBANCES}
    held = {name: np.zeros(values.identified) for name in DISTURBANCES}
    flagged = {name: np.zeros(values.identified, dtype=bool) for name in DISTURBANCES}
    total = values.rigs + values.identified * len(DISTURBANCES)
    with count_progress("rigs", total, wanted=True) as done:
        for i in range(values.rigs):
            rig = make_rig(values.seed, i)
            uncertainty = uncertainty_of(TABLES, rig.data, BELIEVED, MeasuringChannel(None, 0.0))
            for name in DISTURBANCES:
                data = disturbed(rig, name, i)
                u_N = np.hypot(uncertainty.u_val_N, noise_rms_N(data))
                inside = np.abs(data.measured - uncertainty.simulated_N) <= Z_95 * u_N
                shares[name][i] = inside.mean()
            done(1)
            for name in DISTURBANCES if i < values.identified else ():
                made = trial(replace(rig, data=disturbed(rig, name, i)))
                by_key = {p.key: p for p in made.parameters}
                held[name][i] = np.mean(
                    [by_key[k].low <= rig.truth[k] <= by_key[k].high for k in DRAWN]
                )
                flagged[name][i] = not made.adequacy.adequate
                done(1)
    rows = []
    for name in DISTURBANCES:
        row = [name, f"{shares[name].mean():.1%}", f"{np.quantile(shares[name], 0.1):.0%}"]
        if values.identified:
            row += [f"{held[name].mean():.0%}", f"{flagged[name].sum()} of {values.identified}"]
        rows.append(row)
    columns = ["readings", "in the band", "tenth worst rig", "intervals hold", "flagged"]
    return {
        "title": f"Bands of a validation on {values.rigs} simulated rigs",
        "checks": [
            check(f"readings in the 95 % band: {name}", shares[name].mean(), "0.93 to 0.99",
                  agrees=bool(0.93 <= shares[name].mean() <= 0.99))
            for name, disturbance in DISTURBANCES.items() if disturbance.in_band
        ],
        "tables": [as_table("Readings in the band, and intervals of an identification",
                            columns[: len(rows[0])], rows)],
        "figures": [],
        "notes": [
            "The band has no term for a drift or for a delay that is not told.",
            "The tenth worst rig: in a tenth of the rigs fewer readings are in the band.",
        ],
    }  # fmt: skip
