"""The licences of what hil uses, as the packages that requirements.lock installs state them."""

import re
import tomllib
from importlib.metadata import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
UNSTATED = {"fmpy": "BSD-2-Clause"}  # its LICENSE.txt: the metadata say nothing
SHORT = {
    "Apache Software License": "Apache-2.0",
    "GNU Lesser General Public License v3 or later (LGPLv3+)": "LGPL-3.0-or-later",
    "Python Software Foundation License": "PSF-2.0",
}
INTRODUCTION = """\
# Licences of the packages that hil uses

hil is under Apache-2.0. It contains one other program, uPlot 1.6.32 (MIT), which draws the curves
of pages, in `hil/pages/vendor/`; whoever installs it gets these packages from their index. The
wheel contains data of others, with their licences beside them:
`hil/identification/wire_loops/data` and `hil/examples/examples/load_frame`.

- **LGPL** (PySide6, asammdf, nptdms): hil imports them unchanged. Whoever ships them, such as in an
  installer or an image, passes on their licence and lets the user replace them by another version.
- **GPL** (InSpice): the tests alone use it, and nothing that is shipped does.
- All others ask for their notice to be kept.

"""


def licence(name: str) -> str:
    """What the installed package states, as an SPDX expression where it has one."""
    stated = metadata(name)
    if expression := stated.get("License-Expression"):
        return str(expression)
    classifiers = (c for c in stated.get_all("Classifier") or () if c.startswith("License ::"))
    kinds = [c.rpartition(" :: ")[2] for c in classifiers]
    text = ", ".join(kinds) or stated.get("License") or UNSTATED[name]
    return SHORT.get(text, text.removesuffix(" License"))


def page() -> str:
    """A row for every package that pyproject.toml names outside development."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {"always": project["dependencies"], **project["optional-dependencies"]}
    used: dict[str, list[str]] = {}
    for extra, requirements in extras.items():
        for requirement in requirements:
            name = re.split(r"[\[<>=]", requirement)[0]
            if name != project["name"]:
                used.setdefault(name, []).append(extra)
    rows = [f"| {name} | {licence(name)} | {', '.join(used[name])} |" for name in sorted(used)]
    return INTRODUCTION + "\n".join(["| package | licence | extra |", "|---|---|---|", *rows, ""])
