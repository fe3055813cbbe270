"""Values of a configuration and the records beside them say the same, or it is refused."""

import json
import re
from datetime import date

import pytest

import hil
from hil.__main__ import main
from hil.calibration.files import load_any
from hil.calibration.sources import base
from hil.calibration.write import values_table, write_record
from hil.devices.sensor_tables import IndicatorTable, LabJackTable
from hil.procedures.literature import ENTRIES, write_literature
from hil.record.read import calibrations_of
from hil.runs import session
from hil.runs.calibration_status import status_of
from hil.runs.check import check
from hil.runs.plan import Plan
from hil.runs.recording import Output

K_SE = "model.arrays.muscle.cell.k_se_N_per_m"


@pytest.fixture(scope="module")
def rigs_of(configs):
    return sorted(configs.glob("*/rig.toml"))


@pytest.mark.slow
def test_every_shipped_rig_agrees_with_its_records(rigs_of):
    for rig in rigs_of:
        assert check(rig).kind == "rig"


def test_shipped_records_of_the_papers_are_what_hil_calibrate_literature_writes(configs, tmp_path):
    shipped = configs.parent / "calibration"
    for path, written in write_literature(tmp_path / "new"):
        assert written
        assert path.read_text() == (shipped / path.name).read_text()
    assert not any(written for _, written in write_literature(shipped))


def test_an_assumed_value_is_less_sure_than_any_printed_one_of_its_record():
    """Relative, since units differ; nothing assumed is said to be known within 10 %."""
    for entry in ENTRIES:
        shares = {basis: [] for _, _, _, basis in entry.values}
        for _, value, u, basis in entry.values:
            shares[basis].append(u / abs(value))
        if "assumed" in shares:
            assert min(shares["assumed"]) >= 0.08
            assert min(shares["assumed"]) > max(shares.get("published", [0.0]))


def test_every_published_value_of_a_rig_names_its_record(rigs_of):
    """Numbers of the papers, as their seeds print them, stand in no table without a record."""
    printed = {"386.52", "0.01583", "611.0", "10160.0", "0.1449", "126.0"}  # in their own tables
    for rig in rigs_of:
        for table in re.split(r"^\[", rig.read_text(), flags=re.MULTILINE)[1:]:
            numbers = set(re.findall(r"= ([\d.]+)", table))
            if printed & numbers and not table.startswith("plant"):
                assert "record = " in table, (rig, table)


class TestALiteralThatIsNotItsRecords:
    def changed(self, rigs, old="k_se_N_per_m = 386.52", new="k_se_N_per_m = 386.5"):
        rig = rigs / "miga6/rig.toml"
        text = rig.read_text()
        assert old in text
        rig.write_text(text.replace(old, new, 1))
        return rig

    def test_is_refused_with_both_values(self, rigs, capsys):
        assert main(["check", str(self.changed(rigs))]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert re.search(
            rf"rig\.toml: {K_SE} = 386\.5: record miga_springs@\w+ has 386\.52: use one", line
        )

    def test_keeps_an_experiment_from_running(self, rigs, tmp_path, capsys):
        self.changed(rigs)
        out = tmp_path / "run.h5"
        assert main(["run", str(rigs / "miga6/all_on.toml"), "--out", str(out)]) == 2
        assert not out.exists()

    def test_is_refused_where_one_of_a_list_differs(self, rigs, capsys):
        masses = "mass_kg = [0.01583, 1.0, 0.01583, 0.01583, 0.01583] "
        assert main(["check", str(self.changed(rigs, "mass_kg = 0.01583 ", masses))]) == 2
        assert "mass_kg = 1: record miga_masses@" in capsys.readouterr().err

    def test_and_a_default_nobody_wrote_down_is_asked_for(self, rigs, capsys):
        rig = rigs / "pantograph/rig.toml"
        rig.write_text(rig.read_text().replace("l_1_m = 0.1449\n", "", 1))
        assert main(["check", str(rig)]) == 2
        assert "model.arm.l_1_m: missing: pantograph_arm@" in capsys.readouterr().err

    def test_may_come_from_a_set_and_is_noted(self, configs, tmp_path):
        config = hil.load(configs / "miga6/all_on.toml", [f"{K_SE}=380.0"])
        result = session.run(Plan(config, seed=1), Output(out=tmp_path / "run.h5"))
        (line,) = result.summary["calibration"]["departed"]
        assert re.fullmatch(rf"{K_SE} = 380: record miga_springs@\w+ has 386\.52", line)


def test_a_record_that_says_nothing_of_its_table_is_refused(rigs, capsys):
    rig = rigs / "miga6/rig.toml"
    rig.write_text(rig.read_text().replace("calibration/miga_damper", "calibration/miga_force"))
    assert main(["check", str(rig)]) == 2
    assert re.search(r"cell\.record: miga_force@\w+ has no value for this table",
                     capsys.readouterr().err)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "words"),
    [("gone.toml", "no such file"), ("futek_9N.toml", "is a force transducer's record")],
)
def test_a_record_that_is_none_for_a_table_is_named(rigs, capsys, name, words):
    rig = rigs / "miga6/rig.toml"
    rig.write_text(rig.read_text().replace("miga_damper.toml", name))
    assert main(["check", str(rig)]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert "model.arrays.muscle.cell.record" in said


def test_a_channel_takes_a_transducers_record_only(rigs, capsys):
    rig = rigs / "miga6/rig.toml"
    rig.write_text(rig.read_text().replace("futek_9N.toml", "miga_damper.toml"))
    assert main(["check", str(rig)]) == 2
    assert "a force channel needs a force_transducer's" in capsys.readouterr().err


def test_a_recording_keeps_every_record_that_its_values_came_from(all_on):
    kept = calibrations_of(all_on, "records")
    assert sorted(kept) == ["miga_damper", "miga_force", "miga_masses", "miga_springs"]
    springs = kept["miga_springs"]
    assert springs["tables"] == ["model.arrays.muscle.cell"]
    assert (springs["status"], springs["serial"]) == ("literature", "MacNair-Ueda-Miga")
    assert "386.52" in springs["record"]


def test_assumed_values_are_named_and_printed_ones_are_not(all_on):
    said = json.loads(hil.open_run(all_on).attrs["summary"])["calibration"]["assumed"]
    assert any(line.startswith("model.arrays.muscle: calibration miga_force@") for line in said)
    assert not any("miga_springs" in line for line in said)


class TestARunWhoseRecordIsNotTheOnlyOneThatHolds:
    def rival(self, rigs, supersedes=()):
        """The springs measured again this spring."""
        old = load_any(rigs.parent / "calibration/miga_springs.toml", named_by="test")
        table = {
            "kind": "spring_constants", "status": "measured",
            "article": {"name": "Miga cell", "serial": old.record.article.serial},
            "act": {"by": "A", "date": date(2026, 11, 2), "valid_until": date(2027, 11, 2),
                    "method": "M", "supersedes": list(supersedes and [old.record.hash])},
            "model": values_table("M", {"k_se_N_per_m": 1.0}, [[0.1]]),
        }  # fmt: skip
        write_record(rigs.parent / "calibration/springs_2027.toml", table)

    def run(self, rigs, tmp_path, **options):
        config = hil.load(rigs / "miga6/all_on.toml", ["experiment.duration_s=0.05"])
        options["out"] = tmp_path / "run.h5"
        return session.run(*session.from_options(config, options))

    def test_is_flagged_in_summary_and_report(self, rigs, tmp_path):
        self.rival(rigs)
        result = self.run(rigs, tmp_path)
        (line,) = result.summary["calibration"]["ambiguous"]
        assert "it is unclear which one is valid" in line
        assert main(["report", str(result.path)]) == 0
        assert "it is unclear which one is valid" in result.path.with_suffix(".html").read_text()

    def test_is_told_of_a_record_that_supersedes_its_own(self, rigs, tmp_path):
        self.rival(rigs, supersedes=True)
        (line,) = self.run(rigs, tmp_path).summary["calibration"]["ambiguous"]
        assert line.endswith(
            "miga_springs.toml is superseded by springs_2027.toml since 2026-11-02"
        )

    def test_does_not_begin_when_it_is_strict(self, rigs, tmp_path):
        self.rival(rigs)
        with pytest.raises(hil.errors.ConfigError, match=r"--strict: .*which one is valid"):
            self.run(rigs, tmp_path, strict=True)


def test_channels_without_a_record_are_flagged_and_refused_when_strict(configs, tmp_path, capsys):
    words = ["run", str(configs / "slider/steps.toml"), "--duration", "0.05"]
    assert main([*words, "--out", str(tmp_path / "run.h5")]) == 0
    assert "  no calibration record: slide" in capsys.readouterr().out
    assert main([*words, "--out", str(tmp_path / "strict.h5"), "--strict"]) == 2
    assert capsys.readouterr().err == "--strict: slide: has no calibration record\n"


def test_a_force_in_volts_of_an_instrument_without_a_record_is_flagged_too():
    forces = {"force": {"kind": "force", "terminal": "AIN0", "newtons_per_V": 0.95}}
    devices = {
        "volts": LabJackTable.model_validate({"kind": "labjack", "channels": forces}),
        "display": IndicatorTable.model_validate(
            {"kind": "serial_indicator", "port": "/dev/ttyUSB0", "channels": {"other": {}}}
        ),
    }
    status = status_of(devices, {}, [], date(2026, 12, 1))
    assert status.without_record == ["force"]
    assert status.refused(on_bench=False) == ["force: has no calibration record"]


def test_the_name_of_one_of_a_list_belongs_to_its_key():
    assert [base(name) for name in ("mass_kg.12", "b_N_s_per_m")] == ["mass_kg", "b_N_s_per_m"]


class TestARecordOfAWholeModel:
    """One record at `[model]` says what stands further down."""

    def test_is_held_to_every_value_below(self, rigs, capsys):
        rig = rigs / "leg/rig.toml"
        rig.write_text(rig.read_text().replace("0.0247]", "0.0248]", 1))
        assert main(["check", str(rig)]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        key = re.escape("model.muscles.TA.path.1.at_m.3")
        assert re.search(rf"{key} = 0\.0248: record leg_makkonen@\w+ has 0\.0247", line)

    def test_asks_for_what_is_not_stated(self, rigs, capsys):
        rig = rigs / "leg/rig.toml"
        rig.write_text(rig.read_text().replace("[model.muscles.SOL] ", "[model.muscles.SOLEUS] "))
        assert main(["check", str(rig)]) == 2
        assert "model.muscles.SOL.F_max_N: missing: leg_makkonen@" in capsys.readouterr().err

    def test_has_a_diagonal_covariance_where_it_gives_uncertainties(self, rigs):
        found = load_any(rigs.parent / "calibration/leg_makkonen.toml", named_by="test")
        n = len(found.names)
        assert found.covariance.shape == (n, n)
        # Printed to four decimals: half a unit of the last, evenly spread (GUM 4.3.7).
        assert found.uncertainty("bodies.thigh.mass_kg") == pytest.approx(0.5e-4 / 3**0.5, rel=1e-4)
        u = found.uncertainty("bodies.thigh.mass_kg")
        assert found.covariance[0, 0] == pytest.approx(u**2)
