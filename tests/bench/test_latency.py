"""The time from ADC to gate through a wire: by hand where it can be said, else on the chip."""

import pytest

from hil.__main__ import main
from hil.bench import latency
from hil.bench.latency import measure
from hil.errors import DeviceError
from hil.experiment.load import load

MIGA6 = "miga6/all_on.toml"


def measured(configs, backend, *sets, duration_s=0.3):
    config = load(configs / MIGA6, sets)
    return measure(config, dict.fromkeys(config.tables.devices, backend), duration_s)


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


def test_a_channel_that_follows_nothing_but_noise_is_said(configs, monkeypatch):
    monkeypatch.setattr(latency, "SHARE", 0.0)
    with pytest.raises(
        DeviceError, match="channel 'force' does not follow the gate of cell 'muscle"
    ):
        measured(configs, "sim")


def test_the_doctor_tells_the_latency_of_a_wire(configs, capsys):
    words = ["doctor", "--loopback", str(configs / MIGA6), "--backend", "sim"]
    assert main(words) in (0, 5)
    (line,) = [ln for ln in capsys.readouterr().out.splitlines() if "loop-back" in ln]
    assert line.startswith("ok")
    assert "1.00 periods (board sim, daq sim)" in line


def test_a_loop_back_without_its_board_is_one_line_and_no_figure(configs, capsys):
    assert main(["doctor", "--loopback", str(configs / MIGA6)]) == 4
    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.splitlines()) == 1
