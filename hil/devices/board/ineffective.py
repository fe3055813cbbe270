"""Entries of a board's table of limits that leave a protection without effect, or that it refuses.

The same rules hold for the table of a rig, for one that is stored with `hil board limits`, and for
the one that a board has. What also depends on wires and supply is in
`hil.experiment.board_limits`.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import ceil

from hil.devices.board.protocol import SENSE_EVERY_MIN_MS
from hil.mechanics.sma.board_heat import SENSOR_COUNTS

COUNTS = 1024  # counts of a board's A/D converter
ERROR_COUNTS = 2  # of the ATmega328P's converter: absolute accuracy, data sheet
ROOM_C = (15.0, 30.0)  # room of a board without a rig, as `ambient_range_C` has it by default


def without_effect(
    table: Mapping[str, int], *, measures: bool = True, room_C: Sequence[float] = ROOM_C
) -> Iterator[tuple[str, str]]:
    """Yield (limit, text) for each entry that disables a protection, or that the board refuses.

    Parameters
    ----------
    table : the complete table
    measures : whether the board's build measures currents and temperatures
    room_C : the room at its coldest and at its warmest
    """
    most_mA, full_mA = table["current_max_mA"], table["current_full_scale_mA"]
    if table["current_on_min_mA"] >= most_mA:
        yield (
            "current_on_min_mA",
            f"every cell that is on would trip: choose less than current_max_mA = {most_mA}",
        )
    if most_mA >= full_mA * SENSOR_COUNTS // COUNTS:
        yield (
            "current_full_scale_mA",
            f"the board cannot measure more, so current_max_mA = {most_mA} would never trip: "
            "give the full scale of its shunt and amplifier, or lower current_max_mA",
        )
    if 0 < table["sense_every_ms"] < SENSE_EVERY_MIN_MS:
        yield "sense_every_ms", f"the board refuses it: choose 0, or at least {SENSE_EVERY_MIN_MS}"
    lowest, highest = table["temperature_counts_min"], table["temperature_counts_max"]
    if lowest >= highest:
        yield (
            "temperature_counts_min",
            f"no temperature would be valid: choose less than temperature_counts_max = {highest}",
        )
    elif measures:
        yield from _currents(table)
        yield from _temperatures(table, room_C)


def _currents(table: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    on_mA, off_mA = table["current_on_min_mA"], table["current_off_max_mA"]
    least_mA = max(1, ceil(ERROR_COUNTS * table["current_full_scale_mA"] / COUNTS))
    if on_mA < least_mA:
        yield (
            "current_on_min_mA",
            f"a cell without a current can read {least_mA - 1} mA, so a broken wire would never "
            f"trip: choose at least {least_mA}",
        )
    elif off_mA > on_mA:
        yield (
            "current_off_max_mA",
            "a transistor that stays on could go unnoticed at a current that counts as flowing "
            f"while a cell is on: choose at most current_on_min_mA = {on_mA}",
        )


def _temperatures(table: Mapping[str, int], room_C: Sequence[float]) -> Iterator[tuple[str, str]]:
    lowest, highest = table["temperature_counts_min"], table["temperature_counts_max"]
    zero_cC, full_cC = table["temperature_zero_cC"], table["temperature_full_scale_cC"]
    low_C, high_C = (1e-2 * (zero_cC + full_cC * n / COUNTS) for n in (lowest, highest))
    most_C = 1e-2 * table["temperature_max_cC"]
    if lowest <= ERROR_COUNTS:
        yield (
            "temperature_counts_min",
            f"a sensor shorted to ground can read {ERROR_COUNTS} counts, and would never trip: "
            f"choose at least {ERROR_COUNTS + 1}",
        )
    if highest >= COUNTS - 1 - ERROR_COUNTS:
        yield (
            "temperature_counts_max",
            f"a sensor that is open can read {COUNTS - 1 - ERROR_COUNTS} counts, and would never "
            f"trip: choose at most {COUNTS - 2 - ERROR_COUNTS}",
        )
    if high_C <= most_C or low_C >= room_C[0]:
        yield (
            "temperature_full_scale_cC",
            f"valid readings go from {low_C:.4g} to {high_C:.4g} degC and do not contain the room "
            f"at {room_C[0]:g} degC and temperature_max_cC, {most_C:g} degC, which would never "
            "trip: give the sensor's scale, and temperature_zero_cC",
        )
    elif most_C < room_C[1]:
        yield (
            "temperature_max_cC",
            f"{most_C:g} degC is below a room of {room_C[1]:g} degC, in which the board trips "
            "without any heat: give more",
        )
