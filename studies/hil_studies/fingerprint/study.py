"""`hil study fingerprint`: reproduces the paper's three arrays and Figs. 9, 10 and 11.

Source: MacNair & Ueda, "Dynamic Cellular Actuator Arrays and Expanded Fingerprint Method for
Dynamic Modeling".
"""

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from pydantic import Field

from hil import bundled_configs
from hil.config.table import Table
from hil.experiment.load import load
from hil.experiment.loaded import Experiment
from hil.mechanics.arrays import Array
from hil.pages.study import check, saved
from hil.pages.style import CELL, MEASURED, MODEL, mark_simulated, styled_figure
from hil.record.read import open_run
from hil.runs import session
from hil.runs.plan import Plan
from hil.runs.recording import Output
from hil.systems.array.model.activation import CellActivation
from hil.systems.array.model.analysis import poles, stiffness_N_per_m
from hil.systems.array.model.cell_array import CellArray
from hil.systems.array.model.force_levels import levels_N, static_gains_N
from hil.systems.array.model.response import response
from hil.systems.array.model.system import ArraySystem
from hil_studies.fingerprint.effort import draw_growth, effort, growth
from hil_studies.fingerprint.noise import checks as noise_checks
from hil_studies.fingerprint.noise import draw, over_topologies, recruited
from hil_studies.fingerprint.noise import table as noise_table

PERIOD_S = 0.001
GROUPS = {
    1: [2],
    2: [3],
    3: [4, 8],
    4: [9, 10, 11],
    5: [6, 12, 13, 14],
}  # the paper's, cells from 1
RIGHT = "muscle.right_N"


class Values(Table):
    """Values that `--set` can change: duration of every step of Fig. 9, seed of the noise."""

    group_on_s: Annotated[float, Field(ge=0.1, le=60.0)] = 3.0
    seed: Annotated[int, Field(ge=0)] = 0


def run(out: Path, values: Values) -> dict[str, Any]:
    """Run the whole study into the folder `out`; return the results, as in results.json."""
    configs = bundled_configs.root() / "configs"
    array14 = load(configs / "array14" / "groups.toml")
    miga6 = load(configs / "miga6" / "all_on.toml")
    silicone4 = load(configs / "silicone4" / "levels.toml")
    seed = values.seed
    steps = _group_steps(array14, values.group_on_s)
    figures = [
        saved(out, "fig9.png", _draw_groups(steps), _CAPTION_9),
        saved(out, "fig10.png", _draw_run(silicone4, out / "silicone4.h5", seed), _CAPTION_10),
        saved(out, "fig11.png", _draw_run(miga6, out / "miga6.h5", seed), _CAPTION_11),
    ]
    arrays = {"miga6": miga6, "silicone4": silicone4, "array14": array14}
    rows = [effort(name, config) for name, config in arrays.items()]
    grown = growth()
    groups = recruited(array14.model, [[n - 1 for n in cells] for cells in GROUPS.values()],
                       array14.activation()[0].force_on_N)  # fmt: skip
    profiles = over_topologies()
    figures += [
        saved(out, "noise.png", draw(groups, profiles), _CAPTION_NOISE),
        saved(out, "effort.png", draw_growth(grown), _CAPTION_EFFORT),
    ]
    return {
        "title": "The fingerprint method: three arrays, Figs. 9, 10 and 11",
        "checks": [
            *_array14(array14.model), *_miga6(miga6.model), *_silicone4(), *_groups(steps),
            *noise_checks(groups, profiles), *_derived(rows),
        ],
        "tables": [noise_table(profiles)],
        "effort": rows,
        "effort_growth": grown,
        "figures": figures,
        "notes": [
            "The paper shows its results as curves. The expected figures follow from its "
            "published values by an independent derivation, cell by cell.",
            *([] if find_spec("sympy") else ["Not derived with SymPy: pip install sympy."]),
        ],
    }  # fmt: skip


_CAPTION_9 = (
    "Fig. 9, floating-point quantised actuation: static force doubles from group to group after "
    "the second. Fourteen cells of Fig. 2 between fixed ends, each curve from rest with all groups "
    "up to its number on. The paper leaves out which cell and which force it used: the Miga cell "
    "and F = 4 N are assumed."
)
_CAPTION_10 = (
    "Fig. 10: one, two, three and four silicone cells on, each from rest. The paper leaves out "
    "k_pe, the damper, the masses and when cells were switched; these are assumed. Its printed "
    "sigmoid for switching on falls; the corrected one is used. Measured is simulated hardware."
)
_CAPTION_11 = (
    "Fig. 11: all six Miga cells on for 3 s, then off. The paper leaves out F (assumed from eq. 1 "
    "with a stroke of 4 mm) and the topology as text. Masses that are not alike make the ripple of "
    "measured and simulated differ, as the paper says. Measured is simulated hardware."
)


_CAPTION_NOISE = (
    "Signal-dependent noise: standard deviation of the force in the last second of each level, its "
    "trend removed, over the mean force. The paper leaves out cell and force; Miga cells and 4 N "
    "are assumed. Cells or groups are switched on every 2 s, weakest first, and stay on."
)
_CAPTION_EFFORT = (
    "Time for the equations of motion over the number of cells: by the method, as numbers; derived "
    "from Newton's law with SymPy, as symbols. Layers of two parallel Miga cells."
)


def _derived(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        check(f"{row['array']}: A and B derived from Newton's law", row["symbolic_difference"],
              "< 1e-12", agrees=row["symbolic_difference"] < 1e-12)
        for row in rows
        if row["symbolic_difference"] is not None
    ]  # fmt: skip


def _ringing_Hz(model: CellArray) -> list[float]:
    return [p.frequency_Hz for p in poles(model) if p.damping < 0.5 for _ in range(p.count)]


def _array14(model: CellArray) -> list[dict[str, Any]]:
    gains_N = static_gains_N(model, np.ones(model.n_cells), RIGHT)
    checks = [
        check("Fig. 2: all-on force per newton of F", float(gains_N.sum()), "1.115079480", "N/N"),
        check("Fig. 2: stiffness", stiffness_N_per_m(model, "muscle") or 0.0, "398.359827", "N/m"),
        check("Fig. 2: force levels", len(levels_N(gains_N)), "25"),
    ]
    expected = ("25.504", "28.718", "44.175", "44.175", "55.481", "62.473")
    for value, text in zip(_ringing_Hz(model), expected, strict=True):
        checks.append(check("Fig. 2: mode", value, text, "Hz"))
    return checks


def _miga6(model: CellArray) -> list[dict[str, Any]]:
    system = ArraySystem(model, [CellActivation(1.0)] * model.n_cells, PERIOD_S)
    force_N = _response(system, np.ones(model.n_cells, dtype=np.uint8), 5.0)
    final_N = float(static_gains_N(model, np.ones(model.n_cells), RIGHT).sum())
    checks = [
        check("miga6: force after 10 ms", float(force_N[9]), "0.0174767014", "N/N"),
        check("miga6: force after 100 ms", float(force_N[99]), "0.105021073", "N/N"),
        check("miga6: force after 1 s", float(force_N[999]), "0.419833022", "N/N"),
        check("miga6: overshoot", 100.0 * (force_N.max() / final_N - 1.0), "0.41", "%"),
    ]
    for value, text in zip(_ringing_Hz(model), ("27.916", "40.767", "52.560"), strict=True):
        checks.append(check("miga6: mode", value, text, "Hz"))
    return checks


def _silicone4() -> list[dict[str, Any]]:
    config = load(bundled_configs.root() / "configs" / "silicone4" / "levels.toml")
    cell = config.model.arrays["muscle"].cells[0]
    checks = []
    for what, text, expected in (
        ("four in parallel", "-:4 | &F:-1", "0.3857"),
        ("two by two", "-:2 | &3:2 | &3:-1", "0.1929"),
        ("four in a chain", "-:1 | &1:1 | &1:1 | &1:1 | &1:-1", "0.0964"),
    ):
        model = CellArray.from_fingerprint(text, cell=cell, mass_kg=0.02, name="muscle")
        gain_N = float(static_gains_N(model, np.full(4, 6.8), RIGHT)[0])
        checks.append(check(f"silicone: force per cell, {what}", gain_N, expected, "N"))
    return checks


def _response(system: ArraySystem, cells: NDArray[np.uint8], duration_s: float) -> Array:
    held = np.tile(cells, (round(duration_s / PERIOD_S), 1))
    return response(system, system.model.outputs.index(RIGHT), held)[1:]


def _group_steps(config: Experiment, duration_s: float) -> dict[int, tuple[Array, float]]:
    """Return, for groups 1..g on, the response from rest and the static force."""
    model, activation = config.model, config.activation()
    force_on_N = np.array([a.force_on_N for a in activation])
    gains_N = static_gains_N(model, force_on_N, RIGHT)
    steps = {}
    on = np.zeros(model.n_cells, dtype=np.uint8)
    for group, cells in GROUPS.items():
        on[[n - 1 for n in cells]] = 1
        system = ArraySystem(model, activation, PERIOD_S)
        steps[group] = (_response(system, on, duration_s), float(gains_N @ on))
    return steps


def _groups(steps: dict[int, tuple[Array, float]]) -> list[dict[str, Any]]:
    """Compare each group's own force, in units of group 1, with Fig. 9: 1:1:2:4:8."""
    levels = [0.0, *(final for _, final in steps.values())]
    relative = np.diff(levels) / levels[1]
    return [
        check(f"Fig. 9: force of group {group} over group 1", float(value), expected)
        for group, value, expected in zip(steps, relative, ("1", "1", "2", "4", "8"), strict=True)
    ]


def _draw_groups(steps: dict[int, tuple[Array, float]]) -> Figure:
    with styled_figure(8.0, 4.6) as figure:
        axis = figure.subplots()
        for group, (force_N, final_N) in steps.items():
            t_s = PERIOD_S * np.arange(1, len(force_N) + 1)
            axis.plot(t_s, force_N, color=MODEL, lw=1.0)
            axis.axhline(final_N, color="0.75", lw=0.6, ls=":")
            axis.annotate(f"groups 1 to {group}: {final_N:.3f} N" if group > 1
                          else f"group 1: {final_N:.3f} N",
                          (t_s[-1], final_N), xytext=(0, 3), textcoords="offset points",
                          ha="right", va="bottom", color="0.3")  # fmt: skip
        axis.set(xlabel="time [s]", ylabel="force at the right end [N]")
        axis.set_title("Fig. 9: groups recruited one after the other")
        axis.margins(x=0.01, y=0.08)
    return figure


def _draw_run(config: Experiment, path: Path, seed: int) -> Figure:
    """Run an experiment on the simulated rig; draw measured and simulated force, cells below."""
    session.run(Plan(config, seed=seed), Output(out=path, force=True))
    recording = open_run(path)
    t_s, n_on = recording.t_s.values, (recording.cells_reported.values == 1).sum(axis=1)
    with styled_figure(8.0, 4.6) as figure:
        axis, below = figure.subplots(2, 1, sharex=True, height_ratios=[4, 1])
        axis.plot(t_s, recording.force_measured_N.values, color=MEASURED, lw=0.9, label="measured")
        axis.plot(t_s, recording.force_model_N.values, color=MODEL, lw=1.2, label="simulated")
        axis.set_ylabel("force [N]")
        axis.legend(frameon=False)
        axis.set_title(recording.attrs["experiment_name"])
        axis.margins(x=0.01, y=0.1)
        below.fill_between(t_s, n_on, step="post", color=CELL, lw=0)
        below.set_ylabel("cells on")
        below.set_ylim(0, recording.sizes["cell"])
        below.set_xlabel("time [s]")
        mark_simulated(figure, axis)
    return figure
