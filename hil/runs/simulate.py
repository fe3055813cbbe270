"""One run on the virtual clock and simulated devices, in memory: no file, no other process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hil.devices.injection import Injection
from hil.errors import ConfigError, ModelError, one_line
from hil.experiment.loaded import Experiment
from hil.mechanics.system import System
from hil.record.memory import MemorySink
from hil.runs.assembly import build
from hil.runs.plan import Plan
from hil.runs.recording import contents_of, note_end, note_start, summary_of
from hil.runs.rehearsal import compile_tick
from hil.runs.trial import Trial

if TYPE_CHECKING:
    import xarray as xr


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
    """
    plan = Plan(config, seed=seed, injection=injection, plant=plant)
    pipeline = build(plan)
    sink = MemorySink(pipeline.frame, contents_of(plan, pipeline, {}))
    try:
        for name, (device, _) in pipeline.rig.samplers().items():
            device.record_raw(sink.raw[name])
        compile_tick(config)
        context = pipeline.context(plan.new_clock(), sink)
        trial = Trial(context)
        with trial:
            note_start(context, plan, plan.status, ())
            trial.self_test()
            trial.run()
        outcome = trial.look_back()
        note_end(context, outcome, "")
        n_periods = context.n_ticks if outcome == "complete" else None
        figures = sink.summary(context.period_s, plan.clock, n_periods)
        return sink.dataset(outcome, summary_of(trial, plan.status) | figures)
    except ModelError as error:
        raise ConfigError(one_line(f"{config.path}: model: {error}")) from None
    finally:
        sink.close()
