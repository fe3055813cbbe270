"""A bench supply at a loop-back address, which speaks SCPI and may misbehave."""

import socket
import threading
import time


class Instrument:
    """Serves one connection at a time; `heard` has every line with its time.

    Attributes
    ----------
    mute, deaf_to : answers nothing; ignores commands that begin with this, `deaf_times` times
    range_V : most that it gives
    late_s : how late its next answer is
    drifts : gives two volts more
    """

    def __init__(self):
        self.on, self.volts, self.amps = False, 0.0, 0.0
        self.mute, self.deaf_to, self.deaf_times = False, None, 10**9
        self.range_V = 30.0
        self.drifts = False
        self.late_s = 0.0
        self.heard = []
        self.off = threading.Event()
        self._server = socket.create_server(("127.0.0.1", 0))
        self.resource = f"TCPIP::127.0.0.1::{self._server.getsockname()[1]}::SOCKET"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            with connection, connection.makefile("rwb") as stream:
                try:
                    for line in stream:
                        self._take(line.decode().strip(), stream)
                except OSError:
                    continue

    def _take(self, line, stream):
        self.heard.append((time.monotonic(), line))
        if line.endswith("?"):
            if self.late_s:
                threading.Event().wait(self.late_s)
                self.late_s = 0.0
            if not self.mute:
                stream.write(f"{self._answer(line)}\n".encode())
                stream.flush()
            return
        if self.deaf_to is not None and line.startswith(self.deaf_to) and self.deaf_times:
            self.deaf_times -= 1
            return
        word, _, value = line.partition(" ")
        if word == "VOLT":
            self.volts = min(float(value), self.range_V)
        elif word == "CURR":
            self.amps = float(value)
        elif word == "OUTP":
            self.on = value == "ON"
            if not self.on:
                self.off.set()

    def _answer(self, line):
        volts = self.volts + (2.0 if self.drifts else 0.0)
        return {
            "*IDN?": "Bench Works,PS-30,SN7,1.0",
            "VOLT?": f"{self.volts:.3f}",
            "CURR?": f"{self.amps:.3f}",
            "OUTP?": "1" if self.on else "0",
            "MEAS:VOLT?": f"{volts if self.on else 0.0:.3f}",
            "MEAS:CURR?": "0.640" if self.on else "0.000",
        }[line]

    def close(self):
        self._server.close()
