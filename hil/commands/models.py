"""Models and studies: of a rig, of every topology, from recordings, from papers."""

from __future__ import annotations

import sys

from hil.commands.parser import (
    ANSWER_NO,
    DONE,
    Group,
    add_scheduler,
    add_sets,
    count_of,
    path_of,
    print_json,
    show,
)
from hil.errors import ConfigError
from hil.platform.terminal import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from pathlib import Path


def add_to(group: Group) -> None:
    """Add these commands."""
    c = group.add(
        model,
        "print a rig's model: poles, statics, controllability",
        "hil model configs/miga6/rig.toml --out miga6.npz",
    )
    c.path("file", "FILE.toml")
    c.path("--out", "M.npz|M.mat|M.fmu", "write A, B, C, D and all names, or an FMU")
    c.add_argument("--to", choices=("npz", "mat", "fmu"), help="write MODEL.npz, .mat or .fmu")
    c.add_argument(
        "--fmi", choices=(2, 3), type=int, default=3, help="version of the FMU (default: 3)"
    )
    c.flag("--board", "an FMU with the firmware of the rig's driver boards inside")
    c.path("--bode", "FILE.png", "draw the frequency response, and print the zeros")
    c.path("--measured", "DIR", "lay the result of 'hil test bode' over it")
    add_sets(c)
    c.value(
        "--reduce", "ORDER", "balanced reduction from cells to forces; --out writes it", type=int
    )

    c = group.add(
        topologies,
        "compare every array of N cells",
        "hil topologies 6 --rank robustness --out six-cells",
    )
    c.add_argument("n_cells", type=int, metavar="N")
    ranks = ("n_masses", "blocked_force_N", "stroke_m", "n_force_levels", "smallest_step_N",
             "variance_N2", "robustness")  # fmt: skip
    c.value("--rank", "KEY", "best first, by %(choices)s", choices=ranks)
    c.flag("--mirror", "count mirror images once")
    c.path(
        "--cell",
        "FILE.toml",
        "a file with the table of a cell, or a rig whose cells are equal (default: miga, F = 1 N)",
    )
    c.path("--out", "DIR", "write a page with pictures and a CSV file")
    add_scheduler(c)

    c = group.add(
        identify,
        "estimate an array from its force, or a wire from its loops",
        "hil identify runs/*.h5 --fix mass_kg",
    )
    c.path(
        "runs",
        "FILE",
        "recordings of an array's force; or isobaric loops of a wire, CSV files or recordings",
        nargs="+",
    )
    c.several(
        "--free",
        "NAME",
        "fit this parameter, such as k_se_N_per_m or mass_kg.* (repeatable; default: every "
        "parameter that the runs can identify)",
    )
    c.several("--fix", "NAME", "keep this parameter as configured (repeatable)")
    c.several(
        "--each",
        "LIST",
        "fit one value for every mass or cell: %(choices)s (repeatable)",
        choices=("mass_kg", "force_on_N", "cell", "activation"),
    )
    c.value(
        "--bootstrap",
        "N",
        "number of refits to resampled noise (default: 200, 0 for none)",
        type=count_of,
        default=200,
    )
    c.value("--seed", "N", "seed of the bootstrap (default: 0)", type=count_of, default=0)
    c.path("--page", "FILE.html", "default: beside the first run")
    c.path("--out", "CALIBRATION.toml", "write the values as a calibration")
    c.value("--by", "NAME", "with --out: who did it", default="")
    c.value("--serial", "NUMBER", "with --out: of the array", default="")
    c.value("--valid-days", "N", "with --out (default: 365)", type=count_of, default=365)

    c = group.add(
        study, "reproduce a published experiment", "hil study fingerprint --out fingerprint"
    )
    c.value("name", "STUDY", "an unknown name lists all studies")
    c.path("--out", "DIR", "default: runs/study-NAME")
    add_sets(c)


def model(args: argparse.Namespace) -> int:
    from hil.reports.model_page import Wanted, described

    out = args.out
    if args.to is not None:
        out = _named(args.file, args.to) if out is None else out
        if out.suffix != f".{args.to}":
            raise ConfigError(f"--to {args.to}: --out {out} has another ending: leave one out")
    if args.board and (out is None or out.suffix != ".fmu"):
        raise ConfigError("--board: the firmware goes into an FMU: add --to fmu")
    if args.measured is not None and args.bode is None:
        raise ConfigError("--measured: lays points over a figure: add --bode FILE.png")
    if args.bode is not None and args.bode.suffix not in (".png", ".svg", ".pdf"):
        raise ConfigError(f"--bode {args.bode}: unknown ending: choose .png, .svg or .pdf")
    wanted = Wanted(args.reduce, out, args.fmi, args.board, args.bode, args.measured)
    facts, text = described(args.file, args.set, wanted)
    show(args, facts, text)
    return DONE


def _named(file: Path, kind: str) -> Path:
    """Default name of a model's file: of a rig, the name of its folder."""
    stem = file.resolve().parent.name if file.stem == "rig" else file.stem
    return path_of(f"{stem}.{kind}")


def topologies(args: argparse.Namespace) -> int:
    from dataclasses import asdict

    from hil.platform.parallel import scheduler_of
    from hil.systems.array.cell_file import load_cell
    from hil.systems.array.topology import page as topologies_page
    from hil.systems.array.topology.figures import LikeCells
    from hil.systems.array.topology.sweep import sweep

    cells = LikeCells() if args.cell is None else load_cell(args.cell)
    try:
        candidates = sweep(
            args.n_cells,
            cells,
            mirror=args.mirror,
            out=args.out,
            scheduler=scheduler_of(args.scheduler, args.scheduler_security),
            progress=not args.json,
        )
    except KeyboardInterrupt:
        if args.out is not None:
            say(
                f"{args.out} keeps the results so far: run the same command to continue",
                file=sys.stderr,
            )
        raise
    rows = topologies_page.ranked(candidates, args.rank)
    how = {"mirror": args.mirror, "rank": args.rank}
    if args.out is not None:
        written = topologies_page.write(rows, args.out, args.n_cells, cells, **how)
    if args.json:
        print_json({"count": len(rows), "topologies": [asdict(row) for row in rows]})
    else:
        topologies_page.print_table(rows, args.n_cells, **how)
        if args.out is not None:
            say("table: {}\npage:  {}".format(*written))
    return DONE


def identify(args: argparse.Namespace) -> int:
    from hil.identification.wires import are_loops

    if args.out is not None:
        if not args.by or not args.serial:
            raise ConfigError(
                "--out: a calibration names operator and article: give --by NAME --serial NUMBER"
            )
        if args.out.exists():
            raise ConfigError(f"{args.out}: exists already: a record is never changed")
    first = args.runs[0]
    page = first.with_name(f"{first.stem}-identified.html") if args.page is None else args.page
    return (_identify_wire if are_loops(args.runs) else _identify_array)(args, page)


def _identify_array(args: argparse.Namespace, page: Path) -> int:
    import datetime

    from hil.identification import page as identify_page
    from hil.identification.identify import Options, identify_files
    from hil.identification.record import Session, write

    options = Options(
        tuple(args.free), tuple(args.fix), tuple(args.each), args.bootstrap, args.seed
    )
    recorded, identification = identify_files(args.runs, options, progress=not args.json)
    identify_page.write_page(recorded, identification, page)
    facts = identify_page.as_dict(recorded, identification) | {"page": str(page)}
    if not args.json:
        say(identify_page.as_text(identification))
        say(f"page:   {page}")
    if args.out is not None:
        session = Session(args.by, args.serial, args.valid_days)
        record = write(args.out, recorded, identification, session, datetime.date.today())
        facts |= {"record": str(args.out), "record_id": record.id}
        if not args.json:
            say(f"record: {args.out} ({record.id})")
    if args.json:
        print_json(facts)
    sound = identification.adequacy.adequate and identification.fit.settled
    return DONE if sound else ANSWER_NO


def _identify_wire(args: argparse.Namespace, page: Path) -> int:
    import datetime

    from hil.identification import wires_page
    from hil.identification.record import Session, write_wire
    from hil.identification.wires import identify_loop_files, is_simulated

    if args.free or args.fix or args.each:
        raise ConfigError("--free, --fix, --each: a wire's law is fitted whole: leave them out")
    wire = identify_loop_files(args.runs)
    wires_page.write_page(wire, is_simulated(args.runs), page)
    facts = wires_page.as_dict(wire) | {"page": str(page)}
    text = f"{wires_page.as_text(wire)}\npage:   {page}"
    if args.out is not None:
        session = Session(args.by, args.serial, args.valid_days)
        record = write_wire(args.out, args.runs, wire, session, datetime.date.today())
        lines = wires_page.as_activation(dict(zip(record.names, record.values, strict=True)))
        facts |= {"record": str(args.out), "record_id": record.id}
        text += f"\nrecord: {args.out} ({record.id}); beside it in the activation:\n{lines}"
    show(args, facts, text)
    return DONE


def study(args: argparse.Namespace) -> int:
    from hil.record.progress import say_compiling
    from hil.runs.study import as_text, run_study

    out = path_of("runs") / f"study-{args.name}" if args.out is None else args.out
    with say_compiling(not args.json):
        results = run_study(args.name, args.set, out)
    show(args, results, f"{as_text(results)}\npage:   {out / 'index.html'}")
    return DONE
