"""A page in Debian's Chromium, without a screen, through its DevTools protocol.

Source: chromedevtools.github.io/devtools-protocol, version 1.3.
"""

import base64
import contextlib
import itertools
import json
import shutil
import subprocess
import time
from pathlib import Path

from websockets.sync.client import connect

PROGRAM = shutil.which("chromium")
WAIT_S = 120.0


class Tab:
    """A page that is open; `evaluate` returns what a line of JavaScript gives."""

    def __init__(self, socket) -> None:
        self._socket, self._numbers, self._session = socket, itertools.count(1), None
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self._ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        self.said = []  # by the console, and errors of scripts
        for domain in ("Runtime", "Log", "Page", "Network", "Accessibility"):
            self._ask(f"{domain}.enable")

    def _ask(self, method, **params):
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params}
        self._socket.send(
            json.dumps(message | ({"sessionId": self._session} if self._session else {}))
        )
        while True:
            answer = json.loads(self._socket.recv(WAIT_S))
            if answer.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
                self.said.append(json.dumps(answer["params"]))
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]

    def open(self, url, width=1280, height=800, *, dark=False, still=False) -> None:
        """Go to an address, with a window of this size and what the reader prefers."""
        self.resize(width, height)
        likes = {"color-scheme": "dark" if dark else "light"}
        likes["reduced-motion"] = "reduce" if still else ""
        features = [{"name": f"prefers-{name}", "value": value} for name, value in likes.items()]
        self._ask("Emulation.setEmulatedMedia", features=features)
        self._ask("Page.navigate", url=url)
        self.wait("document.readyState === 'complete'")

    def resize(self, width, height) -> None:
        self._ask("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=width < 600)  # fmt: skip

    def evaluate(self, script):
        answer = self._ask(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait(self, condition, for_s=WAIT_S):
        """Wait until a condition holds; returns its value."""
        deadline_s = time.monotonic() + for_s
        while not (value := self.evaluate(condition)):
            assert time.monotonic() < deadline_s, (
                f"not within {for_s} s: {condition}; {self.text()}"
            )
            time.sleep(0.02)
        return value

    def text(self) -> str:
        return self.evaluate("document.body.innerText")

    def key(self, key) -> None:
        """Press a key, such as Tab."""
        for kind in ("keyDown", "keyUp"):
            self._ask("Input.dispatchKeyEvent", type=kind, key=key, code=key,
                      windowsVirtualKeyCode={"Tab": 9, "Enter": 13}[key])  # fmt: skip

    def mouse(self, *places) -> None:
        """Press at the first place, move over the others, release at the last, px."""
        kinds = ["mousePressed", *["mouseMoved"] * (len(places) - 1), "mouseReleased"]
        for kind, (x, y) in zip(kinds, [*places, places[-1]], strict=True):
            self._ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def point(self, x, y) -> None:
        """Move the pointer here."""
        self._ask("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def media(self, kind) -> None:
        """Show it as it would be printed ("print"), or as on a screen ("")."""
        self._ask("Emulation.setEmulatedMedia", media=kind)

    def printed(self) -> bytes:
        """The page as PDF."""
        return base64.b64decode(self._ask("Page.printToPDF", printBackground=True)["data"])

    def named(self):
        """Role and name of everything that a screen reader finds."""
        nodes = self._ask("Accessibility.getFullAXTree")["nodes"]
        return [(node["role"]["value"], node.get("name", {}).get("value", ""))
                for node in nodes if not node["ignored"]]  # fmt: skip

    def heap_B(self) -> int:
        """Memory of the page's scripts, after a collection of garbage."""
        self._ask("HeapProfiler.collectGarbage")
        return self._ask("Runtime.getHeapUsage")["usedSize"]

    def cut_off(self, cut) -> None:
        """Cut the page from the network, or connect it again."""
        self._ask("Network.emulateNetworkConditions", offline=cut, latency=0,
                  downloadThroughput=-1, uploadThroughput=-1)  # fmt: skip

    def picture(self, path) -> None:
        """Save the whole page as a PNG."""
        size = self._ask("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        data = self._ask("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)["data"]
        Path(path).write_bytes(base64.b64decode(data))


@contextlib.contextmanager
def browser(folder):
    """A tab of a browser of its own."""
    command = [PROGRAM, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
               "--disable-dev-shm-usage", "--disable-background-networking",
               "--remote-debugging-port=0", f"--user-data-dir={folder}"]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        place, deadline_s = Path(folder) / "DevToolsActivePort", time.monotonic() + WAIT_S
        while not (place.exists() and len(lines := place.read_text().splitlines()) == 2):
            assert time.monotonic() < deadline_s
            assert process.poll() is None
            time.sleep(0.05)
        port, path = lines
        with connect(f"ws://127.0.0.1:{port}{path}", max_size=None) as socket:
            yield Tab(socket)
    finally:
        process.terminate()
        process.wait()
