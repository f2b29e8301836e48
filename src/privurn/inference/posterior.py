"""What every inference gives, whatever was released: draws, their summary, whether they can be trusted, pictures, files."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privurn.errors import InferenceWarning, ModelError
from privurn.inference import cautions
from privurn.inference.draws import Draws, Summary, check_level
from privurn.inference.predictive import DRAWS, PredictiveCheck

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from privurn.inference.counts.unbiased import Estimate, Estimates

JUDGED = 60
"""Numbers that warnings look at, spread over all of them: each takes milliseconds."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Posterior(ABC):
    """Posterior draws given what was released.

    `level` is that of intervals where no other is asked for. What only some releases can say (clusters of records, the release
    taken at face value) stands in the kinds of posterior: `CountPosterior`, `MixturePosterior` and
    `SumPosterior`.
    """

    level: float = 0.95

    if TYPE_CHECKING:

        @property
        def draws(self) -> Draws:
            """One array (chain, draw, ...) for each variable."""

    def __repr__(self) -> str:
        drawn = f"{self.draws.n_chains} x {self.draws.n_draws} draws"
        return f"{type(self).__name__}({', '.join(self.names)}; {drawn})"

    @property
    def names(self) -> tuple[str, ...]:
        """Of the variables that `summary` shows."""
        return self.shown.names

    @property
    def shown(self) -> Draws:
        """What is summarised and judged: the draws, without what only pictures and later questions need."""
        return self.draws

    def summary(self, *, level: float | None = None) -> tuple[Summary, ...]:
        """Mean, deviation and equal-tailed interval of each number, of the draws in which it is defined.

        Beside them stands the estimate without a prior, where there is one.
        """
        return self._beside(self.shown.summary(level=self.checked_level(level)))

    def problems(self) -> tuple[str, ...]:
        """Why the draws should not be trusted, one sentence each; nothing where they are independent or have mixed."""
        return self._problems

    def mixing_problems(self) -> tuple[str, ...]:
        """Which of what warnings look at has not mixed, one sentence each."""
        return self.judged.problems()

    def cautions(self) -> tuple[InferenceWarning, ...]:
        """What must be known before the figures are used: the warnings that were given when they were made."""
        return self._cautions

    @property
    def judged(self) -> Draws:
        """What warnings look at: what is shown, or a part that is spread over it where that is much."""
        names = self.shown.names
        if len(names) <= JUDGED:
            return self.shown
        return self.shown.only([names[i] for i in np.unique(np.linspace(0, len(names) - 1, JUDGED).astype(np.int64))])

    def prior_draws(self) -> Mapping[str, NDArray[Any]]:
        """Draws of what is shown from the prior alone, by the names that summaries use; empty where there is no prior."""
        return {}

    @property
    def unbiased(self) -> "Mapping[str, Estimate]":
        """Estimates without a prior, by the names that summaries use."""
        return {}

    def debiased(self) -> "Estimates":
        """The same as a tuple; `left_out` names the figures that have none."""
        from privurn.inference.counts.unbiased import Estimates

        known = self.unbiased
        return Estimates(known.values(), left_out=[name for name in self.names if name not in known])

    def clamped_shares(self) -> Mapping[str, float]:
        """Shares of the records that seem to lie at a bound or beyond it, by what is bounded."""
        return {}

    def predictive_check(self, *, draws: int = DRAWS, seed: int = 0) -> PredictiveCheck:
        """Whether the published numbers are such as this posterior would publish, part by part.

        From each of the draws numbers are published anew by the law that the certificate states. A part that lies elsewhere
        than nearly all of them says that the mechanism, its scale or the prior is not as stated.
        """
        raise ModelError("figures of a whole table have no predictive check.", hint="Leave the check out")

    @property
    def mixed(self) -> bool:
        """Whether there is no such problem."""
        return not self.problems()

    @property
    def undefined(self) -> dict[str, int]:
        """Draws that hold no record that a number speaks of, by number: with n = 0, or with no number for a mean.

        What a figure of nothing is, nobody can say: `summary` leaves these draws out, so that it is about the draws with such
        records. Chains are cut to the length of the shortest that is left.
        """
        return self.shown.undefined

    def to_datatree(self) -> Any:
        """The draws as xarray.DataTree."""
        return self._written.to_datatree()

    def to_inference_data(self) -> Any:
        """The draws as arviz.InferenceData, where ArviZ 0.x is installed."""
        return self._written.to_inference_data()

    def save(self, path: str | Path) -> Path:
        """Write the draws as a netCDF file, all of it or nothing."""
        return self._written.save(path)

    @abstractmethod
    def synthetic(self, *, records: int | None = None, copies: int = 1, seed: int | None = None) -> Any:
        """Records as a table, computed from what was released alone: they cost no privacy.

        One copy is `records` of them (as many as confidential ones where left out). Several copies, each of the confidential
        size, stand one after the other, each behind its number in a column `copy`.

        Of counts and whole tables one copy is for use at face value, and several are draws of the confidential table. Of
        mixtures and sums every record of one copy comes from a draw of its own, so that together they follow the posterior
        predictive law; each of several copies is a new sample from one drawn law. Estimates from those are about the
        population with `privurn.combine(estimates, variances, about="table", resampled=(n, n))`: the table is then the law.
        """

    @abstractmethod
    def plot(self, *, kind: Any = None, level: float | None = None, **options: Any) -> "Figure":
        """A picture; which kinds there are depends on what was released."""

    def checked_level(self, level: float | None) -> float:
        """The level asked for, or the usual one."""
        found = self.level if level is None else level
        check_level(found, of="an interval")
        return found

    def _beside(self, rows: tuple[Summary, ...]) -> tuple[Summary, ...]:
        """Summaries with the unbiased estimates."""
        known = self.unbiased
        return tuple(
            replace(row, unbiased=known[row.name].value, unbiased_error=known[row.name].standard_error)
            if row.name in known
            else row
            for row in rows
        )

    @property
    def _judged_rows(self) -> tuple[Summary, ...]:
        return self._beside(self.judged.summary(level=self.level))

    @cached_property
    def _cautions(self) -> tuple[InferenceWarning, ...]:
        rows = self._judged_rows
        return (
            *cautions.not_mixed(self.mixing_problems(), draws=self.draws.n_draws),
            *cautions.tells_little(rows, self.prior_draws()),
            *cautions.prior_decides(rows),
            *cautions.much_clamped(self.clamped_shares()),
        )

    @cached_property
    def _problems(self) -> tuple[str, ...]:
        return self.shown.problems()

    @property
    def _written(self) -> Draws:
        """A netCDF file takes no "/" in names."""
        return replace(self.draws, variables={name.replace("/", "|"): each for name, each in self.draws.variables.items()})
