"""Saved scales, channels and tasks: NI's functions, and loading them from NI MAX files."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from nidaqmx.constants import (
    AcquisitionType,
    Edge,
    RegenerationMode,
    ScaleType,
    TerminalConfiguration,
    UnitsPreScaled,
    VoltageUnits,
)

from simdaq import control, create_analog, create_output, errors, names
from simdaq.errors import DaqmxError, SetupError
from simdaq.max_file import Configuration
from simdaq.stored import About, copied
from simdaq.system import System
from simdaq.task import Task

OVERWRITE, EDITING, DELETION = 1, 2, 4  # bits of NI's save options
Table = dict[str, str]
SCALE_TYPES = {
    "Linear": ScaleType.LINEAR, "Map Ranges": ScaleType.MAP_RANGES,
    "Polynomial": ScaleType.POLYNOMIAL, "Table": ScaleType.TABLE,
}  # fmt: skip
NUMBERS = {
    "Lin.Slope": "lin_slope", "Lin.YIntercept": "lin_y_intercept",
    "Map.PreScaledMin": "map_pre_scaled_min", "Map.PreScaledMax": "map_pre_scaled_max",
    "Map.ScaledMin": "map_scaled_min", "Map.ScaledMax": "map_scaled_max",
}  # fmt: skip
LISTS = {
    "Poly.ForwardCoeff": "poly_forward_coeff", "Poly.ReverseCoeff": "poly_reverse_coeff",
    "Table.PreScaledVals": "table_pre_scaled_vals", "Table.ScaledVals": "table_scaled_vals",
}  # fmt: skip
CONFIGURATIONS = {
    "Differential": TerminalConfiguration.DIFF, "RSE": TerminalConfiguration.RSE,
    "NRSE": TerminalConfiguration.NRSE, "Pseudodifferential": TerminalConfiguration.PSEUDO_DIFF,
}  # fmt: skip
MODES = {
    "Finite Samples": AcquisitionType.FINITE, "Continuous Samples": AcquisitionType.CONTINUOUS,
}  # fmt: skip


# NI's functions


def _about(author: str, options: int) -> tuple[About, bool]:
    about = About(author, bool(options & EDITING), bool(options & DELETION))
    return about, bool(options & OVERWRITE)


def save_task(system: System, *, task: int, save_as: str, author: str, options: int) -> None:
    """Save a task under a name, by default its own."""
    owner = system.task(task)
    about, overwrite = _about(author, options)
    system.storage.save_task(save_as or owner.name, owner, about, overwrite=overwrite)


def save_global_chan(
    system: System, *, task: int, channel_name: str, save_as: str, author: str, options: int
) -> None:
    """Save a channel of a task as a global channel."""
    channel = system.task(task).channel(channel_name)
    about, overwrite = _about(author, options)
    system.storage.save_channel(save_as or channel_name, channel, about, overwrite=overwrite)


def save_scale(system: System, *, scale_name: str, save_as: str, author: str, options: int) -> None:
    """Save a custom scale."""
    about, overwrite = _about(author, options)
    scale = system.scale(scale_name)
    system.storage.save_scale(save_as or scale_name, scale, about, overwrite=overwrite)


def delete_saved_task(system: System, *, task_name: str) -> None:
    """Forget a saved task."""
    system.storage.delete("task", task_name)


def delete_saved_global_chan(system: System, *, channel_name: str) -> None:
    """Forget a global channel."""
    system.storage.delete("chan", channel_name)


def delete_saved_scale(system: System, *, scale_name: str) -> None:
    """Forget a saved scale."""
    system.storage.delete("scale", scale_name)


def load_task(system: System, *, session_name: str, **_: Any) -> int:
    """A new task like a saved one."""
    saved = system.storage.find("task", session_name)
    task = system.create(session_name)
    system.add_channels(task, [copied(c) for c in saved.channels])
    task.timing = replace(saved.timing)
    task.start_trigger = replace(saved.start_trigger)
    task.reference_trigger = replace(saved.reference_trigger)
    task.properties = dict(saved.properties)
    return task.handle


def add_global_chans_to_task(system: System, *, task: int, channel_names: str) -> None:
    """Give a task copies of global channels."""
    owner = system.task(task)
    wanted = [system.storage.find("chan", n) for n in names.unflatten(channel_names)]
    system.add_channels(owner, [copied(c) for c in wanted])


# NI MAX files


def load(system: System, configuration: Configuration) -> None:
    """Save what NI MAX files describe.

    Raises
    ------
    SetupError
        A saved channel or task is not simulated, or has a value that does not exist.
    """
    for name, table in configuration.scales.items():
        _placed("DAQmxScale", name, _load_scale, system, name, table)
    for name, table in configuration.channels.items():
        if "/" not in name:  # others belong to a task
            _placed("DAQmxChannel", name, _load_channel, system, name, table)
    for name, table in configuration.tasks.items():
        _placed("DAQmxTask", name, _load_task, system, name, table, configuration.channels)


def _placed(kind: str, name: str, action: Any, *arguments: Any) -> None:
    try:
        action(*arguments)
    except (DaqmxError, KeyError, ValueError) as error:
        why = " ".join(error.facts) if isinstance(error, DaqmxError) else repr(error)
        raise SetupError(f"[{kind} {name}]: {why}") from None


def _who(table: Table) -> About:
    return About(
        table.get("Author", ""), table.get("AllowInteractiveEditing", "False") == "True",
        table.get("AllowInteractiveDeletion", "False") == "True",
    )  # fmt: skip


def _load_scale(system: System, name: str, table: Table) -> None:
    units = table.get("PreScaledUnits", "Volts").upper().replace(" ", "_")
    units = {"DEGREES": "DEGREES_ANGLE", "RADIANS": "RADIANS_ANGLE"}.get(units, units)
    known = UnitsPreScaled.__members__
    properties: dict[str, Any] = {
        "pre_scaled_units": (known.get(units) or UnitsPreScaled.FROM_TEDS).value,
        "scaled_units": table.get("ScaledUnits", ""), "description": table.get("Descr", ""),
    }  # fmt: skip
    properties |= {target: float(table[key]) for key, target in NUMBERS.items() if key in table}
    properties |= {
        target: [float(v) for v in table[key].split(",")]
        for key, target in LISTS.items()
        if key in table
    }
    system.scales.add(name, SCALE_TYPES[table["ScaleType"]], properties)
    system.storage.save_scale(name, system.scales.get(name), _who(table), overwrite=True)
    system.scales.remove(name)


def _create(system: System, task: Task, name: str, table: Table) -> None:
    """Create the channel that a table describes in a task."""
    kind = (table.get("ChanType", ""), table.get("AI.MeasType", table.get("AO.OutputType", "")))
    common: dict[str, Any] = {
        "task": task.handle, "physical_channel": table["PhysicalChanName"],
        "name_to_assign_to_channel": name, "units": VoltageUnits.VOLTS.value,
        "custom_scale_name": "",
    }  # fmt: skip
    if kind == ("Analog Input", "Voltage"):
        configuration = CONFIGURATIONS[table.get("AI.TermCfg", "Differential")].value
        create_analog.create_ai_voltage_chan(
            system, **common, terminal_config=configuration, min_val=float(table["AI.Min"]),
            max_val=float(table["AI.Max"]),
        )  # fmt: skip
    elif kind == ("Analog Output", "Voltage"):
        create_output.create_ao_voltage_chan(
            system, **common, min_val=float(table["AO.Min"]), max_val=float(table["AO.Max"])
        )
    else:
        raise DaqmxError(errors.FUNCTION_NOT_SUPPORTED, "Saved channels of this type are not read "
                         "from a file.", Type=" ".join(kind))  # fmt: skip
    task.channels[-1].properties["description"] = table.get("Descr", "")


def _load_channel(system: System, name: str, table: Table) -> None:
    if names.split(table["PhysicalChanName"])[0] not in system.cards:
        return
    task = system.create("")
    _create(system, task, name, table)
    system.storage.save_channel(name, task.channels[0], _who(table), overwrite=True)
    system.clear(task)


def _load_task(system: System, name: str, table: Table, channels: dict[str, Table]) -> None:
    tables = {c: channels[c] for c in names.unflatten(table.get("Channels", ""))}
    if any(names.split(t["PhysicalChanName"])[0] not in system.cards for t in tables.values()):
        return
    task = system.create("")
    for channel_name, channel in tables.items():
        _create(system, task, channel_name.rpartition("/")[2], channel)
    if table.get("SampTimingType") == "Sample Clock":
        edges = {"Rising": Edge.RISING, "Falling": Edge.FALLING}
        control.cfg_samp_clk_timing(
            system, task=task.handle, source=table.get("SampClk.Src", ""),
            rate=float(table["SampClk.Rate"]),
            active_edge=edges[table.get("SampClk.ActiveEdge", "Rising")].value,
            sample_mode=MODES[table.get("SampQuant.SampMode", "Finite Samples")].value,
            samps_per_chan=int(table["SampQuant.SampPerChan"]),
        )  # fmt: skip
    if "RegenMode" in table:
        allowed = table["RegenMode"] == "Allow Regeneration"
        task.properties["write", "regen_mode"] = (
            RegenerationMode.ALLOW_REGENERATION if allowed
            else RegenerationMode.DONT_ALLOW_REGENERATION
        ).value  # fmt: skip
    system.storage.save_task(name, task, _who(table), overwrite=True)
    system.clear(task)
