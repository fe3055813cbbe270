"""`hil model`: cells, inputs and outputs of a model, and the description of its system."""

from collections.abc import Sequence
from pathlib import Path

from hil.config.values import Figures
from hil.errors import ConfigError, ModelError
from hil.experiment.kind import Description, ModelAsked
from hil.experiment.load import load_model, load_rig
from hil.experiment.registry import loaded


def described(
    path: Path,
    sets: Sequence[str] = (),
    order: int | None = None,
    out: Path | None = None,
    fmi: int = 3,
    with_boards: bool = False,
) -> tuple[dict[str, object], str]:
    """Describe the model of a file, as facts and as text.

    Parameters
    ----------
    order : order of a model reduction; only for arrays of cells
    out : file for the matrices or for an FMU; only for arrays of cells
    fmi : major version of the FMU's interface
    with_boards : whether the FMU has the firmware of the rig's boards

    Raises
    ------
    ConfigError
        The file is invalid, or its model does not support `order` or `out`.
    """
    file = load_model(path, sets)
    kind, table = file.kind, file.tables.model
    model = file.models[0] if order is None and out is None else file.model
    boards = load_rig(path, sets).boards if with_boards else {}
    if with_boards and not boards:
        raise ConfigError(
            f"{path}: --board: the rig has no driver board: leave --board out, or add "
            '[devices.board] with kind = "cell_board"'
        )
    asked = ModelAsked(model, kind.activation(table), file.period_s, order, out, fmi, boards)
    description = Description({}, [])
    if kind.description is not None:
        try:
            description = loaded(kind.description)(asked)
        except ModelError as error:
            raise ConfigError(f"{path}: {error}") from None
    if description.whole:
        return description.facts, "\n".join(description.lines)
    facts = {
        "kind": table.kind,
        "cells": list(model.cell_names),
        "inputs": list(model.inputs),
        "outputs": dict(zip(model.outputs, file.system().y.tolist(), strict=True)),
    } | description.facts
    return facts, _as_text(facts, description.lines)


def _as_text(facts: Figures, more: Sequence[str]) -> str:
    """The facts as lines of text."""
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
