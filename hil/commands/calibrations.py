"""Calibrations, and the logbooks of specimens."""

from __future__ import annotations

from hil.commands.parser import DONE, Group, add_sets, path_of, print_json
from hil.platform.terminal import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


# As `hil.procedures.kinds` has them, and literature.
CALIBRATIONS = ("certificate", "force_transducer", "spring_constants", "masses", "encoder",
                "pantograph_geometry", "damping", "activation", "cell_force", "daq_channel",
                "latency", "literature")  # fmt: skip


def add_to(group: Group) -> None:
    """Add these commands."""
    c = group.add(
        calibrate,
        "calibrate a sensor or model, with uncertainty",
        "hil calibrate force_transducer --template > session.toml; "
        "hil calibrate force_transducer session.toml",
    )
    c.add_argument("kind", metavar="KIND", help=", ".join(CALIBRATIONS))
    c.add_argument(
        "session",
        type=path_of,
        nargs="?",
        metavar="SESSION.toml",
        help="who calibrates what, against which reference",
    )
    c.add_argument("--template", action="store_true", help="print a SESSION.toml to start from")
    c.add_argument(
        "--rehearse", action="store_true", help="use a simulated specimen whose truth is known"
    )
    c.add_argument(
        "--seed", type=int, default=0, metavar="N", help="seed of the rehearsal (default: 0)"
    )
    c.add_argument(
        "--rig",
        type=path_of,
        metavar="RIG.toml",
        help="the rig whose channel is read, or whose one cell is switched",
    )
    c.add_argument(
        "--run", type=path_of, metavar="RUN.h5", help="use a recording in place of a new run"
    )
    c.add_argument("--backend", default="sim", help="backend of --rig (default: sim)")
    c.add_argument("--channel", metavar="NAME", help="channel of --rig or --run")
    c.add_argument(
        "--undo", type=int, default=0, metavar="N", help="first withdraw the last N readings"
    )
    c.add_argument(
        "--supersedes",
        type=path_of,
        action="append",
        default=[],
        metavar="CALIBRATION.toml",
        help="an older calibration of the same specimen (repeatable)",
    )
    c.add_argument(
        "--out",
        type=path_of,
        metavar="FILE.toml",
        help="default: calibration/KIND-SERIAL-DATE.toml",
    )
    add_sets(c)

    c = group.add(
        recalibrate,
        "apply another calibration to an old run's raw readings",
        "hil recalibrate runs/old.h5 --with calibration/transducer-2027.toml",
    )
    c.add_argument("run", type=path_of, metavar="RUN.h5")
    c.add_argument("--with", dest="record", type=path_of, required=True, metavar="CALIBRATION.toml")
    c.add_argument(
        "--channel", metavar="NAME", help="the calibrated channel, where several are possible"
    )
    c.add_argument("--out", type=path_of, metavar="FILE.h5", help="default: RUN-recalibrated.h5")

    c = group.add(
        logbook,
        "print a specimen's usage: cycles, time on, energy, faults",
        'hil logbook WIRES4-01 --swap muscle.3 --note "new wire, 0.10 mm"',
    )
    c.add_argument(
        "specimen",
        nargs="?",
        metavar="SERIAL|FILE.toml",
        help="serial number, or a file that names it (default: all specimens)",
    )
    c.add_argument("--folder", type=path_of, metavar="DIR", help="default: logbook")
    c.add_argument("--simulated", action="store_true", help="the logbooks of simulated runs")
    c.add_argument(
        "--swap", metavar="CELL", help="note that this cell has a new wire: its counts restart at 0"
    )
    c.add_argument("--note", default="", metavar="TEXT", help="add a note, with --swap or alone")


def calibrate(args: argparse.Namespace) -> int:
    if args.kind == "literature":
        from hil.procedures.literature import write_literature

        written = write_literature(args.out or path_of("calibration"))
        if args.json:
            print_json([{"file": str(path), "written": new} for path, new in written])
        else:
            for path, new in written:
                say(f"{path}: {'written' if new else 'there already'}")
        return DONE
    from hil.procedures.kinds import KINDS, template
    from hil.procedures.run import Asked
    from hil.procedures.run import calibrate as go_through
    from hil.procedures.text import as_text

    if args.template and args.kind in KINDS:
        say(template(args.kind), end="")
        return DONE
    asked = Asked(
        kind=args.kind, session=args.session, sets=tuple(args.set), rehearse=args.rehearse,
        seed=args.seed, rig=args.rig, run=args.run, backend=args.backend, channel=args.channel,
        out=args.out, supersedes=tuple(args.supersedes), undo=args.undo,
    )  # fmt: skip
    records = go_through(asked)
    if args.json:
        print_json([
            {"file": str(d.path), "id": d.record.id, "values": dict(zip(d.record.names,
             d.record.values, strict=True)), "covariance": d.record.covariance,
             "status": d.record.record.status, "said": d.said, "truth": d.truth}
            for d in records
        ])  # fmt: skip
    else:
        say("\n".join(as_text(done) for done in records))
    return DONE


def recalibrate(args: argparse.Namespace) -> int:
    from hil.procedures.recalibrate import recalibrate as anew

    done = anew(args.run, args.record, args.channel, args.out)
    if args.json:
        print_json({"file": str(done.path), "channel": done.channel, "unit": done.unit,
                     "largest_change": done.largest_change, "remarks": done.messages})  # fmt: skip
    else:
        say(f"{done.path}: {done.channel} recalibrated")
        say(f"  readings changed by at most {done.largest_change:.4g} {done.unit}")
        for message in done.messages:
            say(f"  {message}")
        say(f"  {args.run} stays as it was")
    return DONE


def logbook(args: argparse.Namespace) -> int:
    from hil.runs import logbook_page

    books = logbook_page.chosen(args.specimen, args.folder, args.simulated)
    if args.swap is not None or args.note:
        logbook_page.write(books, args.swap, args.note)
    if args.json:
        print_json({book.serial: logbook_page.as_json(book) for book in books})
    else:
        say("\n".join(logbook_page.as_text(book) for book in books) or "no logbooks")
    return DONE
