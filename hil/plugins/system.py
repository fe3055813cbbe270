"""Plug-in models, as plant and twin."""

import numpy as np
from numpy.typing import NDArray

from hil.mechanics.sma.wire import SmaWires
from hil.mechanics.system import Drive
from hil.plugins.code import Plugin, read_only


class PluginSystem:
    """A plug-in model as a `System`.

    Its class has `inputs` and `outputs`, names with their units, `y`, the outputs at rest, and
    `step(drive, inputs)`, which gives the outputs a period later; with cells also `cell_names`.
    """

    def __init__(self, plugin: Plugin, period_s: float) -> None:
        self._used = plugin.make(period_s)
        self.period_s = period_s
        names = []
        for key, needed in (("inputs", False), ("outputs", True), ("cell_names", False)):
            said = getattr(self._used.made, key, ())
            fit = isinstance(said, tuple | list) and all(isinstance(n, str) for n in said)
            if not fit or len(set(said)) != len(said) or (needed and not said):
                plugin.refuse("", f"{key} must be a tuple of names, each once")
            names.append(tuple(said))
        self.inputs, self.outputs, self.cell_names = names
        n = len(self.cell_names)
        self.wires = SmaWires([None] * n, np.zeros(n))
        y = np.array(getattr(self._used.made, "y", ()), dtype=np.float64)
        if y.shape != (len(self.outputs),) or not np.isfinite(y).all():
            plugin.refuse("", f"y must be its {len(self.outputs)} outputs at rest")
        self.y = y

    def step(self, drive: Drive, inputs: NDArray[np.float64]) -> None:
        """Advance one period."""
        given = read_only(np.asarray(drive, dtype=np.float64)), read_only(inputs)
        self.y[:] = self._used.numbers("step", len(self.outputs), *given)
