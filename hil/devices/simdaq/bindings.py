"""What the C functions of the simulated library do: numbers out of C, the model, numbers back."""

from __future__ import annotations

import locale
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

from hil.devices.simdaq import (
    device_properties,
    errors,
    library,
    library_source,
    properties,
    scene,
    transfer,
)
from hil.devices.simdaq.errors import DaqmxError
from hil.devices.simdaq.functions import FUNCTIONS
from hil.devices.simdaq.package_api import Argument, Attribute, Function
from hil.devices.simdaq.system import System
from hil.devices.simdaq.task import Event
from hil.devices.simdaq.waveforms import WaveformBindings

Handler = Callable[..., int]
PulseForm = Callable[[Any, Any], tuple[Any, Any]]
CODES = {
    "int32": "int32_t *", "uint32": "uint32_t *", "bool": "uint32_t *", "uint64": "uint64_t *",
    "double": "double *",
}  # fmt: skip
POINTERS = {
    "c_int": "int32_t *", "c_int32": "int32_t *", "c_uint": "uint32_t *", "c_uint32": "uint32_t *",
    "c_bool32": "uint32_t *", "c_double": "double *", "c_ulonglong": "uint64_t *",
    "task_handle": "uint64_t *",
}  # fmt: skip
ELEMENTS = {
    "double_array": np.float64, "int32_array": np.int32, "uint32_array": np.uint32,
    "bytes": np.uint8,
}  # fmt: skip
BUFFER_TOO_SMALL = -200229
WRITE_BUFFER_TOO_SMALL = -200234


class Bindings:
    """The library's answers for one system.

    Parameters
    ----------
    ffi : of the embedded library
    current : the system that programs see
    """

    def __init__(self, ffi: Any, current: Callable[[], System]) -> None:
        self.ffi = ffi
        self.current = current
        self.attributes = library.api().attributes
        self._last = threading.local()
        self._encoding = locale.getlocale()[1] or "ascii"

    # Errors

    def guarded(self, action: Callable[..., int | None]) -> Handler:
        """The action under the system's lock, with exceptions as status codes."""

        def handler(*arguments: Any) -> int:
            try:
                with self.current().lock:
                    return action(*arguments) or 0
            except DaqmxError as error:
                self._last.detail = error.detail
                return error.code
            except Exception as error:
                traceback.print_exc(file=sys.stderr)
                defect = DaqmxError(errors.DEFECT, f"{type(error).__name__}: {error}")
                self._last.detail = defect.detail
                return defect.code

        return handler

    def unsupported(self, name: str) -> Handler:
        def handler(*_: Any) -> int:
            error = DaqmxError(errors.FUNCTION_NOT_SUPPORTED, Function=name)
            self._last.detail = error.detail
            return error.code

        return handler

    def variadic_unsupported(self, name: Any) -> int:
        return self.unsupported(self.text(name))()

    # Values

    def text(self, pointer: Any) -> str:
        if pointer == self.ffi.NULL:
            return ""
        return str(self.ffi.string(pointer).decode(self._encoding, "replace"))

    def handle(self, pointer: Any) -> int:
        return int(self.ffi.cast("uintptr_t", pointer))

    def array(self, pointer: Any, n: int, dtype: Any) -> Any:
        """The memory behind a pointer, as an array of n elements."""
        kind = np.dtype(dtype)
        return np.frombuffer(self.ffi.buffer(pointer, n * kind.itemsize), dtype=kind)

    def store(self, pointer: Any, c_type: str, value: Any) -> None:
        if pointer != self.ffi.NULL:
            self.ffi.cast(c_type, pointer)[0] = value

    def give_text(self, text: str, pointer: Any, size: int) -> int:
        """NI's way: a size of 0 asks how much room is needed."""
        data = text.encode(self._encoding, "replace") + b"\0"
        if size == 0 or pointer == self.ffi.NULL:
            return len(data)
        if size < len(data):
            return BUFFER_TOO_SMALL
        self.ffi.buffer(pointer, len(data))[:] = data
        return 0

    def give_array(self, values: Any, dtype: Any, pointer: Any, size: int) -> int:
        data = np.asarray(values, dtype=dtype)
        if size == 0 or pointer == self.ffi.NULL:
            return len(data)
        if size < len(data):
            return WRITE_BUFFER_TOO_SMALL
        self.array(pointer, len(data), dtype)[:] = data
        return 0

    # Whole families of functions

    def general(self, function: Function) -> Callable[..., int | None]:
        """A function whose arguments are plain: numbers, texts and arrays in, numbers out."""
        model = FUNCTIONS[function.method]
        arguments = function.arguments

        def action(*given: Any) -> None:
            inputs: dict[str, Any] = {}
            outputs: list[tuple[Any, str]] = []
            for i, (argument, value) in enumerate(zip(arguments, given, strict=True)):
                if argument.role == "in":
                    inputs[argument.name] = self._input(argument, value)
                elif argument.role == "in_array":
                    inputs[argument.name] = self._in_array(arguments, given, i)
                elif argument.role == "out":
                    outputs.append((value, POINTERS[argument.element]))
            result = model(self.current(), **inputs)
            results = result if isinstance(result, tuple) else (result,)
            for (pointer, c_type), value in zip(outputs, results, strict=False):
                self.store(pointer, c_type, value)

        return action

    def _input(self, argument: Argument, value: Any) -> Any:
        if argument.c_type == "char *":
            return self.text(value)
        if argument.c_type == "void *":
            return self.handle(value)
        return value

    def _in_array(self, arguments: tuple[Argument, ...], given: tuple[Any, ...], at: int) -> Any:
        n = next(int(given[i]) for i in range(at, len(arguments)) if arguments[i].role == "size")
        if n == 0:
            return np.empty(0)
        return self.array(given[at], n, arguments[at].element).copy()

    def reader(
        self, read: Callable[..., transfer.Answer], dtype: Any, *, lines: bool = False,
        has_fill_mode: bool = True,
    ) -> Callable[..., int | None]:  # fmt: skip
        """A DAQmxRead... function with one array."""

        def action(task: Any, n: int, timeout_s: float, *rest: Any) -> int | None:
            fill_mode = rest[0] if has_fill_mode else 0
            pointer, size, n_read = rest[1 if has_fill_mode else 0 :][:3]
            block, failure = read(self.current(), self.handle(task), n, timeout_s)
            if size:
                transfer.lay_out(self.array(pointer, size, dtype), block, n, fill_mode)
            self.store(n_read, "int32_t *", block.shape[1])
            if lines:
                self.store(rest[-2], "int32_t *", block.shape[2] if block.ndim > 2 else 1)
            if failure is not None:
                raise failure
            return None

        return action

    def scalar_reader(
        self, read: Callable[..., transfer.Answer], c_type: str
    ) -> Callable[..., int | None]:
        """A DAQmxRead...Scalar... function."""

        def action(task: Any, timeout_s: float, value: Any, _: Any) -> int | None:
            block, failure = read(self.current(), self.handle(task), 1, timeout_s)
            if failure is not None:
                raise failure
            number = block.flat[0]
            self.store(value, c_type, float(number) if c_type == "double *" else int(number))
            return None

        return action

    def writer(
        self, write: Callable[..., int], dtype: Any, *, lines: bool = False
    ) -> Callable[..., int | None]:
        """A DAQmxWrite... function with one array."""

        def action(
            task: Any, n: int, auto_start: int, timeout_s: float, layout: int, pointer: Any,
            n_written: Any, _: Any,
        ) -> int | None:  # fmt: skip
            system, handle = self.current(), self.handle(task)
            shape = transfer.shape_of(system, handle, n, lines=lines)
            count = int(np.prod(shape))
            flat = self.array(pointer, count, dtype) if count else np.empty(0, dtype)
            block = transfer.taken_apart(flat, shape, layout)
            if not lines:
                block = block.astype(np.float64)
            done = write(system, handle, block, auto_start=bool(auto_start), timeout_s=timeout_s)
            self.store(n_written, "int32_t *", done)
            return None

        return action

    def scalar_writer(self, write: Callable[..., int]) -> Callable[..., int | None]:
        """A DAQmxWrite...Scalar... function."""

        def action(task: Any, auto_start: int, timeout_s: float, value: Any, _: Any) -> int | None:
            write(
                self.current(), self.handle(task), np.array([[float(value)]]),
                auto_start=bool(auto_start), timeout_s=timeout_s,
            )  # fmt: skip
            return None

        return action

    def raw_reader(
        self, task: Any, n: int, timeout_s: float, pointer: Any, size: int, n_read: Any,
        n_bytes: Any, _: Any,
    ) -> int | None:  # fmt: skip
        data, failure, got, width = transfer.read_raw(
            self.current(), self.handle(task), n, timeout_s
        )
        if len(data) > size:
            raise DaqmxError(errors.BAD_VALUE, "The array is too small for the samples.")
        self.ffi.buffer(pointer, len(data))[:] = data
        self.store(n_read, "int32_t *", got)
        self.store(n_bytes, "int32_t *", width)
        if failure is not None:
            raise failure
        return None

    def raw_writer(
        self, task: Any, n: int, auto_start: int, timeout_s: float, pointer: Any,
        n_written: Any, _: Any,
    ) -> int | None:  # fmt: skip
        system, handle = self.current(), self.handle(task)
        width = device_properties.raw_bytes(system.task(handle))
        bytes_a_scan = width * transfer.width(system, handle)[0]
        data = bytes(self.ffi.buffer(pointer, n * bytes_a_scan))
        done = transfer.write_raw(
            system, handle, n, data, auto_start=bool(auto_start), timeout_s=timeout_s
        )
        self.store(n_written, "int32_t *", done)
        return None

    def pulse_reader(self, dtype: Any) -> Callable[..., int | None]:
        """A DAQmxReadCtr... function: two arrays."""

        def action(
            task: Any, n: int, timeout_s: float, interleaved: int, first: Any, second: Any,
            size: int, n_read: Any, _: Any,
        ) -> int | None:  # fmt: skip
            del interleaved
            block, failure = transfer.read_pulses(self.current(), self.handle(task), n, timeout_s)
            if block[0].size > size:
                raise DaqmxError(errors.BAD_VALUE, "The array is too small for the samples.")
            for pointer, values in zip((first, second), block, strict=True):
                if values.size:
                    self.array(pointer, values.size, dtype)[:] = values.reshape(-1)
            self.store(n_read, "int32_t *", block.shape[2])
            if failure is not None:
                raise failure
            return None

        return action

    def pulse_scalar_reader(self, c_type: str) -> Callable[..., int | None]:
        """A DAQmxReadCtr...Scalar function."""
        number = float if c_type == "double *" else int

        def action(task: Any, timeout_s: float, first: Any, second: Any, _: Any) -> int | None:
            block, failure = transfer.read_pulses(self.current(), self.handle(task), 1, timeout_s)
            if failure is not None:
                raise failure
            self.store(first, c_type, number(block[0].flat[0]))
            self.store(second, c_type, number(block[1].flat[0]))
            return None

        return action

    def pulse_writer(self, dtype: Any, convert: PulseForm) -> Callable[..., int | None]:
        """A DAQmxWriteCtr... function: two arrays."""

        def action(
            task: Any, n: int, auto_start: int, timeout_s: float, layout: int, first: Any,
            second: Any, n_written: Any, _: Any,
        ) -> int | None:  # fmt: skip
            del timeout_s, layout
            high_s, low_s = convert(
                self.array(first, n, dtype).astype(float),
                self.array(second, n, dtype).astype(float),
            )
            done = transfer.write_pulses(
                self.current(), self.handle(task), high_s, low_s, auto_start=bool(auto_start)
            )
            self.store(n_written, "int32_t *", done)
            return None

        return action

    def pulse_scalar_writer(self, convert: PulseForm) -> Callable[..., int | None]:
        """A DAQmxWriteCtr...Scalar function."""

        def action(
            task: Any, auto_start: int, timeout_s: float, first: float, second: float, _: Any
        ) -> int | None:
            del timeout_s
            high_s, low_s = convert(np.array([float(first)]), np.array([float(second)]))
            transfer.write_pulses(
                self.current(), self.handle(task), high_s, low_s, auto_start=bool(auto_start)
            )
            return None

        return action

    # Properties

    def _attribute(self, owner: int, number: int) -> tuple[str, Attribute]:
        name = library_source.OWNER_NAMES[owner]
        found = self.attributes.get((name, number))
        if found is None:
            raise DaqmxError(errors.PROPERTY_NOT_SUPPORTED, Property=hex(number))
        return name, found

    def get(
        self, owner: int, task: Any, name: Any, number: int, pointer: Any, size: int
    ) -> int | None:
        who, attribute = self._attribute(owner, number)
        value = properties.get(self.current(), who, self.handle(task), self.text(name), attribute)
        if attribute.type == "string":
            return self.give_text(str(value), pointer, size)
        if attribute.type in ELEMENTS:
            return self.give_array(value, ELEMENTS[attribute.type], pointer, size)
        if attribute.type == "timestamp":
            time = self.ffi.cast("daqmx_time *", pointer)
            time.lsb, time.msb = value
            return 0
        real = attribute.type == "double"
        self.store(pointer, CODES[attribute.type], float(value) if real else int(value))
        return 0

    def set(
        self, owner: int, task: Any, name: Any, number: int, real: float, whole: int, size: int
    ) -> int | None:  # fmt: skip
        who, attribute = self._attribute(owner, number)
        properties.put(
            self.current(), who, self.handle(task), self.text(name), attribute,
            self._set_value(attribute.type, real, whole, size),
        )  # fmt: skip
        return 0

    def _set_value(self, kind: str, real: float, whole: int, size: int) -> Any:
        if kind == "double":
            return real
        if kind == "string":
            return self.text(self.ffi.cast("char *", whole))
        if kind in ELEMENTS:
            pointer = self.ffi.cast("void *", whole)
            return self.array(pointer, size, ELEMENTS[kind]).tolist()
        if kind == "bool":
            return bool(whole & 0xFFFFFFFF)
        if kind == "int32":
            low = whole & 0xFFFFFFFF
            return low - (1 << 32) if low >= 1 << 31 else low
        return whole if kind == "uint64" else whole & 0xFFFFFFFF

    def resetter(self, owner: str, has_name: bool) -> Callable[..., int | None]:
        def action(task: Any, *rest: Any) -> int | None:
            name = self.text(rest[0]) if has_name else ""
            attribute = self.attributes.get((owner, int(rest[-1])))
            if attribute is None:
                raise DaqmxError(errors.PROPERTY_NOT_SUPPORTED, Property=hex(int(rest[-1])))
            properties.reset(self.current(), owner, self.handle(task), name, attribute)
            return 0

        return action

    # Events

    def listen(self, kind: str, shape: str) -> Callable[..., int | None]:
        """A DAQmxRegister... function; NULL for a callback ends it."""
        ffi = self.ffi

        def action(task: Any, *rest: Any) -> int | None:
            system = self.current()
            owner = system.task(self.handle(task))
            callback, data = rest[-2], rest[-1]
            if callback == ffi.NULL:
                system.listen(owner, kind, None)
                return 0
            what = int(rest[0])
            function = ffi.cast(shape, callback)
            n = int(rest[1]) if kind == "every_n" else 0

            def call(*facts: Any) -> None:
                if kind == "every_n":
                    function(task, what, facts[0], data)
                elif kind == "done":
                    function(task, facts[0], data)
                else:
                    function(task, what, data)

            system.listen(owner, kind, Event(n, call))
            return 0

        return action

    def error_text(self, code: int, pointer: Any, size: int) -> int:
        data = errors.text(code).encode(self._encoding, "replace")[: size - 1] + b"\0"
        self.ffi.buffer(pointer, len(data))[:] = data
        return 0

    def extended_error(self, pointer: Any, size: int) -> int:
        detail = getattr(self._last, "detail", "")
        data = detail.encode(self._encoding, "replace")[: size - 1] + b"\0"
        self.ffi.buffer(pointer, len(data))[:] = data
        return 0


def _special(b: Bindings) -> dict[str, Callable[..., int | None]]:
    """Functions whose arguments are not plain."""
    f64, u8, u16, u32 = np.float64, np.uint8, np.uint16, np.uint32
    i16, i32 = np.int16, np.int32
    t = transfer
    found: dict[str, Callable[..., int | None]] = {
        "ReadAnalogF64": b.reader(t.read_analog, f64),
        "ReadAnalogScalarF64": b.scalar_reader(t.read_analog, "double *"),
        "ReadBinaryI16": b.reader(t.read_codes, i16),
        "ReadBinaryI32": b.reader(t.read_codes, i32),
        "ReadBinaryU16": b.reader(t.read_codes, u16),
        "ReadBinaryU32": b.reader(t.read_codes, u32),
        "ReadDigitalU8": b.reader(t.read_words, u8),
        "ReadDigitalU16": b.reader(t.read_words, u16),
        "ReadDigitalU32": b.reader(t.read_words, u32),
        "ReadDigitalScalarU32": b.scalar_reader(t.read_words, "uint32_t *"),
        "ReadDigitalLines": b.reader(t.read_lines, u8, lines=True),
        "ReadCounterF64": b.reader(t.read_counter, f64, has_fill_mode=False),
        "ReadCounterF64Ex": b.reader(t.read_counter, f64),
        "ReadCounterU32": b.reader(t.read_counts, u32, has_fill_mode=False),
        "ReadCounterU32Ex": b.reader(t.read_counts, u32),
        "ReadCounterScalarF64": b.scalar_reader(t.read_counter, "double *"),
        "ReadCounterScalarU32": b.scalar_reader(t.read_counts, "uint32_t *"),
        "ReadRaw": b.raw_reader,
        "WriteRaw": b.raw_writer,
        "ReadCtrFreq": b.pulse_reader(f64),
        "ReadCtrTime": b.pulse_reader(f64),
        "ReadCtrTicks": b.pulse_reader(u32),
        "ReadCtrFreqScalar": b.pulse_scalar_reader("double *"),
        "ReadCtrTimeScalar": b.pulse_scalar_reader("double *"),
        "ReadCtrTicksScalar": b.pulse_scalar_reader("uint32_t *"),
        "WriteCtrFreq": b.pulse_writer(f64, t.by_frequency),
        "WriteCtrTime": b.pulse_writer(f64, t.by_time),
        "WriteCtrTicks": b.pulse_writer(u32, t.by_ticks),
        "WriteCtrFreqScalar": b.pulse_scalar_writer(t.by_frequency),
        "WriteCtrTimeScalar": b.pulse_scalar_writer(t.by_time),
        "WriteCtrTicksScalar": b.pulse_scalar_writer(t.by_ticks),
        "WriteAnalogF64": b.writer(t.write_analog, f64),
        "WriteAnalogScalarF64": b.scalar_writer(t.write_analog),
        "WriteBinaryI16": b.writer(t.write_codes, i16),
        "WriteBinaryI32": b.writer(t.write_codes, i32),
        "WriteBinaryU16": b.writer(t.write_codes, u16),
        "WriteBinaryU32": b.writer(t.write_codes, u32),
        "WriteDigitalU8": b.writer(t.write_words, u8),
        "WriteDigitalU16": b.writer(t.write_words, u16),
        "WriteDigitalU32": b.writer(t.write_words, u32),
        "WriteDigitalScalarU32": b.scalar_writer(t.write_words),
        "WriteDigitalLines": b.writer(t.write_lines, u8, lines=True),
        "RegisterEveryNSamplesEvent": b.listen(
            "every_n", "int32_t (*)(void *, int32_t, uint32_t, void *)"
        ),
        "RegisterDoneEvent": b.listen("done", "int32_t (*)(void *, int32_t, void *)"),
        "RegisterSignalEvent": b.listen("signal", "int32_t (*)(void *, int32_t, void *)"),
        **WaveformBindings(b).actions(),
        "InternalGetLastCreatedChan": lambda pointer, size: b.give_text(
            b.current().last_created, pointer, size
        ),
    }
    for key, (owner, has_task, has_name) in library_source.OWNERS.items():
        if has_task:
            name = f"Reset{key.removesuffix('Ex')}Attribute{'Ex' if key.endswith('Ex') else ''}"
            found[name] = b.resetter(owner, has_name)
    return {f"DAQmx{name}": action for name, action in found.items()}


_systems: list[System] = []


def present(system: System) -> None:
    """Let programs in this process see this system from now on."""
    _systems[:] = [system]


def current() -> System:
    """The system that programs in this process see."""
    return _systems[0]


def attach(ffi: Any, now_s: Callable[[], float], unix_s: float) -> None:
    """Give every function of the embedded library its answer; the library calls this.

    A process that has set no system up (`present`) sees the bench that its environment describes.
    """
    if not _systems:
        present(scene.from_environment(now_s, unix_s))
    b = Bindings(ffi, current)
    special = _special(b)
    ffi.def_extern(name="simdaq_get")(b.guarded(b.get))
    ffi.def_extern(name="simdaq_set")(b.guarded(b.set))
    ffi.def_extern(name="simdaq_unsupported")(b.variadic_unsupported)
    for function in library.api().functions:
        if function.variadic:
            continue
        if function.c_name == "DAQmxGetErrorString":
            handler: Handler = b.error_text
        elif function.c_name == "DAQmxGetExtendedErrorInfo":
            handler = b.extended_error
        elif function.c_name in special:
            handler = b.guarded(special[function.c_name])
        elif function.method in FUNCTIONS:
            handler = b.guarded(b.general(function))
        else:
            handler = b.unsupported(function.c_name)
        ffi.def_extern(name=function.c_name)(handler)
