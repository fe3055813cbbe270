"""Runs the fuzz loop on an instrumented core: a row a file, and each branch it has not taken.

Usage: coverage.py FOLDER, which holds `fuzz` and the core's objects built with --coverage.
"""

import json
import subprocess
import sys
from pathlib import Path

ROUNDS, SEEDS = 500_000, ("1", "2")
UNREACHED = {  # file, branch and line -> why no run takes it
    ("core/heat.c", 3, "if (passed >= law->span_ticks && law->span_ticks < UINT16_MAX)"): (
        "a board cools long before 65 535 ticks have passed"
    ),
}


def run_fuzz(folder: Path) -> None:
    for old in folder.glob("*.gcda"):
        old.unlink()
    for seed in SEEDS:
        subprocess.run([folder / "fuzz", str(ROUNDS), seed], check=True, stdout=subprocess.DEVNULL)


def branches(notes: Path) -> list[tuple[int, int, int]]:
    """Line, number and count of each branch of one file; a macro's functions share a line."""
    command = ["gcov", "--branch-probabilities", "--json-format", "--stdout", notes.name]
    done = subprocess.run(command, cwd=notes.parent, check=True, capture_output=True, text=True)
    source = f"core/{notes.stem}.c"  # the functions of headers have no branches
    (report,) = (f for f in json.loads(done.stdout)["files"] if f["file"] == source)
    return [
        (line["line_number"], i, branch["count"])
        for line in report["lines"]
        for i, branch in enumerate(line["branches"])
    ]


def main() -> int:
    folder = Path(sys.argv[1])
    run_fuzz(folder)
    missed, stale = [], dict(UNREACHED)
    print(f"{'file':<12} branches  taken")
    for notes in sorted(folder.glob("*.gcno")):
        source = Path("core") / f"{notes.stem}.c"
        if not source.exists():
            continue
        found = branches(notes)
        text = source.read_text().splitlines()
        here = [
            (line, i)
            for line, i, count in found
            if count == 0 and not stale.pop((str(source), i, text[line - 1].strip()), None)
        ]
        share = 1 - len(here) / len(found) if found else 1
        print(f"{source.name:<12} {len(found):8d} {100 * share:5.1f} %")
        missed += [
            f"{source}:{line}: branch {i} not taken: {text[line - 1].strip()}" for line, i in here
        ]
    missed += [f"{file}: branch {i} is taken after all: {line}" for file, i, line in stale]
    print(*missed, sep="\n", end="\n" if missed else "")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
