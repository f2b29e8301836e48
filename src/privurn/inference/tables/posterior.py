"""What is known of a whole table from its noisy marginals: figures with intervals, weights, and what they rest on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from privurn.errors import FormatError, InferenceWarning, ModelError, TellsLittle
from privurn.inference.cautions import PRIOR_DRAWS, say
from privurn.inference.counts.places import ASSUMED, WithinBins
from privurn.inference.counts.unbiased import Estimate
from privurn.inference.draws import Draws, Summary
from privurn.inference.posterior import Posterior
from privurn.inference.run import Run
from privurn.inference.tables.answers import LARGEST_UNEXPLAINED, Figures, answer_questions, regress
from privurn.inference.tables.asked import AnyQuestion, QuantileQuestion, Question, Quotient, Single, TreeQuestion, questions
from privurn.inference.tables.cell_weights import cell_weights
from privurn.inference.tables.drawn import difference, normal_draws, quotient, quotient_ends
from privurn.inference.tables.fine import Ranges, TreeAnswer, tree_answers, usual_ranges
from privurn.inference.tables.fit import Fit, FitSettings, fit_pairs
from privurn.inference.tables.formula import TableRegression
from privurn.inference.tables.model import TableModel
from privurn.inference.tables.quantiles import Curve
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
    asked: tuple[AnyQuestion, ...] | None = None
    """Left out: everything in `parts`, as of a regression."""
    of: Of = "population"
    seed: int = 0
    drawn: int = DRAWS
    settings: FitSettings | None = None
    """Of synthetic records; left out, the usual ones."""
    within: WithinBins = "uniform"
    """What was assumed of where in their bins the records lie."""
    ranges: Mapping[int, Ranges] = field(default_factory=dict)
    """Of fine columns, by place."""

    @cached_property
    def figures(self) -> tuple[TableFigure, ...]:
        """One for each thing that was asked, in that order."""
        if self.asked is None:
            return tuple(self._estimated.values())
        return tuple(self._figure(each) for each in self.asked)

    def _figure(self, question: AnyQuestion) -> TableFigure:
        if isinstance(question, Quotient):
            return self._quotient_figure(question)
        if isinstance(question, QuantileQuestion):
            return self._quantile_figure(question)
        return self._estimated[question.name] if isinstance(question, Question) else self._tree_figure(question)

    def _quotient_figure(self, question: Quotient) -> TableFigure:
        """Two figures, one over the other; it has no unbiased estimate."""
        first, second = (self._figure(each) for each in question.parts)
        spread, most = float(self._drawn[question.name].std()), max(first.unexplained, second.unexplained)
        made = replace(first, name=question.name, estimate=first.estimate / second.estimate, deviation=spread)
        return replace(made, direct=None, direct_deviation=None, unexplained=most)

    @property
    def _singles(self) -> list[Single]:
        """What was asked for, the two figures of a ratio one by one."""
        return [part for each in self.asked or () for part in (each.parts if isinstance(each, Quotient) else (each,))]

    def _tree_figure(self, question: TreeQuestion) -> TableFigure:
        drawn = self._drawn[question.name]
        first = self._tree_answers[question.parts[0][1]].unbiased if len(question.parts) == 1 else None
        return TableFigure(
            name=question.name,
            estimate=float(np.mean(drawn)),
            deviation=float(np.std(drawn)),
            direct=None if first is None else first.value,
            direct_deviation=None if first is None else first.standard_error,
            unexplained=0.0,
        )

    @cached_property
    def _tree_answers(self) -> Mapping[str, TreeAnswer]:
        """Figures of fine columns alone, by what was asked."""
        asked = [part for each in self._singles if isinstance(each, TreeQuestion) for part in each.parts]
        return tree_answers(
            self.table, asked, of=self.of, within=self.within, draws=self.drawn, seed=self.seed, level=self.level
        )

    def _quantile_figure(self, question: QuantileQuestion) -> TableFigure:
        curves, beside = self._curves(question), self._curves(question, direct=True)
        crossed = [
            self._estimated[each.shares[min(curve.place, len(each.shares) - 1)].name].unexplained
            for each, curve in zip(question.quantiles, curves or (), strict=True)
            if each.shares
        ]
        return TableFigure(
            name=question.name,
            estimate=float(difference([curve.reached(np.zeros(1)) for curve in curves or ()])[0]),
            deviation=float(self._drawn[question.name].std()),
            direct=None if beside is None else float(difference([curve.reached(np.zeros(1)) for curve in beside])[0]),
            direct_deviation=None if beside is None else float(np.sqrt(sum(curve.spread**2 for curve in beside))),
            unexplained=max(crossed, default=0.0),
        )

    def _curves(self, question: QuantileQuestion, *, direct: bool = False) -> list[Curve] | None:
        """The distribution functions that quantiles are read from; None where one was not measured."""
        found = []
        for each in question.quantiles:
            steps = [self._estimated[share.name] for share in each.shares]
            pairs = [(one.direct, one.direct_deviation) if direct else (one.estimate, one.deviation) for one in steps]
            if any(share is None for share, _ in pairs):
                return None
            shares, deviations = np.array([*pairs, (1.0, 0.0)], np.float64).T
            found.append(Curve(each.level, each.lows, each.highs, shares, deviations))
        return found

    @cached_property
    def _drawn(self) -> dict[str, Floats]:
        """Draws of quantiles, of figures of fine columns alone, of differences of two of them, and of ratios, by name."""
        rng = np.random.default_rng([self.seed, 5])
        found = {
            each.name: difference([curve.drawn(self.drawn, rng=rng) for curve in self._curves(each) or ()])
            for each in self._singles
            if isinstance(each, QuantileQuestion)
        }
        trees = [each for each in self._singles if isinstance(each, TreeQuestion)]
        found |= {each.name: difference([self._tree_answers[text].drawn for _, text in each.parts]) for each in trees}
        known = {**self._normal, **found}
        ratios = [each for each in self.asked or () if isinstance(each, Quotient)]
        return found | {each.name: quotient([part.name for part in each.parts], known, self._estimated) for each in ratios}

    @cached_property
    def _normal(self) -> dict[str, Floats]:
        """Draws of all that was estimated."""
        parts = [(part, self._covariance(part)) for part in self.parts]
        return normal_draws(parts, self.drawn, rng=np.random.default_rng([self.seed, 4]))

    @cached_property
    def _estimated(self) -> dict[str, TableFigure]:
        """All that was estimated, by name."""
        found = {}
        for part in self.parts:
            deviations = np.sqrt(np.diag(self._covariance(part)))
            beside = part.direct_population_deviation if self.of == "population" else part.direct_table_deviation
            for i, name in enumerate(part.names):
                direct = (float(part.direct[i]), float(beside[i])) if np.isfinite(part.direct[i]) else (None, None)
                found[name] = TableFigure(
                    name=name,
                    estimate=float(part.estimate[i]),
                    deviation=float(deviations[i]),
                    direct=direct[0],
                    direct_deviation=direct[1],
                    unexplained=float(part.unexplained[i]),
                )
        return found

    @property
    def size(self) -> float:
        """The least n0 that was used: how many records' worth the fitted model is trusted."""
        return min((part.discrepancy.size for part in self.parts), default=self.table.n)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the figures."""
        return tuple(each.name for each in self.figures)

    def summary(self, *, level: float | None = None) -> tuple[Summary, ...]:
        """Estimate, deviation and interval of each figure: a normal one, but equal-tailed of quantiles and from trees."""
        from scipy.special import ndtri

        chosen = self.checked_level(level)
        reach = float(ndtri(0.5 + 0.5 * chosen))
        ends = {
            name: np.quantile(drawn, [0.5 - 0.5 * chosen, 0.5 + 0.5 * chosen], method="inverted_cdf")
            for name, drawn in self._drawn.items()
        }
        rows = tuple(
            Summary(
                name=each.name,
                mean=each.estimate,
                deviation=each.deviation,
                lower=float(ends[each.name][0]) if each.name in ends else each.estimate - reach * each.deviation,
                upper=float(ends[each.name][1]) if each.name in ends else each.estimate + reach * each.deviation,
                level=chosen,
                standard_error=0.0,
            )
            for each in self.figures
        )
        return self._beside(rows)

    def _beside(self, rows: tuple[Summary, ...]) -> tuple[Summary, ...]:
        """What is assumed of places within bins, and between what a figure lies whatever they are."""
        known = {each.name: each for each in self.asked or ()}
        return tuple(
            row.between(self._place_ends(known[row.name], row.level), ASSUMED[self.within]) if row.name in known else row
            for row in super()._beside(rows)
        )

    def _place_ends(self, question: AnyQuestion, level: float) -> tuple[float, float] | None:
        """Between what a figure lies, wherever in their bins the records do; None where it depends on no bin."""
        from scipy.special import ndtri

        if isinstance(question, Quotient):
            rows = [(self._place_ends(each, level), self._drawn_ends(each.name, level)) for each in question.parts]
            return None if rows == [(None, own) for _, own in rows] else quotient_ends(*(placed or own for placed, own in rows))
        if isinstance(question, TreeQuestion):
            row = self._tree_answers[question.parts[0][1]].row
            known = len(question.parts) == 1 and row.lowest is not None and row.highest is not None and row.level == level
            return (row.lowest, row.highest) if known else None  # type: ignore[return-value]
        if isinstance(question, Question):
            if question.placed is None:
                return None
            least, most = (self._estimated[each.name] for each in question.placed)
            reach = float(ndtri(0.5 + 0.5 * level))
            return least.estimate - reach * least.deviation, most.estimate + reach * most.deviation
        curves = self._curves(question) or []
        if not question.placed or all(np.array_equal(each.lows, each.highs) for each in curves):
            return None
        rng = np.random.default_rng([self.seed, 6])
        low = [replace(each, highs=each.lows).drawn(self.drawn, rng=rng) for each in curves]
        high = [replace(each, lows=each.highs).drawn(self.drawn, rng=rng) for each in curves]
        tail = 0.5 - 0.5 * level
        return (
            float(np.quantile(difference([low[0], *high[1:]]), tail)),
            float(np.quantile(difference([high[0], *low[1:]]), 1.0 - tail)),
        )

    def _drawn_ends(self, name: str, level: float) -> tuple[float, float]:
        lower, upper = np.quantile({**self._normal, **self._drawn}[name], [0.5 - 0.5 * level, 0.5 + 0.5 * level])
        return float(lower), float(upper)

    @property
    def _judged_rows(self) -> tuple[Summary, ...]:
        return self.summary()

    @property
    def unbiased(self) -> Mapping[str, Estimate]:
        """Straight from the noisy counts, where what was asked for was measured."""
        return {
            each.name: Estimate(name=each.name, value=each.direct, standard_error=each.direct_deviation)
            for each in self.figures
            if each.direct is not None and each.direct_deviation is not None
        }

    def prior_draws(self) -> Mapping[str, Floats]:
        """All that a figure can be, evenly: what was asked for has no other prior here, and a regression none."""
        rng = np.random.default_rng(0)
        drawn = [(each, [rng.uniform(*ends, PRIOR_DRAWS) for ends in each.ends]) for each in self.asked or ()]
        return {
            each.name: numbers[0] / numbers[1] if isinstance(each, Quotient) else difference(numbers) for each, numbers in drawn
        }

    def cautions(self) -> tuple[InferenceWarning, ...]:
        """Those of every posterior, and what the mechanism itself says of its noise."""
        return (*super().cautions(), *map(TellsLittle, self.table.mechanism.drowned(self.table.n)))

    @cached_property
    def draws(self) -> Draws:
        """Of every figure."""
        known = {**self._normal, **self._drawn}
        variables: dict[str, NDArray[Any]] = {each.name: known[each.name][None, :] for each in self.figures}
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
        found = [*self.table.mechanism.drowned(self.table.n), *(word for part in self.parts for word in part.remarks)]
        if any(part.discrepancy.triples == 0 for part in self.parts):
            found.append(
                "no three columns were measured together: figures go by the measured single columns and pairs, and of three "
                f"columns or more it was assumed, not learnt, how far the table is from the model (n0 = {self.size:.0f})."
            )
        return tuple(found)

    def weights(self) -> dict[str, NDArray[Any]]:
        """Joint cells of the regression's columns with a weight each, for estimators of one's own; negative ones must stay.

        Columns hold the values that the cells stand for: numbers, labels, None for missing values. Solving any weighted
        estimating equation with these weights is the model-assisted estimate.
        """
        return cell_weights(self.table, self.parts, self.ranges)

    def synthetic(self, *, records: int | None = None, copies: int = 1, seed: int | None = None) -> Any:
        """Records made from the measurements as a table: any number of one copy, or copies of the confidential size.

        One copy is the most probable table. Several are approximate draws, each behind its number in a column `copy`;
        `privurn.combine` puts together shares and means from them. For regressions use a model: tables shrink associations.
        """
        from privurn.inference.tables.synthetic import synthetic_table

        chosen = self.seed if seed is None else seed
        return synthetic_table(self.table, records=records, copies=copies, seed=chosen, settings=self.settings)[0]

    def plot(self, *, kind: Any = None, level: float | None = None, **options: Any) -> "Figure":
        """Intervals of the figures."""
        from privurn.inference.tables.pictures import intervals

        if kind not in (None, "intervals"):
            raise FormatError(f"a whole table has no picture {kind!r}.", hint="kind='intervals'")
        return intervals(self.summary(level=level))

    def _covariance(self, part: Figures) -> Floats:
        return part.population_covariance if self.of == "population" else part.table_covariance


def table_posterior(
    table: MeasuredTable,
    *,
    model: TableRegression | TableModel | None = None,
    ask: str | Sequence[str] | None = None,
    of: Of = "population",
    run: Run | None = None,
    level: float = 0.95,
    settings: FitSettings | None = None,
    fit: Fit | None = None,
) -> TablePosterior:
    """Figures about a table, or a regression over it; `fit`: one to its pairs only, where it has been made before."""
    if table.domain is None:
        raise ModelError("figures need the columns' domains.")
    if of not in ("population", "sample"):
        raise ModelError("a table has figures of the population or of the sample.", hint="of='sample'")
    if isinstance(model, TableRegression) and ask is not None:
        raise ModelError("a regression reports its coefficients.", hint="Leave ask out")
    within = model.within if isinstance(model, TableModel) else "uniform"
    model = None if isinstance(model, TableModel) else model
    ranges = usual_ranges(table)
    asked = None if model is not None else tuple(questions(ask, table.domain, within=within, ranges=ranges))
    variables = None if model is None else model.variables(table.domain).ranged(ranges)
    seed = (run.seed if run is not None else None) or 0
    fit = fit or fit_pairs(table, seed=seed, settings=settings)
    if variables is not None:
        parts = [regress(table, fit.mixture, variables)]
    else:
        parts, asked = answer_questions(table, fit.mixture, asked or (), usual=ask is None)
    for part in parts:
        worst = int(part.unexplained.argmax())
        if part.unexplained[worst] > LARGEST_UNEXPLAINED:
            raise ModelError(
                f"the release cannot support this analysis: of what decides {part.names[worst]!r} the measured marginals leave "
                f"{part.unexplained[worst]:.0%} unexplained.",
                hint=" ".join(table.mechanism.drowned(table.n))
                or "Use fewer terms, or ask the custodian for a workload that holds these columns together",
            )
    drawn = run.draws if run is not None and run.draws is not None else DRAWS
    return say(
        TablePosterior(
            level=level,
            table=table,
            parts=tuple(parts),
            fit=fit,
            asked=asked,
            of=of,
            seed=seed,
            drawn=int(drawn),
            settings=settings,
            within=within,
            ranges=ranges,
        )
    )
