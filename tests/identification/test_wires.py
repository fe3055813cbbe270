"""A wire's law from its isobaric loops: intervals hold the truth, and priors are named as such."""

import datetime
import tomllib

import numpy as np
import pytest

from hil.errors import ConfigError, ModelError
from hil.identification import wires_page
from hil.identification.record import Session, write_wire
from hil.identification.wire_loops.fit import isobaric
from hil.identification.wire_loops.loops import Loop
from hil.identification.wires import (
    TOLD_BY,
    are_loops,
    contraction,
    identify_loop_files,
    identify_loops,
    values_of,
)
from hil.mechanics.sma.stress import Branch, StressLaw
from hil.mechanics.sma.wire import SmaWire
from hil.systems.array.build_wire import law_of
from hil.systems.array.tables import SmaTable

TRUE = StressLaw(
    heating=Branch(80.0, 8.0e6, 2.0, 5.0, -3.0, 0.55, 1e-9),
    cooling=Branch(55.0, 7.0e6, 2.2, 5.0, -2.0, 0.55, 5e-10),
    stroke_min=0.03,
    stroke_max=0.042,
    stroke_rate_per_Pa=1e-8,
    modulus_A_Pa=70e9,
    modulus_M_Pa=1.0 / (1.0 / 70e9 + 25e-12),
)
STRESSES_MPa = (50, 200)


def drawn(stress_MPa, seed, noise=1e-4):
    """A loop of a wire whose law is TRUE; the noise is 0.2 % of the stroke."""
    T_C = np.concatenate([np.linspace(20.0, 150.0, 120), np.linspace(150.0, 20.0, 120)])
    exact = Loop("exact", T_C, np.zeros(240), np.arange(240) < 120, 1e6 * stress_MPa)
    read = np.random.default_rng(seed).normal(scale=noise, size=240)
    strain = isobaric(TRUE, exact) + read
    return Loop(f"{stress_MPa} MPa", T_C, strain, exact.heating, exact.stress_Pa)


def as_csv(folder, loop):
    path = folder / f"{loop.stress_Pa / 1e6:.0f}.csv"
    rows = np.column_stack([loop.T_C, loop.strain, np.full(len(loop.T_C), loop.stress_Pa / 1e6)])
    np.savetxt(path, rows, delimiter=",", header="temperature_C,strain,stress_MPa", comments="")
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("loops")
    return [as_csv(folder, drawn(s, seed)) for seed, s in enumerate(STRESSES_MPa[::-1])]


@pytest.fixture(scope="module")
def found(files):
    return identify_loop_files(files)


@pytest.mark.slow
def test_intervals_hold_the_parameters_that_the_loops_were_drawn_from(found):
    true = values_of(TRUE)
    assert {e.key: e.low <= true[e.key] <= e.high for e in found.estimates if e.identified} == {
        e.key: True for e in found.estimates if e.identified
    }
    told = {e.key for e in found.estimates if e.identified}
    assert told >= {"C_A_MPa_per_K", "C_M_MPa_per_K", "heating.middle_C", "cooling.middle_C",
                    "heating.core_K", "cooling.core_K"}  # fmt: skip
    true_contraction = contraction(TRUE, 1e6 * np.array(STRESSES_MPa))
    for one, true_value in zip(found.contraction, true_contraction, strict=True):
        assert one.low <= true_value <= one.high


def test_intervals_of_what_is_identified_are_worth_having(found):
    by_key = {e.key: e for e in found.estimates}
    for key, width in (("C_A_MPa_per_K", 1.6), ("heating.middle_C", 4.0), ("cooling.core_K", 2.0)):
        assert by_key[key].high - by_key[key].low < width


def test_a_law_as_keys_is_the_law_that_a_rig_builds_of_them():
    table = {"kind": "sma"}
    for key, value in values_of(TRUE).items():
        side, _, last = key.rpartition(".")
        (table.setdefault(side, {}) if side else table)[last] = value
    built = law_of(SmaTable.model_validate(table), SmaWire())
    T_C, stress_Pa = np.linspace(40.0, 140.0, 11), 150e6
    np.testing.assert_allclose(built.least(T_C, stress_Pa), TRUE.least(T_C, stress_Pa))
    np.testing.assert_allclose(built.most(T_C, stress_Pa), TRUE.most(T_C, stress_Pa))
    np.testing.assert_allclose(contraction(built, stress_Pa), contraction(TRUE, stress_Pa))


def test_two_stresses_leave_the_bend_of_the_stroke_to_its_prior(found):
    prior = {e.key for e in found.estimates if not e.identified}
    assert {"stroke_rate_per_MPa", "heating.work_share", "cooling.work_share"} <= prior
    assert [round(loop.stress_Pa / 1e6) for loop in found.loops] == list(STRESSES_MPa)
    lines = wires_page.as_text(found).splitlines()
    row = next(line for line in lines if line.startswith("stroke_rate_per_MPa"))
    assert "not identified: a prior" in row


def test_the_record_has_the_values_their_covariance_and_what_they_rest_on(found, files, tmp_path):
    session = Session("A. Newcomer", "W1")
    record = write_wire(tmp_path / "w.toml", files, found, session, datetime.date(2026, 11, 1))
    assert record.names == tuple(TOLD_BY)
    assert record.record.status == "measured"
    assert set(record.record.raw.files) == {path.name for path in files}
    for one, basis in zip(found.estimates, record.record.model.basis, strict=True):
        assert basis == ("measured" if one.identified else "assumed")
        assert record.value(one.key) == pytest.approx(one.value, abs=record.uncertainty(one.key))
    middle = next(e for e in found.estimates if e.key == "heating.middle_C")
    sd = record.uncertainty("heating.middle_C")
    assert middle.high - middle.low == pytest.approx(2.0 * 1.96 * sd, rel=1e-3)
    lines = wires_page.as_activation(dict(zip(record.names, record.values, strict=True)))
    table = tomllib.loads(lines)
    assert table["heating"]["middle_C"] == record.value("heating.middle_C")
    assert SmaTable.model_validate({"kind": "sma", **table}).C_A_MPa_per_K == record.value(
        "C_A_MPa_per_K"
    )


def test_branches_that_fall_with_stress_are_refused():
    low, high = drawn(40, 1), drawn(240, 2)
    swapped = [
        Loop(low.name, high.T_C, high.strain, high.heating, low.stress_Pa),
        Loop(high.name, low.T_C, low.strain, low.heating, high.stress_Pa),
    ]
    with pytest.raises(ModelError, match="is not above that of 40 MPa"):
        identify_loops(swapped)


def test_loops_that_cannot_be_fitted_are_refused_in_one_line(files, tmp_path):
    unknown = tmp_path / "unknown.csv"
    unknown.write_text("T,eps\n1,2\n")
    for paths, line in (
        ([files[0]], "loops of two stresses at least"),
        ([files[0], files[0]], "given twice"),
        ([files[0], unknown], "columns T, eps: give a header"),
        ([files[0], tmp_path / "none.csv"], "cannot be read"),
    ):
        with pytest.raises(ConfigError, match=line) as error:
            identify_loop_files(paths)
        assert "\n" not in str(error.value)


def test_a_loop_and_a_run_of_an_array_are_not_mixed(files, all_on):
    assert are_loops(files)
    assert not are_loops([all_on])
    with pytest.raises(ConfigError, match="identify them separately"):
        are_loops([files[0], all_on])
