"""What a plan chooses by itself, and what it refuses before anything is built."""

import numpy as np
import pytest

from hil.errors import ConfigError
from hil.experiment.load import load
from hil.runs.plan import Plan
from hil.runs.recording import Output
from hil.runs.session import from_options


@pytest.fixture
def config(configs):
    return load(configs / "wires4/hold.toml")


@pytest.mark.parametrize(
    ("backend", "clock"), [("sim", "virtual"), ("emulated", "virtual"), ("board=bench", "real")]
)
def test_the_clock_is_real_where_a_device_is_on_the_bench_and_virtual_elsewhere(
    config, backend, clock
):
    assert Plan(config, backend).clock == clock
    assert Plan(config, backend).real == ({"board"} if "bench" in backend else set())


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"backend": "board=bench", "clock": "virtual"}, "--clock virtual: --backend board=bench"),
        ({"clock": "fast"}, "--clock fast: choose virtual or real"),
        ({"seed": -1}, "--seed -1: "),
        ({"seed": 2**63}, f"--seed {2**63}: "),
        ({"seed": 1.5}, "--seed 1.5: give a whole number"),
        ({"seed": "a"}, "--seed 'a': give a whole number"),
        ({"backend": "bord=sim"}, "--backend "),
    ],
)
def test_what_cannot_run_is_refused_in_one_line_that_names_the_option(config, options, line):
    with pytest.raises(ConfigError) as refused:
        Plan(config, **options)
    assert str(refused.value).startswith(line)
    assert "\n" not in str(refused.value)


def test_an_output_that_exists_is_refused_before_anything_is_rehearsed(config, tmp_path):
    path = tmp_path / "run.h5"
    path.write_text("mine")
    with pytest.raises(ConfigError, match="exists already: choose another --out"):
        Output(path).path(config)
    assert Output(path, force=True).path(config) == path
    assert path.read_text() == "mine"


def test_an_option_that_a_run_has_not_is_named_beside_those_that_it_has(config):
    with pytest.raises(TypeError, match=r"no option sed: it has .*\bseed\b"):
        from_options(config, {"seed": 1, "sed": 3})


@pytest.mark.parametrize(
    ("attributes", "line"),
    [
        ({"format": 99}, "attributes: 'format': a run writes this one itself"),
        ({"created_utc": "x"}, "attributes: 'created_utc': a run writes"),
        ({"campaign": "mine"}, "attributes: 'campaign': a run writes"),
        ({"operator": "anna"}, "attributes: 'operator': a run writes"),
        ({3: "x"}, "attributes: 3: give a text as its name"),
        ({"": "x"}, "attributes: '': give a text as its name"),
        ({"batch": None}, "attributes: 'batch' = None: give a number or a text"),
        ({"batch": "a\0b"}, "attributes: 'batch' = 'a\\x00b': give a number or a text"),
    ],
)
def test_an_attribute_that_would_spoil_a_recording_is_refused_before_the_run(
    config, attributes, line
):
    """With a format of its own the recording of a run could not be opened any more."""
    with pytest.raises(ConfigError) as refused:
        from_options(config, {"attributes": attributes})
    assert str(refused.value).startswith(line)
    from_options(config, {"attributes": {"batch": "B 7", "mass_kg": np.float32(0.1), "n": 3}})
