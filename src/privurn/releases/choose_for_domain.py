"""Mechanisms that look at more than the number of cells: the exponential mechanism and the pseudo-posterior.

Like choosing, it uses public quantities only: the domain says how far cells lie apart, and which numbers they stand for.
"""

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise

import numpy as np

from privurn.domain import Bins, ColumnDomain, Grid, JointDomain
from privurn.errors import DomainError, ModelError
from privurn.mechanisms.alternatives import OTHER_WAYS, listed, other_ways
from privurn.mechanisms.exponential import calibrate_exponential
from privurn.mechanisms.mechanism import Mechanism
from privurn.mechanisms.numeric_cells import cell_numbers
from privurn.mechanisms.pseudo_posterior import calibrate_pseudo_posterior
from privurn.releases.choose import Request, choose_mechanism

FINE_CELLS = 10**6
"""Up to here any model's own grid of parameters will do."""


def choose_for_domain(*, n: int, domain: JointDomain, request: Request) -> tuple[Mechanism, tuple[str, ...]]:
    """The mechanism for n records on a public domain, and remarks on the choice."""
    if request.mechanism == "exponential":
        return _exponential(n, domain, request)
    if request.mechanism == "pseudo-posterior":
        return _pseudo_posterior(n, domain, request), ()
    return choose_mechanism(n=n, cells=domain.size, request=request)


def _exponential(n: int, domain: JointDomain, request: Request) -> tuple[Mechanism, tuple[str, ...]]:
    if domain.size < 2:
        raise ModelError(
            "the exponential mechanism chooses between histograms: it needs at least two cells.",
            hint=listed(other_ways(but="exponential", leave=request.given)),
        )
    loss = request.loss or "l1"
    chosen = calibrate_exponential(
        n=n,
        cells=domain.size,
        guarantee=request.guarantee,
        loss=loss,
        records=request.n_records,
        gaps=_gaps(domain) if loss == "w1" else None,
    )
    if request.n_records is None and chosen.records < n:
        most = "1 record is" if chosen.records == 1 else f"{chosen.records:,} records are"
        return chosen, (f"{most} the most that this loss can draw exactly on {domain.size:,} cells.",)
    return chosen, ()


def _gaps(domain: JointDomain) -> tuple[Fraction, ...] | None:
    """Distances between neighbouring cells; None where they are all the same."""
    column = next(iter(domain.columns.values()))
    if len(domain.columns) != 1 or not isinstance(column, (Grid, Bins)) or column.size != column.n_values:
        raise ModelError(
            "the loss w1 needs cells in an order with known distances: one grid or bins, without a null or other cell.",
            hint=listed(
                (
                    "total variation in place of distances: --loss l1",
                    "squared Hellinger distance: --loss hellinger-squared",
                    *other_ways(but="exponential", leave=["--loss"]),
                )
            ),
        )
    if isinstance(column, Grid):
        return None
    middles = [(Fraction(low) + Fraction(high)) / 2 for low, high in pairwise(column.edges)]
    return tuple(high - low for low, high in pairwise(middles))


def _pseudo_posterior(n: int, domain: JointDomain, request: Request) -> Mechanism:
    if request.model is None:
        raise ModelError("a pseudo-posterior needs a model of the column.", hint=listed(_modelled_ways(domain, request)))
    try:
        return calibrate_pseudo_posterior(
            n=n,
            domain=only_column(domain),
            model=request.model,
            guarantee=request.guarantee,
            records=request.n_records,
            draws=request.draws or 1,
            reference=request.reference,
        )
    except DomainError as error:  # a model and a domain that do not fit: public knowledge
        raise DomainError(error.message, hint=listed(_modelled_ways(domain, request))) from None


def _modelled_ways(domain: JointDomain, request: Request) -> Iterator[str]:
    """Models that fit the domain, then mechanisms that need none."""
    column = next(iter(domain.columns.values()))
    kind = None if request.model is None else request.model.kind
    if len(domain.columns) == 1 and isinstance(column, (Grid, Bins)) and 1 < column.size == column.n_values <= FINE_CELLS:
        low, high = (float(each) for each in cell_numbers(column, np.array([0, column.size - 1])))
        if (low, high, column.size) == (0.0, 1.0, 2) and kind != "bernoulli":
            yield "a model of zeros and ones: --model bernoulli"
        elif low >= 0.0 and high <= 1.0 and kind != "beta":
            yield "a beta curve: --model beta"
        if kind != "normal":
            bounds = f"mean: [{low:g}, {high:g}], deviation: [{(high - low) / 100.0:g}, {high - low:g}]"
            yield f"a normal curve within the domain's bounds: --model '{{kind: normal, {bounds}}}'"
    secret = request.secret_size
    names = [name for name in OTHER_WAYS if not (secret and name == "smoothed-histogram")]
    yield from other_ways(but="pseudo-posterior", leave=request.given, names=names)


def only_column(domain: JointDomain) -> ColumnDomain:
    """The domain's one column; refuses several."""
    if len(domain.columns) != 1:
        raise DomainError("a model is of one column.", hint="Name one column, or use mechanism='auto'")
    return next(iter(domain.columns.values()))
