"""A plug-in controller, for any system."""

from hil.control.build import build_reference, build_signal, check_signal, signals_in
from hil.control.plugin import PluginControl, commands_duties
from hil.control.steering import Steerable
from hil.control.tables import SignalsReferenceTable
from hil.devices.board import protocol
from hil.experiment.kind import ControlInputs, ControllerKind, Faults, SystemRun
from hil.loop.channels import RigLayout
from hil.loop.duty import STEPS
from hil.plugins.code import Facts
from hil.plugins.load import PluginTable
from hil.rig.instruments import layout_of, outputs_of, signals_of, switching


def _control(run: SystemRun, layout: RigLayout) -> PluginControl:
    """Return the control stage for this rig."""
    tables, outputs = run.tables, outputs_of(run.tables.devices)
    references: dict[str, tuple[Steerable, str]] = {}
    if run.kind.force_signal is not None:
        force = tables.reference
        follows = None if isinstance(force, SignalsReferenceTable) else force
        references["force_reference_N"] = (Steerable(build_reference(follows)), "N")
        names = ["force"]
    else:
        signals = signals_in(tables.reference)
        channels = {c.name: c for c in layout.channels}
        names = [name for name in signals if name in channels]
        for name in names:
            column = channels[name].column("reference")
            references[column] = (Steerable(build_signal(signals[name])), channels[name].units)
    facts = Facts(
        period_s=run.period_s,
        channels=tuple(c.name for c in layout.channels),
        units=tuple(c.units for c in layout.channels),
        references=tuple(names),
        cells=tuple(run.model.cell_names),
        force_on_N=tuple(run.forces_on_N),
        outputs=tuple(name.partition("_commanded")[0] for name in outputs),
        lowest=tuple(o.min for o in outputs.values()),
        highest=tuple(o.max for o in outputs.values()),
        model=run.model if run.kind.force_signal is not None else None,
        force=layout.force,
        duty_min=protocol.DUTY_MIN_PER_255 / STEPS,
    )
    return PluginControl(tables.controller.plugin, facts, references)


def _build(inputs: ControlInputs) -> PluginControl:
    return _control(inputs, inputs.layout)


def _check(run: SystemRun) -> Faults:
    """Check that the controller can be built for this rig and that its references exist."""
    tables, follows = run.tables, run.tables.reference
    channels = list(signals_of(tables.devices))
    for name, signal in signals_in(follows).items():
        if name not in channels:
            key = f"reference.signals.{name}"
            yield key, f"no channel of that name: choose {', '.join(channels)}"
        else:
            yield from check_signal(f"reference.signals.{name}", signal)
    if follows is None or isinstance(follows, SignalsReferenceTable):
        pass
    elif run.kind.force_signal is None:
        yield f"reference.kind = '{follows.kind}'", "is for arrays of cells: choose signals"
    cells = list(run.model.cell_names)
    gates = [
        cell for device in switching(tables.devices).values() for cell in device.cells_switched
    ]
    if sorted(cells) == sorted(gates):  # otherwise the rig's own check reports it
        _control(run, layout_of(tables, cells))


def _plan(run: SystemRun) -> list[str]:
    """Return the limits of the guard, the only known bounds of a plug-in's commands."""
    kind, guard = run.tables.controller.kind, run.tables.guard
    n_cells = len(run.model.cell_names)
    lines = [
        f"{kind} decides: {name} between {output.min:g} and {output.max:g}, at most "
        f"{output.rate_max_per_s:g} a second"
        for name, output in outputs_of(run.tables.devices).items()
    ]
    if n_cells:
        longest = (
            ""
            if guard.cell_on_max_s is None
            else f", no cell longer than {guard.cell_on_max_s:g} s"
        )
        lines.append(
            f"{kind} decides: at most {guard.cells_on_max or n_cells} of {n_cells} cells at "
            f"once{longest}"
        )
    return lines


def _modulates(table: PluginTable) -> bool:
    return commands_duties(table.plugin)


CONTROLLER = ControllerKind(PluginTable, _build, _check, _plan, modulates=_modulates)
