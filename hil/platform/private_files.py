"""Files that no other user can have written or replaced by a link.

On Windows the folders that hil uses are the user's own, and links need a privilege.
"""

import os
import stat
import sys
from pathlib import Path

# Flags for os.open: refuse a link; do not wait for the other end of a pipe.
if sys.platform == "win32":
    NO_LINK = NO_WAIT = 0
else:
    NO_LINK, NO_WAIT = os.O_NOFOLLOW | os.O_CLOEXEC, os.O_NONBLOCK


def state_folder() -> Path:
    """The folder of what hil keeps for this user from run to run."""
    state = os.environ.get("XDG_STATE_HOME", "")
    folder = Path(state) if os.path.isabs(state) else Path.home() / ".local/state"
    return folder / "hil"


def is_private(status: os.stat_result) -> bool:
    """Whether a file or folder belongs to this user and only this user may write it."""
    if sys.platform == "win32":
        return True
    others_write = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return status.st_uid == os.geteuid() and not others_write
