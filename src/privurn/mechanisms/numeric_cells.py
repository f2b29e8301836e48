"""The numbers that cells of a grid or of bins stand for, and a model's probabilities of those cells."""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privurn.domain import Bins, ColumnDomain, Grid
from privurn.errors import DomainError
from privurn.mechanisms.models import Bernoulli, Model

Floats = NDArray[np.float64]

MOST_CELLS = 2_000_000
"""Every cell's probability is computed, for every drawn parameter."""

WEIGHT_BITS = 50


def check_numeric(domain: ColumnDomain, model: Model) -> None:
    """Refuse, from public knowledge alone, a domain whose cells are not all numbers that the model can hold."""
    if not isinstance(domain, (Grid, Bins)):
        raise DomainError("a model of numbers needs a numeric domain.", hint="Declare a grid or bins")
    if domain.size != domain.n_values:
        raise DomainError(
            "a model of numbers has no cell for nulls or for other values.",
            hint="Use outside='clamp' and nulls='error'",
        )
    if domain.size > MOST_CELLS:
        raise DomainError(f"a model is released on at most {MOST_CELLS:,} cells.", hint="Use a larger step or fewer bins")
    low, high = cell_numbers(domain, np.array([0, domain.size - 1]))
    if low < model.support[0] or high > model.support[1]:
        raise DomainError(
            f"the {model.kind} model holds numbers from {model.support[0]:g} to {model.support[1]:g}: the domain goes beyond.",
            hint="Rescale the column, narrow the domain, or use another model",
        )
    if isinstance(model, Bernoulli) and (domain.size != 2 or (low, high) != (0.0, 1.0)):
        raise DomainError("the bernoulli model holds 0 and 1 only.", hint="Grid(0, 1, 1)")


def cell_numbers(domain: ColumnDomain, cells: NDArray[np.int64]) -> Floats:
    """Grid point or bin midpoint of each cell, each by a computation of its own."""
    if isinstance(domain, Grid):
        low, step = domain.bounds[0], domain.spacing
        return np.array([float(low + step * int(cell)) for cell in cells])
    edges = [Fraction(edge) for edge in _bins(domain).edges]
    return np.array([float((edges[int(cell)] + edges[int(cell) + 1]) / 2) for cell in cells])


def inner_edges(domain: ColumnDomain) -> Floats:
    """Where one cell ends and the next begins; the outermost cells reach to infinity."""
    if isinstance(domain, Grid):
        low, step = domain.bounds[0], domain.spacing
        return np.asarray(float(low + step / 2) + float(step) * np.arange(domain.size - 1), np.float64)
    return np.array([float(Fraction(edge)) for edge in _bins(domain).edges[1:-1]])


def cell_weights(model: Model, parameters: Floats, edges: Floats) -> NDArray[np.int64]:
    """The model's probabilities of the cells, in whole parts of 2^50; one that floats cannot give is 0."""
    ends = np.concatenate(([0.0], model.cumulative(edges, parameters), [1.0]))
    shares = np.fmin(np.fmax(np.diff(ends), 0.0), 1.0)
    return np.rint(shares * 2.0**WEIGHT_BITS).astype(np.int64)


def _bins(domain: ColumnDomain) -> Bins:
    if not isinstance(domain, Bins):
        raise DomainError("a model of numbers needs a grid or bins.")
    return domain
