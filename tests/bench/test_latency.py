"""The time from ADC to gate through a wire: by hand where it can be said, else on the chip."""

import numpy as np
import pytest

from hil.__main__ import main
from hil.bench import latency
from hil.bench.latency import measure
from hil.bench.offsets import offsets
from hil.errors import DeviceError
from hil.experiment.load import load

MIGA6 = "miga6/all_on.toml"


def measured(configs, backend, *sets, duration_s=0.3):
    config = load(configs / MIGA6, sets)
    return measure(config, backend, duration_s)


def test_a_rig_without_a_force_to_switch_back_by_is_refused_in_one_line(configs, capsys):
    words = ["doctor", "--backend", "sim", "--loopback", str(configs / "isotonic/pulse.toml")]
    assert main(words) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert "--loopback switches a cell and reads a force" in said[0]


def test_cells_that_a_cards_lines_switch_are_measured_like_a_boards(configs):
    """A command acts from its tick on, is read back at the next, and so is the force."""
    config = load(configs / "miga6_lines/all_on.toml")
    found = measure(config, "sim", 0.3)
    assert found["p50_s"] == pytest.approx(0.001, abs=1e-9)
    offset = found["offsets"]["force of daq"]
    assert abs(offset["offset_s"]) <= 2.0 * offset["uncertainty_s"]


@pytest.mark.parametrize("delay_periods", [0, 1, 3])
def test_a_simulated_wire_takes_a_period_and_the_channels_delay(configs, delay_periods):
    """A command acts from its tick on and is read at the next, later by the channel's delay."""
    found = measured(
        configs, "sim", f"devices.daq.channels.force.sim.delay_s={0.001 * delay_periods}"
    )
    for figure in ("p50_s", "p99_s", "max_s"):
        assert found[figure] == pytest.approx(0.001 * (1 + delay_periods), abs=1e-9)
    assert found["p99_periods"] == pytest.approx(1 + delay_periods, abs=1e-6)


def test_the_boards_chip_and_the_cards_driver_answer_within_two_periods(configs):
    found = measured(configs, "emulated", duration_s=0.1)
    assert found["edges"] > 40
    assert 1.0 - 1e-6 <= found["p99_periods"] <= 2.0


@pytest.mark.parametrize("delay_s", [0.0, 0.001, 0.003])
@pytest.mark.parametrize("backend", ["sim", "emulated"])
def test_the_offset_between_card_and_board_is_the_delay_that_no_age_states(
    backend, delay_s, configs
):
    """A delay within the transducer is in no device's age; only a common edge shows it."""
    sets = f"devices.daq.channels.force.sim.delay_s={delay_s}"
    found = measured(configs, backend, sets, duration_s=0.1)["offsets"]["force of daq"]
    assert abs(found["offset_s"] - delay_s) <= 2.0 * found["uncertainty_s"]
    assert found["uncertainty_s"] <= 0.001 / np.sqrt(6.0)  # both within a period of 1 ms


def test_an_offset_has_the_uncertainty_of_two_rectangular_distributions():
    """By hand: intervals of 3 and 4 ms whose middles are 10 ms apart, with no scatter."""
    commanded_s = np.arange(10.0)
    one = np.column_stack((commanded_s, commanded_s + 0.003))
    two = np.column_stack((commanded_s + 0.0095, commanded_s + 0.0135))
    found = offsets(commanded_s, one, {"two": two, "deaf": two[:4]})
    assert list(found) == ["two"]
    assert found["two"]["offset_s"] == pytest.approx(0.010)
    assert found["two"]["uncertainty_s"] == pytest.approx(0.005 / np.sqrt(12.0))


def test_a_channel_that_follows_nothing_but_noise_is_said(configs, monkeypatch):
    monkeypatch.setattr(latency, "SHARE", 0.0)
    with pytest.raises(
        DeviceError, match="channel 'force' does not follow the gate of cell 'muscle"
    ):
        measured(configs, "sim")


@pytest.mark.slow
def test_the_doctor_tells_the_latency_of_a_wire(configs, capsys):
    words = ["doctor", "--loopback", str(configs / MIGA6), "--backend", "sim"]
    assert main(words) in (0, 5)
    said = capsys.readouterr().out.splitlines()
    (line,) = [ln for ln in said if "loop-back" in ln]
    (base,) = [ln for ln in said if "time base" in ln]
    assert "force of daq dates an edge 0.50 ms after the board" in base
    assert line.startswith("ok")
    assert "1.00 periods (board sim, daq sim)" in line


def test_a_loop_back_without_its_board_is_one_line_and_no_figure(configs, capsys):
    assert main(["doctor", "--loopback", str(configs / MIGA6)]) == 4
    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.splitlines()) == 1
