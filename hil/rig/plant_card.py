"""`[plant_card]`: the card that simulates the array at signal level, and its checks."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from hil.config.table import Address, Name, Table

if TYPE_CHECKING:
    from hil.devices.tables import AnyChannelTable


class PlantCardTable(Table):
    """A card that simulates the array at signal level, for `--backend plant=realtime`.

    The boards' gates are wired to the digital inputs `gates`, one for each cell in the model's
    order. In every period the plant steps with their levels, and each of `outputs` generates the
    voltage of its channel's transducer: `force = "ao0"` means that output ao0 is wired to the input
    of channel `force`.
    """

    card: Address
    gates: Annotated[list[str], Field(min_length=1)]
    outputs: Annotated[dict[Name, str], Field(min_length=1)]
    range_V: Annotated[float, Field(gt=0.0, le=10.0)] = 10.0
    product: str = "PCIe-6363"


def check(
    table: PlantCardTable, n_cells: int, channels: Mapping[str, "AnyChannelTable"]
) -> Iterator[tuple[str, str]]:
    """Yield conflicts with the rig as (key, reason)."""
    if len(table.gates) != n_cells:
        yield (
            "plant_card.gates",
            f"{len(table.gates)} lines for {n_cells} cells: give one for each cell",
        )
    if twice := {line for line in table.gates if table.gates.count(line) > 1}:
        yield "plant_card.gates", f"'{min(twice)}' is listed twice"
    for name in table.outputs:
        if name not in channels:
            yield f"plant_card.outputs.{name}", f"no such channel: choose {', '.join(channels)}"
    for name, channel in channels.items():
        if channel.kind == "encoder":
            yield (
                "plant_card",
                f"channel '{name}' is an encoder, which a voltage output cannot simulate",
            )
        elif name not in table.outputs:
            yield f"plant_card.outputs.{name}", "missing: this channel would have no signal"
        elif channel.kind == "force" and channel.bridge is not None:
            yield (
                f"plant_card.outputs.{name}",
                "its channel is a bridge input, which a voltage output cannot simulate",
            )
