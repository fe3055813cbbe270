"""How far behind its card's clock a driver reads, so that every tick finds its samples.

A card on PCI hands samples over as they come. On USB and Ethernet they come in packets of some
milliseconds: a driver that reads the newest has no reading for most ticks. So it stays a packet
and a little behind: every tick has a reading, all of one age, which the row tells. A packet that
comes later still leaves its tick without a reading, and the next ones are a period older.
"""

import math
from collections.abc import Sequence

import numpy as np

from hil.devices.nidaq.channels import Acquisition

LOOK_EVERY_S = 1.0
PACKET_MIN_S = 0.003  # what comes in less is a driver that looks once a millisecond
IN_HAND = 1  # blocks that a card without packets is let be behind
IN_HAND_WITH_PACKETS = 2


def packet_s(samples: Sequence[int], acquisition: Acquisition) -> float:
    """How long a card gathers samples, by how many came at a time; 0 where that is no matter.

    The largest tenth is left out: the machine was busy then.
    """
    if not samples:
        return 0.0
    usual_s = float(np.quantile(samples, 0.9, method="higher")) / acquisition.rate_Hz
    return usual_s if usual_s >= max(2.0 * acquisition.period_s, PACKET_MIN_S) else 0.0


class Pace:
    """Looks after the distance between a card's time and the run's.

    Attributes
    ----------
    start_s : the run's time at the card's first sample
    behind_s : from the card's first sample until the first one is read
    """

    def __init__(self, acquisition: Acquisition, packet_s: float) -> None:
        self._acquisition = acquisition
        period_s = acquisition.period_s
        n_packet = math.ceil(packet_s / period_s - 1e-9)
        self._n_look = n_packet  # ticks, in which a packet comes
        self._in_hand = IN_HAND_WITH_PACKETS if n_packet else IN_HAND
        self._in_hand_max = self._in_hand + n_packet
        self.behind_s = (n_packet + IN_HAND_WITH_PACKETS) * period_s if n_packet else 0.0
        self.begin(0.0)

    @property
    def age_max_s(self) -> float:
        """Age of a reading while packets come as they should."""
        a = self._acquisition
        return self.behind_s + a.period_s + 0.5 * (a.per_tick - 1) / a.rate_Hz

    def begin(self, t_s: float) -> None:
        """The card takes its first sample at t_s of the run."""
        self.start_s = t_s
        self._first = True
        self._look(t_s + self.behind_s)

    def _look(self, from_s: float) -> None:
        self._from_s = from_s
        self._until_s = from_s + self._n_look * self._acquisition.period_s
        self._offset_s, self._least = math.inf, 2**62

    def due(self, t_s: float) -> bool:
        """Enough has been sampled to read the first block, and one a tick from then on."""
        return t_s >= self.start_s + self.behind_s - 1e-9 or not self._first

    def missed(self) -> None:
        """A block was not there: where packets come, more is kept in hand from now on."""
        if self._n_look:
            self._in_hand = min(self._in_hand + 1, self._in_hand_max)

    def asks(self, t_s: float) -> bool:
        """Whether it wants to know how many samples wait at this tick."""
        return t_s >= self._from_s - 1e-9

    def look(self, t_s: float, card_s: float, n_waiting: int) -> int:
        """How many blocks to take at once, so that none older than needed are in hand.

        Parameters
        ----------
        card_s : the card's time of the newest sample read
        n_waiting : samples that have come since
        """
        a = self._acquisition
        # A packet's last sample is of now only when it comes: the smallest distance is the true one
        self._offset_s = min(self._offset_s, t_s - card_s - n_waiting / a.rate_Hz)
        self._least = min(self._least, n_waiting)
        if t_s < self._until_s - 1e-9:
            return 0
        if self._first or abs(self._offset_s - self.start_s) > a.period_s:
            self.start_s = self._offset_s
        self._first = False
        surplus = self._least // a.per_tick - self._in_hand
        self._look(t_s + LOOK_EVERY_S)
        return max(0, surplus)
