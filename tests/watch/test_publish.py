"""What an MQTT broker and an inlet of Lab Streaming Layer get of a run."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pylsl
import pytest
from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion

from hil.__main__ import main
from hil.record.read import open_run
from hil.watch.publish import Lsl, Mqtt, broker_of

WAIT_S = 300.0
MOSQUITTO = shutil.which("mosquitto", path=f"{os.environ['PATH']}:/usr/sbin")


def wait_until(is_so):
    until_s = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < until_s
        time.sleep(0.02)


@pytest.fixture
def on_a_real_clock(shown):
    run, tap, rows = shown
    run.facts = run.facts._replace(clock="real")
    return SimpleNamespace(run=run), tap, rows


def inlets(run):
    """The stream of rows and that of events, of this test's run."""
    found = []
    for kind in ("Measurement", "Markers"):
        (info,) = pylsl.resolve_byprop("type", kind, minimum=1, timeout=WAIT_S)
        found.append(pylsl.StreamInlet(info))
        found[-1].open_stream(WAIT_S)
    return found


def pulled(inlet, count):
    samples, stamps_s = [], []
    until_s = time.monotonic() + WAIT_S
    while len(samples) < count and time.monotonic() < until_s:
        more, at_s = inlet.pull_chunk(timeout=1.0)
        samples += more
        stamps_s += at_s
    return np.array(samples), np.array(stamps_s)


def test_an_inlet_gets_every_row_with_the_times_of_the_loop(on_a_real_clock, monkeypatch):
    bench, tap, rows = on_a_real_clock
    tap.ticks.push_many(rows[:1000])  # before it was published
    lsl = Lsl()
    lsl.take(bench)
    samples, events = inlets(bench.run)
    info = samples.info()
    assert info.nominal_srate() == pytest.approx(1000.0)
    names = info.get_channel_labels()
    assert "SIMULATED" in info.as_xml()
    began_s = pylsl.local_clock()
    for i in range(1000, 1300, 100):
        tap.ticks.push_many(rows[i : i + 100])
        lsl.take(bench)
    got, at_s = pulled(samples, 300)
    part = rows[1000:1300]
    for name in ("force_measured_N", "force_model_N"):
        np.testing.assert_array_equal(got[:, names.index(name)], part[name])
    np.testing.assert_array_equal(got[:, names.index("cells_commanded.muscle.2")],
                                  part["cells_commanded"][:, 1])  # fmt: skip
    np.testing.assert_allclose(np.diff(at_s[-100:]), np.diff(part["t_s"][-100:]), atol=1e-9)
    assert began_s - 0.3 < at_s[-1] <= pylsl.local_clock()  # the last row was 0.3 s after the first
    units = dict(zip(names, info.get_channel_units(), strict=True))
    assert units["force_measured_N"] == "N"
    tap.events.push_many(np.array([(1.25, b"warning", b"guard", b"late")], tap.events._rows.dtype))
    bench.run.look()
    lsl.take(bench)
    texts, marked_s = pulled(events, 1)
    assert texts.tolist() == [["warning: late"]]
    assert marked_s[0] - at_s[-1] == pytest.approx(1.25 - part["t_s"][-1], abs=1e-9)
    lsl.close()


def test_the_trip_that_ends_a_run_is_a_marker(on_a_real_clock, monkeypatch):
    """The stream ended with the loop; events were read only now and then."""
    bench, tap, rows = on_a_real_clock
    pushed = []
    outlet = SimpleNamespace(push_chunk=lambda *_: None, push_sample=lambda *of: pushed.append(of))
    monkeypatch.setattr(pylsl, "StreamOutlet", lambda info: outlet)
    lsl = Lsl()
    lsl.take(bench)
    tap.ticks.push_many(rows[:100])
    lsl.take(bench)
    event = np.array([(0.1, b"fault", b"guard", b"force_high")], tap.events._rows.dtype)
    tap.events.push_many(event)
    tap.close_writer()
    lsl.take(bench)
    assert pushed[-1][0] == ["fault: force_high"]


def test_a_run_on_the_virtual_clock_has_no_times_for_lsl(shown, capsys):
    run, tap, rows = shown
    tap.ticks.push_many(rows[:100])
    lsl = Lsl()
    for _ in range(2):
        lsl.take(SimpleNamespace(run=run))
    assert capsys.readouterr().err.count("not published: LSL has no virtual clock") == 1


@pytest.mark.parametrize(("address", "parts"), [
    ("mqtt://broker", ("mqtt", "broker", 1883, "", f"hil/{os.uname().nodename}")),
    ("mqtts://ada@10.0.0.7/lab/bench3/", ("mqtts", "10.0.0.7", 8883, "ada", "lab/bench3")),
    ("mqtt://[::1]:1884/a%20b", ("mqtt", "::1", 1884, "", "a b")),
])  # fmt: skip
def test_a_broker_has_an_address(address, parts):
    assert tuple(broker_of(address)) == parts


@pytest.mark.parametrize(("words", "said"), [
    ([], "hil publish: to whom: give --mqtt ADDRESS or --lsl, or both"),
    (["--mqtt", "broker:1883"], "--mqtt: no address of a broker: give mqtt[s]://"),
    (["--mqtt", "mqtt://"], "--mqtt: no address of a broker"),
    (["--mqtt", "mqtt://broker:99999"], "--mqtt: no address of a broker"),
    (["--mqtt", "mqtt://[::1"], "--mqtt: no address of a broker"),
    (["--mqtt", "mqtt://broker/lab/#"], "--mqtt: no address of a broker"),
    (["--mqtt", "mqtt://a..b"], "--mqtt: no address of a broker"),
    (["--mqtt", "mqtt://broker:0"], "--mqtt: no address of a broker"),
    (["--mqtt", f"mqtt://broker/{'x' * 70_000}"], "--mqtt: a topic or user of 70000 bytes: at"),
    (["--mqtt", f"mqtt://{'u' * 70_000}@broker"], "--mqtt: a topic or user of 70000 bytes"),
    (["--mqtt", "mqtt://broker/\udcff"], "--mqtt: no address of a broker"),
    (["--mqtt", "mqtt://broker/a%0Ab"], "--mqtt: no address of a broker"),
    (["--mqtt", "mqtt://broker/%ff%fe"], "--mqtt: no address of a broker"),
    (["--mqtt", "mqtt://a b"], "--mqtt: no address of a broker"),
    (["--mqtt", "mqtt://u%00@broker"], "--mqtt: no address of a broker"),
    (["--mqtt", "mqtt://ada:secret@broker"], "--mqtt: a password is read from HIL_MQTT_PASSWORD"),
])  # fmt: skip
def test_bad_input_is_one_line_without_a_password(words, said, tmp_path, capsys):
    assert main(["publish", str(tmp_path), *words]) == 2
    err = capsys.readouterr().err
    assert err.startswith(said)
    assert err.count("\n") == 1
    assert "secret" not in err


@pytest.mark.parametrize(("option", "package"), [("--mqtt", "paho"), ("--lsl", "pylsl")])
def test_a_missing_package_is_one_line(option, package, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("hil.watch.publish.find_spec", lambda name: None)
    words = [option, "mqtt://broker"] if option == "--mqtt" else [option]
    assert main(["publish", str(tmp_path), *words]) == 2
    assert option.strip("-") in capsys.readouterr().err


@pytest.mark.parametrize(("retained", "content", "warns"), [
    (True, b"true", True), (True, b"false", False), (False, b"true", False),
])  # fmt: skip
def test_a_second_publisher_on_a_topic_says_so(retained, content, warns, capsys, monkeypatch):
    """What is not retained is its own."""
    monkeypatch.setattr(Client, "loop_start", lambda self: None)
    mqtt, topics = Mqtt(broker_of("mqtt://127.0.0.1/lab")), []
    client = SimpleNamespace(subscribe=lambda topic, qos: topics.append(topic),
                             unsubscribe=topics.remove)  # fmt: skip
    for _ in range(2):  # connected again
        mqtt._connected(client, None, None, SimpleNamespace(is_failure=False), None)
    assert topics == ["lab/online"]
    message = SimpleNamespace(topic="lab/online", retain=retained, payload=content)
    mqtt._heard(client, None, message)
    assert topics == []
    assert ("/lab: another hil publish is online: " in capsys.readouterr().err) == warns


def test_what_a_broker_kept_of_a_run_before_is_taken_back(monkeypatch):
    """A publisher that ended during a run left `running` there, and the next one said `online`."""
    monkeypatch.setattr(Client, "loop_start", lambda self: None)
    monkeypatch.setattr(Client, "is_connected", lambda self: True)
    mqtt, kept = Mqtt(broker_of("mqtt://127.0.0.1/lab")), {}
    mqtt._has_asked = True
    monkeypatch.setattr(
        mqtt._client, "publish", lambda topic, text, qos, retain: kept.update({topic: text})
    )
    mqtt.take(SimpleNamespace(run=None, state=lambda: {}))
    assert {kept[f"lab/{topic}"] for topic in ("run", "state", "end")} == {"null"}


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


@contextlib.contextmanager
def mosquitto(folder, port, who="allow_anonymous true"):
    settings = folder / "mosquitto.conf"
    settings.write_text(f"listener {port} 127.0.0.1\n{who}\n")
    with subprocess.Popen([MOSQUITTO, "-c", settings], stderr=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.terminate()


class Subscriber:
    """Everything that a broker sends: the last text of each topic, and all texts."""

    def __init__(self, port, user="", password="", ca=None):
        self.last, self.all = {}, []
        self.client = Client(CallbackAPIVersion.VERSION2)
        if user:
            self.client.username_pw_set(user, password)
        if ca is not None:
            self.client.tls_set(ca)
        self.client.on_message = self._take
        self.client.on_connect = lambda client, *_: client.subscribe("lab/#", qos=1)
        self.client.reconnect_delay_set(1, 1)
        self.client.connect_async("127.0.0.1" if ca is None else "localhost", port)
        self.client.loop_start()

    def _take(self, client, data, message):
        topic = message.topic.removeprefix("lab/")
        self.last[topic] = json.loads(message.payload)
        self.all.append((topic, self.last[topic]))

    def close(self):
        self.client.disconnect()
        self.client.loop_stop()


@pytest.mark.slow
def test_a_broker_that_does_not_answer_is_named(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        command = [sys.executable, "-m", "hil", "publish", str(tmp_path),
                   "--mqtt", f"mqtt://127.0.0.1:{port}/lab"]  # fmt: skip
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as publisher:
            line = publisher.stderr.readline()
            publisher.terminate()
    assert line == f"mqtt://127.0.0.1:{port}/lab: does not answer: it is tried again\n"


@pytest.mark.slow
def test_a_broker_gets_a_run_its_end_and_the_last_will(configs, tmp_path):
    port = free_port()
    command = [sys.executable, "-m", "hil", "publish", str(tmp_path),
               "--mqtt", f"mqtt://127.0.0.1:{port}/lab"]  # fmt: skip
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as publisher:
        assert "cannot be reached: it is tried again" in publisher.stderr.readline()
        lines = []
        threading.Thread(target=lambda: lines.extend(publisher.stderr), daemon=True).start()
        heard = Subscriber(port)
        with mosquitto(tmp_path, port):
            wait_until(lambda: heard.last.get("online"))
            words = [
                "run",
                str(configs / "miga6/all_on.toml"),
                "--clock",
                "real",
                "--duration",
                "4",
            ]
            words += ["--set", "loop.overrun=tolerate", "--set", "loop.overruns_max=4000"]
            words += ["--out", str(tmp_path / "run.h5")]
            subprocess.run([sys.executable, "-m", "hil", *words], check=True,
                           stdout=subprocess.DEVNULL)  # fmt: skip
            wait_until(lambda: heard.last.get("end"))
        run = open_run(tmp_path / "run.h5")
        row_of = {round(t_s, 4): i for i, t_s in enumerate(run.t_s.values.tolist())}
        signals = [content for topic, content in heard.all if topic == "signal/force"]
        assert len(signals) > 10
        for content in signals:
            i = row_of[content["t_s"]]
            assert content["measured"] == pytest.approx(float(run.force_measured_N[i]), rel=1e-5)
            assert content["model"] == pytest.approx(float(run.force_model_N[i]), rel=1e-5)
        commanded = [content for topic, content in heard.all if topic == "cells/commanded"]
        assert {content["muscle.6"] for content in commanded} == {0, 1}
        assert heard.last["run"]["file"] == "run.h5"
        assert heard.last["end"]["outcome"] == run.attrs["outcome"] == "complete"
        assert heard.last["state"]["over"]
        texts = [content["text"] for topic, content in heard.all if topic == "event"]
        assert texts == run.event_text.values.tolist()
        heard.last.clear()
        with mosquitto(tmp_path, port):  # restarted: it has forgotten what was retained
            late = Subscriber(port)
            wait_until(lambda: late.last.keys() >= {"online", "bench", "run", "state", "end"})
            assert late.last["online"] is True
            with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as second:
                assert "another hil publish is online" in second.stderr.readline()
                second.kill()
            wait_until(lambda: late.last["online"] is False)
            late.last.clear()
            publisher.send_signal(signal.SIGKILL)
            wait_until(lambda: late.last.get("online") is False)
            late.close()
        heard.close()
    assert len(lines) <= 1  # each time that it is gone


@pytest.mark.slow
def test_a_broker_that_asks_for_a_password_gets_it_from_the_environment(tmp_path):
    port, secrets = free_port(), tmp_path / "passwords"
    maker = shutil.which("mosquitto_passwd")
    subprocess.run([maker, "-b", "-c", secrets, "ada", "right"], check=True)
    secrets.chmod(0o644)  # the broker reads it as a user of its own
    tmp_path.chmod(0o755)
    who = f"allow_anonymous false\npassword_file {secrets}\nuser root"
    command = [sys.executable, "-m", "hil", "publish", str(tmp_path),
               "--mqtt", f"mqtt://ada@127.0.0.1:{port}/lab"]  # fmt: skip
    with mosquitto(tmp_path, port, who):
        heard = Subscriber(port, "ada", "right")
        for word, expected in (("wrong", "not authorized"), ("right", "")):
            environment = {**os.environ, "HIL_MQTT_PASSWORD": word}
            with subprocess.Popen(
                command, stderr=subprocess.PIPE, text=True, env=environment
            ) as publisher:
                if expected:
                    line = publisher.stderr.readline()
                    while "cannot be reached" in line:  # before the broker listens
                        line = publisher.stderr.readline()
                    assert expected in line
                    assert word not in line
                else:
                    wait_until(lambda: heard.last.get("online"))
                publisher.kill()
        heard.close()


@pytest.mark.slow
def test_mqtts_takes_a_broker_whose_certificate_is_trusted_and_no_other(tmp_path, certificate):
    port, pem = free_port(), tmp_path / "both.pem"
    shutil.copyfile(certificate, pem)
    who = f"allow_anonymous true\ncertfile {pem}\nkeyfile {pem}\nuser root"
    command = [sys.executable, "-m", "hil", "publish", str(tmp_path),
               "--mqtt", f"mqtts://localhost:{port}/lab"]  # fmt: skip
    with mosquitto(tmp_path, port, who):
        wait_until(lambda: listens(port))
        heard = Subscriber(port, ca=certificate)
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as stranger:
            assert "cannot be reached" in stranger.stderr.readline()
            assert heard.last == {}
            stranger.kill()
        environment = {**os.environ, "SSL_CERT_FILE": str(certificate)}
        with subprocess.Popen(command, env=environment) as trusted:
            wait_until(lambda: heard.last.get("online"))
            trusted.kill()
        heard.close()


def listens(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False
