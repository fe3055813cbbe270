"""One run on the virtual clock and simulated devices, in memory: no file, no other process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hil.devices.injection import Injection
from hil.errors import ConfigError, ModelError, one_line
from hil.experiment.loaded import Experiment
from hil.loop.clock import StallingClock, VirtualClock
from hil.mechanics.system import System
from hil.record.memory import MemorySink
from hil.rig.rig import parse_backend
from hil.runs.assembly import build, parts_of
from hil.runs.rehearsal import compile_tick
from hil.runs.session import (
    contents_of,
    note_end,
    note_start,
    refuse_run,
    status_now,
    summary_of,
)
from hil.runs.trial import Trial

if TYPE_CHECKING:
    import xarray as xr

BACKEND, CLOCK = "sim", "virtual"


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
    backends = parse_backend(BACKEND, config.tables)
    refuse_run(config, backends, CLOCK, seed, injection)
    status = status_now(config, backends, strict=False)
    pipeline = build(config, seed, backends, injection, plant)
    where: dict[str, str | int] = {"backend": BACKEND, "clock": CLOCK, "seed": seed}
    sink = MemorySink(pipeline.frame, contents_of(config, pipeline, where, {}))
    try:
        for name, (device, _) in pipeline.rig.samplers().items():
            device.record_raw(sink.raw[name])
        compile_tick(config)
        clock = (
            VirtualClock()
            if injection is None
            else StallingClock(injection.stall_s, injection.asleep_s)
        )
        parts = parts_of(config, pipeline, clock, sink)
        trial = Trial(parts)
        with trial:
            note_start(parts, config, status.events(on_bench=False), ())
            trial.self_test()
            trial.run()
        outcome = trial.look_back()
        note_end(parts, outcome, "")
        n_periods = parts.n_ticks if outcome == "complete" else None
        figures = sink.summary(parts.period_s, CLOCK, n_periods)
        return sink.dataset(outcome, summary_of(trial, status) | figures)
    except ModelError as error:
        raise ConfigError(one_line(f"{config.path}: model: {error}")) from None
    finally:
        sink.close()
