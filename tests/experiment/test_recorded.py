"""Configurations of recordings that do not say what was taken for granted when they were made."""

from hil.config.files import read_merged
from hil.experiment.load import load
from hil.experiment.plan import energise_plan
from hil.experiment.recorded import as_it_meant


def test_a_sigmoid_of_which_a_recording_does_not_say_the_law_was_unscaled(configs):
    table = read_merged(configs / "silicone4" / "pid.toml").table
    meant = as_it_meant(table)
    for model in ("model", "plant"):
        laws = {array["activation"]["law"] for array in meant[model]["arrays"].values()}
        assert laws == {"unscaled"}
        assert all("law" not in array["activation"] for array in table[model]["arrays"].values())


def test_a_new_recording_says_the_law_and_keeps_it(configs):
    kept = load(configs / "silicone4" / "pid.toml").to_toml()
    assert 'law = "rescaled"' in kept
    assert 'law = "unscaled"' not in kept


def test_no_table_of_a_damaged_configuration_stops_the_reading():
    for table in ({}, {"model": 3}, {"model": {"arrays": [1]}, "devices": {"daq": {"kind": 1}}},
                  {"devices": {"daq": {"kind": "nidaq", "channels": 2}}, "loop": 1}):  # fmt: skip
        assert as_it_meant(table) == table


def test_the_energise_plan_tells_what_a_cell_pulls_that_is_off(configs):
    """With rate x delay = 1 the unscaled law left 27 % of an active cell's force."""
    sets = [f"model.arrays.muscle.activation.{key}" for key in ("rate_per_s=5.0", "delay_s=0.2")]
    config = load(configs / "silicone1" / "pulse.toml", sets)
    off = [line for line in energise_plan(config) if "all off (" in line]
    assert off
    assert all("settles at 0 N" in line for line in off)
    system = config.system()
    assert not system.y.any()
