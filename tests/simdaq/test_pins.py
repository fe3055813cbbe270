"""Pins with two names, pins of a chassis' modules, and what goes in and out at them."""

import nidaqmx
import numpy as np
import pytest
from nidaqmx.constants import (
    AcquisitionType,
    DigitalDriveType,
    Level,
    LineGrouping,
    TriggerType,
)

from simdaq import System, install, scene_file


def counts(task, terminal, counter="Dev1/ctr1"):
    task.ci_channels.add_ci_count_edges_chan(counter).ci_count_edges_term = terminal
    task.start()


def test_a_counter_hears_the_line_that_is_its_pin(system, Task):
    """PFI 3 and P1.3 are one pin ("X Series User Manual", "PFI")."""
    with Task() as line, Task() as counter:
        line.do_channels.add_do_chan("Dev1/port1/line3")
        counts(counter, "/Dev1/PFI3")
        for k, high in enumerate((True, False, True, True, False, True)):
            system.advance_to(0.01 * (k + 1))
            line.write(high)
        assert counter.read() == 3


def test_a_line_reads_the_pulses_of_the_counter_on_its_pin(system, Task):
    with Task() as pulses, Task() as line:
        pulses.co_channels.add_co_pulse_chan_time("Dev1/ctr0", high_time=0.25, low_time=0.75)
        line.di_channels.add_di_chan("Dev1/port2/line4")  # PFI 12
        pulses.start()
        system.advance_to(0.1)
        assert line.read() is True
        system.advance_to(0.3)
        assert line.read() is False


def test_what_is_fed_to_a_pin_is_there_under_both_names(system, Task):
    system.feed("Dev1/PFI3", 1.0)
    with Task() as line:
        line.di_channels.add_di_chan("Dev1/port1/line3")
        assert line.read() is True


def test_pulses_that_start_paused_wait_for_the_line_and_pause_with_it(system, Task):
    """1 kHz from 0.2 s to 0.4 s are 200 pulses."""
    with Task() as line, Task() as pulses, Task() as counter:
        line.do_channels.add_do_chan("Dev1/port1/line3")
        line.write(False)
        pulses.co_channels.add_co_pulse_chan_freq("Dev1/ctr0", freq=1000.0)
        pulses.timing.cfg_implicit_timing(sample_mode=AcquisitionType.CONTINUOUS)
        pause = pulses.triggers.pause_trigger
        pause.trig_type = TriggerType.DIGITAL_LEVEL
        pause.dig_lvl_src, pause.dig_lvl_when = "/Dev1/PFI3", Level.LOW
        counts(counter, "/Dev1/Ctr0InternalOutput")
        pulses.start()
        system.advance_to(0.2)
        assert counter.read() == 0
        line.write(True)
        system.advance_to(0.4)
        assert counter.read() == pytest.approx(200, abs=1)
        line.write(False)
        before = counter.read()
        system.advance_to(0.6)
        assert counter.read() == before


@pytest.fixture
def chassis():
    found = System("held")
    found.add("cDAQ-9185", "cDAQ1")
    for slot in (1, 2):
        found.add("NI 9401", f"cDAQ1Mod{slot}", chassis="cDAQ1", slot=slot)
    install(found)
    return found


def test_a_modules_lines_are_pins_of_the_counters_of_its_chassis(chassis):
    with nidaqmx.Task() as pulses, nidaqmx.Task() as counter, nidaqmx.Task() as other:
        out = pulses.co_channels.add_co_pulse_chan_freq("cDAQ1Mod1/ctr0", freq=1000.0)
        out.co_pulse_term = "/cDAQ1Mod1/PFI4"
        pulses.timing.cfg_implicit_timing(samps_per_chan=100)
        counts(counter, "/cDAQ1Mod1/PFI4", "cDAQ1Mod1/ctr1")
        counts(other, "/cDAQ1Mod2/PFI4", "cDAQ1Mod1/ctr2")
        pulses.start()
        chassis.advance_to(1.0)
        assert counter.read() == 100
        assert other.read() == 0


def test_a_clocked_input_reads_lines_that_it_leaves_driven(system, Task):
    words = np.arange(50, dtype=np.uint32)
    with Task() as out, Task() as back:
        for task, add in ((out, out.do_channels.add_do_chan), (back, back.di_channels.add_di_chan)):
            add("Dev1/port0/line0:7", line_grouping=LineGrouping.CHAN_FOR_ALL_LINES)
            task.timing.cfg_samp_clk_timing(1000.0, samps_per_chan=50)
        back.di_channels.all.di_tristate = False
        out.write(words)
        out.start()
        back.start()
        system.advance_to(0.1)
        found = np.array(back.read(50))
    assert set(found) <= set(words)
    assert np.all(np.diff(found) >= 0)
    assert found[-1] >= 48


def test_a_square_wave_of_a_scene_is_counted(system, Task, tmp_path):
    file = tmp_path / "scene.toml"
    file.write_text('[signals."Dev1/PFI0"]\nkind = "square"\nfrequency_Hz = 100.0\n')
    scene_file.apply(system, file)
    system.advance_to(0.005)
    with Task() as counter:
        counts(counter, "/Dev1/PFI0")
        system.advance_to(1.005)
        assert counter.read() == 100


def test_a_counter_refuses_what_its_card_cannot_measure(system, Task):
    """USB-6009: counts edges only (its data sheet). Code: PHYS_CHAN_MEAS_TYPE."""
    system.add("USB-6009", "Dev2")
    with Task() as task, pytest.raises(nidaqmx.DaqError) as refused:
        task.ci_channels.add_ci_freq_chan("Dev2/ctr0")
    assert refused.value.error_code == -200431


def test_lines_drive_as_the_card_can(system, Task):
    """Source: NI-DAQmx, "Push-Pull and Open Collector Mode"."""
    for model, name in (("USB-6008", "Dev2"), ("USB-6001", "Dev3")):
        system.add(model, name)
    with Task() as task:
        fixed = task.do_channels.add_do_chan("Dev2/port0/line0")
        assert fixed.do_output_drive_type == DigitalDriveType.OPEN_COLLECTOR
        with pytest.raises(nidaqmx.DaqError):
            fixed.do_output_drive_type = DigitalDriveType.ACTIVE_DRIVE
    with Task() as task:
        free = task.do_channels.add_do_chan("Dev3/port0/line0")
        assert free.do_output_drive_type == DigitalDriveType.ACTIVE_DRIVE
        free.do_output_drive_type = DigitalDriveType.OPEN_COLLECTOR
        assert free.do_output_drive_type == DigitalDriveType.OPEN_COLLECTOR


def test_a_chassis_has_three_timing_engines_for_clocked_inputs():
    """Source: "cDAQ-9185/9189 User Manual", "Analog Input Timing Engines"."""
    system = System("held")
    system.add("cDAQ-9185", "cDAQ1")
    install(system)
    tasks = [nidaqmx.Task() for _ in range(4)]
    for slot, task in enumerate(tasks, start=1):
        system.add("NI 9205", f"cDAQ1Mod{slot}", chassis="cDAQ1", slot=slot)
        task.ai_channels.add_ai_voltage_chan(f"cDAQ1Mod{slot}/ai0")
        task.timing.cfg_samp_clk_timing(100.0, sample_mode=AcquisitionType.CONTINUOUS)
    for task in tasks[:3]:
        task.start()
    with pytest.raises(nidaqmx.DaqError) as refused:
        tasks[3].start()
    tasks[0].stop()
    tasks[3].start()
    for task in tasks:
        task.close()
    assert refused.value.error_code == -50103
