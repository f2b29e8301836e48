"""What an analyst believes about the values of one or two columns with an order: a Polya tree."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privurn.errors import ModelError

if TYPE_CHECKING:
    from privurn.inference.counts.places import WithinBins


@dataclass(frozen=True, kw_only=True, eq=False)
class PolyaTree:
    """A Polya tree: every range of values splits its records between its halves, evenly, unevenly, or all on one side.

    How even splits are is learnt, depth by depth. docs/explanation/polya-trees.md has the law. Of noisy trees, and of counts of
    cells that are not several releases; cells without an order are halved as they are listed.

    Parameters
    ----------
    base
        Positive numbers, one for each value in order, that splits are centred at; the same for all is the uniform. Left out, it
        is learnt from what was published: uniform on ranges that the noise leaves clear, and within them as their neighbours
        rise and fall, along either column of two. Counts of cells alone have the uniform.
    exact
        Draw by the Markov chain whose law is the posterior. Left out, draws are independent and fast, and approximate.
    largest_n
        Of the flat prior of a secret number of records.
    within
        Where in its bin a record lies: "uniform" spreads it evenly, "whole" evenly over whole numbers, "midpoint" puts it in
        the middle. Grids have points. Summaries say what was assumed, and between what a figure lies whatever is true.
    """

    base: ArrayLike | None = None
    exact: bool = False
    largest_n: int = 10**7
    within: "WithinBins" = "uniform"

    def base_of(self, cells: int) -> NDArray[np.float64] | None:
        """The base measure, checked."""
        if self.base is None:
            return None
        try:
            given = np.asarray(self.base, np.float64)
        except (TypeError, ValueError):
            given = np.zeros(0)
        if given.shape != (cells,) or not np.all(np.isfinite(given)) or not np.all(given > 0.0):
            raise ModelError(
                f"a base measure is one positive number for each of the {cells:,} values.", hint="Left out, it is learnt"
            )
        return given
