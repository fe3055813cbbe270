"""Models and studies: of a rig, of every topology, from recordings, from papers."""

from __future__ import annotations

import sys

from hil.commands.parser import ANSWER_NO, DONE, Group, add_sets, count_of, path_of, print_json
from hil.errors import ConfigError
from hil.platform.terminal import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def add_to(group: Group) -> None:
    """Add these commands."""
    c = group.add(
        model,
        "print a rig's model: poles, statics, controllability",
        "hil model configs/miga6/rig.toml --out miga6.npz",
    )
    c.add_argument("file", type=path_of, metavar="FILE.toml")
    c.add_argument(
        "--out", type=path_of, metavar="M.npz|M.mat", help="write A, B, C, D and all names"
    )
    add_sets(c)
    c.add_argument(
        "--reduce",
        type=int,
        metavar="ORDER",
        help="balanced reduction from cells to forces; --out writes it",
    )

    c = group.add(
        topologies,
        "compare every array of N cells",
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
    c.add_argument("--mirror", action="store_true", help="count mirror images once")
    c.add_argument(
        "--cell",
        type=path_of,
        metavar="FILE.toml",
        help="a file with the table of a cell, or a rig whose cells are equal "
        "(default: miga, F = 1 N)",
    )
    c.add_argument(
        "--out", type=path_of, metavar="DIR", help="write a page with pictures and a CSV file"
    )
    c.add_argument(
        "--scheduler", metavar="ADDRESS", help="of a Dask cluster, such as tcp://host:8786"
    )

    c = group.add(
        identify,
        "estimate array parameters from recorded force",
        "hil identify runs/*.h5 --fix mass_kg",
    )
    c.add_argument("runs", type=path_of, nargs="+", metavar="RUN.h5")
    c.add_argument(
        "--free",
        action="append",
        default=[],
        metavar="NAME",
        help="fit this parameter, such as k_se_N_per_m or mass_kg.* (repeatable; default: every "
        "parameter that the runs can identify)",
    )
    c.add_argument(
        "--fix",
        action="append",
        default=[],
        metavar="NAME",
        help="keep this parameter as configured (repeatable)",
    )
    c.add_argument(
        "--each",
        action="append",
        default=[],
        metavar="LIST",
        choices=("mass_kg", "force_on_N", "cell"),
        help="fit one value for every mass or cell: %(choices)s (repeatable)",
    )
    c.add_argument(
        "--bootstrap",
        type=count_of,
        default=200,
        metavar="N",
        help="number of refits to resampled noise (default: 200, 0 for none)",
    )
    c.add_argument(
        "--seed", type=count_of, default=0, metavar="N", help="seed of the bootstrap (default: 0)"
    )
    c.add_argument(
        "--page", type=path_of, metavar="FILE.html", help="default: beside the first run"
    )
    c.add_argument(
        "--out", type=path_of, metavar="CALIBRATION.toml", help="write the values as a calibration"
    )
    c.add_argument("--by", default="", metavar="NAME", help="with --out: who did it")
    c.add_argument("--serial", default="", metavar="NUMBER", help="with --out: of the array")
    c.add_argument(
        "--valid-days", type=count_of, default=365, metavar="N", help="with --out (default: 365)"
    )

    c = group.add(
        study, "reproduce a published experiment", "hil study fingerprint --out fingerprint"
    )
    c.add_argument("name", metavar="STUDY", help="an unknown name lists all studies")
    c.add_argument("--out", type=path_of, metavar="DIR", help="default: runs/study-NAME")
    add_sets(c)


def model(args: argparse.Namespace) -> int:
    from hil.reports.model_page import described

    facts, text = described(args.file, args.set, args.reduce, args.out)
    if args.json:
        print_json(facts)
    else:
        say(text)
    return DONE


def topologies(args: argparse.Namespace) -> int:
    from dataclasses import asdict

    from hil.systems.array import topologies_page
    from hil.systems.array.cell_file import load_cell
    from hil.systems.array.sweep import sweep
    from hil.systems.array.topology_figures import LikeCells

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
            say(
                f"{args.out} keeps the results so far: run the same command to continue",
                file=sys.stderr,
            )
        raise
    rows = topologies_page.ranked(found, args.rank)
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
    import datetime

    from hil.identification import page as identify_page
    from hil.identification.identify import Asked, identify_files
    from hil.identification.record import Session, write

    if args.out is not None:
        if not args.by or not args.serial:
            raise ConfigError(
                "--out: a calibration names operator and array: give --by NAME --serial NUMBER"
            )
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
        session = Session(args.by, args.serial, args.valid_days)
        record = write(args.out, recorded, found, session, datetime.date.today())
        facts |= {"record": str(args.out), "record_id": record.id}
        if not args.json:
            say(f"record: {args.out} ({record.id})")
    if args.json:
        print_json(facts)
    return DONE if found.adequacy.adequate else ANSWER_NO


def study(args: argparse.Namespace) -> int:
    from hil.record.progress import say_compiling
    from hil.runs.study import as_text, run_study

    out = path_of("runs") / f"study-{args.name}" if args.out is None else args.out
    with say_compiling(not args.json):
        results = run_study(args.name, args.set, out)
    if args.json:
        print_json(results)
    else:
        say(as_text(results))
        say(f"page:   {out / 'index.html'}")
    return DONE
