"""Sessions of NI's gRPC protocol, and what only its wire carries."""

import grpc
import nidaqmx
import pytest
from nidaqmx._stubs import nidaqmx_pb2, nidaqmx_pb2_grpc
from nidaqmx.errors import RpcError
from nidaqmx.grpc_session_options import GrpcSessionOptions, SessionInitializationBehavior

from simdaq.grpc_server import serve

pytestmark = pytest.mark.library_leaks("gRPC closes its sockets some time after its server")


@pytest.fixture
def channel(system):
    server, port = serve(system)
    with grpc.insecure_channel(f"localhost:{port}") as found:
        yield found
    server.stop(None).wait()


def test_a_second_program_attaches_to_a_session_and_leaves_it_open(channel, system):
    attach = SessionInitializationBehavior.ATTACH_TO_SERVER_SESSION
    with nidaqmx.Task("shared", grpc_options=GrpcSessionOptions(channel, "shared")) as first:
        first.ai_channels.add_ai_voltage_chan("Dev1/ai0")
        options = GrpcSessionOptions(channel, "shared", initialization_behavior=attach)
        with nidaqmx.Task("shared", grpc_options=options) as second:
            assert second.channel_names == ["Dev1/ai0"]
        assert first.read() == 0.0
    assert not system.tasks
    with pytest.raises(RpcError, match="shared") as caught:
        nidaqmx.Task("shared", grpc_options=options)
    assert caught.value.rpc_code == grpc.StatusCode.FAILED_PRECONDITION


def test_a_session_that_must_be_new_is_refused_when_there_is_one(channel):
    new = SessionInitializationBehavior.INITIALIZE_SERVER_SESSION
    options = GrpcSessionOptions(channel, "one", initialization_behavior=new)
    with nidaqmx.Task("one", grpc_options=options):
        with pytest.raises(RpcError, match="one") as caught:
            nidaqmx.Task("one", grpc_options=options)
        assert caught.value.rpc_code == grpc.StatusCode.ALREADY_EXISTS


def test_an_error_is_trailing_metadata(channel):
    stub = nidaqmx_pb2_grpc.NiDAQmxStub(channel)
    with pytest.raises(grpc.RpcError) as caught:
        stub.SelfTestDevice(nidaqmx_pb2.SelfTestDeviceRequest(device_name="Dev9"))
    assert ("ni-error", "-200220") in [(m.key, m.value) for m in caught.value.trailing_metadata()]
    assert "Dev9" in caught.value.details()


def test_every_call_of_the_protocol_is_answered(channel):
    """None is UNIMPLEMENTED or breaks the server: with empty arguments all get NI's errors."""
    stub = nidaqmx_pb2_grpc.NiDAQmxStub(channel)
    service = nidaqmx_pb2.DESCRIPTOR.services_by_name["NiDAQmx"]
    assert len(service.methods) > 400
    wrong = []
    for method in service.methods:
        if method.server_streaming:
            continue
        request = getattr(nidaqmx_pb2, method.input_type.name)()
        try:
            getattr(stub, method.name)(request)
        except grpc.RpcError as error:
            codes = [m.value for m in error.trailing_metadata() if m.key == "ni-error"]
            if codes in ([], ["-50202"]):
                wrong.append(f"{method.name}: {error.details()}")
    assert not wrong
