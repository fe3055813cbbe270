"""Shows a run live in Foxglove: a server in a process of its own, which reads the tap.

Started as ``python -m hil.record.live TAP HOST PORT PARENT`` with the facts of the run as JSON on
standard input. Its first line of output is the address, or why there is none. It maps the tap for
reading only and offers no way to publish, set parameters or call, so a viewer changes nothing. It
ends when the loop has closed the tap, or when the loop's process has ended.

Source: Foxglove WebSocket protocol, subprotocol foxglove.sdk.v1; package foxglove-sdk.
"""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from hil.errors import ConfigError
from hil.loop import tap as taps
from hil.loop.frame import Column
from hil.platform.processes import APART, PYTHON, STOP_SIGNALS, be_nice, parent_watch
from hil.record import messages

LOOPBACK = "127.0.0.1"
PORT = 8765  # Foxglove's own default
POLL_S = 0.02
BACKLOG = 16384  # messages kept for a slow viewer
READY_TIMEOUT_S = 60.0
LINGER_S = 0.3  # in which viewers take the last messages
END_TIMEOUT_S = 10.0
BAD_ADDRESS = 2


class Address(NamedTuple):
    """Where a server listens; port 0 is any free one."""

    host: str = LOOPBACK
    port: int = PORT

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def address_of(text: str) -> Address:
    """Parse `PORT` or `HOST:PORT`; ValueError if the port is not a number from 0 to 65535."""
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdecimal() and int(port) < 65536):
        raise ValueError(text)
    return Address(host.strip("[]") or LOOPBACK, int(port))


def require_foxglove() -> None:
    """Check that the server's package is installed; ConfigError if not."""
    if find_spec("foxglove") is None:
        raise ConfigError("--foxglove needs an extra: pip install 'hil-arrays[foxglove]'")


class Server:
    """The run's end of the server process; without an address it does nothing.

    Use as a context manager, so that the process has ended at the end of the block.

    Parameters
    ----------
    title : name of the run that viewers show
    created_utc : of the recording; messages have this time plus their t_s
    """

    def __init__(self, address: Address | None, title: str, created_utc: str) -> None:
        self._address = address
        self._facts = {"title": title, "created_utc": created_utc}
        self._process: subprocess.Popen[str] | None = None

    def start(self, tap: Path, columns: Sequence[Column], cells: Sequence[str]) -> None:
        """Start the process, which needs about a second until it listens."""
        if self._address is None:
            return
        command = [*PYTHON, "-m", "hil.record.live", str(tap)]
        self._process = subprocess.Popen(
            [*command, self._address.host, str(self._address.port), str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # the package prints a line a message to a lost viewer
            text=True,
            **APART,  # only the loop gets the terminal's Ctrl-C
        )
        columns_as_json = [asdict(column) for column in columns]
        facts = {**self._facts, "columns": columns_as_json, "cells": list(cells)}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(facts))
        self._process.stdin.close()

    def wait_ready(self) -> str:
        """Block until it listens; returns its address, empty if none is wanted.

        Raises
        ------
        ConfigError
            The address cannot be used.
        """
        if self._process is None:
            return ""
        output = self._process.stdout
        assert output is not None
        there, _, _ = select.select([output], [], [], READY_TIMEOUT_S)
        words = output.readline().strip() if there else "the server does not answer"
        if not words.startswith("ws://"):
            raise ConfigError(
                f"--foxglove {self._address}: {words or 'the server ended'}: choose another port, "
                "or 0 for any that is free"
            )
        return words

    @property
    def pid(self) -> int:
        """Process id of the server; 0 if there is none."""
        return 0 if self._process is None else self._process.pid

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *error: object) -> None:
        if self._process is None:
            return
        try:
            self._process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


class _Feed:
    """Sends what the tap has to those who have subscribed."""

    def __init__(self, tap: taps.Tap, facts: Mapping[str, Any], context: Any) -> None:
        from foxglove import Channel

        columns = [Column(**{**c, "flags": tuple(c["flags"])}) for c in facts["columns"]]
        self._tap = tap
        self._start_ns = round(datetime.fromisoformat(facts["created_utc"]).timestamp() * 1e9)
        self._topics = [
            (topic, Channel(topic.name, schema=topic.schema, context=context))
            for topic in messages.topics_of(columns, facts["cells"])
        ]
        self._events = Channel("/events", schema=messages.EVENTS_SCHEMA, context=context)
        self._inputs = Channel("/inputs", schema=messages.INPUTS_SCHEMA, context=context)
        self._n_ticks = self._n_events = self._n_inputs = 0
        self.lost = 0

    def send(self) -> None:
        """Send rows, events and inputs since the last call.

        Without a subscriber rows are skipped; events and inputs wait for the first one.
        """
        wanted = [(topic, channel) for topic, channel in self._topics if channel.has_sinks()]
        if wanted:
            rows, lost = self._tap.ticks.read(self._n_ticks)
            self.lost += lost
            self._n_ticks += lost + len(rows)
            columns = {name: rows[name] for name in rows.dtype.names or ()}
            times_ns = [self._at_ns(t_s) for t_s in rows["t_s"].tolist()]
            for topic, channel in wanted:
                for time_ns, message in zip(times_ns, topic.messages(columns), strict=True):
                    channel.log(message, log_time=time_ns)
        else:
            self._n_ticks = self._tap.ticks.written
        if self._events.has_sinks():
            found, lost = self._tap.events.read(self._n_events)
            self._n_events += lost + len(found)
            for t_s, *words in found.tolist():
                time_ns = self._at_ns(t_s)
                message = messages.event(time_ns, *map(_text, words))
                self._events.log(message, log_time=time_ns)
        if self._inputs.has_sinks():
            found, lost = self._tap.inputs.read(self._n_inputs)
            self._n_inputs += lost + len(found)
            for tick, t_s, name, value, text in found.tolist():
                content = {"tick": tick, "name": _text(name), "value": value, "text": _text(text)}
                self._inputs.log(messages.packed(content), log_time=self._at_ns(t_s))

    def _at_ns(self, t_s: float) -> int:
        return self._start_ns + round(1e9 * t_s)


def _text(word: bytes) -> str:
    return word.decode(errors="replace")


def serve(tap: taps.Tap, address: Address, facts: Mapping[str, Any], parent: int) -> None:
    """Serve a run until its end.

    Raises
    ------
    RuntimeError
        The address cannot be used.
    """
    import foxglove
    from foxglove.websocket import StatusLevel

    context = foxglove.Context()
    feed = _Feed(tap, facts, context)
    server = foxglove.start_server(
        name=facts["title"],
        host=address.host,
        port=address.port,
        context=context,
        capabilities=[],
        message_backlog_size=BACKLOG,
    )
    print(f"ws://{address._replace(port=server.port)}", flush=True)
    parent_lives = parent_watch(parent)
    lost = 0
    while True:
        last = tap.closed or not parent_lives()
        feed.send()
        if feed.lost > lost:
            lost = feed.lost
            text = f"{lost} rows were not shown: the run is faster than this viewer"
            server.publish_status(text, StatusLevel.Warning, "lost")
        if last:
            break
        time.sleep(POLL_S)
    time.sleep(LINGER_S)
    server.stop()


def main() -> int:
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)  # the loop handles them
    be_nice()
    tap, host, port, parent = sys.argv[1:]
    facts = json.load(sys.stdin)
    try:
        serve(taps.attach(Path(tap), read_only=True), Address(host, int(port)), facts, int(parent))
    except RuntimeError as error:
        print(str(error).rpartition("port: ")[2].partition(" (os error")[0], flush=True)
        return BAD_ADDRESS
    return 0


if __name__ == "__main__":
    sys.exit(main())
