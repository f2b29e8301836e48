"""The posterior from many records: their sums have nearly their Gaussian limit, so no record needs to be drawn.

Approximate: given parameters, the sums T of n records are taken as N(n m, n C), with the mean m and covariance C of one
record's clamped statistic (`clamped_moments`). The noise is exact. Laplace noise of scale b is normal noise of variance
w ~ Exponential(mean 2 b^2), so T is integrated out: released | parameters, w ~ N(n m, n C + diag w).

A sweep     w given T and what was released (inverse Gaussian), T drawn for that alone; then steps of the free coordinates,
            and of log(n + r), r uniform, where n is secret: random walks, and leaps to a t law around what the warm-up saw
"""

import hashlib
import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privurn.errors import ModelError
from privurn.inference.run import Arrays
from privurn.inference.sums.latent_chain import CANDIDATES, LatentChain
from privurn.inference.sums.model import Model
from privurn.inference.sums.observed import Observed

Floats = NDArray[np.float64]

LIMIT_FROM = 10_000
"""Records from which the limit is the usual choice, for models that have it."""

STEPS, LEAP_DEGREES, WALK_ACCEPTANCE = 6, 5.0, 0.25
REMEMBERED = 40.0
"""Sweeps of the warm-up that the first guess of location and covariance counts for."""

REFRESH = 20
PRIOR_DRAWS = 256


class _Place(NamedTuple):
    """Parameters, n, the log density of both before anything was released, and the law of the sums there."""

    free: Floats
    theta: Floats
    n: int
    level: float
    mean: Floats
    covariance: Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class LimitChain:
    """A sampler of parameters and n given noisy sums of many records; see the module."""

    model: Model
    observed: Observed
    name: ClassVar[str] = "Gaussian limit of the sums (approximate)"

    def __post_init__(self) -> None:
        if not has_limit(self.model):
            raise ModelError(
                f"the model {self.model.name} has no Gaussian limit.",
                hint="moves='interwoven'; the limit is for regression, logistic regression and a normal mean",
            )
        _ = self._plain  # sums that do not belong to the model are refused there

    @property
    def _plain(self) -> LatentChain:
        return LatentChain(model=self.model, observed=self.observed)

    @property
    def monitored(self) -> tuple[str, ...]:
        """The number of records, where it is not known."""
        return self._plain.monitored

    def fingerprint(self) -> str:
        """Hash of model and released numbers."""
        return hashlib.sha256(f"limit {STEPS} {self._plain.fingerprint()}".encode()).hexdigest()

    def place(self, free: Floats) -> _Place | None:
        """What is needed of a point; None where the prior has none."""
        from privurn._kernels.sums.noise import log_size
        from privurn._kernels.sums.protocol import log_prior, update_from_free

        theta = np.empty(self.model.n_parameters)
        with np.errstate(over="ignore"):
            try:
                update_from_free(self.model.record, free[: len(theta)], theta)
                level = log_prior(self.model.record, theta)
            except (OverflowError, ZeroDivisionError, ValueError):
                return None
        n = self.observed.n
        if n is None:
            if not free[-1] < 60.0:
                return None
            n = math.floor(math.exp(free[-1]))
            level += log_size(self.observed.size_record(), n) + free[-1] if n >= 1 else -math.inf
        if not (math.isfinite(level) and np.all(np.isfinite(theta))):
            return None
        mean, covariance = self.model.sum_law(theta)  # type: ignore[attr-defined]
        return _Place(free, theta, n, level, n * mean, n * covariance)

    def log_density(self, at: _Place | None, variances: Floats) -> float:
        """Log density of a point and of what was released, noise of these variances, up to a constant."""
        if at is None:
            return -math.inf
        try:
            factor = np.linalg.cholesky(at.covariance + np.diag(variances))
        except np.linalg.LinAlgError:
            return -math.inf
        away = np.linalg.solve(factor, self.observed.values - at.mean)
        found = at.level - 0.5 * float(away @ away) - float(np.sum(np.log(np.diag(factor))))
        return found if math.isfinite(found) else -math.inf

    def start(self, rng: np.random.Generator) -> Arrays:
        """Near the point where prior and released sums are best met, searched from the best of a few draws of the prior."""
        from scipy.optimize import least_squares

        from privurn._kernels.sums.protocol import update_free

        drawn = np.empty((PRIOR_DRAWS, self.model.n_parameters + 1))
        for each in drawn:
            update_free(self.model.record, self.model.start(rng), each)
        drawn = drawn[:, : -1 if self.observed.n is not None else None]
        if self.observed.n is None:
            drawn[:, -1] = np.log([self.observed.start_size(rng) + 0.5 for _ in drawn])
        centre = np.median(drawn, axis=0)
        width = np.maximum(np.subtract(*np.quantile(drawn, (0.84, 0.16), axis=0)) / 2.0, 1e-6)
        variances = self._first_variances()
        best = max(drawn[:CANDIDATES], key=lambda free: self.log_density(self.place(free), variances))
        spread = np.diag(width**2)
        for _ in range(2):
            here = self.place(best)
            if here is None:
                break
            factor = np.linalg.cholesky(here.covariance + np.diag(variances))

            def missed(units: Floats, factor: Any = factor) -> Floats:
                at = self.place(centre + width * units)
                if at is None:
                    return np.full(len(factor) + len(units), 1e6)
                return np.append(np.linalg.solve(factor, self.observed.values - at.mean), units)

            found = least_squares(missed, (best - centre) / width, method="lm", max_nfev=100 * len(centre))
            best = centre + width * found.x
            spread = np.linalg.inv(found.jac.T @ found.jac) * np.outer(width, width)
        factor = np.linalg.cholesky(spread)
        free = best
        for reach in (2.0, 1.0, 0.5, 0.25):  # apart from the other chains, as far as there is any density
            free = best + reach * factor @ rng.standard_normal(len(best))
            if math.isfinite(self.log_density(self.place(free), variances)):
                break
        return {
            "free": free,
            "variances": variances,
            "numbers": np.array([np.log(2.4 / np.sqrt(len(best))), 0.0]),
            "mean": best.copy(),
            "covariance": spread,
            "factor": factor,
        }

    def _first_variances(self) -> Floats:
        return np.asarray((2.0 if self.observed.kind == "laplace" else 1.0) * self.observed.scales**2)

    def advance(
        self, state: Arrays, rng: np.random.Generator, *, sweeps: int, thin: int, warming: bool
    ) -> tuple[Arrays, Arrays]:
        """See `samplers.run.Sampler`."""
        size = 0 if warming else sweeps // thin
        thetas, numbers = np.empty((size, self.model.n_parameters)), np.empty(size, np.int64)
        rates = np.empty((size, 2))
        here = self.place(state["free"])
        if here is None:
            raise ModelError("the chain has no place to start from.", hint="Give a prior that allows what was released")
        for sweep in range(sweeps):
            if self.observed.kind == "laplace":
                state["variances"] = self._drawn_variances(here, state["variances"], rng)
            here, walks, leaps = self._stepped(here, state, rng)
            if warming:
                _adapt(state, here.free, walks)
            elif (sweep + 1) % thin == 0:
                at = sweep // thin
                thetas[at], numbers[at], rates[at] = here.theta, here.n, (walks, leaps)
        state["free"] = here.free
        if warming:
            return {}, {}
        shown = {"acceptance_walks": rates[:, 0], "acceptance_leaps": rates[:, 1]}
        return {**self.model.variables(thetas), "n": numbers}, shown

    def _drawn_variances(self, here: _Place, variances: Floats, rng: np.random.Generator) -> Floats:
        """Given the sums, which are drawn first given all else: one draw without noise, corrected by what was released."""
        size, scales = len(variances), self.observed.scales
        joint = here.covariance + np.diag(variances)
        free_of_noise = here.mean + _root(here.covariance) @ rng.standard_normal(size)
        missed = self.observed.values - free_of_noise - np.sqrt(variances) * rng.standard_normal(size)
        sums = free_of_noise + here.covariance @ np.linalg.solve(joint, missed)
        noise = np.maximum(np.abs(self.observed.values - sums), 1e-9 * scales)
        return np.asarray(1.0 / np.maximum(rng.wald(1.0 / (scales * noise), scales**-2.0), 1e-18 * scales**-2.0))

    def _stepped(self, here: _Place, state: Arrays, rng: np.random.Generator) -> tuple[_Place, float, float]:
        """Walks and leaps in turn; the place reached, and the shares that were accepted."""
        variances, factor, mean = state["variances"], state["factor"], state["mean"]
        size, moved = len(mean), [0, 0]
        level = self.log_density(here, variances)
        for step in range(STEPS):
            leap = step % 2
            normal = rng.standard_normal(size)
            if leap:
                stretch = math.sqrt(LEAP_DEGREES / rng.chisquare(LEAP_DEGREES))
                free = mean + stretch * (factor @ normal)
                weight = _log_t(factor, here.free - mean) - _log_t(factor, free - mean)
            else:
                free, weight = here.free + math.exp(state["numbers"][0]) * (factor @ normal), 0.0
            other = self.place(free)
            proposed = self.log_density(other, variances)
            if other is not None and math.log1p(-rng.random()) < proposed - level + weight:
                here, level = other, proposed
                moved[leap] += 1
        return here, moved[0] / ((STEPS + 1) // 2), moved[1] / (STEPS // 2)


def has_limit(model: Any) -> bool:
    """Whether a model says what mean and covariance a record's statistic has."""
    return hasattr(model, "sum_law")


def chosen_moves(model: Any, observed: Observed) -> Literal["limit", "interwoven", "centred"]:
    """The usual moves: the limit from LIMIT_FROM records on where the model has it, and every record below that."""
    if model.standard_width < 1:  # nothing to interweave
        return "centred"
    guess = observed.n or observed.noisy_n or observed.size_prior.mean or observed.size_prior.lower
    return "limit" if has_limit(model) and guess >= LIMIT_FROM else "interwoven"


def _root(covariance: Floats) -> Floats:
    """A square root, also of a covariance without full rank."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def _log_t(factor: Floats, away: Floats) -> float:
    """Log density of a t law with this factor, up to a constant."""
    steps = np.linalg.solve(factor, away)
    return -0.5 * (LEAP_DEGREES + len(away)) * math.log1p(float(steps @ steps) / LEAP_DEGREES)


def _adapt(state: Arrays, free: Floats, walks: float) -> None:
    """Length of walks, location and covariance, each by less and less."""
    state["numbers"][1] += 1.0
    swept = state["numbers"][1]
    state["numbers"][0] += (walks - WALK_ACCEPTANCE) / swept**0.6
    gain = 1.0 / (REMEMBERED + swept) ** 0.9 if swept > REMEMBERED else 1.0 / (2.0 * REMEMBERED)
    away = free - state["mean"]
    state["mean"] = state["mean"] + gain * away
    state["covariance"] = state["covariance"] + gain * (np.outer(away, away) - state["covariance"])
    if swept % REFRESH == 0:
        ridge = np.diag(1e-9 * np.diag(state["covariance"]))
        state["factor"] = np.linalg.cholesky(state["covariance"] + ridge)
