"""NI-DAQmx cards in software, which the unmodified `nidaqmx` package takes for real ones.

One model of cards, tasks and time (`System`), and two ways to it: a libnidaqmx.so for programs in
this process (`install`), and NI's gRPC protocol for programs anywhere (`grpc_server`). Needs the
extra `daq` and a C compiler.

Couple it to a plant
--------------------
>>> from simdaq import System, Track, install
>>> system = System("held")  # time stands still but for advance_to
>>> card = system.add("PCIe-6363", "Dev1")
>>> force_V = Track(0.0)
>>> system.feed("Dev1/ai0", force_V)  # a signal that somebody computes step by step
>>> system.feed("Dev1/ai1", lambda t_s: 2.5)  # or a function of time: of a float or an array
>>> path = install(system)  # from here on `import nidaqmx` sees Dev1
>>> force_V.put(0.001, 1.2)  # each step: the plant's new values with their time,
>>> system.advance_to(0.001)  # then the cards take all samples up to it
>>> system.output("Dev1/port0/line0")  # and what the program drives
0.0

Cards
    `System.add(model, name, serial=, chassis=)`; models are `catalog.MODELS`. A C Series module
    names its chassis: `add("cDAQ-9185", "cDAQ1")`, `add("NI 9237", "cDAQ1Mod1", chassis="cDAQ1")`.
Signals in (`feed`), by terminal
    `Dev1/ai0` volts; V/V of the bridge where the card is a bridge module (NI 9237) or the channel
    a bridge or a force bridge; degC and the like for other sensors. `Dev1/ctr0` an encoder's
    angle in revolutions, or `Pulses` to count or time. `Dev1/port0/line0` a level, high above 0.5.
    `Dev1/PFI0` a level or `Pulses`: triggers, outer clocks, what counters hear.
    A source is a number, a `Track`, `Pulses`, an `EdgeList` (times of rising and of falling edges)
    or a function of time in s. Samples between two steps
    lie on the straight line between both `Track.put`.
Time
    `System("held")`: only `advance_to(t_s)` moves it, and a read that would have to wait answers
    -200284 at once. `System("free")`: also a waiting call moves it, in no wall time, for scripts.
    `System(clock.now_s)`: wall time. Callbacks (every N samples, done) run within `advance_to`, at
    their exact times; on wall time in a thread, as NI's do. Sample k of a task is taken k / rate
    after its start (or trigger), the first at the start itself. A card's own clock has the next
    rate up that its timebase, or its delta-sigma converter, can make: read `samp_clk_rate`.
Outputs
    `system.output(terminal)` now; `watch(terminal).changes` all changes as (t_s, value), appended
    as they happen.
Bridges
    `ai_bridge_shunt_cal_enable` closes the shunt of a card that has one (NI 9237, 100 kOhm).
Faults
    `inject("Dev1/ai0", "stuck" | "high rail" | "low rail" | None)`, `stall("Dev1")` (delivers no
    samples), `unplug("Dev1")` and `plug("Dev1")`. A converter has no NaN: NaN in reads as a rail.
Errors
    As a card's: DaqError with NI's code, such as -50103 for what another task holds, -200279 for
    unread samples that were overwritten, -200284 for a timeout, -201003 for a card that is gone.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from simdaq.bindings import install
    from simdaq.card import Card
    from simdaq.edges import EdgeList, Pulses
    from simdaq.system import System
    from simdaq.terminals import Output, Track

__all__ = ["Card", "EdgeList", "Output", "Pulses", "System", "Track", "install"]
_MODULES = {"install": "bindings", "Card": "card", "System": "system", "Output": "terminals",
            "Pulses": "edges", "EdgeList": "edges", "Track": "terminals"}  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import what is asked for: the command's options and errors do without the extra `daq`."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
