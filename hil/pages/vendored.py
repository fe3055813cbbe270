"""Scripts that pages contain: uPlot (MIT, its licence beside it), and what draws a run with it."""

import base64
import hashlib
from collections.abc import Mapping
from importlib.resources import files


def plotting() -> Mapping[str, str]:
    """Scripts `uplot` and `plots`, and the style of uPlot, by name."""
    folder = files("hil.pages")
    names = {
        "uplot": "vendor/uPlot/uPlot.iife.min.js",
        "style": "vendor/uPlot/uPlot.min.css",
        "plots": "templates/plots.js",
    }
    return {key: folder.joinpath(name).read_text(encoding="utf-8") for key, name in names.items()}


def permitted() -> str:
    """These two scripts and no other, as a source of a content security policy."""
    known = plotting()
    digests = (hashlib.sha256(known[key].encode()).digest() for key in ("uplot", "plots"))
    return " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
