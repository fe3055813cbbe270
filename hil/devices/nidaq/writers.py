"""Output tasks of a card: built and started once, then written without further library calls.

If a task is not started, every write reserves, starts and stops it, and between two writes another
program could take its terminals.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hil.devices.nidaq.channels import AnalogOutput, CardPlan


class LineWriter:
    """Digital outputs, one level each."""

    def __init__(self, terminals: Sequence[str]) -> None:
        from nidaqmx import Task
        from nidaqmx.constants import LineGrouping
        from nidaqmx.stream_writers import DigitalMultiChannelWriter

        self.task = Task()
        try:
            for terminal in terminals:
                self.task.do_channels.add_do_chan(
                    terminal, line_grouping=LineGrouping.CHAN_PER_LINE
                )
            self.task.start()
        except BaseException:
            self.task.close()
            raise
        self._writer = DigitalMultiChannelWriter(self.task.out_stream, auto_start=False)
        self._writer.verify_array_shape = False
        self._levels = np.zeros(len(terminals), dtype=bool)

    def set_all(self, level: bool) -> None:
        self._levels[:] = level
        self._put()

    def put(self, levels: NDArray[np.uint8]) -> None:
        """Write the level of every line."""
        np.not_equal(levels, 0, out=self._levels)
        self._put()

    def _put(self) -> None:
        self._writer.write_one_sample_one_line(self._levels, timeout=0.1)


class AnalogWriter:
    """Actuators' outputs in one task, limited to their ranges."""

    def __init__(self, plan: CardPlan, outputs: Sequence[AnalogOutput]) -> None:
        from nidaqmx import Task
        from nidaqmx.stream_writers import AnalogMultiChannelWriter

        self.task = Task()
        try:
            for output in outputs:
                self.task.ao_channels.add_ao_voltage_chan(
                    plan.physical(output.terminal),
                    output.name,
                    min_val=-output.range_V,
                    max_val=output.range_V,
                )
            self.task.start()
        except BaseException:
            self.task.close()
            raise
        self._writer = AnalogMultiChannelWriter(self.task.out_stream, auto_start=False)
        self._writer.verify_array_shape = False
        self._per_unit = np.array([1.0 / output.units_per_V for output in outputs])
        self._range_V = np.array([output.range_V for output in outputs])
        self._volts = np.zeros(len(outputs))
        self._rest = np.array([output.rest for output in outputs])

    def put(self, values: NDArray[np.float64]) -> None:
        """Write values in their own units; the guard has checked that they are not NaN."""
        np.multiply(values, self._per_unit, out=self._volts)
        np.clip(self._volts, -self._range_V, self._range_V, out=self._volts)
        self._writer.write_one_sample(self._volts, timeout=0.1)

    def rest(self) -> None:
        """Set all outputs to their idle values."""
        self.put(self._rest)
