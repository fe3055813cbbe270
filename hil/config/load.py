"""Files and `--set` -> a validated configuration; every error is one line."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w
from numpy.typing import NDArray

from hil.config import board_limits, cards, crosscheck, schema
from hil.config.build import build_activation, build_model, build_system
from hil.config.build_pantograph import FOLLOWED
from hil.config.calibration import Calibration, load_any
from hil.config.files import Merged, read_merged, read_toml
from hil.config.instruments import (
    channel_doubts,
    force_channel_doubts,
    signals_of,
    with_force_channel,
)
from hil.config.own import load_own, own_tables
from hil.config.pantograph import PantographTable
from hil.config.recorded import as_it_meant
from hil.config.sources import Sourced, load_sources
from hil.config.validate import validated
from hil.errors import ConfigError, OwnError, one_line
from hil.models import CellArray, ModelError
from hil.models.activation import CellActivation
from hil.models.array_system import ArraySystem
from hil.models.system import System
from hil.own import Own

LOGBOOK = Path("logbook")
TRIED_PERIOD_S = 0.001  # of a system that is only built to see whether it can be


@dataclass(frozen=True)
class Config:
    """A validated run: its tables, and the models they describe.

    Attributes
    ----------
    path : Path
        The experiment's file.
    tables : RunTables
    arrays : (CellArray, CellArray) or None
        The twin's and the simulated plant's; None where the model is no cellular array.
    records : dict of Calibration
        Of the channels that have one.
    sources : sequence of Sourced
        The records that other tables name; none where it comes from a recording.
    logbook : Path
        Folder of the article's logbook.
    doubts : sequence of str
        What the files leave to be guessed, a line each; runs warn of it.
    """

    path: Path
    tables: schema.RunTables
    arrays: tuple[CellArray, CellArray] | None
    records: Mapping[str, Calibration] = field(default_factory=dict)
    sources: Sequence[Sourced] = ()
    logbook: Path = LOGBOOK
    doubts: Sequence[str] = ()

    @property
    def model(self) -> CellArray:
        """The twin's array; ConfigError where the rig is none."""
        return self._array(0)

    @property
    def plant(self) -> CellArray:
        """The simulated plant's array; ConfigError where the rig is none."""
        return self._array(1)

    def _array(self, which: int) -> CellArray:
        if self.arrays is None:
            kind = self.tables.model.kind
            raise ConfigError(f"{self.path}: model.kind = '{kind}': this needs a cell_array")
        return self.arrays[which]

    @property
    def own(self) -> dict[str, Own]:
        """The classes of one's own that it uses, by key."""
        return {".".join(path): table.own for path, _, table in own_tables(self.tables)}

    @property
    def rig_name(self) -> str:
        return self.path.resolve().parent.name

    @property
    def n_ticks(self) -> int:
        return max(1, round(self.tables.experiment.duration_s / self.tables.loop.period_s))

    def system(self, *, plant: bool = False) -> System:
        """A new twin, or the simulated plant, stepped by the loop's period."""
        table = self.tables.plant if plant else self.tables.model
        period_s = self.tables.loop.period_s
        if isinstance(table, schema.ModelTable):
            model = self.plant if plant else self.model
            return ArraySystem(model, build_activation(table), period_s)
        return build_system(table, period_s)

    def activation(self, *, plant: bool = False) -> list[CellActivation]:
        """How the cells' forces rise and fall; ConfigError where the rig is no array."""
        self._array(plant)
        return build_activation(self.tables.plant if plant else self.tables.model)

    def to_toml(self) -> str:
        """The whole merged configuration, defaults included."""
        return tomli_w.dumps(self.tables.model_dump(by_alias=True, exclude_none=True))


def load(path: str | Path, sets: Iterable[str] = ()) -> Config:
    """Read and validate an experiment and its rig.

    Parameters
    ----------
    path : path of the experiment's TOML file
    sets : `key.path=value` texts that override keys of the merged configuration

    Raises
    ------
    ConfigError
        One line an error: file, key, value, remedy.
    """
    path = Path(path)
    merged = read_merged(path, sets)
    if "campaign" in merged.table:
        raise ConfigError(f"{path}: a campaign: hil campaign runs it")
    if "experiment" not in merged.table:
        raise ConfigError(f"{path}: no [experiment]: give an experiment, not a rig")
    return _run(path, merged)


def from_toml(
    path: Path,
    table: dict[str, Any],
    records: Mapping[str, Calibration] | None = None,
    code: Mapping[str, str] | None = None,
) -> Config:
    """The configuration that a recording carries; `path` is named in errors.

    Parameters
    ----------
    records : the calibration of every channel
    code : the code of one's own that may run, by key; no other does, and no file is looked for
    """
    table = as_it_meant(table)
    return _run(path, Merged(table, [(str(path), table)]), records or {}, code or {})


def _run(
    path: Path,
    merged: Merged,
    records: Mapping[str, Calibration] | None = None,
    code: Mapping[str, str] | None = None,
) -> Config:
    tables = validated(schema.RunTables, merged)
    doubts = _doubts(tables, merged)
    tables = with_force_channel(tables)
    load_own(tables, merged, code)
    arrays = _models(tables, merged)
    model = arrays and arrays[0]
    sources: list[Sourced] = []
    if records is None:
        records = cards.load_records(tables.devices, merged)
        sources = load_sources(tables, merged)
    try:
        found = [*crosscheck.rig(tables, model), *cards.check(tables, records)]
        found += crosscheck.run(tables, model)
    except OwnError as error:
        raise ConfigError(f"{path}: {error}") from None
    _raise_all(merged, found)
    return Config(path, tables, arrays, records, sources, _logbook(tables, merged), doubts)


def load_calibrations(
    path: str | Path, sets: Iterable[str] = ()
) -> tuple[Mapping[str, schema.DeviceTable], Mapping[str, Calibration], list[Sourced]]:
    """The devices of a rig or a model, and the records that they and other tables name."""
    merged = read_merged(Path(path), sets)
    if merged.table.keys() <= {"model", "plant"}:
        return {}, {}, load_sources(validated(schema.ModelTables, merged), merged)
    tables = validated(schema.RigTables, merged)
    records = cards.load_records(tables.devices, merged)
    return tables.devices, records, load_sources(tables, merged)


def doubts_of(path: str | Path, sets: Iterable[str] = ()) -> list[str]:
    """What a valid rig or experiment leaves to be guessed, a line each."""
    merged = read_merged(Path(path), sets)
    whole = schema.RunTables if "experiment" in merged.table else schema.RigTables
    return _doubts(validated(whole, merged), merged)


def _doubts(tables: schema.RigTables, merged: Merged) -> list[str]:
    found = force_channel_doubts(tables)
    if isinstance(tables.model, PantographTable):
        found += channel_doubts(signals_of(tables.devices), FOLLOWED)
    return [f"{merged.origin(('devices',))}: {line}" for line in found]


def _logbook(tables: schema.RigTables, merged: Merged) -> Path:
    """The folder of logbooks; a path is relative to the file that names it."""
    if tables.article is None or tables.article.logbook is None:
        return LOGBOOK
    origin = merged.origin(("article", "logbook"))
    folder = Path() if origin.startswith("--set") else Path(origin).parent
    return folder / tables.article.logbook


def load_model(path: str | Path, sets: Iterable[str] = ()) -> tuple[CellArray, NDArray[np.float64]]:
    """The array of a rig, an experiment, or a file with nothing but `[model]`.

    Returns
    -------
    model : CellArray
    force_on_N : (N,) array
        An active cell's F, for every cell.

    Raises
    ------
    ConfigError
        The model is none.
    """
    tables, merged = _model_tables(path, sets)
    arrays = _models(tables, merged)
    if arrays is None:
        raise ConfigError(f"{path}: model.kind = '{tables.model.kind}': this needs a cell_array")
    return arrays[0], np.array([a.force_on_N for a in build_activation(tables.model)])


def model_from_toml(
    path: Path, table: dict[str, Any]
) -> tuple[CellArray, list[CellActivation]] | None:
    """The array of a configuration that a recording carries, and how its cells' forces rise.

    None where its model is of another kind. No code of one's own runs.
    """
    own = {key: value for key, value in table.items() if key in ("model", "plant")}
    merged = Merged(own, [(str(path), own)])
    tables = validated(schema.ModelTables, merged)
    load_own(tables, merged, {})
    arrays = _models(tables, merged)
    return arrays and (arrays[0], build_activation(tables.model))


def load_system(path: str | Path, sets: Iterable[str] = ()) -> tuple[str, System | None]:
    """The model's kind, and what it is where it is not a cell_array, at rest.

    Raises
    ------
    ConfigError
    """
    tables, merged = _model_tables(path, sets)
    if isinstance(tables.model, schema.ModelTable):
        return tables.model.kind, None
    _models(tables, merged)
    return tables.model.kind, build_system(tables.model, TRIED_PERIOD_S)


def _model_tables(path: str | Path, sets: Iterable[str]) -> tuple[schema.ModelTables, Merged]:
    merged = read_merged(Path(path), sets)
    table = {key: value for key, value in merged.table.items() if key in ("model", "plant")}
    tables = validated(schema.ModelTables, Merged(table, merged.sources))
    load_own(tables, merged)
    return tables, merged


def check(path: str | Path, sets: Iterable[str] = ()) -> str:
    """Validate a file of any kind; what kind it is.

    Raises
    ------
    ConfigError
        One line an error.
    """
    path = Path(path)
    if "act" in read_toml(path):
        load_any(path, named_by=str(path))
        return "calibration record"
    if "campaign" in read_toml(path):
        from hil.config.campaign_plan import load_campaign  # which loads its experiments by this

        load_campaign(path)
        return "campaign"
    merged = read_merged(path, sets)
    if "experiment" in merged.table or "controller" in merged.table:
        from hil.config.plan import cells_beyond  # which asks for a Config

        config = load(path, sets)
        boards = board_limits.protections(config.tables, config.system().cell_names)
        _raise_all(merged, [*cells_beyond(config), *board_limits.faults(boards)])
        return "experiment"
    if merged.table.keys() <= {"model", "plant"}:
        model = validated(schema.ModelTables, merged)
        load_own(model, merged)
        _models(model, merged)
        load_sources(model, merged)
        return "model"
    tables = validated(schema.RigTables, merged)
    load_own(tables, merged)
    arrays = _models(tables, merged)
    records = cards.load_records(tables.devices, merged)
    load_sources(tables, merged)
    found = [*crosscheck.rig(tables, arrays and arrays[0]), *cards.check(tables, records)]
    _raise_all(merged, found)
    _raise_all(merged, list(board_limits.faults(_protections(tables, arrays))))
    return "rig"


def load_protections(path: str | Path, sets: Iterable[str] = ()) -> list[board_limits.Protection]:
    """The boards of a rig or an experiment, and the wires that their limits are to protect.

    Raises
    ------
    ConfigError
    """
    merged = read_merged(Path(path), sets)
    table = {k: v for k, v in merged.table.items() if k in schema.RigTables.model_fields}
    tables = validated(schema.RigTables, Merged(table, merged.sources))
    load_own(tables, merged)
    arrays = _models(tables, merged)
    _raise_all(merged, list(crosscheck.rig(tables, arrays and arrays[0])))
    return _protections(tables, arrays)


def _protections(
    tables: schema.RigTables, arrays: tuple[CellArray, CellArray] | None
) -> list[board_limits.Protection]:
    if isinstance(tables.model, schema.ModelTable):
        assert arrays is not None
        return board_limits.protections(tables, arrays[0].cell_names)
    system = build_system(tables.model, TRIED_PERIOD_S)
    return board_limits.protections(tables, system.cell_names)


def _models(tables: schema.ModelTables, merged: Merged) -> tuple[CellArray, CellArray] | None:
    """The arrays of model and plant; None where the model is of another kind, which is tried."""
    built = []
    for key, table in (("model", tables.model), ("plant", tables.plant)):
        try:
            if isinstance(table, schema.ModelTable):
                built.append(build_model(table))
                build_activation(table)
            else:
                build_system(table, TRIED_PERIOD_S)
        except OwnError as error:
            origin = merged.origin((key, "kind"))
            raise ConfigError(one_line(f"{origin}: {key}.kind = '{table.kind}': {error}")) from None
        except ModelError as error:
            where, _, text = str(error).partition(": ")
            path = f"{key}.{where}"
            raise ConfigError(
                one_line(f"{merged.origin(path.split('.'))}: {path}: {text}")
            ) from None
    if tables.model.kind != tables.plant.kind:
        raise ConfigError(
            f"{merged.origin(['plant'])}: plant.kind: must be that of [model]: change values only"
        )
    if not built:
        return None
    model, plant = built
    if model.cell_names != plant.cell_names or model.outputs != plant.outputs:
        raise ConfigError(
            f"{merged.origin(['plant'])}: plant: its cells, masses and points must be those of "
            "[model]: change values only"
        )
    return model, plant


def _raise_all(merged: Merged, found: Sequence[tuple[str, str]]) -> None:
    if found:
        raise ConfigError(
            "\n".join(one_line(f"{merged.origin(_keys(k))}: {k}: {text}") for k, text in found)
        )


def _keys(dotted: str) -> list[str | int]:
    return [part.split(" =")[0] for part in dotted.split(".")]
