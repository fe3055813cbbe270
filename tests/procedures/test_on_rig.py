"""Procedures that run the rig: analytic responses give their values back, and whole runs do."""

import io
import json
import re
import sys
import tomllib
from types import SimpleNamespace

import numpy as np
import pytest
import tomli_w
import xarray as xr
from scipy.integrate import solve_ivp
from scipy.stats import binom
from scipy.stats import t as student

import hil
from hil.__main__ import main
from hil.calibration.files import load_any
from hil.errors import ConfigError
from hil.procedures import channels, response
from hil.procedures.kinds import template
from hil.procedures.on_rig import one_cell
from hil.runs import session
from hil.runs.plan import Plan
from hil.runs.recording import Output

SESSIONS = 80
FEW, MANY = binom.ppf((0.0005, 0.9995), SESSIONS, 0.95)
PERIOD_S, NOISE_N = 0.005, 0.002


@pytest.fixture(scope="module")
def miga(configs):
    config = hil.load(configs / "miga1/pulse.toml")
    return one_cell(config, config.sources)


@pytest.fixture(scope="module")
def silicone(configs):
    config = hil.load(configs / "silicone1/pulse.toml")
    return one_cell(config, config.sources)


def recorded(monkeypatch, force_N, t_s, on, off):
    """A recording of one cell that is on from row `on` to row `off`."""
    cells = np.zeros((len(t_s), 1), dtype=np.uint8)
    cells[on:off] = 1
    run = xr.Dataset(
        {
            "force_measured_N": ("tick", force_N),
            "cells_commanded": (("tick", "cell"), cells),
            "valid_bits": ("tick", np.full(len(t_s), 3, dtype=np.uint64)),
        },
        coords={"t_s": ("tick", t_s)},
    )
    monkeypatch.setattr(response, "open_run", lambda path: run)


class TestDamping:
    """T = T_inf (1 - exp(-t / tau)) while on, T_inf exp(-t / tau) while off."""

    def test_holds_the_truth_in_95_of_100_acts(self, miga, monkeypatch):
        rng, held = np.random.default_rng(1), 0
        t, on, off = PERIOD_S * np.arange(1300), 100, 700
        tau, top = 0.375, 1.07
        rise = top * (1.0 - np.exp(-(t[on:off] - t[on]) / tau))
        fall = rise[-1] * np.exp(-(t[off:] - t[off]) / tau)
        clean = np.concatenate((np.zeros(on), rise, fall))
        known = SimpleNamespace(k_se=miga.k_se, k_ae=miga.k_ae, sum_u=lambda: 0.0, force="force")
        for _ in range(SESSIONS):
            noisy = clean + NOISE_N * rng.standard_normal(len(t))
            recorded(monkeypatch, noisy, t, on, off)
            found = response.damping("run.h5", known)
            b, u = found["values"]["b_N_s_per_m"], np.sqrt(found["covariance"][0][0])
            held += abs(b - tau * (miga.k_se + miga.k_ae)) <= student.ppf(0.975, found["dof"]) * u
        assert FEW <= held <= MANY

    def test_knows_the_springs_no_better_than_their_record(self, miga):
        """U of the sum of independent values: root of the sum of squares, 1.28 and 3.3 N/m."""
        assert miga.sum_u() == pytest.approx(np.hypot(0.0033 * 386.52, 3.3), rel=1e-4)

    def test_says_when_the_response_is_no_exponential(self, miga, monkeypatch):
        t, on, off = PERIOD_S * np.arange(1300), 100, 700
        theta = 5.0 * (t - t[on] - 0.6)
        force = np.where(t < t[off], 1.0 / (1.0 + np.exp(-theta)), np.exp(-(t - t[off]) / 0.2))
        recorded(monkeypatch, force, t, on, off)
        said = response.damping("run.h5", miga)["said"]
        assert "the residual is not noise: the response is not a single exponential" in said

    @pytest.mark.parametrize(
        ("force", "words"),
        [
            (lambda t: 0.002 * np.random.default_rng(1).standard_normal(len(t)), "no response"),
            (lambda t: np.where(t > 1.0, np.nan, 1.0 - np.exp(-t)), "missing or at their rail"),
            (lambda t: 0.2 * t, "hold the cell on longer"),
        ],
    )
    def test_is_refused_where_there_is_no_response(self, miga, monkeypatch, force, words):
        t = PERIOD_S * np.arange(1300)
        recorded(monkeypatch, force(t), t, 100, 700)
        with pytest.raises(ConfigError, match=words):
            response.damping("run.h5", miga)


def test_a_cells_lag_is_that_of_its_differential_equation(silicone):
    """The cell's law by Runge-Kutta, 1e-9, for a sigmoid; straight lines between samples."""
    law, h = silicone.law, 0.0005
    t = h * np.arange(2000)

    def F(s):
        return 1.0 / (1.0 + np.exp(-12.0 * (s - 0.3)))

    lag, gain = float(law.I[0, 0]), float(law.Kp[0])
    found = solve_ivp(lambda s, d: lag * d + gain * F(s), (0.0, t[-1]), [-gain / lag * F(0.0)],
                      t_eval=t, rtol=1e-9, atol=1e-15)  # fmt: skip
    wanted = (float(law.Kd[0]) * found.y[0] + law.Kf * F(t)) / silicone.share
    # A straight line misses the sigmoid by h^2 F'' / 8 <= 4.4e-7; the spring answers it in full.
    np.testing.assert_allclose(response._lagged(F(t), h, silicone), wanted, atol=2e-5)


@pytest.mark.slow
def test_rate_and_delay_of_either_edge_hold_the_truth_in_95_of_100_acts(silicone, monkeypatch):
    """The module's own sigmoid with its stops, through the lag that is tested above."""
    rng = np.random.default_rng(2)
    t, on, off = PERIOD_S * np.arange(1700), 100, 900
    truth = {"rate_per_s": 4.6, "delay_s": 1.05, "fall_rate_per_s": 3.9, "fall_delay_s": 1.3}
    up = np.clip(4.6 * (t[on:off] - t[on] - 1.05), -4.83, 5.07)  # 4.6 x 1.05, 3.9 x 1.3
    down = -np.clip(3.9 * (t[off:] - t[off] - 1.3), -5.07, 4.83)
    parts = [response._lagged(1.0 / (1.0 + np.exp(-theta)), PERIOD_S, silicone)
             for theta in (up, down)]  # fmt: skip
    clean = 0.38 * np.concatenate((np.full(on, parts[0][0]), *parts))
    held = dict.fromkeys(truth, 0)
    for _ in range(SESSIONS):
        recorded(monkeypatch, clean + NOISE_N * rng.standard_normal(len(t)), t, on, off)
        settings = response.ActivationSettings()
        found = response.activation("run.h5", silicone, settings)
        u = np.sqrt(np.diag(found["covariance"]))
        k = student.ppf(0.975, found["dof"])
        for (name, value), one in zip(found["values"].items(), u, strict=True):
            held[name] += abs(value - truth[name]) <= k * one
    assert min(held.values()) >= FEW
    assert max(held.values()) <= MANY


def test_a_hold_too_short_for_the_profile_is_refused(silicone, monkeypatch):
    t, on, off = PERIOD_S * np.arange(1000), 100, 400
    force = 1.0 / (1.0 + np.exp(-5.0 * (t - t[on] - 1.2)))
    recorded(monkeypatch, force, t, on, off)
    with pytest.raises(ConfigError, match="hold it"):
        response.activation("run.h5", silicone, response.ActivationSettings())


def test_cell_force_is_the_rise_over_the_springs_share(miga, monkeypatch):
    """F = T (k_se + k_ae) / k_se; of pulses of 1.0, 1.1 and 1.2 N u is 0.1 / sqrt 3."""
    t = 0.01 * np.arange(900)
    force, cells = np.full(900, 0.05), np.zeros((900, 1), dtype=np.uint8)
    for i, rise in enumerate((1.0, 1.1, 1.2)):
        force[300 * i + 50 : 300 * i + 200] += rise
        cells[300 * i + 50 : 300 * i + 200] = 1
    recorded(monkeypatch, force, t, 50, 200)
    run = response.open_run("").assign(cells_commanded=(("tick", "cell"), cells))
    monkeypatch.setattr(response, "open_run", lambda path: run)
    found = response.cell_force("run.h5", miga)
    share = 386.52 / 1386.52
    assert found["values"]["force_on_N"] == pytest.approx(1.1 / share)
    # The transducer's slope (0.25 %) and the springs' share are known to what their records say.
    slope = np.sqrt(1.4e-4) / 4.75 * 1.1
    springs = 1.1 / share * (1000 / 1386.52) * np.hypot(0.0033, 0.0033)
    u = np.sqrt(0.1**2 / 3 / share**2 + (slope / share) ** 2 + springs**2)
    assert np.sqrt(found["covariance"][0][0]) == pytest.approx(u, rel=1e-3)


def test_offset_and_noise_of_a_channel_hold_the_truth_in_95_of_100_acts():
    rng, held = np.random.default_rng(3), np.zeros(2)
    for _ in range(400):
        found = channels._offset_and_noise(0.003 + 0.002 * rng.standard_normal(1000))
        u = np.sqrt(np.diag(found["covariance"]))
        values = np.array(list(found["values"].values()))
        held += np.abs(values - [0.003, 0.002]) <= student.ppf(0.975, [19, 999]) * u
    low, high = binom.ppf((0.0005, 0.9995), 400, 0.95)
    assert (held >= low).all()
    assert (held <= high).all()


def test_a_channel_that_wanders_is_less_sure_of_its_offset_and_says_so():
    slow = 0.002 * np.sin(np.linspace(0.0, 3.0, 4000))
    found = channels._offset_and_noise(
        slow + 0.0005 * np.random.default_rng(4).standard_normal(4000)
    )
    assert any("it drifts" in line for line in found["said"])


def test_a_shift_is_found_between_two_ticks():
    """A ramp and an exponential, 2.3 ms late at 1 kHz, linear between rows: exact without noise."""
    t = 0.001 * np.arange(3000)
    model = np.interp(t, [0.0, 1.0, 2.0, 3.0], [0.0, 0.0, 1.0, 0.2])
    late = np.interp(t - 0.0023, t, model)
    late += 1e-6 * np.random.default_rng(5).standard_normal(len(t))
    found = channels._shift(t, 1.02 * late + 0.1, model, "force")
    assert found["values"]["delay_s"] == pytest.approx(0.0023, abs=2e-6)
    assert channels._shift(t, late, np.zeros_like(t), "force") is None


def calibrated(tmp_path, capsys, kind, rig, *more):
    out = tmp_path / f"{kind}.toml"
    words = ["calibrate", kind, "--rehearse", "--rig", str(rig), "--out", str(out), "--json", *more]
    assert main(words) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize(
    ("kind", "rig", "more"),
    [
        ("damping", "miga1", []),
        ("cell_force", "miga1", ["--set", "procedure.on_s=2.5", "--set", "procedure.off_s=2.5",
                                 "--set", "procedure.pulses=3"]),
        ("activation", "silicone1", []),
        ("daq_channel", "miga1", []),
        ("latency", "miga1", ["--set", "plant.arrays.muscle.cell.b_N_s_per_m=500.0",
                              "--set", "plant.arrays.muscle.force_on_N=4.0"]),
    ],
)  # fmt: skip
def test_a_rehearsal_on_the_simulated_rig_finds_what_it_was_made_with(
    kind, rig, more, configs, tmp_path, capsys
):
    """Within 3.5 standard uncertainties: one such test in two thousand fails by chance."""
    (found,) = calibrated(tmp_path, capsys, kind, configs / rig / "rig.toml", *more)
    u = np.sqrt(np.diag(found["covariance"]))
    for (name, value), one in zip(found["values"].items(), u, strict=True):
        # 16 bits of 10 V round the noise up by 0.1 %, three times less than its uncertainty.
        assert abs(value - found["truth"][name]) <= 3.5 * one, name
    record = load_any(tmp_path / f"{kind}.toml", named_by="test").record
    assert record.status == "simulated"
    ((name, sha256),) = record.raw.files.items()
    assert (tmp_path / name).is_file()
    assert sha256.startswith("sha256:")


def test_a_card_with_every_has_the_noise_of_its_readings(configs, tmp_path, capsys):
    more = ["--set", "devices.daq.every=4", "--set", "procedure.duration_s=2.0"]
    rig = configs / "miga1/rig.toml"
    (found,) = calibrated(tmp_path, capsys, "daq_channel", rig, *more)
    u = np.sqrt(np.diag(found["covariance"]))
    for (name, value), one in zip(found["values"].items(), u, strict=True):
        assert abs(value - found["truth"][name]) <= 3.5 * one, name


def test_nothing_is_switched_without_the_rigs_guard(configs, tmp_path, capsys):
    """A cell held longer than the rig allows trips, and nothing is calibrated."""
    out = tmp_path / "damping.toml"
    rig, sets = configs / "miga1/rig.toml", ["procedure.on_s=2.0", "guard.cell_on_max_s=1.0"]
    words = ["calibrate", "damping", "--rehearse", "--rig", str(rig), "--out", str(out)]
    words += [word for text in sets for word in ("--set", text)]
    assert main(words) == 2
    said = capsys.readouterr().err
    assert "the run was tripped" in said
    assert "nothing was calibrated" in said
    assert not out.exists()


@pytest.mark.slow
def test_a_recording_calibrates_as_its_run_does(configs, tmp_path, capsys):
    path = tmp_path / "pulse.h5"
    session.run(Plan(hil.load(configs / "miga1/pulse.toml"), seed=0), Output(out=path))
    (tmp_path / "session.toml").write_text(template("damping").replace("REHEARSAL", "C-1"))
    words = ["calibrate", "damping", str(tmp_path / "session.toml"), "--run", str(path)]
    assert main([*words, "--out", str(tmp_path / "a.toml")]) == 0
    (rehearsed,) = calibrated(tmp_path, capsys.readouterr() and capsys, "damping",
                              configs / "miga1/rig.toml")  # fmt: skip
    found = load_any(tmp_path / "a.toml", named_by="test")
    assert found.value("b_N_s_per_m") == rehearsed["values"]["b_N_s_per_m"]
    assert found.record.status == "simulated"  # whatever the session file says


@pytest.mark.parametrize(
    ("kind", "more", "words"),
    [
        ("damping", [], "give either --rig RIG.toml for a new run, or --run RUN.h5"),
        ("damping", ["--rig", "miga6/rig.toml"], "a rig of one cell between fixed ends"),
        ("damping", ["--rig", "slider/rig.toml"], "has no cells, so nothing to schedule"),
        ("cell_force", ["--rig", "miga1/rig.toml", "--set", "procedure.pulses=2"],
         "greater than or equal to 3"),
        ("daq_channel", ["--rig", "miga1/rig.toml", "--channel", "torque"], "choose force"),
        ("rheology", [], "unknown: choose certificate"),
    ],
)  # fmt: skip
def test_what_cannot_be_calibrated_like_this_is_refused(
    kind, more, words, configs, tmp_path, capsys
):
    more = [str(configs / word) if word.endswith("rig.toml") else word for word in more]
    out = ["--out", str(tmp_path / "record.toml")]
    assert main(["calibrate", kind, "--rehearse", *out, *more]) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "record.toml").exists()


@pytest.fixture
def pressed(tmp_path, capsys, monkeypatch):
    """Calibrates with Enter at every reading: (exit code, what it said)."""

    def go(kind, rig, channel, n):
        text = template(kind).replace("REHEARSAL", "A-1")
        (tmp_path / "session.toml").write_text(text)
        monkeypatch.setattr(sys, "stdin", io.StringIO("\n" * n))
        out = str(tmp_path / "record.toml")
        code = main(["calibrate", kind, str(tmp_path / "session.toml"), "--rig", str(rig),
                     "--channel", channel, "--out", out])  # fmt: skip
        return code, capsys.readouterr().err

    return go


def test_enter_reads_a_channel_of_the_rig_with_everything_off(pressed, configs):
    """3 mV of offset behind 5 V a mV/V; weights that weigh nothing are refused in the end."""
    code, said = pressed("certificate", configs / "miga1/rig.toml", "force", 6)
    assert code == 2
    readings = [float(x) for x in re.findall(r"^ +([\d.]+) mV/V$", said, flags=re.MULTILINE)]
    # 2 mV of noise in a mean of 999 readings, at 5 V a mV/V: 1.3e-5 mV/V.
    assert readings == pytest.approx([0.0006] * 6, abs=4 * 13e-6)
    assert "something else was measured" in said


def test_enter_reads_newtons_where_newtons_are_wanted(pressed, configs):
    code, said = pressed("spring_constants", configs / "miga1/rig.toml", "force", 1)
    assert code == 130
    (force_N,) = re.findall(r"^ +([\d.]+) N$", said, flags=re.MULTILINE)
    assert float(force_N) == pytest.approx(0.003 * 0.95, abs=4 * 6e-5)


@pytest.mark.parametrize(
    ("kind", "rig", "channel", "words"),
    [
        ("encoder", "pantograph/impact_symmetric.toml", "q1", "counts restart"),
        ("encoder", "pantograph/impact_symmetric.toml", "normal", "this procedure needs counts"),
        ("encoder", "pantograph/rig.toml", "q1", "name one of its experiments"),
        ("certificate", "miga1/rig.toml", "pressure", "name the one to read: force"),
        (
            "spring_constants",
            "first_bench/rig.toml",
            "force",
            "every reading would be its new zero, whatever hangs on it: add "
            "--set devices.daq.channels.force.tare=false",
        ),
    ],
)
def test_a_channel_that_cannot_be_read_like_this_is_refused(
    pressed, configs, kind, rig, channel, words
):
    code, said = pressed(kind, configs / rig, channel, 6)
    assert code == 2
    assert words in said


def test_a_channel_of_an_instrument_is_read_in_its_unit_alone(pressed, configs, tmp_path):
    rig = tomllib.loads((configs / "miga1/rig.toml").read_text())
    force = {"kind": "force", "sim": {"noise_rms": 0.01}}
    scales = {"kind": "serial_indicator", "port": "COM3", "channels": {"force": force}}
    rig["devices"] = {"board": rig["devices"]["board"], "scales": scales}
    rig.pop("plant_card", None)
    for table in (array := rig["model"]["arrays"]["muscle"]), array["cell"], array["activation"]:
        table.pop("record", None)
    (tmp_path / "rig.toml").write_text(tomli_w.dumps(rig))
    code, said = pressed("spring_constants", tmp_path / "rig.toml", "force", 1)
    assert (code, len(re.findall(r"^ +[-\d.e]+ N$", said, flags=re.MULTILINE))) == (130, 1)
    (tmp_path / "record.journal").unlink()
    code, said = pressed("certificate", tmp_path / "rig.toml", "force", 1)
    assert code == 2
    assert "its instrument gives N alone, this procedure needs mV/V: type what" in said


def test_the_templates_serial_number_is_not_an_articles(tmp_path, capsys):
    (tmp_path / "session.toml").write_text(template("masses"))
    assert main(["calibrate", "masses", str(tmp_path / "session.toml")]) == 2
    assert "article.serial = 'REHEARSAL': give the one on its label" in capsys.readouterr().err


def test_a_rehearsal_takes_the_place_of_an_older_one_and_of_no_record(tmp_path, capsys, configs):
    words = ["calibrate", "masses", "--rehearse", "--out", str(tmp_path / "a.toml")]
    assert [main(words), main([*words, "--seed", "2"])] == [0, 0]
    shipped = (configs.parent / "calibration/miga_damper.toml").read_text()
    (tmp_path / "a.toml").unlink()
    (tmp_path / "a.toml").write_text(shipped)
    assert main(words) == 2
    assert "a record is never changed" in capsys.readouterr().err
    assert (tmp_path / "a.toml").read_text() == shipped


@pytest.mark.slow
def test_what_is_printed_for_the_rigs_table_is_taken_by_it(rigs, tmp_path, capsys, monkeypatch):
    """As somebody would who has measured their own damper."""
    recording = tmp_path / "pulse.h5"
    session.run(Plan(hil.load(rigs / "miga1/pulse.toml"), seed=0), Output(out=recording))
    # A rehearsal's record may not be mistaken for a measured one; here the bench is made up.
    monkeypatch.setattr("hil.procedures.run.simulated", lambda path: False)
    (tmp_path / "session.toml").write_text(template("damping").replace("REHEARSAL", "C-1"))
    out = tmp_path / "calibration/damper_c1.toml"
    assert main(["calibrate", "damping", str(tmp_path / "session.toml"), "--run", str(recording),
                 "--out", str(out)]) == 0  # fmt: skip
    said = capsys.readouterr().out
    (literal,) = re.findall(r"^ +(b_N_s_per_m = [\d.]+)$", said, flags=re.MULTILINE)
    assert 'record = "../../calibration/damper_c1.toml"' in said
    rig = rigs / "miga1/rig.toml"
    text = rig.read_text().replace("miga_damper", "damper_c1")
    rig.write_text(text)
    assert main(["check", str(rig)]) == 2
    rig.write_text(text.replace("b_N_s_per_m = 500.0", literal))
    assert main(["check", str(rig)]) == 0
