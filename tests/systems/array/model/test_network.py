"""The block assembly against Newton's law written out in loops."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from hil.errors import ModelError
from hil.systems.array.model import cells
from hil.systems.array.model.cell_array import CellArray, make_array
from hil.systems.array.model.network import Point
from oracles.networks import networks
from oracles.newton import Newton

MIGA = cells.miga(k_pe_N_per_m=20.0, k_se_N_per_m=386.52, k_ae_N_per_m=1000.0, b_N_s_per_m=500.0)


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(networks())
def test_block_assembly_is_newtons_law_on_any_network(pair):
    model, newton = pair
    for ours, theirs in zip((model.A, model.B, model.C, model.D), newton.matrices(), strict=True):
        assert ours.shape == theirs.shape
        scale = max(1.0, float(np.abs(theirs).max(initial=0.0)))
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12 * scale)


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(networks())
def test_names_stand_in_the_order_of_the_states(pair):
    model, newton = pair
    said = []
    for kind, owner, *rest in newton.states:
        match kind:
            case "x":
                said.append(f"{owner}.x{rest[0] + 1}_m")
            case "v":
                said.append(f"{owner}.v{rest[0] + 1}_m_per_s")
            case "d":
                said.append(f"{owner}.d{rest[0] + 1}.{rest[1] + 1}_m")
            case "px":
                said.append(f"{owner}.x_m")
            case "pv":
                said.append(f"{owner}.v_m_per_s")
    assert model.states == said


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(networks(kinds=("hill", "miga", "two_damper"), failures=False))
def test_energy_in_is_energy_stored_and_turned_to_heat(pair):
    """d/dt (kinetic + springs) = external work - sum F d' - heat in the dampers."""
    model, newton = pair
    rng = np.random.default_rng(1)
    x = rng.standard_normal(len(model.states))
    u = rng.standard_normal(len(model.inputs))
    driven = [k for k, (kind, *_) in enumerate(newton.inputs) if kind in ("dx", "dv", "da")]
    u[driven] = 0.0  # held still: supports do no work
    x_dot = model.A @ x + model.B @ u
    gained = _energy_rate(newton, x, x_dot)
    s = dict(zip(newton.states, x, strict=True))
    r = dict(zip(newton.states, x_dot, strict=True))
    i = dict(zip(newton.inputs, u, strict=True))
    work = sum(force * s["pv", key[1]] for key, force in i.items() if key[0] == "P")
    heat = 0.0
    for name, a in newton.arrays.items():
        for n, cell in enumerate(a.cells):
            vl = newton._motion(s, i, name, a, a.left[n])[1]
            vr = newton._motion(s, i, name, a, a.right[n])[1]
            d_dot = r["d", name, 0, n]
            heat += cell.b_se * (vr - vl - d_dot) ** 2 + cell.b_ae * d_dot**2
            work -= i["F", name, n] * d_dot
    assert gained == pytest.approx(work - heat, rel=1e-9, abs=1e-9 * (1.0 + heat))


def _energy_rate(newton: Newton, x, x_dot) -> float:
    """Derivative of the stored energy along x_dot, by the exact gradient of a quadratic."""

    def energy(z):
        s = dict(zip(newton.states, z, strict=True))
        i = dict.fromkeys(newton.inputs, 0.0)
        total = 0.0
        point_mass = {name: mass for name, (_, mass) in newton.points.items()}
        for name, a in newton.arrays.items():
            point_mass[a.start] += a.mass_kg[0]
            point_mass[a.end] += a.mass_kg[-1]
            for m in range(1, a.n_masses - 1):
                total += 0.5 * a.mass_kg[m] * s["v", name, m] ** 2
            for n, cell in enumerate(a.cells):
                xl = newton._motion(s, i, name, a, a.left[n])[0]
                xr = newton._motion(s, i, name, a, a.right[n])[0]
                e, d = xr - xl, s["d", name, 0, n]
                total += 0.5 * (cell.k_pe * e**2 + cell.k_se * (e - d) ** 2 + cell.k_ae * d**2)
        for name, (support, _) in newton.points.items():
            if support == "free":
                total += 0.5 * point_mass[name] * s["pv", name] ** 2
        return total

    # For a quadratic E, grad E(x) . w = (E(x + w) - E(x - w)) / 2 exactly.
    return (energy(x + x_dot) - energy(x - x_dot)) / 2.0


def test_an_antagonist_pair_pulls_its_payload_both_ways():
    points = {"wall": Point("fixed"), "load": Point("free", 0.5), "other": Point("fixed")}
    arrays = {
        "flexor": make_array("-:2 | &3:-1", cell=MIGA, mass_kg=0.01, start="wall", end="load"),
        "extensor": make_array("-:1 | &1:-1", cell=MIGA, mass_kg=0.02, start="load", end="other"),
    }
    model = CellArray(points, arrays)
    F = np.array([1.0, 1.0, 0.0])
    K, phi = MIGA.static
    x = model.solve_statics(F).position_m[1]
    assert x == pytest.approx(-2.0 * phi / (3.0 * K))
    loaded = model.solve_statics(np.zeros(3), force_N={"load": 1.0}).position_m[1]
    assert loaded == pytest.approx(1.0 / (3.0 * K))
    load_v = model.states.index("load.v_m_per_s")
    assert model.B[load_v, model.inputs.index("load.F_N")] == pytest.approx(1.0 / 0.53)


def test_a_bias_spring_holds_a_load_that_its_cell_pulls():
    """In series of a cell K and a spring k a load rests where phi F = -(K + k) x."""
    points = {"load": Point("free", 0.5, spring_N_per_m=70.0), "hook": Point("fixed")}
    array = make_array("-:1 | &1:-1", cell=MIGA, mass_kg=0.02, start="load", end="hook")
    model = CellArray(points, {"wire": array})
    K, phi = MIGA.static
    statics = model.solve_statics(np.array([2.0]))
    assert statics.position_m[0] == pytest.approx(phi * 2.0 / (K + 70.0))
    assert statics.tension_N[0] == pytest.approx(70.0 * statics.position_m[0])
    free = CellArray({**points, "load": Point("free", 0.5)}, {"wire": array})
    at, v = (model.states.index(f"load.{name}") for name in ("x_m", "v_m_per_s"))
    assert model.A[v, at] - free.A[v, at] == pytest.approx(-70.0 / 0.52)


@pytest.mark.parametrize(
    ("point", "words"),
    [
        (Point("fixed", spring_N_per_m=1.0), "moves nothing at a fixed point"),
        (Point("free", 1.0, spring_N_per_m=-1.0), "must not be negative"),
    ],
)
def test_a_spring_that_makes_no_sense_is_refused(point, words):
    array = make_array("-:1 | &1:-1", cell=MIGA, mass_kg=0.02, start="a", end="b")
    with pytest.raises(ModelError, match=words):
        CellArray({"a": point, "b": Point("fixed")}, {"wire": array})


def test_contract_names_of_a_network():
    points = {"a": Point("driven"), "b": Point("free", 1.0)}
    array = make_array("-:1 | &1:1 | &1:-1", cell=MIGA, mass_kg=0.01, start="a", end="b")
    model = CellArray(points, {"flexor": array})
    assert model.states == ["flexor.x2_m", "flexor.v2_m_per_s", "flexor.d1.1_m", "flexor.d1.2_m",
                            "b.x_m", "b.v_m_per_s"]  # fmt: skip
    assert model.inputs == ["flexor.F1_N", "flexor.F2_N", "b.F_N",
                            "a.x_m", "a.v_m_per_s", "a.a_m_per_s2"]  # fmt: skip
    assert model.outputs == ["flexor.left_N", "flexor.right_N", "flexor.x2_m", "b.x_m", "a.x_m"]


def test_masses_behind_broken_cells_float_and_statics_stay_finite():
    model = CellArray.from_fingerprint(
        "-:2 | &1:1 &2:1 | &3:-1", cell=MIGA, mass_kg=0.01, broken_cells=[1, 3]
    )
    assert model.floating == [["array.2"]]
    statics = model.solve_statics(np.ones(4))
    assert np.isnan(statics.position_m[model.node_names.index("array.2")])
    assert np.all(np.isfinite(statics.tension_N))
    phi = MIGA.static[1]
    assert model.force_at("array.right_N", statics.tension_N) == pytest.approx(phi)
    assert np.all(np.isfinite(model.A))


def test_a_network_with_nothing_fixed_reports_its_rigid_mode():
    model = CellArray.from_fingerprint(
        "-:1 | &1:1 | &1:-1", cell=MIGA, mass_kg=0.01, left="free", right="free"
    )
    assert model.floating == [["left", "right", "array.2"]]
    assert np.all(np.isfinite(model.solve_statics(np.ones(2)).tension_N))
    moved = np.zeros(len(model.states))
    moved[[i for i, name in enumerate(model.states) if name.endswith("x_m")]] = 1.0
    moved[model.states.index("array.x2_m")] = 1.0
    assert np.abs(model.A @ moved).max() < 1e-9


@pytest.mark.parametrize(
    ("points", "array", "message"),
    [
        ({"a": Point()}, {"start": "a", "end": "b"}, "arrays.m.to: no point 'b'"),
        ({"a": Point(), "b": Point(), "c": Point()}, {}, "points.c: no array ends here"),
        ({"a": Point(), "b": Point("free", -1.0)}, {}, "points.b: mass_kg = -1"),
        ({"a": Point(), "b": Point()}, {"start": "a", "end": "a"}, "both ends are 'a'"),
        ({"a": Point(), "b": Point()}, {"mass_kg": [1.0, 2.0, 3.0]}, "3 masses given"),
        ({"a": Point(), "b": Point()}, {"mass_kg": [1.0, 0.0]}, "every mass must be above zero"),
        ({"a": Point(), "b": Point()}, {"cell": [MIGA] * 3}, "3 cells given"),
        ({"a": Point(), "b": Point()}, {"dead_cells": [3]}, "there is no cell 3"),
        ({"a": Point(), "b": Point()}, {"broken_cells": [0]}, "there is no cell 0"),
    ],
)  # fmt: skip
def test_parts_that_make_no_model_are_refused_by_name(points, array, message):
    options = {"cell": MIGA, "mass_kg": 1.0, "start": "a", "end": "b"} | array
    with pytest.raises(ModelError, match=message):
        CellArray(points, {"m": make_array("-:2 | &3:-1", **options)})


def test_a_model_without_arrays_is_refused():
    with pytest.raises(ModelError, match="there is none"):
        CellArray({"a": Point()}, {})


def test_springs_that_cancel_are_refused_in_statics_with_the_reason():
    cells_ = [cells.custom(Ke=100.0), cells.custom(Ke=-100.0)]
    model = CellArray.from_fingerprint("-:1 | &1:1 | &1:-1", cell=cells_, mass_kg=0.01)
    with pytest.raises(ModelError, match="negative stiffness"):
        model.solve_statics(np.zeros(2))
