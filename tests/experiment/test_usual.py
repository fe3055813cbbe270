"""What is possible but unusual, and plans that meet a limit, are said before anything runs."""

from dataclasses import replace
from math import log, pi, sqrt
from types import SimpleNamespace

import numpy as np
import pytest

from hil.__main__ import main
from hil.errors import ConfigError
from hil.experiment.load import load, load_rig, load_with
from hil.experiment.plan import trips, unusual
from hil.experiment.usual import ringing
from hil.runs.plan import Plan
from hil.runs.simulate import simulate

SHIPPED = ("antagonist", "array14", "first_bench", "isotonic", "leg9", "miga1", "miga6",
           "miga6_lines", "silicone1", "silicone4", "spring_bias", "wires4")  # fmt: skip


@pytest.mark.parametrize("rig", SHIPPED)
def test_nothing_of_a_shipped_rig_is_unusual(configs, rig):
    assert not load_rig(configs / rig / "rig.toml").unusual


@pytest.mark.parametrize(("ticks", "said"), [(9.0, True), (11.0, False)])
def test_a_free_load_that_rings_needs_ten_ticks_a_period(ticks, said):
    # Exact: a mass on a spring swings at sqrt(k / m) / 2 pi.
    k_N_per_m, m_kg = 120.0, 0.02
    hertz = sqrt(k_N_per_m / m_kg) / 2.0 / pi
    A = np.array([[0.0, 1.0], [-k_N_per_m / m_kg, -1.0]])
    load_on_spring = SimpleNamespace(A=A, points={"load": SimpleNamespace(support="free")})
    found = list(ringing(load_on_spring, 1.0 / hertz / ticks))
    assert bool(found) is said
    if said:
        assert f"a load swings at {hertz:.3g} Hz" in found[0][1]
    damped = SimpleNamespace(A=A - np.diag([0.0, 50.0]), points=load_on_spring.points)
    assert not list(ringing(damped, 1.0))


def test_a_strict_run_refuses_what_is_unusual_and_another_warns(configs, tmp_path, capsys):
    file, heavy = configs / "isotonic/pulse.toml", "model.points.load.mass_kg=50.0"
    rig = load(file, [heavy])
    assert "model.points.load.mass_kg = 50: unusual: usual is 0.01 to 1 kg" in rig.unusual[0]
    with pytest.raises(ConfigError, match=r"--strict: .*mass_kg = 50: unusual"):
        Plan(rig, strict=True)
    assert main(["check", str(file), "--set", heavy]) == 0
    assert "mass_kg = 50: unusual" in capsys.readouterr().out


def steps(on_s, cell="muscle.1"):
    return {
        "experiment": {"name": "on", "duration_s": on_s + 1.0},
        "controller": {
            "kind": "schedule",
            "steps": [{"t_s": 0.5, "on": [cell]}, {"t_s": 0.5 + on_s, "off": "all"}],
        },
    }  # fmt: skip


@pytest.mark.parametrize(
    ("rig", "on_s", "expected"),
    [("miga6", 14.5, "guard.cell_on_max_s = 10"),
     ("first_bench", 3.2, "devices.board.limits.on_time_max_ms = 3000"),
     ("miga6_lines", 9.9, "")],
)  # fmt: skip
def test_a_cell_that_a_plan_has_on_for_too_long_is_said(configs, rig, on_s, expected):
    run = load_with(configs / rig / "rig.toml", steps(on_s), "test")
    found = dict(trips(run))
    if not expected:
        assert not found
        return
    text = found[expected]
    assert f"controller.steps has 'muscle.1' on for {on_s:g} s from t_s = 0.5" in text
    assert "the run would trip (cell_on_too_long)" in text


def test_of_steps_between_two_ticks_only_the_last_acts(configs):
    """The period is 1 ms: nothing is off at 1.001 s, and never are six cells on."""
    rig, six = configs / "miga6/rig.toml", [f"muscle.{i}" for i in range(1, 7)]

    def plan(duration_s, *steps):
        return {"experiment": {"name": "short", "duration_s": duration_s},
                "controller": {"kind": "schedule", "steps": list(steps)}}  # fmt: skip

    off_and_on = plan(2.5, {"t_s": 0.5, "on": ["muscle.1"]}, {"t_s": 1.0003, "off": "all"},
                      {"t_s": 1.0006, "on": ["muscle.1"]}, {"t_s": 2.0, "off": "all"})  # fmt: skip
    run = load_with(rig, off_and_on, "test", ["guard.cell_on_max_s=1.0"])
    assert "has 'muscle.1' on for 1.5 s from t_s = 0.5" in dict(trips(run))[
        "guard.cell_on_max_s = 1"]  # fmt: skip
    assert simulate(run).attrs["outcome"] == "tripped"
    swapped = plan(1.5, {"t_s": 0.5003, "on": six}, {"t_s": 0.5006, "off": ["muscle.6"]},
                   {"t_s": 1.0, "off": "all"})  # fmt: skip
    run = load_with(rig, swapped, "test", ["guard.cells_on_max=5"])
    assert not trips(run)
    assert simulate(run).attrs["outcome"] == "complete"


@pytest.mark.parametrize(
    ("times_s", "duration_s", "on_max_s"),
    [((0.001, 1.001), 1.2, 1.0), ((0.5, 9.0), 1.5005, 1.0), ((0.9995, 9.0), 1.0, 0.001)],
)  # fmt: skip
def test_a_plan_is_compared_as_its_ticks_run(times_s, duration_s, on_max_s, configs):
    """On for exactly the limit; until the last tick; and after it, which never acts."""
    plan = {
        "experiment": {"name": "exact", "duration_s": duration_s},
        "controller": {"kind": "schedule", "steps": [
            {"t_s": times_s[0], "on": ["muscle.1"]}, {"t_s": times_s[1], "off": "all"}]},
    }  # fmt: skip
    rig, limit = configs / "miga6/rig.toml", [f"guard.cell_on_max_s={on_max_s}"]
    run = load_with(rig, plan, "test", limit)
    assert not trips(run)
    assert simulate(run).attrs["outcome"] == "complete"


def test_an_off_between_two_ticks_acts_at_the_second(configs):
    """On from tick 500 to tick 1501, 1.001 s, though its times differ by 1.0001 s."""
    rig = configs / "miga6/rig.toml"
    for limit_s, refused in ((1.0005, True), (1.001, False)):
        plan = steps(1.0001)
        run = load_with(rig, plan, "test", [f"guard.cell_on_max_s={limit_s}"])
        assert bool(trips(run)) is refused
        assert simulate(run).attrs["outcome"] == ("tripped" if refused else "complete")


def test_a_step_after_the_last_tick_switches_nothing(configs):
    six = [f"muscle.{i}" for i in range(1, 7)]
    for t_s, refused in ((0.999, True), (0.9995, False)):
        plan = {"experiment": {"name": "late", "duration_s": 1.0},
                "controller": {"kind": "schedule", "steps": [{"t_s": t_s, "on": six}]}}  # fmt: skip
        run = load_with(configs / "miga6/rig.toml", plan, "test", ["guard.cells_on_max=5"])
        assert bool(trips(run)) is refused
        assert simulate(run).attrs["outcome"] == ("tripped" if refused else "complete")


def test_a_board_s_heat_budget_bounds_a_plan_as_it_bounds_a_run(configs):
    rig = configs / "isotonic/rig.toml"
    heat = ["devices.board.limits.heat_max_cA2ms=100000"]
    (board,) = load_rig(rig, heat).protections
    held_s, by_s = board.held_s()["wire.1"], board.trips_by_s()["wire.1"]
    assert replace(board, cells=()).trips_by_s() == {}  # nobody describes its wires
    for on_s, refused, said in (
        (0.99 * held_s, False, False),
        (0.5 * (held_s + by_s), False, True),
        (1.01 * by_s, True, True),
    ):
        run = load_with(rig, steps(round(on_s, 3), "wire.1"), "test", heat)
        assert any("heat_max_cA2ms" in key for key, _ in trips(run)) is refused
        lines = [line for line in unusual(run) if "heat_max_cA2ms" in line]
        assert bool(lines) is said, lines
        assert all("on again" not in line for line in lines)
        result = simulate(run)
        assert refused <= (result.attrs["outcome"] == "tripped") <= said
    tripped_s = float(result.t_s[np.asarray(result.fault_bits) != 0][0]) - 0.5
    assert held_s <= tripped_s <= by_s


def test_leads_let_a_cell_be_on_for_longer_before_its_board_certainly_trips(configs):
    """I2 tau (1 - exp(-t/tau)) reaches 0.01 A2 s; 1 Ohm in series with the wire lower I."""
    for lead_Ohm in (0.0, 1.0):
        changes = ["devices.board.limits.heat_max_cA2ms=100000",
                   f"devices.board.resistance.lead_Ohm={lead_Ohm}"]  # fmt: skip
        (board,) = load_rig(configs / "isotonic/rig.toml", changes).protections
        (cell,) = board.cells
        volts, tau_s = 0.97 * board.bench.supply_V, 1e-3 * board.limits["heat_time_constant_ms"]
        least_A = volts / (1.0 / cell.least_A(1.0) + lead_Ohm) * (1.0 - board.bench.current_error)
        by_s = -tau_s * log(1.0 - 0.01 / (least_A**2 * tau_s))
        assert 0.99 * by_s < board.trips_by_s()["wire.1"] < 1.1 * by_s


def test_a_bench_refuses_a_plan_that_certainly_trips(configs):
    run = load_with(configs / "miga6/rig.toml", steps(14.5), "test")
    assert any("the run would trip" in line for line in Plan(run).status.warnings(on_bench=False))
    with pytest.raises(ConfigError, match=r"guard\.cell_on_max_s = 10: controller\.steps has"):
        Plan(run, "board=bench,daq=sim", clock="real")


def test_a_cell_that_a_plan_has_on_again_while_it_is_warm_is_said(configs):
    rig, heat = configs / "isotonic/rig.toml", ["devices.board.limits.heat_max_cA2ms=100000"]
    (board,) = load_rig(rig, heat).protections
    held_s, tau_s = board.held_s()["wire.1"], 1e-3 * board.limits["heat_time_constant_ms"]
    on_s = 0.7 * held_s
    # The heat of a cold cell at its trip, and the time to it, by Euler steps of dh/dt = on - h/tau.
    step_s = 1e-4 * held_s
    trips_at, heat_s, again_s = 0.0, 0.0, 0.0
    for _ in range(10_000):
        trips_at += step_s * (1.0 - trips_at / tau_s)
    for i in range(8_000):  # 0.7 of the time on, 0.1 of it off
        heat_s += step_s * ((i < 7_000) - heat_s / tau_s)
    while heat_s < trips_at:
        heat_s, again_s = heat_s + step_s * (1.0 - heat_s / tau_s), again_s + step_s

    def said(off_s):
        times = (0.0, on_s, on_s + off_s, 2.0 * on_s + off_s)
        plan = steps(1.0) | {"experiment": {"name": "again", "duration_s": times[-1] + 1.0}}
        plan["controller"]["steps"] = [
            {"t_s": round(t_s, 6)} | ({"off": "all"} if i % 2 else {"on": ["wire.1"]})
            for i, t_s in enumerate(times)
        ]
        run = load_with(rig, plan, "test", heat)
        assert not trips(run)
        return [line for line in unusual(run) if "on again" in line]

    (line,) = said(0.1 * held_s)
    assert "heat_max_cA2ms = 100000" in line
    assert float(line.split("after ")[1].split(" s")[0]) == pytest.approx(
        again_s, abs=2e-3
    )  # two ticks
    assert not said(10.0 * tau_s)


def test_a_plan_that_settles_above_the_force_limit_is_said(configs):
    file = configs / "miga6/all_on.toml"
    assert not unusual(load(file))
    (line,) = unusual(load(file, ["guard.force_max_N=0.015"]))
    assert "guard.force_max_N = 0.015: controller.steps settles at" in line
    assert "N from t_s = 0: the run may trip (force_high)" in line


def test_a_run_that_expects_to_trip_is_not_compared(configs):
    expected = {"expect": [{"outcome": "tripped"}]}
    run = load_with(configs / "miga6/rig.toml", steps(14.5) | expected, "test")
    assert not trips(run)
