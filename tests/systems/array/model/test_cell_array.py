"""Figures printed in the specification, and closed forms."""

import numpy as np
import pytest
import scipy.linalg

from hil.errors import ModelError
from hil.experiment.load import load
from hil.systems.array.model import cells
from hil.systems.array.model.analysis import describe, poles, stiffness_N_per_m, unreachable
from hil.systems.array.model.cell_array import CellArray
from hil.systems.array.model.force_levels import force_levels_N, static_gains_N

MIGA = cells.miga(k_pe_N_per_m=20.0, k_se_N_per_m=386.52, k_ae_N_per_m=1000.0, b_N_s_per_m=500.0)
SILICONE = cells.hill(k_pe_N_per_m=20.0, k_se_N_per_m=611.0, k_ae_N_per_m=10160.0, b_N_s_per_m=50.0)
FIG_2 = "-:5 | &1:1 &E:1 &10:3 | &1:1 &6:2 &18:1 | &F:-1"
MIGA6 = "-:1 | &1:2 | &1:1 &2:2 | &7:-1"


@pytest.fixture(scope="module")
def fig_2():
    return CellArray.from_fingerprint(FIG_2, cell=MIGA, mass_kg=0.01583)


@pytest.fixture(scope="module")
def miga6():
    return CellArray.from_fingerprint(MIGA6, cell=MIGA, mass_kg=0.01583)


def digits(value, printed):
    """Equal to every digit printed."""
    return round(value, len(printed.split(".")[1])) == float(printed)


def ringing_Hz(model):
    return [p.frequency_Hz for p in poles(model) if p.frequency_Hz > 1.0 for _ in range(p.count)]


def test_miga_cell_has_the_printed_static_law():
    K, phi = MIGA.static
    assert digits(K, "298.769869890")
    assert digits(phi, "0.278769869890")


@pytest.mark.parametrize("kind", ["hill", "miga", "two_damper"])
def test_all_cells_share_one_static_law(kind):
    springs = {"k_pe_N_per_m": 3.0, "k_se_N_per_m": 5.0, "k_ae_N_per_m": 7.0}
    dampers = {"b_se_N_s_per_m": 2.0, "b_ae_N_s_per_m": 4.0}
    cell = getattr(cells, kind)(
        **springs, **(dampers if kind == "two_damper" else {"b_N_s_per_m": 2.0})
    )
    K, phi = cell.static
    assert K == pytest.approx(3.0 + 5.0 * 7.0 / 12.0, rel=1e-14)
    assert phi == pytest.approx(5.0 / 12.0, rel=1e-14)


def test_fig_2_gives_the_printed_shares_force_stiffness_levels_and_modes(fig_2):
    F = np.ones(14)
    _, phi = MIGA.static
    gains_N = static_gains_N(fig_2, F, "array.right_N") / phi
    printed = [1/3, 1/6, 1/6, 1/6, 1/2, 1/3, 1/2, 1/6, 1/6, 1/6, 1/3, 1/3, 1/3, 1/3]  # fmt: skip
    np.testing.assert_allclose(gains_N, printed, rtol=1e-12)
    all_on = fig_2.force_at("array.right_N", fig_2.solve_statics(F).tension_N)
    assert digits(all_on, "1.115079480")
    assert digits(stiffness_N_per_m(fig_2, "array"), "398.359827")
    levels = force_levels_N(fig_2, F, "array.right_N")
    assert len(levels) == 25
    np.testing.assert_allclose(np.diff(levels), levels[1], rtol=1e-9)
    printed_Hz = (25.504, 28.718, 44.175, 44.175, 55.481, 62.473)
    np.testing.assert_allclose(ringing_Hz(fig_2), printed_Hz, atol=5e-4)


def test_miga6_rings_at_the_printed_frequencies(miga6):
    np.testing.assert_allclose(ringing_Hz(miga6), (27.916, 40.767, 52.560), atol=5e-4)


@pytest.mark.parametrize(
    ("t_s", "printed"), [(0.01, "0.0174767014"), (0.1, "0.105021073"), (1.0, "0.419833022")]
)
def test_miga6_all_on_gives_the_printed_force(miga6, t_s, printed):
    n = len(miga6.states)
    big = np.zeros((n + 1, n + 1))
    big[:n, :n], big[:n, n] = miga6.A, miga6.B @ np.ones(6)
    x = scipy.linalg.expm(big * t_s)[:n, n]
    assert digits(float((miga6.C @ x)[miga6.outputs.index("array.right_N")]), printed)


@pytest.mark.parametrize(
    ("text", "printed"),
    [("-:4 | &F:-1", "0.3857"), ("-:2 | &3:2 | &3:-1", "0.1929"),
     ("-:1 | &1:1 | &1:1 | &1:1 | &1:-1", "0.0964")],
)  # fmt: skip
def test_silicone_cells_give_the_printed_force_per_cell(text, printed):
    model = CellArray.from_fingerprint(text, cell=SILICONE, mass_kg=0.02)
    for share in static_gains_N(model, np.full(4, 6.8), "array.right_N"):
        assert digits(share, printed)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_cells_in_parallel_and_in_series_add_as_springs_do(n):
    K, phi = MIGA.static
    parallel = CellArray.from_fingerprint(f"-:{n} | &{2**n - 1:X}:-1", cell=MIGA, mass_kg=1.0)
    chain = CellArray.from_fingerprint(
        "-:1 |" + " &1:1 |" * (n - 1) + " &1:-1", cell=MIGA, mass_kg=1.0
    )
    assert stiffness_N_per_m(parallel, "array") == pytest.approx(n * K, rel=1e-12)
    assert stiffness_N_per_m(chain, "array") == pytest.approx(K / n, rel=1e-12)
    one = np.eye(n)[0]
    assert static_gains_N(parallel, one, "array.right_N")[0] == pytest.approx(phi, rel=1e-12)
    assert static_gains_N(chain, one, "array.right_N")[0] == pytest.approx(phi / n, rel=1e-12)


@pytest.mark.parametrize("n_masses", [1, 2, 7])
def test_a_uniform_chain_of_springs_rings_at_the_closed_form(n_masses):
    """omega_j = 2 sqrt(k/m) sin(j pi / (2 (n + 1))), fixed at both ends."""
    text = "-:1 |" + " &1:1 |" * n_masses + " &1:-1"
    model = CellArray.from_fingerprint(text, cell=cells.custom(Ke=300.0), mass_kg=0.02)
    j = np.arange(1, n_masses + 1)
    omega = 2.0 * np.sqrt(300.0 / 0.02) * np.sin(j * np.pi / (2.0 * (n_masses + 1)))
    np.testing.assert_allclose(ringing_Hz(model), omega / (2.0 * np.pi), rtol=1e-9)


def test_arrays_with_as_many_cells_on_either_side_of_a_mass_do_not_ripple():
    balanced = CellArray.from_fingerprint("-:2 | &3:2 | &3:-1", cell=MIGA, mass_kg=0.01583)
    velocity = balanced.states.index("array.v2_m_per_s")
    together = balanced.B @ np.ones(4)
    assert together[velocity] == 0.0
    # All d move alike, so the masses never feel a difference.
    d = [i for i, name in enumerate(balanced.states) if ".d1." in name]
    assert np.abs(balanced.A[velocity, d].sum()) < 1e-9


def test_blocked_force_of_any_set_is_the_sum_of_its_shares(fig_2):
    rng = np.random.default_rng(3)
    gains_N = static_gains_N(fig_2, np.ones(14), "array.right_N")
    for _ in range(20):
        on = rng.integers(0, 2, 14)
        force = fig_2.force_at("array.right_N", fig_2.solve_statics(on).tension_N)
        assert force == pytest.approx(float(gains_N @ on), rel=1e-12, abs=1e-15)


def test_weights_of_a_force_are_ones_own_to_change(fig_2):
    at_right = [0.0] * 10 + [1.0] * 4  # the last mass, &F, has four cells on its left
    for _ in range(2):
        weights = fig_2.weights_at("array.right_N")
        assert weights.tolist() == at_right
        weights[:] = 7.0


def test_statics_are_where_the_dynamics_come_to_rest(fig_2):
    F = np.linspace(0.5, 2.0, 14)
    x = np.linalg.solve(fig_2.A, -fig_2.B @ F)
    y = dict(zip(fig_2.outputs, fig_2.C @ x + fig_2.D @ F, strict=True))
    statics = fig_2.solve_statics(F)
    assert fig_2.force_at("array.left_N", statics.tension_N) == pytest.approx(y["array.left_N"])
    assert fig_2.force_at("array.right_N", statics.tension_N) == pytest.approx(y["array.right_N"])
    position = dict(zip(fig_2.node_names, statics.position_m, strict=True))
    for mass in range(2, 8):
        assert position[f"array.{mass}"] == pytest.approx(y[f"array.x{mass}_m"])


def test_dead_cells_keep_their_stiffness_and_broken_ones_do_not():
    K, phi = MIGA.static
    dead = CellArray.from_fingerprint("-:2 | &3:-1", cell=MIGA, mass_kg=1.0, dead_cells=[1])
    broken = CellArray.from_fingerprint("-:2 | &3:-1", cell=MIGA, mass_kg=1.0, broken_cells=[1])
    assert stiffness_N_per_m(dead, "array") == pytest.approx(2 * K)
    assert stiffness_N_per_m(broken, "array") == pytest.approx(K)
    for model in (dead, broken):
        all_on = model.solve_statics(np.ones(2))
        assert model.force_at("array.right_N", all_on.tension_N) == pytest.approx(phi)


def test_python_control_gets_the_same_system_with_the_same_names(miga6):
    system = miga6.to_control()
    assert system.state_labels == [name.replace(".", "_") for name in miga6.states]
    assert system.input_labels == [name.replace(".", "_") for name in miga6.inputs]
    assert system.output_labels == [name.replace(".", "_") for name in miga6.outputs]
    np.testing.assert_array_equal(system.A, miga6.A)


def test_a_mode_that_no_input_moves_is_counted():
    """Two equal branches fired together: what moves them apart cannot be reached."""
    model = CellArray.from_fingerprint("-:2 | &1:1 &2:1 | &3:-1", cell=MIGA, mass_kg=0.01)
    assert unreachable(model.A, model.B) == 0
    together = model.B.sum(axis=1, keepdims=True)
    # Apart: x2 - x3, v2 - v3, d1 - d2, d3 - d4. In common, left and right cells pull a mass
    # alike, so x, v and the difference of left and right d rest too: one state of 8 moves.
    assert unreachable(model.A, together) == 7


def test_a_model_too_large_for_dense_matrices_says_so():
    text = "-:1 |" + " &1:1 |" * 1500 + " &1:-1"
    model = CellArray.from_fingerprint(text, cell=MIGA, mass_kg=0.01)
    with pytest.raises(ModelError, match=r"use \.sparse"):
        model.A  # noqa: B018  the property refuses
    assert model.sparse[0].shape == (4501, 4501)
    with pytest.raises(ModelError, match="order 4501 is beyond"):
        poles(model)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"Kd": [1.0], "Ze": [1.0, 2.0], "Zv": [0.0], "Kp": [0.0], "I": [[-1.0]]}, "Ze has shape"),
        ({"Kd": [1.0], "Ze": [1.0], "Zv": [0.0], "Kp": [0.0], "I": [[-1.0, 0.0]]}, "I has shape"),
        ({"Kd": [1.0], "Ze": [1.0], "Zv": [0.0], "Kp": [0.0], "I": [[0.0]]}, "I is singular"),
        ({"Ke": float("nan")}, "Ke is not finite"),
    ],
)
def test_a_custom_cell_that_makes_no_sense_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        cells.custom(**arguments)


@pytest.mark.parametrize("name", ["k_se_N_per_m", "k_ae_N_per_m", "b_N_s_per_m"])
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_springs_and_dampers_must_be_above_zero(name, value):
    springs = {"k_pe_N_per_m": 0.0, "k_se_N_per_m": 1.0, "k_ae_N_per_m": 1.0, "b_N_s_per_m": 1.0}
    with pytest.raises(ValueError, match=name):
        cells.miga(**springs | {name: value})


def test_free_contraction_is_blocked_force_over_stiffness():
    """The same array with its right end let go comes to rest that much shorter."""
    held = CellArray.from_fingerprint(FIG_2, cell=MIGA, mass_kg=0.01583)
    free = CellArray.from_fingerprint(FIG_2, cell=MIGA, mass_kg=0.01583, right="free")
    F = np.linspace(0.5, 2.0, 14)
    facts = describe(held, F)["statics"]["array"]
    let_go = describe(free, F)
    assert let_go["free_points_m"]["right"] == pytest.approx(-facts["stroke_m"], rel=1e-9)
    assert facts["all_on_right_N"] == pytest.approx(float(np.dot(facts["shares"], F)))
    assert let_go["statics"]["array"]["all_on_right_N"] == pytest.approx(0.0, abs=1e-12)


def test_an_array_that_a_broken_cell_has_cut_has_one_level_and_no_stiffness(configs):
    """Gains of rounding alone are not levels: miga6 hangs on its first cell."""
    config = load(configs / "miga6/all_on.toml", ["model.arrays.muscle.broken_cells=[1]"])
    force_on_N = np.array([cell.force_on_N for cell in config.activation()])
    statics = describe(config.model, force_on_N)["statics"]["muscle"]
    assert statics["n_force_levels"] == 1
    assert statics["smallest_step_N"] == statics["largest_step_N"] == 0.0
    assert statics["stiffness_N_per_m"] == 0.0
    assert "stroke_m" not in statics
