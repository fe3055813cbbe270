"""Programs of others that pages contain; their licences lie beside them."""

from collections.abc import Mapping
from importlib.resources import files


def uplot() -> Mapping[str, str]:
    """Script and style of uPlot (MIT licence), which draws curves in a browser."""
    folder = files("hil.pages") / "vendor" / "uPlot"
    names = {"script": "uPlot.iife.min.js", "style": "uPlot.min.css"}
    return {key: (folder / name).read_text(encoding="utf-8") for key, name in names.items()}
