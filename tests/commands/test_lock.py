"""The lock is of today's requirements, and every file that it names has a hash."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import lock  # noqa: E402  its folder is no package


def test_the_committed_lock_is_current():
    assert lock.problem(ROOT) == ""


@pytest.fixture
def project(tmp_path):
    (tmp_path / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    (tmp_path / lock.LOCK).write_bytes((ROOT / lock.LOCK).read_bytes())
    return tmp_path


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("pyproject.toml", '"h5py>=3.11"', '"h5py>=3.12"', "is not of today's pyproject.toml"),
        ("pyproject.toml", '"pytest-qt>=4.5"', '"pytest-qt>=4.6"', "is not of today's pyproject"),
        (lock.LOCK, "SHA-256", "SHA", "is not of today's pyproject.toml: scripts/lock"),
        (lock.LOCK, "h5py==", "unhashed==1.0\nh5py==", "unhashed==1.0 has no hash: scripts/lock"),
    ],
)
def test_a_lock_that_is_not_current_is_one_line(project, file, old, new, said):
    path = project / file
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))
    assert lock.problem(project).startswith(f"{lock.LOCK}: {said}")


def test_what_is_not_required_makes_no_lock_old(project):
    path = project / "pyproject.toml"
    path.write_text(path.read_text().replace("line-length = 100", "line-length = 99"))
    assert lock.problem(project) == ""
