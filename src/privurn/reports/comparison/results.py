"""What a comparison found: numbers for each mechanism, and in words which did best and why. Confidential throughout."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.privacy.confidential import Confidential
from privurn.privacy.profile import Guarantee
from privurn.reports.comparison.candidates import NO_CERTIFICATE, Refused
from privurn.reports.comparison.yardsticks import Axis, Metric


@dataclass(frozen=True, kw_only=True, repr=False)
class Result(Confidential):
    """What one mechanism's simulated releases came to: `errors` has a row for each run and a column for each metric.

    `systematic` is the first metric between the data and the average of all releases; `curves` holds for each axis the 10%,
    50% and 90% points over the runs; `output` says what is released.
    """

    name: str
    output: str
    errors: NDArray[np.float64]
    systematic: float
    curves: tuple[NDArray[np.float64], ...]
    reason: str

    @property
    def medians(self) -> NDArray[np.float64]:
        """Median of each metric over the runs."""
        return quantiles_of(self.errors, 0.5)

    @property
    def spreads(self) -> NDArray[np.float64]:
        """Half of the interquartile range of each metric."""
        return 0.5 * (quantiles_of(self.errors, 0.75) - quantiles_of(self.errors, 0.25))


@dataclass(frozen=True, kw_only=True, repr=False)
class Comparison(Confidential):
    """Results in order of the first metric's median, the best first; `plain` is a sample without any privacy.

    `uncertified` are results of mechanisms that are not differentially private, in an order of their own: they do not compete.
    """

    n: int
    cells: int
    guarantee: Guarantee
    runs: int
    seed: int
    metrics: tuple[Metric, ...]
    axes: tuple[Axis, ...]
    data_curves: tuple[NDArray[np.float64], ...]
    results: tuple[Result, ...]
    plain: Result
    refused: tuple[Refused, ...]
    uncertified: tuple[Result, ...] = ()

    @property
    def best(self) -> Result:
        """The result with the smallest median of the first metric."""
        return self.results[0]

    @property
    def words(self) -> tuple[str, ...]:
        """Which did best and why, then why each of the others did not, one sentence each."""
        title = self.metrics[0].title
        found = [f"{self._verdict()} Its error is {self.best.reason}."]
        for each in self.results[1:]:
            found.append(f"{each.name} ({title} {each.medians[0]:,.4g}): {each.reason}.")
        for each in self.uncertified:
            found.append(
                f"{each.name} ({NO_CERTIFICATE}; {title} {each.medians[0]:,.4g}) does not meet the guarantee and is not "
                f"ranked: its error is {each.reason}."
            )
        found += [f"{each.name} cannot be used: {each.reason}" for each in self.refused]
        return tuple(found)

    def _verdict(self) -> str:
        best, title = self.best, self.metrics[0].title
        start = f"{best.name} did best: median {title} {best.medians[0]:,.4g}"
        if len(self.results) == 1:
            return f"{best.name} is the only one that meets the guarantee: median {title} {best.medians[0]:,.4g}."
        second = self.results[1]
        ahead = second.medians[0] - best.medians[0]
        near = ahead <= max(best.spreads[0], second.spreads[0])
        than = f"{second.medians[0]:,.4g} of {second.name}"
        return f"{start}, hardly different from {than}." if near else f"{start}, against {than}."

    def to_confidential(self) -> dict[str, Any]:
        """Plain data for the custodian's own screen and files."""
        return {
            "confidential": True,
            "n": self.n,
            "cells": self.cells,
            "epsilon": self.guarantee.epsilon,
            "delta": self.guarantee.delta,
            "neighbouring": self.guarantee.neighbouring,
            "runs": self.runs,
            "seed": self.seed,
            "metrics": {each.name: {"title": each.title, "unit": each.unit} for each in self.metrics},
            "results": [self._plain_data(each) for each in self.results],
            "uncertified": [{**self._plain_data(each), "certificate": NO_CERTIFICATE} for each in self.uncertified],
            "plain_sample": self._plain_data(self.plain),
            "refused": {each.name: each.reason for each in self.refused},
            "words": list(self.words),
        }

    def _plain_data(self, result: Result) -> dict[str, Any]:
        def by_name(values: NDArray[np.float64]) -> dict[str, float | None]:
            return {each.name: _number(value) for each, value in zip(self.metrics, values, strict=True)}

        return {
            "mechanism": result.name,
            "output": result.output,
            "median": by_name(result.medians),
            "spread": by_name(result.spreads),
            "systematic": _number(result.systematic),
            "reason": result.reason,
        }


def quantiles_of(values: NDArray[np.float64], probability: float) -> NDArray[np.float64]:
    """Quantiles of the columns over the rows, without what could not be measured."""
    known = [column[~np.isnan(column)] for column in values.T]
    return np.array([np.quantile(column, probability) if len(column) else np.nan for column in known])


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
