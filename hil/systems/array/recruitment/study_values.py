"""Settings and result types of `hil study recruitment`."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from hil.config.table import Table
from hil.systems.array.recruitment.study_controllers import CONTROLLERS, names_of
from hil.systems.array.recruitment.study_plant import WireLaw

Judged = dict[tuple[int, float, str], list[tuple[float, float, float]]]
Optimum = dict[tuple[int, int], float]
Size = Literal[6, 14, 100]
Percent = Annotated[float, Field(ge=0.0, le=30.0)]


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _known(names: tuple[str, ...]) -> tuple[str, ...]:
    unknown = [name for name in names if name not in CONTROLLERS]
    if unknown:
        raise ValueError(f"no controller '{unknown[0]}': choose {', '.join(CONTROLLERS)}")
    return names


class Values(Table):
    """Values that `--set` can change: sizes, and the number of plants of each kind.

    The optimum is computed for `optimum_seeds` plants; a lower bound is proven for `bound_seeds`
    of the plants with 6 and 14 cells, which takes half a minute and one and a half minutes each.
    `plant` is the law of the plants' wires. With "sma", under stress, every commissioned controller
    runs twice: commissioned and planned by that law, and by the law without stress; the optimum
    and its bound are not computed. `workers` processes share the trials; default: the number of
    cores.
    """

    cells: Annotated[tuple[Size, ...], Field(min_length=1), BeforeValidator(_tuple)] = (6, 14, 100)
    plant: WireLaw = "thermal"
    controllers: Annotated[
        tuple[str, ...], Field(min_length=1), BeforeValidator(_tuple), AfterValidator(_known)
    ] = CONTROLLERS
    dead_percent: Annotated[tuple[Percent, ...], Field(min_length=1), BeforeValidator(_tuple)] = (
        0.0, 10.0, 30.0,
    )  # fmt: skip
    seeds: Annotated[int, Field(ge=3, le=10_000)] = 6
    seeds_of_100: Annotated[int, Field(ge=3, le=10_000)] = 3
    tuning_seeds: Annotated[int, Field(ge=1, le=100)] = 1
    optimum_seeds: Annotated[int, Field(ge=0, le=1000)] = 3
    bound_seeds: Annotated[int, Field(ge=0, le=1000)] = 3
    failure_seeds: Annotated[int, Field(ge=0, le=10_000)] = 8
    healthy_hours: Annotated[float, Field(gt=0.0, le=1000.0)] = 0.2
    workers: Annotated[int, Field(ge=1, le=256)] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The controllers of the tables."""
        return names_of(self.plant, self.controllers)
