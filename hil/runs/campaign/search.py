"""Tunes the controllers of a campaign: runs what the sampler proposes, and keeps the results."""

from collections.abc import Callable
from typing import NamedTuple

from hil.config.values import Figures
from hil.errors import ConfigError, DeviceError
from hil.record.append_log import AppendLog
from hil.runs.campaign.parallel import Work, Workers, work_of
from hil.runs.campaign.plan import Campaign, Trial, as_sets
from hil.runs.campaign.tune_tables import TuneTable
from hil.runs.campaign.tuned import entry_of, tried_of
from hil.runs.campaign.tuning import ROUND, Controller, Objective, Setting, proposed


class Job(NamedTuple):
    """A setting that is tried in `trials`."""

    controller: Controller
    number: int
    setting: Setting
    trials: list[Trial]

    def __str__(self) -> str:
        values = ", ".join(f"{key} = {value!r}" for key, value in self.setting.items())
        return f"tuning {self.controller} with {values}"


class Search:
    """The search for the settings of all controllers of a campaign, round by round.

    Parameters
    ----------
    table : of the campaign
    log : its journal, which gets a line for each setting
    """

    def __init__(self, campaign: Campaign, table: TuneTable, log: AppendLog) -> None:
        self._campaign, self._table, self._log = campaign, table, log
        self._objective = Objective(str(campaign.path), table)

    @property
    def n_left(self) -> int:
        """Number of runs that are left."""
        return sum(
            (self._table.budget - len(tried_of(self._log.entries, one.index)))
            * len(self._campaign.tuning_trials(one))
            for one in self._campaign.controllers
            if one.parameters
        )

    def run(self, workers: Workers, advance: Callable[[int], None]) -> None:
        """Try settings until every controller has had its budget.

        Raises
        ------
        DeviceError
            A run failed; the results so far are kept.
        ConfigError
            A setting within the ranges is refused.
        """
        while jobs := self._round():
            of: dict[int, Job] = {}
            works: list[Work] = []
            for job in jobs:
                for trial in job.trials:
                    work = work_of(self._campaign, trial, len(works))
                    of[work.number] = job
                    works.append(work._replace(sets=[*work.sets, *as_sets(job.setting)]))
            results: dict[tuple[int, int], list[Figures]] = {}
            for work, result in workers.run(works, self.n_left - len(works)):
                job = of[work.number]
                if result["outcome"] == "refused":
                    raise ConfigError(
                        f"{self._campaign.path}: {job}: {result['error']}: change the range, and "
                        "give another --out"
                    )
                if result["outcome"] == "failed":
                    raise DeviceError(f"{job}: {result['error']}")
                runs = results.setdefault((job.controller.index, job.number), [])
                runs.append(result)
                advance(1)
                if len(runs) == len(job.trials):
                    weights = self._campaign.tables.weights(job.controller.levels)
                    tried = self._objective.of(job.number, job.setting, weights, runs)
                    self._log.add(entry_of(job.controller, tried))

    def _round(self) -> list[Job]:
        """What is left of the present round of every controller."""
        jobs = []
        for controller in self._campaign.controllers:
            tried = tried_of(self._log.entries, controller.index)
            if not controller.parameters or len(tried) >= self._table.budget:
                continue
            begun = len(tried) // ROUND * ROUND
            n, seed = min(ROUND, self._table.budget - begun), self._campaign.tables.campaign.seed
            numbers = {one.number for one in tried}
            trials = self._campaign.tuning_trials(controller)
            jobs += [
                Job(controller, number, setting, trials)
                for number, setting in proposed(controller, seed, tried[:begun], n)
                if number not in numbers
            ]
        return jobs
