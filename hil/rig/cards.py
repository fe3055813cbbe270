"""A data acquisition card of a rig: the card itself, or a simulated one."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np

from hil.calibration.signal_chain import Encoder
from hil.devices.base import Device
from hil.devices.nidaq.channels import (
    Acquisition,
    AnalogInput,
    AnalogOutput,
    Baseline,
    Bridge,
    CardPlan,
    CellLine,
    EncoderInput,
    Line,
    Place,
)
from hil.devices.nidaq.driver import NiDaq
from hil.devices.nidaq.emulated import (
    Cable,
    EmulatedBench,
    EmulatedCard,
    EmulatedDaq,
    EmulatedSignal,
)
from hil.devices.nidaq.plant_card import PlantCard, Played, Terminals
from hil.devices.sim.daq import SimCard, SimChannel, SimDaq, SimOutput
from hil.devices.sim.plant import output_index
from hil.devices.tables import AnalogChannelTable, AnyChannelTable, EncoderChannelTable, NidaqTable
from hil.errors import ConfigError, install
from hil.mechanics.system import System
from hil.rig import instruments
from hil.rig.calibrated import cards_of, per_tick, range_raw
from hil.rig.kinds import Built, DeviceInputs, keeping_alive, stream
from hil.rig.run_tables import RigConfig

if TYPE_CHECKING:
    from simdaq.terminals import Fault

COUNTS_MAX = float(2**31 - 1)


def missing(backend: str) -> str:
    """What this computer lacks for the backend: all but `sim` need the package nidaqmx."""
    if backend != "sim" and find_spec("nidaqmx") is None:
        return f"needs an extra: {install('daq')}"
    if backend == "emulated":
        from simdaq import library
        from simdaq.errors import SetupError

        try:
            library.built()
        except SetupError as error:
            return f"is not emulated here: {error}"
    return ""


def build(inputs: DeviceInputs[NidaqTable]) -> Built:
    """Build the card of a backend: `bench`, `emulated` or `sim`.

    Raises
    ------
    ConfigError
        The backend does not support a setting of the card's tables.
    """
    indices, output_index = inputs.places()
    place = Place(indices.start, output_index)
    card: Device
    if inputs.backend == "sim":
        card = _sim_card(inputs, place)
    elif inputs.backend == "emulated":
        card = _emulated_card(inputs, place)
    else:
        plan = plan_of(inputs.name, inputs.config, inputs.layout.cell_names)
        card = NiDaq(inputs.name, plan, place, inputs.wait_s, simulated=False)
    return card, inputs.divider(indices)


SENSOR_FAULTS: "tuple[tuple[str, Fault], ...]" = (
    ("sensor_stuck", "stuck"), ("sensor_rail", "high rail"), ("sensor_nan", "nan"),
)  # fmt: skip


def _emulated_card(inputs: DeviceInputs[NidaqTable], place: Place) -> EmulatedDaq:
    bench, injection = inputs.bench, inputs.injection
    card = _on_emulated_bench(inputs)
    if inputs.behind_card:
        card = replace(card, signals=())
    bench.add(card)
    if injection is not None:
        for channel in card.plan.inputs:
            terminal = card.plan.physical(channel.terminal)
            for kind, fault in SENSOR_FAULTS:
                injection.at_start(kind, partial(_break, bench, terminal, fault))
        for line in card.plan.lines_in:
            if line.kind == "estop":
                at = card.plan.physical(line.terminal)
                injection.at_start("card_estop_open", partial(_open_loop, bench, at))
    sleep_s = keeping_alive(bench.pass_s, inputs.keep_alive)
    return EmulatedDaq(NiDaq(inputs.name, card.plan, place, sleep_s, simulated=True), bench)


def build_plant_card(
    config: RigConfig,
    system: System,
    bench: EmulatedBench | None,
    seed: int,
) -> PlantCard:
    """Build the card on which the plant runs; with emulated cards, also wire it to them."""
    table = config.tables.plant_card
    assert table is not None  # checked by parse_backend
    cells = tuple(system.cell_names)
    plans = {name: plan_of(name, config, cells) for name in cards_of(config.tables.devices)}
    played, cables = [], []
    for name, plan in plans.items():
        for analog in plan.analog:
            channel = cards_of(config.tables.devices)[name].channels[analog.name]
            terminal = table.outputs[analog.name]
            index = output_of(channel, config, system)
            played.append(Played(analog.name, terminal, index, analog.chain))
            assert channel.kind != "encoder"  # hil.rig.plant_card.check refuses encoders
            source, sink = f"{table.card}/{terminal}", plan.physical(analog.terminal)
            draws = stream(seed, name, analog.name)
            cables.append(Cable(source, sink, channel.sim.noise_rms_V, draws))
    if bench is not None:
        levels = [(f"{table.card}/{line}", i) for i, line in enumerate(table.gates)]
        bench.wire_plant_card(table.product, table.card, levels, cables)
    shared = table.card in {plan.card for plan in plans.values()}
    terminals = Terminals(table.card, table.gates, played, table.range_V)
    return PlantCard(terminals, system, bench, lock=not shared)


def _break(bench: EmulatedBench, terminal: str, fault: "Fault") -> None:
    bench.system.inject(terminal, fault)


def _open_loop(bench: EmulatedBench, terminal: str) -> None:
    bench.system.feed(terminal, 0.0)


def plan_of(name: str, config: RigConfig, cells: Sequence[str]) -> CardPlan:
    """Settings of a card, from the rig's tables; `cells` are the names of the rig's cells."""
    table = cards_of(config.tables.devices)[name]
    period_s = table.every * config.tables.loop.period_s
    return CardPlan(
        card=table.card,
        acquisition=Acquisition(table.acquisition, period_s, per_tick(table, period_s)),
        inputs=tuple(
            _encoder_input(n, c) if c.kind == "encoder" else _analog(n, c, table, config)
            for n, c in table.channels.items()
        ),
        lines=_lines(table),
        outputs=tuple(
            AnalogOutput(n, o.terminal, o.units_per_V, table.range_V, min(max(0.0, o.min), o.max))
            for n, o in table.outputs.items()
        ),
        before_s=table.before_s,
        watchdog=table.watchdog,
        watchdog_s=table.watchdog_s,
        enable_settle_s=table.enable_settle_s,
        age_max_s=config.tables.guard.reading_age_max_s,
        clock_from=_device_of_clock(table.clock_from, config),
        start_from=_device_of_clock(table.start_from, config),
        cells=_cells(table, cells),
        cools_s=config.cooling_s(name),
    )


def _device_of_clock(name: str | None, config: RigConfig) -> str:
    """The device whose analogue inputs make the sample clock of this card."""
    return "" if name is None else cards_of(config.tables.devices)[name].clock_device()


def _lines(table: NidaqTable) -> tuple[Line, ...]:
    lines = [Line(name, line.terminal, line.kind) for name, line in table.lines.items()]
    gates = {} if table.switches is None else table.switches.readback
    return (*lines, *(Line(cell, terminal, "readback") for cell, terminal in gates.items()))


def _cells(table: NidaqTable, cells: Sequence[str]) -> tuple[CellLine, ...]:
    """The lines that switch cells; `cells` are those of the rig, in order."""
    lines = {} if table.switches is None else table.switches.lines
    return tuple(CellLine(cell, line, cells.index(cell)) for cell, line in lines.items())


def _analog(
    name: str, channel: AnalogChannelTable, table: NidaqTable, config: RigConfig
) -> AnalogInput:
    calibration = config.records.get(name)
    chain = channel.chain(calibration)
    bridge, baseline = None, Baseline()
    if channel.bridge is not None:
        bridge = Bridge(**channel.bridge.model_dump())
    if calibration is not None:
        known = calibration.record.commissioning
        noise = known.noise_rms_mV_per_V
        baseline = Baseline(
            zero_ratio=known.zero_mV_per_V,
            zero_tolerance=known.zero_tolerance_N,
            noise_rms_raw=None if noise is None else noise * chain.raw_per_ratio,
            shunt_ratio=known.shunt_mV_per_V,
            shunt_tolerance=known.shunt_tolerance_mV_per_V,
        )
    return AnalogInput(
        name=name,
        terminal=channel.terminal,
        chain=chain,
        range_raw=range_raw(table, channel, calibration),
        wiring=channel.wiring,
        bridge=bridge,
        tare=channel.tare,
        baseline=baseline,
        shunt_line=channel.shunt_line or "",
    )


def _encoder(channel: EncoderChannelTable) -> Encoder:
    return Encoder(channel.counts_per_turn, channel.direction, channel.offset_rad)


def _encoder_input(name: str, channel: EncoderChannelTable) -> EncoderInput:
    encoder, at_rad = _encoder(channel), channel.index_rad
    count = None if at_rad is None else round((at_rad - encoder.offset_rad) / encoder.rad_per_count)
    return EncoderInput(
        name, channel.terminal, encoder, count, channel.index_phase, channel.filter_s
    )


def _sim_card(inputs: DeviceInputs[NidaqTable], place: Place) -> SimDaq:
    table, system = inputs.table, inputs.system
    step_V = 2.0 * table.range_V / 2**table.resolution_bits
    outputs = [
        SimOutput(list(system.inputs).index(o.drives), o.units_per_V, step_V, table.range_V)
        for o in table.outputs.values()
    ]
    channels = [_sim_channel(n, c, inputs) for n, c in table.channels.items()]
    switches = _cells(table, inputs.layout.cell_names)
    card = SimCard(
        inputs.name, channels, outputs, place, _lines(table), switches, table.enable_settle_s
    )
    return SimDaq(card, inputs.plant, table.every * inputs.period_s, inputs.draws, inputs.injection)


def _on_emulated_bench(inputs: DeviceInputs[NidaqTable]) -> EmulatedCard:
    from simdaq import catalog
    from simdaq.errors import SetupError

    name, table, config, system = inputs.name, inputs.table, inputs.config, inputs.system
    plan = plan_of(name, config, inputs.layout.cell_names)
    for key, product in {"product": table.sim.product, **table.sim.cards}.items():
        try:
            catalog.model(product)
        except SetupError as error:
            key = key if key == "product" else f"cards.{key}"
            raise ConfigError(f"{config.path}: devices.{name}.sim.{key}: {error}") from None
    signals = []
    for planned, channel in zip(plan.inputs, table.channels.values(), strict=True):
        if channel.sim.reading_lost_probability:
            raise ConfigError(
                f"--backend {name}=emulated: devices.{name}.channels.{planned.name}.sim."
                "reading_lost_probability: an emulated card loses no readings: use sim"
            )
        output = output_of(channel, config, system)
        late = round(channel.sim.delay_s / config.tables.loop.period_s)
        if channel.kind == "encoder":
            signals.append(EmulatedSignal(planned, output, delay_periods=late))
        else:
            sim = channel.sim
            signals.append(
                EmulatedSignal(
                    planned, output, sim.bandwidth_Hz, sim.noise_rms_V, sim.offset_V, late
                )
            )
    driven = tuple(list(system.inputs).index(o.drives) for o in table.outputs.values())
    return EmulatedCard(
        name, plan, table.sim.product, tuple(signals), driven, inputs.draws, table.sim.transfer_s,
        table.sim.cards,
    )  # fmt: skip


def output_of(channel: AnyChannelTable, config: RigConfig, system: System) -> int:
    """Index of the plant's output that a channel measures."""
    return output_index(system, signal_of(channel, config), instruments.AMBIENT)


def signal_of(channel: AnyChannelTable, config: RigConfig) -> str:
    """The model's output that a channel measures."""
    return channel.signal or config.default_signal


def _sim_channel(
    name: str, channel: AnyChannelTable, inputs: DeviceInputs[NidaqTable]
) -> SimChannel:
    table = inputs.table
    output = output_of(channel, inputs.config, inputs.system)
    delay_periods = round(channel.sim.delay_s / (table.every * inputs.period_s))
    lost = channel.sim.reading_lost_probability
    if channel.kind == "encoder":
        return SimChannel(
            name=name,
            output=output,
            raw_unit="counts",
            chain=_encoder(channel).chain,
            step_raw=1.0,
            low_raw=-COUNTS_MAX,
            high_raw=COUNTS_MAX,
            bandwidth_Hz=np.inf,
            noise_rms_raw=0.0,
            offset_raw=0.0,
            delay_periods=delay_periods,
            reading_lost_probability=lost,
        )
    analog = _analog(name, channel, table, inputs.config)
    step = 2.0 * analog.range_raw / 2**table.resolution_bits
    return SimChannel(
        name=name,
        output=output,
        raw_unit="V" if analog.bridge is None else "mV_per_V",
        chain=analog.chain,
        step_raw=step,
        low_raw=-analog.range_raw,
        high_raw=analog.range_raw - step,
        bandwidth_Hz=channel.sim.bandwidth_Hz,
        noise_rms_raw=channel.sim.noise_rms_V,
        offset_raw=channel.sim.offset_V,
        delay_periods=delay_periods,
        reading_lost_probability=lost,
        tare=analog.tare,
    )
