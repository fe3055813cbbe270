"""A laser triangulation sensor on a serial port, as a plug-in device.

[devices.laser]
kind = "laser.py:Laser"
port = "/dev/ttyUSB0"
range_m = 0.01                     # the distance between both ends of its range
every = 5                          # read it once in five periods
[devices.laser.channels.height]
signal = "load.x_m"                # recorded as height_measured_m
[guard.signals.height]
min = -0.001
max = 0.006

The sensor answers `M` with a whole number from 0 to 16383 over its range, and with a text where it
sees no target. Change `ask` for a sensor with other words.
"""

import numpy as np
from pydantic import BaseModel, Field

FULL_SCALE = 16383


class Laser:
    """Distance from the middle of the range, positive towards the sensor, in m."""

    class Values(BaseModel):
        """The keys of its table."""

        port: str = "/dev/ttyUSB0"
        baud: int = 115200
        range_m: float = Field(default=0.01, gt=0.0, le=1.0)
        timeout_s: float = Field(default=0.005, gt=0.0)

    def __init__(self, values):
        """Store the values; `open` connects."""
        self.values = values
        self.line = None

    def open(self):
        """Connect; nothing moves."""
        import serial  # imported here, since only the bench needs it

        values = self.values
        self.line = serial.Serial(values.port, values.baud, timeout=values.timeout_s)

    def pretend(self):
        """Replace `open` in the contract test: answer without the hardware."""
        self.line = Pretended()

    def ask(self):
        """Return the sensor's count; None if it sees no target or does not answer."""
        self.line.reset_input_buffer()  # an answer that came too late
        self.line.write(b"M\n")
        answer = self.line.readline()
        whole = answer.endswith(b"\n")  # the half of a number is a number
        return int(answer) if whole and answer.strip().isdigit() else None

    def read(self, t_s):
        """Return the displacement in m; NaN without a target, which trips the guard in time."""
        count = self.ask()
        if count is None or not 0 < count < FULL_SCALE:  # the ends mean: out of range
            return np.array([np.nan])
        return np.array([self.values.range_m * (count / FULL_SCALE - 0.5)])

    def close(self):
        """Disconnect; hil calls this on every exit."""
        if self.line is not None:
            self.line.close()


class Pretended:
    """A sensor whose target stands in the middle of the range."""

    def reset_input_buffer(self):
        """Nothing is late."""

    def write(self, data):
        """Accept a query."""

    def readline(self):
        """Answer the query."""
        return b"8191\n"

    def close(self):
        """Nothing is held."""
