"""The DAQmxCreateDIChan and DAQmxCreateDOChan functions."""

from __future__ import annotations

from nidaqmx.constants import ChannelType, DigitalDriveType, LineGrouping

from simdaq import errors, names
from simdaq.channels import DigitalLines
from simdaq.errors import DaqmxError
from simdaq.system import System


def create_di_chan(
    system: System, *, task: int, lines: str, name_to_assign_to_lines: str, line_grouping: int
) -> None:
    """Lines in."""
    _create(system, task, lines, name_to_assign_to_lines, line_grouping, "di")


def create_do_chan(
    system: System, *, task: int, lines: str, name_to_assign_to_lines: str, line_grouping: int
) -> None:
    """Lines out."""
    _create(system, task, lines, name_to_assign_to_lines, line_grouping, "do")


def _create(system: System, task: int, lines: str, name: str, grouping: int, kind: str) -> None:
    owner = system.task(task)
    physicals = names.unflatten(lines)
    channel_names = [g for g in names.unflatten(name) if g]
    if not physicals:
        raise owner.error(errors.BAD_NAME, Physical_Channel_Name=repr(lines))
    places = []
    for physical in physicals:
        device, rest = names.split(physical)
        card = system.card(device)
        short = card.check(rest, kind)
        places.append((physical, card, short))
    chan_type = ChannelType.DIGITAL_INPUT if kind == "di" else ChannelType.DIGITAL_OUTPUT
    properties = {"chan_type": chan_type.value, f"{kind}_num_lines": 1}
    if kind == "di":
        properties["di_tristate"] = True
    elif places[0][1].model.drive_types:
        properties["do_output_drive_type"] = DigitalDriveType[
            places[0][1].model.drive_types[0]
        ].value
    if grouping == LineGrouping.CHAN_FOR_ALL_LINES.value:
        _, card, _ = places[0]
        if any(other is not card for _, other, _ in places):
            raise DaqmxError(errors.BAD_VALUE, "One channel has lines of one device.")
        every = tuple(line for _, _, short in places for line in card.lines(short))
        # A range in the name would read as several channels.
        label = channel_names[0] if channel_names else lines.split(":")[0].split(",")[0].strip()
        if not channel_names and len(every) > 1 and len(places) > 1:
            label += "..."
        ports = tuple(short for _, _, short in places if "/" not in short)
        channel = DigitalLines(
            label, names.flatten(p for p, _, _ in places), kind, card, every[0],
            {**properties, f"{kind}_num_lines": len(every)}, lines=every, whole_ports=ports,
        )  # fmt: skip
        system.add_channels(owner, [channel])
        return
    singles = [
        (physical if len(card.lines(short)) == 1 else f"{card.name}/{line}", card, line)
        for physical, card, short in places
        for line in card.lines(short)
    ]
    labels = names.labels(name, [physical for physical, _, _ in singles])
    system.add_channels(
        owner,
        [
            DigitalLines(label, physical, kind, card, line, dict(properties), lines=(line,))
            for label, (physical, card, line) in zip(labels, singles, strict=True)
        ],
    )
