"""Tables of recruitment: its controllers, further references, and the tests for failed cells."""

from typing import Annotated, Literal

from pydantic import Field, PlainValidator

from hil.config.table import Positive, Table, cell_list

Wait = Annotated[float, Field(ge=0.0, le=3600.0)]
Horizon = Annotated[float, Field(ge=1e-4, le=60.0)]


class FailuresTable(Table):
    """Tests for failed cells: error model of a healthy array, and false alarm rate.

    Cells that fail now are searched for in the last `window_s`, those that were always dead in the
    last `memory_s`; a verdict must stand for `confirm_s`. Standard deviations: `spread` of a
    healthy cell's force, relative, and `drift` of one cell's force from what was learned of it;
    `doubt` of a cell's force for `settle_s` after it was switched; `noise_N` of a reading, model
    errors included; `zero_N` of the transducer's zero. See `hil.systems.array.isolation`.
    """

    false_alarms_per_day: Annotated[float, Field(ge=1e-9, le=1e6)] = 1.0
    sample_s: Annotated[float, Field(ge=1e-3, le=10.0)] = 0.1
    window_s: Annotated[float, Field(ge=0.1, le=60.0)] = 2.0
    memory_s: Annotated[float, Field(ge=0.1, le=1e5)] = 60.0
    spread: Annotated[float, Field(ge=1e-3, le=1.0)] = 0.16
    drift: Annotated[float, Field(ge=1e-3, le=1.0)] = 0.03
    settle_s: Annotated[float, Field(ge=0.0, le=60.0)] = 2.0
    doubt: Annotated[float, Field(ge=0.0, le=10.0)] = 0.35
    confirm_s: Annotated[float, Field(ge=0.0, le=60.0)] = 0.8
    noise_N: Annotated[float, Field(ge=1e-6, le=1e6)] = 0.02
    zero_N: Annotated[float, Field(ge=1e-6, le=1e6)] = 0.02


class WiresTable(Table):
    """Errors of the wires' model, learned during operation
    (`hil.systems.array.sma.filter`).

    Standard deviations of a healthy array's errors: `share`, `heating` and `cooling` of a cell's
    force, power and convection, relative; `room_K` of the air; `delay_s` of the reading; `zero_N`
    of the transducer's zero, all of which stay about the same for `same_for_s`; `wander_N` of what
    wanders, for `wander_for_s`, and `stir` for what moves. A reading's noise is the observer's
    `force_noise_N`.
    """

    sample_s: Annotated[float, Field(ge=1e-3, le=10.0)] = 0.05
    share: Annotated[float, Field(ge=1e-4, le=1.0)] = 0.02
    heating: Annotated[float, Field(ge=1e-4, le=1.0)] = 0.03
    cooling: Annotated[float, Field(ge=1e-4, le=1.0)] = 0.05
    room_K: Annotated[float, Field(ge=1e-3, le=100.0)] = 1.5
    delay_s: Annotated[float, Field(ge=1e-6, le=1.0)] = 0.02
    same_for_s: Annotated[float, Field(ge=0.1, le=1e6)] = 300.0
    wander_N: Annotated[float, Field(ge=1e-6, le=1e6)] = 0.003
    wander_for_s: Annotated[float, Field(ge=1e-2, le=1e6)] = 1.0
    stir: Annotated[float, Field(ge=0.0, le=10.0)] = 0.04
    zero_N: Annotated[float, Field(ge=1e-6, le=1e6)] = 0.002


class WireFailuresTable(Table):
    """Tests for failed cells of a model whose cells are wires (`hil.systems.array.sma.failures`).

    `wires` has the error model of a healthy array. No cell is tested before cells have been on
    for `learn_for_s`: the day's laws are learned first. Standard deviations: `moment_s` of when a
    dead cell fades; `share_anew` of every share after a break. A cell is named once it is so
    `sure`. With `switch_suspects` a recruiter switches suspects on purpose to tell them apart, one
    every `apart_s`.
    """

    false_alarms_per_day: Annotated[float, Field(ge=1e-9, le=1e6)] = 1.0
    learn_for_s: Annotated[float, Field(ge=0.0, le=3600.0)] = 10.0
    moment_s: Annotated[float, Field(ge=1e-4, le=10.0)] = 0.03
    share_anew: Annotated[float, Field(ge=1e-2, le=100.0)] = 1.0
    sure: Annotated[float, Field(ge=0.5, lt=1.0)] = 0.99
    switch_suspects: bool = False
    apart_s: Annotated[float, Field(ge=0.01, le=60.0)] = 0.5


class BroadcastTable(Table):
    """Broadcast control: one message for all cells, p to switch on and q to switch off; cells draw.

    `law` says how an error becomes p and q; `gain`, of fixed_gain, is p for an error of one
    mean cell. `error` is formed from the force as it is ("measured", with `period_s` longer
    than cells take to heat and cool), or as it will be with the cells now on ("commanded").
    Errors within `dead_zone_N` (by default half the largest step between force levels) draw
    nothing.
    """

    kind: Literal["broadcast"]
    law: Literal["dead_beat", "least_mean_square", "error_over_n", "fixed_gain"] = "dead_beat"
    gain: Annotated[float, Field(gt=0.0, le=1.0)] = 0.1
    error: Literal["measured", "commanded"] = "commanded"
    period_s: Annotated[float, Field(gt=0.0, le=60.0)]
    dead_zone_N: Positive | None = None


class GroupsTable(Table):
    """The size principle: groups recruited in this order, released in reverse.

    u = reference - disturbance + k_p (reference - force), both the observer's; cells join and
    leave as under `pid`. Cells of a group take turns, every `rotate_s` (0: never) also while
    their number stays, and rest for `rest_s` at least. `whole` switches groups as a whole.
    """

    kind: Literal["groups"]
    groups: Annotated[
        list[Annotated[list[int | str], PlainValidator(cell_list)]], Field(min_length=1)
    ]
    k_p: Annotated[float, Field(ge=0.0, le=1e6)] = 0.0
    hysteresis: Annotated[float, Field(ge=0.0, le=0.5)] = 0.1
    dwell_s: Wait = 0.1
    rest_s: Wait = 0.0
    rotate_s: Wait = 0.0
    whole: bool = False


class OptimalTable(Table):
    """Finite-horizon on/off control: the best plan for the next seconds, every `plan_s`.

    The search has `budget_s` and tries `levels_per_tick` levels a tick at most; cells may change
    at `n_blocks` times `plan_s` apart, and the force is looked at every `sample_s` up to
    `horizon_s`. Where the model's cells are wires, each may change at every plan up to the horizon,
    and `levels_per_tick` counts steps of a cell predicted; `n_blocks` and `sample_s` are not for
    them. A switch costs as much as an error of `price` smallest cells (in squares) at one
    sample. Cells stay on and off for `on_min_s` and `off_min_s` at least.
    """

    kind: Literal["optimal"]
    plan_s: Horizon = 0.2
    budget_s: Horizon = 0.02
    levels_per_tick: Annotated[int, Field(ge=1, le=1_000_000)] = 500
    n_blocks: Annotated[int, Field(ge=1, le=12)] = 4
    sample_s: Horizon = 0.1
    horizon_s: Horizon = 2.4
    price: Annotated[float, Field(ge=0.0, le=1e6)] = 1.0
    on_min_s: Wait = 0.0
    off_min_s: Wait = 0.0
