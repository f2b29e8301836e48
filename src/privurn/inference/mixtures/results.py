"""What follows from a mixture's posterior: the population in figures, synthetic records, clusters, and how much was learned."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privurn.domain import Bins, Categories, JointDomain
from privurn.errors import ModelError
from privurn.inference.counts.plans import reduce
from privurn.inference.draws import Draws
from privurn.inference.mixtures import clustering
from privurn.inference.mixtures.cell_masses import mass_beyond, masses_within_bounds
from privurn.inference.mixtures.clustering import CoClustering, Loss, PointClustering
from privurn.inference.mixtures.fitted import FittedMixture
from privurn.inference.mixtures.mixings import GammaPrior
from privurn.inference.mixtures.prior import (
    PRIOR_ATOMS,
    base_atoms,
    grid_points,
    measure_densities,
    prior_measures,
    rough_measures,
)
from privurn.inference.run import whole_number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
F = TypeVar("F", bound=FittedMixture)
Picture = Literal["density", "intervals", "clusters", "together", "traces"]

POINTS = 256
"""Cells of the default grid."""

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)

SMALL_DISTANCE, LARGE_SPREAD = 0.2, 0.8
"""A release says little where the posterior mean is closer to the prior's than this, and drawn densities are still so wide."""

BATCHES, ERRORS = 4, 2.0
"""Stretches of a chain whose means give standard errors; so many of these are allowed for."""

PRIOR_MEASURES = 400
ROUGH = 200
"""Measures from the prior, or the posterior, that warnings look at."""

MOST_SHOWN = 12
"""Figures in one picture of intervals."""

MOST_CELLS = 10_000
"""Joint categories whose probabilities are looked at."""


@dataclass(frozen=True, kw_only=True)
class Informativeness:
    """How far the release moved what the prior said about the density of a confidential value.

    `distance`: Hellinger distance, 0 to 1, between the prior and the posterior mean density. `spread`: mean Hellinger distance
    of drawn densities from their mean, as a share of what it is under the prior; 1 where nothing was learned. Both are needed:
    where the prior mean happens to be right, data leave it alone but make the draws agree. Chains are finite: both are known up
    to a standard error, and by the triangle inequality the true distance is at least `distance` less its error.
    """

    distance: float
    spread: float
    distance_error: float
    spread_error: float

    @property
    def informative(self) -> bool:
        """Whether the posterior is told from the prior, by more than the chains' own error."""
        least_distance, most_spread = self.distance - ERRORS * self.distance_error, self.spread + ERRORS * self.spread_error
        return least_distance >= SMALL_DISTANCE or most_spread <= LARGE_SPREAD


def has_bounds(posterior: FittedMixture) -> bool:
    """Whether the channel has public bounds, between which figures of numbers can be worked out."""
    return _bounds(posterior) is not None


def _bounds(posterior: FittedMixture) -> tuple[float, float] | None:
    return getattr(posterior.model.channel, "bounds", None)


def bounds_of(posterior: FittedMixture) -> tuple[float, float]:
    """Public bounds of the confidential values."""
    stated = _bounds(posterior)
    if stated is None or posterior.model.kernel.categorical:
        raise ModelError("this channel has no bounds to lay a grid on.", hint="Give the grid, np.linspace(lower, upper, 200)")
    return float(stated[0]), float(stated[1])


def default_grid(posterior: FittedMixture, *, points: int = POINTS) -> Floats:
    """Middles of equal cells between the public bounds."""
    lower, upper = bounds_of(posterior)
    return lower + (upper - lower) * (np.arange(points) + 0.5) / points


def population(posterior: FittedMixture, *, levels: Sequence[float] = LEVELS, labels: Sequence[str] | None = None) -> Draws:
    """Draws of the number of clusters, of a random strength, and of figures of the confidential population.

    For numbers: mean, deviation and quantiles of the drawn density between the public bounds, scaled to mass 1 there (the model
    itself may reach beyond them): what they are of a value given that it lies within the bounds, and summaries say so. For
    categories: the share of each, named by `labels`.
    """
    draws = posterior.draws
    found: dict[str, NDArray[Any]] = {"n_clusters": draws["n_clusters"]}
    if isinstance(getattr(posterior.model.mixing, "strength", None), GammaPrior):
        found["strength"] = draws["strength"]
    given: dict[str, Any] = {"markov": draws.markov, "attributes": draws.attributes}
    if posterior.model.kernel.categorical:
        share = draws["share"] if "share" in draws else column_shares(posterior).reshape(*found["n_clusters"].shape, -1)
        kernel: Any = posterior.model.kernel
        names = (
            labels or posterior.question.labels or (range(share.shape[-1]) if hasattr(kernel, "f") else kernel.parameter_names)
        )
        if len(names) != share.shape[-1]:
            raise ModelError("there must be one label for each category.")
        coords = {"category": [str(name) for name in names]}
        return Draws(variables=found | {"share": share}, dims={"share": ("category",)}, coords=coords, **given)
    listed = isinstance(levels, Iterable) and not isinstance(levels, str)
    if not listed or any(not (isinstance(level, (int, float, np.number)) and 0.0 < level < 1.0) for level in levels):
        raise ModelError("quantiles have levels between 0 and 1.", hint="For example levels=[0.5]")
    figures = {name: draws[name] for name in ("mean", "deviation", *map(_quantile, levels)) if name in draws}
    if len(figures) < 2 + len(levels) or not set(levels) <= set(LEVELS):
        figures = _figures(posterior, levels)
    return Draws(variables=found | figures, labels={name: f"{name}[within bounds]" for name in figures}, **given)


def _quantile(level: float) -> str:
    return f"q{level:g}"


def _figures(posterior: FittedMixture, levels: Sequence[float]) -> dict[str, Floats]:
    """Mean, deviation and quantiles of every drawn density, between the bounds."""
    shape, grid = posterior.draws["n_clusters"].shape, default_grid(posterior)
    masses = masses_within_bounds(posterior, grid)
    mean = masses @ grid
    found = {"mean": mean, "deviation": np.sqrt(np.maximum(masses @ grid**2 - mean**2, 0.0))}
    ends = np.linspace(*bounds_of(posterior), len(grid) + 1)
    below = np.concatenate([np.zeros((len(masses), 1)), np.cumsum(masses, axis=1)], axis=1)
    quantiles = np.stack([np.interp(levels, each, ends) for each in below])
    found |= {_quantile(level): quantiles[:, i] for i, level in enumerate(levels)}
    return {name: each.reshape(shape) for name, each in found.items()}


def with_population(posterior: F) -> F:
    """The same with the figures of `population`, and what was asked for, among its draws, so that a file holds them."""
    if "atoms" not in posterior.draws or not (posterior.model.kernel.categorical or _bounds(posterior)):
        return posterior
    figures, draws = population(posterior), posterior.draws
    joined = replace(
        draws,
        variables={**draws.variables, **figures.variables, **_asked(posterior)},
        dims={**draws.dims, **figures.dims},
        coords={**draws.coords, **figures.coords},
        labels={**draws.labels, **figures.labels},
    )
    return replace(posterior, draws=joined)


def _asked(posterior: FittedMixture) -> dict[str, Floats]:
    """Functionals of every drawn density between the bounds, or of the drawn shares of the joint categories."""
    question, kernel = posterior.question, posterior.model.kernel
    if not question.functionals:
        return {}
    weights, atoms = _measures(posterior)
    if kernel.categorical:
        sizes = getattr(kernel, "categories", None) or (int(kernel.support()[1]) + 1,)
        domain = question.domain or JointDomain({f"x{j}" if j else "x": Categories(range(k)) for j, k in enumerate(sizes)})
        cells = joint_shares(kernel, weights, atoms).reshape(-1, *sizes)
        masses = cells.transpose(0, *range(len(sizes), 0, -1)).reshape(len(cells), -1)  # the first column varies fastest
    else:
        ends = np.linspace(*bounds_of(posterior), POINTS + 1)
        domain = JointDomain({question.column: Bins([float(each) for each in ends])})
        masses = masses_within_bounds(posterior, default_grid(posterior))
    reduction = reduce(question.functionals, domain=domain)
    rows = [reduction.evaluate(each) for each in masses]
    shape = posterior.draws["n_clusters"].shape
    return {name: np.array([row[name] for row in rows]).reshape(shape) for name in reduction.names}


def prior_figures(posterior: FittedMixture) -> dict[str, Floats]:
    """What is shown of a posterior, of mixing measures drawn from the prior: by the names that summaries use."""
    if "atoms" not in posterior.draws or not (posterior.model.kernel.categorical or _bounds(posterior)):
        return {}
    weights, atoms = rough_measures(posterior.model, draws=ROUGH)
    drawn = {"weights": weights[None], "atoms": atoms[None], "n_clusters": np.zeros((1, len(weights)), np.int64)}
    if isinstance(getattr(posterior.model.mixing, "strength", None), GammaPrior):
        drawn["strength"] = np.full((1, len(weights)), np.nan)  # not a figure of the population
    alone = with_population(replace(posterior, draws=Draws(variables=drawn, markov=False)))
    return {name: values.ravel() for name, values in alone.shown.numbers() if name not in drawn}


def beyond_bounds(posterior: FittedMixture) -> dict[str, float]:
    """The share of the drawn densities beyond the public bounds, where values were clamped to them."""
    model, kernel = posterior.model, posterior.model.kernel
    if "atoms" not in posterior.draws or kernel.categorical or not _bounds(posterior) or not getattr(model, "clamped", True):
        return {}
    chosen = np.unique(np.linspace(0, posterior.draws.n_chains * posterior.draws.n_draws - 1, ROUGH).astype(np.int64))
    weights, atoms = _measures(posterior)
    beyond = mass_beyond(kernel, weights[chosen], atoms[chosen], bounds_of(posterior))
    return {posterior.question.column: float(beyond.mean())}


def column_shares(posterior: FittedMixture) -> Floats:
    """Probabilities of the categories of every column, one column after the other: (draws, categories)."""
    weights, atoms = _measures(posterior)
    kernel: Any = posterior.model.kernel
    if hasattr(kernel, "f"):
        return joint_shares(kernel, weights, atoms)
    return np.asarray(np.einsum("dt,dtv->dv", weights, atoms))


def predict(
    posterior: FittedMixture, n: int, *, one_draw: bool = False, clamped: bool = True, seed: int | None = None
) -> NDArray[Any]:
    """Synthetic records from the posterior predictive law of a confidential record; no privacy is spent on them.

    Every record comes from a draw of its own, so that together they follow the posterior mean density. With `one_draw` all come
    from one draw of the mixing measure: several such sets carry the uncertainty, and suit the rules of multiple imputation.
    With `clamped` they are treated as the channel treats data: moved into the bounds, rounded where it is for whole numbers.
    """
    n, rng = whole_number("n", n, least=1, example=1000), np.random.default_rng(seed)
    known = len(_measures(posterior)[0])
    draws = np.full(n, rng.integers(known)) if one_draw else rng.integers(known, size=n)
    return records_of_draws(posterior, draws, clamped=clamped, rng=rng)


def records_of_draws(
    posterior: FittedMixture, draws: NDArray[np.int64], *, clamped: bool = True, rng: np.random.Generator
) -> NDArray[Any]:
    """A record from each of these draws of the mixing measure, by number."""
    from privurn._kernels.mixtures.kernels import update_derived, update_value

    weights, kept = _measures(posterior)
    n, kernel = len(draws), posterior.model.kernel
    record = kernel.record()
    ends = np.cumsum(weights, axis=1)
    places = rng.random(n) * ends[draws, -1]
    atoms = np.zeros((1, kernel.width))
    columns = kernel.columns()
    values: NDArray[Any] = np.empty((n, columns), np.int64) if columns else np.empty(n)
    for i in range(n):
        chosen = min(int(ends[draws[i]].searchsorted(places[i], side="right")), weights.shape[1] - 1)
        atoms[0, : kept.shape[2]] = kept[draws[i], chosen]
        update_derived(record, atoms, 0)
        update_value(record, values, i, atoms, 0, rng)
    channel = posterior.model.channel
    if clamped and not columns and hasattr(channel, "bounds"):
        values = np.clip(values, *bounds_of(posterior))
        if getattr(channel, "whole", False):
            values = np.rint(values).astype(np.int64)
    return values


def co_clustering(posterior: FittedMixture, *, rows: ArrayLike | None = None) -> CoClustering:
    """How often each two records share a cluster; at most 5,000 `rows`, because the matrix is quadratic."""
    return clustering.co_clustering(_allocations(posterior), rows=rows)


def point_clustering(posterior: FittedMixture, *, loss: Loss = "variation-of-information", seed: int = 0) -> PointClustering:
    """One clustering in the middle of the drawn ones: `clustering.point_clustering`."""
    return clustering.point_clustering(_allocations(posterior), loss=loss, seed=seed)


def informativeness(posterior: FittedMixture, *, grid: ArrayLike | None = None, seed: int = 0) -> Informativeness:
    """How much was learned about the density, against the prior; `grid` are middles of equal cells, the bounds' by default.

    Mass beyond the grid counts as one more cell. For categories the cells are the joint categories. Errors are from the means
    of BATCHES stretches of every chain: how far they lie apart is how far the mean of all lies from that of endless chains.
    """
    kernel = posterior.model.kernel
    base = base_atoms(kernel, PRIOR_ATOMS, seed=seed)[:, None, :]
    measures = (np.ones((PRIOR_ATOMS, 1)), base), prior_measures(posterior.model, draws=PRIOR_MEASURES, seed=seed)
    if kernel.categorical:
        kept = joint_shares(kernel, *_measures(posterior))
        alone, before = (joint_shares(kernel, *each) for each in measures)
    else:
        points = default_grid(posterior) if grid is None else grid_points(grid, least=2)
        step = float(points[-1] - points[0]) / (len(points) - 1)
        kept = _masses(posterior.densities(points), step)
        alone, before = (_masses(measure_densities(kernel, *each, points), step) for each in measures)
    centre, mean = alone.mean(axis=0), kept.mean(axis=0)
    apart = hellinger(kept, mean) / max(float(np.mean(hellinger(before, centre))), 1e-12)
    chains = np.split(np.arange(len(kept)), posterior.draws.n_chains)
    batches = [batch for chain in chains for batch in np.array_split(chain, min(BATCHES, len(chain)))]
    distance_error = spread_error = 1.0  # of one draw nothing is known
    if len(batches) > 1:
        squares = [float(hellinger(kept[batch].mean(axis=0), mean)) ** 2 for batch in batches]
        distance_error = math.sqrt(np.mean(squares) / (len(batches) - 1))
        spread_error = float(np.std([apart[batch].mean() for batch in batches], ddof=1)) / math.sqrt(len(batches))
    return Informativeness(
        distance=float(hellinger(mean, centre)),
        spread=float(apart.mean()),
        distance_error=distance_error,
        spread_error=spread_error,
    )


def prior_density(model: Any, grid: ArrayLike, *, seed: int = 0, atoms: int = PRIOR_ATOMS) -> Floats:
    """Mean density under the prior at the grid: the kernel averaged over that many atoms of the base measure."""
    points = grid_points(grid)
    drawn = base_atoms(model.kernel, atoms, seed=seed)[:, None, :]
    return np.asarray(measure_densities(model.kernel, np.ones((atoms, 1)), drawn, points).mean(axis=0))


def hellinger(p: Floats, q: Floats) -> Floats:
    """Distance between probabilities on the last axis.

    >>> float(hellinger(np.array([1.0, 0.0]), np.array([0.0, 1.0])))
    1.0
    """
    return np.asarray(np.sqrt(np.maximum(0.0, 1.0 - np.sqrt(p * q).sum(axis=-1))))


def joint_shares(kernel: Any, weights: Floats, atoms: Floats) -> Floats:
    """Probabilities of the joint categories of all columns under each measure: (draws, cells)."""
    known = hasattr(kernel, "f")  # atoms are numbers of known components
    if not known and math.prod(kernel.categories) > MOST_CELLS:
        raise ModelError(f"there are more than {MOST_CELLS:,} joint categories.", hint="Look at the columns: population()")
    ends = np.cumsum((0, *(() if known else kernel.categories)))
    found = []
    for heavy, places in zip(weights, atoms, strict=True):  # one at a time: measures have hundreds of atoms
        used = heavy > 0.0
        cells = kernel.f[places[used, 0].astype(np.int64)] if known else np.ones((int(used.sum()), 1))
        for first, last in pairwise(ends):
            cells = (cells[..., None] * places[used, None, first:last]).reshape(len(cells), -1)
        found.append(heavy[used] @ cells)
    return np.stack(found)


def plot(
    posterior: FittedMixture,
    *,
    kind: Picture = "density",
    grid: ArrayLike | None = None,
    level: float = 0.95,
    others: Mapping[str, ArrayLike] | None = None,
    rows: ArrayLike | None = None,
) -> "Figure":
    """A picture: "density" with its band, the prior mean and `others`; "intervals"; "clusters"; who is "together"; "traces"."""
    from privurn import drawing

    if kind == "density":
        points = default_grid(posterior) if grid is None else grid_points(grid)
        found = posterior.density(points, level=level)
        beside = {"prior mean": prior_density(posterior.model, points), **(others or {})}
        return drawing.density_picture(
            points, mean=found.mean, lower=found.lower, upper=found.upper, level=level, others=beside
        )
    if kind == "intervals":
        return drawing.interval_picture({"posterior": posterior.summary(level=level)[:MOST_SHOWN]}, title="Posterior")
    if kind == "clusters":
        return drawing.whole_number_picture(posterior.n_clusters, name="number of clusters")
    if kind == "together":
        matrix = co_clustering(posterior, rows=rows)
        order = clustering.point_clustering(_allocations(posterior)[:, matrix.rows]).labels
        return drawing.together_picture(matrix.probabilities, order=order)
    if kind == "traces":
        shown = population(posterior)
        return drawing.trace_picture(shown.numbers([name for name in shown.variables if shown[name].ndim == 2]))
    raise ModelError(f"the picture {kind!r} is not known.", hint="density, intervals, clusters, together or traces")


def _measures(posterior: FittedMixture) -> tuple[Floats, Floats]:
    if "atoms" not in posterior.draws:
        raise ModelError("the atoms were not kept.", hint="Mixture(keep=Keep(atoms=4096))")
    return posterior.draws.flat("weights"), posterior.draws.flat("atoms")


def _allocations(posterior: FittedMixture) -> NDArray[np.int64]:
    if getattr(posterior.model.channel, "one_output", False):  # records are exchangeable given their one output
        raise ModelError("one output for all records does not say who is with whom.", hint="Look at the density")
    if "allocations" not in posterior.draws:
        raise ModelError("the allocations were not kept.", hint="Mixture(keep=Keep(allocations=True))")
    return posterior.draws.flat("allocations")


def _masses(densities: Floats, step: float) -> Floats:
    """Masses of equal cells and, last, of what lies beyond them."""
    cells = np.where(np.isfinite(densities), densities, 0.0) * step
    inside = cells.sum(axis=-1, keepdims=True)
    cells = cells / np.maximum(inside, 1.0)  # a spike narrower than a cell can seem to hold more than all
    return np.concatenate([cells, np.maximum(0.0, 1.0 - inside)], axis=-1)
