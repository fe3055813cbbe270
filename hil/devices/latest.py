"""Instruments that give readings at their own rate: the last reading, with its age."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

from hil.devices.tables import InstrumentTable
from hil.errors import DeviceError, one_line

FIRST_S = 3.0  # wait for the first reading
now_s = time.monotonic
InstrumentT = TypeVar("InstrumentT", bound=InstrumentTable)


class LatestReading(ABC, Generic[InstrumentT]):
    """Base of instruments whose readings come from a thread or from callbacks of a driver.

    A subclass connects in `_connect` and disconnects in `_disconnect`. It gives readings to `take`:
    from `_poll`, which a thread calls until the end, or from its driver's callbacks if it has no
    `_poll`. Errors of the maker's library become one DeviceError of the next `read`.

    Parameters
    ----------
    table : the device's table
    address : where the instrument is, for messages
    remedy : what to do if no reading comes

    Attributes
    ----------
    age_s, taken_s : age of the sample that `read` gave last, and its time since `open`
    """

    def __init__(self, table: InstrumentT, address: str, remedy: str) -> None:
        self._table = table
        self._address = address
        self._remedy = remedy
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._last: tuple[tuple[float, ...], float] | None = None
        self._fault = ""
        self._opened_s = 0.0
        self.age_s = self.taken_s = 0.0

    @abstractmethod
    def _connect(self) -> None:
        """Connect; the library's own errors are translated by `open`."""

    @abstractmethod
    def _disconnect(self) -> None:
        """Disconnect, if it is connected."""

    def open(self) -> None:
        """Connect and wait for the first reading."""
        self._opened_s = now_s()
        try:
            self._connect()
        except DeviceError as error:
            self.close()
            raise DeviceError(f"{self._address}: {error}") from None
        except Exception as error:  # every maker's library raises its own
            self.close()
            raise DeviceError(f"{self._address}: cannot be opened ({_message(error)})") from None
        if hasattr(self, "_poll"):
            self._thread = threading.Thread(target=self._run, daemon=True, name=self._address)
            self._thread.start()
        end_s = now_s() + FIRST_S
        while self._last is None and not self._fault and now_s() < end_s:
            time.sleep(0.01)
        if self._last is None:
            fault = self._fault or f"sent no reading within {FIRST_S:g} s: {self._remedy}"
            self.close()
            raise DeviceError(f"{self._address}: {fault}")

    def _run(self) -> None:
        """Poll until the end or the first error."""
        try:
            while not self._ended.is_set():
                self._poll()  # type: ignore[attr-defined]
        except DeviceError as error:
            self.fail(str(error))
        except Exception as error:  # every maker's library raises its own
            self.fail(f"is gone ({_message(error)}): plug it in again")

    def notes(self) -> list[str]:
        """What is to be said since the last call."""
        return []

    def take(self, values: Sequence[float], t_s: float) -> None:
        """Keep a reading; t_s is the time `now_s()` of its sample."""
        self._last = tuple(values), t_s

    def fail(self, fault: str) -> None:
        """End reading: the next `read` raises a DeviceError with this text."""
        self._fault = self._fault or fault

    def read(self, t_s: float) -> tuple[float, ...]:
        """The last reading; raises DeviceError if the instrument cannot be read any more."""
        if self._fault:
            raise DeviceError(f"{self._address}: {self._fault}")
        if self._last is None:
            raise DeviceError(f"{self._address}: is not open")
        values, sampled_s = self._last
        self.age_s = now_s() - sampled_s
        self.taken_s = sampled_s - self._opened_s
        return values

    def close(self) -> None:
        """End the thread and disconnect."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(2.0)
        self._disconnect()


def _message(error: Exception) -> str:
    return one_line(" ".join(str(error).split()))
