"""The frame of all pages: one self-contained HTML file with a common style and embedded figures.

A page is a file in `templates/` that begins with `{% extends "page.html" %}` and fills the block
`body`. The block `style` adds to the common style.
"""

from __future__ import annotations

import base64
import io

import jinja2
from matplotlib.figure import Figure


def rendered(template: str, *, title: str, simulated: bool = False, **values: object) -> str:
    """Render a template, by its file, with its values, the heading and the SIMULATED mark.

    Raises
    ------
    jinja2.UndefinedError
        A value of the template is missing.
    """
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        loader=jinja2.PackageLoader("hil.pages"),
    )
    return environment.get_template(template).render(title=title, simulated=simulated, **values)


def embedded(figure: Figure, dpi: int = 160) -> str:
    """A figure as base64 text, to follow `data:image/png;base64,`."""
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=dpi, format="png")
    return base64.b64encode(buffer.getvalue()).decode()
