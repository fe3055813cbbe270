"""`hil model` for an array: its figures as text, its reduction, and its matrices as files."""

from pathlib import Path

import numpy as np
import scipy.io

from hil.config.values import Figures
from hil.errors import ConfigError, writing
from hil.experiment.kind import Description, ModelRequest
from hil.platform.whole_files import whole
from hil.systems.array import bode
from hil.systems.array.fmu import build_boards
from hil.systems.array.fmu.export import export as export_fmu
from hil.systems.array.fmu.variables import Boards
from hil.systems.array.model import analysis
from hil.systems.array.model.cell_array import CellArray
from hil.systems.array.model.reduction import Reduced, reduce

GAINS_SHOWN_MAX = 20


def describe(request: ModelRequest) -> Description:
    """Return order, poles and statics; reduce the model and write its matrices on request."""
    model = request.model
    facts, reduced = analysis.describe(model, request.forces_on_N), None
    if request.order is not None:
        forces = [name for name in model.outputs if name.endswith(("left_N", "right_N"))]
        reduced = reduce(model, request.order, forces)
        facts["reduction"] = describe_reduced(reduced, forces)
    lines = [as_text(facts)]
    if request.bode is not None:
        measured = None if request.measured is None else bode.read_measured(request.measured)
        facts["bode"] = bode.draw(model, request.forces_on_N, request.bode, measured)
        lines += bode.as_text(facts["bode"], request.bode)
    if request.out is not None and request.out.suffix == ".fmu":
        if reduced is not None:
            raise ConfigError("--reduce: an FMU has the whole model: leave it out")
        platforms = export_fmu(
            model,
            request.activation,
            request.period_s,
            request.out,
            request.fmi,
            boards_of(request),
        )
        lines.append(f"FMI {request.fmi}.0 unit for {', '.join(platforms)}: {request.out}")
        if request.boards:
            lines.append(f"with the firmware of {', '.join(request.boards)}: co-simulation only")
        elif any(cell.has_wire for cell in request.activation):
            lines.append("with wires, which have hysteresis: co-simulation only")
    elif request.out is not None:
        export(model, request.out, reduced)
        lines.append(f"matrices and names are in {request.out}")
    return Description(facts, lines, whole=True)


def boards_of(request: ModelRequest) -> Boards | None:
    """The driver boards that the unit has; None: it has the model alone."""
    if not request.boards:
        return None
    names = request.model.cell_names
    wires = [name for name, cell in zip(names, request.activation, strict=True) if cell.has_wire]
    return build_boards.build(request.boards, names, wires, request.period_s)


def describe_reduced(reduced: Reduced, outputs: list[str]) -> Figures:
    """Return order, error bound and Hankel singular values of a balanced reduction."""
    return {
        "order": len(reduced.A),
        "outputs": outputs,
        "error_bound": reduced.error_bound,
        "hankel_singular_values": reduced.hankel_singular_values.tolist(),
    }


def export(model: CellArray, path: Path, reduced: Reduced | None = None) -> None:
    """Write A, B, C, D and the lists `states`, `inputs`, `outputs` as .npz or .mat.

    A reduced model keeps all inputs but only the forces as outputs; its states are r1, r2, ...

    Raises
    ------
    ConfigError
        The file name has another ending, or the file cannot be written.
    """
    source = model if reduced is None else reduced
    content = {"A": source.A, "B": source.B, "C": source.C, "D": source.D}
    names = {"states": model.states, "inputs": model.inputs, "outputs": model.outputs}
    if reduced is not None:
        names["states"] = [f"r{i}" for i in range(1, len(reduced.A) + 1)]
        names["outputs"] = [n for n in model.outputs if n.endswith(("left_N", "right_N"))]
    with writing(path), whole(path) as part:
        if path.suffix == ".npz":
            texts = {key: np.array(value) for key, value in names.items()}
            with part.open("wb") as part_file:  # to a name it would add its ending
                np.savez(part_file, allow_pickle=False, **content, **texts)
        elif path.suffix == ".mat":
            cells = {key: np.array(value, dtype=object) for key, value in names.items()}
            scipy.io.savemat(part, {**content, **cells}, appendmat=False, oned_as="column")
        else:
            raise ConfigError(f"{path}: unknown ending '{path.suffix}': choose .npz, .mat or .fmu")


def as_text(facts: Figures) -> str:
    """Return the figures as plain text."""
    lines = [
        f"order {facts['order']}: {facts['n_cells']} cells, {facts['n_inputs']} inputs, "
        f"{facts['n_outputs']} outputs"
    ]
    for group in facts["floating"]:
        lines.append(f"floating, connected to no support by live cells: {', '.join(group)}")
    if "poles" in facts:
        stable = "stable" if facts["stable"] else "NOT stable"
        lines.append(
            f"{stable}; {facts['uncontrollable_states']} uncontrollable and "
            f"{facts['unobservable_states']} unobservable states"
        )
        lines += ["", "poles   real [1/s]    frequency [Hz]   damping"]
        for pole in facts["poles"]:
            times = f"x{pole['count']}" if pole["count"] > 1 else "  "
            lines.append(
                f"{times:>5} {pole['real_per_s']:12.5g} {pole['frequency_Hz']:16.5g} "
                f"{pole['damping']:9.4g}"
            )
    for name, statics in facts["statics"].items():
        lines += ["", f"{name}, static, all cells on"]
        lines.append(f"  force at the left end   {statics['all_on_left_N']:.9g} N")
        lines.append(f"  force at the right end  {statics['all_on_right_N']:.9g} N")
        if statics["stiffness_N_per_m"] is not None:
            lines.append(f"  stiffness between ends  {statics['stiffness_N_per_m']:.9g} N/m")
        if "stroke_m" in statics:
            lines.append(f"  free contraction        {1e3 * statics['stroke_m']:.6g} mm")
        if len(statics["shares"]) <= GAINS_SHOWN_MAX:
            gains_N = " ".join(f"{gain:.4f}" for gain in statics["shares"])
            lines.append(f"  static gain of each cell {gains_N}")
        if "n_force_levels" in statics:
            lines.append(
                f"  force levels            {statics['n_force_levels']}, "
                f"steps {statics['smallest_step_N']:.4g} to {statics['largest_step_N']:.4g} N"
            )
    if "reduction" in facts:
        r = facts["reduction"]
        values = " ".join(f"{value:.3g}" for value in r["hankel_singular_values"][:GAINS_SHOWN_MAX])
        lines += ["", f"reduced to order {r['order']}, from cells to {', '.join(r['outputs'])}"]
        lines.append(f"  largest gain error      {r['error_bound']:.4g} N/N at any frequency")
        lines.append(f"  Hankel singular values  {values}")
    for name, x_m in facts["free_points_m"].items():
        lines += ["", f"{name} rests at {1e3 * x_m:.6g} mm with all cells on"]
    return "\n".join(lines)
