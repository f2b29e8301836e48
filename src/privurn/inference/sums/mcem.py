"""Monte Carlo expectation-maximisation: the parameters of highest likelihood given noisy sums.

E-step: one sweep of the chain (records, and jumps where n is secret) at the current parameters, from where the last one ended.

M-step, method="gradient": a step uphill. The slope of the likelihood is an expectation over the latent records (Fisher's
identity), here with the *standardised* records held fixed, where it has the spread of the noise's score. With the records
themselves held fixed, as in classical EM, nearly all information is missing, and each step goes only that small a part of the
way. Steps are taken in coordinates where a run of the posterior's chain has unit covariance, first with a falling gain; then
from the average of that path with a small one, since a path that wanders is drawn to where the likelihood is flatter. The
estimate is the average of the second path (Polyak and Ruppert) without its first third, which brings it to its own level.

method="closed form": the maximum of the complete-data likelihood at each sweep's records, averaged over the path: the
algorithm of the literature, kept for comparison. Such a path wanders widely instead of settling, so its average is no
maximum; and a residual variance that has come near 0 keeps the next records' near 0, so paths are caught there.

Under much noise the likelihood often has no maximum inside: noisy moments may fit best with a residual variance of 0. The
slope is therefore measured one posterior deviation away from the estimate, both ways along every coordinate, and `problems`
says where the likelihood does not fall. penalty="prior" finds the posterior mode (of the coordinates without bounds) instead.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from privurn.errors import InferenceWarning, ModelError
from privurn.inference.cautions import no_maximum, say
from privurn.inference.draws import Draws, Summary, effective_draws
from privurn.inference.run import Arrays, Progress, Schedule, run_chains, run_until_mixed
from privurn.inference.sums.latent_chain import JUMPS, LatentChain, entry
from privurn.inference.sums.model import Model, PythonModel, provide_plain
from privurn.inference.sums.observed import Observed

Floats = NDArray[np.float64]
Method = Literal["gradient", "closed form"]
Penalty = Literal["none", "prior"]

GAIN = 0.1
TIMES = 10.0
"""How often a path could go the whole way after warming: its gain is this over the sweeps."""

WARM_UP, PILOT, LONGEST_PILOT = 1000, 500, 16_000
"""Sweeps and draws of each of the posterior's chains that give starts and scales; they are doubled until the chains have mixed.
"""

FURTHEST = 10.0
"""Posterior deviations from the posterior mean that are searched."""

SMALLEST_LEANING = 30

BATCHES = 2
"""Of each path, for the Monte Carlo error of its average."""

PROBES, ROUNDS = 200, 5
"""Sweeps at each point where the slope is checked, and how often that is repeated while it is not clear."""

LARGEST_ERROR = 0.1
"""Monte Carlo error, in posterior deviations, above which an estimate is not called converged."""

ADVICE = " The estimate is then only how far the path came; penalty='prior' gives a posterior mode."


@dataclass(frozen=True, kw_only=True, eq=False)
class _Scales:
    """Posterior draws in free coordinates, with n: where to start, how far is far."""

    model: Model
    frees: Floats
    sizes: NDArray[np.int64]
    problems: tuple[str, ...]

    @cached_property
    def centre(self) -> Floats:
        return np.asarray(self.frees.mean(axis=0))

    @cached_property
    def covariance(self) -> Floats:
        found = np.atleast_2d(np.cov(self.frees.T))
        return np.asarray(found + np.diag(1e-9 * np.diag(found) + 1e-12))

    @cached_property
    def factor(self) -> Floats:
        return np.asarray(np.linalg.cholesky(self.covariance), np.float64)

    def lean(self, factor: Floats) -> Floats:
        """How log n goes with each column of a factor in the posterior; 0 where n is known, or so small that 1 matters."""
        if self.sizes.min() < SMALLEST_LEANING:
            return np.zeros(factor.shape[1])
        logs = np.log(self.sizes)
        slope = np.linalg.solve(self.covariance, (self.frees - self.centre).T @ (logs - logs.mean()) / len(logs))
        return np.asarray(slope @ factor)

    def parameters(self, free: Floats) -> Floats:
        from privurn._kernels.sums import protocol

        theta = np.empty(self.model.n_parameters)
        protocol.update_from_free(self.model.record, np.ascontiguousarray(free), theta)
        return theta

    def named(self, free: Floats) -> dict[str, Any]:
        """The model's variables at one place."""
        return {name: values[0] for name, values in self.model.variables(self.parameters(free)[None, :]).items()}


def _scales(model: Model, observed: Observed, *, chains: int, seed: int, progress: Progress) -> _Scales:
    from privurn._kernels.sums import protocol

    if isinstance(model, PythonModel):
        provide_plain()
    draws, problems = run_until_mixed(
        LatentChain(model=model, observed=observed),
        schedule=Schedule(chains=chains, warm_up=WARM_UP, draws=PILOT, seed=seed),
        longest=LONGEST_PILOT,
        progress=progress,
    )
    flat = {name: draws.flat(name) for name in draws.variables}
    frees = np.empty((chains * draws.n_draws, model.n_parameters))
    for i, free in enumerate(frees):
        protocol.update_free(model.record, model.flat({name: values[i] for name, values in flat.items()}), free)
    unmixed = [f"the posterior's chains, which give starts and scales, have not mixed: {each}" for each in problems[:1]]
    return _Scales(model=model, frees=frees, sizes=flat["n"], problems=tuple(unmixed))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Climbing(LatentChain):
    """The chain at parameters centre + factor v whose point v goes uphill; it starts from posterior draws, or from `centre`."""

    scales: _Scales
    centre: Floats
    factor: Floats
    gain: float = GAIN
    later_gain: float = 0.0
    weight: float = 0.0
    name: ClassVar[str] = "Monte Carlo EM"

    def start(self, rng: np.random.Generator) -> Arrays:
        """A draw from the posterior, and records that the model gives there."""
        at = rng.integers(len(self.scales.frees))
        point = np.zeros(self.factor.shape[1])
        if self.gain > 0.0:
            point = np.linalg.solve(self.factor, self.scales.frees[at] - self.centre).clip(-FURTHEST, FURTHEST)
        theta = self.scales.parameters(self.centre + self.factor @ point)
        n = int(self.scales.sizes[at])
        records = np.zeros((n + n // 4 + 16, self.model.record.columns))
        records[:n] = self.model.simulate(theta, n=n, rng=rng)
        count = np.array([n], np.int64)
        own = {"theta": theta, "point": point, "average": point.copy()}
        return {**own, "records": records, "count": count, "numbers": np.zeros(3)}

    def advance(
        self, state: Arrays, rng: np.random.Generator, *, sweeps: int, thin: int, warming: bool
    ) -> tuple[Arrays, Arrays]:
        """See `samplers.run.Sampler`."""
        from privurn._kernels.sums.maximisation import update_climbing_chain

        keep = 0 if warming else sweeps // thin
        kept, kept_n, rates = np.empty((keep, self.model.n_parameters)), np.empty(keep, np.int64), np.zeros((keep, 3))
        points, slopes = np.empty((2, keep, self.factor.shape[1]))
        state["records"] = entry(update_climbing_chain, self.model)(
            *(self.model.record, self.noise(), self.observed.size_record(), self._tuning()),
            *(self.centre, np.ascontiguousarray(self.factor), self.scales.lean(self.factor)),
            (self.gain, self.later_gain, self.weight, FURTHEST),
            *(state[name] for name in ("theta", "point", "average", "records", "count", "numbers")),
            *(rng, sweeps, thin, warming, kept, kept_n, rates, points, slopes),
        )
        if warming:
            return {}, {}
        shown = {"acceptance_records": rates[:, 0], "point": points, "slope": slopes}
        return {**self.model.variables(kept), "n": kept_n}, shown


@dataclass(frozen=True, kw_only=True, eq=False)
class _Maximising(_Climbing):
    """The chain at parameters that maximise the complete-data likelihood of its last records; it starts as the other does."""

    def start(self, rng: np.random.Generator) -> Arrays:
        """With room for the sufficient statistic."""
        return {**super().start(rng), "summary": np.zeros(self.model.summary_size)}

    def advance(
        self, state: Arrays, rng: np.random.Generator, *, sweeps: int, thin: int, warming: bool
    ) -> tuple[Arrays, Arrays]:
        """See `samplers.run.Sampler`."""
        from privurn._kernels.sums.maximisation import update_maximising_chain

        kept = np.empty((0 if warming else sweeps // thin, self.model.n_parameters))
        kept_n, rates = np.empty(len(kept), np.int64), np.zeros((len(kept), 3))
        own = [state[name] for name in ("theta", "records", "count", "numbers", "summary")]
        state["records"] = entry(update_maximising_chain, self.model)(
            *(self.model.record, self.noise(), self.observed.size_record(), self._tuning()),
            *own,
            *(rng, sweeps, thin, warming, 1.0, kept, kept_n, rates),
        )
        if warming:
            return {}, {}
        return {**self.model.variables(kept), "n": kept_n}, {"acceptance_records": rates[:, 0]}


@dataclass(frozen=True, kw_only=True, eq=False)
class Maximum:
    """The estimate of each parameter (`estimate`), its Monte Carlo error, and the path (`trace`) it is the average of.

    The average is taken in coordinates without bounds. `n` among them is the average over its law given the estimate, not a
    maximiser: n is latent. Where `problems` is not empty the estimate is not a maximum, and it says why.
    """

    estimate: Mapping[str, Any]
    monte_carlo_error: Mapping[str, Any]
    trace: Draws
    problems: tuple[str, ...]

    def cautions(self) -> tuple[InferenceWarning, ...]:
        """The warnings that were given when it was sought."""
        return no_maximum(self.problems)

    def summary(self) -> tuple[Summary, ...]:
        """One row for each number, the estimate as `mean`; deviation and interval are the path's, no confidence statement."""
        values, errors = (
            np.concatenate([np.ravel(each[name]) for name in self.trace.variables])
            for each in (self.estimate, self.monte_carlo_error)
        )
        rows = zip(self.trace.summary(), values, errors, strict=True)
        return tuple(replace(row, mean=float(value), standard_error=float(error)) for row, value, error in rows)


def maximise(
    model: Model,
    *,
    observed: Observed,
    iterations: int | None = None,
    chains: int = 4,
    seed: int | None = None,
    progress: Progress = lambda done, total, figures: None,
    penalty: Penalty = "none",
    method: Method = "gradient",
) -> Maximum:
    """Maximum likelihood by Monte Carlo EM from several starts; `problems` says where it has not converged or does not exist.

    The Monte Carlo error falls with the square root of `iterations`, sweeps of each chain (4000 where n is public, 20,000 where
    it is secret and has to be averaged over; more where `problems` says so). Of problems a `NoMaximum` warns. penalty="prior"
    adds the log prior of the coordinates without bounds (logarithms of deviations, logits of probabilities): a posterior mode,
    which exists.
    """
    if iterations is None:
        iterations = 20_000 if observed.secret_size else 4000
    if iterations < 100:
        raise ModelError("Monte Carlo EM needs at least 100 iterations.", hint="iterations=4000")
    if chains < 2:
        raise ModelError("the Monte Carlo error is judged by comparing at least two chains.", hint="chains=4")
    if method not in ("gradient", "closed form") or penalty not in ("none", "prior"):
        raise ModelError(
            "the method or the penalty is not known.", hint="method 'gradient' or 'closed form'; penalty 'none' or 'prior'"
        )
    if method == "closed form" and (model.summary_size < 1 or penalty == "prior"):
        raise ModelError(f"the model {model.name} has no maximisation step in closed form for this.", hint="method='gradient'")
    if model.standard_width < 1:
        raise ModelError(
            f"the model {model.name} has no standardised records.", hint="Monte Carlo EM needs standardise and restore"
        )
    seeds = [int(each) for each in np.random.SeedSequence(seed).generate_state(2)]
    before = WARM_UP + PILOT
    whole = before + iterations
    scales = _scales(
        model, observed, chains=chains, seed=seeds[0], progress=lambda done, _, figures: progress(done, whole, figures)
    )
    common: dict[str, Any] = {
        "model": model,
        "observed": observed,
        "moves": "centred",
        "jumps": JUMPS,
        "block": 0,
        "scales": scales,
        "centre": scales.centre,
        "factor": scales.factor,
    }
    warm_up, thin = iterations // 4, max(1, iterations // 4000)
    kind = _Climbing if method == "gradient" else _Maximising
    climbing = kind(**common, weight=float(penalty == "prior"), later_gain=TIMES / (iterations - warm_up))
    draws, forgotten = iterations // 2 // thin, warm_up // thin
    trace = run_chains(
        climbing,
        schedule=Schedule(chains=chains, warm_up=warm_up, forgotten=forgotten, draws=draws, thin=thin, seed=seeds[1]),
        progress=lambda done, _, figures: progress(before + done, whole, figures),
        dims=model.dims,
        coords=model.coords,
    )
    estimate: dict[str, Any] = {name: values.mean(axis=(0, 1)) for name, values in trace.variables.items()}
    error = {name: _error(values) for name, values in trace.variables.items()}
    if method == "closed form":
        problems = (*scales.problems, *trace.problems())
        return say(Maximum(estimate=estimate, monte_carlo_error=error, trace=trace, problems=problems))
    free = scales.centre + scales.factor @ trace.sample_stats["point"].mean(axis=(0, 1))
    estimate |= scales.named(free)
    rng = np.random.default_rng(seeds[1])
    problems = (*scales.problems, *_unsettled(scales, trace), *_rising(climbing, free, rng))
    return say(Maximum(estimate=estimate, monte_carlo_error=error, trace=trace, problems=problems))


def _error(paths: NDArray[Any]) -> Any:
    """Standard error of the average of paths (chain, draw, ...), from the means of their halves.

    A path with a small gain remembers over a good part of its length, longer than an autocorrelation that is summed up to a cut
    can tell; halves of several paths are long enough, and see chains that differ.
    """
    length = paths.shape[1] // BATCHES
    tail = paths[:, paths.shape[1] - BATCHES * length :].astype(np.float64)
    means = tail.reshape(len(paths) * BATCHES, length, *paths.shape[2:]).mean(axis=1)
    return means.std(axis=0, ddof=1) / np.sqrt(len(means))


def _unsettled(scales: _Scales, trace: Draws) -> list[str]:
    """Coordinates whose average is not known well, or still moves between the halves of the path, in posterior deviations."""
    paths = trace.sample_stats["point"] @ scales.factor.T / np.sqrt(np.diag(scales.covariance))
    half = paths.shape[1] // 2
    found = []
    for j in range(paths.shape[2]):
        path = paths[:, :, j]
        error = float(_error(path))
        drift = abs(path[:, half:].mean() - path[:, :half].mean())
        if not (error <= LARGEST_ERROR and drift <= max(4.0 * error, LARGEST_ERROR)):
            found.append(
                f"{_label(scales, scales.centre, j)} has not converged: Monte Carlo error {error:.2f} and drift {drift:.2f} in "
                "posterior deviations; more iterations may help."
            )
    return found


def _rising(climbing: _Climbing, free: Floats, rng: np.random.Generator) -> list[str]:
    """Where the likelihood does not fall one posterior deviation away along a coordinate.

    Two ways of going there: the other coordinates stay (residual variance to 0), or follow as they do in the posterior (all
    parameters of a Dirichlet law to infinity).
    """
    scales, found = climbing.scales, []
    what = "the penalised likelihood" if climbing.weight else "the likelihood"
    for j, deviation in enumerate(np.sqrt(np.diag(scales.covariance))):
        alone = deviation * np.eye(len(free))[j]
        together = scales.covariance[:, j] / deviation
        for direction in (alone, -alone, together, -together):
            slope, error = _slope(replace(climbing, centre=free + direction, factor=direction[:, None], gain=0.0), rng)
            if not slope < -2.0 * error:
                label = _label(scales, free, j)
                here, there = (_value(scales.named(place), label) for place in (free, free + direction))
                found.append(
                    f"{what} does NOT fall from {label} = {here:.3g} to {there:.3g} (slope {slope:.2f} +- {error:.2f}; near a "
                    f"maximum about -1): it may have no maximum inside.{'' if climbing.weight else ADVICE}"
                )
    return found


def _slope(probe: _Climbing, rng: np.random.Generator) -> tuple[float, float]:
    """Slope along the one direction of a chain that stays where it is, measured until its sign is clear; and its error."""
    state = probe.start(rng)
    probe.advance(state, rng, sweeps=PROBES // 4, thin=1, warming=True)
    values, slope, error = np.empty(0), 0.0, np.inf
    for _ in range(ROUNDS):
        fresh = probe.advance(state, rng, sweeps=PROBES, thin=1, warming=False)[1]["slope"][:, 0]
        values = np.concatenate([values, fresh])
        slope, error = float(values.mean()), float(values.std() / np.sqrt(effective_draws(values[None, :])))
        if abs(slope) > 4.0 * error:
            break
    return slope, error


def _label(scales: _Scales, free: Floats, j: int) -> str:
    """The number among the variables that coordinate j alone changes most, relative to its size."""
    moved = free.copy()
    moved[j] += 0.01 * np.sqrt(scales.covariance[j, j])
    before, after = scales.named(free), scales.named(moved)
    change = {name: np.abs(np.subtract(after[name], value)) / (np.abs(value) + 1e-3) for name, value in before.items()}
    name = max(change, key=lambda each: float(np.max(change[each])))
    place = np.unravel_index(int(np.argmax(change[name])), np.shape(change[name]))
    return name + (f"[{', '.join(str(int(k)) for k in place)}]" if place else "")


def _value(named: Mapping[str, Any], label: str) -> float:
    name, _, rest = label.partition("[")
    return float(np.asarray(named[name])[tuple(int(k) for k in rest.rstrip("]").split(", ")) if rest else ()])
