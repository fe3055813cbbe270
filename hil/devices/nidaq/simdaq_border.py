"""Conversion of simdaq's errors to those of hil; simdaq does not import `hil`."""

from collections.abc import Iterator
from contextlib import contextmanager

from hil.errors import ConfigError, DeviceError
from simdaq.errors import PortError, SetupError


@contextmanager
def simdaq_errors() -> Iterator[None]:
    """Convert simdaq's errors to `ConfigError` and `DeviceError` with the same message."""
    try:
        yield
    except SetupError as error:
        raise ConfigError(str(error)) from None
    except PortError as error:
        raise DeviceError(str(error)) from None
