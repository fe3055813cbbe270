"""Lines and branches that a module's own tests reach: `scripts/coverage [MODULE...]`.

The modules, their files and their tests are those of `tests/mutants.toml`. Numba is switched off,
so that compiled code is seen, unless the module's table says `compiled`; a test that needs it is
counted as failed and passes in ./run-tests. The firmware's core is compiled with gcc's counters and
tested on this machine. The exit code is 1 if a module is below 85 %.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LEAST = 0.85
ON_THE_CHIP = "atmega328p or chip"
HEAD = "module        lines  missed  branches  missed  reached   tests"


@dataclass
class Reached:
    """Counts of one module, and the lines that no test reaches."""

    counts: Counter[str] = field(default_factory=Counter)
    missing: list[str] = field(default_factory=list)
    tests: str = ""

    @property
    def share(self) -> float:
        c = self.counts
        missed = c["lines_missed"] + c["branches_missed"]
        return 1.0 - missed / max(1, c["lines"] + c["branches"])

    def row(self, name: str) -> str:
        c = self.counts
        return (
            f"{name:12} {c['lines']:6} {c['lines_missed']:7} {c['branches']:9} "
            f"{c['branches_missed']:7}  {100 * self.share:5.1f} %   {self.tests}"
        )


def tested(tests: list[str], env: dict[str, str], *command: str) -> str:
    """Run tests; returns pytest's last line, such as `12 passed, 1 failed`."""
    words = [*command, "-m", "pytest", "-q", "--no-header", "-n", "0", "-m", "not slow"]
    done = subprocess.run(
        [*words, *tests], cwd=ROOT, env=os.environ | env, capture_output=True, text=True
    )
    if done.returncode not in (0, 1):
        sys.exit(f"scripts/coverage: {' '.join(tests)}: {(done.stderr or done.stdout)[-2000:]}")
    return re.sub(r" in [\d.:s() ]+", "", done.stdout.strip().splitlines()[-1].strip("= "))


def of_python(table: dict[str, Any], folder: Path) -> Reached:
    """With coverage.py, in processes that tests start too."""
    settings = folder / "coveragerc"
    files = "\n  ".join(str(ROOT / name) for name in table["files"])
    settings.write_text(
        f"[run]\nbranch = true\nparallel = true\npatch = subprocess\n"
        f"data_file = {folder / 'data'}\ninclude =\n  {files}\n",
        encoding="utf-8",
    )
    env = {} if table.get("compiled") else {"NUMBA_DISABLE_JIT": "1"}
    tool = [sys.executable, "-m", "coverage"]
    reached = Reached()
    reached.tests = tested(table["tests"], env, *tool, "run", f"--rcfile={settings}")
    out = folder / "coverage.json"
    for words in (("combine", "-q"), ("json", "-q", "-o", str(out))):
        subprocess.run(
            [*tool, *words, f"--rcfile={settings}"], check=True, cwd=ROOT, stderr=subprocess.DEVNULL
        )
    for name, found in sorted(json.loads(out.read_text(encoding="utf-8"))["files"].items()):
        of = found["summary"]
        reached.counts.update(
            lines=of["num_statements"], lines_missed=of["missing_lines"],
            branches=of["num_branches"], branches_missed=of["missing_branches"],
        )  # fmt: skip
        if found["missing_lines"]:
            lines = ", ".join(map(str, found["missing_lines"]))
            reached.missing.append(f"{name}: {lines}")
    return reached


def of_c(table: dict[str, Any], folder: Path) -> Reached:
    """With gcc's counters in the host's library."""
    reached = Reached()
    reached.tests = tested(
        [*table["tests"], "-k", f"not ({ON_THE_CHIP})", f"--basetemp={folder / 'tests'}"],
        {"CFLAGS": "-O0 --coverage"},
        sys.executable,
    )
    for counts in sorted(folder.rglob("libboard.so.part-*.gcda")):
        subprocess.run(
            ["gcov", "--json-format", "--branch-probabilities", str(counts)],
            cwd=folder, check=True, capture_output=True,
        )  # fmt: skip
    for packed in sorted(folder.glob("*.gcov.json.gz")):
        for found in json.loads(gzip.decompress(packed.read_bytes()))["files"]:
            name = f"firmware/{found['file']}"
            if name in table["files"]:
                _add(reached, name, found["lines"])
    return reached


def _add(reached: Reached, name: str, lines: list[dict[str, Any]]) -> None:
    branches = [branch for line in lines for branch in line["branches"]]
    missed = [line["line_number"] for line in lines if not line["count"]]
    reached.counts.update(
        lines=len(lines), lines_missed=len(missed), branches=len(branches),
        branches_missed=sum(not branch["count"] for branch in branches),
    )  # fmt: skip
    if missed:
        reached.missing.append(f"{name}: {', '.join(map(str, missed))}")


def main() -> int:
    tables = tomllib.loads((ROOT / "tests/mutants.toml").read_text(encoding="utf-8"))["modules"]
    known = {name: table for name, table in tables.items() if "changes" not in table}
    parser = argparse.ArgumentParser(prog="scripts/coverage", description=__doc__)
    parser.add_argument("modules", nargs="*", metavar="MODULE", help=", ".join(known))
    chosen = parser.parse_args().modules
    if unknown := set(chosen) - known.keys():
        parser.error(f"no such module: {', '.join(sorted(unknown))}: choose {', '.join(known)}")
    print(HEAD)
    missing, low = [], []
    for name in chosen or known:
        with tempfile.TemporaryDirectory() as made:
            in_c = known[name]["files"][0].endswith(".c")
            reached = (of_c if in_c else of_python)(known[name], Path(made))
        print(reached.row(name), flush=True)
        missing += reached.missing
        low += [name] if reached.share < LEAST else []
    print("", "lines that these tests do not reach:", *missing, sep="\n")
    print(f"below {LEAST:.0%}: {', '.join(low) or 'none'}")
    return 1 if low else 0


if __name__ == "__main__":
    sys.exit(main())
