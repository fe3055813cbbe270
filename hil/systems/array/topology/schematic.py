"""Pictures of the arrays of a configuration."""

import numpy as np

from hil.config.values import TomlTable
from hil.experiment.figure import ArrayPicture, Figure
from hil.systems.array.model.fingerprint import parse
from hil.systems.array.topology import picture as topology_picture


def figure(settings: TomlTable) -> Figure:
    """Return the arrays with masses that move as the model computes."""
    return Figure(_pictures(settings), moving=True)


def still(settings: TomlTable) -> Figure:
    """Return arrays that do not move, as parts of another figure."""
    return Figure(_pictures(settings))


def _pictures(settings: TomlTable) -> tuple[ArrayPicture, ...]:
    model = settings["model"]
    pictures, first, drawn = [], 0, set[str]()
    for name, table in model.get("arrays", {}).items():
        topology = parse(table["fingerprint"])
        x, y = topology_picture.positions(topology)
        inner = [f"{name}.x{m}_m" for m in range(2, topology.n_masses)]
        ends = (str(table["from"]), str(table["to"]))
        free = [model["points"][end]["support"] == "free" for end in ends]
        moves = [f"{end}.x_m" if is_free else "" for end, is_free in zip(ends, free, strict=True)]
        sprung = [end not in drawn and model["points"][end].get("spring_N_per_m", 0.0) > 0.0
                  for end in ends]  # fmt: skip
        drawn.update(ends)
        pictures.append(
            ArrayPicture(
                name=name,
                ends=ends,
                left=topology.left,
                right=topology.right,
                x=(x - x[0]) / (x[-1] - x[0]),
                y=y / topology_picture.HEIGHT,
                moves=(moves[0], *inner, moves[1]),
                sprung=(sprung[0], sprung[1]),
                cells=first + np.arange(topology.n_cells),
                dead=frozenset(n - 1 for n in table.get("dead_cells", ())),
                broken=frozenset(n - 1 for n in table.get("broken_cells", ())),
            )
        )
        first += topology.n_cells
    return tuple(pictures)
