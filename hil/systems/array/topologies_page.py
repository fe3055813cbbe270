"""`hil topologies`: figures of topologies as a table, a CSV file and a page with pictures."""

import csv
import sys
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path

from hil.errors import writing
from hil.pages.html import rendered
from hil.systems.array import fingerprint
from hil.systems.array.topology_figures import LikeCells, TopologyFigures
from hil.systems.array.topology_picture import svg

RANKS = {
    "n_masses": "fewest first",
    "blocked_force_N": "strongest first",
    "stroke_m": "longest first",
    "n_force_levels": "most first",
    "smallest_step_N": "finest first",
    "variance_N2": "steadiest first",
    "robustness": "most robust first",
}
"""Figures to rank by, with the order in words."""
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
)


def ranked(rows: Sequence[TopologyFigures], key: str | None) -> list[TopologyFigures]:
    """Return rows ranked by one of RANKS; rows equal to nine digits keep their order."""
    if key is None:
        return list(rows)
    sign = 1.0 if key in _SMALL_FIRST else -1.0
    return sorted(rows, key=lambda row: float(f"{sign * getattr(row, key):.8e}"))


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
        with table.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, [f.name for f in fields(TopologyFigures)])
            writer.writeheader()
            writer.writerows(asdict(row) for row in rows)
        page.write_text(_rendered(rows, n_cells, cells, mirror, rank), encoding="utf-8")
    return table, page


_PAGE = """{% extends "page" %}
{% block style %}
 body { max-width: 84rem; } .sub { margin-bottom: 0; }
 dl.what { display: grid; grid-template-columns: max-content 1fr; gap: 0.1rem 1rem;
        font-size: 0.87rem; max-width: 62rem; } dl.what dt { font-weight: 600; }
 dl.what dd { margin: 0; color: #444; }
 main { display: grid; grid-template-columns: repeat(auto-fill, minmax(19.5rem, 1fr));
        gap: 1rem; margin-top: 1.5rem; }
 figure { margin: 0; border: 1px solid #ddd; border-radius: 6px; padding: 0.5rem 0.7rem 0.6rem;
        break-inside: avoid; }
 svg { width: 100%; display: block; } code { font-size: 0.78rem; overflow-wrap: anywhere; }
 figcaption { border-top: 1px solid #eee; padding-top: 0.35rem; }
 .nth { float: right; color: #999; font-size: 0.8rem; padding-left: 0.5rem; }
 .rows { display: grid; grid-template-columns: max-content 1fr max-content 1fr;
        gap: 0 0.4rem; font-size: 0.77rem; margin: 0.3rem 0 0; white-space: nowrap; }
 .rows dt { color: #666; } .rows dt:nth-of-type(even) { padding-left: 0.5rem; }
 .rows dd { margin: 0; text-align: right;
        font-variant-numeric: tabular-nums; }
 .key { font-weight: 700; color: #222 !important; }
 .cell { fill: none; stroke: #d55e00; stroke-width: 1.8; } .mass { fill: #0072b2; }
 .end { fill: #333; } .layer { stroke: #e8e8e8; stroke-width: 1; }
{% endblock %}
{% block body %}
<p class="sub">{{ order }}. One cell: K = {{ K }} N/m, pulls {{ pull }} N when blocked
(F = {{ force }} N). All values: topologies.csv.</p>
<dl class="what">
<dt>picture</dt><dd>grey: left and right end; blue: masses, one vertical line per layer;
orange: cells</dd>
<dt>blocked force</dt><dd>both ends fixed, all cells on</dd>
<dt>stroke</dt><dd>free contraction: all cells on, no force on the right end</dd>
<dt>levels, smallest step</dt><dd>distinct blocked forces over all on/off sets, including all off;
smallest distance between neighbouring levels</dd>
<dt>std. dev.</dt><dd>of the blocked force with each cell on with probability 1/2</dd>
<dt>robustness</dt><dd>fraction of the blocked force left after one cell breaks mechanically,
mean over the cells</dd>
</dl>
{% if left_out %}<p>The first {{ cards|length }} are shown; {{ left_out }} more are in
topologies.csv.</p>{% endif %}
<main>
{% for card in cards %}<figure>{{ card.svg|safe }}<figcaption><span class="nth">{{ loop.index }}
</span><code>{{ card.fingerprint }}</code><dl class="rows">
{%- for name, value, key in card.rows %}<dt{% if key %} class="key"{% endif %}>{{ name }}</dt>
<dd{% if key %} class="key"{% endif %}>{{ value }}</dd>{% endfor %}</dl></figcaption></figure>
{% endfor %}</main>
{% endblock %}
"""
_SHORT = ("masses", "force", "stroke", "levels", "step", "std. dev.", "robustness")
_UNITS = ("", " N", " mm", "", " mN", " mN", " %")


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
        _PAGE,
        title=headline(rows, n_cells, mirror),
        order="In the order of generation" if rank is None else f"By {rank}: {RANKS[rank]}",
        K=f"{cells.cell.static[0]:.6g}",
        pull=f"{cells.pull_N:.6g}",
        force=f"{cells.force_on_N:g}",
        cards=cards,
        left_out=len(rows) - len(cards),
    )
