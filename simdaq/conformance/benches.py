"""Simulated cards for NI's examples and tests, from the NI MAX files of the checkout."""

from __future__ import annotations

import os
from pathlib import Path

from simdaq import command
from simdaq.scene import BenchPlan

# A card that says it is real: NI's tests write to its outputs and read them back inside the card.
REAL = Path(__file__).parent / "real_card.ini"


def for_examples(checkout: Path) -> BenchPlan:
    """Cards that NI's examples name."""
    folder = checkout / "tests/max_config"
    return _bench(folder / "examplesMaxConfig.ini", folder / "nidaqmxMaxConfig.ini")


def for_tests(checkout: Path) -> BenchPlan:
    """Cards, scales, channels and tasks that NI's tests ask for."""
    folder = checkout / "tests/max_config"
    names = ("nidaqmxMaxConfig.ini", "nidaqmxMaxConfig26Q1.ini", "examplesMaxConfig.ini")
    return _bench(*(folder / name for name in names), REAL)


def _bench(*files: Path) -> BenchPlan:
    return BenchPlan(max_files=[str(f) for f in files if f.exists()], skip_unknown=True)


def variables(plan: BenchPlan) -> dict[str, str]:
    """The environment of a process that runs NI's programs."""
    home = str(Path(__file__).parents[2])
    path = os.environ.get("PYTHONPATH", "")
    return command.environment(plan) | {"PYTHONPATH": f"{home}:{path}" if path else home}
