"""Parallel work on the cores of this computer or of a Dask cluster."""

import logging
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar

from hil.errors import ConfigError

Item = TypeVar("Item", bound=tuple[Any, ...])
R = TypeVar("R")


def through_dask(
    items: Sequence[Item], work: Callable[..., R], scheduler: str | None
) -> Generator[tuple[Item, R]]:
    """Yield each item with the result of `work(*item)`, in the order in which they finish.

    Work in progress is cancelled when the caller closes the generator.

    Parameters
    ----------
    scheduler : address of a Dask scheduler; None for a cluster of this computer's cores

    Raises
    ------
    ConfigError
        Dask is not installed, or no scheduler answers.
    """
    try:
        from distributed import Client, LocalCluster, as_completed
    except ImportError:
        raise ConfigError(
            "so much work, or --scheduler, needs Dask: pip install hil-arrays[sweep]"
        ) from None
    with ExitStack() as stack:
        if scheduler is None:
            with _interrupts_ignored():
                cluster = LocalCluster(  # type: ignore[no-untyped-call]
                    threads_per_worker=1, dashboard_address=":0", silence_logs=logging.ERROR
                )
            stack.enter_context(cluster)
            client = Client(cluster)  # type: ignore[no-untyped-call]
        else:
            try:
                client = Client(scheduler, timeout="3s")  # type: ignore[no-untyped-call]
            except (OSError, ValueError, KeyError) as error:
                raise ConfigError(
                    f"--scheduler {scheduler}: no Dask scheduler answers there "
                    f"({type(error).__name__}): give its address, such as tcp://host:8786"
                ) from None
        stack.enter_context(client)
        futures = [client.submit(work, *item, pure=False) for item in items]
        item_of = dict(zip((f.key for f in futures), items, strict=True))
        try:
            for future, rows in as_completed(futures, with_results=True):  # type: ignore[no-untyped-call]
                yield item_of[future.key], rows
                future.release()
        finally:
            client.cancel(futures)  # type: ignore[no-untyped-call]


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
