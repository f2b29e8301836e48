"""Noisy sums as they are asked for: the model that they are for and its columns, which calibration fills in with noise."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from privurn.domain import Bounds, JointDomain
from privurn.errors import DomainError, ModelError
from privurn.mechanisms.recipe import Asked
from privurn.mechanisms.registry import statistics
from privurn.mechanisms.sums.calibrating import Budget, NoiseName
from privurn.mechanisms.sums.statistic import StatisticMechanism
from privurn.privacy.profile import Guarantee

OWN = ("model", "epsilon_n", "noise")
"""Fields that are not handed to the statistic."""


@dataclass(frozen=True, repr=False)
class Sums(Asked):
    """Sums that a model can be inferred from. The constructor only stores.

    `model` is one of those that a statistic is registered for: "regression", "normal", "logistic", "dirichlet", "bernoulli",
    "poisson". Columns are told apart by the model (`response`, `covariates`, `column`), and what is public of each stands in
    the domain: `Bounds`. Counts of the cells of a table are `NoisyCounts(publish="counts")`. Where n is secret, `epsilon_n` is
    the part of epsilon that is spent on publishing it with noise; left out, nothing about it is published.
    """

    alias: ClassVar[str] = "sums"
    reads: ClassVar[str] = "sums"

    model: str
    response: str | None = None
    covariates: Sequence[str] | None = None
    column: str | None = None
    squares: str | None = None
    missing: str | None = None
    epsilon_n: float | None = None
    noise: NoiseName | None = None

    def budget(self, guarantee: Guarantee) -> Budget:
        """The guarantee is of everything that is published."""
        noise = self.noise or ("discrete-gaussian" if guarantee.delta > 0.0 else self._kind.usual_noise)
        return Budget(
            epsilon=guarantee.epsilon,
            delta=guarantee.delta,
            epsilon_n=self.epsilon_n,
            neighbouring=guarantee.neighbouring,
            contributions=guarantee.contributions,
            noise=noise,
        )

    def calibrate(self, domain: Any, budget: Budget) -> StatisticMechanism:
        """The statistic with the least noise."""
        given = {name: value for name, value in self.given.items() if name not in OWN}
        taken = inspect.signature(self._kind.calibrated).parameters
        given |= _public(domain, column=self.column, taken=taken)
        for name in given:
            if name not in taken:
                raise ModelError(f"the model {self.model} has no {name}.", hint=f"It has {_listed(taken)}")
        for name, each in taken.items():
            if each.default is inspect.Parameter.empty and name not in given and name != "budget":
                raise ModelError(f"the model {self.model} needs {name}.", hint=f"It has {_listed(taken)}")
        made: StatisticMechanism = self._kind.calibrated(budget=budget, **given)
        return made

    @property
    def _kind(self) -> Any:
        kinds = {each.model: each for each in statistics().values()}
        if self.model not in kinds:
            raise ModelError(f"there are no sums for a model {self.model!r}.", hint=f"One of {', '.join(kinds)}")
        return kinds[self.model]


def _listed(taken: Mapping[str, Any]) -> str:
    told = [name for name in taken if name not in ("budget", "bounds", "upper", "parts", "floor")]
    return ", ".join([*told, "what is public of its columns in the domain"])


def _public(domain: Any, *, column: str | None, taken: Mapping[str, Any]) -> dict[str, Any]:
    """What a statistic is told of its columns, from their domain."""
    columns: Any = domain.columns if isinstance(domain, JointDomain) else domain
    if not isinstance(columns, Mapping) or not all(isinstance(each, Bounds) for each in columns.values()):
        raise DomainError("sums over numbers need public bounds.", hint="For example domain={'pay': Bounds(0, 100)}")
    if any(each.nulls != "error" for each in columns.values()):
        raise DomainError("among sums no missing number counts as a bound.", hint="Leave nulls out; missing='unreadable'")
    ends = {name: each.ends for name, each in columns.items()}
    if "bounds" in taken:
        return {"bounds": ends}
    if "parts" in taken:
        lower = {low for low, _ in ends.values()}
        if len(lower) > 1 or {high for _, high in ends.values()} != {1.0}:
            raise DomainError("parts of a whole have the same smallest share, and 1 as the largest.", hint="Bounds(0.001, 1)")
        return {"parts": tuple(ends), "floor": lower.pop()}
    if set(ends) != {column}:
        raise DomainError(
            "the domain is not that of the column.", hint="For example column='ill', domain={'ill': Bounds(0, 1)}"
        )
    [(low, high)] = ends.values()
    if low != 0.0 or high != int(high):
        raise DomainError("counts begin at 0, and their largest is a whole number.", hint="For example Bounds(0, 20)")
    return {"upper": int(high)}
