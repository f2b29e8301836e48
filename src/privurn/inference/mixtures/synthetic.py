"""Records of the confidential population behind privatised ones, as the confidential table would hold them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.inference.mixtures.fitted import FittedMixture
from privurn.inference.mixtures.results import records_of_draws
from privurn.inference.synthetic import predictive_table
from privurn.tables import decode
from privurn.tables.columns import numbers_table


def synthetic_table(found: FittedMixture, *, records: int | None, copies: int, seed: int | None) -> Any:
    """From the drawn mixing measures: labels of categories, or numbers within the public bounds."""
    question, drawn = found.question, found.draws.n_chains * found.draws.n_draws

    def make(draws: NDArray[np.int64], rng: np.random.Generator) -> Any:
        values = records_of_draws(found, draws, rng=rng)
        if question.domain is None:
            columns = [question.column] if values.ndim == 1 else [f"{question.column}{j + 1}" for j in range(values.shape[1])]
            return numbers_table(values if len(columns) > 1 else values.reshape(len(draws)), columns)
        sizes = [each.size for each in question.domain.columns.values()]
        return decode(np.ravel_multi_index(tuple(values.T), sizes, order="F"), question.domain)

    sizes = np.full(drawn, float(found.draws.attributes["records"]))
    return predictive_table(make, sizes=sizes, records=records, copies=copies, seed=seed)
