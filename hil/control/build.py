"""Builds references from tables of set points, and checks the tables."""

from collections.abc import Iterator, Sequence

import numpy as np

from hil.control import reference
from hil.control.plugin import PluginReference
from hil.control.tables import (
    ChirpReferenceTable,
    ForceReferenceTable,
    RampReferenceTable,
    ReachReferenceTable,
    SignalRampTable,
    SignalSineTable,
    SignalsReferenceTable,
    SignalStepsTable,
    SignalTable,
    SineReferenceTable,
    StepsReferenceTable,
    TraceReferenceTable,
)
from hil.plugins.load import PluginTable


def build_signal(table: SignalTable) -> reference.Reference:
    """The reference of one channel."""
    match table:
        case SignalStepsTable():
            return reference.Steps(table.t_s, table.value)
        case SignalRampTable():
            return reference.Ramp(table.t_s, table.value)
        case SignalSineTable():
            return reference.Sine(table.mean, table.amplitude, table.frequency_Hz)
        case PluginTable():
            return PluginReference(table.plugin)


def build_reference(table: ForceReferenceTable | None) -> reference.Reference:
    """The force reference of `[reference]`."""
    match table:
        case None:
            return reference.NoReference()
        case StepsReferenceTable():
            return reference.Steps(table.t_s, table.force_N)
        case RampReferenceTable():
            return reference.Ramp(table.t_s, table.force_N)
        case SineReferenceTable():
            return reference.Sine(table.mean_N, table.amplitude_N, table.frequency_Hz)
        case ChirpReferenceTable():
            return reference.Chirp(
                table.mean_N, table.amplitude_N, table.from_Hz, table.to_Hz, table.sweep_s
            )
        case ReachReferenceTable():
            return reference.Reach(
                table.from_N, table.to_N, table.start_s, table.move_s, table.hold_s, table.returns
            )
        case TraceReferenceTable():
            return reference.Ramp(table.t_s, table.force_N)
        case PluginTable():
            return PluginReference(table.plugin)


def signals_in(table: object) -> dict[str, SignalTable]:
    """The tables of `[reference]` by channel; empty for a reference of another kind."""
    return table.signals if isinstance(table, SignalsReferenceTable) else {}


def check_times(
    key: str, t_s: Sequence[float], values: Sequence[float], what: str
) -> Iterator[tuple[str, str]]:
    """Errors if the numbers of values and times differ, or the times do not increase."""
    if len(t_s) != len(values):
        yield f"{key}.{what}", f"{len(values)} values for {len(t_s)} times: give one a time"
    elif np.any(np.diff(t_s) <= 0.0):
        yield f"{key}.t_s", "times must rise"


def check_signal(key: str, table: SignalTable) -> Iterator[tuple[str, str]]:
    """Errors in the times of the curve at a key."""
    if not isinstance(table, SignalSineTable | PluginTable):
        yield from check_times(key, table.t_s, table.value, "value")
