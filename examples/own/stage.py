"""A motorised stage on a serial port, as a plug-in device with an output and a reading.

[devices.stage]
kind = "stage.py:Stage"
port = "/dev/ttyUSB1"
every = 20                         # a serial stage takes some milliseconds to answer
[devices.stage.channels.position]
signal = "slide.x_m"               # recorded as position_measured_m
[devices.stage.outputs.target]
drives = "stage.target_m"          # an input of the model, in m
min = -0.02                        # the guard limits position and speed, whatever is commanded
max = 0.02
rate_max_per_s = 0.01

The stage takes `P<micrometres>` as its target, stops where it is on `S`, and answers `?` with its
position in micrometres. Change the three texts for another controller.
"""

import numpy as np
from pydantic import BaseModel, Field


class Stage:
    """Target and position of one axis, in m."""

    class Values(BaseModel):
        """The keys of its table."""

        port: str = "/dev/ttyUSB1"
        baud: int = 115200
        timeout_s: float = Field(default=0.005, gt=0.0)

    def __init__(self, values):
        """Store the values; `open` connects."""
        self.values = values
        self.line = None
        self.sent_um = None

    def open(self):
        """Connect; nothing moves."""
        import serial  # imported here, since only the bench needs it

        values = self.values
        self.line = serial.Serial(values.port, values.baud, timeout=values.timeout_s)

    def pretend(self):
        """Replace `open` in the contract test: answer without the hardware."""
        self.line = Pretended()

    def read(self, t_s):
        """Return the position in m; NaN if the stage does not answer."""
        self.line.reset_input_buffer()  # an answer that came too late
        self.line.write(b"?\n")
        answer = self.line.readline()
        whole = answer.endswith(b"\n")  # the half of a number is a number
        return np.array([1e-6 * float(answer) if whole else np.nan])

    def write(self, values):
        """Send the target, if it has changed by a micrometre."""
        target_um = round(1e6 * float(values[0]))
        if target_um != self.sent_um:
            self.line.write(b"P%d\n" % target_um)
            self.sent_um = target_um

    def safe(self):
        """Stop where it is; hil calls this after a trip and on every exit."""
        if self.line is not None:
            self.line.write(b"S\n")
            self.sent_um = None

    def close(self):
        """Disconnect."""
        if self.line is not None:
            self.line.close()


class Pretended:
    """A stage that is always at its target."""

    def __init__(self):
        """Stand at 0."""
        self.at_um = 0

    def reset_input_buffer(self):
        """Nothing is late."""

    def write(self, data):
        """Take a target; every other command changes nothing here."""
        if data.startswith(b"P"):
            self.at_um = int(data[1:])

    def readline(self):
        """Answer the query."""
        return b"%d\n" % self.at_um

    def close(self):
        """Nothing is held."""
