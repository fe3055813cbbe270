"""The recruitment study: its rigs, its campaigns, and what it makes of a table of trials."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hil.errors import ConfigError
from hil.experiment.load import load, load_rig
from hil.runs.campaign.plan import load_campaign
from hil.runs.study import run_study
from hil_studies.recruitment import study
from hil_studies.recruitment.study import CONTROLLERS, EXACT, FOLDER, UNTOLD, Size, Values

SIX = FOLDER / "six"


def values(**changed):
    return Values.model_validate(changed)


@pytest.mark.parametrize(("n_cells", "stress"), [(6, True), (6, False), (14, True), (100, True)])
def test_a_board_protects_every_wire_and_lets_it_contract(n_cells, stress, tmp_path):
    rig = load_rig(study.files_of(n_cells, stress, tmp_path) / "rig.toml")
    peaks = [peak for board in rig.protections for peak in board.peaks()]
    assert len(peaks) == n_cells
    assert all(peak.worst_C <= 180.0 for peak in peaks)
    for board in rig.protections:
        wanted = board.wanted()  # raises where no limits let a cell contract
        assert wanted["heat_max_cA2ms"] >= board.limits["heat_max_cA2ms"]


def test_names_of_earlier_versions_are_those_of_now():
    named = values(controllers=["size principle", "broadcast, LMS", "broadcast, dead beat"])
    assert named.controllers == ("size_principle", "broadcast")
    assert values(cells=[14, 6, 14]).cells == (14, 6)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("cells=[10]", "cells = [10]: must be a list of 6, 14 and 100"),
        ("cells=6", "cells = 6: must be a list of 6, 14 and 100"),
        ("cells=[[6]]", "cells = [[6]]: must be a list of 6, 14 and 100"),
        ("stress=1", "stress = 1: must be true or false."),
        ("cells=[true]", "must be a list of 6, 14 and 100"),
        ('controllers=["optimal, exact plant"]', "no controller 'optimal, exact plant': choose"),
        ("seeds_of_100=3", "this study has cells, controllers, seeds, tuning_seeds, budget,"),
        ("dead_percent=[0.0]", "this study has cells, controllers, seeds, tuning_seeds, budget,"),
    ],
)
def test_a_key_that_went_is_refused_in_one_line(change, said, tmp_path):
    with pytest.raises(ConfigError, match=r"^[^\n]*$") as refused:
        run_study("recruitment", [change], tmp_path)
    assert said in f"{refused.value}."


def test_set_changes_the_tables_of_the_campaign():
    tables = study.tables_of(
        values(seeds=5, controllers=["PID"], budget=3, tuning_seeds=1, wear_weight_s=0.5), SIX
    )
    assert tables["campaign"]["plants"] == 5
    assert list(tables["factors"]["controller"]["levels"]) == ["PID"]
    assert {p["of"]["controller"] for p in tables["tune"]["parameters"]} == {"PID"}
    assert (tables["tune"]["budget"], tables["tune"]["plants"]) == (3, 1)
    assert "0.5 * wear_per_h" in tables["tune"]["cost"]


def test_a_hundred_cells_meet_the_set_points_of_fourteen_in_shares_of_full_force(tmp_path):
    of = {}
    hundred = study.files_of(100, True, tmp_path)
    for size, folder in (("fourteen", FOLDER / "fourteen"), ("hundred", hundred)):
        tables = study.tables_of(values(), folder)
        points = tables["factors"]["set_point"]["levels"]
        assert ("commission" in tables) == (size == "fourteen")
        full_N = study.full_force_N(folder)
        of[size] = [
            np.atleast_1d(value) / full_N
            for level in points.values()
            for key, value in level["reference"].items()
            if key.endswith("_N")
        ]
        assert float(tables["tune"]["cost"].split()[2]) == pytest.approx(full_N, rel=1e-3)
    groups = tables["factors"]["controller"]["levels"]["size_principle"]["controller"]["groups"]
    assert sorted(cell for group in groups for cell in group) == [*range(1, 101)]
    assert len(of["hundred"]) == 5
    for share, of_fourteen in zip(of["hundred"], of["fourteen"], strict=True):
        assert share == pytest.approx(of_fourteen, rel=1e-3)


@pytest.mark.slow_beyond(2)
@pytest.mark.parametrize(
    ("n_cells", "stress"), [(6, False), (14, False), (100, True), (100, False)]
)
def test_campaigns_that_are_made_from_others_are_valid(n_cells, stress, tmp_path):
    campaign = load_campaign(study.files_of(n_cells, stress, tmp_path) / "controllers.toml")
    assert (campaign.commission is None) == (n_cells == 100)
    wires = [
        wire.kind
        for config in campaign.configs.values()
        for wire in config.tables.model.arrays["muscle"].activation
    ]
    assert set(wires) == {"sma" if stress else "thermal"}


def test_a_pulse_lasts_until_a_wire_without_stress_has_come_to_its_end(tmp_path):
    """They take up to 3.3 s."""
    tables = load(study.files_of(6, False, tmp_path) / "pulses.toml").tables
    steps = tables.controller.steps
    on_s = {cell: step.t_s for step in steps for cell in step.on}
    off_s = {cell: step.t_s for step in steps for cell in step.off}
    assert sorted(on_s) == sorted(off_s) == [1, 2, 3, 4, 5, 6]
    assert min(off_s[cell] - on_s[cell] for cell in on_s) > 3.3
    assert tables.experiment.duration_s > max(off_s.values()) + 3.3


def test_cells_without_stress_fail_as_those_under_it(tmp_path):
    made = load_campaign(study.files_of(6, False, tmp_path) / "cells_that_fail.toml").tables
    under = load_campaign(SIX / "cells_that_fail.toml").tables
    assert (made.cells_break, made.cells_weaken) == (under.cells_break, under.cells_weaken)
    gone = {key for key in under.spread if key.endswith(".middle_C")}
    assert set(made.spread) == set(under.spread) - gone
    assert len(gone) == 2


@pytest.mark.slow
@pytest.mark.parametrize("path", [*sorted(FOLDER.glob("*/*rs.toml")), SIX / "failures.toml"],
                         ids=lambda path: f"{path.parent.name}-{path.stem}")  # fmt: skip
def test_every_campaign_is_valid_with_all_its_plants(path):
    campaign = load_campaign(path)
    assert len(campaign.trials) == len(campaign.configs) * campaign.tables.campaign.plants


def trials_of(errors_N, controllers=CONTROLLERS):
    return pd.DataFrame(
        [
            {
                "controller": name, "set_point": point, "plant": plant,
                "error_N": error_N + 0.1 * i, "from_rest_N": 2.0 * error_N,
                "wear_per_h": 100.0, "supply_A": 0.25,
            }
            for i, name in enumerate(controllers)
            for point in ("steps", "sine", "reach")
            for plant, error_N in enumerate(errors_N, start=1)
        ]
    )  # fmt: skip


def test_errors_have_students_interval_over_plants():
    """Of 1, 2 and 3 % the mean is 2 and the interval 4.303 / sqrt(3) = 2.48 wide."""
    one = Size(6, True, 2.0, trials_of([0.02, 0.04, 0.06], ["PID"]), {})
    [row] = study.errors(one)["rows"]
    assert row == ["PID", *["2.00 ± 2.48"] * 4, "4.00 ± 4.97", "100", "40"]


def test_figures_have_a_bar_for_every_controller_and_set_point():
    one = Size(6, True, 2.0, trials_of([0.02, 0.04, 0.06], [*CONTROLLERS, UNTOLD]), {})
    figure = study._draw_errors(one)
    assert len(figure.axes[0].patches) == 3 * 8
    ticks = [label.get_text() for label in figure.axes[1].get_xticklabels()]
    assert ticks == ["PID", "broadcast", "size\nprinciple", "preview", "modulate", "optimal",
                     "optimal\nmodulated", "optimal\nmodulated,\nnot\ncommissioned"]  # fmt: skip


def test_wires_that_open_are_counted_by_how_they_were_found():
    found = pd.DataFrame(
        [
            ["optimal", 1, "muscle.1", 5.0, 0.02, "named"],
            ["optimal", 2, "muscle.3", 7.0, 0.2, "resistance_out_of_range"],
            ["optimal", 3, "muscle.2", 7.0, 6.0, "named"],
            ["optimal", 4, "muscle.2", 7.0, np.inf, "named"],
            ["optimal", 5, "muscle.6", np.inf, np.nan, "false alarm"],
        ],
        columns=["controller", "plant", "cell", "opened_s", "after_s", "by"],
    )
    [row] = study.named(found)["rows"]
    assert row[:2] == ["optimal", "4"]
    assert row[2].startswith("50 % (15 to 85)")  # Wilson's interval of 2 of 4
    assert row[4:] == ["1", "1"]


@pytest.mark.slow
def test_the_study_runs_its_campaigns_and_makes_its_page(tmp_path):
    sets = ["seeds=2", "tuning_seeds=1", "budget=1", "failure_seeds=3", "workers=1",
            'controllers=["preview","optimal","optimal_modulated"]']  # fmt: skip
    results = run_study("recruitment", sets, tmp_path)
    errors, settings, wires = results["tables"]
    assert [row[0] for row in errors["rows"]] == [
        "preview", "optimal", "optimal_modulated", UNTOLD, EXACT
    ]  # fmt: skip
    shares = [float(row[1].split(" ±")[0]) for row in errors["rows"]]
    assert all(0.5 < share < 30.0 for share in shares)
    assert "wear_price_s = " in settings["rows"][1][1]
    assert wires["rows"]
    for figure in results["figures"]:
        assert Path(tmp_path, figure["file"]).stat().st_size > 10_000


def test_every_modulate_that_is_tried_may_contract_its_wires_in_full(tmp_path):
    """Without stress a wire is austenite from A_f on; held below, it keeps a share of its force."""
    files = study.files_of(6, False, tmp_path)
    hot_C = load_rig(files / "rig.toml").activation()[0].wire.A_f_C
    tune = study.tables_of(values(stress=False), files)["tune"]["parameters"]
    [range_C] = [p for p in tune if p["key"] == "controller.temperature_max_C"]
    assert hot_C <= range_C["low"] < range_C["high"]
