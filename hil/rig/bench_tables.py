"""Tables of the specimen under test and of the ambient conditions."""

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from hil.config.table import Name, NotNegative, Positive, Table, Title, as_list


def _serial(value: str) -> str:
    # The serial number becomes a file name.
    if not value or value.startswith(".") or not all(c.isalnum() or c in "._-" for c in value):
        raise ValueError(
            "a serial number has only letters, digits, '.', '_' and '-', and does not start "
            "with '.'"
        )
    return value


class SpecimenTable(Table):
    """The specimen under test; a run is added to its logbook.

    `logbook` is the folder, relative to the file that names it. A wire's energy is the integral of
    its measured current times the supply voltage. That voltage is measured if the rig has exactly
    one supply, otherwise `supply_V`, otherwise that of a thermal model. Without any of these, the
    power is `wire_resistance_Ohm` (one value for all cells, or a list) times the current squared.
    """

    serial: Annotated[str, AfterValidator(_serial)]
    about: Title = ""
    logbook: str | None = None
    supply_V: Positive | None = None
    wire_resistance_Ohm: (
        Annotated[list[Positive], BeforeValidator(as_list), Field(min_length=1)] | None
    ) = None


class AmbientTable(Table):
    """The ambient temperature: a value entered by hand, or the channel that measures it.

    The thermal cells of the model use it as the air temperature. Those of [plant] use it too if
    they have no `ambient_C` of their own.
    """

    ambient_C: Annotated[float, Field(ge=-50.0, le=100.0)] | None = None
    ambient_channel: Name | None = None
    ambient_uncertainty_C: NotNegative | None = None

    @model_validator(mode="after")
    def _has_one_source(self) -> "AmbientTable":
        if (self.ambient_C is None) == (self.ambient_channel is None):
            raise ValueError("give either ambient_C, the value, or ambient_channel, its channel")
        if self.ambient_uncertainty_C is None:
            raise ValueError("ambient_uncertainty_C: missing: give the uncertainty in °C")
        return self
