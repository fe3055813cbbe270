"""A plug-in controller that holds one duty after the other."""

from hil.config.table import Positive, Table
from hil.plugins.code import Facts, Now


class Held:
    """One duty after the other, for every cell; the last one stays."""

    duties = True

    class Values(Table):
        """The duties, and for how long each is held."""

        hold_s: Positive
        duty: list[float]

    def __init__(self, facts: Facts, values: "Held.Values") -> None:
        self._values, self._n_cells = values, len(facts.cells)

    def step(self, now: Now) -> list[float]:
        """The duty of every cell."""
        at = min(int(now.t_s / self._values.hold_s + 1e-9), len(self._values.duty) - 1)
        return [self._values.duty[at]] * self._n_cells
