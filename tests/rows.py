"""Rows for tests of what reads or writes them without a rig."""

from hil.devices.board import protocol
from hil.devices.board.driver import LINK_TROUBLES
from hil.devices.supply.driver import FLAGS
from hil.loop.channels import DUTY, DUTY_REPORTED, Channel, RigLayout
from hil.loop.frame import Column, Frame

BOARD_FAULTS = tuple(sorted(protocol.FAULTS, key=lambda name: protocol.FAULTS[name]))


def row_of(layout, *columns):
    """A row with these columns and whatever else a rig of this layout has."""
    wanted = [Column(c.column("measured"), c.units, "measured", "") for c in layout.channels]
    wanted += [Column(name, "1", "commanded", "") for name in layout.outputs]
    wanted += [Column(f"{name}_age_s", "s", "timing", "") for name in layout.devices]
    flags = {
        "valid": (*(c.name for c in layout.channels), *layout.boards) or ("nothing",),
        **{f"{name}_fault": BOARD_FAULTS for name in layout.boards},
        **{f"{name}_link": LINK_TROUBLES for name in layout.boards},
        **{f"{name}_fault": ("estop_open", "x_at_rail") for name in layout.cards},
        **{f"{name}_fault": FLAGS for name in layout.supplies},
    }
    wanted += [Column(f"{name}_bits", "1", "fault", "", flags=of) for name, of in flags.items()]
    cells = ("cells_commanded", "cells_reported") if layout.n_cells else ()
    cells += ("cells_open",) if layout.isolates else ()
    wanted += [Column(name, "1", "state", "", n_cells=layout.n_cells) for name in cells]
    wanted += [
        Column(name, "1", "state", "", n_cells=layout.n_cells, fractions=True)
        for name in (DUTY, DUTY_REPORTED)
        if layout.modulates
    ]
    there = {column.name for column in columns}
    return Frame([*columns, *(column for column in wanted if column.name not in there)])


class Seen:
    """The readings of a rig, with the columns of its devices by name."""

    def __init__(self, frame, readings):
        self._frame, self._readings = frame, readings

    def __getattr__(self, name):
        return getattr(self._readings, name)

    def bits(self, column):
        return int(self._frame.bits[self._frame.bit_index(column)])

    def value(self, column):
        return float(self._frame.values[self._frame.index(column)])


class BoundGuard:
    """A guard on a row of its own: forces, devices, boards and supplies by number."""

    def __init__(
        self, guard, channels=0, devices=(), boards=(), supplies=(), n_cells=0, n_outputs=0,
        model=False, modulates=False,
    ):  # fmt: skip
        layout = RigLayout(
            channels=tuple(Channel(f"c{i}", "_N", "further") for i in range(channels)),
            outputs=tuple(f"o{i}" for i in range(n_outputs)),
            boards=tuple(boards),
            devices=tuple(devices),
            n_cells=n_cells,
            others=tuple(d for d in devices if d not in boards),
            supplies=tuple(supplies),
            modulates=modulates,
        )
        self.models = [c.column("model") for c in layout.channels] if model else []
        self.frame = row_of(layout, *(Column(name, "N", "model", "") for name in self.models))
        self.readings, self.commands = layout.bind(self.frame)
        self.every = (1 << self.readings.n_sources) - 1
        self.readings.mark_valid(self.every, self.every)
        self.readings.measured[:] = 0.0
        guard.bind(self.frame, layout, self.readings, self.commands)

    def set(self, name, value):
        self.frame.values[self.frame.index(name)] = value

    def set_bits(self, name, bits):
        self.frame.bits[self.frame.bit_index(name)] = bits

    def set_valid(self, valid):
        self.readings.mark_valid(self.every, sum(1 << i for i, there in enumerate(valid) if there))
