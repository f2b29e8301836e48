"""Estimates straight from the noisy counts, without a model: linear in them, unbiased, with a known variance.

A marginal that was measured is also the sum of every larger one that holds its columns. These are combined with weights
inversely proportional to their variances; each estimate keeps its coefficients on the measured cells, so that the variance of
several of them together is exact.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privurn.mechanisms.marginal_counts import Columns
from privurn.mechanisms.table_measurements import MeasuredTable

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class DirectSums:
    """Sums over the records of some functions, divided by N, and the covariance that the noise gives them."""

    estimate: Floats
    covariance: Floats


@dataclass(frozen=True, eq=False)
class Term:
    """Functions of a record's cells in the columns `places`: an array with an axis for the functions, then one a column."""

    places: Columns
    functions: Floats


def sources(table: MeasuredTable, places: Columns) -> dict[Columns, float]:
    """Measured sets that hold these columns, and their weights; nothing where there is none."""
    wanted = set(places)
    holding = [each for each in table.layout.sets if wanted <= set(each)]
    own = int(np.prod([table.sizes[j] for j in places]))
    precision = {each: own / (table.marginals[each].size * table.deviations[each] ** 2) for each in holding}
    total = sum(precision.values())
    return {each: share / total for each, share in precision.items()}


def best_marginal(table: MeasuredTable, places: Columns) -> tuple[Floats, float] | None:
    """The combined noisy counts of the columns, which must ascend, and the deviation of each; None: never measured."""
    weights = sources(table, places)
    if not weights:
        return None
    found = np.zeros([table.sizes[j] for j in places])
    variance = 0.0
    for each, weight in weights.items():
        axes = tuple(i for i, j in enumerate(each) if j not in places)
        summed = int(np.prod([table.sizes[each[i]] for i in axes]))
        found += weight * table.marginals[each].sum(axis=axes)
        variance += weight**2 * summed * table.deviations[each] ** 2
    return found, float(variance**0.5)


def direct_sums(table: MeasuredTable, terms: Sequence[Term]) -> DirectSums | None:
    """The sum of all terms, function by function; None where the columns of a term were not measured together."""
    count = len(terms[0].functions)
    coefficients: dict[Columns, Floats] = {}
    for term in terms:
        weights = sources(table, term.places)
        if not weights:
            return None
        for each, weight in weights.items():
            shape = [table.sizes[j] if j in term.places else 1 for j in each]
            part = weight * np.broadcast_to(term.functions.reshape(count, *shape), (count, *table.marginals[each].shape))
            coefficients[each] = coefficients[each] + part if each in coefficients else part.copy()
    estimate, covariance = np.zeros(count), np.zeros((count, count))
    for each, part in coefficients.items():
        flat = part.reshape(count, -1)
        estimate += flat @ table.marginals[each].ravel() / table.n
        covariance += (table.deviations[each] / table.n) ** 2 * (flat @ flat.T)
    return DirectSums(estimate, covariance)
