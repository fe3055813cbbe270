"""What one table says of another: devices against model, experiment against rig.

Every check yields (key, text) pairs.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from hil import interlocks, wire
from hil.config import plant_card, recruit_schema, recruitment, schema
from hil.config.arm import ArmTable, PointingTable
from hil.config.build import (
    LEVEL_MIN,
    build_activation,
    build_model,
    build_own_control,
    build_reference,
    build_signal,
    build_system,
    cell_indices,
    recruited_force_N,
    told_of,
)
from hil.config.build_arm import check_pointing
from hil.config.build_limb import check_activations, check_antagonists
from hil.config.build_pantograph import check_impact
from hil.config.build_soft import check_soft, first_that_falls, recruited_order, static_levels
from hil.config.cards import cards_of
from hil.config.instruments import (
    force_channel,
    force_channels,
    layout_of,
    outputs_of,
    own_devices,
    signals_of,
    supplies_of,
)
from hil.config.limb import AntagonistsTable, LimbTable
from hil.config.own import OwnTable
from hil.config.pantograph import ImpactTable
from hil.config.recruitment import Told
from hil.config.supply import SupplyTable
from hil.models import CellArray, ModelError
from hil.models.array_system import ArraySystem
from hil.models.soft.arrays import SoftArraySystem
from hil.models.system import System

Found = Iterator[tuple[str, str]]
RIG_ORDER_MAX = 2000
HOLDABLE = tuple(row.name for row in interlocks.LOOP if row.key)
AMBIENT = "ambient_C"  # what a channel measures that is no output of an array: the room
REACH_SLACK = 0.02  # of what soft links' cells reach, which a set point may ask beyond it


def rig(tables: schema.RigTables, model: CellArray | None) -> Found:
    """Devices against the model and the guard; `model` is None where it is no array."""
    boards = {n: d for n, d in tables.devices.items() if isinstance(d, schema.CellBoardTable)}
    cards = cards_of(tables.devices)
    if not signals_of(tables.devices):
        yield "devices", "no nidaq card: nothing would be measured"
    yield from _terminals(cards)
    yield from _own_devices(tables, cards)
    yield from _supplies(tables)
    yield from _force_channel(tables)
    yield from _paces(tables)
    yield from _signal_limits(list(signals_of(tables.devices)), tables.guard)
    for name in tables.guard.hold_s:
        if name not in HOLDABLE:
            yield f"guard.hold_s.{name}", f"no such condition: choose {', '.join(HOLDABLE)}"
    cells: Sequence[str] = ()
    if model is not None:
        cells = model.cell_names
        yield from _array(model, cards, tables)
        yield from _boards(boards, model.cell_names, tables.guard)
        yield from _outputs(cards, ())
    elif not isinstance(tables.model, schema.ModelTable):
        system = build_system(tables.model, tables.loop.period_s)
        cells = system.cell_names
        if cells:
            yield from _boards(boards, list(cells), tables.guard)
        else:
            for name in boards:
                yield f"devices.{name}", "the model has no cells for a board: remove it"
        for key, channel in _channels(cards):
            if channel.signal is None:
                yield f"{key}.signal", f"missing: choose {', '.join(system.outputs)}"
            yield from _signal(key, channel, system.outputs)
        yield from _outputs(cards, system.inputs)
        if isinstance(tables.model, LimbTable | ArmTable):
            for name, card in cards.items():
                outputs = {f"devices.{name}.outputs.{n}": o for n, o in card.outputs.items()}
                yield from check_activations(outputs)
    if tables.plant_card is not None:
        channels = {name: c for card in cards.values() for name, c in card.channels.items()}
        yield from plant_card.check(tables.plant_card, len(cells), channels)
    yield from _bench(tables, cards, len(cells))


def _bench(tables: schema.RigTables, cards: dict[str, schema.NidaqTable], n_cells: int) -> Found:
    """Article and room against the cells and the channels."""
    ohms = tables.article and tables.article.wire_resistance_Ohm
    if ohms and len(ohms) not in (1, n_cells):
        yield (
            "article.wire_resistance_Ohm",
            f"{len(ohms)} values for {n_cells} cells: give one, or one a cell",
        )
    tests = tables.observer and tables.observer.wire_failures
    if tests is not None and tables.surroundings is None:
        yield (
            "observer.wire_failures",
            "2 K of air can look like a dead cell: give surroundings.ambient_C, as read off, "
            "or surroundings.ambient_channel",
        )
    room = tables.surroundings and tables.surroundings.ambient_channel
    measured = {n: c.signal for card in cards.values() for n, c in card.channels.items()}
    if room and measured.get(room) != AMBIENT:
        fitting = [name for name, signal in measured.items() if signal == AMBIENT]
        yield (
            f"surroundings.ambient_channel = '{room}'",
            f"no channel of kind 'voltage' with signal = '{AMBIENT}' has that name: "
            f"{f'choose {fitting[0]}' if fitting else 'add one'}",
        )


def _force_channel(tables: schema.RigTables) -> Found:
    """The force that is said to be controlled is one."""
    name, forces = tables.loop.force_channel, force_channels(tables.devices)
    if name is not None and name not in forces:
        choice = f"choose {', '.join(forces)}" if forces else "the rig has none: remove it"
        yield (
            f"loop.force_channel = '{name}'",
            f"no channel of kind 'force' has that name: {choice}",
        )


def _paces(tables: schema.RigTables) -> Found:
    """A device that has its turn in some periods only: nothing may run out in between."""
    for name, device in tables.devices.items():
        if isinstance(device, SupplyTable):
            continue  # which has a pace of its own
        turn_s = device.every * tables.loop.period_s
        if device.every == 1:
            continue
        key = f"devices.{name}.every = {device.every}"
        if turn_s >= tables.guard.reading_age_max_s:
            age = f"{tables.guard.reading_age_max_s:g}"
            yield key, f"a reading every {turn_s:g} s, guard.reading_age_max_s is {age}: lower it"
        if isinstance(device, schema.CellBoardTable) and turn_s >= device.hold_s:
            yield (
                key,
                f"a command every {turn_s:g} s holds for hold_s = {device.hold_s:g}: lower it",
            )


def _channels(
    cards: dict[str, schema.NidaqTable],
) -> Iterator[tuple[str, schema.AnyChannelTable]]:
    for name, card in cards.items():
        for channel_name, channel in card.channels.items():
            yield f"devices.{name}.channels.{channel_name}", channel


def _terminals(cards: dict[str, schema.NidaqTable]) -> Found:
    """No terminal is used twice, and no name."""
    seen: dict[str, str] = {}
    for name, card in cards.items():
        entries = [*card.channels.values(), *card.outputs.values()]
        terminals = Counter(entry.terminal for entry in entries)
        for what, table in (("channels", card.channels), ("outputs", card.outputs)):
            for own, entry in table.items():
                key = f"devices.{name}.{what}.{own}"
                if terminals[entry.terminal] > 1:
                    yield f"{key}.terminal", f"'{entry.terminal}' is taken by another channel"
                if own in seen:
                    yield key, f"card '{seen[own]}' has a channel of that name: rename one"
                seen[own] = name


def _array(
    model: CellArray, cards: dict[str, schema.NidaqTable], tables: schema.RigTables
) -> Found:
    if len(model.states) > RIG_ORDER_MAX:
        yield "model", f"order {len(model.states)}: a rig's model may have {RIG_ORDER_MAX} states"
    if model.floating:
        names = ", ".join(model.floating[0][:4])
        yield "model", f"nothing holds {names}: fix a point or mend the broken cells around it"
    if tables.guard.force_max_N is None:
        yield "guard.force_max_N", "missing: add it"
    if signals_of(tables.devices) and not force_channels(tables.devices):
        yield (
            "devices",
            "no channel of kind 'force': nothing would measure the force: give the transducer's "
            "channel kind = 'force' and newtons_per_V or a record",
        )
    for key, channel in _channels(cards):
        yield from _signal(key, channel, (*model.outputs, AMBIENT))


def _limits(name: str, limits: dict[str, int]) -> Found:
    """Entries of the board's own table."""
    for key, value in limits.items():
        known = wire.LIMITS.get(key)
        where = f"devices.{name}.limits.{key}"
        if known is None:
            yield where, f"the board has no such limit: it has {', '.join(wire.LIMITS)}"
        elif not known.lowest <= value <= known.highest:
            yield f"{where} = {value}", f"choose {known.lowest} to {known.highest}"


def _boards(
    boards: dict[str, schema.CellBoardTable], known: list[str], guard: schema.GuardTable
) -> Found:
    if not boards:
        yield "devices", "no cell_board: nothing would switch the cells"
    if guard.cell_on_max_s is None:
        yield "guard.cell_on_max_s", "missing: add it"
    for name, board in boards.items():
        yield from _limits(name, board.limits)
        n_open = board.limits.get("open_cells_max", 0)
        if n_open >= len(board.cells) > 0 and n_open <= wire.LIMITS["open_cells_max"].highest:
            yield (
                f"devices.{name}.limits.open_cells_max = {n_open}",
                f"'{name}' has {len(board.cells)} cells: with all of them open its supply is "
                f"gone, which must trip: choose at most {len(board.cells) - 1}",
            )
        on_max_s = 1e-3 * (wire.default_limits() | board.limits)["on_time_max_ms"]
        if guard.cell_on_max_s is not None and guard.cell_on_max_s > on_max_s:
            yield (
                f"guard.cell_on_max_s = {guard.cell_on_max_s:g}",
                f"'{name}' switches a cell off by itself after {on_max_s:g} s: lower it, or raise "
                f"devices.{name}.limits.on_time_max_ms",
            )
        for cell in board.cells:
            if cell not in known:
                yield (
                    f"devices.{name}.cells",
                    f"the model has no cell '{cell}': its cells are {known[0]} to {known[-1]}",
                )
    claimed = Counter(cell for board in boards.values() for cell in board.cells)
    for cell, count in claimed.items():
        if count > 1:
            yield "devices", f"{count} gates claim cell '{cell}': every cell has one gate"
    missing = [cell for cell in known if cell not in claimed]
    if boards and missing:
        name = next(iter(boards))
        yield f"devices.{name}.cells", f"no gate for cell '{missing[0]}': every cell has one gate"


def _signal(key: str, channel: schema.AnyChannelTable, outputs: Sequence[str]) -> Found:
    suffix = {"force": "_N", "voltage": "", "encoder": "_rad"}[channel.kind]
    fitting = [name for name in outputs if name.endswith(suffix)]
    if channel.signal is not None and channel.signal not in fitting:
        what = {"force": "force", "voltage": "signal", "encoder": "angle"}[channel.kind]
        choice = f"choose {', '.join(fitting)}" if fitting else "it has none"
        yield f"{key}.signal = '{channel.signal}'", f"the model has no such {what}: {choice}"


def _own_devices(tables: schema.RigTables, cards: dict[str, schema.NidaqTable]) -> Found:
    """Channels and outputs of devices of one's own: their names, and what they stand for."""
    signals: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    taken = {n for card in cards.values() for n in (*card.channels, *card.outputs)}
    system = None
    for name, device in own_devices(tables.devices).items():
        if system is None:
            system = _system_of(tables)
            signals, inputs = tuple(system.outputs), tuple(system.inputs)
        if not device.channels and not device.outputs:
            yield f"devices.{name}", "has neither channels nor outputs: give it one"
        if device.outputs:
            for method in ("write", "safe"):
                if not callable(getattr(device.own.cls, method, None)):
                    cls = f"class {device.own.cls.__name__} in {device.own.file}"
                    yield f"devices.{name}.outputs", f"{cls} has no method {method}()"
        for own_name, channel in device.channels.items():
            key = f"devices.{name}.channels.{own_name}"
            if own_name in taken:
                yield key, "another channel has that name: rename one"
            if channel.signal is not None and channel.signal not in signals:
                choice = f"choose {', '.join(signals)}"
                yield (
                    f"{key}.signal = '{channel.signal}'",
                    f"the model has no such signal: {choice}",
                )
        for own_name, output in device.outputs.items():
            key = f"devices.{name}.outputs.{own_name}"
            if own_name in taken:
                yield key, "another output has that name: rename one"
            if output.drives not in inputs:
                choice = f"choose {', '.join(inputs)}" if inputs else "it has none"
                yield f"{key}.drives = '{output.drives}'", f"the model has no such input: {choice}"
            if not output.min < output.max:
                yield f"{key}.max = {output.max:g}", f"must be above min = {output.min:g}"
        taken |= {*device.channels, *device.outputs}
    driven = Counter(output.drives for output in outputs_of(tables.devices).values())
    for drives, count in driven.items():
        if count > 1 and own_devices(tables.devices):
            yield "devices", f"{count} outputs drive '{drives}': give one"


def _supplies(tables: schema.RigTables) -> Found:
    """A supply's values against its limits, its pace, and what the model's wires are fed with."""
    supplies = supplies_of(tables.devices)
    if len(supplies) > 1:
        yield "devices", f"{len(supplies)} supplies: the cells hang on one"
    for name, supply in supplies.items():
        key = f"devices.{name}"
        for what in ("voltage", "current"):
            unit = {"voltage": "V", "current": "A"}[what]
            value = getattr(supply, f"{what}_{unit}")
            limit = getattr(supply, f"{what}_max_{unit}")
            if value > limit:
                yield f"{key}.{what}_{unit} = {value:g}", f"beyond {what}_max_{unit} = {limit:g}"
        if supply.answer_max_s < 2.0 * supply.poll_s:
            yield (
                f"{key}.answer_max_s = {supply.answer_max_s:g}",
                f"it is asked every poll_s = {supply.poll_s:g}: give at least twice that",
            )
        if isinstance(tables.model, schema.ModelTable):
            for array, table in tables.model.arrays.items():
                wire = table.activation
                meant = getattr(wire, "supply_V", None)
                if meant is not None and abs(meant - supply.voltage_V) > supply.voltage_tolerance_V:
                    yield (
                        f"{key}.voltage_V = {supply.voltage_V:g}",
                        f"model.arrays.{array}.activation.supply_V is {meant:g}: set both alike",
                    )


def _system_of(tables: schema.RigTables) -> System:
    if isinstance(tables.model, schema.ModelTable):
        model = build_model(tables.model)
        return ArraySystem(model, build_activation(tables.model), tables.loop.period_s)
    return build_system(tables.model, tables.loop.period_s)


def _signal_limits(channels: list[str], guard: schema.GuardTable) -> Found:
    for name, limit in guard.signals.items():
        key = f"guard.signals.{name}"
        if name not in channels:
            yield key, f"no channel of that name: choose {', '.join(channels)}"
        if not limit.min < limit.max:
            yield f"{key}.max = {limit.max:g}", f"must be above min = {limit.min:g}"


def _outputs(cards: dict[str, schema.NidaqTable], inputs: Sequence[str]) -> Found:
    """Actuators' outputs against the model's inputs."""
    driven: dict[str, str] = {}
    for name, card in cards.items():
        for output_name, output in card.outputs.items():
            key = f"devices.{name}.outputs.{output_name}"
            if output.drives not in inputs:
                choice = f"choose {', '.join(inputs)}" if inputs else "it has none"
                yield f"{key}.drives = '{output.drives}'", f"the model has no such input: {choice}"
            if output.drives in driven:
                yield f"{key}.drives", f"'{output.drives}' is driven by {driven[output.drives]}"
            driven[output.drives] = output_name
            if not output.min < output.max:
                yield f"{key}.max = {output.max:g}", f"must be above min = {output.min:g}"
            reach = abs(output.units_per_V) * card.range_V
            if max(abs(output.min), abs(output.max)) > reach:
                yield (
                    f"{key}.units_per_V = {output.units_per_V:g}",
                    (f"the card's {card.range_V:g} V give at most {reach:g}, less than min to max"),
                )


def run(tables: schema.RunTables, model: CellArray | None) -> Found:
    """The experiment against its rig."""
    controller, follows = tables.controller, tables.reference
    if isinstance(controller, OwnTable):
        yield from _own_control(controller, tables, model)
    if model is None:
        if isinstance(controller, OwnTable):
            pass  # which takes any
        elif isinstance(tables.model, schema.SoftTable):
            yield from _soft(tables.model, tables)
        elif isinstance(controller, schema.SignalPidTable):
            yield from _loops(controller, follows, tables)
        elif isinstance(controller, ImpactTable):
            yield from _impact(controller, follows, tables)
        elif isinstance(controller, AntagonistsTable):
            yield from _antagonists(controller, follows, tables)
        elif isinstance(controller, PointingTable):
            yield from _pointing(controller, follows, tables)
        else:
            yield (
                f"controller.kind = '{controller.kind}'",
                "switches cells, which this model has none of: choose signal_pid, impact, "
                "antagonists or pointing",
            )
        return
    if isinstance(
        controller, schema.SignalPidTable | ImpactTable | AntagonistsTable | PointingTable
    ):
        yield (
            f"controller.kind = '{controller.kind}'",
            "is for rigs without cells: choose schedule or pid",
        )
        return
    try:
        told = told_of(tables, model, force_signal(tables, model))
        if not model.floating and len(model.states) <= RIG_ORDER_MAX:
            told.observer(tables.observer)
            told.tests(tables.observer)
            if tables.observer.wires is not None:
                told.wires(tables.observer)
    except ModelError as error:
        yield "observer", str(error)
        return
    except ValueError:
        return  # no force channel, which is said of the rig
    wrong: list[tuple[str, str]] = []
    if isinstance(controller, schema.ScheduleTable):
        yield from _schedule(controller, model)
    elif follows is None and not isinstance(controller, OwnTable):
        yield "reference", f"missing: a {controller.kind} controller follows one"
    if isinstance(controller, schema.PidTable):
        yield from _order(controller, tables, model)
    elif isinstance(controller, schema.RecruitTable) and not model.floating:
        wrong = list(recruitment.check(controller, tables.observer, told))
        if isinstance(controller, recruit_schema.BroadcastTable):
            for name, device in tables.devices.items():
                if isinstance(device, schema.CellBoardTable) and device.every > 1:
                    key = f"devices.{name}.every = {device.every}"
                    wrong.append((key, "a broadcast is repeated in every period: give 1"))
        yield from wrong
    if isinstance(follows, schema.SignalsReferenceTable):
        yield "reference.kind = 'signals'", "is for rigs without cells: choose steps, ramp or sine"
    elif follows is not None and not wrong:
        yield from _reference(follows, tables, told)


def _own_control(table: OwnTable, tables: schema.RunTables, model: CellArray | None) -> Found:
    """A controller of one's own can be made for this rig, and its set points be followed."""
    follows = tables.reference
    channels = list(signals_of(tables.devices))
    if isinstance(follows, schema.SignalsReferenceTable):
        for name, signal in follows.signals.items():
            key = f"reference.signals.{name}"
            if name not in channels:
                yield key, f"no channel of that name: choose {', '.join(channels)}"
            elif not isinstance(signal, schema.SignalSineTable | OwnTable):
                yield from _times(key, signal.t_s, signal.value, "value")
    elif follows is not None and model is None:
        yield f"reference.kind = '{follows.kind}'", "is for arrays of cells: choose signals"
    cells = list(_system_of(tables).cell_names)
    layout = layout_of(tables, cells) if _has_gates(tables, cells) else None
    if layout is not None:
        build_own_control(table, None, tables, cells, model, layout)


def _has_gates(tables: schema.RigTables, cells: Sequence[str]) -> bool:
    """Whether every cell has one, which is said of the rig."""
    boards = [d for d in tables.devices.values() if isinstance(d, schema.CellBoardTable)]
    return sorted(cells) == sorted(cell for board in boards for cell in board.cells)


def _soft(table: schema.SoftTable, tables: schema.RunTables) -> Found:
    """Cells that follow a channel: their names, and what they can reach."""
    controller, follows = tables.controller, tables.reference
    signals, model = signals_of(tables.devices), build_model(table)
    wrong = list(check_soft(controller, follows, list(signals)))
    if isinstance(controller, schema.ScheduleTable):
        wrong += _schedule(controller, model)
    elif isinstance(controller, schema.PidTable) and controller.order is not None:
        wrong += _unknown_cells("controller.order", controller.order, model)
        twice = [c for c, n in Counter(map(str, controller.order)).items() if n > 1]
        wrong += [("controller.order", f"cell '{twice[0]}' stands in it twice")] if twice else []
    yield from wrong
    if wrong or not isinstance(follows, schema.SignalsReferenceTable):
        return
    (name, signal), *_ = follows.signals.items()
    if not isinstance(signal, schema.SignalSineTable | OwnTable):
        wrong += _times(f"reference.signals.{name}", signal.t_s, signal.value, "value")
        yield from wrong
    if not wrong:
        system = build_system(table, tables.loop.period_s)
        assert isinstance(system, SoftArraySystem)
        F_N = [a.force_on_N for a in build_activation(table)]
        order = recruited_order(controller, model)
        if signals[name] not in system.outputs:
            return  # which is said of the rig
        try:
            levels = static_levels(system, F_N, order, signals[name])
        except ModelError as error:
            yield "model", str(error)
            return
        low, high = float(levels.min()), float(levels.max())
        if (falls := first_that_falls(levels, order)) is not None:
            cell = model.cell_names[falls]
            yield "controller", f"cell '{cell}' does not raise '{signals[name]}': choose another"
            return
        wanted = build_signal(signal).extremes(tables.experiment.duration_s)
        slack = REACH_SLACK * (high - low)
        if wanted[0] < low - slack or wanted[1] > high + slack:
            yield (
                f"reference.signals.{name}",
                f"asks for {wanted[0]:g} to {wanted[1]:g}; the cells give {low:.4g} to {high:.4g}",
            )


def _impact(
    table: ImpactTable, follows: schema.ReferenceTable | None, tables: schema.RunTables
) -> Found:
    if follows is not None:
        yield "reference", "the impact experiment sets its own set points: remove it"
    yield from check_impact(
        table, tables.model, signals_of(tables.devices), layout_of(tables, ()),
        outputs_of(tables.devices), tables.loop.period_s, tables.experiment.duration_s,
    )  # fmt: skip


def _pointing(
    table: PointingTable, follows: schema.ReferenceTable | None, tables: schema.RunTables
) -> Found:
    if follows is not None:
        yield "reference", "the pointing movement sets its own set points: remove it"
    yield from check_pointing(
        table,
        tables.model,
        signals_of(tables.devices),
        outputs_of(tables.devices),
        tables.loop.period_s,
        tables.experiment.duration_s,
    )


def _antagonists(
    table: AntagonistsTable, follows: schema.ReferenceTable | None, tables: schema.RigTables
) -> Found:
    """Two muscles about a joint, after the set point of one channel."""
    if not isinstance(tables.model, LimbTable):
        yield "controller.kind = 'antagonists'", "is for a model of kind musculoskeletal"
        return
    signals = follows.signals if isinstance(follows, schema.SignalsReferenceTable) else {}
    extremes = {}
    for name, signal in signals.items():
        if not isinstance(signal, schema.SignalSineTable | OwnTable):
            wrong = list(_times(f"reference.signals.{name}", signal.t_s, signal.value, "value"))
            yield from wrong
            if wrong:
                return
        extremes[name] = build_signal(signal).extremes(np.inf)
    yield from check_antagonists(
        table, tables.model, extremes, signals_of(tables.devices), outputs_of(tables.devices),
        tables.guard.signals,
    )  # fmt: skip


def _loops(
    table: schema.SignalPidTable, follows: schema.ReferenceTable | None, tables: schema.RigTables
) -> Found:
    """Every loop's channel, output and set point; every output has at most one loop."""
    channels = list(signals_of(tables.devices))
    outputs = [name.partition("_commanded")[0] for name in outputs_of(tables.devices)]
    signals = follows.signals if isinstance(follows, schema.SignalsReferenceTable) else {}
    claimed = Counter(loop.output for loop in table.loops.values())
    for name, loop in table.loops.items():
        key = f"controller.loops.{name}"
        if name not in channels:
            yield key, f"no channel of that name: choose {', '.join(channels)}"
        if loop.output not in outputs:
            choice = f"choose {', '.join(outputs)}" if outputs else "the rig has none"
            yield f"{key}.output = '{loop.output}'", f"no output of that name: {choice}"
        elif claimed[loop.output] > 1:
            yield f"{key}.output", f"'{loop.output}' has another loop too"
        if name not in signals:
            yield f"reference.signals.{name}", "missing: every loop follows one"
    for name, signal in signals.items():
        if name not in table.loops:
            yield f"reference.signals.{name}", "no loop follows it: remove it"
        if not isinstance(signal, schema.SignalSineTable | OwnTable):
            yield from _times(f"reference.signals.{name}", signal.t_s, signal.value, "value")


def _times(key: str, t_s: Sequence[float], values: Sequence[float], what: str) -> Found:
    if len(t_s) != len(values):
        yield f"{key}.{what}", f"{len(values)} values for {len(t_s)} times: give one a time"
    elif np.any(np.diff(t_s) <= 0.0):
        yield f"{key}.t_s", "times must rise"


def _schedule(table: schema.ScheduleTable, model: CellArray) -> Found:
    for i, step in enumerate(table.steps):
        for key, cells in (("on", step.on), ("off", step.off)):
            if cells != "all":
                yield from _unknown_cells(f"controller.steps.{i}.{key}", cells, model)


def _order(table: schema.PidTable, tables: schema.RunTables, model: CellArray) -> Found:
    order: list[int | str] = table.order if table.order is not None else [*model.cell_names]
    unknown = list(_unknown_cells("controller.order", order, model))
    if unknown:
        yield from unknown
        return
    indices = cell_indices(order, model)
    twice = [cell for cell, count in Counter(indices).items() if count > 1]
    if twice:
        yield "controller.order", f"cell '{model.cell_names[twice[0]]}' stands in it twice"
        return
    F_N = [a.force_on_N for a in build_activation(tables.model)]
    levels_N = recruited_force_N(model, F_N, indices, force_signal(tables, model))
    smallest_N = LEVEL_MIN * np.abs(levels_N).max()
    for cell, rise_N in zip(indices, np.diff(levels_N), strict=True):
        if rise_N < -smallest_N:
            yield (
                "controller.order",
                f"cell '{model.cell_names[cell]}' takes {-rise_N:.4g} N off the measured force: "
                "give an order without it",
            )
            return
    if levels_N[-1] <= 0.0:
        yield "controller.order", "none of its cells adds to the measured force"


def _unknown_cells(key: str, cells: list[int | str], model: CellArray) -> Found:
    for cell in cells:
        known = 1 <= cell <= model.n_cells if isinstance(cell, int) else cell in model.cell_names
        if not known:
            yield (
                key,
                f"there is no cell {cell!r}: cells are 1 to {model.n_cells}, or "
                f"{model.cell_names[0]} to {model.cell_names[-1]}",
            )


def _reference(table: schema.ForceReferenceTable, tables: schema.RunTables, told: Told) -> Found:
    points = (
        schema.StepsReferenceTable | schema.RampReferenceTable | recruit_schema.TraceReferenceTable
    )
    if isinstance(table, points):
        found = list(_times("reference", table.t_s, table.force_N, "force_N"))
        if found:
            yield from found
            return
    low_N, high_N = build_reference(table).extremes(tables.experiment.duration_s)
    most_N = recruitment.reachable_N(tables.controller, told)
    if high_N > most_N * (1.0 + LEVEL_MIN) or low_N < 0.0:
        grouped = isinstance(tables.controller, recruit_schema.GroupsTable)
        which = "its groups' cells" if grouped else "cells"
        yield (
            "reference",
            f"asks for {low_N:g} to {high_N:g} N; all {which} on give 0 to {most_N:.4g} N",
        )
    if tables.guard.force_max_N is not None and high_N > tables.guard.force_max_N:
        yield (
            "reference",
            f"asks for {high_N:g} N, beyond guard.force_max_N = {tables.guard.force_max_N:g}",
        )


def force_signal(tables: schema.RigTables, model: CellArray) -> str:
    """What the controlled force channel measures."""
    channel = force_channels(tables.devices).get(force_channel(tables))
    if channel is None:
        raise ValueError("the rig has no force channel")
    return channel.signal or right_end(model)


def right_end(model: CellArray) -> str:
    """What a force channel measures that does not say: the first array's right end."""
    return f"{next(iter(model.arrays))}.right_N"
