"""A bench supply of a rig: the supply itself behind its process, or a simulated one."""

from collections.abc import Callable

from hil.config import Config
from hil.config.instruments import supplies_of
from hil.devices.injection import Injection
from hil.devices.sim_plant import SimPlant
from hil.devices.sim_supply import SimSupply
from hil.devices.supply import Settings, Supply

JOB = ("resource", "dialect", "channel", "visa", "baud", "voltage_V", "current_A", "poll_s",
       "answer_max_s")  # fmt: skip


def build_supply(
    name: str,
    config: Config,
    plant: SimPlant,
    slot: int,
    backend: str,
    now_s: Callable[[], float],
    sleep_s: Callable[[float], None],
    injection: Injection | None = None,
) -> Supply | SimSupply:
    """The supply of this name; whatever is not on the bench is simulated."""
    table = supplies_of(config.tables.devices)[name]
    settings = Settings(
        table.voltage_V,
        table.current_A,
        table.voltage_tolerance_V,
        table.answer_max_s,
        table.obey_max_s,
    )
    if backend == "bench":
        return Supply(name, settings, slot, table.model_dump(include=set(JOB)), now_s, sleep_s)
    late = table.sim
    return SimSupply(
        name, settings, slot, plant, table.poll_s, late.obey_s, late.answer_s, injection
    )
