"""Builds the parts of a run from a configuration: rig, estimator, controller, guard."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hil.devices.board import protocol
from hil.devices.injection import Injection
from hil.errors import PluginError
from hil.experiment import board_limits, loop_limits
from hil.experiment.kind import ControlInputs
from hil.experiment.loaded import Experiment
from hil.loop import duty, guard, loop, requests
from hil.loop.channels import RigLayout
from hil.loop.clock import Clock, RealClock, sleep_s
from hil.loop.context import LoopContext, RowSink
from hil.loop.frame import Column, Commands, Frame
from hil.loop.stages import Control, Estimator, SetPoint, Steered
from hil.loop.trip_report import TripReport
from hil.loop.wait_condition import WaitCondition
from hil.mechanics.sma.loop_budget import HeatBudget
from hil.rig.instruments import AMBIENT, outputs_of, signals_of
from hil.rig.replay import ReplayRig
from hil.rig.rig import HostTime, Rig, build_rig
from hil.runs.plan import Plan

ROOM_ERROR_K = 2.0  # assumed: of a channel that measures the room


class FaultyControl:
    """A control stage that commands NaN while the fault `controller_nan` is active.

    While `controller_raises` is active it raises, as user code would.
    """

    def __init__(self, inner: Control, injection: Injection) -> None:
        self._inner = inner
        self._injection = injection

    @property
    def columns(self) -> list[Column]:
        return self._inner.columns

    def bind(self, frame: Frame, measured: NDArray[np.float64], commands: Commands) -> None:
        self._outputs, self._duty = commands.outputs, commands.duty
        self._inner.bind(frame, measured, commands)

    @property
    def set_points(self) -> Mapping[str, SetPoint]:
        """Those of the inner stage; from Python 3.12 on `__getattr__` makes nothing `Steered`."""
        return self._inner.set_points if isinstance(self._inner, Steered) else {}

    def set_gain(self, key: str, value: float) -> None:
        """Change a gain of the inner stage; KeyError if it has none."""
        if not isinstance(self._inner, Steered):
            raise KeyError(key)
        self._inner.set_gain(key, value)

    def restart(self) -> None:
        self._inner.restart()

    def step(self, t_s: float) -> None:
        self._inner.step(t_s)
        if self._injection.active("controller_nan"):
            self._outputs[:] = self._duty[:] = np.nan
        if self._injection.active("controller_raises"):
            raise PluginError("injected")


@dataclass(frozen=True)
class Pipeline:
    """A rig with its estimator and its control stage, bound to one row."""

    config: Experiment
    rig: Rig
    estimator: Estimator
    control: Control
    frame: Frame

    def bind(self, rig: Rig | ReplayRig) -> None:
        """Bind rig, estimator and controller to the row."""
        rig.bind(self.frame)
        self.estimator.bind(self.frame, rig.readings, rig.commands)
        self.control.bind(self.frame, rig.readings.measured, rig.commands)

    def context(
        self,
        clock: Clock,
        sink: RowSink,
        *,
        rig: ReplayRig | None = None,
        armed: bool = True,
        until: WaitCondition | None = None,
    ) -> LoopContext:
        """The context of a loop.

        Parameters
        ----------
        rig : replaces the rig of the pipeline
        armed : whether the run starts armed
        until : condition of a run that only waits. Such a run is not armed, and its guard does not
            compare readings with the twin, because the twin does not know the history of the cells.
        """
        config, tables = self.config, self.config.tables
        opened = self.rig if rig is None else rig
        self.bind(opened)
        layout, period_s = self.rig.layout, tables.loop.period_s
        limits = _limits(config, layout)
        checks = guard.Guard(limits, layout.n_cells, period_s, opened.states)
        if until is not None:
            until.bind(self.frame)
            armed = False
        measured, commands = opened.readings, opened.commands
        checks.bind(self.frame, layout, measured, commands, with_model=until is None)
        set_points = {
            channel.column("reference"): (signal.min, signal.max)
            for channel, signal in zip(layout.channels, limits.signals, strict=True)
        }
        readings = {
            channel.column("reference"): partial(checks.last_reading, i)
            for i, channel in enumerate(layout.channels)
        }
        force_max_N = tables.guard.force_max_N or np.inf
        return LoopContext(
            clock=clock,
            rig=opened,
            estimator=self.estimator,
            control=self.control,
            guard=checks,
            inputs=requests.Inputs(
                sink,
                self.control,
                checks,
                opened,
                set_points,
                requests.TARE_SHARE_MAX * force_max_N,
                readings,
                was_armed=armed,
            ),
            frame=self.frame,
            report=TripReport(limits, layout, period_s, force_max_N),
            sink=sink,
            period_s=period_s,
            n_ticks=config.n_ticks,
            after_trip_ticks=round(tables.loop.after_trip_s / period_s),
            armed=armed,
            tolerated_overruns=(
                tables.loop.overruns_max if tables.loop.overrun == "tolerate" else None
            ),
            until=until,
        )


def build(plan: Plan) -> Pipeline:
    """Build the rig, estimator and control stage of a run and bind them to one row."""
    config, injection = plan.config, plan.injection
    kind, tables, model = config.kind, config.tables, config.models[0]
    rig = build_rig(
        config,
        plan.seed,
        plan.backends,
        HostTime(RealClock().now_s, sleep_s),
        injection,
        plan.plant,
    )
    estimator_of = config.controller.estimator or kind.estimator
    estimator = estimator_of(tables, config.system(), rig.layout)
    inputs = ControlInputs(kind, tables, model, rig.layout, estimator, plan.seed)
    control = config.controller.build(inputs)
    if injection is not None:
        control = FaultyControl(control, injection)
    frame = Frame([*loop.columns(), *rig.columns, *estimator.columns, *control.columns])
    pipeline = Pipeline(config, rig, estimator, control, frame)
    pipeline.bind(rig)
    return pipeline


def _limits(config: Experiment, layout: RigLayout) -> guard.Limits:
    tables, model = config.tables, config.models[0]
    budgets = loop_limits.budgets(tables, model)
    g, force_max_N = tables.guard, tables.guard.force_max_N or np.inf
    signals, measured = [], signals_of(tables.devices)
    for channel in layout.channels:
        limits = g.signals.get(channel.name)
        low, high = (-np.inf, np.inf) if limits is None else (limits.min, limits.max)
        is_ambient = measured[channel.name] == AMBIENT  # may be constant for hours
        room_C, room_key = _warmest_room(config) if is_ambient else (np.inf, "")
        frozen_s = np.inf if is_ambient else g.frozen_s or np.inf
        rate = np.inf if limits is None else limits.rate_max_per_s or np.inf
        if not channel.force:
            signals.append(
                guard.SignalLimits(
                    low, min(high, room_C), rate_max_per_s=rate, frozen_s=frozen_s,
                    max_key=room_key if room_C < high else "",
                )
            )  # fmt: skip
            continue
        usual_rate = g.force_rate_max_N_per_s or np.inf
        own_key = f"guard.signals.{channel.name}.rate_max_per_s"
        signals.append(
            guard.SignalLimits(
                min=max(low, -force_max_N),
                max=min(high, force_max_N),
                is_force=True,
                rate_max_per_s=min(rate, usual_rate),
                rate_key=own_key if rate < usual_rate else "",
                jump_max=g.force_jump_max_N or np.inf,
                residual_max=g.force_residual_max_N or np.inf,
                rise_min=g.force_rise_min_N or np.inf,
                frozen_s=frozen_s,
            )
        )
    return guard.Limits(
        cell_on_max_s=g.cell_on_max_s or np.inf,
        reading_age_max_s=g.reading_age_max_s,
        overruns_max=tables.loop.overruns_max if tables.loop.overrun == "trip" else 2**62,
        cells_on_max=g.cells_on_max or layout.n_cells,
        hold_s=g.hold_s,
        duty_min=protocol.DUTY_MIN_PER_255 / duty.STEPS,
        heat=[_heat(budgets.get(cell)) for cell in layout.cell_names] if budgets else (),
        signals=signals,
        outputs=[
            guard.Envelope(o.min, o.max, o.rate_max_per_s, rest=min(max(0.0, o.min), o.max))
            for o in outputs_of(tables.devices).values()
        ],
        wires=board_limits.watched(tables, config.protections, layout.cell_names),
    )


def _warmest_room(config: Experiment) -> tuple[float, str]:
    """What a channel may read of the room: for warmer air no wire's limits were checked."""
    rooms = [(b.bench.warm_C, f"devices.{b.name}.ambient_range_C")
             for b in config.protections if b.cells]  # fmt: skip
    rooms += [(one.warm_C, f"devices.{one.name}.switches.ambient_range_C")
              for one in config.loop_protections if one.wires]  # fmt: skip
    warm_C, key = min(rooms, default=(np.inf, ""))
    return warm_C + ROOM_ERROR_K, key


def _heat(budget: HeatBudget | None) -> guard.CellHeat:
    """The heat of a cell as the guard keeps it; a cell without a budget has no limit there."""
    if budget is None:
        return guard.CellHeat()
    return guard.CellHeat(
        budget.heats_K_per_s,
        budget.time_constant_s,
        budget.rise_max_K,
        budget.begins_K,  # the self-test has waited for it
    )


class NoSink:
    """A sink that discards rows."""

    disk_low = file_harmed = ""

    def push(self) -> bool:
        return True

    def event(self, t_s: float, level: str, source: str, text: str) -> None:
        """Does nothing."""

    def requests(self, tick: int) -> Sequence[requests.Request]:
        """No requests."""
        return ()

    def input(self, tick: int, t_s: float, name: str, value: float, text: str = "") -> None:
        """Does nothing."""
