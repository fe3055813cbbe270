"""A run shown live, against the published Foxglove WebSocket protocol and the run's recording."""

import asyncio
import base64
import importlib.util
import json
import os
import queue
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from urllib.parse import urlsplit

import foxglove
import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from hil.__main__ import main
from hil.errors import ConfigError
from hil.loop import tap as taps
from hil.loop.frame import Column, Frame
from hil.loop.states import NUMBERS
from hil.record import live
from hil.record.door import Address
from hil.record.live import ORIGINS, Server
from hil.record.messages import packed, topics_of
from hil.record.read import open_run

WAIT_S = 300.0
SUBPROTOCOL = "foxglove.sdk.v1"
MESSAGE_DATA, ERROR = 1, 2  # binary opcode, status level
CREATED = "2026-11-23T12:00:00.000+00:00"
COMMANDED = {"topic": "/commanded", "encoding": "json", "schemaName": "hil.commanded"}
COLUMNS = [
    Column("t_s", "s", "timing", "scheduled time"),
    Column("force_measured_N", "N", "measured", "a force"),
]


class Viewer:
    """A client of the protocol: channels by topic, messages by topic as (time in ns, content)."""

    def __init__(self, socket) -> None:
        self.socket = socket
        self.info = self._next_text("serverInfo")
        self.channels = {c["topic"]: c for c in self._next_text("advertise")["channels"]}
        self.messages = {topic: [] for topic in self.channels}
        self.statuses = []
        self._topics = {}

    def _next_text(self, op):
        message = json.loads(self.socket.recv(WAIT_S))
        assert message["op"] == op
        return message

    def send(self, op, **fields) -> None:
        self.socket.send(json.dumps({"op": op, **fields}))

    def subscribe(self, *topics) -> None:
        self._topics |= dict(enumerate(topics, start=7))
        wanted = [{"id": i, "channelId": self.channels[t]["id"]} for i, t in self._topics.items()]
        self.send("subscribe", subscriptions=wanted)

    def receive_until(self, done) -> None:
        """Take messages until a condition holds or the server closes the connection."""
        deadline_s = time.monotonic() + WAIT_S
        while not done():
            assert time.monotonic() < deadline_s
            try:
                data = self.socket.recv(WAIT_S)
            except ConnectionClosed:
                return
            if isinstance(data, str):
                message = json.loads(data)
                if message["op"] == "status":
                    self.statuses.append(message)
                continue
            opcode, subscription, time_ns = struct.unpack_from("<BIQ", data)
            assert opcode == MESSAGE_DATA
            self.messages[self._topics[subscription]].append((time_ns, json.loads(data[13:])))


@pytest.fixture(scope="module")
def shown(configs, tmp_path_factory):
    """A run that waits to be armed, what its viewer received, and its recording."""
    out = tmp_path_factory.mktemp("live") / "run.h5"
    words = ["run", str(configs / "miga6/all_on.toml"), "--out", str(out)]
    command = [sys.executable, "-m", "hil", *words, "--disarmed", "--foxglove", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as run:
        try:
            line = next(line for line in run.stderr if line.startswith("foxglove: "))
            with connect(line.split()[1], subprotocols=[SUBPROTOCOL], max_size=None) as socket:
                viewer = Viewer(socket)
                viewer.subscribe(*viewer.channels)
                viewer.send("advertise", channels=[{"id": 1, **COMMANDED}])
                viewer.send("setParameters", parameters=[{"name": "arm", "value": 1}])
                viewer.receive_until(lambda: len(viewer.messages["/guard"]) >= 300)
                run.send_signal(signal.SIGINT)
                viewer.receive_until(lambda: False)
        finally:
            run.send_signal(signal.SIGINT)
    return viewer, open_run(out)


@pytest.mark.slow
def test_a_viewer_receives_the_rows_of_the_recording_with_their_times(shown):
    viewer, run = shown
    row_of = {t_s: i for i, t_s in enumerate(run.t_s.values.tolist())}
    start_ns = np.datetime64(run.attrs["created_utc"][:-6], "ns").astype(int)
    for topic, key, column in (
        ("/measured", "force_measured_N", run.force_measured_N),
        ("/model", "force_model_N", run.force_model_N),
        ("/residual", "force_residual_N", run.force_measured_N - run.force_model_N),
        ("/timing", "late_s", run.late_s),
    ):
        rows = [row_of[content["t_s"]] for _, content in viewer.messages[topic]]
        assert len(rows) >= 300
        assert rows == list(range(rows[0], rows[0] + len(rows)))
        found = [content[key] for _, content in viewer.messages[topic]]
        np.testing.assert_array_equal(found, column.values[rows], err_msg=topic)
        times_s = [1e-9 * (time_ns - start_ns) for time_ns, _ in viewer.messages[topic]]
        np.testing.assert_allclose(times_s, run.t_s.values[rows], rtol=0.0, atol=1e-6)


def test_a_viewer_sees_cells_guard_and_all_events_by_name(shown):
    viewer, run = shown
    _, cells = viewer.messages["/cells"][-1]
    assert cells["muscle_3"] == {"commanded": 0, "reported": 0}
    states = [NUMBERS[content["state"]] for _, content in viewer.messages["/guard"]]
    first = np.flatnonzero(run.t_s.values == viewer.messages["/measured"][0][1]["t_s"])[0]
    assert states == run.guard_state.values[first : first + len(states)].tolist()
    assert NUMBERS["ready"] in states
    texts = [content["message"] for _, content in viewer.messages["/events"]]
    assert texts == run.event_text.values.tolist()
    assert viewer.channels["/events"]["schemaName"] == "foxglove.Log"


def test_every_message_has_the_fields_of_its_schema(shown):
    viewer, _ = shown
    for topic, channel in viewer.channels.items():
        schema = json.loads(channel["schema"])
        assert (channel["encoding"], channel["schemaEncoding"]) == ("json", "jsonschema")
        assert set(viewer.messages[topic][-1][1]) <= set(schema["properties"])
    force = json.loads(viewer.channels["/measured"]["schema"])["properties"]["force_measured_N"]
    assert force["description"].endswith(", N; SIMULATED")


def test_a_viewer_cannot_change_the_run(shown):
    viewer, run = shown
    assert viewer.info["capabilities"] == []
    assert [status["level"] for status in viewer.statuses] == [ERROR, ERROR]
    assert [content["name"] for _, content in viewer.messages["/inputs"]] == ["start", "stop"]
    assert run.input_name.values.tolist() == ["start", "stop"]


@pytest.fixture
def tap(tmp_path, monkeypatch):
    monkeypatch.setattr(taps, "_folder", lambda: tmp_path)
    made = taps.create(Frame(COLUMNS).dtype, 4096)
    yield made
    made.close_writer()
    made.unlink()


def test_the_server_maps_the_tap_for_reading_only(tap):
    with Server(Address(port=0), "a run", CREATED) as server:
        server.start(tap.path, COLUMNS, ())
        server.wait_ready()
        maps = Path(f"/proc/{server.pid}/maps").read_text().splitlines()
        assert [line.split()[1] for line in maps if line.endswith(str(tap.path))] == ["r--s"]
        tap.close_writer()


def port_of(url):
    return urlsplit(url).port


@pytest.fixture
def served(tap):
    """Serves the tap at a host; returns the address that it prints."""
    with ExitStack() as stack:

        def serve(host="127.0.0.1"):
            server = stack.enter_context(Server(Address(host, 0), "a run", CREATED))
            server.start(tap.path, COLUMNS, ())
            return server.wait_ready()

        yield serve
        tap.close_writer()


def visit(url, host="", **headers):
    """Connect as a browser does whose page has this origin; with a name that leads here, if any."""
    port = port_of(url)
    there = urlsplit(url)._replace(netloc=f"{host or '127.0.0.1'}:{port}").geturl()
    way = socket.create_connection(("127.0.0.1", port))
    with connect(there, sock=way, subprotocols=[SUBPROTOCOL], **headers) as watched:
        return json.loads(watched.recv(WAIT_S))["op"]


def refused(url, host="", **headers):
    with pytest.raises(InvalidStatus) as refusal:
        visit(url, host, **headers)
    assert refusal.value.response.status_code == 403
    return refusal.value.response.body.decode()


HOSTILE = (
    "https://evil.example", "http://evil.example:8765", "null", "ftp://localhost", "localhost",
    "https://app.foxglove.dev.evil.example", "https://evil.example/https://app.foxglove.dev",
    "http://localhost.evil.example", "http://127.0.0.1.evil.example", "http://localhost@evil.example",
    "http://evil.example@localhost", "http://evil.example#localhost", "http://[::1].evil.example",
)  # fmt: skip


def test_a_web_page_may_not_watch_the_run(served):
    url = served()
    for origin in HOSTILE:
        assert refused(url, origin=origin) == "pages of this origin may not watch\n"


def test_a_web_page_whose_name_leads_here_may_not_watch_the_run(served):
    """DNS rebinding: the browser takes the page's own origin for that of the server."""
    url = served()
    for name in ("evil.example", "localhost.evil.example", "127.0.0.1.evil.example"):
        assert refused(url, name, origin="file://") == "give the address as it was printed\n"
        assert refused(url, name) == "give the address as it was printed\n"
    raw = f"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example:{port_of(url)}\r\n"
    for request in (raw, "GET / HTTP/1.1\r\n"):
        with socket.create_connection(("127.0.0.1", port_of(url)), timeout=WAIT_S) as bare:
            bare.sendall(f"{request}{UPGRADE}\r\n".encode())
            assert bare.recv(64).startswith(b"HTTP/1.1 403 ")


UPGRADE = (
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    f"Sec-WebSocket-Key: {base64.b64encode(bytes(16)).decode()}\r\n"
    f"Sec-WebSocket-Protocol: {SUBPROTOCOL}\r\n"
)


@pytest.mark.parametrize("origin", [None, *ORIGINS, "http://localhost:8080", "http://127.0.0.1",
                                    "https://[::1]:3000"])  # fmt: skip
def test_foxglove_programs_and_pages_of_this_computer_watch_the_run(origin, served):
    url = served()
    assert visit(url, origin=origin) == "serverInfo"
    assert visit(url, "localhost", origin=origin) == "serverInfo"


def test_a_number_that_no_message_has_ends_no_viewer_s_run(served, tap):
    """The first row after it ended the server, and so the view of all."""
    url = served()
    with connect(url, subprotocols=[SUBPROTOCOL]) as viewer:
        assert [json.loads(viewer.recv(WAIT_S))["op"] for _ in range(2)] == [
            "serverInfo", "advertise"
        ]  # fmt: skip
        for number in ("1099511627776", "-1", "1e999"):
            one = f'{{"channelId": 1, "id": {number}}}'
            viewer.send(f'{{"op": "subscribe", "subscriptions": [{one}]}}')
            assert json.loads(viewer.recv(WAIT_S))["message"] == "not understood"
        viewer.send('{"op": "subscribe", "subscriptions": [{"channelId": 1, "id": 4294967295}]}')
        viewer.send('{"op": "ping"}')
        assert json.loads(viewer.recv(WAIT_S))["op"] == "status"
        tap.ticks.push_many(np.zeros(1, dtype=Frame(COLUMNS).dtype))
        assert viewer.recv(WAIT_S)[:5] == b"\x01\xff\xff\xff\xff"
    assert visit(url) == "serverInfo"


def test_off_loopback_a_viewer_needs_the_token_of_the_address(served):
    url = served("0.0.0.0")
    bare, _, token = url.partition("/?token=")
    assert len(token) >= 22  # 128 bits
    assert visit(url) == visit(url, "rig.lab.example") == "serverInfo"
    for other in (bare, f"{bare}/?token=", f"{url}x", url[:-1], f"{bare}/?token=é"):
        assert "the token is missing or wrong" in refused(other)
    assert "pages of this origin" in refused(url, origin="https://evil.example")


def test_the_token_is_another_one_at_every_run(tap):
    found = set()
    for _ in range(2):
        with Server(Address("0.0.0.0", 0), "a run", CREATED) as server:
            server.start(tap.path, COLUMNS, ())
            found.add(server.wait_ready().partition("=")[2])
            os.kill(server.pid, signal.SIGKILL)
    assert len(found) == 2


@pytest.mark.library_leaks("Foxglove's own server keeps its sockets")
def test_it_says_what_the_server_of_foxgloves_own_package_says(served, tap):
    """Greeting, channels, refusals and messages, field by field; texts are each its own."""
    url, context = served(), foxglove.Context()
    topic = topics_of(COLUMNS, ())[0]
    channel = foxglove.Channel(topic.name, schema=topic.schema, context=context)
    theirs = foxglove.start_server(
        name="a run", host="127.0.0.1", port=0, context=context, capabilities=[]
    )

    def heard(address, send):
        with connect(address, subprotocols=[SUBPROTOCOL]) as watched:
            first = [json.loads(watched.recv(WAIT_S)) for _ in range(2)]
            (about,) = (c for c in first[1]["channels"] if c["topic"] == topic.name)
            asks = [
                {"op": "advertise", "channels": [{"id": 1, **COMMANDED}]},
                {"op": "setParameters", "parameters": []},
                {"op": "subscribe", "subscriptions": [{"id": 5, "channelId": 77}]},
                {"op": "subscribe", "subscriptions": [{"id": 7, "channelId": about["id"]}]},
            ]
            for asked in (*map(json.dumps, asks), "no JSON"):
                watched.send(asked)
            told = [json.loads(watched.recv(WAIT_S)) for _ in range(4)]
            send()
            return first[0], about, told, watched.recv(WAIT_S)

    start_ns = int(np.datetime64(CREATED[:-6], "ns").astype(int))
    row = {"t_s": 0.25, "force_measured_N": 1.5}

    def fill():
        values = np.zeros(1, dtype=Frame(COLUMNS).dtype)
        for name, value in row.items():
            values[name] = value
        tap.ticks.push(values)

    def log():
        channel.log(packed(row), log_time=start_ns + 250_000_000)

    mine, reference = heard(url, fill), heard(f"ws://127.0.0.1:{theirs.port}", log)
    theirs.stop()
    assert set(mine[0]) | {"metadata"} == set(reference[0])
    assert {k: mine[0][k] for k in ("op", "name", "capabilities")} == {
        k: reference[0][k] for k in ("op", "name", "capabilities")
    }
    assert json.loads(mine[1].pop("schema")) == json.loads(reference[1].pop("schema"))
    assert mine[1] == reference[1] | {"id": mine[1]["id"]}
    assert [(m["op"], m["level"]) for m in mine[2]] == [(m["op"], m["level"]) for m in reference[2]]
    assert mine[3] == reference[3]


@pytest.mark.slow
def test_a_viewer_that_takes_nothing_loses_messages_and_delays_nobody(tmp_path, monkeypatch):
    """It is told how many once it takes messages again; the loop's rows are in no memory."""
    n = 150_000
    monkeypatch.setattr(taps, "_folder", lambda: tmp_path)
    monkeypatch.setattr(live, "BACKLOG_B", 100_000)
    addresses = queue.SimpleQueue()
    monkeypatch.setattr(live, "print", lambda text, flush: addresses.put(text), raising=False)
    tap = taps.create(Frame(COLUMNS).dtype, n)
    facts = {"title": "a run", "created_utc": CREATED, "cells": [],
             "columns": [asdict(column) for column in COLUMNS]}  # fmt: skip
    serving = live._serve(tap, Address(port=0), facts, os.getppid())
    server = threading.Thread(target=asyncio.run, args=(serving,))
    server.start()
    try:
        url = addresses.get(timeout=WAIT_S)
        with (
            connect(url, subprotocols=[SUBPROTOCOL], max_queue=1) as lazy,
            connect(url, subprotocols=[SUBPROTOCOL]) as eager,
        ):
            viewers = [Viewer(lazy), Viewer(eager)]
            for viewer in viewers:
                viewer.subscribe("/measured")
            rows = np.zeros(n, dtype=Frame(COLUMNS).dtype)
            rows["t_s"] = np.arange(n)
            for first in range(0, n, 1000):
                tap.ticks.push_many(rows[first : first + 1000])
                viewers[1].receive_until(lambda k=first: len(viewers[1].messages["/measured"]) > k)
            viewers[1].receive_until(lambda: len(viewers[1].messages["/measured"]) == n)
            viewers[0].receive_until(lambda: bool(viewers[0].statuses))
            status = viewers[0].statuses[-1]
            there = len(viewers[0].messages["/measured"])
            assert status["message"].startswith(f"{n - there} messages were not shown")
            assert 0 < there < n
    finally:
        tap.close_writer()
        server.join(WAIT_S)
        tap.unlink()


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_other_interfaces_are_served_only_if_asked(host, tap):
    """127.0.0.2 is an address of this computer to which a server on 127.0.0.1 does not listen."""
    with Server(Address(host, 0), "a run", CREATED) as server:
        server.start(tap.path, COLUMNS, ())
        port = port_of(server.wait_ready())
        with socket.socket() as other:
            assert (other.connect_ex(("127.0.0.2", port)) == 0) == (host == "0.0.0.0")
        tap.close_writer()


def test_a_run_does_not_wait_for_a_server_that_was_killed(tap):
    with Server(Address(port=0), "a run", CREATED) as server:
        server.start(tap.path, COLUMNS, ())
        server.wait_ready()
        os.kill(server.pid, signal.SIGKILL)
    assert not tap.closed


def test_a_port_in_use_is_one_line_before_anything_opens(configs, tmp_path, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        out, port = tmp_path / "run.h5", taken.getsockname()[1]
        words = ["run", str(configs / "miga6/all_on.toml"), "--out", str(out)]
        assert main([*words, "--foxglove", str(port)]) == 2
    line = capsys.readouterr().err.strip()
    assert line == (
        f"--foxglove 127.0.0.1:{port}: Address already in use: choose another port, or 0 for any "
        "that is free"
    )
    assert not out.exists()


@pytest.mark.parametrize("port", ["65536", "-1", "eight", "1.2.3.4", "::", "²"])
def test_a_wrong_port_is_one_line(port, capsys):
    with pytest.raises(SystemExit) as left:
        main(["run", "x.toml", f"--foxglove={port}"])
    assert left.value.code == 2
    line = capsys.readouterr().err.strip()
    assert "has no port from 0 to 65535" in line
    assert "\n" not in line


def test_without_the_package_the_run_does_not_begin(configs, tmp_path, capsys, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        "hil.record.live.find_spec", lambda name: None if name == "websockets" else found(name)
    )
    out = tmp_path / "run.h5"
    words = ["run", str(configs / "miga6/all_on.toml"), "--out", str(out), "--foxglove"]
    assert main(words) == 2
    assert "scripts/setup foxglove" in capsys.readouterr().err
    assert not out.exists()


def test_a_server_that_cannot_listen_says_why(tap):
    with Server(Address("192.0.2.1", 0), "a run", CREATED) as server:  # of no interface: RFC 5737
        server.start(tap.path, COLUMNS, ())
        with pytest.raises(ConfigError, match="requested address: choose an address of this mach"):
            server.wait_ready()
