"""A bank of transistors behind a microcontroller of your own, as a plug-in device.

[devices.bank]
kind = "relays.py:Relays"
port = "/dev/ttyUSB0"
[devices.bank.switches]
cells = ["muscle.1", "muscle.2"]   # bit 0, bit 1
dead_man_s = 0.05                  # what the bank's firmware does by itself
supply_current_max_A = 1.0         # the fuse
[devices.bank.switches.wire]       # as for a board: docs/how-to/wire-limits.md

The bank takes `S` with a mask in hex, and switches everything off when no `S` has come for 50 ms.
To `?` it answers `1` if it has done so since the last `S`, else `0`.
"""

import numpy as np
from pydantic import BaseModel, Field


class Relays:
    """Switches cells; it measures nothing, so it needs a force channel on another device."""

    class Values(BaseModel):
        """The keys of its table."""

        port: str = "/dev/ttyUSB0"
        timeout_s: float = Field(default=0.02, gt=0.0)

    def __init__(self, values):
        """Store the values; `open` connects."""
        self.values = values
        self.line = None

    def open(self):
        """Connect without switching anything on."""
        import serial  # imported here, since only the bench needs it

        values = self.values
        self.line = serial.Serial(
            values.port, 115200, timeout=values.timeout_s, write_timeout=values.timeout_s
        )

    def pretend(self):
        """Replace `open` in the contract test: answer without the hardware."""
        self.line = Pretended()

    def read(self, t_s):
        """Return no readings."""
        return np.zeros(0)

    def switch(self, cells):
        """Switch on the cells that are 1, the others off; this also feeds the dead man."""
        mask = sum(1 << i for i, on in enumerate(cells) if on)
        self.line.write(b"S%02x\n" % mask)

    def stopped(self):
        """Whether the hardware has switched everything off by itself since the last `switch`."""
        self.line.reset_input_buffer()  # an answer that came too late
        self.line.write(b"?\n")
        return self.line.readline().strip() == b"1"

    def safe(self):
        """Do nothing more: hil has switched all cells off."""

    def close(self):
        """Disconnect; hil calls this on every exit."""
        if self.line is not None:
            self.line.close()


class Pretended:
    """A bank that obeys."""

    def reset_input_buffer(self):
        """Nothing is late."""

    def write(self, data):
        """Accept a command."""

    def readline(self):
        """Answer the question."""
        return b"0\n"

    def close(self):
        """Nothing is held."""
