"""Random numbers of simulated devices: one stream per device and channel, by name."""

import numpy as np

NAME_ENDS = 256  # separator of names; greater than any byte of a name


def stream(seed: int, *names: str) -> np.random.Generator:
    """The random stream of a device, or of one of its channels, for this seed.

    It depends only on the seed and the names, so other devices of the rig do not change it.
    """
    key = [word for name in names for word in (*name.encode(), NAME_ENDS)]
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))
