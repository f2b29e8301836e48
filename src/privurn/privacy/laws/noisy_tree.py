"""Profile of counts measured at several depths of a tree, with special cells measured beside it.

A record lies in one node of every measured depth, or in one special cell. One that leaves lowers those counts by one each, one
that enters raises them; under replace-one neighbours one leaves and another enters, under add-remove one does either. All
moved counts have independent symmetric noise, so their losses add. k records of one person move counts by up to k, and that
is worst where they move together. Of counts whose noise is tied only the largest loss is taken. Proofs:
docs/proofs/noisy-trees.md; enumeration: tests/exact/test_noisy_tree.py, tests/exact/test_tied_noise.py.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations_with_replacement, pairwise
from typing import Literal

from privurn.errors import ModelError
from privurn.exact_numbers import float_up
from privurn.privacy.additive_noise import NoiseKind
from privurn.privacy.laws.noise import SymmetricProfile, check_positive, check_whole
from privurn.privacy.laws.shift_losses import Moved, divergence, is_exact
from privurn.privacy.profile import ROUND_UP

TreeNoise = Literal["discrete-laplace", "discrete-gaussian"]
KINDS: dict[TreeNoise, NoiseKind] = {"discrete-laplace": "laplace", "discrete-gaussian": "gaussian"}

MOST_SPLITS = 4
"""Up to so many records of one person all ways to share them between tree and special cells are taken one by one, more of
them in so many ranges."""

Range = tuple[int, int]
"""Least and largest number of a person's records, of those that leave (or enter), that leave (or enter) the tree."""


@dataclass(frozen=True, kw_only=True)
class NoisyTreeProfile(SymmetricProfile):
    """Independent noise on every node of the measured depths and on `special_cells` further cells.

    Each depth has its scale in `scales`, none of them is the root where n is public, and special cells have `special_scale`.
    `contributions` records belong to a person. `tied` has the places in `scales` of depths whose Laplace noise sums to that of
    the depth before it, or to zero for the first one where n is public and no cells are special.

    With u of a person's k records in the tree and k - u in a special cell, H(u) is the loss of one count moved by u at every
    measured depth and one special count moved by k - u. Add-remove: delta is the largest divergence of H(u) over u;
    replace-one: of H(u) + H(v) over u and v, and with one special cell that is moved by |u - v| instead.

    discrete-laplace, P(j) proportional to e^(-|j|/scale): with A the sum of 1/scale over the depths and B = 1/special_scale,
    pure epsilon is k max(A, B) under add-remove, and k max(2A, A + B, 2B) under replace-one (2B with two special cells only).
    discrete-gaussian, P(j) proportional to e^(-j^2/(2 scale^2)): rho by the same rules from k^2/(2 scale^2).

    Where the special cells have no less noise than some depth (for discrete-gaussian: the same), u = v = k is the worst case.

    A depth of scale b that is tied to one of scale a counts with it as one of 1/(1/a + 1/b) that is moved by one record; the
    largest loss stays the same, and others are bounded: `tight` is False.
    """

    noise: TreeNoise
    scales: tuple[float, ...]
    special_cells: int = 0
    special_scale: float | None = None
    contributions: int = 1
    tied: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.noise not in KINDS:
            raise ModelError(f"the noise {self.noise!r} is not known.", hint=", ".join(KINDS))
        if not self.scales:
            raise ModelError("a noisy tree needs at least one measured depth.")
        check_whole("contributions", self.contributions)
        if self.special_cells < 0 or (self.special_cells > 0) != (self.special_scale is not None):
            raise ModelError("special cells need a scale of their noise, and only they do.")
        for scale in (*self.scales, *(() if self.special_scale is None else (self.special_scale,))):
            check_positive("scale", scale)
        if self.tied:
            self._check_tied()

    def _check_tied(self) -> None:
        if self.noise != "discrete-laplace":
            raise ModelError("only Laplace noise is tied.")
        rising = all(b - a >= 2 for a, b in pairwise(self.tied))  # of two depths, each in one group only
        if not (rising and self.tied[0] >= 0 and self.tied[-1] < len(self.scales)):
            raise ModelError("noise is tied to that of the depth before, which is not tied itself.")
        if self.tied[0] == 0 and (self.neighbouring == "add-remove" or self.special_cells):
            raise ModelError("the first depth is tied only where the number of records in the tree is public.")

    def group(self, contributions: int) -> "NoisyTreeProfile":
        """The profile for so many records of one person together: their shifts, which group privacy would overstate."""
        return replace(self, contributions=self.contributions * contributions)

    @property
    def tight(self) -> bool:
        """Whether tables attain it: up to four records of one person, or no special cells, and not too many distinct scales."""
        special = self.special_scale is not None and not self._special_is_covered
        if self.tied:
            return False
        return not (special and self.contributions > MOST_SPLITS) and all(is_exact(self._kind, moved) for moved in self._cases)

    @property
    def pure_epsilon(self) -> float:
        """See the class; infinite for Gaussian noise."""
        return (
            math.inf if self.noise == "discrete-gaussian" else float_up(self._largest_total(lambda scale: 1 / Fraction(scale)))
        )

    @property
    def zcdp(self) -> float:
        """Rho: 1/(2 scale^2) for each count moved by one, of either noise, because e0-DP is e0^2/2-zCDP; k^2 for k.

        Of tied noise the largest of all cases.
        """
        if self.tied:
            return float_up(max(sum(map(_rho, case), Fraction(0)) for case in self._cases)) * ROUND_UP
        return float_up(self._largest_total(lambda scale: 1 / (2 * Fraction(scale) ** 2)) * self.contributions) * ROUND_UP

    def _largest_total(self, price: Callable[[float], Fraction]) -> Fraction:
        """The largest price of k records; both totals are convex in u and v, so all of k move in the same way."""
        tree = sum((price(scale) for scale in self.scales), Fraction(0))
        special = Fraction(0) if self.special_scale is None else price(self.special_scale)
        if self.neighbouring == "add-remove":
            return self.contributions * max(tree, special)
        return self.contributions * max(2 * tree, tree + special, 2 * special if self.special_cells > 1 else Fraction(0))

    @property
    def _kind(self) -> NoiseKind:
        return KINDS[self.noise]

    @property
    def _special_is_covered(self) -> bool:
        """Whether moving records from the special cells into the tree can only make a case worse."""
        if self.special_scale is None:
            return True
        if self.noise == "discrete-gaussian":  # more noise of this kind is not less noise plus noise
            return self.special_scale in self.scales
        return self.special_scale >= min(self.scales)

    @cached_property
    def _cases(self) -> tuple[tuple[Moved, ...], ...]:
        """Which counts move by how much in the cases among which is the worst, or one that is worse still."""
        return tuple(dict.fromkeys(tuple(sorted(_counted(case))) for case in self._shifts()))

    def _shifts(self) -> Iterator[list[tuple[float, int]]]:
        """Scale and shift of every count that moves, case by case."""
        k = self.contributions
        bounds = sorted({k * i // MOST_SPLITS for i in range(MOST_SPLITS + 1)})
        ranges = (
            [(i, i) for i in range(k + 1)]
            if k <= MOST_SPLITS
            else [(0, 0), *((low + 1, high) for low, high in pairwise(bounds))]
        )
        if self._special_is_covered:
            ranges = [(k, k)]
        if self.neighbouring == "add-remove":
            yield from (tree + self._special(k - u[0]) for u in ranges for tree in self._tree(u[1], 0))
            return
        for v, u in combinations_with_replacement(ranges, 2):
            one_cell = self.special_cells == 1
            beside = self._special(u[1] - v[0]) if one_cell else self._special(k - u[0]) + self._special(k - v[0])
            yield from (tree + beside for tree in self._tree(u[1], v[1]))

    def _tree(self, u: int, v: int) -> Iterator[list[tuple[float, int]]]:
        """Counts that u records which leave the tree move, and v that enter it."""
        moved: list[tuple[float, int]] = []
        for place in reversed(range(len(self.scales))):
            if place in self.tied:
                if place and self.contributions == u == v == 1:  # both in one group: its own count does not move
                    yield [_bounded((2, self.scales[place])), *moved]
                moved += self._group(place, u, v)
            elif place + 1 not in self.tied:
                moved += [(self.scales[place], u), (self.scales[place], v)]
        yield moved

    def _group(self, place: int, u: int, v: int) -> list[tuple[float, int]]:
        """Counts of a depth and of the one that it is tied to: several together lose as one that is moved by one."""
        own, above = self.scales[place], self.scales[place - 1] if place else None
        if above is None or self.contributions > 1:  # they may be in one group
            return [_bounded((u + v, own), *(() if above is None else ((u + v, above),)))] if u + v else []
        return [_bounded((1, own), (1, above))] * (u + v)

    def _special(self, shift: int) -> list[tuple[float, int]]:
        return [] if self.special_scale is None else [(self.special_scale, shift)]

    def _divergence(self, epsilon: float) -> float:
        return max((divergence(self._kind, moved, epsilon) for moved in self._cases if moved), default=0.0)


def _bounded(*moved: tuple[int, float]) -> tuple[float, int]:
    """An integer that is moved by one, and loses as much as these shifts at these scales together at most do; rounded down."""
    loss = sum((shift / Fraction(scale) for shift, scale in moved), Fraction(0))
    return math.nextafter(1.0 / float_up(loss), 0.0), 1


def _rho(moved: Moved) -> Fraction:
    scale, shift, times = moved
    return Fraction(times * shift**2) / (2 * Fraction(scale) ** 2)


def _counted(shifts: list[tuple[float, int]]) -> list[Moved]:
    """Equal ones are counted together; those that do not move are left out."""
    return [(scale, shift, times) for (scale, shift), times in Counter(shifts).items() if shift > 0]
