"""The command's end of the process that watches a bench."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple, TextIO

from hil.errors import ConfigError, DeviceError, StopError
from hil.platform.processes import APART, PYTHON
from hil.platform.terminal import say
from hil.record.door import LOOPBACK, Address
from hil.watch.serve import INTERRUPTED, LINGER_S, Ending, Job, machine_file

PORT = 8780
READY_TIMEOUT_S = 60.0
NO_ANSWER = {"error": "--page: its process does not answer"}
# Exit codes of errors, as `hil.__main__` has them.
CODES = {ConfigError: 2, DeviceError: 4, KeyboardInterrupt: INTERRUPTED, StopError: INTERRUPTED}
_GOING_ON: list[subprocess.Popen[str]] = []  # processes that outlive their command


class PageOptions(NamedTuple):
    """Address and encryption of the page.

    Attributes
    ----------
    address : of the page; None for none
    certificate : PEM file; None for no encryption
    """

    address: Address | None = None
    certificate: Path | None = None


def job_of(page: PageOptions, folder: Path, what: str, parent: int) -> Job:
    """The job of the process.

    Raises
    ------
    ConfigError
        A package is missing, or there is a certificate without a page.
    """
    has_messages = parent != 0 and machine_file() is not None
    if page.address is None:
        if page.certificate is not None:
            raise ConfigError("--page-certificate: there is no page: give --page too")
        return Job(str(folder), parent, what, has_messages=has_messages)
    if find_spec("websockets") is None:
        raise ConfigError("the page needs an extra: pip install 'hil-arrays[page]'")
    certificate = "" if page.certificate is None else str(page.certificate.resolve())
    host, port = page.address
    return Job(str(folder), parent, what, host or LOOPBACK, port, certificate, has_messages)


@contextlib.contextmanager
def watched(page: PageOptions, folder: Path, what: str) -> Iterator[Ending]:
    """Watch the runs of this process in the block; the block notes how it ended.

    The process goes on after the block, as long as somebody may want to see the end.

    Raises
    ------
    ConfigError
        The page cannot be served; nothing has begun.
    """
    ending = Ending()
    job = job_of(page, folder, what, os.getpid())
    if job.address is None and not job.has_messages:
        yield ending
        return
    process = subprocess.Popen(
        [*PYTHON, "-m", "hil.watch.serve"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        **APART,  # only the loop gets the terminal's Ctrl-C
    )
    assert process.stdin is not None
    _GOING_ON.append(process)
    try:
        _tell(process, job._asdict())
        words = _first_words(process)
        if "error" in words:
            process.wait()
        say_where(words, job)
        yield ending
    except BaseException as error:
        ending.text = str(error) or type(error).__name__
        ending.code = next((code for kind, code in CODES.items() if isinstance(error, kind)), 1)
        raise
    finally:
        _tell(process, {"code": ending.code, "text": ending.text})
        with contextlib.suppress(OSError):
            process.stdin.close()
        if job.port > 0 and ending.code != INTERRUPTED and process.poll() is None:
            say(
                f"the page stays for {LINGER_S / 3600:.0f} h, or until the next one there: "
                f"kill {process.pid} ends it",
                file=sys.stderr,
            )


def _tell(process: subprocess.Popen[str], words: dict[str, object]) -> None:
    assert process.stdin is not None
    with contextlib.suppress(OSError):  # it was killed
        process.stdin.write(f"{json.dumps(words)}\n")
        process.stdin.flush()


def _first_words(process: subprocess.Popen[str]) -> dict[str, str]:
    """Where the page is, or why there is none; whatever else the process says is printed."""
    output, first = process.stdout, queue.SimpleQueue[dict[str, str]]()
    assert output is not None
    threading.Thread(target=_listen, args=(output, first), daemon=True).start()
    try:
        return first.get(timeout=READY_TIMEOUT_S)
    except queue.Empty:
        return NO_ANSWER


def _listen(output: TextIO, first: queue.SimpleQueue[dict[str, str]]) -> None:
    with output:
        for line in output:
            words = json.loads(line)
            if "say" in words:
                say(words["say"], file=sys.stderr)
            else:
                first.put(words)
    first.put(NO_ANSWER)  # if it ended without a word


def say_where(words: dict[str, str], job: Job) -> None:
    """Print where the page is, if there is one.

    Raises
    ------
    ConfigError
        It cannot be served.
    """
    if error := words.get("error"):
        raise ConfigError(error)
    address = job.address
    if address is None:
        return
    say(f"page: {words['url']}  (code to stop the run: {words['code']})", file=sys.stderr)
    if not address.is_loopback and not job.certificate:
        say(
            "warning: the page is not encrypted: whoever reads the network's traffic sees it, with "
            "its token and the code: give --page-certificate",
            file=sys.stderr,
        )
