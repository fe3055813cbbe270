"""Loops that were not fitted are predicted within what their stroke allows, and the band holds."""

import numpy as np
import pytest

from hil.errors import ModelError
from hil.identification.wire_loops.fit import (
    NAMES,
    band,
    fit,
    isobaric,
    law_of,
    rms_of_stroke,
)
from hil.identification.wire_loops.loops import Loop, shipped
from hil_studies.wires.rivals import RIVALS

TRUE = dict(
    zip(
        NAMES,
        [0.03, 0.012, np.log(0.01), 11.0, 6.6, 25.0,
         80.0, 1 / 8.0, 0.1, np.log(2.0), np.log(4.0), -0.3, 0.2, 0.5,
         55.0, 1 / 7.0, 0.05, np.log(2.2), np.log(4.0), -0.3, 0.2, 0.5],
        strict=True,
    )
)  # fmt: skip


def drawn(stress_MPa, seed):
    """A loop of a wire whose law is TRUE, read with noise of 0.2 % of the stroke."""
    T_C = np.concatenate([np.linspace(20.0, 150.0, 120), np.linspace(150.0, 20.0, 120)])
    heating = np.arange(240) < 120
    exact = Loop("drawn", T_C, np.zeros(240), heating, 1e6 * stress_MPa)
    strain = isobaric(law_of(np.array(list(TRUE.values()))), exact)
    noise = np.random.default_rng(seed).normal(scale=1e-4, size=240)
    return Loop(f"{stress_MPa} MPa", T_C, strain + noise, heating, 1e6 * stress_MPa)


@pytest.fixture(scope="module")
def niti_hf():
    loops = {round(loop.stress_Pa / 1e6): loop for loop in shipped("NiTiHf")}
    return loops, fit([loops[100], loops[300]])


def test_a_measured_loop_between_two_fitted_is_predicted_to_3_percent_of_its_stroke(niti_hf):
    loops, fitted = niti_hf
    strain, half = band(fitted, loops[200])
    assert rms_of_stroke(strain, loops[200]) <= 0.03
    assert np.mean(np.abs(strain - loops[200].strain) <= half) >= 0.9


@pytest.mark.slow
def test_no_law_of_others_predicts_that_loop_as_well(niti_hf):
    loops, fitted = niti_hf
    ours = rms_of_stroke(isobaric(fitted.law, loops[200]), loops[200])
    for rival in RIVALS:
        strain = rival.fitted([loops[100], loops[300]])(loops[200])
        assert rms_of_stroke(strain, loops[200]) > ours, rival.name


def test_a_band_that_is_never_wide_enough_would_be_one_of_the_whole_stroke(niti_hf):
    loops, fitted = niti_hf
    _, half = band(fitted, loops[200])
    assert half.mean() < 0.12 * loops[200].stroke


def test_the_band_widens_beyond_the_stresses_fitted(niti_hf):
    loops, fitted = niti_hf
    inside = band(fitted, loops[200])[1].mean() / loops[200].stroke
    beyond = band(fitted, loops[400])[1].mean() / loops[400].stroke
    assert beyond > inside


def test_parameters_of_a_known_law_lie_within_three_of_their_standard_deviations():
    fitted = fit([drawn(s, seed) for seed, s in enumerate((40, 120, 240))])
    true = np.array(list(TRUE.values()))
    off = np.abs(fitted.theta - true) / fitted.sd
    assert dict(zip(NAMES, off, strict=True)) == {
        name: pytest.approx(0.0, abs=3.0) for name in NAMES
    }
    C_A = 1.0 / fitted.theta[NAMES.index("heating.K_per_MPa")]
    assert pytest.approx(8.0, rel=0.05) == C_A


def test_two_stresses_do_not_tell_how_the_stroke_bends_between_them():
    fitted = fit([drawn(50, 1), drawn(200, 2)])
    assert "ln_rate_per_MPa" in fitted.unidentified
    assert "heating.work_share" in fitted.unidentified
    assert "heating.middle_C" not in fitted.unidentified
    assert "heating.K_per_MPa" not in fitted.unidentified


def test_loops_of_one_stress_do_not_support_a_fit():
    with pytest.raises(ModelError, match="loops of two stresses at least"):
        fit([drawn(100, 1), drawn(100, 2)])
