"""Builds and checks a release, and uploads nothing: `scripts/release [--rehearse]`.

The version is that of pyproject.toml. Source distribution, wheel, list of components (CycloneDX)
and documentation go to `dist/VERSION`.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BRANCH = "main"
NEXT = """
{folder} has everything. What is left to do:
  audit the pinned packages; pip-audit asks a database on the internet, so this script cannot:
    uvx pip-audit --disable-pip --no-deps --requirement requirements.lock
  build the wheels of all systems, each on its own (Linux needs Docker, Windows MinGW-w64); an index
  refuses the wheel in {folder}, which is for systems like this one only:
    uvx cibuildwheel --output-dir {folder}/wheels
  tag and upload:
    git tag --annotate v{version} --message 'hil-arrays {version}' && git push origin v{version}
    twine upload {folder}/*.tar.gz {folder}/wheels/*.whl
  serve {folder}/documentation as the documentation of {version}, beside those of other versions
"""
PLACEHOLDER = "https://example.org/"


def obstacles(root: Path, project: dict[str, object]) -> Iterator[str]:
    """Why this tree is no release; a line each."""
    version = str(project["version"])
    if changed := _git(root, "status", "--porcelain"):
        first = changed.splitlines()[0][3:]
        yield f"the tree has changes that are not committed, such as {first}: commit or remove them"
    if (branch := _git(root, "branch", "--show-current")) != BRANCH:
        yield f"the branch is {branch or 'none'}: git switch {BRANCH}"
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    if not re.search(rf"^## {re.escape(version)}, \d{{4}}-\d\d-\d\d$", changelog, re.M):
        yield (
            f"CHANGELOG.md: {version} has no date: its heading has to be '## {version}, YYYY-MM-DD'"
        )
    citation = (root / "CITATION.cff").read_text(encoding="utf-8")
    cited = re.search(r"^version: *['\"]?([^'\"\n]+)", citation, re.M)
    if cited is None or cited[1].strip() != version:
        named = "no version" if cited is None else cited[1].strip()
        yield f"CITATION.cff: version: is {named}, pyproject.toml has {version}: make them agree"
    yield from _addresses(root, str(project["urls"]["Repository"]))  # type: ignore[index]
    if _git(root, "tag", "--list", f"v{version}"):
        yield f"the tag v{version} exists: raise version in pyproject.toml and CITATION.cff"


def _addresses(root: Path, address: str) -> Iterator[str]:
    """What is wrong with the public address, which pyproject.toml has."""
    if address.startswith(PLACEHOLDER):
        yield f"pyproject.toml: project.urls.Repository = '{address}' is a placeholder: set it"
    for name, words in (("README.md", f"git clone {address}.git "),
                        ("CITATION.cff", f"repository-code: {address}\n")):  # fmt: skip
        if words not in (root / name).read_text(encoding="utf-8"):
            yield f"{name}: has no '{words.strip()}': it is the address of pyproject.toml"


def _git(root: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=root, check=False, capture_output=True, text=True, encoding="utf-8"
    )
    if done.returncode:
        sys.exit(f"scripts/release: git {words[0]}: {done.stderr.strip().splitlines()[0]}")
    return done.stdout.strip("\n")


def build(root: Path, folder: Path) -> tuple[Path, Path]:
    """Source distribution, and the wheel built from it."""
    _run(root, "build", "--no-isolation", "--outdir", str(folder), str(root))
    return next(folder.glob("*.tar.gz")), next(folder.glob("*.whl"))


def check(root: Path, source: Path, wheel: Path) -> None:
    """Metadata, contents and citation."""
    _run(root, "validate_pyproject", str(root / "pyproject.toml"))
    citation = ("--builtin-schema", "vendor.citation-file-format", str(root / "CITATION.cff"))
    _run(root, "check_jsonschema", *citation)
    _run(root, "twine", "check", "--strict", str(source), str(wheel))
    _run(root, "check_wheel_contents", str(wheel))


def list_components(root: Path, file: Path) -> None:
    """Every package of requirements.lock, in CycloneDX."""
    of_project = ("--pyproject", str(root / "pyproject.toml"), "--output-reproducible")
    lock = str(root / "requirements.lock")
    _run(root, "cyclonedx_py", "requirements", lock, *of_project, "--output-file", str(file))


def _run(root: Path, module: str, *words: str) -> None:
    """A tool of the environment; SystemExit with what it printed where it fails."""
    done = subprocess.run(
        [sys.executable, "-m", module, *words],
        cwd=root,
        env=os.environ | {"NO_COLOR": "1", "PYTHONUTF8": "1"},
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
    )
    if done.returncode:
        sys.exit(f"{done.stdout}scripts/release: {module} failed")
    print(f"{module}: done", flush=True)


def main() -> int:
    """Refuse, or build and check."""
    parser = argparse.ArgumentParser(prog="scripts/release", description=__doc__)
    parser.add_argument(
        "--rehearse", action="store_true", help="build and check a tree that is no release yet"
    )
    rehearse = parser.parse_args().rehearse
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = list(obstacles(ROOT, project))
    for line in found:
        print(f"scripts/release: {line}", file=sys.stderr)
    if found and not rehearse:
        return 2
    version = project["version"]
    folder = ROOT / "dist" / version
    shutil.rmtree(folder, ignore_errors=True)
    check(ROOT, *build(ROOT, folder))
    list_components(ROOT, folder / f"hil-arrays-{version}.cdx.json")
    site = ("--fail-on-warning", "--keep-going", "--quiet", "--jobs", "auto")
    _run(ROOT, "sphinx", *site, str(ROOT / "docs"), str(folder / "documentation"))
    if found:
        print("rehearsed: this is no release, for the reasons above")
        return 0
    print(NEXT.format(folder=folder.relative_to(ROOT), version=version), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
