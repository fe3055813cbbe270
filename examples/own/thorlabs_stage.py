"""A stage on a Thorlabs controller (KDC101, TDC001, KST101, ...), as a plug-in device.

[devices.stage]
kind = "thorlabs_stage.py:Stage"
port = "/dev/ttyUSB1"
counts_per_mm = 34304.0            # of a KDC101 with a Z825B, from its manual
every = 20                         # an answer takes some milliseconds
[devices.stage.channels.position]
signal = "slide.x_m"
[devices.stage.outputs.target]
drives = "stage.target_m"          # an input of the model, in m
min = 0.0                          # homed before the run: positions count from its home
max = 0.02
rate_max_per_s = 0.01

Source: Thorlabs, APT Controllers Host-Controller Communications Protocol: MGMSG_MOT_MOVE_ABSOLUTE
(0x0453), MGMSG_MOT_REQ_POSCOUNTER (0x0411), MGMSG_MOT_GET_POSCOUNTER (0x0412), MGMSG_MOT_MOVE_STOP
(0x0465). A message is its number, two parameters or the length of its data, destination (0x50, with
data 0xD0), source (0x01). The controller also reports by itself, such as the end of a move
(MGMSG_MOT_MOVE_COMPLETED, 0x0464, with 14 bytes of data).
"""

import struct

import numpy as np
from pydantic import BaseModel, Field

MOVE, ASK, ANSWER, STOP = 0x0453, 0x0411, 0x0412, 0x0465
UNIT, HOST, WITH_DATA = 0x50, 0x01, 0x80
CHANNEL, PROFILED = 1, 2


class Stage:
    """Target and position of one axis, in m."""

    class Values(BaseModel):
        """The keys of its table."""

        port: str = "/dev/ttyUSB1"
        baud: int = 115200
        counts_per_mm: float = Field(default=34304.0, gt=0.0)
        timeout_s: float = Field(default=0.02, gt=0.0)

    def __init__(self, values):
        """Store the values; `open` connects."""
        self.values = values
        self.line = None
        self.sent = None

    def open(self):
        """Connect; nothing moves."""
        import serial  # imported here, since only the bench needs it

        values = self.values
        self.line = serial.Serial(values.port, values.baud, timeout=values.timeout_s, rtscts=True)

    def pretend(self):
        """Replace `open` in the contract test: answer without the hardware."""
        self.line = Pretended()

    def read(self, t_s):
        """Return the position in m; NaN if the stage does not answer."""
        self.line.reset_input_buffer()  # an answer that came too late
        self.line.write(struct.pack("<HBBBB", ASK, CHANNEL, 0, UNIT, HOST))
        return np.array([1e-3 * self._counts() / self.values.counts_per_mm])

    def _counts(self):
        """The position in the answer; NaN if none comes. Reports of the controller are skipped."""
        while len(head := self.line.read(6)) == 6:
            number, length, to = struct.unpack_from("<HHB", head)
            data = self.line.read(length) if to & WITH_DATA else b""
            if number == ANSWER and len(data) == 6:
                return struct.unpack_from("<i", data, 2)[0]
        return np.nan

    def write(self, values):
        """Send the target, if it has changed by a count."""
        target = round(1e3 * float(values[0]) * self.values.counts_per_mm)
        if target != self.sent:
            head = struct.pack("<HHBB", MOVE, 6, UNIT | WITH_DATA, HOST)
            self.line.write(head + struct.pack("<Hi", CHANNEL, target))
            self.sent = target

    def safe(self):
        """Stop where it is; hil calls this after a trip and on every exit."""
        if self.line is not None:
            self.line.write(struct.pack("<HBBBB", STOP, CHANNEL, PROFILED, UNIT, HOST))
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

    def reset_input_buffer(self):
        """Forget what was not read."""
        self.answer = b""

    def write(self, data):
        """Take a target, or have the position ready."""
        number = struct.unpack_from("<H", data)[0]
        if number == MOVE:
            self.at = struct.unpack_from("<i", data, 8)[0]
        elif number == ASK:
            head = struct.pack("<HHBB", ANSWER, 6, HOST | WITH_DATA, UNIT)
            self.answer = head + struct.pack("<Hi", CHANNEL, self.at)

    def read(self, size):
        """The next bytes of the answer."""
        data, self.answer = self.answer[:size], self.answer[size:]
        return data

    def close(self):
        """Nothing is held."""
