"""./run-tests: its answer to a wrong option, and the tests that --fast chooses."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import changed_tests  # noqa: E402  its folder is no package

TREE = {
    "hil/loop/guard.py": "",
    "hil/loop/frame.py": "",
    "hil/loop/clock.py": "",
    "hil/record/sink.py": "",
    "gui/hil_gui/window.py": "",
    "simdaq/task.py": "",
    "tests/loop/test_guard.py": "",
    "tests/loop/test_guard_mutants.py": "",
    "tests/loop/helper.py": "",
    "tests/record/test_sink.py": "import hil.record.sink\nfrom hil.loop import guard, frame",
    "tests/simdaq/test_task.py": "",
    "tests/gui/test_window.py": "from hil_gui.window import Window",
    "docs/safety.md": "```console\n$ true\n```\n",
    "docs/plain.md": "nothing to type\n",
    "LICENSE": "",
}
LOOP = ["tests/loop/test_guard.py", "tests/loop/test_guard_mutants.py"]
PAGE = "tests/documentation/test_pages.py::test_a_page_is_true[docs/safety.md]"


def write(root, tree):
    for name, text in tree.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def git(root, *words):
    names = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *names, *words], cwd=root, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path):
    write(tmp_path, TREE)
    git(tmp_path, "init", "-b", "main")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "first")
    write(tmp_path, {"LICENSE": "other"})
    git(tmp_path, "commit", "-am", "second")
    return tmp_path


def test_on_main_the_last_commit_counts_until_something_else_has_changed(repository):
    assert changed_tests.changed(repository) == ["LICENSE"]
    write(repository, {"hil/loop/new.py": "", "simdaq/task.py": "x = 1"})
    assert changed_tests.changed(repository) == ["hil/loop/new.py", "simdaq/task.py"]


def test_on_a_branch_all_its_commits_count_and_what_is_not_committed(repository):
    git(repository, "checkout", "-b", "topic")
    for name in ("hil/loop/guard.py", "hil/record/sink.py"):
        write(repository, {name: "x = 1"})
        git(repository, "commit", "-am", name)
    write(repository, {"docs/safety.md": "no command"})
    (repository / "simdaq/task.py").unlink()
    assert changed_tests.changed(repository) == [
        "docs/safety.md",
        "hil/loop/guard.py",
        "hil/record/sink.py",
    ]


@pytest.mark.parametrize(
    ("path", "tests"),
    [
        ("hil/loop/guard.py", [*LOOP, "tests/record/test_sink.py"]),
        ("hil/loop/frame.py", ["tests/record/test_sink.py"]),
        ("hil/loop/clock.py", LOOP),
        ("hil/record/sink.py", ["tests/record/test_sink.py"]),
        ("gui/hil_gui/window.py", ["tests/gui/test_window.py"]),
        ("simdaq/task.py", ["tests/simdaq/test_task.py"]),
        ("tests/loop/test_guard.py", ["tests/loop/test_guard.py"]),
        ("tests/loop/helper.py", LOOP),
        ("docs/safety.md", [PAGE]),
        ("docs/plain.md", []),
        ("LICENSE", []),
    ],
)
def test_a_module_has_the_tests_at_its_place_and_those_that_import_it(tmp_path, path, tests):
    write(tmp_path, TREE)
    assert changed_tests.tests_of(tmp_path, [path]) == {path: tests}


@pytest.fixture
def clone(tmp_path):
    """What ./run-tests needs: an environment that is set up, one test, a mypy that passes."""
    shutil.copyfile(ROOT / "run-tests", tmp_path / "run-tests")
    binaries = f"{tmp_path}/bin:{Path(sys.executable).parent}"
    there = f'set -euo pipefail\ncd "{tmp_path}"\nexport PATH="{binaries}:$PATH"\n'
    there += "have() { true; }\nneed() { true; }\n"
    write(
        tmp_path,
        {
            "scripts/environment": there,
            "pyproject.toml": "",
            "bin/mypy": "#!/bin/sh\ntrue\n",
            "tests/test_one.py": "def test_one():\n    assert True\n",
        },
    )
    (tmp_path / "bin/mypy").chmod(0o755)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--nonsense"], "./run-tests: unrecognized arguments: --nonsense"),
        (["-k"], "./run-tests: argument -k: expected one argument"),
        (["-n0", "-k", "nobody"], "./run-tests: no test fits: -n0 -k nobody"),
        (["tests/nobody.py::test_one"], "./run-tests: no such file: tests/nobody.py"),
        (["tests/nothing"], "./run-tests: no such file: tests/nothing"),
    ],
)
def test_what_it_does_not_know_is_one_line_and_exit_2(clone, words, line):
    done = run(clone, words)
    assert (done.returncode, done.stderr) == (2, f"{line}\n")


NO_COMPILER = (
    "The simulated driver board needs a C compiler; "
    "on Debian: sudo apt-get install gcc libc6-dev make"
)


def without(tmp_path, *missing):
    """A PATH with what the environment's script needs, except these."""
    binaries = tmp_path / "few"
    binaries.mkdir(exist_ok=True)
    needed = {"bash", "dirname", "cat", "sha256sum", "cut", "id", "python3", "cc", "make"}
    for name in needed - set(missing):
        (binaries / name).symlink_to(shutil.which(name))
    return {"PATH": str(binaries)}


def digest(*paths):
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()


@pytest.mark.parametrize(
    ("missing", "line"),
    [
        (
            "python3",
            "Python 3.11 or newer is needed; on Debian: sudo apt-get install python3 python3-pip",
        ),
        ("cc", NO_COMPILER),
        ("make", NO_COMPILER),
    ],
)
def test_a_missing_tool_is_one_line_with_what_to_install(tmp_path, missing, line):
    script, lock, project = (
        tmp_path / name for name in ("scripts/environment", "requirements.lock", "pyproject.toml")
    )
    names = (f"scripts/{name}" for name in ("environment", "debian", "debian-packages"))
    write(tmp_path, {name: (ROOT / name).read_text() for name in names})
    write(tmp_path, {"requirements.lock": "", "pyproject.toml": ""})
    made = {".venv/packages": digest(lock, script), ".venv/project": digest(project)}
    made |= {".venv/extras": ",gui,daq,all", ".venv/inventory": ""}
    write(tmp_path, made)  # an environment that is set up
    done = subprocess.run(
        [shutil.which("bash"), script],
        env=without(tmp_path, missing),
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"{line}\n")


def environment_of(tmp_path, there, inventory=""):
    """A clone with an environment; `uv` is replaced, the interpreter of .venv is nothing."""
    scripts = ("environment", "debian", "debian-packages", "requirements.py")
    names = (*(f"scripts/{name}" for name in scripts), "pyproject.toml", "requirements.lock")
    write(tmp_path, {name: (ROOT / name).read_text() for name in names})
    write(tmp_path, {"firmware/Makefile": "host:"})
    uv = "#!/bin/bash\nfor word; do [[ $word = -* ]] || last=$word; done\necho uv $last >> uv.log\n"
    write(tmp_path, {"few/uv": uv})
    (tmp_path / "few/uv").chmod(0o755)
    environment = without(tmp_path)
    needs_utf8 = f'#!/bin/bash\n[ "$LC_ALL" = C.UTF-8 ] || exit 1\nexec {sys.executable} "$@"\n'
    (tmp_path / "few/python3").unlink()
    write(tmp_path, {"few/python3": needs_utf8})
    (tmp_path / "few/python3").chmod(0o755)
    for name in ("rm", "mkdir", "flock", "grep"):
        (tmp_path / "few" / name).symlink_to(shutil.which(name))
    script, lock, project = (
        tmp_path / name for name in ("scripts/environment", "requirements.lock", "pyproject.toml")
    )
    made = {".venv/packages": digest(lock, script), ".venv/project": digest(project)}
    made |= {".venv/extras": there, ".venv/inventory": inventory}
    write(tmp_path, {**made, ".venv/bin/python": "#!/bin/sh\n"})
    (tmp_path / ".venv/bin/python").chmod(0o755)
    return environment | {"LC_ALL": "C"}


@pytest.mark.parametrize(
    ("there", "asked", "expected"),
    [
        ("", "gui,daq", "add gui,daq: pyqtgraph"),
        (",gui,daq", "gui,daq", "there"),
        (",all", "export", "there"),
        (",gui,daq", "export", "add export: mcap"),
        (",gui,daq", "", "add everything"),
        ("", "windows", "no extra 'windows': choose fast, gui, daq,"),
    ],
)
def test_an_environment_is_filled_with_what_a_command_needs(tmp_path, there, asked, expected):
    environment = environment_of(tmp_path, there)
    words = ["-c", f"extras={asked}; source scripts/environment; echo $LC_ALL > locale"]
    done = subprocess.run(
        ["bash", *words], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode or (tmp_path / "locale").read_text() == "C.UTF-8\n"
    said, asked_of_uv = done.stdout + done.stderr, tmp_path / "uv.log"
    if expected == "there":
        assert (done.returncode, said, asked_of_uv.exists()) == (0, "", False)
    elif expected == "add everything":
        assert asked_of_uv.read_text() == "uv requirements.lock\n"
        assert (tmp_path / ".venv/extras").read_text() == ",gui,daq,all\n"
    elif expected.startswith("add"):
        assert asked_of_uv.read_text() == "uv .venv/requirements.txt\n"
        wanted = (tmp_path / ".venv/requirements.txt").read_text()
        assert f"\n{expected.rpartition(' ')[2]}==" in wanted
        assert "--hash=sha256:" in wanted
        assert "\npyparsing==" in wanted  # which matplotlib brings with it
        assert "sphinx==" not in wanted
        assert (tmp_path / ".venv/extras").read_text() == f"{there},{asked}\n"
    else:
        assert done.returncode == 2
        assert expected in done.stderr


PIP = """
import shutil, sys
words = sys.argv[1:]
if words == ["config", "list"]:
    print(SETTING)
elif "install" in words:
    with open("pip.log", "a") as log:
        print("pip", words[-1], file=log)
    if words[-1] == ".venv/uv.txt":
        shutil.copy("uv", ".venv/bin/uv")
"""


@pytest.mark.parametrize(
    ("setting", "installers"),
    [
        ("global.timeout='60'", ["pip .venv/uv.txt", "uv .venv/requirements.txt"]),
        ("global.index-url='https://mirror/simple'", ["pip .venv/requirements.txt"]),
        (":env:.no-index='1'", ["pip .venv/requirements.txt"]),
    ],
)
def test_pip_fetches_uv_unless_it_has_an_index_that_uv_does_not_know(tmp_path, setting, installers):
    environment = environment_of(tmp_path, "")
    (tmp_path / "few/uv").rename(tmp_path / "uv")
    write(tmp_path, {"modules/pip.py": PIP.replace("SETTING", repr(setting))})
    environment["PYTHONPATH"] = str(tmp_path / "modules")
    first = source(tmp_path, environment)
    assert "needed" not in first.communicate()[0]
    assert first.returncode == 0
    logs = [tmp_path / name for name in ("pip.log", "uv.log")]
    assert "".join(log.read_text() for log in logs if log.exists()).splitlines() == installers
    if len(installers) == 2:
        assert (tmp_path / ".venv/uv.txt").read_text().startswith("uv==")
        assert (tmp_path / ".venv/uv.txt").read_text().count("==") == 1


def source(tmp_path, environment, then=":"):
    words = ["-c", f"extras=gui,daq; source scripts/environment; {then}"]
    return subprocess.Popen(
        ["bash", *words], cwd=tmp_path, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def test_an_environment_whose_installation_was_killed_is_made_again(tmp_path):
    environment = environment_of(tmp_path, ",gui,daq")
    killed = "#!/bin/bash\nkill -9 $PPID\n"
    working = (tmp_path / "few/uv").read_text()
    write(tmp_path, {"few/uv": killed, "pyproject.toml": "[project]\n"})
    first = source(tmp_path, environment)
    first.communicate()
    assert first.returncode == -9
    write(tmp_path, {"few/uv": working})
    (tmp_path / ".venv/project").write_text(digest(tmp_path / "pyproject.toml"))
    again = source(tmp_path, environment)
    said = again.communicate()[0].splitlines()
    assert said[0] == "Parts of .venv are missing: it is made again."


@pytest.mark.parametrize("removed", [".venv/lib/python3/site-packages/numpy", ".venv/inventory"])
def test_an_environment_of_which_parts_were_removed_is_made_again(tmp_path, removed):
    inventory = ".venv/bin/python\n.venv/lib/python3/site-packages/numpy\n"
    environment = environment_of(tmp_path, ",gui,daq", inventory)
    write(tmp_path, {".venv/lib/python3/site-packages/numpy/core.py": ""})
    whole = source(tmp_path, environment)
    assert (whole.communicate()[0], whole.returncode) == ("", 0)
    place = tmp_path / removed
    shutil.rmtree(place) if place.is_dir() else place.unlink()
    made_again = source(tmp_path, environment)
    said = made_again.communicate()[0].splitlines()
    assert said[0] == "Parts of .venv are missing: it is made again."
    assert "uv .venv/requirements.txt" in (tmp_path / "uv.log").read_text()
    again = source(tmp_path, environment)
    assert (again.communicate()[0], again.returncode) == ("", 0)


def test_a_second_set_up_of_a_clone_waits_for_the_first(tmp_path):
    environment = environment_of(tmp_path, "")
    folder = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    second = source(tmp_path, environment, then="flock --nonblock . id -u")
    try:
        assert "waiting" in second.stdout.readline()
        with pytest.raises(subprocess.TimeoutExpired):
            second.wait(timeout=1.0)
        assert not (tmp_path / "uv.log").exists()
    finally:
        os.close(folder)
    said = second.communicate(timeout=60)[0].splitlines()
    assert said[0] == "Setting up .venv with gui,daq (once) ..."
    assert said[-1] == str(os.getuid())  # nobody holds it any more


def test_without_git_the_choice_of_tests_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit) as ended:
        changed_tests.changed(tmp_path)
    assert ended.value.code == (
        "./run-tests --fast: git is needed; on Debian: sudo apt-get install git"
    )


def test_where_nothing_is_wrong_it_passes_and_shows_the_slowest(clone):
    done = run(clone, ["-n0"])
    assert done.returncode == 0
    assert "1 passed" in done.stdout
    assert "slowest 30 durations" in done.stdout


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("tests/test_one.py", "def test_one():\n    assert not True\n"),
        ("tests/test_one.py", "import os\n\n\ndef test_one():\n    assert True\n"),
        ("tests/test_one.py", "def test_one( ):\n    assert True\n"),
        ("bin/mypy", "#!/bin/sh\necho a wrong type\nexit 1\n"),
    ],
)
def test_a_fault_of_a_test_of_style_of_format_or_of_types_fails(clone, path, text):
    (clone / path).write_text(text)
    assert run(clone, ["-n0", "-k", "one"]).returncode == 1


def run(clone, words):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
    environment |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "xdist.plugin"}
    return subprocess.run(
        ["bash", "run-tests", *words], cwd=clone, env=environment, capture_output=True, text=True
    )


KERNEL = """
from numba import njit

@njit(cache=True)
def half(x):
    return x / 2
"""
COMPILES = """
import sys
from pathlib import Path
from compile_once import share_compilations
from kernel import half
share_compilations(Path("locks"))
print("ready", flush=True)
input()
half(1.0)
half(2)
print(sum(half.stats.cache_misses.values()), sum(half.stats.cache_hits.values()))
"""


@pytest.mark.slow
def test_a_kernel_that_two_processes_need_at_once_is_compiled_by_one(tmp_path):
    (tmp_path / "kernel.py").write_text(KERNEL)
    paths = os.pathsep.join([str(tmp_path), str(ROOT / "tests")])
    started = [
        subprocess.Popen([sys.executable, "-c", COMPILES], cwd=tmp_path, text=True,
                         env=os.environ | {"PYTHONPATH": paths}, stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE)
        for _ in range(2)
    ]  # fmt: skip
    assert [process.stdout.readline() for process in started] == ["ready\n"] * 2
    for process in started:
        process.stdin.write("\n")
        process.stdin.flush()
    counts = [tuple(map(int, process.communicate(timeout=600)[0].split())) for process in started]
    misses, hits = zip(*counts, strict=True)
    assert (sum(misses), sum(hits)) == (2, 2)
