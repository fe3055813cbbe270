"""Plug-in instruments: classes from a file or a package, on the bench or simulated.

A package provides one with `DeviceKind(table, instrument(cls))`. The table is an `InstrumentTable`.
The class is constructed with the table and has `open()`, `read(t_s)` and `close()`.
"""

import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from hil.devices.plugin import (
    DeadMan,
    PluginBench,
    PluginChannel,
    PluginDevice,
    PluginPlace,
    PluginSim,
    SimPluginDevice,
)
from hil.devices.power_lines import Power, PoweringDevice, SimPoweringDevice
from hil.devices.sim.plant import output_index
from hil.devices.tables import InstrumentTable, PluginDeviceTable, ReadingTable
from hil.plugins.code import Plugin
from hil.rig.instruments import AMBIENT
from hil.rig.kinds import Built, DeviceInputs

BUDGET_SHARE = 0.5  # default time budget of a call of user code, as a fraction of a period


def instrument(cls: type) -> Callable[[DeviceInputs[InstrumentTable]], Built]:
    """Return the builder of instruments of this class, for a `DeviceKind`."""
    return partial(_built, cls=cls)


def _built(inputs: DeviceInputs[InstrumentTable], cls: type) -> Built:
    file, lines = inspect.getfile(cls), inspect.getsourcelines(cls)
    plugin = Plugin(
        inputs.table.kind, cls, inputs.table, Path(file), "".join(lines[0]), {"": lines[1]}
    )
    return _device(inputs, plugin)


def build(inputs: DeviceInputs[PluginDeviceTable]) -> Built:
    """Build the device of a class in a user's file."""
    return _device(inputs, inputs.table.plugin)


def _device(inputs: DeviceInputs[Any], plugin: Plugin) -> Built:
    """Build the device on the bench, or a simulated one on any other backend."""
    table, name = inputs.table, inputs.name
    indices, output = inputs.places()
    divider = inputs.divider(indices)
    cells = [inputs.layout.cell_names.index(cell) for cell in table.cells_switched]
    idle = [min(max(0.0, o.min), o.max) for o in table.outputs.values()]
    place = PluginPlace(indices.start, output, cells, idle)
    if inputs.backend == "bench":
        budget_s = table.budget_s or BUDGET_SHARE * inputs.period_s
        channels = list(table.channels)
        chains = {
            i: chain
            for i, (channel_name, channel) in enumerate(table.channels.items())
            if (chain := channel.chain(inputs.config.records.get(channel_name))) is not None
        }
        dead_man = None
        if cells:
            proven_s, cools_s = table.switches.proven_s, inputs.config.cooling_s(name)
            dead_man = DeadMan(proven_s, cools_s, inputs.wait_s)
        bench = PluginBench(inputs.now_s, budget_s, chains, dead_man)
        arguments = (name, plugin, channels, place, bench)
        if table.enable_lines:
            power = Power(table.enable_lines, table.enable_settle_s, inputs.wait_s)
            return PoweringDevice(power, *arguments), divider
        return PluginDevice(*arguments), divider
    simulated = [
        PluginChannel(
            channel_name, _output(channel, inputs), channel.sim.value, channel.sim.noise_rms
        )
        for channel_name, channel in table.channels.items()
    ]
    driven = [list(inputs.system.inputs).index(o.drives) for o in table.outputs.values()]
    sim = PluginSim(inputs.plant, driven, inputs.draws, inputs.injection)
    told = (name, plugin, simulated, place, sim)
    if table.enable_lines:
        return SimPoweringDevice([*table.enable_lines], table.enable_settle_s, *told), divider
    return SimPluginDevice(*told), divider


def _output(channel: ReadingTable, inputs: DeviceInputs[InstrumentTable]) -> int | None:
    """Index of the plant's output that a channel measures; None if it measures no output."""
    signal = channel.signal
    if signal is None and channel.force:
        signal = inputs.config.default_signal
    return None if signal is None else output_index(inputs.system, signal, AMBIENT)
