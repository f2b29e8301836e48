"""Figures about a whole table: model-assisted, and straight from the noisy counts beside them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from privurn.errors import ModelError
from privurn.inference.tables.asked import AnyQuestion, Question
from privurn.inference.tables.assisted import AssistedEstimate, Equation, assisted_estimate, assisted_weights
from privurn.inference.tables.direct import Term, best_marginal, direct_sums
from privurn.inference.tables.discrepancy import Discrepancy, learn_discrepancy
from privurn.inference.tables.features import Features, Trust
from privurn.inference.tables.formula import Effect, Variables
from privurn.inference.tables.mixture import MixtureOfProducts
from privurn.inference.tables.model_noise import model_noise
from privurn.inference.tables.regression import GeneralisedLinear
from privurn.mechanisms.marginal_counts import Columns
from privurn.mechanisms.table_measurements import MeasuredTable

Floats = NDArray[np.float64]

AT_ONCE = 32
"""Figures whose variances are worked out together."""

LARGEST_UNEXPLAINED = 0.25
"""Share of an influence function that the measured cells may leave unexplained."""

LEAST_EIGENVALUE = 0.01
"""Of the correlations of a regression's terms: below it one follows from the others, but for noise."""

FEWEST_RECORDS = 3.0
"""Deviations of its noise that the variance of a term must reach to stand in a regression; of a rare value: its count."""


@dataclass(frozen=True, eq=False)
class Figures:
    """Estimates with the covariance of their error, for the table and for the population; direct ones where there are any."""

    names: tuple[str, ...]
    estimate: Floats
    table_covariance: Floats
    population_covariance: Floats
    unexplained: Floats
    direct: Floats
    """NaN where there is none."""
    direct_table_deviation: Floats
    direct_population_deviation: Floats
    discrepancy: Discrepancy
    cells: NDArray[np.int64] | None = None
    weights: Floats | None = None
    places: Columns = ()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Ratios(Equation):
    """psi = above - b below."""

    above: Floats
    below: Floats

    def psi(self, b: Floats) -> Floats:
        """See the class."""
        return self.above - b[:, None] * self.below

    def slope(self, b: Floats, weights: Floats) -> Floats:
        """Sums of `below`."""
        return np.diag(self.below @ weights)

    @property
    def start(self) -> Floats:
        """Anywhere."""
        return np.zeros(len(self.above))


def answer_questions(
    table: MeasuredTable, mixture: MixtureOfProducts, asked: Sequence[AnyQuestion], *, usual: bool = False
) -> tuple[list[Figures], tuple[AnyQuestion, ...]]:
    """Questions about the same columns together, and which were answered: the `usual` ones that no record is about are not."""
    groups: dict[Columns, list[Question]] = {}
    for each in {step.name: step for question in asked for step in question.steps}.values():
        groups.setdefault(tuple(sorted({j for ratio in each.ratios for j in ratio.places})), []).append(each)
    found = [_answered(table, mixture, places, own, leave_out=usual) for places, own in groups.items()]
    parts = [each for each in found if each is not None]
    known = {name for part in parts for name in part.names}
    told = tuple(each for each in asked if all(step.name in known for step in each.steps))
    if len(told) < len(asked):
        left = [each.name for each in asked if each not in told]
        if not parts:
            raise _nobody(left[0])
        words = tuple(f"{name!r} is left out: by the noisy counts no record has a value there." for name in left)
        parts[0] = replace(parts[0], remarks=(*parts[0].remarks, *words))
    return parts, told


def _nobody(name: str) -> ModelError:
    return ModelError(
        f"by the noisy counts no record is one that {name!r} is about: none fulfils its condition or has a value.",
        hint="Ask for a larger group, or for other figures",
    )


def _answered(
    table: MeasuredTable, mixture: MixtureOfProducts, places: Columns, asked: list[Question], *, leave_out: bool
) -> Figures | None:
    """Figures about some columns; None where none of them is about any record and such are left out."""
    told = tuple(j for j in places if table.sizes[j] > 1) or _any_column(table)
    features = Features.of(table, mixture, told)
    known = learn_discrepancy(table, mixture, told)
    trust = Trust(known.size)
    if not known.triples:  # n0 is a mere assumption: what was measured decides
        trust = Trust(features.pair_trust) if len(told) == 1 else Trust(known.size, features.pair_trust)
    weights = assisted_weights(features, trust)
    ratios = [ratio for each in asked for ratio in each.ratios]
    shape = [table.sizes[j] for j in places]
    rows = [features.cells[told.index(j)] if j in told else np.zeros(features.cells.shape[1], np.int64) for j in places]
    index = tuple(rows)

    def spread(array: Floats, own: Columns) -> Floats:
        return np.broadcast_to(array.reshape([table.sizes[j] if j in own else 1 for j in places]), shape)

    above = [spread(each.above, each.places) for each in ratios]
    below = [spread(each.below, each.places) for each in ratios]
    about = [each.name for each in asked for _ in each.ratios]
    hollow = [name for name, part in zip(about, below, strict=True) if float(part[index] @ weights) <= 0.0]
    if hollow and not leave_out:
        raise _nobody(hollow[0])
    if hollow:
        kept = [each for each in asked if each.name not in hollow]
        return _answered(table, mixture, places, kept, leave_out=True) if kept else None
    found: list[AssistedEstimate] = []
    for first in range(0, len(ratios), AT_ONCE):
        block = slice(first, first + AT_ONCE)
        equation = Ratios(np.array([each[index] for each in above[block]]), np.array([each[index] for each in below[block]]))
        found.append(assisted_estimate(features, equation, weights, trust, n=table.n))
    offset = np.array([each.offset for each in ratios])
    contrast = _contrast(asked)
    whole = any(set(told) <= set(each) for each in table.layout.sets)  # then every figure is a sum of measured cells
    direct, direct_covariance = _direct_ratios(table, places, np.array(above), np.array(below))
    sampling = _blocks([each.population_covariance - each.table_covariance for each in found])
    estimates, covariance = (
        np.concatenate([each.estimate for each in found]),
        _blocks([each.table_covariance for each in found]),
    )
    covariance = covariance + model_noise(table, mixture, ratios, estimates, claimed=np.diag(covariance))
    return Figures(
        names=tuple(each.name for each in asked),
        estimate=contrast @ (estimates + offset),
        table_covariance=contrast @ covariance @ contrast.T,
        population_covariance=contrast @ (covariance + sampling) @ contrast.T,
        unexplained=np.abs(contrast) @ np.concatenate([each.unexplained * (not whole) for each in found]),
        direct=contrast @ (direct + offset),
        direct_table_deviation=np.sqrt(np.diag(contrast @ direct_covariance @ contrast.T)),
        direct_population_deviation=np.sqrt(np.diag(contrast @ (direct_covariance + sampling) @ contrast.T)),
        discrepancy=known,
    )


def _any_column(table: MeasuredTable) -> Columns:
    return table.layout.sets[0]


def _contrast(asked: Sequence[Question]) -> Floats:
    """Ratios or differences of two of them."""
    found = np.zeros((len(asked), sum(len(each.ratios) for each in asked)))
    place = 0
    for i, each in enumerate(asked):
        found[i, place] = 1.0
        if len(each.ratios) == 2:
            found[i, place + 1] = -1.0
        place += len(each.ratios)
    return found


def _blocks(parts: Sequence[Floats]) -> Floats:
    """Along the diagonal; what was not worked out together is taken as uncorrelated."""
    size = sum(len(part) for part in parts)
    found, place = np.zeros((size, size)), 0
    for part in parts:
        found[place : place + len(part), place : place + len(part)] = part
        place += len(part)
    return found


def _direct_ratios(table: MeasuredTable, places: Columns, above: Floats, below: Floats) -> tuple[Floats, Floats]:
    """Ratios of noisy sums, and their covariance to first order.

    NaN where the columns were not measured together, or where by the noisy counts no record is below the line.
    """
    count, told = len(above), tuple(j for j in places if table.sizes[j] > 1)
    nothing = np.full(count, np.nan), np.full((count, count), np.nan)
    if not told:
        return nothing
    squeezed = [np.ascontiguousarray(each).reshape(count, *[table.sizes[j] for j in told]) for each in (above, below)]
    whole = np.array([bool((each == 1.0).all()) for each in below]) & (table.mechanism.n is not None)
    tops = direct_sums(table, [Term(told, squeezed[0])])
    bottoms = direct_sums(table, [Term(told, squeezed[1])])
    if tops is None or bottoms is None:
        return nothing
    under = np.where(whole, 1.0, np.where(bottoms.estimate > 0.0, bottoms.estimate, np.nan))
    ratio = tops.estimate / under
    shape = (-1, *[1] * len(told))
    influence = (squeezed[0] - np.where(whole, 0.0, ratio).reshape(shape) * squeezed[1]) / under.reshape(shape)
    noise = direct_sums(table, [Term(told, influence)])
    assert noise is not None
    return ratio, noise.covariance


def regress(table: MeasuredTable, mixture: MixtureOfProducts, given: Variables) -> Figures:
    """A regression by the model-assisted equation; the linear one also straight from the noisy moments."""
    variables, remarks = _told_from_noise(table, given)
    features = Features.of(table, mixture, variables.places)
    response = variables.at(variables.response, features.cells)
    design = np.array([variables.at(each, features.cells) for each in variables.effects])
    present = ~(np.isnan(response) | np.isnan(design).any(axis=0))
    equation = GeneralisedLinear(
        variables.family, np.where(present, design, 0.0), np.where(present, response, 0.0), present.astype(np.float64)
    )
    known = learn_discrepancy(table, mixture, variables.places)
    trust = Trust(known.size, features.pair_trust)
    weights = assisted_weights(features, trust)
    _check_identified(features, equation.design[1:])
    found = assisted_estimate(features, equation, weights, trust, n=table.n)
    sampling = found.population_covariance - found.table_covariance
    direct, deviation = (np.full(len(variables.names), np.nan),) * 2
    if variables.family == "linear" and present.all():
        direct, deviation = _direct_linear(table, variables, mixture)
    return Figures(
        names=variables.names,
        estimate=found.estimate,
        table_covariance=found.table_covariance,
        population_covariance=found.population_covariance,
        unexplained=found.unexplained,
        direct=direct,
        direct_table_deviation=deviation,
        direct_population_deviation=np.sqrt(deviation**2 + np.diag(sampling)),
        discrepancy=known,
        cells=features.cells,
        weights=weights,
        places=variables.places,
        remarks=remarks,
    )


def _told_from_noise(table: MeasuredTable, variables: Variables) -> tuple[Variables, tuple[str, ...]]:
    """Without terms of a column that varies no more than the noise would let it: their coefficients would be noise."""
    if not all(_varies(table, *factor) for factor in variables.response.factors):
        raise ModelError(
            f"by the noisy counts {variables.response.name!r} varies too little to be told from noise: "
            "the release cannot support this analysis.",
            hint=" ".join(table.mechanism.drowned(table.n)) or "Ask for its mean or its shares",
        )
    kept = [each for each in variables.effects if all(_varies(table, *factor) for factor in each.factors)]
    left = [each.name for each in variables.effects if each not in kept]
    words = tuple(f"{name!r} varies too little to be told from noise, and has no coefficient." for name in left)
    return Variables(variables.family, variables.response, tuple(kept)), words


def _varies(table: MeasuredTable, place: int, numbers: Floats) -> bool:
    """Whether a column's numbers have a variance beyond that of noise alone; an indicator has ones, and zeros."""
    marginal = best_marginal(table, (place,)) if table.sizes[place] > 1 else None
    if marginal is None:
        return False
    held = ~np.isnan(numbers)
    counts, reach = marginal[0][held], FEWEST_RECORDS * marginal[1]
    total = float(counts.sum())
    if total <= reach * float(np.sqrt(held.sum())):
        return False
    squares = (numbers[held] - float(numbers[held] @ counts) / total) ** 2
    return float(squares @ counts) > reach * float(np.linalg.norm(squares))


def _check_identified(features: Features, effects: Floats) -> None:
    """Effects that hardly differ, by the model's correlations."""
    variance = features.variance(effects)
    scale = np.sqrt(np.maximum(np.diag(variance), 1e-300))
    if len(effects) and np.linalg.eigvalsh(variance / np.outer(scale, scale))[0] < LEAST_EIGENVALUE:
        raise ModelError(
            "the terms of the regression cannot be told apart on this domain.",
            hint="Leave out terms that follow from others, or that are constant",
        )


def _direct_linear(table: MeasuredTable, given: Variables, mixture: MixtureOfProducts) -> tuple[Floats, Floats]:
    """Least squares from noisy second moments, and deviations to first order; NaN where a moment was not measured.

    Numbers are centred at the model's means first, which changes nothing but how much of the noise gets into the moments.
    """
    names = len(given.names)
    centres = np.array([_centre(each, mixture) for each in given.effects])
    variables = Variables(
        given.family,
        _centred(given.response, _centre(given.response, mixture)),
        tuple(_centred(each, centre) for each, centre in zip(given.effects, centres, strict=True)),
    )
    back = np.eye(names)
    back[0] -= centres
    back[0, 0] = 1.0
    nothing = np.full(names, np.nan), np.full(names, np.nan)
    every = [*variables.effects, variables.response]
    moments = np.zeros((names + 1, names + 1))
    for i, first in enumerate(every):
        for k, second in enumerate(every[: i + 1]):
            term = _product(table, first, second)
            found = None if term is None else 1.0 if not term.places else direct_sums(table, [term])
            if found is None:
                return nothing
            moments[i, k] = moments[k, i] = found if isinstance(found, float) else found.estimate[0]
    slope = moments[:names, :names]
    try:
        b = np.linalg.solve(slope, moments[:names, names])
        inverse = np.linalg.inv(slope)
    except np.linalg.LinAlgError:
        return nothing
    terms: dict[Columns, Floats] = {}
    for i, first in enumerate(variables.effects):
        for second, factor in [(variables.response, 1.0), *zip(variables.effects, -b, strict=True)]:
            term = _product(table, first, second)
            assert term is not None
            if term.places:
                part = factor * np.multiply.outer(back @ inverse[:, i], term.functions[0])
                terms[term.places] = terms[term.places] + part if term.places in terms else part
    noise = direct_sums(table, [Term(places, functions) for places, functions in terms.items()])
    assert noise is not None
    moved = back @ b
    moved[0] += _centre(given.response, mixture)
    return moved.astype(np.float64, copy=False), np.sqrt(np.diag(noise.covariance))


def _centre(effect: Effect, mixture: MixtureOfProducts) -> float:
    """The model's mean of an effect of one column, else 0."""
    if len(effect.factors) != 1:
        return 0.0
    [(j, numbers)] = effect.factors
    return float(mixture.weights @ mixture.column(j) @ numbers)


def _centred(effect: Effect, centre: float) -> Effect:
    return effect if len(effect.factors) != 1 else Effect(effect.name, ((effect.factors[0][0], effect.factors[0][1] - centre),))


def _product(table: MeasuredTable, first: Effect, second: Effect) -> Term | None:
    """The product of two effects as a function of the columns they use; None where these are more than three."""
    factors: dict[int, Floats] = {}
    for j, numbers in (*first.factors, *second.factors):
        factors[j] = factors[j] * numbers if j in factors else numbers
    places = tuple(sorted(factors))
    if not any(set(places) <= set(each) for each in table.layout.sets):
        return None
    array = np.ones([1] * len(places))
    for i, j in enumerate(places):
        array = array * factors[j].reshape([-1 if k == i else 1 for k in range(len(places))])
    return Term(places, array[None, ...])
