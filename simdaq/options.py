"""Options of the command; imports nothing, so that other commands can offer them cheaply."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

NAME = "python -m simdaq"
REMAINDER = "..."  # of argparse


def add_arguments(parser: argparse.ArgumentParser, name: str = NAME) -> None:
    """Add the options of the command, which the user knows by this name."""
    parser.add_argument("--card", action="append", default=[], metavar="MODEL=NAME",
                        help="a card of the bench (repeatable; default: the bench that "
                        f"`{name}` lists)")  # fmt: skip
    parser.add_argument("--max", action="append", default=[], metavar="FILE.ini",
                        help="cards, scales, channels and tasks of an NI MAX configuration "
                        "export (repeatable)")  # fmt: skip
    parser.add_argument("--scene", default="", metavar="FILE.toml",
                        help="signals of the inputs: functions, recordings, a plant")  # fmt: skip
    parser.add_argument("--fast", action="store_true",
                        help="time passes only while the program waits, and in no "
                        "time")  # fmt: skip
    parser.add_argument("--port", type=int, metavar="N",
                        help="serve NI's gRPC protocol at this port (NI's own: 31763)")  # fmt: skip
    parser.add_argument("--host", default="127.0.0.1",
                        help="with --port (default: 127.0.0.1)")  # fmt: skip
    parser.add_argument("--env", action="store_true",
                        help=f'print what any program needs: eval "$({name} --env)"')  # fmt: skip
    parser.add_argument("--run", nargs=REMAINDER, metavar="PROGRAM",
                        help="run a program on these cards, with all arguments that "
                        "follow")  # fmt: skip
