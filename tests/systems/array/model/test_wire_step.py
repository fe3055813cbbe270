"""The step of wires under stress, held against steps that are far finer."""

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

import hil
from hil.errors import ConfigError
from hil.experiment.load import load
from hil.experiment.recorded import as_it_meant
from hil.mechanics.sma.stress import Branch, LineBranch, StressLaw
from hil.mechanics.sma.stressed import constants_of, stroke
from hil.mechanics.sma.wire import SmaWire
from hil.runs.replay import replay
from hil.systems.array.model import cells
from hil.systems.array.model import system as system_module
from hil.systems.array.model.activation import CellActivation
from hil.systems.array.model.cell_array import EXACT_ORDER_MAX, CellArray, make_array
from hil.systems.array.model.network import Point
from hil.systems.array.model.system import ArraySystem
from hil.systems.array.model.wire_load import Loaded, stress_Pa
from hil.systems.array.model.wire_steps import (
    DAMPED,
    RADIANS_MAX,
    TURN_MAX,
    share_of_wires,
    undamped_max_per_s,
)

CONFIGS = Path(__file__).parents[4] / "configs"
FINE_S = 5e-5
GOAL = 0.005  # of the range of a run
SHIPPED = ("wires4/pulse", "isotonic/pulse", "spring_bias/pulse", "stage/pull")
PERIODS_S = (0.001, 0.01, 0.1, 1.0)
RANDOM = (15, *range(15), *range(16, 40))  # of the first most steps are saved


@lru_cache
def shipped(name, *, plant):
    """Model and activation of a bundled rig, of its twin or of its plant."""
    system = load(CONFIGS / f"{name}.toml").system(plant=plant)
    return system.model, tuple(system.cells)


def held(rig):
    """The same rig by the older law, which holds the stress over a step."""
    model, wires = rig
    return model, tuple(replace(one, loaded=replace(one.loaded, implicit=False)) for one in wires)


def sloped(rig, slope):
    """The same rig with minor loops of this slope."""
    model, wires = rig
    return model, tuple(
        replace(
            one, loaded=replace(one.loaded, law=replace(one.loaded.law, minor_loop_slope=slope))
        )
        for one in wires
    )


def duties(n_cells, seed, every_s, end_s):
    """At random for every_s each, after all cells were on and then off."""
    random = np.random.default_rng(seed)
    table = random.choice([0.0, 0.3, 0.7, 1.0], size=(round(end_s / every_s), n_cells))
    table[: len(table) // 4], table[len(table) // 4 : len(table) // 2] = 1.0, 0.0
    return lambda t_s: table[int(t_s / every_s + 1e-9)]


def still(t_s):
    return 0.0


def followed(rig, period_s, at_s, drive, end_s, moved_m=still):
    """Forces, positions and austenite of a rig at every at_s."""
    system = ArraySystem(*rig, period_s)
    rows = []
    for k in range(round(end_s / period_s)):
        moves_m = np.full(len(system.inputs), moved_m((k + 1) * period_s))
        system.step(drive(k * period_s), moves_m)
        if (k + 1) % round(at_s / period_s) == 0:
            rows.append(np.concatenate([system.y, system.wires.xi]))
    return np.array(rows)


def errors(rig, found, expected, weight_N=0.0, every=1):
    """Largest error of every quantity over its range; a hanging weight is added to its force's.

    `found` has every `every`-th row of `expected`; the range is that of all of its rows.
    """
    names = [*rig[0].outputs, *("xi" for _ in rig[1])]
    ranges = np.ptp(expected, axis=0)
    ranges += [weight_N * name.endswith("_N") for name in names]
    moved = ranges > 1e-9
    return np.abs(found - expected[every - 1 :: every]).max(axis=0)[moved] / ranges[moved]


@lru_cache
def fine(name, plant, end_s):
    """The run of a shipped rig by fine steps; every 1 ms."""
    rig = shipped(name, plant=plant)
    return followed(rig, FINE_S, 0.001, duties(len(rig[1]), 1, 1.0, end_s), end_s)


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize(
    ("name", "plant"), [(name, plant) for plant in (False, True) for name in SHIPPED[::-1]]
)
def test_plant_and_twin_of_a_shipped_rig_are_those_of_a_fine_step(name, plant):
    rig, end_s = shipped(name, plant=plant), 4.0
    expected, drive = fine(name, plant, end_s), duties(len(rig[1]), 1, 1.0, end_s)
    for period_s in PERIODS_S:
        found = followed(rig, period_s, period_s, drive, end_s)
        every = round(period_s / 0.001)
        assert errors(rig, found, expected, every=every).max() < GOAL


def test_the_older_law_has_the_same_limit_and_is_of_first_order():
    """It shares the branches with the present one, but neither the solution nor the step."""
    rig, end_s = shipped("spring_bias/pulse", plant=False), 2.0
    drive = duties(1, 2, 0.5, end_s)
    expected = followed(rig, FINE_S, 0.01, drive, end_s)
    off = [
        errors(rig, followed(held(rig), period_s, 0.01, drive, end_s), expected).max()
        for period_s in (1e-3, 5e-5, 2.5e-5)
    ]
    assert off[0] > 0.002
    assert off[2] < 0.0006
    assert 1.9 < off[1] / off[2] < 2.1


@pytest.mark.parametrize("slope", [0.0, 0.5])
@pytest.mark.parametrize("name", ["spring_bias/pulse", "wires4/pulse"])
def test_half_the_step_leaves_a_quarter_of_the_error(name, slope):
    rig, end_s = sloped(shipped(name, plant=False), slope), 1.5
    drive = duties(len(rig[1]), 1, 0.375, end_s)
    finest = [followed(rig, h, 0.125, drive, end_s) for h in (1e-4, 5e-5)]
    expected = finest[1] + (finest[1] - finest[0]) / 3.0
    off = []
    for period_s in (1e-3, 2.5e-4):
        found = followed(rig, period_s, 0.125, drive, end_s)
        off.append(np.sqrt((errors(rig, found, expected) ** 2).mean()))
    assert off[0] / off[1] > 8.0  # 16 for a quarter of the step


def test_a_driven_point_moves_evenly_through_the_steps_of_a_period():
    rig, drive = shipped("stage/pull", plant=False), duties(1, 1, 0.5, 2.0)

    def ramps_m(t_s):
        return 0.001 * abs((t_s + 0.2) % 0.4 - 0.2)

    expected = followed(rig, 1e-4, 0.1, drive, 2.0, ramps_m)
    found = followed(rig, 0.1, 0.1, drive, 2.0, ramps_m)
    assert errors(rig, found, expected).max() < GOAL


def test_a_wire_that_moves_a_mass_does_not_ring_at_a_period_of_10_ms():
    """The older law did, from one period to the next, by 0.17 of 0.45 N after the wires cool."""
    rig, end_s = shipped("spring_bias/pulse", plant=True), 4.0
    drive, off = duties(1, 1, 1.0, end_s), slice(110, 170)

    def rings_N(force_N):
        return np.abs(np.diff(force_N[off], 2)).max()

    true_N = rings_N(fine("spring_bias/pulse", True, end_s)[9::10, 0])
    now_N, before_N = (rings_N(followed(one, 0.01, 0.01, drive, end_s)[:, 0])
                       for one in (rig, held(rig)))  # fmt: skip
    assert now_N == pytest.approx(true_N, rel=0.02)
    assert before_N > 5.0 * true_N


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize("slope", [1.0, 0.3])
@pytest.mark.parametrize("name", SHIPPED[::-1])
def test_a_shipped_rig_whose_minor_loops_slope_is_that_of_a_fine_step(name, slope):
    rig, end_s = sloped(shipped(name, plant=False), slope), 2.0
    drive = duties(len(rig[1]), 1, 0.5, end_s)  # whole periods of each
    expected = followed(rig, FINE_S, 0.01, drive, end_s)
    for period_s in (0.001, 0.01, 0.1):
        at_s = max(period_s, 0.01)
        found = followed(rig, period_s, at_s, drive, end_s)
        assert errors(rig, found, expected, every=round(at_s / 0.01)).max() < GOAL


@pytest.mark.parametrize("name", ["spring_bias/pulse", "wires4/pulse"])
def test_minor_loops_that_hardly_slope_are_flat(name):
    """The flat law has another solution of the heat balance, knot by knot."""
    rig = shipped(name, plant=False)
    drive = duties(len(rig[1]), 1, 0.25, 2.0)
    flat, almost = (followed(one, 0.001, 0.01, drive, 2.0) for one in (rig, sloped(rig, 1e-12)))
    assert errors(rig, almost, flat).max() < 1e-5


def test_heat_given_is_heat_stored_and_lost_where_minor_loops_slope():
    """The first law, of wires that no stress moves; the sum is the trapezoidal rule's."""
    law = StressLaw(
        LineBranch(93.0, 1e30, 10.0), LineBranch(67.0, 1e30, 10.0), stroke_min=0.04,
        stroke_max=0.04, stroke_rate_per_Pa=1e-8, minor_loop_slope=0.6,
    )  # fmt: skip
    wire = SmaWire(n_wires=4, supply_V=10.0, austenite_Ohm_per_m=126.0)
    cell = cells.hill(k_pe_N_per_m=20.0, k_se_N_per_m=611.0, k_ae_N_per_m=10160.0, b_N_s_per_m=50.0)
    model = CellArray.from_fingerprint("-:1 | &1:-1", cell=cell, mass_kg=0.02)
    one = CellActivation(6.8, "sma", wire=wire, loaded=Loaded(law, 0.5, 10160.0))
    system, given_J, lost_J = ArraySystem(model, [one], 0.001), 0.0, 0.0
    for k in range(3000):
        duty, before_C = float(k < 1100 or 2100 < k < 2300), system.wires.T_C[0]
        system.step(np.array([duty]))
        given_J += 1e-3 * duty * wire.field_V_per_m**2 / 126.0
        lost_J += 1e-3 * wire.loss_W_per_m_K * (0.5 * (before_C + system.wires.T_C[0]) - 25.0)
        assert k not in (2100, 2300) or 0.1 < system.wires.xi[0] < 0.9
    stored_J = wire.capacity_J_per_m_K * (system.wires.T_C[0] - 25.0)
    stored_J += wire.latent_J_per_m * system.wires.xi[0]
    assert given_J == pytest.approx(stored_J + lost_J, rel=1e-9)


def a_rig(seed):
    """Wires of any thickness in cells, masses and springs at random, and the weight they hold."""
    random = np.random.default_rng(seed)

    def between(low, high):
        return float(np.exp(random.uniform(np.log(low), np.log(high))))

    texts = ("-:1 | &1:-1", "-:4 | &F:-1", "-:1 | &1:2 | &1:1 &2:2 | &7:-1",
             "-:2 | &1:1 &2:1 | &3:-1", "-:1 | &1:1 | &1:1 | &1:-1")  # fmt: skip
    text, load = texts[random.integers(len(texts))], random.choice(["fixed", "weight", "spring"])
    d_mm, n_wires = random.choice([0.05, 0.1, 0.15, 0.25]), int(random.integers(1, 5))
    wire = SmaWire(
        length_m=random.uniform(0.05, 0.2), n_wires=n_wires, diameter_m=1e-3 * d_mm,
        convection_W_per_m2_K=125.0 * (0.1 / d_mm) ** 0.6,
        martensite_Ohm_per_m=1.26 / d_mm**2, austenite_Ohm_per_m=1.13 / d_mm**2,
    )  # fmt: skip
    hot_W_per_m = wire.capacity_J_per_m_K * 150.0 / between(0.1, 0.6)
    field = np.sqrt(hot_W_per_m * wire.martensite_Ohm_per_m)
    wire = replace(wire, supply_V=float(field * wire.length_m * n_wires))
    law = StressLaw(
        Branch(random.uniform(70, 85), random.uniform(6e6, 1e7), random.uniform(0.8, 3.0), 8.2,
               -3.9, 0.52, random.uniform(0.0, 2e-9)),
        Branch(random.uniform(48, 60), random.uniform(6e6, 9e6), random.uniform(0.8, 3.0), 8.0,
               -3.4, 0.52, 0.8e-9),
        stroke_min=0.02, stroke_max=0.047, stroke_rate_per_Pa=1.2e-8,
        modulus_A_Pa=70e9, modulus_M_Pa=28e9,
    )  # fmt: skip
    one_m2 = 1.0 / stress_Pa(wire, 1.0)
    rest_Pa, modulus_Pa = random.uniform(50e6, 200e6), random.choice([10e9, 20e9, 40e9, 60e9])
    k_ae = modulus_Pa * one_m2 * n_wires / wire.length_m
    on_N = k_ae * stroke(constants_of(law), rest_Pa)[0] * wire.length_m
    share_max = 700e6 * one_m2 * n_wires / on_N  # of a blocked contraction, by the strength
    k_se = min(k_ae * between(0.05, 10.0), k_ae * share_max / max(0.01, 1.0 - share_max))
    b, kind = k_ae * between(2e-3, 0.3), random.choice(["hill", "miga"])
    cell = getattr(cells, kind)(
        k_pe_N_per_m=0.01 * k_ae, k_se_N_per_m=k_se, k_ae_N_per_m=k_ae, b_N_s_per_m=b
    )
    points = {"end": Point("fixed"), "start": Point("fixed")}
    if load == "weight":
        points["start"] = Point("free", between(0.005, 1.0))
    elif load == "spring":
        points["start"] = Point("free", between(1e-3, 0.1), k_ae * between(0.02, 3.0))
    array = make_array(text, cell=cell, mass_kg=between(1e-4, 0.05), start="start", end="end")
    model = CellArray(points, {"m": array})
    pull_N = rest_Pa * one_m2
    one = CellActivation(on_N, "sma", wire=wire, loaded=Loaded(law, pull_N, k_ae))
    return (model, (one,) * model.n_cells), n_wires * pull_N * (load == "weight")


def damping(model):
    """The least damping ratio of its oscillations."""
    poles = np.linalg.eigvals(model.A)
    return (-poles.real / np.abs(poles)).min()


@pytest.mark.slow_beyond(3)
@pytest.mark.parametrize("seed", RANDOM)
def test_a_random_rig_has_the_forces_of_a_fine_step(seed):
    """With at least 1 % of critical damping: less leaves vibrations whose phase is chance."""
    rig, weight_N = a_rig(seed)
    seeds = iter(range(1000 + 100 * seed, 1100 + 100 * seed))
    while damping(rig[0]) < 0.01:
        rig, weight_N = a_rig(next(seeds))
    end_s = 2.0
    drive = duties(len(rig[1]), seed, 0.1, end_s)
    expected = followed(rig, FINE_S, 0.001, drive, end_s)
    for period_s in (0.001, 0.01, 0.1):
        every = round(period_s / 0.001)
        found = followed(rig, period_s, period_s, drive, end_s)
        assert errors(rig, found, expected, weight_N, every).max() < GOAL


def test_a_period_is_divided_into_steps_of_1_ms_or_of_a_part_of_the_fastest_oscillation():
    model, wires = shipped("wires4/pulse", plant=False)
    assert ArraySystem(model, wires, 0.001).steps == 1
    assert ArraySystem(model, wires, 0.0011).steps == 2
    assert ArraySystem(model, wires, 1.0).steps == 1000
    for seed, radians_max in ((8, RADIANS_MAX), (15, TURN_MAX)):  # dampers: of springs; of wires
        rig, _ = a_rig(seed)
        poles = np.linalg.eigvals(rig[0].A)
        rings = poles[(poles.imag != 0.0) & (-poles.real < DAMPED * np.abs(poles))]
        fastest = np.abs(rings).max()
        assert fastest > 600.0
        assert ArraySystem(*rig, 0.01).steps == pytest.approx(0.01 * fastest / radians_max, abs=1.0)


@pytest.mark.parametrize("damper_across", ["spring", "wire"])
def test_the_share_of_a_wire_is_that_of_springs_and_dampers_in_series_and_parallel(damper_across):
    """k_pe beside k_se and k_ae in a row, one with the damper b; a wire gives way: no k_ae."""
    k_pe, k_se, k_ae, b = 20.0, 400.0, 1000.0, 50.0
    kind = cells.hill if damper_across == "spring" else cells.miga
    cell = kind(k_pe_N_per_m=k_pe, k_se_N_per_m=k_se, k_ae_N_per_m=k_ae, b_N_s_per_m=b)
    model = CellArray.from_fingerprint("-:1 | &1:-1", cell=cell, mass_kg=0.01)
    law = shipped("wires4/pulse", plant=False)[1][0].loaded.law
    per_s = np.array([1.0, 10.0, 100.0, 1000.0])

    def stiffness(k_ae):
        s = 1j * per_s
        spring, wire = (k_se + b * s, k_ae) if damper_across == "spring" else (k_se, k_ae + b * s)
        return k_pe + spring * wire / (spring + wire)

    holds, gives_way = stiffness(k_ae), stiffness(0.0)
    expected = abs(holds - gives_way) / np.maximum(abs(holds), abs(gives_way))
    found = share_of_wires(model, {0: Loaded(law, 1.0, k_ae)}, per_s)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_broken_cell_beside_a_wire_leaves_its_steps_as_short():
    """What is broken has no stiffness, and a wire no share of it."""
    _, (wire,) = shipped("spring_bias/pulse", plant=False)
    wire = replace(wire, loaded=replace(wire.loaded, k_ae_N_per_m=1e4))
    cell = cells.hill(k_pe_N_per_m=20.0, k_se_N_per_m=5e4, k_ae_N_per_m=1e4, b_N_s_per_m=0.1)

    def steps(text, **failed):
        array = make_array(text, cell=cell, mass_kg=0.01, start="wall", end="load", **failed)
        model = CellArray({"wall": Point(), "load": Point("free", 0.02)}, {"wire": array})
        return ArraySystem(model, [wire] * model.n_cells, 0.01).steps

    alone = steps("-:1 | &1:-1")
    assert alone > 10
    assert steps("-:2 | &3:-1", broken_cells=[2]) == alone


def rigs_beyond_the_exact_step():
    """Ten strands of ten wires, and two layers of wires on a common mass and a driven point."""
    wires = shipped("wires4/pulse", plant=False)[1]
    cell = cells.hill(k_pe_N_per_m=20.0, k_se_N_per_m=611.0, k_ae_N_per_m=10160.0, b_N_s_per_m=50.0)
    layer, every = " ".join(f"&{1 << i:X}:1" for i in range(10)), f"&{2**100 - 1:X}"
    strands = f"-:10 | {f'{layer} | ' * 9}&3FF:-1"
    common = f"-:100 | {every}:100 | {every}:-1"
    for text, mass_kg, right in ((strands, 1.0, "fixed"), (common, 40.0, "driven")):
        model = CellArray.from_fingerprint(
            text, cell=cell, mass_kg=mass_kg, name="muscle", right=right
        )
        assert len(model.states) > EXACT_ORDER_MAX
        yield model, wires[:1] * model.n_cells


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize("rig", list(rigs_beyond_the_exact_step()), ids=["strands", "common mass"])
def test_wires_beyond_the_exact_step_have_the_forces_of_a_fine_exact_step(rig, monkeypatch):
    drive, end_s = duties(len(rig[1]), 2, 0.4, 1.6), 1.6

    def ramps_m(t_s):
        return 0.002 * abs((t_s + 0.2) % 0.4 - 0.2)

    coarse = [followed(rig, period_s, 0.1, drive, end_s, ramps_m) for period_s in (0.001, 0.1)]
    monkeypatch.setattr(system_module, "EXACT_ORDER_MAX", 300)
    expected = followed(rig, 2e-4, 0.1, drive, end_s, ramps_m)
    assert np.ptp(expected, axis=0)[-len(rig[1]) :].max() > 0.3  # of a wire's austenite
    for found in coarse:
        assert errors(rig, found, expected).max() < GOAL


@pytest.mark.parametrize("name", ["wires4/pulse", "spring_bias/pulse", "stage/pull"])
def test_the_sparse_step_of_wires_is_the_exact_one(name, monkeypatch):
    rig = shipped(name, plant=False)
    drive = duties(len(rig[1]), 1, 0.25, 1.0)

    def ramps_m(t_s):
        return 0.001 * abs((t_s + 0.2) % 0.4 - 0.2)

    expected = followed(rig, 0.001, 0.01, drive, 1.0, ramps_m)
    monkeypatch.setattr(system_module, "EXACT_ORDER_MAX", 0)
    found = followed(rig, 0.001, 0.01, drive, 1.0, ramps_m)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)


def test_no_oscillation_is_faster_than_without_dampers():
    for seed in range(20):
        model = a_rig(seed)[0][0]
        poles = np.linalg.eigvals(model.A)
        rings = (poles.imag != 0.0) & (-poles.real < DAMPED * np.abs(poles))
        assert np.abs(poles[rings]).max(initial=0.0) <= undamped_max_per_s(model) * (1.0 + 1e-9)


LIGHT = ("model.arrays.wire.fingerprint='-:1 | &1:1 | &1:-1'",
         "devices.board.cells=['wire.1', 'wire.2']", "model.arrays.wire.force_on_N=3.0",
         "model.arrays.wire.cell.kind='miga'")  # fmt: skip


def test_a_period_that_the_law_cannot_carry_is_refused_with_the_longest_that_it_can():
    file = CONFIGS / "spring_bias/pulse.toml"
    sets = [*LIGHT, "model.arrays.wire.mass_kg=1e-9", "loop.period_s=0.01"]
    with pytest.raises(ConfigError) as error:
        load(file, sets)
    [line] = [one for one in str(error.value).splitlines() if "loop.period_s" in one]
    longest_s = line.split("give at most ")[1].split(" s")[0]
    load(file, [*sets[:-1], f"loop.period_s={longest_s}"])


def test_an_older_recording_keeps_its_law_and_a_new_one_says_its_own(tmp_path):
    sets = ["experiment.duration_s=0.5", "loop.period_s=0.01", "devices.board.every=1"]
    config = load(CONFIGS / "spring_bias/pulse.toml", sets)
    path = hil.run(config, out=tmp_path / "run.h5", seed=1)
    assert replay(path) == (hil.open_run(path).sizes["tick"], None)
    kept = config.to_toml()
    assert 'coupling = "implicit"' in kept
    wires = {"kind": "sma", "n_wires": 4}
    table = {"model": {"arrays": {"a": {"activation": wires}}}}
    [meant] = [one["activation"] for one in as_it_meant(table)["model"]["arrays"].values()]
    assert meant == {**wires, "coupling": "held"}
