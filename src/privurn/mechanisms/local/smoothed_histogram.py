"""The smoothed histogram as a channel: the density of its draws given the data, one bin at a time.

The mechanism is mechanisms/smoothed_histogram.py; its proof is in docs/proofs/histograms.md, section 3.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privurn.counts import CountTable
from privurn.errors import ModelError
from privurn.mechanisms.local.channel import GlobalChannel, check_bounds
from privurn.mechanisms.local.statistics import HistogramStatistic, equal_bins
from privurn.mechanisms.smoothed_histogram import SmoothedHistogram, calibrate_smoothed_histogram
from privurn.privacy.entropy import Entropy
from privurn.privacy.laws.histogram import SmoothedHistogramProfile
from privurn.privacy.profile import Guarantee


@dataclass(frozen=True, kw_only=True)
class SmoothedHistogramChannel(GlobalChannel):
    """`draws` independent numbers of bins: bin j of `bins` with probability (1 - weight) c_j/n + weight/bins.

    c_j is the number of records in the j-th of equal bins between `bounds`. Published are the bins' numbers 0..bins-1;
    `bin_of` turns released numbers (midpoints, or uniform within their bin) into them.

    >>> channel = SmoothedHistogramChannel.calibrate(bounds=(0, 1), bins=16, n=250, draws=28, epsilon=10, delta=0)
    >>> round(channel.profile.pure_epsilon, 3), channel.draws
    (10.0, 28)
    """

    bounds: tuple[float, float]
    bins: int
    n: int
    draws: int
    weight: Fraction
    name: ClassVar[str] = "smoothed-histogram"

    def __post_init__(self) -> None:
        object.__setattr__(self, "bounds", check_bounds(self.bounds))
        _ = self.mechanism  # checks the sizes and the weight

    @property
    def mechanism(self) -> SmoothedHistogram:
        """What draws, and carries the profile."""
        return SmoothedHistogram(n=self.n, cells=self.bins, records=self.draws, weight=self.weight)

    @classmethod
    def calibrate(
        cls, *, bounds: tuple[float, float], bins: int, n: int, draws: int, epsilon: float, delta: float = 0.0
    ) -> Self:
        """Least smoothing for the guarantee."""
        guarantee = Guarantee(epsilon=epsilon, delta=delta)
        made = calibrate_smoothed_histogram(n=n, cells=bins, guarantee=guarantee, records=draws)
        return cls(bounds=bounds, bins=bins, n=n, draws=draws, weight=made.weight)

    @property
    def dimension(self) -> int:  # type: ignore[override]
        """One coordinate for each bin."""
        return self.bins

    @property
    def profile(self) -> SmoothedHistogramProfile:
        """The mechanism's."""
        return self.mechanism.profile

    @property
    def statistic(self) -> HistogramStatistic:
        """Counts of the bins."""
        return HistogramStatistic(bounds=self.bounds, bins=self.bins)

    def noise_record(self) -> tuple[Any, ...]:
        """Independent draws."""
        from privurn._kernels.mixtures.global_channels import SmoothedDraws

        weight = float(self.weight)
        return SmoothedDraws((1.0 - weight) / self.n, weight / self.bins)

    def bin_of(self, values: ArrayLike) -> NDArray[np.int64]:
        """Bin of each number."""
        return equal_bins(values, bounds=self.bounds, bins=self.bins)

    def entries(self, data: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """A record adds 1 to the count of its bin."""
        positions = self.bin_of(data)[:, None]
        return positions, np.ones_like(positions)

    def summary(self, released: ArrayLike) -> NDArray[np.int64]:
        """How often each bin was drawn."""
        drawn = np.asarray(released)
        if drawn.shape != (self.draws,) or not np.all((drawn >= 0) & (drawn < self.bins) & (drawn == np.rint(drawn))):
            raise ModelError("the release must hold one bin number for each draw.", hint="bin_of turns numbers into them")
        return np.bincount(drawn.astype(np.int64), minlength=self.bins)

    def terms(self, summary: NDArray[Any], total: NDArray[np.int64], at: NDArray[np.int64]) -> NDArray[np.float64]:
        """How often a bin was drawn, times the log of its probability."""
        weight = float(self.weight)
        logs: NDArray[np.float64] = summary[at] * np.log((1.0 - weight) * total / self.n + weight / self.bins)
        return logs

    def privatise(self, data: ArrayLike, *, entropy: Entropy) -> NDArray[np.int64]:
        """Exact draws by the mechanism."""
        return self.mechanism.draw(self._counts(data), entropy=entropy).cells

    def simulate(self, data: ArrayLike, *, rng: np.random.Generator) -> NDArray[np.int64]:
        """Floating-point twin; the order of the draws carries nothing."""
        return np.repeat(np.arange(self.bins), self.mechanism.simulate(self._counts(data), rng=rng))

    def _counts(self, data: ArrayLike) -> CountTable:
        self.check_size(len(np.asarray(data)))
        total = self.total(data)
        return CountTable.from_cells(np.flatnonzero(total), total[total > 0])

    def parameters(self) -> dict[str, Any]:
        """Bounds, sizes and weight."""
        lower, upper = self.bounds
        sizes = {"bins": self.bins, "n": self.n, "draws": self.draws}
        return {"lower": lower, "upper": upper, **sizes, "weight": str(self.weight)}
