"""Strain and temperature from resistance, of wires that are simulated by the printed law."""

from dataclasses import replace

import numpy as np
import pytest

from hil.mechanics.sma.observer import ResistanceObserver, Uncertain
from hil.mechanics.sma.resistance import Resistivity
from hil.mechanics.sma.wire import SmaWire, SmaWires

WIRE = SmaWire(n_wires=4, supply_V=9.0)
LIVELY = replace(
    WIRE,
    martensite_Ohm_per_m=126.0 / 1.08,
    resistivity=Resistivity(martensite_per_K=8e-4, austenite_per_K=3e-4, per_strain=2.0),
)
PERIOD_S = 0.02
# of a wire whose resistances and branches are known
EXACT = Uncertain(martensite=0.0, austenite=0.0, r_phase=0.0, branches_K=0.0, hysteresis_K=0.0)
DUTY = np.repeat([1.0, 0.7, 0.0, 0.9, 0.6, 1.0, 0.0, 1.0], 150)


class Run:
    """A wire and its observer, side by side."""

    def __init__(self, true, believed, u=1e-4, readings=True, seed=5, uncertain=EXACT):
        rng = np.random.default_rng(seed)
        bank, force = SmaWires([true], np.ones(1)), np.zeros((2, 1))
        bank.reset(force[0], force[1])
        observer = ResistanceObserver(believed, None, uncertain)
        true_, told = [], []
        for duty in DUTY:
            bank.step(np.array([duty]), PERIOD_S, force[0], force[1])
            R, u_Ohm = bank.resistance_Ohm[0], u * bank.resistance_Ohm[0]
            R += u_Ohm * rng.standard_normal()
            told.append(observer.step(duty, PERIOD_S, R if readings else np.nan, u_Ohm))
            true_.append((bank.xi[0], bank.T_C[0]))
        self.xi, self.T_C = np.array(true_).T
        self.error = np.array([t.strain for t in told]) - 0.04 * (1.0 - self.xi)
        self.u = np.array([t.u_strain for t in told])
        self.T_error_K = np.array([t.T_C for t in told]) - self.T_C

    @property
    def rms_of_stroke(self):
        return np.sqrt(np.mean(self.error[50:] ** 2)) / 0.04


@pytest.mark.parametrize("wire", [WIRE, LIVELY], ids=["phases", "temperature and strain"])
def test_strain_follows_within_one_percent_in_other_air_and_convection(wire):
    other = replace(wire, ambient_C=22.0, convection_W_per_m2_K=135.0)
    seen = Run(other, wire, u=5e-4)
    blind = Run(other, wire, readings=False)
    assert np.ptp(seen.xi) > 0.6, "the wire uses its stroke"
    assert seen.rms_of_stroke < 0.01
    assert blind.rms_of_stroke > 3.0 * seen.rms_of_stroke, "it is the resistance that tells"


def test_the_temperature_of_a_transforming_wire_is_told_too():
    seen = Run(replace(LIVELY, ambient_C=22.0), LIVELY)
    moving = (np.abs(np.gradient(seen.xi)) > 1e-3) & (np.arange(len(seen.xi)) > 50)
    assert moving.sum() > 50
    assert np.sqrt(np.mean(seen.T_error_K[moving] ** 2)) < 1.0


def test_the_stated_uncertainty_holds_most_errors():
    seen = Run(replace(WIRE, ambient_C=24.0), WIRE, u=1e-3)
    inside = np.abs(seen.error[50:]) <= 2.0 * seen.u[50:] + 0.005 * 0.04
    assert inside.mean() > 0.9


def test_a_coarser_resistance_gives_a_coarser_strain():
    other = replace(WIRE, ambient_C=22.0)
    assert Run(other, WIRE, u=5e-3).rms_of_stroke > Run(other, WIRE, u=5e-4).rms_of_stroke


def test_a_wire_without_readings_stays_within_its_hysteresis():
    observer = ResistanceObserver(WIRE)
    for _ in range(200):
        state = observer.step(1.0, 0.05)
    assert state.strain == pytest.approx(0.0, abs=1e-9)
    for _ in range(400):
        state = observer.step(0.0, 0.05)
    assert state.strain == pytest.approx(0.04, abs=1e-9)
    assert state.T_C == pytest.approx(25.0, abs=3.0)
