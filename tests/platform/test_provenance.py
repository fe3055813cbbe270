"""What a recording says of the software that made it."""

import os
import subprocess

import pytest

from hil.platform import provenance


@pytest.fixture
def forgotten():
    provenance._checkout.cache_clear()
    yield
    provenance._checkout.cache_clear()


@pytest.mark.parametrize(
    "error", [subprocess.TimeoutExpired("git", 10.0), FileNotFoundError("git")]
)
def test_a_git_that_did_not_answer_is_asked_again_for_the_next_run(forgotten, monkeypatch, error):
    answers = iter([error, "c0ffee", ""])

    def git(root, *words):
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(provenance, "_git", git)
    assert "commit" not in provenance.software()
    assert provenance.software()["commit"] == "c0ffee"
    assert provenance.software()["dirty"] is False  # git is not asked a third time


def test_a_look_at_a_checkout_leaves_its_index_alone(tmp_path):
    """Else git writes it anew, under a lock that stays if git is killed."""
    git = ["git", "-C", str(tmp_path), "-c", "user.name=I", "-c", "user.email=i@here"]
    (tmp_path / "a").write_text("a")
    for words in (["init", "-q"], ["add", "a"], ["commit", "-qm", "one"]):
        subprocess.run([*git, *words], check=True)
    os.utime(tmp_path / "a", (1.0, 1.0))  # git compares its content
    before = (tmp_path / ".git/index").read_bytes()
    assert provenance._git(tmp_path, "status", "--porcelain") == ""
    assert (tmp_path / ".git/index").read_bytes() == before
