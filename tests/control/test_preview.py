"""Preview: the set point of one delay later as feedforward of a PID."""

import math
from collections import deque

import numpy as np
import pytest

from hil.control.pid import Pid, PidGains, Switching
from hil.control.reference import Ahead, Ramp
from hil.experiment.load import load
from hil.mechanics.sma.wire import SmaWire
from hil.runs import assembly
from hil.runs.plan import Plan
from hil.systems.array.model import cells
from hil.systems.array.model.activation import CellActivation
from hil.systems.array.model.cell_array import CellArray
from hil.systems.array.model.delay import mean_delay_s

PERIOD_S = 0.01
LEVELS = np.array([0.0, 0.6, 0.9, 1.1, 1.4, 1.5])
ORDER = [2, 0, 4, 1, 3]
CELL = {"k_pe_N_per_m": 20.0, "k_se_N_per_m": 386.52, "k_ae_N_per_m": 1000.0, "b_N_s_per_m": 500.0}
LAG_S = CELL["b_N_s_per_m"] / (CELL["k_se_N_per_m"] + CELL["k_ae_N_per_m"])


def preview(gains, reference, preview_s, levels=LEVELS, order=ORDER):
    return Pid(gains, levels, order, Switching(0.1, 0.0), PERIOD_S, Ahead(reference, preview_s))


def follow(pid, reference, delay_ticks, n=1000):
    """Return the error of a plant that gives the demand, delay_ticks later."""
    late, on, errors = deque([0.0] * delay_ticks), np.zeros(len(pid.order), np.uint8), []
    for k in range(n):
        force_N = late.popleft()
        errors.append(reference.at(k * PERIOD_S) - force_N)
        pid.step(k * PERIOD_S, reference.at(k * PERIOD_S), force_N, on)
        late.append(pid.demand_N)
    return np.array(errors)


RISING = Ramp([0.5, 2.0, 4.0, 7.0], [0.0, 1.3, 0.4, 1.1])  # zero for the first 0.5 s


@pytest.mark.parametrize("gains", [(0.0, 0.0), (0.6, 0.0), (0.4, 0.8)])
@pytest.mark.parametrize("delay_ticks", [1, 17, 50])
def test_a_pure_delay_leaves_no_error_with_a_preview_as_long(gains, delay_ticks):
    pid = preview(PidGains(*gains, 0.0, 0.02), RISING, delay_ticks * PERIOD_S)
    # a thousand additions of rounding 1e-16
    assert np.abs(follow(pid, RISING, delay_ticks)).max() < 1e-12


def test_without_feedback_the_error_is_that_of_the_missing_preview():
    pid = preview(PidGains(0.0, 0.0, 0.0, 0.02), RISING, 0.2)
    t_s = PERIOD_S * np.arange(1000)

    def r(t_s):
        return np.interp(t_s, RISING.t_s, RISING.levels)

    np.testing.assert_allclose(follow(pid, RISING, 50), r(t_s) - r(t_s - 0.3), atol=1e-12)


def test_feedback_removes_a_gain_that_the_feedforward_does_not_know():
    """Integral action; the plant gives 80 % of the demand."""
    reference = Ramp([0.0, 1.0], [0.0, 1.0])
    pid = preview(PidGains(0.2, 1.0, 0.0, 0.02), reference, 0.1)
    late, on = deque([0.0] * 10), np.zeros(5, np.uint8)
    for k in range(3000):
        force_N = late.popleft()
        pid.step(k * PERIOD_S, reference.at(k * PERIOD_S), force_N, on)
        late.append(0.8 * pid.demand_N)
    assert force_N == pytest.approx(1.0, abs=1e-6)
    assert pid.demand_N == pytest.approx(1.25, abs=1e-6)


def test_a_recorded_trace_holds_its_last_value_when_the_preview_passes_its_end():
    t_s, force_N = [0.0, 1.0, 2.5, 4.0], [0.1, 0.9, 0.2, 1.2]
    ahead = Ahead(Ramp(t_s, force_N), 0.8)
    at = np.linspace(0.0, 6.0, 601)
    np.testing.assert_allclose(
        [ahead.at(t) for t in at], np.interp(at + 0.8, t_s, force_N), atol=1e-13
    )
    assert ahead.at(3.9) == 1.2
    assert ahead.extremes(3.0)[1] == pytest.approx(np.interp(3.8, t_s, force_N))


def test_an_error_that_saturates_does_not_wind_the_integral_up():
    reference = Ramp([0.0, 20.0, 20.01], [3.0, 3.0, 1.0])  # all cells give 1.5
    pid, on = preview(PidGains(0.2, 5.0, 0.0, 0.02), reference, 0.0), np.zeros(5, np.uint8)
    for k in range(2000):
        pid.step(k * PERIOD_S, reference.at(k * PERIOD_S), 1.0, on)
    assert pid.demand_N == 1.5
    pid.step(20.02, 1.0, 1.0, on)
    assert pid.demand_N == 1.0


def test_a_missing_reading_keeps_the_demand():
    pid, on = preview(PidGains(0.2, 0.0, 0.0, 0.02), RISING, 0.1), np.zeros(5, np.uint8)
    pid.step(1.0, RISING.at(1.0), RISING.at(1.0), on)
    before = pid.demand_N
    assert before == pytest.approx(RISING.at(1.1))
    pid.step(1.5, RISING.at(1.5), math.nan, on)
    assert pid.demand_N == before


def one_cell(activation):
    model = CellArray.from_fingerprint("-:1 | &1:-1", cell=cells.miga(**CELL), mass_kg=0.01583)
    return mean_delay_s(model, [activation], "array.right_N", 0.001)


def test_the_delay_of_a_lag_is_its_time_constant():
    """A step on a damper b between fixed ends: b / (k_se + k_ae), MacNair & Ueda, Fig. 5."""
    assert one_cell(CellActivation(4.0, "step")) == pytest.approx(LAG_S, rel=1e-4)


def test_the_delay_of_a_wire_is_the_mean_of_its_rise_and_fall():
    """First-order heating and cooling between the transitions, in closed form; then the lag."""
    wire = SmaWire(latent_heat_J_per_kg=1e-6, austenite_Ohm_per_m=126.0)
    tau_s = wire.capacity_J_per_m_K / wire.loss_W_per_m_K
    hot_K = wire.field_V_per_m**2 / 126.0 / wire.loss_W_per_m_K
    share = (np.arange(10_000) + 0.5) / 10_000
    heating_K = wire.A_s_C - wire.ambient_C + share * (wire.A_f_C - wire.A_s_C)
    cooling_K = wire.M_f_C - wire.ambient_C + share * (wire.M_s_C - wire.M_f_C)
    rise_s = tau_s * np.log(hot_K / (hot_K - heating_K)).mean()
    fall_s = tau_s * np.log(hot_K / cooling_K).mean()
    assert abs(rise_s - fall_s) > 0.1
    delay_s = one_cell(CellActivation(4.0, "thermal", wire=wire))
    assert delay_s == pytest.approx(0.5 * (rise_s + fall_s) + LAG_S, rel=1e-3)


def test_a_held_set_point_is_what_the_feedforward_follows(configs):
    config = load(configs / "miga6/preview.toml", ["controller.k_i_per_s=0.0"])
    control = assembly.build(Plan(config)).control
    control.reference.held = 0.5
    control.controller.step(2.0, control.reference.at(2.0), 0.5, np.zeros(6, np.uint8))
    assert control.controller.demand_N == pytest.approx(0.5)


@pytest.mark.parametrize(("sets", "wanted_s"), [([], LAG_S), (["controller.preview_s=0.2"], 0.2)])
def test_the_set_point_is_taken_ahead_by_the_key_or_by_the_delay_of_the_cells(
    configs, sets, wanted_s
):
    config = load(
        configs / "miga6/preview.toml", ["controller.k_p=0.0", "controller.k_i_per_s=0.0", *sets]
    )
    control = assembly.build(Plan(config)).control
    control.controller.step(1.6, 0.0, 0.0, np.zeros(6, np.uint8))
    # the reach of least jerk of Flash & Hogan, from 1.0 to 2.5 s
    tau = (1.6 + wanted_s - 1.0) / 1.5
    wanted_N = 1.2 * tau**3 * (10.0 - 15.0 * tau + 6.0 * tau**2)
    assert control.controller.demand_N == pytest.approx(wanted_N, rel=1e-3)
