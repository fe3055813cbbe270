"""Both ways to the simulated cards: the library in this process, and NI's gRPC protocol."""

from collections.abc import Callable
from typing import Any, NamedTuple

import grpc
import nidaqmx
import pytest
from nidaqmx.system.watchdog import WatchdogTask

from simdaq import System, install
from simdaq.grpc_server import serve


class Way(NamedTuple):
    """What a test calls by the one way or the other."""

    Task: Callable[..., Any]
    Watchdog: Callable[..., Any]
    keywords: dict[str, Any]


GRPC_LEAKS = pytest.mark.library_leaks("gRPC closes its sockets some time after its server")


@pytest.fixture(params=["library", pytest.param("grpc", marks=GRPC_LEAKS)])
def connect(request):
    """Makes nidaqmx see a system; gives Task, Watchdog, and keywords for anything else."""
    close = []

    def by_library(system):
        install(system)
        return Way(nidaqmx.Task, WatchdogTask, {})

    def by_grpc(system):
        server, port = serve(system)
        channel = grpc.insecure_channel(f"localhost:{port}")
        close.extend((channel.close, lambda: server.stop(None).wait()))

        def options(name):
            return nidaqmx.GrpcSessionOptions(channel, name)

        def task(name=""):
            return nidaqmx.Task(name, grpc_options=options(name))

        def watchdog(device, timeout):
            return WatchdogTask(device, timeout=timeout, grpc_options=options(""))

        return Way(task, watchdog, {"grpc_options": options("")})

    yield {"library": by_library, "grpc": by_grpc}[request.param]
    for action in close:
        action()


@pytest.fixture
def system():
    """Time stands still but for the test; the signals are the test's."""
    found = System("held")
    found.add("PCIe-6363", "Dev1")
    return found


@pytest.fixture
def Task(connect, system):
    return connect(system).Task
