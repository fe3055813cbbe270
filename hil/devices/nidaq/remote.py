"""Analogue inputs of an NI card in another computer, by NI's gRPC Device Server.

The inputs are read on demand in a thread, for slow channels of a loop. A reading has the age of its
request, which is no less than that of its sample. There are no outputs: if the network fails,
nothing here could switch them off.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from hil.devices.latest import LatestReading, now_s
from hil.devices.nidaq.errors import described, first_line
from hil.devices.sensor_tables import RemoteNidaqTable
from hil.errors import DeviceError

if TYPE_CHECKING:
    import grpc
    from nidaqmx import Task
    from nidaqmx.stream_readers import AnalogMultiChannelReader

    Call = Callable[[grpc.ClientCallDetails, object], object]

ANSWER_S = 2.0  # longest wait for an answer of the server
WIRINGS = {
    "default": "DEFAULT",
    "differential": "DIFF",
    "single_ended": "RSE",
    "non_referenced": "NRSE",
}


class RemoteCard(LatestReading[RemoteNidaqTable]):
    """The card on the bench; its readings are in V."""

    def __init__(self, table: RemoteNidaqTable) -> None:
        address = f"{table.card} at {table.server}"
        super().__init__(table, address, "look at the card in NI MAX on that computer")
        self._channel: grpc.Channel | None = None
        self._task: Task | None = None
        self._reader: AnalogMultiChannelReader | None = None
        self._volts = np.empty(len(table.channels))

    def _connect(self) -> None:
        import grpc
        from nidaqmx import GrpcSessionOptions, Task
        from nidaqmx.constants import TerminalConfiguration
        from nidaqmx.stream_readers import AnalogMultiChannelReader
        from nidaqmx.system import Device

        self._channel = grpc.insecure_channel(self._table.server)
        try:
            grpc.channel_ready_future(self._channel).result(timeout=ANSWER_S)
        except grpc.FutureTimeoutError:
            raise DeviceError(
                "no answer: start NI's ni_grpc_device_server on that computer, and allow its port "
                "in the firewall there"
            ) from None
        options = GrpcSessionOptions(_with_deadline(self._channel), "")
        with _as_device_errors():
            if Device(self._table.card, grpc_options=options).is_simulated:
                raise DeviceError(
                    "is a simulated device, whose readings could be mistaken for measured ones"
                )
            self._task = Task(grpc_options=options)
            for channel in self._table.channels.values():
                wiring = TerminalConfiguration[WIRINGS[channel.wiring]]
                self._task.ai_channels.add_ai_voltage_chan(
                    f"{self._table.card}/{channel.terminal}", "", wiring,
                    min_val=-channel.range_V, max_val=channel.range_V,
                )  # fmt: skip
            self._reader = AnalogMultiChannelReader(self._task.in_stream)
            self._reader.verify_array_shape = False
            self._task.start()

    def _poll(self) -> None:
        assert self._reader is not None
        asked_s = now_s()
        with _as_device_errors():
            self._reader.read_one_sample(self._volts, timeout=ANSWER_S)
        self.take(self._volts.tolist(), asked_s)

    def _disconnect(self) -> None:
        from nidaqmx.errors import Error

        task, channel, self._task, self._channel = self._task, self._channel, None, None
        if task is not None:
            with contextlib.suppress(Error):  # a lost server cannot even be let go
                task.close()
        if channel is not None:
            channel.close()


@contextlib.contextmanager
def _as_device_errors() -> Iterator[None]:
    """Convert errors of the card and of the connection to DeviceError."""
    from nidaqmx.errors import DaqError, Error

    try:
        yield
    except DaqError as error:
        raise DeviceError(described(error)) from None
    except Error as error:
        raise DeviceError(
            f"does not answer ({first_line(error)}): check network and server"
        ) from None


def _with_deadline(channel: "grpc.Channel") -> "grpc.Channel":
    """The channel with a limit of the time of every call, which `nidaqmx` leaves unlimited."""
    import grpc

    class Deadline(grpc.UnaryUnaryClientInterceptor):  # type: ignore[misc]
        def intercept_unary_unary(
            self, call: "Call", details: grpc.ClientCallDetails, request: object
        ) -> object:
            return call(details._replace(timeout=ANSWER_S), request)

    return grpc.intercept_channel(channel, Deadline())
