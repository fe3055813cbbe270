"""Timing of digital pattern cards: pipelined clocks, handshakes and bursts."""

from __future__ import annotations

from nidaqmx.constants import SampleTimingType, TriggerType

from simdaq import errors
from simdaq.control import retime
from simdaq.errors import DaqmxError
from simdaq.system import System
from simdaq.task import Task
from simdaq.timing import Timing

T = SampleTimingType


def _pattern_task(system: System, handle: int, kind: SampleTimingType) -> Task:
    """The task, on a card that has such a timing.

    Raises
    ------
    DaqmxError
        The card has none.
    """
    task = system.task(handle)
    if task.kind not in ("di", "do") or not task.card.model.handshakes:
        raise DaqmxError(
            errors.BAD_VALUE, Property="SampTimingType", Requested_Value=kind.value,
            Task_Name=task.name,
        )  # fmt: skip
    return task


def cfg_pipelined_samp_clk_timing(
    system: System, *, task: int, source: str, rate: float, active_edge: int, sample_mode: int,
    samps_per_chan: int,
) -> None:  # fmt: skip
    """By a sample clock whose samples travel with it; a simulated cable has no length."""
    _pattern_task(system, task, T.PIPELINED_SAMPLE_CLOCK)
    retime(
        system, task,
        Timing(T.PIPELINED_SAMPLE_CLOCK.value, rate, source, active_edge, sample_mode,
               int(samps_per_chan)),
    )  # fmt: skip


def cfg_handshaking_timing(
    system: System, *, task: int, sample_mode: int, samps_per_chan: int
) -> None:
    """By a handshake; no peripheral answers on a simulated card."""
    _pattern_task(system, task, T.HANDSHAKE)
    retime(system, task, Timing(T.HANDSHAKE.value, mode=sample_mode, samples=int(samps_per_chan)))


def cfg_burst_handshaking_timing_import_clock(
    system: System, *, task: int, sample_mode: int, samps_per_chan: int, sample_clk_rate: float,
    sample_clk_src: str, sample_clk_active_edge: int, pause_when: int,
    ready_event_active_level: int,
) -> None:  # fmt: skip
    """By bursts of a peripheral's clock."""
    owner = _pattern_task(system, task, T.BURST_HANDSHAKE)
    retime(
        system, task,
        Timing(T.BURST_HANDSHAKE.value, sample_clk_rate, sample_clk_src, sample_clk_active_edge,
               sample_mode, int(samps_per_chan)),
    )  # fmt: skip
    _burst(owner, pause_when, ready_event_active_level)


def cfg_burst_handshaking_timing_export_clock(
    system: System, *, task: int, sample_mode: int, samps_per_chan: int, sample_clk_rate: float,
    sample_clk_outp_term: str, sample_clk_pulse_polarity: int, pause_when: int,
    ready_event_active_level: int,
) -> None:  # fmt: skip
    """By bursts of the card's own clock."""
    owner = _pattern_task(system, task, T.BURST_HANDSHAKE)
    retime(
        system, task,
        Timing(T.BURST_HANDSHAKE.value, sample_clk_rate, mode=sample_mode,
               samples=int(samps_per_chan)),
    )  # fmt: skip
    owner.properties["exported_signal", "samp_clk_output_term"] = owner.destination(
        sample_clk_outp_term
    )
    owner.properties["exported_signal", "samp_clk_pulse_polarity"] = sample_clk_pulse_polarity
    _burst(owner, pause_when, ready_event_active_level)


def _burst(task: Task, pause_when: int, ready_event_active_level: int) -> None:
    """The peripheral pauses the burst by a level, and the card says that it is ready by another."""
    task.properties["trig", "pause_trig_type"] = TriggerType.DIGITAL_LEVEL.value
    task.properties["trig", "pause_dig_lvl_when"] = pause_when
    task.properties["exported_signal", "rdy_for_xfer_event_lvl_active_lvl"] = (
        ready_event_active_level
    )
