"""Gymnasium environments: the checker of Gymnasium, seeds, trips and mistakes."""

import signal

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import hil
from hil.environments import BUNDLED, RigEnvironment
from hil.errors import ConfigError
from hil.rig.rig import Rig


@pytest.fixture
def make():
    """Environments that are closed after the test."""
    made = []

    def environment(name="Array6-v0", **changes):
        made.append(RigEnvironment(**BUNDLED[name] | {"duration_s": 0.5} | changes))
        return made[-1]

    yield environment
    for one in made:
        one.close()


def episode(environment, seed, action):
    """Observations and rewards of an episode under one action."""
    observations, rewards = [environment.reset(seed=seed)[0]], []
    while True:
        observation, reward, terminated, truncated, info = environment.step(action)
        observations.append(observation)
        rewards.append(reward)
        if terminated or truncated:
            return np.array(observations), np.array(rewards), terminated, info


@pytest.mark.filterwarnings("error")
@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize("name", BUNDLED)
def test_gymnasium_accepts_every_environment(make, name):
    check_env(make(name), skip_render_check=True)


def test_an_environment_is_made_by_its_name():
    environment = gymnasium.make("hil/Array14-v0", duration_s=0.5)
    observation, _ = environment.reset(seed=1)
    assert observation.shape == (16,)
    environment.close()


def test_an_episode_follows_from_its_seed_alone(make):
    one, other = make(), make()
    first = episode(one, 5, np.ones(6))
    episode(one, 6, np.zeros(6))
    for again in (episode(one, 5, np.ones(6)), episode(other, 5, np.ones(6))):
        np.testing.assert_array_equal(again[0], first[0])
        np.testing.assert_array_equal(again[1], first[1])
    assert (episode(one, 7, np.ones(6))[0] != first[0]).any()


def test_two_environments_take_turns(make):
    one, other = make(), make()
    alone = episode(make(), 5, np.ones(6))[0]
    one.reset(seed=5)
    other.reset(seed=8)
    for expected in alone[1:]:
        other.step(np.zeros(6))
        np.testing.assert_array_equal(one.step(np.ones(6))[0], expected)


def test_an_episode_is_the_run_that_a_schedule_makes(make):
    """The same commands from the start: force, cells and time of `hil.simulate`."""
    environment = make()
    environment.reset(seed=5)
    while not environment.step(np.array([1, 0, 1, 0, 0, 0]))[3]:
        pass
    run = environment.dataset()
    assert run.attrs["outcome"] == "complete"
    schedule = {"kind": "schedule", "steps": [{"t_s": 0.001, "on": [1, 3]}]}
    seed = int(run.attrs["seed"])
    alike = hil.simulate(
        hil.load("configs/miga6/pid.toml", ["experiment.duration_s=0.5"], controller=schedule),
        seed=seed,
    )
    np.testing.assert_array_equal(run.cells_reported, alike.cells_reported)
    np.testing.assert_array_equal(run.force_measured_N, alike.force_measured_N)


def test_the_reward_is_the_square_of_the_error_over_the_range(make):
    environment = make()
    environment.reset(seed=2)
    _, reward, _, _, info = environment.step(np.ones(6))
    assert reward == pytest.approx(-(((info["force_N"] - info["set_point_N"]) / 1.4) ** 2))


def test_a_trip_ends_the_episode_and_costs_what_is_left(make):
    environment = make(sets=["guard.force_max_N=0.5"], range_N=(0.0, 0.4))
    _, rewards, terminated, info = episode(environment, 1, np.ones(6))
    assert terminated
    assert "force_high" in info["faults"]
    assert rewards[-1] < -1.0
    assert environment.dataset().attrs["outcome"] == "tripped"
    with pytest.raises(gymnasium.error.ResetNeeded):
        environment.step(np.ones(6))


def test_a_duty_that_no_board_can_measure_is_rounded(make):
    environment = make("Wires4-v0")
    environment.reset(seed=1)
    observation = environment.step(np.array([0.01, 0.05, 0.5, 1.0]))[0]
    np.testing.assert_allclose(observation[2:], [0.0, 16 / 255, 0.5, 1.0])


@pytest.mark.parametrize(
    "action", [np.ones(5), np.full(6, np.nan), np.full(6, 2.0), np.full(6, -1.0), "on"]
)
def test_an_action_of_another_kind_is_refused_and_changes_nothing(make, action):
    environment = make()
    environment.reset(seed=1)
    with pytest.raises(ValueError, match=r"give MultiBinary\(6\)"):
        environment.step(action)
    assert not environment.step(np.zeros(6))[0][2:].any()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"step_s": 0.0001}, "give a step of at least a period"),
        ({"step_s": float("nan")}, "give a step of at least a period"),
        ({"range_N": (1.0, 1.0)}, "a range that rises"),
        ({"range_N": (0.0, float("nan"))}, "a range that rises"),
        ({"config": "configs/leg/down.toml"}, "reference"),
        ({"config": "no.toml"}, r"no\.toml"),
    ],
)
def test_an_argument_that_cannot_be_is_one_line(make, changes, said):
    with pytest.raises(ConfigError, match=said) as caught:
        make(**changes).reset(seed=1)
    assert "\n" not in str(caught.value)


def test_before_reset_there_is_no_step_and_no_recording(make):
    environment = make()
    for call in (lambda: environment.step(np.zeros(6)), environment.dataset):
        with pytest.raises(gymnasium.error.ResetNeeded):
            call()


def test_a_signal_while_an_episode_begins_ends_the_program_and_leaves_nothing_to_close(
    make, monkeypatch
):
    """`make` closes the environment after the test."""
    environment, tested = make(), Rig.self_test

    def signalled(rig, say):
        signal.raise_signal(signal.SIGINT)
        return tested(rig, say)

    monkeypatch.setattr(Rig, "self_test", signalled)
    with pytest.raises(KeyboardInterrupt, match="SIGINT"):
        environment.reset(seed=1)
    with pytest.raises(gymnasium.error.ResetNeeded):
        environment.step(np.zeros(6))
