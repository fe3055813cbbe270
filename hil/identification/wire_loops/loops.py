"""Strain over temperature at constant stress: one loop a file, one heating and one cooling branch.

A file has the columns `temperature_C`, `strain` (or `strain_percent`) and `stress_MPa` in any
order, and others, which are not read. Lines that begin with # are comments. The loops of SMA-REACT
have no header and come in this order. A gauge's zero is arbitrary: strain is counted from the
loop's hot end.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hil.errors import ModelError
from hil.mechanics.arrays import Array

COLUMNS = ("temperature_C", "strain", "stress_MPa")
PERCENT = "strain_percent"
COMMENT = "#"
SHIPPED = {"NiTiCo": 1.0, "NiTiHf": 0.01}  # strain's unit in m/m, from each Data_Source.txt
POINTS_MIN = 20
STRAIN_MAX = 0.2
KELVIN_FROM_C = 230.0  # no loop begins and ends this hot in deg C
EXPANSION_MAX_PER_K = 20e-6  # of any NiTi: an unloaded loop may rise on heating by this
HOT_SHARE = 0.02
TURN_SHARE = 0.1


@dataclass(frozen=True)
class Loop:
    """One measured loop.

    Attributes
    ----------
    T_C, strain : (n,) arrays, in the order measured; strain in m/m above the hot end
    heating : (n,) mask
    stress_Pa : its mean
    """

    name: str
    T_C: Array
    strain: Array
    heating: NDArray[np.bool_]
    stress_Pa: float

    @property
    def hot(self) -> NDArray[np.bool_]:
        """The samples that its zero is taken from."""
        return hot_end(self.T_C)

    @property
    def stroke(self) -> float:
        return float(np.ptp(self.strain))

    def thinned(self, n: int) -> "Loop":
        """At most n of its samples, evenly."""
        at = np.unique(np.linspace(0, len(self.T_C) - 1, n).round().astype(int))
        return Loop(self.name, self.T_C[at], self.strain[at], self.heating[at], self.stress_Pa)


def shipped(name: str) -> list[Loop]:
    """The loops of SMA-REACT that come with the project, by rising stress; see data/README.md."""
    loops = []
    for file in (resources.files("hil.identification.wire_loops") / "data" / name).iterdir():
        if file.name.endswith("MPa.txt"):
            rows = np.loadtxt(file.read_text(encoding="utf-8").splitlines())
            loop_name = f"{name} {file.name.removesuffix('_MPa.txt')} MPa"
            loops.append(loop_of(loop_name, rows * [1.0, SHIPPED[name], 1.0], np.inf))
    return sorted(loops, key=lambda loop: loop.stress_Pa)


def read(path: Path, strength_MPa: float) -> Loop:
    """The loop in a file.

    Raises
    ------
    ModelError
        In one line: the file, what is wrong with it, and the remedy.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(f"{path}: cannot be read ({error})") from None
    filled = [
        (at, line)
        for at, line in enumerate(lines, start=1)
        if line.strip() and not line.lstrip().startswith(COMMENT)
    ]
    header = [name.strip() for name in filled[0][1].split(",")] if filled else []
    percent = PERCENT in header
    wanted = [PERCENT if percent and name == "strain" else name for name in COLUMNS]
    if sum(name in (*COLUMNS, PERCENT) for name in header) != 3 or set(wanted) - set(header):
        raise ModelError(
            f"{path}: columns {', '.join(header) or 'none'}: give a header "
            f"{','.join(COLUMNS)} ({PERCENT} where strain is in percent)"
        )
    places = [header.index(name) for name in wanted]
    rows = [_numbers(path, at, line, len(header), places) for at, line in filled[1:]]
    if len(rows) < 2 * POINTS_MIN:
        raise ModelError(f"{path}: {len(rows)} points: a loop needs {2 * POINTS_MIN} at least")
    return loop_of(str(path), np.array(rows) * [1.0, 0.01 if percent else 1.0, 1.0], strength_MPa)


def _numbers(path: Path, at: int, line: str, n: int, places: Sequence[int]) -> Sequence[float]:
    """The numbers at these places of a line of n values."""
    texts = line.split(",")
    try:
        values = [float(texts[place]) for place in places] if len(texts) == n else []
    except ValueError:
        values = []
    if not values or not np.all(np.isfinite(values)):
        raise ModelError(f"{path}: line {at}: '{line.strip()[:40]}' is not {n} numbers")
    return values


def loop_of(name: str, columns: Array, strength_MPa: float) -> Loop:
    """A loop from temperature in deg C, strain in m/m and stress in MPa, (n, 3)."""
    T_C, strain, stress_MPa = columns.T
    mean_MPa = float(stress_MPa.mean())
    if np.ptp(strain) > STRAIN_MAX:
        raise ModelError(
            f"{name}: strain spans {np.ptp(strain):.3g}, more than any wire's {STRAIN_MAX} m/m: "
            f"if it is in percent, name the column {PERCENT}"
        )
    if T_C.min() > KELVIN_FROM_C:
        raise ModelError(
            f"{name}: the coldest temperature is {T_C.min():.4g}: deg C are wanted, not kelvin"
        )
    if mean_MPa < 0.0 or np.abs(stress_MPa).max() > strength_MPa:
        raise ModelError(
            f"{name}: stress reaches {stress_MPa[np.abs(stress_MPa).argmax()]:.4g} MPa: wires are "
            f"pulled with 0 to {strength_MPa:.4g} MPa (strength_MPa): check the unit and sign"
        )
    low, high = np.percentile(stress_MPa, (5.0, 95.0))
    if high - low > 10.0 + 0.2 * mean_MPa:
        raise ModelError(
            f"{name}: stress varies from {low:.4g} to {high:.4g} MPa: a loop has one stress"
        )
    heating = _heating(name, T_C)
    above = strain - strain[hot_end(T_C)].mean()
    cold = T_C <= T_C.min() + HOT_SHARE * np.ptp(T_C)
    if above[cold].mean() <= -EXPANSION_MAX_PER_K * np.ptp(T_C):
        raise ModelError(
            f"{name}: strain rises by {-above[cold].mean():.3g} on heating: a wire contracts; "
            "give elongation as positive"
        )
    return Loop(name, T_C, above, heating, 1e6 * mean_MPa)


def _heating(name: str, T_C: Array) -> NDArray[np.bool_]:
    """Which samples are on the heating branch: the way to, or from, the one turning point."""
    n, span_K = len(T_C), float(np.ptp(T_C))
    hottest, coldest = int(np.argmax(T_C)), int(np.argmin(T_C))
    turn = hottest if min(hottest, n - 1 - hottest) >= min(coldest, n - 1 - coldest) else coldest
    heats_first = turn == hottest
    for part, rising in ((T_C[: turn + 1], heats_first), (T_C[turn:], not heats_first)):
        rise = part if rising else -part
        if (
            len(part) < POINTS_MIN
            or np.max(np.maximum.accumulate(rise) - rise) > TURN_SHARE * span_K
        ):
            raise ModelError(
                f"{name}: temperature does not rise once and fall once with {POINTS_MIN} points "
                "each: give one heating and one cooling branch"
            )
    index = np.arange(n)
    return index <= turn if heats_first else index > turn


def hot_end(T_C: Array) -> NDArray[np.bool_]:
    """Samples within HOT_SHARE of the span from the highest temperature."""
    return np.asarray(T_C >= T_C.max() - HOT_SHARE * np.ptp(T_C))
