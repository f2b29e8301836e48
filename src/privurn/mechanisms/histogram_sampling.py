"""Independent records from a histogram mixed with the uniform, in exact integers: shared by the histogram mechanisms."""

from bisect import bisect_right
from fractions import Fraction
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from privurn.counts import exact_sum
from privurn.errors import ModelError
from privurn.mechanisms.integer_urn import integer_type
from privurn.privacy.entropy import Entropy


def sample_cells(
    weights: NDArray[np.int64],
    *,
    values: NDArray[np.int64],
    cells: int,
    smoothing: Fraction,
    size: int,
    entropy: Entropy,
) -> NDArray[np.int64]:
    """`size` independent cells: values[i] with probability (1 - smoothing) weights[i]/total, plus smoothing/cells for each.

    Where all weights are 0 the uniform over 0..cells-1 takes their place. Weights must not be negative. Independent draws
    come in an order that carries no information.
    """
    total = exact_sum(weights)
    if total == 0 or smoothing == 1:
        return entropy.integers(cells, size=size)
    drawn: NDArray[np.int64] = values[_places(weights, total, size, entropy)]
    if smoothing > 0:
        uniform = entropy.bernoullis(smoothing, size=size)
        drawn[uniform] = entropy.integers(cells, size=int(uniform.sum()))
    return drawn


def _places(weights: NDArray[np.int64], total: int, size: int, entropy: Entropy) -> NDArray[np.int64]:
    """Independent places i with probability weights[i]/total."""
    if integer_type(total) is np.int64:
        return np.searchsorted(np.cumsum(weights), entropy.integers(total, size=size), side="right")
    ends = list(accumulate(weights.tolist()))  # only noise of an absurd scale has a total of more than 63 bits
    drawn = entropy.below_long_ramp(total, step=0, size=size)
    return np.fromiter((bisect_right(ends, each) for each in drawn), np.int64, size)


def check_smoothing(weight: Fraction, *, name: str, positive: bool) -> None:
    """A share of the uniform: an exact rational between 0 and 1."""
    if not (isinstance(weight, Fraction) and 0 <= weight <= 1) or (positive and weight == 0):
        interval = "(0, 1]" if positive else "[0, 1]"
        raise ModelError(
            f"{name} must be a rational in {interval}.", hint="The share of the uniform, for example Fraction(1, 10)"
        )


def check_sizes(*, n: int | None, cells: int, records: int) -> None:
    """Whole positive numbers; n may be secret."""
    if n is not None and n < 1:
        raise ModelError("n must be a positive whole number.", hint="The number of confidential records, for example n=10000")
    if cells < 1:
        raise ModelError("a histogram needs at least one cell.")
    if records < 1:
        raise ModelError("the number of released records must be at least 1.")


def mostly_empty(*, n: int | None, cells: int) -> tuple[str, ...]:
    """A remark on a domain with more cells than there are records, where their number is public."""
    if n is None or cells <= n:
        return ()
    return (f"There are more cells ({cells:,}) than confidential records ({n:,}): most of them are empty.",)
