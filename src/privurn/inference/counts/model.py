"""What an analyst believes about the cells of a table and about the number of its records."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privurn.domain import JointDomain
from privurn.errors import ModelError
from privurn.inference.counts.places import WithinBins
from privurn.inference.size import SizePrior

MECHANISM = "mechanism"


@dataclass(frozen=True, kw_only=True, eq=False)
class CountModel:
    """Records that fall into cells with probabilities p ~ Dirichlet(prior); their counts are latent.

    Parameters
    ----------
    prior
        One number for all cells, or one for each. "flat": the same in each cell, and how much is learnt from the release: from
        one record in all to one in each cell, log-uniform. A fixed number can outweigh the data where there are many cells.
        Left out: flat for up to 32 cells, or 16 in an order; of more a `PolyaTree`, where the release says something of each
        cell by itself (one release of noisy counts; an urn or a smoothed histogram with a public n), else flat. "mechanism":
        the prior that the mechanism itself has. It is set by privacy, not by belief, and has a closed form.
    size
        Where n is secret: its prior. Left out it is flat, up to 10^12 where noisy numbers say how large n is, and up to 10^7
        where only records were drawn.
    within
        Where in its bin a record lies: "uniform" spreads it evenly, "whole" evenly over whole numbers, "midpoint" puts it in
        the middle. Grids have points. Summaries say what was assumed, and between what a figure lies whatever is true.
    """

    prior: float | ArrayLike | Literal["flat", "mechanism"] | None = None
    size: SizePrior | None = None
    within: WithinBins = "uniform"

    @property
    def flat(self) -> bool:
        """Whether the prior is the one whose worth is learnt."""
        return self.prior is None or (isinstance(self.prior, str) and self.prior == "flat")

    def prior_of(self, domain: JointDomain | None) -> NDArray[np.float64] | str:
        """One positive number for each cell, or the word."""
        prior: Any = self.prior
        if isinstance(prior, str):
            if prior not in (MECHANISM, "flat"):
                raise ModelError(
                    f"the prior {prior!r} is not known.", hint='A number, one for each cell, "flat" or "mechanism"'
                )
            if prior == MECHANISM:
                return MECHANISM
        if domain is None:
            if prior is not None:
                raise ModelError(
                    "labels that nobody listed have no cells to put a prior on.",
                    hint='Leave prior out: open labels are analysed under the mechanism\'s own (prior="mechanism")',
                )
            return MECHANISM
        try:
            given = np.asarray(1.0 / domain.size if self.flat else prior, np.float64)
            spread = np.array(np.broadcast_to(given, domain.size))
        except (TypeError, ValueError):
            raise ModelError(
                f"the prior must be one positive number, or one for each of the {domain.size:,} cells.",
                hint="For example prior=0.5, or leave it out",
            ) from None
        if not np.all(np.isfinite(spread)) or not np.all(spread > 0.0):
            raise ModelError("a prior must be positive in every cell.", hint="For example prior=0.5, or leave it out")
        return spread
