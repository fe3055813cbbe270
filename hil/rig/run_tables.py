"""Tables of every rig and every run: loop, guard, recording, experiment.

`hil.experiment.schema` lists the models, controllers and references.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol

from pydantic import Field, model_validator

from hil.calibration.files import Calibration
from hil.config.table import Name, NotNegative, Positive, Table, Title
from hil.control.tables import ReferenceTable
from hil.devices.tables import DeviceTable
from hil.mechanics.system import System
from hil.rig.bench_tables import AmbientTable, SpecimenTable
from hil.rig.plant_card import PlantCardTable


class LoopTable(Table):
    """Loop period, and what to do when deadlines are missed.

    Missed periods are skipped, never made up in a burst. After `overruns_max` periods missed in a
    row, `trip` ends the run safely and `tolerate` records an event; `skip` only counts them. On the
    real clock the loop sleeps until `spin_s` before its deadline and then polls the clock. The
    default is what this computer permits (`hil.platform.realtime.spin_s`). `force_channel` names
    the force that is controlled, observed and recorded as `force_measured_N`. Set it if there are
    several force channels and none is named `force`.
    """

    period_s: Annotated[float, Field(ge=1e-5, le=1.0)]
    force_channel: Name | None = None
    spin_s: Annotated[float, Field(ge=0.0, le=0.01)] | None = None
    overrun: Literal["trip", "tolerate", "skip"] = "trip"
    overruns_max: Annotated[int, Field(ge=1)] = 20
    after_trip_s: NotNegative = 0.5

    @model_validator(mode="after")
    def _leaves_time_to_sleep(self) -> "LoopTable":
        if self.spin_s is not None and self.spin_s > 0.5 * self.period_s:
            raise ValueError(
                f"spin_s = {self.spin_s:g} is more than half the period of {self.period_s:g} s: "
                "the kernel stops a real-time process that never sleeps"
            )
        return self


class SignalLimitTable(Table):
    """Limits of a channel, in its own unit; for a force, beside those of all forces."""

    min: float
    max: float
    rate_max_per_s: Positive | None = None


class GuardTable(Table):
    """Absolute limits. An experiment can tighten its rig's limits but not loosen them.

    `hil.loop.interlocks` has a row for each limit. `hold_s` sets how long a condition must last
    before it trips, by the name of its row.
    """

    force_max_N: Positive | None = None
    force_rate_max_N_per_s: Positive | None = None
    force_jump_max_N: Positive | None = None
    force_residual_max_N: Positive | None = None
    force_rise_min_N: Positive | None = None
    frozen_s: Positive | None = None
    cell_on_max_s: Positive | None = None
    cells_on_max: Annotated[int, Field(ge=1)] | None = None
    signals: dict[Name, SignalLimitTable] = {}
    reading_age_max_s: Positive = 0.05
    disk_free_min_MB: NotNegative = 100.0
    hold_s: dict[str, NotNegative] = {}


class RecordTable(Table):
    """How often rows are written to the file, and how often the file is synced to disk."""

    flush_s: Annotated[float, Field(ge=0.02, le=10.0)] = 0.25
    fsync_s: Annotated[float, Field(ge=0.1, le=600.0)] = 5.0


class ExperimentTable(Table):
    name: Title
    duration_s: Annotated[float, Field(gt=0.0, le=1e7)]
    operator: Title = ""


class ModelTables(Table):
    """A file that contains only a model; `hil.experiment.schema` lists the kinds."""

    model: Any
    plant: Any


class RigTables(ModelTables):
    """A rig: its model, the simulated plant, devices and limits."""

    loop: LoopTable
    devices: Annotated[dict[Name, DeviceTable], Field(min_length=1)]
    guard: GuardTable = GuardTable()
    observer: Any = None
    plant_card: PlantCardTable | None = None
    specimen: SpecimenTable | None = None
    ambient: AmbientTable | None = None


class RunTables(RigTables):
    """The complete configuration of a run: a rig merged with an experiment."""

    experiment: ExperimentTable
    reference: ReferenceTable | None = None
    controller: Any
    record: RecordTable = RecordTable()
    validation: Any = None
    expect: Any = ()


class RigConfig(Protocol):
    """The configuration that a rig is built from: `hil.experiment.loaded.Experiment`."""

    @property
    def path(self) -> Path: ...

    @property
    def tables(self) -> RunTables: ...

    @property
    def records(self) -> Mapping[str, Calibration]:
        """Calibrations of the channels that have one."""
        ...

    @property
    def modulates(self) -> bool:
        """Whether the controller commands duties."""
        ...

    @property
    def default_signal(self) -> str:
        """The signal of a force channel whose table does not name one."""
        ...

    def resistance_limits_Ohm(self, board: str) -> list[tuple[float, float]]:
        """The least and greatest resistance of every cell of a board."""
        ...

    def clamps_at_rest_C(self, board: str) -> list[tuple[float, float]]:
        """What the clamp of every cell of a board may read before a run."""
        ...

    def cooling_s(self, device: str) -> float:
        """Time with all its cells off after which any wire of a device has cooled enough."""
        ...

    def system(self, *, plant: bool = False) -> System:
        """A new twin, or the simulated plant, at rest."""
        ...
