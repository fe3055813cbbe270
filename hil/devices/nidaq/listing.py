"""List of the NI cards that NI-DAQmx finds on this computer."""

from importlib.util import find_spec

from hil.devices.nidaq.errors import said_by
from hil.errors import DeviceError, install


def cards() -> tuple[list[dict[str, object]], str]:
    """Every card with its numbers of channels, and the reason if there are none."""
    if find_spec("nidaqmx") is None:
        return [], f"NI cards need an extra: {install('daq')}"
    try:
        with said_by("cards"):
            rows = _rows()
    except DeviceError as error:
        return [], str(error).removeprefix("cards: ").partition(":")[0]
    return rows, "" if rows else "NI-DAQmx knows of no card: check cable and power"


def _rows() -> list[dict[str, object]]:
    from nidaqmx.system import System

    return [
        {
            "card": card.name,
            "product": card.product_type,
            "serial": f"{card.serial_num:X}",
            "simulated": bool(card.is_simulated),
            "analog_inputs": len(card.ai_physical_chans.channel_names),
            "analog_outputs": len(card.ao_physical_chans.channel_names),
            "counters": len(card.ci_physical_chans.channel_names),
            "lines": len(card.di_lines.channel_names),
        }
        for card in System.local().devices
    ]


def cards_as_text(rows: list[dict[str, object]], why_none: str) -> str:
    """Format the cards, one line each."""
    if not rows:
        return why_none
    return "\n".join(
        f"{c['card']:<16} {c['product']:<16} serial {c['serial']}: {c['analog_inputs']} analogue "
        f"inputs, {c['analog_outputs']} outputs, {c['counters']} counters, {c['lines']} lines"
        f"{', SIMULATED' if c['simulated'] else ''}"
        for c in rows
    )
