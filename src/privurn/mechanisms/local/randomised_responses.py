"""Several columns of categories, each by a randomised response of its own. Proof: docs/proofs/channels.md, section 5."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privurn.errors import ModelError
from privurn.mechanisms.local.channel import LocalChannel, check_target, clamped
from privurn.mechanisms.local.randomised_response import RandomisedResponseChannel
from privurn.mechanisms.local.recipe import ResponseRecipe
from privurn.privacy.entropy import Entropy
from privurn.privacy.laws.noise import RandomisedResponseProfile, SymmetricProfile, zcdp_bound
from privurn.privacy.profile import ROUND_UP, Guarantee

MOST_LOSSES = 10**6
"""Different sums of losses that are listed; columns with equal epsilon have few."""

MOST_CELLS = 2**53
"""Joint codes are whole numbers that floats hold."""

DOWN = 1.0 - 2.0**-50
"""Leaves room for the rounding of a sum of epsilons."""


@dataclass(frozen=True, kw_only=True)
class RandomisedResponsesProfile(SymmetricProfile):
    """Independent randomised responses of one record: losses add, and two records that differ everywhere are the worst pair.

    Column j then loses e_j, 0 or -e_j with probabilities p, (k - 2) p e^-e_j and p e^-e_j, p = 1/(1 + (k - 1) e^-e_j), and
    delta(epsilon) = sum over losses l of P(l) (1 - e^(epsilon - l))_+. All terms are positive: nothing cancels.
    """

    columns: tuple[RandomisedResponseProfile, ...]

    def __post_init__(self) -> None:
        if math.prod(2 * self._epsilons.count(e) + 1 for e in set(self._epsilons)) > MOST_LOSSES:
            raise ModelError("so many columns with different epsilons are not accounted for.", hint="Split epsilon equally")

    @property
    def _epsilons(self) -> list[float]:
        return [column.epsilon0 for column in self.columns]

    @property
    def pure_epsilon(self) -> float:
        """Sum of the columns', rounded up."""
        return math.nextafter(math.fsum(self._epsilons), math.inf)

    @property
    def zcdp(self) -> float:
        """Sum of the columns' rho."""
        return math.fsum(zcdp_bound(column) for column in self.columns) * ROUND_UP

    @cached_property
    def _law(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Losses and their probabilities under the first of the two records."""
        losses, probabilities = np.zeros(1), np.ones(1)
        for epsilon in sorted(set(self._epsilons)):
            net = np.ones(1)
            for column in self.columns:
                if column.epsilon0 == epsilon:
                    other = math.exp(-epsilon)
                    kept = 1.0 / (1.0 + (column.categories - 1) * other)
                    net = np.convolve(net, [kept * other, (column.categories - 2) * kept * other, kept])
            steps = np.arange(len(net)) - len(net) // 2
            losses = np.add.outer(losses, epsilon * steps).ravel()
            probabilities = np.multiply.outer(probabilities, net).ravel()
        rounding = 2.0**-52 * (len(self.columns) + 2) * math.fsum(self._epsilons)
        return losses + rounding, probabilities  # no loss below its true value

    def _divergence(self, epsilon: float) -> float:
        losses, probabilities = self._law
        above = losses > epsilon
        return float(-(probabilities[above] * np.expm1(epsilon - losses[above])).sum())


@dataclass(frozen=True, kw_only=True)
class RandomisedResponsesChannel(LocalChannel):
    """One randomised response for each column, independent: together the sum of their epsilons.

    A record is the joint code first + k_1 (second + k_2 (third + ...)), as in a `JointDomain`; `rows` takes it apart.

    >>> channel = RandomisedResponsesChannel.calibrate(categories=(3, 2), epsilon=2 * math.log(2))
    >>> channel.sizes, [round(each.kept, 6) for each in channel.responses]
    ((3, 2), [0.5, 0.666667])
    >>> channel.rows([4]).tolist()
    [[1, 1]]
    """

    responses: tuple[RandomisedResponseChannel, ...]
    name: ClassVar[str] = "randomised-responses"
    adds_noise: ClassVar[bool] = False

    def __post_init__(self) -> None:
        responses = tuple(self.responses)
        if len(responses) < 2 or any(len(getattr(each, "sizes", ())) != 1 for each in responses):
            raise ModelError("several randomised responses are needed.", hint="RandomisedResponseChannel, for one column")
        object.__setattr__(self, "responses", responses)
        if self.categories > MOST_CELLS:
            raise ModelError("the columns have too many joint categories.", hint="Fewer columns, or fewer categories")

    @property
    def sizes(self) -> tuple[int, ...]:
        """Categories of each column."""
        return tuple(each.categories for each in self.responses)

    @property
    def parts(self) -> tuple[RandomisedResponseChannel, ...]:
        """The responses."""
        return self.responses

    @property
    def remarks(self) -> tuple[str, ...]:
        """How often the truth is told, and how epsilon is split."""
        kept = [each.kept for each in self.responses]
        share = self.responses[0].epsilon0
        equal = f", {share:.4g} for each of {len(kept)} columns" if len({each.odds for each in self.responses}) == 1 else ""
        return (
            f"epsilon is that of the whole record{equal}; columns keep their category with probability "
            f"{' and '.join(f'{each:.4g}' for each in kept)}, all of them with {math.prod(kept):.4g}.",
        )

    @property
    def categories(self) -> int:
        """Joint categories."""
        return math.prod(self.sizes)

    @property
    def bounds(self) -> tuple[float, float]:  # type: ignore[override]
        """Smallest and largest joint code."""
        return 0.0, float(self.categories - 1)

    @property
    def profile(self) -> RandomisedResponsesProfile:
        """Exact up to the rounding of the columns' epsilons."""
        return RandomisedResponsesProfile(columns=tuple(each.profile for each in self.responses))

    @classmethod
    def calibrate(cls, *, categories: Sequence[int], epsilon: float) -> Self:
        """Epsilon is split equally among the columns."""
        epsilon, _ = check_target(epsilon)
        each = epsilon / max(1, len(categories)) * DOWN
        return cls(responses=tuple(RandomisedResponseChannel.calibrate(categories=k, epsilon=each) for k in categories))

    def rows(self, codes: ArrayLike) -> NDArray[np.int64]:
        """The codes of every column, on a new last axis; whatever a record holds is moved to a joint code first."""
        joint = np.rint(clamped(codes, self.bounds)).astype(np.int64)
        return np.stack(np.unravel_index(joint, self.sizes, order="F"), axis=-1).astype(np.int64)

    def joint(self, rows: ArrayLike) -> NDArray[np.int64]:
        """Inverse of `rows`."""
        each = np.moveaxis(np.asarray(rows, np.int64), -1, 0)
        return np.asarray(np.ravel_multi_index(tuple(each), self.sizes, order="F"), np.int64)

    def privatise(self, data: ArrayLike, *, entropy: Entropy) -> NDArray[np.int64]:
        """Every column with integers of its own."""
        rows = self.rows(data)
        drawn = [each.privatise(rows[..., j], entropy=entropy) for j, each in enumerate(self.responses)]
        return self.joint(np.stack(drawn, axis=-1))

    def simulate(self, data: ArrayLike, *, rng: np.random.Generator) -> NDArray[np.int64]:
        """Floating-point twin."""
        rows = self.rows(data)
        return self.joint(np.stack([each.simulate(rows[..., j], rng=rng) for j, each in enumerate(self.responses)], axis=-1))

    def log_density(self, released: ArrayLike, data: ArrayLike) -> NDArray[np.float64]:
        """Log probability of the released joint code. Codes that the channel never releases have probability 0."""
        z = np.asarray(released)
        inside = (z >= 0) & (z < self.categories) & (z == np.rint(z))
        after, before = self.rows(z), self.rows(data)
        columns = [each.log_density(after[..., j], before[..., j]) for j, each in enumerate(self.responses)]
        return np.where(inside, np.sum(columns, axis=0), -np.inf)

    def parameters(self) -> dict[str, Any]:
        """Categories and odds of every column, in order."""
        return {"columns": [each.parameters() for each in self.responses]}

    @classmethod
    def from_parameters(cls, data: dict[str, Any]) -> Self:
        """Inverse of `parameters`."""
        return cls(responses=tuple(RandomisedResponseChannel.from_parameters(each) for each in data["columns"]))


@dataclass(frozen=True, kw_only=True, repr=False)
class RandomisedResponse(ResponseRecipe):
    """Each record keeps its category, or takes another at random; columns share epsilon equally."""

    alias: ClassVar[str] = "randomised-response"

    def calibrate(self, sizes: Sequence[int], single: Guarantee) -> RandomisedResponseChannel | RandomisedResponsesChannel:
        """The largest odds of keeping a category."""
        if len(sizes) == 1:
            return RandomisedResponseChannel.calibrate(categories=sizes[0], epsilon=single.epsilon)
        return RandomisedResponsesChannel.calibrate(categories=sizes, epsilon=single.epsilon)
