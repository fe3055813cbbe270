"""What a file describes: its tables, and the models, records and protections built from them.

Nothing is built before it is first asked for, and nothing twice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import tomli_w

from hil.calibration.files import Calibration, digest
from hil.calibration.sources import Sourced, load_sources
from hil.config.files import Merged, folder_of
from hil.devices.tables import CellBoardTable
from hil.errors import ConfigError, ModelError, PluginError, one_line
from hil.experiment import board_limits, loop_limits, tightening, usual
from hil.experiment.kind import ControllerKind, Model, SystemKind, SystemRun
from hil.experiment.registry import controller_kind, system_kind
from hil.experiment.schema import ModelTables, RigTables, RunTables
from hil.experiment.source_checks import as_lines, calculable
from hil.mechanics.system import System
from hil.plugins.code import Plugin
from hil.plugins.load import plugin_tables
from hil.rig import calibrated
from hil.rig.instruments import boards_of, switching

LOGBOOK = Path("logbook")
TRIED_PERIOD_S = 0.001  # of a file with only a model


@dataclass(frozen=True)
class LoadedModel:
    """The model of a file, and the simulated plant.

    Attributes
    ----------
    path : the file
    tables : its validated tables
    merged : the tables as they were read, and the source of every key
    """

    path: Path
    tables: ModelTables
    merged: Merged

    @property
    def period_s(self) -> float:
        """Period of the loop; of a file with only a model, 1 ms."""
        loop = self.merged.table.get("loop")
        value = loop.get("period_s") if isinstance(loop, Mapping) else None
        return float(value) if isinstance(value, int | float) and value > 0 else TRIED_PERIOD_S

    @property
    def kind(self) -> SystemKind:
        """The kind of system of the model."""
        return system_kind(self.tables.model)

    @cached_property
    def models(self) -> tuple[Model, Model]:
        """The models of `[model]` and `[plant]`, built by their kind of system.

        Raises
        ------
        ConfigError
            A model cannot be built, or the plant is not one of this model.
        """
        model = self._built("model")
        same = self.kind.system is not None and self.tables.plant == self.tables.model
        plant = model if same else self._built("plant")
        where = self.merged.origin(["plant"])
        if [*model.cell_names] != [*plant.cell_names]:
            raise ConfigError(f"{where}: plant: its cells must be those of [model], in their order")
        if self.tables.model.kind == self.tables.plant.kind and [*model.outputs] != [
            *plant.outputs
        ]:
            raise ConfigError(
                f"{where}: plant: its masses and points must be those of [model]: change only "
                "values"
            )
        return model, plant

    def _built(self, key: str) -> Model:
        table = getattr(self.tables, key)
        try:
            with calculable(self.merged):
                model: Model = system_kind(table).build(table, self.period_s)
                return model
        except PluginError as error:
            place, text = f"{key}.kind", f"{key}.kind = '{table.kind}': {error}"
        except ModelError as error:
            within, _, reason = str(error).partition(": ")
            place, text = f"{key}.{within}", f"{key}.{within}: {reason}"
        raise ConfigError(one_line(f"{self.merged.origin(place.split('.'))}: {text}"))

    @property
    def model(self) -> Any:
        """The twin's array; ConfigError if the model is not an array."""
        return self._array(0)

    @property
    def plant(self) -> object:
        """The simulated plant's array; ConfigError if the model is not an array."""
        return self._array(1)

    def _array(self, index: int) -> object:
        table = self.tables.model
        if system_kind(table).force_signal is None:
            raise ConfigError(f"{self.path}: model.kind = '{table.kind}': this needs a cell_array")
        return self.models[index]

    def activation(self, *, plant: bool = False) -> list[Any]:
        """Activation model of each cell; ConfigError if the model is not an array."""
        self._array(plant)
        return self.kind.activation(self.tables.plant if plant else self.tables.model)

    def system(self, *, plant: bool = False, period_s: float | None = None) -> System:
        """A new twin, or a new simulated plant, at rest; by default with the loop's period."""
        table = self.tables.plant if plant else self.tables.model
        return system_kind(table).new_system(
            table, self.models[plant], self.period_s if period_s is None else period_s
        )

    @property
    def units(self) -> dict[str, Any]:
        """The models that are files of others' code, by key: each has `file` and `sha256`."""
        return {
            key: model
            for key, model in zip(("model", "plant"), self.models, strict=True)
            if system_kind(getattr(self.tables, key)).code
        }

    @cached_property
    def sources(self) -> Sequence[Sourced]:
        """Calibrations that tables other than channels name."""
        return load_sources(self.tables, self.merged)


@dataclass(frozen=True)
class LoadedRig(LoadedModel):
    """A rig: its model, devices, calibrations, and what protects its wires.

    Attributes
    ----------
    doubts : sequence of str
        Warnings about choices that the files leave open, one line each; a run prints them.
    derived : dict
        Limits of boards that were derived from the guard, by board.
    """

    tables: RigTables
    doubts: Sequence[str] = ()
    derived: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def period_s(self) -> float:
        """Period of the loop."""
        return self.tables.loop.period_s

    @cached_property
    def records(self) -> Mapping[str, Calibration]:
        """Calibrations of the channels that have one."""
        return calibrated.load_records(self.tables.devices, self.merged)

    def read_calibrations(self) -> None:
        """Read all calibrations that the tables name; ConfigError if one cannot be read."""
        _ = self.records, self.sources

    @property
    def boards(self) -> dict[str, CellBoardTable]:
        """The driver boards, with their limits."""
        return boards_of(self.tables.devices)

    @cached_property
    def protections(self) -> Sequence[board_limits.Protection]:
        """Its boards, and the wires that their limits must protect."""
        boards = board_limits.protections(self.tables, self.models[0])
        return [replace(board, derived=self.derived.get(board.name, {})) for board in boards]

    @cached_property
    def loop_protections(self) -> Sequence[loop_limits.LoopProtection]:
        """Its devices that switch cells without measuring them, and the budgets of their wires."""
        return loop_limits.protections(self.tables, self.models[0])

    @property
    def protection_doubts(self) -> list[str]:
        """Warnings about wires that are not known to be protected, one line each."""
        loops = loop_limits.doubts(self.loop_protections, self.tables)
        return [*board_limits.doubts(self.protections), *loops]

    @cached_property
    def unusual(self) -> Sequence[str]:
        """Values that are possible but unusual, or that do not fit each other, one line each."""
        thermal = board_limits.thermal_cells(self.tables.model, self.models[0])
        key_of = {cell: f"model.arrays.{cell.partition('.')[0]}.activation" for cell in thermal}
        wires = dict(thermal)
        for name, device in switching(self.tables.devices).items():
            place = "wire" if device.role == "board" else "switches.wire"
            table = device.wire if device.role == "board" else device.switches.wire
            for cell in device.cells_switched if table is not None else ():
                wires[cell] = board_limits.wires_at([cell], {}, table)[cell]
                key_of[cell] = f"devices.{name}.{place}"
        faults = list(usual.out_of_range(self.merged.table))
        if not faults:  # such a value also fits none of the others
            faults += usual.wires_that_do_not_fit(wires, key_of)
            faults += usual.ringing(self.models[0], self.period_s)
        return as_lines(self.merged, faults)

    @cached_property
    def excuses(self) -> Sequence[str]:
        """Choices that excuse a slow computer, one line each; a bench is refused with them."""
        return as_lines(self.merged, tightening.faults(self.tables, self.merged, late=True))


@dataclass(frozen=True)
class Experiment(LoadedRig):
    """A validated run: an experiment on a rig.

    Attributes
    ----------
    recorded : calibrations of the channels, if the experiment is from a recording
    """

    tables: RunTables
    recorded: Mapping[str, Calibration] | None = None

    @cached_property
    def records(self) -> Mapping[str, Calibration]:
        """Calibrations of the channels that have one."""
        return super().records if self.recorded is None else self.recorded

    @cached_property
    def sources(self) -> Sequence[Sourced]:
        """Calibrations that tables other than channels name; none of a recording."""
        return super().sources if self.recorded is None else ()

    @cached_property
    def excuses(self) -> Sequence[str]:
        """Choices that excuse a slow computer; those of a recording were made before its run."""
        return super().excuses if self.recorded is None else ()

    @property
    def controller(self) -> ControllerKind:
        """The kind of its controller."""
        kind = controller_kind(self.kind, self.tables.controller)
        assert kind is not None  # checks.run refuses an unknown controller
        return kind

    @property
    def modulates(self) -> bool:
        """Whether its controller commands duties."""
        return self.controller.modulates(self.tables.controller)

    @property
    def run(self) -> SystemRun:
        """Its tables with the model."""
        return SystemRun(self.kind, self.tables, self.models[0])

    @property
    def force_signal(self) -> str:
        """Signal of the controlled force channel; empty if no force is controlled."""
        signal = self.kind.force_signal
        return "" if signal is None else signal(self.tables, self.models[0])

    @property
    def default_signal(self) -> str:
        """Signal of a force channel whose table names none."""
        signal = self.kind.default_signal
        return "" if signal is None else signal(self.models[0])

    @property
    def plugins(self) -> dict[str, Plugin]:
        """The plug-in classes that it uses, by key."""
        return {".".join(path): table.plugin for path, _, table in plugin_tables(self.tables)}

    @property
    def rig_name(self) -> str:
        return self.path.resolve().parent.name

    @property
    def n_ticks(self) -> int:
        return max(1, round(self.tables.experiment.duration_s / self.tables.loop.period_s))

    @property
    def logbook(self) -> Path:
        """Folder of the specimen's logbook; the path is relative to the file that names it."""
        specimen = self.tables.specimen
        if specimen is None or specimen.logbook is None:
            return LOGBOOK
        return folder_of(self.merged.origin(("specimen", "logbook"))) / specimen.logbook

    def resistance_limits_Ohm(self, board: str) -> list[tuple[float, float]]:
        """The least and greatest resistance of every cell of a board."""
        return board_limits.resistance_limits_Ohm(*self._board(board))

    def clamps_at_rest_C(self, board: str) -> list[tuple[float, float]]:
        """What the clamp of every cell of a board may read before a run."""
        return board_limits.clamps_at_rest_C(*self._board(board))

    def _board(self, name: str) -> tuple[CellBoardTable, board_limits.Protection]:
        return self.boards[name], next(one for one in self.protections if one.name == name)

    def cooling_s(self, device: str) -> float:
        """Time with all its cells off after which any wire of a device has cooled enough."""
        budgets = [b for p in self.loop_protections if p.name == device for b in p.budgets.values()]
        return max((budget.cools_in_s for budget in budgets), default=0.0)

    def to_toml(self) -> str:
        """The complete merged configuration, including defaults."""
        return self._toml

    @cached_property
    def _toml(self) -> str:
        return tomli_w.dumps(self.tables.model_dump(by_alias=True, exclude_none=True))

    @property
    def hashes(self) -> dict[str, str]:
        """Hashes as a recording states them: of the configuration, and of each unit."""
        units = {f"{key}_sha256": unit.sha256 for key, unit in self.units.items()}
        return {"configuration_sha256": self.sha256, **units}

    @property
    def sha256(self) -> str:
        """Hash of all that decides what a run does: its tables, calibrations and code of others."""
        records = [record.record.hash for record in self.records.values()]
        records += [sourced.source.record.hash for sourced in self.sources]
        code = [used.source for used in self.plugins.values()]
        code += [unit.sha256 for unit in self.units.values()]
        return digest({"tables": self.to_toml(), "records": records, "code": code})
