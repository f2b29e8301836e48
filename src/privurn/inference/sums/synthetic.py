"""Records of the model behind noisy sums, as the confidential table would hold them."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privurn.inference.synthetic import predictive_table
from privurn.tables.output import number_table

if TYPE_CHECKING:
    from privurn.inference.sums.fit import SumPosterior


def synthetic_table(found: "SumPosterior", *, records: int | None, copies: int, seed: int | None) -> Any:
    """From the drawn parameters; columns of a model of one's own that has others than the sums are x1, x2 and so on."""
    drawn = {name: found.draws.flat(name) for name in found.draws.variables}

    def make(draws: NDArray[np.int64], rng: np.random.Generator) -> Any:
        chosen, numbers = np.unique(draws, return_counts=True)
        thetas = [found.model.flat({name: values[at] for name, values in drawn.items()}) for at in chosen]
        made = [found.model.simulate(theta, n=int(n), rng=rng) for theta, n in zip(thetas, numbers, strict=True)]
        values = np.empty((len(draws), made[0].shape[1]))
        values[np.argsort(draws, kind="stable")] = np.concatenate(made)
        return _named(values, found)

    return predictive_table(make, sizes=drawn["n"].astype(np.float64), records=records, copies=copies, seed=seed)


def _named(values: NDArray[np.float64], found: "SumPosterior") -> Any:
    """Columns as the table has them: shares where logarithms are kept, whole numbers where there are no others."""
    known, width = found.observed.columns, values.shape[1]
    columns = known if len(known) == width else tuple(f"x{j + 1}" for j in range(width))
    named = dict(zip(columns, (np.exp(values) if getattr(found.model, "keeps_logarithms", False) else values).T, strict=True))
    whole = columns[getattr(found.model, "whole_numbers", slice(0))]
    return number_table(named | {name: named[name].astype(np.int64) for name in whole})
