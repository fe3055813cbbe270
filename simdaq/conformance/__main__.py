"""`python -m simdaq.conformance CHECKOUT`: exit code 1 where an example or a test fails.

With `--known FILE`, an earlier `--json`, what failed there may fail again.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simdaq.errors import SetupError

if TYPE_CHECKING:
    from simdaq.conformance import suite

PARTS = ("examples", "library", "grpc")
NEEDED = {"examples": ("matplotlib", "nptdms"), "library": ("pytest", "pytest_mock", "pykka"),
          "grpc": ("pytest", "pytest_mock", "pykka", "grpc")}  # fmt: skip
BAD = ("failed", "error")


def main() -> int:
    """Run what is asked for, print the table and tell whether something new fails."""
    # A shell's background job ignores Ctrl-C, and passes that on to examples that wait for it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    parser = argparse.ArgumentParser(
        prog="python -m simdaq.conformance",
        description="Run NI's examples and tests of nidaqmx on simulated cards.",
    )
    parser.add_argument("checkout", type=_whole_path, help="checkout of ni/nidaqmx-python")
    parser.add_argument("--jobs", type=int, default=2, metavar="N")
    parser.add_argument("--part", choices=PARTS, action="append")
    parser.add_argument("--only", default="", metavar="TEXT",
                        help="test files whose path contains this")  # fmt: skip
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every outcome")
    parser.add_argument("--known", type=Path, metavar="FILE",
                        help="earlier --json: what failed there may fail")  # fmt: skip
    args = parser.parse_args()
    try:
        _check(args.checkout, args.part or PARTS)
        known = _failures(_read(args.known)) if args.known else set()
        new = _failures(_run(args)) - known
    except SetupError as error:
        print(error, file=sys.stderr)
        return 2
    for part, name in sorted(new):
        print(f"fails: {part}: {name}")
    return 1 if new else 0


def _read(file: Path) -> dict[str, Any]:
    try:
        results = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise SetupError(f"--known {file}: {error}") from None
    if not isinstance(results, dict):
        raise SetupError(f"--known {file}: not written by --json")
    return results


def _failures(results: dict[str, Any]) -> set[tuple[str, str]]:
    """Part and name of every example and test that fails, and of files whose process died."""
    failures = {("examples", e["name"]) for e in results.get("examples", ()) if e["reason"]}
    for way in ("library", "grpc"):
        failures |= {(way, r["test"]) for r in results.get(way, ()) if r["outcome"] in BAD}
        failures |= {(way, crash) for crash in results.get(f"{way} died", ())}
    return failures


def _whole_path(text: str) -> Path:
    """The programs run in other folders."""
    return Path(text).resolve()


def _check(checkout: Path, parts: Sequence[str]) -> None:
    for place in ("examples", "tests/conftest.py", "tests/max_config"):
        if not (checkout / place).exists():
            raise SetupError(f"{checkout / place}: not found: name a checkout of ni/nidaqmx-python")
    needed = dict.fromkeys(name for part in parts for name in NEEDED[part])
    missing = [name for name in needed if find_spec(name) is None]
    if missing:
        names = " ".join(n.replace("_", "-").replace("nptdms", "npTDMS") for n in missing)
        raise SetupError(f"NI's tests need more packages: pip install {names}")


def _run(args: argparse.Namespace) -> dict[str, Any]:
    from simdaq.conformance import benches

    parts = args.part or PARTS
    results: dict[str, Any] = {}
    if "examples" in parts:
        from simdaq.conformance import examples

        cards = benches.variables(benches.for_examples(args.checkout))
        ran = examples.run(args.checkout, cards, args.jobs)
        good = sum(not e.reason for e in ran)
        print(f"examples that run                {good} of {len(ran)}")
        for example in ran:
            if example.reason:
                print(f"  {example.name}: {example.reason}")
        results["examples"] = [vars(e) for e in ran]
    for way in ("library", "grpc"):
        if way in parts:
            from simdaq.conformance import suite

            cards = benches.variables(benches.for_tests(args.checkout))
            tests = suite.run(args.checkout, way, cards, args.jobs, args.only)
            _print(way, tests)
            results[way], results[f"{way} died"] = tests.results, tests.crashed
    if args.json:
        args.json.write_text(json.dumps(results, indent=1))
    return results


def _print(way: str, tests: suite.Suite) -> None:
    counts = tests.counts
    figures = " / ".join(f"{n} {outcome}" for outcome, n in counts.items())
    print(f"NI's tests, {way:<20} {figures}")
    for crash in tests.crashed:
        print(f"  process died: {crash}")
    for reason, n in tests.reasons("failed", "error").most_common():
        print(f"  {n:4d} failed or in error: {reason}")
    for reason, n in tests.reasons("skipped").most_common():
        print(f"  {n:4d} skipped: {reason[:90]}")


if __name__ == "__main__":
    sys.exit(main())
