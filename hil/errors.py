"""The errors a user meets, each one clear line."""


class ConfigError(Exception):
    """Bad input, found before any device opens: names file, key, value and remedy."""


class OwnError(ConfigError):
    """Code of one's own failed: one line with its file, line and class.

    In a run the loop takes it for a fault; before one it is bad input like any other.
    """


class DeviceError(Exception):
    """A device failed, went missing or is held by another process; names the device."""


class StopError(Exception):
    """Somebody wanted everything to end before it had begun."""


def one_line(text: str) -> str:
    """The text with line breaks and other control characters written as escapes."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
