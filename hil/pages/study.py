"""Figures and checks of a study, as `hil.runs.study` prints them and shows them on its page."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from hil.platform.whole_files import whole


def saved(out: Path, name: str, figure: Figure, caption: str, dpi: int = 130) -> dict[str, str]:
    """Write a figure into the folder of a study; returns its entry in the results."""
    with whole(out / name) as part:
        figure.savefig(part, dpi=dpi, format=Path(name).suffix[1:])
    return {"file": name, "caption": caption}


def as_table(title: str, columns: list[str], rows: list[list[str]]) -> dict[str, object]:
    """A table's entry in the results."""
    return {"title": title, "columns": columns, "rows": rows}


def as_markdown(
    columns: Sequence[str], rows: Sequence[Sequence[str]], aligned: Sequence[str] = ()
) -> list[str]:
    """The lines of a table in Markdown; `aligned` has what is below the name of every column."""
    lines = [columns, aligned or ["---"] * len(columns), *rows]
    return ["| " + " | ".join(c.replace("|", "\\|") for c in row) + " |" for row in lines]


def check(
    what: str,
    value: float,
    expected: str,
    unit: str = "",
    *,
    tolerance: float = 0.0,
    agrees: bool | None = None,
) -> dict[str, object]:
    """Compare a value with a printed one; returns its entry in the results.

    By default it agrees if it rounds to every printed digit, or is within the tolerance. The
    difference is value minus print; None if `expected` is a bound.
    """
    try:
        difference = value - float(expected)
    except ValueError:
        difference = None
    if agrees is None:
        rounds = round(value, len(expected.partition(".")[2])) == float(expected)
        agrees = rounds or abs(value - float(expected)) <= tolerance
    return {"what": what, "value": value, "expected": expected, "difference": difference,
            "unit": unit, "agrees": bool(agrees),
            "verdict": "agrees" if agrees else "NOT reproduced"}  # fmt: skip
