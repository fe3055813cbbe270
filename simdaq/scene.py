"""A bench for programs that bring no plant: cards with names from NI's examples, and signals.

Inputs that nobody feeds give what NI's simulated devices give: analog inputs a noisy sine between
the channel's limits, digital lines a count of samples. Every PFI carries 1 kHz, and the counters
see a shaft at one revolution per second.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from simdaq import catalog, max_file, scene_file, storage
from simdaq.card import Card
from simdaq.edges import Pulses
from simdaq.errors import SetupError
from simdaq.max_file import CardEntry
from simdaq.system import System

ENVIRONMENT = "SIMDAQ"
CARDS = (
    ("PCIe-6363", "Dev1"),
    ("USB-6361", "Dev2"),
    ("PXIe-6363", "PXI1Slot3"),
    ("PXIe-6363", "PXI1Slot7"),
    ("cDAQ-9185", "cDAQ1"),
    ("NI 9205", "cDAQ1Mod1"),
    ("NI 9263", "cDAQ1Mod2"),
    ("NI 9401", "cDAQ1Mod3"),
    ("NI 9237", "cDAQ1Mod4"),
)
_MODULE = re.compile(r"(.+)Mod(\d+)$")


@dataclass
class BenchPlan:
    """What a bench consists of; travels to a program in an environment variable.

    Attributes
    ----------
    cards : list of (model, name)
    max_files : NI MAX exports whose cards, scales, channels and tasks are added
    scene : a scene file with signals; empty for none
    fast : time passes only while the program waits
    skip_unknown : leave cards of a MAX file out that the catalogue does not have
    """

    cards: list[tuple[str, str]] = field(default_factory=list)
    max_files: list[str] = field(default_factory=list)
    scene: str = ""
    fast: bool = False
    skip_unknown: bool = False

    def to_environment(self) -> str:
        """The plan as the value of the environment variable; paths become absolute."""
        values = vars(self) | {
            "cards": [(_absolute(model), name) for model, name in self.cards],
            "max_files": [str(Path(f).absolute()) for f in self.max_files],
            "scene": self.scene and str(Path(self.scene).absolute()),
        }
        return json.dumps(values)

    @property
    def entries(self) -> list[CardEntry]:
        """All cards, chassis before their modules; the usual bench where none is named."""
        from_files = self.configuration.cards
        named = self.cards or ([] if from_files else list(CARDS))
        return [*(_entry(*c, {n for _, n in named}) for c in named), *from_files]

    @property
    def configuration(self) -> max_file.Configuration:
        """What the NI MAX files describe."""
        files = [Path(f) for f in self.max_files]
        return max_file.read(*files, skip_unknown=self.skip_unknown)


def _absolute(model: str) -> str:
    return str(Path(model).absolute()) if model.endswith(".toml") else model


def _entry(model: str, name: str, names: set[str]) -> CardEntry:
    module = _MODULE.match(name)
    if module and module[1] in names:
        return CardEntry(model, name, module[1], int(module[2]))
    return CardEntry(model, name)


def parse(texts: Iterable[str]) -> list[tuple[str, str]]:
    """`PCIe-6363=Dev1` and so on; modules are known by their names: `NI 9237=cDAQ1Mod2`.

    Raises
    ------
    SetupError
        One is malformed, or of an unknown model.
    """
    cards = []
    for text in texts:
        model, _, name = (part.strip() for part in text.rpartition("="))
        if not model or not re.fullmatch(r"[A-Za-z][\w-]*", name):
            raise SetupError(f"--card {text}: write MODEL=NAME, such as PCIe-6363=Dev1")
        catalog.model(model)
        cards.append((model, name))
    return cards


def build(plan: BenchPlan, pace: str | Callable[[], float]) -> System:
    """A system with these cards and signals on all their inputs.

    Raises
    ------
    SetupError
        A model is unknown, a module has no chassis, or a file is wrong.
    """
    system = System(pace)
    for entry in plan.entries:
        is_module = catalog.model(entry.model).category in catalog.MODULES
        if is_module and entry.chassis not in system.cards:
            raise SetupError(
                f"card {entry.name!r}: a module needs its chassis before it and a name such as "
                "cDAQ1Mod1: --card cDAQ-9185=cDAQ1 --card 'NI 9205=cDAQ1Mod1'"
            )
        card = system.add(
            entry.model, entry.name, chassis=entry.chassis or None, slot=entry.slot,
            simulated=entry.simulated, idle="simulated" if entry.simulated else "zero",
            accessories=entry.accessories,
        )  # fmt: skip
        if entry.simulated:
            _wire(card)
    storage.load(system, plan.configuration)
    if plan.scene:
        scene_file.apply(system, Path(plan.scene))
    return system


def _wire(card: Card) -> None:
    for i in range(card.model.n_pfi):
        card.default_source[f"PFI{i}"] = Pulses(1e-3, 0.5e-3)
    for i in range(card.model.counters.n if card.model.counters else 0):
        card.default_source[f"ctr{i}"] = _shaft


def _shaft(t_s: Any) -> Any:
    return 1.0 * t_s


def plan_of_environment() -> BenchPlan:
    """The bench that the environment describes, else the usual one."""
    plan = BenchPlan(**json.loads(os.environ.get(ENVIRONMENT, "{}")))
    plan.cards = [(model, name) for model, name in plan.cards]
    return plan


def from_environment(now_s: Callable[[], float], unix_s: float) -> System:
    """The bench of the environment, on wall time or fast."""
    plan = plan_of_environment()
    system = build(plan, "free" if plan.fast else now_s)
    system.origin_unix_s = unix_s
    return system
