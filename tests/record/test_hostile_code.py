"""Code inside a recording runs only where somebody here has run or read it."""

import ast
import hashlib
import os
import re
import shutil
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import h5py
import numpy as np
import pytest
import tomli_w

import hil
from hil.__main__ import main
from hil.errors import ConfigError
from hil.plugins import trust
from hil.record.checksums import write_checksums
from hil.record.layout import LIBVER
from hil.runs.kept_code import config_of
from record.openers import OPENERS, refused, refused_lines, words_of

EVIL = """\
from pathlib import Path
Path({mark!r}).write_text("it ran")
import numpy as np
class Nothing:
    def __init__(self, facts, values):
        self.n = len(facts.cells)
    def step(self, now):
        return np.zeros(self.n)
"""


@pytest.fixture
def state(tmp_path, monkeypatch):
    """A user's state of their own: nothing is trusted."""
    folder = tmp_path / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    return folder / "hil" / "trusted"


def gift(configs, folder, mark):
    """An experiment with a controller of its own, which leaves a mark when it runs."""
    folder.mkdir()
    (folder / "mine.py").write_text(EVIL.format(mark=str(mark)))
    (folder / "mine.toml").write_text(
        f'rig = "{configs / "miga6/rig.toml"}"\n[experiment]\nname = "gift"\nduration_s = 0.3\n'
        '[reference]\nkind = "steps"\nt_s = [0.1]\nforce_N = [1.0]\n'
        '[controller]\nkind = "mine.py:Nothing"\n'
    )
    return folder / "mine.toml"


@pytest.fixture(scope="module")
def sent(configs, tmp_path_factory):
    """Somebody else's recording; not to be changed."""
    folder = tmp_path_factory.mktemp("sent")
    with pytest.MonkeyPatch.context() as elsewhere:
        elsewhere.setenv("XDG_STATE_HOME", str(folder / "state"))
        hil.run(gift(configs, folder / "theirs", folder / "mark"), out=folder / "run.h5")
    return folder / "run.h5"


@pytest.fixture
def mailed(sent, tmp_path, state):
    """Their recording, and the mark that its code leaves, which is this test's own."""
    path, mark = tmp_path / "mailed" / "run.h5", tmp_path / "mark"
    path.parent.mkdir()
    shutil.copyfile(sent, path)
    source = EVIL.format(mark=str(mark))
    keep(path, source)
    with h5py.File(path, "r+", libver=LIBVER) as file:
        file["own/controller"].attrs["sha256"] = hashlib.sha256(source.encode()).hexdigest()
        write_checksums(file)
    return path, mark


RUNS_CODE = {
    "replay": OPENERS["replay"],
    "identify": OPENERS["identify"],
    "validate": OPENERS["validate"],
    "recalibrate": OPENERS["recalibrate"],
}


@pytest.mark.slow_beyond(3)
@pytest.mark.parametrize("opener", OPENERS)
def test_code_inside_a_recording_is_not_run_by_whoever_opens_it(opener, mailed, configs, capsys):
    path, mark = mailed
    code = main([str(word) for word in words_of(opener, path, configs)])
    printed = capsys.readouterr()
    assert not mark.exists()
    assert code == (2 if opener in RUNS_CODE else 0)
    if opener in RUNS_CODE:
        source = EVIL.format(mark=str(mark))
        sha256 = hashlib.sha256(source.encode()).hexdigest()
        assert printed.err.startswith(f"{path}: contains Python code that is not trusted")
        assert f"mine.py for controller, sha256 {sha256}" in printed.err
        assert "with theirs/mine.toml, as the file states" in printed.err
        assert f"hil replay {path} --show-code" in printed.err
        assert f"hil replay {path} --trust {sha256}" in printed.err


def test_trust_is_given_to_a_hash_once_and_kept_for_this_user_alone(mailed, state, capsys):
    path, mark = mailed
    assert main(["replay", str(path), "--show-code"]) == 0
    shown = capsys.readouterr().out
    assert EVIL.format(mark=str(mark)) in shown
    sha256 = shown.split("sha256 ")[1][:64]
    assert not mark.exists()
    assert main(["replay", str(path), "--trust", "0" * 64]) == 2
    assert f"contains no code with that hash: {sha256}" in capsys.readouterr().err
    assert not mark.exists()
    assert main(["replay", str(path), "--trust", sha256]) == 0
    assert mark.read_text() == "it ran"
    assert main(["replay", str(path)]) == 0  # from now on
    assert state.read_text().startswith(f"{sha256} ")
    assert stat.S_IMODE(state.stat().st_mode) == 0o600
    assert stat.S_IMODE(state.parent.stat().st_mode) == 0o700


def test_a_home_that_takes_no_file_is_one_line_with_its_remedy(monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/none")
    with pytest.raises(ConfigError, match=r"cannot be written .* in XDG_STATE_HOME$"):
        trust.trust("0" * 64, "mine.py, by hand")


def test_the_hash_is_that_of_the_code_not_the_one_that_the_file_states(mailed, state, capsys):
    path, mark = mailed
    harmless = "0" * 63 + "1"
    state.parent.mkdir(parents=True)
    state.write_text(f"{harmless} somebody trusts this\n")
    state.chmod(0o600)
    with h5py.File(path, "r+", libver=LIBVER) as file:
        file["own/controller"].attrs["sha256"] = harmless
    assert harmless not in refused_lines(["replay", path], capsys)[0]
    assert not mark.exists()


def test_a_list_of_trust_that_others_may_write_is_not_believed(mailed, state, capsys):
    path, mark = mailed
    sha256 = hashlib.sha256(EVIL.format(mark=str(mark)).encode()).hexdigest()
    state.parent.mkdir(parents=True)
    state.write_text(f"{sha256} put here by somebody\n")
    for mode in (0o666, 0o620):
        state.chmod(mode)
        assert "others may have written it" in refused(["replay", path], capsys)
    state.chmod(0o600)
    os.chown(state, 12345, -1)
    assert "others may have written it" in refused(["replay", path], capsys)
    state.unlink()
    state.symlink_to(path)
    assert "cannot be read" in refused(["replay", path], capsys)
    assert not mark.exists()


def sound_list(state, mailed):
    """The mailed code's hash where it would be believed."""
    source = EVIL.format(mark=str(mailed[1]))
    state.parent.mkdir(parents=True, mode=0o700)
    state.write_text(f"{hashlib.sha256(source.encode()).hexdigest()} put here by somebody\n")
    state.chmod(0o600)


def folder_of_all(state):
    state.parent.chmod(0o777)


def folder_of_another(state):
    os.chown(state.parent, 12345, -1)


def folder_that_is_a_link(state):
    state.parent.rename(state.parents[1] / "elsewhere")
    state.parent.symlink_to(state.parents[1] / "elsewhere")


def hard_link(state):
    os.link(state, state.parents[1] / "another name")


def pipe(state):
    state.unlink()
    os.mkfifo(state, 0o600)


def longer_word(state):
    state.write_text(f"{state.read_text()[:64]}0 another hash\n")


STORES = {
    folder_of_all: "others may have written it",
    folder_of_another: "others may have written it",
    folder_that_is_a_link: "is not a folder",
    hard_link: "has a second name",
    pipe: "is not a regular file",
    longer_word: "contains Python code that is not trusted",
}


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize("attack", STORES, ids=lambda attack: attack.__name__)
def test_hashes_where_somebody_else_can_put_them_are_not_believed(attack, mailed, state, capsys):
    sound_list(state, mailed)
    attack(state)
    assert STORES[attack] in refused_lines(["replay", mailed[0]], capsys)[0]
    assert not mailed[1].exists()


def keep(path, source):
    with h5py.File(path, "r+", libver=LIBVER) as file:
        kept = dict(file["own/controller"].attrs)
        del file["own/controller"]
        file["own/controller"] = np.frombuffer(source.encode(), dtype=np.uint8)
        file["own/controller"].attrs.update(kept)


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize("hidden", ["\r", "\u202e", "\u2028", "\u200b", "\x1b"])
def test_code_that_is_not_what_it_looks_like_gets_no_trust(hidden, mailed, capsys):
    """A carriage return ends a comment for Python, and for hardly any reader."""
    path, mark = mailed
    source = f"# a comment{hidden}open({str(mark)!r}, 'w')\n" + EVIL.format(mark=str(mark))
    keep(path, source)
    sha256 = hashlib.sha256(source.encode()).hexdigest()
    line = refused(["replay", path, "--trust", sha256], capsys)
    assert f"line 1 has the character U+{ord(hidden):04X}" in line
    assert not mark.exists()


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize("change", [" ", "\n", "\ufeff", "\t"])
def test_code_that_differs_by_a_space_is_other_code(change, mailed, state, capsys):
    path, mark = mailed
    sound_list(state, mailed)
    source = EVIL.format(mark=str(mark))
    for other in (source + change, change + source, source.replace("\n", "\r\n")):
        keep(path, other)
        assert "is not trusted: none" in refused_lines(["replay", path], capsys)[0]
    assert not mark.exists()


def test_what_runs_is_the_text_whose_hash_was_looked_at(mailed, state, monkeypatch):
    """Not the file that traces point at, which may be exchanged in between."""
    path, mark = mailed
    sound_list(state, mailed)
    write = Path.write_text

    def exchanged(self, text, *args, **options):
        if self.name == "mine.py":
            text = text.replace("it ran", "exchanged")
        return write(self, text, *args, **options)

    monkeypatch.setattr(Path, "write_text", exchanged)
    config_of(path, hil.open_run(path))
    monkeypatch.undo()
    assert mark.read_text() == "it ran"


@pytest.fixture
def unpacked_folder(hostile):
    """A folder with a recording, modules of known names, and a package that offers a controller."""
    mark = hostile.parent / "mark"
    for name in ("h5py", "numpy", "helper", "lab"):
        (hostile.parent / f"{name}.py").write_text(EVIL.format(mark=str(mark)))
    info = hostile.parent / "lab-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lab\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[hil.controllers]\nlab = lab:Nothing\n")
    return hostile.parent, mark


def run_there(folder, *words):
    return subprocess.run(
        [sys.executable, "-m", "hil", *words], cwd=folder, capture_output=True, text=True,
        timeout=600, check=False,
    )  # fmt: skip


@pytest.mark.slow
def test_modules_and_entry_points_beside_a_recording_are_not_imported(unpacked_folder):
    """`python -m` puts the working folder first on the path."""
    folder, mark = unpacked_folder
    with h5py.File(folder / "run.h5", "r+", libver=LIBVER) as file:
        table = tomllib.loads(file.attrs["experiment"])
        table["controller"] = {"kind": "lab"}
        table["reference"] = {"kind": "steps", "t_s": [0.1], "force_N": [1.0]}
        file.attrs["experiment"] = tomli_w.dumps(table)
    done = run_there(folder, "replay", "run.h5")
    assert done.returncode == 2, done.stderr
    assert "controller" in done.stderr
    assert not mark.exists()
    done = run_there(folder, "replay", "run.h5", "--code", "lab")
    assert "no installed module of that name" in done.stderr
    assert not mark.exists()


def test_the_recorder_of_a_run_imports_nothing_from_beside_a_recording(unpacked_folder, configs):
    folder, mark = unpacked_folder
    (folder / "psutil.py").write_text(EVIL.format(mark=str(mark)))
    run = str(configs / "miga6/all_on.toml")
    done = run_there(folder, "run", run, "--duration", "0.1", "--out", "mine.h5")
    assert done.returncode == 0, done.stderr
    assert not mark.exists()


def test_processes_of_hil_are_started_without_the_working_folder_on_their_path(configs):
    """Through `hil.platform.processes.PYTHON`, which has `-P`."""
    root = configs.parent
    paths = [*(root / "hil").rglob("*.py"), *(root / "gui").rglob("*.py")]
    with_it = {str(p.relative_to(root)) for p in paths if "sys.executable" in p.read_text()}
    assert with_it == {"hil/platform/processes.py"}


@pytest.mark.slow
def test_a_second_module_that_code_imports_is_not_taken_from_beside_the_recording(
    mailed, unpacked_folder
):
    path, _ = mailed
    folder, mark = unpacked_folder
    source = "import helper\n" + EVIL.format(mark=str(folder / "trusted ran"))
    keep(path, source)
    done = run_there(folder, "replay", str(path),
                     "--trust", hashlib.sha256(source.encode()).hexdigest())  # fmt: skip
    assert done.returncode == 2
    assert "No module named 'helper'" in done.stderr
    assert not mark.exists()


@pytest.mark.slow
def test_what_this_user_ran_here_replays_without_a_question(configs, mailed, state, tmp_path):
    _, mark = mailed
    hil.run(gift(configs, tmp_path / "mine", mark), out=tmp_path / "again.h5")
    mark.unlink()
    assert main(["replay", str(tmp_path / "again.h5")]) == 0
    assert mark.exists()
    assert stat.S_IMODE(state.stat().st_mode) == 0o600


def test_code_may_come_from_a_file_that_the_user_names(mailed, tmp_path, capsys):
    path, mark = mailed
    mine = tmp_path / "mine.py"
    mine.write_text(EVIL.format(mark=str(mark)).replace('"it ran"', '"mine ran"'))
    assert main(["replay", str(path), "--code", str(mine)]) == 0
    printed = capsys.readouterr()
    assert mark.read_text() == "mine ran"
    assert f"--code {mine}: differs from the recorded code: sha256 " in printed.err
    assert printed.out == f"{path}: identical in 300 rows\n"
    mark.unlink()
    assert "--code no.py: cannot be read" in refused(["replay", path, "--code", "no.py"], capsys)
    assert refused_lines(["replay", path], capsys)[0].startswith(f"{path}: contains Python code")
    assert not mark.exists()


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize(
    "kind", ["evil.py:Nothing", "../evil.py:Nothing", "{folder}/evil.py:Nothing"]
)
def test_a_file_beside_the_recording_or_at_a_path_that_it_names_is_not_run(
    kind, hostile, tmp_path, configs, capsys, state
):
    """As when a folder of recordings is unpacked, and hil identify run on one of them."""
    mark, kind = tmp_path / "mark", kind.format(folder=hostile.parent)
    for folder in (hostile.parent, tmp_path):
        (folder / "evil.py").write_text(EVIL.format(mark=str(mark)))
    with h5py.File(hostile, "r+", libver=LIBVER) as file:
        table = tomllib.loads(file.attrs["experiment"])
        table["controller"] = {"kind": kind}
        table["reference"] = {"kind": "steps", "t_s": [0.1], "force_N": [1.0]}
        file.attrs["experiment"] = tomli_w.dumps(table)
    for opener in RUNS_CODE:
        assert main([str(word) for word in words_of(opener, hostile, configs)]) == 2
        assert "keeps no source of it, and no other file is run" in capsys.readouterr().err
    assert not mark.exists()


def test_no_module_makes_code_or_objects_of_data_but_the_one_for_code_of_ones_own(configs):
    """No pickle, no eval, no loader that builds objects: calibrations and logs are values."""
    package, found = configs.parent / "hil", set()
    makes = r"pickle|shelve|marshal$|yaml|torch|joblib|dill"
    for path in [*package.rglob("*.py"), *(configs.parent / "gui").rglob("*.py")]:
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if re.search(rf"eval|exec|{makes}", text) else ():
            name = ""
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func)
                allowed = [k.value for k in node.keywords if k.arg == "allow_pickle"]
                if any(getattr(value, "value", True) for value in allowed):
                    name = "pickle"
            elif isinstance(node, ast.Import | ast.ImportFrom):
                name = " ".join([getattr(node, "module", "") or "", *(a.name for a in node.names)])
            if re.search(rf"^(eval|exec)$|{makes}", name):
                found.add((str(path.relative_to(configs.parent)), name))
    found = {(path, name) for path, name in found if "simdaq" not in path}
    assert found == {
        # an error of Numba's own cache
        ("hil/kernel_cache.py", "pickle UnpicklingError"),
        # Dask's own way of sending calls to the workers of a cluster
        ("hil/platform/parallel.py", " pickle"),
        ("hil/platform/parallel.py", "distributed.protocol.pickle dumps"),
        ("hil/plugins/load.py", "exec"),
        ("hil/reports/citation.py", " yaml"),
        ("hil/reports/citation.py", "yaml.safe_load"),  # builds plain values only
    }
