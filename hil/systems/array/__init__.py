"""Cellular arrays: SMA cells between nodes and points, after MacNair & Ueda."""

from collections.abc import Sequence
from functools import lru_cache

from hil.config.values import Attributes
from hil.errors import ModelError
from hil.experiment.kind import SystemKind
from hil.rig.instruments import AMBIENT
from hil.rig.run_tables import RunTables
from hil.systems.array.build import build_activation, build_model, wires_of
from hil.systems.array.build_estimator import force_estimator
from hil.systems.array.build_force import force_signal, right_end
from hil.systems.array.checks import check_reference, check_rig, check_run
from hil.systems.array.controllers import CONTROLLERS, looks_at_wires_s
from hil.systems.array.model.cell_array import CellArray
from hil.systems.array.model.force_levels import force_levels_N
from hil.systems.array.model.names import wire_signal
from hil.systems.array.model.system import ArraySystem
from hil.systems.array.tables import ModelTable, ObserverTable

SENSED_WITHIN_S = 0.5  # a board has measured each of its cells, and a sample of force is taken
MODELS_KEPT = 4
LEVELS_DRAWN = 40  # more lines would hide the curves


@lru_cache(MODELS_KEPT)
def _model_of(table: str) -> CellArray:
    return build_model(ModelTable.model_validate_json(table))


def _build(table: ModelTable, period_s: float) -> CellArray:
    """The model of a table; trials of a campaign have the same one, with what it has computed."""
    model = _model_of(table.model_dump_json())
    build_activation(table)  # raises ModelError for an invalid activation
    return model


def _system(table: ModelTable, model: CellArray, period_s: float) -> ArraySystem:
    return ArraySystem(model, build_activation(table), period_s)


def _observer_wait_s(tables: RunTables) -> float:
    failures = tables.observer.failures
    looks_s = 0.0 if tables.observer.wire_failures is None else looks_at_wires_s(tables)
    senses_s = 0.0 if tables.observer.cell_failures is None else SENSED_WITHIN_S
    return max(0.0 if failures is None else float(failures.sample_s), looks_s, senses_s)


def _signals(model: CellArray) -> Sequence[str]:
    return *model.outputs, *map(wire_signal, model.cell_names), AMBIENT


def _inputs(model: CellArray) -> Sequence[str]:
    return [f"{name}.x_m" for name in model.driven]


def _supply_V(table: ModelTable) -> list[tuple[str, float]]:
    """Supply voltage of every array whose cells are wires, by configuration key."""
    return [
        (f"model.arrays.{name}.activation.supply_V", supply_V)
        for name, array in table.arrays.items()
        for supply_V in dict.fromkeys(getattr(one, "supply_V", None) for one in array.activation)
        if supply_V is not None
    ]


def _levels_N(tables: RunTables, model: CellArray) -> list[float]:
    forces_on_N = [cell.force_on_N for cell in build_activation(tables.model)]
    try:
        levels = force_levels_N(model, forces_on_N, force_signal(tables, model))
    except ModelError:  # too many to list
        return []
    return [float(level) for level in levels] if len(levels) <= LEVELS_DRAWN else []


def _recorded(table: ModelTable, model: CellArray) -> Attributes:
    return {
        "A": model.A,
        "B": model.B,
        "C": model.C,
        "D": model.D,
        "states": model.states,
        "inputs": model.inputs,
    }


SYSTEM = SystemKind(
    kind="cell_array",
    table=ModelTable,
    observer=ObserverTable,
    build=_build,
    estimator=force_estimator,
    controllers=CONTROLLERS,
    system=_system,
    signals=_signals,
    inputs=_inputs,
    signal_needed=False,
    check_rig=check_rig,
    check_run=check_run,
    check_reference=check_reference,
    force_signal=force_signal,
    default_signal=right_end,
    activation=build_activation,
    observer_wait_s=_observer_wait_s,
    wires=wires_of,
    supply_V=_supply_V,
    recorded=_recorded,
    levels_N=_levels_N,
    figure="hil.systems.array.topology.schematic:figure",
    description="hil.systems.array.description:describe",
    identified=(
        "hil.identification.commissioning:check",
        "hil.identification.commissioning:fit",
    ),
)
