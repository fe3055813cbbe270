"""`hil topologies`: figures of topologies as a table, a CSV file and a page with pictures."""

import csv
import sys
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path

from hil.errors import writing
from hil.pages.html import rendered
from hil.platform.whole_files import whole, write_whole
from hil.systems.array.model import fingerprint
from hil.systems.array.topology.figures import LikeCells, TopologyFigures
from hil.systems.array.topology.picture import svg

RANKS = {
    "n_masses": "fewest first",
    "blocked_force_N": "strongest first",
    "stroke_m": "longest first",
    "n_force_levels": "most first",
    "smallest_step_N": "finest first",
    "variance_N2": "steadiest first",
    "robustness": "best worst case first",
}
"""Figures to rank by, with the order in words."""
_WORST = ("broken_worst", "two_broken_worst", "dead_worst", "two_dead_worst", "robustness")
"""Robustness ranks by the worst single break, then by the worst of the others, then by the mean."""
_SMALL_FIRST = ("n_masses", "smallest_step_N", "variance_N2")
TABLE_ROWS_MAX = 500
PICTURES_MAX = 3000
_PIPED_WIDTH = 240

_COLUMNS = (
    ("masses", "n_masses", 1.0, "d"),
    ("blocked force [N]", "blocked_force_N", 1.0, ".4f"),
    ("stroke [mm]", "stroke_m", 1e3, ".3f"),
    ("force levels", "n_force_levels", 1.0, "d"),
    ("smallest step [mN]", "smallest_step_N", 1e3, ".4g"),
    ("std. dev. [mN]", "variance_N2", 1.0, ""),
    ("robustness [%]", "robustness", 100.0, ".1f"),
    ("worst break [%]", "broken_worst", 100.0, ".1f"),
    ("two breaks [%]", "two_broken_worst", 100.0, ".1f"),
    ("worst dead [%]", "dead_worst", 100.0, ".1f"),
    ("two dead [%]", "two_dead_worst", 100.0, ".1f"),
)


def ranked(rows: Sequence[TopologyFigures], key: str | None) -> list[TopologyFigures]:
    """Return rows ranked by one of RANKS; rows equal to nine digits keep their order."""
    if key is None:
        return list(rows)
    sign = 1.0 if key in _SMALL_FIRST else -1.0
    keys = _WORST if key == "robustness" else (key,)
    return sorted(rows, key=lambda row: [round(sign * getattr(row, k), 9) if k in _WORST
                                         else float(f"{sign * getattr(row, k):.8e}")
                                         for k in keys])  # fmt: skip


def cells_text(row: TopologyFigures) -> list[str]:
    """Return the figures of a row as displayed, in the order of the columns."""
    texts = []
    for _, key, scale, form in _COLUMNS:
        if key == "variance_N2":
            texts.append(f"{1e3 * row.variance_N2**0.5:.4g}")
        else:
            value = getattr(row, key)
            texts.append(format(value if form == "d" else scale * value, form))
    return texts


def headline(rows: Sequence[TopologyFigures], n_cells: int, mirror: bool) -> str:
    """Return the number of topologies in words."""
    noun = "topology" if len(rows) == 1 else "topologies"
    cells = "1 cell" if n_cells == 1 else f"{n_cells} cells"
    return f"{len(rows)} {noun} of {cells}" + (", mirror images once" if mirror else "")


def print_table(
    rows: Sequence[TopologyFigures], n_cells: int, *, mirror: bool, rank: str | None
) -> None:
    """Print the first TABLE_ROWS_MAX rows."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(width=None if sys.stdout.isatty() else _PIPED_WIDTH, highlight=False)
    by = "" if rank is None else f", by {rank}, {RANKS[rank]}"
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("fingerprint", overflow="fold")
    for title, *_ in _COLUMNS:
        table.add_column(Text(title), justify="right")
    for row in rows[:TABLE_ROWS_MAX]:
        table.add_row(Text(row.fingerprint), *cells_text(row))
    console.print(Text(headline(rows, n_cells, mirror) + by))
    console.print(table)
    if len(rows) > TABLE_ROWS_MAX:
        more = len(rows) - TABLE_ROWS_MAX
        console.print(f"{more} more: --json prints and --out DIR writes them all")


def write(
    rows: Sequence[TopologyFigures],
    folder: Path,
    n_cells: int,
    cells: LikeCells,
    *,
    mirror: bool,
    rank: str | None,
) -> tuple[Path, Path]:
    """Write `topologies.csv` (SI, all rows) and `topologies.html`; return their paths.

    Raises
    ------
    ConfigError
        The files cannot be written.
    """
    table, page = folder / "topologies.csv", folder / "topologies.html"
    with writing(f"--out {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
        with whole(table) as part, part.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, [f.name for f in fields(TopologyFigures)])
            writer.writeheader()
            writer.writerows(asdict(row) for row in rows)
        write_whole(page, _rendered(rows, n_cells, cells, mirror, rank))
    return table, page


_SHORT = ("masses", "force", "stroke", "levels", "step", "std. dev.", "robustness", "worst break",
          "two breaks", "worst dead", "two dead")  # fmt: skip
_UNITS = ("", " N", " mm", "", " mN", " mN", " %", " %", " %", " %", " %")


def _rendered(
    rows: Sequence[TopologyFigures],
    n_cells: int,
    cells: LikeCells,
    mirror: bool,
    rank: str | None,
) -> str:
    cards = []
    for row in rows[:PICTURES_MAX]:
        texts = [f"{text}{unit}" for text, unit in zip(cells_text(row), _UNITS, strict=True)]
        marked = [key == rank for _, key, *_ in _COLUMNS]
        cards.append(
            {
                "svg": svg(fingerprint.parse(row.fingerprint)),
                "fingerprint": row.fingerprint,
                "rows": list(zip(_SHORT, texts, marked, strict=True)),
            }
        )
    return rendered(
        "topologies.html",
        title=headline(rows, n_cells, mirror),
        order="In the order of generation" if rank is None else f"By {rank}: {RANKS[rank]}",
        K=f"{cells.cell.static[0]:.6g}",
        pull=f"{cells.pull_N:.6g}",
        force=f"{cells.force_on_N:g}",
        cards=cards,
        left_out=len(rows) - len(cards),
    )
