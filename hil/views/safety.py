"""docs/safety.md, from the table of interlocks: `python -m hil.views.safety > docs/safety.md`."""

from collections.abc import Iterable

from hil import interlocks, states, wire
from hil.interlocks import Interlock

_HEAD = """# Safety: the interlocks

**This is bench software, not a certified safety function.** A hard-wired cut of the supply, by an
e-stop that does not pass through any computer, is required (firmware/README.md shows one).

Limits are levels, looked at on every tick by the loop, and on every scan by the board for itself.
A condition that has lasted long enough trips: every cell goes off and every output to rest in that
very tick, the supply lines of cards go off, and all stay so. {reset}

"Must last" is the default; `guard.hold_s.NAME` in the rig's file sets another. Limits stand in
`[guard]` of the rig; an experiment may only tighten them.
"""


def page() -> str:
    """The page, in Markdown."""
    limits = wire.LIMITS
    return "\n".join(
        [
            _HEAD.format(reset=interlocks.RESET),
            "## In the loop\n",
            *_table(interlocks.LOOP),
            "\n## In the board, by itself\n",
            "Its limits are in its own table (`hil board limits`), in these units and bounds. What "
            "its converter samples must be so for `persistence_scans` scans of all cells first; "
            "[faults.md](faults.md) times both together.\n",
            *_table(interlocks.BOARD),
            "\n| limit of the board | default | from | to |\n|---|---:|---:|---:|",
            *(
                f"| `{name}` | {limit.default} | {limit.lowest} | {limit.highest} |"
                for name, limit in limits.items()
            ),
            "\nWith `open_cells_max` above 0 a broken wire need not end the run: as long as no "
            "more cells than that have been found open since arming, at arming or while on, the "
            "board switches such a cell off by itself, keeps it off whatever is commanded, and "
            "reports it (`cells_open`). Everything else goes on watching it, `current_when_off` "
            "above all. The next open cell is `current_low`. "
            "Why that is safe: `docs/decisions/0006-open-wires.md`; what it looks like: "
            "[a wire that breaks in mid-run](how-to/broken-wire.md).",
            "\n## What protects a wire\n",
            "The board's temperature sensor sits at the cell's clamp, which follows its wires by a "
            "tenth and within half a minute: `temperature_high` guards the mount and the room, and "
            "sees nothing of a wire that burns within a second. A wire is protected by its budget "
            "of heat, `heat_max_cA2ms` and `heat_time_constant_ms`, and by `current_max_mA`. "
            "`hil check` says how hot these let each wire come in a cold and a warm room, and "
            "refuses a rig whose board could take a wire beyond its `temperature_max_C`; "
            "`hil board limits --from RIG.toml` writes limits that hold: "
            "[limits that protect the wires](how-to/wire-limits.md).",
            "\n## Elsewhere\n",
            *_table(interlocks.OTHER),
            "\n## Power\n",
            "Cells have power only while boards watch over them, or are about to. It comes on in "
            "this order, for the proof before the run and again for the run: supply, card's "
            "watchdog, enable lines, `devices.<card>.enable_settle_s`, boards armed, first tick. "
            "At the end and wherever anything fails in between, the enable lines go low first and "
            "the supply is told to be off, which waits for nobody; then boards are disarmed; then "
            "the supply must say that it is off. Nothing comes on for a configuration that is "
            "refused.",
            "\n## Proof\n",
            "`hil study faults` trips every row of the loop and the board by a fault at the plant, "
            "a pin, the wire or a process, and times it at the gates; `--set backend=emulated` on "
            "the board's own chip. The last results are in [faults.md](faults.md). "
            "`hil run EXPERIMENT.toml --inject FAULTS.toml` puts any of these faults into a run:\n",
            "```toml\n# faults.toml\n[[fault]]",
            'kind = "sensor_stuck"\nat_s = 1.0\nfor_s = 0.5\n```',
            "\n## States\n",
            "From each state (left) an event leads to another; what is not here changes nothing. "
            f"Commands go through in {' and '.join(f'`{s}`' for s in states.ENERGISED)} alone. "
            "Before every run each board is armed with all cells off and left alone, must stop by "
            "itself, and its e-stop must be seen open once; a run on the bench is rehearsed on a "
            "simulated rig first.\n",
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
        "| fault | hazard | looks at | trips when | limit | must last | does | then within "
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
