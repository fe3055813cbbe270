"""Values of properties that a program has not set (NI-DAQmx Help, "Properties").

The first pattern that matches a property's full name (owner.name) counts.
"""

from __future__ import annotations

import re
from typing import Any

from nidaqmx.constants import (
    Coupling,
    DataTransferActiveTransferMode,
    DigitalPatternCondition,
    DigitalWidthUnits,
    Edge,
    ExportAction,
    InputDataTransferCondition,
    Level,
    LoggingMode,
    OutputDataTransferCondition,
    OverflowBehavior,
    Polarity,
    ReadRelativeTo,
    RegenerationMode,
    ResolutionType,
    Slope,
    Timescale,
    TriggerType,
    UnderflowBehavior,
    WaitMode,
    WindowTriggerCondition1,
    WriteRelativeTo,
)

INPUT, OUTPUT = InputDataTransferCondition, OutputDataTransferCondition
NONE = TriggerType.NONE.value
EPOCH = (0, 0)  # 1904-01-01 as (2**-64 s, s)
PATTERNS: tuple[tuple[str, Any], ...] = (
    # Filters and synchronisation of digital inputs are off.
    (r"chan\.c[io]_.*_dig_fltr_timebase_src", "100MHzTimebase"),
    (r".*_dig_fltr_(enable)", False),
    (r".*_dig_fltr_(min_pulse_width|timebase_rate)", 0.0),
    (r".*_dig_fltr_timebase_src", ""),
    (r".*_dig_sync_enable", False),
    # Reading and writing.
    (r"read\.auto_start", True),
    (r"read\.read_all_avail_samp", False),
    (r"read\.relative_to", ReadRelativeTo.CURRENT_READ_POSITION.value),
    (r"write\.relative_to", WriteRelativeTo.CURRENT_WRITE_POSITION.value),
    (r"(read|write)\.offset", 0),
    (r"(read|write)\.wait_mode", WaitMode.WAIT_FOR_INTERRUPT.value),
    (r"(read|write)\.sleep_time", 0.001),
    (r"write\.regen_mode", RegenerationMode.ALLOW_REGENERATION.value),
    (r"read\.logging_mode", LoggingMode.OFF.value),
    (r"read\.logging_(file_preallocation_size|samps_per_file)", 0),
    (r"read\.logging_file_write_size", 0xFFFFFFFF),
    (r"read\.logging_pause", False),
    (r"read\.logging_(file_path|tdms_group_name)", ""),
    (r"(read|write)\..*_(exist|detected|overflowed)", False),
    (r"(read|write)\.(.*_chans|.*_chans_details|devs_with_.*)", ""),
    # Buffers.
    (r"buffer\.input_onbrd_buf_size", 4095),
    (r"buffer\.output_onbrd_buf_size", 8191),
    # Timing.
    (r"timing\.ref_clk_src", "None"),
    (r"timing\.ref_clk_rate", 10.0e6),
    (r"timing\.samp_clk_timebase_active_edge", Edge.RISING.value),
    (r"timing\.ai_conv_active_edge", Edge.RISING.value),
    (r"timing\.samp_clk_overrun_behavior", OverflowBehavior.STOP_TASK_AND_ERROR.value),
    (r"timing\..*_underflow_behavior", UnderflowBehavior.HALT_OUTPUT_AND_ERROR.value),
    (r"timing\.first_samp_timestamp_enable", True),
    (r"timing\.simultaneous_ao_enable", False),
    (r"timing\.change_detect_di_tristate", True),
    (r"timing\.change_detect_di_.*_chans", ""),
    (r"timing\..*_timescale", Timescale.USE_HOST.value),
    (r"timing\.samp_timing_engine", 0),
    # Triggers.
    (r"trig\..*_timescale", Timescale.USE_HOST.value),
    (r"trig\.(.*_trig_type|triggers_sync_type)", NONE),
    (r"trig\..*_(when|timestamp_val)_?time", EPOCH),
    (r"trig\..*_time_when", EPOCH),
    (r"trig\..*_timestamp_enable", False),
    (r"trig\..*_retriggerable", False),
    (r"trig\.reference_auto_trig(ger)?_?(enable|ed)", False),
    (r"trig\..*_(hyst|delay|lvl|top|btm|win)", 0.0),
    (r"trig\.start_delay_units", DigitalWidthUnits.SECONDS.value),
    (r"trig\..*_max_num_trigs_to_detect", 0),
    (r"trig\..*_coupling", Coupling.DC.value),
    (r"trig\..*_slope", Slope.RISING.value),
    (r"trig\..*_edge_edge", Edge.RISING.value),
    (r"trig\..*pattern_(trig_)?when", DigitalPatternCondition.PATTERN_MATCHES.value),
    (r"trig\.pause_dig_lvl_when", Level.HIGH.value),
    (r"trig\..*_win_trig_when", WindowTriggerCondition1.ENTERING_WINDOW.value),
    (r"trig\..*_(src|srcs|pattern|term)", ""),
    (r"trig\..*_(levels|lvls|hysts|slopes|couplings)", []),
    # Exported signals.
    (r"exported_signal\..*_output_term", ""),
    (r"exported_signal\..*_output_behavior", ExportAction.PULSE.value),
    (r"exported_signal\..*_pulse_polarity", Polarity.ACTIVE_HIGH.value),
    (r"exported_signal\..*_active_lvl", Polarity.ACTIVE_HIGH.value),
    (r"exported_signal\..*_(delay|width|offset)", 0.0),
    (r"exported_signal\..*_idle_state", Level.LOW.value),
    # Watchdog.
    (r"watchdog\.expir_trig_dig_edge_edge", Edge.RISING.value),
    (r"watchdog\.expir_trig_dig_edge_src", ""),
    (r"watchdog\.expir_trig_trig_type", NONE),
    (r"watchdog\.expir_trig_trig_on_network_conn_loss", False),
    (r"watchdog\.timeout", 10.0),
    # Channels.
    (r"chan\.(description|c[io]_.*_term|.*_custom_scale_name)", ""),
    (r"chan\.ai_coupling", Coupling.DC.value),
    (r"chan\.ai_lossy_lsb_removal_compressed_samp_size", 16),
    (r"chan\.ai_resolution_units", ResolutionType.BITS.value),
    (r"chan\.[ad][io]_data_xfer_mech", DataTransferActiveTransferMode.DMA.value),
    (r"chan\.[adc]i_data_xfer_req_cond", INPUT.ON_BOARD_MEMORY_NOT_EMPTY.value),
    (r"chan\.[ad]o_data_xfer_req_cond", OUTPUT.ON_BOARD_MEMORY_LESS_THAN_FULL.value),
    (r"chan\.ai_bridge_(poly_.*_coeff|table_.*_vals)", []),
    (r"chan\.ai_bridge_shunt_cal_gain_adjust", 1.0),
    (r"chan\.ai_bridge_initial_(ratio|voltage)", 0.0),
    (r"chan\.ci_prescaler", 1),
    (r"chan\.c[io]_ctr_timebase_src", "100MHzTimebase"),
    (r"chan\.c[io]_ctr_timebase_active_edge", Edge.RISING.value),
    (r"chan\.ci_.*_(starting|active|first|second)_edge", Edge.RISING.value),
    (r"chan\.co_(constrained_gen_mode|auto_incr_cnt)", 0),
    (r"chan\.(ai|ao|di|do|ci|co)_(dither|lowpass|filter|mem_map|chop|excit_use_for_scaling|"
     r"excit_use_multiplexed|enhanced_alias_rejection|open_.*_detect|overcurrent_detect|"
     r"power_supply_fault_detect|input_limits_fault_detect|invert_lines|remove_filter_delay|"
     r"excit_idle|use_only_onbrd_mem|enable_glitch|idle_output|tristate|"
     r"bridge_shunt_cal|force_read_from_chan|samp_and_hold|teds_is_teds).*(enable)?$", False),
)  # fmt: skip
_COMPILED = [(re.compile(pattern), value) for pattern, value in PATTERNS]


def default(owner: str, name: str) -> tuple[bool, Any]:
    """Whether a property has a default, and which."""
    full = f"{owner}.{name}"
    for pattern, value in _COMPILED:
        if pattern.fullmatch(full):
            return True, value
    return False, None
