"""A functional mock-up unit as plant or twin, in a process of its own."""

import json
import os
import select
import struct
import subprocess
import weakref
from typing import IO

import numpy as np
from numpy.typing import NDArray

from hil.errors import PluginError
from hil.mechanics.sma.wire import SmaWires
from hil.mechanics.system import Drive
from hil.platform.processes import PYTHON
from hil.platform.scratch import Scratch
from hil.systems.fmu.description import UnitModel
from hil.systems.fmu.unit import FAILED

FOLDER = "hil-unit-"  # beginning of the names of folders with unpacked units
START_MAX_S = 60.0
# A core that sleeps takes about 30 us to wake up, as long as a small unit computes.
# So many looks of about a microsecond keep it awake.
LOOKS = 200


class UnitSystem:
    """A unit stepped by periods; `y` has its outputs, in the units that their names say.

    Raises
    ------
    PluginError
        The unit cannot be started; from `step`, it failed, ended, hangs or gave no number.
    """

    def __init__(self, model: UnitModel) -> None:
        self.model = model
        self.period_s = model.period_s
        self.cell_names, self.inputs, self.outputs = model.cell_names, model.inputs, model.outputs
        n = len(self.cell_names)
        self.wires = SmaWires([None] * n, np.zeros(n))
        self._write = _scales(model.written)
        self._read = _scales(model.read)
        self._values = np.zeros(len(model.written))
        folder = Scratch(FOLDER)
        self._process = subprocess.Popen(
            [*PYTHON, "-m", "hil.systems.fmu.process", str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        self._end = weakref.finalize(self, _stop, self._process, folder)
        job = {
            "file": str(model.file),
            "sha256": model.sha256,
            "folder": str(folder.path),
            "period_s": model.period_s,
            "exchange": model.exchange,
            "tolerance": model.tolerance,
            "start": model.start,
            "written": [variable.reference for variable in model.written],
            "read": [variable.reference for variable in model.read],
        }
        self._send(json.dumps(job).encode() + b"\n")
        self.y = np.zeros(len(self.outputs))
        self._answer(START_MAX_S)

    def step(self, drive: Drive, inputs: NDArray[np.float64]) -> None:
        """Advance one period."""
        n = len(self.cell_names)
        self._values[:n] = drive
        self._values[n:] = inputs
        factor, offset = self._write
        self._send(b"s" + ((self._values - offset) / factor).tobytes())
        self._answer(self.model.step_max_s)

    def _send(self, order: bytes) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(order)
        except BrokenPipeError:
            raise PluginError(self._ended()) from None

    def _answer(self, patience_s: float) -> None:
        """Take the outputs of the unit."""
        kind = self._take(1, patience_s)
        if kind == FAILED:
            (length,) = struct.unpack("<I", self._take(4, patience_s))
            raise PluginError(f"{self.model.file.name}: {self._take(length, patience_s).decode()}")
        values = np.frombuffer(self._take(8 * len(self.y), patience_s))
        factor, offset = self._read
        self.y[:] = values * factor + offset
        if not np.isfinite(self.y).all():
            name = self.outputs[int(np.argmin(np.isfinite(self.y)))]
            raise PluginError(f"{self.model.file.name}: output '{name}' is not a finite number")

    def _take(self, n: int, patience_s: float) -> bytes:
        assert self._process.stdout is not None
        pipe, data = self._process.stdout, b""
        while len(data) < n:
            if not _readable(pipe, patience_s):
                self._process.kill()
                raise PluginError(f"{self.model.file.name}: gave no answer in time, it was stopped")
            part = pipe.read(n - len(data))
            if not part:
                raise PluginError(self._ended())
            data += part
        return data

    def _ended(self) -> str:
        code = self._process.wait()
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        return f"{self.model.file.name}: its process has ended ({how})"


def _readable(pipe: IO[bytes], patience_s: float) -> bool:
    """Block until the pipe has data, awake at first; False if it has none in time."""
    for _ in range(LOOKS):
        if select.select([pipe], [], [], 0.0)[0]:
            return True
    return bool(select.select([pipe], [], [], patience_s)[0])


def _scales(variables: tuple) -> tuple[NDArray[np.float64], NDArray[np.float64]]:  # type: ignore[type-arg]
    """Factors and offsets of variables."""
    return np.array([v.factor for v in variables]), np.array([v.offset for v in variables])


def _stop(process: "subprocess.Popen[bytes]", folder: Scratch) -> None:
    """End a unit's process with its pipes, and remove its folder."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
    process.kill()
    process.wait()
    folder.close()
