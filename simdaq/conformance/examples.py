"""NI's example programs on simulated cards, each in a process of its own.

A program that waits for Enter gets it `PATIENCE_S` after its first output; one that runs until
Ctrl-C gets that. It has run if it then ends by itself, without a traceback.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

PATIENCE_S = 3.0
LIMIT_S = 60.0
_WAITS = re.compile(r"\binput\(|\bKeyboardInterrupt\b")


@dataclass(frozen=True)
class Example:
    """How one example ended; `reason` is empty where it ran."""

    name: str
    reason: str


def run(checkout: Path, variables: dict[str, str], jobs: int) -> list[Example]:
    """Run all examples."""
    folder = checkout / "examples"
    programs = [p for p in sorted(folder.rglob("*.py")) if p.name != "__init__.py"]

    def one(program: Path) -> Example:
        return Example(str(program.relative_to(folder)), _run(program, variables))

    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(one, programs))


def _run(program: Path, variables: dict[str, str]) -> str:
    source = program.read_text()
    with tempfile.TemporaryDirectory() as scratch:
        shown = Path(scratch) / "shown"
        with shown.open("w") as stdout:
            process = subprocess.Popen(
                [sys.executable, "-u", str(program)], cwd=scratch,
                env=os.environ | {"MPLBACKEND": "Agg"} | variables, text=True,
                stdin=subprocess.PIPE, stdout=stdout, stderr=subprocess.PIPE,
            )  # fmt: skip
        try:
            _, errors = _wait(process, source, shown)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return f"not done in {LIMIT_S:.0f} s"
    if process.returncode:
        return (errors.strip().splitlines() or [f"exit {process.returncode}"])[-1]
    return ""


def _wait(process: subprocess.Popen[str], source: str, shown: Path) -> tuple[str, str]:
    if _WAITS.search(source):
        for _ in range(int(LIMIT_S)):  # until it has begun, however slow the machine is
            if shown.stat().st_size or process.poll() is not None:
                break
            time.sleep(1.0)
        time.sleep(PATIENCE_S)
        if "KeyboardInterrupt" in source and process.poll() is None:
            process.send_signal(signal.SIGINT)
    return process.communicate("\n", timeout=LIMIT_S)
