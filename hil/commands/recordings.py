"""Look: reports of recordings, import, replay, export, verification and repair."""

from __future__ import annotations

import sys

from hil.commands.parser import ANSWER_NO, DONE, Group, add_sets, print_json, show
from hil.errors import ConfigError
from hil.platform.terminal import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from pathlib import Path


FILES = (".png", ".html", ".pdf", ".svg", ".h5")  # endings that a folder rarely has
NO_FILE = False  # --validate without a file; argparse would turn a str into a Path, which is true


def add_to(group: Group) -> None:
    """Add these commands."""
    c = group.add(report, "draw measured over simulated force, on a page", "hil report runs/*.h5")
    c.path("runs", "RUN.h5", nargs="+")
    c.path("--out", "DIR", "default: beside the recording")
    c.path(
        "--validate",
        "ACCEPTANCE.toml",
        "test whether the model is good enough, by the [validation] of the runs or by this "
        "file; several runs give one table; name it after the runs",
        nargs="?",
        const=NO_FILE,
    )

    c = group.add(
        figure,
        "draw runs for a paper, as PDF, SVG, PGF or PNG",
        "hil figure runs/a.h5 runs/b.h5 --overlay --what force,residual --out steps.pdf",
    )
    c.path("runs", "RUN.h5", nargs="+")
    c.path("--out", "FILE", "its ending is the format: .pdf, .svg, .pgf or .png", required=True)
    c.value("--what", "PANELS", "signals, residual, cells, columns (default: force,residual,cells)")
    c.value("--from", "S", "start of the part that is shown", type=float, dest="from_s")
    c.value("--to", "S", "end of the part that is shown", type=float, dest="to_s")
    c.value("--width", "W", "with its unit (default: 88mm, a column)", default="88mm")
    c.value("--style", "NAME|FILE", "ieee, nature, or a matplotlib style", default="")
    c.flag("--overlay", "lay several runs over each other, instead of side by side")

    c = group.add(
        import_,
        "make a recording of files that another program has written",
        "hil import frame.csv logger.csv --rig rig.toml --map map.toml --out runs/last-year.h5",
    )
    c.path("files", "FILE", "CSV, TDMS, MAT, MDF, HDF5 or Parquet", nargs="+")
    c.path("--rig", "RIG.toml", "the rig whose channels, cells and model the recording has")
    c.path("--map", "MAP.toml", "which column is which channel, and how the clocks are aligned")
    c.path("--out", "RUN.h5", "default: runs/<rig>-<map>-<UTC>.h5")
    c.flag("--guess", "write a first MAP.toml from the headers of the files, and nothing else")
    c.flag("--force", "overwrite the recording, or with --guess the map")
    add_sets(c)

    c = group.add(
        replay, "run a recording through the loop again and compare", "hil replay runs/done.h5"
    )
    c.path("run", "RUN.h5")
    c.flag("--show-code", "print the plug-in code in the recording; run nothing")
    c.several(
        "--trust", "SHA256", "allow recorded code with this hash to run, from now on (repeatable)"
    )
    c.several(
        "--code",
        "FILE.py|MODULE",
        "run this in place of the recorded code of the same name (repeatable)",
    )
    c.flag("--best", "compare a planner's run with the best sequence that is found for its array")

    c = group.add(
        export,
        "write a recording as CSV, MATLAB, MCAP, MDF, Parquet, RO-Crate",
        "hil export runs/done.h5 --to csv",
    )
    c.path("run", "RUN.h5", "a recording; with --to crate or eln also the folder of a campaign")
    kinds = ("csv", "mat", "mcap", "mdf", "parquet", "crate", "eln")
    c.add_argument("--to", choices=kinds, default="csv")
    c.path("--out", "FILE", "default: beside the recording")
    c.path("--citation", "CITATION.cff", "authors and licence of the data in a crate")

    c = group.add(verify, "check that a recording is complete", "hil verify runs/done.h5")
    c.path("run", "RUN.h5")

    c = group.add(recover, "repair a recording that was cut off", "hil recover runs/cut.h5")
    c.path("run", "RUN.h5")


def report(args: argparse.Namespace) -> int:
    if args.out is not None and args.out.suffix in FILES and not args.out.is_dir():
        raise ConfigError(f"--out {args.out}: give a folder: figure and page have the run's name")
    if args.validate is not None:
        return _validate(args)
    _refuse_one_page_for_two(args.runs, args.out)
    from hil.reports.run_report import write_report

    written = []
    for path in args.runs:
        figure, page = write_report(path, args.out, progress=not args.json)
        written.append({"run": str(path), "figure": str(figure), "page": str(page)})
        if not args.json:
            say(f"figure: {figure}\npage:   {page}")
    if args.json:
        print_json({"reports": written})
    return DONE


def _refuse_one_page_for_two(runs: list[Path], out: Path | None) -> None:
    """Refuse runs in two folders, or with two endings, whose pages would have one name."""
    first: dict[Path, Path] = {}
    for run in runs:
        page = (run.parent if out is None else out) / f"{run.stem}.html"
        if first.setdefault(page, run) != run:
            raise ConfigError(
                f"{run}: its page would replace that of {first[page]}, {page}: report one of them "
                "with another --out"
            )


def figure(args: argparse.Namespace) -> int:
    import shlex

    from hil.record.overview import view_of
    from hil.reports.figure import Look, save
    from hil.reports.figure import figure as drawn

    what = Look.what if args.what is None else [name for name in args.what.split(",") if name]
    look = Look(what, args.from_s, args.to_s, args.width, args.style, args.overlay)
    runs = [view_of(path, *look.span_s, progress=not args.json) for path in args.runs]
    command = shlex.join(["hil", *sys.argv[1:]])
    save(drawn(runs, [path.stem for path in args.runs], look), args.out, look, command)
    show(args, {"figure": str(args.out), "runs": list(map(str, args.runs))}, f"figure: {args.out}")
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
    text = f"{validation_page.as_text(runs)}\npage:   {page}"
    show(args, validation_page.as_dict(runs, page), text)
    return DONE if all(v.accepted for v in runs) else ANSWER_NO


def import_(args: argparse.Namespace) -> int:
    from hil.errors import ConfigError

    if args.map is None:
        raise ConfigError("--map: missing: give a map, or with --guess the file to write one to")
    if args.guess:
        return _guess(args)
    if args.rig is None:
        raise ConfigError("--rig: missing: give the rig's file")
    from dataclasses import asdict

    from hil.record.summary import as_text
    from hil.runs.imports.importing import import_files
    from hil.runs.recording import Output

    output = Output(args.out, args.force)
    recording = import_files(args.files, args.rig, args.map, output, sets=args.set,
                             progress=not args.json)  # fmt: skip
    lines = [text if level == "info" else f"{level}: {text}" for level, text in recording.notes]
    text = "\n".join([*lines, as_text(recording.path, recording.summary)])
    show(args, asdict(recording) | {"path": str(recording.path)}, text)
    return DONE


def _guess(args: argparse.Namespace) -> int:
    from hil.runs.imports.guess import guess

    text = guess(args.files, args.rig, args.map, force=args.force)
    show(args, {"map": str(args.map), "text": text}, f"{text}\nwritten to {args.map}")
    return DONE


def replay(args: argparse.Namespace) -> int:
    import json
    from dataclasses import asdict

    from hil.platform.provenance import other_versions
    from hil.record.read import open_head
    from hil.runs import kept_code
    from hil.runs.replay import replay as replay_run
    from hil.runs.replay import tolerance_of

    if args.show_code:
        return _show_code(args)
    kept_code.let_run(args.run, args.trust)
    code, differing = kept_code.replaced(args.run, args.code) if args.code else (None, [])
    for line in differing:
        say(line, file=sys.stderr)
    if args.best:
        from hil.reports.best import as_text, best_of

        figures = best_of(args.run, code)
        show(args, {"file": str(args.run), **figures}, as_text(args.run, figures))
        return DONE
    rows, difference = replay_run(args.run, code)
    head = open_head(args.run)
    tolerance = tolerance_of(head)
    versions = other_versions(json.loads(head.attrs.get("software", "{}")))
    facts = {"file": str(args.run), "rows": rows, "identical": difference is None,
             "tolerance": tolerance,
             "difference": None if difference is None else asdict(difference),
             "other_versions": versions}  # fmt: skip
    if difference is None:
        rounded = f" but for rounding (at most {tolerance:g} of a column's largest value)"
        show(args, facts, f"{args.run}: identical in {rows} rows{rounded if tolerance else ''}")
    else:
        show(
            args,
            facts,
            f"{args.run}: differs first at {difference.t_s:g} s (row {difference.row}) in "
            f"{difference.column}: recorded {difference.recorded}, replayed {difference.replayed}"
            + "".join(
                f"\n  {name}: recorded with {str(was)[:12]}, replayed with {str(now)[:12]}"
                for name, (was, now) in versions.items()
            ),
        )
    return DONE if difference is None else ANSWER_NO


def _show_code(args: argparse.Namespace) -> int:
    from dataclasses import asdict

    from hil.runs.kept_code import kept_code

    kept = kept_code(args.run)
    texts = [f"# {c.key}: {c.file}, sha256 {c.sha256}\n{c.source}" for c in kept]
    facts = [{**asdict(c), "sha256": c.sha256} for c in kept]
    show(args, facts, "\n".join(texts or [f"{args.run}: contains no code"]))
    return DONE


def export(args: argparse.Namespace) -> int:
    if args.to in ("crate", "eln"):
        from hil.reports.crate import write_crate

        path = write_crate(args.run, args.out, args.citation, eln=args.to == "eln")
    elif args.citation is not None:
        from hil.errors import ConfigError

        raise ConfigError(f"--citation: not with --to {args.to}: use --to crate, or eln")
    else:
        from hil.record.export import export as write

        path = write(args.run, args.to, args.out, progress=not args.json)
    show(args, {"file": str(path)}, path)
    return DONE


def verify(args: argparse.Namespace) -> int:
    from hil.record.repair import describe, faults_of

    faults = faults_of(args.run, progress=not args.json)
    if args.json:
        print_json({**describe(args.run), "whole": not faults, "faults": faults})
    elif faults:
        say("\n".join(f"{args.run}: {fault}" for fault in faults))
    else:
        facts = describe(args.run)
        say(f"{args.run}: whole, {facts['rows']} rows, {facts['outcome']}")
    return ANSWER_NO if faults else DONE


def recover(args: argparse.Namespace) -> int:
    from hil.record.repair import describe, faults_of
    from hil.record.repair import recover as make_whole

    rows = make_whole(args.run)
    faults = faults_of(args.run, progress=not args.json)
    facts = describe(args.run)
    texts = [f"cannot be repaired: {fault}" for fault in faults]
    if rows is not None:
        texts.insert(0, f"repaired, {rows} rows")
    elif not faults:
        texts = [f"nothing to repair, {facts['rows']} rows, {facts['outcome']}"]
    facts |= {"recovered": rows is not None, "whole": not faults, "faults": faults}
    show(args, facts, "\n".join(f"{args.run}: {text}" for text in texts))
    return ANSWER_NO if faults else DONE
