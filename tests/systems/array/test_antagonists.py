"""Cells that pull on a transducer from two sides: eq. (1), the net force, what is refused."""

from types import SimpleNamespace

import numpy as np
import pytest

import hil
from hil.control.reference import NoReference
from hil.errors import ConfigError
from hil.experiment.load import load
from hil.runs.plan import Plan
from hil.runs.simulate import Simulation
from hil.systems.array.antagonists import Antagonists
from hil.systems.array.model import cells
from hil.systems.array.model.cell_array import CellArray, make_array
from hil.systems.array.model.network import Point

CELL = cells.hill(k_pe_N_per_m=20.0, k_se_N_per_m=600.0, k_ae_N_per_m=1e4, b_N_s_per_m=50.0)
ALL = np.ones(3, dtype=bool)


def pair(F_N, gains_N=(2.0, 4.0, -3.0), least_N=0.1):
    """Two cells against one, all of 10 N of activation, which now have the forces F."""
    twin = SimpleNamespace(activation=SimpleNamespace(F_N=np.array(F_N)))
    return Antagonists(np.array(gains_N), np.full(3, 10.0), twin, least_N)


def test_each_side_makes_up_for_what_the_other_still_pulls():
    """By hand: the first side pulls (2 + 4) 0.5 = 3 N, the second 3 x 0.2 = 0.6 N."""
    sharing = pair([5.0, 5.0, 2.0])
    wanted, measured = sharing.fractions(1.0, 0.0, ALL)
    assert measured == pytest.approx([0.5, 0.5, 0.2])
    assert wanted == pytest.approx([1.6 / 6.0, 1.6 / 6.0, 2.0 / 3.0])  # max(b, 0.6 + 1), 3 - 1
    wanted, _ = sharing.fractions(-5.0, 0.0, ALL)
    assert wanted == pytest.approx([0.1 / 6.0, 0.1 / 6.0, 8.0 / 3.0])  # the least pull; 3 + 5


def test_half_of_what_the_twin_misses_is_each_sides():
    sharing = pair([5.0, 5.0, 2.0])
    _, measured = sharing.fractions(0.0, 0.6, ALL)
    assert measured == pytest.approx([0.5 + 0.3 / 6.0] * 2 + [0.2 - 0.3 / 3.0])


def test_a_failed_cell_leaves_its_share_to_the_others_of_its_side():
    wanted, _ = pair([0.0, 0.0, 0.0]).fractions(2.0, 0.0, np.array([True, False, True]))
    assert wanted[0] == pytest.approx(1.0)
    wanted, _ = pair([0.0, 0.0, 0.0]).fractions(-2.0, 0.0, np.array([True, True, False]))
    assert wanted[2] == 0.0


def test_the_integral_stops_where_the_side_that_is_asked_can_give_no_more():
    duties = SimpleNamespace(high=np.array([True, True, False]))
    assert pair([0.0] * 3).at_ends(duties, ALL) == (True, False)
    duties = SimpleNamespace(high=np.array([True, False, True]))
    assert pair([0.0] * 3).at_ends(duties, ALL) == (False, True)


def between(first, second):
    """A transducer between two arrays whose cells all have 10 N of activation."""
    points = {name: Point("fixed") for name in ("left", "held", "right")}
    arrays = {
        "a": make_array(first, cell=CELL, mass_kg=0.01, start="left", end="held"),
        "b": make_array(second, cell=CELL, mass_kg=0.01, start="held", end="right"),
    }
    return CellArray(points, arrays)


def test_the_net_force_is_that_of_one_side_less_that_of_the_other():
    """Two parallel cells against one: 2 phi F less phi F, phi = k_se / (k_se + k_ae)."""
    model = between("-:2 | &3:-1", "-:1 | &1:-1")
    phi = 600.0 / 10600.0
    assert model.outputs[-1] == "held.net_N"
    assert model.static_gain("held.net_N") == pytest.approx([phi, phi, -phi])
    tension_N = model.solve_statics(np.full(3, 10.0)).tension_N
    assert model.force_at("held.net_N", tension_N) == pytest.approx(10.0 * phi)
    assert model.force_at("held.net_N", tension_N) == pytest.approx(
        model.force_at("a.right_N", tension_N) - model.force_at("b.left_N", tension_N)
    )


def test_a_point_with_arrays_on_one_side_only_has_no_net_force():
    points = {name: Point("fixed") for name in ("left", "held")}
    one = make_array("-:1 | &1:-1", cell=CELL, mass_kg=0.01, start="left", end="held")
    model = CellArray(points, {"a": one, "b": one})
    assert not any(name.endswith("net_N") for name in model.outputs)


@pytest.fixture
def steps(configs):
    return configs / "antagonist/steps.toml"


@pytest.mark.parametrize("backend", ["sim", pytest.param("emulated", marks=pytest.mark.slow)])
def test_the_pair_follows_set_points_in_both_directions(steps, tmp_path, backend):
    levels = ["reference.t_s=[0.5, 2.0]", "reference.force_N=[0.4, -0.4]"]
    config = load(steps, ["experiment.duration_s=3.5", *levels])
    run = hil.open_run(hil.run(config, out=tmp_path / "run.h5", backend=backend, seed=1))
    for end_s, wanted_N in ((1.9, 0.4), (3.4, -0.4)):
        held = (run.t_s > end_s - 0.5) & (run.t_s < end_s)
        error_N = (run.force_measured_N - wanted_N).values[held]
        assert abs(np.nanmean(error_N)) < 0.01
        assert np.nanmax(np.abs(error_N)) < 0.04
    # Where a wire cools, the other one takes over: much faster than a wire cools (0.6 s).
    turns = (run.t_s > 2.0) & (run.force_measured_N < 0.0)
    assert float(run.t_s.values[turns.values][0]) < 2.2
    assert not run.fault_bits.any()


def test_the_guard_looks_at_pulls_to_both_sides(steps):
    with pytest.raises(ConfigError, match=r"reference: asks for -0.8 N, beyond guard.force_max_N"):
        load(steps, ["guard.force_max_N=0.5", "reference.force_N=[0.4,0,0,0,-0.8]"])


@pytest.mark.parametrize(
    ("sets", "line"),
    [
        (["devices.daq.channels.force.signal='first.right_N'"],
         "controller.kind = 'antagonist': all cells pull 'first.right_N' to one side"),
        (["devices.daq.channels.force.signal='left.net_N'"], "left.net_N"),
        (["reference.force_N=[0, 0, 0, 0, -9.0]"], "all cells on give -3.9"),
        (["controller.kind='modulate'", "controller.least_N"], "controller.least_N"),
        (["controller.least_N=-0.1"], "controller.least_N = -0.1"),
    ],
)  # fmt: skip
def test_what_is_no_pair_is_refused_in_a_line(steps, sets, line):
    with pytest.raises(ConfigError) as error:
        load(steps, sets)
    [said] = [one for one in str(error.value).splitlines() if line in one]
    assert "steps.toml" in said or "rig.toml" in said or "--set" in said


def test_no_wire_is_heated_while_there_is_no_set_point(steps):
    """Not even the least pull is asked for."""
    simulation = Simulation(Plan(load(steps, ["experiment.duration_s=0.2"])))
    simulation.pipeline.control.reference.configured = NoReference()
    with simulation:
        simulation.trial.run()
    assert not simulation.dataset().cells_duty.any()
    followed = hil.simulate(load(steps, ["experiment.duration_s=0.2"]))
    assert followed.cells_duty.any()
