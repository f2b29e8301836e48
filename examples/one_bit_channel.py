"""A channel of one's own in one file: every record becomes one random bit (Duchi, Jordan and Wainwright 2018).

A clamped record, mapped to u in [-1, 1], is published as 1 with probability (1 + u tanh(epsilon/2))/2, else as 0. Two records
differ most at u = -1 and 1, where the bit is likelier by the factor (1 + t)/(1 - t) = e^epsilon, t = tanh(epsilon/2).

    python examples/one_bit_channel.py
"""

import math
from dataclasses import dataclass

import numpy as np

from privurn.mechanisms.local import LocalChannel
from privurn.privacy.entropy import SystemEntropy
from privurn.privacy.laws.noise import RandomisedResponseProfile

HALF = 2**40  # probabilities are whole multiples of 1/(2 HALF), so that the law is exact


@dataclass(frozen=True, kw_only=True)
class OneBitChannel(LocalChannel):
    """P(z = 1 | y) = (HALF + round(u lift))/(2 HALF), u in [-1, 1] the clamped and scaled record."""

    bounds: tuple[float, float]
    lift: int  # of the probability at u = 1, in units of 1/(2 HALF)
    name = "one-bit"

    @classmethod
    def calibrate(cls, *, bounds, epsilon):
        """The largest lift that epsilon allows, rounded down."""
        return cls(bounds=bounds, lift=math.floor(HALF * math.tanh(0.5 * epsilon) * (1 - 1e-15)))

    @property
    def profile(self):
        """The pair u = -1, u = 1 is binary randomised response, and every other pair is a mixture of it."""
        return RandomisedResponseProfile(categories=2, epsilon0=2 * math.atanh(self.lift / HALF) * (1 + 1e-15))

    def ones(self, data):
        """Numerator of P(z = 1) for each record, whatever the record holds."""
        lower, upper = self.bounds
        values = np.asarray(data, float)
        inside = np.clip(np.where(np.isnan(values), lower, values), lower, upper)
        return HALF + np.rint((2 * (inside - lower) / (upper - lower) - 1) * self.lift).astype(np.int64)

    def privatise(self, data, *, entropy):
        """Exact: one integer below 2 HALF for each record."""
        ones = self.ones(data)
        return (entropy.integers(2 * HALF, size=ones.size).reshape(ones.shape) < ones).astype(np.int64)

    def simulate(self, data, *, rng):
        """The same with NumPy's generator, for simulation only."""
        ones = self.ones(data)
        return (rng.integers(0, 2 * HALF, ones.shape) < ones).astype(np.int64)

    def log_density(self, released, data):
        """Log of P(z | y)."""
        share = self.ones(data) / (2 * HALF)
        return np.log(np.where(np.asarray(released) == 1, share, 1 - share))

    def parameters(self):
        """Plain data."""
        return {"lower": self.bounds[0], "upper": self.bounds[1], "lift": self.lift}

    @classmethod
    def from_parameters(cls, data):
        """Inverse of `parameters`."""
        return cls(bounds=(data["lower"], data["upper"]), lift=int(data["lift"]))


if __name__ == "__main__":
    channel = OneBitChannel.calibrate(bounds=(0, 100), epsilon=1.0)
    ages = np.random.default_rng(0).normal(40, 12, 20_000)
    bits = channel.privatise(ages, entropy=SystemEntropy())
    estimate = 50 * (1 + (2 * bits.mean() - 1) * HALF / channel.lift)
    print(
        f"epsilon = {channel.profile.pure_epsilon:.6f}, mean estimated from the bits: {estimate:.1f}, true: {ages.mean():.1f}"
    )
