"""The keys that weaken a protection, and the one rule for all of them.

An experiment, and `--set`, may only tighten what the rig's file has, or the default where that
leaves the key out. The rig's own value is within a bound that is derived from what it protects.
The list is `tightening.toml`. A row marked `late` excuses a slow computer, or a model of another
wire or actuator: it binds where a device is on the bench, and in `hil check`, because nothing is
energised elsewhere.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic_core import PydanticUndefined

from hil.config.files import Merged
from hil.config.table import Table
from hil.config.values import TomlTable
from hil.experiment.kind import Faults
from hil.loop import interlocks
from hil.rig.run_tables import RigTables

HOLDABLE = {row.name: row.held_s for row in interlocks.LOOP if row.key}
UNCHANGED, OF_A_TABLE = "unchanged", "unchanged in a table of the rig"
Place = tuple[str | int, ...]
Entry = tuple[Place, Any, object]


@dataclass(frozen=True)
class Row:
    """Some keys, of which `*` stands for any name.

    Attributes
    ----------
    tighter : "lower", "higher", "wider" (a range), "unchanged", "unchanged in a table of the
        rig" (an experiment may add a table), "unchanged where the rig has it", or words from the
        tightest on
    bound : most that a rig may have; None: any value
    bound_of : key whose value is the bound instead, where the rig has it
    bound_share : the bound is this times that value, or `bound` if that is more
    because : what the bound is derived from
    late : whether it binds only on a bench
    """

    keys: Sequence[str]
    tighter: str | Sequence[str | bool]
    bound: float | None = None
    bound_of: str = ""
    bound_share: float | None = None
    because: str = ""
    late: bool = False

    @property
    def names(self) -> str:
        """Its keys as a list."""
        return ", ".join(f"`{key}`" for key in self.keys)

    @property
    def direction(self) -> str:
        """Which way is tighter, as text."""
        if isinstance(self.tighter, str):
            return self.tighter
        return ", ".join(f"`{word}`".lower() for word in self.tighter)

    @property
    def most(self) -> str:
        """The bound, as text."""
        if self.bound is None:
            return "–"
        if self.bound_share is not None:
            return f"{self.bound_share:g} times `{self.bound_of}`, or {self.bound:g}"
        return f"`{self.bound_of}`, else {self.bound:g}" if self.bound_of else f"{self.bound:g}"

    def weakens(self, value: Any, rig_value: Any) -> bool:
        """Whether a value is looser than the rig's own, or its default; None: there is none.

        A table is looser where the rig has none; the keys in it have rows of their own.
        """
        if isinstance(value, Table):
            return rig_value is None
        if self.tighter in (UNCHANGED, OF_A_TABLE):
            return bool(value != rig_value)
        if value is None or rig_value is None:
            return False
        match self.tighter:
            case "unchanged where the rig has it":
                return str(value) != str(rig_value)  # a number may be written as one or as text
            case "lower":
                return bool(value > rig_value)
            case "higher":
                return bool(value < rig_value)
            case "wider":
                return bool(value[0] > rig_value[0] or value[1] < rig_value[1])
        return self.tighter.index(value) > self.tighter.index(rig_value)

    def limit(self, tables: object, path: Place) -> float | None:
        """The bound in these tables."""
        if self.bound is None or not self.bound_of:
            return self.bound
        other = [ours if part == "*" else part
                 for part, ours in zip(self.bound_of.split("."), path, strict=False)]  # fmt: skip
        value = _at(tables, other)
        if value is None:
            return self.bound
        if self.bound_share is None:
            return float(value)
        return max(self.bound, self.bound_share * float(value))


def _rows() -> tuple[Row, ...]:
    text = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    rows: list[TomlTable] = tomllib.loads(text)["row"]
    return tuple(Row(**row) for row in rows)


ROWS = _rows()


def faults(tables: RigTables, merged: Merged, *, late: bool) -> Faults:
    """Yield (key, text) for each key that an experiment loosens, or a rig sets beyond its bound.

    Parameters
    ----------
    late : whether to look at the rows marked so, or at all others
    """
    rig = merged.sources[0][1] if merged.sources else {}
    places = _Places(tables)
    for row in ROWS:
        if row.late is late:
            for key in row.keys:
                for path, value, default in places.of(tuple(key.split("."))):
                    limit = row.limit(tables, path)
                    may_be_new = row.tighter == OF_A_TABLE or ".channels." in key
                    if may_be_new and not any(_at_all(rig, path[:-1])):
                        continue
                    rig_values = _at_all(rig, path) or [None]
                    texts = [_looser(row, value, one, default) for one in rig_values]
                    text = next(filter(None, texts), "")
                    if not text and limit is not None and value > limit:
                        text = f"choose at most {limit:g}: {row.because}"
                    if text:
                        yield f"{'.'.join(map(str, path))} = {_shown(value)}", text


def _looser(row: Row, value: object, rig_value: object, default: object) -> str:
    """What an experiment has loosened, as text; empty if it has not."""
    if rig_value is not None:
        weaker = row.weakens(value, rig_value)
        than = f"looser than the rig's {_shown(rig_value)}"
    else:  # a key that is required came with its whole table
        weaker = default is not PydanticUndefined and row.weakens(value, default)
        than = "not in the rig" if default is None else f"looser than the default {_shown(default)}"
    return f"{than}: an experiment can only tighten a limit, the rig's file can loosen it" * weaker


def _shown(value: object) -> str:
    if isinstance(value, Table):
        value = value.model_dump(exclude_unset=True)
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else repr(value)


def _at(table: Any, path: Sequence[str | int]) -> Any:
    """The value at a path of tables; None if there is none."""
    for part in path:
        if isinstance(table, Table):
            table = getattr(table, str(part), None)
            continue
        try:
            table = table[part]
        except (KeyError, IndexError, TypeError):
            return None
    return table


def _at_all(table: object, path: Sequence[str | int]) -> list[Any]:
    """The values at a path, None for a missing one.

    One table may stand for a list of them, and a list for one.
    """
    for n, part in enumerate(path):
        if isinstance(table, list) and not isinstance(part, int):
            return [value for one in table for value in _at_all(one, path[n:])]
        if not (isinstance(part, int) and isinstance(table, Mapping)):
            table = _at(table, [part])
    return [table]


class _Places:
    """Every place of a key: its path, its value and its default (PydanticUndefined: required)."""

    def __init__(self, tables: object) -> None:
        self._known: dict[tuple[str, ...], list[Entry]] = {(): [((), tables, None)]}

    def of(self, parts: tuple[str, ...]) -> list[Entry]:
        """The places of a key; what it shares with another is looked up once."""
        if parts not in self._known:
            above = self.of(parts[:-1])
            self._known[parts] = [
                place for path, table, _ in above for place in _inside(table, parts[-1], path)
            ]
        return self._known[parts]


def _inside(table: object, name: str, path: Place) -> Iterator[Entry]:
    if isinstance(table, Table):
        field = type(table).model_fields.get(name)  # not a plug-in's own values
        if field is not None:
            yield (*path, name), getattr(table, name), field.default
    elif isinstance(table, Mapping):
        for one in table if name == "*" else [key for key in table if key == name]:
            held_s = HOLDABLE.get(one) if path[-1:] == ("hold_s",) else None
            yield (*path, one), table[one], held_s
    elif isinstance(table, list | tuple):
        for i, item in enumerate(table):
            yield from _inside(item, name, path if len(table) == 1 else (*path, i))
