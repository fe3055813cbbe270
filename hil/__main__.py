"""The command line: options and exit codes; the commands themselves are in `hil.commands`.

`hil --help` must start within three times a bare interpreter, so this module imports argparse
and little else.
"""

from __future__ import annotations

import argparse
import os
import sys

from hil.errors import ConfigError, DeviceError
from hil.terminal import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import NoReturn

# As `hil.views.bench` has them, which is not imported for `hil --help`.
BENCH_PARTS = ("start_up", "step", "virtual_run", "real_time", "recorder", "impact", "leg",
               "recruitment", "own", "board", "daq", "window", "models", "soft_links",
               "bodies", "arm")  # fmt: skip
# As `hil.calibrate.kinds` has them, and literature.
CALIBRATIONS = ("certificate", "force_transducer", "spring_constants", "masses", "encoder",
                "pantograph_geometry", "damping", "activation", "cell_force", "daq_channel",
                "latency", "literature")  # fmt: skip
STRICT = "refuse calibrations that are expired, missing or contradicted, on a bench assumed ones"
DONE, BAD_INPUT, DEVICE, INTERRUPTED = 0, 2, 4, 130


def _path(text: str) -> Path:
    from pathlib import Path

    return Path(text)


def _count(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError(text)
    return number


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

    def add(name: str, text: str, example: str) -> _Parser:
        command = commands.add_parser(
            name,
            help=text,
            description=text[0].upper() + text[1:] + ".",
            epilog=f"example: {example}",
        )
        command.set_defaults(command=name)
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

    c = add("run", "run an experiment and record it", "hil run configs/miga6/all_on.toml --seed 7")
    c.add_argument("experiment", type=_path, metavar="EXPERIMENT.toml")
    c.add_argument("--inject", type=_path, metavar="FAULTS.toml", help="faults for a simulated rig")
    c.add_argument(
        "--backend",
        default="sim",
        help="sim, emulated, bench, or one a device such as board=bench,daq=sim (default: sim)",
    )
    c.add_argument(
        "--clock",
        choices=("virtual", "real"),
        help="virtual: as fast as it goes, repeatable (default); real: on the wall clock "
        "(default with a device on the bench and with --gui)",
    )
    c.add_argument("--duration", type=float, metavar="S", help="length of the run in s")
    c.add_argument(
        "--seed", type=int, default=0, metavar="N", help="of all random draws (default: 0)"
    )
    c.add_argument(
        "--out", type=_path, metavar="FILE.h5", help="default: runs/RIG-EXPERIMENT-UTC.h5"
    )
    c.add_argument("--force", action="store_true", help="overwrite an existing file")
    c.add_argument("--strict", action="store_true", help=STRICT)
    c.add_argument(
        "--disarmed", action="store_true", help="keep all off until a window arms the run"
    )
    c.add_argument(
        "--gui", action="store_true", help="show it live in the window, on the real clock"
    )
    sets(c)
    c = add(
        "check",
        "validate configurations without opening a device",
        "hil check configs/*/*.toml --energise-plan",
    )
    c.add_argument("files", type=_path, nargs="+", metavar="FILE")
    c.add_argument("--energise-plan", action="store_true", help="print what a run would switch on")
    c.add_argument("--strict", action="store_true", help=STRICT)
    sets(c)
    c = add(
        "model",
        "the model of a rig: poles, statics, controllability",
        "hil model configs/miga6/rig.toml --out miga6.npz",
    )
    c.add_argument("file", type=_path, metavar="FILE")
    c.add_argument("--out", type=_path, metavar="M.npz|M.mat", help="write A B C D and all names")
    sets(c)
    c.add_argument(
        "--reduce",
        type=int,
        metavar="ORDER",
        help="balanced reduction from cells to forces; --out writes it",
    )
    c = add(
        "topologies",
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
        type=_path,
        metavar="FILE",
        help="TOML with the table of a cell, or a rig of like cells (default: miga, F = 1 N)",
    )
    c.add_argument(
        "--out", type=_path, metavar="DIR", help="write a page with pictures and a CSV file"
    )
    c.add_argument(
        "--scheduler", metavar="ADDRESS", help="of a Dask cluster, such as tcp://host:8786"
    )
    c = add("campaign", "many trials: order, waiting, questions; resumed where it was stopped",
            "hil campaign configs/wires4/campaigns/day.toml --rehearse")  # fmt: skip
    c.add_argument("campaign", type=_path, metavar="CAMPAIGN.toml")
    c.add_argument("--rehearse", action="store_true",
                   help="all of it on the simulated rig, with scripted answers")  # fmt: skip
    c.add_argument("--status", action="store_true", help="how far it is; nothing is run")
    c.add_argument("--out", type=_path, metavar="DIR",
                   help="in which it goes on (default: runs/campaign-NAME)")  # fmt: skip
    c.add_argument("--backend", default="sim", help="as for hil run (default: sim)")
    c.add_argument("--clock", choices=("virtual", "real"), help="as for hil run")
    c.add_argument("--answers", type=_path, metavar="FILE.toml",
                   help="answers to its questions, for when nobody is there")  # fmt: skip
    c.add_argument("--scheduler", metavar="ADDRESS",
                   help="of a Dask cluster, such as tcp://host:8786")  # fmt: skip
    c.add_argument("--strict", action="store_true",
                   help=STRICT)  # fmt: skip
    c = add("logbook", "what an article has been through: cycles, time on, energy, faults, swaps",
            'hil logbook WIRES4-01 --swap muscle.3 --note "new wire, 0.10 mm"')  # fmt: skip
    c.add_argument("article", nargs="?", metavar="SERIAL|FILE.toml",
                   help="or a file that names it (default: all there are)")  # fmt: skip
    c.add_argument("--folder", type=_path, metavar="DIR", help="default: logbook")
    c.add_argument("--simulated", action="store_true", help="of simulated runs")
    c.add_argument("--swap", metavar="CELL", help="its wire was replaced: counts begin anew")
    c.add_argument("--note", default="", metavar="TEXT", help="put down, with the swap or alone")
    c = add("report", "figure and page of measured over simulated force", "hil report runs/*.h5")
    c.add_argument("runs", type=_path, nargs="+", metavar="RUN.h5")
    c.add_argument("--out", type=_path, metavar="DIR", help="default: beside the recording")
    c.add_argument("--validate", type=_path, nargs="?", const=_path("."), metavar="ACCEPTANCE.toml",
                   help="after the runs: is the model good enough, by the runs' own [validation] "
                   "or by this file's; several runs in one table")  # fmt: skip
    c = add("identify", "array parameters from recorded force, with uncertainty",
            "hil identify runs/*.h5 --fix mass_kg")  # fmt: skip
    c.add_argument("runs", type=_path, nargs="+", metavar="RUN.h5")
    c.add_argument("--free", action="append", default=[], metavar="NAME",
                   help="fit this parameter, such as k_se_N_per_m or mass_kg.* (repeatable; "
                   "default: all that the runs tell apart)")  # fmt: skip
    c.add_argument("--fix", action="append", default=[], metavar="NAME",
                   help="hold this one as configured (repeatable)")  # fmt: skip
    c.add_argument("--each", action="append", default=[], metavar="LIST",
                   choices=("mass_kg", "force_on_N", "cell"),
                   help="a value for every mass or cell: %(choices)s (repeatable)")  # fmt: skip
    c.add_argument("--bootstrap", type=_count, default=200, metavar="N",
                   help="refits to redrawn noise (default: 200, 0 for none)")  # fmt: skip
    c.add_argument("--seed", type=_count, default=0, metavar="N", help="of the bootstrap")
    c.add_argument("--page", type=_path, metavar="FILE.html", help="default: beside the first run")
    c.add_argument("--out", type=_path, metavar="RECORD.toml", help="write a calibration record")
    c.add_argument("--by", default="", metavar="NAME", help="with --out: who did it")
    c.add_argument("--serial", default="", metavar="NUMBER", help="with --out: of the array")
    c.add_argument("--valid-days", type=_count, default=365, metavar="N", help="with --out")
    c = add("study", "rerun a published experiment", "hil study fingerprint --out fingerprint")
    c.add_argument("name", metavar="NAME", help="which; a wrong one is answered with all")
    c.add_argument("--out", type=_path, metavar="DIR", help="default: runs/study-NAME")
    sets(c)
    c = add("calibrate", "a procedure that ends in a record: values with uncertainty",
            "hil calibrate force_transducer --template > act.toml; "
            "hil calibrate force_transducer act.toml")  # fmt: skip
    c.add_argument("kind", metavar="KIND", help=", ".join(CALIBRATIONS))
    c.add_argument("act", type=_path, nargs="?", metavar="ACT.toml", help="who, what, against what")
    c.add_argument("--template", action="store_true", help="print an ACT.toml to begin with")
    c.add_argument("--rehearse", action="store_true", help="on a simulated article, truth known")
    c.add_argument("--seed", type=int, default=0, metavar="N", help="of the rehearsal (default: 0)")
    c.add_argument("--rig", type=_path, metavar="RIG.toml",
                   help="the rig whose channel is read, or whose one cell is switched")  # fmt: skip
    c.add_argument("--run", type=_path, metavar="RUN.h5", help="a recording instead of a new run")
    c.add_argument("--backend", default="sim", help="of --rig (default: sim)")
    c.add_argument("--channel", metavar="NAME", help="of --rig or --run")
    c.add_argument("--undo", type=int, default=0, metavar="N",
                   help="take the last N readings of the journal back first")  # fmt: skip
    c.add_argument("--supersedes", type=_path, action="append", default=[], metavar="RECORD.toml",
                   help="an older record of the same article (repeatable)")  # fmt: skip
    c.add_argument("--out", type=_path, metavar="FILE.toml",
                   help="default: calibration/KIND-SERIAL-DATE.toml")  # fmt: skip
    sets(c)
    c = add("recalibrate", "an old run anew from its raw readings, into a new file",
            "hil recalibrate runs/old.h5 --with calibration/transducer-2027.toml")  # fmt: skip
    c.add_argument("run", type=_path, metavar="RUN.h5")
    c.add_argument("--with", dest="record", type=_path, required=True, metavar="RECORD.toml")
    c.add_argument("--channel", metavar="NAME", help="whose record it is, where several fit")
    c.add_argument("--out", type=_path, metavar="FILE.h5", help="default: RUN-recalibrated.h5")
    c = add("recover", "make a recording whole that was cut off", "hil recover runs/cut.h5")
    c.add_argument("run", type=_path, metavar="RUN.h5")
    c = add("verify", "find out whether a recording is whole", "hil verify runs/done.h5")
    c.add_argument("run", type=_path, metavar="RUN.h5")
    c = add(
        "replay",
        "feed recorded readings through estimator, controller and guard again",
        "hil replay runs/done.h5",
    )
    c.add_argument("run", type=_path, metavar="RUN.h5")
    c.add_argument("--show-code", action="store_true",
                   help="print the code of one's own that it keeps; nothing is run")  # fmt: skip
    c.add_argument("--trust", action="append", default=[], metavar="SHA256",
                   help="let kept code of this hash run, from now on (repeatable)")  # fmt: skip
    c.add_argument("--code", action="append", default=[], metavar="FILE.py|MODULE",
                   help="run this instead of the kept code of its name (repeatable)")  # fmt: skip
    c = add("export", "write a recording in another format", "hil export runs/done.h5 --to csv")
    c.add_argument("run", type=_path, metavar="RUN.h5")
    c.add_argument("--to", choices=("csv", "mat", "mcap"), default="csv")
    c.add_argument("--out", type=_path, metavar="FILE", help="default: beside the recording")
    c = add("doctor", "is this machine fit for real time", "hil doctor --json")
    c.add_argument(
        "--loopback",
        type=_path,
        metavar="EXPERIMENT.toml",
        help="also time the whole stack, ADC to gate: the first cell's gate is wired to the "
        "force channel's input",
    )
    c.add_argument("--backend", default="bench", help="of the loop-back (default: bench)")
    c = add("bench", "how fast is it on this machine, beside a loop in C", "hil bench --quick")
    extent = c.add_mutually_exclusive_group()
    extent.add_argument("--quick", action="store_true", help="some ten seconds: loop and recorder")
    extent.add_argument("--full", action="store_true",
                        help="some three hours: a million ticks a loop, ten minutes of recording, "
                        "models against other tools")  # fmt: skip
    c.add_argument("--only", action="append", default=[], metavar="PART", choices=BENCH_PARTS,
                   help="of %(choices)s (repeatable)")  # fmt: skip
    c = add("devices", "what is plugged in", "hil devices --identify")
    c.add_argument("--identify", action="store_true", help="open every port and ask who is there")
    c = add("board", "a driver board's identity and limits, set with confirmation; new firmware",
            "hil board limits usb:HIL-0001 --set on_time_max_ms=20000; "
            "hil board limits --from configs/wires4/rig.toml; "
            "hil board flash usb:HIL-0001")  # fmt: skip
    c.add_argument("what", choices=("limits", "flash"))
    c.add_argument("port", metavar="PORT", nargs="?", help="usb:SERIAL_NUMBER or a device path")
    c.add_argument("--from", dest="from_rig", type=_path, metavar="RIG.toml",
                   help="limits: print those that protect the wires of this rig")  # fmt: skip
    c.add_argument("--out", type=_path, metavar="FILE.toml", help="with --from: write them here")
    c.add_argument("--set", action="append", default=[], metavar="LIMIT=VALUE",
                   help="change a limit in the board's memory (repeatable)")  # fmt: skip
    c.add_argument("--image", type=_path, metavar="FILE.hex",
                   help="flash this instead of the shipped firmware")  # fmt: skip
    c.add_argument("--programmer", metavar="NAME",
                   help="of avrdude's, at the board's six pins; writes the fuses too, and removes "
                   "the boot loader; default: the boot loader, through PORT")  # fmt: skip
    c.add_argument("--programmer-port", default="usb", metavar="PORT",
                   help="where that programmer is (default %(default)s)")  # fmt: skip
    c.add_argument("--boot-loader", type=_path, metavar="FILE.hex",
                   help="write this into the boot section too, with a programmer")  # fmt: skip
    c.add_argument("--fuses", action="store_true",
                   help="write and read back the fuses alone, with a programmer")  # fmt: skip
    c.add_argument("--yes", action="store_true", help="do not ask")
    c = add("simboard", "a simulated driver board on a pty, for anyone's program",
            "hil simboard --cells 6")  # fmt: skip
    c.add_argument("--cells", type=int, choices=range(1, 17), default=12, metavar="N")
    c.add_argument("--serial", type=int, default=1, metavar="NUMBER")
    c = add("simdaq", "simulated NI-DAQmx cards, for anyone's nidaqmx program",
            "hil simdaq --run PROGRAM.py")  # fmt: skip
    c.add_argument("--card", action="append", default=[], metavar="MODEL=NAME",
                   help="a card of the bench (repeatable; default: the bench that "
                   "`hil simdaq` lists)")  # fmt: skip
    c.add_argument("--fast", action="store_true",
                   help="time passes only while the program waits, and in no time")  # fmt: skip
    c.add_argument("--port", type=int, metavar="N",
                   help="serve NI's gRPC protocol at this port (NI's own: 31763)")  # fmt: skip
    c.add_argument("--host", default="127.0.0.1", help="with --port (default: 127.0.0.1)")
    c.add_argument("--env", action="store_true",
                   help='print what any program needs: eval "$(hil simdaq --env)"')  # fmt: skip
    c.add_argument("--run", nargs=argparse.REMAINDER, metavar="PROGRAM",
                   help="run a program on these cards, with all arguments that follow")  # fmt: skip
    c = add("gui", "the window: run an experiment, look at recordings",
            "hil gui configs/miga6/pid.toml")  # fmt: skip
    c.add_argument("file", type=_path, nargs="?", metavar="FILE",
                   help="an experiment (.toml) or a recording (.h5)")  # fmt: skip
    c = add("examples", "copy the shipped configurations out, or a class to start your own from",
            "hil examples my-rigs; hil examples --template controller mine.py")  # fmt: skip
    c.add_argument("folder", type=_path, nargs="?", metavar="DIR|FILE.py")
    c.add_argument("--template", choices=("controller", "reference", "model", "device"),
                   help="copy this to FILE.py (default: my_KIND.py)")  # fmt: skip
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; every expected failure is a line on standard error and an exit code."""
    parser = _parser()
    args = parser.parse_args(argv)
    if args.version:
        from importlib.metadata import version

        print(version("hil-arrays"))
        return DONE
    if not hasattr(args, "command"):
        parser.print_help()
        return BAD_INPUT
    try:
        from hil import commands

        code = int(getattr(commands, args.command)(args))
        sys.stdout.flush()
        return code
    except ConfigError as error:
        say(error, file=sys.stderr)
        return BAD_INPUT
    except DeviceError as error:
        say(error, file=sys.stderr)
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
        say(
            f"hil: a defect of the program: {type(error).__name__}: {error}: "
            "run again with HIL_DEBUG=1 for its trace, and report it",
            file=sys.stderr,
        )
        return 1


if __name__ == "__main__":
    sys.exit(main())
