"""Whatever a campaign's file says, it is planned or refused in lines that name the file."""

import tomllib

import pytest
import tomli_w
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from experiment.test_garbage import changed, places, scalars, small
from hil.errors import ConfigError
from hil.runs.check import check

EXTRA = {
    "preconditions": [{"column": "force_measured_N", "above": -1.0, "say": "tare"}],
    "trials": [{"cells_on": "one", "heated_s": 1.2}, {"cells_on": "four", "heated_s": 1.6}],
}


@pytest.fixture(scope="module")
def day(configs, tmp_path_factory):
    """The shipped day, smaller and with all that it leaves out; its experiment is a stand-in."""
    folder = tmp_path_factory.mktemp("garbage")
    table = tomllib.loads((configs / "wires4/campaigns/day.toml").read_text())
    table["campaign"] |= {"experiments": [str(configs / "wires4/pulse.toml")], "repeats": 2}
    return folder / "day.toml", table | EXTRA


def refuses_politely(path, text):
    path.write_bytes(text.encode("utf-8", "replace"))
    try:
        check(path)
    except ConfigError as error:
        for line in str(error).split("\n"):
            assert line.startswith(str(path)), line
            assert line.isprintable()


@settings(max_examples=settings().max_examples // 2, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_the_day_with_a_random_change_is_refused_politely_or_planned(day, data):
    path, table = day
    place = data.draw(st.sampled_from(list(places(table))))
    how = data.draw(st.sampled_from(["replace", "remove", "add"]))
    refuses_politely(path, tomli_w.dumps(changed(table, list(place), how, data.draw(small))))


@given(levels=st.lists(st.one_of(scalars, st.lists(scalars, max_size=2)), max_size=3))
def test_any_levels_are_refused_politely_or_planned(day, levels):
    path, table = day
    factor = {"key": "experiment.name", "levels": levels}
    own = {k: v for k, v in table.items() if k != "trials"} | {"factors": {"name": factor}}
    refuses_politely(path, tomli_w.dumps(own))
