"""The model as a function of its parameters: held to recordings, exact derivatives, physics."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.linalg

from hil.identification import identifiability, parameters
from hil.identification.fit import _first_zero_N
from hil.identification.grey_box import GreyBox
from hil.identification.noise import Noise
from hil.identification.runs import Reading, read_run
from hil.systems.array.build import build_activation, build_model
from hil.systems.array.model.response import response
from hil.systems.array.model.system import ArraySystem
from hil.systems.array.tables import ModelTable
from hil_studies.identification.rigs import DRAWN, TABLES, make_rig

K_PE, MASS = "arrays.muscle.cell.k_pe_N_per_m", "arrays.muscle.mass_kg"


def box(free=DRAWN, index=0, **changes):
    run = make_rig(3, index).data
    tables = parameters.expanded(TABLES, ())
    for key, value in changes.items():
        parameters.put(tables, key, value)
    return GreyBox(tables, tuple(free), (run,))


def test_with_the_configured_parameters_it_says_what_the_twin_recorded(all_on):
    recorded = read_run(all_on)
    tables = parameters.tables_of(recorded.config.tables.model)
    said = GreyBox(tables, (), (recorded.data,)).readings(np.zeros(0))[0]
    # Rounding of sums in another order: 1e-15 of a newton a step, 5000 steps.
    np.testing.assert_allclose(said, recorded.run.force_model_N.values, atol=1e-10)


@pytest.mark.parametrize("kind", ["step", "sigmoid", "thermal", "sma"])
def test_a_response_is_the_system_stepped_period_by_period(kind):
    tables = parameters.expanded(TABLES, ())
    tables["arrays"]["muscle"]["activation"] = {"kind": kind}
    table = ModelTable.model_validate(tables)
    model, activation = build_model(table), build_activation(table)
    cells = np.random.default_rng(1).integers(0, 2, (300, 6)).astype(np.uint8)
    stepped = ArraySystem(model, activation, 0.001)
    expected = [stepped.y[1]]
    for on in cells:
        stepped.step(on)
        expected.append(stepped.y[1])
    np.testing.assert_allclose(
        response(ArraySystem(model, activation, 0.001), 1, cells), expected, rtol=0, atol=1e-12
    )


def test_derivatives_are_those_of_the_variational_equation():
    """Of x' = A x + B u: s' = A s + (dA/dk) x + (dB/dk) u, stepped together and exactly."""
    made = box(free=["arrays.muscle.cell.k_ae_N_per_m"])
    run, h = made.runs[0], 1e-5

    def matrices(shift):
        m = build_model(made.table_at(made.start + shift))
        return m.A, m.B[:, :6], m.C[1:2], m.D[1:2, :6]

    A, B, C, _ = matrices(0.0)
    dA, dB, dC, _ = (
        (up - down) / (2 * h) for up, down in zip(matrices(h), matrices(-h), strict=True)
    )
    n, m = B.shape
    whole = np.zeros((2 * n + m, 2 * n + m))
    whole[:n, :n], whole[n : 2 * n, :n], whole[n : 2 * n, n : 2 * n] = A, dA, A
    whole[:n, 2 * n :], whole[n : 2 * n, 2 * n :] = B, dB
    step = scipy.linalg.expm(whole * run.period_s)[: 2 * n]
    z, exact = np.zeros(2 * n), [0.0]
    for on in run.cells:
        z = step @ np.concatenate((z, 4.0 * on))
        exact.append(float((C @ z[n:] + dC @ z[:n])[0]))
    read = run.reading.of(np.array(exact), run.period_s)
    found = made.sensitivities(made.start)[0][:, 0]
    # Differences: rounding 1e-16 / 1e-6 of the force on either side, grown over 6000 steps.
    np.testing.assert_allclose(found, read, atol=1e-6 * np.abs(read).max())


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize("until", [[4000], None])
def test_one_sided_differences_are_the_central_ones_to_first_order(until):
    """They differ by half a step of 1e-6 times the curvature, here up to 300 times the slope."""
    made = box()
    [central] = made.sensitivities(made.start, until)
    [one_sided] = made.sensitivities(made.start, until, central=False)
    assert central.shape == one_sided.shape
    rows = made.runs[0].rows
    assert len(central) == (np.count_nonzero(rows <= 4000) if until else len(rows))
    np.testing.assert_allclose(one_sided, central, atol=3e-4 * np.abs(central).max())


def test_many_parameter_sets_at_once_read_what_each_reads_alone():
    made = box()
    thetas = made.start + 0.1 * np.random.default_rng(0).standard_normal((3, len(made.start)))
    for theta, (together,) in zip(thetas, made.all_readings(thetas), strict=True):
        [alone] = made.readings(theta)
        assert together.tolist() == alone.tolist()
    assert made.all_readings([]) == []


@pytest.mark.parametrize(
    ("kept", "n"),
    [(lambda row: row % 4 == 0, 50), (lambda row: row % 3 != 1, 50), (lambda row: row > 1100, 1)],
    ids=["a slow instrument", "a third is missing", "none at rest"],
)
def test_the_first_zero_compares_each_reading_with_the_model_in_its_own_period(kept, n):
    """Of 50 readings the model's first 50 periods had been taken, which have fewer."""
    whole = box()
    run = whole.runs[0]
    stay = kept(run.rows)
    some = replace(run, rows=run.rows[stay], measured=run.measured[stay])
    zero_N = _first_zero_N(replace(whole, runs=(some,)), whole.start, 0)
    model_N = whole.readings(whole.start)[0][stay]
    assert zero_N == pytest.approx(np.mean((some.measured - model_N)[:n]))


def test_a_reading_is_late_by_its_delay_and_slow_by_its_low_pass():
    ramp = np.arange(2000) * 0.001
    for bandwidth_Hz in (20.0, 100.0, 1000.0):
        late_s = 0.0035 + 1.0 / (2.0 * np.pi * bandwidth_Hz)  # a ramp's lag is the time constant
        read = Reading(delay_s=0.0035, bandwidth_Hz=bandwidth_Hz).of(1.0 + ramp, 0.001)
        assert read[0] == pytest.approx(1.0, abs=1e-12)
        np.testing.assert_allclose(read[1000:], 1.0 + ramp[1000:] - late_s, rtol=0, atol=1e-9)


def same_force(k_pe):
    """Another cell with the same isometric force: four numbers make it, a cell has five."""
    k_se0, k_ae0, b0, F0, K = 386.52, 1000.0, 500.0, 4.0, 406.52
    fast, slow = (k_se0 + k_ae0) / b0, (k_ae0 + k_se0 * 20.0 / K) / b0
    k_se = K - k_pe
    k_ae = (slow / fast * k_se - k_se * k_pe / K) / (1.0 - slow / fast)
    F = F0 * k_se0 / (k_se0 + k_ae0) * (k_se + k_ae) / k_se
    return {
        "arrays.muscle.force_on_N": F,
        "arrays.muscle.cell.b_N_s_per_m": (k_se + k_ae) / fast,
        "arrays.muscle.cell.k_ae_N_per_m": k_ae,
        "arrays.muscle.cell.k_se_N_per_m": k_se,
        K_PE: k_pe,
    }


@pytest.mark.slow
def test_cells_with_another_parallel_spring_can_give_the_very_same_force():
    other = box(**same_force(60.0))
    np.testing.assert_allclose(
        other.readings(other.start)[0], box().readings(box().start)[0], rtol=0, atol=1e-9
    )


def test_what_force_alone_cannot_tell_is_said_and_held():
    offered = parameters.candidates(TABLES)
    made = box(free=offered)
    fisher = identifiability.information(made, Noise(0.002), 0.002, made.start)
    assert identifiability.chosen(offered, fisher) == list(DRAWN)
    found = identifiability.weak_directions(made, fisher, made.start, 0.002, 0.002)
    assert [weak.structural for weak in found] == [True, True]
    scale, parallel = found
    # All stiffnesses, the damper and the masses alike: displacements shrink, tensions stay.
    assert set(scale.factors) == {key for key in offered if "force_on" not in key}
    assert len(set(np.round(list(scale.factors.values()), 9))) == 1
    # Along the same tangent as the exact family above.
    before, after = same_force(20.0), same_force(20.2)
    slope = {key: np.log(after[key] / before[key]) / np.log(20.2 / 20.0) for key in before}
    for key, factor in parallel.factors.items():
        tangent = np.log(factor) / np.log(parallel.factors[K_PE])
        assert tangent == pytest.approx(slope[key], abs=0.01)  # curved: a change of 1 %
    assert "k_pe_N_per_m is held" in parallel.sentence({K_PE, MASS})


def test_the_outer_masses_of_fixed_ends_move_nothing():
    tables = parameters.expanded(TABLES, ["mass_kg"])
    free = parameters.candidates(tables)
    made = GreyBox(tables, tuple(free), (make_rig(3, 0).data,))
    fisher = identifiability.information(made, Noise(0.002), 0.002, made.start)
    alone = [
        next(iter(weak.factors))
        for weak in identifiability.weak_directions(made, fisher, made.start, 0.002, 0.002)
        if len(weak.factors) == 1
    ]
    assert alone == [f"{MASS}.1", f"{MASS}.5"]
