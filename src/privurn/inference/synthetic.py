"""Records from the posterior predictive law, whatever the model: which draw each of them comes from, and copies."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.inference.run import whole_number
from privurn.mechanisms.published import copy_column
from privurn.mechanisms.recipe import check_copies, check_records

MOST_COPIES = 100

Make = Callable[[NDArray[np.int64], np.random.Generator], Any]


def predictive_table(make: Make, *, sizes: NDArray[np.float64], records: int | None, copies: int, seed: int | None) -> Any:
    """A table of records; `make` makes one from each of the draws that it is told the numbers of, in that order.

    `sizes` are the confidential numbers of records, one for each draw. Of one copy every record comes from a draw of its own,
    of several all of a copy from the same one.
    """
    check_copies(copies, records, most=min(MOST_COPIES, len(sizes)))
    rng = np.random.default_rng(seed)
    if copies == 1:
        usual = max(1, round(float(sizes.mean())))
        size = usual if records is None else whole_number("records", records, least=1, example=1000)
        check_records(size)
        return make(rng.integers(len(sizes), size=size), rng)
    chosen = np.linspace(0, len(sizes) - 1, copies).astype(np.int64)
    lengths = np.maximum(np.rint(sizes[chosen]), 1.0).astype(np.int64)
    check_records(int(lengths.sum()))
    made = make(np.repeat(chosen, lengths), rng)
    return made.add_column(0, copy_column(made.column_names), [np.repeat(np.arange(1, copies + 1), lengths)])
