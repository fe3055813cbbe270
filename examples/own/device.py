"""A plug-in device: copy this file, change it, and name it in your rig:

[devices.gauge]
kind = "device.py:MyDevice"
port = "/dev/ttyUSB0"
every = 10                        # read it once in ten periods
[devices.gauge.channels.travel]   # one table for every number that read() returns
signal = "slide.x_m"              # output of the model that it measures

With `--backend sim` (the default) hil does not use the class: it reads the model instead.
`pytest --hil-contract device.py` tests it without hardware if it has the method `pretend`.
"""

import numpy as np
from pydantic import BaseModel, Field


class MyDevice:
    """A digital gauge on a serial port, which answers `?` with millimetres and a new line."""

    class Values(BaseModel):
        """The keys of its table."""

        port: str = "/dev/ttyUSB0"
        timeout_s: float = Field(default=0.02, gt=0.0)

    def __init__(self, values):
        """Store the values; `open` connects."""
        self.values = values
        self.line = None

    def open(self):
        """Connect without switching anything on. An exception ends the run with one line."""
        import serial  # imported here, since only the bench needs it

        self.line = serial.Serial(self.values.port, 115200, timeout=self.values.timeout_s)

    def pretend(self):
        """Replace `open` in the contract test: answer without the hardware."""
        self.line = Pretended()

    def read(self, t_s):
        """Return one number for each channel, in SI units; NaN if there is no reading."""
        self.line.write(b"?\n")
        text = self.line.readline().strip()
        return np.array([1e-3 * float(text) if text else np.nan])

    def close(self):
        """Disconnect; hil calls this on every exit."""
        if self.line is not None:
            self.line.close()


class Pretended:
    """A gauge that always reads 12.5 mm."""

    def write(self, data):
        """Accept a query."""

    def readline(self):
        """Answer the query."""
        return b"12.5\n"

    def close(self):
        """Nothing is held."""
