"""`hil identify`: fits parameters with uncertainty to recordings, and lists unidentifiable ones."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hil.errors import ConfigError
from hil.identification import adequacy, identifiability, parameters
from hil.identification.adequacy import Adequacy
from hil.identification.fit import STEPS_OF_A_FIT, Fit, Resampling, bootstrap, fit
from hil.identification.grey_box import GreyBox
from hil.identification.growth import ORDER, Growth, growth_of
from hil.identification.identifiability import Weak
from hil.identification.known import Known, known_of
from hil.identification.lines import FITTED, lines_in
from hil.identification.noise import Noise, noise_of
from hil.identification.runs import Recorded, RunData, read_run, sources_of
from hil.mechanics.arrays import Array
from hil.record.progress import count_progress
from hil.record.read import experiment_of

Z_95 = 1.959963984540054
BOOTSTRAP = 200
NOTHING_KNOWN = Known((), np.zeros((0, 0)), ())


@dataclass(frozen=True)
class Options:
    """Options of an identification; by default it fits all identifiable parameters.

    Attributes
    ----------
    free, fix : patterns of parameters to fit, or to hold
    each : lists (mass_kg, force_on_N, cell) that get a separate value for each entry
    bootstrap : number of refits
    weak : whether to look for weak directions; without `free` they decide what is fitted
    """

    free: tuple[str, ...] = ()
    fix: tuple[str, ...] = ()
    each: tuple[str, ...] = ()
    bootstrap: int = BOOTSTRAP
    seed: int = 0
    weak: bool = True


@dataclass(frozen=True)
class Parameter:
    """A fitted value.

    Attributes
    ----------
    low, high : 95 % interval: `fisher` if the model is adequate, else the union of both intervals
    fisher, resampled : (low, high)
        Intervals from the Fisher information and from the bootstrap; None without a bootstrap.
    relative : standard uncertainty of the fit over the value
    relative_combined : the same including the transducer's slope and the held parameters
    """

    key: str
    start: float
    value: float
    low: float
    high: float
    fisher: tuple[float, float]
    resampled: tuple[float, float] | None
    relative: float
    relative_combined: float
    at_bound: bool


@dataclass(frozen=True)
class Identified:
    """Result of `hil identify`.

    Attributes
    ----------
    held : dict of str to float, parameters that keep the configuration's value
    stated : keys of the held parameters whose uncertainty a record states
    weak : directions of all offered parameters that the data determine poorly
    covariance : (P + T, P + T) array
        Covariance of the fitted and of the `stated` values, including the transducer's slope.
    """

    parameters: tuple[Parameter, ...]
    held: dict[str, float]
    stated: tuple[str, ...]
    weak: tuple[Weak, ...]
    adequacy: Adequacy
    noise: Noise
    growth: Growth
    fit: Fit
    box: GreyBox
    covariance: Array
    bootstrapped: Array


def identify_files(
    paths: Sequence[Path], options: Options, *, progress: bool = False
) -> tuple[list[Recorded], Identified]:
    """Read the recordings and identify the parameters.

    Raises
    ------
    ConfigError
        A file is not a recording, is of another rig, or has no excitation.
    """
    recorded = [read_run(path) for path in paths]
    first = recorded[0]
    for other in recorded:
        _refuse_other(first, other)
        if other.data.first_on >= len(other.data.cells):
            raise ConfigError(
                f"{other.path}: no cell was on: without excitation no parameter is identifiable: "
                "give a run that switches cells"
            )
        if float(np.ptp(other.data.measured)) <= 3.0 * other.data.reading.step_N:
            raise ConfigError(
                f"{other.path}: the force does not change by more than three steps of the "
                "converter: is the transducer connected?"
            )
    tables = parameters.tables_of(first.model)
    with count_progress("fit", STEPS_OF_A_FIT + options.bootstrap, progress) as done:
        expanded = parameters.expanded(tables, options.each)
        known = known_of(expanded, sources_of(first.path))
        return recorded, identify(tables, [r.data for r in recorded], options, done, known)


def _refuse_other(first: Recorded, other: Recorded) -> None:
    if other is first:
        return
    if other.path.resolve() == first.path.resolve() or other.data.sha256 == first.data.sha256:
        raise ConfigError(f"{other.path}: given twice: give every recording once")
    for key in ("model", "devices"):
        mine, its = (experiment_of(r.run)[key] for r in (first, other))
        if mine != its:
            raise ConfigError(
                f"{other.path}: its [{key}] is not that of {first.path}: a fit needs runs of one "
                "rig with one configuration: identify this run separately"
            )
    if first.simulated != other.simulated:
        raise ConfigError(
            f"{other.path}: {'simulated' if other.simulated else 'measured'} readings, "
            f"{first.path} has the opposite: do not mix them in one fit"
        )


def identify(
    tables: parameters.Tables,
    runs: Sequence[RunData],
    options: Options,
    done: Callable[[int], None] = lambda n_more: None,
    known: Known = NOTHING_KNOWN,
) -> Identified:
    """Fit the model of these tables to the runs.

    Parameters
    ----------
    done : is called with the number of further steps
    known : covariance from records; it applies to the held parameters

    Raises
    ------
    ConfigError
        No parameter is left to fit, or none is identifiable.
    """
    tables = parameters.expanded(tables, options.each)
    known_keys = parameters.candidates(tables)
    fixed = parameters.matching(options.fix, known_keys, "--fix")
    measured_air = all(np.isfinite(run.ambient_C) for run in runs)
    offered = [
        key
        for key in known_keys
        if key not in fixed and not (measured_air and key.endswith(".ambient_C"))
    ]
    if not offered:
        raise ConfigError("--fix leaves no parameter to fit")
    box = GreyBox(tables, tuple(offered), tuple(runs))
    noise = noise_of(runs)
    weak: list[Weak] = []
    free: Sequence[str] = parameters.matching(options.free, offered, "--free")
    if options.weak or not options.free:
        identifiable, weak = _identifiable(box, noise)
        free = free if options.free else identifiable
    if not free:
        raise ConfigError(
            "no parameter is identifiable from these runs: the force hardly changes beyond its "
            "noise: give runs that switch more cells, more often"
        )
    box = box.with_free(free)
    jumping = box.jumping(box.start)
    if jumping:
        names = ", ".join(identifiability.short(key) for key in jumping)
        raise ConfigError(
            f"the model's force jumps if these change by 1e-7 of their value, so that no interval "
            f"would hold: {names}: its wires reverse within single periods; identify them from "
            "loops, or from a run that does not make the wires swing"
        )
    if noise.lines_Hz:
        box = _without_lines(box, noise)
    solution = fit(box, noise, done)
    growth, solution = _with_growth(box, noise, solution)
    judged = adequacy.judge(
        _moving(solution.residual_N, runs),
        noise,
        solution.J.shape[1] + FITTED * len(noise.lines_Hz) * len(runs),
        adequacy.Sampling(
            min(run.interval_s for run in runs), max(run.reading.step_N for run in runs)
        ),
        growth,
        _moving(_forces_N(box, solution), runs),
    )
    resampled_theta = (
        _bootstrapped(box, noise, solution, judged, options, done)
        if options.bootstrap
        else np.zeros((0, len(free)))
    )
    held = {key: parameters.get(tables, key) for key in known_keys if key not in free}
    covariance, stated = _with_held(
        box, noise, solution, _with_slope(box, noise, solution), known, list(held)
    )
    values = np.concatenate((np.exp(solution.theta), [held[key] for key in stated]))
    return Identified(
        tuple(_parameters(box, solution, judged, resampled_theta, covariance)),
        held,
        stated,
        tuple(weak),
        judged,
        noise,
        growth,
        solution,
        box,
        covariance * np.outer(values, values),
        resampled_theta,
    )


def _identifiable(box: GreyBox, noise: Noise) -> tuple[list[str], list[Weak]]:
    """Parameters of the box that are identifiable together, and its weak directions."""
    known = np.isfinite(noise.rms_N)
    rms_N = noise.rms_N if known else _rough_noise_N(box.runs)
    fisher = identifiability.information(box, noise, rms_N, box.start)
    noise_N = noise.total_rms_N if known else rms_N
    weak = identifiability.weak_directions(box, fisher, box.start, noise_N, rms_N)
    rows = [i for i, key in enumerate(box.free) if not parameters.needed(key)]
    keys = [box.free[i] for i in rows]
    return identifiability.chosen(keys, fisher[np.ix_(rows, rows)]), weak


def _rough_noise_N(runs: Sequence[RunData]) -> float:
    """Estimate of unknown noise from second differences, which suppress a smooth force [N]."""
    seconds = np.concatenate([np.diff(run.measured, 2) for run in runs])
    resampled_theta = float(np.median(np.abs(seconds))) / 0.6745 / np.sqrt(6.0)
    steps = float(np.sqrt(np.mean([run.reading.step_N**2 for run in runs]) / 12.0))
    return float(max(resampled_theta, steps, 1e-12))


def _without_lines(box: GreyBox, noise: Noise) -> GreyBox:
    """The runs without the lines that are there at rest, fitted to the residuals of a first fit."""
    first = fit(box, noise)
    return replace(
        box,
        runs=tuple(
            replace(
                run,
                measured=run.measured - lines_in(r, run.t_s, noise.lines_Hz, noise.resolution_Hz),
            )
            for run, r in zip(box.runs, first.residual_N, strict=True)
        ),
    )


def _with_growth(box: GreyBox, noise: Noise, solution: Fit) -> tuple[Growth, Fit]:
    """Growth of the noise with the force, and the fit with the noise scaled by it."""
    p = len(noise.ar)
    forces = _forces_N(box, solution)
    starts = _rests(box.runs)
    growth = growth_of(
        [noise.whitened(r) for r in _moving(solution.residual_N, box.runs)],
        [f[n + p :] for f, n in zip(forces, starts, strict=True)],
        [_quiet(run, p)[n + p :] for run, n in zip(box.runs, starts, strict=True)],
        noise,
    )
    return growth, replace(solution, scale=np.concatenate([growth.scale(f[p:]) for f in forces]))


def _forces_N(box: GreyBox, solution: Fit) -> list[Array]:
    """The model's force beyond that at rest, at every reading."""
    read = [
        run.measured - r - z
        for run, r, z in zip(box.runs, solution.residual_N, solution.zero_N, strict=True)
    ]
    return [y - y[0] for y in read]


def _quiet(run: RunData, n_filtered: int) -> NDArray[np.bool_]:
    """Whether a reading is not just after a switching: its delay, low-pass and differences."""
    settle_s = run.reading.delay_s + 5.0 / (2.0 * np.pi * run.reading.bandwidth_Hz)
    filtered_s = (n_filtered + ORDER) * run.interval_s
    settle = int(np.ceil(settle_s / run.period_s)) + round(filtered_s / run.period_s)
    since = run.rows - run.switches[np.searchsorted(run.switches, run.rows, side="right") - 1]
    return np.asarray(since > settle)


def _rests(runs: Sequence[RunData]) -> list[int]:
    """Number of readings before the first cell goes on."""
    return [int(np.searchsorted(run.rows, run.first_on, side="right")) for run in runs]


def _moving(parts: Sequence[Array], runs: Sequence[RunData]) -> list[Array]:
    """The readings after the rest: the noise comes from the rest, or its readings are one code."""
    return [part[n:] for part, n in zip(parts, _rests(runs), strict=True)]


def _bootstrapped(
    box: GreyBox,
    noise: Noise,
    solution: Fit,
    judged: Adequacy,
    options: Options,
    done: Callable[[int], None],
) -> Array:
    block = round(len(solution.white) ** (1.0 / 3.0))
    if not judged.adequate:
        block = max(block, round(2.0 * judged.slowest_s / box.runs[0].interval_s))
    resampling = Resampling(options.bootstrap, options.seed, block)
    return bootstrap(box, noise, solution, resampling, done)


def _with_slope(box: GreyBox, noise: Noise, solution: Fit) -> Array:
    """Covariance of theta including the uncertainty of the transducer's slope."""
    slope = max(run.reading.slope_uncertainty for run in box.runs)
    scaled = np.concatenate([noise.whitened(run.measured) for run in box.runs])
    shift = (np.linalg.pinv(solution.J) @ scaled)[: len(solution.theta)] * slope
    return solution.covariance + np.outer(shift, shift)


def _with_held(
    box: GreyBox, noise: Noise, solution: Fit, covariance: Array, known: Known, held: Sequence[str]
) -> tuple[Array, tuple[str, ...]]:
    """Covariance of theta and of the held parameters with a record, and the keys of the latter.

    The fitted values depend on the held ones, d theta / d held = -(J^T J)^-1 J^T J_held.
    """
    keys = tuple(key for key in known.keys if key in held)
    n = len(solution.theta)
    if not keys:
        return covariance, ()
    at = [known.keys.index(key) for key in keys]
    C = known.covariance[np.ix_(at, at)]
    fitted = GreyBox(parameters.tables_of(box.table_at(solution.theta)), keys, box.runs)
    J = np.concatenate([noise.whitened(part) for part in fitted.sensitivities(fitted.start)])
    follows = -(np.linalg.pinv(solution.J) @ J)[:n]
    return np.block([[covariance + follows @ C @ follows.T, follows @ C],
                     [C @ follows.T, C]]), keys  # fmt: skip


def _parameters(
    box: GreyBox, solution: Fit, judged: Adequacy, resampled_theta: Array, covariance: Array
) -> list[Parameter]:
    sigma, combined = np.sqrt(np.diag(solution.covariance)), np.sqrt(np.diag(covariance))
    made = []
    for i, key in enumerate(box.free):
        theta = solution.theta[i]
        ends = theta + Z_95 * sigma[i] * np.array([-1.0, 1.0])
        least, most = parameters.limits(key)
        fisher = (max(float(np.exp(ends[0])), least), min(float(np.exp(ends[1])), most))
        resampled = None
        if len(resampled_theta):
            low, high = np.exp(np.quantile(resampled_theta[:, i], (0.025, 0.975)))
            resampled = (float(low), float(high))
        low, high = fisher
        if not judged.adequate and resampled is not None:
            low, high = min(low, resampled[0]), max(high, resampled[1])
        made.append(
            Parameter(
                key, float(np.exp(box.start[i])), float(np.exp(theta)), low, high, fisher,
                resampled, float(sigma[i]), float(combined[i]), key in solution.at_bound,
            )
        )  # fmt: skip
    return made
