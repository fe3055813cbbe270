"""Tuning in a campaign: what is searched, on which plants, and what is said of the result."""

import csv
import json
import math

import pytest

from hil.__main__ import main
from hil.errors import ConfigError
from hil.record.append_log import read_log
from hil.runs.campaign import search
from hil.runs.campaign.expression import Expression
from hil.runs.campaign.plan import load_campaign
from hil.runs.campaign.tune_tables import ParameterTable, TuneTable
from hil.runs.campaign.tuning import Controller, Objective, Tried, at_edges, best_of, proposed

GAIN = ParameterTable(key="controller.k_p", scale="log", low=0.01, high=100.0)
DELAY = ParameterTable(key="controller.dwell_s", low=0.0, high=2.0)
BLOCKS = ParameterTable(key="controller.n", scale="integer", low=1, high=9)
RULE = ParameterTable(key="controller.rule", scale="choice", choices=["a", "b"])
BOTH = Controller(0, "a.toml", {}, [GAIN, DELAY, BLOCKS, RULE])
LIMITED = 'constraint = "force_N < 100.0"'


def searched(cost, budget, seed=1, broken=lambda setting: 0.0):
    """What the sampler proposes for a cost that is known."""
    tried = []
    while len(tried) < budget:
        n = min(4, budget - len(tried))
        tried += [
            Tried(number, setting, cost(setting), broken(setting))
            for number, setting in proposed(BOTH, seed, tried, n)
        ]
    return tried


def valley(setting):
    """Least, 0, at a gain of 2, a delay of 0.5 s, 4 blocks and rule b."""
    apart = math.log10(setting["controller.k_p"] / 2.0), setting["controller.dwell_s"] - 0.5
    blocks = (setting["controller.n"] - 4) / 10.0
    return apart[0] ** 2 + apart[1] ** 2 + blocks**2 + (setting["controller.rule"] == "a")


def test_the_search_comes_to_a_minimum_that_is_known():
    best = best_of(searched(valley, 80)).setting
    assert best["controller.k_p"] == pytest.approx(2.0, rel=0.6)  # of four decades
    assert best["controller.dwell_s"] == pytest.approx(0.5, abs=0.2)
    assert abs(best["controller.n"] - 4) <= 1
    assert best["controller.rule"] == "b"


def test_a_setting_that_breaks_the_constraint_is_never_the_best():
    tried = searched(valley, 40, broken=lambda setting: setting["controller.dwell_s"] < 1.0)
    best = best_of(tried).setting
    assert best["controller.dwell_s"] == pytest.approx(1.0, abs=0.2)
    assert best["controller.dwell_s"] >= 1.0
    assert best_of([Tried(0, {}, math.inf, 0.0), Tried(1, {}, 1.0, 0.5)]) is None


def test_another_seed_and_another_controller_try_other_settings():
    other = Controller(1, "a.toml", {}, BOTH.parameters)
    first, again = (list(proposed(BOTH, 1, [], 4)) for _ in range(2))
    assert first == again
    assert first != list(proposed(BOTH, 2, [], 4))
    assert first != list(proposed(other, 1, [], 4))


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"controller.k_p": 0.01, "controller.n": 5}, ["k_p = 0.01 is at the lower end"]),
        # 1 % of four decades is a factor of 1.096
        ({"controller.k_p": 92.0, "controller.n": 9}, ["k_p = 92 is at the upper", "n = 9 is at"]),
        ({"controller.k_p": 90.0, "controller.n": 8}, []),
    ],
)
def test_a_value_at_the_end_of_its_range_is_said(setting, said):
    found = at_edges([GAIN, BLOCKS, RULE], setting | {"controller.rule": "a"})
    assert len(found) == len(said)
    assert all(part in line for part, line in zip(said, found, strict=True))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a + 2 * b", 8.0), ("max(a, b) ** 2 - abs(-a)", 7.0), ("sqrt(a + 2 * b + 1)", 3.0),
        ("a < b and not b > 3", True), ("b / (a - 2)", None), ("log(a - 2)", None),
        ("a + c", None), ("(a - 3) ** 0.5", None), ("(a - 3) ** 0.5 < 1", None),
        ("a if a < 1 else max(a)", None), ("a if a < 1 else 'b'", None), ("'b'[a > 1]", None),
        ("10 ** 400 + (a > 5)", None), ("(4 - a) ** 0.5", 2.0**0.5),
    ],
)  # fmt: skip
def test_an_expression_has_the_value_of_its_arithmetic(text, value):
    assert Expression("f: cost", text).value({"a": 2.0, "b": 3.0, "c": None}) == value


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a +", "no expression"), ("forze_N", "is no measure: did you mean 'force_N'?"),
        ("1 + 1", "names no measure"), ("open('x')", "names no measure"),
        ("a < 1", "give a number"),
        ("open(a)", "no expression"), ("'a' * 3 if a else 1", "no expression of numbers"),
        ("a ** 10 ** 10", "no expression"),
        ("__import__('os').system('x') + a", "no expression"),
        ("'b'[1] if a else a", "no expression"),
        pytest.param("-" * 5000 + "a", "no expression", id="5000 signs"),
        pytest.param("-" * 500 + "a", "no expression", id="500 signs"),
    ],
)  # fmt: skip
def test_a_cost_that_is_no_number_of_measures_is_one_line(text, said):
    with pytest.raises(ConfigError, match=r"tune.cost = ") as caught:
        Expression("f: tune.cost", text).check(["a", "force_N"], answers=False)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_mean_of_costs_whose_sum_exceeds_all_numbers_is_their_mean():
    parameters = [{"key": "controller.k_p", "low": 0.0, "high": 1.0}]
    table = TuneTable.model_validate({"cost": "a", "budget": 1, "parameters": parameters})
    runs = [{"figures": {"a": 1.5e308}, "outcome": "complete"}] * 2
    tried = Objective("f", table).of(0, {}, {}, runs)
    assert (tried.cost, tried.fits) == (1.5e308, True)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"scale": "integer", "low": 1.0, "high": 1e300}, r"at most 9007199254740992 \(2\^53\)"),
        ({"low": -1e308, "high": 1e308}, "too far apart: narrow the range"),
    ],
)
def test_a_range_that_no_sampler_takes_is_refused(table, said):
    with pytest.raises(ValueError, match=said):
        ParameterTable(key="controller.k", **table)


@pytest.fixture
def write(tmp_path, configs):
    """The file of a campaign of short runs of six cells, tuned."""

    def written(
        tune=LIMITED, parameter="low = 0.1\nhigh = 10.0", factors="", budget=5,
        cost="abs(force_N) + 0.1 * abs(measured_N)",
    ):  # fmt: skip
        path = tmp_path / "tune.toml"
        path.write_text(
            f"""
[campaign]
name = "tuned"
experiments = ["{configs / "miga6/pid.toml"}"]
plants = 2
keep = "none"
seed = 3
[spread."plant.arrays.muscle.force_on_N"]
relative = 0.05
[factors.duration]
key = "experiment.duration_s"
levels = [0.05]
{factors}
[measures.force_N]
column = "force_model_N"
take = "mean"
[measures.measured_N]
column = "force_measured_N"
take = "mean"
[tune]
cost = "{cost}"
budget = {budget}
plants = 2
{tune}
[[tune.parameters]]
key = "controller.k_p"
{parameter}
"""
        )
        return path

    return written


def rows_of(folder):
    return list(csv.DictReader((folder / "trials.csv").read_text().splitlines()))


@pytest.mark.slow
def test_the_table_has_the_best_setting_on_plants_that_were_not_tuned_on(write, tmp_path, capsys):
    path, folder = write(), tmp_path / "out"
    assert main(["campaign", str(path), "--out", str(folder)]) == 0
    entries = read_log(folder / "journal.jsonl")
    tried = [e for e in entries if e["kind"] == "tried"]
    best = min(tried, key=lambda e: e["cost"])["setting"]["controller.k_p"]
    assert [e["number"] for e in tried] == [0, 1, 2, 3, 4]
    assert [float(row["controller.k_p"]) for row in rows_of(folder)] == [best, best]
    campaign = load_campaign(path)
    [plants], [tuned_on] = campaign.plants.values(), campaign.tuning_plants.values()
    forces = [str(plant) for plant in (*plants, *tuned_on)]
    assert len(set(forces)) == 4
    [controller] = campaign.controllers
    seeds = {t.seed for t in (*campaign.trials, *campaign.tuning_trials(controller))}
    assert len(seeds) == 4
    capsys.readouterr()
    assert main(["campaign", str(path), "--out", str(folder), "--trial", "2"]) == 0
    assert f"controller.k_p = {best}" in capsys.readouterr().out
    page = (folder / "campaign.html").read_text()
    assert "Tuning" in page
    assert "5 settings" in page


@pytest.mark.slow
def test_a_search_that_was_cut_off_goes_on_to_the_same_settings(write, tmp_path, monkeypatch):
    path = write()
    assert main(["campaign", str(path), "--out", str(tmp_path / "whole")]) == 0
    kept, keep = [], search.entry_of

    def cut_off(*what):
        if len(kept) == 2:
            raise KeyboardInterrupt
        kept.append(keep(*what))
        return kept[-1]

    monkeypatch.setattr(search, "entry_of", cut_off)
    assert main(["campaign", str(path), "--out", str(tmp_path / "cut")]) == 130
    monkeypatch.setattr(search, "entry_of", keep)
    assert main(["campaign", str(path), "--out", str(tmp_path / "cut")]) == 0
    whole, cut = (
        [e for e in read_log(tmp_path / name / "journal.jsonl") if e["kind"] == "tried"]
        for name in ("whole", "cut")
    )
    assert cut == whole
    assert [one["setting"] for one in cut[:2]] == [one["setting"] for one in kept]


@pytest.mark.slow
def test_the_same_settings_are_tried_whatever_the_number_of_processes(write, tmp_path, monkeypatch):
    path = write(budget=6)
    assert main(["campaign", str(path), "--out", str(tmp_path / "series")]) == 0
    monkeypatch.setattr("hil.platform.parallel.START_S", (0.0, 0.0))
    assert main(["campaign", str(path), "--out", str(tmp_path / "parallel")]) == 0
    one, other = (
        sorted(
            json.dumps(e)
            for e in read_log(tmp_path / name / "journal.jsonl")
            if e["kind"] == "tried"
        )
        for name in ("series", "parallel")
    )
    assert one == other


def test_factors_that_do_not_change_the_controller_share_one_setting(write):
    path = write(
        factors="[factors.limit]\nkey = 'guard.force_max_N'\nlevels = [7.0, 8.0]\n"
        "[factors.k_i]\nkey = 'controller.k_i_per_s'\nlevels = [1.0, 2.0]\n"
    )
    campaign = load_campaign(path)
    assert [str(one) for one in campaign.controllers] == ["pid, k_i 1.0", "pid, k_i 2.0"]
    trials = campaign.tuning_trials(campaign.controllers[1])
    assert [(t.levels["limit"], t.levels["k_i"]) for t in trials] == [(7.0, 2.0), (8.0, 2.0)] * 2


def test_each_controller_is_tuned_once_for_every_weight_of_the_cost(write, tmp_path):
    """A cost that is the weight and no more: every setting costs the weight."""
    path = write(
        factors="[factors.weight]\nlevels = [2.0, 3]\n", budget=2,
        cost="weight + 0.0 * measured_N",
    )  # fmt: skip
    campaign = load_campaign(path)
    assert [str(one) for one in campaign.controllers] == ["pid, weight 2.0", "pid, weight 3"]
    assert main(["campaign", str(path), "--out", str(tmp_path / "out")]) == 0
    tried = [e for e in read_log(tmp_path / "out/journal.jsonl") if e["kind"] == "tried"]
    assert sorted((e["controller"], e["cost"]) for e in tried) == [
        (0, 2.0), (0, 2.0), (1, 3.0), (1, 3.0)
    ]  # fmt: skip
    assert [row["weight"] for row in rows_of(tmp_path / "out")] == ["2.0", "3", "2.0", "3"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"parameter": "low = 2.0\nhigh = 1.0"}, "low = 2 is not below high = 1"),
        ({"parameter": "low = 0.0\nhigh = 1.0\nscale = 'log'"}, "begins above 0"),
        ({"parameter": "low = 0.5\nhigh = 1.0\nscale = 'integer'"}, "whole numbers"),
        ({"parameter": "scale = 'choice'\nchoices = [1.0]"}, "two choices or more"),
        ({"parameter": "high = 1.0"}, "takes low and high"),
        ({"parameter": "low = -1.0\nhigh = 1.0"}, "tune.parameters.0 of pid: .*k_p"),
        ({"parameter": "low = 0.1\nhigh = 1.0\nof = {experiment = 'x.toml'}"}, "no controller"),
        (
            {"parameter": "low = 1.0\nhigh = 2.0\n[[tune.parameters]]\nkey = 'controller.k_q'\n"
             "low = 1.0\nhigh = 2.0"},
            "of pid: controller.k_q: unknown key: did you mean 'k_p'",
        ),
        ({"parameter": "low = 1.0\nhigh = 2.0\n[[tune.parameters]]\nkey = 'plant.x'\n"
          "low = 1.0\nhigh = 2.0"}, "give a key of the controller"),
        ({"budget": 0}, "tune.budget"),
        ({"tune": 'constraint = "force_N <"'}, "tune.constraint .* no expression"),
        ({"factors": "[factors.g]\nkey = 'controller.k_p'\nlevels = [1.0]\n"}, "set by factors.g"),
        ({"factors": "[factors.k_i]\nkey = 'controller.k_i_per_s'\nlevels = [1.0, 2.0]\n",
          "parameter": "low = 0.1\nhigh = 1.0\nof = {k_i = true}"}, "'k_i': True.*no controller"),
    ],
)  # fmt: skip
def test_what_cannot_be_tuned_is_one_line(write, change, said):
    with pytest.raises(ConfigError, match=said) as caught:
        load_campaign(write(**change))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("tune", "said"),
    [
        ('constraint = "forze_N < 1"', "'forze_N' is no measure: did you mean 'force_N'?"),
        ('constraint = "force_N"', "give a comparison"),
        ('constraint = "force_N < 1 and other_N > 2"', "'other_N' is no measure"),
    ],
)
def test_an_unknown_measure_is_refused_before_anything_runs(write, tmp_path, capsys, tune, said):
    assert main(["campaign", str(write(tune)), "--out", str(tmp_path / "out")]) == 2
    heard = capsys.readouterr().err.strip()
    assert said in heard
    assert "\n" not in heard
    assert not (tmp_path / "out").exists()


def test_a_setting_that_a_plant_refuses_ends_the_search_in_one_line(write, tmp_path, capsys):
    """A dead zone of just half the file's largest step, on plants that are known exactly."""
    path = write()
    text = path.read_text()
    for old, new in (
        ("miga6/pid.toml", "miga6/broadcast.toml"),
        ("controller.k_p", "controller.dead_zone_N"),
        ('keep = "none"', 'keep = "none"\nexact = true'),
        ("relative = 0.05", "relative = 0.2\neach = true"),
        ("low = 0.1\nhigh = 10.0", "low = 0.0858\nhigh = 0.0859"),
        ("budget = 5\nplants = 2", "budget = 5\nplants = 8"),
    ):
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)
    assert main(["campaign", str(path), "--jobs", "1", "--out", str(tmp_path / "out")]) == 2
    heard = capsys.readouterr().err
    assert f"{path}: tuning" in heard
    assert "controller.dead_zone_N = 0.085" in heard
    assert "below half of it some set points are never reached" in heard
    assert "internal error" not in heard
    assert "is left out" not in heard  # no trial began


def test_a_trial_of_a_campaign_that_is_not_tuned_yet_is_one_line(write, tmp_path, capsys):
    words = ["campaign", str(write()), "--out", str(tmp_path / "out"), "--trial", "1"]
    assert main(words) == 2
    assert "pid is not tuned yet: run the campaign first" in capsys.readouterr().err


def test_a_constraint_that_nothing_keeps_is_one_line(write, tmp_path, capsys):
    path = write('constraint = "force_N > 1e6"', budget=1)
    assert main(["campaign", str(path), "--out", str(tmp_path / "out")]) == 2
    assert "none of 1 settings of pid keeps the constraint" in capsys.readouterr().err


def test_a_cost_without_a_number_is_named_and_not_the_constraint(write, tmp_path, capsys):
    path = write(tune="", budget=1, cost="log(-abs(force_N))")
    assert main(["campaign", str(path), "--out", str(tmp_path / "out")]) == 2
    assert (
        f"{path}: tune.cost = 'log(-abs(force_N))': no finite number on all plants for any of "
        "1 settings of pid: change it, and give another --out\n" in capsys.readouterr().err
    )
