"""PID loops, each from a channel to an output, for systems that are driven by outputs."""

from collections import Counter

from hil.control.build import build_signal, check_signal, signals_in
from hil.control.pid import PidGains
from hil.control.signals import SignalLoop, SignalPid
from hil.control.tables import SignalPidTable
from hil.experiment.kind import ControlInputs, ControllerKind, Faults, SystemRun
from hil.rig.instruments import outputs_of, signals_of


def _build(inputs: ControlInputs) -> SignalPid:
    tables, layout = inputs.tables, inputs.layout
    outputs, signals = outputs_of(tables.devices), signals_in(tables.reference)
    channels = {c.name: (i, c) for i, c in enumerate(layout.channels)}
    names = list(outputs)
    made = []
    for channel_name, loop in tables.controller.loops.items():
        index, channel = channels[channel_name]
        column = next(n for n in names if n.partition("_commanded")[0] == loop.output)
        made.append(
            SignalLoop(
                reference=build_signal(signals[channel_name]),
                gains=PidGains(loop.k_p, loop.k_i_per_s, loop.k_d_s, loop.derivative_filter_s),
                reference_column=channel.column("reference"),
                units=channel.units,
                channel=index,
                output=names.index(column),
                low=outputs[column].min,
                high=outputs[column].max,
            )
        )
    return SignalPid(made, tables.loop.period_s)


def _check(run: SystemRun) -> Faults:
    """Check every loop's channel, output and set point; an output may have only one loop."""
    tables = run.tables
    loops = tables.controller.loops
    channels = list(signals_of(tables.devices))
    outputs = [name.partition("_commanded")[0] for name in outputs_of(tables.devices)]
    signals = signals_in(tables.reference)
    claimed = Counter(loop.output for loop in loops.values())
    for name, loop in loops.items():
        key = f"controller.loops.{name}"
        if name not in channels:
            yield key, f"no channel of that name: choose {', '.join(channels)}"
        if loop.output not in outputs:
            choice = f"choose {', '.join(outputs)}" if outputs else "the rig has none"
            yield f"{key}.output = '{loop.output}'", f"no output of that name: {choice}"
        elif claimed[loop.output] > 1:
            yield f"{key}.output", f"another loop also drives '{loop.output}': remove one"
        if name not in signals:
            yield f"reference.signals.{name}", "missing: every loop needs a set point"
    for name, signal in signals.items():
        if name not in loops:
            yield f"reference.signals.{name}", "no loop follows it: remove it"
        yield from check_signal(f"reference.signals.{name}", signal)


SIGNAL_PID = {"signal_pid": ControllerKind(SignalPidTable, _build, _check)}
