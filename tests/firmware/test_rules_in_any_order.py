"""The board against its rules as firmware/README.md and protocol.h state them, in any order.

Where the text gives a bound and no moment, the reference allows a fault before it and demands it
after. What the text leaves open, such as which of two reasons a refusal names, is not compared.
"""

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

from firmware.boards import ON_COUNTS, NativeBoard
from hil.devices.board import protocol

CELLS = st.integers(0, 11)
MASKS = st.lists(CELLS, max_size=6).map(lambda cells: sum({1 << cell for cell in cells}))
EVERY = 0xFFF
FOUND_MS = 25  # two readings of a cell, of which one is read every 250 us (firmware/README.md)
SUPPLY_MS = 40  # until the supply has been read twice or thrice: at every fourth round
PERMIT_MS = 400  # for which an arming that is not asked for again keeps relay K1 closed
SLACK_MS = 5  # a check of a cell acts in the scan, whose round takes 3.25 ms
SPOILT = {
    "short": {"on": 1023}, "open": {"on": 0}, "leak": {"off": 900}, "hot": {"temperature": 300},
}  # fmt: skip
SEEN_AS = {
    "short": "current_high", "open": "current_low", "leak": "current_when_off",
    "hot": "temperature_high",
}  # fmt: skip


class Rules(RuleBasedStateMachine):
    """The reference: state, faults, wires, commanded cells, and since when."""

    def __init__(self, lib):
        super().__init__()
        self.board = NativeBoard(lib)

    @initialize(
        silence_ms=st.integers(10, 100), hold_ms=st.integers(10, 100), most=st.integers(1, 12),
        on_ms=st.integers(5, 150),
    )  # fmt: skip
    def begin(self, silence_ms, hold_ms, most, on_ms):
        limits = {
            "silence_max_ms": silence_ms, "hold_max_ms": hold_ms, "cells_on_max": most,
            "on_time_max_ms": on_ms,
        }  # fmt: skip
        self.board.limit(**limits)
        self.board.recover()
        self.silence_ms, self.hold_ms, self.most, self.on_ms = silence_ms, hold_ms, most, on_ms
        self.now_ms, self.ready_ms = 0, FOUND_MS
        self.armed, self.faults, self.first = False, set(), None
        self.wired, self.mask, self.until_ms = 0, 0, 0
        self.fed_ms = self.maybe_fed_ms = 0  # the dead-man: certainly, and possibly
        self.on_since_ms, self.spoilt, self.is_open = {}, {}, False
        self.frames = []
        self.asked_ms = -PERMIT_MS

    # ---- the reference

    def switch(self, mask):
        for cell in range(12):
            if not mask >> cell & 1:
                self.on_since_ms.pop(cell, None)
            elif cell not in self.on_since_ms:
                self.on_since_ms[cell] = self.now_ms
        self.mask = mask

    def fault(self, *names):
        self.faults |= set(names)
        self.armed = False
        self.switch(0)

    def due(self):
        """Faults that must be there by now, and those that may be."""
        must, may = set(), set()

        def judge(name, over_ms, slack_ms=SLACK_MS):
            if over_ms > 0:
                may.add(name)
            if over_ms > slack_ms:
                must.add(name)

        if self.armed:
            if self.now_ms - self.fed_ms >= self.silence_ms:
                may.add("host_silent")
            if self.now_ms - self.maybe_fed_ms > self.silence_ms:
                must.add("host_silent")
            for since_ms in self.on_since_ms.values():
                judge("cell_on_too_long", self.now_ms - since_ms - self.on_ms + 1)
        if self.is_open:
            must.add("estop_open")
        for cell, (how, since_ms) in self.spoilt.items():
            name, is_on = SEEN_AS[how], cell in self.on_since_ms
            if how in ("short", "open"):
                if is_on:
                    judge(name, 1 + self.now_ms - max(since_ms, self.on_since_ms[cell]), FOUND_MS)
            else:
                may.add(name)
                off_ms = self.now_ms - max(since_ms, self.off_ms if how == "leak" else 0)
                if off_ms > FOUND_MS and not (how == "leak" and is_on):
                    must.add(name)
        return must, may | must

    @property
    def off_ms(self):
        """Since when every cell has certainly been off."""
        return self.now_ms if self.mask else self.switched_off_ms

    switched_off_ms = 0

    # ---- what happens

    def command(self, name, **fields):
        """The result of a command of a host that asks first which number comes next."""
        taken = self.board.command("identify")["seq_taken"]
        if not 1 <= (self.board.number + 1 - taken) & 255 <= 127:
            self.board.number = taken
        answer = self.board.command(name, **fields)
        return protocol.result_name(answer["result"])

    @rule(mask=MASKS, ms=st.integers(0, 120), lost=st.sampled_from((0, 0, 0, 3, 60, 140)))
    def set_cells(self, mask, ms, lost):
        """Mostly cells with a wire, in a frame before which others may have been lost."""
        mask = mask & self.wired or mask
        taken = self.board.command("identify")["seq_taken"]
        before = self.board.number
        self.board.number = (before + lost) & 0xFFFFFF
        fields = {"valid_for_ms": ms, "cells_on": mask}
        fields["arming"] = protocol.following(self.board.number) >> 8
        frame = self.board.frame("set_mask", **fields)
        ahead = (self.board.number - taken) & 255
        (answer,) = self.board.decoder.feed(self.board.exchange(frame))
        result = protocol.result_name(answer["result"])
        if not self.armed:
            assert result != "done"
        elif not 1 <= ahead <= 127:
            assert result in ("replayed", "other_arming", "bad_value")
        elif ms == 0 or mask & ~self.wired:
            assert result == "bad_value"
            self.maybe_fed_ms = self.now_ms
        elif mask.bit_count() > self.most:
            assert result == "is_faulted"
            self.fault("too_many_cells_on")
        else:
            assert result == "done"
            self.switch(mask)
            self.fed_ms = self.maybe_fed_ms = self.now_ms
            self.until_ms = self.now_ms + min(ms, self.hold_ms)
            self.frames.append(frame)
        if not 1 <= ahead <= 127:
            self.board.number = before

    @precondition(lambda self: self.frames)
    @rule(data=st.data(), noise=st.binary(max_size=20))
    def replay(self, data, noise):
        """A frame of this arming or of an earlier one, after noise: nothing comes of it."""
        frame = data.draw(st.sampled_from(self.frames))
        answers = protocol.Decoder().feed(self.board.exchange(b"\0" + noise + b"\0" + frame))
        assert protocol.result_name(answers[-1]["result"]) != "done"

    @rule(wired=st.one_of(st.just(EVERY), MASKS), other=st.sampled_from((0, 0, 0, 1)))
    def arm(self, wired, other):
        """Refused unless all is well; a wire that is broken or shorted is found by its pulse."""
        crc = self.board.command("identify")["limits_crc"] ^ other
        bad = {SEEN_AS[how] for c, (how, _) in self.spoilt.items() if wired >> c & 1}
        result = self.command("arm", limits_crc=crc, cells=wired)
        self.asked_ms = self.now_ms
        for _ in range(SUPPLY_MS):
            if result != "supply_waits":
                break
            self.pass_ms(1)
            self.asked_ms = self.now_ms
            result = self.command("arm", limits_crc=crc, cells=wired)
        if self.armed or self.faults or self.is_open or other:
            assert result != "done"
            return
        if result == "done":
            assert not bad & {"current_high", "current_low"}
            self.armed, self.wired = True, wired
            self.fed_ms = self.maybe_fed_ms = self.now_ms
            self.until_ms = self.now_ms
        elif result == "is_faulted":
            assert bad & {"current_high", "current_low"}
            found = protocol.fault_names(self.board.command("read")["fault_bits"])
            assert set(found) <= bad
            self.fault(*found)
        else:
            asked_only = result == "not_armed" and wired == 0
            assert asked_only or self.spoilt or self.now_ms < self.ready_ms

    @rule()
    def make_good_and_arm(self):
        """What an operator does after a fault, in its order."""
        self.press(False)
        self.disarm()
        self.mend()
        self.pass_ms(FOUND_MS)
        self.clear()
        self.arm(EVERY, 0)
        assert self.armed

    @rule()
    def disarm(self):
        assert self.command("disarm") in ("done", "is_faulted")
        self.armed = False
        self.switch(0)

    @precondition(lambda self: not self.armed)
    @rule()
    def clear(self):
        result = self.command("clear_faults")
        if self.is_open:
            assert result == "condition_present"
        elif result == "done":
            self.faults, self.first = set(), None
            seen = [how for how, ms in self.spoilt.values() if self.now_ms - ms > FOUND_MS]
            assert not {"leak", "hot"} & set(seen)
        else:
            assert self.spoilt or self.now_ms < self.ready_ms, result

    @rule(ms=st.integers(1, 60))
    def wait(self, ms):
        self.pass_ms(ms)

    @rule(mask=MASKS, steps=st.integers(2, 12), ms=st.integers(1, 15))
    def stream(self, mask, steps, ms):
        """A host that commands the same cells again and again."""
        for _ in range(steps):
            self.set_cells(mask, 100, 0)
            self.pass_ms(ms)
            self.as_the_text_says()

    def pass_ms(self, ms):
        for _ in range(ms):
            before = self.mask
            self.now_ms += 1
            self.board.advance(1000)
            if self.mask and self.now_ms > self.until_ms:
                self.switch(0)
            if before and not self.mask:
                self.switched_off_ms = self.now_ms
            self.notice()

    def notice(self):
        """Take over a fault that may be there by now; one that must be is looked for at once."""
        must, may = self.due()
        if may - self.faults or must - self.faults:
            reading = self.board.command("read")
            found = set(protocol.fault_names(reading["fault_bits"]))
            assert must | self.faults <= found <= may | self.faults, (must, may)
            if found - self.faults:
                self.fault(*found)
                self.switched_off_ms = self.now_ms

    @rule(is_open=st.booleans())
    def press(self, is_open):
        self.is_open = is_open
        self.board.set_estop(is_open)
        self.board.advance(0)
        self.pass_ms(1)

    @precondition(lambda self: len(self.spoilt) < 2)
    @rule(cell=CELLS, how=st.sampled_from(sorted(SPOILT)))
    def spoil(self, cell, how):
        if cell not in self.spoilt:
            self.spoilt[cell] = how, self.now_ms
            self.board.set_analog(cell, **({"on": ON_COUNTS} | SPOILT[how]))

    @rule()
    def mend(self):
        for cell in self.spoilt:
            self.board.set_analog(cell)
        may = self.due()[1]
        self.spoilt = {}
        # what was bad until now may have been read once, and is looked at once more
        found = set(protocol.fault_names(self.board.command("read")["fault_bits"]))
        assert found <= self.faults | may
        if found - self.faults:
            self.fault(*found)
        self.ready_ms = self.now_ms + FOUND_MS

    @rule(cause=st.sampled_from(sorted(protocol.RESETS)))
    def reset(self, cause):
        self.board.reset(cause)
        self.armed, self.faults, self.first = False, set(), None
        self.switch(0)
        self.frames = []
        self.ready_ms = self.now_ms + FOUND_MS
        self.spoilt = {cell: (how, self.now_ms) for cell, (how, _) in self.spoilt.items()}
        self.switched_off_ms = self.now_ms
        self.pass_ms(1)

    @invariant()
    def as_the_text_says(self):
        if not hasattr(self, "faults"):
            return
        self.notice()
        reading = self.board.command("read")
        found = set(protocol.fault_names(reading["fault_bits"]))
        assert found == self.faults
        state = "faulted" if self.faults else "armed" if self.armed else "disarmed"
        assert protocol.state_name(reading["state"]) == state
        first = set(protocol.fault_names(reading["first_fault_bits"]))
        assert first <= found
        assert bool(first) == bool(found)
        self.first = self.first or first
        assert first == self.first
        gates = self.board.gates()
        if self.mask and self.now_ms == self.until_ms:
            assert gates in ([0] * 12, self.wanted())  # the moment at which its time ends
        else:
            assert gates == self.wanted()
        asked = not self.faults and self.now_ms - self.asked_ms <= PERMIT_MS
        assert self.board.rail_is_alive() in ((True,) if self.armed else (False, asked))

    def wanted(self):
        return [255 * (self.mask >> cell & 1) for cell in range(12)]


@pytest.mark.hypothesis
def test_whatever_happens_the_board_does_what_its_text_says(libboard):
    run_state_machine_as_test(lambda: Rules(libboard))
