"""Shows a run live in Foxglove: a server in a process of its own, which reads the tap.

Started as ``python -m hil.record.live TAP HOST PORT PARENT`` with the facts of the run as JSON on
standard input. Its first line of output is the address, or why there is none. It maps the tap for
reading only and offers no way to publish, set parameters or call, so a viewer changes nothing. It
ends when the loop has closed the tap, or when the loop's process has ended.

Of web pages only Foxglove's own and those of this computer may connect, and programs, which send no
`Origin` (`hil.record.door`).

Source: Foxglove WebSocket protocol v1, github.com/foxglove/ws-protocol, docs/spec.md.
"""

import asyncio
import json
import os
import secrets
import select
import signal
import struct
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime
from http import HTTPStatus
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from hil.config.values import Figures
from hil.errors import ConfigError, missing_extra
from hil.loop import tap as taps
from hil.loop.frame import Column
from hil.platform.processes import APART, PYTHON, STOP_SIGNALS, be_nice, parent_watch
from hil.record import messages
from hil.record.door import (
    ANOTHER_PORT,
    OPEN_S,
    Address,
    is_page_of_this_computer,
    limited_connection,
    reason_of,
    refusal,
)

if TYPE_CHECKING:
    from websockets.asyncio.server import ServerConnection

PORT = 8765  # Foxglove's own default
# Foxglove in a browser, and on the desktop, which is a page from the disk (like any page that is
# opened from there; a page in a sandbox has the origin "null").
ORIGINS = ("https://app.foxglove.dev", "file://")
SUBPROTOCOLS = ("foxglove.sdk.v1", "foxglove.websocket.v1")
MESSAGE = struct.Struct("<BIQ")  # operation, subscription, time in ns; then the message
NUMBER_MAX = 2**32 - 1  # of a subscription, in MESSAGE
MESSAGE_DATA, WARNING, ERROR = 1, 1, 2
BACKLOG_B = 2**24  # that a slow viewer has not yet taken
ORDER_MAX_B = 2**16  # of a message from a viewer
POLL_S = 0.02
READY_TIMEOUT_S = 60.0
LINGER_S = 0.3  # in which viewers take the last messages
END_TIMEOUT_S = 10.0
BAD_ADDRESS = 2


def require_foxglove() -> None:
    """Check that the server's package is installed; ConfigError if not."""
    if find_spec("websockets") is None:
        raise missing_extra("--foxglove", "foxglove")


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
        streams, _, _ = select.select([output], [], [], READY_TIMEOUT_S)
        words = output.readline().strip() if streams else f"no answer: {ANOTHER_PORT}"
        if not words.startswith("ws://"):
            words = words or f"the server ended: {ANOTHER_PORT}"
            raise ConfigError(f"--foxglove {self._address}: {words}")
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


class _Viewer:
    """A connected viewer.

    Attributes
    ----------
    subscriptions : its number for every channel that it shows
    lost : messages that it was too slow for
    """

    def __init__(self, connection: "ServerConnection") -> None:
        self.connection = connection
        self.subscriptions: dict[int, int] = {}
        self.lost = 0

    def send(self, data: str | bytes) -> bool:
        """Send without waiting; returns whether it was sent, or the viewer is too slow for it."""
        from websockets.asyncio.server import broadcast

        if self.connection.transport.get_write_buffer_size() > BACKLOG_B:
            return False
        broadcast([self.connection], data)
        return True

    def say(self, level: int, text: str, **more: str) -> bool:
        """Show a status; returns whether it was sent."""
        return self.send(json.dumps({"op": "status", "level": level, "message": text, **more}))

    def obey(self, order: str | bytes, n_channels: int) -> None:
        """Change subscriptions; nothing else can be asked."""
        try:
            request = json.loads(order)
            match request["op"]:
                case "subscribe":
                    ids = {int(s["channelId"]): int(s["id"]) for s in request["subscriptions"]}
                    if not ids.keys() <= set(range(1, n_channels + 1)):
                        raise ValueError
                    if not all(0 <= number <= NUMBER_MAX for number in ids.values()):
                        raise ValueError
                    self.subscriptions |= ids
                case "unsubscribe":
                    unsubscribed = [int(number) for number in request["subscriptionIds"]]
                    kept = {c: n for c, n in self.subscriptions.items() if n not in unsubscribed}
                    self.subscriptions = kept
                case other:
                    self.say(ERROR, f"not served: {other}: this server is for watching only")
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            self.say(ERROR, "not understood")


class _Feed:
    """Sends what the tap has to those who have subscribed."""

    def __init__(self, tap: taps.Tap, facts: Figures) -> None:
        columns = [Column(**{**c, "flags": tuple(c["flags"])}) for c in facts["columns"]]
        self._tap = tap
        self._start_ns = round(datetime.fromisoformat(facts["created_utc"]).timestamp() * 1e9)
        self._topics = messages.topics_of(columns, facts["cells"])
        named = [(topic.name, topic.schema) for topic in self._topics]
        named += [("/events", messages.EVENTS_SCHEMA), ("/inputs", messages.INPUTS_SCHEMA)]
        self.channels = [
            {
                "id": number,
                "topic": name,
                "encoding": "json",
                "schemaName": schema["title"],
                "schemaEncoding": "jsonschema",
                "schema": json.dumps(schema),
            }
            for number, (name, schema) in enumerate(named, start=1)
        ]
        self.viewers: set[_Viewer] = set()
        self._n_ticks = self._n_events = self._n_inputs = 0
        self.lost = 0

    def _wanted(self, channel: int) -> bool:
        return any(channel in viewer.subscriptions for viewer in self.viewers)

    def _publish(self, channel: int, time_ns: int, message: bytes) -> None:
        for viewer in self.viewers:
            if (number := viewer.subscriptions.get(channel)) is not None:
                data = MESSAGE.pack(MESSAGE_DATA, number, time_ns) + message
                viewer.lost += not viewer.send(data)

    def send(self) -> None:
        """Send rows, events and inputs since the last call.

        Without a subscriber rows are skipped; events and inputs wait for the first one.
        """
        numbered = enumerate(self._topics, start=1)
        wanted = [(channel, topic) for channel, topic in numbered if self._wanted(channel)]
        if wanted:
            rows, lost = self._tap.ticks.read(self._n_ticks)
            self.lost += lost
            self._n_ticks += lost + len(rows)
            columns = {name: rows[name] for name in rows.dtype.names or ()}
            times_ns = [self._at_ns(t_s) for t_s in rows["t_s"].tolist()]
            for channel, topic in wanted:
                for time_ns, message in zip(times_ns, topic.messages(columns), strict=True):
                    self._publish(channel, time_ns, message)
        else:
            self._n_ticks = self._tap.ticks.written
        events = len(self._topics) + 1
        if self._wanted(events):
            rows, lost = self._tap.events.read(self._n_events)
            self._n_events += lost + len(rows)
            for t_s, *words in rows.tolist():
                time_ns = self._at_ns(t_s)
                self._publish(events, time_ns, messages.event(time_ns, *map(_text, words)))
        inputs = events + 1
        if self._wanted(inputs):
            rows, lost = self._tap.inputs.read(self._n_inputs)
            self._n_inputs += lost + len(rows)
            for tick, t_s, name, value, text in rows.tolist():
                content = {"tick": tick, "name": _text(name), "value": value, "text": _text(text)}
                self._publish(inputs, self._at_ns(t_s), messages.packed(content))

    def _at_ns(self, t_s: float) -> int:
        return self._start_ns + round(1e9 * t_s)


def _text(word: bytes) -> str:
    return word.decode(errors="replace")


def _is_known(origin: str) -> bool:
    return origin in ORIGINS or is_page_of_this_computer(origin)


async def _serve(tap: taps.Tap, address: Address, facts: Figures, parent: int) -> None:
    """Serve a run until its end; OSError if the address cannot be used."""
    from websockets.asyncio.server import ServerConnection, serve
    from websockets.exceptions import ConnectionClosed
    from websockets.http11 import Request, Response
    from websockets.typing import Subprotocol

    feed, token = _Feed(tap, facts), secrets.token_urlsafe(16)
    session = secrets.token_hex(8)

    def check(connection: ServerConnection, request: Request) -> Response | None:
        headers = {name: request.headers.get_all(name) for name in ("Origin", "Host")}
        why = refusal(address, token, request.path, headers, _is_known)
        return connection.respond(HTTPStatus.FORBIDDEN, f"{why}\n") if why else None

    async def watch(connection: ServerConnection) -> None:
        viewer = _Viewer(connection)
        greeting = {"op": "serverInfo", "name": facts["title"], "capabilities": [],
                    "sessionId": session}  # fmt: skip
        viewer.send(json.dumps(greeting))
        viewer.send(json.dumps({"op": "advertise", "channels": feed.channels}))
        feed.viewers.add(viewer)
        try:
            with suppress(ConnectionClosed):  # without a farewell
                async for order in connection:
                    viewer.obey(order, len(feed.channels))
        finally:
            feed.viewers.discard(viewer)

    async with serve(
        watch, address.host, address.port, process_request=check,
        subprotocols=[Subprotocol(name) for name in SUBPROTOCOLS],
        compression=None, max_size=ORDER_MAX_B, create_connection=limited_connection(),
        open_timeout=OPEN_S,
    ) as server:  # fmt: skip
        port = next(iter(server.sockets)).getsockname()[1]
        query = "" if address.is_loopback else f"/?token={token}"
        print(f"ws://{address._replace(port=port)}{query}", flush=True)
        parent_lives = parent_watch(parent)
        losses: dict[_Viewer, int] = {}
        last = False
        while not last:
            last = tap.closed or not parent_lives()
            feed.send()
            for viewer in feed.viewers:
                now = feed.lost + viewer.lost
                text = f"{now} messages were not shown: the run is faster than this viewer"
                if now > losses.get(viewer, 0) and viewer.say(WARNING, text, id="lost"):
                    losses[viewer] = now
            await asyncio.sleep(LINGER_S if last else POLL_S)


def main() -> int:
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)  # the loop handles them
    be_nice()
    tap, host, port, parent = sys.argv[1:]
    facts = json.load(sys.stdin)
    try:
        attached, address = taps.attach(Path(tap), read_only=True), Address(host, int(port))
        asyncio.run(_serve(attached, address, facts, int(parent)))
    except OSError as error:
        print(reason_of(error), flush=True)
        return BAD_ADDRESS
    return 0


if __name__ == "__main__":
    sys.exit(main())
