"""The two errors a user meets, each one clear line."""


class ConfigError(Exception):
    """Bad input, found before any device opens: names file, key, value and remedy."""


class DeviceError(Exception):
    """A device failed, went missing or is held by another process; names the device."""
