"""The system's error in an error of HDF5, which puts its number into a long text."""

import re

_ERRNO = re.compile(r"errno = (\d+)")


def errno_of(error: Exception) -> int | None:
    """Return the number of the system's error, such as that of a full disk; None without one."""
    match = _ERRNO.search(str(error))
    return int(match[1]) if match else getattr(error, "errno", None)
