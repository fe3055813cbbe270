"""Plants of a campaign that are commissioned: what is fitted, who knows it, and what is refused."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import hil
from hil.__main__ import main
from hil.errors import ConfigError
from hil.runs.campaign.parallel import known_for
from hil.runs.campaign.plan import load_campaign
from hil.runs.simulate import simulate

FORCE = "plant.arrays.muscle.force_on_N"
AS_MODELLED = """
[spread."plant.arrays.muscle.cell.k_se_N_per_m"]
distribution = "choice"
choices = [386.52]
"""


@pytest.fixture
def write(tmp_path, configs):
    """A campaign of six cells whose forces are drawn, and the pulses that commission them."""

    def written(more="", free="free = ['force_on_N']", rig="miga6"):
        (tmp_path / "pulses.toml").write_text(
            f'rig = "{configs / rig / "rig.toml"}"\n[experiment]\nname = "pulses"\n'
            'duration_s = 1.6\n[controller]\nkind = "schedule"\n'
            "steps = [{t_s = 0.2, on = [1]}, {t_s = 0.9, off = [1]}]\n"
        )
        path = tmp_path / "known.toml"
        path.write_text(
            f"""
[campaign]
name = "known"
experiments = ["{configs / "miga6/pid.toml"}"]
plants = 2
keep = "none"
seed = 3
[commission]
experiment = "pulses.toml"
{free}
[spread."{FORCE}"]
relative = 0.1
{AS_MODELLED}
[factors.duration]
key = "experiment.duration_s"
levels = [0.2]
{more}
"""
        )
        return path

    return written


def rows_of(folder):
    return list(csv.DictReader((folder / "trials.csv").read_text().splitlines()))


@pytest.mark.slow
def test_controllers_know_what_was_fitted_and_the_plant_stays_as_it_was_drawn(
    write, tmp_path, monkeypatch, capsys
):
    """The plant's masses are not the model's, so the forces are found within 3 %, not exactly."""
    monkeypatch.chdir(tmp_path)
    path = write()
    assert main(["campaign", str(path), "--out", "here"]) == 0
    assert "2 of 2 trials are complete" in capsys.readouterr().out
    for row in rows_of(tmp_path / "here"):
        drawn = float(row["plant.arrays.muscle.force_on_N.1"])
        fitted = float(row["model.arrays.muscle.force_on_N"])
        assert fitted == pytest.approx(drawn, rel=0.03)
        assert abs(drawn - 4.0) > 0.1
    # The same trial again, alone: from the journal, and where there is none, commissioned anew.
    assert main(["campaign", str(path), "--out", "here", "--trial", "2"]) == 0
    assert main(["campaign", str(path), "--out", "new", "--trial", "2"]) == 0
    first, second = (hil.open_run(tmp_path / one / "trial-0002.h5") for one in ("here", "new"))
    assert first.force_measured_N.values.tobytes() == second.force_measured_N.values.tobytes()
    assert f"force_on_N = [\n    {fitted!r}" in first.attrs["experiment"]


def test_the_plant_of_a_commissioned_trial_is_that_of_the_trial_without(write):
    """Cells on by a schedule: what the controller knows changes the twin alone."""
    campaign = load_campaign(write())
    trial = campaign.trials[0]
    steps = {"kind": "schedule", "steps": [{"t_s": 0.0, "on": "all"}]}
    entry = {"model.arrays.muscle.force_on_N": [5.0] * 6, FORCE: [4.1, 4.2, 4.3, 3.9, 3.8, 3.7]}
    runs = []
    for known in ({}, {trial.plant: {FORCE: entry[FORCE]}}, {trial.plant: entry}):
        object.__setattr__(campaign, "known", known)
        experiment, sets = campaign.path.parent / trial.experiment, tuple(campaign.sets(trial))
        config = hil.load(experiment, sets, controller=steps)
        runs.append(simulate(config, trial.seed))
    same, other = runs[1], runs[2]
    np.testing.assert_array_equal(same.force_measured_N, other.force_measured_N)
    assert float(abs(same.force_model_N - other.force_model_N).max()) > 0.05


def test_what_is_fitted_and_not_drawn_stays_in_the_plant_as_the_rig_has_it(write):
    """Forces are fitted; only the stiffness of the plant is drawn: its force is the rig's 4 N."""
    path = write()
    text, forces = path.read_text(), f'[spread."{FORCE}"]\nrelative = 0.1\n'
    assert forces in text
    path.write_text(text.replace(forces, ""))
    campaign = load_campaign(path)
    trial = campaign.trials[0]
    campaign = replace(campaign, known=known_for(campaign, trial, []))
    tables = campaign.config(trial).tables
    [fitted_N] = tables.model.arrays["muscle"].force_on_N
    assert fitted_N == pytest.approx(4.0, rel=0.03)
    assert fitted_N != 4.0
    assert tables.plant.arrays["muscle"].force_on_N == [4.0]


def test_other_pulses_or_another_record_are_other_contents_of_a_campaign(write):
    path = write()
    first = load_campaign(path)
    assert load_campaign(path).contents() == first.contents()
    [(combination, config)] = first.configs.items()

    def with_hash(value):
        records = {
            channel: replace(record, record=record.record.model_copy(update={"hash": value}))
            for channel, record in config.records.items()
        }
        return replace(first, configs={combination: replace(config, recorded=records)})

    pulses = path.with_name("pulses.toml")
    pulses.write_text(pulses.read_text().replace("on = [1]", "on = [2]"))
    campaigns = [first, load_campaign(path), with_hash("one"), with_hash("other")]
    assert len({one.fingerprint() for one in campaigns}) == 1
    assert len({one.contents() for one in campaigns}) == 4


@pytest.mark.slow
def test_a_campaign_that_was_cut_off_commissions_only_what_is_missing(write, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = write()
    assert main(["campaign", str(path), "--out", "here"]) == 0
    journal = tmp_path / "here/journal.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    kinds = [json.loads(line)["kind"] for line in lines]
    whole = rows_of(tmp_path / "here")
    journal.write_text("".join(lines[: kinds.index("commissioned") + 1]))
    assert main(["campaign", str(path), "--out", "here"]) == 0
    kinds = [json.loads(line)["kind"] for line in journal.read_text().splitlines()]
    assert kinds.count("commissioned") == 2
    drop = ("started_utc",)
    strip = [[{k: v for k, v in row.items() if k not in drop} for row in rows]
             for rows in (whole, rows_of(tmp_path / "here"))]  # fmt: skip
    assert strip[0] == strip[1]


@pytest.mark.parametrize(
    ("rig", "free", "line"),
    [
        ("miga6", "free = ['elasticity']", "commission.free: elasticity: no such parameter"),
        ("miga6", "each = ['colour']", "commission.each.0"),
        ("miga1", "", r"commission.experiment = 'pulses.toml': its \[model\] is not that of"),
        ("none", "", r"commission.experiment: .*rig.toml"),
    ],
)
def test_what_cannot_be_commissioned_is_refused_in_a_line(write, rig, free, line, configs):
    path = write(free=free, rig=rig)
    if rig == "miga1":
        pulses = path.with_name("pulses.toml")
        pulses.write_text(
            pulses.read_text().split("steps = ")[0] + "steps = [{t_s = 0.1, on = [1]}]\n"
        )
    with pytest.raises(ConfigError, match=line) as error:
        load_campaign(path)
    assert len(str(error.value).splitlines()) == 1


def test_a_value_for_each_is_of_forces_and_masses(write):
    with pytest.raises(ConfigError, match="each is for the cells of an array"):
        load_campaign(write('[spread."devices.daq.channels.force.sim.noise_rms_V"]\n'
                            "relative = 0.1\neach = true\n"))  # fmt: skip


def test_nothing_is_commissioned_where_no_plant_is_drawn(write):
    path = write()
    text = path.read_text()
    path.write_text(text.split("[spread.")[0].replace("plants = 2\n", ""))
    with pytest.raises(ConfigError, match="commission: no plant is drawn"):
        load_campaign(path)


def test_a_value_of_each_cells_wire_is_drawn_fitted_and_run(configs, tmp_path):
    """Stiffness and convection of every cell; what the wires have in common is in every table."""
    path = tmp_path / "each.toml"
    path.write_text(f"""
[campaign]
name = "each"
experiments = ["{configs / "wires4/pulse.toml"}"]
plants = 3
[spread."plant.arrays.muscle.cell.k_se_N_per_m"]
relative = 0.05
each = true
[spread."plant.arrays.muscle.activation.convection_W_per_m2_K"]
relative = 0.1
each = true
[spread."plant.arrays.muscle.activation.ambient_C"]
absolute = 1.0
[spread."plant.arrays.muscle.activation.heating.middle_C"]
absolute = 2.0
each = true
""")
    campaign = load_campaign(path)
    for trial in campaign.trials:
        drawn = campaign.drawn(trial)
        array = campaign.config(trial).tables.plant.arrays["muscle"]
        wires = array.activation
        assert [one.convection_W_per_m2_K for one in wires] == drawn[
            "plant.arrays.muscle.activation.convection_W_per_m2_K"
        ]
        assert len({one.convection_W_per_m2_K for one in wires}) == 4
        assert {one.ambient_C for one in wires} == {
            drawn["plant.arrays.muscle.activation.ambient_C"]
        }
        assert [one.heating.middle_C for one in wires] == drawn[
            "plant.arrays.muscle.activation.heating.middle_C"
        ]
        assert [one.cooling.middle_C for one in wires] == [56.3] * 4
        assert [one.k_se_N_per_m for one in array.cell] == drawn[
            "plant.arrays.muscle.cell.k_se_N_per_m"
        ]
        # The model is the rig's file's: the controller knows of none of it.
        model = campaign.config(trial).tables.model
        assert model == campaign.configs[trial.combination].tables.model


def test_cells_with_wires_of_their_own_are_those_of_arrays_with_each_of_them(configs):
    """In parallel between fixed ends each cell pulls as in an array of cells like it."""
    one, other = {"convection_W_per_m2_K": 100.0}, {"convection_W_per_m2_K": 150.0}
    sets = ("experiment.duration_s=1.2",)
    file = configs / "wires4/pulse.toml"
    plain = (
        hil.load(file, sets)
        .tables.model.arrays["muscle"]
        .activation[0]
        .model_dump(exclude_none=True, exclude={"record"})
    )
    forces_N = []
    for tables in ([one] * 4, [other] * 4, [one, one, other, other]):
        whole = [{**plain, **more} for more in tables]
        cells = {"arrays": {"muscle": {"activation": whole}}}
        config = hil.load(file, sets, model=cells, plant=cells)
        system = config.system(plant=False)
        for _ in range(1200):
            system.step(np.ones(4))
        forces_N.append(system.y[1])
    assert forces_N[2] == pytest.approx(0.5 * (forces_N[0] + forces_N[1]), rel=1e-9)
    assert abs(forces_N[0] - forces_N[1]) > 0.01


@pytest.mark.parametrize(
    ("activation", "line"),
    [
        ("[{kind='step'}, {kind='step'}]",
         "arrays.muscle.activation: 2 tables given, the fingerprint has 6 cells"),
        ("[]", "model.arrays.muscle.activation"),
        ("[{kind='thermal', A_s_C=99.0}, {kind='step'}, {kind='step'}, {kind='step'}, "
         "{kind='step'}, {kind='step'}]", "activation 1: A_s_C must be below A_f_C"),
    ],
)  # fmt: skip
def test_activations_that_are_no_cells_are_refused_in_a_line(configs, activation, line):
    with pytest.raises(ConfigError, match=line):
        hil.load(configs / "miga6/pid.toml", (f"model.arrays.muscle.activation={activation}",))


def test_no_experiment_loosens_the_limit_of_one_cell(configs):
    """The rig has one table for all four; an experiment gives each its own."""
    table = hil.load(configs / "wires4/pulse.toml").merged.table["model"]["arrays"]["muscle"]
    loose = [dict(table["activation"]) for _ in range(4)]
    loose[2]["temperature_max_C"] = 181.0
    changed = {"arrays": {"muscle": {"activation": loose}}}
    with pytest.raises(ConfigError, match=r"activation.2.temperature_max_C = 181: looser than"):
        hil.load(configs / "wires4/pulse.toml", model=changed, plant=changed)


@pytest.mark.slow
def test_the_shipped_comparison_commissions_tunes_and_runs(rigs, tmp_path, capsys):
    """With fewer plants and settings; the planner, which knows what comes, beats the PID."""
    path = rigs / "wires4/campaigns/controllers.toml"
    text = path.read_text()
    for old, new in (("plants = 12", "plants = 1"), ("budget = 8", "budget = 2"),
                     ("plants = 2", "plants = 1")):  # fmt: skip
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)
    assert main(["campaign", str(path), "--out", str(tmp_path / "runs")]) == 0
    rows = {Path(row["experiment"]).stem: row for row in rows_of(tmp_path / "runs")}
    assert {row["outcome"] for row in rows.values()} == {"complete"}
    error_N = {name: float(row["force_tracking_rms_N"]) for name, row in rows.items()}
    assert error_N["optimal"] < 0.6 * error_N["pid"]
