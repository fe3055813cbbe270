"""Load files and `--set` into a validated configuration; every error is one line."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w
from numpy.typing import NDArray

from hil.calibration.files import Calibration, digest
from hil.calibration.sources import Sourced, load_sources
from hil.config.files import Merged, merge, read_merged
from hil.config.validate import validated
from hil.devices.board.identity import tells_apart
from hil.errors import ConfigError, ModelError, PluginError, one_line
from hil.experiment import board_limits, checks, loop_limits, tightening
from hil.experiment.kind import ControllerKind, SystemKind, SystemRun
from hil.experiment.recorded import as_it_meant
from hil.experiment.registry import controller_kind, named, system_kind
from hil.experiment.schema import ModelTables, RigTables, RunTables
from hil.experiment.source_checks import calculable
from hil.mechanics.system import System
from hil.plugins.code import Plugin
from hil.plugins.load import load_plugins, plugin_tables
from hil.rig import calibrated, run_tables
from hil.rig.instruments import boards_of, force_channel_doubts, with_force_channel
from hil.rig.tables import CellBoardTable, DeviceTable

LOGBOOK = Path("logbook")
TRIED_PERIOD_S = 0.001  # period of a system that is built only for validation


@dataclass(frozen=True)
class Config:
    """A validated run: its tables, and the models they describe.

    Attributes
    ----------
    path : the experiment's file
    models : the models of `[model]` and `[plant]`, built by their kind of system
    records : dict of Calibration, calibrations of the channels that have one
    sources : sequence of Sourced
        Calibrations that other tables name; none if the configuration is from a recording.
    logbook : folder of the specimen's logbook
    doubts : sequence of str
        Warnings about choices that the files leave open, one line each; a run prints them.
    excuses : sequence of str
        Choices that excuse a slow computer, one line each; a run on the bench is refused with them.
    """

    path: Path
    tables: RunTables
    models: tuple[Any, Any]
    records: Mapping[str, Calibration] = field(default_factory=dict)
    sources: Sequence[Sourced] = ()
    logbook: Path = LOGBOOK
    doubts: Sequence[str] = ()
    excuses: Sequence[str] = ()

    @property
    def kind(self) -> SystemKind:
        """The kind of system that it runs on."""
        return system_kind(self.tables.model)

    @property
    def controller(self) -> ControllerKind:
        """The kind of its controller."""
        found = controller_kind(self.kind, self.tables.controller)
        assert found is not None  # checks.run refuses an unknown controller
        return found

    @property
    def modulates(self) -> bool:
        """Whether its controller commands duties."""
        return self.controller.modulates(self.tables.controller)

    @property
    def run(self) -> SystemRun:
        """Its tables with the model."""
        return SystemRun(self.kind, self.tables, self.models[0])

    @property
    def model(self) -> Any:
        """The twin's array; ConfigError if the model is not an array."""
        return array_of(self.path, self.tables.model, self.models[0])

    @property
    def plant(self) -> Any:
        """The simulated plant's array; ConfigError if the model is not an array."""
        return array_of(self.path, self.tables.model, self.models[1])

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

    def system(self, *, plant: bool = False) -> System:
        """A new twin, or a new simulated plant, with the loop's period."""
        table = self.tables.plant if plant else self.tables.model
        kind = system_kind(table)
        return kind.new_system(table, self.models[plant], self.tables.loop.period_s)

    def activation(self, *, plant: bool = False) -> list[Any]:
        """Activation model of each cell; ConfigError if the model is not an array."""
        table = self.tables.plant if plant else self.tables.model
        array_of(self.path, table, self.models[plant])
        return self.kind.activation(table)

    def protections(self) -> list[board_limits.Protection]:
        """Its boards, and the wires that their limits must protect."""
        return board_limits.protections(self.tables, self.models[0])

    def resistance_limits_Ohm(self, board: str) -> list[tuple[float, float]]:
        """The least and greatest resistance of every cell of a board."""
        return board_limits.resistance_limits_Ohm(self.tables, self.models[0], board)

    def clamps_at_rest_C(self, board: str) -> list[tuple[float, float]]:
        """What the clamp of every cell of a board may read before a run."""
        return board_limits.clamps_at_rest_C(self.tables, self.models[0], board)

    def loop_protections(self) -> list[loop_limits.LoopProtection]:
        """Its devices that switch cells without measuring them, and the budgets of their wires."""
        return loop_limits.protections(self.tables, self.models[0])

    def cooling_s(self, device: str) -> float:
        """Time with all its cells off after which any wire of a device has cooled enough."""
        budgets = [
            b for p in self.loop_protections() if p.name == device for b in p.budgets.values()
        ]
        return max((budget.cools_in_s for budget in budgets), default=0.0)

    def to_toml(self) -> str:
        """The complete merged configuration, including defaults."""
        return tomli_w.dumps(self.tables.model_dump(by_alias=True, exclude_none=True))

    @property
    def units(self) -> dict[str, Any]:
        """The models that are files of others' code, by key: each has `file` and `sha256`."""
        return {
            key: model
            for key, model in zip(("model", "plant"), self.models, strict=True)
            if system_kind(getattr(self.tables, key)).code
        }

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


def load(path: str | Path, sets: Iterable[str] = ()) -> Config:
    """Read and validate an experiment and its rig.

    Parameters
    ----------
    path : path of the experiment's TOML file
    sets : `key.path=value` texts that override keys of the merged configuration

    Raises
    ------
    ConfigError
        One line for each error: file, key, value, remedy.
    """
    path = Path(path)
    merged = read_merged(path, sets)
    if "campaign" in merged.table:
        raise ConfigError(f"{path}: a campaign: run it with hil campaign")
    if "experiment" not in merged.table:
        raise ConfigError(f"{path}: no [experiment]: {_what_else(merged.table)}")
    return _run(path, merged)


def _what_else(table: Mapping[str, Any]) -> str:
    """What a file without an experiment is, and what to do with it."""
    if "fault" in table:
        return "a file of faults: give it to hil run EXPERIMENT.toml --inject"
    if "act" in table:
        return "a calibration record: name it in a rig"
    return "give an experiment, not a rig"


def load_with(rig: Path, own: dict[str, Any], name: str, sets: Iterable[str] = ()) -> Config:
    """Load a rig with the tables of an experiment that is in no file; errors in them name `name`.

    Raises
    ------
    ConfigError
        The rig or a table is not valid, or the file is an experiment.
    """
    merged = read_merged(rig, sets)
    if "experiment" in merged.table or "campaign" in merged.table:
        raise ConfigError(f"{rig}: not a rig: give the rig's file, such as configs/miga6/rig.toml")
    return _run(rig, Merged(merge(merged.table, own), [*merged.sources, (name, own)]))


def from_toml(
    path: Path,
    table: dict[str, Any],
    records: Mapping[str, Calibration] | None = None,
    code: Mapping[str, str] | None = None,
) -> Config:
    """Load the configuration of a recording; errors name `path`.

    The plant is not simulated again: if it is code of others, the model takes its place.

    Parameters
    ----------
    records : calibrations of the channels
    code : plug-in code that may run, by key; no other code runs and no file is read
    """
    table, code = as_it_meant(table), dict(code or {})
    if _is_of_others(table.get("plant")):
        table = {**table, "plant": table.get("model")}
        code |= {"plant": code["model"]} if "model" in code else {}
    return _run(path, Merged(table, [(str(path), table)]), records or {}, code)


def _is_of_others(table: Any) -> bool:
    """Whether a table of `[model]` or `[plant]` names a class or a file of somebody's code."""
    if not isinstance(table, dict):
        return False
    kind = named(table.get("kind"))
    return kind is None or bool(kind.code)


def _run(
    path: Path,
    merged: Merged,
    records: Mapping[str, Calibration] | None = None,
    code: Mapping[str, str] | None = None,
) -> Config:
    tables = validated(RunTables, merged)
    doubts = _doubts(tables, merged)
    tables = with_force_channel(tables)
    load_plugins(tables, merged, code)
    models = _models(tables, merged, tables.loop.period_s)
    sources: list[Sourced] = []
    excuses: list[tuple[str, str]] = []
    if records is None:  # the choices of a recording were made before its run
        raise_all(merged, _choices(tables, merged))
        records = calibrated.load_records(tables.devices, merged)
        sources = load_sources(tables, merged)
        excuses = list(tightening.faults(tables, merged, late=True))
    try:
        with calculable(merged):
            found = [*checks.rig(tables, models[0]), *calibrated.check(tables, records)]
            found += checks.plant(tables, *models)
            found += checks.run(SystemRun(system_kind(tables.model), tables, models[0]))
    except PluginError as error:
        raise ConfigError(f"{path}: {error}") from None
    raise_all(merged, found)
    logbook = _logbook(tables, merged)
    lines = _lines(merged, excuses)
    return Config(path, tables, models, records, sources, logbook, doubts, lines)


def _choices(tables: RigTables, merged: Merged) -> list[tuple[str, str]]:
    """Choices that weaken a protection, or leave it without effect."""
    return [*tightening.faults(tables, merged, late=False), *checks.disabled(tables)]


def load_calibrations(
    path: str | Path, sets: Iterable[str] = ()
) -> tuple[Mapping[str, DeviceTable], Mapping[str, Calibration], list[Sourced]]:
    """Load the devices of a rig or a model, and the calibrations that their tables name."""
    merged = read_merged(Path(path), sets)
    if merged.table.keys() <= {"model", "plant"}:
        return {}, {}, load_sources(validated(ModelTables, merged), merged)
    tables = validated(RigTables, merged)
    records = calibrated.load_records(tables.devices, merged)
    return tables.devices, records, load_sources(tables, merged)


def doubts_of(path: str | Path, sets: Iterable[str] = ()) -> list[str]:
    """Warnings about choices that a valid rig or experiment leaves open, one line each."""
    merged = read_merged(Path(path), sets)
    kind = RunTables if "experiment" in merged.table else RigTables
    tables = validated(kind, merged)
    return [*_doubts(tables, merged), *_interchangeable(tables, merged)]


def _interchangeable(tables: RigTables, merged: Merged) -> list[str]:
    """A line for each board that a file does not tell from others, which a bench refuses."""
    return [
        f"{merged.origin(('devices', name))}: devices.{name}.serial: missing: another board may be "
        f"at {board.port} next time, and a run on the bench is refused: add the serial number that "
        "hil devices --identify shows"
        for name, board in boards_of(tables.devices).items()
        if not tells_apart(board.port, board.serial)
    ]


def _doubts(tables: RigTables, merged: Merged) -> list[str]:
    choices = force_channel_doubts(tables) + system_kind(tables.model).doubts(tables)
    lines = [f"{merged.origin(('devices',))}: {line}" for line in choices]
    asked = merged.origin(("experiment", "duration_s")).startswith("--set")
    if isinstance(tables, RunTables) and not asked:
        found = checks.after_the_end(tables)
        lines += [f"{merged.origin(key.split('.'))}: {key}: {text}" for key, text in found]
    return lines


def _logbook(tables: RigTables, merged: Merged) -> Path:
    """Folder of the logbooks; the path is relative to the file that names it."""
    if tables.specimen is None or tables.specimen.logbook is None:
        return LOGBOOK
    origin = merged.origin(("specimen", "logbook"))
    folder = Path() if origin.startswith("--set") else Path(origin).parent
    return folder / tables.specimen.logbook


def load_model(path: str | Path, sets: Iterable[str] = ()) -> tuple[Any, NDArray[np.float64]]:
    """Load the array of a rig, an experiment, or a file with only `[model]`.

    Returns
    -------
    model : CellArray
    force_on_N : (N,) array, force of every cell while on

    Raises
    ------
    ConfigError
        The model is not an array, or the file is not valid.
    """
    tables, merged = _model_tables(path, sets)
    array = array_of(Path(path), tables.model, _models(tables, merged)[0])
    activation = system_kind(tables.model).activation(tables.model)
    return array, np.array([a.force_on_N for a in activation])


def system_from_toml(path: Path, table: dict[str, Any], period_s: float) -> System:
    """Build the model of a recording's configuration, at rest; no code of others runs.

    Raises
    ------
    ConfigError
        The configuration is not valid, or its model is code of others.
    """
    if _is_of_others(table.get("model")):
        raise ConfigError(f"{path}: model: code of others, which only hil replay runs")
    selected = dict.fromkeys(("model", "plant"), table.get("model"))
    merged = Merged(selected, [(str(path), selected)])
    tables = validated(ModelTables, merged)
    load_plugins(tables, merged, {})
    model = _models(tables, merged, period_s)[0]
    return system_kind(tables.model).new_system(tables.model, model, period_s)


def load_built(path: str | Path, sets: Iterable[str] = ()) -> tuple[Any, Any]:
    """Load the table `[model]` of a file, and build its model, at rest.

    Raises
    ------
    ConfigError
        The file is not valid.
    """
    tables, merged = _model_tables(path, sets)
    return tables.model, _models(tables, merged)[0]


def period_of(path: str | Path, sets: Iterable[str] = ()) -> float:
    """Period of the loop of a file; of a file with only a model, 1 ms."""
    loop = read_merged(Path(path), sets).table.get("loop", {})
    return float(loop.get("period_s", TRIED_PERIOD_S))


def _model_tables(path: str | Path, sets: Iterable[str]) -> tuple[ModelTables, Merged]:
    merged = read_merged(Path(path), sets)
    table = {key: value for key, value in merged.table.items() if key in ("model", "plant")}
    tables = validated(ModelTables, Merged(table, merged.sources))
    load_plugins(tables, merged)
    return tables, merged


def check_model(merged: Merged) -> None:
    """Check a file with only a model; ConfigError if it is not valid."""
    tables = validated(ModelTables, merged)
    load_plugins(tables, merged)
    _models(tables, merged)
    load_sources(tables, merged)


def check_rig(merged: Merged) -> None:
    """Check a rig; ConfigError with one line for each error."""
    tables = validated(RigTables, merged)
    load_plugins(tables, merged)
    model = _models(tables, merged, tables.loop.period_s)[0]
    records = calibrated.load_records(tables.devices, merged)
    load_sources(tables, merged)
    with calculable(merged):
        found = [*checks.rig(tables, model), *calibrated.check(tables, records)]
        found += _choices(tables, merged)
        raise_all(merged, [*found, *tightening.faults(tables, merged, late=True)])
        boards = board_limits.protections(tables, model)
        raise_all(merged, list(board_limits.faults(boards)))


def load_protections(
    path: str | Path, sets: Iterable[str] = (), *, complete: bool = False
) -> list[board_limits.Protection]:
    """The boards of a rig or an experiment, and the wires that their limits must protect.

    With `complete`, limits that the boards leave out are derived from the guard.

    Raises
    ------
    ConfigError
        The file is not valid.
    """
    tables, merged = _rig_tables(path, sets)
    tables, derived = board_limits.completed(tables) if complete else (tables, {})
    load_plugins(tables, merged)
    model = _models(tables, merged, tables.loop.period_s)[0]
    raise_all(merged, [*checks.rig(tables, model), *checks.disabled(tables)])
    boards = board_limits.protections(tables, model)
    return [replace(board, derived=derived.get(board.name, {})) for board in boards]


def load_boards(path: str | Path, sets: Iterable[str] = ()) -> dict[str, CellBoardTable]:
    """The driver boards of a rig or an experiment, with their limits.

    Raises
    ------
    ConfigError
        The file is not valid, or has no board.
    """
    tables, merged = _rig_tables(path, sets)
    load_plugins(tables, merged)
    model = _models(tables, merged, tables.loop.period_s)[0]
    raise_all(merged, [*checks.rig(tables, model), *checks.disabled(tables)])
    boards = boards_of(tables.devices)
    if not boards:
        raise ConfigError(
            f"{path}: --board: the rig has no driver board: leave --board out, or add "
            '[devices.board] with kind = "cell_board"'
        )
    return boards


def load_loop_protections(
    path: str | Path, sets: Iterable[str] = ()
) -> tuple[list[str], list[str]]:
    """What the loop lets wires reach that no board protects, and warnings, of a valid file."""
    tables, merged = _rig_tables(path, sets)
    load_plugins(tables, merged)
    model = _models(tables, merged, tables.loop.period_s)[0]
    found = loop_limits.protections(tables, model)
    return loop_limits.as_text(found), loop_limits.doubts(found, tables)


def _rig_tables(path: str | Path, sets: Iterable[str]) -> tuple[RigTables, Merged]:
    """The tables of the rig in a rig's or an experiment's file."""
    merged = read_merged(Path(path), sets)
    table = {k: v for k, v in merged.table.items() if k in RigTables.model_fields}
    return validated(RigTables, Merged(table, merged.sources)), merged


def _models(
    tables: run_tables.ModelTables, merged: Merged, period_s: float = TRIED_PERIOD_S
) -> tuple[Any, Any]:
    """Build the models of `[model]` and `[plant]`, which may differ only in values."""
    built: list[Any] = []
    for key, table in (("model", tables.model), ("plant", tables.plant)):
        kind = system_kind(table)
        if built and kind.system is not None and table == tables.model:
            built.append(built[0])  # the plant is as the model has it
            continue
        try:
            with calculable(merged):
                built.append(kind.build(table, period_s))
        except PluginError as error:
            origin = merged.origin((key, "kind"))
            raise ConfigError(one_line(f"{origin}: {key}.kind = '{table.kind}': {error}")) from None
        except ModelError as error:
            where, _, text = str(error).partition(": ")
            path = f"{key}.{where}"
            raise ConfigError(
                one_line(f"{merged.origin(path.split('.'))}: {path}: {text}")
            ) from None
    model, plant = built
    where = merged.origin(["plant"])
    if [*model.cell_names] != [*plant.cell_names]:
        raise ConfigError(f"{where}: plant: its cells must be those of [model], in their order")
    if tables.model.kind == tables.plant.kind and [*model.outputs] != [*plant.outputs]:
        raise ConfigError(
            f"{where}: plant: its masses and points must be those of [model]: change only values"
        )
    return model, plant


def array_of(path: Path, table: Any, model: Any) -> Any:
    """Return the model if it is an array whose force is controlled; otherwise ConfigError."""
    if system_kind(table).force_signal is None:
        raise ConfigError(f"{path}: model.kind = '{table.kind}': this needs a cell_array")
    return model


def raise_all(merged: Merged, found: Sequence[tuple[str, str]]) -> None:
    """Raise ConfigError with one line for each error, naming its file; nothing if there is none."""
    if found:
        raise ConfigError("\n".join(_lines(merged, found)))


def _lines(merged: Merged, found: Sequence[tuple[str, str]]) -> list[str]:
    return [one_line(f"{merged.origin(_keys(k))}: {k}: {text}") for k, text in found]


def _keys(dotted: str) -> list[str | int]:
    return [part.split(" =")[0] for part in dotted.split(".")]
