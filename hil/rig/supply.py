"""A bench supply of a rig: the real supply, polled by its own process, or a simulated one."""

from importlib.util import find_spec

from hil.devices.supply.driver import Settings, Supply
from hil.devices.supply.sim import SimSupply
from hil.rig.kinds import Built, DeviceInputs

JOB = ("resource", "dialect", "channel", "visa", "baud", "voltage_V", "current_A", "poll_s",
       "answer_max_s")  # fmt: skip


def missing(backend: str) -> str:
    """What this computer lacks for the backend: a supply on the bench needs PyVISA."""
    if backend == "bench" and find_spec("pyvisa") is None:
        return "needs an extra: pip install 'hil-arrays[supply]'"
    return ""


def build(given: DeviceInputs) -> Built:
    """Build the supply on the bench, or a simulated one on any other backend."""
    name, table = given.name, given.table
    settings = Settings(
        table.voltage_V,
        table.current_A,
        table.voltage_tolerance_V,
        table.answer_max_s,
        table.obey_max_s,
    )
    if given.backend == "bench":
        job = table.model_dump(include=set(JOB))
        return Supply(name, settings, job, given.now_s, given.sleep_s), None
    delays = table.sim
    return SimSupply(
        name, settings, given.plant, table.poll_s, delays.obey_s, delays.answer_s,
        given.injection,
    ), None  # fmt: skip
