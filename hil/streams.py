"""Random numbers of simulated devices: every device and channel has its own, by its name."""

import numpy as np

NAME_ENDS = 256  # no byte


def stream(seed: int, *names: str) -> np.random.Generator:
    """The random numbers of a device, or of a channel of it, in a run with this seed.

    They depend on the seed and the names alone, not on what else the rig has.
    """
    key = [word for name in names for word in (*name.encode(), NAME_ENDS)]
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))
