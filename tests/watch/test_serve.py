"""Who may connect to the page of a bench, and what a reader can ask for."""

import asyncio
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from urllib.parse import urlsplit

import psutil
import pytest
from websockets.asyncio.client import connect as connect_async
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from hil.__main__ import main
from hil.record.door import CONNECTIONS_MAX, HANDSHAKES_MAX, Address
from hil.record.read import open_run
from hil.watch import serve, start
from hil.watch.bench import Bench
from hil.watch.serve import Bucket, Ending, Job, Page, Report, StopCode

WAIT_S = 300.0
WORDS = re.compile(r"page: (\S+)  \(code to stop the run: (\S+)\)")


@contextlib.contextmanager
def watching(*words):
    """A process that serves a page, with its address and code."""
    command = [sys.executable, "-m", "hil", *map(str, words)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            found = next(filter(None, map(WORDS.match, process.stderr)))
            yield process, *found.groups()
        finally:
            process.send_signal(signal.SIGINT)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("bench")


@pytest.fixture(scope="module")
def served(folder):
    """Address of the page of an empty bench on loopback."""
    with watching("watch", folder, "--page", "0") as (_, url, _):
        yield url


@pytest.fixture(scope="module")
def served_everywhere(folder):
    with watching("watch", folder, "--page", "0.0.0.0:0") as (_, url, _):
        yield url


def get(url, path="/", context=None, **headers):
    """Status, headers and text of a GET with these headers."""
    parts = urlsplit(url)
    kind = http.client.HTTPConnection if context is None else http.client.HTTPSConnection
    more = {} if context is None else {"context": context}
    link = kind("127.0.0.1", parts.port, timeout=WAIT_S, **more)
    with contextlib.closing(link):
        link.putrequest("GET", path, skip_host="Host" in headers)
        for name, value in headers.items():
            link.putheader(name.replace("_", "-"), value)
        link.endheaders()
        answer = link.getresponse()
        return answer.status, answer.headers, answer.read().decode()


def joined(address):
    """A reader, as soon as the rate of requests admits one: tests are quicker than readers."""
    until_s = time.monotonic() + WAIT_S
    while True:
        try:
            return connect(address)
        except InvalidStatus as refused:
            if refused.response.status_code != 429 or time.monotonic() > until_s:
                raise
            time.sleep(0.05)


def live(url, **headers):
    """What the page's WebSocket says first; InvalidStatus if it is refused."""
    address = url.replace("http", "ws", 1).replace("0.0.0.0", "127.0.0.1")
    address = address.replace("/?", "/live?") if "?" in address else f"{address}live"
    with connect(address, additional_headers=headers.pop("more", None), **headers) as link:
        return json.loads(link.recv(WAIT_S))["kind"]


def test_the_page_is_one_file_that_no_other_page_may_frame_or_read(served):
    status, headers, text = get(served)
    assert status == 200
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert (headers["X-Frame-Options"], headers["Referrer-Policy"]) == ("DENY", "no-referrer")
    assert "Access-Control-Allow-Origin" not in headers
    assert not re.findall(r"""(?:src|href)=["']https?:""", text)
    nonces = set(re.findall(r"nonce-([\w-]+)", policy)) | set(re.findall(r'nonce="([\w-]+)"', text))
    assert len(nonces) == 1
    assert nonces != set(re.findall(r'nonce="([\w-]+)"', get(served)[2]))


def test_a_page_whose_name_leads_here_gets_nothing(served):
    """DNS rebinding: the browser takes the page's own origin for that of the server."""
    for name in ("evil.example", "localhost.evil.example", "127.0.0.1.evil.example"):
        for path in ("/", "/live", "/picture.png", "/report"):
            assert get(served, path, Host=name)[0] == 403
    assert get(served, Host=f"localhost:{urlsplit(served).port}")[0] == 200


def test_a_page_of_another_origin_may_not_connect(served):
    port = urlsplit(served).port
    for origin in ("https://evil.example", "null", "http://localhost:1", f"https://127.0.0.1:{port}",
                   "https://app.foxglove.dev", "file://"):  # fmt: skip
        with pytest.raises(InvalidStatus) as refused:
            live(served, origin=origin)
        assert refused.value.response.status_code == 403
    assert live(served, origin=f"http://127.0.0.1:{port}") == "hello"
    assert live(served) == "hello"


def test_a_picture_in_a_page_of_another_origin_is_refused(served):
    for site in ("cross-site", "same-site"):
        assert get(served, "/picture.png", Sec_Fetch_Site=site)[0] == 403
    assert get(served, "/picture.png", Sec_Fetch_Site="same-origin")[0] == 404
    assert get(served, "/", Sec_Fetch_Site="cross-site")[0] == 200


def test_off_loopback_every_address_needs_the_token(served_everywhere):
    url = served_everywhere
    token = url.partition("?token=")[2]
    assert len(token) >= 22  # 128 bits
    for path in ("/", "/live", "/picture.png", "/report"):
        for query in ("", "?token=", f"?token={token}x", f"?token={token[:-1]}", "?token=%C3%A9"):
            status, _, text = get(url, path + query)
            assert (status, "token is missing or wrong" in text) == (403, True)
    assert get(url, f"/?token={token}")[0] == 200
    assert live(url) == "hello"
    with pytest.raises(InvalidStatus):
        live(url, origin="https://evil.example")


def test_only_get_is_understood(served):
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        link = http.client.HTTPConnection("127.0.0.1", urlsplit(served).port, timeout=WAIT_S)
        with contextlib.closing(link):
            link.request(method, "/")
            with contextlib.suppress(http.client.HTTPException, OSError):
                assert link.getresponse().status >= 400


@pytest.mark.parametrize(
    "path",
    ["/../pyproject.toml", "/etc/passwd", "/%2e%2e/x", "/report/../x", "//report", "/x", "//[x/"],
)
def test_a_path_outside_gives_nothing(path, served):
    assert get(served, path)[0] == 404


@pytest.mark.slow
def test_whoever_asks_too_often_waits_and_the_others_are_served_again(folder):
    with watching("watch", folder, "--page", "0") as (_, url, _):
        found = {get(url, "/x")[0] for _ in range(3 * serve.REQUESTS_PER_S)}
        assert 429 in found
        while get(url)[0] != 200:
            pass


def test_a_bucket_holds_as_many_as_a_second_allows(monkeypatch):
    now_s = [5.0]
    monkeypatch.setattr(serve.time, "monotonic", lambda: now_s[0])
    bucket = Bucket(3.0, _at_s=5.0)
    assert [bucket.take() for _ in range(5)] == [True, True, True, False, False]
    now_s[0] += 0.34
    assert [bucket.take() for _ in range(2)] == [True, False]
    now_s[0] += 60.0
    assert [bucket.take() for _ in range(4)] == [True, True, True, False]


def test_after_five_wrong_codes_none_is_taken_for_a_minute(monkeypatch):
    now_s = [5.0]
    monkeypatch.setattr(serve.time, "monotonic", lambda: now_s[0])
    code = StopCode()
    assert code.refusal(code.text.lower().replace("-", " ")) == ""
    for _ in range(serve.CODES_MAX):
        assert code.refusal("AAAA-AAAA").startswith("wrong code")
    assert code.refusal(code.text).startswith("too many wrong codes")
    now_s[0] += serve.CODES_S + 0.1
    assert code.refusal(code.text) == ""
    assert len({StopCode().text for _ in range(20)}) == 20


def test_the_number_of_readers_is_bounded(served):
    address = served.replace("http", "ws") + "live"
    with contextlib.ExitStack() as links:
        for _ in range(serve.READERS_MAX):
            link = links.enter_context(joined(address))
            assert json.loads(link.recv(WAIT_S))["kind"] == "hello"
        with joined(address) as one_more, pytest.raises(ConnectionClosed) as closed:
            one_more.recv(WAIT_S)
        assert closed.value.rcvd.code == serve.TRY_AGAIN


def test_connections_that_say_nothing_keep_nobody_out(served):
    port = urlsplit(served).port
    with contextlib.ExitStack() as links:
        silent = [links.enter_context(socket.create_connection(("127.0.0.1", port), WAIT_S))
                  for _ in range(2 * CONNECTIONS_MAX)]  # fmt: skip
        with joined(served.replace("http", "ws") + "live"):
            pass
        with contextlib.suppress(ConnectionResetError):
            assert silent[0].recv(1) == b""  # so that they do not use up the files of the process
        silent[-1].sendall(f"GET / HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n".encode())
        assert silent[-1].recv(12) == b"HTTP/1.1 200"


def test_a_reader_that_is_too_slow_is_dropped_and_the_others_get_everything(tmp_path):
    page = Page(Bench(tmp_path), Job(str(tmp_path), 0, "bench", "127.0.0.1", 0), Ending())
    frame, most_B = {"kind": "test", "text": "x" * 200_000}, []

    async def both():
        async with serve.served(page, Address()) as url:
            address = url.replace("http", "ws") + "live"
            async with (
                connect_async(address, max_size=None, max_queue=1),
                connect_async(address, max_size=None, max_queue=None) as quick,
            ):  # the first one reads nothing
                while len(page.readers) < 2:
                    await asyncio.sleep(0.01)
                sent = 0
                while len(page.readers) > 1:
                    page.send(frame)
                    sent += 1
                    most_B.append(max(r.transport.get_write_buffer_size() for r in page.readers))
                    await asyncio.sleep(0.002)
                heard = 0
                while heard < sent:
                    heard += json.loads(await quick.recv())["kind"] == "test"

    asyncio.run(asyncio.wait_for(both(), WAIT_S))
    assert max(most_B) < serve.BACKLOG_B + 1.1 * len(frame["text"])


def test_ctrl_c_ends_a_page_whose_reader_does_not_answer(tmp_path):
    watched = watching("watch", tmp_path, "--page", "0")
    with (
        watched as (process, url, _),
        socket.create_connection(("127.0.0.1", urlsplit(url).port), WAIT_S) as silent,
    ):
        silent.sendall(
            f"GET /live HTTP/1.1\r\nHost: {urlsplit(url).netloc}\r\nUpgrade: websocket\r\n"
            "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode()
        )
        assert silent.recv(12) == b"HTTP/1.1 101"
        process.send_signal(signal.SIGINT)
        assert process.wait(WAIT_S) == 130


def test_a_message_that_cannot_be_sent_may_be_said_before_the_page_is_there(capsys):
    """A run was refused with an internal error while old messages waited for their server."""
    lines = ['{"say": "notify.urls.0 (json) cannot be reached"}', '{"url": "http://127.0.0.1/"}']
    words = [sys.executable, "-c", f"print({chr(10).join(lines)!r})"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert start._first_words(process) == {"url": "http://127.0.0.1/"}
    assert "cannot be reached" in capsys.readouterr().err


def test_ctrl_c_before_the_page_is_there_is_told_to_its_process(tmp_path, monkeypatch):
    told = []

    def interrupted(process):
        raise KeyboardInterrupt

    monkeypatch.setattr(start, "_first_words", interrupted)
    monkeypatch.setattr(start, "_tell", lambda process, words: told.append(words))
    with (
        pytest.raises(KeyboardInterrupt),
        start.watched(start.PageOptions(Address()), tmp_path, "run"),
    ):
        pass
    process = start._GOING_ON.pop()
    process.kill()
    process.stdout.close()
    process.wait()
    assert [words.get("code") for words in told] == [None, 130]


@pytest.mark.parametrize(
    "order", ["", "[]", "{}", "no JSON", '{"stop": 7}', '{"arm": 1}', "[" * 200, '{"stop": "<b>"}']
)
def test_an_order_that_is_none_changes_nothing(order, served):
    with joined(served.replace("http", "ws") + "live") as link:
        link.send(order)
        heard = {}
        while heard.get("kind") != "said":
            heard = json.loads(link.recv(WAIT_S))
        assert heard["text"].startswith(("not understood", "wrong code", "too many wrong"))


def test_an_order_longer_than_a_code_ends_the_connection(served):
    with joined(served.replace("http", "ws") + "live") as link:
        link.send("x" * 10_000)
        with pytest.raises(ConnectionClosed):
            list(iter(link.recv, None))


def test_with_a_certificate_the_page_is_encrypted(folder, certificate):
    context = ssl.create_default_context(cafile=certificate)
    context.check_hostname = False  # the test asks for 127.0.0.1
    words = ("watch", folder, "--page", "0", "--page-certificate", certificate)
    with watching(*words) as (_, url, _):
        assert url.startswith("https://")
        assert get(url, context=context)[0] == 200
        assert live(url, ssl=context, origin=url.rstrip("/")) == "hello"
        with pytest.raises((http.client.HTTPException, OSError)):
            get(url)  # not encrypted


def test_a_flood_of_connections_without_a_handshake_leaves_files_for_others(folder, certificate):
    context = ssl.create_default_context(cafile=certificate)
    context.check_hostname = False
    words = ("watch", folder, "--page", "0", "--page-certificate", certificate)
    with watching(*words) as (process, url, _):
        port = urlsplit(url).port
        with contextlib.ExitStack() as links:
            for _ in range(4 * HANDSHAKES_MAX):
                links.enter_context(socket.create_connection(("127.0.0.1", port), WAIT_S))
            files = psutil.Process(process.pid).num_fds()
            assert files < HANDSHAKES_MAX + 150  # of the 1024 that a process may open
        until_s = time.monotonic() + WAIT_S
        while True:  # as soon as the flood is over
            with contextlib.suppress(OSError):
                assert get(url, context=context)[0] == 200
                break
            assert time.monotonic() < until_s
            time.sleep(0.2)


ALL_ON = "miga6/all_on.toml"


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--page-certificate", "none.pem"], "there is no page: give --page too"),
        (["--page", "0", "--page-certificate", "none.pem"], "No such file or directory"),
        (["--page", "192.0.2.1:0"], "Cannot assign requested address: choose an address of this"),
        (["--page", "host.invalid:0"], ": choose an address of this machine"),
    ],
)
def test_a_page_that_cannot_be_served_is_one_line_before_anything_opens(
    words, line, configs, tmp_path, capsys
):
    out = tmp_path / "run.h5"
    assert main(["run", str(configs / ALL_ON), "--out", str(out), *words]) == 2
    said = capsys.readouterr().err.strip()
    assert line in said
    assert "\n" not in said
    assert not out.exists()


def test_an_address_in_use_is_one_line(configs, tmp_path, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        words = [
            "run",
            str(configs / ALL_ON),
            "--out",
            str(tmp_path / "run.h5"),
            "--page",
            str(port),
        ]
        assert main(words) == 2
    assert capsys.readouterr().err.strip() == (
        f"--page 127.0.0.1:{port}: Address already in use: choose another port, or 0 for any that "
        "is free"
    )


def test_without_the_package_the_run_does_not_begin(configs, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("hil.watch.start.find_spec", lambda name: None)
    out = tmp_path / "run.h5"
    assert main(["run", str(configs / ALL_ON), "--out", str(out), "--page"]) == 2
    assert "pip install 'hil-arrays[page]'" in capsys.readouterr().err
    assert not out.exists()


def test_a_folder_that_is_not_there_is_one_line(tmp_path, capsys):
    assert main(["watch", str(tmp_path / "none")]) == 2
    assert "not a folder" in capsys.readouterr().err


@pytest.fixture(scope="module")
def stopped(configs, tmp_path_factory):
    """A run that was watched, asked to stop with wrong codes and then with its own."""
    out = tmp_path_factory.mktemp("page") / "run.h5"
    words = (
        "run", configs / ALL_ON, "--out", out, "--disarmed", "--page", "0", "--set",
        "loop.overrun=skip", "--set", "guard.reading_age_max_s=10.0",  # a busy machine trips none
    )  # fmt: skip
    heard = []
    with watching(*words) as (process, url, code):
        with connect(url.replace("http", "ws") + "live", max_size=None) as link:

            def until(done):
                while not done(heard[-1] if heard else {}):
                    heard.append(json.loads(link.recv(WAIT_S)))

            until(lambda it: it.get("t_s", 0.0) > 0.3)
            link.send(json.dumps({"stop": "AAAA-AAAA"}))
            until(lambda it: it.get("kind") == "said")
            began_s = next(it["t_s"] for it in reversed(heard) if "t_s" in it)
            until(lambda it: it.get("t_s", 0.0) > began_s + 0.2)
            link.send(json.dumps({"stop": code}))
            until(
                lambda _: (
                    {"end", "over"} <= {"over" if it.get("code") else it["kind"] for it in heard}
                )
            )
        process.wait(WAIT_S)
        process.stderr.read()
        port = urlsplit(url).port
        assert serve.take_over(port)  # the page is still there, and makes room
        with pytest.raises(OSError, match="refused"):
            get(url)
    return process.returncode, heard, open_run(out)


@pytest.mark.slow
def test_a_run_stops_with_its_code_and_with_no_other(stopped):
    code, heard, run = stopped
    said = [it["text"] for it in heard if it["kind"] == "said"]
    assert said[0].startswith("wrong code")
    assert said[1].startswith("asked to stop")
    assert code == 130
    assert run.attrs["outcome"] == "aborted"
    assert run.input_name.values.tolist() == ["start", "stop"]  # nothing armed it
    assert "stopped by SIGINT" in run.event_text.values.tolist()


def test_a_reader_sees_the_rows_events_and_end_of_the_recording(stopped):
    _, heard, run = stopped
    assert [it["kind"] for it in heard[:2]] == ["hello", "bench"]
    t_s, measured = [], []
    for it in heard:
        if it["kind"] == "rows" and it["n"]:
            t_s += it["points"][0][0]
            measured += it["points"][0][1]
    assert t_s == sorted(set(t_s))
    rows = {
        round(t, 4): y for t, y in zip(run.t_s.values, run.force_measured_N.values, strict=True)
    }
    assert measured == pytest.approx([rows[t] for t in t_s], rel=1e-5, abs=1e-9)
    events = [it for it in heard if it["kind"] == "events"][-1]["events"]
    assert [text for *_, text in events] == run.event_text.values.tolist()
    end = next(it for it in heard if it["kind"] == "end")
    assert (end["outcome"], end["why"]) == ("aborted", ["SIGINT"])
    assert [it["code"] for it in heard if it["kind"] == "hello"] == [None, 130]


def test_a_folder_shows_a_recording_that_is_newer(all_on, tmp_path):
    """A run that two looks missed: its folder went on showing the one before, without a report."""
    page = Page(Bench(tmp_path), Job(str(tmp_path), 0, "bench"), Ending())
    for k, name in enumerate(("first.h5", "second.h5")):
        shutil.copyfile(all_on, tmp_path / name)
        os.utime(tmp_path / name, ns=(k, k + 1))
        page.look()
        assert page._ended["file"] == name


def test_a_run_that_takes_the_name_of_another_has_a_report_of_its_own(tmp_path, monkeypatch):
    """With --force; the page went on showing that of the run before."""
    run, made = tmp_path / "run.h5", []

    class Made:
        async def wait(self):
            report.file(".png").write_bytes(run.read_bytes())

    async def report_of(*words, **_):
        made.append(words)
        return Made()

    monkeypatch.setattr(asyncio, "create_subprocess_exec", report_of)
    (tmp_path / "page").mkdir()
    report = Report(tmp_path / "page")

    async def make():
        return await report.make(run)

    for k, content in enumerate((b"first", b"second")):
        run.write_bytes(content)
        os.utime(run, ns=(k, k + 1))
        assert [asyncio.run(make()), asyncio.run(make())] == [True, False]
        assert report.file(".png").read_bytes() == content
    run.unlink()
    assert not asyncio.run(make())
    assert len(made) == 2
