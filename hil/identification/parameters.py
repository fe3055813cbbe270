"""The values of a `[model]` that may be fitted, by their configuration keys.

`arrays.muscle.cell.k_se_N_per_m` is one value for all cells, `arrays.muscle.mass_kg.3` the third of
a list. All are positive, and the fit uses their logarithms.
"""

import copy
import fnmatch
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from hil.config.table import as_list
from hil.errors import ConfigError, one_line
from hil.systems.array import fingerprint
from hil.systems.array.tables import ModelTable

# The fit adds parameters in this order while they are identifiable. Masses and k_pe come last:
# scales and micro-positioners measure them better.
PREFERENCE = ("force_on_N", "rate_per_s", "delay_s", "b_", "k_ae_", "k_se_", "k_pe_", "mass_kg")

Tables = dict[str, Any]


def tables_of(model: ModelTable) -> Tables:
    """The tables of a model as plain values for `get` and `put`."""
    return model.model_dump(by_alias=True, exclude_none=True)


def candidates(tables: Tables) -> list[str]:
    """Every value that may be fitted, in the order in which the fit tries them."""
    found = [
        key
        for name, array in tables["arrays"].items()
        for key in _of_array(f"arrays.{name}", array)
        if get(tables, key) > 0.0
    ]
    return sorted(found, key=lambda key: (rank(key), key))


def rank(key: str) -> int:
    """Place of a key in PREFERENCE."""
    return next(i for i, part in enumerate(PREFERENCE) if part in key.rpartition(".cell.")[2])


def _of_array(path: str, array: Tables) -> Iterator[str]:
    for key in ("mass_kg", "force_on_N"):
        yield from _each(f"{path}.{key}", as_list(array[key]))
    laws = as_list(array["cell"])
    for n, law in enumerate(laws, start=1):
        for key, value in law.items():
            if isinstance(value, float) and key.startswith(("k_", "b_")):
                yield f"{path}.cell.{n}.{key}" if len(laws) > 1 else f"{path}.cell.{key}"
    if array["activation"]["kind"] == "sigmoid":
        yield f"{path}.activation.rate_per_s"
        yield f"{path}.activation.delay_s"


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
            elif key == "cell":
                laws = as_list(array[key])
                array[key] = [dict(laws[0]) for _ in range(n)] if len(laws) == 1 else laws
            else:
                raise ConfigError(
                    f"--each {one_line(key)}: choose mass_kg, force_on_N or cell ({name} has no "
                    "other list)"
                )
    return made


def matching(patterns: Iterable[str], known: Sequence[str], option: str) -> list[str]:
    """Keys that match any of the patterns, in full or by their last part.

    Raises
    ------
    ConfigError
        A pattern matches no key.
    """
    found: list[str] = []
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
        found += [key for key in hits if key not in found]
    return found


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
