"""Logging to TDMS, read back by NI's description of the format alone."""

import struct

import nidaqmx
import numpy as np
import pytest
from nidaqmx.constants import LoggingMode, LoggingOperation


def read_tdms(data):
    """Samples by object path. Source: NI, "TDMS File Format Internal Structure"."""
    found, at = {}, 0
    while at < len(data):
        tag, flags, version, length, raw_at = struct.unpack_from("<4sIIQQ", data, at)
        assert (tag, version) == (b"TDSm", 4713)
        assert flags & 0b1110 == 0b1110  # meta data, new list of objects, raw data; contiguous
        assert not flags & (1 << 5 | 1 << 6)  # not interleaved, little-endian
        place, sizes = at + 28, []
        (n_objects,), place = struct.unpack_from("<I", data, place), place + 4
        for _ in range(n_objects):
            path, place = _text(data, place)
            (index,), place = struct.unpack_from("<I", data, place), place + 4
            if index != 0xFFFFFFFF:
                kind, dimension, n = struct.unpack_from("<IIQ", data, place)
                assert (index, kind, dimension) == (20, 10, 1)  # doubles
                place += 16
                sizes.append((path, n))
            (n_properties,), place = struct.unpack_from("<I", data, place), place + 4
            for _ in range(n_properties):
                _, place = _text(data, place)
                (kind,), place = struct.unpack_from("<I", data, place), place + 4
                place = _text(data, place)[1] if kind == 0x20 else place + {10: 8, 0x44: 16}[kind]
        assert place == at + 28 + raw_at
        for path, n in sizes:
            values = np.frombuffer(data, "<f8", n, place)
            found[path] = np.concatenate((found.get(path, np.empty(0)), values))
            place += 8 * n
        at += 28 + length
        assert place == at
    return found


def _text(data, place):
    (n,) = struct.unpack_from("<I", data, place)
    return data[place + 4 : place + 4 + n].decode(), place + 4 + n


def acquire(system, Task, path, mode, operation=LoggingOperation.CREATE_OR_REPLACE):
    system.feed("Dev1/ai0", 1.25)
    system.feed("Dev1/ai1", lambda t_s: t_s)
    begin_s = system.now_s
    with Task() as task:
        task.ai_channels.add_ai_voltage_chan("Dev1/ai0:1", min_val=-10.0, max_val=10.0)
        task.timing.cfg_samp_clk_timing(1000.0, samps_per_chan=20)
        task.in_stream.configure_logging(
            str(path), mode, group_name="a 'quoted' group", operation=operation
        )
        task.start()
        system.advance_to(begin_s + 0.007)
        system.advance_to(begin_s + 1.0)
        return task.read(20) if mode == LoggingMode.LOG_AND_READ else None


def test_the_file_holds_what_was_read(system, Task, tmp_path):
    path = tmp_path / "log.tdms"
    read = acquire(system, Task, path, LoggingMode.LOG_AND_READ)
    logged = read_tdms(path.read_bytes())
    assert list(logged) == [f"/'a ''quoted'' group'/'Dev1/ai{i}'" for i in range(2)]
    np.testing.assert_array_equal(np.stack(list(logged.values())), np.array(read))


def test_a_file_is_appended_to_replaced_or_refused_as_asked(system, Task, tmp_path):
    path = tmp_path / "log.tdms"
    acquire(system, Task, path, LoggingMode.LOG)
    acquire(system, Task, path, LoggingMode.LOG, LoggingOperation.OPEN)
    assert {len(v) for v in read_tdms(path.read_bytes()).values()} == {40}
    with pytest.raises(nidaqmx.DaqError) as caught:
        acquire(system, Task, path, LoggingMode.LOG, LoggingOperation.CREATE)
    assert caught.value.error_code == -201310
    acquire(system, Task, path, LoggingMode.LOG)
    assert {len(v) for v in read_tdms(path.read_bytes()).values()} == {20}


def test_what_is_only_logged_cannot_be_read(system, Task, tmp_path):
    with Task() as task:
        task.ai_channels.add_ai_voltage_chan("Dev1/ai0")
        task.timing.cfg_samp_clk_timing(1000.0, samps_per_chan=20)
        task.in_stream.configure_logging(str(tmp_path / "log.tdms"), LoggingMode.LOG)
        with pytest.raises(nidaqmx.DaqError) as caught:
            task.read(1)
    assert caught.value.error_code == -201301


def test_a_log_goes_on_in_files_of_a_set_length(system, Task, tmp_path):
    """NI-DAQmx Help, "Logging.SampsPerFile": the following files are numbered."""
    with Task() as task:
        task.ai_channels.add_ai_voltage_chan("Dev1/ai0")
        task.timing.cfg_samp_clk_timing(1000.0, samps_per_chan=25)
        task.in_stream.configure_logging(
            str(tmp_path / "data.tdms"), nidaqmx.constants.LoggingMode.LOG_AND_READ
        )
        task.in_stream.logging_samps_per_file = 10
        task.start()
        system.advance_to(0.1)
        task.stop()
    files = sorted(file.name for file in tmp_path.iterdir())
    assert files == ["data.tdms", "data_0001.tdms", "data_0002.tdms"]
    sizes = [file.stat().st_size for file in sorted(tmp_path.iterdir())]
    assert sizes[0] > sizes[2]  # the last one holds five samples
