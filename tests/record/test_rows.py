"""Every column and attribute of a recording against what CONTRACT says of it."""

import calendar
import json
import struct
import time
import tomllib

import h5py
import numpy as np
import pytest
import scipy.io
import scipy.signal
import tomli_w
import zstandard
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

import hil
from hil.__main__ import main
from hil.loop.guard import FAULTS

TIMES = ("busy_s", "_stage_s")


def columns_of(path):
    with h5py.File(path) as file:
        return {name: data[:] for name, data in file["ticks"].items()}


def text(value):
    return value.decode() if isinstance(value, bytes) else str(value)


@pytest.fixture(scope="module")
def runs(configs, tmp_path_factory):
    """The same second of a pid run with seeds 5, 5 and 6."""
    folder = tmp_path_factory.mktemp("seeds")
    config = hil.load(configs / "miga6/pid.toml", ("experiment.duration_s=1.0",))
    return [
        columns_of(hil.run(config, seed=seed, out=folder / f"{i}.h5"))
        for i, seed in enumerate((5, 5, 6))
    ]


def test_the_same_seed_repeats_every_value_but_the_times_spent(runs):
    first, second, _ = runs
    assert first.keys() == second.keys()
    for name in first:
        if not name.endswith(TIMES):
            np.testing.assert_array_equal(first[name], second[name], err_msg=name)


def test_another_seed_gives_other_noise(runs):
    first, _, other = runs
    differing = first["force_measured_N"] != other["force_measured_N"]
    assert differing.mean() > 0.5


def test_the_virtual_clock_is_never_late(runs):
    for columns in runs:
        assert not columns["late_s"].any()
        np.testing.assert_array_equal(columns["t_s"], np.arange(1000) * 0.001)


def test_the_command_of_a_tick_is_reported_at_the_next(runs, all_on):
    for columns in (*runs, columns_of(all_on)):
        commanded, reported = columns["cells_commanded"], columns["cells_reported"]
        np.testing.assert_array_equal(reported[1:], commanded[:-1])
        assert not reported[0].any()
        assert np.diff(commanded, axis=0).any()


def test_the_schedule_acts_from_its_ticks_on(all_on):
    columns = columns_of(all_on)
    on = columns["t_s"] < 3.0 - 1e-9
    assert columns["cells_commanded"].dtype == np.uint8
    assert columns["cells_commanded"].shape == (5000, 6)
    np.testing.assert_array_equal(columns["cells_commanded"].all(axis=1), on)
    np.testing.assert_array_equal(columns["cells_commanded"].any(axis=1), on)


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize("experiment", ["miga6/all_on", "miga6/pid", "array14/groups"])
def test_the_twin_is_the_stored_model_run_on_the_reported_cells(configs, tmp_path, experiment):
    path = hil.run(configs / f"{experiment}.toml", seed=3, out=tmp_path / "run.h5")
    with h5py.File(path) as file:
        A, B, C, D = (file[f"model/{name}"][:] for name in "ABCD")
        outputs = [text(name) for name in file["model/outputs"][:]]
        inputs = [text(name) for name in file["model/inputs"][:]]
        F_N = file["model/force_on_N"][:]
        signal = text(file.attrs["force_signal"])
        cells = file["ticks/cells_reported"][:]
        found = file["ticks/force_model_N"][:]
    n_cells = cells.shape[1]
    assert all(".F" in name for name in inputs[:n_cells])
    row = outputs.index(signal)
    system = (A, B[:, :n_cells], C[[row]], D[[row], :n_cells])
    a, b, c, d, _ = scipy.signal.cont2discrete(system, 0.001, "zoh")
    # what the boards report at t_k was on from t_(k-1) to t_k, and the output just before the
    # command of tick k acts still has it as its input
    x = np.zeros(len(A))
    wanted = np.empty(len(cells))
    wanted[0] = 0.0
    for k in range(1, len(cells)):
        u = cells[k] * F_N
        x = a @ x + b @ u
        wanted[k] = (c @ x + d @ u)[0]
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9 * np.abs(wanted).max())


def test_engineering_units_are_the_raw_readings_scaled(all_on, configs):
    columns = columns_of(all_on)
    channel = tomllib.loads((configs / "miga6/rig.toml").read_text())["devices"]["daq"]["channels"]
    scale = channel["force"]["newtons_per_V"]
    np.testing.assert_allclose(columns["force_measured_N"], scale * columns["force.raw_V"])
    counts = columns["force.raw_V"] / (20.0 / 2**16)
    np.testing.assert_allclose(counts, np.rint(counts), atol=1e-9)


def test_nothing_is_invalid_or_old_in_an_undisturbed_run(all_on):
    columns = columns_of(all_on)
    assert not columns["daq_age_s"].any()
    np.testing.assert_array_equal(columns["daq_t_s"], columns["t_s"])
    # a board's answer is as old as the command before, by both clocks
    np.testing.assert_allclose(columns["board_age_s"][1:], 0.001, atol=1e-12)
    np.testing.assert_allclose(columns["board_t_s"], columns["t_s"] - columns["board_age_s"])
    assert (columns["valid_bits"] == 0b11).all()
    assert not columns["fault_bits"].any()


def test_lost_readings_are_marked_and_never_repeated(configs, tmp_path):
    config = hil.load(
        configs / "miga6/all_on.toml",
        (
            "experiment.duration_s=1.0",
            "devices.daq.channels.force.sim.reading_lost_probability=0.3",
            "devices.board.sim.reply_lost_probability=0.2",
        ),
    )
    columns = columns_of(hil.run(config, out=tmp_path / "run.h5"))
    read = columns["valid_bits"] & 1 == 1
    answered = columns["valid_bits"] & 2 == 2
    np.testing.assert_array_equal(np.isfinite(columns["force_measured_N"]), read)
    np.testing.assert_array_equal(np.isfinite(columns["force.raw_V"]), read)
    np.testing.assert_array_equal((columns["cells_reported"] == 255).all(axis=1), ~answered)
    # 1000 draws each; four standard deviations
    assert abs(np.mean(~read) - 0.3) < 0.06
    assert abs(np.mean(~answered) - 0.2) < 0.06
    last_s = np.maximum.accumulate(np.where(read, columns["t_s"], 0.0))
    np.testing.assert_allclose(columns["daq_age_s"], columns["t_s"] - last_s, atol=1e-12)
    np.testing.assert_array_equal(columns["daq_t_s"], last_s)


def test_every_column_says_what_it_is(all_on):
    roles = {"measured", "commanded", "model", "reference", "state", "timing", "fault"}
    with h5py.File(all_on) as file:
        ticks = file["ticks"]
        always = {"t_s", "late_s", "busy_s", "fault_bits", "valid_bits", "force_measured_N"}
        always |= {"force_model_N", "force_estimate_N", "force_reference_N"}
        always |= {"cells_commanded", "cells_reported", "board_age_s", "board_t_s", "daq_age_s"}
        assert always <= set(ticks)
        for name, dataset in ticks.items():
            assert len(dataset) == 5000
            assert text(dataset.attrs["role"]) in roles
            assert text(dataset.attrs["description"])
            units = text(dataset.attrs["units"])
            ending = name.rsplit("_", 1)[-1]
            spelt = {"s": "s", "N": "N", "V": "V", "A": "A", "C": "degC"}
            assert units == spelt.get(ending, "1"), name
        for name in ("fault_bits", "valid_bits"):
            assert ticks[name].dtype == np.uint64
        assert [text(f) for f in ticks["fault_bits"].attrs["flags"]] == list(FAULTS)
        assert [text(f) for f in ticks["valid_bits"].attrs["flags"]] == ["force", "board"]
        for name in ("force_measured_N", "force.raw_V", "cells_reported"):
            assert text(ticks[name].attrs["source"]) == "SIMULATED"


def test_the_file_says_where_it_comes_from(all_on):
    with h5py.File(all_on) as file:
        attrs = {key: text(value) for key, value in file.attrs.items()}
        assert attrs["format"] == "hil-run/1"
        assert attrs["outcome"] == "complete"
        assert (attrs["backend"], attrs["clock"], attrs["seed"]) == ("sim", "virtual", "1")
        assert "SIMULATED" in attrs["simulated"]
        assert {"numpy", "h5py", "python"} <= set(json.loads(attrs["software"]))
        assert attrs["created_utc"].endswith("+00:00")
        stored = tomllib.loads(attrs["experiment"])
        assert stored["guard"]["force_max_N"] == 9.0
        assert stored["model"]["arrays"]["muscle"]["cell"][0]["k_se_N_per_m"] == 386.52
        assert stored["plant"]["arrays"]["muscle"]["cell"][0]["k_se_N_per_m"] == 390.0
        assert file["calibration/force"].attrs["newtons_per_V"] == 0.95
        assert [text(n) for n in file["inputs"]["name"]] == ["start"]
        assert file["events"].dtype.names == ("t_s", "level", "source", "text")
        # three masses that move and six cells with one internal state each
        assert file["model/A"].shape == (12, 12)


def test_the_recording_opens_as_a_labelled_dataset(all_on):
    run = hil.open_run(all_on)
    assert run.force_measured_N.attrs["units"] == "N"
    assert run.cells_commanded.dims == ("tick", "cell")
    assert run.cell.values.tolist() == [f"muscle.{n}" for n in range(1, 7)]
    assert run.attrs["outcome"] == "complete"
    assert "started on the virtual clock" in run.event_text.values.tolist()


def test_the_export_has_every_value_and_says_simulated(all_on, tmp_path, capsys):
    import csv

    out = tmp_path / "run.csv"
    assert main(["export", str(all_on), "--to", "csv", "--out", str(out)]) == 0
    with out.open() as file:
        rows = list(csv.DictReader(file))
    columns = columns_of(all_on)
    assert len(rows) == 5000
    for name in ("t_s", "force_measured_N", "force_model_N"):
        np.testing.assert_array_equal([float(row[name]) for row in rows], columns[name])
    for cell in range(6):
        found = [int(row[f"cells_reported.muscle.{cell + 1}"]) for row in rows]
        np.testing.assert_array_equal(found, columns["cells_reported"][:, cell])
    assert {row["source"] for row in rows} == {"SIMULATED"}


SEEDS = range(12)


def whiteness(configs, folder, seeds):
    white = []
    for seed in seeds:
        path = hil.run(configs / "miga6/all_on.toml", seed=seed, out=folder / f"{seed}.h5")
        summary = json.loads(hil.open_run(path).attrs["summary"])
        white.append(summary["force"]["residual_white"])
    return white


def without_plant(rigs):
    for path in rigs.glob("*/rig.toml"):
        table = tomllib.loads(path.read_text())
        table.pop("plant", None)
        path.write_text(tomli_w.dumps(table))
    return rigs


@pytest.mark.slow
def test_with_plant_and_model_alike_the_residual_is_sensor_noise(rigs, tmp_path):
    white = whiteness(without_plant(rigs), tmp_path, SEEDS)
    # at a stated false-alarm rate of 1 %, 2 or more of 12 have a chance of 0.6 %
    assert white.count(False) <= 1


@pytest.mark.slow
def test_with_the_shipped_plant_the_residual_is_more_than_noise(configs, tmp_path):
    assert not any(whiteness(configs, tmp_path, range(3)))


def test_matlab_reads_every_value_with_its_unit(all_on, tmp_path):
    out = tmp_path / "run.mat"
    assert main(["export", str(all_on), "--to", "mat", "--out", str(out)]) == 0
    read = scipy.io.loadmat(out, simplify_cells=True)
    columns = columns_of(all_on)
    assert len(read["ticks"]) == len(columns)
    for name, values in columns.items():
        np.testing.assert_array_equal(read["ticks"][name.replace(".", "_")], values)
    assert read["units"]["force_measured_N"] == "N"
    assert read["units"]["muscle_1_temperature_C"] == "degC"
    assert read["attributes"]["simulated"] == "SIMULATED: board, daq"
    assert list(read["cells"]) == [f"muscle.{n}" for n in range(1, 7)]


def message_class(schema):
    """The class that Google's library makes of a schema in an MCAP file."""
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(schema.data).file:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(schema.name))


@pytest.fixture(scope="module")
def in_mcap(all_on, tmp_path_factory):
    """What mcap's own reader finds in an exported recording: messages by topic, and the rest."""
    from mcap.reader import make_reader

    out = tmp_path_factory.mktemp("mcap") / "run.mcap"
    assert main(["export", str(all_on), "--to", "mcap", "--out", str(out)]) == 0
    with out.open("rb") as file:
        reader = make_reader(file, validate_crcs=True)
        by_topic, classes = {}, {}
        for schema, channel, message in reader.iter_messages():
            if channel.message_encoding == "json":
                assert schema.encoding == "jsonschema"
                row = json.loads(message.data, parse_constant=lambda word: pytest.fail(word))
            else:
                assert (schema.encoding, channel.message_encoding) == ("protobuf", "protobuf")
                if schema.name not in classes:
                    classes[schema.name] = message_class(schema)
                row = classes[schema.name].FromString(message.data)
            by_topic.setdefault(channel.topic, []).append((message, schema, row))
        metadata = {entry.name: entry.metadata for entry in reader.iter_metadata()}
        summary = reader.get_summary()
    return by_topic, metadata, summary, out


def test_an_mcap_reader_gets_every_value_back(in_mcap, all_on):
    by_topic = in_mcap[0]
    columns = columns_of(all_on)
    with h5py.File(all_on) as file:
        roles = {name: text(data.attrs["role"]) for name, data in file["ticks"].items()}
    for name, values in columns.items():
        if name == "t_s":
            continue
        rows = [row for _, _, row in by_topic[f"/{roles[name]}"]]
        found = [getattr(row, name.replace(".", "_")) for row in rows]
        np.testing.assert_array_equal(np.array(found, values.dtype), values, err_msg=name)
        np.testing.assert_array_equal([row.t_s for row in rows], columns["t_s"])
    residual = columns["force_measured_N"] - columns["force_model_N"]
    found = [row.force_residual_N for _, _, row in by_topic["/residual"]]
    np.testing.assert_array_equal(found, residual)
    third = [row.muscle_3.commanded for _, _, row in by_topic["/cells"]]
    np.testing.assert_array_equal(third, columns["cells_commanded"][:, 2])
    assert {(row.state, *row.faults) for _, _, row in by_topic["/guard"]} == {("running",)}


def test_an_mcap_file_has_times_schemas_units_and_where_it_comes_from(in_mcap, all_on):
    by_topic, metadata, _, _ = in_mcap
    with h5py.File(all_on) as file:
        attrs = {key: text(value) for key, value in file.attrs.items()}
    whole, milli = attrs["created_utc"][:-6].split(".")
    start_ns = calendar.timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) * 10**9
    start_ns += int(milli) * 10**6
    times_ns = np.array([message.log_time for message, _, _ in by_topic["/measured"]])
    np.testing.assert_array_equal(times_ns - start_ns, np.arange(5000) * 1_000_000)
    schema = by_topic["/measured"][0][1]
    file = descriptor_pb2.FileDescriptorSet.FromString(schema.data).file[0]
    comments = {
        file.message_type[place.path[1]].field[place.path[3]].name: place.leading_comments
        for place in file.source_code_info.location
    }
    assert schema.name == "hil.measured"
    assert comments["force_measured_N"].endswith(", N; SIMULATED")
    assert metadata["recording"]["simulated"] == "SIMULATED: board, daq"
    assert metadata["recording"]["experiment"] == attrs["experiment"]
    assert json.loads(metadata["recording"]["cells"])[0] == "muscle.1"


def test_an_mcap_reader_finds_messages_by_time_and_counts_them(in_mcap):
    """The reader takes the index at the end of the file; its records are read by mcap too."""
    from mcap.opcode import Opcode
    from mcap.reader import make_reader
    from mcap.records import MessageIndex
    from mcap.stream_reader import StreamReader

    by_topic, _, summary, out = in_mcap
    counts = {summary.channels[n].topic: k for n, k in
              summary.statistics.channel_message_counts.items()}  # fmt: skip
    assert counts == {topic: len(messages) for topic, messages in by_topic.items()}
    times_ns = [message.log_time for message, _, _ in by_topic["/state"]]
    with out.open("rb") as file:
        part = [
            message
            for _, _, message in make_reader(file).iter_messages(
                topics="/state", starting_at=times_ns[3000], ending_before=times_ns[3010]
            )
        ]
        assert [message.sequence for message in part] == list(range(3000, 3010))
        for chunk in summary.chunk_indexes:
            data = zstandard.ZstdDecompressor().decompress(_chunk_at(file, chunk).data)
            for channel, at in chunk.message_index_offsets.items():
                file.seek(at)
                index = next(StreamReader(file, skip_magic=True).records)
                assert isinstance(index, MessageIndex)
                assert index.channel_id == channel
                for time_ns, offset in index.records[:: max(len(index.records) - 1, 1)]:
                    assert data[offset] == Opcode.MESSAGE
                    head = struct.unpack_from("<QHIQ", data, offset + 1)
                    assert (head[1], head[3]) == (channel, time_ns)


def _chunk_at(file, index):
    from mcap.stream_reader import StreamReader

    file.seek(index.chunk_start_offset)
    return next(StreamReader(file, skip_magic=True, emit_chunks=True).records)


def test_an_mcap_file_has_events_in_foxgloves_format_and_inputs(in_mcap):
    by_topic = in_mcap[0]
    message, schema, row = by_topic["/events"][0]
    assert schema.name == json.loads(schema.data)["title"] == "foxglove.Log"
    assert row["message"] == "started on the virtual clock"
    assert row["level"] == 2
    assert row["timestamp"]["sec"] * 10**9 + row["timestamp"]["nsec"] == message.log_time
    assert by_topic["/inputs"][0][2] == {"tick": 0, "name": "start", "value": 1.0, "text": ""}


def test_a_viewer_of_nexus_files_finds_a_curve_with_names_and_units(all_on):
    """Source: NeXus 2024.02, rules for finding the default plottable data, version 3."""
    with h5py.File(all_on) as file:
        group = file[text(file.attrs["default"])]
        assert text(group.attrs["NX_class"]) == "NXdata"
        drawn = [group.attrs["signal"], *group.attrs["auxiliary_signals"], group.attrs["axes"]]
        assert [text(name) for name in drawn[:2]] == ["force_measured_N", "force_model_N"]
        assert [text(group[name].attrs["units"]) for name in drawn] == ["N", "N", "N", "s"]
        assert len({group[name].shape for name in drawn}) == 1
        for name in ("calibration", "records", "model"):
            assert text(file[name].attrs["NX_class"]) == "NXcollection"
