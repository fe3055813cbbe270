"""Writer, readers and windows of a tap in any order, against plain lists."""

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from hil.errors import DeviceError
from hil.loop import tap as taps
from hil.loop.states import STATES

ROW = np.dtype([("n", "<i8"), ("x", "<f8"), ("m", "<i8")])
N_READERS_MAX = 4


def rows_of(first, n):
    rows = np.zeros(n, dtype=ROW)
    rows["n"] = np.arange(first, first + n)
    rows["x"], rows["m"] = 0.5 * rows["n"], -rows["n"]
    return rows


class Raced:
    """A ring's rows, during whose copy the writer goes on; what it is writing is half a row."""

    def __init__(self, rows, meanwhile):
        self._rows, self._meanwhile = rows, meanwhile

    def __getitem__(self, picked):
        self._meanwhile()
        return self._rows[picked]


class Reader:
    """A process that has mapped the tap, with the number of rows it has seen of each ring."""

    def __init__(self, path, seen):
        self.tap = taps.attach(path, read_only=True)
        self.rings = {"ticks": self.tap.ticks, "raw": self.tap.raw["daq"]}
        self.seen = dict(seen)


class TapInAnyOrder(RuleBasedStateMachine):
    """The model: how many rows each ring has had, requests in order, and the words as written."""

    @initialize(capacity=st.integers(1, 12), raw_capacity=st.integers(1, 40))
    def begin(self, capacity, raw_capacity):
        self.tap = taps.create(ROW, capacity, {"daq": (ROW, raw_capacity)})
        self.window = taps.Requests(self.tap.path)
        self.rings = {"ticks": self.tap.ticks, "raw": self.tap.raw["daq"]}
        self.capacity = {"ticks": capacity, "raw": raw_capacity}
        # of samples, an eighth of the ring may be under the writer's hand
        self.at_once = {"ticks": 1, "raw": max(1, raw_capacity // 8)}
        self.written = {"ticks": 0, "raw": 0}
        self.readers = []
        self.waiting, self.n_sent, self.n_taken = [], 0, 0
        self.words = {"state": "off", "recorded": 0, "lost": 0}

    def push(self, name, n):
        rows = rows_of(self.written[name], n)
        if name == "raw":
            self.rings[name].push_many(rows)
        else:
            for k in range(n):
                self.rings[name].push(rows[k : k + 1])
        self.written[name] += n

    @rule(name=st.sampled_from(("ticks", "raw")), n=st.integers(0, 90))
    def write(self, name, n):
        self.push(name, n)

    @precondition(lambda self: len(self.readers) < N_READERS_MAX)
    @rule(late=st.booleans())
    def attach(self, late):
        """A late reader wants all rows; another one begins with the next."""
        self.readers.append(Reader(self.tap.path, {"ticks": 0, "raw": 0} if late else self.written))

    @precondition(lambda self: self.readers)
    @rule(data=st.data(), name=st.sampled_from(("ticks", "raw")), raced=st.integers(0, 30))
    def read(self, data, name, raced):
        """Every row that was written before the call, or their number if they are lost."""
        reader = data.draw(st.sampled_from(self.readers), label="reader")
        ring, before = reader.rings[name], self.written[name]

        def meanwhile():
            self.push(name, raced)
            for k in range(self.at_once[name]):  # a row is under the writer's hand
                slot = (self.written[name] + k) % self.capacity[name]
                self.rings[name]._bytes[slot] = 255

        kept = ring._rows
        if raced:
            ring._rows = Raced(kept, meanwhile)
        rows, lost = ring.read(reader.seen[name])
        ring._rows = kept
        first = reader.seen[name] + lost
        end = max(before, first)
        np.testing.assert_array_equal(rows, rows_of(first, end - first))
        safe = self.written[name] + self.at_once[name] - self.capacity[name]
        assert lost == max(0, safe - reader.seen[name])
        reader.seen[name] = end

    @rule(n=st.integers(1, 120))
    def ask(self, n):
        """A full ring refuses and overwrites nothing."""
        room = self.tap.requests.capacity - 1 - len(self.waiting)
        for _ in range(min(n, room)):
            assert self.window.send("note", float(self.n_sent), f"of {self.n_sent}") == (
                self.n_sent + 1
            )
            self.waiting.append(("note", float(self.n_sent), f"of {self.n_sent}"))
            self.n_sent += 1
        if n > room:
            with pytest.raises(DeviceError, match="reads no requests"):
                self.window.send("note")

    @rule()
    def take(self):
        assert self.tap.take_requests() == self.waiting
        self.n_taken += len(self.waiting)
        self.waiting = []

    @rule()
    def change_window(self):
        self.window.close()
        self.window = taps.Requests(self.tap.path)

    @rule(state=st.sampled_from(STATES), recorded=st.integers(0, 2**40), lost=st.integers(0, 2**40))
    def tell(self, state, recorded, lost):
        self.words = {"state": state, "recorded": recorded, "lost": lost}
        for name, value in self.words.items():
            setattr(self.tap, name, value)

    @invariant()
    def everybody_sees_the_same_counts_and_words(self):
        for tap in (self.tap, *(reader.tap for reader in self.readers)):
            assert {name: getattr(tap, name) for name in self.words} == self.words
            assert (tap.ticks.written, tap.raw["daq"].written) == tuple(self.written.values())
            assert (tap.requests.written, tap.taken) == (self.n_sent, self.n_taken)
            assert not tap.closed
        assert self.window.taken == self.n_taken

    def teardown(self):
        if hasattr(self, "tap"):
            self.window.close()
            self.tap.unlink()


@pytest.mark.hypothesis
def test_whatever_writer_readers_and_windows_do_no_row_is_wrong_or_lost_unseen(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(taps, "_folder", lambda: tmp_path)
    run_state_machine_as_test(TapInAnyOrder)
