"""The study of cells that fail: what counts, and the intervals of its tables."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from hil.errors import ConfigError
from hil.experiment.load import load_rig, load_with
from hil.runs.campaign.plan import load_campaign
from hil.systems.array import build_recruitment
from hil.systems.array.build_recruitment import NominalArray
from hil.systems.array.tables import ObserverTable
from hil_studies.recruitment import failing, study
from hil_studies.recruitment.failing import COLUMNS, SIX


def a_run(named_s, cell, *, until_s=30.0):
    """Ten ticks a second; a cell of three named at a time; all at a third of the contrast 0.1."""
    t_s = 0.1 * np.arange(round(until_s / 0.1))
    failed = np.zeros((len(t_s), 3), dtype=np.uint8)
    failed[t_s >= named_s, cell] = 1
    ohm = {
        f"muscle.{n}.resistance_Ohm": ("tick", np.where(t_s < 2.0, 50.0, 50.0 * (1.0 - 0.1 / 3)))
        for n in (1, 2, 3)
    }
    return xr.Dataset(
        {"cells_failed": (("tick", "cell"), failed), **ohm},
        coords={"t_s": ("tick", t_s), "cell": ["muscle.1", "muscle.2", "muscle.3"]},
    )


def seen(run, failures):
    return dict(zip(COLUMNS[2:], failing.seen_in(run, failures, 0.1), strict=True))


def test_a_cell_that_is_named_in_time_is_told_from_another_and_from_a_false_alarm():
    failures = [(10.0, "weak", "muscle.2")]
    right = seen(a_run(11.5, 1), failures)
    assert right["named_after_s"] == pytest.approx(1.5)
    assert right["austenite"] == pytest.approx(1.0 / 3.0)
    assert (right["others"], right["false_alarms"], right["intact_s"]) == (0, 0, 10.0)
    other = seen(a_run(11.5, 2), failures)
    assert (other["named_after_s"], other["others"]) == (np.inf, 1)
    early = seen(a_run(4.0, 1), failures)
    assert (early["kind"], early["false_alarms"]) == ("", 1)
    assert seen(a_run(12.0, 0), [])["false_alarms"] == 1


def test_a_cell_that_fails_beside_another_counts_only_until_then():
    two = seen(a_run(11.0, 1), [(10.0, "weak", "muscle.2"), (12.0, "broken", "muscle.1")])
    assert (two["kind"], two["intact_s"]) == ("", 10.0)


def test_failures_are_read_from_a_campaigns_column():
    assert failing.failures_of("board_a 2: 22.468 s, board_b 3: 23.280 s") == [
        ("board_a", 2, 22.468), ("board_b", 3, 23.28)]  # fmt: skip
    assert failing.failures_of("nan") == []


@pytest.mark.parametrize("stress", [True, False])
def test_the_tests_of_cells_know_whether_load_moves_a_wires_branches(stress, tmp_path, monkeypatch):
    given = []
    monkeypatch.setattr(build_recruitment, "CellFailures", lambda *args: given.append(args))
    rig = load_rig(study.files_of(6, stress, tmp_path) / "rig.toml")
    nominal = NominalArray(rig.models[0], tuple(rig.activation()), "muscle.right_N", 0.01)
    nominal.cell_failures(ObserverTable.model_validate({"cell_failures": {}}))
    [(_, _, wires, _)] = given
    assert list(wires.stressed) == 6 * [stress]


def test_tables_have_the_intervals_of_wilson_and_poisson():
    """Of 2 in 4 Wilson's is 15 to 85 %; of 1 in 0.5 h Poisson's is 0.05 to 11.1 an hour."""
    base = {"plant": 1, "set_point": "sine", "kind": "weak", "cell": "muscle.1", "failed_s": 20.0,
            "austenite": 0.5, "suspected_after_s": 1.0, "others": 0, "intact_s": 450.0,
            "false_alarms": 0}  # fmt: skip
    rows = [base | {"named_after_s": s} for s in (1.0, 2.0, 5.0, np.inf)]
    rows[3]["false_alarms"] = 1
    table = pd.DataFrame(rows)
    [row] = failing.named(table, "six")["rows"]
    assert row[:3] == ["weak, pulls", "4", "50 % (15 to 85)"]
    [row] = failing.alarms(table, "six")["rows"]
    assert row == ["0.50", "1", "2.0 (0.1 to 11.1)"]


def test_tests_by_resistance_are_refused_on_boards_that_measure_none():
    sets = ["devices.board_a.limits.sense_every_ms=0", "devices.board_b.limits.sense_every_ms=0",
            "devices.board_a.limits.current_on_min_mA=147",
            "devices.board_b.limits.current_on_min_mA=147",
            "observer.cell_failures={}"]  # fmt: skip
    tables = {"experiment": {"name": "one", "duration_s": 1.0},
              "reference": {"kind": "steps", "t_s": [0.0], "force_N": [0.3]},
              "controller": {"kind": "pid", "k_p": 1.0}}  # fmt: skip
    with pytest.raises(ConfigError, match="no board measures resistance"):
        load_with(SIX / "rig.toml", tables, "test", sets)


@pytest.mark.slow
def test_the_campaign_is_valid_with_all_its_plants():
    campaign = load_campaign(SIX / "cells_that_fail.toml")
    assert len(campaign.trials) == 2 * 12


@pytest.mark.slow
def test_of_commissioned_plants_no_cell_is_named_that_is_intact(tmp_path):
    """At one a day, the chance of one in these minutes is below 1 %."""
    made = failing.run(tmp_path, failing.Values(seeds=3, workers=1))
    [[hours, named, _]] = made["tables"][-1]["rows"]
    assert float(hours) > 0.05
    assert int(named) == 0
