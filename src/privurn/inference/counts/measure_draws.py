"""Draws of a random probability measure: weights of the released labels, and everything elsewhere."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privurn.errors import ModelError

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
About = Literal["population", "sample", "urn"]


@dataclass(frozen=True, kw_only=True, eq=False)
class MeasureDraws:
    """Independent draws: `weights` (draw, label) of the released labels, `elsewhere` the probability of all other values.

    `elsewhere` is the discovery probability: the next record is a value that was not released. `held` is the number of
    confidential records elsewhere (0 where the draws are about the urn), and what lies elsewhere is a Chinese restaurant of
    `held` records with strength `first_strength`, continued with `second_strength`.
    """

    weights: Floats
    elsewhere: Floats
    about: About
    discount: float
    held: Whole
    first_strength: float
    second_strength: Floats

    def distinct_elsewhere(self, further: int, *, rng: np.random.Generator) -> Whole:
        """Draws of the number of values not released that `further` records would show. Exact; O(held + further) a draw."""
        from privurn._kernels.counts.measures import update_distinct

        self._needs_a_measure()
        if further < 0:
            raise ModelError("the size of a further sample must not be negative.")
        out = np.empty(len(self.elsewhere), np.int64)
        records = rng.binomial(further, self.elsewhere)
        # without a discount the values elsewhere are a Dirichlet process whose law the held records do not change
        held = self.held if self.discount > 0.0 else np.zeros_like(self.held)
        strengths = self.second_strength if self.discount > 0.0 else np.full(len(out), self.first_strength)
        update_distinct(out, held, self.first_strength, records, strengths, self.discount, rng)
        return out

    def atoms_elsewhere(self, sticks: int, *, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """A finite representation of what lies elsewhere: weights of its atoms (draw, atom), and the weight left over.

        Blocks of held records come first, padded with zeros, then `sticks` atoms of the part that no record has shown. The
        left-over weight is the total-variation error of the representation, stated for each draw; its mean falls
        like (strength/(1 + strength))^sticks without a discount and like sticks^-(1/discount - 1) with one.
        """
        from privurn._kernels.counts.measures import update_blocks

        self._needs_a_measure()
        if self.discount == 0.0:
            atoms, left = _sticks(np.full(len(self.elsewhere), self.first_strength), 0.0, sticks, rng)
            return atoms * self.elsewhere[:, None], left * self.elsewhere
        sizes = np.zeros(max(1, int(self.held.max(initial=0))), np.int64)
        blocks = []
        for records in self.held:
            n_blocks = update_blocks(sizes, self.first_strength, self.discount, records, rng)
            blocks.append(sizes[:n_blocks].copy())
        width = max(len(each) for each in blocks)
        shapes = np.zeros((len(blocks), width + 1))
        for row, each in enumerate(blocks):
            shapes[row, : len(each)] = each - self.discount
            shapes[row, width] = self.second_strength[row] + len(each) * self.discount
        parts = rng.standard_gamma(shapes)
        parts *= (self.elsewhere / parts.sum(axis=1))[:, None]
        atoms, left = _sticks(shapes[:, width], self.discount, sticks, rng)
        return np.hstack([parts[:, :width], atoms * parts[:, width:]]), left * parts[:, width]

    def _needs_a_measure(self) -> None:
        if self.about == "sample":
            raise ModelError("the confidential sample is finite: this can be asked about the population or the urn only.")


def _sticks(strengths: Floats, discount: float, number: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Stick-breaking weights V_i prod (1 - V_l), V_i ~ Beta(1 - discount, strength + i discount), and what is left."""
    if number < 1:
        raise ModelError("a finite representation needs at least one stick.")
    breaks = rng.beta(1.0 - discount, strengths[:, None] + discount * np.arange(1, number + 1))
    left: Floats = np.cumprod(1.0 - breaks, axis=1, dtype=np.float64)
    return breaks * np.hstack([np.ones((len(strengths), 1)), left[:, :-1]]), left[:, -1]
