"""Campaigns on plants that are drawn: what is drawn, compared, kept and made again."""

import csv
import shutil

import numpy as np
import pytest

import hil
from hil.__main__ import main
from hil.errors import ConfigError
from hil.experiment.load import load
from hil.loop.requests import Stop
from hil.runs import session
from hil.runs.campaign import runner
from hil.runs.campaign.distributions import draw_distributions, worst_rows
from hil.runs.campaign.journal import Progress
from hil.runs.campaign.parallel import run_apart, work_of
from hil.runs.campaign.plan import load_campaign
from hil.runs.campaign.plants import compared

FORCE, NOISE = "plant.arrays.muscle.force_on_N", "devices.daq.channels.force.sim.noise_rms_V"
MASS = "plant.arrays.muscle.mass_kg"
OFFSET = "devices.daq.channels.force.sim.offset_V"
DEAD = "plant.arrays.muscle.dead_cells"


@pytest.fixture
def write(tmp_path, configs):
    """The file of a campaign of short runs of six cells under two gains."""

    def written(spread, head="", more="", plants=3):
        path = tmp_path / "plants.toml"
        path.write_text(
            f"""
[campaign]
name = "two gains"
experiments = ["{configs / "miga6/pid.toml"}"]
plants = {plants}
seed = 3
{head}
{spread}
[factors.duration]
key = "experiment.duration_s"
levels = [0.2]
[factors.k_p]
key = "controller.k_p"
levels = [0.5, 2.0]
[measures.force_N]
column = "force_model_N"
take = "mean"
{more}
"""
        )
        return path

    return written


def of(key, text):
    return f'[spread."{key}"]\n{text}\n'


def rows_of(folder):
    return list(csv.DictReader((folder / "trials.csv").read_text().splitlines()))


def test_draws_have_the_distribution_that_is_asked_for(write):
    path = write(
        of(FORCE, "relative = 0.05")
        + of(NOISE, 'distribution = "lognormal"\nrelative = 0.3')
        + of(MASS, 'distribution = "uniform"\nabsolute = 0.002')
        + of(DEAD, 'distribution = "choice"\nchoices = [[], [2]]'),
        plants=4000,
    )
    campaign = load_campaign(path)
    [plants] = campaign.plants.values()
    tables = next(iter(campaign.configs.values())).tables
    model = tables.plant.arrays["muscle"]
    force = np.array([plant[FORCE][0] for plant in plants]) / model.force_on_N[0]
    # standard errors of mean and deviation of 4000 draws: 0.05 / 63, 0.05 / 89; five of each
    assert force.mean() == pytest.approx(1.0, abs=0.004)
    assert force.std() == pytest.approx(0.05, abs=0.003)
    noise = np.log(np.array([plant[NOISE] for plant in plants]))
    assert noise.std() == pytest.approx(0.3, abs=0.017)
    median_V = tables.devices["daq"].channels["force"].sim.noise_rms_V
    assert noise.mean() == pytest.approx(np.log(median_V), abs=0.024)
    mass = np.array([plant[MASS] for plant in plants]) - np.array(model.mass_kg)
    assert np.abs(mass).max() <= 0.002
    assert mass.std() == pytest.approx(0.002 / 3.0**0.5, abs=2e-5)
    assert abs(np.corrcoef(mass[:, 0], mass[:, 1])[0, 1]) < 0.08, "each mass for itself"
    dead = np.mean([plant[DEAD] == [2] for plant in plants])
    assert dead == pytest.approx(0.5, abs=0.04)


def test_another_key_or_more_plants_change_no_draw(write):
    [few] = load_campaign(write(of(FORCE, "relative = 0.05"))).plants.values()
    [many] = load_campaign(
        write(of(NOISE, "relative = 0.1") + of(FORCE, "relative = 0.05"), plants=7)
    ).plants.values()
    assert [plant[FORCE] for plant in many[:3]] == [plant[FORCE] for plant in few]


@pytest.mark.slow
def test_draws_are_correlated_as_asked_and_each_keeps_its_distribution(write):
    """Of n pairs a correlation r is found within (1 - r^2) / sqrt(n); here five of that."""
    with_noise = f'\ncorrelated_with = "{NOISE}"\ncorrelation = '
    path = write(
        of(NOISE, 'distribution = "lognormal"\nrelative = 0.3')
        + of(FORCE, f"relative = 0.05{with_noise}0.8")
        + of(MASS, f'distribution = "uniform"\nabsolute = 0.002{with_noise}-0.6')
        + of(OFFSET, f"absolute = 0.001{with_noise}1.0"),
        plants=4000,
    )
    [plants] = load_campaign(path).plants.values()
    noise = np.log(np.array([plant[NOISE] for plant in plants]))
    force, masses, zero_V = (np.array([p[key] for p in plants]) for key in (FORCE, MASS, OFFSET))
    assert np.corrcoef(noise, force[:, 0])[0, 1] == pytest.approx(0.8, abs=0.028)
    # of uniform variables of a normal copula: 6 / pi asin(r / 2)
    for mass in masses.T:
        r = 6.0 / np.pi * np.arcsin(-0.3)
        uniform = np.argsort(np.argsort(noise))
        assert np.corrcoef(uniform, mass)[0, 1] == pytest.approx(r, abs=0.055)
        assert np.ptp(mass) == pytest.approx(0.004, rel=0.01)
        assert mass.std() == pytest.approx(0.002 / 3.0**0.5, abs=2e-5)
    assert np.corrcoef(noise, zero_V)[0, 1] == pytest.approx(1.0, abs=1e-6)
    [alone] = load_campaign(
        write(of(NOISE, 'distribution = "lognormal"\nrelative = 0.3'), plants=5)
    ).plants.values()
    assert [plant[NOISE] for plant in alone] == [plant[NOISE] for plant in plants[:5]]


def test_entries_of_lists_are_correlated_one_by_one(write):
    each = "each = true\nrelative = 0.05\n"
    spring = "plant.arrays.muscle.cell.k_se_N_per_m"
    linked = f'{each}correlated_with = "{FORCE}"\ncorrelation = 0.9\n'
    [plants] = load_campaign(
        write(of(FORCE, each) + of(spring, linked), plants=2000)
    ).plants.values()
    force, springs = (np.array([p[key] for p in plants]) for key in (FORCE, spring))
    assert force.shape == springs.shape == (2000, 6)
    r = np.corrcoef(force.T, springs.T)[:6, 6:]
    assert np.diag(r) == pytest.approx(0.9, abs=0.022)
    assert np.abs(r - np.diag(np.diag(r))).max() < 0.12


def test_every_combination_meets_the_same_plants_and_the_same_noise(write):
    campaign = load_campaign(write(of(FORCE, "relative = 0.05"), head='order = "random"'))
    by = {}
    for trial in campaign.trials:
        by.setdefault(trial.plant, set()).add((trial.seed, str(campaign.drawn(trial))))
    assert len(campaign.trials) == 6
    assert [len(met) for met in by.values()] == [1, 1, 1]
    assert len({seed for met in by.values() for seed, _ in met}) == 3


def test_the_controller_knows_nothing_of_a_draw(write):
    campaign = load_campaign(write(of(FORCE, "relative = 0.2")))
    config = campaign.config(campaign.trials[0])
    drawn = campaign.drawn(campaign.trials[0])[FORCE]
    assert config.tables.plant.arrays["muscle"].force_on_N == drawn
    assert config.tables.model.arrays["muscle"].force_on_N != drawn


def test_a_trial_is_made_again_bit_for_bit_with_a_recording(write, tmp_path, capsys):
    path, folder = write(of(FORCE, "relative = 0.05"), head='keep = "none"'), tmp_path / "out"
    assert main(["campaign", str(path), "--out", str(folder)]) == 0
    assert not list(folder.rglob("*.h5"))
    rows = rows_of(folder)
    assert [row["outcome"] for row in rows] == ["complete"] * 6
    assert main(["campaign", str(path), "--out", str(folder), "--trial", "4"]) == 0
    assert (
        "trial 4 (pid, duration 0.2, k_p 2.0, plant 2, repeat 1): complete"
        in capsys.readouterr().out
    )
    run = hil.open_run(folder / "trial-0004.h5")
    assert float(rows[3]["force_N"]) == run.force_model_N.values.mean()
    assert float(rows[3]["force_measured_max_N"]) == np.nanmax(run.force_measured_N)
    made = (folder / "trial-0004.h5").read_bytes()
    write(of(FORCE, "relative = 0.1"), head='keep = "none"')
    assert main(["campaign", str(path), "--out", str(folder), "--trial", "4"]) == 2
    assert f"{folder}: holds another campaign, or {path} or" in capsys.readouterr().err
    assert (folder / "trial-0004.h5").read_bytes() == made, "it would be no trial of this table"


@pytest.mark.parametrize("change", ["\nk_i_per_s = 9.0\n", "\nno TOML [\n"])
def test_no_trial_runs_with_a_file_that_changed_meanwhile(
    write, configs, tmp_path, capsys, monkeypatch, change
):
    """Trials with the change would be of another campaign, or be left out for good as refused."""
    for folder in ("configs/miga6", "calibration"):
        shutil.copytree(configs.parent / folder, tmp_path / folder)
    path, experiment = write(of(FORCE, "relative = 0.05")), tmp_path / "configs/miga6/pid.toml"
    path.write_text(path.read_text().replace(str(configs), str(tmp_path / "configs")))
    before, keep = experiment.read_text(), runner.attempt_of

    def changed(*of):
        experiment.write_text(before.replace("[controller]", f"[controller]{change}"))
        return keep(*of)

    words = ["campaign", str(path), "--out", str(tmp_path / "out"), "--jobs", "1"]
    with monkeypatch.context() as patch:
        patch.setattr(runner, "attempt_of", changed)
        assert main(words) == 2
    heard = capsys.readouterr().err.splitlines()
    assert heard[-1].startswith(f"{experiment}: has changed while the campaign ran: ")
    assert [row["outcome"] for row in rows_of(tmp_path / "out")] == ["complete", *["to do"] * 5]
    experiment.write_text(before)
    assert main(words) == 0
    assert [row["attempts"] for row in rows_of(tmp_path / "out")] == ["1"] * 6


@pytest.mark.slow
def test_only_trials_that_trip_keep_their_recording(write, tmp_path):
    spread = of(DEAD, 'distribution = "choice"\nchoices = [[], [2]]')
    limits = "[factors.limit]\nkey = 'guard.force_max_N'\nlevels = [0.001, 8.0]\n"
    more = f"[after_trip]\ndo = 'skip'\n{limits}"
    path, folder = write(spread, 'keep = "tripped"', more), tmp_path / "out"
    assert main(["campaign", str(path), "--out", str(folder)]) == 3
    rows = rows_of(folder)
    kept = {row["file"] for row in rows if row["outcome"] == "tripped"}
    assert {row["outcome"] for row in rows} == {"tripped", "complete"}
    assert {str(file.relative_to(folder)) for file in folder.rglob("*.h5")} == kept
    assert all((row["file"] == "") == (row["outcome"] == "complete") for row in rows)


@pytest.mark.slow
def test_the_worst_trials_of_each_combination_keep_their_recording(write, tmp_path):
    path = write(of(FORCE, "relative = 0.2"), 'keep = "worst 1"\nworst_by = "-force_N"')
    folder = tmp_path / "out"
    assert main(["campaign", str(path), "--out", str(folder)]) == 0
    rows = rows_of(folder)
    for gain in ("0.5", "2.0"):
        of_gain = [row for row in rows if row["k_p"] == gain]
        worst = min(of_gain, key=lambda row: float(row["force_N"]))
        assert [row for row in of_gain if row["file"]] == [worst]
        run = hil.open_run(folder / worst["file"])
        assert float(worst["force_N"]) == run.force_model_N.values.mean()
    assert len(list(folder.rglob("*.h5"))) == 2
    page = (folder / "campaign.html").read_text()
    assert "Distributions" in page
    assert f'href="{worst["file"]}"' in page


DISK_LOW = {"outcome": "tripped", "faults": ["disk_low"], "error": "", "figures": {"force_N": 0.0}}


def test_a_recording_that_fails_leaves_the_figures_and_is_made_again(
    write, tmp_path, capsys, monkeypatch
):
    path = write(of(FORCE, "relative = 0.2"), 'keep = "worst 1"\nworst_by = "-force_N"', plants=2)
    words = ["campaign", str(path), "--out", str(tmp_path / "out"), "--jobs", "1"]
    with monkeypatch.context() as patch:
        patch.setattr("hil.runs.campaign.parallel._recorded", lambda *_: DISK_LOW)
        for _ in range(2):
            assert main(words) == 4
            assert "same command makes again, failed: disk_low\n" in capsys.readouterr().err
    before = rows_of(tmp_path / "out")
    assert {(row["outcome"], row["file"]) for row in before} == {("complete", "")}
    assert main(words) == 0
    after = rows_of(tmp_path / "out")
    assert [{**row, "file": ""} for row in after] == before
    assert sum(bool(row["file"]) for row in after) == 2


def test_a_trip_that_cannot_be_recorded_is_no_other_trip(write, monkeypatch):
    trial = {**DISK_LOW, "faults": ["force_high"]}
    monkeypatch.setattr("hil.runs.campaign.parallel._in_memory", lambda *_: trial)
    monkeypatch.setattr("hil.runs.campaign.parallel._recorded", lambda *_: DISK_LOW)
    campaign = load_campaign(write(of(FORCE, "relative = 0.2"), 'keep = "tripped"'))
    work = work_of(campaign, campaign.trials[0], 1)._replace(keep="tripped")
    result = run_apart(work, campaign.tables, strict=False)
    assert (result["outcome"], result["error"]) == ("failed", "its recording failed: disk_low")


@pytest.mark.slow
def test_in_parallel_every_figure_is_that_of_the_series(write, tmp_path, monkeypatch):
    path = write(of(FORCE, "relative = 0.05"), head='keep = "none"')
    assert main(["campaign", str(path), "--out", str(tmp_path / "series")]) == 0
    monkeypatch.setattr("hil.platform.parallel.START_S", (0.0, 0.0))
    assert main(["campaign", str(path), "--out", str(tmp_path / "parallel")]) == 0
    one, other = (
        [{k: v for k, v in row.items() if k != "started_utc"} for row in rows_of(tmp_path / name)]
        for name in ("series", "parallel")
    )
    assert one == other


def test_the_page_compares_each_plant_with_itself():
    """By hand: differences 1, 2, 3, so 2 with s / sqrt(3) = 0.577 and t = 4.303: 2.5."""
    rows = [
        {"at": name, "plant": plant, "repeat": 1, "error": plant * 10.0 + more * plant,
         "outcome": "complete"}
        for plant in (1, 2, 3)
        for name, more in (("a", 0.0), ("b", 1.0))
    ]  # fmt: skip
    columns, table = compared([*rows, rows[0] | {"plant": 4, "error": None}], "error", "at")
    assert columns[2:4] == ["mean", "less the first"]
    assert table[0][:4] == ["a", "3", "20 ± 25", "-"]
    assert table[1][:4] == ["b", "3", "22 ± 27", "2 ± 2.5"]
    assert table[1][4].startswith("3: 33, 2: 22")


def test_a_plant_counts_once_whatever_its_repeats():
    """By hand: means 10, 20, 30 of the plants as without repeats, and differences 1, 2, 3."""
    rows = [
        {"": name, "plant": plant, "repeat": repeat, "trial": 10 * plant + repeat, "file": "",
         "outcome": "complete", "error": plant * 10.0 + more * plant + 5.0 * (repeat - 2)}
        for plant in (1, 2, 3)
        for repeat in (1, 2, 3)
        for name, more in (("a", 0.0), ("b", 1.0))
    ]  # fmt: skip
    _, table = compared(rows, "error", "")
    assert table[0][:4] == ["a", "3", "20 ± 25", "-"]
    assert table[1][:4] == ["b", "3", "22 ± 27", "2 ± 2.5"]
    assert table[1][4] == "3: 33, 2: 22, 1: 11"
    _, _, worst = worst_rows(Progress(head={"plan": []}), rows, ["error"])
    of_a = [cells for cells, _ in worst if cells[0] == "a"]
    assert of_a == [["a", "3", "33", "30"], ["a", "2", "23", "20"], ["a", "1", "13", "10"]]
    [axis] = draw_distributions(rows, ["error"]).axes
    assert list(axis.lines[0].get_xdata()) == [10.0, 10.0, 20.0, 30.0]


def test_trials_that_tripped_are_in_no_mean_and_no_difference():
    """What tripped at once has a small error: it saw nothing of its experiment."""
    rows = [
        {"": name, "plant": plant, "repeat": 1, "trial": plant, "file": "", "error": error,
         "outcome": "tripped" if name == "trips" or (name, plant) == ("b", 4) else "complete"}
        for plant in (1, 2, 3, 4)
        for name, error in (("trips", 0.0), ("a", 10.0 * plant), ("b", 11.0 * plant))
    ]  # fmt: skip
    _, table = compared(rows, "error", "")
    assert table[0] == ["trips", "0", "-", "-", ""]
    assert [row[1:4] for row in table[1:]] == [["4", "25 ± 21", "-"], ["3", "22 ± 27", "-"]]
    _, table = compared(rows[1:], "error", "")
    assert table[1][:4] == ["b", "3", "22 ± 27", "2 ± 2.5"]
    [axis] = draw_distributions(rows, ["error"]).axes
    assert [len(line.get_xdata()) for line in axis.lines] == [0, 5, 4]


def test_of_the_worst_a_figure_that_is_unknown_is_no_outcome():
    rows = [
        {"": "a", "plant": plant, "repeat": 1, "trial": plant, "file": "", "error": error,
         "outcome": outcome}
        for plant, error, outcome in ((1, 1.0, "complete"), (2, None, "complete"),
                                      (3, 0.0, "tripped"))
    ]  # fmt: skip
    _, _, worst = worst_rows(Progress(head={"plan": []}), rows, ["error"])
    assert [cells[3] for cells, _ in worst] == ["unknown", "tripped", "1"]


@pytest.mark.parametrize(
    ("spread", "said"),
    [
        (of("model.arrays.muscle.force_on_N", "relative = 0.1"), "a key that the controller knows"),
        (of("controller.k_p", "relative = 0.1"), "a key that the controller knows"),
        (of("plant.arrays.muscle.force_on", "relative = 0.1"), "no number there: None"),
        (of("plant.arrays.muscle.fingerprint", "relative = 0.1"), "no number there"),
        (of(MASS, "relative = 3.0"), "plant [123] draws .*mass_kg"),
        (
            of(FORCE, "relative = 0.1") + of(MASS, "relative = 3.0"),
            "spread.'plant.*mass_kg': plant",
        ),
        (of(MASS, 'distribution = "choice"\nchoices = ["heavy"]'), "draws 'heavy'"),
        (
            of(DEAD, 'distribution = "choice"\nchoices = [[1], [true]]'),
            r"plant 3 draws \[True\].* must be",
        ),
        (of(MASS, "relative = 0.1\nabsolute = 0.1"), "give relative or absolute"),
        (of(MASS, "relative = -0.1"), "greater than 0"),
        (of(MASS, 'distribution = "choice"'), "takes choices alone"),
        (of(OFFSET, "relative = 0.1"), "relative = 0.1: the rig has 0.0 there.* give absolute"),
        (of(OFFSET, 'distribution = "lognormal"\nrelative = 0.1'), "'normal' or 'uniform'"),
        (of(MASS, 'distribution = "lognormal"\nabsolute = 0.1'), "lognormal' takes relative"),
        (of(MASS, 'distribution = "lognormal"\nrelative = 1e3'), "relative = 1000: at most 10"),
        (of(MASS, 'distribution = "choice"\nchoices = [inf]'), "mass_kg=inf: .*a finite number"),
        (of("plant\\nx", 'distribution = "choice"\nchoices = [1]'), "must be one line of plain"),
        (of(MASS, "relative = 0.1\ncorrelation = 0.5"), "belong together: give both"),
        (of(MASS, f'relative = 0.1\ncorrelated_with = "{MASS}"\ncorrelation = 0.5'), "not drawn"),
        (
            of(MASS, f'relative = 0.1\ncorrelated_with = "{FORCE}x"\ncorrelation = 0.5')
            + of(FORCE, "relative = 0.1"),
            "not drawn: did you mean",
        ),
        (
            of(MASS, f'relative = 0.1\ncorrelated_with = "{FORCE}"\ncorrelation = 0.5')
            + of(FORCE, "relative = 0.1\neach = true"),
            "draws 6 numbers, this key 5",
        ),
        (
            of(MASS, f'relative = 0.1\ncorrelated_with = "{NOISE}"\ncorrelation = 1.5')
            + of(NOISE, "relative = 0.1"),
            "less than or equal to 1",
        ),
        ("[spread.plant.arrays.muscle.mass_kg]\nrelative = 0.1\n", "a key without quotes: write"),
        ("", "belong together"),
    ],
)
def test_a_spread_that_cannot_be_is_one_line(write, spread, said):
    path = write(spread)
    with pytest.raises(ConfigError, match=said) as caught:
        load_campaign(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ('keep = "worst 0"', "or, for the worst ten, 'worst 10'"),
        ('keep = "worst 2"', "by which measure? add worst_by"),
        ('keep = "worst 2"\nworst_by = "forze_N"', "'forze_N' is no measure"),
        ('keep = "worst 2"\nworst_by = "force_N > 1"', "give a number"),
    ],
)
def test_worst_trials_that_cannot_be_told_are_one_line(write, tmp_path, capsys, head, said):
    path = write(of(FORCE, "relative = 0.1"), head)
    assert main(["campaign", str(path), "--out", str(tmp_path / "out")]) == 2
    heard = capsys.readouterr().err.strip()
    assert said in heard
    assert "\n" not in heard


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--backend", "bench"], "[spread]"),
        (["--trial", "7"], "has 1 to 6"),
        (["--trial", "0"], "has 1 to 6"),
        (["--trial", "1", "--rehearse"], "--trial 1: runs alone: leave --rehearse out"),
        (["--trial", "1", "--jobs", "2"], "--trial 1: runs alone: leave --jobs out"),
        (["--jobs", "0"], "--jobs 0: give 1 or more"),
        (["--jobs", "100000"], "--jobs 100000: give "),
        (["--jobs", "2", "--scheduler", "tcp://a:1"], "has its own number of workers"),
    ],
)
def test_what_a_drawn_plant_cannot_be_is_one_line(write, tmp_path, capsys, arguments, said):
    path = write(of(FORCE, "relative = 0.05"))
    assert main(["campaign", str(path), "--out", str(tmp_path / "out"), *arguments]) == 2
    heard = capsys.readouterr().err.strip()
    assert said in heard
    assert "\n" not in heard
    assert not (tmp_path / "out").exists()


OPENS = "[wires_open]\nprobability = 0.5\nfrom_s = 0.05\nto_s = 0.15\n"


def test_wires_open_at_random_times_on_the_same_plants_for_every_controller(write):
    path = write(of(FORCE, "relative = 0.05"), more=OPENS, plants=40)
    campaign = load_campaign(path)
    faults = {(t.plant, t.levels["k_p"]): campaign.faults(t) for t in campaign.trials}
    for plant in range(1, 41):
        assert faults[plant, 0.5] == faults[plant, 2.0]
    every = [fault for t in campaign.trials for fault in campaign.faults(t)]
    assert {fault.kind for fault in every} == {"wire_open"}
    assert {fault.cell for fault in every} == {1, 2, 3, 4, 5, 6}
    # 240 cells at one half: 120, with a standard deviation of 7.7
    assert len(every) / 2 == pytest.approx(120, abs=4 * 7.7)
    times = [fault.at_s for fault in every]
    assert 0.05 <= min(times) < 0.06
    assert 0.14 < max(times) <= 0.15


def test_cells_break_and_weaken_independently_of_wires_that_open(write):
    more = "".join(
        OPENS.replace("wires_open", key) + rest
        for key, rest in (("wires_open", ""), ("cells_break", ""), ("cells_weaken", "left = 0.3\n"))
    )
    campaign = load_campaign(write(of(FORCE, "relative = 0.05"), more=more, plants=40))
    alone = load_campaign(write(of(FORCE, "relative = 0.05"), more=OPENS, plants=40))
    drawn = {kind: [] for kind in ("wire_open", "cell_broken", "cell_weak")}
    for trial, same in zip(campaign.trials, alone.trials, strict=True):
        faults = campaign.faults(trial)
        assert faults[: len(alone.faults(same))] == alone.faults(same)
        for kind, of_kind in drawn.items():
            cells = {fault.cell for fault in faults if fault.kind == kind}
            of_kind += [cell in cells for cell in range(1, 7)]
        assert all(fault.value == 0.3 for fault in faults if fault.kind == "cell_weak")
    # 240 cells of 40 plants: a correlation of none has a standard deviation of 0.065
    between = np.corrcoef([values[: len(values) // 2] for values in drawn.values()])
    assert np.abs(between[np.triu_indices(3, 1)]).max() < 4 * 0.065
    listed = campaign.listed(campaign.trials[0])
    assert {"wires_open", "cells_break", "cells_weaken"} <= set(listed)


@pytest.mark.slow
def test_a_wire_that_opens_is_in_the_trial_its_row_and_its_repetition(write, tmp_path):
    """The board latches the current that is missing, so that the run trips."""
    always = OPENS.replace("0.5", "1.0").replace("0.15", "0.05")
    always += (
        '[factors.early]\nkey = "reference.t_s"\nlevels = [[0.0, 3.0, 5.5]]\nnames = ["now"]\n'
    )
    path = write(of(FORCE, "relative = 0.05"), more=always, plants=1, head='keep = "all"')
    path.write_text(path.read_text().replace("levels = [0.2]", "levels = [0.4]"))
    assert main(["campaign", str(path), "--out", str(tmp_path / "runs")]) == 3
    [row, *_] = rows_of(tmp_path / "runs")
    assert row["outcome"] == "tripped"
    assert row["wires_open"].startswith("board 1: 0.050 s, board 2: 0.050 s")
    assert main(["campaign", str(path), "--out", str(tmp_path / "runs"), "--trial", "1"]) == 3
    kept, again = (hil.open_run(tmp_path / "runs" / one)
                   for one in (row["file"], "trial-0001.h5"))  # fmt: skip
    assert kept.force_measured_N.values.tobytes() == again.force_measured_N.values.tobytes()
    assert kept.fault_bits.values.any()


@pytest.mark.parametrize(("outcome", "code"), [("complete", 0), ("tripped", 3), ("aborted", 130)])
def test_the_exit_code_of_a_trial_alone_tells_its_outcome(
    write, tmp_path, monkeypatch, outcome, code
):
    done = session.Result(tmp_path / "trial-0001.h5", outcome, {}, Stop())
    monkeypatch.setattr(session, "run", lambda *_: done)
    path = write(of(FORCE, "relative = 0.05"), plants=1)
    assert main(["campaign", str(path), "--out", str(tmp_path), "--trial", "1"]) == code


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (OPENS.replace("0.15", "0.01"), "to_s = 0.01 is before from_s = 0.05"),
        (OPENS.replace("0.5", "1.5"), "wires_open.probability = 1.5"),
        (OPENS.replace("wires_open", "cells_break") + "left = 0.5\n", "cells_break.left"),
        (OPENS.replace("wires_open", "cells_weaken") + "left = 1.0\n", "cells_weaken.left = 1.0"),
    ],
)
def test_cells_that_cannot_fail_so_are_refused(write, text, line):
    with pytest.raises(ConfigError, match=line):
        load_campaign(write(of(FORCE, "relative = 0.05"), more=text))


def test_a_measure_may_be_of_the_difference_of_two_columns(write):
    """A whole run's RMS of measured less reference is the tracking error of the summary."""
    error = '[measures.error_N]\ncolumn = "force_measured_N"\nless = "force_reference_N"\n'
    path = write(of(FORCE, "relative = 0.05"), 'keep = "none"', f'{error}take = "rms"', plants=1)
    table = hil.campaign(path, out=path.parent / "right", progress=False)
    assert table.error_N.values.tolist() == table.force_tracking_rms_N.values.tolist()
    wrong = path.read_text().replace('"force_reference_N"', '"force_wanted_N"')
    path.write_text(wrong)
    with pytest.raises(ConfigError, match=r"measures.error_N.less = 'force_wanted_N': the rig has"):
        hil.campaign(path, out=path.parent / "wrong", progress=False)


def test_controllers_know_all_that_a_plant_draws_where_it_is_exact(write):
    k_se = "plant.arrays.muscle.cell.k_se_N_per_m"
    each = "relative = 0.1\neach = true"
    spread = of(FORCE, each) + of(k_se, each) + of(NOISE, "relative = 0.5")
    for head, equal in (("exact = true", True), ("", False)):
        campaign = load_campaign(write(spread, head))
        drawn = [campaign.config(trial).tables for trial in campaign.trials]
        for one in drawn:
            model, plant = one.model.arrays["muscle"], one.plant.arrays["muscle"]
            assert (model.force_on_N == plant.force_on_N) is equal
            stiff = [[cell.k_se_N_per_m for cell in array.cell] for array in (model, plant)]
            assert len(stiff[1]) == 6
            assert (stiff[0] == stiff[1]) is equal
    assert len({one.plant.arrays["muscle"].force_on_N[0] for one in drawn}) == 3


def test_a_plant_that_a_controller_is_refused_for_is_left_out_and_the_others_run(
    write, configs, capsys
):
    """A dead zone of 1.05 times half the largest step: some random arrays have larger ones."""
    path = write(of(FORCE, 'distribution = "uniform"\nrelative = 0.2\neach = true'),
                 'exact = true\nkeep = "none"', plants=6)  # fmt: skip
    text = path.read_text()
    with pytest.raises(ConfigError) as refused:
        load(configs / "miga6/broadcast.toml", ["controller.dead_zone_N=1e-6"])
    least_N = float(str(refused.value).rpartition("at least ")[2])
    text = text.replace("miga6/pid.toml", "miga6/broadcast.toml")
    text = text.replace("controller.k_p", "controller.dead_zone_N")
    path.write_text(text.replace("[0.5, 2.0]", f"[{1.05 * least_N}, {2.0 * least_N}]"))
    assert main(["campaign", str(path), "--jobs", "1", "--out", str(path.parent / "out")]) == 5
    outcomes = [row["outcome"] for row in rows_of(path.parent / "out")]
    assert len(outcomes) == 12
    assert set(outcomes) == {"complete", "refused"}
    errors = [row["error"] for row in rows_of(path.parent / "out") if row["outcome"] == "refused"]
    assert all("below half of it some set points are never reached" in one for one in errors)
    assert capsys.readouterr().err.count("is left out: refused: ") == len(errors)


def test_a_plant_that_is_known_exactly_is_not_commissioned_too(write):
    commission = '[commission]\nexperiment = "pulses.toml"\n'
    path = write(of(FORCE, "relative = 0.1"), "exact = true", commission)
    with pytest.raises(ConfigError, match=r"campaign\.exact: what \[spread\] draws is known"):
        load_campaign(path)
