"""Rules of NI-DAQmx between the settings of one task, checked when it is verified."""

from __future__ import annotations

from nidaqmx.constants import BusType, ExcitationSource, SampleTimingType, TriggerType

from simdaq import errors, names
from simdaq.card import Card
from simdaq.channels import AnalogInput
from simdaq.errors import DaqmxError
from simdaq.task import Task

BACKPLANE = (BusType.PXI, BusType.PXIE)  # cards of these share a chassis' trigger lines
NO_LINES = (BusType.USB, BusType.TCPIP)  # devices without lines for triggers of others


def verify(task: Task) -> None:
    """Check a task against what its cards can do, and its settings against each other.

    Raises
    ------
    DaqmxError
        Something that the cards cannot, or that NI's driver does not take together.
    """
    try:
        for rule in RULES if task.channels else ():
            rule(task)
    except DaqmxError as refusal:
        refusal.facts.append(f"Task Name: {task.name}")
        raise
    task.verify()


def _pause(task: Task) -> None:
    kind = task.properties.get(("trig", "pause_trig_type"), TriggerType.NONE.value)
    if kind == TriggerType.NONE.value or task.kind in ("ci", "co"):
        return
    if task.reference_trigger.present:
        raise DaqmxError(errors.PAUSE_WITH_REFERENCE)
    if task.timing.on_demand:
        raise DaqmxError(errors.PAUSE_ON_DEMAND, Property="Pause.TrigType")


def _change_detection(task: Task) -> None:
    """At least one line is watched, and all are lines of the task."""
    if task.timing.type != SampleTimingType.CHANGE_DETECTION.value:
        return
    mine = {line for c in task.channels for line in getattr(c, "lines", ())}
    places = [("timing", f"change_detect_di_{key}_edge_physical_chans")
              for key in ("rising", "falling")]  # fmt: skip
    watched = [p for place in places for p in names.unflatten(str(task.properties.get(place, "")))]
    if not watched:
        raise DaqmxError(errors.CHANGE_DETECTION_OF_NOTHING)
    for physical in watched:
        if not mine.issuperset(task.card.lines(names.split(physical)[1])):
            raise DaqmxError(errors.CHANGE_DETECTION_FOREIGN, Physical_Channel_Name=physical)


def _events(task: Task) -> None:
    event = task.events.get("every_n")
    if event is None:
        return
    if task.timing.on_demand and task.kind in ("ai", "ao", "di", "do"):
        raise DaqmxError(errors.EVERY_N_ON_DEMAND)
    size = int(task.properties.get(("buffer", "input_buf_size"), 0))
    if event.acquired and size and size % event.n:
        raise DaqmxError(
            errors.BUFFER_NO_MULTIPLE, Buffer_Size=size, Every_N_Samples_Event_Interval=event.n
        )


def _excitation(task: Task) -> None:
    for channel in task.channels:
        ai, p = channel.card.model.ai, channel.properties
        if not isinstance(channel, AnalogInput) or ai is None or not ai.excitation_V:
            continue
        excitation = p.get("ai_excit_val", 0.0)
        internal = p.get("ai_excit_src") == ExcitationSource.INTERNAL.value
        if internal and excitation and excitation not in ai.excitation_V:
            raise DaqmxError(
                errors.BAD_VALUE, Property="AI.Excit.Val", Requested_Value=excitation,
                Possible_Values=", ".join(map(str, ai.excitation_V)), Channel_Name=channel.name,
            )  # fmt: skip


def _routes(task: Task) -> None:
    """Clocks, triggers and channels of other devices come over lines that both have."""
    mine = task.card.engines
    for other in {card.engines for card in task.cards} - {mine}:
        must_share_lines(mine, other, f"/{other.name}/{task.kind}/SampleClock")
    heard = [task.timing.source, task.start_trigger.source, task.reference_trigger.source]
    heard += [str(v) for (place, key), v in task.properties.items()
              if place == "trig" and key.endswith("_src")]  # fmt: skip
    for terminal in heard:
        device = names.split(terminal)[0] if terminal.startswith("/") else ""
        if device in mine.neighbours:
            must_share_lines(mine, mine.neighbours[device].engines, terminal)


def must_share_lines(mine: Card, other: Card, terminal: str) -> None:
    """Raise DaqmxError where no line can carry a signal between two devices."""
    if mine is other or other.name in mine.cabled:
        return
    buses = mine.model.bus, other.model.bus
    if all(bus in BACKPLANE for bus in buses):
        return
    code = errors.NO_ROUTE if any(bus in NO_LINES for bus in buses) else errors.NO_TRIGGER_LINE
    raise DaqmxError(
        code, Source_Device=other.name, Source_Terminal=terminal, Destination_Device=mine.name
    )


RULES = (_pause, _change_detection, _events, _excitation, _routes)
