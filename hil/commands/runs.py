"""Run: experiments, checks of their files, campaigns, the window."""

from __future__ import annotations

import sys

from hil.commands.parser import (
    ANSWER_NO,
    DONE,
    INTERRUPTED,
    STRICT,
    TRIPPED,
    Group,
    add_scheduler,
    add_sets,
    path_of,
    print_json,
    show,
)
from hil.errors import ConfigError, missing_file
from hil.platform.terminal import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from hil.commands.parser import Parser
    from hil.config.values import Figures
    from hil.devices.injection import Injection
    from hil.experiment.loaded import Experiment
    from hil.record.door import Address
    from hil.runs.plan import Plan
    from hil.runs.recording import Result


# As `hil.procedures.standard_tests.run` has them.
TESTS = (
    "isobaric", "isothermal", "isometric", "step-battery", "bode", "force-velocity", "work-loop",
    "fatigue",
)  # fmt: skip


def add_to(group: Group) -> None:
    """Add these commands."""
    c = group.add(
        run, "run an experiment and record it", "hil run configs/miga6/all_on.toml --seed 7"
    )
    c.path("experiment", "EXPERIMENT.toml")
    c.path("--inject", "FAULTS.toml", "inject faults into a simulated rig")
    c.add_argument(
        "--backend",
        default="sim",
        help="sim, emulated, pty (a board's firmware on a pseudo-terminal) or bench, or one for "
        "each device, as in board=bench,daq=sim; or drivers: the bench's drivers without hardware, "
        "as far as this computer has what they need (default: sim)",
    )
    c.add_argument(
        "--clock",
        choices=("virtual", "real"),
        help="virtual: as fast as the machine can, repeatable (default); real: in real time "
        "(default with a device on the bench or on pty, with --gui, --foxglove and --page)",
    )
    c.value("--duration", "S", "length of the run in s", type=float)
    c.value("--seed", "N", "seed of all random draws (default: 0)", type=int, default=0)
    c.path("--out", "FILE.h5", "default: runs/RIG-EXPERIMENT-UTC.h5")
    c.flag("--force", "overwrite an existing file")
    c.path("--junit", "FILE.xml", "write whether the run met its [[expect]], as JUnit does")
    c.flag("--strict", STRICT)
    c.flag("--disarmed", "keep all cells off until a window arms the run")
    c.flag(
        "--attended",
        "end safely when standard input ends: when the program that started the run dies",
    )
    c.flag("--gui", "show the run in the window, in real time")
    c.flag("--report", "then write its figure and page beside it, as hil report does")
    c.value(
        "--foxglove",
        "[HOST:]PORT",
        "serve the run live to Foxglove, in real time, at this address (default: 127.0.0.1:8765)",
        nargs="?",
        const="",
        type=_foxglove_address,
    )
    _add_page(c)
    add_sets(c)

    c = group.add(
        check,
        "validate files without opening a device",
        "hil check configs/*/*.toml --energise-plan",
    )
    c.path("files", "FILE.toml", nargs="+")
    c.flag("--energise-plan", "print what a run would switch on, and when")
    c.flag("--strict", STRICT)
    add_sets(c)

    c = group.add(
        campaign,
        "run many trials in order, with waits and questions; resumable",
        "hil campaign configs/wires4/campaigns/day.toml --rehearse",
    )
    c.path("campaign", "CAMPAIGN.toml")
    c.flag("--rehearse", "run the campaign on the simulated rig, with scripted answers")
    c.flag("--status", "print the progress; run nothing")
    c.add_argument("--trial", type=int, metavar="N", help="run trial N alone, with a recording")
    c.path(
        "--out", "DIR", "folder of the campaign, in which it resumes (default: runs/campaign-NAME)"
    )
    c.add_argument("--backend", default="sim", help="as for hil run (default: sim)")
    c.add_argument("--clock", choices=("virtual", "real"), help="as for hil run")
    c.path("--answers", "FILE.toml", "answers to the campaign's questions, for an unattended run")
    c.value("--jobs", "N", "processes at most (default: one a core)", type=int)
    add_scheduler(c)
    c.flag("--strict", STRICT)
    _add_page(c)

    c = group.add(
        test,
        "run a standard test of an actuator, with its analysis",
        "hil test isobaric configs/isotonic/rig.toml --out runs/isobaric",
    )
    c.value("name", "TEST", ", ".join(TESTS))
    c.path("rig", "RIG.toml", "the rig with the specimen, or a simulated one")
    c.path("--out", "DIR", "folder, in which the test resumes (default: runs/test-TEST)")
    c.add_argument("--backend", default="sim", help="as for hil run (default: sim)")
    c.add_argument("--clock", choices=("virtual", "real"), help="as for hil run")
    c.several("--set", "KEY=VALUE", "a setting of the test; an unknown one lists all (repeatable)")
    _add_page(c)

    c = group.add(
        watch,
        "serve a page of a bench: its run, campaign, last report",
        "hil watch runs --page 0.0.0.0:8780",
    )
    c.path("folder", "DIR", "folder of the recordings, or of a campaign or test")
    _add_page(c)

    c = group.add(
        publish,
        "publish runs to an MQTT broker or Lab Streaming Layer",
        "hil publish runs --mqtt mqtt://broker.example.org/lab/bench3",
    )
    c.path("folder", "DIR", "folder of the recordings, or of a campaign or test")
    c.value(
        "--mqtt", "ADDRESS", "mqtt[s]://[USER@]HOST[:PORT][/TOPIC]; password: HIL_MQTT_PASSWORD"
    )
    c.flag("--lsl", "every row and event as outlets of Lab Streaming Layer")

    c = group.add(
        gui, "open the window: run an experiment, view recordings", "hil gui configs/miga6/pid.toml"
    )
    c.path("file", "FILE.toml|RUN.h5", "an experiment or a recording", nargs="?")


def _add_page(command: Parser) -> None:
    """Add the options of a page."""
    command.value(
        "--page",
        "[HOST:]PORT",
        "serve a page of the bench for any browser at this address (default: 127.0.0.1:8780)",
        nargs="?",
        const="",
        type=_page_address,
    )
    command.path("--page-certificate", "FILE.pem", "certificate and key: the page is encrypted")


def run(args: argparse.Namespace) -> int:
    from hil.platform.processes import STEP, stop_when_left

    if args.attended:
        stop_when_left()
        say(f"{STEP}reading the experiment", file=sys.stderr)
    from hil.experiment.load import load
    from hil.platform.window import require_window
    from hil.record import summary
    from hil.record.progress import say_compiling
    from hil.runs import junit, session
    from hil.runs.plan import Plan
    from hil.runs.recording import Output
    from hil.watch.start import PageOptions, watched

    if args.junit is not None:
        junit.check(args.junit)
    if args.gui:
        require_window()
    sets = [*args.set]
    if args.duration is not None:
        sets.append(f"experiment.duration_s={args.duration!r}")
    with say_compiling(not args.json):
        config = load(args.experiment, sets)
        plan = Plan(
            config,
            args.backend,
            args.clock or ("real" if args.gui or args.foxglove or args.page else ""),
            args.seed,
            None if args.inject is None else _injection(args.inject),
            strict=args.strict,
        )
        _print_usage_history(plan)
        if plan.left_out:
            say(f"left out, and simulated in this process: {plan.left_out}", file=sys.stderr)
        for line in config.doubts:
            say(f"warning: {line}", file=sys.stderr)
        view = session.View(
            progress=not args.json,
            window=args.gui,
            attended=args.attended,
            armed=not args.disarmed,
            foxglove=args.foxglove,
        )
        folder = path_of("runs") if args.out is None else args.out.parent
        title = f"run {config.rig_name}/{config.path.stem}"
        with watched(PageOptions(args.page, args.page_certificate), folder, title) as ending:
            result = session.run(plan, Output(args.out, args.force), view)
            ending.code, ending.text = _code(result, config), result.outcome
    facts = {"file": str(result.path), **result.summary}
    if not args.json:
        say(summary.as_text(result.path, result.summary))
    if args.junit is not None:
        junit.write(args.junit, config.tables.experiment.name, result.summary)
    if args.report and result.outcome != "aborted":
        from hil.reports.run_report import write_report

        figure, page = write_report(result.path)
        facts |= {"figure": str(figure), "page": str(page)}
        if not args.json:
            say(f"figure: {figure}\npage:   {page}")
    if args.json:
        print_json(facts)
    return _code(result, config)


def _code(result: Result, config: Experiment) -> int:
    """The exit code of a run."""
    if result.outcome == "aborted":
        return INTERRUPTED
    if result.outcome == "tripped" and all(e.outcome is None for e in config.tables.expect):
        return TRIPPED
    return DONE if all(e["passed"] for e in result.summary.get("expectations", [])) else ANSWER_NO


def _print_usage_history(plan: Plan) -> None:
    """Print the usage history of the specimen on the bench before the run."""
    from hil.runs import logbook

    book = logbook.logbook_of(plan.config, plan.backends)
    if book is not None:
        say(logbook.opening(book), file=sys.stderr)


def _foxglove_address(text: str) -> Address:
    """Address of `--foxglove`; empty without a value."""
    from hil.record.live import PORT

    return _address(text, PORT, "--foxglove")


def _page_address(text: str) -> Address:
    """Address of `--page`; empty without a value."""
    from hil.watch.start import PORT

    return _address(text, PORT, "--page")


def _address(text: str, port: int, option: str) -> Address:
    from argparse import ArgumentTypeError

    from hil.record.door import Address, address_of

    if not text:
        return Address(port=port)
    try:
        return address_of(text)
    except ValueError:
        raise ArgumentTypeError(
            f"'{text}' has no port from 0 to 65535: give PORT or HOST:PORT, and other arguments "
            f"before {option}"
        ) from None


def _injection(path: Path) -> Injection:
    from hil.devices.injection import Injection
    from hil.devices.injection_tables import load_faults

    return Injection(load_faults(path))


def check(args: argparse.Namespace) -> int:
    from datetime import UTC, datetime

    from hil.calibration.files import Calibration, Source, overlaps
    from hil.experiment import board_limits, loop_limits
    from hil.experiment.load import interchangeable
    from hil.experiment.loaded import Experiment, LoadedRig
    from hil.experiment.plan import energise_plan, unusual
    from hil.runs.calibration_status import statuses_of
    from hil.runs.campaign.plan import Campaign
    from hil.runs.check import check as check_file

    today = datetime.now(UTC).date()
    faults: list[str] = []
    checked, records = [], []
    for path in args.files:
        try:
            kind, content = check_file(path, args.set)
            entry: Figures = {"file": str(path), "kind": kind}
            if args.strict:
                lines = [
                    f"{path}: {line}"
                    for status in statuses_of(content, today)
                    for line in status.refused(on_bench=True)
                ]
                faults += dict.fromkeys(lines)
            if isinstance(content, Campaign):
                configs = content.configs.values()
                warnings = [line for c in configs for line in (*c.doubts, *interchangeable(c))]
                entry["warnings"] = [*dict.fromkeys(warnings)]
            if isinstance(content, LoadedRig):
                wires = loop_limits.as_text(content.loop_protections)
                entry["wires"] = [*board_limits.as_text(content.protections), *wires]
                unknown = [
                    *(f"{path}: {line}" for line in content.protection_doubts), *unusual(content)
                ]  # fmt: skip
                told = [] if args.strict else unknown
                entry["warnings"] = [*content.doubts, *interchangeable(content), *told]
            if args.energise_plan and isinstance(content, Experiment):
                entry["energise_plan"] = energise_plan(content)
            checked.append(entry)
            if isinstance(content, Calibration | Source):
                records.append(content)
                entry["valid_until"] = content.record.act.valid_until.isoformat()
                entry["expired"] = content.expired(today)
        except ConfigError as error:
            faults.append(str(error))
    faults += overlaps(records)
    lines = []
    for entry in checked:
        over = f", EXPIRED on {entry['valid_until']}" if entry.get("expired") else ""
        lines.append(f"{entry['file']}: a valid {entry['kind']}{over}")
        lines += [f"warning: {line}" for line in entry.get("warnings", [])]
        plan = [*entry.get("energise_plan", []), *entry.get("wires", [])]
        lines += [f"  {line}" for line in plan]
    if lines or args.json:
        facts = {"checked": checked, "faults": [f for text in faults for f in text.split("\n")]}
        show(args, facts, "\n".join(lines))
    if faults:
        raise ConfigError("\n".join(faults))
    return DONE


def campaign(args: argparse.Namespace) -> int:
    from hil.platform.parallel import scheduler_of
    from hil.runs.campaign.launch import launch
    from hil.runs.campaign.runner import Options
    from hil.runs.plan import Plan
    from hil.watch.start import PageOptions, watched

    if args.status:
        folder = args.out or path_of("runs") / f"campaign-{args.campaign.stem}"
        return _show_progress(args, folder, DONE)
    if args.trial is not None:
        return _run_trial(args)
    options = Options(
        backend=args.backend,
        clock=args.clock,
        rehearsal=args.rehearse,
        strict=args.strict,
        progress=not args.json,
        scheduler=scheduler_of(args.scheduler, args.scheduler_security),
        jobs=args.jobs,
    )
    started = launch(
        args.campaign,
        options,
        out=args.out,
        answers=args.answers,
        say=lambda text: say(text, file=sys.stderr),
    )
    config = next(iter(started.campaign.configs.values()))
    _print_usage_history(Plan(config, args.backend, args.clock or ""))
    page = PageOptions(args.page, args.page_certificate)
    with watched(page, started.folder, f"campaign {args.campaign.stem}") as ending:
        code = ending.code = started.run()
    return _show_progress(args, started.folder, code)


def _run_trial(args: argparse.Namespace) -> int:
    """Run one trial of a campaign on its own: the same bits as in the campaign."""
    from dataclasses import replace

    from hil.devices.injection import Injection
    from hil.record.append_log import read_log
    from hil.runs import session
    from hil.runs.campaign.journal import JOURNAL
    from hil.runs.campaign.parallel import known_for
    from hil.runs.campaign.plan import load_campaign
    from hil.runs.campaign.runner import refuse_other
    from hil.runs.campaign.tuned import settings_of
    from hil.runs.plan import Plan
    from hil.runs.recording import Output

    for option in ("rehearse", "answers", "jobs", "scheduler"):
        if getattr(args, option) not in (None, False):
            raise ConfigError(f"--trial {args.trial}: runs alone: leave --{option} out")
    campaign = load_campaign(args.campaign)
    if not 1 <= args.trial <= len(campaign.trials):
        raise ConfigError(f"--trial {args.trial}: {args.campaign}: has 1 to {len(campaign.trials)}")
    trial = campaign.trials[args.trial - 1]
    folder = args.out or path_of("runs") / f"campaign-{args.campaign.stem}"
    out = folder / f"trial-{trial.number:04d}.h5"
    entries = read_log(folder / JOURNAL) if (folder / JOURNAL).exists() else []
    if entries:
        refuse_other(campaign, folder, entries[0])
    tuned = settings_of(campaign, entries) if campaign.tables.tune else {}
    campaign = replace(campaign, tuned=tuned, known=known_for(campaign, trial, entries))
    faults = campaign.faults(trial)
    injection = Injection(faults) if faults else None
    plan = Plan(
        campaign.config(trial), args.backend, args.clock or "", trial.seed, injection,
        strict=args.strict,
    )  # fmt: skip
    result = session.run(plan, Output(out, force=True), session.View(progress=not args.json))
    facts = {"trial": trial.number, "of": str(trial), "drawn": campaign.listed(trial),
             "outcome": result.outcome, "file": str(result.path)}  # fmt: skip
    values = {**tuned.get(trial.combination, {}), **campaign.listed(trial)}
    drawn = [f"  {key} = {value}" for key, value in values.items()]
    text = f"trial {trial.number} ({trial}): {result.outcome}: {result.path}"
    show(args, facts, "\n".join([text, *drawn]))
    if result.outcome == "aborted":
        return INTERRUPTED
    return TRIPPED if result.outcome == "tripped" else DONE


def test(args: argparse.Namespace) -> int:
    from hil.procedures.standard_tests.run import run_test
    from hil.record.progress import say_compiling
    from hil.runs.campaign.runner import Options
    from hil.runs.study import as_text
    from hil.watch.start import PageOptions, watched

    out = path_of("runs") / f"test-{args.name}" if args.out is None else args.out
    page = PageOptions(args.page, args.page_certificate)
    with say_compiling(not args.json), watched(page, out, f"test {args.name}") as ending:
        options = Options(backend=args.backend, clock=args.clock, progress=not args.json)
        code, results = run_test(
            args.name, args.rig, args.set, out, options, lambda text: say(text, file=sys.stderr)
        )
        ending.code, ending.text = code, str(results.get("stopped_by", ""))
    if results:
        show(args, results, f"{as_text(results)}\npage:   {out / 'index.html'}")
    return code


def publish(args: argparse.Namespace) -> int:
    from hil.watch import publish

    _refuse_no_folder(args.folder)
    receivers: list[publish.Receiver] = []
    if args.mqtt is not None:
        receivers.append(publish.Mqtt(publish.broker_of(args.mqtt)))
    if args.lsl:
        receivers.append(publish.Lsl())
    if not receivers:
        raise ConfigError("hil publish: to whom: give --mqtt ADDRESS or --lsl, or both")
    publish.publish(args.folder, receivers)
    return DONE


def _refuse_no_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise ConfigError(f"{folder}: not a folder: give the folder of a bench's recordings")


def watch(args: argparse.Namespace) -> int:
    from hil.record.door import Address
    from hil.watch.serve import serve_folder
    from hil.watch.start import PORT, PageOptions, job_of, say_where

    _refuse_no_folder(args.folder)
    page = PageOptions(args.page or Address(port=PORT), args.page_certificate)
    job = job_of(page, args.folder, f"bench {args.folder.resolve().name}", 0)
    serve_folder(job, lambda words: say_where(words, job))
    return DONE


def _show_progress(args: argparse.Namespace, folder: Path, code: int) -> int:
    from hil.runs.campaign import page
    from hil.runs.campaign.journal import read_progress

    progress = read_progress(folder)
    show(args, page.as_json(folder, progress), page.as_text(folder, progress))
    return code


def gui(args: argparse.Namespace) -> int:
    from hil.platform.window import open_window, require_window

    if args.file is not None and args.file.is_dir():
        raise ConfigError(f"{args.file}: a folder: give an experiment or a recording")
    if args.file is not None and not args.file.is_file():
        raise missing_file(args.file, "give an experiment or a recording")
    require_window()
    return open_window(args.file)
