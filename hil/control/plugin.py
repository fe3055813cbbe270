"""Adapters of plug-in controllers and references to the loop's interfaces."""

from collections.abc import Iterable, Mapping, Sequence
from math import nan

import numpy as np
from numpy.typing import NDArray

from hil.compiled import njit
from hil.control.steering import Steerable
from hil.loop import duty
from hil.loop.frame import Column, Commands, Frame
from hil.plugins.code import Facts, Now, Plugin, Used, read_only, real

LONG_S = 1000.0
EXTREMES_AT = 1001  # sample times for the extremes of a plug-in reference


class PluginReference:
    """A set point as a function of time, by a plug-in class with `at(t_s)`."""

    def __init__(self, plugin: Plugin) -> None:
        self._used = plugin.make()

    def at(self, t_s: float) -> float:
        return self._used.number("at", t_s)

    def extremes(self, duration_s: float) -> tuple[float, float]:
        """Extremes of EXTREMES_AT samples over the run, or over its first LONG_S."""
        end_s = min(duration_s, LONG_S)
        seen = [self.at(t_s) for t_s in np.linspace(0.0, end_s, EXTREMES_AT).tolist()]
        return min(seen), max(seen)


class PluginControl:
    """A plug-in controller as a stage of the tick.

    The class has `step(now)`, which returns 0 or 1 for every cell (with `duties = True` in the
    class: a duty, 0 to 1) and then a value for every output. Its `columns` (name to unit) become
    columns `controller.<name>`; their values are read from its attributes after every step. Arming
    again makes a new instance.

    Parameters
    ----------
    references : set points by the names of their columns, with their units
    """

    def __init__(
        self, plugin: Plugin, facts: Facts, references: Mapping[str, tuple[Steerable, str]]
    ) -> None:
        self._plugin = plugin
        self.facts = facts
        self._references = [reference for reference, _ in references.values()]
        self.set_points = {name: reference for name, (reference, _) in references.items()}
        self._used = self._made()
        declared = getattr(self._used.made, "columns", {})
        self._kept = self._columns_of(declared)
        self.columns = [
            *(
                Column(name, unit, "reference", "set point; NaN where there is none")
                for name, (_, unit) in references.items()
            ),
            *(
                Column(f"controller.{name}", unit, "commanded", f"{name} of {plugin.kind}")
                for name, unit in self._kept.items()
            ),
        ]
        self._wanted = np.full(len(self._references), nan)

    def _made(self) -> Used:
        return self._plugin.make(self.facts)

    def _columns_of(self, declared: object) -> dict[str, str]:
        pairs = declared.items() if isinstance(declared, Mapping) else [(declared, None)]
        for name, unit in pairs:
            if not (isinstance(name, str) and isinstance(unit, str) and name.isidentifier()):
                self._plugin.refuse("", "columns must be a dict from names to units")
        return dict(declared) if isinstance(declared, Mapping) else {}

    def bind(self, frame: Frame, measured: NDArray[np.float64], commands: Commands) -> None:
        n = len(self._references)
        values = frame.span([column.name for column in self.columns])
        self._set, self._own_columns = values[:n], values[n:]
        self._measured = measured
        self._cells, self._outputs = commands.cells, commands.outputs
        self._duty = commands.duty
        self._reported = frame.cells("cells_reported") if self.facts.cells else commands.cells
        self._values = frame.values
        self._index = {name: frame.index(name) for name in readable(frame.columns)}

    def restart(self) -> None:
        self._used = self._made()

    def set_gain(self, key: str, value: float) -> None:
        """Forward to the class; KeyError if it has no `set_gain`, or no such gain."""
        if not hasattr(self._used.made, "set_gain"):
            raise KeyError(key)
        self._used.made.set_gain(key, value)

    def step(self, t_s: float) -> None:
        wanted = self._wanted
        for i, reference in enumerate(self._references):
            wanted[i] = reference.at(t_s)
        self._set[:] = wanted
        now = Now(
            t_s, read_only(wanted), read_only(self._measured), read_only(self._reported),
            self._values, self._index,
        )  # fmt: skip
        commands = self._used.numbers("step", self.facts.n_commands, now)
        n_cells = len(self._cells)
        check_cells(self._plugin, commands[:n_cells], self.facts.duty_min)
        if len(self._duty):
            self._duty[:] = commands[:n_cells]
        else:
            self._cells[:] = commands[:n_cells]
        self._outputs[:] = commands[n_cells:]
        if self._kept:
            self._keep(self._own_columns, list(self._kept))

    def _keep(self, into: NDArray[np.float64], names: Sequence[str]) -> None:
        for i, name in enumerate(names):
            value = getattr(self._used.made, name, None)
            try:
                into[i] = float(real(value).item())
            except (TypeError, ValueError, OverflowError):
                self._plugin.refuse("step", f"columns names '{name}', of which it has no number")


def readable(columns: Iterable[Column]) -> list[str]:
    """Names of the columns that a controller may read: numbers of twin and observer."""
    return [c.name for c in columns if c.role == "model" and not c.n_cells and not c.flags]


def commands_duties(plugin: Plugin) -> bool:
    """Whether the class commands duties: it has `duties = True`."""
    return bool(getattr(plugin.cls, "duties", False))


def check_cells(plugin: Plugin, commands: NDArray[np.float64], duty_min: float) -> None:
    """Refuse what a step gives for cells unless each is 0 or 1, or a duty that boards accept.

    Raises
    ------
    PluginError
        One line with the class, its file and the first wrong value.
    """
    duties = commands_duties(plugin)
    at = _first_refused(commands, duties, round(duty_min * duty.STEPS))
    if at >= 0:
        wanted = (
            f"give 0, or a duty of {duty_min:.3g} to 1"
            if duties
            else "give 0 or 1, or set duties = True in the class"
        )
        plugin.refuse("step", f"step() gives {commands[at]:g} for a cell: {wanted}")


@njit(cache=True)
def _first_refused(commands, duties, steps_min):  # type: ignore[no-untyped-def]
    """Index of the first cell with neither 0 nor 1, or with a duty that boards refuse; else -1."""
    for n in range(len(commands)):
        if commands[n] == 0.0 or commands[n] == 1.0:
            continue
        if not duties or duty.steps_of(commands[n], steps_min) == duty.INVALID:
            return n
    return -1
