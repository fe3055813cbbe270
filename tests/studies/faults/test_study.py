"""Every interlock is tripped by a fault put into the rig, in time, with everything off after."""

import json
import re

import pytest

import hil
from hil.__main__ import main
from hil.loop import interlocks
from hil_studies.faults import study as fault_study

N, A, C, S = r"(-?[\d.e+-]+) N", r"(-?[\d.e+-]+) A", r"(-?[\d.]+) degC", r"([\d.]+) s"
CELLS = r"muscle\.\d.*"
# What a trip must say: who, the value, the limit, and the key where it stands. Rows that have
# neither a value nor a limit say who.
SAID = {
    ("loop", "force_high"): rf"force {N}, limit {N} \(guard\.force_max_N\)",
    ("loop", "force_nan"): r"force gives no number",
    ("loop", "reading_stale"): rf"daq: reading {S} old, limit {S} \(guard\.reading_age_max_s\)",
    ("loop", "loop_late"): (
        r"(\d+) periods of 1 ms missed in a row, limit (\d+) "
        r"\(loop\.overruns_max"
    ),
    ("loop", "cell_on_too_long"): rf"{CELLS} on for {S}, limit {S} \(guard\.cell_on_max_s\)",
    ("loop", "device_failed"): r"board: the port is gone",
    ("loop", "board_fault"): r"board: \w+: (muscle|wire)\.\d at \S+ \w+, limits? \S+ \w+ \(\w+\)",
    ("loop", "signal_out_of_range"): r"slide gives no number",
    ("loop", "output_invalid"): r"motor_commanded_N is not a number",
    ("loop", "estop_open"): r"the e-stop loop that daq reads is open",
    ("loop", "channel_untrue"): r"daq: force_at_rail \(a sample .*; their mean 10 V\)",
    ("loop", "force_rate_high"): (
        rf"force changes by {N}/s, limit {N}/s "
        r"\(guard\.force_rate_max_N_per_s"
    ),
    ("loop", "force_jump"): rf"force from {N} to {N} .*limit {N} \(guard\.force_jump_max_N\)",
    ("loop", "force_residual_high"): (
        rf"force measured .* model .*: {N} apart, limit {N} "
        r"\(guard\.force_re"
    ),
    ("loop", "force_no_rise"): (
        rf"force measured {N}, model {N}, limit .*{N} "
        r"\(guard\.force_rise_min_N"
    ),
    ("loop", "sensor_frozen"): rf"force at {N} for {S}, limit {S} \(guard\.frozen_s\)",
    ("loop", "signal_fast"): (
        r"slide changes by (\S+) m/s, limit (\S+) m/s "
        r"\(guard\.signals\.slide\.rate"
    ),
    ("loop", "too_many_cells_on"): (
        r"(\d+) cells .*muscle\.1.*, limit (\d+) "
        r"\(guard\.cells_on_max\)"
    ),
    ("loop", "disk_low"): (
        r"(\d+) MB free where run\.h5 is, limit \d+ MB "
        r"\(guard\.disk_free_min_MB\)"
    ),
    ("loop", "board_silent"): (
        rf"board: last answer {S} old, limit {S} "
        r"\(guard\.reading_age_max_s\)"
    ),
    ("loop", "own_code_failed"): r"injected",
    ("loop", "resistance_out_of_range"): (
        r"muscle\.1 at least (\S+) Ohm, limit (\S+) Ohm "
        r"\(devices\.board\.resistance\.max_Ohm\)"
    ),
    ("loop", "current_untrue"): (
        r"muscle\.1 measures (\S+) Ohm, and its wire may have (\S+) to (\S+) within 10 % "
        r"\(devices\.board\.resistance\.tolerance\): its current is read too high"
    ),
    ("loop", "clamp_untrue"): (
        rf"muscle\.1's clamp stays at {N.replace(' N', ' C')}, and its wire must have moved it by"
    ),
    ("loop", "cell_energy_high"): (
        r"muscle\.1 (\S+) K above the air by its heat budget, limit (\S+) K"
    ),
    ("loop", "gate_stuck"): r"daq: muscle\.2 reads back another level than commanded",
    ("loop", "duty_invalid"): r"muscle\.1 at a duty of nan, not 0 nor 0\.0627\d to 1",
    ("loop", "supply_silent"): (
        rf"supply's last answer is {S} old, limit {S} "
        r"\(devices\.supply\.ans"
    ),
    ("loop", "supply_wrong"): (
        r"supply (\S+) V .* set to 8 V, tolerance 0\.2 V "
        r".*\(devices\.supply\.voltage_t"
    ),
    ("loop", "supply_not_off"): (
        rf"supply 8 V .* commanded off, limit {S} "
        r".*\(devices\.supply\.obey_max"
    ),
    ("loop", "board_reset"): r"board(_a)? was reset: it is disarmed, its own time is \S+ s",
    ("loop", "board_refused"): r"board is armed and answered 'bad_value', not 'done'",
    ("loop", "machine_slept"): r"machine_slept: the machine slept for \S+ s before this tick",
    ("board", "host_silent"): (
        rf"board: host_silent: no valid command, limit {S} "
        r"\(silence_max_ms\)"
    ),
    ("board", "estop_open"): r"board: estop_open: its e-stop loop is open",
    ("board", "cell_on_too_long"): rf"cell_on_too_long: {CELLS}, limit {S} \(on_time_max_ms\)",
    ("board", "cell_energy_high"): rf"{CELLS} at {A}, limits? \S+ A2 s \(heat_max_cA2ms\)",
    ("board", "too_many_cells_on"): r"(\d+) cells commanded on, limit (\d+) \(cells_on_max\)",
    ("board", "current_high"): rf"muscle\.1 at {A}, limit {A} \(current_max_mA\)",
    ("board", "current_low"): rf"muscle\.\d at {A}, limits {A} \(current_on_min_mA\)",
    ("board", "current_when_off"): rf"muscle\.\d at {A}, limit {A} \(current_off_max_mA\)",
    ("board", "temperature_high"): rf"muscle\.1 at {C}, limit {C} \(temperature_max_cC\)",
    ("board", "temperature_range"): (
        r"muscle\.1 at -50 degC, limits -40\.23 degC \(temperature_counts_min\), 438\.3 degC"
    ),
    ("board", "scan_stale"): rf"board: scan_stale: its own readings are too old, limit {S} \(sc",
    ("board", "gate_stuck"): r"board: gate_stuck: muscle\.2",
    ("board", "scan_untrue"): r"board: scan_untrue: its multiplexers pass on wrong inputs",
    ("board", "limits_corrupt"): r"board: limits_corrupt: its table of limits is corrupt",
    ("board", "memory_corrupt"): r"board: memory_corrupt: its program or its memory has changed",
    ("connect", "device_failed"): r"daq: inputs: held by another task or program",
    ("connect", "config_mismatch"): r"is 9999 on the board, 10000 in the rig",
    ("connect", "supply_stuck"): (
        r"board: refused to be armed: .*\(supply_stuck\): the cells' supply stays on though it"
    ),
}  # fmt: skip
UPWARDS = {"force_high", "reading_stale", "loop_late", "force_rate_high", "too_many_cells_on",
           "force_residual_high", "signal_fast", "board_silent", "resistance_out_of_range",
           "current_high", "current_when_off", "temperature_high"}  # fmt: skip


def says_who_and_how_much(row):
    found = re.search(SAID[row["where"], row["row"]], row["said"])
    if found is None:
        return False
    if row["row"] not in UPWARDS:
        return True
    *_, value, limit = map(float, found.groups())
    return abs(value) > limit


def test_every_row_that_is_injected_has_a_text_to_be_held_against():
    rows = {(s.where, s.row) for s in fault_study.SCENARIOS if s.clock == "virtual"}
    assert rows == set(SAID)


def test_gates_go_off_within_two_periods_of_a_built_up_fault_unless_its_row_gives_a_bound(configs):
    """It appears during one period; the next reads it, checks it and switches off."""
    config = hil.load(configs / "miga6/all_on.toml")
    scenario = fault_study.Scenario(row="force_high", kind="force_offset", due_s=0.0)
    assert scenario.bound_s == 2 * config.tables.loop.period_s


def _id(scenario):
    return (
        f"{scenario.where}-{scenario.row}-{scenario.kind}-{fault_study.SCENARIOS.index(scenario)}"
    )


@pytest.mark.slow_beyond(3)
@pytest.mark.parametrize(
    "scenario",
    [s for s in fault_study.SCENARIOS if s.clock == "virtual" and "sim" in s.backends],
    ids=_id,
)
def test_on_the_simulated_rig_the_row_trips_in_time_and_all_is_off_and_whole(scenario):
    row = fault_study.inject(scenario, "sim")
    assert row["passes"], row
    assert says_who_and_how_much(row), row["said"]


@pytest.mark.slow
@pytest.mark.parametrize("row", ["board_silent", "current_high", "limits_corrupt"])
def test_on_the_emulated_chip_a_loop_s_and_a_board_s_row_trip_in_time(row):
    scenario = next(s for s in fault_study.SCENARIOS if s.row == row)
    found = fault_study.inject(scenario, "emulated")
    assert found["passes"], found
    assert says_who_and_how_much(found), found["said"]


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize("board", ["board_a", "board_b"])
def test_a_fault_of_either_of_two_boards_is_found(board):
    scenario = fault_study.Scenario(
        row="estop_open", kind="estop_open", due_s=0.001, where="board", device=board,
        rig="array14/groups.toml", sets=["controller.steps=[{t_s=0.0, on='all'}]"],
    )  # fmt: skip
    found = fault_study.inject(scenario, "sim")
    assert found["board_faults"] == ["estop_open"]
    assert found["said"].startswith(f"board_fault: {board}: estop_open")


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["sim", "emulated"])
def test_every_row_on_every_backend(backend, tmp_path):
    assert main(["study", "faults", "--set", f"backend={backend}", "--out", str(tmp_path)]) == 0
    rows = json.loads((tmp_path / "results.json").read_text())["rows"]
    assert [row for row in rows if not row["passes"]] == []


def test_every_row_of_the_table_is_injected():
    injected = {(s.where, s.row) for s in fault_study.SCENARIOS}
    for row in interlocks.LOOP:
        assert ("loop", row.name) in injected
    for row in interlocks.BOARD:
        refused = row.name == "supply_stuck"  # before the run: no arming with a welded relay
        assert ("connect" if refused else "board", row.name) in injected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[[fault]]\nkind = "magic"\nat_s = 1.0\n', "fault.0.kind = 'magic'"),
        ('[[fault]]\nkind = "estop_open"\n', "fault.0.at_s: missing: add it"),
        ("fault = []\n", "fault"),
        ("[[fault]\n", "not valid TOML"),
    ],
)
def test_a_file_of_faults_that_is_wrong_is_refused(text, message, configs, tmp_path, capsys):
    (tmp_path / "f.toml").write_text(text)
    words = ["run", str(configs / "miga6/all_on.toml"), "--inject", str(tmp_path / "f.toml")]
    assert main([*words, "--out", str(tmp_path / "run.h5")]) == 2
    said = capsys.readouterr().err.strip()
    assert message in said
    assert len(said.splitlines()) == 1


def test_faults_are_not_put_into_a_bench(configs, tmp_path, capsys):
    (tmp_path / "f.toml").write_text('[[fault]]\nkind = "estop_open"\nat_s = 0.1\n')
    words = ["run", str(configs / "miga6/all_on.toml"), "--inject", str(tmp_path / "f.toml")]
    words += ["--backend", "board=bench,daq=sim", "--out", str(tmp_path / "run.h5")]
    assert main(words) == 2
    assert "--inject: not on a bench" in capsys.readouterr().err


def test_a_run_whose_board_is_reset_ends_tripped_by_it(configs, tmp_path, capsys):
    (tmp_path / "f.toml").write_text('[[fault]]\nkind = "board_reset"\nat_s = 0.8\n')
    words = ["run", str(configs / "miga6/all_on.toml"), "--inject", str(tmp_path / "f.toml")]
    assert main([*words, "--out", str(tmp_path / "run.h5")]) == 3
    assert "tripped by board_reset" in capsys.readouterr().out
    assert main(["replay", str(tmp_path / "run.h5")]) == 0
