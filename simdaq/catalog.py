"""Cards by name, with the limits of their data sheets.

Sources: NI data sheets "PCIe-6363 Specifications", "USB-6361 Specifications", "USB-6001
Specifications", "NI 9205/9215/9237/9263/9401 Datasheet", "cDAQ-9185 Specifications",
"cDAQ-9174 Specifications"; watchdogs: "X Series User Manual" and "cDAQ-9185/9189 User Manual",
section "Watchdog Timer". Product numbers are PCI or USB identifiers.
"""

from dataclasses import dataclass, replace

from nidaqmx.constants import BusType, ProductCategory, UsageTypeAI, UsageTypeCI

from simdaq.errors import SetupError

BRIDGES = (
    UsageTypeAI.BRIDGE, UsageTypeAI.FORCE_BRIDGE, UsageTypeAI.STRAIN_STRAIN_GAGE,
    UsageTypeAI.PRESSURE_BRIDGE, UsageTypeAI.TORQUE_BRIDGE,
)  # fmt: skip
VOLTAGE_CARD = (
    UsageTypeAI.VOLTAGE, UsageTypeAI.VOLTAGE_CUSTOM_WITH_EXCITATION, UsageTypeAI.VOLTAGE_ACRMS,
    UsageTypeAI.CURRENT, UsageTypeAI.CURRENT_ACRMS, UsageTypeAI.RESISTANCE,
    UsageTypeAI.TEMPERATURE_THERMOCOUPLE, UsageTypeAI.TEMPERATURE_THERMISTOR,
    UsageTypeAI.TEMPERATURE_RTD, UsageTypeAI.TEMPERATURE_BUILT_IN_SENSOR, *BRIDGES,
)  # fmt: skip
COUNTER_TYPES = tuple(UsageTypeCI)


@dataclass(frozen=True)
class AnalogInputs:
    """`n_channels` single-ended; `max_multi_Hz` is shared between channels unless simultaneous."""

    n_channels: int
    ranges: tuple[float, ...]
    bits: int
    max_single_Hz: float
    max_multi_Hz: float
    simultaneous: bool = False
    differential_only: bool = False
    usages: tuple[UsageTypeAI, ...] = VOLTAGE_CARD
    min_Hz: float = 0.0
    ratiometric: bool = False  # ranges are V/V of a bridge
    shunt_Ohm: float = 0.0  # of the card's own shunt resistor; 0 where it has none
    delta_sigma: int = 0  # its clock divides max_single_Hz by 1 to this; 0: any rate


@dataclass(frozen=True)
class AnalogOutputs:
    """Ranges are +/- volts; `max_Hz` 0 means without a clock."""

    n_channels: int
    ranges: tuple[float, ...]
    bits: int
    max_Hz: float


@dataclass(frozen=True)
class Counters:
    """All alike; `encoders` tells whether two-phase encoders can be read."""

    n: int
    bits: int
    timebase_Hz: float
    encoders: bool = True
    buffered: bool = True
    outputs: bool = True


@dataclass(frozen=True)
class Port:
    """Digital lines; `max_Hz` 0 means without a clock."""

    n_lines: int
    max_Hz: float = 0.0


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
    timebase_Hz: float = 100.0e6
    watchdog: tuple[str, ...] = ()
    watchdog_max_s: float = 0.0
    single_point: bool = False
    slots: int = 0
    digital_trigger: bool = True
    simultaneous_engines: int = 1


X_WATCHDOG_MAX_S = (2**32 - 1) * 8e-9
CHASSIS_WATCHDOG_MAX_S = (2**32 - 1) * 25e-9

_X_SERIES = CardModel(
    product="PCIe-6363",
    number=0x7435,
    category=ProductCategory.X_SERIES_DAQ,
    bus=BusType.PCIE,
    ai=AnalogInputs(32, (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0), 16, 2.0e6, 1.0e6),
    ao=AnalogOutputs(4, (5.0, 10.0), 16, 2.86e6),
    counters=Counters(4, 32, 100.0e6),
    ports=(Port(32, 10.0e6), Port(8), Port(8)),
    n_pfi=16,
    watchdog=("do",),
    watchdog_max_s=X_WATCHDOG_MAX_S,
    single_point=True,
)

_C_SERIES = CardModel(
    "NI 9205", 0x712A, ProductCategory.C_SERIES_MODULE, BusType.COMPACT_DAQ, digital_trigger=True
)

MODELS: dict[str, CardModel] = {
    m.product: m
    for m in (
        _X_SERIES,
        replace(_X_SERIES, product="PXIe-6363", number=0x7436, bus=BusType.PXIE),
        replace(
            _X_SERIES,
            product="USB-6361",
            number=0x7811,
            bus=BusType.USB,
            ai=AnalogInputs(16, (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0), 16, 2.0e6, 1.0e6),
            ao=AnalogOutputs(2, (5.0, 10.0), 16, 2.86e6),
            ports=(Port(8, 1.0e6), Port(8), Port(8)),
            single_point=False,
        ),
        replace(
            _X_SERIES,
            product="USB-6363",
            number=0x7810,
            bus=BusType.USB,
            ports=(Port(32, 1.0e6), Port(8), Port(8)),
            single_point=False,
        ),
        CardModel(
            product="PCIe-6321",
            number=0x742A,
            category=ProductCategory.X_SERIES_DAQ,
            bus=BusType.PCIE,
            ai=AnalogInputs(16, (0.2, 1.0, 5.0, 10.0), 16, 250.0e3, 250.0e3),
            ao=AnalogOutputs(2, (10.0,), 16, 900.0e3),
            counters=Counters(4, 32, 100.0e6),
            ports=(Port(8, 1.0e6), Port(8), Port(8)),
            n_pfi=16,
            watchdog=("do",),
            watchdog_max_s=X_WATCHDOG_MAX_S,
            single_point=True,
        ),
        CardModel(
            product="PCIe-6251",
            number=0x716F,
            category=ProductCategory.M_SERIES_DAQ,
            bus=BusType.PCIE,
            ai=AnalogInputs(16, (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0), 16, 1.25e6, 1.0e6),
            ao=AnalogOutputs(2, (5.0, 10.0), 16, 2.86e6),
            counters=Counters(2, 32, 80.0e6),
            ports=(Port(8, 10.0e6), Port(8), Port(8)),
            n_pfi=16,
            single_point=True,
        ),
        CardModel(
            product="PXIe-6738",
            number=0x7852,  # assumed
            category=ProductCategory.AO_SERIES,
            bus=BusType.PXIE,
            ao=AnalogOutputs(32, (10.0,), 16, 1.0e6),
            counters=Counters(4, 32, 100.0e6),
            ports=(Port(2, 10.0e6), Port(8)),
            n_pfi=8,
        ),
        CardModel(
            product="USB-6001",
            number=0x7669,
            category=ProductCategory.USBDAQ,
            bus=BusType.USB,
            ai=AnalogInputs(8, (10.0,), 14, 20.0e3, 20.0e3),
            ao=AnalogOutputs(2, (10.0,), 14, 5.0e3),
            counters=Counters(1, 32, 80.0e6, encoders=False, buffered=False, outputs=False),
            ports=(Port(8), Port(4), Port(1)),
            n_pfi=2,
            timebase_Hz=80.0e6,
        ),
        CardModel(
            product="cDAQ-9185",
            number=0x7A39,
            category=ProductCategory.COMPACT_DAQ_CHASSIS,
            bus=BusType.TCPIP,
            counters=Counters(4, 32, 80.0e6),
            slots=4,
            n_pfi=2,
            watchdog=("do", "ao", "co"),
            watchdog_max_s=CHASSIS_WATCHDOG_MAX_S,
            simultaneous_engines=3,
            timebase_Hz=80.0e6,
        ),
        CardModel(
            product="cDAQ-9174",
            number=0x72CB,
            category=ProductCategory.COMPACT_DAQ_CHASSIS,
            bus=BusType.USB,
            counters=Counters(4, 32, 80.0e6),
            slots=4,
            n_pfi=2,
            simultaneous_engines=3,
            timebase_Hz=80.0e6,
        ),
        replace(
            _C_SERIES, ai=AnalogInputs(32, (0.2, 1.0, 5.0, 10.0), 16, 250.0e3, 250.0e3)
        ),
        replace(
            _C_SERIES,
            product="NI 9215",
            number=0x7132,
            ai=AnalogInputs(4, (10.0,), 16, 100.0e3, 100.0e3, simultaneous=True,
                            differential_only=True),
        ),
        replace(
            _C_SERIES,
            product="NI 9211",
            number=0x712F,
            ai=AnalogInputs(4, (0.08,), 24, 14.0, 14.0, differential_only=True,
                            usages=(UsageTypeAI.VOLTAGE, UsageTypeAI.TEMPERATURE_THERMOCOUPLE)),
        ),
        replace(
            _C_SERIES,
            product="NI 9237",
            number=0x7133,
            ai=AnalogInputs(4, (0.025,), 24, 50.0e3, 50.0e3, simultaneous=True,
                            differential_only=True, usages=BRIDGES,
                            ratiometric=True, shunt_Ohm=100.0e3, delta_sigma=31),
        ),
        replace(_C_SERIES, product="NI 9263", number=0x7144,
                ao=AnalogOutputs(4, (10.0,), 16, 100.0e3)),
        replace(_C_SERIES, product="NI 9401", number=0x7130, ports=(Port(8, 10.0e6),)),
    )
}  # fmt: skip


def model(name: str) -> CardModel:
    """The card of this name.

    Raises
    ------
    SetupError
        None is known.
    """
    if name not in MODELS:
        raise SetupError(f"card {name!r} is not known: choose one of {', '.join(MODELS)}")
    return MODELS[name]
