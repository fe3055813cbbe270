"""Laws of wires that enter `hil study benchmark`: this project's, the literature's, anybody's.

An entry is a class without arguments, or a function that returns an instance, with

- `n_parameters`: how many numbers its fit determines;
- `fit(runs)`: takes measured loops;
- `simulate(inputs)`: the strain along a loop, (n,) in m/m from any zero. `inputs` is a `Loop` whose
  `strain` is NaN;
- `half_width(inputs)`, optional: half the width of its 95 % band, (n,) in m/m.

A package names its entry in the entry point group `hil.laws`.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np

from hil.errors import ModelError, one_line
from hil.identification.wire_loops.fit import NAMES, Fitted, band, fit, isobaric
from hil.identification.wire_loops.loops import Loop, hot_end
from hil.mechanics.arrays import Array
from hil.plugins.descriptors import installed
from hil_studies.wires.rivals import RIVALS, Rival

GROUP = "hil.laws"
NEEDED = ("n_parameters", "fit", "simulate")


class Law(Protocol):
    """See the module."""

    n_parameters: int

    def fit(self, runs: Sequence[Loop]) -> None: ...

    def simulate(self, inputs: Loop) -> Array: ...


class ThisLaw:
    """The law of `hil.mechanics.sma.stress`, as `hil identify` fits it."""

    n_parameters = len(NAMES)

    def fit(self, runs: Sequence[Loop]) -> None:
        self._fitted: Fitted = fit(runs)

    def simulate(self, inputs: Loop) -> Array:
        return isobaric(self._fitted.law, inputs)

    def half_width(self, inputs: Loop) -> Array:
        return band(self._fitted, inputs)[1]


class RivalLaw:
    """A law of `hil_studies.wires.rivals`, with the optimiser and budget of this project's.

    The optimiser may try branches of no width or of an endless one: they are steps and flat lines.
    """

    def __init__(self, rival: Rival) -> None:
        self._rival, self.n_parameters = rival, 0

    def fit(self, runs: Sequence[Loop]) -> None:
        self.n_parameters = 2 + len(self._rival.start(runs, 1.0))  # two expansions, then its own
        with np.errstate(divide="ignore", over="ignore"):
            self._strain = self._rival.fitted(runs)

    def simulate(self, inputs: Loop) -> Array:
        with np.errstate(divide="ignore", over="ignore"):
            return self._strain(inputs)


BUILT_IN: Mapping[str, Callable[[], Law]] = {
    "this law": ThisLaw,
    **{rival.name: partial(RivalLaw, rival) for rival in RIVALS},
}


def entries() -> dict[str, Callable[[], Law]]:
    """Every law by name, those of installed packages last.

    Raises
    ------
    ConfigError
        An entry does not import, or its name is taken.
    """
    return {**BUILT_IN, **installed(GROUP, BUILT_IN)}


class Entry:
    """A law whose mistakes become a ModelError of one line, with its name."""

    def __init__(self, name: str, make: Callable[[], Law]) -> None:
        self._name = name
        self._law = self._called("the class", make)
        missing = [part for part in NEEDED if not hasattr(self._law, part)]
        if missing:
            raise ModelError(f"law '{name}': has no {', '.join(missing)}: add it")

    @property
    def n_parameters(self) -> int:
        n = self._law.n_parameters
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 0:
            raise ModelError(f"law '{self._name}': n_parameters = {n!r}: give a whole number")
        return int(n)

    def fit(self, runs: Sequence[Loop]) -> None:
        self._called("fit()", self._law.fit, runs)

    def simulate(self, inputs: Loop) -> Array:
        """Strain above its mean at the loop's hot end, as measured strain is counted."""
        strain = self._array("simulate()", self._law.simulate, inputs)
        return np.asarray(strain - strain[hot_end(inputs.T_C)].mean())

    def half_width(self, inputs: Loop) -> Array | None:
        """Half the width of its band; None if it states none."""
        method = getattr(self._law, "half_width", None)
        return None if method is None else self._array("half_width()", method, inputs)

    def _array(self, what: str, method: Callable[[Loop], Array], inputs: Loop) -> Array:
        n, answer = len(inputs.T_C), self._called(what, method, inputs)
        try:
            values = np.asarray(answer, dtype=float)
        except (TypeError, ValueError):
            values = np.empty(0)
        if values.shape != (n,) or not np.isfinite(values).all():
            raise ModelError(
                f"law '{self._name}': {what} of {inputs.name} has the shape {values.shape} and "
                f"{np.count_nonzero(~np.isfinite(values))} values that are not finite: return {n} "
                "finite numbers"
            )
        return values

    def _called(self, what: str, function: Callable[..., Any], *arguments: object) -> Any:
        try:
            return function(*arguments)
        except Exception as error:
            text = one_line(f"law '{self._name}': {what}: {type(error).__name__}: {error}")
            raise ModelError(
                f"{text}: correct its package, or leave it out with laws=[...]"
            ) from None
