"""Resistance as a board's measurement: range of every cell, heat of the pulses, resolution."""

from collections.abc import Iterator, Mapping, Sequence
from math import inf

from hil.devices.board.resistance import Chain
from hil.devices.board.scan import SENSE_PULSE_S
from hil.devices.tables import BoardResistanceTable
from hil.mechanics.sma.limits import COLDEST_C, CellWire

WIDE = 2.0  # largest ratio of a given limit to the wire's own
RISE_MAX_K = 1.0  # assumed: by which measuring may warm a wire that is off


def limits_Ohm(
    names: Sequence[str], table: BoardResistanceTable, cells: Sequence[CellWire]
) -> list[tuple[float, float]]:
    """The least and greatest resistance of every cell: as given, or of its wire."""
    known = {cell.cell: _range_Ohm(cell, table.tolerance) for cell in cells}
    ranges = []
    for name in names:
        low, high = known.get(name, (0.0, inf))
        low = low if table.min_Ohm is None else table.min_Ohm
        ranges.append((low, high if table.max_Ohm is None else table.max_Ohm))
    return ranges


def _range_Ohm(cell: CellWire, tolerance: float) -> tuple[float, float]:
    low, high = cell.wire.extremes_Ohm_per_m(COLDEST_C, cell.temperature_max_C)
    return (1.0 - tolerance) * cell.wire.cell_m * low, (1.0 + tolerance) * cell.wire.cell_m * high


def too_wide(
    key: str, table: BoardResistanceTable, cells: Sequence[CellWire]
) -> Iterator[tuple[str, str]]:
    """Yield (key, text) for a given range that half a wire, or twice a wire, would be within."""
    for cell in cells:
        low, high = _range_Ohm(cell, table.tolerance)
        if table.min_Ohm is not None and table.min_Ohm < low / WIDE:
            yield (
                f"{key}.resistance.min_Ohm = {table.min_Ohm:g}",
                f"'{cell.cell}' has at least {low:.4g} Ohm, and a short of half of it would not be "
                f"noticed: give at least {low / WIDE:.4g}",
            )
            return
        if table.max_Ohm is not None and table.max_Ohm > WIDE * high:
            yield (
                f"{key}.resistance.max_Ohm = {table.max_Ohm:g}",
                f"'{cell.cell}' has at most {high:.4g} Ohm, and twice that would not be noticed: "
                f"give at most {WIDE * high:.4g}",
            )
            return


def warms_K(cell: CellWire, supply_V: float, every_s: float) -> float:
    """How much measuring this often warms a wire that is off, in the least cooling.

    The mean power of the pulses over the loss, dT = I^2 r t_pulse / (t_every G).
    """
    heating = cell.heating_K_per_A2s * cell.time_constant_s
    return heating * cell.ordinary_A(supply_V) ** 2 * SENSE_PULSE_S / every_s


def faults(
    key: str, cells: Sequence[CellWire], supply_V: float, limits: Mapping[str, int]
) -> Iterator[tuple[str, str]]:
    """Yield (key, text) if measuring would warm a wire, or cannot know the supply."""
    every_ms = limits["sense_every_ms"]
    if not every_ms or not cells:
        return
    key = f"{key}.limits.sense_every_ms = {every_ms}"
    if len({cell.wire.cell_V for cell in cells}) > 1:
        yield (
            key,
            f"the supply_V of '{cells[0].cell}' and of other cells of the board differ, and a "
            "board measures one supply: give all cells the same",
        )
    most = max(cells, key=lambda cell: warms_K(cell, supply_V, 1.0))
    rise_K = warms_K(most, supply_V, 1e-3 * every_ms)
    if rise_K > RISE_MAX_K:
        yield (
            key,
            f"measuring would keep the wire of '{most.cell}' {rise_K:.2g} K warm: give at least "
            f"{every_ms * rise_K / RISE_MAX_K:.0f}",
        )


def resolution_of_stroke(cell: CellWire, supply_V: float, limits: Mapping[str, int]) -> float:
    """Standard deviation of a position by the converter's resolution, over the stroke."""
    ends = cell.wire.ends_Ohm
    change = abs(ends[1] - ends[0])
    if change == 0.0:
        return inf
    chain = Chain.of(limits, 0.0, 0.0)
    return chain.resolution(supply_V / max(ends), supply_V, limits) * max(ends) / change


def facts(
    board: str, cells: Sequence[CellWire], supply_V: float, limits: Mapping[str, int]
) -> Iterator[str]:
    """Yield what a reading of a board that measures resistance resolves."""
    if not limits["sense_every_ms"] or not cells:
        return
    error = max(resolution_of_stroke(cell, supply_V, limits) for cell in cells)
    yield (
        f"'{board}' measures resistance: a reading gives a position to {100 * error:.2g} % of the "
        "stroke"
    )
