"""How far below a current a board may read it, by the parts of firmware/board/parts.toml.

    e(I) = sqrt(e_gain^2 + e_shunt^2) + e_5V + I_offset / I

Gain and shunt are independent of each other. The 5 V are the scale of the converter: e_5V is what
the board's check of the 4.096 V reference leaves unnoticed (`scan_untrue`). It and the amplifier's
offset add in full. The converter's own half count is left out, since a board's heat budget counts
one more than it reads (firmware/core/heat.c).
"""

import tomllib
from functools import cache
from math import hypot, inf
from pathlib import Path

from hil.config.values import TomlTable

FIVE_V = 5.0
REFERENCE_COUNTS = 12  # GUARD_REFERENCE_COUNTS of firmware/core/guard.h
KNOWN_COUNTS = 4.096 / FIVE_V * 1024
WARMER_K = 40.0  # assumed: of the parts, over 25 C
ERROR_MAX = 0.99


@cache
def catalogue() -> TomlTable:
    """The tables of `firmware/board/parts.toml`, from a wheel's package or a checkout."""
    package = Path(__file__).resolve().parents[1]
    places = package / "firmware/parts.toml", package.parent / "firmware/board/parts.toml"
    place = next(place for place in places if place.is_file())
    return tomllib.loads(place.read_text(encoding="utf-8"))


def unnoticed_5V_error() -> float:
    """How much too high the 5 V may be unnoticed, so that every reading is too low."""
    reference, chip = catalogue()["reference"], catalogue()["chip"]
    shares = reference["tolerance"], WARMER_K * reference["drift_per_K"]
    chip_counts = hypot(*(KNOWN_COUNTS * share for share in shares), chip["converter_counts"])
    return (REFERENCE_COUNTS + chip_counts) / KNOWN_COUNTS


def reading_error(sense: TomlTable, full_A: float, current_A: float) -> float:
    """How far below it a current may be read, relative; module, equation.

    Parameters
    ----------
    sense : the part that measures it, `sense` or `sense_module`
    full_A : the board's full scale
    """
    shunt = catalogue()["shunt"]
    shunt_error = hypot(shunt["tolerance"], WARMER_K * shunt["drift_per_K"])
    offset_V = sense["offset_V"] + WARMER_K * sense.get("offset_drift_V_per_K", 0.0)
    offset_A = offset_V * sense["gain"] * full_A / FIVE_V
    shared = hypot(sense["gain_error"], shunt_error) + unnoticed_5V_error()
    return float(min(shared + offset_A / max(current_A, offset_A), ERROR_MAX))


def largest_A(sense: TomlTable, full_A: float, shown_A: float) -> float:
    """The largest current that may be read as `shown_A`: I - e(I) I."""
    shared = reading_error(sense, full_A, inf)
    offset_A = reading_error(sense, full_A, full_A) * full_A - shared * full_A
    return (shown_A + offset_A) / (1.0 - shared)
