"""SMA wires built from tables."""

from hil.config.table import Table
from hil.mechanics.sma.wire import SmaWire


def build_wire(table: Table) -> SmaWire:
    """Build the wire that a table describes.

    Raises
    ------
    ValueError
        The values are inconsistent.
    """
    not_of_wire = {"kind", "record", "temperature_max_C"}
    return SmaWire(**table.model_dump(exclude=not_of_wire, exclude_none=True))
