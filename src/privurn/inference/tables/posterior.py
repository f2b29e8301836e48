"""What is known of a whole table from its noisy marginals: figures with intervals, weights, and what they rest on."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from privurn.errors import ModelError
from privurn.inference.draws import Draws, Summary
from privurn.inference.posterior import Posterior
from privurn.inference.run import Run
from privurn.inference.tables.answers import LARGEST_UNEXPLAINED, Figures, answer_questions, regress
from privurn.inference.tables.asked import questions
from privurn.inference.tables.fit import Fit, FitSettings, fit_mixture
from privurn.inference.tables.formula import TableRegression
from privurn.mechanisms.table_measurements import MeasuredTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
Of = Literal["population", "sample"]

DRAWS = 4_000
"""Of the normal law of the estimates, where no number is asked for."""


@dataclass(frozen=True, kw_only=True)
class TableFigure:
    """One figure: model-assisted with its interval, and straight from the noisy counts where that can be had."""

    name: str
    estimate: float
    deviation: float
    direct: float | None
    direct_deviation: float | None
    unexplained: float


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TablePosterior(Posterior):
    """Figures about a table, approximately normal; `of` says whether about the population or the confidential records.

    The mixture was fitted to single columns and pairs only, so that triples could tell how far the table may be from it
    (`size`, in records of equal worth). Intervals are for one figure at a time.
    """

    table: MeasuredTable
    parts: tuple[Figures, ...]
    fit: Fit
    of: Of = "population"
    seed: int = 0
    drawn: int = DRAWS

    @cached_property
    def figures(self) -> tuple[TableFigure, ...]:
        """One for each name."""
        found = []
        for part in self.parts:
            deviations = np.sqrt(np.diag(self._covariance(part)))
            beside = part.direct_population_deviation if self.of == "population" else part.direct_table_deviation
            for i, name in enumerate(part.names):
                direct = (float(part.direct[i]), float(beside[i])) if np.isfinite(part.direct[i]) else (None, None)
                found.append(
                    TableFigure(
                        name=name,
                        estimate=float(part.estimate[i]),
                        deviation=float(deviations[i]),
                        direct=direct[0],
                        direct_deviation=direct[1],
                        unexplained=float(part.unexplained[i]),
                    )
                )
        return tuple(found)

    @property
    def size(self) -> float:
        """The least n0 that was used: how many records' worth the fitted model is trusted."""
        return min(part.discrepancy.size for part in self.parts)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the figures."""
        return tuple(each.name for each in self.figures)

    def summary(self, *, level: float | None = None) -> tuple[Summary, ...]:
        """Estimate, deviation and normal interval of each figure."""
        from scipy.special import ndtri

        chosen = self.checked_level(level)
        reach = float(ndtri(0.5 + 0.5 * chosen))
        return tuple(
            Summary(
                name=each.name,
                mean=each.estimate,
                deviation=each.deviation,
                lower=each.estimate - reach * each.deviation,
                upper=each.estimate + reach * each.deviation,
                level=chosen,
                effective_draws=float("nan"),
                tail_effective_draws=float("nan"),
                mean_effective_draws=float("nan"),
                r_hat=None,
                standard_error=0.0,
            )
            for each in self.figures
        )

    @cached_property
    def draws(self) -> Draws:
        """From the normal law of the estimates; figures that were worked out together are drawn together."""
        rng = np.random.default_rng([self.seed, 4])
        variables: dict[str, NDArray[Any]] = {}
        for part in self.parts:
            values, vectors = np.linalg.eigh(self._covariance(part))
            root = vectors * np.sqrt(np.maximum(values, 0.0))
            numbers = part.estimate + rng.standard_normal((self.drawn, len(part.names))) @ root.T
            variables |= {name: numbers[None, :, i] for i, name in enumerate(part.names)}
        return Draws(variables=variables, markov=False, attributes=self.attributes)

    @property
    def attributes(self) -> dict[str, Any]:
        """How the figures were made, as plain data."""
        return {
            "how": "model-assisted estimating equation; normal approximation",
            "of": self.of,
            "seed": self.seed,
            "n0": round(self.size, 1),
            "misfit": round(self.fit.misfit, 4),
        }

    def problems(self) -> tuple[str, ...]:
        """What to know before the figures are used."""
        found = [word for part in self.parts for word in part.remarks]
        if any(part.discrepancy.triples == 0 for part in self.parts):
            found.append(
                "no three columns were measured together: how far the table is from the model was assumed, not learnt "
                f"(n0 = {self.size:.0f})."
            )
        return tuple(found)

    def weights(self) -> dict[str, NDArray[Any]]:
        """Joint cells of the regression's columns with a weight each, for estimators of one's own; negative ones must stay.

        Columns hold the values that the cells stand for: numbers, labels, None for missing values. Solving any weighted
        estimating equation with these weights is the model-assisted estimate.
        """
        from privurn.inference.counts.plans import _values

        part = self.parts[0]
        if part.cells is None or part.weights is None or self.table.domain is None:
            raise ModelError("weights belong to a regression.", hint="infer(release, LinearRegression('y ~ x'))")
        domains = list(self.table.domain.columns.items())
        named = [domains[j] for j in part.places]
        columns = {name: _values(domain)[part.cells[i]] for i, (name, domain) in enumerate(named)}
        return {**columns, "weight": part.weights}

    def plot(self, *, kind: Any = None, level: float | None = None, **options: Any) -> "Figure":
        """Intervals of the figures."""
        from privurn.drawing.figure import blank, line

        figure, [axes] = blank("Figures with their intervals", rows=1, height=1.5 + 0.3 * len(self.figures))
        for i, each in enumerate(self.summary(level=level)):
            axes.plot([each.lower, each.upper], [i, i], **line(0))
            axes.plot([each.mean], [i], "o", **{"color": line(0)["color"]})
        axes.set_yticks(range(len(self.figures)), self.names)
        axes.invert_yaxis()
        return figure

    def _covariance(self, part: Figures) -> Floats:
        return part.population_covariance if self.of == "population" else part.table_covariance


def table_posterior(
    table: MeasuredTable,
    *,
    model: TableRegression | None = None,
    ask: str | Sequence[str] | None = None,
    of: Of = "population",
    run: Run | None = None,
    level: float = 0.95,
    settings: FitSettings | None = None,
) -> TablePosterior:
    """Figures about a table, or a regression over it."""
    if table.domain is None:
        raise ModelError("figures need the columns' domains.")
    if of not in ("population", "sample"):
        raise ModelError("a table has figures of the population or of the sample.", hint="of='sample'")
    if model is not None and ask is not None:
        raise ModelError("a regression reports its coefficients.", hint="Leave ask out")
    seed = (run.seed if run is not None else None) or 0
    fit = fit_mixture(table, seed=seed, settings=replace(settings or FitSettings(), triple_steps=0))
    if model is not None:
        parts = [regress(table, fit.mixture, model, table.domain)]
    else:
        parts = answer_questions(table, fit.mixture, questions(ask, table.domain))
    for part in parts:
        worst = int(part.unexplained.argmax())
        if part.unexplained[worst] > LARGEST_UNEXPLAINED:
            raise ModelError(
                f"the release cannot support this analysis: of what decides {part.names[worst]!r} the measured marginals leave "
                f"{part.unexplained[worst]:.0%} unexplained.",
                hint="Use fewer terms, or ask the custodian for a workload that holds these columns together",
            )
    drawn = run.draws if run is not None and run.draws is not None else DRAWS
    return TablePosterior(level=level, table=table, parts=tuple(parts), fit=fit, of=of, seed=seed, drawn=int(drawn))
