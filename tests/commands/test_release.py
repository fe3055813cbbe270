"""scripts/release: what it refuses, and what the wheel that it builds holds."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import release  # noqa: E402  its folder is no package

ADDRESS = "https://forge.org/lab/hil-arrays"
PROJECT = {"version": "1.2.0", "urls": {"Repository": ADDRESS}}
CITED = f"cff-version: 1.2.0\nversion: 1.2.0\nrepository-code: {ADDRESS}\n"
ELSEWHERE = "it is the address of pyproject.toml"
READY = {
    "pyproject.toml": '[project]\nname = "hil-arrays"\nversion = "1.2.0"\n'
    f'urls.Repository = "{ADDRESS}"\n',
    "README.md": f"    git clone {ADDRESS}.git && cd hil-arrays\n",
    "CHANGELOG.md": "# Changelog\n\n## 1.2.0, 2026-11-23\n\n- a line\n",
    "CITATION.cff": CITED,
}


def git(root, *words):
    names = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *names, *words], cwd=root, check=True, capture_output=True)


@pytest.fixture
def ready(tmp_path):
    """A repository that is ready for its release."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "release.py", tmp_path / "scripts")
    for name, text in READY.items():
        (tmp_path / name).write_text(text)
    git(tmp_path, "init", "-b", "main")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "1.2.0")
    return tmp_path


def test_a_tree_that_is_ready_has_no_obstacle(ready):
    assert list(release.obstacles(ready, PROJECT)) == []


def committed(name, text):
    def change(root):
        (root / name).write_text(text)
        git(root, "commit", "-am", "changed")

    return change


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (
            lambda root: (root / "notes.txt").write_text("new"),
            "the tree has changes that are not committed, such as notes.txt: commit or remove them",
        ),
        (
            lambda root: (root / "CHANGELOG.md").write_text(READY["CHANGELOG.md"] + "more\n"),
            "the tree has changes that are not committed, such as CHANGELOG.md: "
            "commit or remove them",
        ),
        (lambda root: git(root, "switch", "-c", "idea"), "the branch is idea: git switch main"),
        (
            lambda root: git(root, "switch", "--detach"),
            "the branch is none: git switch main",
        ),
        (
            committed("CHANGELOG.md", "# Changelog\n\n## 1.2.0, not yet released\n"),
            "CHANGELOG.md: 1.2.0 has no date: its heading has to be '## 1.2.0, YYYY-MM-DD'",
        ),
        (
            committed("CHANGELOG.md", "# Changelog\n\n## 11.2.0, 2026-11-23\n"),
            "CHANGELOG.md: 1.2.0 has no date: its heading has to be '## 1.2.0, YYYY-MM-DD'",
        ),
        (
            committed("CITATION.cff", CITED.replace("\nversion: 1.2", "\nversion: 1.1")),
            "CITATION.cff: version: is 1.1.0, pyproject.toml has 1.2.0: make them agree",
        ),
        (
            committed("CITATION.cff", f"cff-version: 1.2.0\nrepository-code: {ADDRESS}\n"),
            "CITATION.cff: version: is no version, pyproject.toml has 1.2.0: make them agree",
        ),
        (
            committed("CITATION.cff", "cff-version: 1.2.0\nversion: 1.2.0\n"),
            f"CITATION.cff: has no 'repository-code: {ADDRESS}': {ELSEWHERE}",
        ),
        (
            committed("README.md", f"    git clone {ADDRESS}2.git && cd hil-arrays\n"),
            f"README.md: has no 'git clone {ADDRESS}.git': {ELSEWHERE}",
        ),
        (
            lambda root: git(root, "tag", "v1.2.0"),
            "the tag v1.2.0 exists: raise version in pyproject.toml and CITATION.cff",
        ),
    ],
    ids=[
        "new file", "changed file", "other branch", "no branch", "no date", "other version",
        "other citation", "no citation", "no address", "other address", "tag",
    ],
)  # fmt: skip
def test_a_tree_that_is_no_release_is_refused_in_one_line(ready, change, line):
    change(ready)
    done = subprocess.run(
        [sys.executable, "-B", "scripts/release.py"],
        cwd=ready, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (2, f"scripts/release: {line}\n")
    assert not (ready / "dist").exists()


def test_an_address_that_is_a_placeholder_is_an_obstacle(ready):
    for name in ("README.md", "CITATION.cff"):
        text = READY[name].replace("https://forge.org/lab/", release.PLACEHOLDER)
        committed(name, text)(ready)
    placeholder = release.PLACEHOLDER + "hil-arrays"
    [line] = release.obstacles(ready, PROJECT | {"urls": {"Repository": placeholder}})
    assert line.endswith(f"Repository = '{placeholder}' is a placeholder: set it")


def test_readme_and_citation_have_the_address_of_pyproject():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = list(release.obstacles(ROOT, project))
    assert not [line for line in lines if line.endswith(ELSEWHERE)]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Source distribution and wheel of this tree."""
    return release.build(ROOT, tmp_path_factory.mktemp("dist"))


@pytest.mark.slow
@pytest.mark.xdist_group("wheel")
def test_metadata_contents_and_citation_are_valid(built):
    release.check(ROOT, *built)


@pytest.mark.slow
@pytest.mark.xdist_group("wheel")
def test_a_wheel_holds_the_program_its_configurations_and_the_simulated_board(built):
    names = set(zipfile.ZipFile(built[1]).namelist())
    sources = {
        path.relative_to(folder).as_posix()
        for folder, package in (
            (ROOT, "hil"),
            (ROOT, "simdaq"),
            (ROOT / "gui", "hil_gui"),
            (ROOT / "studies", "hil_studies"),
        )
        for path in (folder / package).rglob("*.py")
    }
    assert sources <= names
    examples = {
        f"hil/examples/{path.relative_to(ROOT).as_posix()}"
        for folder in ("configs", "calibration")
        for path in (ROOT / folder).rglob("*.toml")
    }
    assert examples <= names
    assert {"hil/firmware/libboard.so", "hil/firmware/board_pty"} <= names
    assert not [name for name in names if "tests" in name.split("/") or name.endswith(".pyc")]
    assert not [name for name in names if name.startswith(("docs/", "scripts/", "firmware/"))]


@pytest.mark.slow
@pytest.mark.xdist_group("wheel")
def test_an_unpacked_wheel_runs_a_simulated_experiment_outside_the_clone(built, tmp_path):
    with zipfile.ZipFile(built[1]) as wheel:
        wheel.extractall(tmp_path / "site")
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "site"), "NUMBA_DISABLE_JIT": "1"}

    def python(*words):
        return subprocess.run(
            [sys.executable, "-P", *words],
            cwd=tmp_path, env=environment, capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip

    assert python("-c", "import hil; print(hil.__file__)").startswith(str(tmp_path / "site"))
    python("-m", "hil", "examples", "mine")
    short = ("--set", "experiment.duration_s=0.05", "--out", "run.h5")
    out = python("-m", "hil", "run", "mine/configs/miga6/pid.toml", *short)
    assert out.startswith("complete: 50 rows in run.h5")


@pytest.mark.slow
def test_the_list_of_components_has_every_pinned_package(tmp_path):
    release.list_components(ROOT, tmp_path / "components.json")
    listed = json.loads((tmp_path / "components.json").read_text())
    pinned = {
        line.split(" ")[0] for line in (ROOT / "requirements.lock").read_text().splitlines()
        if not line.startswith((" ", "#"))
    }  # fmt: skip
    assert {f"{c['name']}=={c['version']}" for c in listed["components"]} == pinned
    assert listed["metadata"]["component"]["name"] == "hil-arrays"


def test_the_recipe_for_conda_needs_and_says_what_pyproject_does():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    recipe = yaml.safe_load((ROOT / "conda/recipe.yaml").read_text())
    assert recipe["context"]["version"] == project["version"]
    assert recipe["package"] == {"name": project["name"], "version": "${{ version }}"}
    assert recipe["about"]["license"] == project["license"]
    assert recipe["about"]["summary"] == project["description"]
    needs = [*project["dependencies"], *project["optional-dependencies"]["fast"]]
    said = {"python": project["requires-python"]}
    for need in map(Requirement, needs):
        name = {"matplotlib": "matplotlib-base"}.get(need.name, need.name)  # without a window
        said[name] = str(need.specifier)
    assert dict(line.split(" ") for line in recipe["requirements"]["run"]) == said
    hatchling = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    assert [line.replace(" ", "") for line in recipe["requirements"]["host"][2:]] == hatchling
