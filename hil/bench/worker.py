"""One loop for `hil bench`, in a separate process: ``python -m hil.bench.worker``.

It reads orders from standard input, one JSON line each: `period_s`, `n_ticks`, `recorded` (a
recording's path, or null: rows are counted and dropped) and `out`, the file for deadline, wake-up
and work of every tick as an (n, 3) array of s on the machine's monotonic clock. When an order is
done, it writes a line of JSON: the settings `granted` to `hil.platform.realtime` and the median
time by stage, or the number of rows `lost`.
"""

import json
import sys

import numpy as np
from numpy.typing import NDArray

from hil import bundled_configs
from hil.experiment.load import load
from hil.experiment.loaded import Experiment
from hil.loop.clock import RealClock
from hil.loop.frame import Frame
from hil.loop.stopwatch import STAGES
from hil.record.read import open_run
from hil.runs import assembly, rehearsal, session
from hil.runs.plan import Plan
from hil.runs.recording import Output
from hil.runs.trial import Trial


class _Times(assembly.NoSink):
    """Keeps the timing columns of every row and drops the rest."""

    def __init__(self, frame: Frame, n_ticks: int) -> None:
        names = ["t_s", "late_s", "busy_s", *(f"{stage}_stage_s" for stage in STAGES)]
        first = frame.index(names[0])
        if [frame.index(name) for name in names] != list(range(first, first + len(names))):
            raise ValueError("the loop's timing columns do not stand together")
        self._values = frame.values[first : first + len(names)]
        self.rows: NDArray[np.float64] = np.zeros((n_ticks, len(names)))
        self.n = 0

    def push(self) -> bool:
        self.rows[self.n] = self._values
        self.n += 1
        return True


def run(period_s: float, n_ticks: int, recorded: str | None, out: str) -> dict[str, object]:
    """Run the bundled six-cell array on its simulated rig for this many periods."""
    sets = [
        f"loop.period_s={period_s!r}",
        "loop.overrun='skip'",
        f"experiment.duration_s={period_s * n_ticks!r}",
        "devices.board.hold_s=0.1",
    ]
    config = load(bundled_configs.root() / "configs" / "miga6" / "all_on.toml", sets)
    started_s, rows, answer = _dropped(config) if recorded is None else _recorded(config, recorded)
    ticks = np.empty((len(rows), 3))
    ticks[:, 0] = started_s + rows[:, 0]
    ticks[:, 1] = ticks[:, 0] + rows[:, 1]
    ticks[:, 2] = rows[:, 2]
    np.save(out, ticks)
    return answer


def _dropped(config: Experiment) -> tuple[float, NDArray[np.float64], dict[str, object]]:
    plan = Plan(config, clock="real")
    pipeline = assembly.build(plan)
    times = _Times(pipeline.frame, config.n_ticks)
    rehearsal.compile_tick(config)
    clock = plan.new_clock()
    assert isinstance(clock, RealClock)
    parts = pipeline.context(clock, times)
    with Trial(parts) as trial:
        trial.self_test()
        trial.run()
    rows = times.rows[: times.n]
    medians = np.median(rows[:, 3:], axis=0).tolist()
    stages_s = dict(zip(STAGES, medians, strict=True))
    return clock.started_s, rows, {"granted": trial.granted, "stages_s": stages_s}


def _recorded(
    config: Experiment, path: str
) -> tuple[float, NDArray[np.float64], dict[str, object]]:
    result = session.run(Plan(config, clock="real"), Output(out=path, force=True))
    run = open_run(path)
    rows = np.stack([run[name].values for name in ("t_s", "late_s", "busy_s")], axis=1)
    timing = result.summary["timing"]
    return timing["started_monotonic_s"], rows, {"lost": result.summary["rows_lost"]}


def main() -> int:
    for line in sys.stdin:
        print(json.dumps(run(**json.loads(line))), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
