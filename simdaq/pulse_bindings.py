"""Reads and writes of counter pulses in the library: two arrays, or two numbers, a call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from simdaq import errors, transfer
from simdaq.errors import DaqmxError
from simdaq.marshal import Action, Marshal

PulseForm = Callable[[Any, Any], tuple[Any, Any]]


class PulseBindings:
    """The library's DAQmxReadCtr... and DAQmxWriteCtr... functions."""

    def __init__(self, marshal: Marshal) -> None:
        self.m = marshal

    def actions(self) -> dict[str, Action]:
        f64, u32, t = np.float64, np.uint32, transfer
        return {
            "ReadCtrFreq": self._reader(f64),
            "ReadCtrTime": self._reader(f64),
            "ReadCtrTicks": self._reader(u32),
            "ReadCtrFreqScalar": self._scalar_reader("double *"),
            "ReadCtrTimeScalar": self._scalar_reader("double *"),
            "ReadCtrTicksScalar": self._scalar_reader("uint32_t *"),
            "ReadPowerF64": self._power_reader(t.read_power, f64),
            "ReadPowerBinaryI16": self._power_reader(t.read_power_codes, np.int16),
            "ReadPowerScalarF64": self._power_scalar,
            "WriteCtrFreq": self._writer(f64, t.by_frequency),
            "WriteCtrTime": self._writer(f64, t.by_time),
            "WriteCtrTicks": self._writer(u32, t.by_ticks),
            "WriteCtrFreqScalar": self._scalar_writer(t.by_frequency),
            "WriteCtrTimeScalar": self._scalar_writer(t.by_time),
            "WriteCtrTicksScalar": self._scalar_writer(t.by_ticks),
        }

    def _reader(self, dtype: Any) -> Action:
        """A DAQmxReadCtr... function: two arrays."""

        def action(
            task: Any, n: int, timeout_s: float, interleaved: int, first: Any, second: Any,
            size: int, n_read: Any, _: Any,
        ) -> int | None:  # fmt: skip
            del interleaved
            block, failure = transfer.read_pulses(
                self.m.current(), self.m.handle(task), n, timeout_s
            )
            if block[0].size > size:
                raise DaqmxError(errors.BAD_VALUE, "The array is too small for the samples.")
            for pointer, values in zip((first, second), block, strict=True):
                if values.size:
                    self.m.array(pointer, values.size, dtype)[:] = values.reshape(-1)
            self.m.store(n_read, "int32_t *", block.shape[2])
            if failure is not None:
                raise failure
            return None

        return action

    def _power_reader(self, read: Callable[..., transfer.Answer], dtype: Any) -> Action:
        """A DAQmxReadPower... function: two arrays, voltage and current."""

        def action(
            task: Any, n: int, timeout_s: float, fill_mode: int, first: Any, second: Any,
            size: int, n_read: Any, _: Any,
        ) -> int | None:  # fmt: skip
            block, failure = read(self.m.current(), self.m.handle(task), n, timeout_s)
            if size:
                for pointer, values in zip((first, second), block, strict=True):
                    out = self.m.array(pointer, size, dtype)
                    transfer.lay_out(out, np.asarray(values), n, fill_mode)
            self.m.store(n_read, "int32_t *", block.shape[2])
            if failure is not None:
                raise failure
            return None

        return action

    def _power_scalar(self, task: Any, timeout_s: float, first: Any, second: Any, _: Any) -> None:
        block, failure = transfer.read_power(self.m.current(), self.m.handle(task), 1, timeout_s)
        if failure is not None:
            raise failure
        self.m.store(first, "double *", float(block[0].flat[0]))
        self.m.store(second, "double *", float(block[1].flat[0]))

    def _scalar_reader(self, c_type: str) -> Action:
        """A DAQmxReadCtr...Scalar function."""
        number = float if c_type == "double *" else int

        def action(task: Any, timeout_s: float, first: Any, second: Any, _: Any) -> int | None:
            block, failure = transfer.read_pulses(
                self.m.current(), self.m.handle(task), 1, timeout_s
            )
            if failure is not None:
                raise failure
            self.m.store(first, c_type, number(block[0].flat[0]))
            self.m.store(second, c_type, number(block[1].flat[0]))
            return None

        return action

    def _converted(self, task: Any, convert: PulseForm, first: Any, second: Any) -> Any:
        """High and low times of pulses that a task is to make."""
        if convert is transfer.by_ticks:
            tick_s = transfer.tick_s(self.m.current(), self.m.handle(task))
            return transfer.by_ticks(first, second, tick_s)
        return convert(first, second)

    def _writer(self, dtype: Any, convert: PulseForm) -> Action:
        """A DAQmxWriteCtr... function: two arrays."""

        def action(
            task: Any, n: int, auto_start: int, timeout_s: float, layout: int, first: Any,
            second: Any, n_written: Any, _: Any,
        ) -> int | None:  # fmt: skip
            del timeout_s, layout
            parts = (self.m.array(p, n, dtype).astype(float) for p in (first, second))
            high_s, low_s = self._converted(task, convert, *parts)
            done = transfer.write_pulses(
                self.m.current(), self.m.handle(task), high_s, low_s, auto_start=bool(auto_start)
            )
            self.m.store(n_written, "int32_t *", done)
            return None

        return action

    def _scalar_writer(self, convert: PulseForm) -> Action:
        """A DAQmxWriteCtr...Scalar function."""

        def action(
            task: Any, auto_start: int, timeout_s: float, first: float, second: float, _: Any
        ) -> int | None:
            del timeout_s
            parts = np.array([float(first)]), np.array([float(second)])
            high_s, low_s = self._converted(task, convert, *parts)
            transfer.write_pulses(
                self.m.current(), self.m.handle(task), high_s, low_s, auto_start=bool(auto_start)
            )
            return None

        return action
