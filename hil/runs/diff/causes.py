"""Why two runs differ: each run again with one part of the other, and what that changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import nan

from hil.calibration.signal_chain import Chain
from hil.config.values import TomlTable
from hil.errors import ConfigError, one_line
from hil.record.progress import count_progress
from hil.runs.diff.setup import Setup, figures_of, leaves

APART_MAX = 12  # more differing keys are exchanged by table
INSIGNIFICANT = 0.01  # of a figure
REFUSED_MAX = 100  # characters
WITHOUT_EFFECT = (("experiment", "name"), ("experiment", "operator"))
UNUSED = ("specimen", "record", "expect", "validation")
TITLES = {
    "controller": "controller", "reference": "set point", "model": "twin", "plant": "plant",
    "devices": "instruments", "guard": "protections", "loop": "timing", "observer": "observer",
    "ambient": "room", "experiment": "experiment",
}  # fmt: skip
CALIBRATION = ("record", "newtons_per_V", "units_per_V", "metres_per_V", "zero_V")
Path = tuple[str, ...]
Swap = Callable[[Setup, Setup], Setup]


@dataclass
class Cause:
    """A part in which two runs differ, and what exchanging it changes.

    Attributes
    ----------
    name : what it is, such as `controller.k_p`
    swap : the first run with this part of the second
    values : its value in each run, if that can be said
    effects : by figure, what the part of the second run adds to the first one's figure
    refused : why it cannot be exchanged alone
    """

    name: str
    swap: Swap
    values: tuple[str, str] = ("", "")
    effects: dict[str, float] = field(default_factory=dict)
    refused: str = ""

    def text(self) -> str:
        """The part with both values."""
        return f"{self.name}: {' -> '.join(self.values)}" if any(self.values) else self.name


@dataclass
class Explained:
    """A difference with its causes, largest effect first.

    Attributes
    ----------
    figure : the figure that is explained; `recorded` and `again` have the value of each run
    chance : by figure, what another seed changes
    software : difference that running again does not show: other software, or what no configuration
        has
    together : what the causes do only together
    """

    figure: str
    recorded: tuple[dict[str, float], dict[str, float]]
    again: tuple[dict[str, float], dict[str, float]]
    chance: dict[str, float]
    causes: list[Cause]

    @property
    def difference(self) -> float:
        return self._difference(self.recorded)

    @property
    def software(self) -> float:
        return self.difference - self._difference(self.again)

    @property
    def together(self) -> float:
        return self._difference(self.again) - sum(
            c.effects.get(self.figure, 0.0) for c in self.causes
        )

    def _difference(self, of: tuple[dict[str, float], dict[str, float]]) -> float:
        return of[1].get(self.figure, nan) - of[0].get(self.figure, nan)


def explain(a: Setup, b: Setup, figure: str = "", *, progress: bool = False) -> Explained:
    """Run both again, and each with one part of the other at a time.

    The effect of a part is the mean of what it adds to `a` and of what the first one's part takes
    from `b`, so that two parts that act on each other share what they do together.

    Parameters
    ----------
    figure : the figure to explain; by default the one that differs most beyond chance

    Raises
    ------
    ConfigError
        A run cannot be run again, or has no such figure.
    """
    causes = causes_of(a, b)
    with count_progress("runs again", 2 * len(causes) + 3, progress) as done:
        runs = []
        for setup in (a, b, replace(a, seed=a.seed + 1)):
            runs.append(figures_of(setup.again()))
            done(len(runs))
        again = runs[0], runs[1]
        chance = {name: abs(runs[2].get(name, nan) - value) for name, value in runs[0].items()}
        for i, cause in enumerate(causes):
            _measure(cause, a, b, again)
            done(3 + 2 * (i + 1))
    refused = [cause for cause in causes if cause.refused]
    if len(refused) > 1:
        names = ", ".join(cause.name for cause in refused)
        both = _joined(f"only together: {names}", refused)
        _measure(both, a, b, again)
        causes.append(both)
    recorded = figures_of(a.run), figures_of(b.run)
    chosen = figure or _most_different(recorded, chance)
    for of in recorded:
        if chosen not in of:
            raise ConfigError(
                f"--figure {chosen}: not in both runs: choose {', '.join(sorted(recorded[0]))}"
            )
    causes.sort(key=lambda cause: -abs(cause.effects.get(chosen, 0.0)))
    return Explained(chosen, recorded, again, chance, causes)


def _measure(
    cause: Cause, a: Setup, b: Setup, again: tuple[dict[str, float], dict[str, float]]
) -> None:
    """Run `a` with the part of `b`, and `b` with that of `a`."""
    sides: list[dict[str, float]] = []
    for setup, other, sign, base in ((a, b, 1.0, again[0]), (b, a, -1.0, again[1])):
        try:
            figures = figures_of(cause.swap(setup, other).again())
            sides.append(
                {
                    name: sign * (figures[name] - value)
                    for name, value in base.items()
                    if name in figures
                }
            )
        except ConfigError as error:
            cause.refused = one_line(str(error).split("\n")[0])[:REFUSED_MAX]
    if sides:
        cause.refused = ""
        names = set.intersection(*(set(effects) for effects in sides))
        cause.effects = {name: sum(e[name] for e in sides) / len(sides) for name in sorted(names)}


def _most_different(
    recorded: tuple[dict[str, float], dict[str, float]], chance: Mapping[str, float]
) -> str:
    def score(name: str) -> float:
        a, b = recorded[0][name], recorded[1][name]
        scale = chance.get(name, 0.0) + INSIGNIFICANT * max(abs(a), abs(b))
        return abs(b - a) / scale if scale else 0.0

    common = [name for name in recorded[0] if name in recorded[1]]
    if not common:
        raise ConfigError("the runs have no figure in common")
    return max(common, key=score)


def causes_of(a: Setup, b: Setup) -> list[Cause]:
    """The parts in which two runs differ."""
    causes = [*_calibrations(a, b), *_code(a, b)]
    if a.seed != b.seed:
        causes.append(
            Cause("seed", lambda x, y: replace(x, seed=y.seed), (str(a.seed), str(b.seed)))
        )
    if list(a.faults) != list(b.faults):
        texts = _faults_text(a), _faults_text(b)
        causes.append(Cause(_fault_name(a, b), lambda x, y: replace(x, faults=y.faults), texts))
    if a.disturbed or b.disturbed:
        name = "what the twin does not know, as recorded (specimen, room, sensors)"
        causes.append(Cause(name, lambda x, y: replace(x, disturbed=y.disturbed)))
    return causes + _configured(a, b)


def _calibrations(a: Setup, b: Setup) -> Iterator[Cause]:
    for channel in sorted(set(a.read_with) & set(b.read_with)):
        one, other = a.read_with[channel], b.read_with[channel]
        if one == other:
            continue

        def swap(x: Setup, y: Setup, channel: str = channel) -> Setup:
            read = {**x.read_with, channel: y.read_with[channel]}
            if not x.simulated or x.later or y.later:
                return replace(x, read_with=read, later=x.later or y.later)
            # A simulated transducer is as its record says.
            paths = [p for p, _ in leaves(y.tables) if p[-2:-1] == (channel,)]
            return replace(
                x,
                read_with=read,
                chains={**x.chains, channel: y.chains[channel]},
                records={**x.records, **{k: v for k, v in y.records.items() if k == channel}},
                tables=_with(x.tables, y.tables, [p for p in paths if p[-1] in CALIBRATION]),
            )

        slopes = _slope(one), _slope(other)
        yield Cause(f"calibration of {channel}", swap, slopes)


def _slope(chain: Chain) -> str:
    return f"{chain.coefficients[1] / chain.raw_per_ratio:.5g} per raw unit"


def _code(a: Setup, b: Setup) -> Iterator[Cause]:
    for key in sorted(set(a.code) & set(b.code)):
        if a.code[key] != b.code[key]:

            def swap(x: Setup, y: Setup, key: str = key) -> Setup:
                return replace(x, code={**x.code, key: y.code[key]})

            yield Cause(f"code of {key}", swap)


def _fault_name(a: Setup, b: Setup) -> str:
    kinds = {fault.kind for s in (a, b) for fault in s.faults}
    return (
        "lost ticks"
        if kinds == {"machine_stalls"}
        else f"injected faults ({', '.join(sorted(kinds))})"
    )


def _faults_text(setup: Setup) -> str:
    return f"{len(setup.faults)} times" if setup.faults else "none"


def _configured(a: Setup, b: Setup) -> list[Cause]:
    """One cause for each differing key; the same change of twin and plant is one."""
    pairs = {p: (x, y) for p, x, y in _differing(a.tables, b.tables) if not _left_out(p, a, b)}
    paths: dict[Path, list[Path]] = {}
    for path, values in pairs.items():
        if path[0] == "plant" and pairs.get(("model", *path[1:])) == values:
            paths[("model", *path[1:])] = [("model", *path[1:]), path]
        elif path not in paths:
            paths[path] = [path]
    if len(paths) > APART_MAX:
        by_table: dict[Path, list[Path]] = {}
        for path, several in paths.items():
            n = 2 if path[0] == "devices" else 1
            both = len(several) > 1
            by_table.setdefault(("model, plant",) if both else path[:n], []).extend(several)
        return [
            Cause(f"{_name(path, several)} ({len(several)} keys)", _swap(several))
            for path, several in by_table.items()
        ]
    return [
        Cause(
            _name(path, several), _swap(several), (_short(pairs[path][0]), _short(pairs[path][1]))
        )
        for path, several in paths.items()
    ]


def _name(path: Path, several: Sequence[Path]) -> str:
    both = len({p[0] for p in several}) > 1
    title = "twin and plant" if both else TITLES.get(path[0], path[0])
    if path[0] == "controller" and path[-1].startswith("k_"):
        title = "gain"
    return f"{title}: {'.'.join(path)}"


def _swap(paths: Sequence[Path]) -> Swap:
    keys = {".".join(path) for path in paths}

    def swap(x: Setup, y: Setup) -> Setup:
        code = {**x.code, **{key: source for key, source in y.code.items() if key in keys}}
        return replace(x, tables=_with(x.tables, y.tables, paths), code=code)

    return swap


def _joined(name: str, causes: Sequence[Cause]) -> Cause:
    def swap(x: Setup, y: Setup) -> Setup:
        for cause in causes:
            x = cause.swap(x, y)
        return x

    return Cause(name, swap)


def _differing(
    a: TomlTable, b: TomlTable, path: Path = ()
) -> Iterator[tuple[Path, object, object]]:
    """Paths of values that differ; a table of another kind is one value."""
    for key in dict.fromkeys((*a, *b)):
        one, other = a.get(key), b.get(key)
        if one == other:
            continue
        if (
            isinstance(one, dict)
            and isinstance(other, dict)
            and one.get("kind") == other.get("kind")
        ):
            yield from _differing(one, other, (*path, key))
        else:
            yield (*path, key), one, other


def _left_out(path: Path, a: Setup, b: Setup) -> bool:
    """Keys that change no run, and what calibrations are exchanged with."""
    hardware = not (a.simulated and b.simulated) and (
        path[0] == "plant" or path[-1] in ("port", "serial", "card")
    )
    return (
        path[0] in UNUSED or path in WITHOUT_EFFECT or hardware or path[-1] == "record"
        or (path[0] == "devices" and path[-1] in CALIBRATION)
    )  # fmt: skip


def _with(tables: TomlTable, other: TomlTable, paths: Sequence[Path]) -> TomlTable:
    """The tables with the values of others at these paths."""
    changed = dict(tables)
    for path in paths:
        to: TomlTable = changed
        value: object = other
        for key in path[:-1]:
            to[key] = dict(to.get(key, {}))
            to, value = to[key], value.get(key, {}) if isinstance(value, dict) else {}
        last = value.get(path[-1]) if isinstance(value, dict) else None
        if last is None:
            to.pop(path[-1], None)
        else:
            to[path[-1]] = last
    return changed


def _short(value: object) -> str:
    if value is None:
        return "not set"
    text = str(value.get("kind", "a table")) if isinstance(value, dict) else str(value)
    return one_line(text if len(text) <= 40 else f"{text[:39]}…")
