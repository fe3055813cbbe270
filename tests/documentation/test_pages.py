"""Every command, file and snippet of the documentation does what its page says."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import resident as resident_module
from documentation.pages import commands_of, differences, pages
from hil.commands.command_line import command_line
from hil.devices.board import emulated

ROOT = Path(__file__).resolve().parents[2]
GIVEN = ("configs", "calibration", "examples")


@pytest.fixture
def clone(tmp_path):
    """A folder with what a clone has, that a page's commands may fill."""
    for name in GIVEN:
        shutil.copytree(ROOT / name, tmp_path / name)
    return tmp_path


@pytest.fixture(scope="session")
def resident(tmp_path_factory):
    """The socket of a process that has imported hil."""
    path = tmp_path_factory.mktemp("resident") / "hil"
    with resident_module.started(str(path)):
        yield path


def _page(page):
    """Runs on the real clock want the machine one at a time; only the tutorials are quick."""
    marks = [] if "tutorial" in Path(page).parts else [pytest.mark.slow]
    text = (ROOT / page).read_text(encoding="utf-8")
    if "--clock real" in text or "--backend drivers" in text:
        marks.append(pytest.mark.xdist_group("real time"))
    return pytest.param(page, marks=marks)


@pytest.mark.parametrize("page", [_page(page) for page in pages(ROOT)])
def test_a_page_is_true(page, clone, resident):
    if any("emulated" in command.text for command in commands_of(ROOT / page)):
        emulated.check_tools()
    assert not differences(ROOT / page, clone, resident)


def shown_commands():
    """Commands that are shown and not run: the README's, and long ones."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    yield from re.findall(r"`(hil [a-z]+ [a-z]+/[^`]*)`", readme)
    for page in (ROOT / "docs").rglob("*.md"):
        if "generated" not in page.parts:
            for line in re.findall(r"^(hil [a-z].*)", page.read_text(encoding="utf-8"), re.M):
                yield from re.split(r";\s+(?=hil )", line.split("  #")[0])


def test_commands_that_are_only_shown_exist_with_their_options_and_files():
    commands, parser = list(shown_commands()), command_line()
    assert len(commands) > 30
    for command in commands:
        args = parser.parse_args(shlex.split(command)[1:])
        assert args.command
        for word in shlex.split(command):
            if word.startswith("configs/") and "*" not in word:
                assert (ROOT / word).is_file(), command


def test_commands_that_pages_run_exist_with_their_options():
    typed = [command.text for page in pages(ROOT) for command in commands_of(ROOT / page)]
    plain = [text for text in typed if re.fullmatch(r"hil [^;|&$<>`*]+", text)]
    assert len(plain) > 80
    parser = command_line()
    for text in plain:
        assert parser.parse_args(shlex.split(text)[1:]).command, text


def test_what_one_tutorial_records_is_not_in_the_way_of_the_other():
    """Both are typed in one folder, where a run replaces no recording."""
    recorded = [
        name
        for page in pages(ROOT)
        if "tutorial" in Path(page).parts
        for command in commands_of(ROOT / page)
        for name in re.findall(r"^hil run .*--out (\S+?);?(?:\s|$)", command.text)
    ]
    assert len(recorded) > 8
    assert len(set(recorded)) == len(recorded)


def test_paths_that_a_page_has_the_shell_find_may_have_spaces():
    typed = [command.text for page in pages(ROOT) for command in commands_of(ROOT / page)]
    found = [text for text in typed if "$(which" in text]
    assert found
    for text in found:
        assert '"$(which' in text


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path):
    words = ["--fail-on-warning", "--keep-going", "--quiet", str(ROOT / "docs"), str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Broadcast" in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_every_folder_and_module_that_a_page_names_exists():
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "firmware").glob("*.md")]
    named = [
        (page.name, name)
        for page in pages
        if "generated" not in page.parts and page.name != "CHANGELOG.md"
        for name in re.findall(r"`((?:[\w-]+/)+(?:[\w-]+\.py)?)`", page.read_text(encoding="utf-8"))
        if name.startswith(("hil/", "models/", "views/", "control/", "gui/", "simdaq/", "tests/"))
        and "KIND" not in name
    ]
    assert len(named) > 40
    assert [(page, name) for page, name in named if not (ROOT / name).exists()] == []
