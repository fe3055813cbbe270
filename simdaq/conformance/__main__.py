"""`python -m simdaq.conformance CHECKOUT`."""

from __future__ import annotations

import argparse
import json
import sys
from importlib.util import find_spec
from pathlib import Path

from simdaq.conformance import examples, suite
from simdaq.errors import SetupError

NEEDED = ("pytest", "pytest_mock", "pykka", "matplotlib", "nptdms")


def main() -> int:
    """Run what is asked for and print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m simdaq.conformance",
        description="Run NI's examples and tests of nidaqmx on simulated cards.",
    )
    parser.add_argument("checkout", type=_whole_path, help="checkout of ni/nidaqmx-python")
    parser.add_argument("--jobs", type=int, default=2, metavar="N")
    parser.add_argument("--part", choices=("examples", "library", "grpc"), action="append")
    parser.add_argument("--only", default="", metavar="TEXT",
                        help="test files whose path contains this")  # fmt: skip
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every outcome")
    args = parser.parse_args()
    try:
        _check(args.checkout)
        _run(args)
    except SetupError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def _whole_path(text: str) -> Path:
    """The programs run in other folders."""
    return Path(text).resolve()


def _check(checkout: Path) -> None:
    for place in ("examples", "tests/conftest.py", "tests/max_config"):
        if not (checkout / place).exists():
            raise SetupError(f"{checkout / place}: not found: name a checkout of ni/nidaqmx-python")
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        names = " ".join(n.replace("_", "-").replace("nptdms", "npTDMS") for n in missing)
        raise SetupError(f"NI's tests need more packages: pip install {names}")


def _run(args: argparse.Namespace) -> None:
    from simdaq.conformance import benches

    parts = args.part or ["examples", "library", "grpc"]
    found: dict[str, object] = {}
    if "examples" in parts:
        cards = benches.variables(benches.for_examples(args.checkout))
        ran = examples.run(args.checkout, cards, args.jobs)
        good = sum(not e.reason for e in ran)
        print(f"examples that run                {good} of {len(ran)}")
        for example in ran:
            if example.reason:
                print(f"  {example.name}: {example.reason}")
        found["examples"] = [vars(e) for e in ran]
    for way in ("library", "grpc"):
        if way in parts:
            cards = benches.variables(benches.for_tests(args.checkout))
            tests = suite.run(args.checkout, way, cards, args.jobs, args.only)
            _print(way, tests)
            found[way] = tests.results
    if args.json:
        args.json.write_text(json.dumps(found, indent=1))


def _print(way: str, tests: suite.Suite) -> None:
    counts = tests.counts
    figures = " / ".join(f"{counts[o]} {o}" for o in suite.OUTCOMES)
    print(f"NI's tests, {way:<20} {figures}")
    for crash in tests.crashed:
        print(f"  process died: {crash}")
    for reason, n in tests.reasons("failed", "error").most_common():
        print(f"  {n:4d} failed or in error: {reason}")
    for reason, n in tests.reasons("skipped").most_common():
        print(f"  {n:4d} skipped: {reason[:90]}")


sys.exit(main())
