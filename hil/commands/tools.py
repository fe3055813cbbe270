"""Tools: this machine, simulated instruments, examples, tab completion."""

from __future__ import annotations

import argparse
import sys

from hil.commands.parser import ANSWER_NO, DEVICE, DONE, Group, print_json, show
from hil.errors import ConfigError
from hil.platform.terminal import say, word
from simdaq.options import add_arguments as simdaq_arguments

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


LOOPBACK_S = 10.0


def add_to(group: Group) -> None:
    """Add these commands."""
    c = group.add(doctor, "check whether this machine is fit for real time", "hil doctor --json")
    c.path(
        "--loopback",
        "EXPERIMENT.toml",
        "also measure the latency from ADC to gate; the first cell's gate must be connected "
        "to the input of the force channel",
    )
    c.add_argument("--backend", default="bench", help="backend of --loopback (default: bench)")
    c.flag("--install", "only say what is not installed, and for what it is needed")

    c = group.add(bench, "measure speed on this machine, against a loop in C", "hil bench --quick")
    extent = c.add_mutually_exclusive_group()
    extent.add_argument(
        "--quick", action="store_true", help="about ten seconds: loop and recorder only"
    )
    extent.add_argument(
        "--full",
        action="store_true",
        help="about three hours: a million ticks per loop, ten minutes of recording, models "
        "against other tools",
    )
    c.several(
        "--only", "PART", "measure this part only; an unknown name lists all parts (repeatable)"
    )

    c = group.add(
        notify,
        "try the messages of this machine, or send those after a restart",
        "hil notify --test",
    )
    what = c.add_mutually_exclusive_group(required=True)
    what.add_argument("--test", action="store_true", help="send a message to every address now")
    what.add_argument(
        "--after-restart",
        action="store_true",
        help="say which commands a restart of this computer has cut off: for its list of commands "
        "to run at the start",
    )

    c = group.add(
        simboard, "simulate a driver board on a pseudo-terminal", "hil simboard --cells 6"
    )
    c.add_argument("--cells", type=int, choices=range(1, 17), default=12, metavar="N")
    c.add_argument("--serial", type=int, default=1, metavar="NUMBER")

    c = group.add(
        simdaq, "simulate NI-DAQmx cards for any nidaqmx program", "hil simdaq --run PROGRAM.py"
    )
    simdaq_arguments(c, "hil simdaq")

    c = group.add(
        examples,
        "copy example configurations, or a template for a plug-in",
        "hil examples my-rigs; hil examples --template controller mine.py",
    )
    c.path("folder", "DIR|FILE.py", nargs="?")
    c.add_argument(
        "--template",
        choices=("controller", "reference", "model", "device"),
        help="copy this template to FILE.py (default: my_KIND.py)",
    )

    c = group.add(
        completion, "print the script for tab completion", "hil completion bash >> ~/.bashrc"
    )
    c.add_argument("shell", choices=("bash", "zsh", "fish"))


def doctor(args: argparse.Namespace) -> int:
    from hil.bench.doctor import as_text, examine

    if args.install:
        from hil.bench import install

        rows = install.look()
        show(args, {"purposes": rows}, install.as_text(rows))
        return DONE
    measured = None
    if args.loopback is not None:
        from hil.bench.latency import measure
        from hil.experiment.load import load

        measured = measure(load(args.loopback), args.backend, LOOPBACK_S)
    findings = examine(measured)
    show(args, findings, as_text(findings))
    return DONE if findings["fit"] else ANSWER_NO


def bench(args: argparse.Namespace) -> int:
    from hil.bench.run import as_text, measure

    extent = "quick" if args.quick else "full" if args.full else "usual"
    figures = measure(extent, args.only, progress=not args.json and sys.stderr.isatty())
    show(args, figures, as_text(figures))
    return DONE


def notify(args: argparse.Namespace) -> int:
    from hil.watch import messages
    from hil.watch.serve import machine_file

    table = messages.notify_table()
    if table is None:
        where = machine_file() or "~/.config/hil/machine.toml"
        raise ConfigError(f"{where}: there is no [notify]: give it urls = [...]")
    due = messages.cut_off() if args.after_restart else [messages.TEST]
    arrivals = messages.send_now(due, table, keep=args.after_restart)
    facts = {"messages": len(due), "addresses": [{"name": n, "arrived": a} for n, a in arrivals]}
    lines = [f"{name}: {'arrived' if arrived else 'NOT arrived'}" for name, arrived in arrivals]
    show(args, facts, "\n".join([f"{len(due)} messages", *lines]))
    return DONE if all(arrived for _, arrived in arrivals) else ANSWER_NO


def simboard(args: argparse.Namespace) -> int:
    from hil.devices.board.listing import run_simulated

    return DONE if run_simulated(args.cells, args.serial) == 0 else DEVICE


def simdaq(args: argparse.Namespace) -> int:
    from hil.devices.nidaq.simdaq_border import simdaq_errors
    from simdaq import command

    with simdaq_errors():
        command.run(args, "hil simdaq")
    return DONE


def examples(args: argparse.Namespace) -> int:
    from hil.bundled_configs import copy_examples, copy_template

    if args.template is not None:
        file = copy_template(args.template, args.folder)
        if args.json:
            print_json({"files": [str(file)]})
        else:
            say(f"{file}: its first lines say how an experiment names it")
            say(f"try: pytest --hil-contract {word(file)}")
        return DONE
    if args.folder is None:
        raise ConfigError("hil examples: give a folder, or --template and a kind")
    files = copy_examples(args.folder)
    text = f"{len(files)} files are in {args.folder}\n"
    text += f"try: hil run {word(args.folder / 'configs/miga6/all_on.toml')}"
    show(args, {"files": [str(file) for file in files]}, text)
    return DONE


def completion(args: argparse.Namespace) -> int:
    from argcomplete.shell_integration import shellcode

    say(shellcode(["hil"], shell=args.shell))
    return DONE
