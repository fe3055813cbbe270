"""A wire's heat and branches from the force of a run that heats it and lets it cool."""

import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

import hil
from hil.__main__ import main
from hil.config.files import read_toml
from hil.errors import ConfigError
from hil.identification import identifiability, parameters
from hil.identification.fit import fit
from hil.identification.grey_box import GreyBox
from hil.identification.identify import Options, identify
from hil.identification.noise import Noise
from hil.identification.runs import Reading, RunData, cells_between
from hil.loop.frame import CELL_UNKNOWN
from hil.systems.array.tables import ModelTable

PERIOD_S, NOISE_N = 0.008, 0.002
OWN = "arrays.muscle.activation."
FITTED = ("convection_W_per_m2_K", "latent_heat_J_per_kg", "specific_heat_J_per_kg_K",
          "cooling.middle_C")  # fmt: skip
TRUE = dict(zip(FITTED, (137.0, 22e3, 495.0, 58.0), strict=True))


@pytest.fixture(scope="module")
def tables():
    """One cell of the bundled rig with wires."""
    model = read_toml(Path("configs/wires4/rig.toml"))["model"]
    model["arrays"]["muscle"]["fingerprint"] = "-:1 | &1:-1"
    return parameters.tables_of(ModelTable.model_validate(model))


def heated(n_cells=1):
    """On and off for times that let the wire contract in part and in full."""
    cells = np.zeros((round(14.0 / PERIOD_S), n_cells), dtype=np.uint8)
    for on_s, off_s in ((1.0, 3.0), (4.5, 5.4), (6.2, 7.6), (8.2, 11.5)):
        cells[round(on_s / PERIOD_S) : round(off_s / PERIOD_S)] = 1
    return cells


def run_of(tables, true, seed=0, noise_N=NOISE_N, n_cells=1):
    changed = copy.deepcopy(tables)
    for key, value in true.items():
        parameters.put(changed, OWN + key, value)
    cells = heated(n_cells)
    rows = np.arange(len(cells) + 1)
    empty = RunData("a run", PERIOD_S, cells, rows, np.zeros(len(rows)), "muscle.right_N",
                    Reading(noise_rms_N=noise_N))  # fmt: skip
    [force_N] = GreyBox(changed, (), (empty,)).readings(np.zeros(0))
    noise = noise_N * np.random.default_rng(seed).standard_normal(len(rows))
    return replace(empty, measured=force_N + noise)


@pytest.fixture(scope="module")
def found(tables):
    run = run_of(tables, TRUE)
    return identify(tables, [run], Options(free=FITTED, bootstrap=0))


def test_heats_and_branch_of_another_wire_are_within_their_intervals(found):
    away = np.array([np.log(p.value / TRUE[p.key.removeprefix(OWN)]) for p in found.parameters])
    sigma = found.fit.covariance
    # Chi-squared of four values; 1e-4 either way. The start is 8 to 300 standard deviations off.
    squares = float(away @ np.linalg.solve(sigma, away))
    low, high = scipy.stats.chi2.ppf((1e-4, 1.0 - 1e-4), 4)
    assert low < squares < high
    assert max(p.relative for p in found.parameters) < 0.02


def test_a_fit_that_does_not_look_for_weak_directions_is_the_same(tables, found):
    quick = identify(tables, [run_of(tables, TRUE)], Options(free=FITTED, bootstrap=0, weak=False))
    assert [p.value for p in quick.parameters] == [p.value for p in found.parameters]
    assert quick.weak == ()
    assert found.weak != ()


def test_a_complete_model_of_wires_leaves_noise_alone(found):
    assert found.adequacy.adequate


@pytest.mark.slow
def test_what_no_force_tells_is_fitted_only_where_it_is_asked_for(tables):
    run = run_of(tables, TRUE)
    fix = ("convection_W_per_m2_K", "shoulder_ratio", "core_share", "core_K", "cell", "force_on_N",
           "C_A_MPa_per_K", "C_M_MPa_per_K")  # fmt: skip
    made = identify(tables, [run], Options(fix=fix, bootstrap=0))
    fitted = {p.key.removeprefix(OWN) for p in made.parameters}
    assert fitted == {*FITTED[1:], "austenite_Ohm_per_m"}
    others = {OWN + key for key in ("heating.middle_C", "ambient_C", "martensite_Ohm_per_m")}
    assert others <= set(made.held)


def test_a_share_that_begins_at_its_limit_is_fitted_and_stays_within_it():
    """A branch's core_share is 1 where a rig leaves it out; the run is of 0.9, or of 1."""
    model = read_toml(Path("configs/wires4/rig.toml"))["model"]
    model["arrays"]["muscle"]["fingerprint"] = "-:1 | &1:-1"
    for side in ("heating", "cooling"):
        for key in ("shoulder_ratio", "shoulder_at_K", "core_share"):
            del model["arrays"]["muscle"]["activation"][side][key]
    tables = parameters.tables_of(ModelTable.model_validate(model))
    for true in (0.9, 1.0):
        run = run_of(tables, {"cooling.core_share": true})
        options = Options(free=("cooling.core_share",), bootstrap=6, weak=true < 1.0)
        [found] = identify(tables, [run], options).parameters
        assert abs(np.log(found.value / true)) < 4.0 * found.relative
        assert found.low <= found.value <= found.high <= 1.0
        assert found.resampled[1] <= 1.0


def test_a_run_with_much_noise_is_identified_though_not_every_draw_is_a_wire():
    """M_f and M_s are 5 K apart: 10 % more of M_f alone is above M_s, and so are some refits."""
    model = read_toml(Path("configs/wires4/rig.toml"))["model"]
    model["arrays"]["muscle"] |= {
        "fingerprint": "-:1 | &1:-1",
        "activation": {"kind": "thermal", "A_s_C": 68.0, "A_f_C": 72.0, "M_s_C": 60.0,
                       "M_f_C": 55.0},
    }  # fmt: skip
    tables = parameters.tables_of(ModelTable.model_validate(model))
    run = run_of(tables, {}, noise_N=50 * NOISE_N)
    found = identify(tables, [run], Options(free=("M_s_C", "M_f_C", "A_f_C"), bootstrap=15))
    assert found.weak
    for one in found.parameters:
        assert one.resampled[0] < one.value < one.resampled[1]
        assert abs(np.log(one.value / one.start)) < 4.0 * one.relative


@pytest.mark.slow
def test_derivatives_do_not_depend_on_the_size_of_their_step():
    """Of four wires that are solved together, near eight laws: no end of a solver shows."""
    rig = read_toml(Path("configs/wires4/rig.toml"))["model"]
    tables = parameters.tables_of(ModelTable.model_validate(rig))
    keys = tuple(OWN + key for key in ("convection_W_per_m2_K", "latent_heat_J_per_kg"))
    run = run_of(tables, {}, n_cells=4)
    staggered = np.stack([np.roll(run.cells[:, 0], 150 * i) for i in range(4)], axis=1)
    box = GreyBox(tables, keys, (replace(run, cells=staggered),))
    for away in 0.05 * np.random.default_rng(3).standard_normal((8, len(keys))):
        [small], [large] = (box.sensitivities(box.start + away, size=s) for s in (1e-8, 1e-7))
        difference = np.linalg.norm(large - small, axis=0) / np.linalg.norm(small, axis=0)
        assert (difference < 0.01).all(), dict(zip(keys, difference, strict=True))


def test_power_and_heats_together_have_no_scale_that_a_force_tells(tables):
    run = run_of(tables, {}, noise_N=NOISE_N)
    keys = tuple(OWN + key for key in parameters.SCALED)
    box = GreyBox(tables, keys, (run,))
    powers = np.array([parameters.power_of_scale(key) for key in keys])
    # Power over any of the heats is the same: only rounding is left of 10 %.
    moved, still = (box.readings(box.start + s * np.log(1.1) * powers)[0] for s in (1.0, 0.0))
    np.testing.assert_allclose(moved, still, rtol=0.0, atol=1e-10)
    noise = Noise(NOISE_N)
    fisher = identifiability.information(box, noise, NOISE_N, box.start)
    weak = identifiability.weak_directions(box, fisher, box.start, NOISE_N, NOISE_N)
    [group] = [one for one in weak if one.structural]
    assert set(group.factors) == set(keys)
    assert "not identifiable separately" in group.sentence([OWN + "martensite_Ohm_per_m"])


@pytest.mark.slow
def test_measured_air_is_that_of_the_wires_and_no_parameter(tables):
    run = replace(run_of(tables, {}), ambient_C=19.0)
    changed = copy.deepcopy(tables)
    parameters.put(changed, OWN + "ambient_C", 19.0)
    [measured] = GreyBox(tables, (), (run,)).readings(np.zeros(0))
    [configured] = GreyBox(changed, (), (replace(run, ambient_C=np.nan),)).readings(np.zeros(0))
    np.testing.assert_allclose(measured, configured, rtol=0.0, atol=1e-12)
    with pytest.raises(ConfigError, match="no such parameter"):
        identify(tables, [run], Options(free=("ambient_C",), bootstrap=0))


@pytest.mark.slow
def test_a_share_is_never_fitted_beyond_one(tables):
    keys = tuple(f"{OWN}{side}.core_share" for side in ("heating", "cooling"))
    run = run_of(tables, {key.removeprefix(OWN): 1.0 for key in keys}, noise_N=1e-4)
    changed = copy.deepcopy(tables)
    for key in keys:
        parameters.put(changed, key, 0.9)
    made = fit(GreyBox(changed, keys, (run,)), Noise(1e-4))
    shares = np.exp(made.theta)
    assert (shares > 0.95).all()
    assert (shares <= 1.0).all()


def test_a_report_that_comes_every_fourth_tick_holds_since_the_one_before():
    """As a board that is read every 4 ms obeys: at the first of four ticks."""
    unknown = CELL_UNKNOWN
    reported = np.array([[0], *[[unknown]] * 3, [1], *[[unknown]] * 3, [0], [unknown]], np.uint8)
    cells = cells_between(reported, np.arange(len(reported)))
    assert cells[:, 0].tolist() == [1, 1, 1, 1, 0, 0, 0, 0, 0]


def test_cells_before_the_first_report_are_off():
    reported = np.array([[CELL_UNKNOWN, 1], [CELL_UNKNOWN, 1]], dtype=np.uint8)
    assert cells_between(reported, np.arange(2)).tolist() == [[0, 1]]


@pytest.mark.slow
@pytest.mark.parametrize("coupling", ["held", "implicit"])
def test_wires_whose_force_jumps_are_refused_instead_of_given_false_intervals(
    coupling, configs, tmp_path, capsys
):
    """Only by the older law do wires against a spring reverse within single periods."""
    sets = ["experiment.duration_s=2.0", f"model.arrays.wire.activation.coupling='{coupling}'"]
    run = hil.run(hil.load(configs / "spring_bias/pulse.toml", sets), out=tmp_path / "run.h5")
    refused = main(["identify", str(run), "--bootstrap", "0"]) == 2
    heard = capsys.readouterr().err
    assert refused == (coupling == "held")
    if not refused:
        return
    assert "the model's force jumps" in heard
    assert "convection_W_per_m2_K" in heard
