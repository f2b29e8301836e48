"""Beta, Bernoulli, Poisson and Normal, each on a bounded public box of parameters."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from privurn.errors import ModelError
from privurn.mechanisms.models.model import Axis, Floats, Model

Bounds = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Beta(Model):
    """Beta(precision mean, precision (1 - mean)): mean uniform, precision Pareto with density proportional to precision^-2.5.

    The unbounded priors are those of Hu, Williams and Savitsky: mean uniform on (0, 1), precision Pareto(0.1, 1.5). Values are
    clamped to [margin, 1 - margin], because the density has no bound at 0 and 1.
    """

    mean: Bounds = (0.0, 1.0)
    precision: Bounds = (0.1, 100.0)
    points: tuple[int, int] = (400, 160)
    margin: float = 1e-6

    kind: ClassVar[str] = "beta"
    support: ClassVar[Bounds] = (0.0, 1.0)

    def __post_init__(self) -> None:
        if not (self.mean[0] >= 0.0 and self.mean[1] <= 1.0):
            raise ModelError("the mean of a beta model lies between 0 and 1.")
        if not 0.0 < self.margin < 0.5:
            raise ModelError("the margin of a beta model lies between 0 and 1/2.")
        self.check_grid()

    @property
    def axes(self) -> tuple[Axis, ...]:
        """Mean, then precision."""
        return (
            Axis("mean", *self.mean, self.points[0]),
            Axis("precision", *self.precision, self.points[1], "log"),
        )

    def statistics(self, value: float) -> tuple[float, ...]:
        """Log x and log(1 - x)."""
        inside = min(max(value, self.margin), 1.0 - self.margin)
        return math.log(inside), math.log1p(-inside), 0.0

    def coefficients(self, points: Floats) -> tuple[Floats, ...]:
        """The exponents a - 1 and b - 1, and -log B(a, b)."""
        from scipy.special import betaln

        a, b = points[:, 1] * points[:, 0], points[:, 1] * (1.0 - points[:, 0])
        return a - 1.0, b - 1.0, -betaln(a, b)

    def log_prior(self, points: Floats) -> Floats:
        """precision^-2.5, times precision for the logarithmic spacing."""
        return np.asarray(-1.5 * np.log(points[:, 1]))

    def cumulative(self, edges: Floats, parameters: Floats) -> Floats:
        """The regularised incomplete beta function."""
        from scipy.special import betainc

        mean, precision = parameters
        return np.asarray(betainc(precision * mean, precision * (1.0 - mean), np.clip(edges, 0.0, 1.0)))

    def sample(self, parameters: Floats, *, size: int, rng: np.random.Generator) -> Floats:
        """NumPy's draws."""
        mean, precision = parameters
        return rng.beta(precision * mean, precision * (1.0 - mean), size)


@dataclass(frozen=True, kw_only=True)
class Bernoulli(Model):
    """P(X = 1) = probability, uniform on its bounds."""

    probability: Bounds = (0.0, 1.0)
    points: int = 4096

    kind: ClassVar[str] = "bernoulli"
    support: ClassVar[Bounds] = (0.0, 1.0)

    def __post_init__(self) -> None:
        if not (self.probability[0] >= 0.0 and self.probability[1] <= 1.0):
            raise ModelError("a probability lies between 0 and 1.")
        self.check_grid()

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The probability of 1."""
        return (Axis("probability", *self.probability, self.points),)

    def statistics(self, value: float) -> tuple[float, ...]:
        """The value itself, 0 or 1."""
        return 1.0 if value >= 0.5 else 0.0, 0.0

    def coefficients(self, points: Floats) -> tuple[Floats, ...]:
        """Log odds and log(1 - p)."""
        p = points[:, 0]
        return np.log(p) - np.log1p(-p), np.log1p(-p)

    def log_prior(self, points: Floats) -> Floats:
        """Flat."""
        return np.zeros(len(points))

    def cumulative(self, edges: Floats, parameters: Floats) -> Floats:
        """Steps at 0 and 1."""
        return np.where(edges < 0.0, 0.0, np.where(edges < 1.0, 1.0 - parameters[0], 1.0))

    def sample(self, parameters: Floats, *, size: int, rng: np.random.Generator) -> Floats:
        """Zeros and ones."""
        return np.asarray(rng.random(size) < parameters[0], np.float64)


@dataclass(frozen=True, kw_only=True)
class Poisson(Model):
    """Counts with the given rate, whose logarithm is uniform on its bounds; values above `most` are clamped to it."""

    rate: Bounds
    most: float = 1e6
    points: int = 4096

    kind: ClassVar[str] = "poisson"
    support: ClassVar[Bounds] = (0.0, math.inf)

    def __post_init__(self) -> None:
        if not 0.0 < self.most < math.inf:
            raise ModelError("the largest count of a Poisson model must be positive and finite.")
        self.check_grid()

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The rate."""
        return (Axis("rate", *self.rate, self.points, "log"),)

    def statistics(self, value: float) -> tuple[float, ...]:
        """The count, and minus the logarithm of its factorial."""
        inside = min(max(value, 0.0), self.most)
        return inside, -math.lgamma(inside + 1.0)

    def coefficients(self, points: Floats) -> tuple[Floats, ...]:
        """Log rate, and minus the rate."""
        return np.log(points[:, 0]), -points[:, 0]

    def log_prior(self, points: Floats) -> Floats:
        """Flat in the logarithm."""
        return np.zeros(len(points))

    def cumulative(self, edges: Floats, parameters: Floats) -> Floats:
        """The regularised incomplete gamma function."""
        from scipy.special import pdtr

        return np.where(edges < 0.0, 0.0, pdtr(np.floor(np.maximum(edges, 0.0)), parameters[0]))

    def sample(self, parameters: Floats, *, size: int, rng: np.random.Generator) -> Floats:
        """NumPy's draws."""
        return rng.poisson(parameters[0], size).astype(np.float64)


@dataclass(frozen=True, kw_only=True)
class Normal(Model):
    """Mean uniform on its bounds, standard deviation uniform in the logarithm on its own.

    The density is taken per `unit`: by default the range of the mean, so that dollars and thousands of dollars give the same
    release although the logarithm of a density, and so what censoring does to it, depends on the scale. Values beyond `reach`
    units of the middle are clamped.
    """

    mean: Bounds
    deviation: Bounds
    unit: float | None = None
    reach: float = 1e3
    points: tuple[int, int] = (400, 160)

    kind: ClassVar[str] = "normal"
    support: ClassVar[Bounds] = (-math.inf, math.inf)

    def __post_init__(self) -> None:
        if not (0.0 < self.scale < math.inf and 0.0 < self.reach < math.inf):
            raise ModelError("unit and reach of a normal model must be positive and finite.")
        self.check_grid()

    @property
    def scale(self) -> float:
        """The unit, with its default filled in."""
        return self.mean[1] - self.mean[0] if self.unit is None else self.unit

    @property
    def middle(self) -> float:
        """Middle of the mean's bounds."""
        return 0.5 * (self.mean[0] + self.mean[1])

    @property
    def axes(self) -> tuple[Axis, ...]:
        """Mean, then standard deviation."""
        return (
            Axis("mean", *self.mean, self.points[0]),
            Axis("deviation", *self.deviation, self.points[1], "log"),
        )

    def statistics(self, value: float) -> tuple[float, ...]:
        """Z and z^2, z the distance from the middle in units."""
        z = min(max((value - self.middle) / self.scale, -self.reach), self.reach)
        return z, z * z, 0.0

    def coefficients(self, points: Floats) -> tuple[Floats, ...]:
        """With mean u and deviation s in units: u/s^2, -1/(2 s^2) and -u^2/(2 s^2) - log s - log(2 pi)/2."""
        u, s = (points[:, 0] - self.middle) / self.scale, points[:, 1] / self.scale
        with np.errstate(over="ignore"):  # a square beyond the floats has the inverse 0, near enough
            precision = 1.0 / (s * s)
        return u * precision, -0.5 * precision, -0.5 * u * u * precision - np.log(s) - 0.5 * math.log(2.0 * math.pi)

    def log_prior(self, points: Floats) -> Floats:
        """Flat in the mean and in the logarithm of the deviation."""
        return np.zeros(len(points))

    def cumulative(self, edges: Floats, parameters: Floats) -> Floats:
        """The normal distribution function."""
        from scipy.special import ndtr

        return np.asarray(ndtr((edges - parameters[0]) / parameters[1]))

    def sample(self, parameters: Floats, *, size: int, rng: np.random.Generator) -> Floats:
        """NumPy's draws."""
        return rng.normal(parameters[0], parameters[1], size)
