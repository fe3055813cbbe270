"""`hil study benchmark`: laws of wires, fitted to some measured loops and judged on others.

The loops come with the project. A split says which of them a law is fitted to, and which it must
predict without their strain. `hil_studies.benchmark.laws` says how a law enters.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import Field

from hil.config.table import Table
from hil.errors import ModelError, remedy
from hil.identification.wire_loops.fit import rms_of_stroke
from hil.identification.wire_loops.loops import Loop, shipped
from hil.pages.study import as_table
from hil_studies.benchmark.laws import Entry, entries

REPEATS = 5  # the shortest time counts
STEPS = 1000
REFITS = 2
CHANGE = 1e-4  # of the stroke: a hundredth of a gauge's noise
DATA = (
    ("NiTiCo", "SMA-REACT; Walgren, Nevin & Hartl 2022", "BSD 3-Clause", "4 loops, shipped"),
    ("NiTiHf", "SMA-REACT; Bigelow et al. 2022", "BSD 3-Clause", "6 loops, shipped"),
    ("Flexinol", "maestrolab, calibrating", "none stated", "left out: may not be shipped"),
    ("isobaric_7cycle", "SMA-REACT", "BSD 3-Clause", "left out: one stress, no gauge length"),
    ("runs of arrays", "none", "–", "left out: every shipped recording is simulated"),
)


class Split(NamedTuple):
    """Loops by their stress in MPa: fitted ones and held-out ones."""

    data: str
    kind: str
    fitted_MPa: tuple[int, ...]
    held_out_MPa: tuple[int, ...]

    @property
    def name(self) -> str:
        return f"{self.data}, {self.kind}"


SPLITS = (
    Split("NiTiCo", "between", (50, 200), (150,)),
    Split("NiTiCo", "beyond", (50, 150), (200,)),
    Split("NiTiCo", "nearly without load", (50, 150, 200), (7,)),
    Split("NiTiHf", "between", (50, 400), (100, 200, 300)),
    Split("NiTiHf", "beyond", (50, 100, 200), (300, 400)),
    Split("NiTiHf", "nearly without load", (50, 100, 200, 300, 400), (7,)),
)


class Values(Table):
    """Names of the laws to judge and of the splits (all if empty)."""

    laws: Annotated[list[str], Field(default=[])]
    splits: Annotated[list[str], Field(default=[])]


@dataclass(frozen=True)
class Score:
    """What a law reaches on a split.

    Attributes
    ----------
    rms_of_stroke : root mean square error over the stroke, one a held-out loop
    spread : largest change of these if the strain fitted is disturbed by CHANGE of the stroke
    in_band : share of the held-out readings in its 95 % band; None if it states none
    band_of_stroke : mean half width of that band over the stroke
    fit_s, simulate_s_per_1000 : time on this machine
    """

    law: str
    n_parameters: int
    rms_of_stroke: list[float]
    spread: float
    in_band: float | None
    band_of_stroke: float | None
    fit_s: float
    simulate_s_per_1000: float


def run(out: Path, values: Values) -> dict[str, Any]:
    """Judge every law on every split."""
    known = entries()
    names = _chosen("laws", values.laws, list(known))
    splits = {split.name: split for split in SPLITS}
    makers = {name: known[name] for name in names}
    for name, make in makers.items():
        Entry(name, make)
    scores = {
        name: [judged(Entry(law, make), law, splits[name]) for law, make in makers.items()]
        for name in _chosen("splits", values.splits, list(splits))
    }
    return {
        "title": "Laws of wires, judged on loops that they were not fitted to",
        "splits": {name: [vars(score) for score in of] for name, of in scores.items()},
        "figures": [],
        "tables": [
            as_table("Data", ["data", "from", "licence", "use"], [list(row) for row in DATA]),
            *(_table(splits[name], of) for name, of in scores.items()),
            _times(scores),
        ],
        "notes": [
            "Numbers under a stress are RMS errors over the loop's stroke.",
            "Spread: largest change of these if noise of 1e-4 of the stroke is added to the loops "
            "that are fitted. A law with a large spread is not determined by these loops.",
            "Times are of this machine; they vary by tens of percent.",
        ],
    }


def _chosen(key: str, wanted: Sequence[str], known: Sequence[str]) -> Sequence[str]:
    for name in wanted:
        if name not in known:
            raise ModelError(f"{key}: '{name}' is unknown{remedy(name, known)}")
    return wanted or known


def judged(entry: Entry, law: str, split: Split) -> Score:
    """Fit a law to the fitted loops of a split, and judge it on the others.

    Raises
    ------
    ModelError
        The law raises, or does not return a finite number for every reading.
    """
    held_out = _loops(split.data, split.held_out_MPa)
    blind = [_blind(loop) for loop in held_out]
    refits = []
    for seed in range(1, REFITS + 1):
        entry.fit([_disturbed(loop, seed) for loop in _loops(split.data, split.fitted_MPa)])
        refits.append(_errors(entry, blind, held_out))
    began_s = perf_counter()
    entry.fit(_loops(split.data, split.fitted_MPa))
    fit_s = perf_counter() - began_s
    errors = _errors(entry, blind, held_out)
    strains = [entry.simulate(inputs) for inputs in blind]
    halves = [entry.half_width(inputs) for inputs in blind]
    pairs = [(h, s, loop) for h, s, loop in zip(halves, strains, held_out, strict=True)
             if h is not None]  # fmt: skip
    inside = [np.abs(strain - loop.strain) <= half for half, strain, loop in pairs]
    widths = [half.mean() / loop.stroke for half, _, loop in pairs]
    return Score(
        law,
        entry.n_parameters,
        errors,
        float(np.abs(np.array(refits) - errors).max()),
        float(np.mean(np.concatenate(inside))) if inside else None,
        float(np.mean(widths)) if widths else None,
        fit_s,
        min(_time_s(entry, blind[0]) for _ in range(REPEATS)),
    )


def _errors(entry: Entry, blind: Sequence[Loop], held_out: Sequence[Loop]) -> list[float]:
    """RMS error over the stroke of every held-out loop."""
    return [
        rms_of_stroke(entry.simulate(inputs), loop)
        for inputs, loop in zip(blind, held_out, strict=True)
    ]


def _disturbed(loop: Loop, seed: int) -> Loop:
    """A loop whose strain has white noise of CHANGE of its stroke."""
    noise = np.random.default_rng(seed).standard_normal(len(loop.strain))
    return replace(loop, strain=loop.strain + CHANGE * loop.stroke * noise)


def _loops(data: str, stresses_MPa: Sequence[int]) -> list[Loop]:
    """Measured loops, read again for every law: none can change those of another."""
    loops = {loop.name: loop for loop in shipped(data)}
    return [loops[f"{data} {stress} MPa"] for stress in stresses_MPa]


def _blind(loop: Loop) -> Loop:
    """A copy without the strain, which a law must not see."""
    return replace(loop, T_C=loop.T_C.copy(), strain=np.full(len(loop.T_C), np.nan),
                   heating=loop.heating.copy())  # fmt: skip


def _time_s(entry: Entry, inputs: Loop) -> float:
    began_s = perf_counter()
    entry.simulate(inputs)
    return (perf_counter() - began_s) * STEPS / len(inputs.T_C)


def _table(split: Split, scores: Sequence[Score]) -> dict[str, Any]:
    fitted = ", ".join(map(str, split.fitted_MPa))
    columns = ["law", "parameters", *(f"{stress} MPa" for stress in split.held_out_MPa),
               "spread", "in its band", "half width"]  # fmt: skip
    return as_table(
        f"{split.name}: fitted to {fitted} MPa",
        columns,
        [
            [
                score.law,
                str(score.n_parameters),
                *(f"{rms:.3f}" for rms in score.rms_of_stroke),
                f"{score.spread:.3f}",
                "–" if score.in_band is None else f"{100.0 * score.in_band:.0f} %",
                "–" if score.band_of_stroke is None else f"{score.band_of_stroke:.2f}",
            ]
            for score in scores
        ],
    )


def _times(scores: dict[str, list[Score]]) -> dict[str, Any]:
    """Mean times over the splits."""
    laws = zip(*scores.values(), strict=True)
    rows = [
        [
            of[0].law,
            f"{np.mean([s.fit_s for s in of]):.2f} s",
            f"{1e3 * np.mean([s.simulate_s_per_1000 for s in of]):.3f} ms",
        ]
        for of in laws
    ]
    return as_table("Time on this machine", ["law", "fit", f"{STEPS} steps"], rows)
