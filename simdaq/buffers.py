"""The buffer between a converter's clock and the reader."""

import numpy as np
from numpy.typing import NDArray


class InputBuffer:
    """A ring of samples, channel by channel.

    Attributes
    ----------
    written, position : int
        Samples per channel put in, and read, since the start.
    lost : bool
        An unread sample was overwritten, which the next read reports.
    """

    def __init__(self, n_channels: int, capacity: int, *, may_overwrite: bool) -> None:
        self.data = np.empty((n_channels, capacity))
        self.capacity = capacity
        self.may_overwrite = may_overwrite
        self.written = 0
        self.position = 0
        self.lost = False

    @property
    def available(self) -> int:
        return self.written - self.position

    def push(self, block: NDArray[np.float64]) -> None:
        """Append (channels, samples)."""
        if self.lost:
            return
        n = block.shape[1]
        if self.available + n > self.capacity and not self.may_overwrite:
            self.lost = True
            return
        if n > self.capacity:
            self.written += n - self.capacity
            block = block[:, -self.capacity :]
            n = self.capacity
        start = self.written % self.capacity
        first = min(n, self.capacity - start)
        self.data[:, start : start + first] = block[:, :first]
        self.data[:, : n - first] = block[:, first:]
        self.written += n
        self.position = max(self.position, self.written - self.capacity)

    def take(self, n: int) -> NDArray[np.float64]:
        """The next n samples of every channel."""
        block = self.peek(self.position, n)
        self.position += n
        return block

    def peek(self, position: int, n: int) -> NDArray[np.float64]:
        """N samples from this position on, left where they are."""
        start = position % self.capacity
        if start + n <= self.capacity:
            return self.data[:, start : start + n]
        first = self.capacity - start
        return np.concatenate((self.data[:, start:], self.data[:, : n - first]), axis=1)
