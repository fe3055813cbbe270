"""A part of a report's page that one kind of experiment adds."""

from dataclasses import dataclass, field

from matplotlib.figure import Figure


@dataclass(frozen=True)
class Section:
    """A heading, sentences, a figure, a table; each may be missing but the heading.

    `files` are texts that are written beside the page, by what is put behind the recording's name.
    """

    title: str
    sentences: list[str] = field(default_factory=list)
    figure: Figure | None = None
    columns: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
