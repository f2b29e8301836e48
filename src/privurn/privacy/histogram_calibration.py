"""From a guarantee to the parameters of histogram releases: least noise, least smoothing, most records, least prior.

Each function is the inverse of a profile and ends on the private side. Noise: a two-sided geometric law of larger scale is one
of smaller scale plus independent noise, so delta falls in the scale; smoothing more, or publishing fewer records, is
post-processing (docs/proofs/histograms.md). Discrete Gaussian noise is an exception: between lattice points its delta may rise
with the scale, so its answer is a scale that is private itself, next to a smaller one that is not.
"""

import math
from collections.abc import Callable
from fractions import Fraction

from privurn.errors import Alternative, CalibrationError
from privurn.privacy.calibration import largest, smallest_alpha
from privurn.privacy.laws.add_remove import AddRemoveDirichletMultinomialProfile, smallest_alpha_add_remove
from privurn.privacy.laws.histogram import SmoothedHistogramProfile
from privurn.privacy.laws.noise import ratio_up
from privurn.privacy.laws.noisy_counts import Noise, NoisyCountsProfile
from privurn.privacy.laws.posterior_sample import UrnProfile, draws_profile
from privurn.privacy.laws.urn import DirichletMultinomialProfile
from privurn.privacy.profile import Neighbouring, check_delta, check_epsilon, smallest_admissible

TOLERANCE = 1e-5
"""Relative, where each step is slow; the answer is rounded up to five digits anyway."""


def smallest_scale(
    *, cells: int, noise: Noise, epsilon: float, delta: float = 0.0, neighbouring: Neighbouring = "replace-one"
) -> float:
    """Least noise scale at which the noisy counts are (epsilon, delta)-DP; 0 where no noise is needed. See the module.

    >>> smallest_scale(cells=10, noise="discrete-laplace", epsilon=0.5)
    4.0
    >>> round(smallest_scale(cells=10, noise="discrete-gaussian", epsilon=1, delta=1e-6), 2)
    5.98
    """
    check_epsilon(epsilon)
    check_delta(delta)
    moved = NoisyCountsProfile(cells=cells, noise=noise, scale=1.0, neighbouring=neighbouring).moved
    if moved == 0:
        return 0.0
    pure = math.inf
    if noise != "discrete-gaussian":
        pure = moved / epsilon
        while ratio_up(float(moved), pure) > epsilon:
            pure = math.nextafter(pure, math.inf)
    if delta == 0.0:
        if math.isinf(pure):
            raise CalibrationError(
                "Gaussian noise has no pure epsilon: delta = 0 cannot be had with it.",
                alternatives=(
                    *(
                        Alternative(words=f"{other} noise of scale {moved / epsilon:.4g}", changes={"noise": other})
                        for other in ("discrete-laplace", "laplace")
                    ),
                    Alternative(words="a positive delta", changes={"delta": 1e-6}),
                ),
            )
        return pure

    def delta_at(scale: float) -> float:
        if scale == 0.0:
            return 1.0
        return NoisyCountsProfile(cells=cells, noise=noise, scale=scale, neighbouring=neighbouring).delta(epsilon)

    return min(pure, smallest_admissible(delta_at, delta, start=min(pure, 4.0 / epsilon), limit=1e15))


def smallest_weight(*, n: int, bins: int, records: int, epsilon: float, delta: float = 0.0) -> float:
    """Least weight of the uniform at which a smoothed histogram may release `records` records; 1 leaves the uniform alone.

    >>> round(smallest_weight(n=10_000, bins=100, records=10_000, epsilon=1), 4)
    0.9901
    >>> round(smallest_weight(n=10_000, bins=100, records=10_000, epsilon=1, delta=1e-6), 4)
    0.22
    """
    check_epsilon(epsilon)
    check_delta(delta)
    if bins == 1:
        return 0.0

    def profile(weight: float) -> SmoothedHistogramProfile:
        return SmoothedHistogramProfile(n=n, bins=bins, records=records, weight=weight)

    gain = n * math.expm1(epsilon / records)
    pure = 1.0
    for slack in (1e-12, 1e-10, 1e-8, 1e-4):  # near 1 a float holds few digits of the share of the data
        candidate = 1.0 - (1.0 - slack) * gain / (bins + gain)
        if candidate > 0.0 and profile(candidate).pure_epsilon <= epsilon:
            pure = candidate
            break
    if delta == 0.0:
        return pure

    def delta_at(weight: float) -> float:
        return 1.0 if weight == 0.0 else profile(weight).delta(epsilon)

    if bins == 2:  # a search over all splits each time, so ask seldom; three bins of this weight leak more than two
        enough = min(pure, smallest_weight(n=n, bins=3, records=records, epsilon=epsilon, delta=delta))
        if enough >= 1.0:
            return 1.0

        def delta_at_odds(odds: float) -> float:
            return delta_at(odds / (1.0 + odds))

        high = enough / (1.0 - enough) * (1.0 + 1e-12)
        while high > 1e-300 and delta_at_odds(0.5 * high) <= delta:
            high *= 0.5
        odds = _nearly_smallest(delta_at_odds, delta, low=0.5 * high, high=high)
        return min(pure, odds / (1.0 + odds))
    return min(pure, smallest_admissible(delta_at, delta, start=0.1, limit=1.0))


def _nearly_smallest(delta_at: Callable[[float], float], target: float, *, low: float, high: float) -> float:
    """As `smallest_admissible`, to TOLERANCE: for a smooth delta that is slow to compute. `high` must be admissible."""

    def excess(x: float) -> float:  # > 0: not admissible
        value = delta_at(x)
        return -math.inf if value <= 0.0 else math.log(value / target)

    above, below, raised = excess(low), excess(high), False
    while high - low > TOLERANCE * high:
        middle = 0.5 * (low + high)
        if math.isfinite(above) and math.isfinite(below):  # a secant is near: step past it, so that the other end moves too
            past = (0.25 if raised else -0.25) * TOLERANCE * high
            secant = low + (high - low) * above / (above - below) + past
            middle = secant if low < secant < high else middle
        value = excess(middle)
        raised = value > 0.0
        if raised:
            low, above = middle, value
        else:
            high, below = middle, value
    return high


def weight_up(weight: float, *, digits: int = 5) -> Fraction:
    """Smallest rational at least `weight` with so many digits in it, or in 1 less it where that is smaller.

    >>> weight_up(0.1234501), weight_up(0.99999) < 1
    (Fraction(6173, 50000), True)
    """
    small = min(weight, 1.0 - weight)
    if small <= 0.0:
        return Fraction(1) if weight >= 1.0 else Fraction(0)
    scale = Fraction(10) ** (digits - 1 - math.floor(math.log10(small)))
    return Fraction(math.ceil(Fraction(weight) * scale)) / scale


def largest_smoothed_records(*, n: int, bins: int, weight: float, epsilon: float, delta: float = 0.0) -> int:
    """Most records that a smoothed histogram of this weight may release; 0 when none may be.

    >>> largest_smoothed_records(n=10_000, bins=100, weight=0.5, epsilon=1)
    100
    """
    check_epsilon(epsilon)
    check_delta(delta)

    def admissible(records: int) -> bool:
        profile = SmoothedHistogramProfile(n=n, bins=bins, records=records, weight=weight)
        return profile.pure_epsilon <= epsilon if delta == 0.0 else profile.delta(epsilon) <= delta

    return largest(admissible)


def smallest_alpha_for_draws(
    *, n: int | None, cells: int, records: int, draws: int, epsilon: float, delta: float = 0.0
) -> float:
    """Least prior of each cell at which `draws` urn samples of `records` records may be published; n = None: add-remove.

    >>> round(smallest_alpha_for_draws(n=10_000, cells=100, records=10**6, draws=1, epsilon=1, delta=1e-6), 1)
    36.5
    """
    if draws == 1 or cells == 1 or delta == 0.0:  # pure epsilons add
        share = epsilon if delta > 0.0 else math.nextafter(epsilon / draws, 0.0)
        if n is None:
            return smallest_alpha_add_remove(cells=cells, records=records, epsilon=share, delta=delta)
        return smallest_alpha(n=n, cells=cells, records=records, epsilon=share, delta=delta)

    def delta_at(alpha: float) -> float:
        urn: UrnProfile
        if n is None:
            urn = AddRemoveDirichletMultinomialProfile(cells=cells, alpha=alpha, records=records)
        else:
            urn = DirichletMultinomialProfile(n=n, cells=cells, alpha=alpha, records=records)
        return draws_profile(urn, draws=draws).delta(epsilon)

    low = smallest_alpha_for_draws(n=n, cells=cells, records=records, draws=1, epsilon=epsilon, delta=delta)
    while delta_at(2.0 * low) > delta:
        low *= 2.0
    return _nearly_smallest(delta_at, delta, low=low, high=2.0 * low)
