"""From a guarantee to the noise of a noisy tree: the least for given relative precisions of its depths, on the private side.

Delta falls in the scale of discrete Laplace noise. With discrete Gaussian noise it may rise between lattice points, so the
answer is a scale that is private itself, next to a smaller one that is not. Proof: docs/proofs/noisy-trees.md.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from privurn.errors import Alternative, CalibrationError
from privurn.privacy.laws.noisy_tree import NoisyTreeProfile, TreeNoise
from privurn.privacy.profile import Guarantee, smallest_admissible

BITS = 22
"""Of a scale, rounded up: exact samplers compute with its square squared, which so few bits keep within two machine words."""

TOLERANCE = 1e-8
"""Relative, of the search for a scale: each step may take some milliseconds."""


class TreeScales(NamedTuple):
    """Scale of the noise at each measured depth, and of the special cells where there are any."""

    depths: tuple[float, ...]
    special: float | None


def smallest_tree_scales(
    *,
    noise: TreeNoise,
    precisions: Sequence[float],
    guarantee: Guarantee,
    special_cells: int = 0,
    tied: tuple[int, ...] = (),
) -> TreeScales:
    """Least noise for the guarantee, the scale of each depth being inversely proportional to its one of `precisions`.

    A record in a special cell is in no node, so special cells get as much precision as all depths together would have: the sum
    of theirs with Laplace noise, the root of the sum of squares with Gaussian noise. `tied`: as in `NoisyTreeProfile`.

    >>> smallest_tree_scales(noise="discrete-laplace", precisions=(2, 1), guarantee=Guarantee(epsilon=0.5, delta=0)).depths
    (6.0, 12.0)
    """
    total = math.fsum(precisions) if noise == "discrete-laplace" else math.hypot(*precisions)

    def scales(unit: float, *, rounded: bool = True) -> TreeScales:
        found = [unit / precision for precision in (*precisions, total)]
        if rounded:
            found = [_short(each) for each in found]
        return TreeScales(tuple(found[:-1]), found[-1] if special_cells else None)

    def profile(chosen: TreeScales) -> NoisyTreeProfile:
        return NoisyTreeProfile(
            noise=noise,
            scales=chosen.depths,
            special_cells=special_cells,
            special_scale=chosen.special,
            contributions=guarantee.contributions,
            neighbouring=guarantee.neighbouring,
            tied=tied,
        )

    def delta_at(unit: float) -> float:
        return 1.0 if unit == 0.0 else profile(scales(unit, rounded=False)).delta(guarantee.epsilon)

    moved = guarantee.contributions * (1 if guarantee.neighbouring == "add-remove" else 2)
    least = math.inf if noise == "discrete-gaussian" else moved * total / guarantee.epsilon
    if guarantee.delta == 0.0 and math.isinf(least):
        raise CalibrationError(
            "Gaussian noise has no pure epsilon: delta = 0 cannot be had with it.",
            alternatives=(Alternative(words="a positive delta", changes={"delta": 1e-6}),),
        )
    if guarantee.delta > 0.0:
        start = 4.0 * total / guarantee.epsilon
        found = smallest_admissible(delta_at, guarantee.delta, start=start, limit=1e15, tolerance=TOLERANCE)
        least = min(least, found)
    if math.isinf(least):
        raise CalibrationError(
            "no noise that integers can hold meets the guarantee.",
            alternatives=(Alternative(words="a larger epsilon", changes={"epsilon": 0.1}),),
        )
    unit, ulp = least, 2.0**-52
    while True:  # more Gaussian noise need not be more private, and a quotient may have been rounded down
        for chosen in (scales(unit), scales(unit, rounded=False)):
            if profile(chosen).delta(guarantee.epsilon) <= guarantee.delta:
                return chosen
        unit, ulp = unit * (1.0 + ulp), 2.0 * ulp


def _short(scale: float) -> float:
    """The least number of `BITS` binary digits that is not below.

    >>> _short(6.0), _short(0.1) - 0.1 < 1e-7
    (6.0, True)
    """
    mantissa, exponent = math.frexp(scale)
    return math.ldexp(math.ceil(math.ldexp(mantissa, BITS)), exponent - BITS)
