"""The loop: read, estimate, control, guard, write, record; the same on a bench and in simulation.

The experiment and its time start at the tick at which the run is armed, or later, once all power
is on. Until then everything is off and set points are NaN. Requests take effect between two ticks.
Missed periods are skipped. After a trip all cells stay off and all outputs keep their idle value;
the loop records for a while longer, so that the recording shows the consequences. A plug-in that
fails trips the guard; if it is a model, the run also ends.
"""

from collections.abc import Generator
from math import nan

from hil.errors import DeviceError, PluginError
from hil.loop import guard as guards
from hil.loop.context import LoopContext
from hil.loop.frame import Column
from hil.loop.progress import Progress
from hil.loop.states import NUMBERS
from hil.loop.stopwatch import Stopwatch
from hil.loop.trip_reporter import TripReporter


def columns() -> list[Column]:
    """The columns that the loop itself fills."""
    return [
        *Stopwatch.columns(),
        Column(
            "guard_state",
            "1",
            "state",
            "of the rig: " + ", ".join(f"{i} {name}" for name, i in NUMBERS.items()),
        ),
        Column("fault_bits", "1", "fault", "faults since the start, latched", flags=guards.FAULTS),
    ]


def run(context: LoopContext) -> str:
    """Run ticks until the end, a stop or a trip; returns `complete`, `aborted` or `tripped`.

    Raises
    ------
    DeviceError
        A device failed; the row of that tick has the fault bit.
    """
    steps = ticks(context)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return str(end.value)


def ticks(context: LoopContext) -> Generator[None, None, str]:
    """Run as `run`, one tick at each `next`; the outcome is the value of `StopIteration`."""
    clock, rig, guard = context.clock, context.rig, context.guard
    stopwatch, reporter = Stopwatch(context.frame), TripReporter(context)
    progress = Progress(context.period_s, context.n_ticks)
    _set_points_to_nan(context)
    _arm(context, progress)
    clock.start()
    while progress.tick < progress.end and context.inputs.apply(progress.tick, progress.t_s):
        t_s, n_periods = progress.t_s, progress.n_periods
        late_s = clock.sleep_until_s(t_s)
        stopwatch.start(t_s, late_s)
        if slept_s := clock.slept_s():
            _report_sleep(context, reporter, t_s, slept_s)
        try:
            _start_when_ready(context, progress)
            rig.read(t_s)
            stopwatch.lap("read")
            context.estimator.step(n_periods)
            stopwatch.lap("estimate")
            _control(context, progress, reporter)
            stopwatch.lap("control")
            guard.step(progress.overruns, n_periods)
            stopwatch.lap("guard")
            rig.write(t_s)
            stopwatch.lap("write")
        except DeviceError as error:
            _end_tripped(context, reporter, t_s, guards.DEVICE_FAILED, error)
            raise
        except PluginError as error:  # a model failed: there is no estimate or no plant
            _end_tripped(context, reporter, t_s, guards.OWN_CODE_FAILED, error)
            return "tripped"
        stopwatch.stop()
        _record(context, progress, reporter, late_s)
        progress.advance(clock.now_s())
        _tolerate_overruns(context, progress, t_s)
        yield
    return _outcome(context, progress, reporter)


def look_back(context: LoopContext, outcome: str) -> str:
    """Return the outcome of a run, including faults in the boards' answers to the last command.

    Boards answer that command after the last tick, so no tick checks these answers.
    """
    reporter = TripReporter(context)
    context.guard.trip_when_boards_failed()
    reporter.report(float(context.frame.values[context.frame.index("t_s")]))
    return "tripped" if context.guard.fault_bits else outcome


def _set_points_to_nan(context: LoopContext) -> None:
    frame = context.frame
    for column in context.control.columns:
        if not column.n_cells and not column.flags:
            frame.values[frame.index(column.name)] = nan


def _arm(context: LoopContext, progress: Progress) -> None:
    """Arm and start the experiment, unless a window arms it later."""
    if not context.armed:
        return
    if not context.guard.arm():
        state = context.rig.states.now
        raise RuntimeError(f"armed while {state}: run the rig's self-test first")
    _start(context, progress)


def _start_when_ready(context: LoopContext, progress: Progress) -> None:
    """Enable commands once armed with all power on; start the experiment if it has not started."""
    guard, rig = context.guard, context.rig
    if not guard.armed or guard.running:
        return
    if progress.started:
        if rig.ready():
            guard.begin()
    elif rig.has_cooled() and rig.ready():
        _start(context, progress)


def _start(context: LoopContext, progress: Progress) -> None:
    context.rig.arm()
    _note_messages(context, progress.tick, progress.t_s)
    progress.start()
    context.guard.begin()


def _note_messages(context: LoopContext, tick: int, t_s: float) -> None:
    """Record the devices' messages as events, and their values as inputs."""
    for device, message in context.rig.messages():
        context.sink.event(t_s, message.level, device, message.text)
        if message.name:
            context.sink.input(tick, t_s, message.name, message.value, message.about)


def _report_sleep(context: LoopContext, reporter: TripReporter, t_s: float, slept_s: float) -> None:
    """Trip if armed: during sleep nothing checks the limits or could switch cells off."""
    text = f"the machine slept for {slept_s:.3g} s before this tick"
    if context.guard.armed:
        reporter.trip(guards.MACHINE_SLEPT, t_s, text)
    else:
        context.sink.event(t_s, "warning", "loop", text)


def _control(context: LoopContext, progress: Progress, reporter: TripReporter) -> None:
    if context.guard.running:
        try:
            context.control.step(progress.experiment_t_s)
        except PluginError as error:
            reporter.trip(guards.OWN_CODE_FAILED, progress.t_s, str(error))


def _end_tripped(
    context: LoopContext, reporter: TripReporter, t_s: float, fault: int, error: Exception
) -> None:
    """Record the tick that failed; the row first, since the report may query the boards."""
    context.guard.trip(fault)
    reporter.fill_last_row()
    context.sink.push()
    reporter.report(t_s, {guards.names_of(fault)[0]: [str(error)]})


def _record(
    context: LoopContext, progress: Progress, reporter: TripReporter, late_s: float
) -> None:
    """Push the row of a complete tick, report new faults and messages, and end a finished run."""
    guard, sink, t_s = context.guard, context.sink, progress.t_s
    reporter.fill_row()
    if not sink.push():
        guard.trip(guards.DISK_LOW if sink.disk_low else guards.RECORDER_DEAD)
    if context.rig.has_news():
        _note_messages(context, progress.tick, t_s)
    if context.lateness is not None and late_s > context.lateness.late_s:
        context.lateness.look(t_s, late_s)
    if guard.fault_bits:
        reporter.report(t_s)
        if not progress.tripped:
            progress.tripped = True
            progress.end_after(context.after_trip_ticks)
    if context.until is not None and context.until.step(t_s):
        progress.end_after(0)


def _tolerate_overruns(context: LoopContext, progress: Progress, t_s: float) -> None:
    most, missed = context.tolerated_overruns, progress.overruns
    if most is not None and missed >= most:
        context.sink.event(t_s, "warning", "loop", f"{missed} periods missed in a row")
        progress.overruns = 0


def _outcome(context: LoopContext, progress: Progress, reporter: TripReporter) -> str:
    """Disarm, and return the outcome of the run."""
    if not progress.tripped and context.guard.trip_when_late(progress.overruns):
        reporter.report(progress.last_t_s)  # periods missed after the last tick
        progress.tripped = True
    context.guard.disarm()
    if progress.tripped:
        return "tripped"
    return "aborted" if context.inputs.stop.reason else "complete"
