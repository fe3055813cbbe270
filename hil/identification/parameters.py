"""The values of a `[model]` that may be fitted, by their configuration keys.

`arrays.muscle.cell.k_se_N_per_m` is one value for all cells, `arrays.muscle.mass_kg.3` the third of
a list. All are positive, and the fit uses their logarithms.
"""

import copy
import fnmatch
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from hil.config.table import as_list
from hil.config.values import TomlTable
from hil.errors import ConfigError, one_line
from hil.mechanics.arrays import Array
from hil.systems.array.model import fingerprint
from hil.systems.array.model.activation import WIRES
from hil.systems.array.tables import ModelTable

# The fit adds parameters in this order while they are identifiable. Those that another instrument
# measures better come last: k_pe (micro-positioners) and masses (scales).
PREFERENCE = (
    "force_on_N", "rate_per_s", "delay_s", "convection_W_per_m2_K", "latent_heat_J_per_kg",
    "specific_heat_J_per_kg_K", "cooling.middle_C", "M_s_C", "M_f_C", "A_f_C", "core_K",
    "core_share", "shoulder_ratio", "austenite_Ohm_per_m", "b_", "k_ae_", "k_se_", "C_A_MPa_per_K",
    "C_M_MPa_per_K", "heating.middle_C", "A_s_C", "ambient_C", "martensite_Ohm_per_m", "k_pe_",
    "mass_kg",
)  # fmt: skip
# A force is the same for any scale of power, heat capacity, latent heat and convection together
# (SCALED, as powers of the scale), and for any zero and scale of the temperature. So an ohmmeter, a
# thermometer and a loop have to tell these, and they are fitted only where --free names them.
NEEDED = ("heating.middle_C", "A_s_C", "ambient_C", "martensite_Ohm_per_m")
SCALED = {
    "convection_W_per_m2_K": 1, "specific_heat_J_per_kg_K": 1, "latent_heat_J_per_kg": 1,
    "martensite_Ohm_per_m": -1, "austenite_Ohm_per_m": -1,
}  # fmt: skip
# Beyond these a table is refused.
LOWEST, HIGHEST = {"shoulder_ratio": 1.0}, {"core_share": 1.0}
OF_WIRE = (
    "convection_W_per_m2_K", "specific_heat_J_per_kg_K", "latent_heat_J_per_kg", "ambient_C",
    "martensite_Ohm_per_m", "austenite_Ohm_per_m",
)  # fmt: skip
OF_STRESS = ("C_A_MPa_per_K", "C_M_MPa_per_K")
OF_BRANCH = ("middle_C", "core_K", "core_share", "shoulder_ratio")
OF_LINES = {"heating": ("A_s_C", "A_f_C"), "cooling": ("M_s_C", "M_f_C")}

Tables = TomlTable


def tables_of(model: ModelTable) -> Tables:
    """The tables of a model as plain values for `get` and `put`."""
    return model.model_dump(by_alias=True, exclude_none=True)


def candidates(tables: Tables) -> list[str]:
    """Every value that may be fitted, in the order in which the fit tries them."""
    keys = [
        key
        for name, array in tables["arrays"].items()
        for key in _of_array(f"arrays.{name}", array)
        if get(tables, key) > 0.0
    ]
    return sorted(keys, key=lambda key: (rank(key), key))


def needed(key: str) -> bool:
    """Whether no force tells this value of a wire."""
    return _of_table(key) in NEEDED


def power_of_scale(key: str) -> int:
    """The power of SCALED with which a parameter changes; 0 for one that is not of them."""
    return SCALED.get(_of_table(key), 0)


def limits(key: str) -> tuple[float, float]:
    """The least and the greatest value that a table takes, beside being positive."""
    last = key.rpartition(".")[2]
    return LOWEST.get(last, 0.0), HIGHEST.get(last, float("inf"))


def log_limits(keys: Sequence[str]) -> tuple[Array, Array]:
    """Logarithms of the least and of the greatest values."""
    with np.errstate(divide="ignore"):
        least, most = np.log([limits(key) for key in keys]).reshape(-1, 2).T
    return least, most


def has_wires(tables: Tables) -> bool:
    """Whether a cell is a wire, with or without stress."""
    activations = [as_list(array["activation"]) for array in tables["arrays"].values()]
    return any(one["kind"] in WIRES for of_array in activations for one in of_array)


def _of_table(key: str) -> str:
    """A key as the table of its cell or activation has it, without its number."""
    suffix = key.rpartition(".cell.")[2].rpartition(".activation.")[2]
    number, _, rest = suffix.partition(".")
    return rest if number.isdigit() else suffix


def rank(key: str) -> int:
    """Place of a key in PREFERENCE."""
    suffix = _of_table(key)
    return next(i for i, part in enumerate(PREFERENCE) if part in suffix)


def _of_array(path: str, array: Tables) -> Iterator[str]:
    for key in ("mass_kg", "force_on_N"):
        yield from _each(f"{path}.{key}", as_list(array[key]))
    laws = as_list(array["cell"])
    for n, law in enumerate(laws, start=1):
        for key, value in law.items():
            if isinstance(value, float) and key.startswith(("k_", "b_")):
                yield f"{path}.cell.{n}.{key}" if len(laws) > 1 else f"{path}.cell.{key}"
    kinds = as_list(array["activation"])
    for n, kind in enumerate(kinds, start=1):
        at = f"{path}.activation.{n}" if len(kinds) > 1 else f"{path}.activation"
        yield from (f"{at}.{key}" for key in _of_activation(kind))


def _of_activation(table: Tables) -> Iterator[str]:
    kind = table["kind"]
    if kind == "sigmoid":
        yield from ("rate_per_s", "delay_s")
    if kind in WIRES:
        yield from OF_WIRE
        for side, ends in OF_LINES.items():
            branch = table.get(side)
            yield from ends if branch is None else (f"{side}.{key}" for key in OF_BRANCH)
    if kind == "sma":
        yield from OF_STRESS


def _each(path: str, values: Sequence[float]) -> list[str]:
    if len(values) == 1:
        return [path]
    # The outermost masses of an array between fixed points have no effect: not identifiable.
    return [f"{path}.{n}" for n in range(1, len(values) + 1)]


def expanded(tables: Tables, keys: Iterable[str]) -> Tables:
    """The tables with a list instead of one common value, for these keys."""
    made = copy.deepcopy(tables)
    for key in keys:
        for name, array in made["arrays"].items():
            topology = fingerprint.parse(array["fingerprint"])
            n = topology.n_masses if key == "mass_kg" else topology.n_cells
            if key in ("mass_kg", "force_on_N"):
                values = as_list(array[key])
                array[key] = values * n if len(values) == 1 else values
            elif key in ("cell", "activation"):
                kinds = as_list(array[key])
                array[key] = (
                    [copy.deepcopy(kinds[0]) for _ in range(n)] if len(kinds) == 1 else kinds
                )
            else:
                raise ConfigError(
                    f"--each {one_line(key)}: choose mass_kg, force_on_N, cell or activation "
                    f"({name} has no other list)"
                )
    return made


def matching(patterns: Iterable[str], known: Sequence[str], option: str) -> list[str]:
    """Keys that match any of the patterns, in full or by their last part.

    Raises
    ------
    ConfigError
        A pattern matches no key.
    """
    keys: list[str] = []
    for pattern in patterns:
        hits = [
            key
            for key in known
            if any(
                fnmatch.fnmatchcase(key, p)
                for p in (pattern, f"*.{pattern}", f"*.{pattern}_*", f"*.{pattern}.*")
            )
        ]
        if not hits:
            raise ConfigError(
                f"{option} {one_line(pattern)}: no such parameter: this model has "
                f"{', '.join(known)}"
            )
        keys += [key for key in hits if key not in keys]
    return keys


def get(tables: Tables, key: str) -> float:
    """The value of a key."""
    holder, last = _holder(tables, key)
    return float(holder[last])


def put(tables: Tables, key: str, value: float) -> None:
    """Set the value of a key."""
    holder, last = _holder(tables, key)
    holder[last] = value


def _holder(tables: Tables, key: str) -> tuple[Any, Any]:
    """The table or list that contains a value, and its key or index there."""
    *path, last = key.split(".")
    at: Any = tables
    for part in path:
        if isinstance(at, list):
            at = at[int(part) - 1] if part.isdigit() else at[0][part]
        else:
            at = at[part]
    if isinstance(at, list):
        return (at, int(last) - 1) if last.isdigit() else (at[0], last)
    return (at[last], 0) if isinstance(at[last], list) else (at, last)
