"""Load files and `--set` into a validated rig or experiment; every error is one line."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from hil.calibration.files import Calibration
from hil.config.files import PROGRAM, Merged, is_option, merge, read_merged
from hil.config.validate import validated
from hil.config.values import TomlTable, as_in_file
from hil.devices.board.identity import tells_apart
from hil.errors import ConfigError, PluginError, one_line
from hil.experiment import board_limits, checks, tightening
from hil.experiment.kind import SystemRun
from hil.experiment.loaded import Experiment, LoadedModel, LoadedRig
from hil.experiment.recorded import as_it_meant
from hil.experiment.registry import named, system_kind
from hil.experiment.schema import ModelTables, RigTables, RunTables
from hil.experiment.source_checks import calculable, raise_all
from hil.plugins.load import kind_of, load_plugins
from hil.rig import calibrated
from hil.rig.instruments import force_channel_doubts, with_force_channel

TomlTables = dict[str, TomlTable]


def load(path: str | Path, sets: Iterable[str] = (), **changes: object) -> Experiment:
    """Read and validate an experiment and its rig.

    Parameters
    ----------
    path : path of the experiment's TOML file
    sets : `key.path=value` texts that override keys of the merged configuration
    changes : dict or class by table
        Tables that change those of the file, such as `guard={"force_max_N": 2.0}`. One of another
        `kind` takes the place of the file's. A class is a table with this class as its `kind`:
        `controller=Mine`, or with values for it, `controller={"kind": Mine, "gain": 2.0}`.

    Raises
    ------
    ConfigError
        One line for each error: file, key, value, remedy.
    """
    path = Path(path)
    tables, classes = _changed(changes)
    merged = read_merged(path, sets, tables)
    if "campaign" in merged.table:
        raise ConfigError(f"{path}: a campaign: run it with hil campaign")
    if "experiment" not in merged.table:
        raise ConfigError(f"{path}: no [experiment]: {_what_else(merged.table)}")
    model, plant = merged.table.get("model"), merged.table.get("plant")
    if "model" in classes and _kind(plant) == _kind(model):
        classes.setdefault("plant", classes["model"])
    return _experiment(path, merged, classes=classes)


def _changed(changes: Mapping[str, object]) -> tuple[TomlTables, dict[str, type]]:
    """These changes as tables of a file, and the classes among them, by key."""
    classes: dict[str, type] = {}

    def kind(key: str, cls: type) -> str:
        classes[key.removesuffix(".kind")] = cls
        return kind_of(cls)

    tables = {}
    for key, value in changes.items():
        table = as_in_file({"kind": value} if isinstance(value, type) else value, kind, key)
        if not isinstance(table, dict):
            what = one_line(repr(value))
            raise ConfigError(f"{PROGRAM}: {key} = {what}: give a table or a class")
        tables[key] = table
    return tables, classes


def _kind(table: object) -> object:
    return table.get("kind") if isinstance(table, dict) else None


def _what_else(table: Mapping[str, object]) -> str:
    """What a file without an experiment is, and what to do with it."""
    if "fault" in table:
        return "a file of faults: give it to hil run EXPERIMENT.toml --inject"
    if "act" in table:
        return "a calibration record: name it in a rig"
    return "give an experiment, not a rig"


def load_with(
    rig: Path, tables: dict[str, object], name: str, sets: Iterable[str] = ()
) -> Experiment:
    """Load a rig with the tables of an experiment that is in no file; errors in them name `name`.

    Raises
    ------
    ConfigError
        The rig or a table is not valid, or the file is an experiment.
    """
    merged = read_merged(rig, sets)
    if "experiment" in merged.table or "campaign" in merged.table:
        raise ConfigError(f"{rig}: not a rig: give the rig's file, such as configs/miga6/rig.toml")
    return _experiment(rig, Merged(merge(merged.table, tables), [*merged.sources, (name, tables)]))


def from_toml(
    path: Path,
    table: dict[str, object],
    records: Mapping[str, Calibration] | None = None,
    code: Mapping[str, str] | None = None,
) -> Experiment:
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
    return _experiment(path, Merged(table, [(str(path), table)]), records or {}, code)


def model_from_toml(path: Path, table: dict[str, object]) -> LoadedModel:
    """Load the model of a recording's configuration; no code of others runs.

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
    return LoadedModel(path, tables, merged)


def _is_of_others(table: object) -> bool:
    """Whether a table of `[model]` or `[plant]` names a class or a file of somebody's code."""
    if not isinstance(table, dict):
        return False
    kind = named(table.get("kind"))
    return kind is None or bool(kind.code)


def load_model(path: str | Path, sets: Iterable[str] = ()) -> LoadedModel:
    """Load the model of a rig, an experiment, or a file with only `[model]`.

    Raises
    ------
    ConfigError
        The model's tables are not valid.
    """
    merged = read_merged(Path(path), sets)
    table = {key: value for key, value in merged.table.items() if key in ("model", "plant")}
    tables = validated(ModelTables, Merged(table, merged.sources))
    load_plugins(tables, merged)
    return LoadedModel(Path(path), tables, merged)


def load_rig(path: str | Path, sets: Iterable[str] = (), *, complete: bool = False) -> LoadedRig:
    """Load the rig of a rig's or an experiment's file; its devices fit its model.

    With `complete`, limits that the boards leave out are derived from the guard.

    Raises
    ------
    ConfigError
        The rig is not valid.
    """
    rig = _rig(path, sets, complete=complete)
    raise_all(rig.merged, [*checks.rig(rig.tables, rig.models[0]), *checks.disabled(rig.tables)])
    return rig


def check_rig(path: str | Path, sets: Iterable[str] = ()) -> LoadedRig:
    """Load a rig as `load_rig`, and check all that an experiment and a bench would refuse.

    Raises
    ------
    ConfigError
        One line for each error.
    """
    merged = read_merged(Path(path), sets)
    validated(RigTables, merged)  # keys of an experiment have no place in a rig
    rig = _rig(path, sets)
    tables = rig.tables
    rig.read_calibrations()
    with calculable(rig.merged):
        faults = [*checks.rig(tables, rig.models[0]), *calibrated.check(tables, rig.records)]
        faults += _choices(tables, rig.merged)
        raise_all(rig.merged, [*faults, *tightening.faults(tables, rig.merged, late=True)])
        raise_all(rig.merged, [*board_limits.faults(rig.protections)])
    return rig


def _rig(path: str | Path, sets: Iterable[str], *, complete: bool = False) -> LoadedRig:
    merged = read_merged(Path(path), sets)
    table = {k: v for k, v in merged.table.items() if k in RigTables.model_fields}
    tables = validated(RigTables, Merged(table, merged.sources))
    tables, derived = board_limits.completed(tables) if complete else (tables, {})
    load_plugins(tables, merged)
    return LoadedRig(Path(path), tables, merged, _doubts(tables, merged), derived)


def _experiment(
    path: Path,
    merged: Merged,
    records: Mapping[str, Calibration] | None = None,
    code: Mapping[str, str] | None = None,
    classes: Mapping[str, type] | None = None,
) -> Experiment:
    tables = validated(RunTables, merged)
    doubts = _doubts(tables, merged)
    tables = with_force_channel(tables)
    load_plugins(tables, merged, code, classes)
    loaded = Experiment(path, tables, merged, doubts, recorded=records)
    models = loaded.models
    if records is None:  # the choices of a recording were made before its run
        raise_all(merged, _choices(tables, merged))
        loaded.read_calibrations()
    try:
        with calculable(merged):
            faults = [*checks.rig(tables, models[0]), *calibrated.check(tables, loaded.records)]
            faults += checks.plant(tables, *models)
            faults += checks.run(SystemRun(loaded.kind, tables, models[0]))
    except PluginError as error:
        raise ConfigError(f"{path}: {error}") from None
    raise_all(merged, faults)
    return loaded


def _choices(tables: RigTables, merged: Merged) -> list[tuple[str, str]]:
    """Choices that weaken a protection, or leave it without effect."""
    return [*tightening.faults(tables, merged, late=False), *checks.disabled(tables)]


def _doubts(tables: RigTables, merged: Merged) -> list[str]:
    choices = force_channel_doubts(tables) + system_kind(tables.model).doubts(tables)
    lines = [f"{merged.origin(('devices',))}: {line}" for line in choices]
    shortened = is_option(merged.origin(("experiment", "duration_s")))
    if isinstance(tables, RunTables) and not shortened:
        late = checks.after_the_end(tables)
        lines += [f"{merged.origin(key.split('.'))}: {key}: {text}" for key, text in late]
    return lines


def interchangeable(rig: LoadedRig) -> list[str]:
    """A line for each board that a file does not tell from others, which a bench refuses."""
    return [
        f"{rig.merged.origin(('devices', name))}: devices.{name}.serial: missing: another board "
        f"may be at {board.port} next time, and a run on the bench is refused: add the serial "
        "number that hil devices --identify shows"
        for name, board in rig.boards.items()
        if not tells_apart(board.port, board.serial)
    ]
