"""Loading the same rig again takes the model that is there, with its matrices."""

import numpy as np

from hil.experiment.load import load_model


def heavier(configs, mass_kg):
    return load_model(configs / "miga6/rig.toml", [f"model.arrays.muscle.mass_kg={mass_kg}"]).model


def test_an_equal_table_has_the_model_that_is_there_and_another_has_its_own(configs):
    first = heavier(configs, 0.02)
    assert heavier(configs, 0.02) is first
    other = heavier(configs, 0.03)
    assert other is not first
    assert not np.array_equal(other.A, first.A)
    assert heavier(configs, 0.02) is first


def test_a_model_is_not_kept_for_long(configs):
    first = heavier(configs, 0.02)
    for mass_kg in (0.03, 0.04, 0.05, 0.06):
        last = heavier(configs, mass_kg)
    again = heavier(configs, 0.02)
    assert again is not first
    np.testing.assert_array_equal(again.A, first.A)
    assert heavier(configs, 0.06) is last
