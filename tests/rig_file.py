"""Values that a rig's own file may have and an experiment may not."""

import tomllib

import tomli_w

from hil.config.files import merge, parse_set


def loosen(rig, *sets):
    """Write `key.path=value` texts into a rig's file."""
    table = tomllib.loads(rig.read_text())
    for text in sets:
        table = merge(table, parse_set(text))
    rig.write_text(tomli_w.dumps(table))
