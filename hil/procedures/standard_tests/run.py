"""`hil test NAME RIG`: writes the campaign of a test, runs it, analyses it, writes its page."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hil.config.files import Merged, parse_set
from hil.config.validate import validated
from hil.errors import ConfigError, one_line, remedy
from hil.procedures.standard_tests import dynamic, fatigue, imposed, thermal
from hil.procedures.standard_tests.kind import Results, TestKind, Trial
from hil.procedures.standard_tests.subject import Subject, subject_of, write_experiment, write_toml
from hil.record.read import open_run
from hil.runs.campaign import page as campaign_page
from hil.runs.campaign.journal import read_progress
from hil.runs.campaign.launch import launch
from hil.runs.campaign.runner import Options, Say
from hil.runs.plan import Plan
from hil.runs.study import write_results

CAMPAIGNS = {
    "isobaric": TestKind(thermal.IsobaricValues, thermal.plan_isobaric, thermal.analyse_isobaric),
    "isothermal": TestKind(
        imposed.IsothermalValues, imposed.plan_isothermal, imposed.analyse_isothermal
    ),
    "isometric": TestKind(thermal.Values, thermal.plan_isometric, thermal.analyse_isometric),
    "step-battery": TestKind(dynamic.StepValues, dynamic.plan_steps, dynamic.analyse_steps),
    "bode": TestKind(dynamic.BodeValues, dynamic.plan_bode, dynamic.analyse_bode),
    "force-velocity": TestKind(
        dynamic.VelocityValues, dynamic.plan_velocity, dynamic.analyse_velocity
    ),
    "work-loop": TestKind(
        imposed.WorkLoopValues, imposed.plan_work_loop, imposed.analyse_work_loop
    ),
}
NAMES = (*CAMPAIGNS, "fatigue")
DONE = 0


def run_test(
    name: str, rig: Path, sets: Iterable[str], out: Path, options: Options, say: Say
) -> tuple[int, Results]:
    """Run a test, or continue it in its folder; returns the exit code and the results.

    Raises
    ------
    ConfigError
        The test, a setting or the rig is refused; or the readings do not give the figures.
    """
    if name not in NAMES:
        raise ConfigError(f"test '{name}': unknown{remedy(name, NAMES)}")
    table_of = fatigue.Values if name == "fatigue" else CAMPAIGNS[name].values
    values = _values(name, table_of, sets)
    subject = subject_of(rig, out)
    if name == "fatigue":
        code, results = fatigue.run(values, subject, out, options, say)
    else:
        code, trials = _campaign(name, values, subject, out, options, say)
        if code != DONE:
            return code, {}
        try:
            results = CAMPAIGNS[name].analyse(values, subject, trials, out)
        except ConfigError as error:
            kept = f"the recordings are in {out / 'campaign'}"
            raise ConfigError(f"test {name}: {error} (--set, with another --out); {kept}") from None
    head = {"test": name, "rig": str(rig), "values": values.model_dump()}
    return code, write_results(out, {**head, **results})


def _values(name: str, table: Any, sets: Iterable[str]) -> Any:
    contents: dict[str, object] = {}
    for text in sets:
        change = parse_set(text)
        if not change.keys() <= table.model_fields.keys():
            has = ", ".join(table.model_fields)
            raise ConfigError(f"--set {one_line(text)}: this test has {has}")
        contents |= change
    return validated(table, Merged(contents, [(f"test {name}", contents)]))


def _campaign(
    name: str, values: object, subject: Subject, out: Path, options: Options, say: Say
) -> tuple[int, list[Trial]]:
    plan = CAMPAIGNS[name].plan(values, subject)
    experiment = write_experiment(subject.rig, out, name, plan.duration_s, plan.steps, plan.outputs)
    on_bench = Plan(subject.config, options.backend, options.clock or "").on_bench
    factors = {
        key: {k: v for k, v in factor.items() if k != "tell" or on_bench}
        for key, factor in plan.factors.items()
    }
    told = any("tell" in factor for factor in factors.values())
    table: dict[str, object] = {
        "campaign": {
            "name": name, "experiments": [experiment.name], "repeats": plan.repeats,
            "order": "blocks" if plan.repeats > 1 and not told else "listed",
        },
        "factors": factors,
    }  # fmt: skip
    path = write_toml(out / "campaign.toml", table)
    started = launch(path, options, out=out / "campaign", say=say)
    try:
        code = started.runner.run()
    finally:
        campaign_page.write_all(started.folder)
    log = read_progress(started.folder)
    trials = [
        Trial(entry["levels"], open_run(started.folder / log.ends[entry["trial"]]["file"]))
        for entry in log.head["plan"]
        if log.settled.get(entry["trial"]) == "complete"
    ]
    return code, trials
