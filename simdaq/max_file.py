"""NI MAX configuration exports: devices, scales, global channels and saved tasks.

NI MAX (and `nidaqmxconfig`) writes an INI file whose sections are named after what they describe:
`[DAQmxDevice Dev1]`, `[DAQmxCDAQModule cDAQ1Mod1]`, `[DAQmxScale name]`, `[DAQmxTask name]`,
`[DAQmxChannel name]`. Keys are NI-DAQmx property names, such as `AI.Max`.
"""

from __future__ import annotations

import configparser
from dataclasses import dataclass, field
from pathlib import Path

from simdaq import catalog
from simdaq.errors import SetupError

DEVICES = ("DAQmxDevice", "DAQmxCDAQChassis", "DAQmxCDAQModule")


@dataclass(frozen=True)
class CardEntry:
    """One card of a bench.

    Attributes
    ----------
    model, name : str
    chassis : str
        Where a module sits; empty for other cards.
    slot : int
        Of a module; 0 for other cards.
    simulated : bool
        What the card's `is_simulated` answers.
    """

    model: str
    name: str
    chassis: str = ""
    slot: int = 0
    simulated: bool = True
    accessories: tuple[str, ...] = ()


@dataclass
class Configuration:
    """What the files describe; `scales`, `channels` and `tasks` hold properties by NI's names."""

    cards: list[CardEntry] = field(default_factory=list)
    scales: dict[str, dict[str, str]] = field(default_factory=dict)
    channels: dict[str, dict[str, str]] = field(default_factory=dict)
    tasks: dict[str, dict[str, str]] = field(default_factory=dict)


def read(*files: Path, skip_unknown: bool = False) -> Configuration:
    """What NI MAX files describe together.

    Parameters
    ----------
    skip_unknown : leave cards out that the catalogue does not have

    Raises
    ------
    SetupError
        A file cannot be read, or describes a card that the catalogue does not have.
    """
    configuration = Configuration()
    for file in files:
        parser = _parsed(file)
        accessories: dict[str, list[str]] = {}
        for section in parser.sections():
            if section.startswith("DAQmxAccessory "):
                accessory, device, _ = section.partition(" ")[2].split("/")
                accessories.setdefault(device, []).append(accessory)
        for section in parser.sections():
            kind, _, name = section.partition(" ")
            table = {key: value.strip().strip('"') for key, value in parser[section].items()}
            if kind in DEVICES:
                known = table.get("ProductType") in catalog.models()
                if known or not skip_unknown:
                    configuration.cards.append(
                        _card(file, name, table, tuple(accessories.get(name, ())))
                    )
            elif kind == "DAQmxScale":
                configuration.scales[name] = table
            elif kind == "DAQmxChannel":
                configuration.channels[name] = table
            elif kind == "DAQmxTask":
                configuration.tasks[name] = table
    configuration.cards.sort(key=lambda card: bool(card.chassis))
    return configuration


def _parsed(file: Path) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    try:
        parser.read_string(file.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise SetupError(f"{file}: {error.strerror}") from None
    except (configparser.Error, UnicodeDecodeError):
        raise SetupError(f"{file}: not an NI MAX configuration export (.ini)") from None
    return parser


def _card(file: Path, name: str, table: dict[str, str], accessories: tuple[str, ...]) -> CardEntry:
    model = table.get("ProductType", "")
    try:
        catalog.model(model)
    except SetupError as error:
        raise SetupError(f"{file}: [{name}]: {error}") from None
    return CardEntry(
        model, name, table.get("CompactDAQ.ChassisDevName", ""),
        int(table.get("CompactDAQ.SlotNum", "0") or 0),
        simulated=table.get("DevIsSimulated", "1") != "0", accessories=accessories,
    )  # fmt: skip
