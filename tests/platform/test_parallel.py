"""Who may connect to parallel work: holders of its credentials, on this computer."""

import gc
import os
import pickle
import socket
import ssl
import time
from contextlib import closing

import dask
import psutil
import pytest
from distributed import Client, LocalCluster, Security

from hil.errors import ConfigError, DeviceError
from hil.platform.parallel import (
    Scheduler,
    _sealed,
    on_all_cores,
    scheduler_of,
    through_dask,
    workers,
)

pytestmark = pytest.mark.library_leaks("Dask's event loops outlast its clients")
ITEMS = [(n,) for n in range(2)]


def _listening():
    """Addresses at which this process and its descendants listen."""
    me = psutil.Process()
    return {
        (found.laddr.ip, found.laddr.port)
        for process in [me, *me.children(recursive=True)]
        for found in process.net_connections("inet")
        if found.status == psutil.CONN_LISTEN
    }


def _status(port):
    """The status line of a web server's page; empty if there is no such server."""
    with socket.create_connection(("127.0.0.1", port), timeout=60.0) as connection:
        connection.sendall(b"GET /status HTTP/1.0\r\n\r\n")
        try:
            return connection.recv(64).split(b"\r\n")[0].decode()
        except OSError:
            return ""


@pytest.fixture(scope="module")
def cluster():
    """Addresses at which a local cluster at work listens, and what `_profiled` says there."""
    before = _listening()
    with closing(_results(None, _profiled)) as finished:
        _, profiled = next(finished)
        yield _listening() - before, profiled


def _profiled(_):
    """Whether Dask samples what this process does."""
    return dask.config.get("distributed.worker.profile.enabled")


def _identity(n):
    return n


def _results(scheduler, work=_identity):
    """Each item with its result, by a cluster."""
    with workers(scheduler) as client:
        yield from through_dask(ITEMS, work, client)


@pytest.mark.slow
def test_a_local_cluster_listens_on_loopback_alone_and_shows_no_page(cluster):
    listening, _ = cluster
    assert len(listening) >= 3
    assert {host for host, _ in listening} == {"127.0.0.1"}
    said = {_status(port) for _, port in listening}
    assert said <= {"", "HTTP/1.1 404 Not Found"}


def test_a_local_cluster_refuses_who_has_no_credentials_of_its_own(cluster):
    """Also who has credentials that are made in the same way."""
    closed = 0
    for _, port in cluster[0]:
        if _status(port):
            continue  # a web server that serves nothing
        with pytest.raises((OSError, ssl.SSLError)):
            Client(f"tcp://127.0.0.1:{port}", timeout="2s")
        with pytest.raises((OSError, ssl.SSLError)):
            Client(f"tls://127.0.0.1:{port}", timeout="2s", security=Security.temporary())
        gc.collect()  # clients that failed end here
        closed += 1
    assert closed >= 2


def test_nothing_samples_what_a_local_cluster_does(cluster):
    """Dask's profiler takes the interpreter from a trial 100 times a second."""
    assert cluster[1] is False


@pytest.fixture
def secured(tmp_path):
    """A cluster with TLS, and the security file of its clients."""
    security = Security.temporary()
    files = {"ca": "tls_ca_file", "cert": "tls_client_cert", "key": "tls_client_key"}
    for key, attribute in files.items():
        (tmp_path / f"{key}.pem").write_text(getattr(security, attribute))
    file = tmp_path / "security.toml"
    file.write_text("".join(f'{key} = "{key}.pem"\n' for key in files))
    with LocalCluster(
        n_workers=1, processes=False, protocol="tls://", security=security, dashboard_address=":0"
    ) as cluster:
        yield cluster.scheduler_address, file


def test_a_scheduler_with_tls_takes_the_credentials_of_a_file(secured, capsys):
    address, file = secured
    found = dict(_results(Scheduler(address, file)))
    assert found == {(0,): 0, (1,): 1}
    assert capsys.readouterr().err == ""


@pytest.mark.slow
def test_a_scheduler_with_tls_is_not_reached_without_or_with_others(secured, tmp_path):
    address, file = secured
    with dask.config.set(scheduler=None):
        with pytest.raises(ConfigError, match=r"--scheduler-security FILE\.toml"):
            next(_results(Scheduler(address)))
        assert dask.config.get("scheduler") is None  # through which xarray would write files
    others = Security.temporary()
    (tmp_path / "cert.pem").write_text(others.tls_client_cert)
    (tmp_path / "key.pem").write_text(others.tls_client_key)
    with pytest.raises(ConfigError, match="no Dask scheduler answers there"):
        next(_results(Scheduler(address, file)))


def test_a_scheduler_without_credentials_is_warned_of(capsys):
    with LocalCluster(
        n_workers=1, processes=False, protocol="tcp", dashboard_address=":0"
    ) as cluster:
        address = cluster.scheduler_address
        assert dict(_results(Scheduler(address)))
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"warning: --scheduler {address}: no credentials: whoever reaches it")


@pytest.mark.slow
def test_work_that_ends_every_worker_is_one_line():
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        workers(None, jobs=1) as client,
        pytest.raises(DeviceError, match="several workers died at the same work") as ended,
    ):
        list(through_dask([(9,)], os._exit, client))
    assert "\n" not in str(ended.value)


def test_a_scheduler_gets_bytes_that_make_the_call_where_they_are_loaded():
    sealed = _sealed(divmod, 7, 2)
    assert isinstance(sealed, bytes)
    assert pickle.loads(sealed) == (3, 1)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (None, "cannot be read"),
        ("ca", "not valid TOML"),
        ('ca = "ca.pem"', "cert: missing"),
        ('ca = "no.pem"', "ca = 'no.pem': no such file"),
        ('authority = "ca.pem"', "authority: unknown: give ca, cert, key"),
        ('ca = "ca.pem"\ncert = "ca.pem"\nkey = "ca.pem"', "these are no credentials"),
    ],
)
def test_a_security_file_that_is_wrong_is_one_line(text, wanted, tmp_path):
    (tmp_path / "ca.pem").write_text("no certificate")
    file = tmp_path / "security.toml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(ConfigError, match=wanted) as refused:
        next(_results(Scheduler("tls://127.0.0.1:9", file)))
    assert str(refused.value).startswith(f"{file}: ")
    assert "\n" not in str(refused.value)


def test_credentials_are_for_a_scheduler_with_tls(tmp_path):
    file = tmp_path / "security.toml"
    with pytest.raises(ConfigError, match="give its tls:// address"):
        next(_results(Scheduler("tcp://127.0.0.1:9", file)))
    with pytest.raises(ConfigError, match="name that too"):
        scheduler_of(None, file)
    assert scheduler_of(None, None) is None


@pytest.mark.slow
def test_work_goes_on_in_other_processes_from_where_on_that_pays(monkeypatch):
    monkeypatch.setattr("hil.platform.parallel.START_S", (0.0, 0.0))
    items = [(n,) for n in range(5)]
    where = dict(on_all_cores(items, _process_of))
    assert sorted(where) == items
    assert [where[item] == os.getpid() for item in items] == [True, True, False, False, False]


def test_little_work_stays_in_this_process():
    assert set(dict(on_all_cores(ITEMS, _process_of)).values()) == {os.getpid()}


def _process_of(n):
    time.sleep(0.01)
    return os.getpid()
