"""docs/safety.md, from the table of interlocks: `python -m hil.reports.safety > docs/safety.md`."""

from pathlib import Path

import jinja2

from hil.devices.board import protocol
from hil.experiment.tightening import ROWS
from hil.loop import interlocks, states


def page() -> str:
    """The page as Markdown."""
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        trim_blocks=True,
        keep_trailing_newline=True,
    )  # nothing to escape: the page is Markdown and its values are this program's own
    template = environment.get_template("safety.md.j2")
    return template.render(
        interlocks=interlocks, limits=protocol.LIMITS, states=states,
        faults=protocol.FAULTS, unmeasured=protocol.FAULTS_MEASURED, tightening=ROWS,
    )  # fmt: skip


if __name__ == "__main__":
    print(page(), end="")
