"""The array of 100 cells: the files of `fourteen` with another array, boards and larger forces.

Its plants are not commissioned: a step of a fit of 300 values would simulate two minutes 300 times.
"""

import math
import tomllib
from pathlib import Path
from typing import Any

import tomli_w

from hil.platform.whole_files import write_whole

FINGERPRINT = "-:25 | &1FFFFFF:75 | &7FFFFFFFFFFFFFFFFFF:-1"
N_CELLS, A_BOARD = 100, 3
FORCES = 9.375  # full force of 41.8 N over that of fourteen cells, 4.46 N
STEP_N = 0.28  # the largest between two force levels
WEAK, STRONG = range(26, 101), range(1, 26)  # cells by their share of the force


def written(fourteen: Path, folder: Path) -> Path:
    """Write rig.toml, run.toml and controllers.toml into the folder, and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    made = {name: tomllib.loads((fourteen / f"{name}.toml").read_text(encoding="utf-8"))
            for name in ("rig", "run", "controllers")}  # fmt: skip
    _larger(made["rig"])
    _of_more_cells(made["controllers"])
    for name, tables in made.items():
        write_whole(folder / f"{name}.toml", tomli_w.dumps(tables))
    return folder


def _larger(rig: dict[str, Any]) -> None:
    rig["model"]["arrays"]["muscle"]["fingerprint"] = FINGERPRINT
    devices = rig["devices"]
    board = devices["board_a"]
    for name in [name for name in devices if name.startswith("board_")]:
        del devices[name]
    for i, first in enumerate(range(1, N_CELLS + 1, A_BOARD)):
        cells = [f"muscle.{n}" for n in range(first, min(first + A_BOARD, N_CELLS + 1))]
        limits = board["limits"] | {"open_cells_max": len(cells) - 1}
        changed = {"port": f"usb:HIL-{101 + i:04d}", "cells": cells, "limits": limits}
        devices[f"board_{i + 1}"] = board | changed
    force = devices["daq"]["channels"]["force"]
    force["newtons_per_V"] *= 10.0
    force["sim"]["noise_rms_V"] /= 10.0
    devices["supply"] |= {"current_A": 18.5, "current_max_A": 25.0}
    rig["guard"]["force_max_N"] *= 10.0


def _of_more_cells(tables: dict[str, Any]) -> None:
    del tables["commission"]
    tables["campaign"] |= {"name": "controllers of a hundred cells", "seed": N_CELLS}
    weak, strong = list(WEAK), list(STRONG)
    levels = tables["factors"]["controller"]["levels"]
    levels["size_principle"]["controller"]["groups"] = [weak[:25], weak[25:50], weak[50:], strong]
    for level in tables["factors"]["set_point"]["levels"].values():
        reference = level["reference"]
        for key in [key for key in reference if key.endswith("_N")]:
            of = reference[key]
            scaled = [FORCES * one for one in of] if isinstance(of, list) else FORCES * of
            reference[key] = scaled
    tune = tables["tune"]
    tune["cost"] = tune["cost"].replace("/ 4.46", f"/ {4.46 * FORCES:.4g}")
    [dead_zone] = [p for p in tune["parameters"] if p["key"] == "controller.dead_zone_N"]
    dead_zone |= {"low": 0.5 * STEP_N, "high": math.ceil(10.0 * STEP_N) / 10.0}
