"""Plane strain from the gauges of a rosette, against the strain that the gauges were fed from."""

import nidaqmx
import numpy as np
import pytest
from nidaqmx.constants import StrainGageRosetteMeasurementType as Measurement
from nidaqmx.constants import StrainGageRosetteType as Kind

from simdaq import System, install

EX, EY, GXY = 300e-6, -100e-6, 150e-6
FIRST_GAUGE_DEG = 20.0
STEP = 4.0 / 2.0 * 0.025 / 2**23  # of a quarter bridge, GF 2, at 24 bits of 25 mV/V


def along(angle_deg):
    """Strain along a direction: transformation of plane strain."""
    a = np.radians(angle_deg)
    return EX * np.cos(a) ** 2 + EY * np.sin(a) ** 2 + GXY * np.sin(a) * np.cos(a)


@pytest.fixture
def bridges():
    found = System("held")
    found.add("PXIe-4331", "Dev1")
    install(found)
    return found


@pytest.mark.parametrize(
    ("kind", "angles"), [(Kind.RECTANGULAR, (0.0, 45.0, 90.0)), (Kind.DELTA, (0.0, 60.0, 120.0))]
)
def test_a_rosette_finds_the_strain_that_its_gauges_feel(bridges, kind, angles):
    for i, angle in enumerate(angles):
        bridges.feed(f"Dev1/ai{i}", along(FIRST_GAUGE_DEG + angle))
    with nidaqmx.Task() as task:
        task.ai_channels.add_ai_rosette_strain_gage_chan(
            "Dev1/ai0:2", kind, FIRST_GAUGE_DEG, list(Measurement)
        )
        found = dict(zip(task.channel_names, task.read(), strict=True))
    larger, smaller = np.linalg.eigvalsh([[EX, GXY / 2.0], [GXY / 2.0, EY]])[::-1]
    angle_deg = np.degrees(0.5 * np.arctan2(GXY, EX - EY))
    assert found["rosette0_principalStrain1"] == pytest.approx(larger, abs=STEP)
    assert found["rosette0_principalStrain2"] == pytest.approx(smaller, abs=STEP)
    assert found["rosette0_principalStrainAngle"] == pytest.approx(angle_deg, abs=1e-3)
    assert found["rosette0_cartesianStrainX"] == pytest.approx(EX, abs=STEP)
    assert found["rosette0_cartesianStrainY"] == pytest.approx(EY, abs=STEP)
    assert found["rosette0_cartesianShearStrainXY"] == pytest.approx(GXY, abs=STEP)
    assert found["rosette0_maxShearStrain"] == pytest.approx(larger - smaller, abs=STEP)
    assert found["rosette0_maxShearStrainAngle"] == pytest.approx(angle_deg - 45.0, abs=1e-3)


def test_a_tee_rosette_lies_along_the_principal_strains(bridges):
    bridges.feed("Dev1/ai0", -2e-4)
    bridges.feed("Dev1/ai1", 5e-4)
    with nidaqmx.Task() as task:
        task.ai_channels.add_ai_rosette_strain_gage_chan(
            "Dev1/ai0:1", Kind.TEE, 0.0,
            [Measurement.PRINCIPAL_STRAIN_1, Measurement.PRINCIPAL_STRAIN_ANGLE], "wing",
        )  # fmt: skip
        assert task.channel_names == ["wing_principalStrain1", "wing_principalStrainAngle"]
        assert task.read() == pytest.approx([5e-4, 90.0], abs=STEP)


@pytest.mark.parametrize(
    ("gauges", "kind", "measurements", "code"),
    [
        ("Dev1/ai0:1", Kind.DELTA, [Measurement.PRINCIPAL_STRAIN_1], -201447),
        ("Dev1/ai0:2", Kind.TEE, [Measurement.PRINCIPAL_STRAIN_1], -201446),
        ("Dev1/ai0:2", Kind.RECTANGULAR, [], -201448),
    ],
)
def test_an_incomplete_rosette_is_refused_with_nis_code(bridges, gauges, kind, measurements, code):
    with nidaqmx.Task() as task, pytest.raises(nidaqmx.DaqError) as refused:
        task.ai_channels.add_ai_rosette_strain_gage_chan(gauges, kind, 0.0, measurements)
    assert refused.value.error_code == code
