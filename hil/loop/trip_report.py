"""Text of a trip: the device, the value and the limit, one line per fault.

It is built after the trip from the guard's snapshot of that tick.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from hil.loop import duty, interlocks
from hil.loop.channels import Channel, RigLayout
from hil.loop.guard import CAUSES, RISE_SHARE, Limits, SignalLimits, Snapshot, names_of

NAMED_MAX = 3  # largest number of names in a list
EVENT_B = 256  # longest text of an event, bytes


@dataclass(frozen=True)
class TripReport:
    """Names and limits of a rig, and the trip texts made from them.

    Attributes
    ----------
    force_max_N : `guard.force_max_N`; infinite if it is not set
    """

    limits: Limits
    layout: RigLayout
    period_s: float
    force_max_N: float = np.inf
    _held_s: dict[str, float] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        defaults = {row.name: row.held_s for row in interlocks.LOOP}
        object.__setattr__(self, "_held_s", defaults | dict(self.limits.hold_s))

    def lines(
        self, bits: int, seen: Snapshot | None, details: Mapping[str, Sequence[str]]
    ) -> list[str]:
        """A line for every fault in `bits`, such as `force_high: force 8.1 N, limit 3 N (...)`.

        Parameters
        ----------
        seen : the values that the guard checked in the tick that tripped
        details : details of a fault from devices and the loop, by the fault's name
        """
        return [self._line(name, seen, details.get(name, ())) for name in names_of(bits)]

    def _line(self, name: str, seen: Snapshot | None, details: Sequence[str]) -> str:
        find = _FINDERS.get(name)
        causes = list(details)
        if not causes and find is not None and seen is not None:
            causes = list(find(self, name, seen))
        text = f"{name}: {_few(causes, '; ')}" if causes else f"{name}: {CAUSES[name]}"
        return text.encode()[:EVENT_B].decode(errors="ignore")

    def channels(self, seen: Snapshot) -> Iterator[tuple[int, Channel, SignalLimits]]:
        """The channels that have had a reading, with their limits."""
        for i, channel in enumerate(self.layout.channels):
            if seen.valid[i]:
                yield i, channel, self.limits.signals[i]

    def lasting(self, name: str) -> str:
        """Text of the condition's hold time; empty if it is 0."""
        held_s = self._held_s[name]
        return f", for {_number(held_s)} s" if held_s else ""

    def range_key(self, channel: Channel, limit: float, side: str) -> str:
        """Configuration key of a channel's range."""
        if channel.force and abs(limit) == self.force_max_N:
            return "guard.force_max_N"
        return f"guard.signals.{channel.name}.{side}"


Finder = Callable[[TripReport, str, Snapshot], Iterator[str]]


def _number(value: float) -> str:
    return f"{value:.4g}"


def _of(value: float, channel: Channel, per: str = "") -> str:
    """A value with its channel's unit."""
    unit = "" if channel.units == "1" else channel.units
    return f"{value:.4g} {unit}{per}".rstrip() if unit else f"{value:.4g}{per and ' ' + per}"


def _few(names: Sequence[str], joint: str = ", ") -> str:
    """Join the first NAMED_MAX names and the number of the remaining ones."""
    more = len(names) - NAMED_MAX
    return joint.join(names[:NAMED_MAX]) + (f" and {more} more" if more > 0 else "")


def _out_of_range(report: TripReport, name: str, seen: Snapshot) -> Iterator[str]:
    for i, channel, limits in report.channels(seen):
        value = seen.measured[i]
        if bool(channel.force) != (name == "force_high"):
            continue
        if np.isnan(value):
            yield f"{channel.name} gives no number"
        elif not limits.min <= value <= limits.max:
            limit, side = (limits.max, "max") if value > limits.max else (limits.min, "min")
            key = limits.max_key if side == "max" and limits.max_key else ""
            key = key or report.range_key(channel, limit, side)
            yield f"{channel.name} {_of(value, channel)}, limit {_of(limit, channel)} ({key})"


def _no_number(report: TripReport, name: str, seen: Snapshot) -> Iterator[str]:
    for i, channel, _ in report.channels(seen):
        if channel.force and np.isnan(seen.measured[i]):
            yield f"{channel.name} gives no number"


def _old(names: Sequence[str], report: TripReport, seen: Snapshot, what: str) -> Iterator[str]:
    limit_s = report.limits.reading_age_max_s
    for device, age_s in zip(report.layout.devices, seen.ages_s, strict=True):
        if device in names and not age_s <= limit_s:
            yield (
                f"{device}: {what} {_number(age_s)} s old, limit {_number(limit_s)} s "
                "(guard.reading_age_max_s)"
            )


def _stale(report: TripReport, name: str, seen: Snapshot) -> Iterator[str]:
    old = list(_old(report.layout.devices, report, seen, "reading"))
    yield from old or _unread(report, seen)


def _unread(report: TripReport, seen: Snapshot) -> Iterator[str]:
    """Channels without readings of a device that answers."""
    limit_s = report.limits.reading_age_max_s
    for channel, unread_s in zip(report.layout.channels, seen.unread_s, strict=True):
        if unread_s > limit_s:
            yield (
                f"{channel.name}: no reading for {_number(unread_s)} s, limit {_number(limit_s)} s "
                "(guard.reading_age_max_s)"
            )


def _silent(report: TripReport, name: str, seen: Snapshot) -> Iterator[str]:
    yield from _old(report.layout.boards, report, seen, "last answer")


def _late(report: TripReport, name: str, seen: Snapshot) -> Iterator[str]:
    yield (
        f"{seen.overruns} periods of {_number(1e3 * report.period_s)} ms missed in a row, limit "
        f"{report.limits.overruns_max} (loop.overruns_max)"
    )


def _on_too_long(report: TripReport, name: str, seen: Snapshot) -> Iterator[str]:
    limit_s = report.limits.cell_on_max_s
    cells = np.flatnonzero(seen.on_s > limit_s - 1.5 * report.period_s)
    if len(cells):
        who = _few([report.layout.cell_names[i] for i in cells])
        yield (
            f"{who} on for {_number(seen.on_s[cells].max())} s, limit {_number(limit_s)} s "
            "(guard.cell_on_max_s)"
        )


def _invalid(report: TripReport, name: str, seen: Snapshot) -> Iterator[str]:
    for output, wish in zip(report.layout.outputs, seen.outputs, strict=True):
        if np.isnan(wish):
            yield f"{output} is not a number"


def _fast(report: TripReport, name: str, seen: Snapshot) -> Iterator[str]:
    forces = name == "force_rate_high"
    for i, channel, limits in report.channels(seen):
        limit = limits.rate_max_per_s
        if bool(channel.force) == forces and abs(seen.slope_per_s[i]) > limit:
            signal_key = f"guard.signals.{channel.name}.rate_max_per_s"
            usual = "guard.force_rate_max_N_per_s" if forces else signal_key
            key = limits.rate_key or usual
            yield (
                f"{channel.name} changes by {_of(seen.slope_per_s[i], channel, '/s')}, limit "
                f"{_of(limit, channel, '/s')} ({key}){report.lasting(name)}"
            )


def _jump(report: TripReport, name: str, seen: Snapshot) -> Iterator[str]:
    for i, channel, limits in report.channels(seen):
        if abs(seen.change[i]) > limits.jump_max:
            before = seen.measured[i] - seen.change[i]
            yield (
                f"{channel.name} from {_of(before, channel)} to {_of(seen.measured[i], channel)} "
                f"between two readings, limit {_of(limits.jump_max, channel)} "
                "(guard.force_jump_max_N)"
            )


def _residual(report: TripReport, name: str, seen: Snapshot) -> Iterator[str]:
    for i, channel, limits in report.channels(seen):
        away = seen.measured[i] - seen.model[i]
        if abs(away) > limits.residual_max:
            yield (
                f"{channel.name} measured {_of(seen.measured[i], channel)}, model "
                f"{_of(seen.model[i], channel)}: {_of(abs(away), channel)} apart, limit "
                f"{_of(limits.residual_max, channel)} "
                f"(guard.force_residual_max_N){report.lasting(name)}"
            )


def _no_rise(report: TripReport, name: str, seen: Snapshot) -> Iterator[str]:
    for i, channel, limits in report.channels(seen):
        least = RISE_SHARE * seen.model[i]
        if seen.model[i] > limits.rise_min and seen.measured[i] < least:
            yield (
                f"{channel.name} measured {_of(seen.measured[i], channel)}, model "
                f"{_of(seen.model[i], channel)}, limit a third of it, {_of(least, channel)} "
                f"(guard.force_rise_min_N){report.lasting(name)}"
            )


def _frozen(report: TripReport, name: str, seen: Snapshot) -> Iterator[str]:
    for i, channel, limits in report.channels(seen):
        if seen.same_s[i] > limits.frozen_s - 0.5 * report.period_s:
            yield (
                f"{channel.name} at {_of(seen.measured[i], channel)} for "
                f"{_number(seen.same_s[i])} s, limit {_number(limits.frozen_s)} s (guard.frozen_s)"
            )


def _too_many(report: TripReport, name: str, seen: Snapshot) -> Iterator[str]:
    cells = np.flatnonzero(seen.cells)
    who = _few([report.layout.cell_names[i] for i in cells])
    yield (
        f"{len(cells)} cells commanded on ({who}), limit {report.limits.cells_on_max} "
        "(guard.cells_on_max)"
    )


def _bad_duty(report: TripReport, name: str, seen: Snapshot) -> Iterator[str]:
    least = report.limits.duty_min
    for cell, fraction in zip(report.layout.cell_names, seen.duty, strict=True):
        if duty.steps_of(fraction, round(least * duty.STEPS)) == duty.INVALID:
            yield f"{cell} at a duty of {_number(fraction)}, not 0 nor {_number(least)} to 1"


def _hot(report: TripReport, name: str, seen: Snapshot) -> Iterator[str]:
    for cell, rise_K, heat in zip(
        report.layout.cell_names, seen.rise_K, report.limits.heat, strict=True
    ):
        if rise_K > heat.rise_max_K:
            yield (
                f"{cell} {rise_K:.2f} K above the air by its heat budget, limit "
                f"{heat.rise_max_K:.2f} K"
            )


_FINDERS: dict[str, Finder] = {
    "force_high": _out_of_range,
    "force_nan": _no_number,
    "reading_stale": _stale,
    "loop_late": _late,
    "cell_on_too_long": _on_too_long,
    "signal_out_of_range": _out_of_range,
    "output_invalid": _invalid,
    "force_rate_high": _fast,
    "force_jump": _jump,
    "force_residual_high": _residual,
    "force_no_rise": _no_rise,
    "sensor_frozen": _frozen,
    "signal_fast": _fast,
    "too_many_cells_on": _too_many,
    "board_silent": _silent,
    "duty_invalid": _bad_duty,
    "cell_energy_high": _hot,
}


def merged(parts: Iterable[Mapping[str, Sequence[str]]]) -> dict[str, list[str]]:
    """Merge the details of several sources, by the name of the fault."""
    together: dict[str, list[str]] = {}
    for part in parts:
        for name, texts in part.items():
            together.setdefault(name, []).extend(texts)
    return together
