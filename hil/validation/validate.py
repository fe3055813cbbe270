"""`hil report --validate`: compares the model of a run with its readings, without fitting."""

import datetime
import hashlib
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from hil.calibration.files import Source
from hil.config.files import Merged, read_toml
from hil.config.validate import validated
from hil.errors import ConfigError
from hil.experiment.acceptance import ValidationFile, ValidationTable
from hil.identification import parameters
from hil.identification.grey_box import GreyBox
from hil.identification.known import Known, known_of
from hil.identification.runs import Recorded, RunData, read_run, sources_of
from hil.mechanics.arrays import Array
from hil.record.overview import PART
from hil.record.progress import count_progress
from hil.validation import draws
from hil.validation.band import Z_95, channel_of, means_of_noise
from hil.validation.draws import Recruitment, cells_open_of, messages_of
from hil.validation.figures import Figures, figures_of
from hil.validation.ripple import Ripple, ripple_of
from hil.validation.uncertainty import Uncertainty, alone_N, spread, uncertainty_of

TAIL = 0.1  # last share of a stretch between two switchings, which gives its final force
STRETCH_MIN_S = 0.5
SAME_N = 1e-9


@dataclass(frozen=True)
class Criterion:
    """One acceptance limit, and the end of the figure's interval that must meet it."""

    key: str
    limit: float
    value: float
    worst: float
    met: bool


@dataclass(frozen=True)
class Comparison:
    """Comparison error of one quantity, E = S - D, with u_val. Source: ASME V&V 20-2009."""

    what: str
    t_s: float
    simulated_N: float
    measured_N: float
    u_input_N: float
    u_D_N: float
    u_num_N: float

    @property
    def error_N(self) -> float:
        return self.simulated_N - self.measured_N

    @property
    def u_val_N(self) -> float:
        return float(np.sqrt(self.u_input_N**2 + self.u_D_N**2 + self.u_num_N**2))

    @property
    def resolved(self) -> bool:
        """Whether |E| exceeds the uncertainty of the comparison, |E| > 2 u_val."""
        return abs(self.error_N) > 2.0 * self.u_val_N


Basis = Literal["recorded", "file", "none"]


@dataclass(frozen=True)
class Validated:
    """Validation of one run.

    Attributes
    ----------
    data : the compared readings, without those after a trip
    alone_N : RMS effect of one standard uncertainty of each single parameter
    coverage : share of the readings within 1.96 u_val of the simulated force
    coverage_drawn : the same for the band of recruitment; NaN without broadcasts
    basis : where the acceptance criteria come from
    notes : reservations
    spoilt : reasons why the comparison is not a validation
    """

    recorded: Recorded
    data: RunData
    known: Known
    uncertainty: Uncertainty
    alone_N: Mapping[str, float]
    figures: Figures
    ripple: Ripple | None
    recruitment: Recruitment | None
    coverage: float
    coverage_drawn: float
    comparisons: tuple[Comparison, ...]
    criteria: tuple[Criterion, ...]
    basis: Basis
    acceptance_sha256: str
    notes: tuple[str, ...]
    spoilt: tuple[str, ...]

    @property
    def accepted(self) -> bool:
        return bool(self.criteria) and all(c.met for c in self.criteria) and not self.spoilt

    def verdict(self) -> str:
        """The verdict as one line."""
        if self.spoilt:
            return f"NOT ACCEPTED: {'; '.join(self.spoilt)}"
        if not self.criteria:
            return (
                "NOT ACCEPTED: no acceptance criteria were stated before the run: give the "
                "experiment a [validation] and run it"
            )
        failed = [c.key for c in self.criteria if not c.met]
        if failed:
            return f"NOT ACCEPTED: {', '.join(failed)} not kept"
        n = len(self.criteria)
        kept = "its one criterion" if n == 1 else f"all {n} criteria"
        if self.basis == "file":
            return f"accepted: {kept} kept, by a file whose time stamp is older than the run"
        return f"accepted: {kept} kept, written down before the run"


def validate_files(
    paths: Sequence[Path], acceptance: Path | None, *, progress: bool = False
) -> list[Validated]:
    """Validate every run separately; the earliest run comes first.

    Raises
    ------
    ConfigError
        A file is not a recording of an array, or is of another rig than the others.
    """
    recorded = [read_run(path, displacements=True) for path in paths]
    first = recorded[0]
    seen: dict[str, Path] = {}
    for other in recorded:
        if other.data.sha256 in seen:
            raise ConfigError(f"{other.path}: given twice: give every recording once")
        seen[other.data.sha256] = other.path
        mine, its = first.config.model, other.config.model
        if mine.cell_names != its.cell_names or first.data.signal != other.data.signal:
            raise ConfigError(
                f"{other.path}: a run of another rig than {first.path}: runs of one array are "
                "compared: report the others separately"
            )
    total = sum(1 + draws.DRAWS * ("broadcast_tick" in r.run) for r in recorded)
    with count_progress("draws", total, progress) as done:
        validations = [validate(r, acceptance, done) for r in recorded]
    return sorted(validations, key=lambda v: str(v.recorded.run.attrs["created_utc"]))


def validate(
    recorded: Recorded,
    acceptance: Path | None,
    done: Callable[[int], None] = lambda n_more: None,
) -> Validated:
    """Compare the model of one run with its readings; calls `done` with the simulations made."""
    data, notes = _before_a_trip(recorded)
    tables = parameters.tables_of(recorded.model)
    sources = sources_of(recorded.path)
    known = known_of(tables, [(source, tables) for source, tables in sources])
    channel = channel_of(replace(recorded, data=data), sources)
    noise_N = channel.noise_N
    uncertainty = uncertainty_of(tables, data, known, channel)
    done(1)
    uncalibrated = channel.transducer is None and channel.u_slope == 0.0
    notes += _messages(recorded, data, known, uncertainty, uncalibrated)
    figures = figures_of(data.measured, uncertainty.simulated_N)
    inside = np.abs(data.measured - uncertainty.simulated_N) <= Z_95 * uncertainty.u_val_N
    box = GreyBox(tables, (), (data,))
    ripple = _ripple(recorded, data, uncertainty, noise_N)
    recruitment, within = None, float("nan")
    if "broadcast_tick" in recorded.run:
        messages = messages_of(recorded.run, data.period_s)
        if messages := [m for m in messages if m[0] < len(data.cells)]:
            apart = cells_open_of(recorded.run, data.period_s)
            recruitment = draws.draw_again(box, data, messages, done=done, cells_open=apart)
            low, high = drawn_band(recruitment, uncertainty)
            within = float(np.mean((low <= data.measured) & (data.measured <= high)))
    table, basis, sha256 = _acceptance(recorded, acceptance)
    coverage = float(inside.mean())
    return Validated(
        recorded, data, known, uncertainty, alone_N(tables, data, known), figures, ripple,
        recruitment, coverage, within,
        tuple(_comparisons(data, uncertainty)),
        tuple(_criteria(table, figures, ripple, coverage, data.unit)),
        basis, sha256, tuple(notes), tuple(_spoilt(recorded, sources, basis, acceptance)),
    )  # fmt: skip


def drawn_band(drawn: Recruitment, uncertainty: Uncertainty) -> tuple[Array, Array]:
    """95 % band of recruitment, including the other uncertainties."""
    wide = Z_95 * uncertainty.u_val_N
    return (
        drawn.mean_N - np.hypot(drawn.mean_N - drawn.low_N, wide),
        drawn.mean_N + np.hypot(drawn.high_N - drawn.mean_N, wide),
    )


def _before_a_trip(recorded: Recorded) -> tuple[RunData, list[str]]:
    """The data before a trip: after it the guard has switched off and something may be broken."""
    run, data = recorded.run, recorded.data
    notes = [f"a long run: {run.attrs[PART]} are compared"] if PART in run.attrs else []
    tripped = np.flatnonzero(run.fault_bits.values)
    if not len(tripped):
        return data, notes
    period = round(float(run.t_s.values[tripped[0]] - run.t_s.values[0]) / data.period_s)
    n = int(np.searchsorted(data.rows, period))
    if n < 2:
        raise ConfigError(f"{recorded.path}: tripped at its start: no readings to compare")
    cut = replace(data, cells=data.cells[:period], rows=data.rows[:n], measured=data.measured[:n])
    return cut, [
        *notes,
        f"the run tripped: only its first {period * data.period_s:.3g} s are compared",
    ]


def _messages(
    recorded: Recorded, data: RunData, known: Known, uncertainty: Uncertainty, no_transducer: bool
) -> list[str]:
    messages = []
    if not known.keys:
        messages.append(
            "no calibration states the uncertainty of the model's parameters: the band omits them"
        )
    elif known.unsaid:
        names = ", ".join(key.rpartition(".")[2] for key in known.unsaid)
        messages.append(
            f"no calibration states the uncertainty of these, so the band omits them: {names}"
        )
    if no_transducer:
        what = "transducer" if data.unit == "N" else "displacement sensor"
        messages.append(f"the {what} has no calibration: the band omits its slope")
    if "imported" in recorded.run.attrs:
        messages.append("readings are imported: hil did not measure them")
    if recorded.simulated:
        messages.append("readings are SIMULATED: this validates software, not an array")
    calibration = json.loads(recorded.run.attrs.get("summary", "{}")).get("calibration", {})
    messages += calibration.get("expired", [])
    messages += calibration.get("departed", [])
    if "force_model_N" in recorded.run and data.unit == "N":
        twin_N = recorded.run.force_model_N.values
        ideal = data.reading.delay_s == 0.0 and data.reading.bandwidth_Hz > 10.0 / data.period_s
        at = np.flatnonzero(np.isfinite(twin_N))[: len(uncertainty.simulated_N)]
        if ideal and len(at) == len(uncertainty.simulated_N) == len(data.rows) == data.rows[-1] + 1:
            apart = float(np.abs(twin_N[at] - uncertainty.simulated_N).max())
            if apart > SAME_N:
                messages.append(
                    f"the twin that ran beside the run was up to {1e3 * apart:.2g} mN off this one"
                )
    return messages


def _ripple(
    recorded: Recorded, data: RunData, uncertainty: Uncertainty, noise_N: float
) -> Ripple | None:
    grid = np.arange(data.rows[0], data.rows[-1] + 1)
    if len(data.rows) < 0.99 * len(grid):
        return None
    measured = np.interp(grid, data.rows, data.measured)
    simulated = np.interp(grid, data.rows, uncertainty.simulated_N)
    poles = np.linalg.eigvals(recorded.config.model.A)
    modes_Hz = np.abs(poles.imag) / (2.0 * np.pi)
    sigma = noise_N if np.isfinite(noise_N) else 0.0
    switches_s = (data.switches * data.period_s).tolist()
    return ripple_of(grid * data.period_s, measured, simulated, modes_Hz, sigma, switches_s)


def _comparisons(data: RunData, uncertainty: Uncertainty) -> list[Comparison]:
    """Comparisons of the mean of the run and of the final force of every long stretch."""
    mean_noise_N = means_of_noise(data)
    n = len(data.rows)
    spans = [("mean of the run", slice(0, n))]
    edges = [0, *data.switches.tolist(), len(data.cells)]
    for a, b in itertools.pairwise(edges):
        if (b - a) * data.period_s < STRETCH_MIN_S:
            continue
        first, last = np.searchsorted(data.rows, (b - round(TAIL * (b - a)), b), side="right")
        if last > first:
            spans.append(("settled", slice(int(first), int(last))))
    made = []
    for what, at in spans[:13]:
        count = at.stop - at.start
        means = uncertainty.moved_N[:, at].mean(axis=1)
        simulated = float(uncertainty.simulated_N[at].mean())
        u_input = float(spread(means, np.array(simulated)))
        made.append(
            Comparison(
                what,
                float(data.t_s[at.stop - 1]),
                simulated,
                float(data.measured[at].mean()),
                u_input,
                float(np.hypot(uncertainty.systematic_N[at].mean(), mean_noise_N(count))),
                float(uncertainty.u_num_N[at].max()),
            )
        )
    return made


def _acceptance(recorded: Recorded, path: Path | None) -> tuple[ValidationTable | None, Basis, str]:
    acceptance = recorded.config.tables.validation
    if acceptance is not None and path is not None:
        raise ConfigError(
            f"{path}: {recorded.path} has its own acceptance criteria, stated before the run: omit "
            "the file"
        )
    if acceptance is not None:
        text = json.dumps(acceptance.model_dump(exclude_none=True), sort_keys=True)
        return acceptance, "recorded", hashlib.sha256(text.encode()).hexdigest()
    if path is None:
        return None, "none", ""
    table = read_toml(path)
    file = validated(ValidationFile, Merged(table, [(str(path), table)]))
    return file.validation, "file", hashlib.sha256(path.read_bytes()).hexdigest()


def _criteria(
    table: ValidationTable | None, figures: Figures, ripple: Ripple | None, coverage: float,
    unit: str,
) -> list[Criterion]:  # fmt: skip
    if table is None:
        return []
    timing = float("nan") if ripple is None else ripple.rms_s
    late = float("nan") if ripple is None else ripple.upper_s()
    none = float("nan")
    rms = {"N": (none, none), "m": (none, none)}
    rms[unit] = figures.rms_N.value, figures.rms_N.high
    limits = (
        ("rms_max_N", table.rms_max_N, *rms["N"], 1.0),
        ("rms_max_m", table.rms_max_m, *rms["m"], 1.0),
        ("nrmse_max", table.nrmse_max, figures.nrmse.value, figures.nrmse.high, 1.0),
        ("vaf_min", table.vaf_min, figures.vaf.value, figures.vaf.low, -1.0),
        ("coverage_min", table.coverage_min, coverage, coverage, -1.0),
        ("peak_timing_max_s", table.peak_timing_max_s, timing, late, 1.0),
    )
    # A missing ripple, or a limit of another quantity, gives NaN, which meets no limit.
    return [
        Criterion(key, limit, value, worst, bool(sign * worst <= sign * limit))
        for key, limit, value, worst, sign in limits
        if limit is not None
    ]


def _spoilt(
    recorded: Recorded,
    sources: Sequence[tuple[Source, list[str]]],
    basis: Basis,
    acceptance: Path | None,
) -> list[str]:
    """Reasons why the comparison is not a validation, whatever the figures."""
    messages = []
    made = datetime.datetime.fromisoformat(str(recorded.run.attrs["created_utc"]))
    facts = json.loads(recorded.run.attrs.get("imported", "{}"))
    if facts and not facts["measured_known"]:
        messages.append(
            "imported without the time of its measurement, so nothing is known to be older: give "
            "measured in the map"
        )
    hashes = {f"sha256:{recorded.data.sha256}"}
    hashes |= {f"sha256:{file['sha256']}" for file in facts.get("files", [])}
    for act in json.loads(recorded.run.attrs.get("recalibrated", "[]")):
        hashes.add(f"sha256:{str(act.get('sha256', '')).removeprefix('sha256:')}")
    for source, _ in sources:
        raw = source.record.raw
        if raw is not None and hashes & set(raw.files.values()):
            messages.append(f"{source.id} was fitted to this very run")
        if source.record.act.date > made.date():
            messages.append(f"{source.id} was made after the run")
    if basis == "file" and acceptance is not None:
        written = datetime.datetime.fromtimestamp(acceptance.stat().st_mtime, datetime.UTC)
        if written > made:
            messages.append(
                f"{acceptance.name} was written {written:%Y-%m-%d %H:%M:%S} UTC, after the run "
                f"({made:%Y-%m-%d %H:%M:%S} UTC)"
            )
    return messages
