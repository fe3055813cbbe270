"""A driver on simulated cards, ticked by hand."""

from dataclasses import replace

import numpy as np

from hil.calibration.signal_chain import Chain, Encoder
from hil.devices.nidaq.channels import Acquisition, AnalogInput, CardPlan, EncoderInput, Line, Place
from hil.devices.nidaq.driver import NiDaq
from hil.loop.channels import Channel, RigLayout
from hil.loop.frame import Column
from rows import Seen, row_of
from simdaq import System, install

PERIOD_S = 0.001
FORCE = AnalogInput("force", "ai0", Chain.linear(2.0, 0.0), 10.0)
HIP = EncoderInput("hip", "ctr0", Encoder(2000))
SUPPLY = Line("supply", "port0/line1", "enable")
ESTOP = Line("loop", "port0/line0", "estop")


def plan(*inputs, kind="block", per_tick=10, **changes):
    """What a rig asks of Dev1; a force channel where nothing is said."""
    n = per_tick if kind == "block" else 1
    plain = CardPlan("Dev1", Acquisition(kind, PERIOD_S, n), inputs or (FORCE,), before_s=0.01)
    return replace(plain, **changes)


class Bench:
    """One card, its driver, and the run's time on the card's clock."""

    def __init__(self, asked, product="PCIe-6363", simulated=True, **sources):
        self.system = System("free")
        self.system.add(product, "Dev1")
        for terminal, source in sources.items():
            self.feed(terminal, source)
        install(self.system)
        self.daq = NiDaq("daq", asked, Place(0, 0), self.pass_s, simulated=simulated)
        channels = tuple(
            Channel(c.name, "_rad")
            if isinstance(c, EncoderInput)
            else Channel(c.name, "_N", "main" if c.name == FORCE.name else "further")
            for c in asked.inputs
        )
        outputs = tuple(f"{o.name}_commanded_N" for o in asked.outputs)
        self.layout = layout = RigLayout(channels, outputs, (), ("daq",), 0)
        commanded = [Column(name, "N", "commanded", "an output") for name in outputs]
        self.frame = row_of(layout, *self.daq.columns, *commanded)
        self.readings, self.commands = layout.bind(self.frame)
        self.commands.enabled[:] = True
        self.rows = []
        self.bits = Seen(self.frame, self.readings).bits
        self.daq.bind(self.frame, self.readings)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.daq.close()

    def feed(self, terminal, source):
        self.system.feed(f"Dev1/{terminal.replace('_', '/')}", source)

    def pass_s(self, duration_s):
        """Time of the card, in which the driver is called as the rig does."""
        end_s = self.system.now_s + duration_s
        while self.system.now_s < end_s:
            self.daq.alive()
            self.system.advance_to(min(self.system.now_s + 0.0025, end_s))

    def start(self):
        self.daq.open()
        self.daq.enable()
        self.daq.wait()
        self.daq.arm()
        self.start_s = self.system.now_s
        return self

    def push_many(self, rows):
        self.rows.append(rows.copy())

    def tick(self, k, *, card_s=None):
        """Read and write tick k; the card's time is the run's, or `card_s` after the start."""
        self.system.advance_to(self.start_s + (k * PERIOD_S if card_s is None else card_s))
        self.daq.read(k * PERIOD_S)
        self.daq.write(k * PERIOD_S, self.commands)
        return float(self.readings.measured[0])

    def ticks(self, n):
        return np.array([self.tick(k) for k in range(n)])

    def column(self, name):
        return self.frame.row[name][0]

    def faults(self):
        bits = int(self.column("daq_fault_bits"))
        flags = next(c.flags for c in self.frame.columns if c.name == "daq_fault_bits")
        return [flag for i, flag in enumerate(flags) if bits >> i & 1]

    def level(self, terminal):
        return self.system.output(f"Dev1/{terminal}")
