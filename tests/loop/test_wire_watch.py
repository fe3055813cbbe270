"""Readings are held against what their wire can be: intact wires never trip, untrue readings do.

The wires are those of `oracles.sma_wires`, a balance of energy of its own. Each differs from the
one that its rig describes by as much as the comparison allows, in every respect at once.
"""

from types import SimpleNamespace

import numpy as np
import pytest

from hil.loop.channels import RigLayout
from hil.loop.frame import CELL_UNKNOWN, Column
from hil.loop.wire_watch import WatchedWire, WireWatch
from hil.mechanics.sma.bounds import BRANCH_K, CAPACITY, LATENT, Surroundings
from hil.mechanics.sma.clamp import Clamps
from hil.mechanics.sma.limits import COOLING_LEAST, CellWire
from hil.mechanics.sma.wire import SmaWire
from oracles.sma_wires import Wires
from rows import row_of

PERIOD_S, READ_S = 4e-3, 0.104  # every cell is read so often
TOLERANCE, LEFT_K = 0.1, 19.0
COLD_C, WARM_C = 15.0, 28.0
COUNT_K = 0.49  # of a clamp's sensor


class Bench:
    """Wires that a board reads, and the comparison of every one with the described wire."""

    def __init__(self, described, true, left_K=LEFT_K, every=1, modulates=False):
        n, self.every = len(described), every
        self.true, self.described = true, described
        around = [
            Surroundings(0.97 * w.cell_V, 1.03 * w.cell_V, COLD_C, WARM_C, left_K, TOLERANCE)
            for w in described
        ]
        wires = [
            WatchedWire("board", CellWire(f"a.{i}", wire), i, around[i], True, True, every)
            for i, wire in enumerate(described)
        ]
        self.layout = RigLayout((), (), (), (), n, modulates=modulates)
        names = [f"{one.cell.cell}.{what}" for one in wires
                 for what in ("resistance_Ohm", "temperature_C")]  # fmt: skip
        self.frame = row_of(self.layout, *(Column(name, "1", "measured", "") for name in names))
        self.readings, _ = self.layout.bind(self.frame)
        self.row = self.frame.span(names).reshape(n, 2)
        self.watch = WireWatch(wires, PERIOD_S)
        self.watch.bind(self.frame, self.readings)
        self.wires = Wires(true.wire, n, true.air_C, true.cooling)
        self.wires.T_C += true.left_K
        self.clamp_C = true.air_C + true.clamp_left_K
        self.clamps = Clamps(described, self.clamp_C, PERIOD_S)
        self.duty = np.zeros(n)
        self.reads = np.arange(n) % round(READ_S / PERIOD_S)

    def report(self, k, duty, known):
        """What the board says in its turns: what was on since the last one."""
        known = known and k % self.every == 0
        self.readings.cells_reported[:] = duty > 0.0 if known else CELL_UNKNOWN
        if self.layout.modulates:
            self.readings.duty_reported[:] = duty if known else np.nan

    def run(self, duties, duration_s, gain=1.0, stuck_C=np.nan, known=True):
        """What every wire trips, and when; each turn's duties are `duties(k)`."""
        w, trips, every = self.true.wire, {}, round(READ_S / PERIOD_S)
        for k in range(round(duration_s / PERIOD_S)):
            self.report(k, self.duty, known)
            if k % self.every == 0:
                self.duty = duties(k).copy()
            duty = self.duty
            ohms = w.martensite_Ohm_per_m + self.wires.xi * (
                w.austenite_Ohm_per_m - w.martensite_Ohm_per_m
            )
            self.wires.step(duty * (w.field_V_per_m / ohms) ** 2, PERIOD_S)
            self.clamps.step(self.wires.T_C, self.true.air_C)
            turn = self.reads == k % every
            self.row[:, 0] = np.where(turn, w.cell_m * ohms * self.true.chain / gain, np.nan)
            seen_C = np.where(np.isnan(stuck_C), self.clamp_C, stuck_C)
            self.row[:, 1] = np.where(turn, COUNT_K * np.floor(seen_C / COUNT_K), np.nan)
            if self.watch.step(1):
                for name, texts in self.watch.troubles().items():
                    for text in texts:
                        trips.setdefault((name, text.split(" ")[0].split("'")[0]), k * PERIOD_S)
        return trips


def wires(random, n, extreme, most_V=16.0):
    """Described wires, and true ones that differ from them by all that is allowed, or by less.

    `extreme` is one of all wires, or each wire's.
    """

    def off(share):
        return share * np.where(
            extreme, random.choice([-1.0, 1.0], n), random.uniform(-1.0, 1.0, n)
        )

    ratio, volts = random.uniform(0.8, 1.2, n), random.uniform(8.0, most_V, n)
    described = [
        SmaWire(n_wires=4, supply_V=v, austenite_Ohm_per_m=126.0 * r)
        for v, r in zip(volts, ratio, strict=True)
    ]
    one, moved_K, r = described[0], off(BRANCH_K), 1.0 + off(TOLERANCE)
    true = SimpleNamespace(
        wire=SimpleNamespace(
            martensite_Ohm_per_m=126.0 * r, austenite_Ohm_per_m=126.0 * ratio * r,
            A_s_C=one.A_s_C + moved_K, A_f_C=one.A_f_C + moved_K,
            M_s_C=one.M_s_C + moved_K, M_f_C=one.M_f_C + moved_K,
            capacity_J_per_m_K=one.capacity_J_per_m_K * (1.0 + off(CAPACITY)),
            latent_J_per_m=one.latent_J_per_m * (1.0 + off(LATENT)),
            loss_W_per_m_K=one.loss_W_per_m_K, cell_m=one.cell_m,
            field_V_per_m=volts / 0.4 * (1.0 + off(0.03)),
        ),
        cooling=COOLING_LEAST ** off(1.0),
        air_C=random.uniform(COLD_C, WARM_C, n),
        left_K=random.uniform(0.0, LEFT_K, n),
        clamp_left_K=random.uniform(0.0, 10.0, n),
        # wire and chain together are within the tolerance
        chain=random.uniform((1.0 - TOLERANCE) / r, (1.0 + TOLERANCE) / r),
    )  # fmt: skip
    return described, true


class Commands:
    """On and off at random: breaks of a tick, cells held for seconds; at full duty, or not."""

    def __init__(self, random, n, modulates=False):
        self.random, self.on = random, np.zeros(n)
        self.duty = random.integers(16, 256, n) / 255 if modulates else 1.0
        self.rate = PERIOD_S * 10.0 ** random.uniform(-1.0, 1.5, (2, n))

    def __call__(self, k):
        rate = np.where(self.on > 0.0, *self.rate)
        self.on = np.where(self.random.random(len(self.on)) < rate, 1.0 - self.on, self.on)
        return self.duty * self.on


@pytest.mark.slow_beyond(2)
@pytest.mark.parametrize(("every", "modulates"), [(4, True), (1, False), (1, True), (4, False)])
def test_no_intact_wire_within_its_tolerances_trips_whatever_is_commanded(every, modulates):
    random = np.random.default_rng([every, modulates])
    described, true = wires(random, 200, np.arange(200) < 100)
    bench = Bench(described, true, every=every, modulates=modulates)
    assert bench.run(Commands(random, 200, modulates), 20.0) == {}
    assert bench.wires.peak_C.max() > 150.0


@pytest.mark.slow
def test_no_clamp_of_an_intact_wire_is_called_stuck_in_minutes():
    """Five time constants of a clamp, of which three forget how warm it was at first."""
    random = np.random.default_rng(4)
    described, true = wires(random, 100, np.arange(100) < 50, most_V=9.0)
    assert Bench(described, true).run(Commands(random, 100), 180.0) == {}


def test_duties_that_nobody_knows_leave_open_whether_a_wire_is_hot():
    random = np.random.default_rng(6)
    described, true = wires(random, 100, extreme=True)
    bench = Bench(described, true)
    assert bench.run(Commands(random, 100), 10.0, known=False) == {}


def as_described(*supplies_V):
    """Wires that are what their rig describes, one at each voltage, in a room of 23 degC."""
    described = [SmaWire(n_wires=4, supply_V=volts) for volts in supplies_V]
    wire = SimpleNamespace(
        **{name: np.array([getattr(one, name) for one in described]) for name in (
            "martensite_Ohm_per_m", "austenite_Ohm_per_m", "A_s_C", "A_f_C", "M_s_C", "M_f_C",
            "capacity_J_per_m_K", "latent_J_per_m", "loss_W_per_m_K", "cell_m", "field_V_per_m")}
    )  # fmt: skip
    room = np.full(len(described), 23.0)
    true = SimpleNamespace(
        wire=wire, cooling=1.0, air_C=room, left_K=0.0, clamp_left_K=0.0, chain=1.0
    )
    return described, true


def held(k):
    return np.ones(1)


@pytest.mark.parametrize(
    ("gain", "noticed"), [(0.895, True), (0.85, True), (0.5, True), (0.92, False), (1.08, False)]
)
@pytest.mark.parametrize("every", [1, 4])
def test_of_a_hot_wire_a_current_that_no_austenite_draws_is_noticed_in_two_readings(
    every, gain, noticed
):
    """14 V: 45.2 Ohm beyond 1.1 times 45.2; of a state that nobody knows 55.4 are the end."""
    bench = Bench(*as_described(14.0), left_K=0.0, every=every)
    assert bench.run(held, 3.0) == {}
    found = bench.run(held, 1.0, gain=gain)
    assert [*found] == ([("current_untrue", "a.0")] if noticed else [])
    assert all(when_s <= 2 * READ_S for when_s in found.values())


@pytest.mark.parametrize("gain", [0.9, 0.8, 1.12, 1.3])
def test_of_a_cold_wire_a_current_that_no_martensite_draws_is_noticed(gain):
    """50.4 Ohm, whichever way; where the wire is shorted in part the text says so."""
    bench = Bench(*as_described(8.0), left_K=0.0)
    off = np.zeros(1)
    assert bench.run(lambda k: off, 0.5) == {}
    found = bench.run(lambda k: off, 0.5, gain=gain)
    assert [*found] == [("current_untrue", "a.0")]
    [text] = bench.watch.troubles()["current_untrue"]
    assert f"measures {50.4 / gain:.4g} Ohm, and its wire may have 50.4 to 50.4 within 10 %" in text
    assert ("read too low" in text) == (gain < 1.0)
    assert ("shorted in part" in text) == (gain > 1.0)


def test_one_wrong_reading_trips_nothing_and_two_do():
    bench = Bench(*as_described(8.0), left_K=0.0)
    off = np.zeros(1)
    assert bench.run(lambda k: off, READ_S, gain=0.5) == {}
    assert bench.run(lambda k: off, READ_S) == {}
    assert bench.run(lambda k: off, READ_S, gain=0.5) == {}
    assert len(bench.run(lambda k: off, READ_S, gain=0.5)) == 1


@pytest.mark.slow
def test_a_clamp_that_stays_at_25_degC_while_its_wire_heats_or_cools_is_noticed():
    """At first a clamp may be warm from before: three times 36 s. Then it must follow its wire."""
    supply_V, on_first, stuck_C = np.array(
        [(v, on, stuck) for v in (8.0, 12.0) for on in (1.0, 0.0) for stuck in (25.0, np.nan)]
    ).T
    bench = Bench(*as_described(*supply_V), left_K=0.0)
    assert bench.run(lambda k: on_first, 110.0, stuck_C=stuck_C) == {}
    found = bench.run(lambda k: 1.0 - on_first, 40.0, stuck_C=stuck_C)
    assert {*found} == {("clamp_untrue", f"a.{i}") for i in np.flatnonzero(stuck_C == 25.0)}
    assert all(s <= 12.0 for (_, cell), s in found.items() if supply_V[int(cell[2:])] == 12.0)
    for text, cell in zip(bench.watch.troubles()["clamp_untrue"], sorted(found), strict=True):
        assert f"{cell[1]}'s clamp stays at 24.99 C" in text
        assert "devices.board.without_clamp_sensor" in text
