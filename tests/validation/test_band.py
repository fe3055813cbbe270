"""One 95 % band: validation, figure and window have the same, from the laws of its parts."""

import numpy as np
import pytest

import hil
from hil.errors import ConfigError
from hil.identification.runs import read_run
from hil.reports.run_report import draw
from hil.validation.band import Z_95, GrowingBand, band_of
from hil.validation.validate import validate


@pytest.fixture(scope="module")
def pid_run(configs, tmp_path_factory):
    config = hil.load(configs / "miga6/pid.toml", ("experiment.duration_s=2.0",))
    return hil.run(config, out=tmp_path_factory.mktemp("band") / "pid.h5", seed=3)


@pytest.fixture(scope="module")
def run(pid_run):
    return hil.open_run(pid_run)


def in_blocks(path, run, n):
    columns = {str(name): run[name].values for name in run.data_vars} | {"t_s": run.t_s.values}
    band = GrowingBand(path)
    rows = range(0, len(run.t_s), n)
    return np.concatenate([band.take({k: v[i : i + n] for k, v in columns.items()}) for i in rows])


@pytest.mark.slow
def test_the_band_of_figure_and_window_is_that_of_the_validation(pid_run, run):
    validated = validate(read_run(pid_run), None)
    band = band_of(pid_run, run)
    np.testing.assert_array_equal(band.half_width, Z_95 * validated.uncertainty.u_val_N)
    assert band.share_inside(run) == pytest.approx(validated.coverage, abs=1e-3)
    # The window takes rows as they come, and knows the noise once the rest of 0.5 s is over. It
    # interpolates the transducer's uncertainty over the forces of a block.
    window = in_blocks(pid_run, run, 701)
    np.testing.assert_allclose(window[702:], band.half_width[702:], rtol=1e-6)
    np.testing.assert_allclose(window, band.half_width, rtol=0.05)


def test_the_band_of_a_block_does_not_depend_on_where_the_blocks_end(pid_run, run):
    whole = in_blocks(pid_run, run, len(run.t_s))
    np.testing.assert_allclose(in_blocks(pid_run, run, 33)[600:], whole[600:], rtol=1e-6)


def test_the_window_has_its_band_in_the_measured_air_as_the_report_has(configs, tmp_path):
    """Air of 5 degC, 20 K below the twin's `ambient_C`: the wires contract later, and less."""
    room = "{kind='voltage', terminal='ai1', signal='ambient_C', units_per_V=10.0}"
    sets = (f"devices.daq.channels.room={room}", "ambient.ambient_channel='room'",
            "ambient.ambient_uncertainty_C=0.3", "plant.arrays.muscle.activation.ambient_C=5.0",
            "devices.board.ambient_range_C=[0.0, 27.0]", "experiment.duration_s=0.6")  # fmt: skip
    path = hil.run(hil.load(configs / "wires4/pulse.toml", sets), out=tmp_path / "r.h5", seed=1)
    run = hil.open_run(path)
    assert run.room_measured_C.values.mean() == pytest.approx(5.0, abs=0.1)
    np.testing.assert_allclose(
        in_blocks(path, run, 100)[300:], band_of(path, run).half_width[300:], rtol=0.05
    )


def test_a_settled_force_is_as_uncertain_as_its_law_says(configs, tmp_path):
    """A settled force is F_on times a function of stiffnesses, so 25 % of F_on are 25 % of it.

    The records state 0.33 % of k_se and k_ae and 1.4 % of k_pe: less than 2 % of the force.
    """
    config = hil.load(configs / "miga6/all_on.toml", ("experiment.duration_s=2.9",))
    path = hil.run(config, out=tmp_path / "on.h5", seed=1)
    run = hil.open_run(path)
    band, force_N = band_of(path, run), float(run.force_model_N.values[-1])
    relative = band.half_width[-1] / (Z_95 * force_N)
    assert 0.25 < relative < np.hypot(0.25, 0.02)


def test_at_rest_the_band_is_that_of_the_channel(pid_run, run):
    """Before the first cell is on the model has no force: only transducer and noise are left."""
    band = band_of(pid_run, run)
    noise_N = run.force_measured_N.values[:500].std()
    assert band.noise == pytest.approx(Z_95 * noise_N, rel=0.2)
    # calibration/futek_9N.toml: 5 mN of zero.
    step_N = 0.95 * 20.0 / 2**16
    expected = Z_95 * np.sqrt(0.005**2 + (band.noise / Z_95) ** 2 + step_N**2 / 12.0)
    assert band.half_width[100] == pytest.approx(expected, rel=0.01)


def test_a_rig_without_uncertainties_has_the_noise_alone_and_says_why(rigs, tmp_path):
    rig = rigs / "miga6/rig.toml"
    lines = [line for line in rig.read_text().splitlines() if not line.startswith("record = [")]
    rig.write_text("\n".join(lines))
    config = hil.load(rigs / "miga6/pid.toml", ("experiment.duration_s=0.5",))
    path = hil.run(config, out=tmp_path / "run.h5")
    run = hil.open_run(path)
    band = band_of(path, run)
    assert band.without == "no calibration record states the uncertainty of the model's parameters"
    np.testing.assert_allclose(band.half_width, Z_95 * 0.0019)  # observer.force_noise_N
    with pytest.raises(ConfigError, match="no calibration record states the uncertainty"):
        GrowingBand(path)
    legends = [axis.get_legend_handles_labels()[1] for axis in draw(run, band).axes]
    assert not any("band" in label for labels in legends for label in labels)
    assert "noise alone, ±3.7 mN" in legends[1]


def test_the_figure_names_band_and_noise_apart(pid_run, run):
    band = band_of(pid_run, run)
    force, residual, *_ = draw(run, band).axes
    _, labels = force.get_legend_handles_labels()
    assert labels == ["95 % band of model and noise", "measured", "simulated (twin)", "set point"]
    _, labels = residual.get_legend_handles_labels()
    widest_mN, noise_mN = 1e3 * band.half_width.max(), 1e3 * band.noise
    assert labels == [
        f"95 % band of model and noise, up to ±{widest_mN:.3g} mN",
        f"noise alone, ±{noise_mN:.2g} mN",
    ]
    [shaded] = [c for c in force.collections if c.get_label() == labels[0].partition(",")[0]]
    drawn = shaded.get_paths()[0].vertices
    last = drawn[np.isclose(drawn[:, 0], run.t_s.values[-1])][:, 1]
    assert np.ptp(last) == pytest.approx(2.0 * band.half_width[-1])
