"""What is known of the counts of a tree: noisy ones of all nodes of some depths, and of the special cells beside the tree.

Counts of cells alone are a tree of which only the deepest depth is measured. In place of noise these may be known through
records that were drawn: S_i of cell i from an urn ("urn"), or with probabilities that are shares of the counts and of the
uniform ("mixed"), n being public. What is said of cell i is then Gamma(a + C_i + S_i)/Gamma(a + C_i), or (a + C_i)^S_i, with a
the prior's records in each cell. Or they were drawn from noisy counts that are cut off at zero ("clipped"): `clipped_records`.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from privurn.cell_tree import CellTree
from privurn.errors import ModelError
from privurn.mechanisms.clipped_records import ClippedRecords
from privurn.privacy.additive_noise import NoiseKind, check_scale, noise_deviation, simulated_noise
from privurn.privacy.tied_noise import tied_noise, tied_variances

Noise = tuple[NoiseKind | Literal["urn", "mixed", "clipped"], float]
"""Kind and scale, as in `privacy.additive_noise`; or how records were drawn, and the prior's records in each cell, or the scale
of the noise on the counts that they were drawn from."""

DRAWN = ("urn", "mixed", "clipped")

Floats = NDArray[np.float64]
Groups = dict[tuple[int, int], tuple[NDArray[np.int64], float | None, float]]
"""Of each depth that another one is tied to (0: the root), and that one: nodes of each group, and the scales of both."""

Unbiased = tuple[Floats, Floats]
"""Unbiased estimates, and estimates of their variances."""


@dataclass(frozen=True, eq=False)
class Leaves:
    """Numbers of all cells with their noise; `laws` as in `TreeMeasurements`."""

    numbers: NDArray[Any]
    noise: Noise
    laws: tuple[ClippedRecords, ...] = ()


@dataclass(frozen=True, eq=False)
class TreeMeasurements:
    """Noisy counts of a tree: y_v = C_v + noise for every node v of the measured depths.

    `depths` go up; `noisy` and `noise` have one entry for each of them, `noisy` one number for each node. `total`: the public
    number of records in the tree and its special cells together; None where it is secret. `special`: noisy counts of the cells
    that hang beside the tree (missing, other), all with `special_noise`. `places`: numbers that the tree's cells, and then the
    special ones, have in a domain; left out, these very numbers. `sums_from`: where cells alone are measured, the depth from
    which on, down to the cells, what is said of a node's count is said by the sum over its cells alone. `laws`: of "clipped"
    records, equally likely ones, the most likely in the middle. The noise is independent, or at the `tied` depths sums to that
    of the measured node above (`privacy.tied_noise`): the likelihood is the same.

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
    special_noise: tuple[NoiseKind, float] | None = None
    places: NDArray[np.int64] | None = None
    sums_from: int | None = None
    laws: tuple[ClippedRecords, ...] = ()
    tied: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.depths or not len(self.depths) == len(self.noisy) == len(self.noise):
            raise ModelError("a noisy tree measures at least one depth, each with its noisy counts and its noise.")
        if list(self.depths) != sorted(set(self.depths)) or not 0 <= self.depths[0] <= self.depths[-1] <= self.tree.depth:
            raise ModelError(f"measured depths go up, from 0 at the root to at most {self.tree.depth} at the cells.")
        for depth, noisy in zip(self.depths, self.noisy, strict=True):
            if noisy.dtype not in (np.int64, np.float64) or noisy.shape != (self.tree.nodes(depth),):
                raise ModelError(f"depth {depth} needs one number for each of its {self.tree.nodes(depth):,} nodes.")
        if self.total is not None and self.total < 0:
            raise ModelError("the number of records cannot be negative.")
        if bool(self.special) != (self.special_noise is not None):
            raise ModelError("special cells have noisy counts and noise, or neither.")
        if any(kind in DRAWN for kind, _ in self.noise) and (len(self.noise) > 1 or self.special or not self.total):
            raise ModelError("records that were drawn say something of the cells alone, where n is public and not 0.")
        if self.sums_from is not None and (self.depths != (self.tree.depth,) or not 0 <= self.sums_from <= self.tree.depth):
            raise ModelError("sums over cells stand for measurements where cells alone were measured.")
        if any(depth not in self.depths or self.noise[self.depths.index(depth)][0] != "laplace" for depth in self.tied):
            raise ModelError("only Laplace noise of measured depths is tied.")
        if (self.noise[-1][0] == "clipped") != bool(self.laws):
            raise ModelError("records of noisy counts that were cut off have their own laws, and nothing else has.")
        for kind, scale in (*self.noise, *((self.special_noise,) if self.special_noise else ())):
            if kind not in (*get_args(NoiseKind), *DRAWN):
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

    def unbiased_sums(self, weights: Floats, *, n: int | None) -> Unbiased:
        """Best linear unbiased estimates of sum_i weights_i C_i over the domain's cells, and their variances given C.

        NaN where the weights differ within a node of the deepest measured depth: nothing was measured of its parts.
        """
        tree, last = self.tree, self.depths[-1]
        placed = weights if self.places is None else weights[:, self.places]
        inside, beside = placed[:, : tree.cells][:, tree.order], placed[:, tree.cells :]
        starts = tree.starts[last]
        apart = np.maximum.reduceat(inside, starts, axis=1) > np.minimum.reduceat(inside, starts, axis=1)
        variances = self._variances
        found = _Sums.leaves(inside[:, starts], self.noisy[-1], variances[last])
        for depth in range(last - 1, -1, -1):
            first = np.searchsorted(tree.starts[depth + 1], tree.starts[depth])
            two = np.diff(np.append(first, tree.nodes(depth + 1))) == 2
            found = found.at(first).joined(found.at(first + two), where=two)
            own = self.own(depth)
            found = found if own is None else found.seen(own[0], variances[depth])
        for k, noisy in enumerate(self.special):
            assert self.special_noise is not None  # what the measurements insist on
            beside_it = np.full(1, noise_variance(self.special_noise))
            found = found.joined(_Sums.leaves(beside[:, k : k + 1], np.array([noisy]), beside_it))
        values, errors = found.estimated(self.total)
        return np.where(apart.any(axis=1), np.nan, values), errors

    @property
    def _variances(self) -> dict[int, Floats]:
        """Of each measured depth's nodes: the variance of their noise, or of independent noise that errs as theirs, if tied."""
        found = {
            depth: np.full(self.tree.nodes(depth), noise_variance(noise))
            for depth, noise in zip(self.depths, self.noise, strict=True)
        }
        for (top, depth), (sizes, above, below) in self._groups.items():
            of_sizes = {k: tied_variances(float(k), above=above, below=below) for k in np.unique(sizes).tolist()}
            found[depth] = np.repeat([of_sizes[k].below for k in sizes.tolist()], sizes)
            if above is not None:
                found[top] = np.array([of_sizes[k].above for k in sizes.tolist()])
        return found

    @property
    def _groups(self) -> Groups:
        return tied_groups(self.tree, self.depths, tuple(scale for _, scale in self.noise), self.tied)

    def noise_anew(self, draws: int, *, rng: np.random.Generator) -> tuple[NDArray[np.int64], ...]:
        """Noise of each measured depth as these numbers have it, simulated: a row for each node, a column for each draw."""
        found = {}
        for (top, depth), (sizes, above, below) in self._groups.items():
            parents, parts = tied_noise(np.tile(sizes, draws), above=above, below=below, rng=rng)
            found[top], found[depth] = parents.reshape(draws, -1).T, parts.reshape(draws, -1).T
        for depth, (kind, scale) in zip(self.depths, self.noise, strict=True):
            if depth not in found:
                found[depth] = simulated_noise((self.tree.nodes(depth), draws), noise=kind, scale=scale, rng=rng)  # type: ignore[arg-type]
        return tuple(found[depth] for depth in self.depths)

    @property
    def drawn(self) -> bool:
        """Whether what is known of the cells are records that were drawn."""
        return self.noise[-1][0] in DRAWN

    @property
    def law(self) -> ClippedRecords | None:
        """The most likely one of `laws`."""
        return self.laws[len(self.laws) // 2] if self.laws else None

    @property
    def versions(self) -> "tuple[TreeMeasurements, ...]":
        """The same with one law each, equally likely."""
        return tuple(replace(self, laws=(each,)) for each in self.laws) or (self,)

    def estimates(self, depth: int) -> Unbiased | None:
        """Unbiased estimates of the counts of a depth from its own measurements, and their variances, about."""
        own = self.own(depth)
        if own is None:
            return None
        noisy, (kind, prior) = own
        if kind not in DRAWN:
            return noisy.astype(np.float64), np.full(len(noisy), noise_variance(own[1]))
        if self.law is not None:
            numbers = self.law.number(noisy)
            return numbers, self.law.variance(numbers)
        whole, records = float(self.total or 0) + len(noisy) * prior, float(noisy.sum())
        share = (noisy + 1.0) / (records + len(noisy))
        spread = whole * share * (1.0 - share) / records * (whole + records if kind == "urn" else whole)
        return np.asarray(whole * noisy / records - prior, np.float64), np.asarray(spread, np.float64)

    def summed_logs(self, depth: int, counts: Floats, nodes: NDArray[np.int64]) -> Floats:
        """Log likelihood of counts of these nodes of a depth by the sums of their cells' numbers, up to what n fixes.

        Cells of an urn that are put together are an urn, and so with shares of counts. Noise on a sum of many cells is about
        normal, and so is a sum of the numbers of clipped records, whose cells have a law of their own. Since all drawn counts
        sum to n, the same multiple of each may be taken off: so much that the maximum is near the estimate.
        """
        from scipy.special import gammaln

        if self.law is not None and depth == self.tree.depth:
            return self.law.logs(self.noisy[-1], counts, nodes)
        starts, (kind, scale) = self.tree.starts[depth], self.noise[-1]
        if self.law is not None:
            numbers, size = np.add.reduceat(self.law.number(self.noisy[-1]), starts), self._sizes(depth)[nodes]
            variances = size * self.law.variance(counts / size)
            return np.asarray(-0.5 * (numbers[nodes] - counts) ** 2 / variances - 0.5 * np.log(variances))
        noisy = np.add.reduceat(self.noisy[-1].astype(np.float64), starts)
        sizes = self._sizes(depth)
        if kind not in DRAWN:
            return np.asarray(-0.5 * (noisy[nodes] - counts) ** 2 / (sizes[nodes] * noise_variance((kind, scale))))
        whole, records = float(self.total or 0) + self.tree.cells * scale, float(noisy.sum())
        held = scale * sizes[nodes] + counts
        if kind == "urn":
            return np.asarray(gammaln(held + noisy[nodes]) - gammaln(held) - counts * np.log1p(records / whole))
        return np.asarray(noisy[nodes] * np.log(held) - counts * (records / whole))

    def _sizes(self, depth: int) -> NDArray[np.int64]:
        return np.diff(np.append(self.tree.starts[depth], self.tree.cells))

    def own(self, depth: int) -> tuple[NDArray[np.int64], Noise] | None:
        """Noisy counts and noise of a depth, where it is measured."""
        if depth not in self.depths:
            return None
        at = self.depths.index(depth)
        return self.noisy[at], self.noise[at]


def tied_groups(tree: CellTree, depths: tuple[int, ...], scales: tuple[float, ...], tied: tuple[int, ...]) -> Groups:
    """Which numbers of measured depths, with noise of these scales, are tied to each other.

    >>> groups = tied_groups(CellTree((5,)), (1, 3), (2.0, 4.0), (3,))
    >>> [(depths, sizes.tolist(), above, below) for depths, (sizes, above, below) in groups.items()]
    [((1, 3), [3, 2], 2.0, 4.0)]
    """
    found: Groups = {}
    for depth in tied:
        place = depths.index(depth)
        top, above = (depths[place - 1], scales[place - 1]) if place else (0, None)
        found[top, depth] = (tree.children(top, depth), above, scales[place])
    return found


def noise_variance(noise: Noise) -> float:
    """Variance of the noise."""
    kind, scale = noise
    return noise_deviation(noise=kind, scale=scale) ** 2


@dataclass(frozen=True, eq=False)
class _Sums:
    """Of some nodes: least squares from the measurements at and below each, for its count and for sums over its cells.

    The count has mean `mean` and variance `variance`; given the count c, sums (one row each) have mean shift + slope c and
    variance `rest`.
    """

    mean: Floats
    variance: Floats
    shift: Floats
    slope: Floats
    rest: Floats

    @classmethod
    def leaves(cls, weights: Floats, noisy: NDArray[np.int64], variance: Floats) -> "_Sums":
        nothing = np.zeros(weights.shape)
        return cls(noisy.astype(np.float64), variance, nothing, weights, nothing)

    def at(self, nodes: NDArray[np.int64]) -> "_Sums":
        return _Sums(self.mean[nodes], self.variance[nodes], self.shift[:, nodes], self.slope[:, nodes], self.rest[:, nodes])

    def joined(self, other: "_Sums", *, where: Any = True) -> "_Sums":
        """Nodes of two children each; `where` there is only one, it stays as it is."""
        both = self.variance + other.variance
        part, apart = self.variance / both, self.slope - other.slope
        return _Sums(
            np.where(where, self.mean + other.mean, self.mean),
            np.where(where, both, self.variance),
            np.where(where, self.shift + other.shift + apart * (self.mean - part * (self.mean + other.mean)), self.shift),
            np.where(where, other.slope + apart * part, self.slope),
            np.where(where, self.rest + other.rest + apart**2 * part * other.variance, self.rest),
        )

    def seen(self, noisy: NDArray[np.int64], variance: Floats) -> "_Sums":
        """With a measurement of each node's own count as well."""
        part = 1.0 / (1.0 + self.variance / variance)
        mean = part * self.mean + (1.0 - part) * noisy
        return _Sums(mean, part * self.variance, self.shift, self.slope, self.rest)

    def estimated(self, total: int | None) -> Unbiased:
        """The sums of the only node, whose count may be known."""
        if total is not None:
            return self.shift[:, 0] + self.slope[:, 0] * total, self.rest[:, 0]
        return self.shift[:, 0] + self.slope[:, 0] * self.mean[0], self.rest[:, 0] + self.slope[:, 0] ** 2 * self.variance[0]
