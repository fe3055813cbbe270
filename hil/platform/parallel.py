"""Parallel work on the cores of this computer or of a Dask cluster.

Whoever may talk to a Dask scheduler or worker runs code as its user. On this computer they talk by
TLS, with credentials that are in memory alone and last for one command.
"""

import gc
import logging
import os
import pickle
import signal
import ssl
import sys
import threading
import time
import tomllib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from importlib.util import find_spec
from math import inf, isfinite
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from hil.errors import ConfigError, DeviceError, missing_extra, one_line
from hil.platform.provenance import numerics
from hil.platform.scratch import Scratch
from hil.platform.terminal import say

if TYPE_CHECKING:
    from distributed import Client, LocalCluster

LOOPBACK = "127.0.0.1"
FOLDER = "hil-dask-"  # beginning of the names of workers' folders
TLS = "tls://"
CREDENTIALS = ("ca", "cert", "key")  # keys of a security file, each a PEM file beside it
Item = TypeVar("Item", bound=tuple[object, ...])
R = TypeVar("R")
START_OVER_FIRST, START_S = 2.5, (4.0, 15.0)
"""New processes take START_OVER_FIRST of the first piece of work of this process until they have
loaded all code: 5 s of 2.3 s with two cores free, 13 s of 6.4 s on a busy computer. The first piece
may also compile, which the others need not repeat: START_S are the least and the most."""


class Scheduler(NamedTuple):
    """A Dask scheduler, and the file that names its credentials."""

    address: str
    security: Path | None = None


def scheduler_of(address: str | None, security: Path | None) -> Scheduler | None:
    """The scheduler that a command names; ConfigError if it names credentials without one."""
    if address is None and security is not None:
        raise ConfigError("--scheduler-security: credentials of a --scheduler: name that too")
    return None if address is None else Scheduler(address, security)


class Pace:
    """How long pieces of work take in this process, and whether more processes would save time.

    Parameters
    ----------
    jobs : number of processes; None for one a core
    """

    def __init__(self, jobs: int | None) -> None:
        self.jobs = jobs or os.cpu_count() or 1
        self._first_s, self._least_s = 0.0, inf

    def note(self, took_s: float) -> None:
        """Take the time of a piece of work; the first one also loads and compiles."""
        if self._first_s:
            self._least_s = min(self._least_s, took_s)
        self._first_s = self._first_s or took_s

    def pays(self, n_left: int) -> bool:
        """Whether new processes save more than their start takes."""
        saved_s = n_left * self._least_s * (1.0 - 1.0 / self.jobs)
        least_s, most_s = START_S
        start_s = min(max(START_OVER_FIRST * self._first_s, least_s), most_s)
        return isfinite(self._least_s) and saved_s > start_s

    def pieces_in(self, span_s: float) -> float:
        """Pieces of work that take this long, at least one; infinite while none has been timed."""
        return max(1.0, span_s / self._least_s) if isfinite(self._least_s) else inf


def on_all_cores(items: Sequence[Item], work: Callable[..., R]) -> Iterator[tuple[Item, R]]:
    """Yield each item with the result of `work(*item)`, in other processes from where on that pays.

    Without Dask all of it is done here.
    """
    left, pace = list(items), Pace(None if find_spec("distributed") else 1)
    while left and not pace.pays(len(left)):
        item, began_s = left.pop(0), time.monotonic()
        result = work(*item)
        pace.note(time.monotonic() - began_s)
        yield item, result
    if left:
        with workers(None, pace.jobs) as client, closing(through_dask(left, work, client)) as rest:
            yield from rest


@contextmanager
def workers(scheduler: Scheduler | None, jobs: int | None = None) -> "Iterator[Client]":
    """A client of Dask for `through_dask`.

    Parameters
    ----------
    scheduler : None for a cluster of this computer's cores
    jobs : number of its processes; None for one a core

    Raises
    ------
    ConfigError
        Dask is not installed, no scheduler answers, or its credentials are not valid.
    """
    try:
        import dask
        from distributed import Client
    except ImportError:
        raise missing_extra("so much work, or --scheduler,", "sweep") from None
    with ExitStack() as stack:
        # A client that failed leaves itself as Dask's default, through which xarray would write.
        stack.enter_context(dask.config.set(scheduler="threads"))
        if scheduler is None:
            folder = stack.enter_context(Scratch(FOLDER))
            stack.enter_context(_without_main())  # also for processes that replace others
            cluster = stack.enter_context(_local_cluster(folder, jobs))
            client = Client(cluster)  # type: ignore[no-untyped-call]
        else:
            client = _client_of(scheduler)
        yield stack.enter_context(client)


def through_dask(
    items: Sequence[Item], work: Callable[..., R], client: "Client"
) -> Generator[tuple[Item, R]]:
    """Yield each item with the result of `work(*item)`, in the order in which they finish.

    Work in progress is cancelled when the caller closes the generator.

    Parameters
    ----------
    client : of `workers`

    Raises
    ------
    DeviceError
        Several workers died at the same item.
    """
    from distributed import KilledWorker, as_completed

    futures = [client.submit(pickle.loads, _sealed(work, *item), pure=False) for item in items]
    item_of = dict(zip((f.key for f in futures), items, strict=True))
    try:
        for future, rows in as_completed(futures, with_results=True):  # type: ignore[no-untyped-call]
            yield item_of[future.key], rows
            future.release()
    except KilledWorker as error:
        text = one_line(f"--scheduler: several workers died at the same work: {error}")
        raise DeviceError(text) from None
    finally:
        client.cancel(futures)  # type: ignore[no-untyped-call]


class _Call:
    """A call that is made when its pickle is loaded."""

    def __init__(self, function: Callable[..., object], *arguments: object) -> None:
        self._call = (function, arguments)

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return self._call


def _sealed(function: Callable[..., object], *arguments: object) -> bytes:
    """A call as bytes, which a scheduler passes on to a worker without any code of the call.

    `pickle.loads` makes it, in the process that has the code.
    """
    from distributed.protocol.pickle import dumps

    sealed: bytes = dumps(_Call(function, *arguments))  # type: ignore[no-untyped-call]
    return sealed


def refuse_others(client: "Client") -> None:
    """Refuse workers with other versions than those of this program.

    Raises
    ------
    ConfigError
        One line about the first such worker.
    """
    try:
        theirs: dict[str, dict[str, str]] = client.run(pickle.loads, _sealed(numerics))
    except (ImportError, AttributeError) as error:
        here = numerics()["hil-arrays"]
        raise ConfigError(
            one_line(f"--scheduler: a worker has no hil-arrays {here} ({error}): install it there")
        ) from None
    if not theirs:
        say("--scheduler: it has no workers yet: waiting for one", file=sys.stderr)
    for address, versions in theirs.items():
        refuse_other(versions, numerics(), f"worker {address}")


def refuse_other(theirs: Mapping[str, str], here: Mapping[str, str], who: str) -> None:
    """Refuse a worker with other versions; ConfigError with the first that differs."""
    for name, version in here.items():
        if theirs.get(name) != version:
            raise ConfigError(
                f"--scheduler: {who}: {name} {theirs.get(name)} there, {version} here: install the "
                "same version there"
            )


def _local_cluster(folder: Path, jobs: int | None) -> "LocalCluster":
    """A cluster that listens on loopback, to holders of its credentials, without a dashboard."""
    import dask
    from distributed import LocalCluster, Security

    # A scheduler and each worker have an HTTP server, which cannot be left out: it serves nothing.
    # Their profiler and their watch over the event loop would interrupt a trial 150 times a second.
    quiet: dict[str, object] = {
        "distributed.scheduler.http.routes": [],
        "distributed.worker.http.routes": [],
        "distributed.worker.profile.enabled": False,
        "distributed.admin.tick.interval": "1s",
    }
    with dask.config.set(quiet), _interrupts_ignored(), _safe_path():
        return LocalCluster(  # type: ignore[no-untyped-call]
            host=LOOPBACK,
            protocol=TLS,
            security=Security.temporary(),  # type: ignore[no-untyped-call]
            dashboard_address=None,
            scheduler_kwargs={"dashboard": False, "dashboard_address": f"{LOOPBACK}:0"},
            local_directory=str(folder),
            n_workers=jobs,
            threads_per_worker=1,
            silence_logs=logging.ERROR,
        )


def _client_of(scheduler: Scheduler) -> "Client":
    from distributed import Client, Security

    address, file = scheduler
    encrypted, security = address.startswith(TLS), None
    if file is not None and not encrypted:
        raise ConfigError(f"--scheduler {address}: it has credentials: give its {TLS} address")
    if file is not None:
        ca, cert, key = _credentials(file)
        security = Security(  # type: ignore[no-untyped-call]
            require_encryption=True, tls_ca_file=ca, tls_client_cert=cert, tls_client_key=key
        )
    why = ""
    try:
        client = Client(address, timeout="3s", security=security)  # type: ignore[no-untyped-call]
    except ssl.SSLError as error:
        why = f"{file}: these are no credentials ({error.reason})"
    except TypeError:  # of Dask, where its own configuration has none either
        why = f"--scheduler {address}: give its credentials: --scheduler-security FILE.toml"
    except (OSError, ValueError, KeyError) as error:
        why = (
            f"--scheduler {address}: no Dask scheduler answers there "
            f"({type(error).__name__}): give its address, such as tls://host:8786"
        )
    if why:
        # Else a client that failed may end while the next one begins, and both would wait.
        gc.collect()
        raise ConfigError(why)
    if not encrypted:
        say(
            f"warning: --scheduler {address}: no credentials: whoever reaches it runs code as its "
            "user and as you: start it with TLS, and give --scheduler-security FILE.toml",
            file=sys.stderr,
        )
    return client


def _credentials(file: Path) -> list[str]:
    """The files that a security file names: authority, certificate and key of this client."""
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read ({error.strerror})") from None
    except ValueError as error:
        raise ConfigError(f"{file}: not valid TOML: {error}") from None
    for key in table:
        if key not in CREDENTIALS:
            raise ConfigError(f"{file}: {key}: unknown: give {', '.join(CREDENTIALS)}")
    paths = []
    for key in CREDENTIALS:
        if not isinstance(table.get(key), str):
            raise ConfigError(f"{file}: {key}: missing: name a PEM file beside this one")
        path = file.parent / table[key]
        if not path.is_file():
            raise ConfigError(f"{file}: {key} = '{table[key]}': no such file beside this one")
        paths.append(str(path))
    return paths


@contextmanager
def _safe_path() -> Iterator[None]:
    """Let processes started in the block import no modules from the working folder."""
    before = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONSAFEPATH"]
        else:
            os.environ["PYTHONSAFEPATH"] = before


@contextmanager
def _without_main() -> Iterator[None]:
    """Let processes started in the block not run the main program again, as `spawn` does.

    A script that calls `hil.campaign` needs no guard, and may come from standard input.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Let processes started in the block ignore Ctrl-C, so that only this process handles it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
