"""Noise on integers: OpenDP's exact samplers for releases, floating-point twins for simulation, and the log masses.

laplace:  P(k) proportional to e^(-|k|/scale);  gaussian:  P(k) proportional to e^(-k^2/(2 scale^2)), k any integer.

Every release with additive noise gets it from `noisy_integers`: OpenDP adds it to the integers, and what would leave 64 bits it
replaces by the end of their range, which is post-processing.
"""

import math
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privurn.cores import usable_cores
from privurn.errors import ModelError

NoiseKind = Literal["laplace", "gaussian"]

AT_ONCE = 20_000
"""Numbers handed to OpenDP in one call: a third of a second's work, the calls of a long list being made side by side."""

LARGEST_SCALE = 2.0**53
"""Noise of a larger scale could leave the 64-bit integers."""

POISSON_FROM = 3.0
"""From this scale on the sum of e^(-k^2/(2 scale^2)) is scale sqrt(2 pi) up to 1e-70, by Poisson summation."""


def check_scale(scale: float) -> None:
    """Insist on a scale, in lattice steps, that integers can hold."""
    if not 0.0 < scale <= LARGEST_SCALE:
        raise ModelError(
            "the noise must have a positive scale that 64-bit integers can hold.", hint="Use a larger epsilon, or fewer steps"
        )


def noisy_integers(exact: NDArray[np.int64], *, noise: NoiseKind, scale: float) -> NDArray[np.int64]:
    """Every integer plus independent noise by OpenDP, whose generator the operating system seeds, for each thread anew."""
    add_noise = measurement(noise, scale)
    flat, out = exact.ravel(), np.empty(exact.size, np.int64)

    def fill(start: int) -> None:
        out[start : start + AT_ONCE] = add_noise(flat[start : start + AT_ONCE].tolist())

    starts = range(0, len(flat), AT_ONCE)
    if len(starts) < 2:
        for start in starts:
            fill(start)
    else:
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(min(len(starts), usable_cores())) as pool:
            for each in [pool.submit(fill, start) for start in starts]:
                each.result()
    return out.reshape(exact.shape)


@lru_cache(maxsize=16)
def measurement(noise: NoiseKind, scale: float) -> Any:
    """OpenDP's measurement on vectors of 64-bit integers."""
    from opendp.domains import atom_domain, vector_domain  # its prelude would import Polars, half a second
    from opendp.measurements import make_gaussian, make_laplace
    from opendp.metrics import l1_distance, l2_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    integers = vector_domain(atom_domain(T="i64"))
    if noise == "gaussian":
        return make_gaussian(integers, l2_distance(T="f64"), scale=scale)
    return make_laplace(integers, l1_distance(T="i64"), scale=scale)


def simulated_noise(shape: tuple[int, ...], *, noise: NoiseKind, scale: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """The same law from NumPy's generator, up to floating-point rounding: never for a release."""
    if noise == "laplace":
        if scale > 2.0**20:  # rounded down, an exponential is geometric; one of so small a rate needs no more care
            first, second = np.floor(scale * rng.exponential(size=(2, *shape)))
            return np.asarray(first - second, np.int64)
        success = -math.expm1(-1.0 / scale)
        return rng.geometric(success, shape) - rng.geometric(success, shape)
    if scale > 1e3:  # rounding a normal number: the masses agree to 1/(24 scale^2) near the centre
        return np.rint(scale * rng.standard_normal(shape)).astype(np.int64)
    reach = math.ceil(12.0 * scale) + 2
    support = np.arange(-reach, reach + 1)
    ends = np.cumsum(np.exp(-0.5 * (support / scale) ** 2))
    return np.asarray(support[np.searchsorted(ends, rng.random(shape) * ends[-1])], np.int64)


def log_mass(k: NDArray[np.float64], *, noise: NoiseKind, scale: float) -> NDArray[np.float64]:
    """Log of P(k), k whole."""
    if noise == "laplace":
        return -np.abs(k) / scale + math.log(math.tanh(0.5 / scale))  # (1 - r)/(1 + r) with r = e^(-1/scale)
    return -0.5 * (k / scale) ** 2 - log_gaussian_normaliser(scale)


@lru_cache(maxsize=256)
def noise_deviation(*, noise: NoiseKind, scale: float) -> float:
    """Standard deviation: sqrt(2 r)/(1 - r) with r = e^(-1/scale); of Gaussian noise the scale, up to 1e-75 from scale 3 on.

    >>> round(noise_deviation(noise="laplace", scale=1.0), 4), round(noise_deviation(noise="gaussian", scale=0.5), 4)
    (1.357, 0.4637)
    """
    if noise == "laplace":
        return math.sqrt(2.0) * math.exp(-0.5 / scale) / -math.expm1(-1.0 / scale)
    if scale >= POISSON_FROM:
        return scale
    masses = [math.exp(-0.5 * (k / scale) ** 2) for k in range(1, 130)]
    square = 2.0 * math.fsum(k * k * mass for k, mass in enumerate(masses, 1))
    return math.sqrt(square / (1.0 + 2.0 * math.fsum(masses)))


@lru_cache(maxsize=256)
def log_gaussian_normaliser(scale: float) -> float:
    """Log of the sum of e^(-k^2/(2 scale^2)) over the integers."""
    if scale >= POISSON_FROM:
        return math.log(scale) + 0.5 * math.log(2.0 * math.pi)
    return math.log1p(2.0 * math.fsum(math.exp(-0.5 * (k / scale) ** 2) for k in range(1, 130)))
