"""`hil model`: what a model offers boards and cards, and what its kind of system says of it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hil.errors import ConfigError, ModelError
from hil.experiment.kind import Description, ModelAsked
from hil.experiment.load import array_of, load_built
from hil.experiment.registry import loaded, system_kind


def described(
    path: Path, sets: Sequence[str] = (), order: int | None = None, out: Path | None = None
) -> tuple[dict[str, Any], str]:
    """The model of a file, as facts and as text.

    Parameters
    ----------
    order : of a reduction, which arrays of cells have
    out : file for the matrices, which arrays of cells have

    Raises
    ------
    ConfigError
        The file is wrong, or its model has nothing of what is asked for.
    """
    table, model = load_built(path, sets)
    if order is not None or out is not None:
        array_of(path, table, model)
    kind = system_kind(table)
    forces_on_N = np.array([a.force_on_N for a in kind.activation(table)])
    said = Description({}, [])
    if kind.description is not None:
        try:
            said = loaded(kind.description)(ModelAsked(model, forces_on_N, order, out))
        except ModelError as error:
            raise ConfigError(f"{path}: {error}") from None
    if said.whole:
        return said.facts, "\n".join(said.lines)
    facts = {
        "kind": table.kind,
        "cells": list(model.cell_names),
        "inputs": list(model.inputs),
        "outputs": dict(zip(model.outputs, model.y.tolist(), strict=True)),
    } | said.facts
    return facts, _as_text(facts, said.lines)


def _as_text(facts: dict[str, Any], more: Sequence[str]) -> str:
    """As lines for people: what can be driven, what can be measured."""
    lines = [f"{facts['kind']}: {len(facts['cells'])} cells, {len(facts['inputs'])} inputs, "
             f"{len(facts['outputs'])} outputs"]  # fmt: skip
    lines += more
    if facts["cells"]:
        lines += ["", "cells, for the gates of boards", *(f"  {name}" for name in facts["cells"])]
    if facts["inputs"]:
        lines += ["", "inputs, for a card's outputs to drive"]
        lines += [f"  {name}" for name in facts["inputs"]]
    width = max(map(len, facts["outputs"]))
    lines += ["", f"{'outputs, for channels to measure':{width + 2}}  at rest"]
    lines += [f"  {name:{width}}  {value:.6g}" for name, value in facts["outputs"].items()]
    return "\n".join(lines)
