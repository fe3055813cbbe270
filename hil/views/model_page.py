"""`hil model`: what a model can do, as text, and its matrices as files."""

from pathlib import Path
from typing import Any

import numpy as np
import scipy.io

from hil.errors import ConfigError
from hil.models import CellArray
from hil.models.analysis import describe
from hil.models.bodies.system import BodySystem
from hil.models.reduction import Reduced
from hil.models.system import System

SHARES_SHOWN_MAX = 20

__all__ = ["as_text", "describe", "export"]


def describe_system(kind: str, system: System) -> dict[str, Any]:
    """What a model that is no array offers boards and cards, with its outputs at rest."""
    facts = {
        "kind": kind,
        "cells": list(system.cell_names),
        "inputs": list(system.inputs),
        "outputs": dict(zip(system.outputs, system.y.tolist(), strict=True)),
    }
    return facts | (_skeleton(system) if isinstance(system, BodySystem) else {})


def _skeleton(system: BodySystem) -> dict[str, Any]:
    """What a skeleton is made of, and how its joints are held at the rig's co-activation."""
    motion, s = system.motion, system.motion.skeleton
    stiffness, viscosity = motion.gains(motion.c)
    fastest_per_s, fastest = motion.fastest_per_s(motion.c)
    names = [*(j.name for j in s.joints), *(f"{f.name} on the ground" for f in s.supports)]
    ends = [f"{s.names[j.lower]} - {s.names[j.upper]}" for j in s.joints]
    ends += [s.names[f.body] for f in s.supports]
    links = [
        {"name": name, "mass_kg": link.mass_kg, "inertia_kg_m2": np.linalg.eigvalsh(J).tolist(),
         "length_m": float(np.linalg.norm(np.subtract(link.top_m, link.bottom_m)))}
        for name, link, J in zip(s.names, s.links, s.J, strict=True)
    ]  # fmt: skip
    return {
        "mass_kg": float(s.mass_kg.sum()),
        "modules": [m.name for m in s.modules],
        "dimensions": dict(zip(("free bodies", "modules", "projected"), s.dimensions, strict=True)),
        "links": links,
        "joints": [
            {"name": name, "between": between, "stiffness_N_m_per_rad": float(k),
             "viscosity_N_m_s_per_rad": float(d)}
            for name, between, k, d in zip(names, ends, stiffness, viscosity, strict=True)
        ],
        "fastest_per_s": fastest_per_s,
        "fastest_joint": fastest,
    }  # fmt: skip


def _skeleton_lines(facts: dict[str, Any]) -> list[str]:
    sizes = ", ".join(f"{n} ({what})" for what, n in facts["dimensions"].items())
    width = max(len(link["name"]) for link in facts["links"])
    lines = [
        f"{len(facts['modules'])} modules of three links, {facts['mass_kg']:.4g} kg: "
        + ", ".join(facts["modules"]),
        f"coordinates: {sizes}",
        "",
        f"{'links':{width + 2}}{'kg':>10}{'m':>9}   principal moments kg m^2",
    ]
    for link in facts["links"]:
        moments = "  ".join(f"{moment:.3g}" for moment in link["inertia_kg_m2"])
        lines.append(
            f"  {link['name']:{width}}{link['mass_kg']:>10.4g}{link['length_m']:>9.4f}   {moments}"
        )
    across = max(len(joint["between"]) for joint in facts["joints"])
    wide = max(len(joint["name"]) for joint in facts["joints"])
    lines += ["", f"{'joints':{wide + across + 5}}{'N m/rad':>9}{'N m s/rad':>11}"]
    lines += [
        f"  {joint['name']:{wide}}  {joint['between']:{across}}"
        f" {joint['stiffness_N_m_per_rad']:>9.4g}{joint['viscosity_N_m_s_per_rad']:>11.4g}"
        for joint in facts["joints"]
    ]
    return [*lines, "", f"fastest: {facts['fastest_per_s']:.4g} 1/s at {facts['fastest_joint']}"]


def system_as_text(facts: dict[str, Any]) -> str:
    """As lines for people: what can be driven, what can be measured."""
    lines = [f"{facts['kind']}: {len(facts['cells'])} cells, {len(facts['inputs'])} inputs, "
             f"{len(facts['outputs'])} outputs"]  # fmt: skip
    if "links" in facts:
        lines += _skeleton_lines(facts)
    if facts["cells"]:
        lines += ["", "cells, for the gates of boards", *(f"  {name}" for name in facts["cells"])]
    if facts["inputs"]:
        lines += ["", "inputs, for a card's outputs to drive"]
        lines += [f"  {name}" for name in facts["inputs"]]
    width = max(map(len, facts["outputs"]))
    lines += ["", f"{'outputs, for channels to measure':{width + 2}}  at rest"]
    lines += [f"  {name:{width}}  {value:.6g}" for name, value in facts["outputs"].items()]
    return "\n".join(lines)


def describe_reduced(reduced: Reduced, outputs: list[str]) -> dict[str, Any]:
    """Order, bound and Hankel singular values of a balanced reduction."""
    return {
        "order": len(reduced.A),
        "outputs": outputs,
        "error_bound": reduced.error_bound,
        "hankel_singular_values": reduced.hankel_singular_values.tolist(),
    }


def export(model: CellArray, path: Path, reduced: Reduced | None = None) -> None:
    """Write A, B, C, D and the lists `states`, `inputs`, `outputs` as .npz or .mat.

    A reduced model keeps the inputs and the forces; its states are r1, r2, ...

    Raises
    ------
    ConfigError
        Another ending, or a file that cannot be written.
    """
    source = model if reduced is None else reduced
    content = {"A": source.A, "B": source.B, "C": source.C, "D": source.D}
    names = {"states": model.states, "inputs": model.inputs, "outputs": model.outputs}
    if reduced is not None:
        names["states"] = [f"r{i}" for i in range(1, len(reduced.A) + 1)]
        names["outputs"] = [n for n in model.outputs if n.endswith(("left_N", "right_N"))]
    try:
        if path.suffix == ".npz":
            texts = {key: np.array(value) for key, value in names.items()}
            np.savez(path, allow_pickle=False, **content, **texts)
        elif path.suffix == ".mat":
            cells = {key: np.array(value, dtype=object) for key, value in names.items()}
            scipy.io.savemat(path, {**content, **cells}, oned_as="column")
        else:
            raise ConfigError(f"{path}: unknown ending '{path.suffix}': choose .npz or .mat")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written ({error.strerror})") from None


def as_text(facts: dict[str, Any]) -> str:
    """The figures as a page of plain text."""
    lines = [
        f"order {facts['order']}: {facts['n_cells']} cells, {facts['n_inputs']} inputs, "
        f"{facts['n_outputs']} outputs"
    ]
    for group in facts["floating"]:
        lines.append(f"floating, held by no live cell: {', '.join(group)}")
    if "poles" in facts:
        stable = "stable" if facts["stable"] else "NOT stable"
        lines.append(
            f"{stable}; {facts['uncontrollable_states']} states that the inputs cannot move, "
            f"{facts['unobservable_states']} that the outputs do not show"
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
        if len(statics["shares"]) <= SHARES_SHOWN_MAX:
            shares = " ".join(f"{share:.4f}" for share in statics["shares"])
            lines.append(f"  each cell's share, N/N  {shares}")
        if "n_force_levels" in statics:
            lines.append(
                f"  force levels            {statics['n_force_levels']}, "
                f"steps {statics['smallest_step_N']:.4g} to {statics['largest_step_N']:.4g} N"
            )
    if "reduction" in facts:
        r = facts["reduction"]
        values = " ".join(
            f"{value:.3g}" for value in r["hankel_singular_values"][:SHARES_SHOWN_MAX]
        )
        lines += ["", f"reduced to order {r['order']}, from cells to {', '.join(r['outputs'])}"]
        lines.append(f"  largest gain error      {r['error_bound']:.4g} N/N at any frequency")
        lines.append(f"  Hankel singular values  {values}")
    for name, x_m in facts["free_points_m"].items():
        lines += ["", f"{name} rests at {1e3 * x_m:.6g} mm with all cells on"]
    return "\n".join(lines)
