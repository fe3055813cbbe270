"""Settings and result types of `hil study recruitment`."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from hil.config.table import Table

Judged = dict[tuple[int, float, str], list[tuple[float, float, float]]]
Optimum = dict[tuple[int, int], float]
Size = Literal[6, 14, 100]
Percent = Annotated[float, Field(ge=0.0, le=30.0)]


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


class Values(Table):
    """Values that `--set` can change: sizes, and the number of plants of each kind.

    The optimum is computed for `optimum_seeds` plants; a lower bound is proven for `bound_seeds`
    of the plants with 6 and 14 cells, which takes half a minute and one and a half minutes each.
    `workers` processes share the trials; default: the number of cores.
    """

    cells: Annotated[tuple[Size, ...], Field(min_length=1), BeforeValidator(_tuple)] = (6, 14, 100)
    dead_percent: Annotated[tuple[Percent, ...], Field(min_length=1), BeforeValidator(_tuple)] = (
        0.0, 10.0, 30.0,
    )  # fmt: skip
    seeds: Annotated[int, Field(ge=3, le=10_000)] = 6
    seeds_of_100: Annotated[int, Field(ge=3, le=10_000)] = 3
    tuning_seeds: Annotated[int, Field(ge=1, le=100)] = 1
    optimum_seeds: Annotated[int, Field(ge=3, le=1000)] = 3
    bound_seeds: Annotated[int, Field(ge=0, le=1000)] = 3
    failure_seeds: Annotated[int, Field(ge=1, le=10_000)] = 8
    healthy_hours: Annotated[float, Field(gt=0.0, le=1000.0)] = 0.2
    workers: Annotated[int, Field(ge=1, le=256)] | None = None
