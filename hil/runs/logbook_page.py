"""Logbooks on the terminal: their text, and entries made by hand."""

from pathlib import Path

from hil.config.files import read_merged
from hil.errors import ConfigError, one_line
from hil.experiment.loaded import LOGBOOK
from hil.platform.provenance import user
from hil.runs.logbook import Logbook, books_in, opening


def chosen(specimen: str | None, folder: Path | None, simulated: bool) -> list[Logbook]:
    """The logbook of a specimen, or all logbooks of a folder.

    Parameters
    ----------
    specimen : serial number, or a .toml file that names the specimen; None for all

    Raises
    ------
    ConfigError
        There is no such logbook, or the file names no specimen.
    """
    if specimen is not None and specimen.endswith(".toml"):
        path = Path(specimen)
        merged = read_merged(path)
        table = merged.table.get("specimen")
        if not isinstance(table, dict) or not isinstance(table.get("serial"), str):
            raise ConfigError(f"{path}: specimen.serial: missing: its runs have no logbook")
        specimen, folder_name = table["serial"], table.get("logbook")
        if folder is None and isinstance(folder_name, str):
            folder = Path(merged.origin(("specimen", "logbook"))).parent / folder_name
    books = books_in(folder or LOGBOOK, simulated=simulated)
    if specimen is None:
        return books
    matches = [book for book in books if book.serial == specimen]
    if not matches:
        serials = ", ".join(book.serial for book in books) or "none"
        raise ConfigError(
            one_line(f"{specimen}: no logbook of it in {folder or LOGBOOK}: there are {serials}")
        )
    return matches


def write(books: list[Logbook], cell: str | None, note: str) -> None:
    """Add a swap or a note to a logbook.

    Raises
    ------
    ConfigError
        Not exactly one logbook is given, or it has no such cell.
    """
    if len(books) != 1:
        raise ConfigError("--swap, --note: give one logbook: hil logbook SERIAL ...")
    (book,) = books
    cells = book.totals().cells
    if cell is not None and cell not in cells:
        raise ConfigError(
            one_line(f"--swap {cell}: {book.serial} has no such cell: choose {', '.join(cells)}")
        )
    fields = {"kind": "note"} if cell is None else {"kind": "swap", "cell": cell}
    book.add({**fields, "note": note, "by": user()})


def as_json(book: Logbook) -> dict[str, object]:
    totals = book.totals()
    return {"file": str(book.path), **vars(totals), "open": list(totals.open.values())}


def as_text(book: Logbook) -> str:
    """The totals with a line for each cell, then swaps and notes."""
    t = book.totals()
    lines = [opening(book), f"  {book.path}; last run {t.last_utc[:19] or 'never'}"]
    if t.cells:
        head = ("cell", "cycles", "on s", "energy J", "since swap: cycles", "on s", "energy J")
        lines.append("  " + "  ".join(f"{h:>12}" for h in head))
    for cell, all_time in t.cells.items():
        values = [*all_time.values(), *t.since_swap[cell].values()]
        shown = ["–" if v is None else str(v) if isinstance(v, int) else f"{v:.2f}" for v in values]
        widths = (12, 12, 12, 18, 12, 12)
        row = "  ".join(f"{s:>{w}}" for s, w in zip(shown, widths, strict=True))
        lines.append(f"  {cell:>12}  {row}")
    for method in dict.fromkeys(t.energy_from.values()):
        lines.append(f"  energy: {method}")
    for name, count in t.faults.most_common():
        lines.append(f"  fault {name}: {count} runs")
    for entry in sorted([*t.swaps, *t.notes], key=lambda entry: str(entry["utc"])):
        what = f"{entry['cell']} swapped" if entry["kind"] == "swap" else "note"
        lines.append(one_line(f"  {entry['utc'][:19]} {what}: {entry['note']} ({entry['by']})"))
    for begun in t.open.values():
        lines.append(one_line(f"  running, or cut off and not counted yet: {begun['file']}"))
    return "\n".join(lines)
