"""Runs a bundled experiment of configs/leg in the loop, and simulates the leg's true motion.

The loop's rows hold the readings of instruments. The true motion comes from a second simulation of
the same plant with the quantised outputs; on the virtual clock it is identical.
"""

from collections.abc import Sequence

import numpy as np

from hil.bundled_configs import root
from hil.control.build import build_signal
from hil.control.tables import SignalsReferenceTable
from hil.devices.sim.daq import SimOutput
from hil.errors import ModelError
from hil.experiment.load import load
from hil.experiment.loaded import Experiment
from hil.loop.clock import VirtualClock
from hil.mechanics.arrays import Array
from hil.rig.calibrated import cards_of
from hil.rig.instruments import signals_of
from hil.runs import assembly, rehearsal
from hil.runs.plan import Plan
from hil_studies.leg.thesis import Trace

MUSCLES = ("TA", "SOL")


class _Rows(assembly.NoSink):
    """Stores the outputs of the loop's rows."""

    def __init__(self, pipeline: assembly.Pipeline) -> None:
        self._commands = pipeline.rig.commands
        self.outputs: list[Array] = []

    def push(self) -> bool:
        self.outputs.append(self._commands.outputs.copy())
        return True


def configuration(scenario: str, sets: Sequence[str]) -> Experiment:
    """Return a bundled scenario with changes."""
    return load(root() / f"configs/leg/{scenario}.toml", list(sets))


def run_trial(config: Experiment, seed: int = 0) -> Trace:
    """Run the experiment on the virtual clock; return the leg's true motion.

    Raises
    ------
    ModelError
        The guard ended the run.
    """
    pipeline = assembly.build(Plan(config, seed=seed))
    rows = _Rows(pipeline)
    parts = pipeline.context(VirtualClock(), rows)
    outcome = rehearsal.run_simulated(parts)
    if outcome != "complete":
        raise ModelError(f"{config.path.stem}: the run ended as {outcome}")
    return true_motion(config, np.array(rows.outputs))


def true_motion(config: Experiment, commanded: Array) -> Trace:
    """Simulate the plant with these commands, (N, outputs) in the order of the rig."""
    plant = config.system(plant=True)
    tables = config.tables
    card = next(iter(cards_of(tables.devices).values()))
    outputs = list(card.outputs.values())
    step_V = 2.0 * card.range_V / 2**card.resolution_bits
    card_outputs = [SimOutput(list(plant.inputs).index(o.drives), o.units_per_V, step_V,
                              card.range_V) for o in outputs]  # fmt: skip
    signal = signals_of(tables.devices)["height"]
    at = [plant.outputs.index(name) for name in (signal, *(f"{m}.tension_N" for m in MUSCLES))]
    n = len(commanded)
    rows: Array = np.zeros((n, 3))
    activation: Array = np.zeros((n, len(MUSCLES)))
    order = [list(plant.inputs).index(f"{m}.activation") for m in MUSCLES]
    u, nothing = np.zeros(len(plant.inputs)), np.zeros(0, dtype=np.uint8)
    for k in range(n):
        rows[k] = plant.y[at]
        for output, value in zip(card_outputs, commanded[k], strict=True):
            u[output.input] = output.set_to(float(value))
        activation[k] = u[order]
        plant.step(nothing, u)
    assert isinstance(tables.reference, SignalsReferenceTable)
    follows = build_signal(tables.reference.signals["height"])
    t_s: Array = np.array([k * tables.loop.period_s for k in range(n)])
    target = np.array([follows.at(float(t)) for t in t_s])
    return Trace(t_s, target, rows[:, 0], activation, rows[:, 1:], float(rows[:, 1:].min()))
