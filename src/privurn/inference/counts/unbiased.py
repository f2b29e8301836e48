"""Estimates of functionals from a release without any prior, with their standard errors."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privurn.domain import JointDomain
from privurn.inference.counts.functionals import Functional
from privurn.inference.counts.places import WithinBins
from privurn.inference.counts.plans import Weighted, linear_weights
from privurn.inference.counts.released import Observed
from privurn.mechanisms.likelihood import CountTerm
from privurn.mechanisms.tree_measurements import TreeMeasurements, Unbiased

Floats = NDArray[np.float64]

CLEAR = 10.0
"""A ratio is estimated where its denominator is so many of its standard errors: its bias is then below a hundredth of it."""


AT_ONCE = 2_000_000
"""Weights of functionals times cells that are held at a time."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """An unbiased estimate and its standard error, about what was asked of: the population, or the confidential records."""

    name: str
    value: float
    standard_error: float


class Estimates(tuple[Estimate, ...]):
    """Unbiased estimates. `left_out` names the functionals that have none."""

    left_out: tuple[str, ...]

    def __new__(cls, found: Iterable[Estimate], *, left_out: Iterable[str]) -> "Estimates":
        """A tuple that knows what is missing from it."""
        made = super().__new__(cls, found)
        made.left_out = tuple(left_out)
        return made

    def __repr__(self) -> str:
        missing = f", left_out={self.left_out!r}" if self.left_out else ""
        return f"Estimates({list(self)!r}{missing})"


def unbiased_estimates(
    observed: Sequence[Observed],
    functionals: Sequence[Functional],
    *,
    domain: JointDomain,
    within: WithinBins,
    population: bool,
) -> Estimates:
    """Of those functionals that are linear, or ratios of two that are: mean, shares, cdf, functions.

    A ratio (a mean where values may be missing, anything where n is secret) is unbiased up to a small part of its error.
    Several releases count by the inverse of their variances.
    """
    found: dict[str, Estimate] = {}
    block = max(1, AT_ONCE // domain.size)
    for first in range(0, len(functionals), block):
        linear = {each.name: linear_weights(each, domain=domain, within=within) for each in functionals[first : first + block]}
        known = {name: each for name, each in linear.items() if each is not None}
        for each in _estimated(observed, known, population=population) if known else ():
            found[each.name] = each
    return Estimates(found.values(), left_out=[each.name for each in functionals if each.name not in found])


def _estimated(observed: Sequence[Observed], linear: Mapping[str, Weighted], *, population: bool) -> list[Estimate]:
    """Of linear functionals and ratios, those that there are."""
    above = np.array([each.weights for each in linear.values()])
    below = np.array([each.present for each in linear.values()])
    found = [each for each in (_ratios(one.term, one.n, above, below) for one in observed) if each is not None]
    if not found:
        return []
    values, variances, sampling = (np.array(each) for each in zip(*found, strict=True))
    weights = np.where(np.isfinite(values), 1.0 / np.maximum(variances, 1e-300), 0.0)
    total = weights.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = weights / total
        value = np.nansum(shares * np.where(weights > 0.0, values, 0.0), axis=0)
        variance = np.nansum(shares**2 * variances, axis=0)
    if population:
        records = next((each.n for each in observed if each.n is not None), None)
        best = np.nansum(shares * np.where(weights > 0.0, sampling, 0.0), axis=0)
        variance = (variance + best) * (1.0 if records is None else records / (records - 1.0) if records > 1 else np.nan)
    return [
        Estimate(name=name, value=float(each.offset + value[i]), standard_error=float(np.sqrt(variance[i])))
        for i, (name, each) in enumerate(linear.items())
        if total[i] > 0.0
    ]


def _ratios(
    term: CountTerm | TreeMeasurements, n: int | None, above: Floats, below: Floats
) -> tuple[Floats, Floats, Floats] | None:
    """Ratios of two sums over the cells, variances about the confidential records' own, and what sampling those adds.

    NaN where there is no estimate.
    """
    size = len(above)
    found: Unbiased | None = term.unbiased_sums(np.concatenate([above, below]), n=n)
    if found is None:
        return None
    sums, variances = found
    under, error = sums[size:], np.sqrt(np.maximum(variances[size:], 0.0))
    with np.errstate(invalid="ignore", divide="ignore"):
        value = np.where(under > CLEAR * error, sums[:size] / under, np.nan)
    residual = np.where(np.isnan(value)[:, None], 0.0, above - np.nan_to_num(value)[:, None] * below)
    about = term.unbiased_sums(np.concatenate([residual, residual**2]), n=n)
    assert about is not None
    scale = np.where(np.isnan(value), 1.0, under) ** 2
    return value, np.maximum(about[1][:size], 0.0) / scale, np.maximum(about[0][size:], 0.0) / scale
