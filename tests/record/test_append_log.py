"""A log keeps every whole line, and says when something before its end is not as written."""

import errno
import json
import os
import resource
from types import SimpleNamespace

import pytest

from hil.errors import ConfigError
from hil.record.append_log import AppendLog, HeldError, read_log

LINES = [{"kind": "begin", "trial": 1}, {"kind": "end", "text": "ä \n"}, {"x": [1.5, None, True]}]


@pytest.fixture
def written(tmp_path):
    path = tmp_path / "deep" / "journal.jsonl"
    with AppendLog(path) as log:
        for line in LINES:
            log.add(line)
    return path


def test_lines_come_back_and_more_can_be_added(written):
    assert read_log(written) == LINES
    with AppendLog(written) as log:
        assert log.entries == LINES
        assert not log.torn
        log.add({"more": 1})
    assert read_log(written) == [*LINES, {"more": 1}]


def test_wherever_a_kill_cuts_it_off_all_lines_before_are_kept(written):
    data = written.read_bytes()
    ends = [i + 1 for i, byte in enumerate(data) if byte == ord("\n")]
    for cut in range(len(data)):
        written.write_bytes(data[:cut])
        whole = sum(end <= cut for end in ends)
        with AppendLog(written) as log:
            assert log.entries == LINES[:whole]
            assert log.torn == (cut not in (0, *ends))
            log.add({"next": cut})
        assert read_log(written) == [*LINES[:whole], {"next": cut}]


def test_a_last_line_that_is_there_in_length_only_is_dropped(written):
    data = written.read_bytes()
    start = data[:-1].rindex(b"\n") + 1
    written.write_bytes(data[:start] + b"\0" * (len(data) - start - 1) + b"\n")
    assert read_log(written) == LINES[:-1]


def test_a_damaged_line_before_an_incomplete_one_is_not_the_last(written):
    """Only what was written last may be lost."""
    data = written.read_bytes()
    start = data[:-1].rindex(b"\n") + 1
    written.write_bytes(data[:start] + b"\0" * (len(data) - start - 1) + b"\n{half")
    with pytest.raises(ConfigError, match="line 3 is damaged"):
        read_log(written)


def test_a_line_changed_removed_or_moved_is_named(written):
    lines = written.read_bytes().splitlines(keepends=True)
    changed = [lines[0].replace(b'"trial": 1', b'"trial": 2'), *lines[1:]]
    for bad in (changed, lines[1:], [lines[1], lines[0], lines[2]]):
        written.write_bytes(b"".join(bad))
        with pytest.raises(ConfigError, match=r"journal\.jsonl: line 1 is damaged"):
            read_log(written)
        with pytest.raises(ConfigError, match="line 1 is damaged"):
            AppendLog(written)


def test_every_line_is_json_for_anyones_tool(written):
    assert [set(json.loads(line)) > {"crc"} for line in written.read_text().splitlines()] == [
        True
    ] * 3


def test_only_one_may_write(written):
    with AppendLog(written):
        with pytest.raises(HeldError, match="another process writes"):
            AppendLog(written)
        assert read_log(written) == LINES
    AppendLog(written).__exit__()


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be written"):
        AppendLog(tmp_path / "file" / "journal.jsonl")


def test_a_value_that_is_no_json_is_refused_before_anything_is_written(written):
    with AppendLog(written) as log, pytest.raises(ValueError, match="JSON"):
        log.add({"x": float("nan")})
    assert read_log(written) == LINES


def test_a_line_is_in_the_file_when_it_is_synced(written, monkeypatch):
    """What is synced before it is flushed is not on disk after a power cut."""
    seen = []
    monkeypatch.setattr(os, "fsync", lambda number: seen.append(read_log(written)))
    with AppendLog(written) as log:
        log.add({"more": 1})
    assert seen == [[*LINES, {"more": 1}]]


def test_after_a_line_that_did_not_fit_the_next_one_is_read_again(written, monkeypatch):
    def full(number):
        raise OSError(28, "No space left on device")

    with AppendLog(written) as log:
        with monkeypatch.context() as while_full:
            while_full.setattr(os, "fsync", full)
            with pytest.raises(ConfigError, match="cannot be written"):
                log.add({"lost": 1})
        log.add({"more": 1})
        assert log.entries == [*LINES, {"more": 1}]
    assert read_log(written) == [*LINES, {"more": 1}]


@pytest.mark.parametrize("room_B", [0, 1, 20])
def test_a_line_for_which_there_is_no_room_is_one_line_and_leaves_nothing(written, room_B):
    size_B, before = written.stat().st_size, resource.getrlimit(resource.RLIMIT_FSIZE)
    with AppendLog(written) as log:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size_B + room_B, before[1]))
        try:
            for _ in range(2):
                with pytest.raises(ConfigError, match=r"journal\.jsonl: cannot be written \(File"):
                    log.add({"lost": 1})
                assert written.stat().st_size == size_B
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        log.add({"more": 1})
    assert read_log(written) == [*LINES, {"more": 1}]


def test_a_disk_that_is_gone_is_one_line(written):
    """Then the file cannot be made shorter either."""

    def fails(size_B):
        raise OSError(errno.EIO, "Input/output error")

    with AppendLog(written) as log:
        file, log._file = log._file, SimpleNamespace(truncate=fails)
        with pytest.raises(ConfigError, match=r"journal\.jsonl: cannot be written \(Input/output"):
            log.add({"lost": 1})
        log._file = file
        log.add({"more": 1})
    assert read_log(written) == [*LINES, {"more": 1}]


def test_after_an_interrupt_in_a_sync_the_log_goes_on_and_is_read_again(written, monkeypatch):
    def interrupted(number):
        real(number)
        raise KeyboardInterrupt

    real, lines = os.fsync, list(LINES)
    with AppendLog(written) as log:
        for n in range(2):
            with monkeypatch.context() as meanwhile:
                meanwhile.setattr(os, "fsync", interrupted)
                with pytest.raises(KeyboardInterrupt):
                    log.add({"lost": n})
            assert log.entries == lines
            for more in range(2):
                log.add({"more": more})
                lines.append({"more": more})
            assert read_log(written) == log.entries == lines
