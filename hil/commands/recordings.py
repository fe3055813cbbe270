"""Look: reports of recordings, replay, export, verification and repair."""

from __future__ import annotations

import sys

from hil.commands.parser import ANSWER_NO, DONE, Group, path_of, print_json
from hil.platform.terminal import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


NO_FILE = False  # --validate without a file; argparse would turn a str into a Path, which is true


def add_to(group: Group) -> None:
    """Add these commands."""
    c = group.add(report, "draw measured over simulated force, on a page", "hil report runs/*.h5")
    c.add_argument("runs", type=path_of, nargs="+", metavar="RUN.h5")
    c.add_argument("--out", type=path_of, metavar="DIR", help="default: beside the recording")
    c.add_argument(
        "--validate",
        type=path_of,
        nargs="?",
        const=NO_FILE,
        metavar="ACCEPTANCE.toml",
        help="test whether the model is good enough, by the [validation] of the runs or by this "
        "file; several runs give one table; write it after the runs",
    )

    c = group.add(
        replay, "run a recording through the loop again and compare", "hil replay runs/done.h5"
    )
    c.add_argument("run", type=path_of, metavar="RUN.h5")
    c.add_argument(
        "--show-code",
        action="store_true",
        help="print the plug-in code in the recording; run nothing",
    )
    c.add_argument(
        "--trust",
        action="append",
        default=[],
        metavar="SHA256",
        help="allow recorded code with this hash to run, from now on (repeatable)",
    )
    c.add_argument(
        "--code",
        action="append",
        default=[],
        metavar="FILE.py|MODULE",
        help="run this in place of the recorded code of the same name (repeatable)",
    )

    c = group.add(
        export, "write a recording as CSV, MATLAB or MCAP", "hil export runs/done.h5 --to csv"
    )
    c.add_argument("run", type=path_of, metavar="RUN.h5")
    c.add_argument("--to", choices=("csv", "mat", "mcap"), default="csv")
    c.add_argument("--out", type=path_of, metavar="FILE", help="default: beside the recording")

    c = group.add(verify, "check that a recording is complete", "hil verify runs/done.h5")
    c.add_argument("run", type=path_of, metavar="RUN.h5")

    c = group.add(recover, "repair a recording that was cut off", "hil recover runs/cut.h5")
    c.add_argument("run", type=path_of, metavar="RUN.h5")


def report(args: argparse.Namespace) -> int:
    if args.validate is not None:
        return _validate(args)
    from hil.reports.run_report import write_report

    written = []
    for path in args.runs:
        figure, page = write_report(path, args.out)
        written.append({"run": str(path), "figure": str(figure), "page": str(page)})
        if not args.json:
            say(f"figure: {figure}\npage:   {page}")
    if args.json:
        print_json({"reports": written})
    return DONE


def _validate(args: argparse.Namespace) -> int:
    from hil.validation import page as validation_page
    from hil.validation.validate import validate_files

    acceptance = args.validate or None
    runs = validate_files(args.runs, acceptance, progress=not args.json)
    last = runs[-1].recorded.path
    folder = last.parent if args.out is None else args.out
    page = folder / f"{last.stem}-validation.html"
    validation_page.write_page(runs, page)
    if args.json:
        print_json(validation_page.as_dict(runs, page))
    else:
        say(validation_page.as_text(runs))
        say(f"page:   {page}")
    return DONE if all(v.accepted for v in runs) else ANSWER_NO


def replay(args: argparse.Namespace) -> int:
    from dataclasses import asdict

    from hil.record.read import open_run
    from hil.runs import kept_code
    from hil.runs.replay import replay as replay_run
    from hil.runs.replay import tolerance_of

    if args.show_code:
        return _show_code(args)
    kept_code.let_run(args.run, args.trust)
    code, differing = kept_code.replaced(args.run, args.code) if args.code else (None, [])
    for line in differing:
        say(line, file=sys.stderr)
    rows, difference = replay_run(args.run, code)
    tolerance = tolerance_of(open_run(args.run))
    if args.json:
        print_json({"file": str(args.run), "rows": rows, "identical": difference is None,
                     "tolerance": tolerance,
                     "difference": None if difference is None else asdict(difference)})  # fmt: skip
    elif difference is None:
        rounded = f" but for rounding (at most {tolerance:g} of a column's largest value)"
        say(f"{args.run}: identical in {rows} rows{rounded if tolerance else ''}")
    else:
        say(
            f"{args.run}: differs first at {difference.t_s:g} s (row {difference.row}) in "
            f"{difference.column}: recorded {difference.recorded}, replayed {difference.replayed}"
        )
    return DONE if difference is None else ANSWER_NO


def _show_code(args: argparse.Namespace) -> int:
    from dataclasses import asdict

    from hil.runs.kept_code import kept_code

    kept = kept_code(args.run)
    if args.json:
        print_json([{**asdict(c), "sha256": c.sha256} for c in kept])
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
        print_json({"file": str(path)})
    else:
        say(path)
    return DONE


def verify(args: argparse.Namespace) -> int:
    from hil.record.repair import describe, faults_of

    faults = faults_of(args.run)
    if args.json:
        print_json({**describe(args.run), "whole": not faults, "faults": faults})
    elif faults:
        say("\n".join(f"{args.run}: {fault}" for fault in faults))
    else:
        facts = describe(args.run)
        say(f"{args.run}: whole, {facts['rows']} rows, {facts['outcome']}")
    return ANSWER_NO if faults else DONE


def recover(args: argparse.Namespace) -> int:
    from hil.record.repair import describe
    from hil.record.repair import recover as make_whole

    rows = make_whole(args.run)
    facts = {**describe(args.run), "recovered": rows is not None}
    if args.json:
        print_json(facts)
    elif rows is None:
        say(f"{args.run}: nothing to repair, {facts['rows']} rows, {facts['outcome']}")
    else:
        say(f"{args.run}: repaired, {rows} rows")
    return DONE
