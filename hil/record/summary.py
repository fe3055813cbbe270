"""The summary of a run: timing with a verdict, and error figures of the signals."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np
from numpy.typing import NDArray

from hil.config.values import Figures
from hil.loop.channels import Signal, signals_in
from hil.loop.failed_cells import failed_cells, failure_lines
from hil.loop.frame import units
from hil.loop.lateness import LATE_SHARE, Counts
from hil.loop.states import ENERGISED, NUMBERS
from hil.record import metrics
from hil.record.device_clocks import fit_clock
from hil.record.layout import text_of
from hil.record.read import attributes_of, n_whole_rows, open_h5
from hil.record.sums import ClockSums, Quantiles, SignalSums

LATE_SHARE_MAX = 0.001
RESPONSE_MIN_S = 0.5
RESPONSES_MAX = 12
ROWS_MAX = 1_000_000  # that are in memory at once; of a longer run the figures are made by parts
QUANTILES = (("p50", 0.5), ("p99", 0.99), ("p999", 0.999))
SMOOTH_S = 0.01
ROUND_TRIP = "_round_trip_s"
FAILURES = "cells_open", "cells_failed"
CONSTANT = "VAF not meaningful (constant signal)"


def summarise(
    path: Path, period_s: float, clock: str, n_periods: int | None = None
) -> dict[str, object]:
    """Timing and force figures of a recording, in plain Python values (NaN as None).

    `n_periods` is the number of periods of a completed run; periods after the last row count as
    missed.
    """
    with open_h5(path) as file:
        return summary_of(Recorded.of(file), period_s, clock, n_periods)


@dataclass(frozen=True)
class Recorded:
    """What a run has recorded.

    Attributes
    ----------
    ticks : columns by name, of which the first n rows are whole
    events : structured array
    cells : names of the cells
    attributes : of the recording
    """

    n: int
    ticks: Mapping[str, Any]
    events: NDArray[np.void]
    cells: Sequence[str]
    attributes: Mapping[str, object]

    @classmethod
    def of(cls, file: h5py.File) -> "Recorded":
        """What an open recording has."""
        cells = file["model/cells"][:] if "model/cells" in file else []
        return cls(
            n_whole_rows(file), file["ticks"], file["events"][: n_whole_rows(file, "events")],
            [text_of(cell) for cell in cells], attributes_of(file),
        )  # fmt: skip


def summary_of(
    recorded: Recorded, period_s: float, clock: str, n_periods: int | None = None
) -> dict[str, object]:
    """The same of what is at hand."""
    n = recorded.n
    causes = [
        {"t_s": float(event["t_s"]), "text": text_of(event["text"])}
        for event in recorded.events
        if event["level"] == b"fault"
    ]
    of_rows = _of_rows if n <= ROWS_MAX else _of_parts
    t_s = recorded.ticks["t_s"]
    waited_s = float(t_s[began_at(recorded.ticks, n)]) if n else 0.0
    summary = {
        "rows": n,
        "first_cause": causes[0]["text"] if causes else "",
        "causes": causes,
        "duration_s": float(t_s[n - 1]) - waited_s if n else 0.0,
        "waited_s": waited_s,
        "room": room_of(recorded),
        "untold": text_of(recorded.attributes.get("untold", "")),
        **of_rows(recorded, _Clocking(period_s, clock, n_periods)),
    }
    return dict(plain(summary))


class _Clocking(NamedTuple):
    """What is known of the clock: arguments as of `summarise`."""

    period_s: float
    clock: str
    n_periods: int | None


def _of_rows(recorded: Recorded, clocking: _Clocking) -> dict[str, object]:
    """The figures of rows that are in memory at once."""
    n, ticks = recorded.n, recorded.ticks
    t_s, late_s, busy_s = (ticks[name][:n] for name in ("t_s", "late_s", "busy_s"))
    nothing = np.full(n, np.nan)
    signals = [
        (
            signal,
            ticks[signal.measured][:n],
            ticks[signal.model][:n],
            nothing if signal.reference is None else ticks[signal.reference][:n],
        )
        for signal in signals_in(ticks)
    ]
    force: dict[str, object] = {}
    steps: list[dict[str, object]] = []
    for signal, measured, model, reference in signals:
        if signal.name == "force":
            force = force_figures(measured, model, reference)
            if "cells_commanded" in ticks:
                cells = ticks["cells_commanded"][:n]
                steps = responses(t_s, measured, model, reference, cells)
    failures = [ticks[name][:n] if name in ticks else None for name in FAILURES]
    return {
        "timing": timing(t_s, late_s, busy_s, *clocking),
        "clocks": {
            name: fit_clock(t_s - ticks[f"{name}_age_s"][:n], ticks[f"{name}_t_s"][:n])
            for name in _clocks(ticks)
        },
        "exchanges": {
            name.removesuffix(ROUND_TRIP): exchange_figures(ticks[name][1:n])
            for name in _round_trips(ticks)
        },
        "force": force,
        "responses": steps,
        "failed_cells": failed_cells(t_s, recorded.cells, *failures),
        "signals": {
            signal.name: signal_figures(*curves) | {"units": units(signal.suffix)}
            for signal, *curves in signals
            if signal.name != "force"
        },
    }


def _of_parts(recorded: Recorded, clocking: _Clocking) -> dict[str, object]:
    """The same of a long run, in one pass over parts of its rows (`hil.record.sums`).

    Responses are those of the first steps, each of at most ROWS_MAX rows.
    """
    n, ticks, period_s = recorded.n, recorded.ticks, clocking.period_s
    signals = {signal: SignalSums() for signal in signals_in(ticks)}
    clocks = {name: ClockSums() for name in _clocks(ticks)}
    exchanges = {name: Quantiles() for name in _round_trips(ticks)}
    late, busy = Quantiles(), Quantiles()
    expected = _expected(float(ticks["t_s"][n - 1]), period_s, clocking.n_periods)
    failed: dict[object, Figures] = {}
    missed = late_ticks = longest = worst = run = 0
    for a in range(0, n, ROWS_MAX):
        rows = slice(a, min(a + ROWS_MAX, n))
        t_s, late_s = ticks["t_s"][rows], ticks["late_s"][rows]
        late.add(late_s)
        busy.add(ticks["busy_s"][rows])
        missed += int(np.sum(late_s > period_s))
        is_late = late_s > LATE_SHARE * period_s
        late_ticks += int(is_late.sum())
        end_s = expected * period_s if rows.stop == n else float(ticks["t_s"][rows.stop])
        gaps = _gaps(t_s, end_s, period_s)
        longest = max(longest, int(gaps.max(initial=0)))
        worst_here, run = _worst_run(is_late, gaps, run)
        worst = max(worst, worst_here)
        for signal, sums in signals.items():
            curves = [ticks[name][rows] for name in (signal.measured, signal.model)]
            reference = signal.reference
            sums.add(
                curves[0],
                curves[1],
                np.full(len(t_s), nan) if reference is None else ticks[reference][rows],
            )
        for name, sums_of_clock in clocks.items():
            sums_of_clock.add(t_s - ticks[f"{name}_age_s"][rows], ticks[f"{name}_t_s"][rows])
        for name, trips in exchanges.items():
            trips.add(ticks[name][max(a, 1) : rows.stop])
        of_part = [ticks[name][rows] if name in ticks else None for name in FAILURES]
        for entry in failed_cells(t_s, recorded.cells, *of_part):
            failed.setdefault(entry["cell"], entry)
    figures = {signal.name: sums.figures() for signal, sums in signals.items()}
    force_signal = next((signal for signal in signals if signal.name == "force"), None)
    counts = {"missed": missed + expected - n, "late_ticks": late_ticks,
              "longest_gap_periods": longest, "worst_run_periods": worst}  # fmt: skip
    return {
        "timing": _timing_figures(clocking, expected, counts, {
            **{f"late_{key}_s": late.at(q) for key, q in QUANTILES}, "late_max_s": late.most,
            "busy_p50_s": busy.at(0.5), "busy_max_s": busy.most,
        }),
        "clocks": {name: sums.figures() for name, sums in clocks.items()},
        "exchanges": {
            name.removesuffix(ROUND_TRIP): {
                "round_trip_p50_s": trips.at(0.5), "round_trip_p99_s": trips.at(0.99),
                "round_trip_max_s": trips.most, "without_answer": trips.missing,
            }
            for name, trips in exchanges.items()
        },
        "force": _in_newtons(figures.pop("force", {})),
        "responses": _first_responses(ticks, n, force_signal),
        "failed_cells": list(failed.values()),
        "signals": {
            signal.name: figures[signal.name] | {"units": units(signal.suffix)}
            for signal in signals
            if signal.name != "force"
        },
    }  # fmt: skip


def _first_responses(
    ticks: Mapping[str, Any], n: int, force: Signal | None
) -> list[dict[str, object]]:
    """Responses to the first steps of a long run, read step by step."""
    if force is None or "cells_commanded" not in ticks:
        return []
    by = ticks["cells_commanded"]
    if (
        force.reference is not None
        and np.isfinite(ticks[force.reference][: min(n, ROWS_MAX)]).any()
    ):
        by = ticks[force.reference]
    responses: list[dict[str, object]] = []
    begin = 0 if by.ndim == 2 and by[0].any() else None
    for a in range(0, n, ROWS_MAX):
        edges = a + _steps(by[max(a - 1, 0) : min(a + ROWS_MAX, n)]) - (a > 0)
        for edge in (*edges.tolist(), *[n] * (a + ROWS_MAX >= n)):
            if begin is not None and edge - begin <= ROWS_MAX:
                rows = slice(begin, edge)
                curves = {
                    "measured": ticks[force.measured][rows],
                    "model": ticks[force.model][rows],
                }
                on = int(np.sum(ticks["cells_commanded"][begin] == 1))
                responses += _response(ticks["t_s"][rows], curves, on)
            if len(responses) == RESPONSES_MAX:
                return responses
            begin = edge
    return responses


def _clocks(ticks: Iterable[str]) -> list[str]:
    return [key.removesuffix("_age_s") for key in ticks if key.endswith("_age_s")]


def _round_trips(ticks: Iterable[str]) -> list[str]:
    return [name for name in ticks if name.endswith(ROUND_TRIP)]


def began_at(ticks: Mapping[str, Any], n: int) -> int:
    """The row at which the run was armed; before it everything is off, and no time counts."""
    if "guard_state" not in ticks:
        return 0
    for a in range(0, n, ROWS_MAX):
        states = ticks["guard_state"][a : min(a + ROWS_MAX, n)]
        armed = np.isin(states, [NUMBERS[state] for state in ENERGISED])
        if armed.any():
            return a + int(np.argmax(armed))
    return max(n - 1, 0)


def room_of(recorded: Recorded) -> dict[str, object]:
    """The room temperature, with its uncertainty and source; a measured one is the mean."""
    attrs, n = recorded.attributes, recorded.n
    if "ambient_from" not in attrs:
        return {}
    source = text_of(attrs["ambient_from"])
    ambient_C = attrs.get("ambient_C", nan)
    column = f"{source.removeprefix('channel ')}_measured_C"
    if column in recorded.ticks and n:
        parts = [recorded.ticks[column][a : min(a + ROWS_MAX, n)] for a in range(0, n, ROWS_MAX)]
        sums = [(np.nansum(part), np.isfinite(part).sum()) for part in parts]
        total, known = np.sum(sums, axis=0)
        ambient_C = total / known if known else nan
    uncertainty_C = attrs["ambient_uncertainty_C"]
    return {"ambient_C": ambient_C, "uncertainty_C": uncertainty_C, "from": source}


def timing(
    t_s: NDArray[np.float64],
    late_s: NDArray[np.float64],
    busy_s: NDArray[np.float64],
    period_s: float,
    clock: str,
    n_periods: int | None = None,
) -> dict[str, object]:
    """Lateness quantiles, missed periods and a verdict for the configured rate."""
    if not len(t_s):
        return {"clock": clock, "verdict": "no tick was run"}
    expected = _expected(float(t_s[-1]), period_s, n_periods)
    gaps = _gaps(t_s, expected * period_s, period_s)
    late = late_s > LATE_SHARE * period_s
    counts = {
        "missed": expected - len(t_s) + int(np.sum(late_s > period_s)),
        "late_ticks": int(late.sum()),
        "longest_gap_periods": int(gaps.max(initial=0)),
        "worst_run_periods": _worst_run(late, gaps)[0],
    }
    times_s = dict(zip([f"late_{key}_s" for key, _ in QUANTILES],
                       np.quantile(late_s, [q for _, q in QUANTILES]), strict=True))  # fmt: skip
    times_s |= {"late_max_s": late_s.max(), "busy_p50_s": np.median(busy_s),
                "busy_max_s": busy_s.max()}  # fmt: skip
    return _timing_figures(_Clocking(period_s, clock, n_periods), expected, counts, times_s)


def _expected(last_s: float, period_s: float, n_periods: int | None) -> int:
    """Periods of a run, with those that were skipped."""
    return max(n_periods or 0, round(last_s / period_s) + 1)


def _gaps(t_s: NDArray[np.float64], end_s: float, period_s: float) -> NDArray[np.int_]:
    """Periods without a row after every row; the row after the last one is at end_s."""
    return np.rint(np.diff(t_s, append=end_s) / period_s).astype(int) - 1


def _timing_figures(
    clocking: _Clocking, expected: int, counts: Mapping[str, int], times_s: Mapping[str, float]
) -> dict[str, object]:
    period_s, clock, missed = clocking.period_s, clocking.clock, counts["missed"]
    if clock == "imported":
        verdict = "imported: timed by another program, timing not known"
    elif clock == "virtual":
        verdict = "virtual clock: timing not tested"
    elif missed <= LATE_SHARE_MAX * expected:
        verdict = f"{1.0 / period_s:g} Hz held: {missed} of {expected} periods missed"
    else:
        verdict = f"{1.0 / period_s:g} Hz NOT held: {missed} of {expected} periods missed"
    return {
        "clock": clock,
        "verdict": verdict,
        **times_s,
        "periods": expected,
        "missed": missed,
        "longest_gap_periods": counts["longest_gap_periods"],
        "late_ticks": counts["late_ticks"],
        "worst_run_periods": counts["worst_run_periods"],
    }


def exchange_figures(round_trip_s: NDArray[np.float64]) -> dict[str, object]:
    """A board's answers to commands: round-trip times, and the number of ticks without one."""
    answered = round_trip_s[np.isfinite(round_trip_s)]
    none = len(answered) == 0
    return {
        "round_trip_p50_s": nan if none else np.median(answered),
        "round_trip_p99_s": nan if none else np.quantile(answered, 0.99),
        "round_trip_max_s": nan if none else answered.max(),
        "without_answer": len(round_trip_s) - len(answered),
    }


def _worst_run(late: NDArray[np.bool_], gaps: NDArray[np.int_], run: int = 0) -> tuple[int, int]:
    """Longest run of periods that were missed or began late, and the one that lasts.

    `gaps` follow their rows; `run` had lasted when the rows began.
    """
    if not (late.any() or gaps.any()):
        return run, 0
    worst = run
    for is_late, gap_after in zip(late.tolist(), gaps.tolist(), strict=True):
        run = (run + 1 if is_late else 0) + gap_after
        worst = max(worst, run)
    return worst, run


def force_figures(
    measured_N: NDArray[np.float64],
    model_N: NDArray[np.float64],
    reference_N: NDArray[np.float64],
) -> dict[str, object]:
    """Model error, its whiteness, and tracking where there is a reference."""
    return _in_newtons(signal_figures(measured_N, model_N, reference_N))


def _in_newtons(figures: Figures) -> dict[str, object]:
    unitless = ("nrmse", "vaf", "held", "residual_white", "p_uncorrelated", "p_zero_mean")
    return {key if key in unitless else f"{key}_N": value for key, value in figures.items()}


def signal_figures(
    measured: NDArray[np.float64], model: NDArray[np.float64], reference: NDArray[np.float64]
) -> dict[str, object]:
    """Model error, whiteness and tracking of a signal, in its own unit."""
    mask = np.isfinite(measured) & np.isfinite(model)
    measured, model = measured[mask], model[mask]
    if not len(measured):
        return {}
    residual = measured - model
    test = metrics.whiteness(residual)
    figures: dict[str, object] = {
        "residual_rms": metrics.rms(residual),
        "residual_max": np.abs(residual).max(),
        "nrmse": metrics.nrmse(measured, model),
        "vaf": metrics.vaf(measured, model),
        "held": metrics.held(measured),
        "residual_white": test.is_white(),
        "p_uncorrelated": test.p_uncorrelated,
        "p_zero_mean": test.p_zero_mean,
        "measured_max": measured.max(),
        "model_max": model.max(),
    }
    if np.isfinite(reference[mask]).any():
        error = measured - reference[mask]
        figures["tracking_rms"] = metrics.rms(error[np.isfinite(error)])
    return figures


def responses(
    t_s: NDArray[np.float64],
    measured_N: NDArray[np.float64],
    model_N: NDArray[np.float64],
    reference_N: NDArray[np.float64],
    cells: NDArray[np.uint8],
) -> list[dict[str, object]]:
    """Settling and overshoot of both curves after every step.

    A step is a jump of the set point or, without one, a change of the command. Only intervals of
    at least RESPONSE_MIN_S count. Both curves are smoothed over SMOOTH_S first, so that noise does
    not count as overshoot.
    """
    if len(t_s) < 3:
        return []
    if np.isfinite(reference_N).any():
        changes = _steps(reference_N)
    else:
        changes = _steps(cells)
        changes = np.concatenate(([0], changes)) if cells[0].any() else changes
    edges = np.concatenate((changes, [len(t_s)]))
    rows: list[dict[str, object]] = []
    for a, b in itertools.pairwise(edges):
        curves = {"measured": measured_N[a:b], "model": model_N[a:b]}
        rows += _response(t_s[a:b], curves, int(np.sum(cells[a] == 1)))
    return rows[:RESPONSES_MAX]


def _steps(values: NDArray[np.generic]) -> NDArray[np.int_]:
    """Rows in which the set point jumps, or the command changes."""
    if values.ndim == 2:
        return np.flatnonzero((np.diff(values, axis=0) != 0).any(axis=1)) + 1
    return np.flatnonzero(np.abs(np.diff(values)) > 1e-9) + 1


def _width(t_s: NDArray[np.float64]) -> int:
    """Readings over which a curve is smoothed."""
    return max(1, round(SMOOTH_S / float(np.median(np.diff(t_s)))))


def _response(
    t_s: NDArray[np.float64], curves: Mapping[str, NDArray[np.float64]], cells_on: int
) -> list[dict[str, object]]:
    """The response of both curves, as a row; none of a step that did not last."""
    if t_s[-1] - t_s[0] < RESPONSE_MIN_S:
        return []
    row: dict[str, object] = {"t_s": t_s[0], "cells_on": cells_on}
    for name, curve in curves.items():
        mask = np.isfinite(curve)
        if mask.sum() < 3:
            continue
        time_s = t_s[mask]
        y = _smoothed(curve[mask], _width(time_s))
        row[f"{name}_final_N"] = float(np.mean(y[-max(1, len(y) // 10) :]))
        row[f"{name}_settling_s"] = metrics.settling_s(time_s, y)
        row[f"{name}_overshoot"] = metrics.overshoot(y)
    return [row]


def _smoothed(y: NDArray[np.float64], width: int) -> NDArray[np.float64]:
    """Centred moving average, shorter at both ends."""
    ones = np.ones(min(width, len(y)))
    return np.convolve(y, ones, "same") / np.convolve(np.ones(len(y)), ones, "same")


def as_text(path: Path, summary: Figures) -> str:
    """A few lines for the terminal."""
    off = "; everything is off" if summary["outcome"] == "aborted" else ""
    lines = [f"{summary['outcome']}: {summary['rows']} rows in {path}{off}"]
    if summary["first_fault"]:
        lines.append(f"  tripped by {', '.join(summary['first_fault'])}; everything is off")
        first = [c for c in summary["causes"] if c["t_s"] == summary["causes"][0]["t_s"]]
        lines += [f"  {cause['t_s']:.3f} s: {cause['text']}" for cause in first]
    lines += [f"  {line}" for line in failure_lines(summary.get("failed_cells", []))]
    if summary["rows_lost"]:
        lines.append(f"  {summary['rows_lost']} rows were lost: the recorder was too slow")
    force = summary["force"]
    if force:
        rms_mN = 1e3 * force["residual_rms_N"]
        lines.append(f"  measured over simulated: {fit_text(force)}, RMS {rms_mN:.1f} mN")
    if force.get("tracking_rms_N") is not None:
        lines.append(f"  measured over reference: RMS {force['tracking_rms_N']:.3f} N")
    for name, figures in summary["signals"].items():
        if figures.get("vaf") is not None:
            unit = figures["units"]
            text = (
                f"  {name}: {vaf_text(figures)}, "
                f"RMS of measured over simulated {figures['residual_rms']:.3g} {unit}"
            )
            if figures.get("tracking_rms") is not None:
                text += f", over reference {figures['tracking_rms']:.3g} {unit}"
            lines.append(text)
    lines += [f"  {line}" for line in expectation_lines(summary)]
    lines += [f"  {line}" for line in untold_lines(summary)]
    lines += [f"  {line}" for line in calibration_lines(summary.get("calibration", {}))]
    room = summary["room"]
    if room.get("ambient_C") is not None:
        known = f"{room['uncertainty_C']:.2g} degC, {room['from']}"
        lines.append(f"  room at {room['ambient_C']:.1f} +- {known}")
    timing = summary["timing"]
    lines.append(f"  {timing['verdict']}")
    if timing["clock"] == "real" and "late_p50_s" in timing:
        p50, p99, p999, most = (
            1e6 * timing[f"late_{key}_s"] for key in ("p50", "p99", "p999", "max")
        )
        lines.append(
            f"  late: p50 {p50:.0f}, p99 {p99:.0f}, p99.9 {p999:.0f}, max {most:.0f} us; "
            f"worst run {timing['worst_run_periods']} periods"
        )
        if timing["late_ticks"] and timing.get("kernel"):
            counts = {key: nan if n is None else n for key, n in timing["kernel"].items()}
            kernel = Counts(**counts).as_text()
            lines.append(f"  late {timing['late_ticks']} times; in this run: {kernel}")
    return "\n".join(lines)


def expectation_lines(summary: Figures) -> list[str]:
    """Every expectation of the experiment, and whether the run met it."""
    lines = []
    for row in summary.get("expectations", []):
        value = row["value"]
        shown = f"{value:.4g}" if isinstance(value, int | float) else value or "no reading"
        lines.append(
            f"{'passed' if row['passed'] else 'FAILED'}: {row['what']}: {shown}, "
            f"expected {row['bounds']}"
        )
    return lines


def vaf_text(figures: Figures) -> str:
    """VAF as text; for a constant signal, where VAF measures only noise, the reason."""
    if figures.get("held"):  # older recordings lack this figure
        return CONSTANT
    if figures["vaf"] is None:
        return "VAF –"
    worse = " (worse than a constant)" if figures["vaf"] < 0.0 else ""
    return f"VAF {100.0 * figures['vaf']:.2f} %{worse}"


def untold_lines(summary: Figures) -> list[str]:
    """What disturbed the simulated rig and the twin was not told of."""
    untold = summary.get("untold")
    return [f"the twin is not told of {untold}: it differs from then on"] if untold else []


def fit_text(force: Figures) -> str:
    """VAF and NRMSE; over the range of a constant signal NRMSE too measures only noise."""
    if force.get("held"):
        return CONSTANT
    nrmse = "–" if force["nrmse"] is None else f"{100.0 * force['nrmse']:.2f} %"
    return f"{vaf_text(force)}, NRMSE {nrmse}"


def calibration_lines(status: dict[str, list[str]]) -> list[str]:
    """Calibrations expired, contradicted, departed from or missing, and wires not described."""
    keys = ("expired", "ambiguous", "departed", "rehearsed", "unprotected", "not_brought_up")
    lines = [line for key in keys for line in status.get(key, ())]
    if missing := status.get("without_record"):
        lines.append(f"no calibration record: {', '.join(missing)}")
    return lines


def plain(value: Any) -> Any:
    """Convert NumPy arrays and scalars to Python values and NaN to None, for valid JSON."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value
