"""`hil study antagonist`: an antagonist pair of wires under force control, after a published one.

Two wires pull on a transducer from opposite sides. Its force is that of the first wire less that of
the second. Anchor: Teh & Featherstone 2008, An Architecture for Fast and Accurate Control of Shape
Memory Alloy Actuators, Int. J. Robotics Research 27(5), abstract: force accuracy as high as 1 mN in
a range of +-3 N, force rate as high as 50 N/s.

Plant and twin are blocked wires under stress (`hil.systems.array.model.wire_load`), which differ.
The readings have noise, resolution and delay of configs/wires4; duties are those of a board: whole
255ths, a command every 8 ms, in force one period later. For the demand u each wire makes up for
what the other one still pulls, and pulls at least b,

    F_1* = max(b, F_2 + u),    F_2* = max(b, F_1 - u),

so that the force changes as fast as a wire heats, in both directions, although wires cool slowly.
F_1 and F_2 are the twin's, with half of the measured difference each, and
`hil.systems.array.recruitment.wire_duties` inverts the wires.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from matplotlib.figure import Figure
from pydantic import Field

from hil import bundled_configs
from hil.config.files import Merged
from hil.config.table import Positive, Table
from hil.config.validate import validated
from hil.devices.board import protocol
from hil.experiment.load import load
from hil.loop.duty import STEPS
from hil.mechanics.arrays import Array
from hil.mechanics.sma.limits import CellWire
from hil.pages.study import as_table, check, saved
from hil.pages.style import MEASURED, MODEL, mark_simulated, styled_figure
from hil.systems.array.build import build_activation, build_model
from hil.systems.array.model.force_levels import static_gains_N
from hil.systems.array.model.system import ArraySystem
from hil.systems.array.modulation import ForceLaw
from hil.systems.array.recruitment.wire_duties import Budget, WireDuties
from hil.systems.array.tables import ModelTable

PERIOD_S = 1e-3
EVERY = 8  # periods of a command
RANGE_N = 6.0  # +-3 N
SETTLE_S = 1.0  # after a step, before its error counts
RATE_S = 0.02  # over which a force rate is taken
WARM_C = 30.0
CURRENT_ERROR = 0.03  # assumed: by which a board reads a current too low


class Values(Table):
    """What `--set` may change; the gains were chosen by hand on this pair."""

    supply_V: Annotated[float, Field(ge=1.0, le=12.0)] = 9.0
    temperature_max_C: Annotated[float, Field(ge=80.0, le=300.0)] = 250.0
    bias_N: Annotated[float, Field(ge=0.0, le=3.0)] = 0.3
    least_N: Annotated[float, Field(ge=0.0, le=3.0)] = 0.2
    k_p: Annotated[float, Field(ge=0.0)] = 2.5
    k_i_per_s: Annotated[float, Field(ge=0.0)] = 6.0
    response_s: Positive = 0.015
    dead_band: Annotated[float, Field(ge=0.0, le=0.1)] = 0.0025
    seeds: Annotated[int, Field(ge=1, le=100)] = 4


@dataclass(frozen=True)
class Chain:
    """The reading of the force: noise (standard deviation), resolution, delay in periods."""

    noise_N: float
    step_N: float
    delay: int = 1

    def read(self, force_N: float, rng: np.random.Generator) -> float:
        """A reading of this force."""
        return round((force_N + self.noise_N * rng.standard_normal()) / self.step_N) * self.step_N


@dataclass(frozen=True)
class Trial:
    """A reference, and what became of it: (n,) force and reference, (n, 2) duties and wires."""

    name: str
    reference_N: Array
    force_N: Array
    duty: Array
    wire_C: Array

    @property
    def t_s(self) -> Array:
        """Times of the samples."""
        return np.arange(len(self.force_N)) * np.float64(PERIOD_S)


def run(out: Path, values: Values) -> dict[str, Any]:
    """Run steps and sines; the results, as written to results.json."""
    chain = chain_of_wires4()
    stairs = [follow(values, chain, "steps", _steps(), seed) for seed in range(values.seeds)]
    sines = [follow(values, chain, f"{f_Hz:g} Hz", _sine(f_Hz)) for f_Hz in (0.1, 0.25, 0.5, 1.0)]
    rises, falls = np.min([slews_N_per_s(steps) for steps in stairs], axis=0).tolist()
    held_N = np.concatenate([held_error_N(steps) for steps in stairs])
    rows = [
        ["steps, held", f"{1e3 * rms(held_N):.1f} mN", _share(rms(held_N)), "1 mN"],
        *(
            [f"sine of 2 N, {trial.name}", f"{1e3 * rms(error):.0f} mN", _share(rms(error)), "-"]
            for trial, error in ((t, sine_error_N(t)) for t in sines)
        ),
    ]
    hottest_C = max(float(trial.wire_C.max()) for trial in (*stairs, *sines))
    return {
        "title": "An antagonistic pair of wires, after Teh & Featherstone",
        "held_rms_N": rms(held_N),
        "held_mean_N": _worst_mean(held_N),
        "slew_N_per_s": {"rise": rises, "fall": falls},
        "sine_rms_N": {trial.name: rms(sine_error_N(trial)) for trial in sines},
        "hottest_C": hottest_C,
        "tables": [as_table("RMS error of the force", ["", "here", "of 6 N", "theirs"], rows)],
        "checks": [
            check("largest force rate, up and down", min(rises, falls), "50", "N/s",
                  agrees=min(rises, falls) >= 50.0),
            check("RMS error while held", 1e3 * rms(held_N), "1", "mN",
                  agrees=rms(held_N) <= 1e-3),
        ],
        "figures": [saved(out, "antagonist.png", _drawn(stairs[0], sines), _CAPTION)],
        "notes": [
            f"The reading's noise is {1e3 * chain.noise_N:.1f} mN a sample, so that errors of "
            "single samples cannot reach 1 mN here. The errors above are of the true force.",
            f"The largest mean error of a held step is {1e3 * _worst_mean(held_N):.1f} mN.",
            "Theirs is a measured pair with another transducer, and with external motion; here the "
            "ends are blocked, and plant and twin are the same law with other values.",
            f"The hottest wire reached {hottest_C:.0f} degC, with a limit of "
            f"{values.temperature_max_C:g} degC.",
        ],
    }  # fmt: skip


def chain_of_wires4() -> Chain:
    """The force channel of configs/wires4: noise and resolution of its simulated card."""
    config = load(bundled_configs.root() / "configs" / "wires4" / "hold.toml")
    card = config.tables.devices["daq"]
    channel = card.channels["force"]
    per_V = channel.newtons_per_V
    return Chain(channel.sim.noise_rms_V * per_V, 2.0 * card.range_V / 2**16 * per_V)


def pair(values: Values, *, plant: bool) -> ArraySystem:
    """The two blocked wires; the plant differs from the twin by air, convection and heat.

    A wire of 0.1 m and 0.1 mm: k_ae = E A / l, and the blocked contraction is 4 % of its length.
    """
    wire: dict[str, Any] = {
        "kind": "sma",
        "supply_V": values.supply_V,
        "temperature_max_C": values.temperature_max_C,
        "pretension_N": values.bias_N,
        "strength_MPa": 4000.0,  # of the blocked contraction, which no wire comes near to
        "latent_heat_J_per_kg": 24.2e3,  # as printed
    }
    if plant:
        wire |= {"ambient_C": 23.0, "convection_W_per_m2_K": 131.0, "latent_heat_J_per_kg": 23.5e3}
    array = {
        "fingerprint": "-:1 | &1:-1", "from": "ground", "to": "transducer", "mass_kg": 0.001,
        "force_on_N": 22.0,
        "cell": {"kind": "hill", "k_pe_N_per_m": 10.0, "k_se_N_per_m": 50e3,
                 "k_ae_N_per_m": 5500.0, "b_N_s_per_m": 50.0},
        "activation": wire,
    }  # fmt: skip
    content = {
        "kind": "cell_array",
        "points": {"ground": {"support": "fixed"}, "transducer": {"support": "fixed"}},
        "arrays": {"first": array, "second": array},
    }
    table = validated(ModelTable, Merged(content, [("study antagonist", content)]))
    return ArraySystem(build_model(table), build_activation(table), PERIOD_S)


def follow(values: Values, chain: Chain, name: str, reference_N: Array, seed: int = 0) -> Trial:
    """Follow a reference with the pair; the seed is that of the noise."""
    rng = np.random.default_rng(seed)
    plant, twin = pair(values, plant=True), pair(values, plant=False)
    at = [twin.outputs.index(f"{array}.right_N") for array in ("first", "second")]
    law, duties = ForceLaw(values.k_p, values.k_i_per_s), _duties(values, twin)
    gains_N = static_gains_N(twin.model, [22.0, 22.0], "first.right_N")[0]
    able, duty, sides = np.ones(2, dtype=bool), np.zeros(2), np.array([1.0, -1.0])
    n = len(reference_N)
    force_N, used, wire_C = np.zeros(n), np.zeros((n, 2)), np.zeros((n, 2))
    readings = [0.0] * chain.delay
    total_N = 0.0
    for k in range(n):
        force_N[k] = sides @ plant.y[at]
        readings.append(chain.read(float(force_N[k]), rng))
        total_N += readings[-1 - chain.delay]
        acting = duty  # commanded in an earlier period
        if k % EVERY == EVERY - 1:
            measured_N, total_N = total_N / EVERY, 0.0
            u_N = law.demand_N(float(reference_N[k]), measured_N, EVERY * PERIOD_S)
            pulls_N = twin.y[at] + 0.5 * sides * (measured_N - sides @ twin.y[at])
            wanted_N = np.maximum(values.least_N, pulls_N[::-1] + sides * u_N)
            duty = duties.step(wanted_N / gains_N, pulls_N / gains_N, able, twin)
            law.saturated(high=bool(duties.high[0]), low=bool(duties.high[1]))
        plant.step(acting)
        twin.step(acting)
        used[k], wire_C[k] = acting, plant.wires.T_C
    return Trial(name, reference_N, force_N, used, wire_C)


def _duties(values: Values, twin: ArraySystem) -> WireDuties:
    """Duties whose limit is `temperature_max_C`, for boards whose heat budget stands for it."""
    cell = CellWire("first", twin.cells[0].wire, values.temperature_max_C)
    most_A2s = (values.temperature_max_C - WARM_C) / cell.heating_K_per_A2s
    budget = Budget(
        np.full(2, most_A2s * (1.0 - CURRENT_ERROR) ** 2),
        np.full(2, cell.time_constant_s),
        np.full(2, 2.0 / 1024),
    )
    return WireDuties(
        np.full(2, values.temperature_max_C), budget, response_s=values.response_s,
        command_s=EVERY * PERIOD_S, duty_min=protocol.DUTY_MIN_PER_255 / STEPS,
        dead_band=values.dead_band,
    )  # fmt: skip


def _steps() -> Array:
    """Each level for 2.5 s."""
    levels_N = (0.0, 1.0, -1.0, 3.0, -3.0, 0.0)
    return np.repeat(levels_N, round(2.5 / PERIOD_S))


def _sine(frequency_Hz: float) -> Array:
    """2 N for two cycles, at least 4 s."""
    t_s = np.arange(0.0, max(2.0 / frequency_Hz, 4.0), PERIOD_S)
    return 2.0 * np.sin(2.0 * np.pi * frequency_Hz * t_s)


def held_error_N(steps: Trial) -> Array:
    """(levels, samples) error from SETTLE_S after every step on."""
    error_N = (steps.force_N - steps.reference_N).reshape(-1, round(2.5 / PERIOD_S))
    return error_N[:, round(SETTLE_S / PERIOD_S) :]


def slews_N_per_s(steps: Trial) -> tuple[float, float]:
    """Largest rates of the force over RATE_S, up and down."""
    n = round(RATE_S / PERIOD_S)
    rates = (steps.force_N[n:] - steps.force_N[:-n]) / RATE_S
    return float(rates.max()), float(-rates.min())


def sine_error_N(sine: Trial) -> Array:
    """Error after the first half."""
    return (sine.force_N - sine.reference_N)[len(sine.force_N) // 2 :]


def rms(error_N: Array) -> float:
    """Root mean square."""
    return float(np.sqrt(np.mean(error_N**2)))


def _worst_mean(held_N: Array) -> float:
    return float(np.abs(held_N.mean(axis=1)).max())


def _share(error_N: float) -> str:
    return f"{100.0 * error_N / RANGE_N:.2g} %"


_CAPTION = (
    "Two blocked Flexinol wires of 0.1 mm, one against the other: steps, their duties and "
    "temperatures, and a sine. Force without the transducer's noise."
)


def _drawn(steps: Trial, sines: list[Trial]) -> Figure:
    with styled_figure(8.0, 7.0) as figure:
        force, duty, wire, sine = figure.subplots(4, 1, height_ratios=[3, 1.3, 1.3, 2])
        for axis, trial in ((force, steps), (sine, sines[1])):
            axis.plot(trial.t_s, trial.reference_N, color="0.3", ls="--", lw=0.9, label="set point")
            axis.plot(trial.t_s, trial.force_N, color=MEASURED, lw=1.0, label="force")
            axis.set_ylabel("force [N]")
        force.legend(frameon=False, loc="lower left")
        for i, colour in enumerate((MEASURED, MODEL)):
            duty.plot(steps.t_s, steps.duty[:, i], color=colour, lw=0.6)
            wire.plot(steps.t_s, steps.wire_C[:, i], color=colour, lw=0.9)
        duty.set_ylabel("duty")
        wire.set_ylabel("wire [°C]")
        sine.set_xlabel("time [s]")
        mark_simulated(figure, force)
    return figure
