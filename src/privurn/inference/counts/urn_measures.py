"""Open-domain urn releases: the posterior of the random measure under the mechanism's own prior, by direct simulation.

    p ~ PY(discount, strength; H) without atoms in H,   x_1..x_n | p independent,   Z_1..Z_m | x the urn's draws

Three things can be asked about (docs/proofs/posteriors.md has the proofs, tests/exact/test_urn_measures.py enumerates them):

"urn"         the limit of the urn's draws. (x, Z) is one exchangeable Pitman-Yor sample, so given Z this limit has the
              ordinary posterior of a sample Z: (P_1, .., P_k, P_elsewhere) ~ Dirichlet(S_j - discount, strength + k discount).
"sample"      the shares C_j/n of the released labels in the confidential data; C continues Z as a Pitman-Yor sample.
"population"  p itself. Z depends on p only through x, so p has its posterior given x, averaged over x given Z. A label that
              x does not hold has probability 0 under p: H has no atoms, the urn made it up.

The first is what the literature prints for the third. They agree as n/m grows; at n = m the first is too narrow by a factor
of about sqrt(3).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privurn.errors import ModelError
from privurn.inference.counts.measure_draws import About, Floats, MeasureDraws, Whole
from privurn.mechanisms.likelihood import Likelihood, Numbers, OpenUrnTerm
from privurn.mechanisms.mechanism import Mechanism

ABOUT: tuple[About, ...] = ("population", "sample", "urn")


@dataclass(frozen=True, kw_only=True, eq=False)
class MeasurePosterior:
    """Released labels, their counts S, and the urn's public parameters; `of_data` says which labels the data hold, if known.

    Where the mechanism names its own labels, a reader sees which ones are not of the data. With that knowledge C is the
    Dirichlet-multinomial law conditioned on C_j >= 1 for labels of the data and C_j = 0 for the others; without it,
    unconditioned. `all_published` = False: only draws that copy a value of the data were published (discount 0).
    """

    labels: tuple[Any, ...]
    counts: Whole
    n: int
    strength: float
    discount: float
    of_data: NDArray[np.bool_] | None = None
    all_published: bool = True

    def __post_init__(self) -> None:
        if len(self.labels) == 0 or len(set(self.labels)) != len(self.labels) or self.counts.shape != (len(self.labels),):
            raise ModelError("the release must be given as distinct labels, at least one, with one count each.")
        if self.counts.min() < 1:
            raise ModelError("every released label needs a count of at least 1.")
        if self.of_data is not None and (self.of_data.shape != self.counts.shape or self.of_data.sum() > self.n):
            raise ModelError("of_data needs one truth value for each label, and at most n of them true.")

    @property
    def shapes(self) -> Floats:
        """S_j - discount."""
        return np.asarray(self.counts - self.discount, np.float64)

    @property
    def elsewhere_shape(self) -> float:
        """The strength plus the discount for every released label: the urn's mass for values that were not released."""
        return self.strength + len(self.labels) * self.discount

    def draw(self, n_draws: int, *, rng: np.random.Generator, about: About = "population") -> MeasureDraws:
        """Independent draws, exact for every `about`; no Markov chain and no truncation."""
        if about not in ABOUT:
            raise ModelError(f"draws are about one of {', '.join(ABOUT)}.")
        if n_draws < 1:
            raise ModelError("the number of draws must be at least 1.")
        if about == "urn":
            if not self.all_published:
                raise ModelError(
                    "draws of the urn were left out, so nothing is said about its limit.", hint='about="population"'
                )
            return self._draw_urn(n_draws, rng)
        counts, others = self.draw_counts(n_draws, rng=rng)
        if about == "sample":
            return self._draws(np.column_stack([counts, others]) / self.n, about, others, np.zeros(n_draws))
        strengths = self.strength + self.discount * (counts > 0).sum(axis=1)
        shapes = np.column_stack([np.where(counts > 0, counts - self.discount, 0.0), strengths + others])
        return self._draws(_normalised(rng.standard_gamma(shapes)), about, others, strengths)

    def _draw_urn(self, n_draws: int, rng: np.random.Generator) -> MeasureDraws:
        shapes = np.broadcast_to(np.append(self.shapes, self.elsewhere_shape), (n_draws, len(self.labels) + 1))
        if self.of_data is not None:  # then x tells more than Z does
            shapes = shapes + np.column_stack(self.draw_counts(n_draws, rng=rng))
        nothing, strengths = np.zeros(n_draws, np.int64), np.full(n_draws, self.elsewhere_shape)
        return self._draws(_normalised(rng.standard_gamma(shapes)), "urn", nothing, strengths)

    def _draws(self, weights: Floats, about: About, held: Whole, strengths: Floats) -> MeasureDraws:
        return MeasureDraws(
            weights=weights[:, :-1],
            elsewhere=weights[:, -1],
            about=about,
            discount=self.discount,
            held=held,
            first_strength=self.elsewhere_shape,
            second_strength=strengths,
        )

    def draw_counts(self, n_draws: int, *, rng: np.random.Generator) -> tuple[Whole, Whole]:
        """Independent draws of the confidential counts of the labels, (draw, label), and of the records elsewhere."""
        if self.of_data is None:
            shapes = np.broadcast_to(np.append(self.shapes, self.elsewhere_shape), (n_draws, len(self.labels) + 1))
            drawn = rng.multinomial(self.n, _normalised(rng.standard_gamma(shapes)))
            return drawn[:, :-1], drawn[:, -1]
        counts = np.zeros((n_draws, len(self.labels)), np.int64)
        held, others = positive_counts(
            n_draws, n=self.n, shapes=self.shapes[self.of_data], other_shape=self.elsewhere_shape, rng=rng
        )
        counts[:, self.of_data] = held
        return counts, others


def _normalised(gammas: Floats) -> Floats:
    return np.asarray(gammas / gammas.sum(axis=1, keepdims=True))


def positive_counts(
    n_draws: int, *, n: int, shapes: Floats, other_shape: float, rng: np.random.Generator
) -> tuple[Whole, Whole]:
    """Dirichlet-multinomial(n; shapes, other_shape) given that every count but the last is positive: exact, by rejection."""
    from scipy.optimize import brentq

    from privurn._kernels.counts.measures import update_held_counts

    k = len(shapes)
    if k in (0, n):  # nothing named, or one record each: nothing is random
        return np.ones((n_draws, k), np.int64), np.full(n_draws, n - k)

    def excess(log_odds: float) -> float:
        odds = np.exp(log_odds)
        return float((shapes * odds / -np.expm1(-shapes * np.log1p(odds))).sum() + other_shape * odds - n)

    high = float(np.log(n / (shapes.sum() + other_shape))) + 1.0
    low = high - 1.0
    while excess(low) > 0.0:
        low -= 5.0
    odds = float(np.exp(brentq(excess, low, high, xtol=1e-6)))
    counts, others = np.empty((n_draws, k), np.int64), np.empty(n_draws, np.int64)
    closer = int(np.argmax(np.append(shapes, other_shape)))
    update_held_counts(counts, others, np.ascontiguousarray(shapes), other_shape, n, odds, closer, rng)
    return counts, others


def measure_posterior(
    mechanism: Mechanism, *, labels: Sequence[Any], counts: ArrayLike, of_data: ArrayLike | None = None
) -> MeasurePosterior:
    """The posterior of an open-domain urn release under the mechanism's own prior.

    Parameters
    ----------
    mechanism
        An urn with fresh labels.
    labels, counts
        Distinct released labels and how often each was released.
    of_data
        For each label whether the data hold it, if the release shows it (`OpenUrnTerm.of_data` reads it off the names).

    Examples
    --------
    >>> from fractions import Fraction
    >>> from privurn.mechanisms.pitman_yor import PitmanYor
    >>> urn = PitmanYor(n=100, records=4, strength=Fraction(1))
    >>> found = measure_posterior(urn, labels=["a", "b"], counts=[3, 1])
    >>> found.shapes, found.elsewhere_shape  # the urn's limit is Dirichlet with these
    (array([3., 1.]), 1.0)
    """
    named = tuple(labels)
    return open_posterior(mechanism.likelihood(Numbers(np.asarray(counts), named)), labels=named, of_data=of_data)


def open_posterior(term: Likelihood, *, labels: tuple[Any, ...], of_data: ArrayLike | None) -> MeasurePosterior:
    """The same from the likelihood of the labels' counts."""
    if not isinstance(term, OpenUrnTerm):
        raise ModelError(
            "what was released is not an urn on an open domain.",
            hint="Its cells are listed, or were named by their counts: use privurn.inference.counts.composition",
        )
    flags = None if of_data is None else np.asarray(of_data, np.bool_)
    if not term.all_published:
        if flags is not None and not flags.all():
            raise ModelError("only values of the data were published: of_data must be true for every label.")
        flags = np.ones(len(term.released), np.bool_)
    return MeasurePosterior(
        labels=labels,
        counts=term.released,
        n=term.n,
        strength=term.strength,
        discount=term.discount,
        of_data=flags,
        all_published=term.all_published,
    )
