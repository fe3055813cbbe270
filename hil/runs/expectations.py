"""Judges a run by the `[[expect]]` of its experiment."""

from collections.abc import Iterable, Mapping

from numpy.typing import ArrayLike

from hil.config.values import Figures
from hil.errors import ConfigError, remedy
from hil.experiment.expectations import ExpectTable
from hil.experiment.loaded import Experiment
from hil.loop.frame import Column
from hil.runs.figures import figures_in, measure_faults, names_of, statistic


def check(config: Experiment, columns: Iterable[Column]) -> None:
    """Refuse what a run with these columns cannot answer.

    Raises
    ------
    ConfigError
        One line for each.
    """
    listed, wrong = list(columns), []
    known = [*names_of((c.name for c in listed), ()), "missed_periods"]
    for i, table in enumerate(config.tables.expect):
        key = f"expect.{i}"
        if table.measure is not None and table.measure not in known:
            wrong.append(
                f"{key}.measure = '{table.measure}': a run of this rig has no such figure"
                f"{remedy(table.measure, known)}"
            )
        if table.statistic is not None:
            duration_s = config.tables.experiment.duration_s
            wrong += measure_faults(key, table.statistic, listed, duration_s)
    if wrong:
        where = config.merged.origin(("expect",))
        raise ConfigError("\n".join(f"{where}: {line}" for line in wrong))


def judged(
    expected: Iterable[ExpectTable], columns: Mapping[str, ArrayLike], summary: Figures
) -> list[dict[str, object]]:
    """Every expectation with its value and whether it was met.

    Parameters
    ----------
    columns : by name, `t_s` and those of the expectations among them
    summary : of the run
    """
    figures = figures_in(columns, summary, {})
    outcome = str(summary["outcome"])
    rows: list[dict[str, object]] = []
    for table in expected:
        value: object
        if table.outcome is not None:
            faults = summary["first_fault"]
            value = f"{outcome} by {', '.join(faults)}" if faults else outcome
            passed = outcome == table.outcome and table.first_fault in (None, *faults)
        else:
            value = (
                figures.get(table.measure or "")
                if table.statistic is None
                else statistic(columns, table.statistic)
            )
            passed = _within(value, table)
        rows.append({"what": table.what, "bounds": table.bounds, "value": value, "passed": passed})
    return rows


def columns_of(expected: Iterable[ExpectTable]) -> set[str]:
    """Names of the columns that `judged` needs."""
    statistics = [table.statistic for table in expected if table.statistic is not None]
    return {"t_s"}.union(*(one.columns for one in statistics))


def _within(value: float | None, table: ExpectTable) -> bool:
    """Whether a figure that the run has lies within the bounds."""
    if value is None:
        return False
    return (table.above is None or value > table.above) and (
        table.below is None or value < table.below
    )
