"""Consistency checks between tables: devices against the model, the experiment against its rig.

Every check yields one (key, text) pair for each error.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hil.config.values import TomlTable
from hil.control.tables import (
    ScheduleTable,
    SignalsReferenceTable,
    SignalStepsTable,
    StepsReferenceTable,
)
from hil.devices.board import protocol
from hil.devices.board.ineffective import without_effect
from hil.devices.tables import (
    ActuatorTable,
    AnyChannelTable,
    CellBoardTable,
    DeviceTable,
    NidaqTable,
)
from hil.errors import remedy
from hil.experiment import loop_limits
from hil.experiment.kind import Faults, Model, SystemRun
from hil.experiment.registry import controller_kind, controllers_of, system_kind
from hil.experiment.tightening import HOLDABLE
from hil.loop.channels import WORD_BITS
from hil.rig import plant_card
from hil.rig.calibrated import cards_of
from hil.rig.instruments import (
    AMBIENT,
    boards_of,
    force_channels,
    outputs_of,
    plugin_devices,
    receives_only,
    signals_of,
    supplies_of,
    switching,
)
from hil.rig.run_tables import GuardTable, RigTables, RunTables
from simdaq import card_files

TERMINALS = {"ai": "analog input", "ao": "analog output", "ci": "counter", "di": "digital input",
             "do": "digital output"}  # fmt: skip
SHUNT = ".shunt_line"
BRIEF = {
    "hold_max_ms": "switches its cells off, which nobody notices",
    "silence_max_ms": "trips (host_silent)",
}
"""Limits of the time since a board's last command, and what it does beyond them."""


def plant(tables: RigTables, model: Model, plant: Model) -> Faults:
    """Check that a plant of another kind than the model has what the rig measures and drives."""
    if tables.plant.kind == tables.model.kind:
        return
    default = system_kind(tables.model).default_signal
    for channel, signal in signals_of(tables.devices).items():
        measured = signal or ("" if default is None else default(model))
        if measured not in ("", AMBIENT, *plant.outputs):
            yield "plant.outputs", f"no '{measured}', which channel '{channel}' measures: map it"
    for name, output in outputs_of(tables.devices).items():
        if output.drives not in plant.inputs:
            yield "plant.inputs", f"no '{output.drives}', which output '{name}' drives: map it"


def after_the_end(tables: RunTables) -> Faults:
    """Steps of set points and schedules that the run ends before; a warning each."""
    reference, controller = tables.reference, tables.controller
    times: dict[str, Sequence[float]] = {}
    if isinstance(reference, StepsReferenceTable):
        times["reference.t_s"] = reference.t_s
    if isinstance(reference, SignalsReferenceTable):
        for name, signal in reference.signals.items():
            if isinstance(signal, SignalStepsTable):
                times[f"reference.signals.{name}.t_s"] = signal.t_s
    if isinstance(controller, ScheduleTable):
        times["controller.steps"] = [step.t_s for step in controller.steps]
    end_s = tables.experiment.duration_s
    for key, t_s in times.items():
        late = [t for t in t_s if t > end_s]
        if late:
            yield (
                key,
                f"the step at {late[0]:g} s never comes: the run ends at {end_s:g} s: "
                "lengthen experiment.duration_s",
            )


def rig(tables: RigTables, model: Model) -> Faults:
    """Check the devices against the model and the guard."""
    system = system_kind(tables.model)
    cards, boards = cards_of(tables.devices), boards_of(tables.devices)
    cells = list(model.cell_names)
    if not signals_of(tables.devices):
        yield "devices", "no channel: nothing would be measured: add a nidaq card"
    if (n := len(signals_of(tables.devices))) > WORD_BITS:
        yield "devices", f"{n} channels: a rig may have {WORD_BITS}, the bits of a word"
    yield from _terminals(cards)
    yield from _offers(cards)
    yield from _watchdogs(cards, tables.loop.period_s)
    yield from _plugin_devices(tables, cards, model)
    yield from _supplies(tables)
    yield from _force_channel(tables)
    yield from _paces(tables)
    yield from _signal_limits(list(signals_of(tables.devices)), tables.guard)
    for name in tables.guard.hold_s:
        if name not in HOLDABLE:
            yield f"guard.hold_s.{name}", f"no such interlock{remedy(name, HOLDABLE)}"
    yield from system.check_rig(tables, model)
    if cells and receives_only(tables.devices):
        kind = getattr(getattr(tables, "controller", None), "kind", "idle")
        if kind != "idle":
            yield (
                "devices",
                f"all are imported: nothing switches cells for controller.kind = '{kind}': import "
                "with hil import, or add a cell_board",
            )
    elif cells:
        yield from _boards(boards, tables.guard)
        yield from _cells(tables, cells)
        yield from loop_limits.faults(tables, model)
    else:
        for name in switching(tables.devices):
            yield f"devices.{name}", "the model has no cells for a board: remove it"
    signals = system.signals(model)
    for key, channel in _channels(cards):
        if channel.signal is None and system.signal_needed:
            yield f"{key}.signal", f"missing: choose {', '.join(signals)}"
        yield from _signal(key, channel, signals)
    yield from _outputs(cards, system.inputs(model))
    if tables.plant_card is not None:
        channels = {name: c for card in cards.values() for name, c in card.channels.items()}
        yield from plant_card.check(tables.plant_card, len(cells), channels)
    yield from _bench(tables, cards, len(cells))


def _bench(tables: RigTables, cards: dict[str, NidaqTable], n_cells: int) -> Faults:
    """Check specimen and ambient against the cells and the channels."""
    ohms = tables.specimen and tables.specimen.wire_resistance_Ohm
    if ohms and len(ohms) not in (1, n_cells):
        yield (
            "specimen.wire_resistance_Ohm",
            f"{len(ohms)} values for {n_cells} cells: give one, or one for each cell",
        )
    tests = tables.observer and tables.observer.wire_failures
    if tests is not None and tables.ambient is None:
        yield (
            "observer.wire_failures",
            "an error of 2 K in the air temperature can look like a dead cell: give "
            "ambient.ambient_C or ambient.ambient_channel",
        )
    ambient = tables.ambient and tables.ambient.ambient_channel
    measured = {n: c.signal for card in cards.values() for n, c in card.channels.items()}
    if ambient and measured.get(ambient) != AMBIENT:
        fitting = [name for name, signal in measured.items() if signal == AMBIENT]
        yield (
            f"ambient.ambient_channel = '{ambient}'",
            f"no channel of kind 'voltage' with signal = '{AMBIENT}' has that name: "
            f"{f'choose {fitting[0]}' if fitting else 'add one'}",
        )


def _force_channel(tables: RigTables) -> Faults:
    """Check that `loop.force_channel` is a force channel."""
    name, forces = tables.loop.force_channel, force_channels(tables.devices)
    if name is not None and name not in forces:
        choice = f"choose {', '.join(forces)}" if forces else "the rig has none: remove it"
        yield (
            f"loop.force_channel = '{name}'",
            f"no channel of kind 'force' has that name: {choice}",
        )


def _paces(tables: RigTables) -> Faults:
    """Check that readings and commands do not expire between the turns of a device with `every`."""
    devices: dict[str, Any] = dict(tables.devices)
    for name, device in devices.items():
        turn_s = device.every * tables.loop.period_s
        if device.every == 1:
            continue
        key = f"devices.{name}.every = {device.every}"
        if turn_s >= tables.guard.reading_age_max_s:
            age = f"{tables.guard.reading_age_max_s:g}"
            yield (
                key,
                f"one reading every {turn_s:g} s, but guard.reading_age_max_s = {age}: lower every",
            )
        if device.role == "board" and turn_s >= device.hold_s:
            yield (
                key,
                f"one command every {turn_s:g} s, but it expires after hold_s = "
                f"{device.hold_s:g}: lower every",
            )


def _slow_loop(tables: RigTables) -> Faults:
    """Check that a board's answer, which comes a period later, is not too old, nor its command."""
    period_s, age_max_s = tables.loop.period_s, tables.guard.reading_age_max_s
    slow = [name for name, board in boards_of(tables.devices).items() if board.every == 1]
    if slow and period_s >= age_max_s:
        yield (
            f"loop.period_s = {period_s:g}",
            f"answers of '{slow[0]}' are a period old, but guard.reading_age_max_s = "
            f"{age_max_s:g}: lower period_s, or raise reading_age_max_s",
        )
    for name, board in boards_of(tables.devices).items():
        if board.every == 1 and period_s > board.hold_s:
            yield (
                f"loop.period_s = {period_s:g}",
                f"a command to '{name}' expires before the next one, after hold_s = "
                f"{board.hold_s:g}: lower period_s, or raise devices.{name}.hold_s",
            )


def _channels(
    cards: dict[str, NidaqTable],
) -> Iterator[tuple[str, AnyChannelTable]]:
    for name, card in cards.items():
        for channel_name, channel in card.channels.items():
            yield f"devices.{name}.channels.{channel_name}", channel


def _terminals(cards: dict[str, NidaqTable]) -> Faults:
    """Check that no name and no terminal is used twice, however a terminal is written."""
    seen: dict[str, str] = {}
    taken: dict[str, str] = {}
    for name, card in cards.items():
        for what, table in (("channels", card.channels), ("outputs", card.outputs)):
            for entry_name in table:
                if entry_name in seen:
                    key = f"devices.{name}.{what}.{entry_name}"
                    yield key, f"card '{seen[entry_name]}' has a channel of that name: rename one"
                seen[entry_name] = name
        for where, _, terminal in _named_terminals(card):
            key = f"devices.{name}.{where}"
            other = taken.setdefault(_whole(card.card, terminal), key)
            shunts = other.endswith(SHUNT) and key.endswith(SHUNT)  # one for several channels
            if other != key and not shunts:
                yield f"{key} = '{terminal}'", f"is used by {other}"


def _whole(card: str, terminal: str) -> str:
    """A terminal with its card's name, as NI compares it."""
    return (terminal if terminal.startswith("/") else f"/{card}/{terminal}").lower()


def _offers(cards: dict[str, NidaqTable]) -> Faults:
    """Check each terminal against the list of its card's product.

    A terminal of a card whose product the rig does not state must be one of any product.
    """
    if not cards:
        return
    known = card_files.tables()
    for name, card in cards.items():
        stated = {card.card: card.sim.product} if "product" in card.sim.model_fields_set else {}
        products = {**stated, **card.sim.cards}
        models = {p: card_files.whole(p, known) for p in products.values() if p in known}
        chassis = any(model.get("slots") for model in models.values())
        for key, product in products.items():
            where = f"devices.{name}.sim.{'product' if key == card.card else f'cards.{key}'}"
            if product not in known and not product.endswith(".toml"):
                yield f"{where} = '{product}'", f"unknown{remedy(product, known)}"
            elif models.get(product, {}).get("category") == "C_SERIES_MODULE" and not chassis:
                yield (
                    f"{where} = '{product}'",
                    "is a module: name its chassis too, such as card = 'cDAQ1Mod1', "
                    "sim.cards = {cDAQ1 = 'cDAQ-9174'}",
                )
        for where, kind, terminal in _named_terminals(card):
            device, short = card.card, terminal
            if terminal.startswith("/"):
                device, _, short = terminal[1:].partition("/")
            product = products.get(device, "")
            if product in known or not product:
                fault = _not_offered(short, kind, product, known)
                if fault:
                    yield f"devices.{name}.{where} = '{terminal}'", fault


def _not_offered(terminal: str, kind: str, product: str, known: Mapping[str, TomlTable]) -> str:
    """Why a product, or without one any product, has no such terminal; empty if it has."""
    products = [product] if product else list(known)
    offer = [t for p in products for t in card_files.terminals_of(p)[kind]]
    if terminal.lower() in {name.lower() for name in offer}:
        return ""
    what = TERMINALS[kind]
    if not product:
        return f"no card has this {what}: a name is such as {offer[0]}"
    return f"{product} has no such {what}: it has " + (
        f"{offer[0]} to {offer[-1]}" if offer else "none"
    )


def _named_terminals(card: NidaqTable) -> Iterator[tuple[str, str, str]]:
    """Key, kind and name of every terminal that a card's table names."""
    for name, channel in card.channels.items():
        kind = "ci" if channel.kind == "encoder" else "ai"
        yield f"channels.{name}.terminal", kind, channel.terminal
    for name, output in card.outputs.items():
        yield f"outputs.{name}.terminal", "ao", output.terminal
    for name, line in card.lines.items():
        yield f"lines.{name}.terminal", "do" if line.kind == "enable" else "di", line.terminal
    if card.switches is not None:
        for way, kind, lines in (("lines", "do", card.switches.lines),
                                 ("readback", "di", card.switches.readback)):  # fmt: skip
            yield from ((f"switches.{way}.'{cell}'", kind, line) for cell, line in lines.items())
    for name, channel in card.channels.items():
        if channel.kind != "encoder" and channel.shunt_line:
            yield f"channels.{name}{SHUNT}", "do", channel.shunt_line


def _watchdogs(cards: dict[str, NidaqTable], period_s: float) -> Faults:
    """Check that a watchdog that is required has something to hold, and lasts for a period."""
    for name, card in cards.items():
        if card.watchdog != "required":
            continue
        if card.watchdog_s <= period_s:
            yield (
                f"devices.{name}.watchdog_s = {card.watchdog_s:g}",
                f"it expires before it is fed, once in a period of {period_s:g} s: give more, or "
                "lower loop.period_s",
            )
        if not (card.enable_lines or card.outputs or card.switches):
            yield (
                f"devices.{name}.watchdog = 'required'",
                "the card has no output that it could switch off: add an enable line, or leave it "
                "out",
            )


def _limits(name: str, limits: dict[str, int]) -> Faults:
    for key, value in limits.items():
        known = protocol.LIMITS.get(key)
        where = f"devices.{name}.limits.{key}"
        if known is None:
            yield where, f"the board has no such limit{remedy(key, protocol.LIMITS)}"
        elif not known.lowest <= value <= known.highest:
            yield f"{where} = {value}", f"choose {known.lowest} to {known.highest}"


def disabled(tables: RigTables) -> Faults:
    """Choices that leave a protection without effect, or trip one at once."""
    yield from _slow_loop(tables)
    for name, board in boards_of(tables.devices).items():
        if any(_limits(name, board.limits)):
            continue  # its own error says enough
        table = protocol.default_limits() | board.limits
        for key, text in without_effect(
            table, measures=board.measures, room_C=board.ambient_range_C
        ):
            yield f"devices.{name}.limits.{key} = {table[key]}", text
        yield from _brief(name, board, table, tables.loop.period_s)
    for name, supply in supplies_of(tables.devices).items():
        if supply.dialect == "scpi" and supply.channel != 1:
            yield (
                f"devices.{name}.channel = {supply.channel}",
                "dialect = 'scpi' names no output: it would switch another than the cells': choose "
                "keysight, rigol or tti",
            )
    yield from loop_limits.unnoticed(tables)


def _brief(name: str, board: CellBoardTable, table: Mapping[str, int], period_s: float) -> Faults:
    """Check that a board does not let go of a command before the next one."""
    turn_s = board.every * period_s
    for key, what in BRIEF.items():
        lasts_s = 1e-3 * table[key]
        if turn_s > lasts_s or (board.every > 1 and turn_s == lasts_s):
            yield (
                f"devices.{name}.limits.{key} = {table[key]}",
                f"one command every {turn_s:g} s, and {lasts_s:g} s after each the board {what}: "
                "raise it, or command the board more often",
            )


def _boards(boards: dict[str, CellBoardTable], guard: GuardTable) -> Faults:
    stated: dict[tuple[str, str], str] = {}
    for name, board in boards.items():
        for key, value in (("port", board.port), ("serial", board.serial)):
            if value is None or (other := stated.setdefault((key, value), name)) == name:
                continue
            yield f"devices.{name}.{key} = '{value}'", f"is also that of '{other}': correct one"
        for cell in board.without_clamp_sensor:
            if cell not in board.cells:
                yield (
                    f"devices.{name}.without_clamp_sensor = '{cell}'",
                    f"'{name}' has no such cell{remedy(cell, board.cells)}",
                )
        yield from _limits(name, board.limits)
        n_open = board.limits.get("open_cells_max", 0)
        if n_open >= len(board.cells) > 0 and n_open <= protocol.LIMITS["open_cells_max"].highest:
            yield (
                f"devices.{name}.limits.open_cells_max = {n_open}",
                f"'{name}' has {len(board.cells)} cells, and if all are open the supply has "
                f"failed, which must trip: choose at most {len(board.cells) - 1}",
            )
        on_max_s = 1e-3 * (protocol.default_limits() | board.limits)["on_time_max_ms"]
        held_s = guard.hold_s.get("cell_on_too_long", 0.0)
        if guard.cell_on_max_s is not None and guard.cell_on_max_s + held_s > on_max_s:
            yield (
                f"guard.cell_on_max_s = {guard.cell_on_max_s:g}",
                f"board '{name}' switches a cell off after {on_max_s:g} s: lower cell_on_max_s, or "
                f"raise devices.{name}.limits.on_time_max_ms",
            )


def _cells(tables: RigTables, known: list[str]) -> Faults:
    """Check that every cell has one gate, whichever device it belongs to."""
    devices = switching(tables.devices)
    keys = {name: _cells_key(name, device) for name, device in devices.items()}
    if not devices:
        yield "devices", "no cell_board: nothing would switch the cells"
    if tables.guard.cell_on_max_s is None:
        yield "guard.cell_on_max_s", "missing: add it"
    for name, device in devices.items():
        for cell in device.cells_switched:
            if cell not in known:
                yield (
                    keys[name],
                    f"the model has no cell '{cell}': its cells are {known[0]} to {known[-1]}",
                )
    claimed = Counter(cell for device in devices.values() for cell in device.cells_switched)
    for cell, count in claimed.items():
        if count > 1:
            yield "devices", f"{count} gates have cell '{cell}': give every cell one gate"
    missing = [cell for cell in known if cell not in claimed]
    if devices and missing:
        key = keys[next(iter(devices))]
        yield key, f"no gate for cell '{missing[0]}': give every cell one gate"


def _cells_key(name: str, device: DeviceTable) -> str:
    keys = {"board": "cells", "card": "switches.lines", "instrument": "switches.cells"}
    return f"devices.{name}.{keys[device.role]}"


def _signal(key: str, channel: AnyChannelTable, outputs: Sequence[str]) -> Faults:
    fitting = [name for name in outputs if name.endswith(channel.suffix)]
    if channel.signal is not None and channel.signal not in fitting:
        choice = f"choose {', '.join(fitting)}" if fitting else "it has none"
        yield (
            f"{key}.signal = '{channel.signal}'",
            f"the model has no such {channel.what}: {choice}",
        )


def _plugin_devices(tables: RigTables, cards: dict[str, NidaqTable], model: Model) -> Faults:
    """Check channels and outputs of plug-in devices: their names, signals and inputs."""
    system = system_kind(tables.model)
    signals, inputs = system.signals(model), tuple(system.inputs(model))
    taken = {n for card in cards.values() for n in (*card.channels, *card.outputs)}
    for name, device in plugin_devices(tables.devices).items():
        if not device.channels and not device.outputs and not device.cells_switched:
            yield f"devices.{name}", "has neither channels nor outputs: give it one"
        for text in device.lacks():
            yield f"devices.{name}", text
        for channel_name, channel in device.channels.items():
            key = f"devices.{name}.channels.{channel_name}"
            if channel_name in taken:
                yield key, "another channel has that name: rename one"
            if channel.signal is not None and channel.signal not in signals:
                choice = f"choose {', '.join(signals)}"
                yield (
                    f"{key}.signal = '{channel.signal}'",
                    f"the model has no such signal: {choice}",
                )
        for output_name, output in device.outputs.items():
            key = f"devices.{name}.outputs.{output_name}"
            if output_name in taken:
                yield key, "another output has that name: rename one"
            yield from _output(key, output, inputs)
        taken |= {*device.channels, *device.outputs}
    driven = Counter(output.drives for output in outputs_of(tables.devices).values())
    for drives, count in driven.items():
        if count > 1 and plugin_devices(tables.devices):
            yield "devices", f"{count} outputs drive '{drives}': give one"


def _supplies(tables: RigTables) -> Faults:
    """Check a supply's values against its limits, its polling period and the model's voltage."""
    supplies = supplies_of(tables.devices)
    if len(supplies) > 1:
        yield "devices", f"{len(supplies)} supplies: keep the one that powers the cells"
    for name, supply in supplies.items():
        key = f"devices.{name}"
        for what in ("voltage", "current"):
            unit = {"voltage": "V", "current": "A"}[what]
            value = getattr(supply, f"{what}_{unit}")
            limit = getattr(supply, f"{what}_max_{unit}")
            if value > limit:
                yield f"{key}.{what}_{unit} = {value:g}", f"exceeds {what}_max_{unit} = {limit:g}"
        if supply.answer_max_s < 2.0 * supply.poll_s:
            yield (
                f"{key}.answer_max_s = {supply.answer_max_s:g}",
                f"hil polls it every poll_s = {supply.poll_s:g}: give at least twice that",
            )
        for path, supply_V in system_kind(tables.model).supply_V(tables.model):
            if abs(supply_V - supply.voltage_V) > supply.voltage_tolerance_V:
                yield (
                    f"{key}.voltage_V = {supply.voltage_V:g}",
                    f"{path} = {supply_V:g}: set both to the same value",
                )


def _signal_limits(channels: list[str], guard: GuardTable) -> Faults:
    for name, limit in guard.signals.items():
        key = f"guard.signals.{name}"
        if name not in channels:
            yield key, f"no channel of that name: choose {', '.join(channels)}"
        if not limit.min < limit.max:
            yield f"{key}.max = {limit.max:g}", f"must be above min = {limit.min:g}"


def _output(key: str, output: ActuatorTable, inputs: Sequence[str]) -> Faults:
    if output.drives not in inputs:
        choice = f"choose {', '.join(inputs)}" if inputs else "it has none"
        yield f"{key}.drives = '{output.drives}'", f"the model has no such input: {choice}"
    if not output.min < output.max:
        yield f"{key}.max = {output.max:g}", f"must be above min = {output.min:g}"


def _outputs(cards: dict[str, NidaqTable], inputs: Sequence[str]) -> Faults:
    """Check the actuators' outputs against the model's inputs."""
    driven: dict[str, str] = {}
    for name, card in cards.items():
        for output_name, output in card.outputs.items():
            key = f"devices.{name}.outputs.{output_name}"
            yield from _output(key, output, inputs)
            if output.drives in driven:
                yield f"{key}.drives", f"'{output.drives}' is driven by {driven[output.drives]}"
            driven[output.drives] = output_name
            reach = abs(output.units_per_V) * card.range_V
            if max(abs(output.min), abs(output.max)) > reach:
                yield (
                    f"{key}.units_per_V = {output.units_per_V:g}",
                    f"the card's {card.range_V:g} V reach only {reach:g}, less than min or max",
                )


def run(run: SystemRun) -> Faults:
    """Check the experiment against its rig."""
    table = run.tables.controller
    controller = controller_kind(run.kind, table)
    if controller is None:
        yield (
            f"controller.kind = '{table.kind}'",
            f"is not for a model of kind '{run.tables.model.kind}': choose "
            f"{', '.join(controllers_of(run.kind))}",
        )
        return
    faults = list(run.kind.check_run(run))
    yield from faults
    if faults:
        return
    faults = list(controller.check(run))
    yield from faults
    if not faults:
        yield from run.kind.check_reference(run)
