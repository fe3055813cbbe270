"""NI's tests on simulated cards: one process for every test file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from simdaq.conformance import observer

FOLDERS = ("acceptance", "component", "legacy", "unit")
FILE_LIMIT_S = 600.0
OUTCOMES = ("passed", "failed", "error", "skipped", "xfailed")


@dataclass
class Suite:
    """Outcomes of one way in; `crashed` lists test files whose process died."""

    results: list[dict[str, str]] = field(default_factory=list)
    crashed: list[str] = field(default_factory=list)

    @property
    def counts(self) -> dict[str, int]:
        """Tests by outcome."""
        counts = Counter(r["outcome"] for r in self.results)
        return {outcome: counts[outcome] for outcome in OUTCOMES}

    def reasons(self, *outcomes: str) -> Counter[str]:
        """How often each reason occurs; errors of NI-DAQmx by their code."""
        return Counter(
            _kind(r["reason"]) for r in self.results if r["outcome"] in outcomes and r["reason"]
        )


def _kind(reason: str) -> str:
    code, _, rest = reason.partition(":")
    return code if code.lstrip("-").isdigit() else f"{code}:{rest[:90]}"


def files_with_tests(checkout: Path, only: str) -> list[Path]:
    """Files with tests, in a fixed order."""
    files = [
        file
        for folder in FOLDERS
        for file in sorted((checkout / "tests" / folder).rglob("test_*.py"))
    ]
    return [file for file in files if only in str(file)]


def run(checkout: Path, way: str, variables: dict[str, str], jobs: int, only: str = "") -> Suite:
    """Run NI's tests by one way in: "library" or "grpc".

    Parameters
    ----------
    variables : environment in which `nidaqmx` finds the simulated cards
    only : text that a test file's path must contain
    """
    select = "grpc_init_kwargs" if way == "grpc" else "not grpc_init_kwargs"
    suite = Suite()

    def one(file: Path) -> tuple[list[dict[str, str]], str]:
        with tempfile.TemporaryDirectory() as folder:
            return _run_file(checkout, file, select, variables, Path(folder))

    with ThreadPoolExecutor(jobs) as pool:
        for results, crash in pool.map(one, files_with_tests(checkout, only)):
            suite.results += results
            suite.crashed += [crash] if crash else []
    return suite


def _run_file(
    checkout: Path, file: Path, select: str, variables: dict[str, str], scratch: Path
) -> tuple[list[dict[str, str]], str]:
    results = scratch / "results.jsonl"
    server = scratch / "server"
    server.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m simdaq --port 0\n')
    server.chmod(0o755)
    paths = {observer.RESULTS: str(results), observer.SERVER: str(server)}
    command = [
        sys.executable, "-m", "pytest", "-q", "-p", observer.__name__, "-p", "no:cacheprovider",
        "--basetemp", str(scratch / "files"), "-k", select, str(file.relative_to(checkout)),
    ]  # fmt: skip
    name = str(file.relative_to(checkout))
    try:
        done = subprocess.run(
            command, cwd=checkout, env=os.environ | variables | paths, capture_output=True,
            text=True, timeout=FILE_LIMIT_S, check=False,
        )  # fmt: skip
        # 0: passed, 1: some failed, 5: none selected
        crash = "" if done.returncode in (0, 1, 5) else f"{name}: exit {done.returncode}"
        if done.returncode == 2:
            crash += f": {done.stdout.strip().splitlines()[-1]}"
    except subprocess.TimeoutExpired:
        crash = f"{name}: not done in {FILE_LIMIT_S:.0f} s"
    lines = results.read_text().splitlines() if results.exists() else []
    return [json.loads(line) for line in lines], crash
