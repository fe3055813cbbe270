"""SMA wires built from tables."""

from dataclasses import fields

from hil.config.table import Table
from hil.mechanics.sma.resistance import Resistivity
from hil.mechanics.sma.wire import SmaWire


def build_wire(table: Table) -> SmaWire:
    """Build the wire that a table describes.

    Raises
    ------
    ValueError
        The values are inconsistent.
    """
    own = {field.name for field in fields(SmaWire)}
    given = table.model_dump(include=own, exclude_none=True)
    if "resistivity" in given:
        given["resistivity"] = Resistivity(**given["resistivity"])
    return SmaWire(**given)
