"""The tests of what has changed, for `./run-tests --fast`: one path a line.

Changed is what differs from the merge base with `main`; on `main` itself, what is not committed
yet, or else the last commit. A module's tests are those that import it, and those at its place in
the mirrored tree: `tests/loop/test_guard*.py` for `hil/loop/guard.py`; if there are neither, those
of the nearest folder. A page's test is the page itself. Files without tests are named. Those in the
mirrored tree come first, since `--fast` ends after a time.
"""

import ast
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from documentation.pages import pages  # noqa: E402  its folder is that of the tests

SOURCES = {
    "hil": "tests",
    "simdaq": "tests/simdaq",
    "gui/hil_gui": "tests/gui",
    "studies/hil_studies": "tests/studies",
}
FOLDERS = {"firmware": "tests/firmware", "configs": "tests/examples", "examples": "tests/plugins"}
PAGES = "tests/documentation/test_pages.py::test_a_page_is_true"


def changed(root: Path) -> list[str]:
    """Paths of the changed files, new ones included, that still exist."""
    head = _git(root, "rev-parse", "HEAD")[0]
    base = _git(root, "merge-base", "HEAD", "main")[0]
    new = _git(root, "ls-files", "--others", "--exclude-standard")
    if base == head:
        base = "HEAD" if new or _git(root, "diff", "--name-only", "HEAD") else "HEAD~1"
    found = {*_git(root, "diff", "--name-only", base), *new}
    return sorted(path for path in found if (root / path).is_file())


def _git(root: Path, *words: str) -> list[str]:
    if shutil.which("git") is None:
        sys.exit("./run-tests --fast: git is needed; on Debian: sudo apt-get install git")
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"./run-tests --fast: git {words[0]}: {done.stderr.strip().splitlines()[-1]}")
    return done.stdout.splitlines()


def imported(text: str) -> Iterator[str]:
    """Every module that a file may import."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)


def tests_of(root: Path, paths: Iterable[str]) -> dict[str, list[str]]:
    """Paths of tests by changed file."""
    importers: dict[str, set[str]] = {}
    for test in (root / "tests").rglob("test_*.py"):
        for module in imported(test.read_text(encoding="utf-8")):
            importers.setdefault(module, set()).add(test.relative_to(root).as_posix())
    found = {path: _tests_of(root, Path(path), importers) for path in paths}
    return found | {page: [f"{PAGES}[{page}]"] for page in {*found} & {*pages(root)}}


def _tests_of(root: Path, path: Path, importers: dict[str, set[str]]) -> list[str]:
    if path.parts[0] == "tests":
        return [path.as_posix()] if path.name.startswith("test_") else _in(root, path.parent)
    for folder, tests in SOURCES.items():
        if path.suffix == ".py" and path.is_relative_to(folder):
            inside = path.relative_to(folder).with_suffix("")
            module = ".".join((Path(Path(folder).name) / inside).parts).removesuffix(".__init__")
            mirrored = root / tests / inside.parent
            found = _in(root, Path(tests) / inside.parent, f"test_{inside.name}*.py")
            found += sorted(importers.get(module, set()) - set(found))
            return found or _nearest(root, mirrored)
    return _in(root, Path(FOLDERS[path.parts[0]])) if path.parts[0] in FOLDERS else []


def _nearest(root: Path, folder: Path) -> list[str]:
    while not any(folder.glob("test_*.py")) and folder != root / "tests":
        folder = folder.parent
    return _in(root, folder.relative_to(root))


def _in(root: Path, folder: Path, pattern: str = "test_*.py") -> list[str]:
    return sorted(p.relative_to(root).as_posix() for p in (root / folder).glob(pattern))


def main() -> None:
    found = tests_of(ROOT, changed(ROOT))
    for path, tests in found.items():
        if not tests:
            print(f"no test belongs to {path}", file=sys.stderr)
    first = max((len(tests) for tests in found.values()), default=0)
    in_turn = [t for n in range(first) for tests in found.values() for t in tests[n : n + 1]]
    print(*dict.fromkeys(["tests/architecture", *in_turn]), sep="\n")


if __name__ == "__main__":
    main()
