"""A wait ends when its rule has held for its time, with nothing energised."""

import numpy as np
import pytest

from hil.errors import ConfigError
from hil.experiment.load import load
from hil.loop.frame import Column, Frame
from hil.loop.wait_condition import KNOWN_FOR_S, Condition, WaitCondition
from hil.rig.rig import Rig
from hil.runs.campaign.tables import CampaignTables
from hil.runs.campaign.waits import wait
from hil.systems.array.model.wire_load import stress_Pa

COLUMNS = [Column(name, "1", "measured", "") for name in ("force_N", "a.T_C", "b.T_C")]
PERIOD_S = 0.1


def waited(until, rows):
    """Step through rows of values; the time at which it is over, or None."""
    frame = Frame(COLUMNS)
    until.bind(frame)
    for tick, row in enumerate(rows):
        frame.values[:] = row
        if until.step(tick * PERIOD_S):
            return tick * PERIOD_S
    return None


def test_it_ends_when_everything_has_held_for_so_long_without_a_break():
    until = WaitCondition(
        [Condition("force_N", below=0.05), Condition("*.T_C", below=30.0)], 0.3, 60.0
    )
    rows = [(0.0, 20.0, 40.0)] * 5 + [(0.0, 20.0, 29.0)] * 2 + [(0.1, 20.0, 29.0)]
    rows += [(0.0, 20.0, 29.0)] * 10
    # Holds from tick 8 on: 0.3 s later it is tick 11.
    assert waited(until, rows) == pytest.approx(1.1)
    assert until.met


def test_it_ends_unmet_after_its_longest_time():
    until = WaitCondition([Condition("force_N", above=1.0)], 0.0, 0.5)
    assert waited(until, [(0.0, 0.0, 0.0)] * 20) == pytest.approx(0.5)
    assert not until.met
    assert until.missing() == (["force_N is 0, not above 1"], [])


def test_a_quantity_that_comes_now_and_then_counts_for_a_while_and_no_longer():
    seldom = [(0.0, 20.0, 20.0)] + [(0.0, np.nan, np.nan)] * 30
    n_known = round(KNOWN_FOR_S / PERIOD_S)
    long_enough = WaitCondition([Condition("*.T_C", below=30.0)], (n_known - 1) * PERIOD_S, 60.0)
    assert waited(long_enough, seldom) == pytest.approx((n_known - 1) * PERIOD_S)
    too_long = WaitCondition([Condition("*.T_C", below=30.0)], (n_known + 1) * PERIOD_S, 60.0)
    assert waited(too_long, seldom) is None


def test_what_has_never_been_read_does_not_hold():
    until = WaitCondition([Condition("a.T_C", below=30.0)], 0.0, 60.0)
    assert waited(until, [(0.0, np.nan, 20.0)] * 5) is None
    assert until.readings() == {"a.T_C": None}


def test_what_is_only_looked_at_does_not_end_it():
    until = WaitCondition(
        [Condition("force_N", below=1.0)], 0.2, 9.0, [Condition("a.T_C", above=50.0)]
    )
    assert waited(until, [(0.0, 20.0, 20.0)] * 20) == pytest.approx(0.2)
    assert until.met
    assert until.missing() == ([], ["a.T_C is 20, not above 50"])


def test_a_column_that_is_not_there_is_named_with_those_that_are():
    with pytest.raises(ConfigError, match=r"column = 'forse_N'.*choose force_N, a.T_C, b.T_C"):
        Condition("forse_N", below=1.0).names(COLUMNS)


@pytest.fixture
def hot(configs):
    """The wires, and their plant 15 K above its 23 degC, where they are martensite."""
    config = load(configs / "wires4/pulse.toml")
    plant = config.system(plant=True)
    plant.wires.T_C[:] = 38.0
    return config, plant


def rule(column="*.wire_model_C", **wait_table):
    head = {"name": "w", "experiments": ["x"]}
    until = [{"column": column, "below": 30.0}]
    table = {"until": until, "longest_s": 60.0, **wait_table}
    return CampaignTables.model_validate({"campaign": head, "wait": table})


def look(config, plant, tables):
    return wait(config, tables, clock="virtual", backend="sim", seed=1, plant=plant)


def test_wires_are_waited_for_as_if_they_had_been_as_hot_as_they_may_be(hot):
    """From 180 degC in air of 25 degC by Newton's law, with the latent heat along the law's branch.

    The four cells together pull 1.543 N when on, so that each of the 16 wires gains 0.096 N.
    """
    one = hot[0].activation()[0]
    C, G, L = one.wire.capacity_J_per_m_K, one.wire.loss_W_per_m_K, one.wire.latent_J_per_m
    T_C, xi = np.linspace(180.0, 30.0, 1501), np.ones(1501)
    for _ in range(50):  # tension and austenite determine each other
        tension_N = one.loaded.pretension_N + 1.543 / 16.0 * xi
        xi = one.loaded.law.most(T_C, stress_Pa(one.wire, tension_N))
    heat_J_per_m = -C * np.diff(T_C) - L * np.diff(xi)
    cooled_s = float((heat_J_per_m / (G * (0.5 * (T_C[1:] + T_C[:-1]) - 25.0))).sum())
    found = look(*hot, rule(for_s=0.5))
    assert found.ended == "met"
    assert found.waited_s == pytest.approx(cooled_s + 0.5, rel=0.01)


@pytest.mark.slow
def test_a_boards_temperature_is_that_of_the_clamp_and_says_nothing_of_the_wire(hot):
    """The wires are at 38 degC, their clamps at 23 degC: what boards read holds at once."""
    config, plant = hot
    assert look(config, plant, rule("*.temperature_C", for_s=0.0)).waited_s < 0.1
    plant.wires.clamp_C[:] = 40.0
    found = look(config, plant, rule("*.temperature_C"))
    tau_s = 0.1 / (2.5e-3 + 0.298e-3)  # tests/mechanics/sma/test_clamp.py
    assert found.waited_s == pytest.approx(tau_s * np.log((40 - 23) / (30 - 23)), rel=0.1)


def test_nothing_is_armed_while_it_waits(hot, monkeypatch):
    armed = []
    monkeypatch.setattr(Rig, "arm", lambda self: armed.append(self))
    before = hot[1].wires.T_C.copy()
    look(*hot, rule())
    assert not armed
    assert np.all(hot[1].wires.T_C < before)
    assert not hot[1].wires.current_A.any()


def test_the_twin_which_knows_nothing_of_before_trips_no_wait(hot):
    config, plant = hot
    for _ in range(2000):
        plant.step(np.ones(4))
    # The twin says no force: from 0.5 N of difference on a run trips.
    assert plant.y[plant.outputs.index("muscle.right_N")] > 0.5
    assert look(config, plant, rule()).ended == "met"


def test_a_wait_that_takes_too_long_says_what_does_not_hold(hot):
    found = look(*hot, rule(longest_s=0.1))
    assert found.ended == "late"
    assert found.waited_s == pytest.approx(0.1, abs=1e-9)
    assert len(found.why) == 4
    assert "muscle.1.wire_model_C is" in found.why[0]
    assert "not below 30" in found.why[0]


def test_the_guard_looks_while_it_waits(hot):
    config, plant = hot
    table = {"guard": {"force_max_N": 1e-6}}
    tight = load(config.path, [f"guard.force_max_N={table['guard']['force_max_N']}"])
    found = look(tight, plant, rule())
    assert (found.ended, found.why) == ("tripped", ["force_high"])
