"""Gymnasium environments of bundled rigs: an agent switches the cells of a simulated rig.

Importing this module registers `hil/Array6-v0` and the others of `BUNDLED`.

An episode is one run of the loop in memory, with the emulated board, the transducer's noise and
delay, and the guard, as `hil.simulate` makes it. Set points are steps of force at random times.

- Observation: measured force and set point over the range of the set points, then the last command
  of every cell. A tick without a reading keeps the last one.
- Action, held for `step_s`: 1 or 0 for every cell; with `duties` a duty from 0 to 1.
- Reward: -((F - r) / range)^2, at the end of the step; a trip of the guard costs 1 for every step
  that is left, and ends the episode.
- `info` has `t_s`, `force_N`, `set_point_N` and the names of the faults.

Source of the interface: Towers et al. 2024, Gymnasium: A Standard Interface for Reinforcement
Learning Environments, arXiv:2407.17032.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

import hil
from hil import bundled_configs
from hil.config.values import Figures
from hil.devices.board import protocol
from hil.devices.tables import CellBoardTable
from hil.errors import ConfigError
from hil.experiment.loaded import Experiment
from hil.loop import guard
from hil.loop.duty import STEPS
from hil.mechanics.arrays import Array
from hil.plugins.code import Facts, Now
from hil.runs.plan import Plan
from hil.runs.simulate import Simulation

if TYPE_CHECKING:
    import xarray as xr

HOLDS_S = (0.5, 3.0)  # between two steps of the set point
COLUMNS = ("t_s", "force_measured_N", "force_reference_N")
BEYOND = 10.0  # ranges of the set point; an observed force is clipped there
ENDED = object()
BUNDLED: dict[str, Figures] = {
    "Array6-v0": {"config": "configs/miga6/pid.toml", "range_N": (0.0, 1.4)},
    "Array14-v0": {"config": "configs/array14/pid.toml", "range_N": (0.0, 3.6)},
    "Wires4-v0": {"config": "configs/wires4/hold.toml", "range_N": (0.0, 1.4), "duties": True},
    "SpringBias-v0": {
        "config": "configs/spring_bias/pulse.toml", "range_N": (0.0, 0.4), "duties": True,
    },
    "Antagonist-v0": {
        "config": "configs/antagonist/steps.toml", "range_N": (-0.8, 0.8), "duties": True,
    },
}  # fmt: skip
DUTY_MIN = protocol.DUTY_MIN_PER_255 / STEPS


class RigEnvironment(gymnasium.Env[Array, NDArray[Any]]):
    """See the module.

    Parameters
    ----------
    config : experiment whose controller and reference the agent and the random steps replace; a
        bundled one by its name, such as `configs/miga6/pid.toml`
    range_N : least and greatest set point
    duties : the action is a duty for every cell, which a board modulates
    step_s, duration_s : of an action and of an episode
    sets : `key.path=value` texts that change keys of the configuration

    Raises
    ------
    hil.errors.ConfigError
        The rig has no force or no cells, or an argument is refused.
    """

    metadata: Figures = {"render_modes": []}  # noqa: RUF012 as Gymnasium declares it

    def __init__(
        self,
        config: str | Path,
        range_N: tuple[float, float],
        *,
        duties: bool = False,
        step_s: float = 0.1,
        duration_s: float = 10.0,
        sets: Sequence[str] = (),
    ) -> None:
        bundled = bundled_configs.root() / config
        self._path = bundled if bundled.exists() else Path(config)
        self._low_N, self._span_N = range_N[0], range_N[1] - range_N[0]
        self._sets, self._duties = (*sets, f"experiment.duration_s={duration_s}"), duties
        self._duration_s = duration_s
        self._simulation: Simulation | None = None
        self._dataset: xr.Dataset | None = None
        tables = self._experiment({"t_s": [0.0], "force_N": [range_N[0]]}).tables
        period_s = tables.loop.period_s
        if not (step_s >= period_s and 0.0 < self._span_N < np.inf):
            raise ConfigError(
                f"step_s = {step_s:g}, range_N = {range_N}: give a step of at least a period of "
                f"the loop, {period_s:g} s, and a range that rises"
            )
        self._n_ticks = round(step_s / period_s)
        boards = [d for d in tables.devices.values() if isinstance(d, CellBoardTable)]
        n, self._period_s = sum(len(b.cells) for b in boards), tables.loop.period_s
        self._commands = np.zeros(n)
        held = spaces.Box(0.0, 1.0, (n,), np.float64) if duties else spaces.MultiBinary(n)
        self.action_space: spaces.Space[NDArray[Any]] = held
        low, high = np.full(2, -BEYOND), np.full(2, BEYOND)
        self.observation_space = spaces.Box(
            np.append(low, np.zeros(n)), np.append(high, np.ones(n)), dtype=np.float64
        )

    def reset(
        self, *, seed: int | None = None, options: Figures | None = None
    ) -> tuple[Array, Figures]:
        """Begin an episode: another noise and other set points, which follow from the seed."""
        super().reset(seed=seed)
        self.close()
        self._commands[:] = 0.0
        config = self._experiment(self._random_steps())
        run_seed = int(self.np_random.integers(2**31))
        simulation = Simulation(Plan(config, seed=run_seed))
        self._simulation = simulation.__enter__()
        frame = simulation.pipeline.frame
        self._row, self._at = frame.values, [frame.index(name) for name in COLUMNS]
        self._ticks, self._guard = simulation.trial.ticks(), simulation.trial.context.guard
        self._force_N = self._low_N
        self._take(1)
        return self._observation(), self._info()

    def step(self, action: NDArray[Any]) -> tuple[Array, float, bool, bool, Figures]:
        """Hold an action for a step; see the module for what is returned."""
        if self._simulation is None:
            raise gymnasium.error.ResetNeeded("the episode has ended: call reset()")
        try:
            values = np.asarray(action, dtype=np.float64)
        except ValueError:
            values = np.full(0, np.nan)
        if values.shape != self._commands.shape or not ((values >= 0) & (values <= 1)).all():
            raise ValueError(f"action {action!r}: give {self.action_space}")
        least = DUTY_MIN if self._duties else 1.0
        self._commands[:] = np.where(values < 0.5 * least, 0.0, np.maximum(values, least))
        ended = self._take(self._n_ticks)
        info = self._info()
        reward = -(((info["force_N"] - info["set_point_N"]) / self._span_N) ** 2)
        tripped = bool(info["faults"])
        if tripped:
            left_s = self._duration_s - info["t_s"]
            reward -= max(0.0, left_s) / (self._n_ticks * self._period_s)
        observation = self._observation()
        if ended or tripped:
            self._end()
        return observation, float(reward), tripped, ended and not tripped, info

    def dataset(self) -> xr.Dataset:
        """The recording of the last episode that ended, as `hil.simulate` returns it."""
        if self._dataset is None:
            raise gymnasium.error.ResetNeeded("no episode has ended yet")
        return self._dataset

    def close(self) -> None:
        """End the episode: everything is off; its recording stays until the next one."""
        if self._simulation is not None:
            self._end()

    def _end(self) -> None:
        simulation, self._simulation = self._simulation, None
        assert simulation is not None
        self._ticks.close()
        simulation.__exit__(None, None, None)
        self._dataset = simulation.dataset()

    def _experiment(self, steps: Figures) -> Experiment:
        agent = _agent(getattr(self, "_commands", np.zeros(0)), self._duties)
        return hil.load(
            self._path, self._sets, controller=agent, reference={"kind": "steps", **steps}
        )

    def _random_steps(self) -> dict[str, list[float]]:
        """Set points and when they begin; the first one at once."""
        rng, t_s, force_N = self.np_random, [0.0], []
        while t_s[-1] < self._duration_s:
            force_N.append(self._low_N + self._span_N * float(rng.random()))
            t_s.append(t_s[-1] + float(rng.uniform(*HOLDS_S)))
        return {"t_s": t_s[:-1], "force_N": force_N}

    def _take(self, n_ticks: int) -> bool:
        """Take ticks of the loop; returns whether it has ended."""
        for _ in range(n_ticks):
            if next(self._ticks, ENDED) is ENDED:
                return True
            measured_N = float(self._row[self._at[1]])
            if isfinite(measured_N):
                self._force_N = measured_N
        return False

    def _observation(self) -> Array:
        set_point_N = float(self._row[self._at[2]])
        forces = (np.array([self._force_N, set_point_N]) - self._low_N) / self._span_N
        return np.append(np.clip(np.nan_to_num(forces), -BEYOND, BEYOND), self._commands)

    def _info(self) -> Figures:
        t_s, _, set_point_N = (float(self._row[at]) for at in self._at)
        faults = guard.names_of(self._guard.fault_bits)
        return {
            "t_s": t_s, "force_N": self._force_N, "set_point_N": set_point_N, "faults": faults,
        }  # fmt: skip


def _agent(commands: NDArray[np.float64], in_duties: bool) -> type:
    """The controller of an episode: it commands what the environment's last action says."""

    class Agent:
        duties = in_duties

        def __init__(self, facts: Facts, values: Figures) -> None:
            pass

        def step(self, now: Now) -> NDArray[np.float64]:
            return commands.copy()

    return Agent


for _name, _arguments in BUNDLED.items():
    gymnasium.register(f"hil/{_name}", "hil.environments:RigEnvironment", kwargs=_arguments)
