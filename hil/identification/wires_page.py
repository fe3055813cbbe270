"""A wire identified from loops as text, JSON and a page."""

from collections.abc import Mapping
from pathlib import Path

from hil.config.values import Figures
from hil.errors import writing
from hil.identification.wire_loops import figures
from hil.identification.wires import Estimate, IdentifiedWire
from hil.pages.html import embedded, rendered
from hil.platform.whole_files import write_whole
from hil.record.summary import plain

NOT_TOLD = "not identified: a prior, from NiTiCo, NiTiHf and print"
COLUMNS = ("", "value", "95 % interval", "determined by")


def as_dict(wire: IdentifiedWire) -> Figures:
    """The result for `--json`."""
    return dict(
        plain(
            {
                "loops": [
                    {
                        "file": loop.name,
                        "stress_MPa": loop.stress_Pa / 1e6,
                        "rms_of_stroke": rms,
                        "contraction": one.value,
                        "contraction_95": [one.low, one.high],
                    }
                    for loop, rms, one in zip(
                        wire.loops, wire.rms_of_stroke, wire.contraction, strict=True
                    )
                ],
                "parameters": [
                    {
                        "name": one.key,
                        "value": one.value,
                        "interval_95": [one.low, one.high],
                        "identified": one.identified,
                    }
                    for one in wire.estimates
                ],
                "covariance": wire.covariance,
            }
        )
    )


def as_text(wire: IdentifiedWire) -> str:
    """The result for the terminal."""
    rows = [COLUMNS, *_rows(wire)]
    wide = [max(len(row[i]) for row in rows) for i in range(3)]
    lines = [
        f"{name:{wide[0]}}  {value:>{wide[1]}}  {interval:{wide[2]}}  {by}"
        for name, value, interval, by in rows
    ]
    return "\n".join([*lines, *_sentences(wire)])


def as_activation(values: Mapping[str, float]) -> str:
    """Values by key as lines of an activation's table, for a rig that names their record."""
    lines, sides = list[str](), dict[str, list[str]]()
    for key, value in values.items():
        side, _, last = key.rpartition(".")
        (sides.setdefault(side, []) if side else lines).append(f"{last} = {value:.9g}")
    return "\n".join(
        [*lines, *(f"{side} = {{{', '.join(pairs)}}}" for side, pairs in sides.items())]
    )


def write_page(wire: IdentifiedWire, simulated: bool, path: Path) -> None:
    """Write the page as one HTML file; ConfigError if it cannot be written."""
    text = rendered(
        "identified_wire.html",
        title="Identified wire",
        simulated=simulated,
        columns=COLUMNS,
        rows=_rows(wire),
        sentences=_sentences(wire),
        png=embedded(figures.draw([(wire.fitted, loop, "fitted") for loop in wire.loops])),
        caption=figures.CAPTION,
    )
    with writing(path, ": choose another --page"):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)


def _rows(wire: IdentifiedWire) -> list[tuple[str, str, str, str]]:
    """Contraction at each stress, then the parameters."""
    names = [f"contraction at {loop.stress_Pa / 1e6:.0f} MPa" for loop in wire.loops]
    named = [
        *zip(names, wire.contraction, strict=True),
        *((one.key, one) for one in wire.estimates),
    ]
    return [
        (name, f"{one.value:.4g}", _interval(one), "loops" if one.identified else NOT_TOLD)
        for name, one in named
    ]


def _interval(one: Estimate) -> str:
    return f"{one.low:.4g} .. {one.high:.4g}"


def _sentences(wire: IdentifiedWire) -> list[str]:
    each = ", ".join(
        f"{rms:.3f} at {loop.stress_Pa / 1e6:.0f} MPa"
        for loop, rms in zip(wire.loops, wire.rms_of_stroke, strict=True)
    )
    return [
        f"RMS of the fit over the stroke: {each}",
        "the intervals count a loop as 20 samples, because errors along it are not independent",
    ]
