"""Driver of an NI card: reads its inputs and writes its outputs, without status queries in a tick.

With `acquisition = "block"` (the default) the card samples on its own clock, several times per
tick. Every tick reads the samples since the last one; their mean is the reading. It is late by half
a block, which `<card>_age_s` includes. A tick waits a fifth of a period for an incomplete block;
then it has no reading, the next tick reads the block, and all later readings are a period older.
Once a second, after writing the commands, the driver queries the number of unread samples, compares
the card's time with the run's, and reads the surplus (`pace`). If a card transfers samples in
packets, the driver reads them one packet later.

The sample clock of the analogue inputs latches the encoders: force and angle of a sample are
simultaneous.
"""

import contextlib
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hil.calibration.signal_chain import BlockFilter, Chain
from hil.devices.base import ESTOP_OPEN, RawSink, card_columns, card_fault, time_columns
from hil.devices.nidaq import abilities, before
from hil.devices.nidaq.channels import AnalogInput, CardPlan, Place
from hil.devices.nidaq.errors import said_by
from hil.devices.nidaq.inputs import Inputs, places, row_dtype
from hil.devices.nidaq.lock import CardLock
from hil.devices.nidaq.outputs import Outputs
from hil.devices.nidaq.pace import Pace
from hil.devices.nidaq.read_back import ReadBack
from hil.devices.nidaq.tasks import LineReader, close_all
from hil.errors import DeviceError
from hil.loop.channels import Readings
from hil.loop.frame import Column, Commands, Frame
from hil.loop.guard import EXPIRED
from hil.loop.stages import Message
from hil.record.raw_samples import RawSamples

SETTLED_WITHIN_S = 1e-9
EXPIRED_AFTER = 1.5  # times its timeout, a watchdog that is not fed must have expired


class NiDaq:
    """An NI card, accessed with the `nidaqmx` package.

    Parameters
    ----------
    place : indices of its first channel and output in the rig's readings and commands
    sleep_s : sleeps before the run, and calls `alive` often enough for the watchdog
    simulated : whether the library is a simulation
    """

    def __init__(
        self,
        name: str,
        plan: CardPlan,
        place: Place,
        sleep_s: Callable[[float], None],
        *,
        simulated: bool,
    ) -> None:
        self.name = name
        self.simulated = simulated
        self._plan = plan
        self._place = place
        self._sleep_s = sleep_s
        self._period_s = plan.acquisition.period_s
        self._follows = bool(plan.clock_from or plan.start_from)
        self._analog_at, self._encoders_at = places(plan)
        self._analog_mask = sum(1 << at for at in self._analog_at)
        self._encoder_mask = sum(1 << at for at in self._encoders_at)
        self._messages: list[Message] = []
        self._raw_sink: RawSink | None = None
        self._locks: list[CardLock] = []
        self._inputs: Inputs | None = None
        self._lines: LineReader | None = None
        self._outputs: Outputs | None = None
        self._chains: list[Chain] = []
        self._tick: int | None = None  # None until sampling has started
        self._t_s = 0.0
        self._pace = Pace(plan.acquisition, 0.0)
        self._settled_s = math.inf  # time of the run at which the power has settled
        self._cells_at = np.array([line.index for line in plan.cells], dtype=np.int64)
        self._switched = np.zeros(len(plan.cells), dtype=np.uint8)
        self._gates = ReadBack(plan.lines_in, plan.cells)
        self._fed = True  # False while the self-test lets the watchdog expire

    @property
    def columns(self) -> list[Column]:
        plan, sim = self._plan, self.simulated
        columns = time_columns(self.name, sim)
        for c in plan.inputs:
            unit, text = ("1", "") if not isinstance(c, AnalogInput) else (c.unit, _filtered(plan))
            about = f"{c.terminal} on channel {c.name}{text}"
            columns.append(Column(c.raw_column, unit, "measured", about, simulated=sim))
        lines = [line.name for line in (*plan.lines_in, *plan.lines_out)]
        return columns + card_columns(
            self.name, [c.name for c in plan.analog], lines, sim, plan.read_back
        )

    @property
    def raw_samples(self) -> RawSamples | None:
        plan, acquisition = self._plan, self._plan.acquisition
        if acquisition.kind != "block":
            return None
        units = {c.raw_column: c.unit if isinstance(c, AnalogInput) else "1" for c in plan.inputs}
        return RawSamples(
            row_dtype(plan), {"t_s": "s", **units}, acquisition.per_tick, acquisition.rate_Hz,
            self.simulated,
        )  # fmt: skip

    def record_raw(self, sink: RawSink) -> None:
        """Also push every sample to `sink`."""
        self._raw_sink = sink

    def bind(self, frame: Frame, readings: Readings) -> None:
        self._values, self._bits = frame.values, frame.bits
        self._age_at = frame.index(f"{self.name}_age_s")
        self._clock_at = frame.index(f"{self.name}_t_s")
        flags = next(c.flags for c in frame.columns if c.name == f"{self.name}_fault_bits")
        self._gates.bind(flags)
        self._expired = 1 << flags.index(EXPIRED)
        self._faults_at = frame.bit_index(f"{self.name}_fault_bits")
        self._lines_at = frame.bit_index(f"{self.name}_line_bits") if self._plan.lines else -1
        self._raw_at = [frame.index(c.raw_column) for c in self._plan.inputs]
        self._readings = readings

    def messages(self) -> list[Message]:
        messages, self._messages = self._messages, []
        return messages

    def open(self) -> None:
        """Find the card, check its capabilities and its inputs; does not switch anything on."""
        try:
            self._open()
        except BaseException:
            with contextlib.suppress(DeviceError):
                self.close()
            raise

    def _open(self) -> None:
        name, plan = self.name, self._plan
        with said_by(name):
            devices = abilities.devices_of(name, plan)
            for device_name, device in devices.items():
                if device.is_simulated and not self.simulated:
                    raise DeviceError(
                        f"{name}: {device_name} is a simulated device, whose readings could be "
                        f"mistaken for measured ones: use --backend {name}=emulated"
                    )
                text = f"{device_name} is a {abilities.describe(device)}"
                self._messages.append(Message("info", text))
            owners = {str(o.name): o for o in map(abilities.owner_of, devices.values())}
            serials = {n: int(o.serial_num) for n, o in owners.items() if not o.is_simulated}
        for owner, serial in sorted(serials.items()):
            self._locks.append(CardLock(name, owner, serial))
        abilities.check(name, plan)
        self._outputs = Outputs(name, plan)
        with said_by(name):
            self._outputs.check()
        with said_by(name, "inputs"):
            if plan.lines_in:
                self._lines = LineReader(plan)
                self._refuse_open_estop()
            self._inputs = Inputs(name, plan)
        self._chains, messages = before.look(name, plan, self._inputs, self._outputs)
        self._messages += messages
        self._inputs.follow()
        self._set_pace(self._inputs.packet_s)
        if self._raw_sink is not None:
            self._inputs.record_raw(self._raw_sink)

    def _set_pace(self, packet_s: float) -> None:
        self._pace = Pace(self._plan.acquisition, packet_s)
        if not packet_s:
            return
        packet_ms, age_ms = 1e3 * packet_s, 1e3 * self._pace.age_max_s
        text = (
            f"samples come in packets of {packet_ms:.3g} ms: a reading is up to {age_ms:.3g} ms old"
        )
        if self._pace.age_max_s > self._plan.age_max_s:
            raise DeviceError(
                f"{self.name}: {text}, guard.reading_age_max_s = {self._plan.age_max_s:g}: raise "
                "it, or choose acquisition = 'on_demand'"
            )
        self._messages.append(Message("info", text))

    def _refuse_open_estop(self) -> None:
        if self._lines is not None:
            before.refuse_open_estop(self.name, self._plan.lines_in, self._lines.levels())

    def enable(self) -> None:
        """Start the watchdog if needed, then set the enable lines high."""
        outputs = self._outputs
        if not self._plan.lines_out or (outputs is not None and outputs.enabled):
            return
        outputs = self._start()
        with said_by(self.name, "start"):
            outputs.enable(True)
            outputs.reset_watchdog()
        self._settled_s = self._t_s + self._plan.enable_settle_s

    def ready(self) -> bool:
        """Whether the power has settled."""
        return not self._plan.lines_out or self._t_s >= self._settled_s - SETTLED_WITHIN_S

    def wait(self) -> None:
        """Block until the power has settled."""
        if not self.ready():
            self._sleep_s(self._plan.enable_settle_s)
            self._settled_s = -math.inf

    def alive(self) -> None:
        """Feed the watchdog."""
        if self._outputs is not None and self._fed:
            with said_by(self.name, "watchdog"):
                self._outputs.reset_watchdog()

    def disable(self) -> None:
        """Set the enable lines low; if that fails, `safe` tries again."""
        self._settled_s = math.inf
        if self._outputs is not None:
            with said_by(self.name, "cannot be switched off"), self._outputs.held():
                self._outputs.enable(False)

    def self_test(self, say: Callable[[str], None]) -> list[str]:
        """Prove the watchdog of lines that switch cells; leave enable lines low.

        The boards' self-test needed the power of the enable lines.
        """
        plan = self._plan
        if self._outputs is None or not (plan.lines_out or plan.cells):
            return []
        tested = self._prove_watchdog(self._start()) if plan.cells else []
        self.safe()
        if self._lines is not None:
            with said_by(self.name):
                self._lines.stop()  # the watchdog of a chassis starts before any other task
        if plan.lines_out:
            names = ", ".join(line.name for line in plan.lines_out)
            tested.append(f"{names} high during the boards' self-test, then low")
        return tested

    def _prove_watchdog(self, outputs: Outputs) -> list[str]:
        """Let the watchdog expire with all cells off, then wait until their wires have cooled.

        Raises
        ------
        DeviceError
            It has not expired.
        """
        plan = self._plan
        silent_s = EXPIRED_AFTER * plan.watchdog_s
        with said_by(self.name, "watchdog"):
            if not outputs.watchdogs.may_expire():
                tested = "its watchdog is not tested, since an expired chassis must be reset"
                self._sleep_s(plan.cools_s)
                return [tested]
            outputs.reset_watchdog()
            self._fed = False
            try:
                self._sleep_s(silent_s)
                expired = outputs.watchdogs.expired()
            finally:
                self._fed = True
        for owner, has in expired.items():
            if not has:
                raise DeviceError(
                    f"{self.name}: the watchdog of {owner} did not expire within {silent_s:g} s "
                    "without the program: do not switch cells with this card"
                )
        self._sleep_s(plan.cools_s)
        return [f"its watchdog expires within {silent_s:g} s without the program"]

    def _start(self) -> Outputs:
        """Start watchdog and outputs, all of them off, if not done yet."""
        outputs = self._outputs
        if outputs is None:
            raise DeviceError(f"{self.name}: is not open")
        if not outputs.started:
            with said_by(self.name, "start"):
                self._refuse_open_estop()
                told = {message.text for message in self._messages}
                self._messages += [m for m in outputs.start() if m.text not in told]
                self._hold_lines()
        return outputs

    def _hold_lines(self) -> None:
        if self._lines is not None:
            self._lines.start()

    def arm(self) -> None:
        """Start the outputs, and sampling if it has not started."""
        self._start()
        if self._tick is None:
            self._begin(0.0)
            if self._pace.behind_s:
                self._sleep_s(self._pace.behind_s)
                self._pace.begin(-self._pace.behind_s)

    def _begin(self, t_s: float) -> None:
        if self._inputs is None or self._outputs is None:
            raise DeviceError(f"{self.name}: is not open")
        with said_by(self.name, "start"):
            self._messages += self._outputs.watch()
            self._hold_lines()
            self._inputs.start()
        self._tick = round(t_s / self._period_s)
        self._pace.begin(t_s)
        self._reading_s = t_s

    def read(self, t_s: float) -> None:
        inputs = self._inputs
        begins = self._tick is None  # read before it is armed
        if begins:
            self._begin(t_s)
        if inputs is None or self._tick is None:
            raise DeviceError(f"{self.name}: is not open")
        self._t_s = t_s
        tick = round(t_s / self._period_s)
        n_periods, self._tick = tick - self._tick, tick
        faults = self._expired if self._outputs is not None and self._outputs.expired else 0
        with said_by(self.name, "read"):
            if self._lines is not None:
                faults |= self._take_lines(self._lines.levels())
            # The card that it follows begins in the same tick, after it.
            due = self._pace.due(t_s) and not (begins and self._follows)
            self._readings.cells_reported[self._cells_at] = self._gates.reported(self._switched)
            has_samples = due and inputs.read(n_periods)
        if has_samples:
            in_blocks = self._plan.acquisition.kind == "block"
            card_s = inputs.card_s - inputs.delay_s if in_blocks else t_s
            self._values[self._clock_at] = card_s
            self._reading_s = card_s + self._pace.start_s if in_blocks else t_s
        else:
            inputs.counted[:] = False
            if due:
                self._pace.missed()
        faults |= self._give_analog(inputs, has_samples)
        self._give_encoders(inputs)
        age_s = t_s - self._reading_s
        self._values[self._age_at] = age_s
        self._bits[self._faults_at] = faults

    def _take_lines(self, levels: NDArray[np.bool_]) -> int:
        word = faults = 0
        for i, line in enumerate(self._plan.lines_in):
            if levels[i]:
                word |= 1 << i
            elif line.kind == "estop":
                faults |= ESTOP_OPEN
        self._bits[self._lines_at] = word
        return faults | self._gates.look(levels, self._switched)

    def _give_analog(self, inputs: Inputs, has_samples: bool) -> int:
        """Write the readings of the analogue inputs to their channels; returns their fault bits."""
        r, faults, valid, first = self._readings, 0, 0, self._place.channel
        for i, at in enumerate(self._analog_at):
            troubles = int(inputs.filter.troubles[i]) if has_samples else 0
            faults |= card_fault(i, troubles)
            raw = float(inputs.filter.mean[i]) if has_samples else math.nan
            self._values[self._raw_at[at]] = raw
            r.measured[first + at] = self._chains[i].value(raw)
            if has_samples and not troubles:
                valid |= 1 << at
        r.mark_valid(self._analog_mask << first, valid << first)
        return faults

    def _give_encoders(self, inputs: Inputs) -> None:
        r, valid, first = self._readings, 0, self._place.channel
        for i, at in enumerate(self._encoders_at):
            counted, count = bool(inputs.counted[i]), int(inputs.counts[i])
            encoder = self._plan.encoders[i].encoder
            self._values[self._raw_at[at]] = count if counted else math.nan
            r.measured[first + at] = encoder.angle_rad(count) if counted else math.nan
            if counted:
                valid |= 1 << at
        r.mark_valid(self._encoder_mask << first, valid << first)

    def write(self, t_s: float, commands: Commands) -> None:
        outputs, first = self._outputs, self._place.output
        if outputs is None:
            raise DeviceError(f"{self.name}: is not open")
        with said_by(self.name, "write"), outputs.held():
            if not commands.enabled[0]:
                outputs.enable(False)
                self._settled_s = math.inf
            if len(self._cells_at):
                np.take(commands.cells, self._cells_at, out=self._switched)
                outputs.switch(self._switched)
            outputs.put(commands.outputs[first : first + len(self._plan.outputs)])
            outputs.feed_watchdog(t_s)
            if self._plan.acquisition.kind == "block" and self._pace.asks(t_s):
                self._look_after_pace(t_s)
        if outputs.enabled:
            high = (1 << len(self._plan.lines_out)) - 1 << len(self._plan.lines_in)
            self._bits[self._lines_at] = int(self._bits[self._lines_at]) | high

    def _look_after_pace(self, t_s: float) -> None:
        inputs = self._inputs
        if inputs is not None:
            n_blocks = self._pace.look(t_s, inputs.card_s, inputs.behind())
            if n_blocks:
                inputs.read(n_blocks)

    def safe(self) -> None:
        """Set enable lines low, cells off and outputs idle, even if one of them fails."""
        self._settled_s = math.inf
        self._switched[:] = 0
        if self._outputs is not None:
            self._outputs.safe()

    def close(self) -> None:
        """Release the card; where an output could not be switched off, its watchdog does it first.

        A watchdog that is let go no longer expires.
        """
        outputs, inputs, lines = self._outputs, self._inputs, self._lines
        if outputs is not None and outputs.failed and outputs.watchdogs.running:
            self._fed = False
            self._sleep_s(EXPIRED_AFTER * self._plan.watchdog_s)
            self._fed = True
        self._outputs = self._inputs = self._lines = self._tick = None
        if inputs is not None:
            inputs.close()
        if lines is not None:
            close_all([lines.task])
        if outputs is not None:
            outputs.close()
        locks, self._locks = self._locks, []
        for lock in locks:
            lock.release()


def _filtered(plan: CardPlan) -> str:
    acquisition = plan.acquisition
    if acquisition.per_tick == 1:
        return ""
    delay_ms = 1e3 * BlockFilter.delay_s(acquisition.per_tick, acquisition.rate_Hz)
    return (
        f", mean of {acquisition.per_tick} samples at {acquisition.rate_Hz:g} Hz, late by "
        f"{delay_ms:g} ms"
    )
