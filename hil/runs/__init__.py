"""One run, many runs, replay, and the index of runs; `hil.runs(...)` asks the index."""

from __future__ import annotations

import sys
import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pandas


class _Runs(types.ModuleType):
    """The package, which is also the function `hil.runs`."""

    def __call__(
        self,
        folder: str | Path = "runs",
        *,
        where: str = "",
        since: str = "",
        until: str = "",
        columns: Sequence[str] = (),
        **names: str,
    ) -> pandas.DataFrame:
        """Runs of a folder as a DataFrame, newest first, as `hil runs` finds them.

        Parameters
        ----------
        folder : all recordings below it
        where : an expression of columns, in SQL, such as `rms_N < 0.02`
        since, until : a date or time in UTC, or an age: `12h`, `7d`, `2w`
        columns : these columns, or the name of one; by default all
        names : patterns by column: `rig`, `experiment`, `specimen`, `operator`, `outcome`,
            `campaign`

        Raises
        ------
        hil.errors.ConfigError
        TypeError
            An unknown name.
        """
        from pathlib import Path

        from hil.runs.catalogue.query import BY_NAME, Catalogue, Filter

        if unknown := set(names) - set(BY_NAME):
            known = ", ".join(sorted(BY_NAME))
            raise TypeError(f"runs() has no option {', '.join(sorted(unknown))}: it has {known}")
        shown = (columns,) if isinstance(columns, str) else tuple(columns)
        wanted = Filter(names, since, until, where, columns=shown)
        return Catalogue(Path(folder)).frame(wanted)


sys.modules[__name__].__class__ = _Runs
