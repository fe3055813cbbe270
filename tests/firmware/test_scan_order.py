"""The order of readings: no pattern of switching keeps a cell from being read while it is on.

For up to four cells every pattern is searched: which gates are on, reading by reading, and whether
the gate of the cell that is read falls during the reading, which then does not count. Between two
readings of an address each other cell is read three times at most: out of turn because its turn
before had missed it, in turn, and out of turn again because that missed it too.
"""

import ctypes
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st


class _Turn(ctypes.Structure):
    _fields_ = [("bit", ctypes.c_uint16), ("address", ctypes.c_uint8), ("place", ctypes.c_uint8)]


class _Scan(ctypes.Structure):
    _fields_ = [
        ("overdue_bits", ctypes.c_uint16),
        ("bits", ctypes.c_uint16 * 16),
        ("cells", ctypes.c_uint8 * 16),
        ("n_overdue", ctypes.c_uint8),
        ("n_cells", ctypes.c_uint8),
        ("n_references", ctypes.c_uint8),
        ("reference", ctypes.c_uint8),
        ("turn", _Turn),
    ]


@pytest.fixture(scope="module")
def order(libboard):
    libboard.scan_start.argtypes = [ctypes.c_void_p, ctypes.c_uint8, ctypes.c_uint8]
    libboard.scan_next.restype = _Turn
    libboard.scan_next.argtypes = [ctypes.c_void_p, ctypes.c_uint16]
    libboard.scan_done.argtypes = [ctypes.c_void_p, _Turn, ctypes.c_bool]
    return libboard


def _started(order, n_cells, n_references=1):
    scan = _Scan()
    order.scan_start(ctypes.byref(scan), n_cells, n_references)
    return scan


def _read(order, scan, on, falls=False):
    """One reading: its address, and whether the gate of the cell there was on throughout."""
    turn = order.scan_next(ctypes.byref(scan), on)
    is_on = bool(turn.bit & on) and not falls
    order.scan_done(ctypes.byref(scan), turn, is_on)
    # scan_next searches the list for a cell of overdue_bits: it must be there
    assert scan.n_overdue <= scan.n_cells
    assert sum(scan.bits[: scan.n_overdue]) == scan.overdue_bits
    return turn.address, is_on


def _state(scan):
    """What decides about the future: entries behind the list do not."""
    for i in range(scan.n_overdue, 16):
        scan.bits[i] = scan.cells[i] = 0
    return bytes(scan)


def _transitions(order, n_cells):
    """Of every reachable state, for each pattern: gates on, address, its gate on, counts, state."""
    start = _state(_started(order, n_cells))
    found, left = {start: []}, [start]
    while left:
        state = left.pop()
        for on, falls in itertools.product(range(1 << n_cells), (False, True)):
            scan = _Scan.from_buffer_copy(state)
            address, is_on = _read(order, scan, on, falls)
            later = _state(scan)
            found[state].append((on, address, is_on, is_on or not on >> address & 1, later))
            if later not in found:
                found[later] = []
                left.append(later)
    return found


def _longest(found, counts, ends, cap=100):
    """Most readings that count before one that ends, by any pattern; None: more than `cap`."""
    most, changed = dict.fromkeys(found, 0), True
    while changed:
        changed = False
        for state, steps in found.items():
            longest = max(0 if ends(s) else counts(s) + most[s[-1]] for s in steps)
            if longest > cap:
                return None
            changed |= longest > most[state]
            most[state] = max(longest, most[state])
    return max(most.values())


def _unread_while_on(found, cell):
    return _longest(found, lambda s: s[0] >> cell & s[3], lambda s: s[1] == cell and s[2])


def _unread(found, address):
    return _longest(found, lambda s: s[3], lambda s: s[1] == address)


@pytest.mark.parametrize("n", [1, 2, 3, pytest.param(4, marks=pytest.mark.slow)])
def test_no_pattern_keeps_a_cell_that_is_on_from_its_reading(order, n):
    found = _transitions(order, n)
    for cell in range(n):
        passed = _unread_while_on(found, cell)
        assert passed is not None
        assert n - 1 <= passed <= 3 * n


@pytest.mark.parametrize("n", [1, 2, 3])
def test_whatever_is_switched_every_cell_and_reference_has_its_turn(order, n):
    found = _transitions(order, n)
    for address in range(n + 1):
        passed = _unread(found, address)
        assert passed is not None
        assert n <= passed <= 3 * n


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    pattern=st.lists(st.integers(0, 0xFFF), min_size=1, max_size=40),
    repeats=st.lists(st.integers(1, 30), min_size=1, max_size=5),
)
def test_twelve_cells_switched_at_random_are_all_read(order, pattern, repeats):
    scan, waited, age = _started(order, 12, 3), [0] * 12, [0] * 13
    for k in range(600):
        on = pattern[k // repeats[k % len(repeats)] % len(pattern)]
        address, is_on = _read(order, scan, on)
        for cell in range(12):
            read = cell == address and is_on
            waited[cell] = 0 if read else waited[cell] + (on >> cell & 1)
        age = [0 if i == min(address, 12) else n + 1 for i, n in enumerate(age)]
        assert max(waited) <= 36
        assert max(age) <= 36


@pytest.mark.parametrize(("n_cells", "n_references"), [(1, 1), (4, 0), (12, 3), (16, 0)])
def test_with_nothing_switched_cells_and_references_take_turns(order, n_cells, n_references):
    for on in (0, 0xFFFF):
        scan = _started(order, n_cells, n_references)
        rounds = [[*range(n_cells)] + ([n_cells + r] if n_references else []) for r in (0, 1, 2)]
        wanted = [a if a < n_cells else n_cells + (a - n_cells) % n_references
                  for one in rounds for a in one]  # fmt: skip
        assert [_read(order, scan, on)[0] for _ in wanted] == wanted


def test_a_cell_missed_while_it_was_off_is_read_as_soon_as_it_is_on(order):
    scan = _started(order, 12, 3)
    for _ in range(13):
        _read(order, scan, 0)
    assert [_read(order, scan, 1 << 7) for _ in range(2)] == [(7, True), (0, False)]


def test_a_missed_cell_whose_gate_falls_during_its_reading_is_still_read_before_the_others(order):
    scan = _started(order, 4, 0)
    _read(order, scan, 0)  # cell 0 is missed
    assert _read(order, scan, 1, falls=True) == (0, False)
    assert _read(order, scan, 0b1111) == (0, True)
    assert [_read(order, scan, 0b1111)[0] for _ in range(4)] == [1, 2, 3, 0]


def test_a_missed_cell_that_is_read_in_its_turn_is_not_read_twice(order):
    scan = _started(order, 4, 0)
    for _ in range(4):  # all are missed, and it is the turn of cell 0
        _read(order, scan, 0)
    assert [_read(order, scan, 1)[0] for _ in range(4)] == [0, 1, 2, 3]


def test_of_those_missed_the_one_that_has_waited_longest_comes_first(order):
    scan = _started(order, 4, 0)
    for on in (0, 0, 0, 0, 1):  # all missed, then 0 is read: 1 has waited longest
        _read(order, scan, on)
    for on in (0, 0, 0, 0):  # 0 is missed again, after the others
        _read(order, scan, on)
    assert [_read(order, scan, 0xF)[0] for _ in range(4)] == [1, 2, 3, 0]
