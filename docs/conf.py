"""The documentation site: scripts/site builds it into build/site."""

import re
import sys
import tomllib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import latex2mathml.converter
import reference_pages
from docutils.nodes import SkipNode

project = "hil-arrays"
author = "the hil-arrays developers"
with (Path(__file__).parents[1] / "pyproject.toml").open("rb") as file:
    release = version = tomllib.load(file)["project"]["version"]
copyright = "the hil-arrays developers, Apache-2.0"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
]
myst_enable_extensions = ["dollarmath", "colon_fence", "attrs_block"]
myst_heading_anchors = 3
exclude_patterns = ["slow-tests/*", "decisions/*", "paper/*"]
suppress_warnings = ["myst.xref_missing"]  # links out of docs/ are to files of the repository
autodoc_typehints = "description"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True

html_theme = "furo"
html_title = f"hil-arrays {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]


html_math_renderer = "mathml"


def _equation(display):
    def visit(self, node):
        self.body.append(latex2mathml.converter.convert(node.astext(), display=display))
        raise SkipNode

    return visit, None


OUTSIDE = {  # files of the repository, and the pages that include them
    "../ARCHITECTURE": "architecture",
    "../CHANGELOG": "changelog",
    "../CONTRIBUTING": "contributing",
    "../firmware/README": "reference/board",
}


def _with_contents(app, docname, source):
    """Pages that are plain lists of links; the tree of contents is made from them."""
    if docname not in ("index", "reference/generated/configuration"):
        return
    for caption, part in re.findall(r"^## (.+)\n((?:.|\n)*?)(?=^## |\Z)", source[0], re.M):
        linked = re.findall(r"^- \[.*?\]\(([\w./-]+)\.md\)", part, re.M)
        if linked:
            names = "\n".join(OUTSIDE.get(page, page) for page in linked)
            source[0] += f"\n```{{toctree}}\n:caption: {caption}\n:hidden:\n\n{names}\n```\n"


def setup(app):
    """Equations are MathML, for a bench without internet; pages made of the code come first."""
    app.add_html_math_renderer("mathml", _equation("inline"), _equation("block"))
    app.connect("source-read", _with_contents)
    app.connect("builder-inited", lambda app: reference_pages.write(Path(app.srcdir)))
