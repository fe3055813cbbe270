"""Serial indicators of a rig."""

from importlib.util import find_spec

from hil.devices.indicator_port import SerialIndicator
from hil.rig.plugin import instrument


def missing(backend: str) -> str:
    """What this computer lacks for the backend: an indicator on the bench needs pyserial."""
    if backend == "bench" and find_spec("serial") is None:
        return "needs an extra: pip install 'hil-arrays[daq]'"
    return ""


build = instrument(SerialIndicator)
