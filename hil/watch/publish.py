"""Measurements of a bench for other programs: an MQTT broker, and Lab Streaming Layer.

A process of its own reads the tap of whichever run is in progress, as a page does. Nothing is taken
from a broker or a receiver, but for whether another publisher is online.
"""

from __future__ import annotations

import math
import os
import platform
import re
import sys
import time
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

import numpy as np
from numpy.typing import NDArray

from hil.config.values import Figures
from hil.errors import ConfigError, missing_extra
from hil.loop.frame import CELL_UNKNOWN, units
from hil.platform.terminal import say
from hil.watch.bench import Bench, Facts, Run, as_json, ending_of

if TYPE_CHECKING:
    from pylsl import StreamOutlet

LOOK_S = 0.5  # between two looks for runs
PORTS = {"mqtt": 1883, "mqtts": 8883}
PASSWORD = "HIL_MQTT_PASSWORD"
TEXT_MAX_B = 60_000  # of the 65 535 that MQTT has; the rest of a topic names a group of columns
CELLS = ("cells_commanded", "cells_reported")


class Receiver(Protocol):
    """One who gets what is new of a bench, every `period_s`."""

    period_s: float

    def take(self, bench: Bench) -> None: ...

    def close(self) -> None: ...


def publish(folder: Path, receivers: Sequence[Receiver]) -> None:
    """Publish the runs of a folder until this process is interrupted."""
    bench, look_s, due_s = Bench(folder), 0.0, [0.0] * len(receivers)
    try:
        while True:
            now_s = time.monotonic()
            if now_s >= look_s:
                bench.look()
                look_s = now_s + LOOK_S
            for i, receiver in enumerate(receivers):
                if now_s >= due_s[i]:
                    receiver.take(bench)
                    due_s[i] = now_s + receiver.period_s
            time.sleep(max(0.0, min(due_s) - time.monotonic()))
    finally:
        for receiver in receivers:
            receiver.close()


class Broker(NamedTuple):
    """An MQTT broker, and the topic above all topics of this bench."""

    scheme: str
    host: str
    port: int
    user: str
    topic: str

    def __str__(self) -> str:
        return f"{self.scheme}://{self.host}:{self.port}/{self.topic}"


def broker_of(text: str) -> Broker:
    """A broker by `mqtt[s]://[USER@]HOST[:PORT][/TOPIC]`.

    Raises
    ------
    ConfigError
        It is no such address, or has a password, which other users of this computer would see.
    """
    try:
        parts = urlsplit(text)
        port, topic = parts.port, unquote(parts.path.strip("/"), errors="strict")
        user = unquote(parts.username or "", errors="strict")
        (parts.hostname or "").encode("idna")
        size_B = max(len(topic.encode()), len(user.encode()))
    except ValueError:
        parts, port, topic, user, size_B = urlsplit(""), None, "", "", 0
    if parts.password is not None:
        raise ConfigError(
            f"--mqtt: a password is read from {PASSWORD}: leave it out of the address"
        )
    is_wrong = re.search(r"[#?]", text) or re.search(r"[+#]", topic) or port == 0
    host = parts.hostname or ""
    is_wrong = is_wrong or not re.fullmatch(r"[\w.:-]+", host) or not (topic + user).isprintable()
    if parts.scheme not in PORTS or is_wrong:
        raise ConfigError(
            "--mqtt: no address of a broker: give mqtt[s]://[USER@]HOST[:PORT][/TOPIC]"
        )
    if size_B > TEXT_MAX_B:
        raise ConfigError(f"--mqtt: a topic or user of {size_B} bytes: at most {TEXT_MAX_B}")
    port = PORTS[parts.scheme] if port is None else port
    return Broker(parts.scheme, host, port, user, topic or f"hil/{platform.node()}")


class Mqtt:
    """Publishes to a broker, as JSON: a topic for every group of columns, ten times a second.

    `online`, `bench`, `run`, `state` and `end` are retained, so that a late subscriber has them.
    When this process dies, the broker sets `online` to false (its last will). Where `online` is
    true before this process has said so, it warns: what two publish on one topic is mixed.

    Raises
    ------
    ConfigError
        The package is missing.
    """

    period_s = 0.1

    def __init__(self, broker: Broker) -> None:
        if find_spec("paho") is None:
            raise missing_extra("--mqtt", "mqtt")
        from paho.mqtt.client import Client
        from paho.mqtt.enums import CallbackAPIVersion

        self._broker, self._has_failed, self._has_asked = broker, False, False
        self._states: dict[str, str] = {}
        self._run, self._n_events = "", 0
        self._end: Figures | None = None
        self._client = Client(CallbackAPIVersion.VERSION2)
        if broker.user:
            self._client.username_pw_set(broker.user, os.environ.get(PASSWORD))
        if broker.scheme == "mqtts":
            self._client.tls_set()
        self._client.will_set(f"{broker.topic}/online", "false", qos=1, retain=True)
        self._client.on_connect, self._client.on_message = self._connected, self._heard
        self._client.on_connect_fail = lambda *_: self._failed("cannot be reached")
        self._client.on_disconnect = lambda *_: self._failed("does not answer")
        self._client.reconnect_delay_set(1, 10)
        self._client.connect_async(broker.host, broker.port, keepalive=10)
        self._client.loop_start()

    def _connected(self, client: Any, data: Any, flags: Any, reason: Any, properties: Any) -> None:
        if reason.is_failure:
            self._failed(str(reason).lower())
            return
        self._has_failed = False
        self._states = {}  # a broker that was restarted has forgotten
        if not self._has_asked:
            client.subscribe(f"{self._broker.topic}/online", qos=1)
            self._has_asked = True

    def _heard(self, client: Any, data: Any, message: Any) -> None:
        """Take the first `online`: what the broker retained, or this process's own."""
        client.unsubscribe(message.topic)
        if message.retain and message.payload == b"true":
            why = "another hil publish is online: end it, or give one of them another topic"
            say(f"{self._broker}: {why}", file=sys.stderr)

    def _failed(self, why: str) -> None:
        if not self._has_failed:
            self._has_failed = True
            say(f"{self._broker}: {why}: it is tried again", file=sys.stderr)

    def _put(self, topic: str, content: Figures | bool | None, *, retain: bool = False) -> None:
        """Publish; what is retained only if it has changed."""
        text = as_json(content)
        if retain and self._states.get(topic) == text:
            return
        self._states[topic] = text
        self._client.publish(f"{self._broker.topic}/{topic}", text, qos=int(retain), retain=retain)

    def take(self, bench: Bench) -> None:
        """Publish what is new; nothing while there is no connection."""
        if not (self._client.is_connected() and self._has_asked):
            return
        self._put("online", True, retain=True)
        self._put("bench", bench.state(), retain=True)
        run = bench.run
        if run is None or run.facts is None:
            for topic in ("run", "state", "end"):
                self._put(topic, None, retain=True)  # the broker may have those of a run before
            return
        if run.name != self._run:
            self._run, self._n_events, self._end = run.name, 0, None
        about, content = run.about(), run.rows()
        self._put("run", about, retain=True)
        self._put("state", {key: content.get(key) for key in ("id", "state", "over", "dead")}
                  | {"faults": run.faults}, retain=True)  # fmt: skip
        for t_s, level, source, text in run.events_after(self._n_events):
            self._put("event", {"t_s": t_s, "level": level, "source": source, "text": text})
        self._n_events = run.n_events
        for topic, values in _groups(about, content) if content["n"] else ():
            self._put(topic, {"t_s": content["t_s"], **values})
        if run.is_over and self._end is None and run.recording is not None:
            self._end = ending_of(run.recording)
        self._put("end", self._end, retain=True)

    def close(self) -> None:
        """Say that nothing more comes."""
        self._put("online", False, retain=True)
        self._client.on_disconnect = None
        self._client.disconnect()
        self._client.loop_stop()


def _groups(about: Figures, content: Figures) -> Iterator[tuple[str, Figures]]:
    """The last row by topic: every signal, cells, wires, shares of limits, ages."""
    for signal, values in zip(about["signals"], content["last"], strict=True):
        name = re.sub(r"[/+#]", "_", signal["name"])
        roles = dict(zip(("measured", "model", "reference"), values, strict=True))
        yield f"signal/{name}", {"unit": signal["unit"], **roles}
    cells = about["cells"]
    for name, values in zip(CELLS, content.get("cells", ()), strict=False):
        yield name.replace("_", "/"), dict(zip(cells, values, strict=True))
    for (name, unit), values in zip(about["wires"], content.get("wires", ()), strict=False):
        yield f"wires/{name}", {"unit": unit, **dict(zip(cells, values, strict=True))}
    limits = zip(about["limits"], content["limits"], strict=True)
    yield "limits", {name: share for (name, *_), (_, share) in limits}
    yield "ages", dict(zip(about["devices"], content["ages"], strict=True))


class Lsl:
    """Outlets of Lab Streaming Layer for each run: every row, and the events as markers.

    A row's time is that of the loop on the clock of `pylsl.local_clock`: the least delay with which
    rows have arrived here counts as none.

    Raises
    ------
    ConfigError
        The package is missing.
    """

    period_s = 0.01

    def __init__(self) -> None:
        if find_spec("pylsl") is None:
            raise missing_extra("--lsl", "lsl")
        self._run, self._n, self._n_events, self._start_s = "", 0, 0, math.inf
        self._columns: list[tuple[str, str]] = []
        self._outlets: list[StreamOutlet] = []

    def take(self, bench: Bench) -> None:
        """Push the rows and events since the last call."""
        import pylsl

        run = bench.run
        if run is None or run.facts is None:
            return
        if run.name != self._run:
            self._open(run, run.facts)
        if not self._outlets:
            return
        if is_over := run.is_over:
            run.look()  # its last events
        rows, self._n = run.since(self._n)
        if len(rows):
            self._start_s = min(self._start_s, pylsl.local_clock() - rows["t_s"][-1])
            self._outlets[0].push_chunk(self._channels(rows), rows["t_s"] + self._start_s)
        if math.isfinite(self._start_s):
            for t_s, level, _, text in run.events_after(self._n_events):
                self._outlets[1].push_sample([f"{level}: {text}"], t_s + self._start_s)
            self._n_events = run.n_events
        if is_over:
            self._outlets = []

    def _channels(self, rows: NDArray[np.void]) -> NDArray[np.float64]:
        """Rows of every channel; NaN where a state is not known."""
        cells = [np.where(rows[name] == CELL_UNKNOWN, np.nan, rows[name])
                 for name in CELLS if name in (rows.dtype.names or ())]  # fmt: skip
        return np.column_stack([*cells, *(rows[column] for column, _ in self._columns)])

    def _open(self, run: Run, facts: Facts) -> None:
        import pylsl

        self._run, self._n, self._n_events = run.name, run.n_rows, 0
        self._start_s, self._outlets = math.inf, []
        if facts.clock != "real":
            say(f"{facts.title}: not published: LSL has no virtual clock", file=sys.stderr)
            return
        wanted = [(column, units(s.suffix)) for s in facts.signals
                  for column in (s.measured, s.model, s.reference)]  # fmt: skip
        wanted += [
            (f"{cell}.{name}", unit) for _, name, unit in facts.wires for cell in facts.cells
        ]
        self._columns = [(name, unit) for name, unit in wanted if name in run.fields]
        cells = [(f"{name}.{cell}", "1") for name in CELLS if name in run.fields
                 for cell in facts.cells]  # fmt: skip
        labels, unit_names = zip(*cells, *self._columns, strict=True)
        origin, rate_Hz = f"{platform.node()} {facts.title}", 1.0 / facts.period_s
        rows = pylsl.StreamInfo(
            facts.title, "Measurement", len(labels), rate_Hz, pylsl.cf_double64, origin
        )
        rows.set_channel_labels(list(labels))
        rows.set_channel_units(list(unit_names))
        rows.desc().append_child_value("simulated", facts.simulated)
        events = pylsl.StreamInfo(
            f"{facts.title}: events", "Markers", 1, pylsl.IRREGULAR_RATE, pylsl.cf_string,
            f"{origin}: events",
        )  # fmt: skip
        self._outlets = [pylsl.StreamOutlet(info) for info in (rows, events)]

    def close(self) -> None:
        self._outlets = []
