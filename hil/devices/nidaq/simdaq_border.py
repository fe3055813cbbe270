"""Where simdaq's errors become this project's; simdaq itself knows nothing of `hil`."""

from collections.abc import Iterator
from contextlib import contextmanager

from hil.errors import ConfigError, DeviceError
from simdaq.errors import PortError, SetupError


@contextmanager
def own_errors() -> Iterator[None]:
    """Raise simdaq's errors as `ConfigError` and `DeviceError`, with the same line."""
    try:
        yield
    except SetupError as error:
        raise ConfigError(str(error)) from None
    except PortError as error:
        raise DeviceError(str(error)) from None
