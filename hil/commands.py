"""One function a command; what each needs is imported inside it."""

import argparse
import sys
from pathlib import Path
from typing import Any

from hil.errors import ConfigError
from hil.terminal import say

LOOPBACK_S = 10.0
DONE, BAD_INPUT, TRIPPED, DEVICE, ANSWER_NO, INTERRUPTED = 0, 2, 3, 4, 5, 130


def run(args: argparse.Namespace) -> int:
    from hil import session, summary
    from hil.config import load
    from hil.progress import say_compiling
    from hil.window import require_window

    if args.gui:
        require_window()
    sets = [*args.set]
    if args.duration is not None:
        sets.append(f"experiment.duration_s={args.duration!r}")
    with say_compiling(not args.json):
        config = load(args.experiment, sets)
        _say_article(config, args.backend, args.clock)
        for line in config.doubts:
            say(f"warning: {line}", file=sys.stderr)
        result = session.run(
            config,
            clock=args.clock or ("real" if args.gui else None),
            backend=args.backend,
            seed=args.seed,
            out=args.out,
            force=args.force,
            progress=not args.json,
            armed=not args.disarmed,
            window=args.gui,
            strict=args.strict,
            injection=None if args.inject is None else _injection(args.inject),
        )
    if args.json:
        _print_json({"file": str(result.path), **result.summary})
    else:
        say(summary.as_text(result.path, result.summary))
    if result.outcome == "tripped":
        return TRIPPED
    return INTERRUPTED if result.outcome == "aborted" else DONE


def _say_article(config: Any, backend: str, clock: str | None) -> None:
    """What the article on the bench has been through, before it goes through more."""
    from hil import logbook, session

    book = logbook.logbook_of(config, session.where_it_runs(config, backend, clock)[0])
    if book is not None:
        say(logbook.opening(book), file=sys.stderr)


def _injection(path: Path) -> Any:
    from hil.config.faults import load_faults
    from hil.devices.injection import Injection

    return Injection(load_faults(path))


def check(args: argparse.Namespace) -> int:
    from datetime import UTC, datetime

    from hil.config import board_limits, load
    from hil.config import check as check_file
    from hil.config.calibration import load_any, overlaps
    from hil.config.load import doubts_of, load_protections
    from hil.config.plan import energise_plan
    from hil.config.standing import standings_of_file

    today = datetime.now(UTC).date()
    faults: list[str] = []
    checked, records = [], []
    for path in args.files:
        try:
            kind = check_file(path, args.set)
            entry: dict[str, Any] = {"file": str(path), "kind": kind}
            if args.strict:
                lines = [
                    f"{path}: {line}"
                    for standing in standings_of_file(path, kind, args.set, today)
                    for line in standing.refused(on_bench=True)
                ]
                faults += dict.fromkeys(lines)
            if kind in ("rig", "experiment"):
                boards = load_protections(path, args.set)
                entry["wires"] = board_limits.as_text(boards)
                unknown = [f"{path}: {line}" for line in board_limits.doubts(boards)]
                entry["warnings"] = [*doubts_of(path, args.set), *unknown]
            if args.energise_plan and kind == "experiment":
                entry["energise_plan"] = energise_plan(load(path, args.set))
            checked.append(entry)
            if kind == "calibration record":
                record = load_any(path, named_by=str(path))
                records.append(record)
                entry["valid_until"] = record.record.act.valid_until.isoformat()
                entry["expired"] = record.expired(today)
        except ConfigError as error:
            faults.append(str(error))
    faults += overlaps(records)
    if args.json:
        _print_json(
            {"checked": checked, "faults": [f for text in faults for f in text.split("\n")]}
        )
    else:
        for entry in checked:
            over = f", EXPIRED on {entry['valid_until']}" if entry.get("expired") else ""
            say(f"{entry['file']}: a valid {entry['kind']}{over}")
            for line in entry.get("warnings", []):
                say(f"warning: {line}")
            for line in [*entry.get("energise_plan", []), *entry.get("wires", [])]:
                say(f"  {line}")
    if faults:
        raise ConfigError("\n".join(faults))
    return DONE


def model(args: argparse.Namespace) -> int:
    from hil.config import load_model, load_system
    from hil.models import ModelError
    from hil.models.reduction import reduce
    from hil.views import model_page

    kind, system = load_system(args.file, args.set)
    if system is not None and args.out is None and args.reduce is None:
        facts = model_page.describe_system(kind, system)
        if args.json:
            _print_json(facts)
        else:
            say(model_page.system_as_text(facts))
        return DONE
    try:
        built, force_on_N = load_model(args.file, args.set)
        facts = model_page.describe(built, force_on_N)
        reduced = None
        if args.reduce is not None:
            forces = [name for name in built.outputs if name.endswith(("left_N", "right_N"))]
            reduced = reduce(built, args.reduce, forces)
            facts["reduction"] = model_page.describe_reduced(reduced, forces)
        if args.out is not None:
            model_page.export(built, args.out, reduced)
    except ModelError as error:
        raise ConfigError(f"{args.file}: {error}") from None
    if args.json:
        _print_json(facts)
    else:
        say(model_page.as_text(facts))
        if args.out is not None:
            say(f"matrices and names are in {args.out}")
    return DONE


def topologies(args: argparse.Namespace) -> int:
    from dataclasses import asdict

    from hil.config.cell_file import load_cell
    from hil.models.topology_figures import LikeCells
    from hil.sweep import sweep
    from hil.views import topologies_page

    cells = LikeCells() if args.cell is None else load_cell(args.cell)
    try:
        found = sweep(
            args.n_cells,
            cells,
            mirror=args.mirror,
            out=args.out,
            scheduler=args.scheduler,
            progress=not args.json,
        )
    except KeyboardInterrupt:
        if args.out is not None:
            say(f"{args.out} keeps what is done: the same command goes on", file=sys.stderr)
        raise
    rows = topologies_page.ranked(found, args.rank)
    how = {"mirror": args.mirror, "rank": args.rank}
    if args.out is not None:
        written = topologies_page.write(rows, args.out, args.n_cells, cells, **how)
    if args.json:
        _print_json({"count": len(rows), "topologies": [asdict(row) for row in rows]})
    else:
        topologies_page.print_table(rows, args.n_cells, **how)
        if args.out is not None:
            say("table: {}\npage:  {}".format(*written))
    return DONE


def report(args: argparse.Namespace) -> int:
    if args.validate is not None:
        return _validate(args)
    from hil.views.report import write_report

    written = []
    for path in args.runs:
        figure, page = write_report(path, args.out)
        written.append({"run": str(path), "figure": str(figure), "page": str(page)})
        if not args.json:
            say(f"figure: {figure}\npage:   {page}")
    if args.json:
        _print_json({"reports": written})
    return DONE


def _validate(args: argparse.Namespace) -> int:
    from hil.validation.validate import validate_files
    from hil.views import validation_page

    acceptance = None if args.validate == Path() else args.validate
    runs = validate_files(args.runs, acceptance, progress=not args.json)
    last = runs[-1].recorded.path
    folder = last.parent if args.out is None else args.out
    page = folder / f"{last.stem}-validation.html"
    validation_page.write_page(runs, page)
    if args.json:
        _print_json(validation_page.as_dict(runs, page))
    else:
        say(validation_page.as_text(runs))
        say(f"page:   {page}")
    return DONE if all(v.accepted for v in runs) else ANSWER_NO


def identify(args: argparse.Namespace) -> int:
    import datetime

    from hil.identification.identify import Asked, identify_files
    from hil.identification.record import Act, write
    from hil.views import identify_page

    if args.out is not None:
        if not args.by or not args.serial:
            raise ConfigError("--out: a record names who and what: give --by NAME --serial NUMBER")
        if args.out.exists():
            raise ConfigError(f"{args.out}: exists already: a record is never changed")
    asked = Asked(tuple(args.free), tuple(args.fix), tuple(args.each), args.bootstrap, args.seed)
    recorded, found = identify_files(args.runs, asked, progress=not args.json)
    first = args.runs[0]
    page = first.with_name(f"{first.stem}-identified.html") if args.page is None else args.page
    identify_page.write_page(recorded, found, page)
    facts = identify_page.as_dict(recorded, found) | {"page": str(page)}
    if not args.json:
        say(identify_page.as_text(found))
        say(f"page:   {page}")
    if args.out is not None:
        act = Act(args.by, args.serial, args.valid_days)
        record = write(args.out, recorded, found, act, datetime.date.today())
        facts |= {"record": str(args.out), "record_id": record.id}
        if not args.json:
            say(f"record: {args.out} ({record.id})")
    if args.json:
        _print_json(facts)
    return DONE if found.adequacy.adequate else ANSWER_NO


def study(args: argparse.Namespace) -> int:
    from hil.progress import say_compiling
    from hil.studies.run import as_text, run_study

    out = Path("runs") / f"study-{args.name}" if args.out is None else args.out
    with say_compiling(not args.json):
        results = run_study(args.name, args.set, out)
    if args.json:
        _print_json(results)
    else:
        say(as_text(results))
        say(f"page:   {out / 'index.html'}")
    return DONE


def calibrate(args: argparse.Namespace) -> int:
    if args.kind == "literature":
        from hil.calibrate.literature import write_literature

        written = write_literature(args.out or Path("calibration"))
        if args.json:
            _print_json([{"file": str(path), "written": new} for path, new in written])
        else:
            for path, new in written:
                say(f"{path}: {'written' if new else 'there already'}")
        return DONE
    from hil.calibrate.kinds import KINDS, template
    from hil.calibrate.run import Asked
    from hil.calibrate.run import calibrate as go_through
    from hil.calibrate.text import as_text

    if args.template and args.kind in KINDS:
        say(template(args.kind), end="")
        return DONE
    asked = Asked(
        kind=args.kind, act=args.act, sets=tuple(args.set), rehearse=args.rehearse, seed=args.seed,
        rig=args.rig, run=args.run, backend=args.backend, channel=args.channel, out=args.out,
        supersedes=tuple(args.supersedes), undo=args.undo,
    )  # fmt: skip
    records = go_through(asked)
    if args.json:
        _print_json([
            {"file": str(d.path), "id": d.record.id, "values": dict(zip(d.record.names,
             d.record.values, strict=True)), "covariance": d.record.covariance,
             "status": d.record.record.status, "said": d.said, "truth": d.truth}
            for d in records
        ])  # fmt: skip
    else:
        say("\n".join(as_text(done) for done in records))
    return DONE


def recalibrate(args: argparse.Namespace) -> int:
    from hil.calibrate.recalibrate import recalibrate as anew

    done = anew(args.run, args.record, args.channel, args.out)
    if args.json:
        _print_json({"file": str(done.path), "channel": done.channel, "unit": done.unit,
                     "largest_change": done.largest_change, "remarks": done.remarks})  # fmt: skip
    else:
        say(f"{done.path}: {done.channel} recalibrated")
        say(f"  readings changed by at most {done.largest_change:.4g} {done.unit}")
        for remark in done.remarks:
            say(f"  {remark}")
        say(f"  {args.run} stays as it was")
    return DONE


def recover(args: argparse.Namespace) -> int:
    from hil.record.repair import describe
    from hil.record.repair import recover as make_whole

    rows = make_whole(args.run)
    facts = {**describe(args.run), "recovered": rows is not None}
    if args.json:
        _print_json(facts)
    elif rows is None:
        say(f"{args.run}: nothing to mend, {facts['rows']} rows, {facts['outcome']}")
    else:
        say(f"{args.run}: whole again with {rows} rows")
    return DONE


def verify(args: argparse.Namespace) -> int:
    from hil.record.repair import describe, faults_of

    faults = faults_of(args.run)
    if args.json:
        _print_json({**describe(args.run), "whole": not faults, "faults": faults})
    elif faults:
        say("\n".join(f"{args.run}: {fault}" for fault in faults))
    else:
        facts = describe(args.run)
        say(f"{args.run}: whole, {facts['rows']} rows, {facts['outcome']}")
    return ANSWER_NO if faults else DONE


def replay(args: argparse.Namespace) -> int:
    from dataclasses import asdict

    from hil.record import kept_code
    from hil.replay import replay as replay_run

    if args.show_code:
        return _show_code(args)
    kept_code.let_run(args.run, args.trust)
    code, differing = kept_code.replaced(args.run, args.code) if args.code else (None, [])
    for line in differing:
        say(line, file=sys.stderr)
    rows, difference = replay_run(args.run, code)
    if args.json:
        _print_json({"file": str(args.run), "rows": rows, "identical": difference is None,
                     "difference": None if difference is None else asdict(difference)})  # fmt: skip
    elif difference is None:
        say(f"{args.run}: identical in {rows} rows")
    else:
        say(
            f"{args.run}: differs first at {difference.t_s:g} s (row {difference.row}) in "
            f"{difference.column}: recorded {difference.recorded}, replayed {difference.replayed}"
        )
    return DONE if difference is None else ANSWER_NO


def _show_code(args: argparse.Namespace) -> int:
    from dataclasses import asdict

    from hil.record.kept_code import kept_code

    kept = kept_code(args.run)
    if args.json:
        _print_json([{**asdict(c), "sha256": c.sha256} for c in kept])
    else:
        for c in kept:
            say(f"# {c.key}: {c.file}, sha256 {c.sha256}\n{c.source}")
        if not kept:
            say(f"{args.run}: keeps no code")
    return DONE


def export(args: argparse.Namespace) -> int:
    from hil.record.export import export as write

    path = write(args.run, args.to, args.out, progress=not args.json)
    if args.json:
        _print_json({"file": str(path)})
    else:
        say(path)
    return DONE


def doctor(args: argparse.Namespace) -> int:
    from hil.views.doctor import as_text, examine

    measured = None
    if args.loopback is not None:
        from hil.config import load
        from hil.rig import parse_backend
        from hil.views.latency import measure

        config = load(args.loopback)
        backends = parse_backend(args.backend, config.tables)
        measured = measure(config, backends, LOOPBACK_S)
    findings = examine(measured)
    if args.json:
        _print_json(findings)
    else:
        say(as_text(findings))
    return DONE if findings["fit"] else ANSWER_NO


def bench(args: argparse.Namespace) -> int:
    from hil.views.bench import as_text, measure

    extent = "quick" if args.quick else "full" if args.full else "usual"
    figures = measure(extent, args.only, progress=not args.json and sys.stderr.isatty())
    if args.json:
        _print_json(figures)
    else:
        say(as_text(figures))
    return DONE


def examples(args: argparse.Namespace) -> int:
    from hil.shipped import copy_examples, copy_template

    if args.template is not None:
        file = copy_template(args.template, args.folder)
        if args.json:
            _print_json({"files": [str(file)]})
        else:
            say(f"{file}: its first lines say how an experiment names it")
            say(f"try: pytest --hil-contract {file}")
        return DONE
    if args.folder is None:
        raise ConfigError("hil examples: give a folder, or --template and a kind")
    files = copy_examples(args.folder)
    if args.json:
        _print_json({"files": [str(file) for file in files]})
    else:
        say(f"{len(files)} files are in {args.folder}")
        say(f"try: hil run {args.folder / 'configs/miga6/all_on.toml'}")
    return DONE


def devices(args: argparse.Namespace) -> int:
    from hil.views.boards import identified, ports_as_text, serial_ports
    from hil.views.cards import cards, cards_as_text
    from hil.views.supplies import resources_as_text, visa_resources

    _need_serial()
    ports, (found, why_none) = serial_ports(), cards()
    visa, why_no_visa = visa_resources()
    if args.identify:
        ports = identified(ports)
    if args.json:
        _print_json({"serial_ports": ports, "cards": found, "no_cards": why_none,
                     "visa": visa, "no_visa": why_no_visa})  # fmt: skip
    else:
        say(f"{ports_as_text(ports)}\n{cards_as_text(found, why_none)}")
        say(resources_as_text(visa, why_no_visa))
    return DONE


def board(args: argparse.Namespace) -> int:
    from hil.views import boards

    if args.from_rig is not None:
        return _protecting_limits(args)
    if args.port is None:
        raise ConfigError(f"hil board {args.what}: give a PORT, such as usb:HIL-0001")
    _need_serial()
    if args.what == "flash":
        from hil.views import board_flash

        if args.set:
            raise ConfigError("--set belongs to hil board limits")
        found = board_flash.flashed(
            args.port, args.image, args.programmer, args.programmer_port, args.boot_loader,
            fuses_alone=args.fuses,
        )  # fmt: skip
    else:
        found = boards.identity(args.port)
    if args.set:
        table = boards.changed_limits(found["limits"], args.set)
        changes = [f"{k}: {found['limits'][k]} -> {v}" for k, v in table.items()
                   if found["limits"][k] != v]  # fmt: skip
        if not args.yes:
            say("\n".join(["these limits of the board would change:", *changes]))
            if input("store them? type yes: ").strip() != "yes":
                say("nothing was changed")
                return ANSWER_NO
        boards.store_limits(args.port, table)
        found = boards.identity(args.port)
    if args.json:
        _print_json(found)
    else:
        say(boards.identity_as_text(args.port, found))
    return DONE


def _protecting_limits(args: argparse.Namespace) -> int:
    from hil.config.board_limits import limits_as_toml
    from hil.config.load import load_protections
    from hil.models.wire_limits import NoTableError

    if args.what != "limits" or args.port is not None or args.set:
        raise ConfigError("hil board: --from RIG goes with limits alone, without PORT or --set")
    described = [board for board in load_protections(args.from_rig) if board.cells]
    if not described:
        raise ConfigError(
            f"{args.from_rig}: no wire is described: add [devices.BOARD.wire], or thermal cells"
        )
    try:
        text = "\n\n".join(limits_as_toml(board) for board in described)
    except NoTableError as error:
        raise ConfigError(f"{args.from_rig}: {error}") from None
    if args.json:
        _print_json({board.name: board.wanted() for board in described})
    elif args.out is None:
        say(text)
    if args.out is not None:
        if args.out.exists():
            raise ConfigError(f"{args.out}: exists: choose another --out")
        args.out.write_text(f"{text}\n", encoding="utf-8")
    return DONE


def simboard(args: argparse.Namespace) -> int:
    from hil.views.boards import run_simulated

    return DONE if run_simulated(args.cells, args.serial) == 0 else DEVICE


def simdaq(args: argparse.Namespace) -> int:
    from hil.views import simdaq as view

    view.need_nidaqmx()
    cards = view.bench(args.card)
    if args.port is not None:
        view.serve(cards, args.host, args.port, fast=args.fast)
    elif args.run is not None or args.env:
        variables = view.environment(cards, fast=args.fast)
        if args.env:
            say(view.environment_as_text(variables))
        else:
            view.run(args.run, variables)
    elif args.json:
        _print_json([{"model": model, "name": name} for model, name in cards])
    else:
        say(view.as_text(cards))
    return DONE


def _need_serial() -> None:
    from importlib.util import find_spec

    if find_spec("serial") is None:
        raise ConfigError("serial ports need an extra: pip install 'hil-arrays[daq]'")


def gui(args: argparse.Namespace) -> int:
    from hil.window import open_window, require_window

    require_window()
    if args.file is not None and not args.file.is_file():
        raise ConfigError(f"{args.file}: no such file: give an experiment or a recording")
    return open_window(args.file)


def _print_json(value: Any) -> None:
    import json

    from hil.summary import plain

    say(json.dumps(plain(value), indent=2))


def campaign(args: argparse.Namespace) -> int:
    from hil.campaign.journal import read_progress
    from hil.campaign.launch import launch
    from hil.views import campaign_page

    if args.status:
        folder = args.out or Path("runs") / f"campaign-{args.campaign.stem}"
        progress = read_progress(folder)
        if args.json:
            _print_json(campaign_page.as_json(folder, progress))
        else:
            say(campaign_page.as_text(folder, progress))
        return DONE
    started = launch(
        args.campaign,
        out=args.out,
        backend=args.backend,
        clock=args.clock,
        rehearsal=args.rehearse,
        answers=args.answers,
        scheduler=args.scheduler,
        strict=args.strict,
        progress=not args.json,
        say=lambda text: say(text, file=sys.stderr),
    )
    config = next(iter(started.campaign.configs.values()))
    _say_article(config, args.backend, args.clock)
    try:
        code = started.runner.run()
    finally:
        campaign_page.write_all(started.folder)
    progress = read_progress(started.folder)
    if args.json:
        _print_json(campaign_page.as_json(started.folder, progress))
    else:
        say(campaign_page.as_text(started.folder, progress))
    return code


def logbook(args: argparse.Namespace) -> int:
    from hil.views import logbook_page

    books = logbook_page.chosen(args.article, args.folder, args.simulated)
    if args.swap is not None or args.note:
        logbook_page.write(books, args.swap, args.note)
    if args.json:
        _print_json({book.serial: logbook_page.as_json(book) for book in books})
    else:
        say("\n".join(logbook_page.as_text(book) for book in books) or "no logbooks")
    return DONE
