"""A stage on a Zaber controller (X, T with ASCII firmware), as a plug-in device.

[devices.stage]
kind = "zaber_stage.py:Stage"
port = "/dev/ttyUSB1"
step_um = 0.047625                 # its microstep, from the stage's data sheet
every = 20                         # an answer takes some milliseconds
[devices.stage.channels.position]
signal = "slide.x_m"
[devices.stage.outputs.target]
drives = "stage.target_m"          # an input of the model, in m
min = 0.0                          # homed before the run: positions count from its home
max = 0.02
rate_max_per_s = 0.01

Source: Zaber ASCII Protocol Manual, "Message ID", "move", "stop", "get pos". A command
`/1 0 07 get pos` is answered `@01 0 07 OK IDLE -- 12345`: device, axis, number of the command,
accepted or not, state, warning, data. The number tells it from an earlier answer that came late.
"""

import numpy as np
from pydantic import BaseModel, Field


class Stage:
    """Target and position of one axis, in m."""

    class Values(BaseModel):
        """The keys of its table."""

        port: str = "/dev/ttyUSB1"
        baud: int = 115200
        device: int = Field(default=1, ge=1, le=99)
        step_um: float = Field(default=0.047625, gt=0.0)
        timeout_s: float = Field(default=0.02, gt=0.0)

    def __init__(self, values):
        """Store the values; `open` connects."""
        self.values = values
        self.line = None
        self.sent = None
        self.number = 0

    def open(self):
        """Connect; nothing moves."""
        import serial  # imported here, since only the bench needs it

        values = self.values
        self.line = serial.Serial(values.port, values.baud, timeout=values.timeout_s)

    def pretend(self):
        """Replace `open` in the contract test: answer without the hardware."""
        self.line = Pretended()

    def _ask(self, command):
        """The data of an accepted command's answer; empty if there is none."""
        self.number = (self.number + 1) % 100
        self.line.write(b"/%d 0 %02d %s\n" % (self.values.device, self.number, command))
        while (answer := self.line.readline()).endswith(b"\n"):
            words = answer.split()
            if len(words) >= 7 and words[2] == b"%02d" % self.number:
                return words[6] if words[3] == b"OK" else b""
        return b""

    def read(self, t_s):
        """Return the position in m; NaN if the stage does not answer."""
        data = self._ask(b"get pos")
        return np.array([1e-6 * self.values.step_um * float(data) if data else np.nan])

    def write(self, values):
        """Send the target, if it has changed by a microstep."""
        target = round(1e6 * float(values[0]) / self.values.step_um)
        if target != self.sent:
            self._ask(b"move abs %d" % target)
            self.sent = target

    def safe(self):
        """Stop where it is; hil calls this after a trip and on every exit."""
        if self.line is not None:
            self._ask(b"stop")
            self.sent = None

    def close(self):
        """Disconnect."""
        if self.line is not None:
            self.line.close()


class Pretended:
    """A stage that is always at its target."""

    def __init__(self):
        """Stand at 0."""
        self.at, self.answer = 0, b""

    def write(self, data):
        """Take a command and have its answer ready."""
        _, _, number, word, *rest = data.split()
        if word == b"move":
            self.at = int(rest[1])
        data = b"%d" % self.at if word == b"get" else b"0"
        self.answer = b"@01 0 %s OK IDLE -- %s\r\n" % (number, data)

    def readline(self):
        """The answer to the last command."""
        return self.answer

    def close(self):
        """Nothing is held."""
