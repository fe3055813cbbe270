"""Random numbers of simulated devices: one stream per device and channel, by name."""

import numpy as np

NAME_ENDS = 256  # no byte


def stream(seed: int, *names: str) -> np.random.Generator:
    """The random stream of a device, or of one of its channels, for this seed.

    It depends only on the seed and the names, not on the rest of the rig.
    """
    key = [word for name in names for word in (*name.encode(), NAME_ENDS)]
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))
