"""Compilation of each kernel by one worker: the others wait, then load it from Numba's cache.

In a fresh clone all workers would otherwise compile the same kernels at the same time.
"""

import fcntl
from pathlib import Path

from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher

FOLDER = Path(__file__).resolve().parents[1] / ".pytest_cache" / "compiling"

compile_at_once = Dispatcher.compile
compiling: set[str] = set()


def share_compilations(folder: Path = FOLDER) -> None:
    """Lock each function, by a file in the folder, while a process compiles or loads it."""
    folder.mkdir(parents=True, exist_ok=True)

    def compile_alone(self, sig):
        name = f"{self.py_func.__module__}.{self.py_func.__qualname__}"
        if self._cache.cache_path is None or name in compiling:  # not cached, or it calls itself
            return compile_at_once(self, sig)
        # Threads take Numba's lock first: none waits for a file while it holds up the others.
        with global_compiler_lock, (folder / name).open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            compiling.add(name)
            try:
                return compile_at_once(self, sig)
            finally:
                compiling.remove(name)

    Dispatcher.compile = compile_alone
