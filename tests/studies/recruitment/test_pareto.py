"""Error against wear and energy: the campaign of all weights, and what is made of its table."""

import json
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hil.bundled_configs import root
from hil.runs.campaign.plan import load_campaign
from hil_studies.recruitment import study
from hil_studies.recruitment.pareto import Values, front_of, plants_of, table_of, tables_of

SIX = study.FOLDER / "six"
MADE = sorted((root() / "docs" / "recruitment").glob("pareto*.json"))


def test_every_controller_is_tuned_for_each_weight_of_wear_or_of_energy():
    values = Values(wear_weights_s=[0.5], energy_weights_per_W=[0.1], seeds=2)
    tables = tables_of(values, SIX)
    pairs = {(t["wear_weight_s"], t["energy_weight_per_W"]) for t in tables["trials"]}
    assert pairs == {(0.0, 0.0), (0.5, 0.0), (0.0, 0.1)}
    assert len(tables["trials"]) == 7 * 3 * 3
    assert tables["tune"]["cost"].startswith("error_N / 1.8 + wear_weight_s * wear_per_h / 3600 + ")


def test_controllers_that_are_named_meet_alone():
    tables = tables_of(Values(controllers=["PID", "optimal"], seeds=2), SIX)
    assert {t["controller"] for t in tables["trials"]} == {"PID", "optimal"}
    assert {p["of"]["controller"] for p in tables["tune"]["parameters"]} == {"PID", "optimal"}


@pytest.mark.slow
@pytest.mark.parametrize(("cells", "stress"), [(6, True), (6, False), (14, True), (100, True)])
def test_the_campaign_is_valid(cells, stress, tmp_path):
    values = Values(seeds=2, cells=cells, stress=stress)
    files = study.files_of(cells, stress, tmp_path)
    campaign = load_campaign(Path("pareto.toml"), tables_of(values, files))
    assert len(campaign.controllers) == 7 * 6


def test_a_row_has_means_over_plants_and_what_it_leaves_more_than_the_planner():
    """Two plants with 1 and 3 % under PID, 1 % under the planner: 2 ± 12.7 x 1, and 1 more."""
    rows = [
        {"controller": name, "wear_weight_s": 0.4, "energy_weight_per_W": 0.0, "set_point": point,
         "plant": plant, "error_N": error_N, "wear_per_h": 90.0, "supply_A": 0.25}
        for (name, errors_N), point in product(
            (("PID", (0.02, 0.06)), ("optimal_modulated", (0.02, 0.02))), ("steps", "sine"))
        for plant, error_N in enumerate(errors_N)
    ]  # fmt: skip
    by_plant = plants_of(pd.DataFrame(rows), full_N=2.0)
    first, best = table_of(by_plant, "")["rows"]
    assert first == ["PID", "wear 0.4 s", "2.00 ± 12.71", "1.00 ± 12.71", "90", "40"]
    assert best[2:4] == ["1.00 ± 0.00", "–"]
    [alone] = table_of(by_plant[by_plant.controller == "PID"], "")["rows"]
    assert alone[2:4] == ["2.00 ± 12.71", "–"]


def test_the_front_is_what_no_other_point_beats():
    x, y = np.array([3.0, 1.0, 2.0, 2.5]), np.array([1.0, 4.0, 2.0, 3.0])
    assert [*zip(*front_of(x, y), strict=True)] == [(1.0, 4.0), (2.0, 2.0), (3.0, 1.0)]


@pytest.mark.parametrize("path", MADE, ids=lambda path: path.stem)
def test_the_table_of_the_page_is_that_of_its_trials(path, tmp_path):
    made = json.loads(path.read_text(encoding="utf-8"))
    title = made["tables"][0]["title"]
    for n_cells, rows in made["trials"].items():
        files = study.files_of(int(n_cells), "without stress" not in title, tmp_path)
        by_plant = plants_of(pd.DataFrame(rows), study.full_force_N(files))
        assert table_of(by_plant, "")["rows"] == made["tables"][0]["rows"]
