"""Events of trips: one for each fault, with the device, the value and the limit."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from hil.loop import guard as guards
from hil.loop.context import LoopContext

NOTHING_KNOWN: Mapping[str, Sequence[str]] = MappingProxyType({})


class TripReporter:
    """Writes the guard's state into every row, and an event for every new fault.

    Faults that the guard already has at construction count as reported.
    """

    def __init__(self, context: LoopContext) -> None:
        self._context = context
        self._reported_bits = context.guard.fault_bits
        self._values, self._bits = context.frame.values, context.frame.bits
        self._state_at = context.frame.index("guard_state")
        self._faults_at = context.frame.bit_index("fault_bits")

    def fill_row(self) -> None:
        """Write the faults and the state after a complete tick."""
        self._values[self._state_at] = self._context.guard.states.number
        self._bits[self._faults_at] = self._context.guard.fault_bits

    def fill_last_row(self) -> None:
        """Write the faults of a failed tick; the state remains that of the previous tick."""
        self._bits[self._faults_at] = self._context.guard.fault_bits

    def trip(self, fault: int, t_s: float, cause: str) -> None:
        """Trip on a fault that the guard does not detect itself, and report it."""
        self._context.guard.trip(fault)
        self.report(t_s, {guards.names_of(fault)[0]: [cause]})

    def report(self, t_s: float, known: Mapping[str, Sequence[str]] = NOTHING_KNOWN) -> None:
        """Report the new faults.

        Parameters
        ----------
        known : causes by fault; they replace those of the devices
        """
        context = self._context
        fresh = context.guard.fault_bits & ~self._reported_bits
        if not fresh:
            return
        self._reported_bits |= fresh
        seen = context.guard.seen
        on_s = np.zeros(context.rig.layout.n_cells) if seen is None else seen.on_s
        causes = context.rig.troubles(on_s) | context.guard.troubles() | dict(known)
        if fresh & guards.DISK_LOW:
            causes["disk_low"] = [context.sink.disk_low]
        if fresh & guards.RECORDER_DEAD and context.sink.file_harmed:
            causes["recorder_dead"] = [context.sink.file_harmed]
        for line in context.report.lines(fresh, seen, causes):
            context.sink.event(t_s, "fault", "guard", line)
