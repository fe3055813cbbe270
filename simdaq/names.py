"""Names as NI-DAQmx writes them: lists and ranges of channels, terminals."""

import re
from collections.abc import Iterable

from simdaq import errors
from simdaq.errors import DaqmxError

_RANGE = re.compile(r"^(?P<stem>.*?)(?P<first>\d+):(?P<stem2>.*?)(?P<last>\d+)$")


def unflatten(text: str) -> list[str]:
    """`Dev1/ai0:2, Dev1/ai7` -> Dev1/ai0, Dev1/ai1, Dev1/ai2, Dev1/ai7; ranges may run down."""
    names: list[str] = []
    for part in (p.strip() for p in text.split(",")):
        match = _RANGE.match(part)
        if not part:
            continue
        if match is None:
            names.append(part)
            continue
        first, last = int(match["first"]), int(match["last"])
        step = 1 if last >= first else -1
        width = len(match["first"]) if match["first"].startswith("0") else 0
        names += [f"{match['stem']}{n:0{width}d}" for n in range(first, last + step, step)]
    return names


def flatten(names: Iterable[str]) -> str:
    """The list as one text, ranges not contracted: every reader of the format takes that."""
    return ", ".join(names)


def split(physical: str) -> tuple[str, str]:
    """`Dev1/port0/line3` or `/Dev1/PFI0` -> device, rest; a bare `Dev1` has no rest.

    Raises
    ------
    DaqmxError
        Nothing is there.
    """
    device, _, rest = physical.strip().lstrip("/").partition("/")
    if not device:
        raise DaqmxError(errors.BAD_NAME, Name=repr(physical))
    return device, rest


def labels(text: str, physicals: list[str]) -> list[str]:
    """Names of the channels that one call creates: those in `text`, else the physical ones.

    The last of `text` counts up over the channels that are left: `force` gives force0, force1;
    `force08` gives force08, force09, force10 (NI-DAQmx Help, "Physical and Virtual Channel Names").
    """
    words = unflatten(text)
    n_left = len(physicals) - len(words)
    if not words or n_left <= 0:
        return [words[i] if i < len(words) else p for i, p in enumerate(physicals)]
    *first, last = words
    parts = re.fullmatch(r"(.*?)\s*(\d*)", last)
    assert parts is not None
    stem, number = parts.groups()
    start = int(number or 0)
    return first + [f"{stem}{start + i:0{len(number)}d}" for i in range(n_left + 1)]
