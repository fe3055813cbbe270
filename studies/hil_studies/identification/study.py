"""Identification on simulated rigs with known parameters: tests the coverage of the intervals.

Every rig is drawn from its own seed: parameters that differ by a few per cent, other cells that
switch at other times, and a transducer with its own noise, bits, delay and zero, read by the
simulated card. The identification does not know the draws. A stated 95 % interval must contain the
true value in 182 to 197 of 200 rigs and be at most 1.3 times as wide as the Cramer-Rao bound. A
second set of rigs has an effect that the model lacks; the identification must detect this.

Source: Kay 1993, Fundamentals of Statistical Signal Processing: Estimation Theory, ch. 3.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import scipy.stats
from matplotlib.figure import Figure
from numpy.typing import NDArray
from pydantic import Field
from scipy.signal import lfilter

from hil.calibration.signal_chain import Chain
from hil.config.table import Table
from hil.devices.nidaq.channels import Place
from hil.devices.sim.daq import SimCard, SimChannel, SimDaq
from hil.devices.sim.plant import SimPlant
from hil.identification import parameters
from hil.identification.grey_box import GreyBox, with_zeros
from hil.identification.identifiability import short
from hil.identification.identify import Asked, Identified, identify
from hil.identification.noise import Noise
from hil.identification.runs import Reading, RunData
from hil.loop.channels import Channel, RigLayout
from hil.loop.frame import Column, Frame
from hil.mechanics.arrays import Array
from hil.pages.study import as_table, check, saved
from hil.pages.style import MEASURED, MODEL, mark_simulated, styled_figure
from hil.record.progress import count_progress
from hil.systems.array.build import build_activation, build_model
from hil.systems.array.model.system import ArraySystem
from hil.systems.array.tables import ModelTable

PERIOD_S = 0.001
REST_S, MOVING_S = 1.0, 5.0
HOLDS_S = (0.05, 0.1, 0.2, 0.4)
OFF = 0.03  # standard deviation of the logarithm of every parameter
NEWTONS_PER_V, RANGE_V = 0.95, 10.0
WIDTH_MAX = 1.3
Effect = Literal["none", "two dampers", "slow activation", "hot wires", "unlike masses", "creep"]
EFFECTS: dict[Effect, str] = {
    "two dampers": "a damper of 0.2 N s/m across the series spring as well",
    "slow activation": "force that comes over 5 ms, not at once",
    "hot wires": "cells that are heated and cooled, with hysteresis",
    "unlike masses": "masses with two outgoing cells 0.5 % heavier",
    "creep": "a transducer that creeps by 1 % of the force within a second",
}
TABLES: parameters.Tables = {
    "kind": "cell_array",
    "points": {"ground": {"support": "fixed"}, "transducer": {"support": "fixed"}},
    "arrays": {
        "muscle": {
            "fingerprint": "-:1 | &1:2 | &1:1 &2:2 | &7:-1",
            "from": "ground",
            "to": "transducer",
            "mass_kg": [0.01583],
            "force_on_N": [4.0],
            "cell": [
                {
                    "kind": "miga",
                    "k_pe_N_per_m": 20.0,
                    "k_se_N_per_m": 386.52,
                    "k_ae_N_per_m": 1000.0,
                    "b_N_s_per_m": 500.0,
                }
            ],
            "activation": {"kind": "step"},
        }
    },
}
DRAWN = tuple(
    f"arrays.muscle.{key}"
    for key in ("force_on_N", "cell.b_N_s_per_m", "cell.k_ae_N_per_m", "cell.k_se_N_per_m")
)


class Values(Table):
    """Settings of the study."""

    rigs: Annotated[int, Field(ge=4)] = 200
    coloured: Annotated[int, Field(ge=0)] = 50
    lacking: Annotated[int, Field(ge=0)] = 10
    bootstrapped: Annotated[int, Field(ge=0)] = 20
    seed: Annotated[int, Field(ge=0)] = 10


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
    """One rig; its draws depend only on seed and index."""
    rng = np.random.default_rng([seed, index])
    tables = copy.deepcopy(TABLES)
    truth = {}
    for key in DRAWN:
        truth[key] = parameters.get(tables, key) * float(np.exp(OFF * rng.standard_normal()))
        parameters.put(tables, key, truth[key])
    n = round((REST_S + MOVING_S) / PERIOD_S)
    cells = _switched(n, rng)
    noise_V = float(rng.uniform(0.001, 0.004))
    bits = 16 if ar else int(rng.choice([12, 14, 16]))
    step_V = 2.0 * RANGE_V / 2**bits
    channel = SimChannel(
        name="force", output=0, raw_unit="V", chain=Chain.linear(NEWTONS_PER_V, 0.0),
        step_raw=step_V, low_raw=-RANGE_V, high_raw=RANGE_V - step_V, bandwidth_Hz=200.0,
        noise_rms_raw=0.0 if ar else noise_V, offset_raw=float(rng.normal(0.0, 0.02)),
        delay_periods=int(rng.integers(0, 4)), reading_lost_probability=0.0,
    )  # fmt: skip
    plant = _plant(tables, effect)
    added_V = _coloured(n + 1, noise_V, ar, rng) if ar else np.zeros(n + 1)
    force_N = _readings(plant, channel, cells, added_V, effect, rng)
    reading = Reading(
        delay_s=channel.delay_periods * PERIOD_S,
        bandwidth_Hz=channel.bandwidth_Hz,
        step_N=NEWTONS_PER_V * step_V,
        noise_rms_N=NEWTONS_PER_V * noise_V,
    )
    data = RunData(
        f"rig {index}", PERIOD_S, cells, np.arange(n + 1), force_N, "muscle.right_N", reading
    )
    whole_N = NEWTONS_PER_V * float(np.hypot(noise_V, step_V / np.sqrt(12.0)))
    return Rig(data, truth, Noise(whole_N * np.sqrt(1.0 - ar**2), np.array([ar] if ar else [])))


def _switched(n: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Random switching of the cells after a rest."""
    cells = np.zeros((n, 6), dtype=np.uint8)
    at = round(REST_S / PERIOD_S)
    while at < n:
        hold = round(float(rng.choice(HOLDS_S)) / PERIOD_S)
        cells[at : at + hold] = rng.integers(0, 2, 6)
        at += hold
    return cells


def _plant(tables: parameters.Tables, effect: Effect) -> ArraySystem:
    """The simulated array with the effect that the model lacks."""
    array = tables["arrays"]["muscle"]
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
    table = ModelTable.model_validate(tables)
    return ArraySystem(build_model(table), build_activation(table), PERIOD_S)


def _coloured(n: int, rms: float, a: float, rng: np.random.Generator) -> Array:
    """Draw n samples of v_k = a v_(k-1) + w_k with this RMS."""
    w = rng.standard_normal(n + 200) * rms * np.sqrt(1.0 - a**2)
    return np.asarray(lfilter([1.0], [1.0, -a], w)[200:])


def _readings(
    system: ArraySystem, channel: SimChannel, cells: NDArray[np.uint8], added_V: Array,
    effect: Effect, rng: np.random.Generator,
) -> Array:  # fmt: skip
    """Readings of the simulated card while these cells are on [N]."""
    at = list(system.outputs).index("muscle.right_N")
    plant = SimPlant(system, PERIOD_S, 0.2)
    plant.follow(range(cells.shape[1]))
    card = SimCard("daq", [replace(channel, output=at)], [], Place(channel=0, output=0))
    daq = SimDaq(card, plant, PERIOD_S, lambda _: rng)
    layout = RigLayout((Channel("force", "_N", "main"),), (), (), ("daq",), 0)
    row = [Column(c.column("measured"), "N", "measured", "force") for c in layout.channels]
    row.append(Column("valid_bits", "1", "measured", "valid readings", flags=("force",)))
    frame = Frame([*daq.columns, *row])
    force = layout.index(layout.force)
    readings, _ = layout.bind(frame)
    readings = replace(readings, cells_reported=np.zeros(cells.shape[1], dtype=np.uint8))
    daq.bind(frame, readings)
    daq.open()
    force_N = np.empty(len(cells) + 1)
    for k in range(len(cells) + 1):
        if k:
            readings.cells_reported[:] = cells[k - 1]
        daq.read(k * PERIOD_S)
        force_N[k] = readings.measured[force]
    force_N += NEWTONS_PER_V * channel.step_raw * np.round(added_V / channel.step_raw)
    if effect == "creep":
        force_N += 0.01 * lfilter([PERIOD_S], [1.0, PERIOD_S - 1.0], force_N)
    return force_N


def bound(rig: Rig) -> Array:
    """Cramer-Rao bound: smallest standard deviation of every parameter's logarithm."""
    tables = copy.deepcopy(TABLES)
    for key, value in rig.truth.items():
        parameters.put(tables, key, value)
    box = GreyBox(tables, DRAWN, (rig.data,))
    J = rig.noise.whitened(with_zeros(box.sensitivities(box.start))[0])
    n = len(DRAWN)
    return np.asarray(np.sqrt(np.diag(np.linalg.inv(J.T @ J))[:n]) * rig.noise.rms_N)


def coverage_range(n: int, p: float = 0.95, least: float = 0.015) -> tuple[int, int]:
    """Range of the number of n intervals that contain the true value, with probability 1 - `least`.

    For 200 intervals it is 182 to 197.
    """
    low, high = scipy.stats.binom.interval(1.0 - least, n, p)
    return int(low), int(high)


def trial(rig: Rig, n_bootstrap: int = 0) -> Identified:
    """Identify with the nominal tables only."""
    return identify(TABLES, [rig.data], Asked(bootstrap=n_bootstrap))


@dataclass(frozen=True)
class Outcome:
    """Results of one set of rigs.

    Attributes
    ----------
    inside : (n, P) bool array, the interval contains the true value
    ratio : (n, P) array, width of the interval over that of the Cramer-Rao bound
    error : (n, P) array, error in standard deviations of the bound
    boot : (n, P) array
        Whether the bootstrap's interval contains the true value; NaN without a bootstrap.
    called : (n,) bool array, the identification reported a missing effect
    """

    inside: NDArray[np.bool_]
    ratio: Array
    error: Array
    boot: Array
    called: NDArray[np.bool_]


def run_rigs(rigs: Sequence[Rig], n_bootstrapped: int, done: Any = lambda n_more: None) -> Outcome:
    """Identify every rig and compare the intervals with the true values."""
    shape = (len(rigs), len(DRAWN))
    inside, ratio = np.zeros(shape, dtype=bool), np.full(shape, np.nan)
    error, boot = np.full(shape, np.nan), np.full(shape, np.nan)
    called = np.zeros(len(rigs), dtype=bool)
    for i, rig in enumerate(rigs):
        found = trial(rig, 200 if i < n_bootstrapped else 0)
        least = bound(rig)
        called[i] = not found.adequacy.adequate
        by_key = {p.key: p for p in found.parameters}
        for j, key in enumerate(DRAWN):
            p, truth = by_key[key], rig.truth[key]
            inside[i, j] = p.fisher[0] <= truth <= p.fisher[1]
            ratio[i, j] = np.log(p.fisher[1] / p.fisher[0]) / (2.0 * 1.959964 * least[j])
            error[i, j] = np.log(p.value / truth) / least[j]
            if p.resampled is not None:
                boot[i, j] = p.resampled[0] <= truth <= p.resampled[1]
        done(1)
    return Outcome(inside, ratio, error, boot, called)


def run(out: Path, values: Values) -> dict[str, Any]:
    """Run all sets of rigs; returns the content of results.json."""
    total = values.rigs + values.coloured + values.lacking * len(EFFECTS)
    with count_progress("rigs", total, wanted=True) as done:
        plain = run_rigs([make_rig(values.seed, i) for i in range(values.rigs)],
                         values.bootstrapped, done)  # fmt: skip
        coloured = run_rigs(
            [make_rig(values.seed + 1, i, ar=0.8) for i in range(values.coloured)], 0, done
        )
        called: dict[Effect, int] = {}
        for effect in EFFECTS:
            called[effect] = 0
            for i in range(values.lacking):
                lacking = trial(make_rig(values.seed + 2, i, effect))
                called[effect] += not lacking.adequacy.adequate
                done(1)
    return {
        "title": f"Identification on {values.rigs} simulated rigs",
        "figures": [
            saved(out, "identification.png", _draw(plain), "Left: errors over the Cramer-Rao "
                  "bound, with a normal distribution. Right: width of the stated interval over "
                  "that of the bound.", dpi=150),
        ],
        "checks": [*_checks(plain, ""), *(_checks(coloured, ", coloured noise")
                                          if values.coloured else [])],
        "tables": [
            as_table("Models that lack an effect, and how many were detected",
                  ["effect of the rig that the model lacks", "rigs", "detected"],
                  [[EFFECTS[e], str(values.lacking), str(n)] for e, n in called.items()]),
        ],
        "notes": [
            "The number of intervals with the true value must be in the central 98.5 % of the "
            "binomial distribution at 95 %: "
            f"{'..'.join(map(str, coverage_range(values.rigs)))} of {values.rigs}.",
            "Cramer-Rao bound: for normal noise with the variance of sensor and quantisation.",
        ],
        "called_lacking": called,
    }  # fmt: skip


def _checks(outcome: Outcome, what: str) -> list[dict[str, Any]]:
    n = len(outcome.called)
    low, high = coverage_range(n)
    made: list[dict[str, Any]] = []
    for j, key in enumerate(DRAWN):
        held = int(outcome.inside[:, j].sum())
        made.append(check(f"{short(key)}: intervals with the truth{what}", held, f"{low}..{high}",
                          agrees=low <= held <= high))  # fmt: skip
        widest = float(outcome.ratio[:, j].max())
        made.append(check(f"{short(key)}: widest over Cramer-Rao{what}", widest,
                          f"<= {WIDTH_MAX}", agrees=widest <= WIDTH_MAX))  # fmt: skip
    there = np.isfinite(outcome.boot[:, 0])
    for j, key in enumerate(DRAWN if there.any() else ()):
        held, (low, high) = int(outcome.boot[there, j].sum()), coverage_range(int(there.sum()))
        made.append(check(f"{short(key)}: bootstrap intervals with the truth{what}", held,
                          f"{low}..{high}", agrees=low <= held <= high))  # fmt: skip
    alarms, most = int(outcome.called.sum()), int(scipy.stats.binom.ppf(0.995, n, 0.01))
    made.append(check(f"false alarms{what}", alarms, f"<= {most}", agrees=alarms <= most))
    return made


def _draw(outcome: Outcome) -> Figure:
    with styled_figure(9.0, 4.1) as figure:
        errors, widths = figure.subplots(1, 2)
        edges = np.linspace(-4.0, 4.0, 33)
        errors.hist(outcome.error.ravel(), edges, density=True, color=MEASURED, alpha=0.75)
        errors.plot(
            edges, scipy.stats.norm.pdf(edges), color=MODEL, lw=1.5, label="normal distribution"
        )
        errors.set(xlabel="error / Cramer-Rao standard deviation", ylabel="density")
        errors.legend(frameon=False)
        widths.boxplot(outcome.ratio, orientation="horizontal", widths=0.6,
                       medianprops={"color": MODEL}, flierprops={"markersize": 3})  # fmt: skip
        widths.axvline(1.0, color="0.7", lw=0.8)
        widths.axvline(WIDTH_MAX, color=MODEL, lw=1.0, ls="--")
        widths.set_yticks(range(1, len(DRAWN) + 1), [short(key) for key in DRAWN])
        widths.set_xlabel("width of the interval / Cramer-Rao width (allowed: 1.3)")
        figure.suptitle(f"{len(outcome.called)} simulated rigs", x=0.01, ha="left",
                        fontweight="bold", fontsize=11)  # fmt: skip
        mark_simulated(figure, errors)
    return figure
