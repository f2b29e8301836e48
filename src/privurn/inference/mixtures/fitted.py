"""Draws of a mixture with its model and what was asked: what every figure of it is made from."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privurn.domain import JointDomain
from privurn.errors import ModelError
from privurn.inference.counts.functionals import Functional
from privurn.inference.draws import Draws, check_level
from privurn.inference.mixtures.model import AnyMixture
from privurn.inference.mixtures.prior import grid_points, measure_densities
from privurn.inference.posterior import Posterior


@dataclass(frozen=True, kw_only=True, eq=False)
class DensityEstimate:
    """Posterior mean density of the confidential values at `grid`, with a pointwise equal-tailed band."""

    grid: NDArray[np.float64]
    mean: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    level: float


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked of a mixture: `functionals` of the population (none: the usual figures), and how its cells are called.

    `labels` are the categories, those of several columns one after the other; `domain` is where they were listed.
    Numbers are of `column`.
    """

    functionals: tuple[Functional, ...] = ()
    labels: tuple[str, ...] = ()
    domain: JointDomain | None = None
    column: str = "x"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class FittedMixture(Posterior):
    """A mixture's draws and the densities that they are."""

    model: AnyMixture
    draws: Draws
    question: Question = Question()
    released: Any = None
    """What was released, for the predictive check."""

    @property
    def n_clusters(self) -> NDArray[np.int64]:
        """Number of clusters, (chain, draw)."""
        return self.draws["n_clusters"]

    def densities(self, grid: ArrayLike) -> NDArray[np.float64]:
        """Density of every draw's mixing measure at the grid: (draws of all chains, grid)."""
        kernel, points = self.model.kernel, grid_points(grid)
        if "density" in self.draws and np.array_equal(points, np.asarray(self.draws.coords["grid"])):
            return self.draws.flat("density")
        if kernel.categorical:
            raise ModelError("a density on a grid is for kernels on numbers.")
        if "atoms" not in self.draws:
            raise ModelError("the atoms were not kept.", hint="keep=Keep(atoms=4096), or the density_grid that was asked for")
        return measure_densities(kernel, self.draws.flat("weights"), self.draws.flat("atoms"), points)

    def density(self, grid: ArrayLike, *, level: float = 0.95) -> DensityEstimate:
        """Posterior mean and pointwise band of the density of the confidential values."""
        check_level(level, of="a band")
        drawn = self.densities(grid)
        lower, upper = np.quantile(drawn, [0.5 - level / 2.0, 0.5 + level / 2.0], axis=0)
        points = np.asarray(grid, np.float64)
        return DensityEstimate(grid=points, mean=drawn.mean(axis=0), lower=lower, upper=upper, level=level)
