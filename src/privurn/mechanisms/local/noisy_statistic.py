"""A noisy record-additive statistic: histogram, moments or marginals plus noise. Proof: docs/proofs/channels.md, section 6."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privurn.errors import ModelError
from privurn.mechanisms.local.channel import GlobalChannel, check_target, whole_number
from privurn.mechanisms.local.statistics import HistogramStatistic, Statistic
from privurn.mechanisms.local.vector_noise import VectorLaplaceProfile
from privurn.privacy.additive_noise import NoiseKind, check_scale, log_mass, noisy_integers, simulated_noise
from privurn.privacy.conversions import ZeroConcentratedProfile
from privurn.privacy.entropy import Entropy
from privurn.privacy.laws.noise import ratio_up
from privurn.privacy.laws.noisy_counts import Noise, NoisyCountsProfile
from privurn.privacy.profile import ROUND_UP, PrivacyProfile, smallest_admissible

COUNT_NOISE: Mapping[NoiseKind, Noise] = {"laplace": "discrete-laplace", "gaussian": "discrete-gaussian"}


@dataclass(frozen=True, kw_only=True)
class NoisyStatisticChannel(GlobalChannel):
    """W = t(y_1) + ... + t(y_n) + X, X independent whole-number noise in each coordinate, in lattice units of 1/`unit`.

    `scale` is in published units: noise "laplace" has P(k) proportional to e^(-|k|/(scale unit)), "gaussian" has the standard
    deviation scale. A histogram has its exact profile. The others have the bounds of their sensitivities: pure epsilon-DP from
    l1/scale on for Laplace noise, (l2/scale)^2/2-zCDP for Gaussian noise.

    >>> counts = HistogramStatistic(bounds=(0, 1), bins=10)
    >>> NoisyStatisticChannel.calibrate(statistic=counts, n=100, noise="laplace", epsilon=1).scale
    2.0
    """

    statistic: Statistic
    n: int
    noise: NoiseKind
    scale: float
    name: ClassVar[str] = "noisy-statistic"

    def __post_init__(self) -> None:
        n = whole_number("n", self.n, least=1, most=2**40, hint="The number of confidential records")
        object.__setattr__(self, "n", n)
        if self.noise not in ("laplace", "gaussian"):
            raise ModelError(f"the noise {self.noise!r} is not known.", hint="laplace or gaussian")
        object.__setattr__(self, "scale", float(self.scale))
        check_scale(self.lattice_scale)

    @property
    def lattice_scale(self) -> float:
        """The noise's scale in lattice units."""
        return self.scale * self.statistic.unit

    @property
    def dimension(self) -> int:  # type: ignore[override]
        """The statistic's."""
        return self.statistic.dimension

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Of the numbers that the statistic is of; None for categories."""
        return getattr(self.statistic, "bounds", None)

    def noise_record(self) -> tuple[Any, ...]:
        """Noise on whole numbers."""
        from privurn._kernels.mixtures.global_channels import GaussianNoise, LaplaceNoise

        return (LaplaceNoise if self.noise == "laplace" else GaussianNoise)(self.lattice_scale)

    @property
    def profile(self) -> PrivacyProfile:
        """See the class."""
        if isinstance(self.statistic, HistogramStatistic):
            return NoisyCountsProfile(cells=self.statistic.bins, noise=COUNT_NOISE[self.noise], scale=self.scale)
        rho = 0.5 * self.statistic.l2_squared / (self.lattice_scale * self.lattice_scale) * ROUND_UP
        if self.noise == "gaussian":
            return ZeroConcentratedProfile(rho=rho)
        return VectorLaplaceProfile(epsilon0=ratio_up(float(self.statistic.l1), self.lattice_scale), zcdp=rho)

    @classmethod
    def calibrate(cls, *, statistic: Statistic, n: int, noise: NoiseKind, epsilon: float, delta: float = 0.0) -> Self:
        """Least noise that the profile allows; pure epsilon-DP for Laplace noise with delta = 0."""
        epsilon, delta = check_target(epsilon, delta)
        if delta == 0.0:
            if noise == "gaussian":
                raise ModelError("Gaussian noise is never pure epsilon-DP.", hint="Give delta, for example delta=1e-6")
            made = cls(statistic=statistic, n=n, noise=noise, scale=statistic.l1 / statistic.unit / epsilon)
            while made.profile.pure_epsilon > epsilon:  # a hair short by rounding
                made = cls(statistic=statistic, n=n, noise=noise, scale=math.nextafter(made.scale, math.inf))
            return made

        def delta_at(scale: float) -> float:
            return 1.0 if scale == 0.0 else cls(statistic=statistic, n=n, noise=noise, scale=scale).profile.delta(epsilon)

        return cls(statistic=statistic, n=n, noise=noise, scale=smallest_admissible(delta_at, delta, start=1.0 / epsilon))

    def entries(self, data: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The statistic's."""
        return self.statistic.entries(data)

    def summary(self, released: ArrayLike) -> NDArray[np.float64]:
        """The released numbers in lattice units."""
        numbers = np.asarray(released, np.float64)
        if numbers.shape != (self.dimension,):
            raise ModelError("the release must hold one number for each coordinate of the statistic.")
        return np.rint(numbers * self.statistic.unit)

    def terms(self, summary: NDArray[Any], total: NDArray[np.int64], at: NDArray[np.int64]) -> NDArray[np.float64]:
        """Log probability of the noise in each coordinate; exact."""
        return log_mass(summary[at] - total, noise=self.noise, scale=self.lattice_scale)

    def privatise(self, data: ArrayLike, *, entropy: Entropy) -> NDArray[Any]:
        """Noise by OpenDP, whatever `entropy` is."""
        return self._published(noisy_integers(self._sum(data), noise=self.noise, scale=self.lattice_scale))

    def simulate(self, data: ArrayLike, *, rng: np.random.Generator) -> NDArray[Any]:
        """Floating-point twin."""
        total = self._sum(data)
        return self._published(total + simulated_noise(total.shape, noise=self.noise, scale=self.lattice_scale, rng=rng))

    def _sum(self, data: ArrayLike) -> NDArray[np.int64]:
        self.check_size(len(np.asarray(data)))
        return self.total(data)

    def _published(self, numbers: NDArray[np.int64]) -> NDArray[Any]:
        return numbers if self.statistic.unit == 1 else numbers / self.statistic.unit

    def parameters(self) -> dict[str, Any]:
        """Statistic, size and noise."""
        return {"statistic": self.statistic.parameters(), "n": self.n, "noise": self.noise, "scale": self.scale}
