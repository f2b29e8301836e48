"""Many releases in one compiled loop, word for word what as many calls of `draw` give: as fast as an audit can use them."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from privurn.privacy.entropy import Entropy

WORDS_AT_ONCE = 2**21


def many_draws(
    fill: Callable[[NDArray[np.int64], NDArray[np.int64]], int], *, records: int, size: int, entropy: Entropy
) -> NDArray[np.int64]:
    """Rows of releases; `fill` turns rows of words into them and leaves out the few whose words must be redrawn."""
    out = np.empty((size, records), np.int64)
    per_row = records if records == 1 else 2 * records
    filled = 0
    while filled < size:
        rows = min(size - filled, max(1, WORDS_AT_ONCE // per_row))
        words = entropy.words(rows * per_row).reshape(rows, per_row)
        filled += fill(words, out[filled : filled + rows])
    return out
