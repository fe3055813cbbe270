"""What will run: the experiment, on which devices, on which clock, with which faults."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from functools import cached_property
from numbers import Integral

from hil.devices.injection import Injection
from hil.errors import ConfigError
from hil.experiment import board_limits
from hil.experiment.loaded import Experiment
from hil.experiment.plan import trips
from hil.experiment.source_checks import raise_all
from hil.loop.clock import Clock, RealClock, StallingClock, VirtualClock
from hil.mechanics.system import System
from hil.platform import realtime
from hil.rig.injection_check import refuse_absent
from hil.rig.rig import DRIVERS, left_out, parse_backend
from hil.runs.calibration_status import CalibrationStatus, status_of_rig

CLOCKS = ("virtual", "real")


@dataclass(frozen=True)
class Plan:
    """One run before it begins. Making a plan refuses what cannot run, and touches no device.

    Attributes
    ----------
    config : the experiment and its rig
    backend : `sim`, or a backend for each device (`board=bench,daq=sim`); `drivers` becomes these
    clock : `virtual` or `real`; by default virtual, and real when a device keeps wall time
    seed : seed of all random draws; the same seed on the virtual clock repeats every value
    injection : faults for a simulated rig
    plant : the simulated plant in the state of an earlier run; by default a new one, at rest
    left_out : what this computer lacks for `drivers`, as text
    strict : bool
        Refuse calibrations that have expired, are missing or are ambiguous. On a bench also refuse
        values that are assumed or rehearsed, and boards whose limits are not known to protect the
        wires. Otherwise these are warnings.

    Raises
    ------
    ConfigError
        An unknown backend or clock, a bench on the virtual clock, a seed that is none, faults that
        this rig cannot have, choices that no bench accepts, or what `strict` refuses.
    """

    config: Experiment
    backend: str = "sim"
    clock: str = ""
    seed: int = 0
    injection: Injection | None = None
    plant: System | None = None
    strict: bool = False
    left_out: str = field(default="", init=False)

    def __post_init__(self) -> None:
        if self.backend == DRIVERS:
            parts = [f"{name}={kind}" for name, kind in self.backends.items()]
            lacking = left_out(self.config.tables)
            texts = [f"'{name}' {text}" for name, text in lacking.items()]
            object.__setattr__(self, "backend", ",".join(parts))
            object.__setattr__(self, "left_out", "; ".join(texts))
        if not self.clock:
            object.__setattr__(self, "clock", CLOCKS[self.in_wall_time])
        if self.in_wall_time and self.clock == "virtual":
            raise ConfigError(f"--clock virtual: --backend {self.backend} runs in real time")
        if self.clock not in CLOCKS:
            raise ConfigError(f"--clock {self.clock}: choose {' or '.join(CLOCKS)}")
        seed: object = self.seed  # from Python it may be anything
        if not (isinstance(seed, Integral) and 0 <= int(seed) < 2**63):
            raise ConfigError(f"--seed {seed!r}: give a whole number from 0 to 2^63 - 1")
        if self.injection is not None:
            self._refuse_faults(self.injection)
        if self.strict and (refused := self.status.refused(on_bench=self.on_bench)):
            raise ConfigError(f"--strict: {'; '.join(refused)}")
        if self.on_bench:
            self._refuse_unprotected()

    def _refuse_unprotected(self) -> None:
        if excuses := self.config.excuses:
            raise ConfigError("\n".join(f"{line} (on the bench)" for line in excuses))
        boards = [board for board in self.config.protections if board.name in self.real]
        board_limits.refuse(self.config.path, boards)
        raise_all(self.config.merged, trips(self.config))

    def _refuse_faults(self, injection: Injection) -> None:
        if self.real:
            raise ConfigError(f"--inject: not on a bench: --backend {min(self.real)}=bench")
        if self.in_wall_time:
            raise ConfigError(f"--inject: not into a board on a pseudo-terminal: {self.backend}")
        tables = self.config.tables
        refuse_absent(
            injection.faults, tables.devices, self.backends, self.clock, self.config.n_ticks,
            tables.loop.period_s,
        )  # fmt: skip

    @cached_property
    def backends(self) -> Mapping[str, str]:
        """The backend of every device."""
        return parse_backend(self.backend, self.config.tables)

    @property
    def real(self) -> set[str]:
        """Names of the devices that are on the bench."""
        return {name for name, kind in self.backends.items() if kind == "bench"}

    @property
    def on_bench(self) -> bool:
        """Whether a device is on the bench."""
        return bool(self.real)

    @property
    def in_wall_time(self) -> bool:
        """Whether a device keeps its own time: on the bench, or in a process of its own."""
        return not {"bench", "pty"}.isdisjoint(self.backends.values())

    @cached_property
    def status(self) -> CalibrationStatus:
        """Status of the calibrations today, and of board limits on the bench."""
        status = status_of_rig(self.config, today(), self.real)
        path = self.config.path
        return replace(
            status,
            unprotected=[f"{path}: {line}" for line in status.unprotected],
            not_brought_up=[f"{path}: {line}" for line in status.not_brought_up],
        )

    def new_clock(self) -> Clock:
        """A clock of the kind that this run is on."""
        if self.clock == "real":
            loop = self.config.tables.loop
            return RealClock(realtime.spin_s(loop.spin_s, loop.period_s))
        if self.injection is not None:
            return StallingClock(self.injection.stall_s, self.injection.asleep_s)
        return VirtualClock()


def today() -> date:
    """The date in UTC, on which calibrations must be valid."""
    return datetime.now(UTC).date()
