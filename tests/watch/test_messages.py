"""Messages of a bench arrive once each, whatever dies, and as soon as they can."""

import contextlib
import http.server
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import psutil
import pytest

from hil.__main__ import main
from hil.errors import ConfigError
from hil.platform.processes import started
from hil.watch import messages
from hil.watch.bench import Bench
from hil.watch.messages import (
    EVENTS,
    Marker,
    Message,
    NotifyTable,
    Outbox,
    Watch,
    cut_off,
    notify_table,
)

WITHIN_S = 10.0  # what the messages promise
WAIT_S = 120.0


class Receiver:
    """A service that takes JSON, as a webhook does; `port` stays when it is off."""

    def __init__(self, port=0):
        self.received, self.port = [], port
        self._server = None

    def on(self):
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                text = self.rfile.read(int(self.headers["Content-Length"]))
                outer.received.append((time.monotonic(), json.loads(text)))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *words):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def off(self):
        self._server.shutdown()
        self._server.server_close()

    @property
    def titles(self):
        return [content["title"] for _, content in self.received]

    def wait(self, words, for_s=WAIT_S):
        """Wait for a message with these words in its title; returns when it came, and its text."""
        deadline_s = time.monotonic() + for_s
        while time.monotonic() < deadline_s:
            for came_s, content in list(self.received):
                if words in content["title"]:
                    return came_s, content["message"]
            time.sleep(0.05)
        raise AssertionError(f"{words}: not within {for_s} s: {self.titles}")


@pytest.fixture
def receiver():
    one = Receiver()
    one.on()
    yield one
    with contextlib.suppress(OSError):
        one.off()


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Writes the file of this machine, and keeps what hil remembers out of the user's home."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path = tmp_path / "config" / "hil" / "machine.toml"
    path.parent.mkdir(parents=True)

    def write(text):
        path.write_text(text)
        path.chmod(0o600)
        return path

    return write


def webhook(receiver, more=""):
    return f'[notify]\nurls = ["json://127.0.0.1:{receiver.port}/"]\n{more}'


def run(faults=(), name="", state="off", age_s=0.0, is_dead=False, is_over=False):
    facts = SimpleNamespace(title="miga6: <b>all on</b>", simulated="SIMULATED: board")
    return SimpleNamespace(
        facts=facts, faults=list(faults), name=name, state=state, age_s=age_s, is_dead=is_dead,
        is_over=is_over, n_rows=1, recording="runs/one.h5",
    )  # fmt: skip


def bench(tmp_path, one=None, asked=""):
    state = {"campaign": {"asked": asked}} if asked else {"campaign": None}
    return SimpleNamespace(folder=tmp_path, run=one, state=lambda: state)


TABLE = NotifyTable(urls=["json://127.0.0.1/"], disk_free_min_MB=1e-6)
TRIP = "force_high: force 9.1 N, limit 9 N (guard.force_max_N)"


def test_a_trip_is_told_once_with_who_how_much_and_which_limit(tmp_path):
    watch = Watch("run miga6", TABLE)
    tripped = bench(tmp_path, run([TRIP], "a"))
    (message,) = watch.due(tripped)
    assert message.event == "tripped"
    assert message.title == "run miga6: TRIPPED"
    for words in (TRIP, "everything is off", "SIMULATED", "runs/one.h5", "<b>all on</b>"):
        assert words in message.body
    assert list(watch.due(tripped)) == []
    assert list(watch.at_end(3, "tripped", tripped)) == []  # it was told
    assert [m.event for m in watch.due(bench(tmp_path, run([TRIP], "b")))] == ["tripped"]


def test_a_stall_is_told_once_until_rows_come_again(tmp_path):
    watch = Watch("run", TABLE)
    still, moves = (bench(tmp_path, run(name="a", age_s=age_s)) for age_s in (5.1, 0.0))
    told = [[m.event for m in watch.due(one)] for one in (moves, still, still, moves, still)]
    assert told == [[], ["stalled"], [], [], ["stalled"]]


def test_a_question_is_told_once_and_the_next_one_again(tmp_path):
    watch = Watch("campaign", TABLE)
    asked = ["", "Is it mounted?", "Is it mounted?", "", "Is it mounted?", "Hang on 1.2 N"]
    told = [[m.body.split("\n")[0] for m in watch.due(bench(tmp_path, None, q))] for q in asked]
    assert told == [[], ["Is it mounted?"], [], [], ["Is it mounted?"], ["Hang on 1.2 N"]]


def test_a_low_disk_is_told_once_until_there_is_room_again(tmp_path, monkeypatch):
    watch = Watch("run", TABLE.model_copy(update={"disk_free_min_MB": 100.0}))
    free_MB = iter([500.0, 99.0, 50.0, 105.0, 90.0, 120.0, 99.0])
    monkeypatch.setattr(messages, "_free_MB", lambda folder: next(free_MB))
    told = [[m.event for m in watch.due(bench(tmp_path))] for _ in range(7)]
    assert told == [[], ["disk"], [], [], [], [], ["disk"]]


@pytest.mark.parametrize(
    ("code", "text", "event", "words"),
    [
        (0, "complete", "ended", "run: ended"),
        (130, "aborted", "ended", "run: interrupted"),
        (4, "board: gone", "ended", "run: ended with exit code 4"),
        (3, "tripped", "tripped", "run: TRIPPED"),  # before anybody saw the run
        (5, "21 % of the stroke is lost, limit 20 %", "rule", "run: stopped by its rule"),
        (None, "", "died", "run: PROGRAM DIED"),
    ],
)
def test_the_end_is_told_with_its_reason(code, text, event, words, tmp_path):
    (message,) = Watch("run", TABLE).at_end(code, text, bench(tmp_path, run()))
    assert (message.event, message.title) == (event, words)
    assert text in message.body


def test_a_dead_program_is_told_once(tmp_path):
    watch = Watch("run", TABLE)
    dead = bench(tmp_path, run(is_dead=True, is_over=True))
    assert [m.event for m in watch.due(dead)] == ["died"]
    assert list(watch.due(dead)) == list(watch.at_end(None, "", dead)) == []


def test_a_message_waits_for_its_receiver_and_arrives_once(receiver, monkeypatch):
    monkeypatch.setattr(messages, "RETRY_S", 0.1)
    receiver.off()
    said = []
    url = f"json://127.0.0.1:{receiver.port}/"
    outbox = Outbox(NotifyTable(urls=[url], events=["ended"]), said.append)
    outbox.put(Message("ended", "first", "a <b>note</b> & more"))
    outbox.put(Message("tripped", "not wanted", "text"))
    outbox.put(Message("ended", "second", "text"))
    deadline_s = time.monotonic() + WAIT_S
    while not said and time.monotonic() < deadline_s:
        time.sleep(0.02)
    time.sleep(0.5)
    assert said == ["notify.urls.0 (json) cannot be reached: the run goes on, it is tried again"]
    assert [m.title for m in outbox.pending] == ["first", "second"]
    receiver.on()
    receiver.wait("second")
    assert receiver.titles == ["first", "second"]
    assert receiver.received[0][1]["message"] == "a <b>note</b> & more"
    while outbox.pending:
        time.sleep(0.01)


def test_an_address_that_fails_holds_no_other_up(receiver):
    urls = ["json://127.0.0.1:1/", f"json://127.0.0.1:{receiver.port}/"]
    Outbox(NotifyTable(urls=urls), lambda text: None).put(Message("ended", "here", "text"))
    receiver.wait("here")


def test_a_command_that_a_restart_has_cut_off_is_told_once(machine, monkeypatch, tmp_path):
    monkeypatch.setattr(messages, "boot", lambda: "before")
    marker = Marker("campaign day", tmp_path)
    marker.note([Message("tripped", "not arrived", TRIP)])
    assert cut_off() == []  # still in progress
    monkeypatch.setattr(messages, "boot", lambda: "after")
    waiting, back = cut_off()
    assert waiting == Message("tripped", "not arrived", TRIP)
    assert (back.event, back.title) == ("back", "campaign day: host is back after a restart")
    assert "this computer was restarted at 20" in back.body
    assert cut_off() == []


@pytest.mark.parametrize("when", ["before it is read", "before it is removed"])
def test_of_two_commands_that_start_at_once_one_tells_what_was_cut_off(
    machine, monkeypatch, tmp_path, when
):
    """After a restart: the other one ended with a marker that "cannot be written"."""
    Marker("campaign day", tmp_path).note([])
    (path,) = messages.marker_folder().glob("*.json")
    monkeypatch.setattr(messages, "is_running", lambda pid, since: False)
    if when == "before it is read":
        monkeypatch.setattr(messages, "marker_folder", lambda: SimpleNamespace(
            glob=lambda pattern: [path.with_name("told.json")]))  # fmt: skip
    else:
        monkeypatch.setattr(messages, "_back", lambda *_: path.unlink())
    assert cut_off() == []


def test_messages_that_never_arrived_are_those_of_the_next_command_without_a_word_of_a_restart(
    machine, monkeypatch, tmp_path
):
    unreachable = NotifyTable(urls=["json://127.0.0.1:1/"])
    post = messages.Post("run", tmp_path, unreachable, lambda text: None)
    post.end(0, "complete: 4 rows", Bench(tmp_path))
    post.close()
    monkeypatch.setattr(messages, "boot", lambda: "after")
    assert [m.title for m in cut_off()] == ["run: ended"]
    assert cut_off() == []


def test_a_watcher_that_was_killed_is_told_at_the_next_start(machine, monkeypatch, tmp_path):
    with subprocess.Popen(["sleep", "0"]) as ended:
        pid = ended.pid
    monkeypatch.setattr(messages.os, "getpid", lambda: pid)
    monkeypatch.setattr(messages, "started", lambda number: started(os.getppid()))
    Marker("run", tmp_path).note([])
    assert [m.title for m in cut_off()] == ["run: was no longer watched"]


def test_notify_test_says_which_address_was_reached(machine, receiver, capsys):
    machine(webhook(receiver).replace('/"]', '/", "json://127.0.0.1:1/"]'))
    assert main(["notify", "--test"]) == 5
    said = capsys.readouterr().out
    assert "notify.urls.0 (json): arrived" in said
    assert "notify.urls.1 (json): NOT arrived" in said
    assert receiver.titles == ["hil: a test"]
    assert cut_off() == []  # a test is not sent again


def test_what_did_not_arrive_after_a_restart_is_sent_by_the_next_command_where_it_is_missing(
    machine, receiver, monkeypatch, tmp_path, capsys
):
    """The network may come later than the computer."""
    machine(webhook(receiver).replace('/"]', '/", "json://127.0.0.1:1/"]'))
    monkeypatch.setattr(messages, "boot", lambda: "before")
    Marker("campaign day", tmp_path).note([Message("tripped", "not arrived", TRIP)])
    monkeypatch.setattr(messages, "boot", lambda: "after")
    for _ in range(2):
        assert main(["notify", "--after-restart"]) == 5
        said = capsys.readouterr().out
        assert said.startswith("2 messages")
        assert "notify.urls.1 (json): NOT arrived" in said
        monkeypatch.setattr(messages, "is_running", lambda pid, since: False)  # it has ended
    assert receiver.titles == ["not arrived", "campaign day: host is back after a restart"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[notify]\nurls = []\n", "notify.urls"),
        ("[notify]\nurls = ['nowhere']\n", "notify.urls.0: not an address that Apprise knows"),
        ("[notify]\nurls = ['zzz://user:secret@x']\n", "(zzz)"),
        ("[notify]\nurls = 'json://user:secret@x'\n", "notify.urls: must be"),
        ("[notify]\nurls = [['json://user:secret@x']]\n", "notify.urls.0: must be"),
        ("[notify]\nurls = ['json://user:secret@x' 'b']\n", "line 2: not valid TOML"),
        ("notify = 'json://user:secret@x'\n", "notify: must be"),
        ("[notify]\nurls = ['json://x']\nevents = ['trip']\n", "notify.events.0"),
        ("[notify]\nurls = ['json://x']\nurl = 1\n", "notify.url: unknown key"),
    ],
)
def test_a_file_of_this_machine_that_is_wrong_is_one_line(text, words, machine):
    path = machine(text)
    with pytest.raises(ConfigError) as refused:
        notify_table()
    line = str(refused.value)
    assert str(path) in line
    assert words in line
    assert "secret" not in line
    assert "\n" not in line


def test_a_run_is_refused_with_the_line_of_a_wrong_file(machine, configs, capsys):
    machine("[notify]\nurls = ['zzz://user:secret@x']\n")
    with pytest.raises(ConfigError) as refused:
        notify_table()
    assert main(["run", str(configs / "miga6/all_on.toml")]) == 2
    assert capsys.readouterr().err.strip() == str(refused.value)


def test_a_file_that_others_may_write_is_refused(machine, receiver):
    path = machine(webhook(receiver))
    path.chmod(0o666)
    with pytest.raises(ConfigError, match="others may write it: chmod 600"):
        notify_table()


def test_without_a_file_there_are_no_messages(machine, capsys):
    assert notify_table() is None
    assert main(["notify", "--test"]) == 2
    assert "there is no [notify]" in capsys.readouterr().err
    assert len(EVENTS) == 8


@pytest.fixture
def running(machine, receiver, configs, tmp_path):
    """Starts a run on the real clock with messages; returns its process once it has rows."""
    processes = []

    def start(more="", *words):
        machine(webhook(receiver, more))
        out = tmp_path / "run.h5"
        command = [sys.executable, "-m", "hil", "run", str(configs / "miga6/all_on.toml")]
        command += ["--clock", "real", "--out", str(out), "--set", "loop.overrun=tolerate",
                    "--set", "loop.overruns_max=5000"]  # fmt: skip
        command += words or ("--duration", "300")
        process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
        processes.append(process)
        deadline_s = time.monotonic() + WAIT_S
        while not (pids := recorders(out)) and time.monotonic() < deadline_s:
            time.sleep(0.1)
        assert pids, "no recorder was started"
        time.sleep(3.0)
        return process, pids[0]

    yield start
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGCONT)
            process.send_signal(signal.SIGINT)
        process.communicate()


def recorders(out):
    """Recorder processes of this file."""
    words = [(one.pid, one.info["cmdline"] or []) for one in psutil.process_iter(["cmdline"])]
    return [pid for pid, line in words if {"hil.record.recorder", str(out)} <= set(line)]


@pytest.mark.slow
@pytest.mark.xdist_group("real time")
def test_a_killed_loop_brings_its_message_within_ten_seconds_once(running, receiver):
    process, _ = running()
    began_s = time.monotonic()
    process.kill()
    came_s, text = receiver.wait("PROGRAM DIED")
    assert came_s - began_s < WITHIN_S
    assert "boards and supplies switch off by themselves" in text
    time.sleep(6.0)
    assert len(receiver.received) == 1


@pytest.mark.slow
@pytest.mark.xdist_group("real time")
def test_a_killed_recorder_brings_its_message_within_ten_seconds_once(running, receiver):
    process, recorder = running()
    began_s = time.monotonic()
    os.kill(recorder, signal.SIGKILL)
    came_s, text = receiver.wait("RECORDER DEAD")
    assert came_s - began_s < WITHIN_S
    assert "recorder_dead" in text
    assert process.wait() == 4
    receiver.wait("exit code 4")
    assert len(receiver.received) == 2


@pytest.mark.slow
@pytest.mark.xdist_group("real time")
def test_a_full_disk_brings_its_message_within_ten_seconds_once(running, receiver):
    _, recorder = running()
    began_s = time.monotonic()
    resource.prlimit(recorder, resource.RLIMIT_FSIZE, (1, 1))  # as ENOSPC to the recorder
    came_s, _ = receiver.wait("RECORDER DEAD")
    assert came_s - began_s < WITHIN_S


@pytest.mark.slow
@pytest.mark.xdist_group("real time")
def test_a_disk_below_its_limit_brings_its_message(running, receiver):
    running("disk_free_min_MB = 1e12\n")
    _, text = receiver.wait("disk low")
    assert "limit 1e+12 MB (notify.disk_free_min_MB)" in text


@pytest.mark.slow
@pytest.mark.xdist_group("real time")
def test_without_a_network_the_run_goes_on_and_the_message_comes_when_it_is_back(running, receiver):
    receiver.off()
    process, _ = running("", "--duration", "4")
    _, said = process.communicate()
    assert process.returncode in (0, 5)
    assert said.count(b"cannot be reached") <= 1
    time.sleep(5.0)
    assert receiver.received == []
    began_s = time.monotonic()
    receiver.on()
    came_s, _ = receiver.wait("ended")
    assert came_s - began_s < WITHIN_S
    time.sleep(6.0)
    assert len(receiver.received) == 1


@pytest.mark.slow
@pytest.mark.xdist_group("real time")
def test_a_loop_that_stands_still_is_told(running, receiver):
    process, _ = running()
    began_s = time.monotonic()
    process.send_signal(signal.SIGSTOP)
    came_s, _ = receiver.wait("STALLED")
    assert came_s - began_s < WITHIN_S


def test_what_has_arrived_at_one_address_is_not_sent_there_again_by_the_next_command(
    machine, receiver, monkeypatch, tmp_path
):
    urls = [f"json://127.0.0.1:{receiver.port}/", "json://127.0.0.1:1/"]
    post = messages.Post("run", tmp_path, NotifyTable(urls=urls), lambda text: None)
    post.end(0, "complete: 4 rows", Bench(tmp_path))
    receiver.wait("run: ended")
    deadline_s = time.monotonic() + WAIT_S
    while len(noted()) != 1 and time.monotonic() < deadline_s:  # at once, not at the next look
        time.sleep(0.01)
    (left,) = noted()  # and then this process is killed
    monkeypatch.setattr(messages, "boot", lambda: "after")
    (message,) = cut_off()
    again = Outbox(NotifyTable(urls=urls), lambda text: None)
    again.put(message)
    assert [len(one.pending) for one in again.recipients] == [0, 1]
    assert message.is_for("json://another", ["json://another"])  # the file has changed since
    assert "127.0.0.1" not in str(left)
    assert receiver.titles == ["run: ended"]


def noted():
    """The addresses, as the marker has them, where its message has not arrived."""
    (path,) = messages.marker_folder().glob("*.json")
    return json.loads(path.read_text())["pending"][0][3]
