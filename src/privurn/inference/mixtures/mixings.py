"""Laws of the mixing measure: frozen public data."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from privurn.errors import ModelError


@dataclass(frozen=True, kw_only=True)
class GammaPrior:
    """Gamma(shape, rate) on a positive number."""

    shape: float = 2.0
    rate: float = 2.0

    def __post_init__(self) -> None:
        if not (0.0 < self.shape < math.inf and 0.0 < self.rate < math.inf):
            raise ModelError("shape and rate of a gamma prior must be positive.", hint="GammaPrior(shape=2.0, rate=2.0)")


class Mixing(ABC):
    """What samplers need to know: the compiled record, and the strength to start from."""

    name: ClassVar[str]

    @property
    @abstractmethod
    def first_strength(self) -> float:
        """Strength before the first sweep."""

    @abstractmethod
    def record(self) -> tuple[Any, ...]:
        """The compiled mixing's record."""

    @property
    def most_clusters(self) -> float:
        """Clusters there can be."""
        return math.inf


@dataclass(frozen=True, kw_only=True)
class DirichletProcess(Mixing):
    """Dirichlet process: a record opens a new cluster with weight `strength`, a number or a `GammaPrior` (Escobar-West)."""

    strength: float | GammaPrior = 1.0
    name: ClassVar[str] = "Dirichlet process"

    def __post_init__(self) -> None:
        if not isinstance(self.strength, GammaPrior) and not 0.0 < self.strength < math.inf:
            raise ModelError("the strength must be positive.", hint="strength=1.0, or strength=GammaPrior()")

    @property
    def first_strength(self) -> float:
        """Fixed, or the prior's mean."""
        return self.strength.shape / self.strength.rate if isinstance(self.strength, GammaPrior) else float(self.strength)

    def record(self) -> tuple[Any, ...]:
        """Shape 0 says that the strength is fixed."""
        from privurn._kernels.mixtures.mixings import DirichletProcess as Record

        prior = self.strength
        return Record(float(prior.shape), float(prior.rate)) if isinstance(prior, GammaPrior) else Record(0.0, 0.0)


@dataclass(frozen=True, kw_only=True)
class PitmanYorProcess(Mixing):
    """Pitman-Yor process: 0 <= discount < 1, strength > -discount.

    Neal 5 takes any discount; the slice sampler breaks the rest of the measure into pieces, too many above a discount of 0.3.
    """

    discount: float
    strength: float = 1.0
    name: ClassVar[str] = "Pitman-Yor process"

    def __post_init__(self) -> None:
        if not 0.0 <= self.discount < 1.0 or not -self.discount < self.strength < math.inf:
            raise ModelError("a Pitman-Yor process needs 0 <= discount < 1 and strength > -discount.", hint="discount=0.25")

    @property
    def first_strength(self) -> float:
        """Fixed."""
        return float(self.strength)

    def record(self) -> tuple[Any, ...]:
        """The discount."""
        from privurn._kernels.mixtures.mixings import PitmanYorProcess as Record

        return Record(float(self.discount))


@dataclass(frozen=True, kw_only=True)
class FiniteDirichlet(Mixing):
    """`components` atoms with weights ~ Dirichlet(strength/components, ...)."""

    components: int
    strength: float = 1.0
    name: ClassVar[str] = "finite mixture"

    def __post_init__(self) -> None:
        if isinstance(self.components, bool) or int(self.components) != self.components or self.components < 1:
            raise ModelError("a finite mixture needs a whole number of components.", hint="For example components=10")
        if not 1e-3 <= self.strength / self.components < math.inf:
            raise ModelError("strength / components must be at least 0.001.", hint="For example strength=components")

    @property
    def first_strength(self) -> float:
        """Fixed."""
        return float(self.strength)

    def record(self) -> tuple[Any, ...]:
        """The number of components."""
        from privurn._kernels.mixtures.mixings import FiniteDirichlet as Record

        return Record(int(self.components))

    @property
    def most_clusters(self) -> float:
        """All components."""
        return self.components
