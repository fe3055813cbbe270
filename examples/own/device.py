"""A device of your own: copy this file, change it, name it in your rig:

[devices.gauge]
kind = "device.py:MyDevice"
port = "/dev/ttyUSB0"
every = 10                        # periods from one reading to the next
[devices.gauge.channels.travel]   # one table for every number that read() gives
signal = "slide.x_m"              # what it measures of the model

With `--backend sim` (the default) the class is never made: hil reads the model instead.
`pytest --hil-contract device.py` tries it with nothing plugged in where it has `pretend`.
"""

import numpy as np
from pydantic import BaseModel, Field


class MyDevice:
    """A digital gauge on a serial line, which answers `?` with millimetres and a new line."""

    class Values(BaseModel):
        """The keys of its table."""

        port: str = "/dev/ttyUSB0"
        timeout_s: float = Field(default=0.02, gt=0.0)

    def __init__(self, values):
        """Nothing is opened yet."""
        self.values = values
        self.line = None

    def open(self):
        """Connect; energises nothing. Whatever it raises ends the run, in one line."""
        import serial  # only where the device is

        self.line = serial.Serial(self.values.port, 115200, timeout=self.values.timeout_s)

    def pretend(self):
        """In place of `open`, for the contract test: answer without the hardware."""
        self.line = Pretended()

    def read(self, t_s):
        """Once a turn: a number a channel, in SI units; NaN where there is none."""
        self.line.write(b"?\n")
        text = self.line.readline().strip()
        return np.array([1e-3 * float(text) if text else np.nan])

    def close(self):
        """Let go of it; called on every way out."""
        if self.line is not None:
            self.line.close()


class Pretended:
    """A gauge that always says 12.5 mm."""

    def write(self, data):
        """Take a question."""

    def readline(self):
        """Answer it."""
        return b"12.5\n"

    def close(self):
        """Nothing is held."""
