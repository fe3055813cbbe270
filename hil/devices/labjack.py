"""Analogue inputs of a LabJack T4, T7 or T8, by its maker's library LJM.

The inputs are read in command-response mode. A reading has the age of its request, which is no
less than that of its sample. Enable lines are written and read back in the same request. They go
low where the loop is silent for `watchdog_s`, and by the LabJack's watchdog where this program is.

Source: LabJack, *T-Series Datasheet*, "Digital I/O" (numbers of the lines) and "Watchdog": any
communication feeds it, and it is set while it is off.
"""

import contextlib
from math import nan
from typing import Any

from hil.devices.latest import LatestReading, now_s
from hil.devices.sensor_tables import LabJackTable

NO_READING = -9999.0  # LJM's value of an input that it could not read
GROUND = 199  # LJM's number of ground as the negative input
MV_PER_V = 1e3
FIRST = {"FIO": 0, "EIO": 8, "CIO": 16, "MIO": 20}  # LJM's number of the first line of each kind
ALL_LINES = (1 << 23) - 1
WATCHDOG, LEVELS = "WATCHDOG_ENABLE_DEFAULT", ("low", "high")


class LabJack(LatestReading[LabJackTable]):
    """The LabJack on the bench; its readings are in V, or in mV/V with an `excitation_V`."""

    def __init__(self, table: LabJackTable) -> None:
        super().__init__(table, f"LabJack {table.identifier}", "try it with LabJack's Kipling")
        channels = table.channels.values()
        self._names = [channel.terminal for channel in channels]
        self._scales = [
            1.0 if channel.excitation_V is None else MV_PER_V / channel.excitation_V
            for channel in channels
        ]
        self._lines = [line.terminal for line in table.lines.values()]
        self._senses = [line.readback for line in table.lines.values()]
        names = [*self._lines, *self._senses, *self._names]
        writes = [int(name in self._lines) for name in names]
        self._request = len(names), names, writes, [1] * len(names)
        self._wanted, self._held_s, self._changed_s = 0, 0.0, 0.0
        self._closed = [-1] * len(self._senses)
        self._ljm: Any = None
        self._handle: int | None = None

    def _connect(self) -> None:
        from labjack import ljm

        table = self._table
        self._ljm = ljm
        self._handle = ljm.openS(table.model, table.connection, table.identifier)
        settings: list[tuple[str, float]] = [(line, 0.0) for line in self._lines]
        for channel in table.channels.values():
            if channel.range_V is not None:
                settings.append((f"{channel.terminal}_RANGE", channel.range_V))
            if channel.negative is not None:
                minus = channel.negative.removeprefix("AIN")
                number = GROUND if minus == "GND" else int(minus)
                settings.append((f"{channel.terminal}_NEGATIVE_CH", number))
        if self._lines:
            outputs = sum(1 << number_of(line) for line in self._lines)
            settings += [
                (WATCHDOG, 0.0),
                ("WATCHDOG_TIMEOUT_S_DEFAULT", table.watchdog_s),
                ("WATCHDOG_STRICT_ENABLE_DEFAULT", 0.0),
                ("WATCHDOG_RESET_ENABLE_DEFAULT", 0.0),
                ("WATCHDOG_DIO_ENABLE_DEFAULT", 1.0),
                ("WATCHDOG_DIO_STATE_DEFAULT", 0.0),
                ("WATCHDOG_DIO_DIRECTION_DEFAULT", outputs),
                ("WATCHDOG_DIO_INHIBIT_DEFAULT", ALL_LINES & ~outputs),
                ("WATCHDOG_DAC0_ENABLE_DEFAULT", 0.0),
                ("WATCHDOG_DAC1_ENABLE_DEFAULT", 0.0),
                (WATCHDOG, 1.0),
            ]
        if settings:
            names, values = zip(*settings, strict=True)
            ljm.eWriteNames(self._handle, len(settings), [*names], [*values])

    def hold(self, on: bool) -> None:
        """Ask for the level of the enable lines, once in every period."""
        self._end_if_silent()
        wanted = int(on and not self._fault)
        if wanted != self._wanted:
            self._wanted, self._changed_s = wanted, now_s()
        self._held_s = now_s()

    def _end_if_silent(self) -> None:
        """Power that went off because nobody asked for it does not come back."""
        if self._wanted and now_s() - self._held_s > self._table.watchdog_s:
            self._wanted = 0
            self.fail(f"the loop was silent for {self._table.watchdog_s} s: the power is off")

    def follows(self) -> bool:
        """Whether every relay reads back as it was asked for; DeviceError once one has failed."""
        self.read(0.0)
        return all(level == self._wanted for level in self._closed)

    def _poll(self) -> None:
        try:
            self._exchange()
        except Exception:  # nobody asks after this one: the lines go low now, if they still can
            with contextlib.suppress(Exception):
                self._ljm.eWriteNames(self._handle, len(self._lines), self._lines,
                                      [0.0] * len(self._lines))  # fmt: skip
            raise

    def _exchange(self) -> None:
        self._end_if_silent()
        asked_s, level, n = now_s(), self._wanted, len(self._lines)
        levels = [float(level * write) for write in self._request[2]]
        values = self._ljm.eNames(self._handle, *self._request, levels)
        self._closed = [int(value) for value in values[n : 2 * n]]
        settled_s = self._changed_s + self._table.enable_settle_s
        for line, sense, closed in zip(self._lines, self._senses, self._closed, strict=True):
            if closed != level == self._wanted and asked_s > settled_s:
                self._wanted = 0
                self.fail(
                    f"{line} is {LEVELS[level]} and {sense} reads back {LEVELS[closed]}: check the "
                    "relay in the cells' supply, and the wire from its second contact"
                )
        pairs = zip(values[2 * n :], self._scales, strict=True)
        self.take([nan if v == NO_READING else v * scale for v, scale in pairs], asked_s)

    def _disconnect(self) -> None:
        if self._handle is not None:
            handle, self._handle = self._handle, None
            try:
                if self._lines:
                    off = [*self._lines, WATCHDOG]
                    self._ljm.eWriteNames(handle, len(off), off, [0.0] * len(off))
            finally:
                self._ljm.close(handle)


def number_of(line: str) -> int:
    """LJM's number of a digital line, such as 12 of EIO4."""
    return FIRST[line[:3]] + int(line[3:])
