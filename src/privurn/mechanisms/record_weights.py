"""Record weights that fall with a record's disclosure risk, as the papers make them: from the whole data set.

D_i is the largest |log f(x_i | theta)| over draws of theta from the unweighted posterior, called the record's Lipschitz
bound. Weights made from all D_i change when one record changes, so no strict guarantee follows from them.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def linear_weights(bounds: Floats) -> Floats:
    """1 for the record with the smallest bound, 0 for the one with the largest, linear in between; 1 where all are equal."""
    spread = bounds.max() - bounds.min()
    if spread == 0.0:
        return np.ones_like(bounds)
    return np.asarray(1.0 - (bounds - bounds.min()) / spread)


def levelled_weights(weights: Floats, weighted_bounds: Floats, *, share: float = 0.95) -> Floats:
    """Raise each weight until its weighted bound is `share` of the largest one, and never above 1.

    `weighted_bounds` are the weights times the largest |log f| over draws of the weighted posterior. The records then spend
    alike what the riskiest one spends anyway.
    """
    positive = weighted_bounds > 0.0
    raised = np.zeros_like(weights)
    raised[positive] = share * weights[positive] * (weighted_bounds.max(initial=0.0) / weighted_bounds[positive])
    return np.minimum(1.0, raised)


def truncated_weights(weights: Floats, bounds: Floats, *, threshold: float) -> Floats:
    """0 where weight times bound exceeds the threshold: Weighted-e."""
    return np.where(weights * bounds > threshold, 0.0, weights)
