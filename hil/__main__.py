"""The entry point of `hil`: one command, its exit code, and every expected error in one line."""

from __future__ import annotations

import errno
import gc
import os
import sys

from hil.commands.command_line import command_line
from hil.commands.parser import BAD_INPUT, DEVICE, DONE, INTERRUPTED
from hil.errors import ConfigError, DeviceError, StopError
from hil.platform.terminal import escape_unprintable, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def _forget_working_folder() -> None:
    """Take the working folder off the path where `python -m hil` put it first.

    Modules and entry points that lie beside a recording would be found there before installed ones.
    """
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if __spec__ is not None and not sys.flags.safe_path and sys.path[0] != here:
        del sys.path[0]


def _drop_what_cannot_be_printed() -> None:
    """Python would try to print it again at its end, and show a traceback."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _folder_is_gone() -> bool:
    """Whether the current folder was deleted."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; every expected failure is a line on standard error and an exit code."""
    # What imports and compilations make stays: with Python's own thresholds the search for garbage
    # takes a sixth of their time.
    gc.set_threshold(50_000, 20, 50)
    escape_unprintable()
    parser = command_line()
    if "_ARGCOMPLETE" in os.environ:  # the shell asks for completions
        from hil.commands.completion import complete

        complete(parser)
    args = parser.parse_args(argv)
    if args.version:
        from importlib.metadata import version

        print(version("hil-arrays"))
        return DONE
    if args.command is None:
        parser.print_help()
        return BAD_INPUT
    try:
        code = int(args.function(args))
        sys.stdout.flush()
        return code
    except ConfigError as error:
        say(error, file=sys.stderr)
        return BAD_INPUT
    except DeviceError as error:
        say(error, file=sys.stderr)
        return DEVICE
    except (KeyboardInterrupt, StopError):
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except Exception as error:
        if os.environ.get("HIL_DEBUG"):
            raise
        no_room = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        if isinstance(error, OSError) and error.errno in no_room:
            say(f"hil: {error.strerror}: free some, or write elsewhere", file=sys.stderr)
            _drop_what_cannot_be_printed()
            return BAD_INPUT
        if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
            say(f"hil: {error.strerror}: allow more (ulimit -n 1024)", file=sys.stderr)
            return BAD_INPUT
        if isinstance(error, MemoryError):
            say("hil: not enough memory: close other programs, or allow more (ulimit -v)",
                file=sys.stderr)  # fmt: skip
            return BAD_INPUT
        if isinstance(error, FileNotFoundError) and _folder_is_gone():
            say("hil: the current folder was deleted: change to another one", file=sys.stderr)
            return BAD_INPUT
        if isinstance(error, PermissionError) and error.filename is not None:
            where = f"{error.filename}: {error.strerror}"
            say(f"{where}: check the path and its permissions", file=sys.stderr)
            return BAD_INPUT
        say(
            f"hil: internal error: {type(error).__name__}: {error}: "
            "run again with HIL_DEBUG=1 for the traceback, and report it",
            file=sys.stderr,
        )
        return 1


if __name__ == "__main__":
    _forget_working_folder()
    sys.exit(main())
