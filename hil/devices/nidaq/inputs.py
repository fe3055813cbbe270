"""Inputs of a card: analogue inputs and encoders on one sample clock."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hil.calibration.signal_chain import BlockFilter, frozen_after
from hil.devices.base import RawSink
from hil.devices.nidaq.channels import AnalogInput, CardPlan
from hil.devices.nidaq.errors import said_by
from hil.devices.nidaq.pace import packet_s
from hil.devices.nidaq.tasks import AnalogReader, CounterReader, close_all
from hil.errors import DeviceError

PATIENT_S = 2.0
WAIT_SHARE = 0.2  # longest wait for samples in a tick, as a fraction of a period
PACKETS_LOOKED_AT = 50
NOT_COUNTED = np.iinfo(np.int64).min


class Inputs:
    """Readers of one card, and their last readings.

    Attributes
    ----------
    filter : means and troubles of the analogue inputs
    counts : (E,) int array, signed counts of the encoders
    counted : (E,) bool array, whether the counts are of this tick
    card_s : the card's time of the newest sample
    delay_s : delay of the means relative to the newest sample
    packet_s : time for which the card collects samples before it transfers them, found by `sampled`
    """

    def __init__(self, name: str, plan: CardPlan) -> None:
        self._name, self._plan = name, plan
        self._acquisition = plan.acquisition
        self._counters: list[CounterReader] = []
        self._analog: AnalogReader | None = None
        try:
            for encoder in plan.encoders:
                self._counters.append(CounterReader(name, plan, encoder))
            if plan.analog:
                self._analog = AnalogReader(name, plan)
        except BaseException:
            self.close()
            raise
        rails, steps = self._analog.converters if self._analog is not None else ([], [])
        noise = [c.baseline.noise_rms_raw for c in plan.analog]
        dead_after = [
            0 if rms is None else frozen_after(rms, step, plan.acquisition.rate_Hz)
            for rms, step in zip(noise, steps, strict=True)
        ]
        self.filter = BlockFilter([low for low, _ in rails], [up for _, up in rails], dead_after)
        self.counts = np.zeros(len(plan.encoders), dtype=np.int64)
        self.counted = np.zeros(len(plan.encoders), dtype=bool)
        self._rows = np.zeros(0, dtype=row_dtype(plan))
        self._sink: RawSink | None = None
        self.packet_s = 0.0
        self._begin()

    @property
    def _readers(self) -> list[AnalogReader | CounterReader]:
        """All readers; the counters first, because the analogue inputs provide their clock."""
        return [*self._counters, *(() if self._analog is None else (self._analog,))]

    def _begin(self) -> None:
        self._n_read = 0  # samples of every channel since the start
        self._n_counts = [0] * len(self._counters)
        self.card_s = self.delay_s = 0.0

    def record_raw(self, sink: RawSink) -> None:
        """Also push every sample to `sink`."""
        self._sink = sink

    def follow(self) -> None:
        """From the next start on, be clocked or started by another card, as planned."""
        if self._analog is not None:
            with said_by(self._name, "inputs"):
                self._analog.follow(self._name, self._plan)

    def start(self) -> None:
        self._begin()
        for reader in self._readers:
            reader.restart()
            reader.task.start()

    def stop(self) -> None:
        for reader in reversed(self._readers):
            reader.task.stop()

    def close(self) -> None:
        close_all([reader.task for reader in self._readers])
        self._counters, self._analog = [], None

    def sampled(self, seconds: float) -> NDArray[np.float64]:
        """Sample the analogue inputs for this time, outside the run; returns a (C, n) array.

        Raises
        ------
        DeviceError
            No samples arrived.
        """
        reader = self._analog
        if reader is None:
            return np.zeros((0, 2))
        samples: NDArray[np.float64] | None
        n = max(2, round(seconds * self._acquisition.rate_Hz))
        with said_by(self._name, "inputs"):
            self.start()
            if self._acquisition.kind == "block":
                samples = self._packets(reader, n, seconds + PATIENT_S)
            else:
                samples = np.hstack([reader.one(PATIENT_S).copy() for _ in range(n)])
            self.stop()
        if samples is None:
            raise DeviceError(
                f"{self._name}: no samples came in {seconds + PATIENT_S:g} s: is its clock there?"
            )
        return samples

    def _packets(
        self, reader: AnalogReader, n: int, timeout_s: float
    ) -> NDArray[np.float64] | None:
        """Read n samples; the first ones as they arrive, to determine the size of a packet."""
        blocks: list[NDArray[np.float64]] = []
        sizes: list[int] = []
        missing = n
        while missing:
            first = reader.block(1 if len(sizes) < PACKETS_LOOKED_AT else missing, timeout_s)
            if first is None:
                return None
            blocks.append(first.copy())
            missing -= first.shape[1]
            n_waiting = reader.waiting() if missing else 0
            if n_waiting:
                more = reader.block(min(n_waiting, missing), timeout_s)
                if more is None:
                    return None
                blocks.append(more.copy())
                missing -= more.shape[1]
            sizes.append(first.shape[1] + n_waiting - (not sizes))  # one is of the start itself
        self.packet_s = packet_s(sizes[:PACKETS_LOOKED_AT], self._acquisition)
        return np.hstack(blocks)

    def read(self, n_periods: int) -> bool:
        """Read the samples since the last tick; returns False if not all have arrived.

        The first tick takes the first sample.
        """
        if self._acquisition.kind == "block" and self._analog is not None:
            first = self._n_read == 0
            n = 1 if first else n_periods * self._acquisition.per_tick
            patient = first and not self.packet_s
            wait_s = PATIENT_S if patient else WAIT_SHARE * self._acquisition.period_s
            return self._read_block(self._analog, n, wait_s)
        wait_s = 2.0 * self._acquisition.period_s
        if self._analog is not None:
            self.filter.take(self._analog.one(wait_s), 1)
        for i, counter in enumerate(self._counters):
            self.counts[i] = self._plan.encoders[i].encoder.signed(int(counter.one(wait_s)[0]))
            self.counted[i] = True
        return True

    def behind(self) -> int:
        """Number of unread samples of each channel; this calls the library."""
        return 0 if self._analog is None else self._analog.waiting()

    def _read_block(self, reader: AnalogReader, n: int, wait_s: float) -> bool:
        block = reader.block(n, wait_s)
        if block is None:
            self.counted[:] = False
            return False
        self.filter.take(block, n)
        rate_Hz = self._acquisition.rate_Hz
        rows = self._rows_of(n)
        rows["t_s"] = (self._n_read + np.arange(n)) / rate_Hz
        for i, channel in enumerate(self._plan.analog):
            rows[channel.raw_column] = block[i]
        for i in range(len(self._counters)):
            self._count(i, n, rows)
        self._n_read += n
        self.card_s = (self._n_read - 1) / rate_Hz
        self.delay_s = BlockFilter.delay_s(n, rate_Hz)
        if self._sink is not None:
            self._sink.push_many(rows)
        return True

    def _rows_of(self, n: int) -> NDArray[np.void]:
        if n > len(self._rows):
            self._rows = np.zeros(n, dtype=self._rows.dtype)
        return self._rows[:n]

    def _count(self, i: int, n: int, rows: NDArray[np.void]) -> None:
        """Read the counts of these samples, and skip earlier ones that arrived too late."""
        due = self._n_read + n - self._n_counts[i]
        encoder = self._plan.encoders[i]
        counts = self._counters[i].block(due, WAIT_SHARE * self._acquisition.period_s)
        self.counted[i] = counts is not None
        if counts is None:
            rows[encoder.raw_column] = NOT_COUNTED
            return
        self._n_counts[i] += due
        self.counts[i] = encoder.encoder.signed(int(counts[-1]))
        rows[encoder.raw_column] = counts[-n:].view(np.int32)


def row_dtype(plan: CardPlan) -> np.dtype[np.void]:
    """One sample of every channel with the card's time; `NOT_COUNTED` where a count is missing."""
    fields = [(c.raw_column, "<f8" if isinstance(c, AnalogInput) else "<i8") for c in plan.inputs]
    return np.dtype([("t_s", "<f8"), *fields])


def places(plan: CardPlan) -> tuple[Sequence[int], Sequence[int]]:
    """Indices of the analogue inputs and of the encoders among the inputs."""
    analog = [i for i, c in enumerate(plan.inputs) if isinstance(c, AnalogInput)]
    return analog, [i for i in range(len(plan.inputs)) if i not in analog]
