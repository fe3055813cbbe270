"""One run on the virtual clock and simulated devices, in memory: no file, no other process."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Self

from hil.config.values import Figures
from hil.devices.injection import Injection
from hil.errors import ConfigError, ModelError, StopError, one_line
from hil.experiment.loaded import Experiment
from hil.mechanics.system import System
from hil.record.layout import Columns
from hil.record.memory import MemorySink
from hil.record.summary import plain
from hil.runs.assembly import build
from hil.runs.expectations import check, columns_of, judged
from hil.runs.plan import Plan
from hil.runs.recording import contents_of, note_end, note_start, summary_of
from hil.runs.rehearsal import compile_tick
from hil.runs.trial import Trial

if TYPE_CHECKING:
    import xarray as xr


class Simulation:
    """A run on the virtual clock and simulated devices, in memory; a context manager.

    Whatever ends its block, the simulated rig is left as a real one: off and closed.

    Attributes
    ----------
    trial : its loop, to `run` or to take tick by tick
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.pipeline = pipeline = build(plan)
        check(plan.config, pipeline.frame.columns)
        if plan.config.plugins:  # whose first call, which may compile, is not held to its time
            compile_tick(plan.config)
        self._sink = MemorySink(pipeline.frame, contents_of(plan, pipeline, {}))
        for name, (device, _) in pipeline.rig.samplers().items():
            device.record_raw(self._sink.raw[name])
        self.trial = Trial(pipeline.context(plan.new_clock(), self._sink))

    def __enter__(self) -> Self:
        try:
            with contextlib.ExitStack() as stack:
                stack.enter_context(self.trial)
                note_start(self.trial.context, self._plan, self._plan.status, ())
                self.trial.self_test()
                self._stack = stack.pop_all()
        except StopError:  # a signal means more than this run: see `Stop`
            raise KeyboardInterrupt(self.trial.context.inputs.stop.reason) from None
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, trace)
        if error is None:
            self.trial.context.inputs.stop.pass_on()

    def result(self) -> tuple[str, Figures]:
        """Outcome and summary; once, after the block."""
        context, plan = self.trial.context, self._plan
        outcome = self.trial.look_back()
        note_end(context, outcome, "")
        n_periods = context.n_ticks if outcome == "complete" else None
        figures = self._sink.summary(context.period_s, plan.clock, n_periods)
        summary = {**summary_of(self.trial, plan.status), **figures}
        if expected := plan.config.tables.expect:
            columns = self._sink.columns(columns_of(expected))
            summary["expectations"] = plain(judged(expected, columns, summary))
        return outcome, summary

    def dataset(self) -> xr.Dataset:
        """What was recorded, as `hil.open_run` returns it; once, after the block."""
        return self._sink.dataset(*self.result())

    def columns(self, names: Iterable[str]) -> Columns:
        """What was recorded of these columns, after `result`."""
        return self._sink.columns(names)


def simulate(
    config: Experiment,
    seed: int = 0,
    *,
    injection: Injection | None = None,
    plant: System | None = None,
) -> xr.Dataset:
    """Simulate an experiment; returns what `hil.open_run` reads from a run with the same seed.

    Columns, events, inputs and summary are the same, bit for bit, but for the times that the
    computer took. It works in threads and in processes.

    Parameters
    ----------
    injection : faults for the simulated rig
    plant : the simulated plant in the state of an earlier run; by default a new one, at rest

    Raises
    ------
    ConfigError
        The configuration or an argument is refused, or the model failed.
    DeviceError
        A simulated device failed.
    KeyboardInterrupt
        A signal came.
    """
    return _run(Plan(config, seed=seed, injection=injection, plant=plant)).dataset()


def simulated(plan: Plan, names: Iterable[str]) -> tuple[str, Figures, Columns]:
    """Simulate a plan; returns its outcome, its summary and these columns. Raises as `simulate`."""
    simulation = _run(plan)
    return *simulation.result(), simulation.columns(names)


def _run(plan: Plan) -> Simulation:
    """A simulation that has run."""
    try:
        with Simulation(plan) as simulation:
            simulation.trial.run()
    except ModelError as error:
        raise ConfigError(one_line(f"{plan.config.path}: model: {error}")) from None
    return simulation
