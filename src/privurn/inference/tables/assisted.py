"""Model-assisted estimates from noisy marginals: the model's figure, corrected by what was measured.

For an estimating equation E psi_b = 0 with F the measured cells as features of a record, centred under the model m:

    E_m psi_b + g^T (y/N - m_F) = 0,    g = (G/n0 + S)^-1 c/n0,  G = Cov_m(F),  c = Cov_m(F, psi),  S the variance of the noise,

the best linear predictor where the table's law is m plus a discrepancy with the covariance of n0 records. The same as weights
that do not depend on b: w = m (1 + lambda^T F), lambda = (G/n0 + S)^-1 (y/N - m_F)/n0. Some are negative, and must stay so.

That takes m as known before y was. But m was fitted to the pairs in y: it follows their noise, and is shrunk. For a regression
n0, which is learnt from triples given their pairs, therefore speaks only of what pairs do not tell; how far the table's pairs
are from the model's is left open (`Trust.pairs`, next to nothing), and the noisy pairs decide. G/n0 then has another part, for
random functions of each pair of columns, and intervals are about as wide as those straight from the counts.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privurn.errors import SamplingError
from privurn.inference.tables.features import Features, Trust

Floats = NDArray[np.float64]

SPAN = Trust(10.0)
"""n0 at which the model counts for little: what is then not explained is hardly a matter of the noise."""

SPAN_STEPS = 40
TOLERANCE = 1e-6
"""Of the solutions."""


class Equation(ABC):
    """E psi_b = 0, for functions of the joint cells of some columns."""

    @abstractmethod
    def psi(self, b: Floats) -> Floats:
        """A row for each entry, a column for each joint cell."""

    @abstractmethod
    def slope(self, b: Floats, weights: Floats) -> Floats:
        """Minus the weighted sum of the derivatives of psi by b: a matrix."""

    @property
    @abstractmethod
    def start(self) -> Floats:
        """Where to look for the root."""


@dataclass(frozen=True, eq=False)
class Means(Equation):
    """The means of functions."""

    functions: Floats

    def psi(self, b: Floats) -> Floats:
        """Function less mean."""
        return self.functions - b[:, None]

    def slope(self, b: Floats, weights: Floats) -> Floats:
        """The identity, times the weights' sum."""
        return np.eye(len(b)) * float(weights.sum())

    @property
    def start(self) -> Floats:
        """Anywhere."""
        return np.zeros(len(self.functions))


@dataclass(frozen=True, eq=False)
class AssistedEstimate:
    """Estimates b with the covariance of their error, for the confidential table and for the population it came from."""

    estimate: Floats
    table_covariance: Floats
    population_covariance: Floats
    unexplained: Floats
    """Share of the variance of each estimate's influence function that no measured cell explains."""


def assisted_weights(features: Features, trust: Trust) -> Floats:
    """A weight for every joint cell; they sum to 1, and some are negative."""
    off = (features.measured - features.means)[None, :]
    tilt = features.spread(features.combined(features.solve(off, trust, tolerance=TOLERANCE)), trust)
    found: Floats = features.probabilities * (1.0 + tilt[0])
    return found


def assisted_estimate(features: Features, equation: Equation, weights: Floats, trust: Trust, *, n: float) -> AssistedEstimate:
    """The root of the weighted equation, and its variance."""
    b = solve_weighted(weights, equation, start=equation.start)
    # the slope of the equation that was solved: the model's own would be too steep where its columns hang together too little
    influence = np.linalg.solve(equation.slope(b, weights), equation.psi(b)).astype(np.float64, copy=False)
    g = features.solve(features.discrepancies(influence, trust), trust, tolerance=TOLERANCE)
    left = influence - features.combined(g)
    left -= features.mean(left)[:, None]
    size = features.size_deviation * (g @ features.means)  # counts are divided by an estimate, where N is secret
    table = (features.variances * g) @ g.T + (features.probabilities * left) @ features.spread(left, trust).T
    table = table + np.multiply.outer(size, size)
    whole = features.variance(influence)
    near = features.solve(features.discrepancies(influence, SPAN), SPAN, tolerance=TOLERANCE, steps=SPAN_STEPS)
    unexplained = np.diag(features.variance(influence - features.combined(near))) / np.maximum(np.diag(whole), 1e-300)
    return AssistedEstimate(b, table, table + whole / n, unexplained)


def solve_weighted(weights: Floats, equation: Equation, *, start: Floats, steps: int = 100) -> Floats:
    """The root of the weighted equation by Newton's method; steps that do not bring it nearer are halved."""
    b = np.array(start, np.float64)
    value = equation.psi(b) @ weights
    for _ in range(steps):
        if np.abs(value).max() < 1e-13:
            return b
        try:
            step = np.linalg.solve(equation.slope(b, weights), value)
        except np.linalg.LinAlgError:
            break
        length = 1.0
        while length > 1e-6:
            after = equation.psi(b + length * step) @ weights
            if np.isfinite(after).all() and np.abs(after).sum() < (1.0 - 1e-4 * length) * np.abs(value).sum() + 1e-14:
                break
            length *= 0.5
        else:
            break
        b, value = b + length * step, after
        if np.abs(length * step).max() < 1e-9 * (1.0 + np.abs(b).max()):
            return b
    raise SamplingError(
        "the estimating equation has no root near where it was looked for: noisy counts need not have one.",
        hint="Use fewer or coarser terms",
    )
