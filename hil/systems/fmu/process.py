"""The process of a unit: foreign code may crash or hang here without harm to the loop.

Reads the job as one line of JSON, then for each period the values of cells and inputs as float64.
Writes the outputs at rest, then those after each period. A message is a byte, OK or FAILED, with
the outputs, or with the text of an error. It ends with the process that started it, also while it
unpacks or the unit computes.
"""

import contextlib
import json
import os
import struct
import sys
import threading
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from hil.errors import one_line
from hil.platform.processes import parent_watch
from hil.systems.fmu import archive
from hil.systems.fmu.description import parsed
from hil.systems.fmu.unit import FAILED, OK, RunningUnit

PARENT_POLL_S = 0.1


def main() -> None:
    """Run the unit until standard input ends."""
    threading.Thread(target=_end_with, args=(int(sys.argv[1]),), daemon=True).start()
    orders = sys.stdin.buffer
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what the unit prints is no answer
    job = json.loads(orders.readline())
    try:
        _serve(job, orders, answers)
    except Exception as error:  # of FMPy and of the unit
        text = one_line(str(error)).encode()
        with contextlib.suppress(BrokenPipeError):
            answers.write(FAILED + struct.pack("<I", len(text)) + text)


def _end_with(parent: int) -> None:
    """End this process once its parent has ended; calls of the unit do not hold this up."""
    lives = parent_watch(parent)
    never = threading.Event()
    while lives():
        never.wait(PARENT_POLL_S)
    os._exit(1)


def _serve(job: dict[str, Any], orders: BinaryIO, answers: BinaryIO) -> None:
    folder = archive.unpack(Path(job["file"]), job["sha256"], Path(job["folder"]))
    description = parsed((folder / archive.DESCRIPTION).read_bytes())
    unit = RunningUnit(description, str(folder), job["exchange"], job["start"], job["tolerance"])
    written, read = job["written"], job["read"]
    answers.write(OK + np.asarray(unit.get(read)).tobytes())
    size_B, period_s = 8 * len(written), job["period_s"]
    while True:
        order = orders.read(1 + size_B)
        if not order:
            return
        unit.write(written, np.frombuffer(order, offset=1).tolist())
        unit.step(period_s)
        answers.write(OK + np.asarray(unit.get(read)).tobytes())


if __name__ == "__main__":
    main()
