"""Build the driver boards of a unit from their tables: constants of `c/host.c`, and firmware."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from hil.devices.board import protocol
from hil.devices.board.bundled_firmware import shipped_hash, sources
from hil.devices.board.native import COUNTS_FULL, N_CELLS, SCAN_PERIOD_US
from hil.devices.sim.plant import AMBIENT_C, CURRENT_ON_A
from hil.devices.tables import CellBoardTable
from hil.systems.array.fmu.variables import BoardNames, Boards

Tables = Mapping[str, CellBoardTable]


def build(tables: Tables, cells: Sequence[str], wires: Sequence[str], period_s: float) -> Boards:
    """Build what a unit needs of these boards; `wires` are the cells that have one."""
    hashes = {"WIRE_HASH": protocol.WIRE_HASH, "FIRMWARE_HASH": shipped_hash()}
    limits = [list((protocol.default_limits() | one.limits).values()) for one in tables.values()]
    return Boards(
        names=_names(tables, wires),
        numbers={"LIMIT": np.array(limits, dtype=float)},
        indices=_indices(tables, list(cells), list(wires)),
        places={
            "BOARD_CELLS": N_CELLS,
            "COUNTS_FULL": COUNTS_FULL,
            "SCAN_PERIOD_US": SCAN_PERIOD_US,
            "PERIOD_US": round(1e6 * period_s),
        },
        constants={"CURRENT_ON_A": CURRENT_ON_A, "AMBIENT_C": AMBIENT_C},
        firmware=sources(),
        defines={name: f"0x{value:08x}u" for name, value in hashes.items()},
    )


def _names(tables: Tables, wires: Sequence[str]) -> list[BoardNames]:
    """What the variables of every board are named after."""
    faults = sorted(protocol.FAULTS, key=lambda fault: protocol.FAULTS[fault])
    return [
        BoardNames(
            name,
            board.cells,
            [cell for cell in board.cells if cell not in wires],
            CURRENT_ON_A,
            faults,
            {
                key: (value, (protocol.LIMITS[key].lowest, protocol.LIMITS[key].highest))
                for key, value in (protocol.default_limits() | board.limits).items()
            },
        )
        for name, board in tables.items()
    ]


def _indices(tables: Tables, cells: Sequence[str], wires: Sequence[str]) -> dict[str, np.ndarray]:
    """Which gate has which cell, and what every board does."""
    gates = [cell for board in tables.values() for cell in board.cells]
    counts = [len(board.cells) for board in tables.values()]
    indices = {
        "FIRST_GATE": [0, *np.cumsum(counts)],
        "BOARD_OF_GATE": np.repeat(np.arange(len(tables)), counts),
        "CELL_OF_GATE": [cells.index(cell) for cell in gates],
        "WIRE_OF_GATE": [wires.index(cell) if cell in wires else -1 for cell in gates],
        "GATE_OF_PLAIN": [i for i, cell in enumerate(gates) if cell not in wires],
        "HOLD_MS": [math.ceil(1e3 * board.hold_s) for board in tables.values()],
        "EVERY": [board.every for board in tables.values()],
        "MEASURES": [board.measures for board in tables.values()],
    }
    return {name: np.array(value, dtype=int) for name, value in indices.items()}
