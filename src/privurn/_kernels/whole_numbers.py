"""Uniform whole numbers in compiled code: numba takes a second to compile its own Generator.integers, in every kernel."""

from privurn._kernels._compile import compiled


@compiled
def whole_below(bound, rng):
    """A uniform whole number in [0, bound), for bounds up to 2^61.

    Small ones from 53 bits, uniform to one part in 2^30; others from 62 bits, those beyond the last multiple drawn again.
    """
    if bound < 2**23:
        return int(rng.random() * bound)
    while True:
        drawn = int(rng.random() * 2.0**31) * 2**31 + int(rng.random() * 2.0**31)
        if drawn < 2**62 - 2**62 % bound:
            return drawn % bound
