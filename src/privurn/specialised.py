"""Mechanisms that look at more than the number of cells: the exponential mechanism and the pseudo-posterior.

Like choosing, it uses public quantities only: the domain says how far cells lie apart, and which numbers they stand for.
"""

from fractions import Fraction
from itertools import pairwise

from privurn.choosing import Request, choose_mechanism
from privurn.domain import Bins, ColumnDomain, Grid, JointDomain
from privurn.errors import ModelError
from privurn.mechanisms.exponential import calibrate_exponential
from privurn.mechanisms.mechanism import Mechanism
from privurn.mechanisms.pseudo_posterior import calibrate_pseudo_posterior


def choose_for_domain(*, n: int, domain: JointDomain, request: Request) -> tuple[Mechanism, tuple[str, ...]]:
    """The mechanism for n records on a public domain, and remarks on the choice."""
    if request.mechanism == "exponential":
        return _exponential(n, domain, request)
    if request.mechanism == "pseudo-posterior":
        return _pseudo_posterior(n, domain, request), ()
    return choose_mechanism(n=n, cells=domain.size, request=request)


def _exponential(n: int, domain: JointDomain, request: Request) -> tuple[Mechanism, tuple[str, ...]]:
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
        return chosen, (f"{chosen.records:,} records are the most that this loss can draw exactly on {domain.size:,} cells.",)
    return chosen, ()


def _gaps(domain: JointDomain) -> tuple[Fraction, ...] | None:
    """Distances between neighbouring cells; None where they are all the same."""
    column = _only_column(domain)
    if not isinstance(column, (Grid, Bins)) or column.size != column.n_values:
        raise ModelError(
            "the loss w1 needs cells in an order with known distances.",
            hint="A grid or bins without a null or other cell, or another loss: --loss l1",
        )
    if isinstance(column, Grid):
        return None
    middles = [(Fraction(low) + Fraction(high)) / 2 for low, high in pairwise(column.edges)]
    return tuple(high - low for low, high in pairwise(middles))


def _pseudo_posterior(n: int, domain: JointDomain, request: Request) -> Mechanism:
    if request.model is None:
        raise ModelError(
            "a pseudo-posterior needs a model of the column.",
            hint="model=privurn.models.Beta(), or --model beta, bernoulli, or a YAML file with kind and its bounds",
        )
    return calibrate_pseudo_posterior(
        n=n,
        domain=_only_column(domain),
        model=request.model,
        guarantee=request.guarantee,
        records=request.n_records,
        draws=request.draws or 1,
        reference=request.reference,
    )


def _only_column(domain: JointDomain) -> ColumnDomain:
    if len(domain.columns) != 1:
        raise ModelError("this mechanism releases one column.", hint="Name one column, or use mechanism='auto'")
    return next(iter(domain.columns.values()))
