"""Helpers for building devices of any kind: their indices in the rig, and a wait."""

from collections.abc import Callable
from typing import Any

from hil.devices.board.port import LOOK_S
from hil.loop.channels import RigLayout
from hil.loop.frame import unit_suffix


def places(device: Any, layout: RigLayout) -> tuple[range, int]:
    """Indices of a device's channels, which are contiguous, and index of its first output."""
    first = layout.index(next(iter(device.channels))) if device.channels else 0
    outputs = [f"{n}_commanded{unit_suffix(o.drives)}" for n, o in device.outputs.items()]
    at = layout.outputs.index(outputs[0]) if outputs else 0
    return range(first, first + len(device.channels)), at


def keeping_alive(
    sleep_s: Callable[[float], None], keep_alive: Callable[[], None]
) -> Callable[[float], None]:
    """Return a sleep that calls `keep_alive` at least every LOOK_S."""

    def wait_s(duration_s: float) -> None:
        while duration_s > 0.0:
            keep_alive()
            sleep_s(min(duration_s, LOOK_S))
            duration_s -= LOOK_S
        keep_alive()

    return wait_s
