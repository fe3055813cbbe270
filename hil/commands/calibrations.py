"""Calibrations, and the logbooks of specimens."""

from __future__ import annotations

from hil.commands.parser import DONE, Group, add_sets, path_of, show
from hil.platform.terminal import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


# As `hil.procedures.kinds` has them, and literature.
CALIBRATIONS = ("certificate", "force_transducer", "spring_constants", "masses", "encoder",
                "displacement_sensor", "pantograph_geometry", "damping", "activation",
                "cell_force", "daq_channel", "latency", "literature")  # fmt: skip


def add_to(group: Group) -> None:
    """Add these commands."""
    c = group.add(
        calibrate,
        "calibrate a sensor or model, with uncertainty",
        "hil calibrate force_transducer --template > session.toml; "
        "hil calibrate force_transducer session.toml",
    )
    c.value("kind", "KIND", ", ".join(CALIBRATIONS))
    c.path("session", "SESSION.toml", "who calibrates what, against which reference", nargs="?")
    c.flag("--template", "print a SESSION.toml to start from")
    c.flag("--rehearse", "use a simulated specimen whose truth is known")
    c.value("--seed", "N", "seed of the rehearsal (default: 0)", type=int, default=0)
    c.path("--rig", "RIG.toml", "the rig whose channel is read, or whose one cell is switched")
    c.path("--run", "RUN.h5", "use a recording in place of a new run")
    c.add_argument("--backend", default="sim", help="backend of --rig (default: sim)")
    c.value("--channel", "NAME", "channel of --rig or --run")
    c.value("--undo", "N", "first withdraw the last N readings", type=int, default=0)
    c.several(
        "--supersedes",
        "CALIBRATION.toml",
        "an older calibration of the same specimen (repeatable)",
        type=path_of,
    )
    c.path("--out", "FILE.toml", "default: calibration/KIND-SERIAL-DATE.toml")
    add_sets(c)

    c = group.add(
        recalibrate,
        "apply another calibration to an old run's raw readings",
        "hil recalibrate runs/old.h5 --with calibration/transducer-2027.toml",
    )
    c.path("run", "RUN.h5")
    c.path("--with", "CALIBRATION.toml", dest="record", required=True)
    c.value("--channel", "NAME", "the calibrated channel, where several are possible")
    c.path("--out", "FILE.h5", "default: RUN-recalibrated.h5")

    c = group.add(
        logbook,
        "print a specimen's usage: cycles, time on, energy, faults",
        'hil logbook WIRES4-01 --swap muscle.3 --note "new wire, 0.10 mm"',
    )
    c.value(
        "specimen",
        "SERIAL|FILE.toml",
        "serial number, or a file that names it (default: all specimens)",
        nargs="?",
    )
    c.path("--folder", "DIR", "default: logbook")
    c.flag("--simulated", "the logbooks of simulated runs")
    c.value("--swap", "CELL", "note that this cell has a new wire: its counts restart at 0")
    c.value("--note", "TEXT", "add a note, with --swap or alone", default="")


def calibrate(args: argparse.Namespace) -> int:
    if args.kind == "literature":
        from hil.procedures.literature import write_literature

        written = write_literature(args.out or path_of("calibration"))
        lines = [f"{path}: {'written' if new else 'there already'}" for path, new in written]
        facts = [{"file": str(path), "written": new} for path, new in written]
        show(args, facts, "\n".join(lines))
        return DONE
    from hil.procedures.kinds import KINDS, template
    from hil.procedures.run import CalibrationRequest
    from hil.procedures.run import calibrate as go_through
    from hil.procedures.text import as_text

    if args.template and args.kind in KINDS:
        say(template(args.kind), end="")
        return DONE
    request = CalibrationRequest(
        kind=args.kind, session=args.session, sets=tuple(args.set), rehearse=args.rehearse,
        seed=args.seed, rig=args.rig, run=args.run, backend=args.backend, channel=args.channel,
        out=args.out, supersedes=tuple(args.supersedes), undo=args.undo,
    )  # fmt: skip
    records = go_through(request)
    show(
        args,
        [
            {
                "file": str(d.path),
                "id": d.record.id,
                "values": dict(zip(d.record.names, d.record.values, strict=True)),
                "covariance": d.record.covariance,
                "status": d.record.record.status,
                "said": d.messages,
                "truth": d.truth,
            }
            for d in records
        ],
        "\n".join(as_text(done) for done in records),
    )
    return DONE


def recalibrate(args: argparse.Namespace) -> int:
    from hil.procedures.recalibrate import recalibrate as anew

    done = anew(args.run, args.record, args.channel, args.out)
    facts = {"file": str(done.path), "channel": done.channel, "unit": done.unit,
             "largest_change": done.largest_change, "remarks": done.messages}  # fmt: skip
    lines = [
        f"{done.path}: {done.channel} recalibrated",
        f"readings changed by at most {done.largest_change:.4g} {done.unit}",
        *done.messages,
        f"{args.run} is unchanged",
    ]
    show(args, facts, "\n  ".join(lines))
    return DONE


def logbook(args: argparse.Namespace) -> int:
    from hil.runs import logbook_page

    books = logbook_page.chosen(args.specimen, args.folder, args.simulated)
    if args.swap is not None or args.note:
        logbook_page.write(books, args.swap, args.note)
    text = "\n".join(logbook_page.as_text(book) for book in books) or "no logbooks"
    show(args, {book.serial: logbook_page.as_json(book) for book in books}, text)
    return DONE
