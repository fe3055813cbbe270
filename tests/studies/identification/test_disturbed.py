"""`hil study validation`: readings that are disturbed, and the bands that are held against them."""

import numpy as np
import pytest

from hil_studies.identification import disturbed as study
from hil_studies.identification.rigs import make_rig


@pytest.fixture(scope="module")
def rig():
    return make_rig(20, 0)


@pytest.mark.parametrize("name", study.DISTURBANCES)
def test_a_disturbance_is_of_the_size_that_its_name_says(rig, name):
    plain = study.disturbed(rig, "none", 1).measured
    measured = study.disturbed(rig, name, 1).measured
    change, noise_N = measured - plain, rig.data.reading.noise_rms_N
    if "later than" in name:
        np.testing.assert_array_equal(measured[2:], plain[:-2])
    elif "drift" in name:
        assert change[-1] == pytest.approx(0.02 * np.ptp(plain))
        assert np.diff(change) == pytest.approx(change[-1] / (len(change) - 1), rel=1e-6)
    elif "off by" in name:
        assert 0.005 < np.mean(change != 0.0) < 0.015
        assert np.abs(change[change != 0.0]) == pytest.approx(20.0 * noise_N)
    elif name != "none":
        rms = np.sqrt(np.mean(change**2))
        assert rms == pytest.approx(2.0 * noise_N / (2.0**0.5 if "hum" in name else 1.0), rel=0.2)


def test_the_readings_at_rest_are_tared(rig):
    data = study.disturbed(rig, "none", 1)
    assert data.measured[: data.first_on].mean() == pytest.approx(0.0, abs=1e-12)


def test_the_study_has_a_row_for_every_disturbance(tmp_path):
    results = study.run(tmp_path, study.Values(rigs=2, identified=0))
    assert [row[0] for row in results["tables"][0]["rows"]] == list(study.DISTURBANCES)
    shares = [float(row[1].rstrip("%")) for row in results["tables"][0]["rows"]]
    assert min(shares) > 60.0
    assert len(results["checks"]) == 4
