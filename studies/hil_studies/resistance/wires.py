"""Wires whose resistance a board measures, and which differ from what the observer believes.

Each hangs in `rig.toml`, where `levels.toml` heats it by duties that change at random: on the loop
of `hil run`, with its board, whose converter rounds and has noise. How a wire differs is one
deviation (`DEVIATIONS`), or drawn from what the observer believes to be uncertain (`drawn`). Its
true strain is that of the simulated plant. No duty that the board reports has its heat: the pulses
that measure a cell that is off warm it too.
"""

import tomllib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

import hil
from hil.devices.board.resistance import FULL_COUNTS
from hil.errors import ModelError
from hil.mechanics.arrays import Array
from hil.mechanics.sma.observer import Uncertain
from hil.mechanics.sma.stress import StressLaw
from hil.mechanics.sma.stressed import constants_of, stroke
from hil.mechanics.sma.wire import SmaWire
from hil.runs.plan import Plan
from hil.runs.simulate import Simulation
from hil.systems.array.build import build_activation, build_model
from hil.systems.array.model.wire_load import stress_Pa
from hil_studies.resistance.held import Held

HERE, CELL = Path(__file__).parent, "wire.1"
HOLD_S, LEVELS = 1.2, (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
COLD_S, HOT_S = 2.0, 8.0  # of the run that measures both ends
BRANCHES = {"heating": ("A_s_C", "A_f_C"), "cooling": ("M_s_C", "M_f_C")}
Activation = dict[str, Any]
"""The table of a wire."""
CASES: dict[str, Activation] = tomllib.loads((HERE / "cases.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Record:
    """What an observer gets, and what it is held against: (n,) arrays; NaN where there is none.

    Attributes
    ----------
    duty : of the period that ends at the sample
    age_s : of the reading at the sample
    """

    t_s: Array
    duty: Array
    R_Ohm: Array
    u_Ohm: Array
    strain: Array
    age_s: Array


@dataclass(frozen=True)
class Case:
    """A wire, and the law and constant stress in Pa that it is under; None: the law without."""

    wire: SmaWire
    stress: tuple[StressLaw, float] | None = None

    @property
    def strain_max(self) -> float:
        """The strain of martensite."""
        if self.stress is None:
            return self.wire.resistivity.strain
        return float(stroke(constants_of(self.stress[0]), self.stress[1])[0])


def believed(name: str) -> Case:
    """The wire that the observer believes in."""
    activation = {"arrays": {"wire": {"activation": CASES[name]}}}
    return case_of(hil.load(HERE / "levels.toml", model=activation).tables.model, CELL)


def case_of(model: Any, cell: str) -> Case:
    """The wire of a cell of a model, which pulls as it does at rest.

    Raises
    ------
    ModelError
        The model has no such wire.
    """
    names = build_model(model).cell_names if model.kind == "cell_array" else ()
    wires = {n: a for n, a in zip(names, build_activation(model), strict=True) if a.has_wire}
    if cell not in wires:
        named = ", ".join(wires) or "none"
        raise ModelError(f"no wire of cell '{cell}': give cell, one of {named}")
    wire, loaded = wires[cell].wire, wires[cell].loaded
    if loaded is None:
        return Case(wire)
    return Case(wire, (loaded.law, stress_Pa(wire, loaded.pretension_N)))


def scaled(wire: Activation, **factors: float) -> Activation:
    """With these keys times their factors."""
    return wire | {key: factor * _value(wire, key) for key, factor in factors.items()}


def _value(wire: Activation, key: str) -> float:
    return float(wire.get(key, getattr(SmaWire(), key, 0.0)))


def other_air(wire: Activation) -> Activation:
    """Air 2 K colder, convection 10 % and latent heat 5 % different."""
    other = scaled(wire, convection_W_per_m2_K=1.1, latent_heat_J_per_kg=0.95)
    return other | {"ambient_C": _value(wire, "ambient_C") - 2.0}


def moved_branches(wire: Activation, both_K: float = 4.0, apart_K: float = 0.0) -> Activation:
    """Both branches at another temperature, and further apart."""
    shift_K = {"heating": both_K + 0.5 * apart_K, "cooling": both_K - 0.5 * apart_K}
    if wire["kind"] == "thermal":
        return wire | {k: _value(wire, k) + shift_K[b] for b, ks in BRANCHES.items() for k in ks}
    return wire | {
        b: wire[b] | {"middle_C": wire[b]["middle_C"] + by_K} for b, by_K in shift_K.items()
    }


def more_stress(wire: Activation, more_Pa: float = 30e6) -> Activation:
    """Another stress, of a wire that is under one."""
    if "pretension_N" not in wire:
        return wire
    return wire | {"pretension_N": wire["pretension_N"] + more_Pa / stress_Pa(SmaWire(), 1.0)}


def with_r_phase(wire: Activation, factor: float = 1.05) -> Activation:
    """R-phase of that resistance over austenite's."""
    r_phase = {"r_phase_Ohm_per_m": factor * _value(wire, "austenite_Ohm_per_m")}
    return wire | {"resistivity": wire.get("resistivity", {}) | r_phase}


DEVIATIONS: dict[str, Callable[[Activation], Activation]] = {
    "other air": other_air,
    "austenite +3 %": partial(scaled, austenite_Ohm_per_m=1.03),
    "branches +4 K": moved_branches,
    "stress +30 MPa": more_stress,
    "R-phase +5 %": with_r_phase,
}


def drawn(wire: Activation, rng: np.random.Generator) -> Activation:
    """A wire of which everything differs, as the observer believes it to be uncertain."""
    normal, of = rng.standard_normal, Uncertain()
    other = scaled(
        wire,
        convection_W_per_m2_K=np.exp(of.cooling * normal()),
        latent_heat_J_per_kg=np.exp(0.05 * normal()),
        martensite_Ohm_per_m=np.exp(of.martensite * normal()),
        austenite_Ohm_per_m=np.exp(of.austenite * normal()),
    )
    other |= {"ambient_C": _value(wire, "ambient_C") + of.air_K * normal()}
    other = with_r_phase(other, np.exp(of.r_phase * normal()))
    other = more_stress(other, of.stress_Pa * normal())
    return moved_branches(other, of.branches_K * normal(), of.hysteresis_K * normal())


def random_duty(duration_s: float, seed: int) -> list[float]:
    """A duty for every HOLD_S."""
    n = -(-round(1e3 * duration_s) // round(1e3 * HOLD_S))
    duties: list[float] = np.random.default_rng(seed).choice(np.array(LEVELS), n).tolist()
    return duties


DUTY_OF_ENDS = [0.0] + [1.0] * round(HOT_S / COLD_S)  # COLD_S each


class Chain(NamedTuple):
    """The board's current sensor and converter."""

    full_scale_mA: int
    noise_counts: float

    @property
    def u_relative(self) -> float:
        """Standard uncertainty of a resistance by the noise, at 0.18 A and 9 V of 10 V."""
        counts = FULL_COUNTS * np.array([180.0 / self.full_scale_mA, 0.9])
        return float(np.linalg.norm(self.noise_counts / counts))


def simulated(
    case: str, true: Activation, chain: Chain, drive: tuple[list[float], float, float], seed: int
) -> Record:
    """The run of a wire on a rig whose model is the case that is believed.

    Parameters
    ----------
    drive : duties, for how long each is held, and the duration of the run

    Raises
    ------
    ModelError
        The run tripped.
    """
    duty, hold_s, duration_s = drive
    board = {
        "limits": {"current_full_scale_mA": chain.full_scale_mA},
        "resistance": {"u_relative": chain.u_relative, "noise_counts": 0.0},
        "sim": {"noise_counts": chain.noise_counts},
    }
    config = hil.load(
        HERE / "levels.toml",
        model={"arrays": {"wire": {"activation": CASES[case]}}},
        plant={"arrays": {"wire": {"activation": true}}},
        devices={"board": board},
        controller={"kind": Held, "hold_s": hold_s, "duty": duty},
        experiment={"duration_s": duration_s},
    )
    system = config.system(plant=True)
    with Simulation(Plan(config, seed=seed, plant=system)) as simulation:
        xi = [float(system.wires.xi[0]) for _ in simulation.trial.ticks()]
    run = simulation.dataset()
    if run.attrs["outcome"] != "complete":
        raise ModelError(f"{case}: {run.event_text.values[-2]}")
    strain_max = case_of(config.tables.plant, CELL).strain_max
    return replace(of_run(run, CELL), strain=strain_max * (1.0 - np.array(xi)))


def of_run(run: xr.Dataset, cell: str) -> Record:
    """A recorded cell: duty as the board reported it, readings at the first row after them."""
    at = list(run.cell.values).index(cell)
    name = "cells_duty_reported" if "cells_duty_reported" in run else "cells_reported"
    duty, t_s = np.asarray(run[name][:, at], dtype=float), np.asarray(run.t_s, dtype=float)
    told = np.asarray(run[f"{cell}.resistance_Ohm"])
    rows = np.flatnonzero(np.isfinite(told))
    taken_s = t_s[rows] - np.asarray(run[f"{cell}.age_of_resistance_s"])[rows]
    to = np.searchsorted(t_s, taken_s - 1e-9)
    R_Ohm, u_Ohm, age_s = np.full((3, len(t_s)), np.nan)
    R_Ohm[to], u_Ohm[to] = told[rows], np.asarray(run[f"{cell}.resistance_u_Ohm"])[rows]
    age_s[to] = np.maximum(0.0, t_s[to] - taken_s)
    duty = np.where((duty >= 0.0) & (duty <= 1.0), duty, 0.0)  # before the first report
    return Record(t_s, duty, R_Ohm, u_Ohm, np.full(len(t_s), np.nan), age_s)
