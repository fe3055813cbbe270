"""Settings and result types of `hil study recruitment`."""

from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, BeforeValidator, Field

from hil.config.table import Table
from hil_studies.recruitment.controllers import CONTROLLERS, EXACT, names_of
from hil_studies.recruitment.plant import WireLaw

WEAR_WEIGHT_S = 0.25
"""Weight of wear in the tuning's cost (assumed).

The three set points need 0.04 cycles a second of every wire by themselves: their rises, over the
force of all cells, in 16 s. A controller may double that for 1 % of full force: 0.01 / 0.04 s.
"""


class Score(NamedTuple):
    """Figures of one trial. Errors are RMS, over the force of all cells.

    Attributes
    ----------
    late : error after the first 2 s
    wear_per_s : full cycles of transformation a second, mean over all wires
    """

    error: float
    switches_per_s: float
    energy_J: float
    late: float
    wear_per_s: float

    def cost(self, wear_weight_s: float) -> float:
        """The cost that tuning minimises: error + weight x wear."""
        return self.error + wear_weight_s * self.wear_per_s


class Start(NamedTuple):
    """Which trials: number of cells, % dead, controller, and whether they start with a lead-in."""

    n_cells: int
    dead: float
    name: str
    led: bool


Judged = dict[Start, list[Score]]


class Optimum(NamedTuple):
    """Errors of the best sequence found on a plant, over the force of all cells.

    Attributes
    ----------
    error, late : of the best sequence for the whole run from rest, and its error after 2 s
    led : of the best sequence for the trial with a lead-in
    wear_per_s : of that sequence, the lead-in included
    """

    error: float
    late: float
    led: float
    wear_per_s: float


Optima = dict[tuple[int, int], Optimum]
Bounds = dict[tuple[int, int], float]
Size = Literal[6, 14, 100]
Percent = Annotated[float, Field(ge=0.0, le=30.0)]


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _known(names: tuple[str, ...]) -> tuple[str, ...]:
    unknown = [name for name in names if name not in CONTROLLERS]
    if unknown:
        raise ValueError(f"no controller '{unknown[0]}': choose {', '.join(CONTROLLERS)}")
    if EXACT in names and "optimal" not in names:
        raise ValueError(f"'{EXACT}' runs with the settings of 'optimal': add 'optimal'")
    return names


class Values(Table):
    """Values that `--set` can change: sizes, and the number of plants of each kind.

    The optimum is computed for `optimum_seeds` plants of every size in `optimum_cells`, and a lower
    bound is proven for `bound_seeds` of them: half a minute each with 6 cells, one and a half with
    14, ten with 100. `wear_weight_s` is the weight of wear in the cost that tuning minimises.
    `plant` is the law of the plants' wires. With "sma", under stress, every commissioned controller
    runs twice: commissioned and planned by that law, and by the law without stress; the optimum
    and its bound are not computed. `workers` processes share the trials; default: the number of
    cores.
    """

    cells: Annotated[tuple[Size, ...], Field(min_length=1), BeforeValidator(_tuple)] = (6, 14)
    plant: WireLaw = "thermal"
    controllers: Annotated[
        tuple[str, ...], Field(min_length=1), BeforeValidator(_tuple), AfterValidator(_known)
    ] = CONTROLLERS
    dead_percent: Annotated[tuple[Percent, ...], Field(min_length=1), BeforeValidator(_tuple)] = (
        0.0, 10.0, 30.0,
    )  # fmt: skip
    seeds: Annotated[int, Field(ge=3, le=10_000)] = 6
    seeds_of_100: Annotated[int, Field(ge=3, le=10_000)] = 3
    tuning_seeds: Annotated[int, Field(ge=1, le=100)] = 3
    wear_weight_s: Annotated[float, Field(ge=0.0, le=100.0)] = WEAR_WEIGHT_S
    optimum_cells: Annotated[tuple[Size, ...], BeforeValidator(_tuple)] = (6,)
    optimum_seeds: Annotated[int, Field(ge=0, le=1000)] = 3
    bound_seeds: Annotated[int, Field(ge=0, le=1000)] = 3
    failure_seeds: Annotated[int, Field(ge=0, le=10_000)] = 8
    healthy_hours: Annotated[float, Field(gt=0.0, le=1000.0)] = 0.2
    workers: Annotated[int, Field(ge=1, le=256)] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The controllers of the tables."""
        return names_of(self.plant, self.controllers)

    def names_for(self, n_cells: int) -> tuple[str, ...]:
        """The controllers of one size; EXACT only where there is an optimum to compare with."""
        exact = n_cells in self.optimum_cells
        return tuple(name for name in self.names if name != EXACT or exact)
