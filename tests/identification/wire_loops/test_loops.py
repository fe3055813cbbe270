"""Loops are read as their files say, and a file that cannot be understood says why in one line."""

import numpy as np
import pytest

from hil.errors import ModelError
from hil.identification.wire_loops.loops import read, shipped

HEADER = "temperature_C,strain,stress_MPa"


def rows(n=100, stroke=0.04, T=(30.0, 140.0), middle=85.0, stress_MPa=100.0):
    up = np.linspace(*T, n)
    T_C = np.concatenate([up, up[::-1]])
    shift = np.concatenate([np.zeros(n), np.full(n, 20.0)])
    strain = stroke / (1.0 + np.exp((T_C - middle + shift) / 3.0))
    return np.column_stack([T_C, strain, np.full(2 * n, stress_MPa)])


def written(path, columns, header=HEADER):
    lines = [header, *(",".join(f"{value:.8g}" for value in row) for row in columns)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_shipped_sets_have_the_stresses_that_their_files_are_named_after():
    for name, stresses in (("NiTiCo", [7, 50, 150, 200]), ("NiTiHf", [7, 50, 100, 200, 300, 400])):
        found = [loop.stress_Pa / 1e6 for loop in shipped(name)]
        assert found == pytest.approx(stresses, abs=0.1)


def test_percent_becomes_metres_a_metre():
    # Bigelow et al. 2022, Fig. 2a: 3.6 % at 400 MPa before heating, 0.57 % after it.
    assert shipped("NiTiHf")[-1].stroke == pytest.approx(0.0306, abs=5e-4)


def test_a_set_that_was_cooled_first_has_its_branches_told_apart():
    loop = shipped("NiTiCo")[2]
    coldest = int(np.argmin(loop.T_C))
    assert not loop.heating[: coldest - 5].any()
    assert loop.heating[coldest + 5 :].all()


def test_columns_may_come_in_any_order_and_strain_in_percent(tmp_path):
    columns = rows()
    plain = read(written(tmp_path / "a.csv", columns), 1000.0)
    swapped = columns[:, [2, 1, 0]] * [1.0, 100.0, 1.0]
    header = "stress_MPa,strain_percent,temperature_C"
    other = read(written(tmp_path / "b.csv", swapped, header), 1000.0)
    assert other.strain == pytest.approx(plain.strain, abs=1e-9)
    assert other.stress_Pa == pytest.approx(100e6)
    assert plain.heating.sum() in (99, 100, 101)


@pytest.mark.parametrize(
    ("columns", "header", "message"),
    [
        (rows(), "temperature,strain,stress", "columns temperature, strain, stress: give a header"),
        (rows() * [1, 100, 1], HEADER, "name the column strain_percent"),
        (np.add(rows(), [273.15, 0, 0]), HEADER, "deg C are wanted, not kelvin"),
        (rows(n=15), HEADER, "30 points: a loop needs 40 at least"),
        (rows(stress_MPa=1400.0), HEADER, "stress reaches 1400 MPa: wires are pulled with 0 to"),
        (rows() * [1, 1, 1e6], HEADER, "check the unit and sign"),
        (rows() * [1, -1, 1], HEADER, "strain rises by 0.04 on heating"),
        (np.vstack([rows(), rows()]), HEADER, "give one heating and one cooling branch"),
        (rows()[:100], HEADER, "give one heating and one cooling branch"),
        (rows() * np.column_stack([np.ones(200), np.ones(200), np.linspace(0.5, 1.5, 200)]),
         HEADER, "stress varies from"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_understood_says_why_in_one_line(columns, header, message, tmp_path):
    path = written(tmp_path / "loop.csv", columns, header)
    with pytest.raises(ModelError) as error:
        read(path, 1000.0)
    assert str(error.value).startswith(str(path))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_comments_blank_lines_and_other_columns_are_passed_over(tmp_path):
    columns = rows()
    plain = read(written(tmp_path / "a.csv", columns), 1000.0)
    path = tmp_path / "b.csv"
    lines = [
        f"{k},{T_C:.8g},{strain:.8g},{s:.8g},run" for k, (T_C, strain, s) in enumerate(columns)
    ]
    header = "# a wire\n\nn, temperature_C, strain, stress_MPa, note"
    path.write_text("\n".join([header, *lines[:50], "# paused", *lines[50:]]), encoding="utf-8")
    np.testing.assert_array_equal(read(path, 1000.0).strain, plain.strain)


@pytest.mark.parametrize("header", ["temperature_C,strain,strain_percent,stress_MPa",
                                    "temperature_C,temperature_C,strain,stress_MPa"])  # fmt: skip
def test_a_column_that_is_there_twice_is_refused(header, tmp_path):
    columns = rows()[:, [0, 1, 1, 2]]
    with pytest.raises(ModelError, match="give a header"):
        read(written(tmp_path / "loop.csv", columns, header), 1000.0)


def test_a_line_that_is_no_numbers_is_named(tmp_path):
    path = tmp_path / "loop.csv"
    path.write_text(f"{HEADER}\n20.0,0.04,100\n21.0,****,100\n", encoding="utf-8")
    with pytest.raises(ModelError, match=r"line 3: '21.0,\*\*\*\*,100' is not 3 numbers"):
        read(path, 1000.0)
