"""Skeletons from configurations: what is wrong with one is said in one line."""

import tomllib

import pytest
import tomli_w

from hil.bundled_configs import root
from hil.errors import ConfigError
from hil.runs.check import check
from hil.systems.bodies.build import build_skeleton
from hil.systems.bodies.tables import BodiesTable


@pytest.fixture
def hand():
    return tomllib.loads((root() / "configs" / "hand" / "rig.toml").read_text())


def refusal(tmp_path, table):
    path = tmp_path / "rig.toml"
    path.write_text(tomli_w.dumps(table))
    with pytest.raises(ConfigError) as refused:
        check(path)
    text = str(refused.value)
    assert "\n" not in text
    assert str(path) in text
    return text


def test_a_skeleton_survives_being_written_and_read_again(tmp_path, hand):
    # Recordings keep the configuration as TOML; the first module is the one that moves.
    again = tomllib.loads(tomli_w.dumps(hand))
    names = [
        build_skeleton(BodiesTable.model_validate(table["model"])).names for table in (hand, again)
    ]
    assert names[0] == names[1]
    assert names[0][0] == "palm.carpus"


def test_a_connection_to_a_joint_that_is_not_there(tmp_path, hand):
    hand["model"]["connections"]["index"]["lower"] = "palm.knuckles.indx"
    text = refusal(tmp_path, hand)
    assert "model.connections.index.lower: link 'knuckles' has no point 'indx'" in text
    assert "index, middle" in text


def test_a_connection_to_a_module_that_is_not_there(tmp_path, hand):
    hand["model"]["connections"]["index"]["upper"] = "finger.proximal.bottom"
    assert "no module 'finger': choose palm, thumb" in refusal(tmp_path, hand)


def test_a_closed_loop(tmp_path, hand):
    hand["model"]["connections"]["ok"] = {"lower": "thumb.distal.top", "upper": "index.distal.top"}
    text = refusal(tmp_path, hand)
    assert "model.connections.ok: closes a loop: 'thumb' and 'index' are connected already" in text


def test_a_module_closed_on_itself(tmp_path, hand):
    connection = {"lower": "palm.knuckles.top", "upper": "palm.carpus.bottom"}
    hand["model"]["connections"]["loop"] = connection
    assert "joins module 'palm' to itself" in refusal(tmp_path, hand)


def test_a_module_that_hangs_on_nothing(tmp_path, hand):
    del hand["model"]["connections"]["thumb"]
    assert "module 'thumb': not connected to 'palm'" in refusal(tmp_path, hand)


def test_an_inertia_that_is_not_positive_definite(tmp_path, hand):
    hand["model"]["modules"][0]["links"][1] = {
        "name": "metacarpus", "kind": "body", "length_m": 0.03, "centre_m": 0.015, "mass_kg": 0.1,
        "inertia_kg_m2": [[1e-4, 2e-4, 0.0], [2e-4, 1e-4, 0.0], [0.0, 0.0, 1e-4]],
    }  # fmt: skip
    text = refusal(tmp_path, hand)
    assert (
        "model.modules: module 'palm', link 'metacarpus': inertia_kg_m2: not positive definite"
        in text
    )


def test_an_inertia_of_two_moments(tmp_path, hand):
    hand["model"]["modules"][0]["links"][1] = {
        "name": "metacarpus", "kind": "body", "length_m": 0.03, "centre_m": 0.015, "mass_kg": 0.1,
        "inertia_kg_m2": [1e-4, 1e-4],
    }  # fmt: skip
    assert "give three principal moments or a 3 x 3 matrix" in refusal(tmp_path, hand)


def test_a_joint_that_is_held_but_is_not_there(tmp_path, hand):
    hand["model"]["holds"]["elbow"] = {"active_N_m_per_rad": 1.0}
    assert "model.holds.elbow: no such joint" in refusal(tmp_path, hand)


def test_a_pose_of_a_link_that_is_not_there(tmp_path, hand):
    hand["model"]["pose_rad"] = {"thumb.nail": [0.0, 0.0, 0.0]}
    assert "pose_rad" in refusal(tmp_path, hand)


def test_two_links_are_no_module(tmp_path, hand):
    hand["model"]["modules"][1]["links"].pop()
    assert "model.modules.1.links" in refusal(tmp_path, hand)


def test_two_modules_of_one_name(tmp_path, hand):
    hand["model"]["modules"][2]["name"] = "thumb"
    assert "two are called 'thumb'" in refusal(tmp_path, hand)


def test_a_joint_too_stiff_for_the_steps(tmp_path, hand):
    hand["model"]["holds"]["all"]["active_N_m_per_rad"] = 1e5
    assert "lower its stiffness, viscosity or twist" in refusal(tmp_path, hand)
