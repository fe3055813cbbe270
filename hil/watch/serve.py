"""The process beside the recorder: it serves the page of a bench and sends its messages.

Started as ``python -m hil.watch.serve`` with its job as a line of JSON on standard input. Its first
line of output says in JSON where the page is, or why there is none. The second line of its input
says how the command has ended; an input that ends without one is that of a command that was killed.

A page is for watching only: taps are mapped for reading. The one thing that it can ask for is the
end of the run, with a code that only the terminal shows; the loop gets the signal of Ctrl-C. Pages
of this server's own origin may connect, no others (`hil.record.door`, decision record 0018).
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import os
import secrets
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from hil.config.values import Figures
from hil.errors import ConfigError
from hil.pages.vendored import permitted, plotting
from hil.platform import shared_memory
from hil.platform.processes import PYTHON, STOP_SIGNALS, ask_to_stop, be_nice
from hil.record.door import OPEN_S, Address, limited_connection, reason_of, refusal
from hil.watch import metrics
from hil.watch.bench import Bench, as_json, ending_of

if TYPE_CHECKING:
    from websockets.asyncio.server import ServerConnection
    from websockets.http11 import Request

    from hil.watch.messages import Post

FRAME_S, LOOK_S, IDLE_S = 0.05, 0.5, 1.0
# A page is shown after the end of its command, until the next one at its address, or so long: at a
# chosen port; at one that happened to be free, or after Ctrl-C.
LINGER_S, LINGER_ANY_S = 12 * 3600.0, 600.0
INTERRUPTED = 130  # exit code of a command whose operator, who sees its end, pressed Ctrl-C
CLOSE_S = 1.0  # that a reader has to say goodbye
OUTCOME_S = 20.0  # in which a recorder finishes the file of a loop that was killed
READERS_MAX, TRY_AGAIN = 24, 1013
BACKLOG_B = 2**20  # that a slow reader has not yet taken: it is dropped
ORDER_MAX_B = 256
REQUESTS_PER_S = 40
CODES_MAX, CODES_S = 5, 60.0  # wrong codes, until none is taken for so long
REPORT_S = 120.0
TAKE_OVER_S = 5.0
CODE_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
HERE = Path(__file__).parent
SECURITY = {
    "Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}  # fmt: skip


class Job(NamedTuple):
    """What to watch and where to show it.

    Attributes
    ----------
    parent : process of the command; 0 to watch every run of the folder
    what : name of the command, for people
    host, port : of the page; the port is negative without a page
    certificate : PEM file of a certificate and its key; empty for none
    has_messages : whether this machine has a file that may ask for messages
    """

    folder: str
    parent: int
    what: str
    host: str = ""
    port: int = -1
    certificate: str = ""
    has_messages: bool = False

    @property
    def address(self) -> Address | None:
        """Where the page is; None without one."""
        return Address(self.host, self.port) if self.port >= 0 else None


@dataclass
class Ending:
    """How the command ended; unknown while it has not.

    Attributes
    ----------
    code : exit code; None if it was killed
    """

    is_over: bool = False
    code: int | None = None
    text: str = ""

    def follow(self) -> None:
        """Wait for the end on standard input, in a thread of its own."""
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        line = sys.stdin.readline()
        if line:
            ending = json.loads(line)
            self.code, self.text = ending["code"], ending["text"]
        self.is_over = True


@dataclass
class Bucket:
    """Requests that are still allowed in this second."""

    rate_per_s: float
    left: float = field(init=False)
    _at_s: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.left = self.rate_per_s

    def take(self) -> bool:
        """Whether one more is allowed."""
        now_s = time.monotonic()
        self.left = min(self.rate_per_s, self.left + (now_s - self._at_s) * self.rate_per_s)
        self._at_s = now_s
        is_allowed = self.left >= 1.0
        self.left -= is_allowed
        return is_allowed


class StopCode:
    """The code with which a reader may ask for the end of the run."""

    def __init__(self) -> None:
        letters = [secrets.choice(CODE_LETTERS) for _ in range(8)]
        self.text = "".join(letters[:4]) + "-" + "".join(letters[4:])
        self._wrong, self._from_s = 0, 0.0

    def refusal(self, text: str) -> str:
        """Why a code does not count; empty if it does."""
        now_s = time.monotonic()
        if now_s - self._from_s > CODES_S:
            self._wrong, self._from_s = 0, now_s
        if self._wrong >= CODES_MAX:
            return f"too many wrong codes: wait {CODES_S:.0f} s"
        plain = "".join(c for c in text.upper() if c.isalnum())
        if hmac.compare_digest(plain.encode(), self.text.replace("-", "").encode()):
            return ""
        self._wrong += 1
        return "wrong code: it is printed where the run was started"


class Page:
    """The page, its readers, and what they get."""

    def __init__(self, bench: Bench, job: Job, ending: Ending) -> None:
        self.bench, self.ending, self.job = bench, ending, job
        self.code = StopCode()
        self.readers: set[ServerConnection] = set()
        self._about = ""
        self._ended: Figures = {}
        self._state, self._n_events = "", 0
        self._quiet_s = self._over_s = 0.0
        self._is_over = False
        self.report: Report | None = None
        self._making: asyncio.Task[None] | None = None

    def send(self, content: Figures, to: Sequence[ServerConnection] = ()) -> None:
        """Send to all readers, or to these; drop those that are too slow."""
        from websockets.asyncio.server import broadcast

        if not (to or self.readers):
            return
        quick = []
        for reader in to or list(self.readers):
            if reader.transport.get_write_buffer_size() > BACKLOG_B:
                reader.transport.abort()
            else:
                quick.append(reader)
        broadcast(quick, as_json(content))

    def welcome(self, reader: ServerConnection) -> None:
        """Give a new reader all that the others have."""
        self.frame()
        self.send(self._hello(), [reader])
        self.send(self.bench.state(), [reader])
        run = self.bench.run
        if run is not None and run.facts is not None:
            self.send(run.about(), [reader])
            self.send({"kind": "events", "id": run.name, "events": run.events}, [reader])
            self.send(run.rows(history=True), [reader])
        if self._ended:
            self.send(self._ended, [reader])
        self.readers.add(reader)

    def _hello(self) -> Figures:
        e = self.ending
        return {"kind": "hello", "what": self.job.what, "over": e.is_over, "code": e.code,
                "text": e.text, "may_stop": bool(self.job.port >= 0)}  # fmt: skip

    def look(self) -> None:
        """Look for runs and ends of runs, and tell the readers."""
        self.bench.look()
        run = self.bench.run
        if run is not None and run.facts is not None:
            if run.name != self._about:
                self._about, self._ended, self._n_events, self._over_s = run.name, {}, 0, 0.0
                self.send(run.about())
                self.send(run.rows(history=True))
            if run.n_events != self._n_events:
                self._n_events = run.n_events
                self.send({"kind": "events", "id": run.name, "events": run.events})
            if run.is_over and not self._ended:
                self._over_s = self._over_s or time.monotonic()
                self._say_end(run.recording, late=time.monotonic() - self._over_s > OUTCOME_S)
        elif run is None and self.bench.parent == 0:
            newest = self.bench.last_recording()
            if newest is not None and newest.name != self._ended.get("file"):
                self._say_end(newest, late=False)
        if self.readers:
            if self._ended.get("file") and (self._making is None or self._making.done()):
                recording = self.bench.last_recording()
                if recording is not None and recording.name == self._ended["file"]:
                    self._making = asyncio.create_task(self._make_report(recording))
            state = self.bench.state()
            if (text := as_json(state)) != self._state:
                self._state = text
                self.send(state)

    def _say_end(self, recording: Path | None, *, late: bool) -> None:
        end = None if recording is None else ending_of(recording)
        if end is None and late:
            end = {"kind": "end", "outcome": "not known", "why": ["its recording was not finished"],
                   "file": ""}  # fmt: skip
        if end is not None:
            end |= {"id": "" if self.bench.run is None else self.bench.run.name, "picture": False}
            self._ended = end
            self.send(end)

    async def _make_report(self, recording: Path) -> None:
        if self.report is not None and await self.report.make(recording) and self._ended:
            self._ended["picture"] = True
            self.send(self._ended)

    def say_over(self) -> None:
        """Tell the readers that the command has ended."""
        self.send(self._hello())

    def frame(self) -> None:
        """Send new rows; without any, only now and then how old the last ones are."""
        run = self.bench.run
        if not self.readers or run is None or run.facts is None:
            return
        content, now_s = run.rows(), time.monotonic()
        is_news = content["over"] != self._is_over or content["n"]
        if is_news or (now_s - self._quiet_s > LOOK_S and not content["over"]):
            self._quiet_s, self._is_over = now_s, content["over"]
            self.send(content)

    def obey(self, order: str | bytes) -> Figures:
        """Answer an order of a reader: to end the run is the only one."""
        try:
            code = json.loads(order)["stop"]
            assert isinstance(code, str)
        except (ValueError, LookupError, TypeError, AssertionError, RecursionError):
            return {"kind": "said", "text": "not understood: this page is for watching"}
        if why := self.code.refusal(code):
            return {"kind": "said", "text": why}
        run = self.bench.run
        if run is None or run.is_over:
            return {"kind": "said", "text": "no run is in progress"}
        with contextlib.suppress(OSError):
            ask_to_stop(run.pid)
        return {"kind": "said", "text": "asked to stop: everything is switched off"}


class Report:
    """The report of the last run, which is made once there is one and somebody to see it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.of: Path | None = None
        self.is_made = False
        self._written_ns = 0  # when the recording was: another run may have its name
        self._process: asyncio.subprocess.Process | None = None

    async def make(self, recording: Path) -> bool:
        """Make the report of a recording; whether it is new. Returns at once while another one is
        being made.
        """
        try:
            written_ns = recording.stat().st_mtime_ns
        except OSError:  # moved or deleted meanwhile
            return False
        if self._process is not None or (self.of, self._written_ns) == (recording, written_ns):
            return False
        for old in self._folder.iterdir():
            old.unlink()
        self.of, self._written_ns, self.is_made = recording, written_ns, False
        words = [*PYTHON, "-m", "hil", "report", str(recording), "--out", str(self._folder)]
        nothing = subprocess.DEVNULL
        self._process = await asyncio.create_subprocess_exec(
            *words, stdin=nothing, stdout=nothing, stderr=nothing
        )
        try:
            await asyncio.wait_for(self._process.wait(), REPORT_S)
        except TimeoutError:
            self._process.kill()
        self._process = None
        self.is_made = self.file(".png").exists()
        return self.is_made

    def file(self, ending: str) -> Path:
        return self._folder / f"{'' if self.of is None else self.of.stem}{ending}"


class Files:
    """What a browser can get beside the live rows: the page, and the report of the last run."""

    def __init__(self, bench: Bench, report: Report) -> None:
        self._bench, self._report = bench, report
        self._text = (HERE / "page.html").read_text(encoding="utf-8")
        self._script = plotting()["uplot"]

    def get(self, path: str) -> tuple[HTTPStatus, str, bytes, str]:
        """Status, content type, body and content security policy of a path."""
        if path == "/":
            nonce = secrets.token_urlsafe(16)
            text = self._text.replace("NONCE", nonce).replace("/*UPLOT*/", self._script)
            policy = (
                f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'unsafe-inline'; "
                "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
                "frame-ancestors 'none'"
            )
            return HTTPStatus.OK, "text/html; charset=utf-8", text.encode(), policy
        nothing = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
        if path == "/metrics":
            if not metrics.is_installed():
                return HTTPStatus.NOT_FOUND, "text/plain", metrics.MISSING.encode(), nothing
            return HTTPStatus.OK, metrics.TYPE, metrics.metrics_of(self._bench), nothing
        endings = {"/picture.png": (".png", "image/png"),
                   "/report": (".html", "text/html; charset=utf-8")}  # fmt: skip
        if path not in endings:
            return HTTPStatus.NOT_FOUND, "text/plain", b"there is nothing of this name\n", nothing
        ending, kind = endings[path]
        if not self._report.is_made:
            return HTTPStatus.NOT_FOUND, "text/plain", b"there is no report yet\n", nothing
        policy = f"{nothing}; script-src {permitted()}" if path == "/report" else nothing
        return HTTPStatus.OK, kind, self._report.file(ending).read_bytes(), policy


@contextlib.asynccontextmanager
async def served(page: Page, address: Address) -> AsyncIterator[str]:
    """Serve a page in the block; yields its address.

    Raises
    ------
    OSError
        The address cannot be used.
    ConfigError
        The certificate cannot be used.
    """
    from websockets.asyncio.server import serve
    from websockets.datastructures import Headers
    from websockets.exceptions import ConnectionClosed
    from websockets.http11 import Response

    token, bucket = secrets.token_urlsafe(16), Bucket(REQUESTS_PER_S)
    context = _tls(page.job.certificate)
    scheme = "http" if context is None else "https"

    def answer(status: HTTPStatus, kind: str, body: bytes, policy: str) -> Response:
        more = {"Content-Type": kind, "Content-Length": str(len(body)), "Connection": "close",
                "Content-Security-Policy": policy}  # fmt: skip
        return Response(status.value, status.phrase, Headers(SECURITY | more), body)

    def refuse(status: HTTPStatus, why: str) -> Response:
        return answer(
            status, "text/plain; charset=utf-8", f"{why}\n".encode(), "default-src 'none'"
        )

    def check(connection: ServerConnection, request: Request) -> Response | None:
        headers = {name: request.headers.get_all(name) for name in ("Origin", "Host")}
        origins = [f"{scheme}://{host}" for host in headers["Host"]]
        if why := refusal(address, token, request.path, headers, origins.__contains__):
            return refuse(HTTPStatus.FORBIDDEN, why)
        if getattr(request, "method", "GET") != "GET":  # websockets before 17 takes no other
            return refuse(HTTPStatus.METHOD_NOT_ALLOWED, "this page is for watching")
        if not bucket.take():
            return refuse(HTTPStatus.TOO_MANY_REQUESTS, "too many requests: wait a second")
        path = request.path.partition("?")[0]
        if path == "/live":
            return None
        from_elsewhere = request.headers.get("Sec-Fetch-Site") in ("cross-site", "same-site")
        if from_elsewhere and path != "/":
            return refuse(HTTPStatus.FORBIDDEN, "pages of another origin may not watch")
        return answer(*files.get(path))

    async def watch(connection: ServerConnection) -> None:
        orders = Bucket(2.0)
        if len(page.readers) >= READERS_MAX:
            await connection.close(TRY_AGAIN, "too many readers")
            return
        page.welcome(connection)
        try:
            with contextlib.suppress(ConnectionClosed):
                async for order in connection:
                    if not orders.take():
                        return  # closes the connection
                    page.send(page.obey(order), [connection])
        finally:
            page.readers.discard(connection)

    with tempfile.TemporaryDirectory(prefix="hil-page-") as folder:
        page.report = Report(Path(folder))
        files = Files(page.bench, page.report)
        async with serve(
            watch, address.host, address.port, process_request=check, ssl=context,
            compression=None, max_size=ORDER_MAX_B, max_queue=4, server_header=None,
            create_connection=limited_connection(), open_timeout=OPEN_S, close_timeout=CLOSE_S,
            ssl_handshake_timeout=None if context is None else OPEN_S,
        ) as server:  # fmt: skip
            port = next(iter(server.sockets)).getsockname()[1]
            query = "" if address.is_loopback else f"?token={token}"
            yield f"{scheme}://{address._replace(port=port)}/{query}"


def _tls(certificate: str) -> ssl.SSLContext | None:
    if not certificate:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate)
    except (OSError, ssl.SSLError) as error:
        why = getattr(error, "strerror", None) or error
        raise ConfigError(
            f"--page-certificate {certificate}: {why}: give a PEM file with a certificate and its "
            "private key"
        ) from None
    return context


class Place:
    """A private file that says where this process serves a page, and whether its run is over."""

    def __init__(self, port: int) -> None:
        self._path, self._file = shared_memory.create(shared_memory.folder(), "page")
        self._port = port
        self._write(0)

    def _write(self, over: int) -> None:
        self._file.seek(0)
        self._file.write(b"%d %d\n" % (self._port, over))
        self._file.flush()

    def give_up(self) -> None:
        """Let the next command have this address."""
        self._write(1)

    def close(self) -> None:
        self._file.close()
        shared_memory.remove(self._path)


def take_over(port: int) -> bool:
    """End the page of a command that is over at this port; whether there was one."""
    for pid, path in shared_memory.of_live_processes(shared_memory.folder(), "page"):
        with contextlib.suppress(OSError, ValueError), shared_memory.open_private(path) as file:
            if [int(word) for word in file.read().split()] != [port, 1]:
                continue
            os.kill(pid, signal.SIGTERM)
            deadline_s = time.monotonic() + TAKE_OVER_S
            while path.exists() and time.monotonic() < deadline_s:
                time.sleep(0.02)
            return not path.exists()
    return False


def machine_file() -> Path | None:
    """The file of this machine; None if it has none."""
    folder = os.environ.get("XDG_CONFIG_HOME", "")
    user_folder = Path(folder) if os.path.isabs(folder) else Path.home() / ".config"
    places = (user_folder / "hil" / "machine.toml", Path("/etc/hil/machine.toml"))
    return next((path for path in places if path.exists()), None)


Say = Callable[[dict[str, str]], None]


async def watch(job: Job, ending: Ending, say: Say) -> None:
    """Serve the page of a job and send its messages, until nobody needs them any more.

    Raises
    ------
    ConfigError
        The address, the certificate or the file of this machine cannot be used.
    """
    page = Page(Bench(Path(job.folder), job.parent), job, ending)
    post = _post(job, say)
    async with contextlib.AsyncExitStack() as stack:
        place, words = None, {}
        if (address := job.address) is not None:
            if address.port:
                take_over(address.port)
            try:
                url = await stack.enter_async_context(served(page, address))
            except OSError as error:
                raise ConfigError(f"--page {address}: {reason_of(error)}") from None
            place = Place(urlsplit(url).port or 0)
            stack.callback(place.close)
            words = {"url": url, "code": page.code.text}
        say(words)
        if place is not None or post is not None:
            await _until_over(page, ending, place, post)
    if post is not None:
        with contextlib.suppress(NotImplementedError, ValueError):
            asyncio.get_running_loop().remove_signal_handler(signal.SIGTERM)  # it may end now
        until_s = time.monotonic() + LINGER_S
        while not post.is_done and time.monotonic() < until_s:
            await asyncio.sleep(IDLE_S)
        post.close()


def _post(job: Job, say: Say) -> Post | None:
    """What sends the messages; None if this machine wants none."""
    if not job.has_messages:
        return None
    from hil.watch import messages

    table = messages.notify_table()
    if table is None:
        return None
    folder = Path(job.folder).resolve()
    return messages.Post(job.what, folder, table, lambda text: say({"say": text}))


async def _until_over(page: Page, ending: Ending, place: Place | None, post: Post | None) -> None:
    asked_to_end = asyncio.Event()
    with contextlib.suppress(NotImplementedError):
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asked_to_end.set)
    over_s, next_look_s, frame_s = 0.0, 0.0, time.monotonic()
    while True:
        now_s = time.monotonic()
        if now_s >= next_look_s:
            next_look_s = now_s + (LOOK_S if page.readers else IDLE_S)
            with contextlib.suppress(OSError):  # too many files are open: the next look will do
                page.look()
                if post is not None and not over_s:
                    post.look(page.bench)
        page.frame()
        if ending.is_over and not over_s:
            over_s = now_s
            page.look()
            if post is not None:
                post.end(ending.code, ending.text, page.bench)
            page.say_over()
            if place is None:
                return
            place.give_up()
        is_free = over_s or not page.bench.parent  # the loop handles signals until its end
        is_kept = page.job.port > 0 and ending.code != INTERRUPTED
        linger_s = LINGER_S if is_kept else LINGER_ANY_S
        if (is_free and asked_to_end.is_set()) or (
            over_s and now_s - over_s > linger_s and not page.readers
        ):
            return
        frame_s = max(frame_s + FRAME_S, now_s)  # the time that a frame takes does not add up
        await asyncio.sleep(frame_s - now_s if page.readers else IDLE_S)


def serve_folder(job: Job, say: Say) -> None:
    """Serve the page of a folder in this process, until it is interrupted.

    Raises
    ------
    ConfigError
        The page cannot be served.
    """
    asyncio.run(watch(job, Ending(), say))


def _print(words: dict[str, str]) -> None:
    with contextlib.suppress(OSError):  # the command is over
        print(json.dumps(words), flush=True)


def main() -> int:
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)  # the loop handles them
    be_nice()
    job = Job(**json.loads(sys.stdin.readline()))
    ending = Ending()
    ending.follow()
    try:
        asyncio.run(watch(job, ending, _print))
    except ConfigError as error:
        _print({"error": str(error)})
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
