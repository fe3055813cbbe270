"""Calls of NI's gRPC service, one by one: from request to model to response."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from google.protobuf.timestamp_pb2 import Timestamp
from nidaqmx._stubs import nidaqmx_pb2 as messages
from session_pb2 import Session

from simdaq import errors, library, properties, transfer
from simdaq.errors import DaqmxError
from simdaq.functions import FUNCTIONS
from simdaq.grpc_waveforms import WAVEFORMS
from simdaq.package_api import Attribute
from simdaq.system import System
from simdaq.task import Task

SERVICE = messages.DESCRIPTOR.services_by_name["NiDAQmx"]
INITIALIZE_NEW, ATTACH = 1, 2
UNIX_1904_S = 2_082_844_800
_PROPERTY = re.compile(r"(Get|Set|Reset)(\w+?)Attribute(Ex)?(\w*)$")
_f64, _u8, _u16, _u32, _i16, _i32 = (
    np.float64, np.uint8, np.uint16, np.uint32, np.int16, np.int32,
)  # fmt: skip
READS: dict[str, tuple[Callable[..., transfer.Answer], Any]] = {
    "ReadAnalogF64": (transfer.read_analog, _f64),
    "ReadBinaryI16": (transfer.read_codes, _i16),
    "ReadBinaryI32": (transfer.read_codes, _i32),
    "ReadBinaryU16": (transfer.read_codes, _u16),
    "ReadBinaryU32": (transfer.read_codes, _u32),
    "ReadDigitalU8": (transfer.read_words, _u8),
    "ReadDigitalU16": (transfer.read_words, _u16),
    "ReadDigitalU32": (transfer.read_words, _u32),
    "ReadDigitalLines": (transfer.read_lines, _u8),
    "ReadCounterF64": (transfer.read_counter, _f64),
    "ReadCounterF64Ex": (transfer.read_counter, _f64),
    "ReadCounterU32": (transfer.read_counts, _u32),
    "ReadCounterU32Ex": (transfer.read_counts, _u32),
}
SCALAR_READS = {
    "ReadAnalogScalarF64": transfer.read_analog,
    "ReadDigitalScalarU32": transfer.read_words,
    "ReadCounterScalarF64": transfer.read_counter,
    "ReadCounterScalarU32": transfer.read_counts,
}
WRITES: dict[str, tuple[Callable[..., int], Any]] = {
    "WriteAnalogF64": (transfer.write_analog, _f64),
    "WriteBinaryI16": (transfer.write_codes, _i16),
    "WriteBinaryI32": (transfer.write_codes, _i32),
    "WriteBinaryU16": (transfer.write_codes, _u16),
    "WriteBinaryU32": (transfer.write_codes, _u32),
    "WriteDigitalU8": (transfer.write_words, _u8),
    "WriteDigitalU16": (transfer.write_words, _u16),
    "WriteDigitalU32": (transfer.write_words, _u32),
    "WriteDigitalLines": (transfer.write_lines, _u8),
}
SCALAR_WRITES = {
    "WriteAnalogScalarF64": transfer.write_analog,
    "WriteDigitalScalarU32": transfer.write_words,
}
# Arguments that the protocol calls otherwise than the package.
OTHER_NAMES = {"r0": "r_0", "r1": "r_1"}
PULSES = {"Freq": transfer.by_frequency, "Time": transfer.by_time}


class SessionError(Exception):
    """A session that must be new exists, or one to attach to does not.

    The answer is a status of gRPC and no code of NI-DAQmx. Source: ni/grpc-device,
    source/server/session_repository.cpp.
    """

    def __init__(self, name: str, *, exists: bool) -> None:
        self.exists = exists
        super().__init__(f"session {name!r} {'already exists' if exists else 'does not exist'}")


class Service:
    """All calls of NI's service on one system."""

    def __init__(self, system: System) -> None:
        self.system = system
        self._sessions: dict[str, int] = {}
        api = library.api()
        self._methods = {f.c_name.removeprefix("DAQmx"): f.method for f in api.functions}
        self._attributes = api.attributes

    # From requests to arguments and back

    def arguments(self, request: Any) -> dict[str, Any]:
        """A request's fields by the names that the model's functions have for them."""
        values: dict[str, Any] = {}
        for field in request.DESCRIPTOR.fields:
            name, oneof = field.name, field.containing_oneof
            if oneof is not None and request.WhichOneof(oneof.name) != name:
                values.setdefault(name.removesuffix("_raw"), 0)
                continue
            value = getattr(request, name)
            if field.message_type is not None and field.message_type.name == "Session":
                value = self.handle(value)
            elif field.message_type is not None and field.message_type.name == "Timestamp":
                value = _from_timestamp(value)
            elif field.is_repeated:
                value = list(value)
            values[name.removesuffix("_raw")] = value
        return {OTHER_NAMES.get(name, name): value for name, value in values.items()}

    def handle(self, session: Any) -> int:
        return self._sessions.get(session.name, 0)

    def task(self, request: Any) -> Task:
        return self.system.task(self.handle(request.task))

    def answer(self, name: str, request: Any) -> Any:
        """The response to one call; DaqmxError where NI-DAQmx would give an error."""
        method = SERVICE.methods_by_name[name]
        response = getattr(messages, method.output_type.name)
        if name in READS:
            return self._read(name, request, response)
        if name in SCALAR_READS:
            block, failure = SCALAR_READS[name](
                self.system, self.handle(request.task), 1, request.timeout
            )
            if failure is not None:
                raise failure
            number = block.flat[0]
            return response(value=float(number) if name.endswith("F64") else int(number))
        if name in WRITES:
            return self._write(name, request, response)
        if name in SCALAR_WRITES:
            SCALAR_WRITES[name](
                self.system, self.handle(request.task), np.array([[float(request.value)]]),
                auto_start=request.auto_start, timeout_s=request.timeout,
            )  # fmt: skip
            return response()
        if name in WAVEFORMS:
            return WAVEFORMS[name](self.system, self.task(request), request, response)
        if name.startswith("ReadPower"):
            return self._power(name, request, response)
        if name.startswith(("ReadCtr", "WriteCtr")):
            return self._pulses(name, request, response)
        special = SPECIAL.get(name)
        if special is not None:
            return special(self, request, response)
        match = _PROPERTY.match(name)
        if match is not None:
            return self._property(match, request, response)
        function = FUNCTIONS.get(self._methods.get(name, ""))
        if function is None:
            raise DaqmxError(errors.FUNCTION_NOT_SUPPORTED, Function=f"DAQmx{name}")
        result = function(self.system, **self.arguments(request))
        outputs = [f.name for f in method.output_type.fields if f.name != "status"]
        if name == "WaitForValidTimestamp":
            return response(timestamp=_to_timestamp(result))
        results = result if isinstance(result, tuple) else (result,)
        return response(**dict(zip(outputs, results, strict=False)))

    def _read(self, name: str, request: Any, response: Any) -> Any:
        read, dtype = READS[name]
        n, layout = request.num_samps_per_chan, getattr(request, "fill_mode_raw", 0)
        block, failure = read(self.system, self.handle(request.task), n, request.timeout)
        lines = name == "ReadDigitalLines"
        size = request.array_size_in_bytes if lines else request.array_size_in_samps
        out = np.zeros(size, dtype=dtype)
        transfer.lay_out(out, block, n if failure is None else -1, layout)
        as_bytes = dtype is _u8
        facts: dict[str, Any] = {"samps_per_chan_read": block.shape[1]}
        if lines:
            facts["num_bytes_per_samp"] = block.shape[2]
        return response(
            status=0 if failure is None else failure.code,
            read_array=out.tobytes() if as_bytes else out.tolist(), **facts,
        )  # fmt: skip

    def _write(self, name: str, request: Any, response: Any) -> Any:
        write, dtype = WRITES[name]
        handle, n = self.handle(request.task), request.num_samps_per_chan
        data = request.write_array
        flat = np.frombuffer(data, dtype) if isinstance(data, bytes) else np.array(data, dtype)
        lines = name == "WriteDigitalLines"
        shape = transfer.shape_of(self.system, handle, n, lines=lines)
        block = transfer.taken_apart(flat, shape, request.data_layout_raw)
        done = write(
            self.system, handle, block if lines else block.astype(float),
            auto_start=request.auto_start, timeout_s=request.timeout,
        )  # fmt: skip
        return response(samps_per_chan_written=done)

    def _power(self, name: str, request: Any, response: Any) -> Any:
        handle = self.handle(request.task)
        codes = name == "ReadPowerBinaryI16"
        read = transfer.read_power_codes if codes else transfer.read_power
        n = 1 if name == "ReadPowerScalarF64" else request.num_samps_per_chan
        block, failure = read(self.system, handle, n, request.timeout)
        if name == "ReadPowerScalarF64":
            if failure is not None:
                raise failure
            return response(voltage=float(block[0].flat[0]), current=float(block[1].flat[0]))
        number = int if codes else float
        arrays = []
        for values in block:
            out = np.zeros(request.array_size_in_samps)
            transfer.lay_out(out, np.asarray(values), n, request.fill_mode_raw)
            arrays.append([number(v) for v in out])
        return response(
            status=0 if failure is None else failure.code, samps_per_chan_read=block.shape[2],
            read_array_voltage=arrays[0], read_array_current=arrays[1],
        )  # fmt: skip

    def _pulses(self, name: str, request: Any, response: Any) -> Any:
        kind = re.sub(r"^(Read|Write)Ctr|Scalar$", "", name)
        handle, scalar = self.handle(request.task), name.endswith("Scalar")
        fields = [f.name for f in response.DESCRIPTOR.fields]
        if name.startswith("Write"):
            parts = [f.name for f in request.DESCRIPTOR.fields][-2:]
            first, second = (np.ravel(np.array(getattr(request, g), float)) for g in parts)
            if kind == "Ticks":
                tick_s = transfer.tick_s(self.system, handle)
                high_s, low_s = transfer.by_ticks(first, second, tick_s)
            else:
                high_s, low_s = PULSES[kind](first, second)
            done = transfer.write_pulses(
                self.system, handle, high_s, low_s, auto_start=request.auto_start
            )
            return response() if scalar else response(num_samps_per_chan_written=done)
        n = 1 if scalar else request.num_samps_per_chan
        block, failure = transfer.read_pulses(self.system, handle, n, request.timeout)
        number = int if kind == "Ticks" else float
        if scalar:
            if failure is not None:
                raise failure
            one = {fields[1]: number(block[0].flat[0]), fields[2]: number(block[1].flat[0])}
            return response(**one)
        both = [[number(v) for v in values.reshape(-1)] for values in block]
        return response(
            status=0 if failure is None else failure.code,
            samps_per_chan_read=block.shape[2], **{fields[1]: both[0], fields[2]: both[1]},
        )  # fmt: skip

    def _property(self, match: re.Match[str], request: Any, response: Any) -> Any:
        verb, owner = match[1], re.sub(r"(?<!^)(?=[A-Z])", "_", match[2]).lower()
        values = self.arguments(request)
        number, value = values.pop("attribute"), values.pop("value", None)
        handle = values.pop("task", 0)
        name = next((v for k, v in values.items() if isinstance(v, str) and k != "size"), "")
        attribute = self._attributes.get((owner, number))
        if attribute is None:
            raise DaqmxError(errors.PROPERTY_NOT_SUPPORTED, Property=hex(number))
        if verb == "Set":
            properties.put(self.system, owner, handle, name, attribute, value)
            return response()
        if verb == "Reset":
            properties.reset(self.system, owner, handle, name, attribute)
            return response()
        content = properties.get(self.system, owner, handle, name, attribute)
        return response(**_as_fields(attribute, content, response))

    # Calls that are not like others

    def create_task(self, request: Any, response: Any) -> Any:
        return self._session(
            request, response, lambda: self.system.create(request.session_name).handle
        )

    def create_watchdog(self, request: Any, response: Any) -> Any:
        return self._session(
            request, response,
            lambda: FUNCTIONS["create_watchdog_timer_task_ex"](
                self.system, device_name=request.device_name, session_name=request.session_name,
                timeout=request.timeout,
            ),
        )  # fmt: skip

    def load_task(self, request: Any, response: Any) -> Any:
        return self._session(
            request, response,
            lambda: FUNCTIONS["load_task"](self.system, session_name=request.session_name),
        )  # fmt: skip

    def _session(self, request: Any, response: Any, create: Callable[[], int]) -> Any:
        name, wish = request.session_name, request.initialization_behavior
        known = self._sessions.get(name) in self.system.tasks and bool(name)
        if known and wish != INITIALIZE_NEW:
            return response(task=Session(name=name), new_session_initialized=False)
        if known or wish == ATTACH:
            raise SessionError(name, exists=known)
        handle = create()
        name = name or f"session {handle}"
        self._sessions[name] = handle
        return response(task=Session(name=name), new_session_initialized=True)

    def clear_task(self, request: Any, response: Any) -> Any:
        self.system.clear(self.task(request))
        self._sessions.pop(request.task.name, None)
        return response()

    def power_up_states(self, request: Any, response: Any) -> Any:
        entries, known = request.power_up_states, {"device_name": request.device_name}
        analog = "Analog" in request.DESCRIPTOR.name
        if analog:
            known["channel_type"] = [e.channel_type for e in entries]
        function = "set_analog_power_up_states" if analog else "set_digital_power_up_states"
        FUNCTIONS[function](
            self.system, channel_names=[e.channel_names for e in entries],
            state=[e.state for e in entries], **known,
        )  # fmt: skip
        return response()

    def error_string(self, request: Any, response: Any) -> Any:
        return response(error_string=errors.text(request.error_code))

    def raw_read(self, request: Any, response: Any) -> Any:
        data, failure, n, width = transfer.read_raw(
            self.system, self.handle(request.task), request.num_samps_per_chan, request.timeout
        )
        return response(
            status=0 if failure is None else failure.code,
            read_array=data.ljust(request.array_size_in_bytes, b"\0"), samps_read=n,
            num_bytes_per_samp=width,
        )  # fmt: skip

    def raw_write(self, request: Any, response: Any) -> Any:
        done = transfer.write_raw(
            self.system, self.handle(request.task), request.num_samps, request.write_array,
            auto_start=request.auto_start, timeout_s=request.timeout,
        )  # fmt: skip
        return response(samps_per_chan_written=done)

    def unlisten(self, kind: str) -> Callable[[Any, Any, Any], Any]:
        def action(_: Service, request: Any, response: Any) -> Any:
            self.system.listen(self.task(request), kind, None)
            return response()

        return action


def _from_timestamp(value: Any) -> tuple[int, int]:
    """A time since 1904, as (2**-64 s, s)."""
    return (value.nanos * 2**64) // 10**9, value.seconds + UNIX_1904_S


def _to_timestamp(value: tuple[int, int]) -> Timestamp:
    lsb, msb = value
    return Timestamp(seconds=msb - UNIX_1904_S, nanos=(lsb * 10**9) >> 64)


def _as_fields(attribute: Attribute, value: Any, response: Any) -> dict[str, Any]:
    names = [f.name for f in response.DESCRIPTOR.fields]
    if attribute.type == "timestamp":
        return {"value": _to_timestamp(value)}
    if attribute.type == "bytes":
        return {"value": bytes(value)}
    if "value_raw" in names:  # an enumeration: the package reads the bare number
        whole = [int(v) for v in value] if isinstance(value, list | tuple) else int(value)
        return {"value_raw": whole}
    if attribute.type == "string":
        return {"value": str(value)}
    if isinstance(value, list | tuple):
        number = float if attribute.type.startswith("double") else int
        return {"value": [number(v) for v in value]}
    if attribute.type == "bool":
        return {"value": bool(value)}
    return {"value": float(value) if attribute.type == "double" else int(value)}


SPECIAL: dict[str, Callable[[Service, Any, Any], Any]] = {
    "CreateTask": Service.create_task,
    "LoadTask": Service.load_task,
    "CreateWatchdogTimerTaskEx": Service.create_watchdog,
    "ClearTask": Service.clear_task,
    "SetAnalogPowerUpStates": Service.power_up_states,
    "SetDigitalPowerUpStates": Service.power_up_states,
    "GetErrorString": Service.error_string,
    "ReadRaw": Service.raw_read,
    "WriteRaw": Service.raw_write,
    "UnregisterEveryNSamplesEvent": lambda s, q, r: s.unlisten("every_n")(s, q, r),
    "UnregisterDoneEvent": lambda s, q, r: s.unlisten("done")(s, q, r),
    "UnregisterSignalEvent": lambda s, q, r: s.unlisten("signal")(s, q, r),
}
