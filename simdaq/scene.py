"""A bench for programs that bring no plant: cards with names from NI's examples, and signals.

Analogue inputs carry sines with a little noise, as NI's own simulated devices do, digital lines
count, counters hear 1 kHz on every PFI and see a shaft that turns once a second.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from simdaq import catalog
from simdaq.card import Card
from simdaq.errors import SetupError
from simdaq.system import System
from simdaq.terminals import Pulses, Source

ENVIRONMENT = "HIL_SIMDAQ"
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
AMPLITUDE_V = 1.0
NOISE_RMS_V = 1e-3
_MODULE = re.compile(r"(.+)Mod\d+$")


def parse(texts: Iterable[str]) -> list[tuple[str, str]]:
    """`PCIe-6363=Dev1` and so on; modules are known by their names: `NI 9237=cDAQ1Mod2`.

    Raises
    ------
    SetupError
        One is malformed, or of an unknown model.
    """
    found = []
    for text in texts:
        model, _, name = (part.strip() for part in text.partition("="))
        if not re.fullmatch(r"[A-Za-z][\w-]*", name):
            raise SetupError(f"--card {text}: write MODEL=NAME, such as PCIe-6363=Dev1")
        catalog.model(model)
        found.append((model, name))
    return found


def build(cards: Iterable[tuple[str, str]], pace: str | Callable[[], float]) -> System:
    """A system with these cards and signals on all their inputs.

    Raises
    ------
    SetupError
        A model is unknown, or a module has no chassis.
    """
    system = System(pace)
    for model, name in cards:
        module = _MODULE.match(name)
        chassis = module[1] if module and module[1] in system.cards else None
        if catalog.model(model).category.name == "C_SERIES_MODULE" and chassis is None:
            raise SetupError(
                f"card {name!r}: a module needs its chassis before it and a name such as "
                "cDAQ1Mod1: --card cDAQ-9185=cDAQ1 --card 'NI 9205=cDAQ1Mod1'"
            )
        _wire(system.add(model, name, chassis=chassis))
    return system


def _wire(card: Card) -> None:
    sources = card.default_source
    full = card.model.ai.ranges[-1] if card.model.ai is not None else AMPLITUDE_V
    amplitude = min(AMPLITUDE_V, 0.5 * full)
    for i, name in enumerate(card.names("ai")):
        sources[name.partition("/")[2]] = _sine(i, amplitude)
    for name in card.names("di"):
        short = name.partition("/")[2]
        line = int(short.rpartition("line")[2])
        period_s = 2e-3 * 2**line
        sources[short] = Pulses(period_s, 0.5 * period_s, 0.5 * period_s)
    for i in range(card.model.n_pfi):
        sources[f"PFI{i}"] = Pulses(1e-3, 0.5e-3)
    for i in range(card.model.counters.n if card.model.counters else 0):
        sources[f"ctr{i}"] = _shaft


def _shaft(t_s: Any) -> Any:
    return 1.0 * t_s


def _sine(channel: int, amplitude: float) -> Source:
    rng = np.random.default_rng(channel)
    frequency_Hz = 10.0

    def signal(t_s: Any) -> Any:
        phase = 2.0 * np.pi * (frequency_Hz * t_s + 0.125 * channel)
        noise = rng.normal(scale=NOISE_RMS_V * amplitude, size=np.shape(t_s))
        return amplitude * np.sin(phase) + noise

    return signal


def to_environment(cards: list[tuple[str, str]], *, fast: bool) -> str:
    """The bench as the value of an environment variable."""
    return json.dumps({"cards": cards, "fast": fast})


def from_environment(now_s: Callable[[], float], unix_s: float) -> System:
    """The bench that the environment describes, else the usual one, on wall time or fast."""
    wanted = json.loads(os.environ.get(ENVIRONMENT, "{}"))
    pace: str | Callable[[], float] = "free" if wanted.get("fast") else now_s
    cards = [(model, name) for model, name in wanted.get("cards") or CARDS]
    system = build(cards, pace)
    system.origin_unix_s = unix_s
    return system
