"""The noise that is in the model itself: it was fitted to the same noisy counts, and follows them.

The model-assisted variance A takes the model for known up to n0 records. Where the noise on a figure is small that hardly
matters: the figure follows the counts. Where the noise has a variance S larger than the model's trust, the figure is the
model's, and the model is what the noise made of it. By A = P S/(P + S), P the model's variance, the share 1 - A/S of the figure
comes from the model, whose error is at most about that of the counts it was fitted to. So S (1 - A/S)^2 is added: nothing where
A = S, and the total lies between 3/4 of S and S.

The model is fitted to single columns and pairs. Of a figure about three columns S is the noise on its pairs: what is left when
the interaction of all three is taken off, columns being averaged by the model's shares.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from privurn.inference.tables.asked import Ratio
from privurn.inference.tables.direct import Term, direct_sums
from privurn.inference.tables.mixture import MixtureOfProducts
from privurn.mechanisms.marginal_counts import Columns
from privurn.mechanisms.table_measurements import MeasuredTable

Floats = NDArray[np.float64]


def model_noise(
    table: MeasuredTable, mixture: MixtureOfProducts, ratios: Sequence[Ratio], estimates: Floats, *, claimed: Floats
) -> Floats:
    """What is added to the covariance of ratios whose variances are `claimed`; nothing where a pair was never measured."""
    terms: dict[Columns, Floats] = {}
    for i, (ratio, estimate) in enumerate(zip(ratios, estimates, strict=True)):
        for places, part in by_pairs(_influence(table, mixture, ratio, estimate), ratio.places, mixture):
            if any(table.sizes[j] > 1 for j in places):
                told = tuple(j for j in places if table.sizes[j] > 1)
                shape = [table.sizes[j] for j in told]
                terms.setdefault(told, np.zeros((len(ratios), *shape)))[i] += part.reshape(shape)
    noise = direct_sums(table, [Term(places, functions) for places, functions in terms.items()]) if terms else None
    if noise is None:
        return np.zeros((len(ratios), len(ratios)))
    share = np.clip(1.0 - claimed / np.maximum(np.diag(noise.covariance), 1e-300), 0.0, 1.0)
    return np.asarray(share[:, None] * noise.covariance * share, np.float64)


def _influence(table: MeasuredTable, mixture: MixtureOfProducts, ratio: Ratio, estimate: float) -> Floats:
    """Of a record on a ratio; a share of all records, whose number is public, has nothing below it that is noisy."""
    if table.mechanism.n is not None and bool((ratio.below == 1.0).all()):
        return np.asarray(ratio.above, np.float64)
    below = float((mixture.marginal(ratio.places) * ratio.below).sum())
    return np.asarray((ratio.above - estimate * ratio.below) / max(below, 1.0 / table.n), np.float64)


def by_pairs(function: Floats, places: Columns, mixture: MixtureOfProducts) -> Iterator[tuple[Columns, Floats]]:
    """Functions of one or two columns whose sum is the function, the interaction of three and a constant aside."""
    if len(places) <= 2:
        yield places, function
        return
    shares = [mixture.weights @ mixture.column(j) for j in places]
    for left_out, averaged in ((2, 1), (0, 1), (1, 0)):  # each single column is taken off one of the pairs that hold it
        kept = [axis for axis in range(3) if axis != left_out]
        pair = np.average(function, axis=left_out, weights=shares[left_out])
        single = np.average(pair, axis=averaged, weights=shares[kept[averaged]])
        yield tuple(places[axis] for axis in kept), pair - np.expand_dims(single, averaged)
