"""`hil study validation`: how often bands and intervals hold on readings that are disturbed.

The rigs are those of `hil study identification`; their parameters are drawn from the covariance
that the model states. For each the band of a validation is made, and the share of readings in it is
counted: in the mean over the rigs it should be 95 %. The same readings are then disturbed, and also
identified, where a flag says that the identification noticed it.
"""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from hil.config.table import Table
from hil.identification.known import Known
from hil.mechanics.arrays import Array
from hil.pages.study import as_table, check
from hil.platform.parallel import on_all_cores
from hil.record.progress import count_progress
from hil.validation.band import Z_95, noise_rms_N
from hil.validation.uncertainty import MeasuringChannel, uncertainty_of
from hil_studies.identification.rigs import DISTURBANCES, DRAWN, OFF, TABLES, disturbed, make_rig
from hil_studies.identification.study import trial

BELIEVED = Known(DRAWN, OFF**2 * np.eye(len(DRAWN)), ())


class Values(Table):
    """Settings of the study."""

    rigs: Annotated[int, Field(ge=2)] = 100
    identified: Annotated[int, Field(ge=0)] = 20
    seed: Annotated[int, Field(ge=0)] = 20


def assessed(seed: int, index: int, identifies: bool) -> Array:
    """(D, 3) for every disturbance of a rig: shares in band and intervals, and whether flagged."""
    rig = make_rig(seed, index)
    band = uncertainty_of(TABLES, rig.data, BELIEVED, MeasuringChannel(None, 0.0))
    rows = np.full((len(DISTURBANCES), 3), np.nan)
    for row, name in zip(rows, DISTURBANCES, strict=True):
        data = disturbed(rig, name, index)
        u_N = np.hypot(band.u_val_N, noise_rms_N(data))
        row[0] = np.mean(np.abs(data.measured - band.simulated_N) <= Z_95 * u_N)
        if identifies:
            identification = trial(replace(rig, data=data))
            by_key = {p.key: p for p in identification.parameters}
            row[1] = np.mean([by_key[k].low <= rig.truth[k] <= by_key[k].high for k in DRAWN])
            row[2] = not identification.adequacy.adequate
    return rows


def run(out: Path, values: Values) -> dict[str, Any]:
    """Count over all rigs; the content of results.json."""
    works = [(values.seed, i, i < values.identified) for i in range(values.rigs)]
    by_work = {}
    with count_progress("rigs", len(works), wanted=True) as done:
        for work, of_rig in on_all_cores(works, assessed):
            by_work[work] = of_rig
            done(1)
    whole = np.array([by_work[work] for work in works])
    shares, identified = whole[:, :, 0], whole[: values.identified, :, 1:]
    table = []
    for i, name in enumerate(DISTURBANCES):
        row = [name, f"{shares[:, i].mean():.1%}", f"{np.quantile(shares[:, i], 0.1):.0%}"]
        if values.identified:
            held, flagged = identified[:, i, 0].mean(), identified[:, i, 1].sum()
            row += [f"{held:.0%}", f"{flagged:.0f} of {values.identified}"]
        table.append(row)
    columns = ["readings", "in the band", "tenth worst rig", "intervals hold", "flagged"]
    return {
        "title": f"Bands of a validation on {values.rigs} simulated rigs",
        "checks": [
            check(f"readings in the 95 % band: {name}", share, "0.93 to 0.99",
                  agrees=bool(0.93 <= share <= 0.99))
            for share, (name, disturbance) in zip(
                shares.mean(axis=0), DISTURBANCES.items(), strict=True
            )
            if disturbance.in_band
        ],
        "tables": [as_table("Readings in the band, and intervals of an identification",
                            columns[: len(table[0])], table)],
        "figures": [],
        "notes": [
            "The band has no term for a drift or for a delay that is not told.",
            "The tenth worst rig: in a tenth of the rigs fewer readings are in the band.",
        ],
    }  # fmt: skip
