"""Tables of set points, and of controllers that any system may use."""

from typing import Annotated, Literal, get_args

from pydantic import Discriminator, Field, PlainValidator, Tag, model_validator

from hil.config.table import Cells, Celsius, Name, NotNegative, Positive, Table, cell_list
from hil.plugins.load import PluginTable, kind_tag, kinds


class StepsReferenceTable(Table):
    """Piecewise constant: from `t_s[i]` on the value is `force_N[i]`, 0 before the first."""

    kind: Literal["steps"]
    t_s: Annotated[list[NotNegative], Field(min_length=1)]
    force_N: Annotated[list[float], Field(min_length=1)]


class RampReferenceTable(Table):
    """Linear between points; constant at the first and last value outside."""

    kind: Literal["ramp"]
    t_s: Annotated[list[NotNegative], Field(min_length=2)]
    force_N: Annotated[list[float], Field(min_length=2)]


class SineReferenceTable(Table):
    """mean_N + amplitude_N sin(2 pi frequency_Hz t)."""

    kind: Literal["sine"]
    mean_N: float
    amplitude_N: NotNegative
    frequency_Hz: Positive


class ChirpReferenceTable(Table):
    """A sine with a linear sweep from `from_Hz` to `to_Hz` in `sweep_s`, constant after it."""

    kind: Literal["chirp"]
    mean_N: float
    amplitude_N: NotNegative
    from_Hz: NotNegative
    to_Hz: Positive
    sweep_s: Positive


class ReachReferenceTable(Table):
    """Minimum-jerk movement to `to_N`, and back after `hold_s`. Source: Flash & Hogan 1985."""

    kind: Literal["reach"]
    from_N: float = 0.0
    to_N: float
    start_s: NotNegative = 0.0
    move_s: Positive
    hold_s: NotNegative = 0.0
    returns: bool = False


class TraceReferenceTable(Table):
    """A recorded curve, linear between its points.

    `file` is a CSV file beside the experiment with the columns `t_s` and `force_N`. Loading copies
    its values into this table, so a recording contains them.
    """

    kind: Literal["trace"]
    file: str | None = None
    t_s: Annotated[list[NotNegative], Field(min_length=2)]
    force_N: Annotated[list[float], Field(min_length=2)]


class SignalStepsTable(Table):
    """Piecewise constant: `value[i]` from `t_s[i]` on, 0 before the first."""

    kind: Literal["steps"]
    t_s: Annotated[list[NotNegative], Field(min_length=1)]
    value: Annotated[list[float], Field(min_length=1)]


class SignalRampTable(Table):
    """Linear between points; the first and last value hold outside."""

    kind: Literal["ramp"]
    t_s: Annotated[list[NotNegative], Field(min_length=2)]
    value: Annotated[list[float], Field(min_length=2)]


class SignalSineTable(Table):
    """mean + amplitude sin(2 pi frequency_Hz t)."""

    kind: Literal["sine"]
    mean: float
    amplitude: NotNegative
    frequency_Hz: Positive


SignalTable = Annotated[
    Annotated[
        SignalStepsTable | SignalRampTable | SignalSineTable,
        Field(discriminator="kind"),
        Tag("built_in"),
    ]
    | Annotated[PluginTable, Tag("own")],
    Discriminator(kind_tag("reference", kinds(SignalStepsTable, SignalRampTable, SignalSineTable))),
]


class SignalsReferenceTable(Table):
    """One set point per channel, in the channel's unit, for rigs without arrays."""

    kind: Literal["signals"]
    signals: Annotated[dict[Name, SignalTable], Field(min_length=1)]


KnownReferenceTable = (
    StepsReferenceTable
    | RampReferenceTable
    | SineReferenceTable
    | ChirpReferenceTable
    | ReachReferenceTable
    | TraceReferenceTable
)
ForceReferenceTable = KnownReferenceTable | PluginTable
ReferenceTable = Annotated[
    Annotated[
        KnownReferenceTable | SignalsReferenceTable, Field(discriminator="kind"), Tag("built_in")
    ]
    | Annotated[PluginTable, Tag("own")],
    Discriminator(
        kind_tag("reference", kinds(*get_args(KnownReferenceTable), SignalsReferenceTable))
    ),
]


class ScheduleStepTable(Table):
    """At `t_s` switch cells on or off: "all", or a list of numbers (from 1) or names."""

    t_s: NotNegative
    on: Cells = []
    off: Cells = []

    @model_validator(mode="after")
    def _switches_something(self) -> "ScheduleStepTable":
        if not self.on and not self.off:
            raise ValueError("switches nothing: give on or off, 'all' or a list of cells")
        return self


class ScheduleTable(Table):
    """Cells switched at given times, while outputs follow curves.

    `outputs` gives a curve for each output that moves, in the unit of the input that it drives.
    """

    kind: Literal["schedule"]
    steps: Annotated[list[ScheduleStepTable], Field(min_length=1)]
    outputs: dict[Name, SignalTable] = {}


class PidTable(Table):
    """PID on force; the output in newtons is quantised to a number of cells.

    u = Kp e + Ki int(e) + Kd de/dt; the derivative is filtered with `derivative_filter_s`.
    Cells are recruited in `order`. A cell joins or leaves when u is `hysteresis` of its step beyond
    the middle between two levels, and not earlier than `dwell_s` after the last change.
    """

    kind: Literal["pid"]
    k_p: NotNegative
    k_i_per_s: NotNegative = 0.0
    k_d_s: NotNegative = 0.0
    derivative_filter_s: Positive = 0.02
    order: Annotated[list[int | str] | None, PlainValidator(cell_list)] = None
    hysteresis: Annotated[float, Field(ge=0.0, le=0.5)] = 0.1
    dwell_s: NotNegative = 0.1


class ModulateTable(Table):
    """Duties of cells with wires: inverse wire model plus PI on force (`systems.array.modulation`).

    u = set point + Kp e + Ki int(e) is the force that the wire model is inverted for. A wire
    approaches the heat content that this takes with the time constant `response_s`, and keeps its
    temperature while its fraction of austenite is right to `dead_band`. `temperature_max_C` limits
    the twin's temperature of every wire by a smaller duty; by default it is the wire's own. A duty
    holds for `command_s`: boards count a duty that changes more often as more heat.
    """

    kind: Literal["modulate"]
    k_p: NotNegative = 0.0
    k_i_per_s: NotNegative = 1.0
    response_s: Annotated[float, Field(ge=0.01, le=60.0)] = 0.1
    dead_band: Annotated[float, Field(ge=0.0, le=0.5)] = 0.005
    command_s: Annotated[float, Field(ge=0.0041, le=1.0)] = 0.016
    temperature_max_C: Celsius | None = None


class AntagonistTable(ModulateTable):
    """Duties of wires that pull from two sides (`systems.array.antagonists`).

    The force is the net force on a fixed point between arrays, and may be negative. Each side makes
    up for what the other still pulls, and pulls at least `least_N`. The other keys act as under
    `modulate`.
    """

    kind: Literal["antagonist"]  # type: ignore[assignment]
    least_N: NotNegative = 0.0


class SignalLoopTable(Table):
    """One PID from a channel to an output; the set point has the name of the channel.

    u = Kp e + Ki int(e) + Kd de/dt. The derivative is filtered with `derivative_filter_s`, and the
    integral is frozen while the output is at the end of its range or of its rate.
    """

    output: str
    k_p: float
    k_i_per_s: float = 0.0
    k_d_s: float = 0.0
    derivative_filter_s: Positive = 0.02


class SignalPidTable(Table):
    """One PID per channel, for rigs without arrays."""

    kind: Literal["signal_pid"]
    loops: Annotated[dict[Name, SignalLoopTable], Field(min_length=1)]
