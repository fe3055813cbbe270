"""Rigs with known parameters, simulated as `hil run` simulates them, and what disturbs their runs.

A rig is `rig.toml` with parameters that differ by a few per cent, and with a transducer that has
its own noise, bits, delay and zero. It runs `switched.toml`, with cells that switch at random
times, through its board, its card and its guard. What identifies it does not know the draws.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.signal import lfilter

import hil
from hil.errors import ModelError
from hil.experiment.load import load_model
from hil.identification import parameters
from hil.identification.noise import Noise
from hil.identification.runs import RunData, channel_of, readings_of
from hil.mechanics.arrays import Array

HERE = Path(__file__).parent
TABLES: parameters.Tables = parameters.tables_of(load_model(HERE / "rig.toml").tables.model)
MUSCLE = "arrays.muscle"
DRAWN = tuple(
    f"{MUSCLE}.{key}"
    for key in ("force_on_N", "cell.b_N_s_per_m", "cell.k_ae_N_per_m", "cell.k_se_N_per_m")
)
PERIOD_S, REST_S, MOVING_S = 0.001, 1.0, 5.0
HOLDS_S = (0.05, 0.1, 0.2, 0.4)
OFF = 0.03  # standard deviation of the logarithm of every parameter
NEWTONS_PER_V, RANGE_V, HUM_Hz = 0.95, 10.0, 50.0
LATE_READINGS = 2
Effect = Literal["none", "two dampers", "slow activation", "hot wires", "unlike masses", "creep"]
EFFECTS: dict[Effect, str] = {
    "two dampers": "a damper of 0.2 N s/m across the series spring as well",
    "slow activation": "force that comes over 5 ms, not at once",
    "hot wires": "cells that are heated and cooled, with hysteresis",
    "unlike masses": "masses with two outgoing cells 0.5 % heavier",
    "creep": "a transducer that creeps by 1 % of the force within a second",
}


@dataclass(frozen=True)
class Rig:
    """The run of a simulated rig and its true parameters.

    Attributes
    ----------
    noise : true noise, including quantisation
    """

    data: RunData
    truth: dict[str, float]
    noise: Noise


def make_rig(seed: int, index: int, effect: Effect = "none", ar: float = 0.0) -> Rig:
    """One rig; its draws depend only on seed and index.

    Parameters
    ----------
    ar : a of the noise v_k = a v_(k-1) + w_k, which takes the place of the white one
    """
    rng = np.random.default_rng([seed, index])
    plant, truth = copy.deepcopy(TABLES), {}
    for key in DRAWN:
        truth[key] = parameters.get(plant, key) * float(np.exp(OFF * rng.standard_normal()))
        parameters.put(plant, key, truth[key])
    steps, noise_V = _switched(rng), float(rng.uniform(0.001, 0.004))
    bits = 16 if ar else int(rng.choice([12, 14, 16]))
    sim = {
        "noise_rms_V": 0.0 if ar else noise_V,
        "offset_V": float(rng.normal(0.0, 0.02)),
        "delay_s": PERIOD_S * int(rng.integers(0, 4)),
    }
    config = hil.load(
        HERE / "switched.toml",
        plant=_with(effect, plant),
        devices={"daq": {"resolution_bits": bits, "channels": {"force": {"sim": sim}}}},
        controller={"steps": steps},
    )
    run = hil.simulate(config, int(rng.integers(2**31)))
    if run.attrs["outcome"] != "complete":
        raise ModelError(f"rig {index} of seed {seed}: {run.event_text.values[-2]}")
    name = Path(f"rig {index}")
    data = readings_of(name, channel_of(name, run, config, {}))
    reading = replace(data.reading, noise_rms_N=NEWTONS_PER_V * noise_V)
    measured, step_N = data.measured, reading.step_N
    if ar:
        coloured_N = reading.noise_rms_N * correlated(len(measured), ar, rng)
        measured = measured + step_N * np.round(coloured_N / step_N)
    if effect == "creep":
        measured = measured + 0.01 * lfilter([PERIOD_S], [1.0, PERIOD_S - 1.0], measured)
    whole_N = float(np.hypot(reading.noise_rms_N, step_N / np.sqrt(12.0)))
    noise = Noise(whole_N * np.sqrt(1.0 - ar**2), np.array([ar] if ar else []))
    return Rig(replace(data, measured=measured, reading=reading), truth, noise)


def _switched(rng: np.random.Generator) -> list[dict[str, Any]]:
    """A schedule that switches cells at random after the rest."""
    steps, on, t_s = [], np.zeros(6, dtype=bool), REST_S
    while t_s < REST_S + MOVING_S:
        then = rng.integers(0, 2, 6) != 0
        cells = {"on": then & ~on, "off": on & ~then}
        lists = {key: (np.flatnonzero(of) + 1).tolist() for key, of in cells.items() if of.any()}
        if lists:
            steps.append({"t_s": round(t_s, 3), **lists})
        on, t_s = then, t_s + float(rng.choice(HOLDS_S))
    return steps


def _with(effect: Effect, plant: parameters.Tables) -> parameters.Tables:
    """The plant with the effect that the model lacks."""
    array = plant["arrays"]["muscle"]
    if effect == "two dampers":
        cell = array["cell"][0]
        cell |= {"kind": "two_damper", "b_ae_N_s_per_m": cell.pop("b_N_s_per_m"),
                 "b_se_N_s_per_m": 0.2}  # fmt: skip
    elif effect == "slow activation":
        # 10-90 % of a logistic rise takes 4.39 / rate, 4.19 / rate between these stops.
        array["activation"] = {"kind": "sigmoid", "rate_per_s": 4.39 / 0.005, "delay_s": 0.005}
    elif effect == "hot wires":
        array["activation"] = {"kind": "thermal"}
    elif effect == "unlike masses":
        array["mass_kg"] = [0.01583 * (1.005 if m in (1, 3) else 1.0) for m in range(5)]
    return plant


def correlated(n: int, a: float, rng: np.random.Generator) -> Array:
    """Draw n samples of v_k = a v_(k-1) + w_k with an RMS of 1."""
    w = rng.standard_normal(n + 200) * np.sqrt(1.0 - a**2)
    return np.asarray(lfilter([1.0], [1.0, -a], w)[200:])


def _coloured(force_N: Array, t_s: Array, noise_N: float, rng: np.random.Generator) -> Array:
    return force_N + 2.0 * noise_N * correlated(len(force_N), 0.95, rng)


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
    "none": Disturbance(lambda force_N, *_: force_N, True),
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
