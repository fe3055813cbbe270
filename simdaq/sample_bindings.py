"""Reads and writes of samples in the library: one array, or one number, a call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from simdaq import device_properties, errors, transfer
from simdaq.errors import DaqmxError
from simdaq.marshal import Action, Marshal


class SampleBindings:
    """The library's DAQmxRead... and DAQmxWrite... functions."""

    def __init__(self, marshal: Marshal) -> None:
        self.m = marshal

    def actions(self) -> dict[str, Action]:
        f64, u8, u16, u32 = np.float64, np.uint8, np.uint16, np.uint32
        i16, i32 = np.int16, np.int32
        t = transfer
        return {
            "ReadAnalogF64": self._reader(t.read_analog, f64),
            "ReadAnalogScalarF64": self._scalar_reader(t.read_analog, "double *"),
            "ReadBinaryI16": self._reader(t.read_codes, i16),
            "ReadBinaryI32": self._reader(t.read_codes, i32),
            "ReadBinaryU16": self._reader(t.read_codes, u16),
            "ReadBinaryU32": self._reader(t.read_codes, u32),
            "ReadDigitalU8": self._reader(t.read_words, u8),
            "ReadDigitalU16": self._reader(t.read_words, u16),
            "ReadDigitalU32": self._reader(t.read_words, u32),
            "ReadDigitalScalarU32": self._scalar_reader(t.read_words, "uint32_t *"),
            "ReadDigitalLines": self._reader(t.read_lines, u8, lines=True),
            "ReadCounterF64": self._reader(t.read_counter, f64, has_fill_mode=False),
            "ReadCounterF64Ex": self._reader(t.read_counter, f64),
            "ReadCounterU32": self._reader(t.read_counts, u32, has_fill_mode=False),
            "ReadCounterU32Ex": self._reader(t.read_counts, u32),
            "ReadCounterScalarF64": self._scalar_reader(t.read_counter, "double *"),
            "ReadCounterScalarU32": self._scalar_reader(t.read_counts, "uint32_t *"),
            "ReadRaw": self._raw_reader,
            "WriteRaw": self._raw_writer,
            "WriteAnalogF64": self._writer(t.write_analog, f64),
            "WriteAnalogScalarF64": self._scalar_writer(t.write_analog),
            "WriteBinaryI16": self._writer(t.write_codes, i16),
            "WriteBinaryI32": self._writer(t.write_codes, i32),
            "WriteBinaryU16": self._writer(t.write_codes, u16),
            "WriteBinaryU32": self._writer(t.write_codes, u32),
            "WriteDigitalU8": self._writer(t.write_words, u8),
            "WriteDigitalU16": self._writer(t.write_words, u16),
            "WriteDigitalU32": self._writer(t.write_words, u32),
            "WriteDigitalScalarU32": self._scalar_writer(t.write_words),
            "WriteDigitalLines": self._writer(t.write_lines, u8, lines=True),
        }

    def _reader(
        self, read: Callable[..., transfer.Answer], dtype: Any, *, lines: bool = False,
        has_fill_mode: bool = True,
    ) -> Action:  # fmt: skip
        """A DAQmxRead... function with one array."""

        def action(task: Any, n: int, timeout_s: float, *rest: Any) -> int | None:
            fill_mode = rest[0] if has_fill_mode else 0
            pointer, size, n_read = rest[1 if has_fill_mode else 0 :][:3]
            block, failure = read(self.m.current(), self.m.handle(task), n, timeout_s)
            if size:
                out = self.m.array(pointer, size, dtype)
                transfer.lay_out(out, block, n if failure is None else -1, fill_mode)
            self.m.store(n_read, "int32_t *", block.shape[1])
            if lines:
                self.m.store(rest[-2], "int32_t *", block.shape[2] if block.ndim > 2 else 1)
            if failure is not None:
                raise failure
            return None

        return action

    def _scalar_reader(self, read: Callable[..., transfer.Answer], c_type: str) -> Action:
        """A DAQmxRead...Scalar... function."""

        def action(task: Any, timeout_s: float, value: Any, _: Any) -> int | None:
            block, failure = read(self.m.current(), self.m.handle(task), 1, timeout_s)
            if failure is not None:
                raise failure
            number = block.flat[0]
            self.m.store(value, c_type, float(number) if c_type == "double *" else int(number))
            return None

        return action

    def _writer(self, write: Callable[..., int], dtype: Any, *, lines: bool = False) -> Action:
        """A DAQmxWrite... function with one array."""

        def action(
            task: Any, n: int, auto_start: int, timeout_s: float, layout: int, pointer: Any,
            n_written: Any, _: Any,
        ) -> int | None:  # fmt: skip
            system, handle = self.m.current(), self.m.handle(task)
            shape = transfer.shape_of(system, handle, n, lines=lines)
            count = int(np.prod(shape))
            flat = self.m.array(pointer, count, dtype) if count else np.empty(0, dtype)
            block = transfer.taken_apart(flat, shape, layout)
            if not lines:
                block = block.astype(np.float64)
            try:
                done = write(
                    system, handle, block, auto_start=bool(auto_start), timeout_s=timeout_s
                )
            except DaqmxError as failure:
                self.m.store(n_written, "int32_t *", failure.samples)
                raise
            self.m.store(n_written, "int32_t *", done)
            return None

        return action

    def _scalar_writer(self, write: Callable[..., int]) -> Action:
        """A DAQmxWrite...Scalar... function."""

        def action(task: Any, auto_start: int, timeout_s: float, value: Any, _: Any) -> int | None:
            write(
                self.m.current(), self.m.handle(task), np.array([[float(value)]]),
                auto_start=bool(auto_start), timeout_s=timeout_s,
            )  # fmt: skip
            return None

        return action

    def _raw_reader(
        self, task: Any, n: int, timeout_s: float, pointer: Any, size: int, n_read: Any,
        n_bytes: Any, _: Any,
    ) -> int | None:  # fmt: skip
        data, failure, n_samples, width = transfer.read_raw(
            self.m.current(), self.m.handle(task), n, timeout_s
        )
        if len(data) > size:
            raise DaqmxError(errors.BAD_VALUE, "The array is too small for the samples.")
        self.m.ffi.buffer(pointer, size)[:] = data.ljust(size, b"\0")
        self.m.store(n_read, "int32_t *", n_samples)
        self.m.store(n_bytes, "int32_t *", width)
        if failure is not None:
            raise failure
        return None

    def _raw_writer(
        self, task: Any, n: int, auto_start: int, timeout_s: float, pointer: Any,
        n_written: Any, _: Any,
    ) -> int | None:  # fmt: skip
        system, handle = self.m.current(), self.m.handle(task)
        width = device_properties.raw_bytes(system.task(handle))
        bytes_a_scan = width * transfer.width(system, handle)[0]
        data = bytes(self.m.ffi.buffer(pointer, n * bytes_a_scan))
        done = transfer.write_raw(
            system, handle, n, data, auto_start=bool(auto_start), timeout_s=timeout_s
        )
        self.m.store(n_written, "int32_t *", done)
        return None
