"""pytest fixtures: simulated NI cards for the tests of any program that uses `nidaqmx`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from simdaq.system import System

PlugIn = Callable[..., "System"]


@pytest.fixture
def simdaq_system() -> Iterator[System]:
    """The simulated cards that `nidaqmx` sees in this test: none until one is added.

    Time passes only while the program waits, and by `advance_to`.
    """
    from simdaq.bindings import install, present
    from simdaq.system import System

    system = System("free")
    install(system)
    yield system
    for task in list(system.tasks.values()):
        system.clear(task)
    present(System("free"))


@pytest.fixture
def simdaq_card(simdaq_system: System) -> PlugIn:
    """Plugs a card in: `simdaq_card("Dev1", "PCIe-6363")`; gives the system to feed and watch.

    Inputs that the test does not feed give what NI's simulated devices give.
    """

    def plug_in(name: str, model: str, *, chassis: str | None = None) -> System:
        simdaq_system.add(model, name, chassis=chassis, idle="simulated")
        return simdaq_system

    return plug_in
