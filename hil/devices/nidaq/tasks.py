"""Input tasks of a card: built once, read without a question to the library."""

import contextlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from hil.calibration.signal_chain import rails
from hil.devices.nidaq import abilities
from hil.devices.nidaq.channels import AnalogInput, CardPlan, EncoderInput, device_of
from hil.devices.nidaq.errors import SAMPLES_NOT_YET_AVAILABLE

if TYPE_CHECKING:
    from nidaqmx import Task
    from nidaqmx.system.watchdog import WatchdogTask

BUFFER_S = 2.0
Sample = TypeVar("Sample", np.float64, np.uint32)


class AnalogReader:
    """Voltage and bridge inputs of a card in one task.

    Attributes
    ----------
    converters : (rails, steps)
        Of every channel: lowest and highest reading that its converter vouches for, one step.
    """

    def __init__(self, name: str, plan: CardPlan) -> None:
        from nidaqmx import Task
        from nidaqmx.stream_readers import AnalogMultiChannelReader

        self.task = Task()
        try:
            for channel in plan.analog:
                _add_analog(self.task, plan, channel)
            _time(name, self.task, plan, source="")
            self.converters = _converters(self.task, plan)
        except BaseException:
            self.task.close()
            raise
        self._reader = AnalogMultiChannelReader(self.task.in_stream)
        self._reader.verify_array_shape = False
        self._buffer = _Buffer(len(plan.analog), np.float64)
        self._one = np.empty(len(plan.analog))

    def follow(self, name: str, plan: CardPlan) -> None:
        """From the next start on, sample on another card's clock, or start with it."""
        if plan.clock_from:
            clock = f"/{_timing_owner(name, plan.clock_from)}/ai/SampleClock"
            _time(name, self.task, plan, source=clock)
        if plan.start_from:
            trigger = f"/{_timing_owner(name, plan.start_from)}/ai/StartTrigger"
            self.task.triggers.start_trigger.cfg_dig_edge_start_trig(trigger)

    def block(self, n: int, timeout_s: float) -> NDArray[np.float64] | None:
        """The next n samples, (C, n); None where they are not all there yet."""
        return self._buffer.read(self._reader.read_many_sample, n, timeout_s)

    def restart(self) -> None:
        """Forget what was left of an earlier acquisition."""
        self._buffer.restart()

    def waiting(self) -> int:
        """Samples of every channel that have come and were not given: a question."""
        return int(self.task.in_stream.avail_samp_per_chan) + self._buffer.n_waiting

    def one(self, timeout_s: float) -> NDArray[np.float64]:
        """A reading of now, or of the next sample clock, (C, 1)."""
        self._reader.read_one_sample(self._one, timeout=timeout_s)
        return self._one[:, None]


class CounterReader:
    """One encoder; its task takes its samples on the analogue inputs' clock."""

    def __init__(self, name: str, plan: CardPlan, channel: EncoderInput) -> None:
        from nidaqmx import Task
        from nidaqmx.constants import AngleUnits, EncoderType, EncoderZIndexPhase
        from nidaqmx.stream_readers import CounterReader as Reader

        self.task = Task()
        try:
            a, b = channel.index_phase.split("_")
            counter = self.task.ci_channels.add_ci_ang_encoder_chan(
                plan.physical(channel.terminal),
                channel.name,
                decoding_type=EncoderType.X_4,
                zidx_enable=channel.index_count is not None,
                zidx_val=channel.index_count or 0.0,
                zidx_phase=EncoderZIndexPhase[f"A{a}_B{b}".upper()],
                units=AngleUnits.TICKS,
                pulses_per_rev=channel.encoder.counts_per_turn // 4,
            )
            for line in _filtered_lines(channel):
                setattr(
                    counter, f"ci_encoder_{line}_input_dig_fltr_min_pulse_width", channel.filter_s
                )
                setattr(counter, f"ci_encoder_{line}_input_dig_fltr_enable", True)
            _time(name, self.task, plan, source=f"/{_clock_owner(name, plan)}/ai/SampleClock")
        except BaseException:
            self.task.close()
            raise
        self._reader = Reader(self.task.in_stream)
        self._reader.verify_array_shape = False
        self._buffer = _Buffer(1, np.uint32)
        self._encoder = channel.encoder

    def block(self, n: int, timeout_s: float) -> NDArray[np.uint32] | None:
        """The next n counts as the counter holds them; None where they are not all there."""
        counts = self._buffer.read(self._reader.read_many_sample_uint32, n, timeout_s)
        return None if counts is None else counts[0]

    def restart(self) -> None:
        """Forget what was left of an earlier acquisition."""
        self._buffer.restart()

    def one(self, timeout_s: float) -> NDArray[np.uint32]:
        counts: NDArray[np.uint32] = self._buffer.view(1)[0]
        counts[0] = self._reader.read_one_sample_uint32(timeout=timeout_s)
        return counts


class LineReader:
    """Digital inputs, read on demand; between `start` and `stop` the lines belong to it."""

    def __init__(self, plan: CardPlan) -> None:
        from nidaqmx import Task
        from nidaqmx.constants import LineGrouping
        from nidaqmx.stream_readers import DigitalMultiChannelReader

        self.task = Task()
        try:
            for line in plan.lines_in:
                self.task.di_channels.add_di_chan(
                    plan.physical(line.terminal), line.name, LineGrouping.CHAN_PER_LINE
                )
        except BaseException:
            self.task.close()
            raise
        self._reader = DigitalMultiChannelReader(self.task.in_stream)
        self._reader.verify_array_shape = False
        self._levels = np.zeros(len(plan.lines_in), dtype=bool)
        self._started = False

    def start(self) -> None:
        """Start once, where that is not done."""
        if not self._started:
            self.task.start()
            self._started = True

    def stop(self) -> None:
        """Let others have the lines."""
        if self._started:
            self.task.stop()
            self._started = False

    def levels(self) -> NDArray[np.bool_]:
        self._reader.read_one_sample_one_line(self._levels, timeout=0.1)
        return self._levels


class _Buffer(Generic[Sample]):
    """Memory for blocks of any length, taken once and seen as (C, n) without a copy.

    A read that finds fewer samples than asked takes those there are all the same, in the first
    columns. They wait here for the rest of their block, or for a later one.
    """

    def __init__(self, n_channels: int, dtype: type[Sample]) -> None:
        self._n_channels = n_channels
        self._memory: NDArray[Sample] = np.empty(0, dtype=dtype)
        self._views: dict[int, NDArray[Sample]] = {}
        self.restart()

    @property
    def n_waiting(self) -> int:
        return int(self._waiting.shape[1])

    def restart(self) -> None:
        self._waiting: NDArray[Sample] = np.empty((self._n_channels, 0), dtype=self._memory.dtype)

    def read(self, read: Callable[..., object], n: int, timeout_s: float) -> NDArray[Sample] | None:
        """A block of n samples by a stream reader's method; None where it is not whole yet."""
        from nidaqmx.errors import DaqError

        missing = n - self.n_waiting
        if missing <= 0:  # those of a late tick, which asked for more
            block, self._waiting = self._waiting[:, :n].copy(), self._waiting[:, n:]
            return block
        block = self.view(missing)
        try:
            read(block, number_of_samples_per_channel=missing, timeout=timeout_s)
        except DaqError as error:
            if error.error_code != SAMPLES_NOT_YET_AVAILABLE:
                raise
            n_read = getattr(error, "samps_per_chan_read", 0)
            self._waiting = np.hstack((self._waiting, block[:, :n_read]))
            return None
        if missing < n:
            block = np.hstack((self._waiting, block))
            self.restart()
        return block

    def view(self, n: int) -> NDArray[Sample]:
        """Room for n samples of every channel."""
        view = self._views.get(n)
        if view is None:
            if len(self._memory) < n * self._n_channels:
                self._memory = np.empty(n * self._n_channels, dtype=self._memory.dtype)
                self._views.clear()
            view = self._memory[: n * self._n_channels].reshape(self._n_channels, n)
            self._views[n] = view
        return view


def _filtered_lines(channel: EncoderInput) -> str:
    """Lines of the encoder that have a digital filter."""
    if channel.filter_s is None:
        return ""
    return "ab" if channel.index_count is None else "abz"


def _add_analog(task: "Task", plan: CardPlan, channel: AnalogInput) -> None:
    from nidaqmx.constants import BridgeConfiguration, BridgeUnits, TerminalConfiguration

    wiring = {
        "default": TerminalConfiguration.DEFAULT,
        "differential": TerminalConfiguration.DIFF,
        "single_ended": TerminalConfiguration.RSE,
        "non_referenced": TerminalConfiguration.NRSE,
    }[channel.wiring]
    physical, widest = plan.physical(channel.terminal), channel.range_raw
    if channel.bridge is None:
        task.ai_channels.add_ai_voltage_chan(
            physical, channel.name, wiring, min_val=-widest, max_val=widest
        )
    else:
        task.ai_channels.add_ai_bridge_chan(
            physical,
            channel.name,
            min_val=-widest,
            max_val=widest,
            units=BridgeUnits.MILLIVOLTS_PER_VOLT,
            bridge_config=BridgeConfiguration[f"{channel.bridge.arms}_bridge".upper()],
            voltage_excit_val=channel.bridge.excitation_V,
            nominal_bridge_resistance=channel.bridge.resistance_Ohm,
        )


def _time(name: str, task: "Task", plan: CardPlan, *, source: str) -> None:
    from nidaqmx.constants import AcquisitionType

    acquisition = plan.acquisition
    if acquisition.kind == "on_demand":
        return
    in_blocks = acquisition.kind == "block"
    task.timing.cfg_samp_clk_timing(
        acquisition.rate_Hz,
        source=source,
        sample_mode=(
            AcquisitionType.CONTINUOUS if in_blocks else AcquisitionType.HW_TIMED_SINGLE_POINT
        ),
        samps_per_chan=max(2, round(BUFFER_S * acquisition.rate_Hz)),
    )
    if not source:
        abilities.check_clock(name, acquisition.rate_Hz, task.timing.samp_clk_rate)


def _converters(task: "Task", plan: CardPlan) -> tuple[list[tuple[float, float]], list[float]]:
    """Rails and steps of the ranges that the card has chosen."""
    ends, steps = [], []
    for channel, converter in zip(plan.analog, task.ai_channels, strict=True):
        per_unit = 1.0 if channel.bridge is None else 1e3  # the card's range is in V, or V/V
        low, high = per_unit * converter.ai_rng_low, per_unit * converter.ai_rng_high
        bits = int(converter.ai_resolution)
        ends.append(rails(low, high, bits))
        steps.append((high - low) / 2.0**bits)
    return ends, steps


def _clock_owner(name: str, plan: CardPlan) -> str:
    """The device whose analogue inputs make the sample clock: a module's chassis, or the card."""
    first = device_of(plan.physical(plan.analog[0].terminal)) if plan.analog else plan.card
    return _timing_owner(name, first)


def _timing_owner(name: str, device: str) -> str:
    return str(abilities.owner_of(abilities.find(name, device)).name)


def close_all(tasks: Sequence["Task | WatchdogTask"]) -> None:
    """Close every task, whichever fail: a lost card cannot even be let go."""
    from nidaqmx.errors import DaqError

    for task in tasks:
        with contextlib.suppress(DaqError):
            task.close()
