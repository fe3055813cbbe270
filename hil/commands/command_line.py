"""The command line: every command in its group."""

from __future__ import annotations

import argparse
from functools import cache

from hil.commands import calibrations, catalogue, models, recordings, rig, runs, tools
from hil.commands.parser import Group, Parser

GROUPS = (
    ("Run and look", (runs, recordings)),
    ("Find and compare", (catalogue,)),
    ("Rig and calibration", (rig, calibrations)),
    ("Models and studies", (models,)),
    ("Tools", (tools,)),
)


@cache  # programs and tests call `main` many times
def command_line() -> Parser:
    """The parser of `hil`, whose `command` is the function to call."""
    parser = Parser(
        prog="hil",
        usage="hil [-h] [--version] COMMAND ...",
        epilog="`hil COMMAND --help` lists the options of a command and shows an example.\n"
        "example: hil run configs/miga6/all_on.toml",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.flag("--version", "print the version and exit")
    # The description lists the commands by group, which argparse cannot.
    subparsers = parser.add_subparsers(
        dest="command", metavar="COMMAND", help=argparse.SUPPRESS, prog="hil", parser_class=Parser
    )
    lines = ["Control and data acquisition for cellular actuator arrays."]
    for title, modules in GROUPS:
        group = Group(title, subparsers)
        for module in modules:
            module.add_to(group)
        lines += ["", f"{group.title}:", *group.lines]
    parser.description = "\n".join(lines)
    return parser
