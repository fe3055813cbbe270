"""The process of a unit: foreign code may crash or hang here without harm to the loop.

Reads the job as one line of JSON, then for each period the values of cells and inputs as float64.
Writes the outputs at rest, then those after each period. A message is a byte, OK or FAILED, with
the outputs, or with the text of an error.
"""

import contextlib
import json
import os
import struct
import sys
import tempfile
from typing import Any

import numpy as np

from hil.errors import one_line
from hil.systems.fmu.unit import FAILED, OK, RunningUnit


def main() -> None:
    """Run the unit until standard input ends."""
    orders = sys.stdin.buffer
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what the unit prints is no answer
    job = json.loads(orders.readline())
    try:
        with tempfile.TemporaryDirectory() as folder:
            _serve(job, folder, orders, answers)
    except Exception as error:  # of FMPy and of the unit
        text = one_line(str(error)).encode()
        with contextlib.suppress(BrokenPipeError):
            answers.write(FAILED + struct.pack("<I", len(text)) + text)


def _serve(job: dict[str, Any], folder: str, orders: Any, answers: Any) -> None:
    import fmpy

    description = fmpy.read_model_description(job["file"], validate=False)
    fmpy.extract(job["file"], folder)
    unit = RunningUnit(description, folder, job["exchange"], job["start"], job["tolerance"])
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
