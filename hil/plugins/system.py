"""Adapter of plug-in models to `System`, for plant and twin."""

import numpy as np
from numpy.typing import NDArray

from hil.mechanics.sma.wire import SmaWires
from hil.mechanics.system import Drive
from hil.plugins.code import Plugin, read_only


class PluginSystem:
    """A plug-in model as a `System`.

    The class has `inputs` and `outputs` (names with units), `y` (outputs at rest) and
    `step(drive, inputs)`, which returns the outputs a period later. With cells it has `cell_names`.
    """

    def __init__(self, plugin: Plugin, period_s: float) -> None:
        self._used = plugin.make(period_s)
        self.period_s = period_s
        names = []
        for key, needed in (("inputs", False), ("outputs", True), ("cell_names", False)):
            names_of_key = getattr(self._used.made, key, ())
            fit = isinstance(names_of_key, tuple | list) and all(
                isinstance(n, str) for n in names_of_key
            )
            if (
                not fit
                or len(set(names_of_key)) != len(names_of_key)
                or (needed and not names_of_key)
            ):
                plugin.refuse("", f"{key} must be a tuple of names, each once")
            names.append(tuple(names_of_key))
        self.inputs, self.outputs, self.cell_names = names
        n = len(self.cell_names)
        self.wires = SmaWires([None] * n, np.zeros(n))
        y = np.array(getattr(self._used.made, "y", ()), dtype=np.float64)
        if y.shape != (len(self.outputs),) or not np.isfinite(y).all():
            plugin.refuse("", f"y must be its {len(self.outputs)} outputs at rest")
        self.y = y

    def step(self, drive: Drive, inputs: NDArray[np.float64]) -> None:
        """Advance one period."""
        arguments = read_only(np.asarray(drive, dtype=np.float64)), read_only(inputs)
        self.y[:] = self._used.numbers("step", len(self.outputs), *arguments)
