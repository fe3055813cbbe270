"""The imports between the top-level folders, as a table in SVG: docs/images/imports.svg.

`python scripts/import_graph.py` writes it. The dots of a row mark the folders that it imports.
Every dot is right of the diagonal: a folder imports only those listed below it.
"""

import configparser
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parents[1]
SVG = ROOT / "docs/images/imports.svg"
PACKAGES = ("hil", "simdaq", "hil_gui", "hil_studies")
CELL, LEFT, TOP, MARGIN = 22, 130, 130, 48
STYLE = (
    "text{font:13px sans-serif;fill:#222}rect{fill:none;stroke:#ddd}"
    "circle{fill:#1f6feb}.upward{fill:#d1242f}.self{fill:#ddd}"
)


def folders() -> list[str]:
    """Top-level folders and modules of hil, as `.importlinter` layers them, and other packages."""
    settings = configparser.ConfigParser()
    settings.read(ROOT / ".importlinter", encoding="utf-8")
    lines = settings["importlinter:contract:flow"]["layers"].split("\n")
    layers = [name.strip() for line in lines for name in line.split("|") if name.strip()]
    return ["hil_studies", "hil_gui", *layers, "simdaq"]


def imports() -> set[tuple[str, str]]:
    """(importer, imported) of folders; hil itself and what stands in no layer are left out."""
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    known = folders()

    def folder(module: str) -> str | None:
        return next((f for f in known if module == f or module.startswith(f"{f}.")), None)

    found = set()
    for module in graph.modules:
        for other in graph.find_modules_directly_imported_by(module):
            pair = folder(module), folder(other)
            if None not in pair and pair[0] != pair[1]:
                found.add(pair)
    return found


def drawing() -> str:
    """The table, importers from top to bottom, imported folders from left to right."""
    names = folders()
    place = {name: i for i, name in enumerate(names)}
    side = CELL * len(names)
    width, height = LEFT + side + MARGIN, TOP + side + 8
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">',
        f"<style>{STYLE}</style>",
        f'<path d="M0 0H{width}V{height}H0Z" fill="#fff"/>',
    ]
    for name, i in place.items():
        label, middle = name.removeprefix("hil."), i * CELL + CELL // 2
        lines.append(
            f'<text x="{LEFT - 8}" y="{TOP + middle + 4}" text-anchor="end">{label}</text>'
        )
        at = f"translate({LEFT + middle + 4} {TOP - 8}) rotate(-60)"
        lines.append(f'<text transform="{at}">{label}</text>')
        lines.append(f'<rect x="{LEFT}" y="{TOP + i * CELL}" width="{side}" height="{CELL}"/>')
        lines.append(f'<rect x="{LEFT + i * CELL}" y="{TOP}" width="{CELL}" height="{side}"/>')
        lines.append(
            f'<rect class="self" x="{LEFT + i * CELL}" y="{TOP + i * CELL}" width="{CELL}" '
            f'height="{CELL}"/>'
        )
    for importer, imported in sorted(imports()):
        row, column = place[importer], place[imported]
        style = "" if row < column else ' class="upward"'
        x, y = LEFT + column * CELL + CELL // 2, TOP + row * CELL + CELL // 2
        lines.append(
            f'<circle{style} cx="{x}" cy="{y}" r="5"><title>{importer} imports {imported}</title>'
            "</circle>"
        )
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    SVG.write_text(drawing(), encoding="utf-8")
