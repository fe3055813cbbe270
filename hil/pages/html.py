"""The frame of all pages: one self-contained HTML file with a common style and embedded figures.

A page is a template that begins with `{% extends "page" %}` and fills the block `body`. The block
`style` adds to the common style.
"""

from __future__ import annotations

import base64
import io
from typing import Any

import jinja2
from matplotlib.figure import Figure

_FRAME = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{{ title }}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
 body { font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 62rem; margin: 2rem auto;
        padding: 0 1rem; }
 h1 { font-size: 1.5rem; margin-bottom: 0; } h2 { font-size: 1.1rem; margin-top: 2rem; }
 .sub { color: #666; margin-top: 0.2rem; } img { width: 100%; }
 .simulated { background: #cc3311; color: white; padding: 0.15rem 0.6rem; font-weight: bold; }
 .fault, .no { color: #cc3311; font-weight: bold; }
 .verdict { border-left: 5px solid #cc3311; background: #f6f6f6; padding: 0.6rem 1rem; }
 .verdict.yes { border-color: #117733; }
 table { border-collapse: collapse; } td, th { padding: 0.2rem 1rem 0.2rem 0; text-align: left;
        vertical-align: top; border-bottom: 1px solid #eee; } th { font-weight: 600; }
 td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
{% block style %}{% endblock %}
</style></head><body>
<h1>{{ title }} {% if simulated %}<span class="simulated">SIMULATED</span>{% endif %}</h1>
{% block body required %}{% endblock %}
</body></html>
"""


def rendered(template: str, *, title: str, simulated: bool = False, **values: Any) -> str:
    """Render a template with its values, the heading and the SIMULATED mark.

    Raises
    ------
    jinja2.UndefinedError
        A value of the template is missing.
    """
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        loader=jinja2.DictLoader({"page": _FRAME}),
    )
    return environment.from_string(template).render(title=title, simulated=simulated, **values)


def embedded(figure: Figure, dpi: int = 160) -> str:
    """A figure as base64 text, to follow `data:image/png;base64,`."""
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=dpi, format="png")
    return base64.b64encode(buffer.getvalue()).decode()
