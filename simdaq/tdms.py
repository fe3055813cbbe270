"""Logging of acquired samples to a TDMS file, in engineering units.

Source: NI white paper, "TDMS File Format Internal Structure": a file is a row of segments, each
a lead-in, the objects with their properties, and raw data.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
from nidaqmx.constants import LoggingMode, LoggingOperation
from numpy.typing import NDArray

from simdaq import errors
from simdaq.errors import DaqmxError

VERSION = 4713
META_DATA, NEW_OBJECTS, RAW_DATA = 1 << 1, 1 << 2, 1 << 3
DOUBLE, STRING, TIME = 10, 0x20, 0x44
UNIX_1904_S = 2_082_844_800


def _text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<I", len(data)) + data


def _property(name: str, value: Any) -> bytes:
    if isinstance(value, str):
        return _text(name) + struct.pack("<I", STRING) + _text(value)
    if isinstance(value, tuple):  # (whole seconds since 1904, 2**-64 s)
        return _text(name) + struct.pack("<IQq", TIME, value[1], value[0])
    return _text(name) + struct.pack("<Id", DOUBLE, value)


def _object(path: str, n_samples: int | None, properties: dict[str, Any]) -> bytes:
    index = (
        struct.pack("<I", 0xFFFFFFFF)
        if n_samples is None
        else struct.pack("<IIIQ", 20, DOUBLE, 1, n_samples)
    )
    held = b"".join(_property(name, value) for name, value in properties.items())
    return _text(path) + index + struct.pack("<I", len(properties)) + held


def _quoted(name: str) -> str:
    doubled = name.replace("'", "''")
    return f"/'{doubled}'"


class Log:
    """An open file; every block is a segment.

    Parameters
    ----------
    start_s : float
        Unix time of the first sample.

    Raises
    ------
    DaqmxError
        The file cannot be had as the operation asks for it.
    """

    def __init__(
        self, path: str, operation: int, group: str, channels: list[str], units: list[str],
        start_s: float, period_s: float,
    ) -> None:  # fmt: skip
        create = operation in (
            LoggingOperation.CREATE.value, LoggingOperation.CREATE_OR_REPLACE.value,
        )  # fmt: skip
        exists = Path(path).exists()
        if (operation == LoggingOperation.OPEN.value and not exists) or (
            operation == LoggingOperation.CREATE.value and exists
        ):
            raise DaqmxError(errors.NO_LOG_FILE, File_Path=path)
        try:
            self._file = open(path, "wb" if create else "ab")  # noqa: SIM115
        except OSError as error:
            raise DaqmxError(errors.NO_LOG_FILE, str(error.strerror), File_Path=path) from None
        whole = int(np.floor(start_s))
        begin = (whole + UNIX_1904_S, int((start_s - whole) * 2**64))
        self._group = _quoted(group)
        self._channels = [f"{self._group}{_quoted(name)}" for name in channels]
        self._about: list[dict[str, Any]] = [
            {"NI_ChannelName": name, "unit_string": unit, "wf_start_time": begin,
             "wf_increment": period_s, "wf_start_offset": 0.0}
            for name, unit in zip(channels, units, strict=True)
        ]  # fmt: skip
        self._described = False
        self._path = Path(path)
        self.n_samples = 0  # per channel in this file

    def next_path(self) -> str:
        """The file after this one: data.tdms, data_0001.tdms, data_0002.tdms."""
        stem, _, number = self._path.stem.rpartition("_")
        counted = bool(stem) and len(number) == 4 and number.isdigit()
        following = int(number) + 1 if counted else 1
        base = stem if counted else self._path.stem
        return str(self._path.with_name(f"{base}_{following:04d}{self._path.suffix}"))

    def append(self, block: NDArray[np.float64]) -> None:
        """(channels, samples) more."""
        n = block.shape[1]
        self.n_samples += n
        listed: list[tuple[str, int | None, dict[str, Any]]] = []
        if not self._described:
            listed += [("/", None, {}), (self._group, None, {})]
        for path, about in zip(self._channels, self._about, strict=True):
            listed.append((path, n, {} if self._described else about))
        self._described = True
        meta = struct.pack("<I", len(listed)) + b"".join(_object(*what) for what in listed)
        raw = np.ascontiguousarray(block, dtype="<f8").tobytes()
        flags = META_DATA | NEW_OBJECTS | RAW_DATA
        lead = b"TDSm" + struct.pack("<IIQQ", flags, VERSION, len(meta) + len(raw), len(meta))
        self._file.write(lead + meta + raw)

    def close(self) -> None:
        self._file.close()


def wanted(mode: object) -> bool:
    """A logging mode asks for a file."""
    return mode in (LoggingMode.LOG.value, LoggingMode.LOG_AND_READ.value)
