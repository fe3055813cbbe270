"""A campaign from a program: the table that comes back, and what is refused."""

from pathlib import Path

import numpy as np
import pytest

import hil
from hil.config.values import as_in_file
from hil.errors import ConfigError
from hil.runs.campaign import runner
from hil.runs.campaign.launch import PROGRAM
from hil.runs.campaign.plan import load_campaign


@pytest.fixture
def tables(configs, tmp_path, monkeypatch):
    """A campaign of four short runs, as a dict; the current folder is an empty one."""
    monkeypatch.chdir(tmp_path)
    return {
        "campaign": {"name": "two gains", "experiments": [str(configs / "miga6/pid.toml")],
                     "plants": 2, "keep": "none"},
        "spread": {"plant.arrays.muscle.force_on_N": {"relative": 0.05}},
        "factors": {"duration": {"key": "experiment.duration_s", "levels": [0.1]},
                    "k_p": {"key": "controller.k_p", "levels": [0.5, 2.0]}},
        "measures": {"force_N": {"column": "force_model_N", "take": "mean"}},
    }  # fmt: skip


def test_the_table_has_every_trial_and_the_figures_of_its_runs(tables, capsys):
    table = hil.campaign(tables, progress=False)
    assert capsys.readouterr() == ("", "")
    assert table.sizes == {"trial": 4}
    drawn = table["plant.arrays.muscle.force_on_N.1"].values[2]
    run = hil.simulate(
        tables["campaign"]["experiments"][0], seed=int(table.seed[2]),
        sets=("experiment.duration_s=0.1", "controller.k_p=0.5",
              f"plant.arrays.muscle.force_on_N={drawn}"),
    )  # fmt: skip
    assert float(table.force_N[2]) == np.mean(run.force_model_N.values)
    assert table.attrs["folder"].startswith("runs/campaign-two-gains-")


def test_tables_may_hold_numbers_of_numpy_tuples_and_paths(tables, tmp_path):
    head, factors = tables["campaign"], tables["factors"]
    head |= {"experiments": (Path(head["experiments"][0]),), "plants": np.int64(1)}
    factors["duration"]["levels"] = (np.float64(0.1),)
    factors["k_p"]["levels"] = np.array([0.5, 2.0])
    factors["limit"] = {"key": "guard.force_max_N", "levels": [np.int64(7), np.int64(8)]}
    loaded = load_campaign(PROGRAM, as_in_file(tables, lambda key, cls: cls))
    assert [list(one.levels.values()) for one in loaded.trials] == [
        [0.1, 0.5, 7], [0.1, 0.5, 8], [0.1, 2.0, 7], [0.1, 2.0, 8]
    ]  # fmt: skip
    factors["k_p"]["levels"] = object()
    with pytest.raises(ConfigError, match=r"the program: factors\.k_p\.levels"):
        hil.campaign(tables, progress=False)


def test_a_complete_campaign_is_not_run_again_and_a_changed_one_is_another(tables, monkeypatch):
    first = hil.campaign(tables, progress=False)
    changed = {**tables, "campaign": {**tables["campaign"], "seed": 1}}
    assert hil.campaign(changed, progress=False).attrs["folder"] != first.attrs["folder"]
    monkeypatch.setattr("hil.runs.campaign.parallel.simulated", None)
    assert hil.campaign(tables, progress=False).identical(first)


def test_an_interrupt_leaves_a_table_and_the_same_call_goes_on(tables, tmp_path, monkeypatch):
    keep, written = runner.attempt_of, []

    def interrupted(*what):
        if len(written) == 2:
            raise KeyboardInterrupt
        written.append(what)
        return keep(*what)

    monkeypatch.setattr(runner, "attempt_of", interrupted)
    with pytest.raises(KeyboardInterrupt, match="the same call goes on in out"):
        hil.campaign(tables, "out", progress=False)
    rows = (tmp_path / "out/trials.csv").read_text().splitlines()
    assert sum("complete" in row for row in rows) == 2
    monkeypatch.setattr(runner, "attempt_of", keep)
    table = hil.campaign(tables, "out", progress=False)
    assert [str(outcome) for outcome in table.outcome.values] == ["complete"] * 4


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"campain": {}}, "the program: campain: unknown key: did you mean 'campaign'"),
        ({"tune": {"cost": "force_N", "budget": 0, "parameters": []}}, "tune.budget = 0"),
        (
            {"factors": {"mine": {"key": "controller.kind", "levels": ["pid", Path]}}},
            r"factors\.mine\.levels\.1 = Path: a campaign loads classes .* 'FILE\.py:Path'",
        ),
        ({"spread": {"controller.k_p": {"relative": 0.1}}}, "a key that the controller knows"),
    ],
)
def test_tables_that_are_wrong_are_one_line(tables, change, said):
    with pytest.raises(ConfigError, match=said) as caught:
        hil.campaign(tables | change)
    assert all(line.startswith("the program: ") for line in str(caught.value).splitlines())
