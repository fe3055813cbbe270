"""Whether a rig is closed through its instruments alone.

After every reading the plant's state is overwritten, and put back before the outputs act on it:
not a single command may come out differently.
"""

from dataclasses import replace

from hil.loop import loop
from hil.loop.clock import VirtualClock
from hil.runs import assembly
from hil.runs.plan import Plan


def commands(config, n_ticks, spoil=None, seed=0):
    """What every tick commands: cells, chances of a broadcast, outputs.

    Parameters
    ----------
    spoil : function of the plant's system, optional
        Overwrites its state and returns a function that puts it back.
    """
    pipeline = assembly.build(Plan(config, seed=seed))
    seen = []

    class Sink(assembly.NoSink):
        def push(self):
            c = pipeline.rig.commands
            draw = c.broadcast.p_on, c.broadcast.q_off
            seen.append((c.cells.tolist(), draw, c.outputs.tolist()))
            return True

    parts = pipeline.context(VirtualClock(), Sink())
    system = next(d._plant for d in pipeline.rig._devices if hasattr(d, "_plant"))._system
    read, write, undo = parts.rig.read, parts.rig.write, []

    def read_and_spoil(t_s):
        read(t_s)
        if spoil is not None:
            undo.append(spoil(system))

    def restore_and_write(t_s):
        while undo:
            undo.pop()()
        write(t_s)

    parts.rig.read, parts.rig.write = read_and_spoil, restore_and_write
    parts.rig.open()
    parts.rig.self_test(print)
    assert loop.run(replace(parts, n_ticks=n_ticks)) == "complete"
    assert len(seen) == n_ticks
    return seen


def overwriting(*arrays_of, value=1e3):
    """A `spoil` that fills these arrays of the system, each given by a function of it."""

    def spoil(system):
        arrays = [array_of(system) for array_of in arrays_of]
        kept = [array.copy() for array in arrays]
        for array in arrays:
            array[:] = value

        def undo():
            for array, values in zip(arrays, kept, strict=True):
                array[:] = values

        return undo

    return spoil
