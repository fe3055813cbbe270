"""Runs a campaign trial by trial and writes its journal; can stop and resume after any line."""

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hil.config.values import Figures
from hil.errors import ConfigError, DeviceError, one_line
from hil.experiment.expectations import MISSED
from hil.experiment.loaded import Experiment
from hil.mechanics.system import System
from hil.platform.parallel import Pace, Scheduler
from hil.platform.processes import is_alive, this_process
from hil.platform.provenance import software
from hil.record.append_log import AppendLog, Entry
from hil.record.layout import text_of
from hil.record.progress import count_progress
from hil.record.read import open_h5
from hil.record.repair import describe, recover
from hil.runs import session
from hil.runs.campaign import waits
from hil.runs.campaign.commission import entry_of, known_of
from hil.runs.campaign.journal import JOURNAL, Progress, progress_of, refuse_outside, time_text
from hil.runs.campaign.lines import attempt_of, attributes_of, begin_line, end_line, now
from hil.runs.campaign.operator import Operator
from hil.runs.campaign.parallel import Workers, commissioning_of, work_of
from hil.runs.campaign.plan import Campaign, Trial
from hil.runs.campaign.search import Search
from hil.runs.campaign.stream import Stream
from hil.runs.campaign.tables import WORST
from hil.runs.campaign.tuned import head_of, settings_of, tunings_of
from hil.runs.campaign.worst import worst_of
from hil.runs.figures import figures_of
from hil.runs.plan import Plan
from hil.runs.recording import Output
from hil.runs.session import View

Say = Callable[[str], None]
DONE, TRIPPED, ANSWER_NO, INTERRUPTED = 0, 3, 5, 130
CUTS_SHOWN = 3
NO_RECORDER = {"disk_low", "recorder_dead"}  # trips that say nothing of their trial


@dataclass(frozen=True)
class Options:
    """Where and how a campaign runs.

    Attributes
    ----------
    backend, clock : as `hil.runs.plan.Plan`
    rehearsal : run on the simulated rig and the virtual clock, without an operator
    strict : refuse doubtful calibrations
    progress : draw progress bars
    scheduler : a Dask scheduler
    jobs : number of processes at most; None for one a core
    carries_on : one simulated plant serves the whole campaign, as a bench does; else every trial
        starts with a new one at rest; `launch` says which
    apart : the trials may run in parallel, in any order; `launch` says whether
    """

    backend: str = "sim"
    clock: str | None = None
    rehearsal: bool = False
    strict: bool = False
    progress: bool = False
    scheduler: Scheduler | None = None
    jobs: int | None = None
    carries_on: bool = False
    apart: bool = False


class Stopped(Exception):  # noqa: N818  not an error: the operator, a rule or the guard ended it
    """The campaign stops and can resume later.

    Parameters
    ----------
    code : exit code
    """

    def __init__(self, why: str, code: int) -> None:
        super().__init__(why)
        self.code = code


class Bench:
    """Passes the simulated plant from trial to trial while its tables stay the same."""

    def __init__(self, carries_on: bool) -> None:
        self._carries_on = carries_on
        self._made_of: object = None
        self._system: System | None = None

    def system(self, config: Experiment) -> System | None:
        """The plant in the state after the last trial; None if each trial has a new plant."""
        if not self._carries_on:
            return None
        made_of = (config.tables.plant, config.tables.loop.period_s)
        if self._system is None or made_of != self._made_of:
            self._made_of, self._system = made_of, config.system(plant=True)
        return self._system


class Runner:
    """Runs the trials that its journal does not have yet.

    Parameters
    ----------
    folder : folder of journal and recordings
    say : receives a line of text for the operator
    """

    def __init__(
        self, campaign: Campaign, folder: Path, options: Options, operator: Operator, say: Say
    ) -> None:
        self.campaign = campaign
        self.folder = folder
        self.options = options
        self._operator = operator
        self._say = say
        self._bench = Bench(options.carries_on)
        self._instructed: dict[str, object] = {}

    def run(self) -> int:
        """Run to the end, or until something stops the campaign; returns the exit code.

        Raises
        ------
        ConfigError, DeviceError
            The campaign stopped for this reason, which is also in the journal.
        """
        with AppendLog(self.folder / JOURNAL) as log:
            self._log = log
            refuse_outside(log.path, log.entries)
            self._begin()
            self._stream = Stream(self.folder, log.entries, self._say)
            try:
                self._settle()
                if self.progress.left:
                    self._answers("start", 0)
                if self.options.scheduler or self.campaign.tables.in_memory:
                    self._run_apart(Pace(self.options.jobs))
                else:
                    self._run_series()
                self._answers("end", 0)
            except Stopped as stop:
                self._stop(str(stop))
                return stop.code
            except KeyboardInterrupt:
                self._stop("interrupted")
                return INTERRUPTED
            except Exception as error:
                self._stop(one_line(str(error)) or type(error).__name__)
                raise
            finally:
                self._stream.rewrite()
            return self._verdict()

    @property
    def progress(self) -> Progress:
        return progress_of(self._log.entries)

    def _begin(self) -> None:
        """Write the first line of a new journal, or check that the journal is of this campaign."""
        campaign, options = self.campaign, self.options
        how = {"backend": options.backend, "clock": options.clock, "rehearsal": options.rehearsal}
        if not self._log.entries:
            if any(self.folder.glob("trials/*.h5")):
                raise ConfigError(
                    f"{self._log.path}: missing or empty, but trials/ has recordings: put the "
                    "journal back, or give another --out"
                )
            plan = [
                {
                    "trial": t.number, "experiment": t.experiment, "levels": dict(t.levels),
                    "repeat": t.repeat, "block": t.block, "seed": t.seed,
                    "duration_s": campaign.duration_of(t),
                    **({"plant": t.plant, "drawn": campaign.listed(t)} if t.plant else {}),
                }
                for t in campaign.trials
            ]  # fmt: skip
            self._log.add(
                {
                    "kind": "campaign", "name": campaign.tables.campaign.name,
                    "file": str(campaign.path), "fingerprint": campaign.fingerprint(),
                    "contents": campaign.contents(),
                    "operator": campaign.tables.campaign.operator, **how,
                    "measures": list(campaign.tables.measures), **head_of(campaign),
                    "worst_by": campaign.tables.worst_by,
                    "software": software(), "plan": plan,
                }
            )  # fmt: skip
        head = self._log.entries[0]
        refuse_other(campaign, self.folder, head)
        for key, value in how.items():
            if head[key] != value:
                raise ConfigError(
                    f"{self.folder}: began with {key} {head[key]}, not {value}: use the same "
                    "option, or start again with another --out"
                )
        self._log.add({"kind": "session", "utc": now(), **this_process()})

    def _settle(self) -> None:
        """Repair the recordings of attempts that were cut off; their trials are repeated."""
        for part in self.folder.glob("trials/*-*.h5.*.new"):  # as `record.layout.create` names it
            pid = part.name.split(".")[-2]
            if pid.isdecimal() and not is_alive(int(pid)):
                part.unlink()
        attempts = self.progress.attempts
        for one in self.campaign.trials:  # those that run apart write no line when they begin
            attempt = attempts.get(one.number, 0) + 1
            if (self.folder / (file := _file_of(one, attempt))).is_file():
                self._log.add(begin_line(one, attempt, file))
        opened = self.progress.open
        cut = list(opened)
        for trial, begun in opened.items():
            path, rows, trouble = self.folder / begun["file"], None, ""
            recording = "nothing was recorded"
            if path.is_file() and self._is_of_another(path, begun):
                begun, recording = {**begun, "file": ""}, f"{path} is of another run and stays"
            elif path.is_file():
                recording = f"its recording is kept in {path}"
                try:
                    recover(path)
                    rows = describe(path)["rows"]
                except (ConfigError, DeviceError) as error:
                    trouble = one_line(str(error))
            self._log.add(
                {
                    "kind": "cut", "trial": trial, "attempt": begun["attempt"],
                    "outcome": "cut", "file": begun["file"], "rows": rows, "error": trouble,
                }
            )  # fmt: skip
            if trial in cut[:CUTS_SHOWN]:
                self._say(f"trial {trial} was cut off: {recording}; it is repeated")
        if len(cut) > CUTS_SHOWN:
            self._say(f"{len(cut) - CUTS_SHOWN} more trials were cut off")

    def _is_of_another(self, path: Path, begun: Entry) -> bool:
        """Whether a file is the recording of another run than this attempt, as far as it says."""
        facts = {
            "name": self.campaign.tables.campaign.name,
            "trial": begun["trial"], "attempt": begun["attempt"],
        }  # fmt: skip
        mine = json.dumps(facts).removesuffix("}")  # `lines.attributes_of` begins with it
        try:
            with open_h5(path, head=True) as file:
                return not text_of(file.attrs.get("campaign", "")).startswith(f"{mine},")
        except ConfigError:  # cut off or damaged, or no recording, which no repair changes
            return False

    def _run_series(self) -> None:
        """Run trial by trial; the remaining ones in parallel where they can and it pays."""
        left, pace = self.progress.left, Pace(self.options.jobs)
        by_number = {trial.number: trial for trial in self.campaign.trials}
        for i, number in enumerate(left):
            if self.options.apart and pace.pays(len(left) - i):
                self._run_apart(pace)
                return
            began_s = time.monotonic()
            self._trial(by_number[number])
            pace.note(time.monotonic() - began_s)

    def _run_apart(self, pace: Pace) -> None:
        """Run all remaining trials, each on a rig of its own, after the search for their settings.

        A simulated trial that trips is not repeated: it would trip again.
        """
        options = self.options
        with Workers(
            self.campaign, pace, strict=options.strict, scheduler=options.scheduler
        ) as workers:
            self._commission(workers)
            self._tune(workers)
            self._run_trials(workers)

    def _commission(self, workers: Workers) -> None:
        """Fit the model of every plant that has none yet."""
        table = self.campaign.tables.commission
        if table is None:
            return
        done = known_of(self._log.entries)
        trials = [one for one in self.campaign.commissioning() if one.plant not in done]
        works = [commissioning_of(self.campaign, trial, table) for trial in trials]
        with count_progress("commissioning", len(works), self.options.progress) as advance:
            for work, result in workers.run(works, len(self.campaign.trials)):
                if result["outcome"] == "failed":
                    raise DeviceError(f"plant {work.number}: {result['error']}")
                self._log.add(entry_of(work.number, result))
                advance(1)
        self.campaign = replace(self.campaign, known=known_of(self._log.entries))

    def _tune(self, workers: Workers) -> None:
        """Give every controller its best setting."""
        table = self.campaign.tables.tune
        if table is None:
            return
        search = Search(self.campaign, table, self._log)
        if n_left := search.n_left:
            with count_progress("tuning", n_left, self.options.progress) as advance:
                search.run(workers, advance)
        tuned = settings_of(self.campaign, self._log.entries)
        self.campaign = replace(self.campaign, tuned=tuned)
        for one in tunings_of(self.progress) if n_left else ():
            self._say(str(one))
            for line in one.warnings:
                self._say(f"warning: {one.controller}: {line}: widen it")

    def _run_trials(self, workers: Workers) -> None:
        keep = self.campaign.tables.campaign.keep
        self._record("none" if keep.startswith(WORST) else keep, self.progress.left, workers)
        worst = [n for n in worst_of(self.campaign, self.progress) if not self._has_recording(n)]
        if worst:
            self._record("all", worst, workers)

    def _has_recording(self, number: int) -> bool:
        file = self.progress.ends[number].get("file", "")
        return bool(file) and (self.folder / file).is_file()

    def _record(self, keep: str, numbers: Sequence[int], workers: Workers) -> None:
        """Run these trials; `keep` says which recordings stay."""
        p, by_number = self.progress, {t.number: t for t in self.campaign.trials}
        begun, works = {}, []
        for number in numbers:
            again = number in p.settled  # for its recording, which is the only thing that is new
            trial, attempt = by_number[number], p.attempts.get(number, 0) + (not again)
            file = _file_of(trial, attempt)
            begun[number] = (trial, attempt, file)
            out = str((self.folder / file).resolve())
            attributes = attributes_of(self.campaign, trial, attempt, p)
            work = work_of(self.campaign, trial, number)
            works.append(work._replace(keep=keep, out=out, attributes=attributes))
        rule = self.campaign.tables.after_trip
        then = rule.then if rule.do == "retry" else rule.do
        advance: Callable[[int], None]
        with count_progress("trials", len(works), self.options.progress) as advance:
            for work, result in workers.run(works):
                trial, attempt, file = begun[work.number]
                file = file.with_name(result.pop("name", file.name))
                self._log.add({**attempt_of(trial, attempt, file), **result, "kind": "end"})
                self._stream.append()
                advance(1)
                if trial.number in p.settled:
                    self._refuse_lost(trial, result)
                elif result["outcome"] == "failed":
                    raise DeviceError(f"trial {trial.number}: {result['error']}")
                elif result["outcome"] == "refused":
                    self._skip(trial, f"refused: {result['error']}")
                elif result["outcome"] == "tripped":
                    why = f"tripped by {', '.join(result['faults'])}"
                    if then == "stop" or not NO_RECORDER.isdisjoint(result["faults"]):
                        raise Stopped(f"trial {trial.number} {why}", TRIPPED)
                    self._skip(trial, why)

    def _refuse_lost(self, trial: Trial, result: Figures) -> None:
        """Stop if the run for a trial's recording ended otherwise than the trial."""
        if not self._has_recording(trial.number):
            why = result["error"] or ", ".join(result["faults"]) or result["outcome"]
            raise DeviceError(
                f"trial {trial.number} keeps its figures, but its recording, which the same "
                f"command makes again, failed: {why}"
            )

    def _trial(self, trial: Trial) -> None:
        """Run attempts until the trial is settled."""
        failures = 0
        while True:
            self._tell(trial)
            self._answers("trial", trial.number)
            if not self._wait(trial):
                return
            outcome, why = self._attempt(trial)
            if outcome == "complete":
                return
            if outcome == "aborted":
                raise Stopped(f"trial {trial.number} was interrupted", INTERRUPTED)
            failures += 1
            rule = self.campaign.tables.after_trip
            then = rule.do
            if then == "ask":
                text = f"trial {trial.number} tripped by {why}: what now?"
                with self._asking(text):
                    then = self._operator.decide(text, ("retry", "skip", "stop"))
            elif not NO_RECORDER.isdisjoint(why.split(", ")):
                then = "stop"
            elif then == "retry" and failures > rule.retries:
                then = rule.then
            if then == "stop":
                raise Stopped(f"trial {trial.number} tripped by {why}", TRIPPED)
            if then == "skip":
                self._skip(trial, f"tripped by {why}")
                return

    @contextlib.contextmanager
    def _asking(self, text: str) -> Iterator[None]:
        """Let those who read the journal know that the campaign waits for its operator."""
        waits = self._operator.waits
        if waits:
            self._log.add({"kind": "asked", "text": text})
        yield
        if waits:
            self._log.add({"kind": "asked", "text": ""})

    def _tell(self, trial: Trial) -> None:
        """Tell the operator which settings to change by hand for this trial."""
        for name, table in self.campaign.tables.factors.items():
            level = trial.levels[name]
            if table.tell is not None and self._instructed.get(name) != level:
                text = table.tell.replace("{level}", f"{level} {table.unit}".strip())
                with self._asking(text):
                    self._operator.tell(text)
                self._instructed[name] = level

    def _answers(self, when: str, trial: int) -> None:
        for name, question in self.campaign.tables.questions.items():
            answered = name in self.progress.answers.get(trial, {})
            if question.when == when and not (when == "end" and answered):
                with self._asking(question.ask):
                    answer = self._operator.ask(name, question)
                self._log.add(
                    {"kind": "answer", "question": name, "trial": trial, "answer": answer}
                )
                if question.must is not None and answer != question.must:
                    raise Stopped(f"{question.ask} {_as_word(answer)}", ANSWER_NO)

    def _wait(self, trial: Trial) -> bool:
        """Wait as configured; returns whether the trial may run."""
        tables, options = self.campaign.tables, self.options
        if tables.wait is None and not tables.preconditions:
            return True
        config = self.campaign.config(trial)
        rule = tables.wait
        if rule is not None and not options.rehearsal and options.clock == "real":
            self._say(f"trial {trial.number}: waiting, at most {time_text(rule.longest_s)}")
        while True:
            began_s = time.monotonic()
            wait = waits.wait(
                config, tables, clock=options.clock, backend=options.backend, seed=trial.seed,
                plant=self._bench.system(config),
            )  # fmt: skip
            self._log.add(
                {
                    "kind": "wait", "trial": trial.number, "ended": wait.ended,
                    "waited_s": wait.waited_s, "took_s": time.monotonic() - began_s,
                    "readings": wait.readings, "why": wait.why,
                }
            )  # fmt: skip
            if wait.ended == "met":
                return True
            why = "; ".join(wait.why)
            if wait.ended == "aborted":
                raise Stopped(f"interrupted while waiting for trial {trial.number}", INTERRUPTED)
            if wait.ended == "tripped":
                text = f"the guard tripped while waiting for trial {trial.number}: {why}"
                raise Stopped(text, TRIPPED)
            if wait.ended == "unfit":
                raise Stopped(
                    f"trial {trial.number}: a precondition does not hold: {why}", ANSWER_NO
                )
            text = f"trial {trial.number}: waited for {time_text(wait.waited_s)}: {why}"
            then: str = rule.otherwise if rule is not None else "stop"
            if then == "ask":
                text += ": what now?"
                with self._asking(text):
                    then = self._operator.decide(text, ("wait", "go_on", "skip", "stop"))
            if then == "go_on":
                return True
            if then == "skip":
                self._skip(trial, f"wait timed out: {why}")
                return False
            if then == "stop":
                raise Stopped(text, ANSWER_NO)

    def _attempt(self, trial: Trial) -> tuple[str, str]:
        """Run a trial once; returns its outcome, and the faults that tripped it."""
        config, options = self.campaign.config(trial), self.options
        before = self.progress
        attempt = before.attempts.get(trial.number, 0) + 1
        file = _file_of(trial, attempt)
        self._log.add(begin_line(trial, attempt, file))
        left = f", {time_text(s)} left" if (s := before.left_s()) is not None else ""
        label = f"trial {trial.number} of {before.n_trials}{left}"
        began_s = time.monotonic()
        try:
            result = session.run(
                Plan(
                    config,
                    clock=options.clock or "",
                    backend=options.backend,
                    seed=trial.seed,
                    strict=options.strict,
                    plant=self._bench.system(config),
                ),
                Output(
                    out=self.folder / file,
                    attributes=attributes_of(self.campaign, trial, attempt, before),
                ),
                View(progress=options.progress, label=label),
            )
        except BaseException as error:
            text = one_line(str(error)) or type(error).__name__
            self._log.add(
                {
                    "kind": "end", **attempt_of(trial, attempt, file),
                    "outcome": "failed", "error": text,
                    "duration_s": config.tables.experiment.duration_s,
                    "took_s": time.monotonic() - began_s,
                }
            )  # fmt: skip
            raise
        took_s = time.monotonic() - began_s
        figures = figures_of(result.path, result.summary, self.campaign.tables.measures)
        keys = attempt_of(trial, attempt, file.with_name(result.path.name))
        self._log.add(end_line(keys, config, result, figures, took_s))
        faults = ", ".join(result.summary["first_fault"])
        after = self.progress
        how = result.outcome + (f" by {faults}" if faults else "")
        left = ""
        if (s := after.left_s()) is not None and after.left:
            left = f"; {len(after.left)} left, {time_text(s)}"
        self._say(f"trial {trial.number} of {after.n_trials} ({trial}): {how}{left}")
        if result.outcome != "aborted":  # a signal after the last tick
            result.stop.pass_on()
        return result.outcome, faults

    def _skip(self, trial: Trial, why: str) -> None:
        self._log.add({"kind": "skip", "trial": trial.number, "why": why})
        self._say(f"trial {trial.number} is left out: {why}")

    def _stop(self, why: str) -> None:
        with contextlib.suppress(ConfigError):  # a full disk may be the cause of the stop
            self._log.add({"kind": "stop", "why": why, "utc": now()})
        p = self.progress
        self._say(f"stopped: {why}")
        self._say(f"{p.n_complete} of {p.n_trials} trials are complete, {len(p.left)} left")

    def _verdict(self) -> int:
        """The exit code of a campaign that has ended."""
        progress = self.progress
        verdicts = [v for v in progress.settled.values() if v != "complete"]
        if any(v.startswith("tripped") for v in verdicts):
            return TRIPPED
        missed = any(e.get("figures", {}).get(MISSED) for e in progress.ends.values())
        return ANSWER_NO if verdicts or missed else DONE


def refuse_other(campaign: Campaign, folder: Path, head: Entry) -> None:
    """Refuse a folder whose journal begins with another campaign than this one.

    Raises
    ------
    ConfigError
        It is another one, or a file of this one has changed since.
    """
    if head["fingerprint"] != campaign.fingerprint():
        raise ConfigError(
            f"{folder}: holds another campaign, or {campaign.path} or a configuration has "
            "changed since: undo the change to continue, or start again with another --out"
        )
    contents = campaign.contents()
    if head.get("contents", contents) != contents:
        raise ConfigError(
            f"{folder}: a calibration, a plug-in, an FMU or the commissioning of "
            f"{campaign.path} has changed since: undo the change to continue, or start again "
            "with another --out"
        )


def _file_of(trial: Trial, attempt: int) -> Path:
    """Recording of an attempt, in the campaign's folder."""
    return Path("trials") / f"{trial.number:04d}-{attempt}.h5"


def _as_word(answer: object) -> str:
    if isinstance(answer, bool):
        return "yes" if answer else "no"
    return str(answer)
