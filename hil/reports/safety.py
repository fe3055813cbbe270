"""docs/safety.md, from the table of interlocks: `python -m hil.reports.safety > docs/safety.md`."""

from collections.abc import Iterable

from hil.devices.board import protocol
from hil.loop import interlocks, states
from hil.loop.interlocks import Interlock

_HEAD = """# Safety: the interlocks

**This is bench software, not a certified safety function.** It requires a hard-wired supply cut: an
e-stop that does not pass through any computer. [The board](reference/board.md) shows a circuit.

Limits are levels. The loop checks its limits in every tick; the board checks its limits in every
scan. A condition that lasts long enough trips: in that tick every cell goes off, every output goes
to its idle value and the enable lines of cards go low. They stay off. {reset}

"Must last" is the default; `guard.hold_s.NAME` in the rig's file sets another value. The limits are
in `[guard]` of the rig; an experiment can only tighten them.
"""


def page() -> str:
    """The page as Markdown."""
    limits = protocol.LIMITS
    return "\n".join(
        [
            _HEAD.format(reset=interlocks.RESET),
            "## In the loop\n",
            *_table(interlocks.LOOP),
            "\n## On the board, independent of the host\n",
            "The board stores a table of limits (`hil board limits`) in these units and ranges. A "
            "condition on sampled values must first last for `persistence_scans` scans of all "
            "cells; the times in [faults.md](faults.md) include this.\n",
            *_table(interlocks.BOARD),
            "\n| limit of the board | default | from | to |\n|---|---:|---:|---:|",
            *(
                f"| `{name}` | {limit.default} | {limit.lowest} | {limit.highest} |"
                for name, limit in limits.items()
            ),
            "\n**How soon the board finds a short.** The board measures the cells one after the "
            "other. Measured on the emulated chip with `persistence_scans` = 2 and one command a "
            "millisecond: after a gate goes on, a short is found within 5 ms if one cell is "
            "switched and within 10 ms if all twelve are. The longest of all trials, with "
            "switching rhythms chosen to hide a cell, was 21 ms of gate-on time "
            "(`tests/firmware/test_rhythms.py`). If the readings are older than "
            "`scan_age_max_ms`, 20 ms by default, the board trips (`scan_stale`).",
            "\nWith `open_cells_max` above 0 a broken wire need not end the run. Up to this "
            "number of open cells, found at arming or while on, the board isolates each one: it "
            "switches the cell off, keeps it off whatever is commanded, and reports it "
            "(`cells_open`). All other checks of the cell continue, in particular "
            "`current_when_off`. One open cell more trips `current_low`. "
            "`docs/decisions/0006-open-wires.md` explains why this is safe; an example is [a run "
            "with a broken wire](how-to/broken-wire.md).",
            "\n## What protects a wire\n",
            "The board's temperature sensor is at the cell's clamp. The clamp reaches a tenth of "
            "the wires' temperature rise, within half a minute. So `temperature_high` protects "
            "the mount and the surroundings, not a wire that burns within a second. The heat "
            "budget, `heat_max_cA2ms` and `heat_time_constant_ms`, and `current_max_mA` protect "
            "a wire. `hil check` reports the highest temperature of each wire under these "
            "limits, in a cold and a warm room, and refuses a rig whose board could heat a wire "
            "beyond its `temperature_max_C`. `hil board limits --from RIG.toml` computes such "
            "limits: [limits that protect the wires](how-to/wire-limits.md).",
            "\n## Elsewhere\n",
            *_table(interlocks.OTHER),
            "\n## Power\n",
            "Cells have power only while boards monitor them, and shortly before. hil switches "
            "power on in this order, for the self-test and again for the run: supply, card's "
            "watchdog, enable lines, `devices.<card>.enable_settle_s`, boards armed, first tick. "
            "At the end, and after any failure in between, the enable lines go low first and the "
            "supply is commanded off, which never blocks. Then the boards are disarmed, and the "
            "supply must confirm that it is off. Nothing is switched on for a configuration that "
            "is refused.",
            "\n## Fault injection tests\n",
            "`hil study faults` trips every row of the loop and the board with a fault at the "
            "plant, a pin, the serial link or a process, and measures the reaction time at the "
            "gates; `--set backend=emulated` does this on the emulated chip. "
            "[faults.md](faults.md) has the last results. `hil run EXPERIMENT.toml --inject "
            "FAULTS.toml` injects any of these faults into a run:\n",
            "```toml\n# faults.toml\n[[fault]]",
            'kind = "sensor_stuck"\nat_s = 1.0\nfor_s = 0.5\n```',
            "\n## States\n",
            "Each row lists the events that change the state on the left; other events have no "
            "effect. Commands are executed only in "
            f"{' and '.join(f'`{s}`' for s in states.ENERGISED)}. "
            "Before every run hil arms each board with all cells off and stops sending commands: "
            "the board must disarm itself, and its e-stop must be read as open once. A run on "
            "the bench is first rehearsed on a simulated rig.\n",
            "| state | event leads to |\n|---|---|",
            *(
                f"| `{state}` | {', '.join(f'{event} → `{to}`' for event, to in row.items())} |"
                for state, row in states.TABLE.items()
            ),
            "",
        ]
    )


def _table(rows: Iterable[Interlock]) -> list[str]:
    lines = [
        "| fault | hazard | checks | trips when | limit | must last | action | then within "
        "| where |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        limit = f"`{row.key}`" if row.key else "–"
        held = f"{row.held_s:g} s" if row.held_s else "–"
        lines.append(
            f"| `{row.name}` | {row.hazard} | {row.signal} | {row.condition} | {limit} | {held} | "
            f"{row.action} | {row.reaction} | {row.where} |"
        )
    return lines


if __name__ == "__main__":
    print(page(), end="")
