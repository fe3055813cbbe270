"""The worst trials of a campaign: by `worst_by`, of every combination."""

from math import inf
from pathlib import Path

from hil.errors import ConfigError
from hil.runs.campaign.expression import Expression
from hil.runs.campaign.journal import Progress
from hil.runs.campaign.plan import Campaign, Combination
from hil.runs.campaign.tables import CampaignTables


def ranking_of(path: Path, tables: CampaignTables) -> Expression | None:
    """The expression whose largest values are the worst; None if nothing asks for it.

    Raises
    ------
    ConfigError
        It is no expression, or `keep = "worst N"` needs it and it is missing.
    """
    head = tables.campaign
    if tables.worst_by is None:
        if head.n_worst:
            raise ConfigError(
                f"{path}: campaign.keep = '{head.keep}': by which measure? add worst_by"
            )
        return None
    key = "campaign.worst_by" if head.worst_by else "tune.cost"
    return Expression(f"{path}: {key}", tables.worst_by)


def worst_of(campaign: Campaign, p: Progress) -> list[int]:
    """Numbers of the trials whose recordings `keep = "worst N"` leaves, in run order."""
    ranking, n = ranking_of(campaign.path, campaign.tables), campaign.tables.campaign.n_worst
    if ranking is None or not n:
        return []
    values: dict[Combination, list[tuple[float, int]]] = {}
    for trial in campaign.trials:
        end = p.ends.get(trial.number)
        if end is not None and end["outcome"] in ("complete", "tripped"):
            weights = campaign.tables.weights(trial.levels)
            value = ranking.value({**end["figures"], **weights})
            badness = inf if end["outcome"] == "tripped" or value is None else value
            values.setdefault(trial.combination, []).append((-badness, trial.number))
    return sorted(number for of in values.values() for _, number in sorted(of)[:n])
