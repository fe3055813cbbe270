"""A campaign's ledger: started, ended, killed at any byte and resumed, against a dict."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from hil.record.append_log import AppendLog, read_log
from hil.runs.campaign.journal import JOURNAL, progress_of, read_progress

TRIALS = range(1, 6)
TRIAL = st.sampled_from(TRIALS)
PLAN = [{"trial": trial, "duration_s": 1.0} for trial in TRIALS]


class Ledger(RuleBasedStateMachine):
    """The model: what is known of every trial, after each line of the file."""

    def __init__(self, folder):
        super().__init__()
        self.folder = folder

    @initialize()
    def begin(self):
        self.path = self.folder / JOURNAL
        self.path.unlink(missing_ok=True)
        self.log = AppendLog(self.path)
        self.settled, self.attempts, self.open = {}, {}, {}
        self.past = []  # the model and the file's size after every line
        self.write({"kind": "campaign", "plan": PLAN})

    def write(self, line):
        self.log.add(line)
        model = (dict(self.settled), dict(self.attempts), dict(self.open))
        self.past.append((self.path.stat().st_size, model))

    @rule(trial=TRIAL)
    def start(self, trial):
        if trial in self.settled or trial in self.open:
            return
        self.attempts[trial] = self.attempts.get(trial, 0) + 1
        self.open[trial] = f"{trial} {self.attempts[trial]}"
        self.write(
            {
                "kind": "begin", "trial": trial, "attempt": self.attempts[trial],
                "utc": self.open[trial], "file": f"trials/{trial}.h5",
            }
        )  # fmt: skip

    @precondition(lambda self: self.open)
    @rule(data=st.data(), outcome=st.sampled_from(("complete", "tripped", "aborted", "failed")))
    def finish(self, data, outcome):
        trial = data.draw(st.sampled_from(sorted(self.open)))
        del self.open[trial]
        if outcome == "complete":
            self.settled[trial] = "complete"
        self.write({"kind": "end", "trial": trial, "outcome": outcome, "utc": "later"})

    @rule(trial=TRIAL, why=st.text(max_size=5))
    def leave_out(self, trial, why):
        if trial not in self.open and trial not in self.settled:
            self.settled[trial] = why
            self.write({"kind": "skip", "trial": trial, "why": why})

    @rule(lines=st.integers(0, 2), cut=st.integers(0, 400))
    def kill_and_resume(self, lines, cut):
        """The end of the file is lost at any byte; what was cut off is open and is repeated."""
        self.log.__exit__()
        del self.past[max(1, len(self.past) - lines) :]
        size_B, (settled, attempts, opened) = self.past[-1]
        data = self.path.read_bytes()
        following = data.find(b"\n", size_B) + 1 or len(data)
        self.path.write_bytes(data[: min(size_B + cut, max(size_B, following - 1))])
        self.settled, self.attempts, self.open = dict(settled), dict(attempts), dict(opened)
        self.log = AppendLog(self.path)
        assert self.path.stat().st_size == size_B
        for trial in sorted(self.open):
            del self.open[trial]
            self.write({"kind": "cut", "trial": trial, "outcome": "cut"})

    @invariant()
    def the_file_says_what_the_model_says(self):
        if not hasattr(self, "past"):
            return
        for p in (read_progress(self.folder), progress_of(self.log.entries)):
            assert p.settled == self.settled
            assert p.attempts == self.attempts
            assert {trial: line["utc"] for trial, line in p.open.items()} == self.open
            assert p.left == [trial for trial in TRIALS if trial not in self.settled]
            assert p.n_complete == list(self.settled.values()).count("complete")
        assert len(read_log(self.path)) == len(self.past)

    def teardown(self):
        if hasattr(self, "log"):
            self.log.__exit__()


@pytest.mark.hypothesis
def test_killed_at_any_byte_a_campaign_goes_on_with_what_was_not_settled(tmp_path, monkeypatch):
    monkeypatch.setattr("hil.record.append_log.os.fsync", lambda number: None)
    fewer = settings(max_examples=settings().max_examples // 3)
    run_state_machine_as_test(lambda: Ledger(tmp_path), settings=fewer)
