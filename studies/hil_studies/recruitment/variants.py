"""Rigs and campaigns that are made from the files of another size: 100 cells, wires without stress.

Plants of 100 cells are not commissioned: a step of a fit of 300 values would simulate two minutes
300 times.
"""

import math
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import tomli_w

from hil.platform.whole_files import write_whole
from hil.systems.array.tables import ThermalTable

FINGERPRINT = "-:25 | &1FFFFFF:75 | &7FFFFFFFFFFFFFFFFFF:-1"
N_CELLS, A_BOARD = 100, 3
FORCES = 9.375  # full force of 41.8 N over that of fourteen cells, 4.46 N
STEP_N = 0.35  # the largest between two force levels, of any plant
HOT_C = 98.0  # A_f of wires without stress: below it they do not contract in full
SLOWER = 1.5  # wires without stress take up to 3.3 s
WEAK, STRONG = range(26, 101), range(1, 26)  # cells by their share of the force


CAMPAIGNS = "controllers", "cells_that_fail"  # not every size has the second one
Files = dict[str, dict[str, Any]]
"""The tables of a size's files, by name."""


def written(source: Path, folder: Path, changes: Iterable[Callable[[Files], None]]) -> Path:
    """Write the files of a size into the folder, changed, and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {name: tomllib.loads((source / f"{name}.toml").read_text(encoding="utf-8"))
             for name in ("rig", "run", "pulses", *CAMPAIGNS)
             if (source / f"{name}.toml").is_file()}  # fmt: skip
    for change in changes:
        change(files)
    for name, tables in files.items():
        write_whole(folder / f"{name}.toml", tomli_w.dumps(tables))
    return folder


def without_stress(files: Files) -> None:
    """Take wires whose branches do not move with stress, and are not drawn."""
    muscle = files["rig"]["model"]["arrays"]["muscle"]
    wire = muscle["activation"]
    muscle["activation"] = {k: v for k, v in wire.items() if k in ThermalTable.model_fields}
    muscle["activation"]["kind"] = "thermal"
    for tables in (files[name] for name in CAMPAIGNS if name in files):
        for key in [key for key in tables["spread"] if key.endswith(".middle_C")]:
            del tables["spread"][key]
        for level in tables["factors"]["controller"]["levels"].values():
            if level["controller"]["kind"] == "optimal":
                level["controller"]["horizon_s"] = 4.0
    controllers = files["controllers"]
    modulate = controllers["factors"]["controller"]["levels"]["modulate"]["controller"]
    modulate["temperature_max_C"] = 105.0
    [hottest] = [p for p in controllers["tune"]["parameters"] if p["key"].endswith("_max_C")]
    hottest |= {"low": HOT_C, "high": HOT_C + 15.0}
    files["pulses"]["experiment"]["duration_s"] *= SLOWER
    for step in files["pulses"]["controller"]["steps"]:
        step["t_s"] *= SLOWER


def of_100_cells(files: Files) -> None:
    """Take an array of 100 cells, and boards, forces and set points for it."""
    _larger(files["rig"])
    _of_more_cells(files["controllers"])
    del files["pulses"]


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
