"""Tables of the specimen under test and of the room."""

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from hil.config.table import Name, NotNegative, Positive, Table, Title, as_list


def _serial(value: str) -> str:
    # It becomes the name of a file.
    if not value or value.startswith(".") or not all(c.isalnum() or c in "._-" for c in value):
        raise ValueError("a serial number has letters, digits, '.', '_' and '-' only")
    return value


class SpecimenTable(Table):
    """The specimen whose logbook a run goes into.

    `logbook` is the folder, relative to the file that names it. A wire's energy is its measured
    current times the supply's voltage: measured by the rig's one supply, else `supply_V`, else that
    of a thermal model; without any, `wire_resistance_Ohm` (of every cell, or a list) times the
    current squared.
    """

    serial: Annotated[str, AfterValidator(_serial)]
    about: Title = ""
    logbook: str | None = None
    supply_V: Positive | None = None
    wire_resistance_Ohm: (
        Annotated[list[Positive], BeforeValidator(as_list), Field(min_length=1)] | None
    ) = None


class AmbientTable(Table):
    """The room: its temperature as entered by hand, or the channel that measures it.

    Thermal cells of the model use it as the temperature of the air; so do those of [plant] if they
    have no `ambient_C` of their own.
    """

    ambient_C: Annotated[float, Field(ge=-50.0, le=100.0)] | None = None
    ambient_channel: Name | None = None
    ambient_uncertainty_C: NotNegative | None = None

    @model_validator(mode="after")
    def _says_it_once(self) -> "AmbientTable":
        if (self.ambient_C is None) == (self.ambient_channel is None):
            raise ValueError("give ambient_C, as read off, or ambient_channel, which measures it")
        if self.ambient_uncertainty_C is None:
            raise ValueError("ambient_uncertainty_C: missing: say how well it is known")
        return self
