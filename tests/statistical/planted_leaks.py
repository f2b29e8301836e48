"""Mechanisms that are WRONG ON PURPOSE, each with its honest twin: an audit must convict the first and spare the second.

All are samplers for `privurn.privacy.audit.attack.audit` on dense counts unless they are said to be something else.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from privurn.mechanisms.dirichlet_multinomial import DirichletMultinomial
from privurn.mechanisms.label_discovery import LabelDiscovery
from privurn.mechanisms.local.gaussian import GaussianChannel
from privurn.mechanisms.local.laplace import LaplaceChannel
from privurn.privacy.additive_noise import noisy_integers
from privurn.privacy.entropy import SeededEntropy
from privurn.privacy.profile import Guarantee


def urn_draws(counts, *, alpha, records, size, rng):
    """The urn step by step in floating point: cells, and whether each draw goes back to the prior (0) or to a record (1)."""
    counts = np.asarray(counts, np.float64)
    n, cells = counts.sum(), len(counts)
    ends = np.cumsum(counts)
    drawn = np.empty((size, records), np.int64)
    source = np.empty((size, records), np.int64)
    everyone = np.arange(size)
    for i in range(records):
        u = rng.random(size) * (alpha * cells + n + i)
        prior = u < alpha * cells
        old = ~prior & (u < alpha * cells + n)
        earlier = np.clip((u - alpha * cells - n).astype(np.int64), 0, max(0, i - 1))
        from_record = np.searchsorted(ends, np.clip(u - alpha * cells, 0, None), side="right")
        drawn[:, i] = np.select(
            [prior, old], [(u / alpha).astype(np.int64), from_record], drawn[everyone, earlier] if i else 0
        ).clip(0, cells - 1)
        source[:, i] = np.select([prior, old], [0, 1], source[everyone, earlier] if i else 0)
    return drawn, source


@dataclass(frozen=True, kw_only=True)
class ReusedSeed(DirichletMultinomial):
    """A mechanism that seeds its randomness anew, with the same seed, for every draw. Every release is the same."""

    seed: int

    def draw(self, counts, *, entropy):
        return super().draw(counts, entropy=SeededEntropy(self.seed))


@dataclass(frozen=True, kw_only=True)
class OrderedUrn:
    """The urn, published in the order of sampling by parts: first the draws from the prior, then the copies of records.

    A value that stands at the end was in the data. `shuffled` is the honest twin.
    """

    alpha: float
    records: int
    rng: np.random.Generator
    shuffled: bool = False

    def __call__(self, counts, /, *, size):
        drawn, source = urn_draws(counts, alpha=self.alpha, records=self.records, size=size, rng=self.rng)
        if self.shuffled:
            return self.rng.permuted(drawn, axis=1)
        return np.take_along_axis(drawn, np.argsort(source, axis=1, kind="stable"), axis=1)


@dataclass(frozen=True, kw_only=True)
class SecretSizeUrn:
    """For a secret n. `follows_n`: as many records are released as the data hold, so their number tells n."""

    alpha: float
    records: int
    rng: np.random.Generator
    follows_n: bool

    def __call__(self, counts, /, *, size):
        records = int(np.sum(counts)) if self.follows_n else self.records
        drawn, _ = urn_draws(counts, alpha=self.alpha, records=records, size=size, rng=self.rng)
        return drawn


def halved(urn: DirichletMultinomial) -> DirichletMultinomial:
    """Alpha too small by a factor of two: someone forgot that a replaced record changes two cells, say."""
    return replace(urn, alpha=urn.alpha / Fraction(2))


@dataclass(frozen=True, kw_only=True)
class UnderclaimedDiscovery(LabelDiscovery):
    """Label discovery with the delta that OpenDP 0.16 states: it keeps counts at the threshold, and leaves their mass out."""

    def guarantee(self, contributions=1):
        r = math.exp(-1.0 / self.scale)
        return Guarantee(epsilon=2.0 / self.scale, delta=1.0 - (1.0 - r**self.threshold / (1.0 + r)) ** 2)


@dataclass(frozen=True, kw_only=True)
class HalvedGaussian(GaussianChannel):
    """A channel whose noise has half the scale that its profile is computed from."""

    def privatise(self, data, *, entropy):
        return self._values(noisy_integers(self.lattice(data), noise="gaussian", scale=0.5 * self.lattice_scale))


@dataclass(frozen=True, kw_only=True)
class FloatingLaplace(LaplaceChannel):
    """A channel that adds floating-point noise to the clamped record, without a lattice."""

    seed: int

    def privatise(self, data, *, entropy):
        rng = np.random.default_rng([self.seed, *(int(word) for word in entropy.words(2))])
        clamped = np.clip(np.asarray(data, float), *self.bounds)
        return clamped + rng.laplace(0.0, self.scale, clamped.shape)


@dataclass(frozen=True, kw_only=True)
class UnclampedLaplace(LaplaceChannel):
    """A channel that takes the bounds on trust."""

    def lattice(self, data):
        share = (np.nan_to_num(np.asarray(data, float), nan=0.0) - self.bounds[0]) / (self.bounds[1] - self.bounds[0])
        return np.clip(np.rint(share * self.steps), -(2.0**40), 2.0**40).astype(np.int64)
