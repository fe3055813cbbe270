"""Card models by name, read from the data files in `cards/`.

A model is one table of a TOML file; `like` takes over what another model has. The files name
their sources. The product number of a simulated NI card is the one that NI MAX gives it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from nidaqmx.constants import BusType, ProductCategory, UsageTypeAI, UsageTypeCI

from simdaq.card_files import tables, terminals, whole
from simdaq.errors import SetupError

BRIDGES = (
    UsageTypeAI.BRIDGE, UsageTypeAI.FORCE_BRIDGE, UsageTypeAI.STRAIN_STRAIN_GAGE,
    UsageTypeAI.PRESSURE_BRIDGE, UsageTypeAI.TORQUE_BRIDGE,
)  # fmt: skip
VOLTAGE_CARD = (
    UsageTypeAI.VOLTAGE, UsageTypeAI.VOLTAGE_CUSTOM_WITH_EXCITATION, UsageTypeAI.VOLTAGE_ACRMS,
    UsageTypeAI.CURRENT, UsageTypeAI.CURRENT_ACRMS, UsageTypeAI.RESISTANCE,
    UsageTypeAI.TEMPERATURE_THERMOCOUPLE, UsageTypeAI.TEMPERATURE_THERMISTOR,
    UsageTypeAI.TEMPERATURE_RTD, UsageTypeAI.TEMPERATURE_BUILT_IN_SENSOR,
    UsageTypeAI.ROSETTE_STRAIN_GAGE, UsageTypeAI.FREQUENCY_VOLTAGE,
    UsageTypeAI.POSITION_LINEAR_LVDT, UsageTypeAI.POSITION_ANGULAR_RVDT,
    UsageTypeAI.ACCELERATION_ACCELEROMETER_CURRENT_INPUT, UsageTypeAI.VELOCITY_IEPE_SENSOR,
    UsageTypeAI.FORCE_IEPE_SENSOR, UsageTypeAI.SOUND_PRESSURE_MICROPHONE,
    UsageTypeAI.CALCULATED_POWER, *BRIDGES,
)  # fmt: skip
GROUPS = {"@voltage_card": VOLTAGE_CARD, "@bridges": BRIDGES}
CHASSIS = (ProductCategory.COMPACT_DAQ_CHASSIS, ProductCategory.TEST_SCALE_CHASSIS)
MODULES = (ProductCategory.C_SERIES_MODULE, ProductCategory.TEST_SCALE_MODULE)


@dataclass(frozen=True)
class AnalogInputs:
    """Analog inputs of a card.

    Attributes
    ----------
    n_channels : int
        Single-ended inputs.
    ranges : tuple of float
        Full scale to both sides, V (V/V where ratiometric), ascending.
    max_single_Hz, max_multi_Hz : float
        Highest sample rate of one channel, and the sum over several channels; per channel where
        `simultaneous`.
    ratiometric : bool
        The converter measures the ratio of a bridge.
    shunt_Ohm : float
        The card's own shunt resistor; 0 where it has none.
    excitation_V : tuple of float
        Excitation voltages that the card supplies.
    delta_sigma : int
        The sample clock is `max_single_Hz` divided by 1 to this; 0: any rate.
    internal_shunt : bool
        It has shunt resistors of its own for current.
    extra_channels : tuple of str
        Physical channels that are not numbered inputs, such as dmm.
    single_ended_V : float
        Full scale of single-ended inputs, where it is below the widest range.
    single_ended_bits : int
        Resolution of single-ended inputs, where it is not `bits`; 0: it is.
    power_max_V, power_max_A : float
        Limits of a power module's set points; 0 where there is none.
    """

    n_channels: int
    ranges: tuple[float, ...]
    bits: int
    max_single_Hz: float
    max_multi_Hz: float
    simultaneous: bool = False
    differential_only: bool = False
    pseudodifferential: bool = False
    nrse: bool = True
    usages: tuple[UsageTypeAI, ...] = VOLTAGE_CARD
    min_Hz: float = 0.0
    ratiometric: bool = False
    shunt_Ohm: float = 0.0
    excitation_V: tuple[float, ...] = ()
    delta_sigma: int = 0
    extra_channels: tuple[str, ...] = ()
    power_max_V: float = 0.0
    power_max_A: float = 0.0
    internal_shunt: bool = False
    single_ended_V: float = np.inf
    single_ended_bits: int = 0


@dataclass(frozen=True)
class AnalogOutputs:
    """Analog outputs; ranges are +/- volts, `max_Hz` 0 means without a clock."""

    n_channels: int
    ranges: tuple[float, ...]
    bits: int
    max_Hz: float
    unipolar: bool = False
    current_ranges_A: tuple[float, ...] = ()


@dataclass(frozen=True)
class Counters:
    """Identical counters and the measurements that they support.

    Attributes
    ----------
    pins : tuple
        Default pins of each counter: source or A, gate or Z, auxiliary or B, output.
    in_module : bool
        The counters of a module are in it, not in its chassis.
    """

    n: int
    bits: int
    timebase_Hz: float
    usages: tuple[UsageTypeCI, ...] = tuple(u for u in UsageTypeCI if u != UsageTypeCI.TIME_GPS)
    buffered: bool = True
    outputs: bool = True
    in_module: bool = False
    pins: tuple[tuple[str, ...], ...] = ()

    @property
    def encoders(self) -> bool:
        """Two-phase encoders can be read."""
        return UsageTypeCI.POSITION_ANGULAR_ENCODER in self.usages


@dataclass(frozen=True)
class Port:
    """Digital lines; `max_Hz` 0 means without a clock."""

    n_lines: int
    max_Hz: float = 0.0
    input: bool = True
    output: bool = True


@dataclass(frozen=True)
class CardModel:
    """What a card can do.

    Attributes
    ----------
    watchdog : tuple of str
        Kinds of output that its watchdog can put into a safe state: do, ao, co.
    single_point : bool
        It has hardware-timed single point mode.
    slots : int
        Of a chassis.
    n_ai_engines : int
        Analog input tasks that can run at once.
    internal_channels : tuple of str
        Internal analog inputs beside those that read back the analog outputs.
    handshakes : bool
        It has pipelined, handshake and burst timing.
    power_up : tuple of str
        Kinds of output that have programmable power-up states: do, ao.
    drive_types : tuple of str
        How its lines can drive, by NI's names; the first is the default. Empty: no choice.
    pfi_ports : tuple of int
        Ports whose lines are the pins PFI0 to PFI7, PFI8 to PFI15.
    terminals : mapping
        Names of its physical channels by kind.
    assumed : tuple of str
        Keys whose values have no source.
    """

    product: str
    number: int
    category: ProductCategory
    bus: BusType
    ai: AnalogInputs | None = None
    ao: AnalogOutputs | None = None
    counters: Counters | None = None
    ports: tuple[Port, ...] = ()
    n_pfi: int = 0
    n_apfi: int = 0
    timebase_Hz: float = 100.0e6
    watchdog: tuple[str, ...] = ()
    watchdog_max_s: float = 0.0
    single_point: bool = False
    slots: int = 0
    digital_trigger: bool = True
    analog_trigger: bool = False
    self_calibration: bool = False
    time_aware: bool = False
    n_ai_engines: int = 1
    handshakes: bool = False
    power_up: tuple[str, ...] = ()
    drive_types: tuple[str, ...] = ()
    pfi_ports: tuple[int, ...] = ()
    assumed: tuple[str, ...] = ()
    internal_channels: tuple[str, ...] = ()
    terminals: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def _usages(names: list[str], kind: Any) -> tuple[Any, ...]:
    usages: list[Any] = []
    for name in names:
        usages += GROUPS[name] if name in GROUPS else [kind[name]]
    return tuple(usages)


def _frozen(table: dict[str, Any], kind: Any = UsageTypeAI) -> dict[str, Any]:
    values = {k: tuple(v) if isinstance(v, list) else v for k, v in table.items()}
    if "usages" in values:
        values["usages"] = _usages(table["usages"], kind)
    return values


def from_table(product: str, table: dict[str, Any]) -> CardModel:
    """A model from its table.

    Raises
    ------
    SetupError
        A key is missing, unknown, or has a value that does not exist.
    """
    try:
        values = _frozen(table)
        values["category"] = ProductCategory[table["category"]]
        values["bus"] = BusType[table["bus"]]
        if "ai" in table:
            values["ai"] = AnalogInputs(**_frozen(table["ai"]))
        if "ao" in table:
            values["ao"] = AnalogOutputs(**_frozen(table["ao"]))
        if "counters" in table:
            values["counters"] = _counters(table["counters"])
        values["ports"] = tuple(Port(**port) for port in table.get("ports", ()))
        values["terminals"] = terminals(table)
        return CardModel(product=product, **values)
    except (KeyError, TypeError) as error:
        raise SetupError(f"card model {product!r}: {error}: compare with simdaq/cards") from None


def _counters(table: dict[str, Any]) -> Counters:
    values = _frozen(table, UsageTypeCI)
    if "own" in values:  # the key's first name: cards that users wrote have it
        values["in_module"] = values.pop("own")
    return Counters(**values | {"pins": tuple(tuple(p) for p in table.get("pins", ()))})


@cache
def models() -> dict[str, CardModel]:
    """All models by product name."""
    known = tables()
    return {name: from_table(name, whole(name, known)) for name in known}


@cache
def _of_file(path: str) -> CardModel:
    try:
        cards = tomllib.loads(Path(path).read_text())
    except OSError as error:
        raise SetupError(f"card {path}: {error.strerror}") from None
    except tomllib.TOMLDecodeError as error:
        raise SetupError(f"card {path}: {error}") from None
    if len(cards) != 1:
        raise SetupError(f"card {path}: {len(cards)} tables: write one, named after the product")
    (name,) = cards
    known = tables() | cards
    base = cards[name].get("like")
    if base is not None and base not in known:
        raise SetupError(f"card {path}: like = {base!r} is not known")
    return from_table(name, whole(name, known))


def model(name: str) -> CardModel:
    """The model of this product name, or the one that a TOML file describes.

    Raises
    ------
    SetupError
        It is not known, or the file is wrong.
    """
    if name.endswith(".toml"):
        return _of_file(name)
    known = models()
    if name not in known:
        raise SetupError(f"card {name!r} is not known: choose one of {', '.join(known)}")
    return known[name]
