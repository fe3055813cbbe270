"""A part of a report's page that one kind of experiment adds."""

from dataclasses import dataclass, field

from matplotlib.figure import Figure


@dataclass(frozen=True)
class Section:
    """A heading with optional sentences, figure and table.

    `files` are texts to write beside the page, by the suffix to the recording's name.
    """

    title: str
    sentences: list[str] = field(default_factory=list)
    figure: Figure | None = None
    columns: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
