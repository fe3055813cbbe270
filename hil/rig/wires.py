"""The wire that a table describes."""

from hil.config.table import Table
from hil.mechanics.sma.wire import SmaWire


def build_wire(table: Table) -> SmaWire:
    """The wire that a table describes; ValueError if its values are inconsistent."""
    beside = {"kind", "record", "temperature_max_C"}
    return SmaWire(**table.model_dump(exclude=beside, exclude_none=True))
