"""Transducer electronic data sheets (IEEE 1451.4) of physical channels, read from files.

`teds_templates` decodes what follows the basic TEDS.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simdaq import errors, names
from simdaq.errors import DaqmxError
from simdaq.system import System

HEADER_BITS, BASIC_BITS = 40, 64


@dataclass(frozen=True)
class Teds:
    """The basic TEDS, IEEE 1451.4 clause 5.1.1: 14, 15, 5, 6 and 24 bits, then the templates."""

    bits: bytes

    def _field(self, first: int, n: int) -> int:
        whole = int.from_bytes(self.bits, "little")
        return (whole >> first) & ((1 << n) - 1)

    @property
    def properties(self) -> dict[str, Any]:
        """NI's properties of the physical channel."""
        letter = self._field(29, 5)
        return {
            "teds_mfg_id": self._field(0, 14), "teds_model_num": self._field(14, 15),
            "teds_version_letter": chr(ord("A") + letter - 1) if letter else "",
            "teds_version_num": self._field(34, 6), "teds_serial_num": self._field(40, 24),
            "teds_bit_stream": list(self.bits), "teds_template_ids": [self._field(66, 8)],
        }  # fmt: skip


def _read(file_path: str) -> bytes:
    try:
        return Path(file_path).read_bytes()
    except OSError as error:
        raise DaqmxError(errors.NO_TEDS_FILE, str(error.strerror), File_Path=file_path) from None


def configure_teds(system: System, *, physical_channel: str, file_path: str) -> None:
    """Give a physical channel the TEDS of a file, or an empty one."""
    device, rest = names.split(physical_channel)
    card = system.card(device)
    short = card.check(rest, "ai")
    if not file_path:
        card.stored.pop(f"teds {short}", None)
        return
    data = _read(file_path)
    card.stored[f"teds {short}"] = Teds(_packed(data, file_path))


def _packed(data: bytes, file_path: str) -> bytes:
    """The bits of a virtual TEDS file, which has one byte a bit and a header of 40 bits."""
    bits = data[HEADER_BITS:]
    if set(data) - {0, 1} or len(bits) < BASIC_BITS:
        raise DaqmxError(errors.BAD_TEDS, File_Path=file_path)
    whole = sum(bit << i for i, bit in enumerate(bits))
    return whole.to_bytes((len(bits) + 7) // 8, "little")


def write_to_teds_from_array(
    system: System, *, physical_channel: str, bit_stream: Sequence[int], basic_teds_options: int
) -> None:
    """Write the memory of a sensor: none is connected to a simulated card."""
    del basic_teds_options
    device, rest = names.split(physical_channel)
    system.card(device).check(rest, "ai")
    if 8 * len(bit_stream) < BASIC_BITS:
        raise DaqmxError(errors.BAD_TEDS, Physical_Channel_Name=physical_channel)
    raise DaqmxError(errors.NO_TEDS_SENSOR, Physical_Channel_Name=physical_channel)


def write_to_teds_from_file(
    system: System, *, physical_channel: str, file_path: str, basic_teds_options: int
) -> None:
    """The same from a virtual TEDS file."""
    data = _packed(_read(file_path), file_path) if file_path else b""
    write_to_teds_from_array(
        system, physical_channel=physical_channel, bit_stream=list(data),
        basic_teds_options=basic_teds_options,
    )  # fmt: skip


def clear_teds(system: System, *, physical_channel: str) -> None:
    """Take a physical channel's TEDS away."""
    configure_teds(system, physical_channel=physical_channel, file_path="")
