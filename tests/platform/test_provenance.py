"""What a recording says of the software that made it."""

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
