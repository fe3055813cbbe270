"""`hil check` and `hil board limits --from`: what a rig's boards protect."""

import json
from pathlib import Path

import pytest

from hil.__main__ import main
from hil.devices.board import protocol
from hil.devices.board.scan import scan_s
from hil.errors import ConfigError
from hil.experiment.load import load, load_rig
from hil.mechanics.sma.board_heat import SCAN_LEAST_S
from hil.mechanics.sma.limits import Thermal, held_for_s
from hil.runs import assembly
from hil.runs.plan import Plan

RIG = "configs/wires4/rig.toml"
LIMITS = "devices.board.limits"


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch, pytestconfig):
    monkeypatch.chdir(pytestconfig.rootpath)


@pytest.fixture
def hil(capsys):
    def run(*args):
        code = main([str(a) for a in args])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def test_check_says_how_hot_each_wire_may_come(hil):
    code, out, _ = hil("check", RIG)
    assert code == 0
    assert (
        "'board' permits muscle.1 to muscle.4 to reach 180 C at an ambient temperature of 27 C, "
        "168 C at 15 C" in out
    )


@pytest.mark.parametrize("file", ["rig.toml", "hold.toml", "pulse.toml"])
def test_a_table_that_does_not_protect_its_wires_is_one_line_with_the_remedy(hil, file):
    """Half an ampere for ten seconds: the table that every board once came with."""
    sets = ["--set", f"{LIMITS}.heat_max_cA2ms=50000000"]
    code, out, err = hil("check", f"configs/wires4/{file}", *sets)
    assert (code, out) == (2, "")
    assert len(err.strip().splitlines()) == 1
    assert err.startswith("--set")
    for word in (f"{LIMITS}.heat_max_cA2ms = 50000000", "'muscle.1'", "more than 1000 C",
                 "temperature_max_C is 180", "hil board limits --from"):  # fmt: skip
        assert word in err


def test_a_limit_that_is_a_little_too_high_shows_a_temperature_above_the_maximum(hil):
    shipped = load("configs/wires4/hold.toml").tables.devices["board"].limits
    above = shipped["heat_max_cA2ms"] + 1
    code, _, err = hil("check", RIG, "--set", f"{LIMITS}.heat_max_cA2ms={above}")
    assert code == 2
    assert "to 180.1 C" in err


@pytest.mark.parametrize(
    "change",
    [
        f"{LIMITS}.heat_time_constant_ms=300",  # it forgets faster than the wire cools
        f"{LIMITS}.current_max_mA=990",  # a dead converter is noticed after 20 ms
        "devices.supply.current_A=1.1",  # a short is noticed a scan late
        "devices.board.every=1",  # a scan takes longer
        "loop.period_s=0.0009",
        "devices.board.ambient_range_C=[15.0, 40.0]",
        "model.arrays.muscle.activation.temperature_max_C=150.0",
    ],
)
def test_whatever_makes_a_wire_hotter_is_counted(hil, change):
    code, _, err = hil("check", RIG, "--set", change)
    assert code == 2
    assert "could heat the wire of 'muscle.1' to" in err


def test_air_that_the_model_states_warms_its_wires_whatever_the_room(hil):
    """A chamber at 60 degC: 33 K above the room's 27, with a budget that leaves none."""
    code, _, err = hil("check", RIG, "--set", "model.arrays.muscle.activation.ambient_C=60.0")
    assert code == 2
    assert "to 213 C at an ambient temperature of 60 C" in err


def test_a_rig_whose_wire_gives_off_less_heat_needs_other_limits(hil, rigs):
    """Its record says another value, so that it goes."""
    rig = rigs / "wires4/rig.toml"
    rig.write_text(
        rig.read_text()
        .replace("convection_W_per_m2_K = 125.0", "convection_W_per_m2_K = 90.0")
        .replace('record = "../../calibration/flexinol_100um_stress.toml"', "")
    )
    code, _, err = hil("check", rig)
    assert code == 2
    assert "could heat the wire of 'muscle.1' to" in err


def test_a_real_board_is_not_opened_with_limits_that_burn_its_wires():
    config = load("configs/wires4/hold.toml", [f"{LIMITS}.heat_max_cA2ms=50000000"])
    with pytest.raises(ConfigError, match=r"could heat the wire of 'muscle\.1'"):
        Plan(config, "board=bench")
    assembly.build(Plan(config, seed=1))  # a simulated one burns nothing


BROADCAST = """
rig = "rig.toml"

[experiment]
name = "drawn"
duration_s = 4.0

[reference]
kind = "sine"
mean_N = 0.6
amplitude_N = 0.2
frequency_Hz = 0.1

[controller]
kind = "broadcast"
period_s = 2.0
"""


def test_a_scan_is_as_long_as_the_commands_that_a_run_sends_make_it(rigs):
    """Of a rig alone nobody knows what a run sends: it may broadcast, or modulate."""
    sets = ["devices.board.every=1"]
    alone, masks = (
        load_rig(rigs / "wires4/rig.toml", sets).protections[0].bench.scan_s,
        load(rigs / "wires4/hold.toml", sets).protections[0].bench.scan_s,
    )
    assert masks == scan_s("set_mask", 1e-3, 4, 100)
    assert alone == scan_s("broadcast", 1e-3, 4, 100)
    assert alone > masks
    # `every` above 1 is refused with a broadcast
    for every in (2, 5):
        there = load_rig(rigs / "wires4/rig.toml", [f"devices.board.every={every}"]).protections[0]
        assert there.bench.scan_s == scan_s("set_duties", every * 1e-3, 4, 100)


def test_a_run_that_modulates_is_checked_with_the_scan_of_duties(rigs):
    for every in (1, 4):
        board = load(rigs / "wires4/modulate.toml", [f"devices.board.every={every}"])
        assert board.protections[0].bench.scan_s == scan_s("set_duties", every * 1e-3, 4, 100)


def test_check_reckons_with_the_broadcasts_of_an_experiment(rigs, hil):
    (rigs / "wires4/drawn.toml").write_text(BROADCAST)
    code, _, err = hil("check", rigs / "wires4/drawn.toml", "--set", "devices.board.every=1")
    assert code == 2
    assert "could heat the wire of 'muscle.1' to" in err


def test_the_limits_that_it_writes_go_into_the_rig_and_hold(rigs, hil):
    """Round trip: out of a rig without them, into its file, and check passes."""
    path = rigs / "wires4/rig.toml"
    text = path.read_text()
    start, end = text.index("[devices.board.limits]"), text.index("[devices.daq]")
    bare = "[devices.board.limits]\non_time_max_ms = 20000\ncurrent_full_scale_mA = 1000\n\n"
    path.write_text(text[:start] + bare + text[end:])
    assert hil("check", path)[0] == 2
    code, table, err = hil("board", "limits", "--from", path)
    assert (code, err) == (0, "")
    assert table.startswith("[devices.board.limits]\n")
    # a comment beside every figure
    assert all("#" in line for line in table.strip().splitlines()[1:])
    path.write_text(text[:start] + table + "\n" + text[end:])
    assert hil("check", path)[0] == 0
    assert hil("board", "limits", "--from", path)[1] == table


def test_the_shipped_table_is_what_it_writes(hil):
    code, out, _ = hil("board", "limits", "--from", RIG, "--json")
    assert code == 0
    shipped = load("configs/wires4/hold.toml").tables.devices["board"].limits
    for name, value in json.loads(out)["board"].items():
        assert shipped[name] == value


def test_it_writes_into_a_file_that_is_not_there_yet(hil, tmp_path):
    out = tmp_path / "limits.toml"
    assert hil("board", "limits", "--from", RIG, "--out", out)[0] == 0
    assert "heat_max_cA2ms" in out.read_text()
    code, _, err = hil("board", "limits", "--from", RIG, "--out", out)
    assert code == 2
    assert "exists" in err


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["limits"], "give a PORT"),
        (["limits", "usb:HIL-1", "--from", RIG], "without PORT"),
        (["flash", "--from", RIG], "works only with limits"),
        (["limits", "--from", "configs/miga6/rig.toml"], "no wire is described"),
    ],
)
def test_what_it_cannot_do_is_one_line(hil, args, said):
    code, out, err = hil("board", *args)
    assert (code, out) == (2, "")
    assert said in err
    assert len(err.strip().splitlines()) == 1


def test_a_rig_whose_wires_nobody_described_is_warned_of(hil):
    code, out, _ = hil("check", "configs/miga6/rig.toml")
    assert code == 0
    assert "configs/miga6/rig.toml: devices.board: hil cannot check that its limits protect" in out


WIRE = """
[devices.board.wire]
diameter_m = 100e-6
length_m = 0.1
supply_V = 1.8
martensite_Ohm_per_m = 126.0
austenite_Ohm_per_m = 113.0
convection_W_per_m2_K = 125.0
"""


def test_the_wire_of_a_board_is_described_in_its_own_table(rigs, hil):
    """And where no supply is known, a short beyond what the board measures is warned of."""
    path = rigs / "miga6/rig.toml"
    text = path.read_text()
    end = text.index("[devices.daq]")
    path.write_text(text[:end] + WIRE + text[end:])
    protection = load_rig(path).protections[0]
    assert [cell.cell for cell in protection.cells] == [f"muscle.{n}" for n in range(1, 7)]
    out = hil("check", path)[1] + hil("check", path)[2]
    assert "supply_current_max_A" in out or "could heat the wire" in out
    limited = path.read_text().replace(WIRE, f"supply_current_max_A = 0.5\n{WIRE}")
    path.write_text(limited)
    assert load_rig(path).protections[0].bench.supply_A == 0.5


def test_every_shipped_rig_passes_its_check(hil):
    rigs = sorted(Path("configs").glob("*/rig.toml"))
    assert len(rigs) > 10
    assert hil("check", *rigs)[0] == 0


def test_the_time_constant_and_the_budget_are_limits_of_the_board():
    assert {"heat_max_cA2ms", "heat_time_constant_ms", "current_max_mA"} <= set(protocol.LIMITS)


@pytest.mark.parametrize(
    "change",
    [
        "devices.board.supply_current_max_A=1e300",
        "model.arrays.muscle.activation.martensite_Ohm_per_m=1e300",
        "model.arrays.muscle.activation.martensite_Ohm_per_m=1e-300",
        "model.arrays.muscle.activation.austenite_Ohm_per_m=1e-300",
    ],
)
def test_no_figure_of_a_wire_or_its_supply_is_beyond_reckoning(hil, change):
    """They are squared: these came out as an internal error."""
    code, out, err = hil("check", RIG, "--set", change)
    assert (code, out) == (2, "")
    assert err.startswith(f"--set {change}")
    assert "must be" in err


def test_a_budget_of_nothing_lasts_until_the_first_reading():
    nothing = Thermal(0.0, 1.0, 1.0, 2.0, 0.02, 2)
    assert held_for_s(0.1, nothing, 0.01) == SCAN_LEAST_S


@pytest.mark.parametrize(
    ("changes", "key", "other"),
    [
        (["current_on_min_mA=222"], "current_on_min_mA = 222", "current_max_mA = 222"),
        (["current_max_mA=131"], "current_on_min_mA = 131", "current_max_mA = 131"),
        (["current_full_scale_mA=1"], "current_full_scale_mA = 1", "current_max_mA = 222"),
        (["current_full_scale_mA=222"], "current_full_scale_mA = 222", "current_max_mA = 222"),
        (["temperature_counts_min=900", "temperature_counts_max=900"],
         "temperature_counts_min = 900", "temperature_counts_max = 900"),
        (["current_on_min_mA=0"], "current_on_min_mA = 0", "choose at least 2"),
        (["current_off_max_mA=1900"], "current_off_max_mA = 1900", "current_on_min_mA = 131"),
        (["temperature_full_scale_cC=1"], "temperature_full_scale_cC = 1", "60 degC"),
        (["temperature_max_cC=2699"], "temperature_max_cC = 2699", "a room of 27 degC"),
    ],
)  # fmt: skip
def test_limits_of_which_one_leaves_another_without_effect_are_refused(hil, changes, key, other):
    """A reading may end at 1015/1024 of full scale; the board's own checks are by `<` and `>`."""
    words = [word for change in changes for word in ("--set", f"{LIMITS}.{change}")]
    for file in ("rig.toml", "hold.toml"):
        code, out, err = hil("check", f"configs/wires4/{file}", *words)
        assert (code, out) == (2, "")
        assert len(err.strip().splitlines()) == 1
        assert f"{LIMITS}.{key}: " in err
        assert other in err
        assert "supply" not in err


def test_a_clamp_may_be_as_warm_as_the_room(hil):
    """27 degC, the warmest room of the rig; the board trips above its limit."""
    assert (
        hil("check", "configs/wires4/rig.toml", "--set", f"{LIMITS}.temperature_max_cC=2700")[0]
        == 0
    )


def test_a_cell_that_conducts_while_it_is_off_is_in_no_run(hil, tmp_path):
    """0.16 A for ever: before, the run was complete, with exit code 0."""
    change = f"{LIMITS}.current_off_max_mA=1900"
    code, _, err = hil("run", "configs/wires4/hold.toml", "--set", change, "--out",
                       tmp_path / "run.h5")  # fmt: skip
    assert code == 2
    assert err.startswith(f"--set {change}: {LIMITS}.current_off_max_mA = 1900: ")
    assert not (tmp_path / "run.h5").exists()


def test_a_leak_that_may_go_unnoticed_counts_as_heat_of_its_wire(hil):
    """5527 K/(A^2 s) times 0.683 s, of 45.4 mA instead of 24.7: 7.8 K, and 2.3 K were left."""
    words = [f"{LIMITS}.current_on_min_mA=40", f"{LIMITS}.current_off_max_mA=40"]
    code, _, err = hil("check", RIG, *(w for word in words for w in ("--set", word)))
    assert code == 2
    assert "could heat the wire of 'muscle.1' to 185.5 C" in err


@pytest.mark.parametrize("scans", [2, 7, 8])
def test_a_persistence_that_leaves_a_short_to_the_heat_budget_alone_is_refused(scans, hil):
    """0.74 A heat by 3027 K/s; 153 K are left, 50 ms: eight scans of 6.07 ms, not nine."""
    code, _, err = hil("check", RIG, "--set", f"{LIMITS}.persistence_scans={scans}")
    assert code == (2 if scans > 7 else 0)
    assert ("current_high" in err) == (scans > 7)
    if code:
        config = load("configs/wires4/hold.toml", [f"{LIMITS}.persistence_scans={scans}"])
        with pytest.raises(ConfigError, match=f"persistence_scans = {scans}"):
            Plan(config, "board=bench")


@pytest.mark.parametrize(("scans", "code"), [(5, 0), (6, 2)])
def test_a_short_ends_before_a_board_without_its_host_would_have_stopped(scans, code, hil):
    """A described wire or none: 14 ms a scan, and 0.5 ms; seven of them are longer than 0.1 s."""
    words = ["--set", f"devices.board_a.limits.persistence_scans={scans}"]
    found, _, err = hil("check", "configs/array14/rig.toml", *words)
    assert found == code
    assert ("within 0.1 s" in err) == bool(code)


def test_limits_that_a_board_can_just_tell_apart_pass(hil):
    """225 mA: its highest reading, 1015 counts, is 223 mA, beyond the limit of 222 mA."""
    words = ["--set", f"{LIMITS}.current_full_scale_mA=225", "--set",
             f"{LIMITS}.current_on_min_mA=221"]  # fmt: skip
    code, _, err = hil("check", "configs/miga6/rig.toml", *words, "--set",
                       f"{LIMITS}.current_max_mA=222")  # fmt: skip
    assert (code, err) == (0, "")


def test_the_time_on_that_the_guard_asks_for_is_in_the_table_that_it_writes(rigs, hil):
    """A board's default of 10 s is shorter than the guard's 20 s."""
    path = rigs / "wires4/rig.toml"
    text = path.read_text()
    start, end = text.index("[devices.board.limits]"), text.index("[devices.daq]")
    bare = "[devices.board.limits]\ncurrent_full_scale_mA = 1000\n\n"
    path.write_text(text[:start] + bare + text[end:])
    code, table, err = hil("board", "limits", "--from", path)
    assert (code, err) == (0, "")
    assert "on_time_max_ms = 20000  # as guard.cell_on_max_s" in table
    assert json.loads(hil("board", "limits", "--from", path, "--json")[1])["board"][
        "on_time_max_ms"] == 20_000  # fmt: skip
    path.write_text(text[:start] + table + "\n" + text[end:])
    assert hil("check", path)[0] == 0
    shorter = table.replace("on_time_max_ms = 20000", "on_time_max_ms = 15000")
    path.write_text(text[:start] + shorter + "\n" + text[end:])
    code, _, err = hil("board", "limits", "--from", path)
    assert code == 2
    assert "guard.cell_on_max_s = 20" in err
    assert "devices.board.limits.on_time_max_ms" in err


@pytest.mark.parametrize("entry", ["", "current_max_mA = 1100\n"])
def test_the_table_it_writes_stays_below_what_the_sensor_shows(rigs, hil, entry):
    """A converter whose scale ends at 1 A, below the default of 1.2 A."""
    path = rigs / "wires4/rig.toml"
    text = path.read_text()
    start, end = text.index("[devices.board.limits]"), text.index("[devices.daq]")
    bare = f"[devices.board.limits]\ncurrent_full_scale_mA = 1000\n{entry}\n"
    path.write_text(text[:start] + bare + text[end:])
    assert hil("check", path)[0] == 2
    code, table, err = hil("board", "limits", "--from", path, "--json")
    assert (code, err) == (0, "")
    assert json.loads(table)["board"]["current_max_mA"] == 222
