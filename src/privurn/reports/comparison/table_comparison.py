"""Simulated releases of a whole table beside two floors: columns shuffled independently, and a resample of the data.

A fifth of the records is held out: a classifier that was trained on each table is tested on them. Everything is simulated in
floating point and computed from confidential records: nothing of it may be published.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from privurn.domain import TableDomain
from privurn.errors import DomainError, ModelError
from privurn.inference.tables.fit import AT_FACE_VALUE, FitSettings, fit_mixture
from privurn.inference.tables.sampling import synthetic_cells
from privurn.mechanisms.choice import choose
from privurn.mechanisms.likelihood import Numbers
from privurn.mechanisms.marginal_counts import count_marginals
from privurn.mechanisms.recipe import Public, Recipe
from privurn.mechanisms.registry import default_recipe
from privurn.privacy.profile import Guarantee
from privurn.reports.comparison.whole_tables import (
    Codes,
    classified,
    marginal_distances,
    propensity_ratio,
    resampled,
    shuffled,
)
from privurn.tables import open_table
from privurn.tables.cell_batches import cell_batches

HELD_OUT = 0.2
FEWEST = 20
"""Records that a comparison needs."""

SHUFFLED, RESAMPLED = "columns shuffled", "resample of the data"
"""The floors: what keeps single columns only, and what is as near as another sample."""

FIGURES = {
    "1": "one column",
    "1 worst": "its worst",
    "2": "two columns",
    "2 worst": "its worst",
    "3": "three columns",
    "3 worst": "its worst",
    "propensity": "propensity error, 1 by chance",
    "accuracy": "classifier's accuracy",
    "coefficients": "coefficients off, in standard errors",
}
"""What is measured, and how it is called: total variation of marginals, mean over all sets of columns and largest, and more."""


@dataclass(frozen=True, kw_only=True)
class TableComparison:
    """Median figures by table that was made, and then by figure. Confidential."""

    guarantee: Guarantee
    n: int
    response: str
    runs: int
    medians: Mapping[str, Mapping[str, float]]

    def to_confidential(self) -> dict[str, Any]:
        """Plain data, marked."""
        return {
            "confidential": True,
            "epsilon": self.guarantee.epsilon,
            "delta": self.guarantee.delta,
            "n": self.n,
            "response": self.response,
            "runs": self.runs,
            "tables": {name: dict(each) for name, each in self.medians.items()},
        }


def compare_tables(
    data: Any,
    *,
    domain: TableDomain,
    guarantee: Guarantee,
    recipe: Recipe | None = None,
    response: str | None = None,
    runs: int = 5,
    seed: int = 0,
    settings: FitSettings | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> TableComparison:
    """Medians over simulated releases; `response` is the column that a classifier learns (left out: the last)."""
    if runs < 1:
        raise ModelError("at least one release must be simulated.", hint="runs=5")
    if len(domain.names) < 2 or response not in (None, *domain.names):
        raise DomainError(f"there is no column {response!r} beside others.", hint=f"Columns: {', '.join(domain.names)}")
    with open_table(data) as source:
        source.check_columns(list(domain.names))
        domain = domain.in_order(source.types)
        whole = np.concatenate(list(cell_batches(source, domain)), axis=1)
    chosen = response or domain.names[-1]
    if whole.shape[1] < FEWEST:
        raise DomainError(f"a comparison needs at least {FEWEST} records.")
    whole = whole[:, np.random.default_rng([seed, 0]).permutation(whole.shape[1])]
    kept = whole.shape[1] - max(2, round(HELD_OUT * whole.shape[1]))
    given, held_out = np.ascontiguousarray(whole[:, :kept]), whole[:, kept:]
    asked = recipe or default_recipe("table")()
    secret = guarantee.neighbouring == "add-remove"
    public = Public(n=None if secret else kept, cells=domain.size, guarantee=guarantee, table=domain)
    mechanism: Any = choose(asked, public)[0]
    counts = count_marginals([given], mechanism.layout)
    given, held_out = mechanism.layout.ranges(given), mechanism.layout.ranges(held_out)  # fine columns are compared by these

    def release(rng: np.random.Generator) -> Codes:
        measured = mechanism.likelihood(Numbers(mechanism.simulate(counts, rng=rng)))
        own = int(rng.integers(2**31))
        fit = fit_mixture(replace(measured, domain=domain), seed=own, settings=settings or AT_FACE_VALUE)
        return synthetic_cells(fit.mixture, kept, seed=own, zeros=domain.zero_cells)

    makers: dict[str, Callable[[np.random.Generator], Codes]] = {
        mechanism.name: release,
        SHUFFLED: lambda rng: shuffled(given, rng=rng),
        RESAMPLED: lambda rng: resampled(given, rng=rng),
    }
    found: dict[str, list[dict[str, float]]] = {name: [] for name in makers}
    for run in range(runs):
        for i, (name, make) in enumerate(makers.items()):
            rng = np.random.default_rng([seed, 1, run, i])
            found[name].append(
                _figures(given, held_out, make(rng), mechanism.sizes, response=domain.names.index(chosen), rng=rng)
            )
            progress(run * len(makers) + i + 1, runs * len(makers))
    medians = {
        name: {figure: float(np.median([each[figure] for each in several])) for figure in several[0]}
        for name, several in found.items()
    }
    return TableComparison(guarantee=guarantee, n=whole.shape[1], response=chosen, runs=runs, medians=medians)


def _figures(
    given: Codes, held_out: Codes, made: Codes, sizes: tuple[int, ...], *, response: int, rng: np.random.Generator
) -> dict[str, float]:
    found: dict[str, float] = {}
    for each in marginal_distances(given, made, sizes):
        found |= {f"{each.order}": each.mean, f"{each.order} worst": each.worst}
    learnt = classified(given, held_out, made, sizes, response=response, rng=rng)
    return found | {
        "propensity": propensity_ratio(given, made, sizes, rng=rng),
        "accuracy": learnt.accuracy,
        "coefficients": learnt.coefficients_off,
    }
