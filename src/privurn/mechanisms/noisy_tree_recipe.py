"""The default release of one or two columns with an order: a noisy tree, from what is asked for to its noise."""

import math
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import ClassVar

from privurn.cell_tree import CellTree
from privurn.errors import FormatError, ModelError
from privurn.mechanisms.mechanism import Mechanism
from privurn.mechanisms.noisy_tree import PerturbedTree, check_cells, tree_shape
from privurn.mechanisms.recipe import Public, Recipe, check_copies, option
from privurn.mechanisms.tree_layout import range_variance, tree_layout
from privurn.privacy.additive_noise import noise_deviation
from privurn.privacy.laws.noisy_tree import KINDS, TreeNoise
from privurn.privacy.noisy_tree_calibration import smallest_tree_scales
from privurn.privacy.profile import Guarantee
from privurn.privacy.tied_noise import LARGEST_SCALE, tied_variances

MOST_COPIES = 1000

MOST_PARTS, MOST_DRAWN = 64, 250_000
"""Tied noise: nodes of a group, on average (of many it gains next to nothing), and numbers drawn for it, some seconds' work."""


@dataclass(frozen=True, kw_only=True, repr=False)
class NoisyTree(Recipe):
    """Noisy counts of a tree over the values of one or two columns with an order, and synthetic records made from them.

    The noisy counts are what is paid for; any number of records, and of copies, follow from them without another look at the
    data. One copy is for use at face value: its cumulative counts are the posterior medians, rounded. Several are draws of the
    confidential table, whose spread tells how far an estimate may be off (`privurn.combine`).
    """

    alias: ClassVar[str] = "noisy-tree"
    offered: ClassVar[str | None] = "records from a noisy tree at the same guarantee"
    keeps_n_secret: ClassVar[bool] = True

    noise: TreeNoise | None = option("discrete-laplace or discrete-gaussian; left out: that with the smaller error.")
    guess: int | None = option("A public guess of a secret number of records. Default: the number of records to release.")
    independent: bool = option(
        "All noise is independent: a smaller rho, for budgets that are kept in rho, and errors that are some per cent larger.",
        default=False,
    )
    copies: int = option("Synthetic tables drawn from the posterior; 1 (default): one table of its means.", default=1)

    @property
    def has_size(self) -> bool:
        """A guess will do."""
        return self.records is not None or self.guess is not None

    def sized(self, records: int) -> "NoisyTree":
        """Copies have the confidential size, of which there is a guess."""
        return replace(self, guess=records) if self.copies > 1 else replace(self, records=records)

    def check(self) -> None:
        """Words and numbers that are known."""
        super().check()
        if self.noise is not None and self.noise not in KINDS:
            raise FormatError(f"the noise {self.noise!r} is not known.", hint=", ".join(KINDS))
        if not isinstance(self.independent, bool):
            raise ModelError("independent is True or False.", hint="Leave it out for the smaller error")
        if self.guess is not None and (not math.isfinite(self.guess) or int(self.guess) != self.guess or self.guess < 1):
            raise ModelError("guess must be a positive whole number.", hint="For example guess=20")
        check_copies(self.copies, self.records, most=MOST_COPIES, guessed=True)

    def makes_parts(self, mechanism: Mechanism, public: Public) -> bool:
        """They are known by the counts of cells."""
        return True

    def calibrate(self, public: Public) -> PerturbedTree:
        """The layout and the least noise."""
        check_cells(public.known_cells)
        shape = ((public.known_cells,), (0,)) if public.domain is None else tree_shape(public.domain)
        if shape is None:
            raise ModelError("a noisy tree needs one or two columns of numbers.", alternatives=())
        return calibrate_noisy_tree(
            n=public.n,
            shape=shape[0],
            special=shape[1],
            guarantee=public.guarantee,
            guess=self.guess or self.records,
            noise=self.noise,
            independent=self.independent,
        )


def calibrate_noisy_tree(
    *,
    n: int | None,
    shape: tuple[int, ...],
    guarantee: Guarantee,
    special: tuple[int, ...] = (),
    guess: int | None = None,
    noise: TreeNoise | None = None,
    independent: bool = False,
) -> PerturbedTree:
    """The noisy tree with the least noise for the guarantee, laid out by `tree_layout`.

    Under replace-one n is public and decides the layout. Under add-remove n is ignored, and `guess`, a public guess of it,
    takes its place; the number of records asked for is one. `noise`: Laplace where delta = 0; else, unless given, that with
    which a cumulative count has the smaller error (`cumulative_variance`). `independent`: none of it is tied.

    >>> calibrate_noisy_tree(n=100_000, shape=(256,), guarantee=Guarantee(epsilon=1.0, delta=0.0)).scales
    (4.0, 4.0)
    """
    secret = guarantee.neighbouring == "add-remove"
    size = guess if secret else n
    if size is None or size < 1:
        raise ModelError(
            "the layout of a noisy tree needs the number of records, or a public guess of it where it is secret.",
            hint="For example guess=10000; the number of records that shall be published will do",
        )
    tree = CellTree(shape)
    check_cells(tree.cells)
    kinds: tuple[TreeNoise, ...] = (noise,) if noise else ("discrete-laplace", "discrete-gaussian")
    if guarantee.delta == 0.0 and noise is None:
        kinds = ("discrete-laplace",)
    known = None if secret else size
    made = [
        _calibrated(tree, guarantee, special=special, n=known, guess=size, noise=kind, independent=independent)
        for kind in kinds
    ]
    return min(made, key=lambda each: each[0])[1]


def _calibrated(
    tree: CellTree,
    guarantee: Guarantee,
    *,
    special: tuple[int, ...],
    n: int | None,
    guess: int,
    noise: TreeNoise,
    independent: bool,
) -> tuple[float, PerturbedTree]:
    """Variance of a cumulative count, and the mechanism."""
    (flat,), _ = smallest_tree_scales(noise=noise, precisions=(1.0,), guarantee=guarantee)
    deviation = noise_deviation(noise=KINDS[noise], scale=flat)
    layout = tree_layout(tree, noise=noise, flat_deviation=deviation, n=guess, secret=n is None)
    first = PerturbedTree(n=n, shape=tree.shape, depths=layout.depths, scales=layout.precisions, noise=noise)
    beside = replace(first, special=special, special_scale=1.0).cells - tree.cells if any(special) else 0

    def made(tied: tuple[int, ...]) -> tuple[float, PerturbedTree]:
        scales, special_scale = smallest_tree_scales(
            noise=noise,
            precisions=layout.precisions,
            guarantee=guarantee,
            special_cells=beside,
            tied=tuple(map(layout.depths.index, tied)),
        )
        found = replace(first, scales=scales, special=special, special_scale=special_scale, tied=tied)
        return cumulative_variance(found, n=guess), found

    plain = made(())
    tied = tied_depths(plain[1], n=guess) if noise == "discrete-laplace" and not independent else ()
    return min(plain, made(tied), key=lambda each: each[0]) if tied else plain


def tied_depths(mechanism: PerturbedTree, *, n: int) -> tuple[int, ...]:
    """Depths whose noise is tied to that of the depth above: of all that may be, and are soon drawn, those of the least error.

    Of two neighbouring depths one, and the first one only where the number of records in the tree is public.

    >>> made = PerturbedTree(n=10**6, shape=(4096,), depths=(4, 8, 12), scales=(6.0, 6.0, 6.0), noise="discrete-laplace")
    >>> tied_depths(made, n=10**6), tied_depths(replace(made, n=None), n=10**6)
    ((4, 12), (8,))
    """
    known = mechanism.n is not None and not any(mechanism.special)
    nodes = [1, *(mechanism.tree.nodes(depth) for depth in mechanism.depths)]
    few = [at <= MOST_PARTS * above and max(mechanism.scales) <= LARGEST_SCALE for above, at in pairwise(nodes)]
    places = [place for place, each in enumerate(few) if each and (known or place > 0)]
    sets = [each for count in range(len(places) + 1) for each in combinations(places, count)]
    apart = [each for each in sets if all(second - first > 1 for first, second in pairwise(each))]
    choices = [replace(mechanism, tied=tuple(mechanism.depths[place] for place in each)) for each in apart]
    return min(
        (each for each in choices if each.drawn_anew <= MOST_DRAWN), key=lambda each: cumulative_variance(each, n=n)
    ).tied


def cumulative_variance(mechanism: PerturbedTree, *, n: int) -> float:
    """Mean squared error of the count up to a cell, on average over the cells and about: how two layouts are compared.

    `range_variance`, where tied noise counts as independent noise that errs as it does.
    """
    nodes = [mechanism.tree.nodes(depth) for depth in mechanism.depths]
    deviations = list(mechanism.noise_deviations)
    for depth in mechanism.tied:
        place = mechanism.depths.index(depth)
        above = mechanism.scales[place - 1] if place else None
        children = nodes[place] / nodes[place - 1] if place else float(nodes[place])
        found = tied_variances(children, above=above, below=mechanism.scales[place])
        deviations[place] = math.sqrt(found.below)
        if place:
            deviations[place - 1] = math.sqrt(found.above)
    return range_variance(nodes, tuple(deviations), n=n, secret=mechanism.n is None)


def coarse(shape: tuple[int, ...], most: int) -> tuple[int, ...]:
    """A table of at most so many cells, by halving both columns in turn; the same table where it has no more.

    >>> coarse((5001,), 4096), coarse((500, 40), 4096), coarse((500, 3), 128), coarse((60, 60), 4096)
    ((4096,), (128, 32), (64, 2), (60, 60))
    """
    if math.prod(shape) <= most:
        return shape
    sizes = [1] * len(shape)
    for turn in range(2 * most.bit_length()):
        axis = turn % len(shape)
        if 2 * sizes[axis] <= shape[axis] and 2 * math.prod(sizes) <= most:
            sizes[axis] *= 2
    return tuple(sizes)


def trimmed(mechanism: PerturbedTree, most: int) -> PerturbedTree:
    """What a tree tells of its wider ranges, at most so many: nodes further down count as sums over them, with their noise.

    What is lost is that few of the nodes further down may hold all records: of 1,024 ranges instead of 4,096 cells the expected
    errors differ by some per cent, of 64 the error of a mean is a quarter too large.
    """
    shape = coarse(mechanism.shape, most)
    plain = replace(mechanism, special=(), special_scale=None, tied=())
    if shape == mechanism.shape:
        return replace(plain, tied=mechanism.tied)
    last = CellTree(shape).depth
    kept = [each for each in zip(mechanism.depths, mechanism.scales, strict=True) if each[0] <= last]
    deviations = zip(mechanism.depths, mechanism.noise_deviations, strict=True)
    if mechanism.depths[-1] > last:
        below = [(mechanism.tree.nodes(depth), each) for depth, each in deviations if depth >= last]
        precision = sum(math.prod(shape) / (nodes * each**2) for nodes, each in below)
        wide = 1.0 / math.sqrt(precision * (2.0 if mechanism.noise == "discrete-laplace" else 1.0))
        kept = [*(each for each in kept if each[0] < last), (last, wide)]
    depths, scales = zip(*kept, strict=True)
    return replace(plain, shape=shape, depths=depths, scales=scales)
