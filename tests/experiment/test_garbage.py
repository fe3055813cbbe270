import tempfile
import tomllib
from pathlib import Path

import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st

from hil.errors import ConfigError
from hil.experiment.load import load, load_model
from hil.runs.check import check

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
SHIPPED = sorted(CONFIGS.glob("*/*.toml"))
TABLES = {path: tomllib.loads(path.read_text()) for path in SHIPPED}

quick = settings(max_examples=2 * settings().max_examples, deadline=None)

KEYS = "model plant devices loop guard kind arrays points muscle cell experiment controller rig"
words = st.sampled_from([*KEYS.split(" "), "steps", "on", "a.b", "a/b", "", "\x00"])
scalars = st.one_of(
    st.booleans(),
    st.integers(),
    st.integers(min_value=2**63, max_value=2**80),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["-:1 | &1:2", "-:1 | &1:-1", "&", "-:0", "all", "pid", "1e400", "\n"]),
    st.datetimes(),
    st.dates(),
)
keys = st.one_of(words, st.text(max_size=5))
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(keys, inner, max_size=4)),
    max_leaves=8,
)


def refuses_politely(text, sets=(), rig=None):
    """Load a file with this text by every entry; only ConfigError with good lines may come."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "garbage.toml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "replace"))
        if rig is not None:
            (Path(folder) / "rig.toml").write_text(rig)
        for entry in (check, load, lambda *of: load_model(*of).models):
            try:
                entry(path, sets)
            except ConfigError as error:
                lines = str(error).split("\n")
                assert all(line.strip() for line in lines)
                for line in lines:
                    assert line.startswith((folder, "--set ")), line
                    assert line.isprintable()


@quick
@given(st.one_of(st.text(), st.binary()))
def test_random_text_is_refused_politely(text):
    refuses_politely(text)


@quick
@given(st.dictionaries(keys, values, max_size=6))
def test_random_tables_are_refused_politely(table):
    refuses_politely(tomli_w.dumps(table))


def places(table, path=()):
    """The path of every value in nested tables and lists."""
    items = table.items() if isinstance(table, dict) else enumerate(table)
    for key, value in items:
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from places(value, (*path, key))


def changed(table, path, how, value):
    """A copy with the value at the path replaced, removed or joined by a new key."""
    if not path:
        return value
    copy = dict(table) if isinstance(table, dict) else list(table)
    key, *rest = path
    if rest:
        copy[key] = changed(copy[key], rest, how, value)
    elif how == "replace":
        copy[key] = value
    elif how == "remove":
        del copy[key]
    elif isinstance(copy, dict):
        copy[f"{key}_"] = value
    else:
        copy.insert(key, value)
    return copy


small = st.one_of(scalars, st.lists(scalars, max_size=3), st.sampled_from([-1, 0, -1.0, 1e300]))


@pytest.mark.slow
@settings(max_examples=3 * settings().max_examples, deadline=None)
@given(st.data())
def test_shipped_files_with_a_random_change_are_refused_politely_or_run(data):
    path = data.draw(st.sampled_from(SHIPPED))
    table = TABLES[path]
    place = data.draw(st.sampled_from(list(places(table))))
    how = data.draw(st.sampled_from(["replace", "remove", "add"]))
    text = tomli_w.dumps(changed(table, list(place), how, data.draw(small)))
    refuses_politely(text, rig=(path.parent / "rig.toml").read_text())


@quick
@given(st.data())
def test_random_sets_are_refused_politely_or_taken(data):
    path = data.draw(st.sampled_from(SHIPPED))
    rig = TABLES[path.parent / "rig.toml"]
    place = data.draw(st.sampled_from([p for p in places(rig) if isinstance(p[-1], str)]))
    dotted = ".".join(str(part) for part in place)
    value = data.draw(st.one_of(st.text(max_size=10), scalars.map(repr)))
    refuses_politely(
        path.read_text(), [f"{dotted}={value}"], rig=(path.parent / "rig.toml").read_text()
    )


@quick
@given(st.text(max_size=20))
def test_any_text_for_set_is_refused_politely(text):
    miga6 = CONFIGS / "miga6"
    refuses_politely(
        (miga6 / "all_on.toml").read_text(), [text], rig=(miga6 / "rig.toml").read_text()
    )


@pytest.mark.slow_beyond(30)
@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_shipped_file_is_valid(path):
    assert check(path).kind == ("rig" if path.name == "rig.toml" else "experiment")


@pytest.mark.slow_beyond(12)
@pytest.mark.parametrize(
    "path", [p for p in SHIPPED if p.name != "rig.toml"], ids=lambda p: f"{p.parent.name}/{p.stem}"
)
def test_the_stored_configuration_loads_to_the_same_configuration(path, rigs):
    config = load(path)
    again = rigs / path.parent.name / "stored.toml"  # records are named relative to it
    again.write_text(config.to_toml())
    assert load(again).tables == config.tables
