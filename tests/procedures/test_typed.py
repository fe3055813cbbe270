"""Procedures whose readings are typed: what is known comes out within what is stated."""

import dataclasses
import tomllib

import numpy as np
import pytest
from scipy.stats import binom
from scipy.stats import t as student

from hil.__main__ import main
from hil.calibration.files import load_any
from hil.errors import ConfigError
from hil.procedures import (
    certificate,
    displacement,
    encoder,
    masses,
    pantograph,
    springs,
    transducer,
)
from hil.procedures.kinds import KINDS, TYPED, session_kind, template
from hil.procedures.session_file import read_session
from procedures.intervals import half_width

SESSIONS = 400
FEW, MANY = binom.ppf((0.0005, 0.9995), SESSIONS, 0.95)


def session_of(kind, *sets):
    return read_session(None, template(kind), session_kind(kind), list(sets))


def rehearsed(kind, seed, *sets, truth=lambda known: known):
    """(truth, what the procedure makes of its readings)."""
    session, procedure = session_of(kind, *sets), TYPED[kind]
    known = truth(procedure.rehearsal(session, seed))
    readings = {
        step.key: known.read(step, 1000 * seed + i)
        for i, step in enumerate(procedure.steps(session))
    }
    return known.truth, procedure.finish(session, readings)


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize(
    "kind",
    ["spring_constants", "masses", "encoder", "displacement_sensor", "pantograph_geometry"],
)
def test_stated_intervals_hold_the_truth_in_95_of_100_acts(kind):
    held = {}
    centred = ["procedure.eccentricity_rad=0.0"] if kind == "encoder" else []
    for seed in range(SESSIONS):
        truth, found = rehearsed(kind, seed, *centred)
        u = np.sqrt(np.diag(found["covariance"]))
        k = student.ppf(0.975, found["dof"])
        for (name, value), one in zip(found["values"].items(), u, strict=True):
            held[name] = held.get(name, 0) + (abs(value - truth[name]) <= k * one)
    if kind == "encoder":
        assert held.pop("direction") == SESSIONS
    assert min(held.values()) >= FEW
    # Rounding of scales and positioners counts in the spread and in its own term: a little wide.
    assert min(held.values()) <= MANY


def smooth(known):
    return dataclasses.replace(known, hysteresis=0.0, creep=0.0)


@pytest.mark.slow
def test_a_transducers_deflection_over_force_is_held_in_95_of_100_acts():
    """Zeros that drift, as ASTM E74 takes them; the fit is linear, so Student's law is exact."""
    held = np.zeros(2)
    session = session_of("force_transducer")
    every, F = transducer.loads(session.procedure), None
    for seed in range(SESSIONS):
        known = smooth(transducer.rehearsal(session, seed))
        y = np.array([
            known.read(step, 1000 * seed + i) for i, step in enumerate(transducer.steps(session))
        ])[: len(every)]  # fmt: skip
        F = np.array([load.force_N for load in every])
        fit = transducer._fit(session.procedure, every, y, F)
        held += [abs(fit.values[i] - known.g[i]) <= half_width(fit, i) for i in range(2)]
    assert (held >= FEW).all()
    assert (held <= MANY).all()


@pytest.mark.slow
def test_a_force_through_the_record_is_within_its_uncertainty_with_hysteresis_too():
    """At three forces of each session; a loop's uncertainty makes it wider than 95 %."""
    held = 0
    for seed in range(SESSIONS):
        truth, found = rehearsed("force_transducer", seed)
        C = np.array(found["model"]["covariance_N2"])
        c = np.array(found["model"]["coefficients_N"])
        known = np.array(list(truth.values()))
        for d in (0.4, 1.0, 1.8):
            g = d ** np.arange(3)
            held += abs((c - known) @ g) <= 1.96 * np.sqrt(g @ C @ g)
    assert held >= binom.ppf(0.0005, 3 * SESSIONS, 0.95)


@pytest.mark.slow
def test_a_straight_line_through_a_curved_transducer_holds_95_of_100_forces_on_either_branch():
    """A bend of 0.1 % of full scale, which a polynomial of degree 1 cannot follow."""
    held, sets = 0, ["procedure.degree=1", "procedure.zero_at_top=false"]
    session = session_of("force_transducer", *sets)
    top_N = transducer.forces_N(session.procedure).max()
    for seed in range(SESSIONS):
        truth, found = rehearsed("force_transducer", seed, *sets)
        c, C = (np.array(found["model"][key]) for key in ("coefficients_N", "covariance_N2"))
        known, rng = np.array(list(truth.values())), np.random.default_rng(seed)
        for d in rng.uniform(0.0, 1.95, 4):
            F = known @ d ** np.arange(3)
            x = F / top_N
            F += rng.choice([-0.5, 0.5]) * 0.0005 * 4 * x * (1 - x) * top_N
            g = d ** np.arange(2)
            held += abs(c @ g - F) <= 1.96 * np.sqrt(g @ C @ g)
    assert 0.93 <= held / (4 * SESSIONS) <= 0.97


def later_forces(seed, *sets, span=0.0, bend=0.0):
    """Errors of four forces, each read in a run after the calibration, over their uncertainties.

    The span of every run differs by `span` of itself, and its zero goes along a parabola, by
    `bend` of full scale at the middle of the run.
    """
    session, rng = session_of("force_transducer", *sets), np.random.default_rng(seed)
    known = smooth(transducer.rehearsal(session, seed))
    every, top_N = transducer.loads(session.procedure), transducer.forces_N(session.procedure).max()
    noise = known.noise_mV_per_V

    def deflection(F):
        return (1.0 + span * spans[-1]) * (known.g[0] * F + known.g[1] * F**2)

    spans, readings = [], {}
    for load in every:
        if load.run > len(spans):
            spans.append(rng.standard_normal())
        zero = 0.01 + bend * known.sensitivity * top_N * 4.0 * load.part * (1.0 - load.part)
        readings[load.key] = zero + deflection(load.force_N) + noise * rng.standard_normal()
    readings["creep, at once"] = readings["creep, later"] = max(readings.values())
    model = transducer.finish(session, readings)["model"]
    c, C = np.array(model["coefficients_N"]), np.array(model["covariance_N2"])
    errors = []
    for F in rng.uniform(0.05, 1.0, 4) * top_N:
        spans.append(rng.standard_normal())
        g = (deflection(F) + noise * rng.standard_normal()) ** np.arange(3)
        errors.append(abs(c @ g - F) / np.sqrt(g @ C @ g))
    return errors


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize(
    ("sets", "changes"),
    [
        (("zero_at_top=true",), {"span": 1e-3, "bend": 5e-4}),
        (("zero_at_top=true",), {"span": 3e-4}),
        (("zero_at_top=true",), {"bend": 1e-3}),
        (("zero_at_top=false",), {"span": 1e-3}),
        (("zero_at_top=false",), {}),
        (("zero_at_top=true", "runs=6"), {"span": 1e-3}),
    ],
)
def test_a_force_of_a_later_run_is_within_its_uncertainty_where_spans_and_zeros_wander(
    sets, changes
):
    """93 to 97 % of 1 600 forces; those of one session share its error, as 400 would."""
    sets = [f"procedure.{one}" for one in sets]
    held = [np.mean(np.array(later_forces(seed, *sets, **changes)) <= 1.96) for seed in range(400)]
    spread = 3.3 * np.std(held) / np.sqrt(len(held))
    assert 0.93 - spread <= np.mean(held) <= 0.97 + spread


def test_a_zero_read_with_the_top_weight_off_tells_a_parabola_from_the_transducers_bend():
    errors = {
        top: np.mean(
            [later_forces(seed, f"procedure.zero_at_top={top}", bend=1e-3) for seed in range(20)]
        )
        for top in ("true", "false")
    }
    assert errors["true"] < 1.0 < 3.0 < errors["false"]


def test_the_span_between_runs_is_the_scatter_of_their_sensitivities():
    """Three spans of -0.1, 0 and 0.1 %, without noise: a standard deviation of 0.1 %."""
    session = session_of("force_transducer", "procedure.creep_s=0.0")
    readings = {
        load.key: 0.2 * load.force_N * (1.0 + 1e-3 * (load.run - 2))
        for load in transducer.loads(session.procedure)
    }
    fit = transducer.finish(session, readings)["fit"]
    assert fit["span_between_runs"] == pytest.approx(1e-3, rel=1e-3)
    assert fit["effective_degrees_of_freedom"] == pytest.approx(2.0, abs=0.1)


def test_one_run_says_nothing_of_the_spans_of_others():
    _, found = rehearsed("force_transducer", 1, "procedure.runs=1")
    assert None not in found["fit"].values()
    assert "span_between_runs" not in found["fit"]


@pytest.mark.parametrize("a_rad", [0.0005, 0.002, 0.005])
def test_the_angle_of_an_encoder_worse_than_its_data_sheet_is_within_its_uncertainty(a_rad):
    """1 mrad is stated; read at any angle. Bounded errors are held more often than in 95 %."""
    session, rng, held = session_of("encoder"), np.random.default_rng(1), 0
    worse = session.procedure.model_copy(update={"eccentricity_rad": a_rad})
    for seed in range(SESSIONS):
        known = dataclasses.replace(encoder.rehearsal(session, seed), settings=worse)
        steps = encoder.steps(session)
        readings = {step.key: known.read(step, 1000 * seed + i) for i, step in enumerate(steps)}
        found = encoder.finish(session, readings)
        angle = rng.uniform(-np.pi, np.pi)
        off = known.eccentric_rad(angle) - known.offset_rad + found["values"]["offset_rad"]
        held += abs(off) <= 1.96 * np.sqrt(found["covariance"][0, 0])
    assert held >= FEW


def test_an_angle_of_an_eccentric_encoder_is_within_its_uncertainty():
    """1 mrad once a turn, of any phase, read at any angle; not at the angles of the session."""
    held, rng = 0, np.random.default_rng(1)
    session = session_of("encoder")
    for seed in range(SESSIONS):
        truth, found = rehearsed("encoder", seed)
        known = encoder.rehearsal(session, seed)
        angle = rng.uniform(-np.pi, np.pi)
        shown = angle + known.eccentric_rad(angle) - truth["offset_rad"]
        u = np.sqrt(found["covariance"][0, 0])
        held += abs(shown + found["values"]["offset_rad"] - angle) <= 1.96 * u
    assert held >= FEW


@pytest.mark.parametrize("zero_at_top", ["true", "false"])
def test_a_zero_that_drifts_in_every_run_is_no_hysteresis(zero_at_top):
    """A line added to the readings of a run changes its zeros, and nothing between them."""
    session = session_of("force_transducer", f"procedure.zero_at_top={zero_at_top}")
    known = dataclasses.replace(transducer.rehearsal(session, 1), noise_mV_per_V=0.0)
    found = []
    for drift in (0.0, 0.002, -0.002):
        drifts = dataclasses.replace(known, drift_mV_per_V=drift)
        readings = {step.key: drifts.read(step, 0) for step in transducer.steps(session)}
        found.append(transducer.finish(session, readings)["fit"])
    for fit in found[1:]:
        for key in ("hysteresis_N", "repeatability_N"):
            assert fit[key] == pytest.approx(found[0][key], rel=1e-9, abs=1e-9)


def test_hysteresis_creep_and_nonlinearity_are_those_of_the_transducer():
    """0.05, 0.03 and 0.1 % of 8.8 N; of a parabola, a quarter of its bend is nonlinearity."""
    truth = dict.fromkeys(("hysteresis_N", "creep_N", "nonlinearity_N"), 0.0)
    for seed in range(20):
        _, found = rehearsed(
            "force_transducer", seed,
            truth=lambda known: dataclasses.replace(known, noise_mV_per_V=1e-7, drift_mV_per_V=0.0),
        )  # fmt: skip
        for key in truth:
            truth[key] += found["fit"][key] / 20
    top_N = 0.9 * 9.80665 * (1 - 1.2 / 8000)
    share = max(4 * x * (1 - x) for x in (1 / 9, 2 / 9, 4 / 9, 6 / 9))  # of the weights hung
    assert truth["hysteresis_N"] == pytest.approx(0.0005 * share * top_N, rel=0.01)
    assert truth["creep_N"] == pytest.approx(0.0003 * top_N, rel=0.01)
    # The loop's middle bends by 2 hysteresis more than the rise.
    assert truth["nonlinearity_N"] == pytest.approx((0.001 + 0.001) / 4 * top_N, rel=0.02)


@pytest.mark.slow
def test_the_lower_limit_factor_is_2_4_standard_deviations_of_a_reading():
    """Mean over all sessions of an estimate of 0.2 uV/V, 25 degrees of freedom: within 4 errors."""
    factors = []
    for seed in range(SESSIONS):
        _, found = rehearsed("force_transducer", seed, truth=smooth)
        slope = 2.0 / 9.0
        factors.append(found["fit"]["lower_limit_factor_N"] * slope / 2.4)
        assert found["fit"]["class_a_min_N"] == 400 * found["fit"]["lower_limit_factor_N"]
    spread = 0.0002 / np.sqrt(2 * 25 * SESSIONS)
    # The sensitivity is within 1 % of its label, evenly.
    assert np.mean(factors) == pytest.approx(0.0002, abs=4 * spread + 0.0002 * 0.003)


def test_the_inverted_polynomial_gives_the_force_back():
    g = np.array([0.22, -3e-5])
    c, _ = transducer.inverted(g, np.zeros((2, 2)), 8.8)
    F = np.linspace(0.0, 8.8, 9)
    d = g[0] * F + g[1] * F**2
    # Left over is of the third order: (g_2 F / g_1)^2 F = 1.3e-5 N.
    np.testing.assert_allclose(np.polyval(c[::-1], d), F, atol=2e-5)


def test_the_covariance_turned_around_is_that_of_drawn_curves():
    rng, g = np.random.default_rng(5), np.array([0.22, -3e-5])
    C = np.array([[4e-10, -4e-11], [-4e-11, 6e-12]])
    _, turned = transducer.inverted(g, C, 8.8)
    drawn = [transducer.inverted(one, C, 8.8)[0] for one in rng.multivariate_normal(g, C, 4000)]
    # A variance from 4000 draws is good to 2.2 %.
    np.testing.assert_allclose(np.cov(np.array(drawn).T)[1:, 1:], turned[1:, 1:], rtol=0.1)


@pytest.mark.parametrize("zero", [-0.5, 0.0, 1.2])
@pytest.mark.parametrize("top", [0.95, 1.1])
def test_the_range_of_a_certificate_is_that_of_the_deflection_whatever_the_zero(zero, top):
    """F = 4.5123 d + 0.0011 d^2 up to 2 mV/V, of the template."""
    table = tomllib.loads(template("certificate"))
    d = 2.0 * top * np.array([0.2, 0.4, 0.6, 0.8, 1.0])
    air = 1.0 - 1.2 / 8000.0
    weights_kg = (4.5123 * d + 0.0011 * d**2) / (9.80665 * air)
    table["procedure"]["weights_kg"] = weights_kg.tolist()
    session = certificate.Session.model_validate(table)
    readings = {"zero": zero} | {f"weight {i}": zero + one for i, one in enumerate(d, start=1)}
    if top < 1.0:
        assert "p = 1" in certificate.finish(session, readings)["said"][0]
    else:
        with pytest.raises(ConfigError, match=r"less the zero: reading 5 of 5, 2\.2 mV/V"):
            certificate.finish(session, readings)


def test_a_certificate_is_refused_once_in_a_thousand_when_true_and_always_of_another_transducer():
    refused = 0
    for seed in range(300):
        try:
            rehearsed("certificate", seed)
        except ConfigError:
            refused += 1
    assert refused <= binom.ppf(0.9995, 300, 0.001)

    def other(known):
        c = known.coefficients_N
        return dataclasses.replace(known, coefficients_N=(c[0], 1.01 * c[1], c[2]))

    with pytest.raises(ConfigError, match="the weights disagree with it"):
        rehearsed("certificate", 1, truth=other)


@pytest.mark.parametrize("kind", KINDS)
def test_every_template_is_a_session(kind):
    assert read_session(None, template(kind), session_kind(kind), []).article.serial


@pytest.mark.parametrize("kind", list(TYPED))
def test_a_rehearsal_ends_in_a_record_that_says_so_and_repeats(kind, tmp_path, capsys):
    for name in ("a", "b"):
        assert main(["calibrate", kind, "--rehearse", "--seed", "3",
                     "--out", str(tmp_path / f"{name}.toml")]) == 0  # fmt: skip
    assert "(truth " in capsys.readouterr().out
    record = load_any(tmp_path / "a.toml", named_by="test")
    assert record.record.status == "simulated"
    assert record.text.startswith("# SIMULATED")
    assert record.text == (tmp_path / "b.toml").read_text()
    assert not list(tmp_path.glob("*.journal"))


@pytest.mark.parametrize(
    ("kind", "change", "words"),
    [
        ("force_transducer", "procedure.weights_kg=[100.0, 200.0, 400.0, 600.0, 900.0]",
         "off by 1000: kg, not g"),
        ("force_transducer", "procedure.weights_kg=[0.98, 1.96, 3.92, 5.88, 8.83]",
         "off by g = 9.81: kilograms, not newtons"),
        ("force_transducer", "procedure.weights_kg=[0.5]", "cannot separate g_1 and g_2"),
        ("force_transducer", "procedure.weights_kg=[0.5, 0.5, 0.5, 0.5]", "collinear set"),
        ("certificate", "procedure.weights_kg=[0.1, 0.2, 0.4]", "at least 5"),
        ("certificate", "procedure.weights_relative_u=1e9", "less than or equal to 0.5"),
        ("certificate", "procedure.density_kg_per_m3=1e-12", "greater than or equal to 100"),
        ("force_transducer", "procedure.density_kg_per_m3=1e-12", "greater than or equal to 100"),
        ("certificate", "procedure.weights_kg=[0.5, 0.5, 0.5, 0.5, 0.5]", "collinear set"),
        ("certificate", "procedure.weights_kg=[98.0, 196.0, 392.0, 588.0, 883.0]", "off by 1000"),
        ("spring_constants", "procedure.stretch_m=[0.0, 1.0, 2.0, 3.0]", "metres, not millimetres"),
        ("spring_constants", "procedure.stretch_m=[0.002, 0.002, 0.002]", "collinear set"),
        ("spring_constants", "procedure.expected_N_per_m=[20.0]", "one value for each spring"),
        ("spring_constants", "procedure.springs=['k_pe_N_per_m','k_pe_N_per_m','k_ae_N_per_m']",
         "k_ae_N_per_m: list every spring once"),
        ("force_transducer", "procedure.weights_kg=[]", "procedure.weights_kg"),
        ("encoder", "procedure.angles_rad=[45.0, 90.0, 135.0]", "radians, not degrees"),
        ("encoder", "procedure.angles_rad=[0.7, 0.7, 0.7]", "collinear set"),
        ("displacement_sensor", "procedure.positions_m=[0.0, 2.0, 4.0]", "not millimetres"),
        ("displacement_sensor", "procedure.positions_m=[0.001, 0.001, 0.001]", "collinear set"),
        ("displacement_sensor", "procedure.rated_m_per_V=0.0", "must not be 0"),
        ("pantograph_geometry", "procedure.x_m=[0.0]", "12"),
        ("pantograph_geometry", "procedure.y_m=[140.0, 140.0, 140.0, 220.0, 220.0, 220.0, 270.0, "
         "270.0, 290.0, 180.0, 180.0, 180.0]", "metres, not millimetres"),
        ("masses", "procedure.repeats=1", "too few"),
        ("masses", "procedure.weights=3", "unknown key"),
        ("masses", "act.by=3", "must be a text"),
    ],
)  # fmt: skip
def test_acts_that_cannot_end_well_are_refused_with_the_reason(
    kind, change, words, tmp_path, capsys
):
    out = tmp_path / "record.toml"
    assert main(["calibrate", kind, "--rehearse", "--set", change, "--out", str(out)]) == 2
    assert words in capsys.readouterr().err
    assert not out.exists()


class TestReadings:
    def finish(self, kind, change):
        session, procedure = session_of(kind), TYPED[kind]
        known = procedure.rehearsal(session, 1)
        readings = {s.key: known.read(s, i) for i, s in enumerate(procedure.steps(session))}
        return procedure.finish(session, {key: change(key, v) for key, v in readings.items()})

    def test_in_another_unit_are_refused(self):
        with pytest.raises(ConfigError, match=r"a weighing in kg .* off by 1000: kg, not g"):
            self.finish("masses", lambda key, v: 1000.0 * v)
        with pytest.raises(ConfigError, match=r"k_pe_N_per_m is .* off by 1000"):
            self.finish("spring_constants", lambda key, v: 1000.0 * v)
        with pytest.raises(ConfigError, match=r"sensitivity .* off by 1000"):
            self.finish("force_transducer", lambda key, v: 0.001 * v)
        with pytest.raises(ConfigError, match=r"metres_per_V is .* off by 1000"):
            self.finish("displacement_sensor", lambda key, v: 0.001 * v)

    def test_at_the_end_of_the_range_are_refused(self):
        with pytest.raises(ConfigError, match=r"is saturated: the range ends at 2\.5 mV/V"):
            self.finish("force_transducer", lambda key, v: 2.5 if v > 1.9 else v)
        with pytest.raises(ConfigError, match="saturated"):
            self.finish("spring_constants", lambda key, v: v if v < 3.0 else 9.5)

    def test_that_stay_where_they_were_are_refused(self):
        with pytest.raises(ConfigError, match="hardly changes from"):
            self.finish("force_transducer", lambda key, v: min(v, 1.37))

    def test_of_an_encoder_whose_pulses_were_taken_for_edges_are_refused(self):
        with pytest.raises(ConfigError, match=r"(99\d\d|100\d\d)(\.\d)? counts a turn were read"):
            self.finish("encoder", lambda key, v: round(v / 4))

    def test_of_two_points_mixed_up_are_refused(self):
        def mixed(key, v):
            return v + 0.05 if key.startswith("point 3") else v

        with pytest.raises(ConfigError, match="was a point mixed up"):
            self.finish("pantograph_geometry", mixed)


def test_modules_state_the_kind_of_their_record():
    kinds = {m.KIND for m in (displacement, encoder, masses, pantograph, springs, transducer)}
    assert kinds == {"displacement_sensor", "encoder", "masses", "pantograph_geometry",
                     "spring_constants", "force_transducer"}  # fmt: skip
