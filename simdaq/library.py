"""Building the simulated libnidaqmx.so for this Python, and letting nidaqmx find it.

The package looks a library up by name and loads it by its SONAME. A library of that SONAME that
the process has loaded already, by its path, is the one it gets; `install` does that, and names
the folder in LD_LIBRARY_PATH for the look-up.
"""

from __future__ import annotations

import contextlib
import ctypes
import datetime
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from functools import cache
from importlib.metadata import version
from pathlib import Path

from simdaq import library_source, package_api
from simdaq.errors import SetupError

API = "api.json"
# What the library runs when it is first called, in whatever process that is.
INIT = """
import time
from {module} import ffi
from simdaq import bindings
from simdaq.stopwatch import stopwatch
bindings.attach(ffi, stopwatch(), time.time())
"""


def _key() -> str:
    """Changes with whatever the library is made of."""
    parts = [
        sys.implementation.cache_tag,
        sysconfig.get_platform(),
        version("nidaqmx"),
        version("cffi"),
        INIT,
        Path(library_source.__file__).read_text(),
        Path(package_api.__file__).read_text(),
    ]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def cache_folder() -> Path:
    """Where built libraries lie: the user's cache."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "simdaq"


def built() -> Path:
    """The library, built where it is not there yet (a few seconds, once).

    Raises
    ------
    SetupError
        There is no C compiler, or it fails, or the cache cannot be written or has a space.
    """
    folder = cache_folder() / _key()
    if re.search(r"[\s():;]", str(folder)):  # `ctypes.util.find_library` takes no path with these
        raise SetupError(
            f"'{folder.parent}': the simulated NI-DAQmx is not found in a path with a space, "
            "bracket, colon or semicolon: name another folder in XDG_CACHE_HOME"
        )
    library = folder / library_source.SONAME
    if library.is_file():
        return library
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise SetupError("the simulated NI-DAQmx needs a C compiler: apt-get install gcc")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SetupError(
            f"{folder.parent}: the simulated NI-DAQmx is built there: {error.strerror}: "
            "name a folder that can be written in XDG_CACHE_HOME"
        ) from None
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        _compile(compiler, Path(scratch))
        target = Path(scratch) / "done"
        target.mkdir()
        for name in (library_source.SONAME, API):
            (Path(scratch) / name).rename(target / name)
        (target / "libnidaqmx.so").symlink_to(library_source.SONAME)
        try:
            target.rename(folder)
        except OSError:
            if not library.is_file():  # else another process was faster
                raise
    return library


@cache
def api() -> package_api.PackageApi:
    """What the installed package calls, as it was when the library was built."""
    return package_api.from_json((built().parent / API).read_text())


def _compile(compiler: str, folder: Path) -> None:
    from cffi import FFI

    api = package_api.scan(package_api.package_folder())
    (folder / API).write_text(package_api.to_json(api))
    ffi = FFI()
    ffi.embedding_api(library_source.embedding_api(api))
    ffi.set_source(library_source.MODULE, library_source.c_source(api))
    ffi.embedding_init_code(INIT.format(module=library_source.MODULE))
    source = folder / "library.c"
    with contextlib.redirect_stdout(io.StringIO()):  # cffi says what it does
        ffi.emit_c_code(str(source))
    # Not linked against libpython: the process that loads it is Python.
    command = [
        compiler, "-shared", "-fPIC", "-O1", "-w",
        f"-I{sysconfig.get_path('include')}", f"-I{sysconfig.get_path('platinclude')}",
        f"-Wl,-soname,{library_source.SONAME}", "-o", str(folder / library_source.SONAME),
        str(source), "-lpthread",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["no message"])[0]
        raise SetupError(f"the simulated NI-DAQmx cannot be built: {why}")


@cache
def install() -> Path:
    """Load the library into this process, before or after nidaqmx is imported; its path."""
    path = built()
    folder = str(path.parent)
    folders = [f for f in os.environ.get("LD_LIBRARY_PATH", "").split(":") if f and f != folder]
    os.environ["LD_LIBRARY_PATH"] = ":".join([folder, *folders])
    loaded = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    # Before Python 3.12 the first call aborts the process if the version tag of PyCapsule, which
    # cffi takes for a lock, is not 0: after any look-up of an attribute of a capsule.
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(type(datetime.datetime_CAPI)))
    loaded.DAQmxGetErrorString(0, ctypes.create_string_buffer(256), 256)
    return path
