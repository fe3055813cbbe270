"""A recording of a weight on a wire is read as its loop."""

import numpy as np
import pytest

import hil
from hil.errors import ModelError
from hil.identification.wire_loops.recorded import is_loop, read_loop

TIMES = ((0.1, "on"), (0.6, "off"), (1.6, "on"), (4.6, "off"))
CYCLES = f"controller.steps=[{','.join(f'{{t_s={t_s},{way}=[1]}}' for t_s, way in TIMES)}]"


def recorded(configs, out, *sets):
    sets = ["experiment.duration_s=9.0", "loop.period_s=0.004", "devices.board.every=2", *sets]
    return hil.run(hil.load(configs / "isotonic/pulse.toml", [CYCLES, *sets]), seed=1, out=out)


@pytest.fixture(scope="module")
def weight(configs, tmp_path_factory):
    return recorded(configs, tmp_path_factory.mktemp("weight") / "weight.h5")


@pytest.mark.slow
def test_its_loop_is_that_of_the_law_at_the_weights_stress(weight, configs):
    """The last cycle, whose branches are those of the plant's law; the first is a part only."""
    assert is_loop(weight)
    loop = read_loop(weight, 1000.0)
    assert loop.stress_Pa == pytest.approx(0.12 * 9.80665 / (0.25 * np.pi * 0.1e-3**2))
    law = hil.load(configs / "isotonic/pulse.toml").activation()[0].loaded.law
    hot = float(law.least(loop.T_C.max(), loop.stress_Pa))  # all of the austenite that there is
    for side, fraction in ((loop.heating, law.least), (~loop.heating, law.most)):
        expected = 0.04458 * (hot - np.minimum(fraction(loop.T_C[side], loop.stress_Pa), hot))
        assert np.sqrt(np.mean((loop.strain[side] - expected) ** 2)) < 0.01 * 0.04458


def test_a_rig_whose_channels_do_not_suffice_is_refused(configs, all_on, tmp_path):
    assert not is_loop(all_on)
    with pytest.raises(ModelError, match="has no column temperature_measured_C"):
        read_loop(all_on, 1000.0)
    cold = "controller.steps=[{t_s=8.0,on='all'}]"
    never = recorded(configs, tmp_path / "never.h5", cold, "experiment.duration_s=0.4")
    with pytest.raises(ModelError, match="its cell was never on"):
        read_loop(never, 1000.0)
