"""Kinds of systems, by the `kind` of `[model]`: one module each, with a descriptor `SYSTEM`.

Installed packages add kinds through entry points in the group GROUP, and controllers for a kind of
system in the group `hil.controllers.KIND`.
"""

from collections.abc import Mapping
from functools import cache
from importlib import import_module

from hil.experiment.idle import IDLE
from hil.experiment.kind import BenchPart, ControllerKind, KindOfTable, SystemKind
from hil.plugins.descriptors import installed, loaded, points
from hil.plugins.load import PluginTable

__all__ = ["loaded"]

GROUP = "hil.systems"
CONTROLLERS = "hil.controllers"  # followed by '.' and the kind of system
BUILT_IN = {
    "cell_array": "hil.systems.array",
    "linear": "hil.systems.linear",
    "pantograph": "hil.systems.pantograph",
    "musculoskeletal": "hil.systems.leg",
    "arm": "hil.systems.arm",
    "bodies": "hil.systems.bodies",
    "soft_links": "hil.systems.soft",
    "fmu": "hil.systems.fmu.kind",
}
STUDIES = "hil.studies"
BENCH = "hil.bench"
PLUGIN = "hil.systems.plugin"  # a class in a user's file


@cache
def systems() -> Mapping[str, SystemKind]:
    """Every kind of system, including those of installed packages.

    Raises
    ------
    ConfigError
        A package's kind cannot be imported, or its name is already taken.
    """
    kinds = {kind: _described(module) for kind, module in BUILT_IN.items()}
    return kinds | installed(GROUP, kinds)


def _described(module: str) -> SystemKind:
    described: SystemKind = import_module(module).SYSTEM
    return described


def named(kind: object) -> SystemKind | None:
    """The kind of system of this name; None if there is none, as for a class in a file."""
    if kind in BUILT_IN:
        return _described(BUILT_IN[str(kind)])
    return systems().get(str(kind))


def studies() -> dict[str, str]:
    """The module of every study, by name."""
    return dict(sorted((point.name, point.value) for point in points().select(group=STUDIES)))


@cache
def bench_parts() -> Mapping[str, BenchPart]:
    """The parts of `hil bench` that installed packages add, by name.

    Raises
    ------
    ConfigError
        A part cannot be imported, or its name is already taken.
    """
    return installed(BENCH)


@cache
def controllers(kind: str) -> Mapping[str, ControllerKind]:
    """The controllers of a kind of system, including those of installed packages.

    Raises
    ------
    ConfigError
        A package's controller cannot be imported, or its kind is already taken.
    """
    kinds = {**systems()[kind].controllers, **IDLE}
    return {**kinds, **installed(f"{CONTROLLERS}.{kind}", kinds)}


def system_kind(table: KindOfTable) -> SystemKind:
    """The kind of system that a table of `[model]` describes."""
    return systems().get(table.kind) or _described(PLUGIN)


def controllers_of(system: SystemKind) -> Mapping[str, ControllerKind]:
    """The controllers of a system; a plug-in class has those that work with any system."""
    return controllers(system.kind) if system.table is not None else {**system.controllers, **IDLE}


def controller_kind(system: SystemKind, table: KindOfTable) -> ControllerKind | None:
    """The controller that a `[controller]` table names; None if the system has no such one."""
    if isinstance(table, PluginTable):
        plugin: ControllerKind = import_module(PLUGIN).CONTROLLER
        return plugin
    return controllers_of(system).get(table.kind)
