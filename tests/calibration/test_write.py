"""Records of any kind: written once, hashed, with the covariance of their values."""

import tomllib
from datetime import date

import numpy as np
import pytest

from hil.__main__ import main
from hil.calibration.files import Source, load_any, overlaps
from hil.calibration.write import raw_table, values_table, write_record
from hil.errors import ConfigError

NAMES = {"k_se_N_per_m": 386.5234871, "k_ae_N_per_m": 1000.1}
C = [[0.16, -0.02], [-0.02, 4.0]]


def table(serial="C-7", begins=date(2026, 3, 1), ends=date(2027, 3, 1), **act):
    return {
        "kind": "spring_constants",
        "status": "measured",
        "article": {"name": "Miga cell", "serial": serial},
        "act": {"by": "A", "date": begins, "valid_until": ends, "method": "M", **act},
        "model": values_table("least squares", NAMES, C, residuals=[0.001, -0.001] * 40),
        "raw": raw_table({"stretch_m": [0.0, 0.001, 0.002], "place": ["a", "b", "c"]}),
    }


def test_a_record_gives_its_values_with_their_covariance(tmp_path):
    found = write_record(tmp_path / "a.toml", table())
    assert isinstance(found, Source)
    again = load_any(tmp_path / "a.toml", named_by="test")
    assert again.names == ("k_se_N_per_m", "k_ae_N_per_m")
    np.testing.assert_array_equal(again.covariance, C)
    assert again.uncertainty("k_ae_N_per_m") == 2.0
    with pytest.raises(KeyError, match=r"a@\w+ has no value 'k_pe_N_per_m'"):
        again.value("k_pe_N_per_m")


@pytest.mark.parametrize("own", [0.0, 1e-8, 1e-6, 1e-3])
def test_values_that_share_almost_all_of_their_uncertainty_are_a_record(own, tmp_path):
    """0.25 % of a transducer's scale in three springs, and a share of their own beside it."""
    k = np.array([19.87, 383.17, 997.31])
    shared = 0.0025**2 * np.outer(k, k) + np.diag((own * k) ** 2)
    names = ("k_pe_N_per_m", "k_se_N_per_m", "k_ae_N_per_m")
    model = values_table("least squares", dict(zip(names, k.tolist(), strict=True)), shared)
    found = write_record(tmp_path / "a.toml", table() | {"model": model})
    np.testing.assert_allclose(found.covariance, shared, rtol=2e-5)


def test_a_value_has_as_many_digits_as_a_hundredth_of_its_uncertainty(tmp_path):
    """0.4 N/m: a hundredth is 0.004, so three decimals stay."""
    assert write_record(tmp_path / "a.toml", table()).value("k_se_N_per_m") == 386.523


def test_a_record_is_never_written_over(tmp_path):
    write_record(tmp_path / "a.toml", table())
    with pytest.raises(ConfigError, match="a record is never changed"):
        write_record(tmp_path / "a.toml", table("C-8"))
    assert (tmp_path / "a.toml").stat().st_mode & 0o222 == 0


def test_an_expired_record_is_flagged_when_it_is_checked(tmp_path, capsys):
    old = table(begins=date(2020, 3, 1), ends=date(2021, 3, 1))
    write_record(tmp_path / "a.toml", old)
    assert main(["check", str(tmp_path / "a.toml")]) == 0
    said = capsys.readouterr().out
    assert said.endswith("a valid calibration record, EXPIRED on 2021-03-01\n")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("386.523", "386.524", "hash: the content was changed after the calibration"),
        ("0.002", "0.003", "hash: the content"),
        ("C-7", "C-9", "hash: the content"),
    ],
)
def test_a_record_edited_by_hand_is_refused(tmp_path, old, new, words, capsys):
    write_record(tmp_path / "a.toml", table())
    text = (tmp_path / "a.toml").read_text()
    assert old in text
    (tmp_path / "b.toml").write_text(text.replace(old, new, 1))
    assert main(["check", str(tmp_path / "b.toml")]) == 2
    assert words in capsys.readouterr().err


def test_the_order_of_the_values_is_under_the_hash(tmp_path):
    """Else two lines changed about would give each the other's variance."""
    write_record(tmp_path / "a.toml", table())
    text = (tmp_path / "a.toml").read_text()
    swapped = text.replace('["k_se_N_per_m", "k_ae_N_per_m"]', '["k_ae_N_per_m", "k_se_N_per_m"]')
    assert swapped != text
    (tmp_path / "b.toml").write_text(swapped)
    with pytest.raises(ConfigError, match="hash"):
        load_any(tmp_path / "b.toml", named_by="test")


def test_readings_that_are_not_those_of_their_hash_are_refused(tmp_path):
    changed = table()
    changed["raw"]["data"]["stretch_m"][1] = 0.0011
    with pytest.raises(ConfigError, match=r"raw\.hash: the readings were changed"):
        write_record(tmp_path / "a.toml", changed)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"names": ["a", "a"]}, "names has a duplicate"),
        ({"values": [1.0]}, "2 entries"),
        ({"covariance": [[1.0]]}, "2 rows of 2"),
        ({"covariance": [[1.0, 2.0], [2.0, 1.0]]}, "not a covariance"),
        ({"basis": ["guess", "guess"]}, "basis"),
    ],
)
def test_a_wrong_record_is_not_written(tmp_path, change, words):
    wrong = table()
    wrong["model"] |= change
    with pytest.raises(ConfigError, match=words):
        write_record(tmp_path / "a.toml", wrong)
    assert not list(tmp_path.iterdir())


def test_a_file_of_many_readings_is_toml_that_says_the_same(tmp_path):
    write_record(tmp_path / "a.toml", table())
    text = (tmp_path / "a.toml").read_text()
    assert tomllib.loads(text)["model"]["residuals"] == [0.001, -0.001] * 40
    assert max(map(len, text.splitlines())) <= 100


class TestTwoRecordsOfOneArticle:
    def made(self, folder, **second):
        first = write_record(folder / "a.toml", table())
        return [first, write_record(folder / "b.toml", table(**second))]

    def test_that_hold_at_the_same_time_are_refused(self, tmp_path):
        pair = self.made(tmp_path, begins=date(2027, 1, 1), ends=date(2028, 1, 1))
        (line,) = overlaps(pair)
        assert "serial C-7" in line
        assert "it is unclear which one is valid" in line
        assert main(["check", *(str(record.path) for record in pair)]) == 2

    def test_that_follow_each_other_are_well(self, tmp_path):
        assert not overlaps(self.made(tmp_path, begins=date(2027, 3, 2), ends=date(2028, 1, 1)))

    def test_may_overlap_where_one_supersedes_the_other(self, tmp_path):
        first = write_record(tmp_path / "a.toml", table())
        later = table(begins=date(2027, 1, 1), ends=date(2028, 1, 1),
                      supersedes=[first.record.hash])  # fmt: skip
        assert not overlaps([first, write_record(tmp_path / "b.toml", later)])

    def test_and_of_another_serial_number_have_nothing_to_do_with_it(self, tmp_path):
        assert not overlaps(self.made(tmp_path, serial="C-8", begins=date(2027, 1, 1)))
