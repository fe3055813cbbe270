"""Which trials a campaign has, in which order; what cannot be run to its end is refused."""

from collections import Counter
from itertools import pairwise

import pytest
import tomli_w

from hil.__main__ import main
from hil.errors import ConfigError
from hil.runs.campaign.plan import load_campaign
from hil.runs.check import check

GAINS = {"key": "controller.loops.slide.k_p", "levels": [50.0, 100.0, 120.0]}
HOLDS = {"key": "experiment.duration_s", "levels": [0.02, 0.03], "unit": "s"}


@pytest.fixture
def write(rigs):
    """Writes a campaign on the slide; keys of [campaign] by name, other tables as given."""

    def written(tables=None, **head):
        own = {"name": "gains", "experiments": ["steps.toml"], **head}
        path = rigs / "slider" / "gains.toml"
        table = {"campaign": own, "factors": {"gain": GAINS, "hold": HOLDS}, **(tables or {})}
        path.write_text(tomli_w.dumps(table))
        return path

    return written


def combinations(trials):
    return [tuple(t.levels.values()) for t in trials]


EVERY = [(g, h) for g in (50.0, 100.0, 120.0) for h in (0.02, 0.03)]


def test_every_combination_comes_as_often_as_it_is_repeated(write):
    for order in ("listed", "random", "blocks"):
        trials = load_campaign(write(repeats=4, order=order)).trials
        assert Counter(combinations(trials)) == dict.fromkeys(EVERY, 4)
        assert [t.number for t in trials] == list(range(1, 25))
        assert len({t.seed for t in trials}) == 24
    assert combinations(load_campaign(write(repeats=2)).trials) == EVERY * 2


def test_the_order_is_the_seeds_and_a_trials_own_seed_does_not_depend_on_it(write):
    first, again = (load_campaign(write(repeats=4, order="random", seed=3)) for _ in range(2))
    assert first.trials == again.trials
    assert first.fingerprint() == again.fingerprint()
    other = load_campaign(write(repeats=4, order="random", seed=4))
    assert combinations(other.trials) != combinations(first.trials)
    listed = load_campaign(write(repeats=4, seed=3))

    def seeds(campaign):
        return {(t.combination, t.repeat): t.seed for t in campaign.trials}

    assert seeds(listed) == seeds(first)


def test_in_a_random_order_any_combination_may_come_first(write):
    firsts = Counter(
        combinations(load_campaign(write(order="random", seed=seed)).trials)[0]
        for seed in range(60)
    )
    # Ten of each are expected; one in 4e5 draws would leave one of the six out.
    assert set(firsts) == set(EVERY)


def test_a_block_is_a_repeat_and_holds_everything_once(write):
    trials = load_campaign(write(repeats=3, order="blocks")).trials
    for block in (1, 2, 3):
        inside = [t for t in trials if t.block == block]
        assert sorted(combinations(inside)) == EVERY
        assert {t.repeat for t in inside} == {block}
    assert combinations(trials)[:6] != combinations(trials)[6:12]


def test_a_block_may_hold_several_repeats(write):
    trials = load_campaign(write(repeats=4, order="blocks", block_size=12)).trials
    assert [t.block for t in trials] == [1] * 12 + [2] * 12
    assert Counter(combinations(trials[:12])) == dict.fromkeys(EVERY, 2)


def test_a_block_may_be_a_level_so_that_it_is_changed_seldom(write):
    trials = load_campaign(write(repeats=2, order="blocks", block_by="gain")).trials
    gains = [t.levels["gain"] for t in trials]
    assert sum(a != b for a, b in pairwise(gains)) == 2
    assert [t.block for t in trials] == [1] * 4 + [2] * 4 + [3] * 4


def test_trials_may_be_listed(write):
    rows = [{"gain": 100.0, "hold": 0.02}, {"gain": 50.0, "hold": 0.03}]
    trials = load_campaign(write({"trials": rows}, repeats=2)).trials
    assert combinations(trials) == [(100.0, 0.02), (50.0, 0.03)] * 2


def test_levels_reach_the_configuration_of_their_trials(write):
    campaign = load_campaign(write())
    for trial in campaign.trials:
        tables = campaign.config(trial).tables
        assert tables.controller.loops["slide"].k_p == trial.levels["gain"]
        assert tables.experiment.duration_s == trial.levels["hold"]
    assert campaign.duration_s == pytest.approx(3 * (0.02 + 0.03))


def test_a_level_may_be_any_line_of_text(write):
    names = ["wires 😀", "ünï", 'a"b\\c', "%s {0} #"]
    factor = {"key": "experiment.name", "levels": names}
    campaign = load_campaign(write({"factors": {"name": factor}}))
    assert [config.tables.experiment.name for config in campaign.configs.values()] == names


def test_a_level_may_set_several_keys_lists_and_tables(write):
    factor = {
        "levels": {
            "slow": {"controller.loops.slide.k_p": 10.0, "reference.signals.slide": {
                "kind": "steps", "t_s": [0.0], "value": [0.01]}},
            "quick": {"reference.signals.slide.value": [0.0, 0.01, 0.01, 0.0]},
        }
    }  # fmt: skip
    campaign = load_campaign(write({"factors": {"pace": factor}}))
    slow, quick = (campaign.config(t).tables for t in campaign.trials)
    assert slow.controller.loops["slide"].k_p == 10.0
    assert quick.reference.signals["slide"].value == [0.0, 0.01, 0.01, 0.0]


def test_a_changed_experiment_makes_another_campaign(write, rigs):
    before = load_campaign(write()).fingerprint()
    rig = rigs / "slider" / "rig.toml"
    rig.write_text(rig.read_text().replace("max = 0.15", "max = 0.149"))
    assert load_campaign(write()).fingerprint() != before


def test_it_is_checked_like_any_other_file(write, configs):
    assert check(write()).kind == "campaign"
    for name in ("day", "controllers"):
        assert check(configs / f"wires4/campaigns/{name}.toml").kind == "campaign"


def test_an_experiment_is_no_campaign(rigs):
    with pytest.raises(ConfigError, match=r"no \[campaign\].*hil run runs experiments$"):
        load_campaign(rigs / "slider" / "steps.toml")


def row(**levels):
    return {"trials": [{"gain": 50.0, "hold": 0.02, **levels}]}


WRONG = [
    ({}, {"repeats": 0}, "campaign.repeats"),
    ({}, {"experiments": []}, "campaign.experiments"),
    ({}, {"experiments": ["none.toml"]}, "no such file"),
    ({}, {"experiments": ["steps.toml", "steps.toml"]}, "is listed twice"),
    ({}, {"block_size": 6}, "are for order = 'blocks'"),
    ({}, {"order": "blocks", "block_size": 6, "block_by": "gain"}, "not both"),
    (
        {},
        {"order": "blocks", "block_size": 4, "repeats": 2},
        r"do not divide 12 trials.*: choose 6, 12$",
    ),
    ({}, {"order": "blocks", "block_size": 12, "repeats": 3}, r"do not divide 18 trials"),
    ({}, {"order": "blocks", "block_by": "colour"}, "choose repeat, experiment, gain, hold"),
    ({}, {"order": "sorted"}, "campaign.order = 'sorted'"),
    ({}, {"repeats": 10_000, "seed": -1}, "campaign.seed"),
    (row(gain=51.0), {}, r"trials.0.gain = 51.0: no level of it: choose 50.0, 100.0, 120.0"),
    (row(gian=50.0), {}, "trials.0.gian: there is no factor of that name"),
    ({"trials": [{"gain": 50.0}]}, {}, "trials.0.hold: missing"),
    (
        {"trials": [{"gain": 50.0, "hold": 0.02}] * 2 + row(gain=100.0)["trials"]},
        {"order": "blocks", "block_by": "gain"},
        "not of one size: 2 at 50.0, 1 at 100.0",
    ),
    ({"factors": {"a": {"levels": [1.0]}}}, {}, "give key, or tell for an instruction"),
    ({"factors": {"a": {"levels": ["x"]}}}, {}, "numbers and its name in tune.cost"),
    ({"factors": {"a": {"key": "k", "levels": []}}}, {}, "at least one level"),
    ({"factors": {"a": {"key": "k", "levels": [1.0, 1.0]}}}, {}, "is listed twice"),
    ({"factors": {"a": {"key": "k", "levels": [1, "1"]}}}, {}, "level 1 is listed twice"),
    ({"factors": {"a": {"key": "k", "levels": [1, True]}}}, {}, "levels 1 and True are one: remov"),
    (
        {"factors": {"a": {"key": "k", "levels": [1, 2]}}, "trials": [{"a": True}]},
        {},
        "trials.0.a = True: no level of it: choose 1, 2",
    ),
    ({"factors": {"a": {"key": "k", "levels": [1, 1.0]}}}, {}, "levels 1 and 1.0 are one: remove"),
    ({"factors": {"a": {"key": "k", "levels": [[1.0], [2.0]]}}}, {}, "need names"),
    (
        {"factors": {"a": {"key": "k", "levels": [[1.0], [2.0]], "names": ["x"]}}},
        {},
        "1 names for 2",
    ),
    ({"factors": {"trial": {"key": "k", "levels": [1.0]}}}, {}, "the name 'trial' is taken"),
    ({"factors": {"a": {"tell": "hang it on", "levels": [1.0]}}}, {}, r"must contain \{level\}"),
    ({"factors": {"a": {"key": "plant", "levels": [1.0]}}}, {}, r"trial 1 \(a 1.0\)"),
    (
        {"factors": {"a": {"key": "controller.loops.slide.k_p", "levels": [1.0, "soft"]}}},
        {},
        r"trial 2 \(a soft\).*must be a number",
    ),
    (
        {"factors": {"a": {"key": "guard.signals.slide.max", "levels": [0.1, 0.2]}}},
        {},
        r"trial 2 \(a 0.2\).*looser than the rig's 0.15",
    ),
    ({"wait": {"until": [], "longest_s": 1.0}}, {}, "wait.until"),
    ({"wait": {"until": [{"column": "x"}], "longest_s": 1.0}}, {}, "give below, above, or both"),
    (
        {"wait": {"until": [{"column": "x", "below": 1.0, "above": 2.0}], "longest_s": 1.0}},
        {},
        "nothing is below 1 and above 2",
    ),
    ({"wait": {"until": [{"column": "x", "below": 1.0}]}}, {}, "wait.longest_s: missing"),
    ({"questions": {"a": {"ask": "?", "kind": "choice"}}}, {}, "choices are for"),
    ({"questions": {"a": {"ask": "?", "kind": "number", "must": True}}}, {}, "an answer of kind"),
    ({"questions": {"gain": {"ask": "?"}}}, {}, "the name 'gain' is taken"),
    ({"measures": {"a": {"column": "x", "take": "middle"}}}, {}, "measures.a.take"),
    (
        {"measures": {"a": {"column": "x", "take": "max", "from_s": 2.0, "to_s": 1.0}}},
        {},
        "not after",
    ),
    ({"after_trip": {"do": "retry", "retries": 0}}, {}, "after_trip.retries"),
    ({"wiat": {}}, {}, "did you mean 'wait'"),
]  # fmt: skip


@pytest.mark.parametrize(("tables", "head", "said"), WRONG)
def test_what_cannot_be_run_is_refused_in_lines_that_name_it(write, tables, head, said):
    path = write(tables, **head)
    with pytest.raises(ConfigError, match=said) as refused:
        load_campaign(path)
    assert all(line.startswith(str(path.parent)) for line in str(refused.value).splitlines())


def test_a_campaign_is_warned_of_a_board_that_its_port_does_not_tell_from_others(rigs, capsys):
    file = rigs / "wires4/rig.toml"
    text = file.read_text()
    port = next(line for line in text.splitlines() if line.startswith("port = "))
    file.write_text(text.replace(port, 'port = "/dev/ttyUSB0"'))
    assert main(["check", str(rigs / "wires4/campaigns/day.toml")]) == 0
    said = capsys.readouterr().out
    assert said.count("devices.board.serial: missing: another board may be at /dev/ttyUSB0") == 1
