"""Deconvolution kernel density estimator: the classical comparator for densities from records with Laplace or Gaussian noise.

Stefanski and Carroll (1990): divide the empirical characteristic function of the noisy records by that of the noise, damp it
by a kernel, and transform back,

    f(x) = 1/(2 pi) int e^(-itx) phi_Z(t) phi_K(ht) / phi_noise(t) dt,    phi_K(t) = (1 - t^2)^3 on [-1, 1].

The bandwidth h is the two-stage plug-in of Delaigle and Gijbels (2002, 2004). A point estimate without uncertainty; it may be
negative. Nothing here looks at confidential data.

  symbol        meaning
  t             frequency
  theta_r       int (f^(r))^2, the roughness of the r-th derivative of the confidential density
  MU2           second moment of the kernel, -phi_K''(0) = 6
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privurn.errors import DomainError, ModelError
from privurn.mechanisms.local.channel import LocalChannel
from privurn.privacy.additive_noise import NoiseKind

POINTS = 2**15
"""Of the regular grid that the records are spread over."""

MU2 = 6.0
BANDWIDTHS = 400
LEAST_SIGNAL = 0.01
"""Share of the variance of the noisy records that is granted to the confidential ones where the noise seems to explain all."""


@dataclass(frozen=True)
class Deconvolution:
    """The estimate at the points of `grid`, and the bandwidth it was made with."""

    grid: NDArray[np.float64]
    density: NDArray[np.float64]
    bandwidth: float

    def positive(self) -> NDArray[np.float64]:
        """The estimate cut at 0 and scaled so that it integrates to 1 over the grid (trapezoids)."""
        cut = np.maximum(self.density, 0.0)
        return cut / float(np.trapezoid(cut, self.grid))


def deconvolve(released: ArrayLike, *, channel: LocalChannel, grid: ArrayLike, bandwidth: float | None = None) -> Deconvolution:
    """Density of the confidential records at the points of `grid`, from records that went through `channel`.

    Costs O(n) for spreading the records over POINTS regular points and one FFT each way. Left out, the bandwidth is chosen from
    the data by `plug_in_bandwidth`.

    >>> from privurn.mechanisms.local import LaplaceChannel
    >>> rng = np.random.default_rng(0)
    >>> channel = LaplaceChannel(bounds=(-5, 5), scale=0.5)
    >>> noisy = channel.simulate(rng.normal(size=5000), rng=rng)
    >>> estimate = deconvolve(noisy, channel=channel, grid=[0.0])
    >>> bool(abs(estimate.density[0] - 0.4) < 0.1)
    True
    """
    noisy, points = _checked(released), np.asarray(grid, np.float64)
    if points.ndim != 1 or not len(points) or not np.isfinite(points).all():
        raise DomainError("the grid must be a list of finite numbers.", hint="For example numpy.linspace(-5, 5, 200)")
    spectrum = _Spectrum.of(noisy, channel=channel, cover=(float(points.min()), float(points.max())))
    h = plug_in_bandwidth(noisy, channel=channel) if bandwidth is None else float(bandwidth)
    if not (h > 0.0 and math.isfinite(h)):
        raise ModelError("the bandwidth must be positive and finite.", hint="Leave it out to have it chosen")
    return Deconvolution(points, spectrum.density(points, h), h)


def plug_in_bandwidth(released: ArrayLike, *, channel: LocalChannel) -> float:
    """The bandwidth of Delaigle and Gijbels: theta_4 as of a normal law, then theta_3 and theta_2 from the data.

    Stage r chooses h so that the two parts of the bias of theta_r's estimate, -h^2 MU2 theta_(r+1) and that of sampling,
    cancel as far as they can; the last step minimises the asymptotic mean integrated squared error.
    """
    noisy = _checked(released)
    spectrum = _Spectrum.of(noisy, channel=channel, cover=(float(noisy.min()), float(noisy.max())))
    variance = float(noisy.var())
    if variance == 0.0:
        raise DomainError("all released records are equal: there is no density to estimate.")
    deviation = math.sqrt(max(variance - spectrum.noise_variance, LEAST_SIGNAL * variance))
    candidates = deviation * np.geomspace(0.005, 30.0, BANDWIDTHS)
    roughness = math.factorial(8) / ((2.0 * deviation) ** 9 * math.factorial(4) * math.sqrt(math.pi))  # theta_4, normal law
    for order in (3, 2):
        bias = -(candidates**2) * MU2 * roughness + spectrum.noise_roughness(candidates, order) / len(noisy)
        roughness = spectrum.roughness(float(candidates[np.argmin(np.abs(bias))]), order)
    error = spectrum.noise_roughness(candidates, 0) / len(noisy) + 0.25 * candidates**4 * MU2**2 * roughness
    return float(candidates[np.argmin(error)])


@dataclass(frozen=True)
class _Spectrum:
    """Characteristic function of the records at regular frequencies, and the noise's."""

    start: float
    spacing: float
    frequencies: NDArray[np.float64]
    values: NDArray[np.complex128]
    log_noise: NDArray[np.float64]
    noise: NoiseKind
    scale: float

    @classmethod
    def of(cls, noisy: NDArray[np.float64], *, channel: LocalChannel, cover: tuple[float, float]) -> "_Spectrum":
        """Records spread linearly over a grid three times as wide as they and the wanted points are, so that nothing wraps."""
        noise, scale = channel.continuous_noise, getattr(channel, "scale", 0.0)
        if noise is None:
            raise ModelError("deconvolution needs the Laplace or the Gaussian channel.", hint="Use a mixture model for others")
        low, high = min(cover[0], float(noisy.min())), max(cover[1], float(noisy.max()))
        width = max(high - low, scale, 1e-9 * max(abs(low), abs(high), 1.0))
        start, spacing = low - width, 3.0 * width / POINTS
        place = (noisy - start) / spacing
        left = np.floor(place).astype(np.int64)
        share = place - left
        mass = np.bincount(left, 1.0 - share, POINTS) + np.bincount(left + 1, share, POINTS)
        frequencies = np.asarray(2.0 * math.pi * np.fft.rfftfreq(POINTS, spacing), np.float64)
        values = np.fft.rfft(mass / len(noisy))  # with the origin at `start`, where the way back has it too
        return cls(start, spacing, frequencies, values, _log_characteristic(frequencies, noise, scale), noise, scale)

    @property
    def noise_variance(self) -> float:
        return self.scale**2 * (2.0 if self.noise == "laplace" else 1.0)

    def density(self, points: NDArray[np.float64], h: float) -> NDArray[np.float64]:
        damped = _kernel(h * self.frequencies)
        kept = damped > 0.0
        ratio = np.zeros_like(self.values)
        with np.errstate(over="ignore"):
            ratio[kept] = self.values[kept] * (damped[kept] * np.exp(-self.log_noise[kept]))
        if not np.isfinite(ratio).all():
            raise ModelError("the bandwidth is too small for this noise.", hint="Leave it out to have it chosen")
        regular = np.fft.irfft(ratio, POINTS) / self.spacing
        return np.interp(points, self.start + self.spacing * np.arange(POINTS), regular)

    def roughness(self, h: float, order: int) -> float:
        """Estimate of theta_order with bandwidth h."""
        t = self.frequencies
        damped = _kernel(h * t)
        kept = damped > 0.0
        logs = 2.0 * (np.log(damped[kept]) - self.log_noise[kept])
        terms = np.exp(np.minimum(logs, 600.0)) * np.abs(self.values[kept]) ** 2 * t[kept] ** (2 * order)
        return float(terms.sum() * (t[1] - t[0]) / math.pi)

    def noise_roughness(self, bandwidths: NDArray[np.float64], order: int) -> NDArray[np.float64]:
        """What sampling adds to the estimate of theta_order, times n, for each bandwidth; no records needed."""
        s = (np.arange(512) + 0.5) / 512
        t = s / bandwidths[:, None]
        logs = 2.0 * (np.log(_kernel(s)) - _log_characteristic(t, self.noise, self.scale)) + 2 * order * np.log(t)
        added: NDArray[np.float64] = np.exp(np.minimum(logs, 600.0)).mean(axis=1) / (math.pi * bandwidths)
        return added


def _checked(released: ArrayLike) -> NDArray[np.float64]:
    noisy = np.asarray(released, np.float64)
    if noisy.ndim != 1 or not len(noisy) or not np.isfinite(noisy).all():
        raise DomainError("the released records must be a list of finite numbers.")
    return noisy


def _kernel(t: NDArray[np.float64]) -> NDArray[np.float64]:
    """Its characteristic function, (1 - t^2)^3 on [-1, 1]."""
    return np.maximum(0.0, 1.0 - t * t) ** 3


def _log_characteristic(t: NDArray[np.float64], noise: NoiseKind, scale: float) -> NDArray[np.float64]:
    """Log of the noise's characteristic function, real and positive for both laws."""
    squared = (scale * t) ** 2
    return -np.log1p(squared) if noise == "laplace" else -0.5 * squared
