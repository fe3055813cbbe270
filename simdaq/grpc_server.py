"""NI's gRPC Device Server protocol over a simulated system, with the stubs of the package.

Requests carry the same arguments as the C functions, by the same names, so most answers are made
from the message descriptors alone. Errors travel as trailing metadata `ni-error`; a read that got
some of its samples answers with them and a status.
"""

from __future__ import annotations

import queue
import sys
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
from nidaqmx._stubs import nidaqmx_pb2 as messages
from nidaqmx.constants import EveryNSamplesEventType

from simdaq import errors
from simdaq.errors import DaqmxError, PortError
from simdaq.grpc_calls import SERVICE, Service, SessionError
from simdaq.run import Event
from simdaq.system import System

ACQUIRED = EveryNSamplesEventType.ACQUIRED_INTO_BUFFER.value
WORKERS = 64  # an event stream holds one as long as it is open


class Wire:
    """The calls of a service as gRPC makes them, errors as NI's server sends them."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.system = service.system

    def unary(self, name: str) -> Callable[[Any, Any], Any]:
        def call(request: Any, context: Any) -> Any:
            try:
                with self.system.lock:
                    self.system.catch_up()
                    return self.service.answer(name, request)
            except DaqmxError as error:
                if error.code > 0:  # a warning is no failure
                    output = SERVICE.methods_by_name[name].output_type.name
                    return getattr(messages, output)(status=error.code)
                _abort(context, error, name)
            except SessionError as error:
                code = grpc.StatusCode
                context.abort(
                    code.ALREADY_EXISTS if error.exists else code.FAILED_PRECONDITION, str(error)
                )
            except Exception as error:
                traceback.print_exc(file=sys.stderr)
                defect = DaqmxError(errors.DEFECT, f"{type(error).__name__}: {error}")
                _abort(context, defect, name)

        return call

    def stream(self, name: str) -> Callable[[Any, Any], Iterator[Any]]:
        """An event stream: open from its registration until the program closes it."""
        kind = {"RegisterEveryNSamplesEvent": "every_n", "RegisterDoneEvent": "done"}.get(
            name, "signal"
        )

        def call(request: Any, context: Any) -> Iterator[Any]:
            events: queue.SimpleQueue[Any] = queue.SimpleQueue()
            try:
                with self.system.lock:
                    task = self.service.task(request)
                    n = request.n_samples if kind == "every_n" else 0
                    what = getattr(request, "every_n_samples_event_type_raw", ACQUIRED)
                    event = Event(n, lambda *facts: events.put(facts), acquired=what == ACQUIRED)
                    self.system.listen(task, kind, event)
            except DaqmxError as error:
                _abort(context, error)
            context.add_callback(lambda: events.put(None))
            context.send_initial_metadata(())
            while (facts := events.get()) is not None:
                yield _event(kind, request, facts)
            with self.system.lock:
                if task.events.get(kind) is event:
                    self.system.listen(task, kind, None)

        return call


def _event(kind: str, request: Any, facts: tuple[Any, ...]) -> Any:
    if kind == "every_n":
        what = request.every_n_samples_event_type_raw
        return messages.RegisterEveryNSamplesEventResponse(
            every_n_samples_event_type=what, every_n_samples_event_type_raw=what,
            n_samples=facts[0],
        )  # fmt: skip
    if kind == "done":
        return messages.RegisterDoneEventResponse(status=facts[0])
    return messages.RegisterSignalEventResponse(signal_id=request.signal_id_raw)


def _abort(context: Any, error: DaqmxError, name: str = "") -> None:
    metadata = [("ni-error", str(error.code))]
    done = {"Read": "read", "Write": "written"}
    for verb, participle in done.items():
        if name.startswith(verb):  # the package then raises its error of reading or writing
            metadata.append((f"ni-samps-per-chan-{participle}", str(error.samples)))
    context.set_trailing_metadata(tuple(metadata))
    context.abort(grpc.StatusCode.UNKNOWN, error.detail)


def serve(system: System, port: int = 0, host: str = "127.0.0.1") -> tuple[Any, int]:
    """Answer NI's protocol at host:port; the running server and its port (0: any free one).

    Raises
    ------
    PortError
        The port is taken.
    """
    wire = Wire(Service(system))
    handlers = {}
    for method in SERVICE.methods:
        request = getattr(messages, method.input_type.name)
        make, call = (
            (grpc.unary_stream_rpc_method_handler, wire.stream(method.name))
            if method.server_streaming
            else (grpc.unary_unary_rpc_method_handler, wire.unary(method.name))
        )
        handlers[method.name] = make(
            call,
            request_deserializer=request.FromString,
            response_serializer=lambda message: message.SerializeToString(),
        )
    server = grpc.server(ThreadPoolExecutor(WORKERS), options=[("grpc.so_reuseport", 0)])
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(SERVICE.full_name, handlers),)
    )
    try:
        bound = server.add_insecure_port(f"{host}:{port}")
    except RuntimeError as error:
        raise PortError(f"simdaq: port {port} of {host} cannot be had: {error}") from None
    server.start()
    return server, bound
