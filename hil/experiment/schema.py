"""The tables of a file: all models, controllers and devices, by their `kind`.

Unknown keys are errors. Values are SI; the unit is part of the key.
"""

from typing import TYPE_CHECKING, Annotated, Any, Union

from pydantic import Discriminator, Field, Tag

from hil.config.table import Name, Table
from hil.devices.tables import PluginDeviceTable
from hil.experiment.acceptance import ValidationTable
from hil.experiment.expectations import ExpectTable
from hil.experiment.registry import controllers_of, systems
from hil.plugins.load import PluginTable, Role, kind_tag, kinds
from hil.rig import run_tables
from hil.rig.kinds import device_kinds


def _any_of(role: Role, tables: list[type[Table]]) -> Any:
    """One of these tables by its `kind`, or a plug-in class."""
    built_in: Any = Annotated[
        Union[tuple(tables)],  # noqa: UP007  made at import
        Field(discriminator="kind"),
    ]
    return Annotated[
        Annotated[built_in, Tag("built_in")] | Annotated[PluginTable, Tag("own")],
        Discriminator(kind_tag(role, kinds(*tables))),
    ]


def _controllers() -> list[type[Table]]:
    """Tables of the controllers of all systems, without duplicates."""
    tables = [c.table for system in systems().values() for c in controllers_of(system).values()]
    return list(dict.fromkeys(tables))


OBSERVERS = [system.observer for system in systems().values() if system.observer is not None]

if TYPE_CHECKING:
    from typing import Any as Controller
    from typing import Any as Device
    from typing import Any as Model
    from typing import Any as Observer
else:
    Device = Annotated[
        Annotated[
            Union[tuple(device.table for device in device_kinds().values())],  # noqa: UP007
            Field(discriminator="kind"),
            Tag("built_in"),
        ]
        | Annotated[PluginDeviceTable, Tag("own")],
        Discriminator(kind_tag("device", frozenset(device_kinds()))),
    ]
    Model = _any_of("model", [system.table for system in systems().values()])
    Controller = _any_of("controller", _controllers())
    Observer = Union[tuple(OBSERVERS)]  # noqa: UP007  made at import


class ModelTables(run_tables.ModelTables):
    """A file with only a model."""

    model: Model
    plant: Model


class RigTables(ModelTables, run_tables.RigTables):
    """A rig: its model, the simulated plant, devices and limits."""

    devices: Annotated[dict[Name, Device], Field(min_length=1)]
    observer: Observer = Field(default_factory=OBSERVERS[0])


class RunTables(RigTables, run_tables.RunTables):
    """The complete configuration of a run: a rig merged with an experiment."""

    controller: Controller
    validation: ValidationTable | None = None
    expect: Annotated[list[ExpectTable], Field(default_factory=list)]
