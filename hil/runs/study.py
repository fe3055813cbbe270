"""`hil study NAME`: reruns a published experiment into a folder: results.json, figures, a page.

A study is a module, which the descriptor of its system names (`hil.experiment.kind`). It has
`Values`, the table of the keys that `--set` may change, and `run(out, values)`. `run` writes the
figures into `out` and returns the content of results.json: `title`, `figures` (file, caption) and
keys of its own. The keys `tables` (title, columns, rows of texts), `checks` (what, value, expected,
difference, unit, agrees, verdict) and `notes` (sentences) are also printed and shown on the page.
"""

import importlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from hil.config.files import Merged, parse_set
from hil.config.validate import validated
from hil.config.values import Figures
from hil.errors import ConfigError, ModelError, one_line, remedy
from hil.experiment.registry import studies
from hil.pages.html import rendered
from hil.platform.whole_files import write_whole
from hil.record.summary import plain


def run_study(name: str, sets: Iterable[str], out: Path) -> dict[str, object]:
    """Run a study; returns its results as written to results.json.

    Raises
    ------
    ConfigError
        The study or a key is unknown, the model refuses a value, or the folder is not writable.
    """
    modules = studies()
    if name not in modules:
        raise ConfigError(f"study '{name}': unknown{remedy(name, modules)}")
    study = importlib.import_module(modules[name])
    table: dict[str, object] = {}
    for text in sets:
        change = parse_set(text)
        if not change.keys() <= study.Values.model_fields.keys():
            has = ", ".join(study.Values.model_fields)
            raise ConfigError(f"--set {one_line(text)}: this study has {has}")
        table |= change
    values = validated(study.Values, Merged(table, [(f"study {name}", table)]))
    try:
        out.mkdir(parents=True, exist_ok=True)
        with_head = {"study": name, "values": values.model_dump(), **study.run(out, values)}
        return write_results(out, with_head)
    except OSError as error:
        raise ConfigError(f"{out}: cannot be written ({error.strerror})") from None
    except ModelError as error:
        raise ConfigError(one_line(f"study {name}: {error}")) from None


def write_results(out: Path, figures: Mapping[str, object]) -> dict[str, object]:
    """Write results.json and the page into a folder; returns the results as written."""
    results: dict[str, object] = plain(dict(figures))
    write_whole(out / "results.json", json.dumps(results, indent=2) + "\n")
    write_whole(out / "index.html", _page(results))
    return results


def as_text(results: Figures) -> str:
    """The tables, checks and notes of a study as text."""
    checks, lines = results.get("checks", []), [results["title"], ""]
    for table in results.get("tables", []):
        widths = [max(map(len, column)) for column in zip(table["columns"], *table["rows"],
                                                          strict=True)]  # fmt: skip
        lines.append(table["title"])
        for row in (table["columns"], *table["rows"]):
            cells = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            lines.append("  " + "  ".join(cells))
        lines.append("")
    width = max((len(check["what"]) for check in checks), default=0)
    for check in checks:
        differs = "" if check["difference"] is None else f"{check['difference']:+.3g}"
        lines.append(
            f"  {check['what']:<{width}} {check['value']:<14.9g} {check['expected']:>14} "
            f"{check['unit']:<4} {differs:>10}  {check['verdict']}"
        )
    if checks:
        agreeing = sum(check["agrees"] for check in checks)
        lines.append(f"\n{agreeing} of {len(checks)} figures agree")
    return "\n".join([*lines, *(f"- {note}" for note in results.get("notes", []))])


def _page(results: Figures) -> str:
    return rendered(
        "study.html",
        title=results["title"], figures=results["figures"], notes=results.get("notes", []),
        tables=results.get("tables", []), checks=results.get("checks", []),
        effort=results.get("effort", []),
    )  # fmt: skip
