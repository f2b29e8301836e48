"""The Gaussian kernel behind Gaussian noise with a prior on what is released: another base measure, and a conjugate one."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from privurn.errors import ModelError
from privurn.inference.mixtures.kernels import Kernel


@dataclass(frozen=True, kw_only=True)
class TotalGaussianKernel(Kernel):
    """N(mu, t^2 - noise^2), mu | t^2 ~ N(mean, t^2 / precision), t^2 ~ inverse gamma(shape, scale) given t^2 >= noise^2.

    t^2 is the variance of the released values, `noise` the deviation of a Gaussian channel, whose values must not be clamped
    (clamped=False). The law stays conjugate behind that channel, so that Neal 2, Neal 3 and split-merge moves can sum atoms
    out. It is not the prior of `GaussianKernel`: scale / (shape - 1) is the mean of t^2 before it is cut, not of the
    confidential variance.
    """

    noise: float
    mean: float = 0.0
    precision: float = 0.1
    shape: float = 3.0
    scale: float = 3.0
    name: ClassVar[str] = "total-gaussian"
    parameter_names: ClassVar[tuple[str, ...]] = ("mean", "deviation")
    width: ClassVar[int] = 3
    n_statistics: ClassVar[int] = 3

    def __post_init__(self) -> None:
        numbers = {"precision": self.precision, "shape": self.shape, "scale": self.scale, "noise": self.noise}
        for name, value in numbers.items():
            if not 0.0 < value < math.inf:
                raise ModelError(f"{name} must be a positive number.", hint=f"For example {name}=1.0")
        if not math.isfinite(self.mean):
            raise ModelError("the mean of the base measure must be finite.")

    def record(self) -> tuple[Any, ...]:
        """Normal inverse-gamma base, cut."""
        from privurn._kernels.mixtures.total_gaussian import TotalGaussianKernel as Record

        numbers = (self.mean, self.precision, self.shape, self.scale, self.noise)
        return Record(*(float(each) for each in numbers))

    def spread(self) -> float:
        """As of `GaussianKernel`."""
        return math.sqrt(self.scale / self.shape)
