"""`hil model`: cells, inputs and outputs of a model, and the description of its system."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hil.config.values import Figures
from hil.errors import ConfigError, ModelError
from hil.experiment.kind import Description, ModelRequest
from hil.experiment.load import load_model, load_rig
from hil.experiment.registry import loaded


@dataclass(frozen=True)
class Wanted:
    """What `hil model` makes of an array of cells besides its description.

    Attributes
    ----------
    order : order of a model reduction
    out : file for the matrices or for an FMU
    fmi : major version of the FMU's interface
    board : whether the FMU has the firmware of the rig's boards
    bode, measured : figure of the frequency response, and measured points to lay over it
    """

    order: int | None = None
    out: Path | None = None
    fmi: int = 3
    board: bool = False
    bode: Path | None = None
    measured: Path | None = None


def described(
    path: Path, sets: Sequence[str] = (), wanted: Wanted | None = None
) -> tuple[dict[str, object], str]:
    """Describe the model of a file, as facts and as text.

    Raises
    ------
    ConfigError
        The file is invalid, or its model is no array of cells and something is wanted of it.
    """
    file, w = load_model(path, sets), wanted or Wanted()
    kind, table = file.kind, file.tables.model
    plain = w.order is None and w.out is None and w.bode is None
    model = file.models[0] if plain else file.model
    boards = load_rig(path, sets).boards if w.board else {}
    if w.board and not boards:
        raise ConfigError(
            f"{path}: --board: the rig has no driver board: leave --board out, or add "
            '[devices.board] with kind = "cell_board"'
        )
    request = ModelRequest(
        model, kind.activation(table), file.period_s, w.order, w.out, w.fmi, boards, w.bode,
        w.measured,
    )  # fmt: skip
    description = Description({}, [])
    if kind.description is not None:
        try:
            description = loaded(kind.description)(request)
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
