"""The mixture of products behind noisy marginals: the most probable one, and approximate draws.

K classes with weights w = softmax(eta); in class k column j has the probabilities softmax(log b_j + tau xi_kj), b_j the noisy
share of its cells, floored; eta and xi are standard normal. Nonparametrically: a truncated mixture of products with a
logistic-normal base, K the truncation.

A draw is made by randomise-then-optimise: fresh noise on what was measured, prior draws of eta and xi as their centre, and the
optimum from there. Such draws are approximate: exact where everything is linear and Gaussian, which the mixture is not.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.cores import usable_cores
from privurn.errors import ModelError
from privurn.inference.tables.mixture import MixtureOfProducts
from privurn.inference.tables.objective import PARTS, Objective, Side, Single
from privurn.inference.tables.threads import one_thread
from privurn.mechanisms.table_measurements import MeasuredTable

Progress = Callable[[int, int, float], None]
"""Called with steps done, steps in all, and the misfit per measured cell: about 1 where the noise explains it."""

WORTH_THREADS = 100_000
"""Cells of triples from which on threads gain more than they cost."""


@dataclass(frozen=True, kw_only=True)
class Spread:
    """A tau by the noise: the prior holds associations down, which pays only where the noise is large."""

    factor: float
    """Of the root of N over the deviation of a pair's noise, or of what there is."""
    within: tuple[float, float]

    def of(self, table: MeasuredTable) -> float:
        """Tau of one table."""
        return float(np.clip(self.factor * np.sqrt(_above_noise(table)), *self.within))


@dataclass(frozen=True, kw_only=True)
class Classes:
    """A K by the noise: every class pays for its own distance from independence, so that many of them buy none.

    Where noise is large a hundred classes gave up associations that were plainly measured, which fewer keep.
    """

    noise: float
    """N over the deviation of a pair's noise, or of what there is, for each class."""
    within: tuple[int, int]

    def of(self, table: MeasuredTable) -> int:
        """K of one table."""
        return round(float(np.clip(_above_noise(table) / self.noise, *self.within)))


@dataclass(frozen=True, kw_only=True)
class FitSettings:
    """How long and how finely a table is fitted; coverage of draws and figures was measured with the defaults."""

    classes: int | Classes = Classes(noise=1.5, within=(25, 100))
    """K."""
    spread: float | Spread = 1.5
    """tau."""
    floor: float = 3e-4
    """Of the shares in b."""
    pair_steps: int = 400
    """On one and two columns."""
    triple_steps: int = 300
    """Then on three columns as well."""
    start: float = 0.1
    """Deviation of eta and xi where the search for the most probable mixture begins."""
    rate: float = 0.1
    """Of Adam; falls to a twentieth along a cosine within each phase."""
    searches: int = 1
    """From so many starts; the mixtures that are found are averaged, each with K classes of its own."""

    def __post_init__(self) -> None:
        classes = self.classes.within[0] if isinstance(self.classes, Classes) else self.classes
        spread = self.spread.within[0] if isinstance(self.spread, Spread) else self.spread
        if min(classes, self.pair_steps, self.searches) < 1 or self.triple_steps < 0 or not min(spread, self.rate) > 0.0:
            raise ModelError("a fit needs classes, steps, searches, a spread and a rate, all of them positive.")

    def classes_for(self, table: MeasuredTable) -> int:
        """K of one table."""
        return self.classes.of(table) if isinstance(self.classes, Classes) else self.classes

    def spread_for(self, table: MeasuredTable) -> float:
        """Tau of one table."""
        return self.spread.of(table) if isinstance(self.spread, Spread) else self.spread


AT_FACE_VALUE = FitSettings(
    classes=Classes(noise=1.5, within=(10, 100)), spread=Spread(factor=0.1, within=(1.5, 3.0)), triple_steps=250, searches=2
)
"""For one table that is used as it is: what `python -m benchmarks.tune_tables` chooses on the Adult table alone, by a rule that
was written down before it was run. The mean of several searches lies nearer than each, which have noise of their own."""


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted mixture, and how well it fits what was measured."""

    mixture: MixtureOfProducts
    misfit: float
    """Mean squared residual of the measured cells in deviations of their noise."""
    n: float
    """Records that the fitted counts speak of: where their number is secret, a draw has one of its own."""


def fit_mixture(
    table: MeasuredTable,
    *,
    seed: int = 0,
    settings: FitSettings | None = None,
    progress: Progress = lambda done, total, misfit: None,
    objective: Objective | None = None,
) -> Fit:
    """The most probable mixture given the noisy marginals, or the mean of what several searches find.

    The same seed gives the same mixture on the same machine.
    """
    chosen = settings or FitSettings()
    own = objective or Objective.of(table)
    rng = np.random.default_rng([seed, 1])

    def search(number: int) -> Fit:
        eta, xi = (np.float32(chosen.start) * each for each in _normals(table, chosen, rng))

        def told(done: int, total: int, misfit: float) -> None:
            progress(number * total + done, chosen.searches * total, misfit)

        return _optimised(table, own, chosen, start=(eta, xi), centre=None, progress=told)

    return _averaged([search(number) for number in range(chosen.searches)], table, own)


def _averaged(fits: list[Fit], table: MeasuredTable, objective: Objective) -> Fit:
    if len(fits) == 1:
        return fits[0]
    weights = np.concatenate([each.mixture.weights for each in fits]) / len(fits)
    cells = np.concatenate([each.mixture.cells for each in fits])
    misfit, _, _ = objective.value(weights.astype(np.float32), cells.astype(np.float32), triples=True)
    return Fit(MixtureOfProducts(table.sizes, weights, cells), 2.0 * misfit / len(table.counts), table.n)


def fit_pairs(table: MeasuredTable, *, seed: int = 0, settings: FitSettings | None = None) -> Fit:
    """The mixture behind figures: triples are kept back, to tell how far the table may be from it."""
    return fit_mixture(table, seed=seed, settings=replace(settings or FitSettings(), triple_steps=0))


def draw_mixture(table: MeasuredTable, *, seed: int, number: int = 0, settings: FitSettings | None = None) -> Fit:
    """One approximate draw from the posterior, the `number`-th of a seed: randomise, then optimise.

    What is drawn are the shares of the confidential table: the misfit knows the noise and no sampling from a population.
    """
    chosen = settings or FitSettings()
    rng = np.random.default_rng([seed, 2, number])
    noisy = table.counts + rng.standard_normal(len(table.counts)) * np.repeat(table.mechanism.deviations, table.layout.cells)
    shifted = replace(table, counts=noisy)
    eta, xi = _normals(table, chosen, rng)
    return _optimised(shifted, Objective.of(shifted), chosen, start=(eta, xi), centre=(eta, xi), base=table)


def _above_noise(table: MeasuredTable) -> float:
    """N over the deviation of a pair's noise, or of what there is."""
    pairs = [deviation for places, deviation in table.deviations.items() if len(places) == 2] or list(table.deviations.values())
    return float(table.n / np.median(pairs))


def _normals(table: MeasuredTable, settings: FitSettings, rng: np.random.Generator) -> tuple[Single, Single]:
    """Draws of eta and xi by the prior."""
    classes = settings.classes_for(table)
    return rng.standard_normal(classes, np.float32), rng.standard_normal((classes, table.starts[-1]), np.float32)


def _optimised(table: MeasuredTable, objective: Objective, settings: FitSettings, **given: Any) -> Fit:
    """Parts of large triples side by side in threads, each with a matrix product of one thread; small ones are not worth it."""
    with one_thread():
        if sum(each.shares.size for each in objective.triples) < WORTH_THREADS or usable_cores() == 1:
            return _descended(table, objective, settings, **given)
        with ThreadPoolExecutor(min(PARTS, usable_cores())) as pool:
            return _descended(table, objective, settings, side=pool.map, **given)


def _descended(
    table: MeasuredTable,
    objective: Objective,
    settings: FitSettings,
    *,
    start: tuple[Single, Single],
    centre: tuple[Single, Single] | None,
    base: MeasuredTable | None = None,
    progress: Progress = lambda done, total, misfit: None,
    side: Side = map,
) -> Fit:
    """Adam in two phases from `start`, the prior standing around `centre`."""
    starts = np.array(table.starts[:-1])
    spread = settings.spread_for(base or table)
    log_base = np.log(base_shares(base or table, floor=settings.floor)).astype(np.float32)
    eta, xi = (each.copy() for each in start)
    middle = centre or (np.zeros_like(eta), np.zeros_like(xi))
    measured = len(table.counts)
    low_order = sum(int(cells) for cells, places in zip(table.layout.cells, table.layout.sets, strict=True) if len(places) < 3)
    total = settings.pair_steps + (settings.triple_steps if objective.triples else 0)
    moments = [np.zeros_like(each) for each in (eta, xi, eta, xi)]
    weights, cells, misfit = _softmax(eta), _columns(log_base + spread * xi, starts, table.sizes), np.inf
    for step in range(total):
        triples = step >= settings.pair_steps
        misfit, by_weights, by_cells = objective.value(weights, cells, triples=triples, side=side)
        by_eta = weights * (by_weights - np.vdot(weights, by_weights)) + (eta - middle[0])
        pull = cells * by_cells
        held = _spread(np.add.reduceat(pull, starts, axis=1), table.sizes)
        by_xi = np.float32(spread) * (pull - cells * held) + (xi - middle[1])
        place, length = (step - settings.pair_steps, settings.triple_steps) if triples else (step, settings.pair_steps)
        rate = settings.rate * (0.05 + 0.95 * 0.5 * (1.0 + np.cos(np.pi * place / length)))
        _adam(eta, by_eta.astype(np.float32, copy=False), moments[0], moments[2], step=step + 1, rate=rate)
        _adam(xi, by_xi, moments[1], moments[3], step=step + 1, rate=rate)
        weights, cells = _softmax(eta), _columns(log_base + spread * xi, starts, table.sizes)
        progress(step + 1, total, 2.0 * misfit / (measured if triples else low_order or 1))
    misfit, _, _ = objective.value(weights, cells, triples=True, side=side)
    mixture = MixtureOfProducts(table.sizes, _normal(weights), _normal_columns(cells, starts, table.sizes))
    return Fit(mixture, 2.0 * misfit / measured, table.n)


def _adam(parameter: Single, gradient: Single, first: Single, second: Single, *, step: int, rate: float) -> None:
    """One step of Adam in place, with its usual moments."""
    first += 0.1 * (gradient - first)
    second += 0.001 * (gradient**2 - second)
    scale = np.float32(rate / (1.0 - 0.9**step))
    parameter -= scale * first / (np.sqrt(second / np.float32(1.0 - 0.999**step)) + np.float32(1e-8))


def base_shares(table: MeasuredTable, *, floor: float) -> NDArray[np.float64]:
    """Noisy share of every cell of every column, floored; from the smallest marginal that holds a column which is not alone."""
    shares = np.empty(table.starts[-1])
    for j, (start, end) in enumerate(zip(table.starts, table.starts[1:], strict=False)):
        if table.domain is not None and (j,) in table.domain.known_shares:
            own = np.maximum(np.array(table.domain.known_shares[j,]), floor)
            shares[start:end] = own / own.sum()
            continue
        holding = [each for each in table.layout.sets if j in each]
        if not holding:
            shares[start:end] = 1.0 / (end - start)
            continue
        best = min(holding, key=lambda each: table.deviations[each] ** 2 * table.marginals[each].size)
        axes = tuple(i for i, place in enumerate(best) if place != j)
        own = np.maximum(table.marginals[best].sum(axis=axes) / table.n, floor)
        shares[start:end] = own / own.sum()
    return shares


def _softmax(values: Single) -> Single:
    found: Single = np.exp(values - values.max())
    found /= found.sum()
    return found


def _columns(values: Single, starts: NDArray[np.int64], sizes: tuple[int, ...]) -> Single:
    """Softmax within each column."""
    found: Single = np.exp(values - _spread(np.maximum.reduceat(values, starts, axis=1), sizes))
    found /= _spread(np.add.reduceat(found, starts, axis=1), sizes)
    return found


def _spread(per_column: Single, sizes: tuple[int, ...]) -> Single:
    return np.repeat(per_column, sizes, axis=1)


def _normal(weights: Single) -> NDArray[np.float64]:
    exact = weights.astype(np.float64)
    found: NDArray[np.float64] = exact / exact.sum()
    return found


def _normal_columns(cells: Single, starts: NDArray[np.int64], sizes: tuple[int, ...]) -> NDArray[np.float64]:
    exact = cells.astype(np.float64)
    found: NDArray[np.float64] = exact / np.repeat(np.add.reduceat(exact, starts, axis=1), sizes, axis=1)
    return found
