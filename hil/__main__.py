"""The command line: one function a command, heavy imports inside the command that needs them."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from hil.errors import ConfigError, DeviceError

DONE, BAD_INPUT, TRIPPED, DEVICE, ANSWER_NO, INTERRUPTED = 0, 2, 3, 4, 5, 130


def run(args: argparse.Namespace) -> int:
    from hil import session, summary
    from hil.config import load

    sets = [*args.set]
    if args.duration is not None:
        sets.append(f"experiment.duration_s={args.duration!r}")
    result = session.run(
        load(args.experiment, sets),
        clock=args.clock,
        backend=args.backend,
        seed=args.seed,
        out=args.out,
        force=args.force,
        progress=not args.json,
    )
    if args.json:
        _print_json({"file": str(result.path), **result.summary})
    else:
        print(summary.as_text(result.path, result.summary))
    if result.outcome == "tripped":
        return TRIPPED
    return INTERRUPTED if result.outcome == "aborted" else DONE


def check(args: argparse.Namespace) -> int:
    from hil.config import check as check_file
    from hil.config import load
    from hil.config.plan import energise_plan

    faults, checked = [], []
    for path in args.files:
        try:
            kind = check_file(path, args.set)
            entry: dict[str, Any] = {"file": str(path), "kind": kind}
            if args.energise_plan and kind == "experiment":
                entry["energise_plan"] = energise_plan(load(path, args.set))
            checked.append(entry)
        except ConfigError as error:
            faults.append(str(error))
    if args.json:
        _print_json(
            {"checked": checked, "faults": [f for text in faults for f in text.split("\n")]}
        )
    else:
        for entry in checked:
            print(f"{entry['file']}: a valid {entry['kind']}")
            for line in entry.get("energise_plan", []):
                print(f"  {line}")
    if faults:
        raise ConfigError("\n".join(faults))
    return DONE


def model(args: argparse.Namespace) -> int:
    from hil.config import load_model
    from hil.models import ModelError
    from hil.views import model_page

    try:
        built, force_on_N = load_model(args.file, args.set)
        facts = model_page.describe(built, force_on_N)
        if args.out is not None:
            model_page.export(built, args.out)
    except ModelError as error:
        raise ConfigError(f"{args.file}: {error}") from None
    if args.json:
        _print_json(facts)
    else:
        print(model_page.as_text(facts))
        if args.out is not None:
            print(f"matrices and names are in {args.out}")
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
            print(f"{args.out} keeps what is done: the same command goes on", file=sys.stderr)
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
            print("table: {}\npage:  {}".format(*written))
    return DONE


def report(args: argparse.Namespace) -> int:
    from hil.views.report import write_report

    written = []
    for path in args.runs:
        figure, page = write_report(path, args.out)
        written.append({"run": str(path), "figure": str(figure), "page": str(page)})
        if not args.json:
            print(f"figure: {figure}\npage:   {page}")
    if args.json:
        _print_json({"reports": written})
    return DONE


def recover(args: argparse.Namespace) -> int:
    from hil.record.repair import describe
    from hil.record.repair import recover as make_whole

    rows = make_whole(args.run)
    facts = {**describe(args.run), "recovered": rows is not None}
    if args.json:
        _print_json(facts)
    elif rows is None:
        print(f"{args.run}: nothing to mend, {facts['rows']} rows, {facts['outcome']}")
    else:
        print(f"{args.run}: whole again with {rows} rows")
    return DONE


def verify(args: argparse.Namespace) -> int:
    from hil.record.repair import describe, faults_of

    faults = faults_of(args.run)
    if args.json:
        _print_json({**describe(args.run), "whole": not faults, "faults": faults})
    elif faults:
        print("\n".join(f"{args.run}: {fault}" for fault in faults))
    else:
        facts = describe(args.run)
        print(f"{args.run}: whole, {facts['rows']} rows, {facts['outcome']}")
    return ANSWER_NO if faults else DONE


def export(args: argparse.Namespace) -> int:
    from hil.record.export import to_csv

    path = to_csv(args.run, args.out)
    if args.json:
        _print_json({"file": str(path)})
    else:
        print(path)
    return DONE


def doctor(args: argparse.Namespace) -> int:
    from hil.views.doctor import as_text, examine

    findings = examine()
    if args.json:
        _print_json(findings)
    else:
        print(as_text(findings))
    return DONE if findings["fit"] else ANSWER_NO


def bench(args: argparse.Namespace) -> int:
    from hil.views.bench import as_text, measure

    figures = measure(progress=not args.json)
    if args.json:
        _print_json(figures)
    else:
        print(as_text(figures))
    return DONE


def examples(args: argparse.Namespace) -> int:
    from hil.shipped import copy_examples

    files = copy_examples(args.folder)
    if args.json:
        _print_json({"files": [str(file) for file in files]})
    else:
        print(f"{len(files)} files are in {args.folder}")
        print(f"try: hil run {args.folder / 'configs/miga6/all_on.toml'}")
    return DONE


def gui(args: argparse.Namespace) -> int:
    import subprocess
    from importlib.util import find_spec

    if find_spec("pyqtgraph") is None or find_spec("PySide6") is None:
        raise ConfigError("the window is an extra: pip install 'hil-arrays[gui]'")
    if args.file is not None and args.file.suffix == ".toml":
        raise ConfigError(
            f"{args.file}: the window opens recordings: hil run {args.file}, then hil gui RUN.h5"
        )
    if args.file is not None and not args.file.is_file():
        raise ConfigError(f"{args.file}: no such file")
    words = [] if args.file is None else [str(args.file)]
    return subprocess.run([sys.executable, "-m", "hil_gui", *words], check=False).returncode


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"{self.prog}: {message}: see {self.prog} --help\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="hil",
        description="Control and data acquisition for cellular actuator arrays.",
        epilog="example: hil run configs/miga6/all_on.toml",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", parser_class=_Parser)

    def add(function: Callable[[argparse.Namespace], int], text: str, example: str) -> _Parser:
        command = commands.add_parser(
            function.__name__,
            help=text,
            description=text[0].upper() + text[1:] + ".",
            epilog=f"example: {example}",
        )
        command.set_defaults(function=function)
        command.add_argument("--json", action="store_true", help="print figures as JSON")
        return command

    def sets(command: _Parser) -> None:
        command.add_argument(
            "--set",
            action="append",
            default=[],
            metavar="KEY.PATH=VALUE",
            help="override a key of the merged configuration (repeatable)",
        )

    c = add(run, "run an experiment and record it", "hil run configs/miga6/all_on.toml --seed 7")
    c.add_argument("experiment", type=Path, metavar="EXPERIMENT.toml")
    c.add_argument(
        "--backend",
        default="sim",
        help="sim, or one a device such as board=sim,daq=sim (default: sim)",
    )
    c.add_argument(
        "--clock",
        choices=("virtual", "real"),
        default="virtual",
        help="virtual: as fast as it goes, repeatable (default); real: on the wall clock",
    )
    c.add_argument("--duration", type=float, metavar="S", help="length of the run in s")
    c.add_argument(
        "--seed", type=int, default=0, metavar="N", help="of all random draws (default: 0)"
    )
    c.add_argument(
        "--out", type=Path, metavar="FILE.h5", help="default: runs/RIG-EXPERIMENT-UTC.h5"
    )
    c.add_argument("--force", action="store_true", help="overwrite an existing file")
    sets(c)
    c = add(
        check,
        "validate configurations without opening a device",
        "hil check configs/*/*.toml --energise-plan",
    )
    c.add_argument("files", type=Path, nargs="+", metavar="FILE")
    c.add_argument("--energise-plan", action="store_true", help="print what a run would switch on")
    sets(c)
    c = add(
        model,
        "the model of a rig: poles, statics, controllability",
        "hil model configs/miga6/rig.toml --out miga6.npz",
    )
    c.add_argument("file", type=Path, metavar="FILE")
    c.add_argument("--out", type=Path, metavar="M.npz|M.mat", help="write A, B, C, D and all names")
    sets(c)
    c = add(
        topologies,
        "every topology of N cells with its figures",
        "hil topologies 6 --rank robustness --out six-cells",
    )
    c.add_argument("n_cells", type=int, metavar="N")
    c.add_argument(
        "--rank",
        choices=("n_masses", "blocked_force_N", "stroke_m", "n_force_levels",
                 "smallest_step_N", "variance_N2", "robustness"),
        metavar="KEY",
        help="best first, by %(choices)s",
    )  # fmt: skip
    c.add_argument("--mirror", action="store_true", help="mirror images once")
    c.add_argument(
        "--cell",
        type=Path,
        metavar="FILE",
        help="TOML with the table of a cell, or a rig of like cells (default: miga, F = 1 N)",
    )
    c.add_argument(
        "--out", type=Path, metavar="DIR", help="write a page with pictures and a CSV file"
    )
    c.add_argument(
        "--scheduler", metavar="ADDRESS", help="of a Dask cluster, such as tcp://host:8786"
    )
    c = add(report, "figure and page of measured over simulated force", "hil report runs/*.h5")
    c.add_argument("runs", type=Path, nargs="+", metavar="RUN.h5")
    c.add_argument("--out", type=Path, metavar="DIR", help="default: beside the recording")
    c = add(recover, "make a recording whole that was cut off", "hil recover runs/cut.h5")
    c.add_argument("run", type=Path, metavar="RUN.h5")
    c = add(verify, "find out whether a recording is whole", "hil verify runs/done.h5")
    c.add_argument("run", type=Path, metavar="RUN.h5")
    c = add(export, "write a recording in another format", "hil export runs/done.h5 --to csv")
    c.add_argument("run", type=Path, metavar="RUN.h5")
    c.add_argument("--to", choices=("csv",), default="csv")
    c.add_argument("--out", type=Path, metavar="FILE", help="default: beside the recording")
    add(doctor, "is this machine fit for real time", "hil doctor --json")
    add(bench, "how fast is it on this machine", "hil bench --json")
    c = add(gui, "the window: a recording's force, difference and cells", "hil gui runs/done.h5")
    c.add_argument("file", type=Path, nargs="?", metavar="RUN.h5")
    c = add(examples, "copy the shipped configurations out", "hil examples my-rigs")
    c.add_argument("folder", type=Path, metavar="DIR")
    return parser


def _print_json(value: Any) -> None:
    import json

    from hil.summary import plain

    print(json.dumps(plain(value), indent=2))


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; every expected failure is a line on standard error and an exit code."""
    parser = _parser()
    args = parser.parse_args(argv)
    if args.version:
        from importlib.metadata import version

        print(version("hil-arrays"))
        return DONE
    if not hasattr(args, "function"):
        parser.print_help()
        return BAD_INPUT
    try:
        code = int(args.function(args))
        sys.stdout.flush()
        return code
    except ConfigError as error:
        print(error, file=sys.stderr)
        return BAD_INPUT
    except DeviceError as error:
        print(error, file=sys.stderr)
        return DEVICE
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except Exception as error:
        if os.environ.get("HIL_DEBUG"):
            raise
        print(
            f"hil: a defect of the program: {type(error).__name__}: {error}: "
            "run again with HIL_DEBUG=1 for its trace, and report it",
            file=sys.stderr,
        )
        return 1


if __name__ == "__main__":
    sys.exit(main())
