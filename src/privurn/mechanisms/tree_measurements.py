"""What a noisy tree publishes: noisy counts of all nodes of some depths, and of the special cells beside the tree."""

from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from privurn.cell_tree import CellTree
from privurn.errors import ModelError
from privurn.privacy.additive_noise import NoiseKind, check_scale, noise_deviation

Noise = tuple[NoiseKind, float]
"""Kind and scale, as in `privacy.additive_noise`."""


@dataclass(frozen=True, eq=False)
class TreeMeasurements:
    """Noisy counts of a tree: y_v = C_v + noise for every node v of the measured depths, independent.

    `depths` go up; `noisy` and `noise` have one entry for each of them, `noisy` one number for each node. `total`: the public
    number of records in the tree and its special cells together; None where it is secret. `special`: noisy counts of the cells
    that hang beside the tree (missing, other), all with `special_noise`. `places`: numbers that the tree's cells, and then the
    special ones, have in a domain; left out, these very numbers.

    >>> tree = CellTree((4,))
    >>> TreeMeasurements(tree, (2,), (np.array([3, 0, 1, -1]),), (("laplace", 1.0),), total=4).special
    ()
    """

    tree: CellTree
    depths: tuple[int, ...]
    noisy: tuple[NDArray[np.int64], ...]
    noise: tuple[Noise, ...]
    total: int | None = None
    special: tuple[int, ...] = ()
    special_noise: Noise | None = None
    places: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        if not self.depths or not len(self.depths) == len(self.noisy) == len(self.noise):
            raise ModelError("a noisy tree measures at least one depth, each with its noisy counts and its noise.")
        if list(self.depths) != sorted(set(self.depths)) or not 0 <= self.depths[0] <= self.depths[-1] <= self.tree.depth:
            raise ModelError(f"measured depths go up, from 0 at the root to at most {self.tree.depth} at the cells.")
        for depth, noisy in zip(self.depths, self.noisy, strict=True):
            if noisy.dtype != np.int64 or noisy.shape != (self.tree.nodes(depth),):
                raise ModelError(f"depth {depth} needs one whole number for each of its {self.tree.nodes(depth):,} nodes.")
        if self.total is not None and self.total < 0:
            raise ModelError("the number of records cannot be negative.")
        if bool(self.special) != (self.special_noise is not None):
            raise ModelError("special cells have noisy counts and noise, or neither.")
        for kind, scale in (*self.noise, *((self.special_noise,) if self.special_noise else ())):
            if kind not in get_args(NoiseKind):
                raise ModelError(f"noise of the kind {kind!r} is not known.", hint="laplace or gaussian")
            check_scale(scale)

    def in_domain(self, cells: NDArray[Any], special: NDArray[Any]) -> NDArray[Any]:
        """Numbers of the tree's cells and of the special ones, by the domain's numbers; along the first axis."""
        both = np.concatenate([cells, special])
        if self.places is None:
            return both
        out = np.empty_like(both)
        out[self.places] = both
        return out

    def own(self, depth: int) -> tuple[NDArray[np.int64], Noise] | None:
        """Noisy counts and noise of a depth, where it is measured."""
        if depth not in self.depths:
            return None
        at = self.depths.index(depth)
        return self.noisy[at], self.noise[at]


def noise_variance(noise: Noise) -> float:
    """Variance of the noise."""
    kind, scale = noise
    return noise_deviation(noise=kind, scale=scale) ** 2
