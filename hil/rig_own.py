"""A device of one's own of a rig: its class on the bench, or a simulated one."""

from collections.abc import Callable

import numpy as np

from hil.config import Config
from hil.config.instruments import own_devices
from hil.devices.own import OwnChannel, OwnDevice, OwnPlace, SimOwnDevice
from hil.devices.sim_plant import SimPlant
from hil.models.system import System

BUDGET_SHARE = 0.5  # of a period, that a call of one's own may take where its table says nothing


def build_own(
    name: str,
    config: Config,
    system: System,
    plant: SimPlant,
    place: OwnPlace,
    draws: Callable[[str], np.random.Generator],
    backend: str,
    now_s: Callable[[], float],
) -> OwnDevice:
    """The device of this name; whatever is not on the bench is simulated."""
    table = own_devices(config.tables.devices)[name]
    rest = [min(max(0.0, o.min), o.max) for o in table.outputs.values()]
    if backend == "bench":
        budget_s = table.budget_s or BUDGET_SHARE * config.tables.loop.period_s
        return OwnDevice(name, table.own, list(table.channels), rest, place, now_s, budget_s)
    channels = [
        OwnChannel(
            channel_name,
            None if channel.signal is None else list(system.outputs).index(channel.signal),
            channel.sim.value,
            channel.sim.noise_rms,
        )
        for channel_name, channel in table.channels.items()
    ]
    driven = [list(system.inputs).index(o.drives) for o in table.outputs.values()]
    return SimOwnDevice(name, table.own, channels, rest, place, plant, driven, draws)
