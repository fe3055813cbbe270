"""The Python side of the simulated library's C functions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from nidaqmx.constants import EveryNSamplesEventType

from simdaq import errors, library, library_source, power_up, properties, scene
from simdaq.errors import DaqmxError
from simdaq.functions import FUNCTIONS
from simdaq.marshal import Action, Handler, Marshal
from simdaq.package_api import Argument, Attribute, Function
from simdaq.pulse_bindings import PulseBindings
from simdaq.run import Event
from simdaq.sample_bindings import SampleBindings
from simdaq.system import LOOK_S, System
from simdaq.waveforms import WaveformBindings

CODES = {
    "int32": "int32_t *", "uint32": "uint32_t *", "bool": "uint32_t *", "uint64": "uint64_t *",
    "double": "double *",
}  # fmt: skip
POINTERS = {
    "c_int": "int32_t *", "c_int32": "int32_t *", "c_uint": "uint32_t *", "c_uint32": "uint32_t *",
    "c_bool32": "uint32_t *", "c_double": "double *", "c_ulonglong": "uint64_t *",
    "task_handle": "uint64_t *", "AbsoluteTime": "AbsoluteTime",
}  # fmt: skip
ACQUIRED_INTO_BUFFER = EveryNSamplesEventType.ACQUIRED_INTO_BUFFER.value
ELEMENTS = {
    "double_array": np.float64, "int32_array": np.int32, "uint32_array": np.uint32,
    "bytes": np.uint8,
}  # fmt: skip


class Bindings:
    """Functions with plain arguments, properties and events."""

    def __init__(self, marshal: Marshal) -> None:
        self.m = marshal
        self.attributes = library.api().attributes
        functions = library.api().functions
        self.methods = {f.c_name.removeprefix("DAQmx"): f.method for f in functions}

    def general(self, function: Function) -> Action:
        """A function whose arguments are plain: numbers, texts and arrays in, numbers out."""
        model = FUNCTIONS[function.method]
        arguments = function.arguments

        def action(*values: Any) -> None:
            inputs: dict[str, Any] = {}
            outputs: list[tuple[Any, str]] = []
            for i, (argument, value) in enumerate(zip(arguments, values, strict=True)):
                if argument.role == "in":
                    inputs[argument.name] = self._input(argument, value)
                elif argument.role == "in_array":
                    inputs[argument.name] = self._in_array(arguments, values, i)
                elif argument.role == "out":
                    outputs.append((value, POINTERS[argument.element]))
                elif argument.role == "out_array":
                    outputs.append((value, argument.element))
            result = model(self.m.current(), **inputs)
            several = isinstance(result, tuple) and len(outputs) > 1
            results = result if several else (result,)
            for (pointer, c_type), value in zip(outputs, results, strict=False):
                if c_type == "AbsoluteTime":
                    time = self.m.ffi.cast("daqmx_time *", pointer)
                    time.lsb, time.msb = value
                elif isinstance(value, list):
                    self.m.array(pointer, len(value), c_type)[:] = value
                else:
                    self.m.store(pointer, c_type, value)

        return action

    def _input(self, argument: Argument, value: Any) -> Any:
        if argument.c_type == "char *":
            return self.m.text(value)
        if argument.c_type == "void *":
            return self.m.handle(value)
        if argument.c_type == "daqmx_time":
            return int(value.lsb), int(value.msb)
        return value

    def _in_array(self, arguments: tuple[Argument, ...], values: tuple[Any, ...], at: int) -> Any:
        n = next(int(values[i]) for i in range(at, len(arguments)) if arguments[i].role == "size")
        if n == 0:
            return np.empty(0)
        return self.m.array(values[at], n, arguments[at].element).copy()

    # Properties

    def _attribute(self, owner: int, number: int) -> tuple[str, Attribute]:
        name = library_source.OWNER_NAMES[owner]
        attribute = self.attributes.get((name, number))
        if attribute is None:
            raise DaqmxError(errors.PROPERTY_NOT_SUPPORTED, Property=hex(number))
        return name, attribute

    def get(
        self, owner: int, task: Any, name: Any, number: int, pointer: Any, size: int
    ) -> int | None:
        who, attribute = self._attribute(owner, number)
        value = properties.get(
            self.m.current(), who, self.m.handle(task), self.m.text(name), attribute
        )
        if attribute.type == "string":
            return self.m.give_text(str(value), pointer, size)
        if attribute.type in ELEMENTS:
            return self.m.give_array(value, ELEMENTS[attribute.type], pointer, size)
        if attribute.type == "timestamp":
            time = self.m.ffi.cast("daqmx_time *", pointer)
            time.lsb, time.msb = value
            return 0
        real = attribute.type == "double"
        self.m.store(pointer, CODES[attribute.type], float(value) if real else int(value))
        return 0

    def set(
        self, owner: int, task: Any, name: Any, number: int, real: float, whole: int, size: int
    ) -> int | None:  # fmt: skip
        who, attribute = self._attribute(owner, number)
        properties.put(
            self.m.current(), who, self.m.handle(task), self.m.text(name), attribute,
            self._set_value(attribute.type, real, whole, size),
        )  # fmt: skip
        return 0

    def _set_value(self, kind: str, real: float, whole: int, size: int) -> Any:
        if kind == "double":
            return real
        if kind == "timestamp":
            return whole, size - (1 << 64) if size >= 1 << 63 else size
        size &= 0xFFFFFFFF
        if kind == "string":
            return self.m.text(self.m.ffi.cast("char *", whole))
        if kind in ELEMENTS:
            pointer = self.m.ffi.cast("void *", whole)
            return self.m.array(pointer, size, ELEMENTS[kind]).tolist()
        if kind == "bool":
            return bool(whole & 0xFFFFFFFF)
        if kind == "int32":
            low = whole & 0xFFFFFFFF
            return low - (1 << 32) if low >= 1 << 31 else low
        return whole if kind == "uint64" else whole & 0xFFFFFFFF

    def resetter(self, owner: str, has_name: bool) -> Action:
        def action(task: Any, *rest: Any) -> int | None:
            name = self.m.text(rest[0]) if has_name else ""
            attribute = self.attributes.get((owner, int(rest[-1])))
            if attribute is None:
                raise DaqmxError(errors.PROPERTY_NOT_SUPPORTED, Property=hex(int(rest[-1])))
            properties.reset(self.m.current(), owner, self.m.handle(task), name, attribute)
            return 0

        return action

    # Power-up states

    def listed(self, function: Any, device: Any, n: int, entries: Any) -> None:
        """A function with a device and a list of channels."""
        stem = self.m.text(function).removeprefix("DAQmx")
        model = FUNCTIONS[self.methods[stem]]
        items = [entries[i] for i in range(n)]
        channels = [self.m.text(e.name) for e in items]
        known: dict[str, Any] = {"device_name": self.m.text(device)}
        if stem.startswith("Get"):
            states = model(self.m.current(), channel_name=channels, **known)
            for entry, state in zip(items, states, strict=True):
                self.m.store(entry.value, "int32_t *", state)
        elif stem == "SetAnalogPowerUpStates":
            model(
                self.m.current(), channel_names=channels, state=[e.real for e in items],
                channel_type=[e.whole for e in items], **known,
            )  # fmt: skip
        else:
            states = [e.whole for e in items]
            model(self.m.current(), channel_names=channels, state=states, **known)

    def analog_power_up_states(
        self, channels: Any, levels: Any, kinds: Any, size_pointer: Any
    ) -> None:
        """Two arrays and their common size, which becomes the number of channels."""
        size = self.m.ffi.cast("uint32_t *", size_pointer)
        room = 0 if size == self.m.ffi.NULL else size[0]
        states, types = power_up.get_analog_power_up_states_with_output_type(
            self.m.current(), channel_names=self.m.text(channels), array_size=room
        )
        if states:
            self.m.array(levels, len(states), "float64")[:] = states
            self.m.array(kinds, len(types), "int32")[:] = types
        self.m.store(size_pointer, "uint32_t *", len(states))

    # Events

    def listen(self, kind: str, shape: str) -> Action:
        """A DAQmxRegister... function; NULL for a callback ends it."""
        ffi = self.m.ffi

        def action(task: Any, *rest: Any) -> int | None:
            system = self.m.current()
            owner = system.task(self.m.handle(task))
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

            system.listen(owner, kind, Event(n, call, acquired=what == ACQUIRED_INTO_BUFFER))
            return 0

        return action


def _special(b: Bindings) -> dict[str, Action]:
    """Functions whose arguments are not plain."""
    m = b.m
    actions: dict[str, Action] = {
        **SampleBindings(m).actions(),
        **PulseBindings(m).actions(),
        "RegisterEveryNSamplesEvent": b.listen(
            "every_n", "int32_t (*)(void *, int32_t, uint32_t, void *)"
        ),
        "RegisterDoneEvent": b.listen("done", "int32_t (*)(void *, int32_t, void *)"),
        "RegisterSignalEvent": b.listen("signal", "int32_t (*)(void *, int32_t, void *)"),
        **WaveformBindings(m).actions(),
        "GetAnalogPowerUpStatesWithOutputType": b.analog_power_up_states,
        "InternalGetLastCreatedChan": lambda pointer, size: m.give_text(
            m.current().last_created, pointer, size
        ),
    }
    for key, (owner, has_task, has_name) in library_source.OWNERS.items():
        if has_task:
            name = f"Reset{key.removesuffix('Ex')}Attribute{'Ex' if key.endswith('Ex') else ''}"
            actions[name] = b.resetter(owner, has_name)
    return {f"DAQmx{name}": action for name, action in actions.items()}


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
    m = Marshal(ffi, current)
    b = Bindings(m)
    special = _special(b)

    def extern(name: str, handler: Handler) -> None:
        ffi.def_extern(name=name, onerror=m.escaped)(handler)

    extern("simdaq_get", m.guarded(b.get, LOOK_S))
    extern("simdaq_set", m.guarded(b.set))
    extern("simdaq_listed", m.guarded(b.listed))
    extern("simdaq_unsupported", m.variadic_unsupported)
    for function in library.api().functions:
        if function.variadic:
            continue
        if function.c_name == "DAQmxGetErrorString":
            handler: Handler = m.error_text
        elif function.c_name == "DAQmxGetExtendedErrorInfo":
            handler = m.extended_error
        elif function.c_name in special:
            handler = m.guarded(special[function.c_name])
        elif function.method in FUNCTIONS:
            handler = m.guarded(b.general(function))
        else:
            handler = m.unsupported(function.c_name)
        extern(library_source.inner_name(function), handler)


def install(system: System) -> Path:
    """Let `nidaqmx` in this process see this system; the path of the library it loads.

    May be called again with another system; tasks of the old one are then unknown.

    Raises
    ------
    SetupError
        The library has to be built and there is no compiler.
    """
    present(system)
    return library.install()
