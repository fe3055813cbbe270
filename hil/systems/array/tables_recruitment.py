"""Tables of recruitment: its controllers and the tests for failed cells."""

from typing import Annotated, Literal

from pydantic import Field, PlainValidator

from hil.config.table import Positive, Table, cell_list
from hil.control.tables import PidTable

Wait = Annotated[float, Field(ge=0.0, le=3600.0)]
Horizon = Annotated[float, Field(ge=1e-4, le=60.0)]
Price = Annotated[float, Field(ge=0.0, le=1e6)]
WEAR_PRICE_S = 0.0015


class FailuresTable(Table):
    """Tests for failed cells: error model of a healthy array, and false alarm rate.

    The last `window_s` are searched for cells that fail now, the last `memory_s` for cells dead
    from the start; a verdict must persist for `confirm_s`. Standard deviations: `spread` of a
    healthy cell's force (relative), `drift` of one cell's force from its learned value,
    `doubt` of a cell's force for `settle_s` after it was switched, `noise_N` of a reading (with
    model errors), `zero_N` of the transducer's zero. The time of a judgement grows with the cube
    of the cells: 69 may be tested at a period of 1 ms, 149 at 10 ms. See
    `hil.systems.array.failures.isolation`.
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
    (`hil.systems.array.wires.filter`).

    Standard deviations of a healthy array's errors: `share`, `heating` and `cooling` of a cell's
    force, power and convection (relative); `room_K` of the ambient temperature; `delay_s` of the
    reading; `zero_N` of the transducer's zero. These change slowly, with the time constant
    `same_for_s`. `wander_N` is the disturbance with the time constant `wander_for_s`; `stir` is
    the error of moving cells. A reading's noise is the observer's `force_noise_N`.
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
    """Tests for failed cells that are wires (`hil.systems.array.failures.wire_failures`).

    `wires` has the error model of a healthy array. No cell is tested until cells have been on
    for `learn_for_s`, because the laws of the day are learned first. Standard deviations:
    `moment_s` of the time at which a dead cell fades; `share_anew` of every share after a break.
    A cell is named once its probability exceeds `sure`. With `switch_suspects` a recruiter
    switches suspects deliberately to distinguish them, one every `apart_s`.
    """

    false_alarms_per_day: Annotated[float, Field(ge=1e-9, le=1e6)] = 1.0
    learn_for_s: Annotated[float, Field(ge=0.0, le=3600.0)] = 10.0
    moment_s: Annotated[float, Field(ge=1e-4, le=10.0)] = 0.03
    share_anew: Annotated[float, Field(ge=1e-2, le=100.0)] = 1.0
    sure: Annotated[float, Field(ge=0.5, lt=1.0)] = 0.99
    switch_suspects: bool = False
    apart_s: Annotated[float, Field(ge=0.01, le=60.0)] = 0.5


class CellFailuresTable(Table):
    """Tests for cells that no longer pull, from force and resistances
    (`hil.systems.array.failures.cell_failures`).

    For wires on boards that measure resistance. Standard deviations of a healthy array's errors
    beside those of `wires`: `share` of a static gain, `resistance` of a wire's resistance,
    `contrast` of its change by austenite, `resolution` of a reading (relative);
    `austenite_per_sqrt_s` is what the error of the twin's austenite gains at rest, and `stir` what
    it gains over the change of austenite. Nothing is tested for `learn_for_s`. A cell is named once
    its probability exceeds `sure` for `confirm_s`.
    """

    false_alarms_per_day: Annotated[float, Field(ge=1e-9, le=1e6)] = 1.0
    learn_for_s: Annotated[float, Field(ge=0.0, le=3600.0)] = 5.0
    share: Annotated[float, Field(ge=1e-4, le=1.0)] = 0.06
    resistance: Annotated[float, Field(ge=1e-5, le=1.0)] = 0.03
    contrast: Annotated[float, Field(ge=1e-3, le=10.0)] = 0.2
    resolution: Annotated[float, Field(ge=1e-6, le=1.0)] = 0.0025
    austenite_per_sqrt_s: Annotated[float, Field(ge=1e-6, le=1.0)] = 0.012
    stir: Annotated[float, Field(ge=0.0, le=10.0)] = 0.3
    sure: Annotated[float, Field(ge=0.5, lt=1.0)] = 0.99
    confirm_s: Annotated[float, Field(ge=0.0, le=60.0)] = 0.5


class PreviewTable(PidTable):
    """Preview: the set point of `preview_s` later, plus the PID of `pid`.

    u(t) = r(t + preview_s) + Kp e + Ki int(e) + Kd de/dt, with e = r(t) - force. Cells that act
    `preview_s` after their command leave no error for the feedback. Default: the mean delay of the
    commissioned model's rise and fall. The other keys act as under `pid`.
    """

    kind: Literal["preview"]  # type: ignore[assignment]
    preview_s: Annotated[float, Field(ge=0.0, le=60.0)] | None = None


class BroadcastTable(Table):
    """Broadcast control: one message with the probabilities p (on) and q (off); the cells draw.

    `law` turns an error into p and q. `gain` applies to fixed_gain: p for an error of one
    mean cell. `error` is formed from the measured force ("measured", with `period_s` longer
    than cells take to heat and cool) or from the force to which the cells now on will settle
    ("commanded"). Errors within `dead_zone_N` (default: half the largest step between force
    levels) switch no cell.
    """

    kind: Literal["broadcast"]
    law: Literal["dead_beat", "least_mean_square", "error_over_n", "fixed_gain"] = "dead_beat"
    gain: Annotated[float, Field(gt=0.0, le=1.0)] = 0.1
    error: Literal["measured", "commanded"] = "commanded"
    period_s: Annotated[float, Field(gt=0.0, le=60.0)]
    dead_zone_N: Positive | None = None


class GroupsTable(Table):
    """The size principle: groups are recruited in this order and released in reverse.

    u = reference - disturbance + k_p (reference - force), with the observer's force and
    disturbance; `hysteresis` and `dwell_s` act as under `pid`. Cells of a group alternate, every
    `rotate_s` (0: never) even at constant demand, and rest for at least `rest_s`. `whole` switches
    complete groups.
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
    """Finite-horizon control: the best plan for the next seconds, every `plan_s`.

    The search has `budget_s` and tries at most `levels_per_tick` levels a tick. Cells can change
    at `n_blocks` times `plan_s` apart; the force is predicted every `sample_s` up to `horizon_s`.
    A switch costs as much as an error of `price` smallest cells (squared) at one sample (default 1;
    0 for wires). Cells stay on and off for at least `on_min_s` and `off_min_s`.

    If the model's cells are wires, each can change at every plan up to the horizon,
    `levels_per_tick` counts predicted cell steps, also those that begin a plan, and `n_blocks` and
    `sample_s` do not apply.
    Wires wear by transforming, not by switching: a change of one wire from martensite to austenite
    costs as much as an error of one smallest cell for `wear_price_s` (default 0.0015, or 0 with a
    `price`), and a second of one cell's full power as much as that error for `energy_price`
    seconds. `power` is "switched" (on or off) or "modulated" (a duty for every cell, which boards
    apply; it needs wires).
    """

    kind: Literal["optimal"]
    plan_s: Horizon = 0.2
    budget_s: Horizon = 0.02
    levels_per_tick: Annotated[int, Field(ge=1, le=1_000_000)] = 500
    n_blocks: Annotated[int, Field(ge=1, le=12)] = 4
    sample_s: Horizon = 0.1
    horizon_s: Horizon = 2.4
    price: Price | None = None
    wear_price_s: Price | None = None
    energy_price: Price = 0.0
    power: Literal["switched", "modulated"] = "switched"
    on_min_s: Wait = 0.0
    off_min_s: Wait = 0.0

    @property
    def modulates(self) -> bool:
        """Whether it commands duties."""
        return self.power == "modulated"

    @property
    def wear_s(self) -> float:
        """The price of wear; a file that names only the price of switches means only that."""
        if self.wear_price_s is not None:
            return self.wear_price_s
        return WEAR_PRICE_S if self.price is None else 0.0
