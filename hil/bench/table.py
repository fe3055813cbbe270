"""The table in which `hil bench` prints its figures."""

from collections.abc import Iterable


def as_table(rows: Iterable[tuple[str, str, str]]) -> str:
    """One line a row: what was measured, its figure, and the aim."""
    return "\n".join(f"{what:<44} {figure:>16}   {aim}".rstrip() for what, figure, aim in rows)
