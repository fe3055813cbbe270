"""What the law without stress costs: controllers by either law, on the same wires under stress.

Both are tuned on the same tuning plants and run on the same plants, so that the difference on every
plant counts. Its interval is Student's over the plants.
"""

from typing import Any

import numpy as np
from scipy.stats import ttest_1samp

from hil.pages.study import as_table
from hil_studies.recruitment.controllers import OLD_LAW
from hil_studies.recruitment.values import Judged

Differences = dict[str, dict[str, float]]


def differences(judged: Judged) -> Differences:
    """Return mean errors by both laws, relative to the force of all cells, and their difference.

    Of the trials with a lead-in.
    """
    found: Differences = {}
    for start, rows in judged.items():
        n, dead, name, led = start
        if not name.endswith(OLD_LAW) or not led:
            continue
        base = name.removesuffix(OLD_LAW)
        new, old = (np.array(r)[:, 0] for r in (judged[start._replace(name=base)], rows))
        interval = ttest_1samp(old - new, 0.0).confidence_interval()
        found[f"{n} cells, {dead:g} % dead, {base}"] = {
            "under_stress": float(new.mean()), "without_stress": float(old.mean()),
            "lost": float((old - new).mean()), "low": float(interval.low),
            "high": float(interval.high), "plants": len(new),
            "worse_on": int((old > new).sum()),
        }  # fmt: skip
    return found


def tables(judged: Judged) -> list[dict[str, Any]]:
    """Return the differences as a table; none if the plants have no stress."""
    rows = [
        [
            what, f"{100 * d['under_stress']:.2f} %", f"{100 * d['without_stress']:.2f} %",
            f"{100 * d['lost']:+.2f} % ({100 * d['low']:+.2f} to {100 * d['high']:+.2f})",
            f"{d['worse_on']:.0f} of {d['plants']:.0f}",
        ]
        for what, d in differences(judged).items()
    ]  # fmt: skip
    columns = ["", "law under stress", "law without stress", "lost (95 %)", "worse on"]
    title = "Wires under stress, commissioned and planned by either law: RMS error over full force"
    return [as_table(title, columns, rows)] if rows else []
