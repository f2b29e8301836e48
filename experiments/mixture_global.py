"""Density of a population from one smoothed histogram of it: appendix C of the mixture paper, and noisy counts beside it.

    python -m experiments.mixture_global [--quick] [--json] [--runs R] [--draws D] [--seed S]

M. Beraha, S. Favaro and V. Rao, MCMC for Bayesian nonparametric mixture modeling under differential privacy (2024). n = 250
records from an equal mixture of Beta(5, 50), Beta(50, 50) and Beta(50, 5); the release is 28 = floor(n^(3/5) + 1) draws from
their histogram with L floor(n^(1/5) + 1) bins, L = 2, 4, 6, smoothed until it is epsilon-differentially private. (The paper
calls the bins m and the draws k.) The smoothing is the least that the exact condition allows; the condition as the paper
prints it has "- 1" where "+ 1" is right. Both parameters of a Beta kernel have base measure Gamma(2, 2) (figure 7) or
Gamma(90, 2) (figure 8), shape and rate, strength 1. Gamma(2, 2) all but excludes the truth's 50, with noise or without
(`mixture_betas`); beside it Gamma(2, 0.5), its 2 read as a scale, and Gamma(2, 0.1), wide: neither is the paper's.

For each setting, averaged over the runs: mean acceptance rate of both samplers beside the bound exp(-epsilon), effective draws
of the number of clusters per 1,000, Hellinger distance of the posterior mean density from the truth, from the prior mean
(0: nothing was learned), its mass within 0.02 of the ends (the truth has 0.003), and the distance between the two samplers.
R-hat is the larger one of the two samplers for the density at 1/2: far above 1 says that chains sit in different modes. The
last two columns are the distance from the truth, and R-hat, for discrete Laplace noise on the counts of the same bins at the
same epsilon: the same guarantee, and all records are used.

Everything is simulated with floating-point twins of the mechanisms and a public seed: nothing here is a private release.
"""

import argparse
import json
import math
from dataclasses import asdict, dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from experiments.mixture_betas import BETAS, truth
from privurn.inference.draws import effective_draws, potential_scale_reduction
from privurn.inference.mixtures import BetaKernel, Keep
from privurn.inference.mixtures.global_samplers import GlobalMixtureModel, fit_global_mixture
from privurn.inference.mixtures.posterior import MixturePosterior
from privurn.inference.run import Run
from privurn.mechanisms.local import GlobalChannel, NoisyStatisticChannel, SmoothedHistogramChannel
from privurn.mechanisms.local.statistics import HistogramStatistic

Floats = NDArray[np.float64]

RECORDS = 250
EPSILONS = (2.0, 10.0, 50.0, 100.0, 250.0)
FACTORS = (2, 4, 6)
BASES = ((2.0, 2.0), (90.0, 2.0), (2.0, 0.5), (2.0, 0.1))
"""Shape and rate."""

PAPER = {
    (2.0, 2.0): "L = 4 satisfactory, L = 2 and 6 poor, mass at the ends",
    (90.0, 2.0): "less mass at the ends than with Gamma(2, 2)",
}
"""What the paper says of its figures 7 and 8."""

END = 0.02
"""Width of an end of [0, 1], where the truth has next to nothing."""

POINTS = 100
GRID: Floats = (np.arange(POINTS) + 0.5) / POINTS


@dataclass(frozen=True, kw_only=True)
class Row:
    """Averages over the runs at one setting; `noisy_counts` is the distance from the truth given those."""

    base: tuple[float, float]
    factor: int
    bins: int
    epsilon: float
    smoothing: float
    bound: float
    acceptance: tuple[float, float]
    effective: tuple[float, float]
    from_truth: tuple[float, float]
    from_prior: float
    at_ends: float
    between: float
    r_hat: float
    noisy_counts: float
    noisy_counts_r_hat: float


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much is run for each setting."""

    runs: int = 1
    warm_up: int = 1000
    draws: int = 1000
    thin: int = 2
    seed: int = 1


def bins_of(factor: int) -> int:
    """Bins for the constant L."""
    return factor * int(RECORDS**0.2 + 1.0)


def released_draws() -> int:
    """Draws that are released."""
    return int(RECORDS**0.6 + 1.0)


def population(rng: np.random.Generator) -> Floats:
    """Confidential records."""
    which = rng.integers(len(BETAS), size=RECORDS)
    a, b = np.array(BETAS).T
    return np.asarray(rng.beta(a[which], b[which]))


def prior_mean(base: tuple[float, float], *, draws: int = 20_000, seed: int = 0) -> Floats:
    """Expected density before anything is released, at the grid: the kernel averaged over the base measure."""
    rng = np.random.default_rng(seed)
    total = np.zeros(POINTS)
    for a, b in rng.gamma(base[0], size=(draws, 2)) / base[1]:
        log_beta = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
        total += np.exp((a - 1.0) * np.log(GRID) + (b - 1.0) * np.log1p(-GRID) - log_beta)
    return total / draws


def hellinger(p: Floats, q: Floats) -> float:
    """Distance between two densities at the grid, each scaled to have mass 1 there."""
    return math.sqrt(max(0.0, 1.0 - float(np.sum(np.sqrt(p / p.sum() * (q / q.sum()))))))


def mass_at_ends(density: Floats) -> float:
    """Of a density at the grid, within END of 0 or of 1."""
    return float(density[(GRID < END) | (GRID > 1.0 - END)].sum() / density.sum())


def fitted(
    channel: GlobalChannel, y: Floats, *, base: tuple[float, float], sampler: str, effort: Effort, seed: int
) -> MixturePosterior:
    """Posterior given one simulated release; the same release for both samplers."""
    output = channel.simulate(y, rng=np.random.default_rng(seed))
    model = GlobalMixtureModel(channel=channel, kernel=BetaKernel(shape=base[0], rate=base[1]))
    return fit_global_mixture(
        output,
        model=model,
        sampler=cast("Any", sampler),
        keep=Keep(atoms=0, density_grid=tuple(GRID.tolist())),
        run=Run(chains=2, warm_up=effort.warm_up, draws=effort.draws, thin=effort.thin, seed=seed),
    )


def mean_density(found: MixturePosterior) -> Floats:
    """Posterior mean at the grid."""
    return np.asarray(found.draws.flat("density").mean(axis=0))


def r_hat(found: MixturePosterior) -> float:
    """Of the density in the middle."""
    return float(potential_scale_reduction(found.draws["density"][:, :, POINTS // 2]))


def row(*, base: tuple[float, float], factor: int, epsilon: float, effort: Effort, prior: Floats) -> Row:
    """All figures at one setting."""
    bins, real = bins_of(factor), truth(GRID)
    smoothed = SmoothedHistogramChannel.calibrate(bounds=(0, 1), bins=bins, n=RECORDS, draws=released_draws(), epsilon=epsilon)
    counts = NoisyStatisticChannel.calibrate(
        statistic=HistogramStatistic(bounds=(0, 1), bins=bins), n=RECORDS, noise="laplace", epsilon=epsilon
    )
    figures = []
    for run in range(effort.runs):
        seed = effort.seed * 1000 + run
        y = population(np.random.default_rng([seed, 1]))
        both = [fitted(smoothed, y, base=base, sampler=name, effort=effort, seed=seed) for name in ("neal5", "slice")]
        other = fitted(counts, y, base=base, sampler="neal5", effort=effort, seed=seed)
        first, second = (mean_density(each) for each in both)
        rates = [float(each.draws.sample_stats["acceptance"].mean()) for each in both]
        effective = [1000.0 * effective_draws(each.n_clusters.astype(float)) / each.n_clusters.size for each in both]
        distances = [hellinger(first, real), hellinger(second, real), hellinger(first, prior), mass_at_ends(first)]
        mixed = [
            hellinger(first, second),
            max(r_hat(each) for each in both),
            hellinger(mean_density(other), real),
            r_hat(other),
        ]
        figures.append([*rates, *effective, *distances, *mixed])
    mean = [float(x) for x in np.mean(figures, axis=0)]
    return Row(
        base=base,
        factor=factor,
        bins=bins,
        epsilon=epsilon,
        smoothing=float(smoothed.weight),
        bound=math.exp(-epsilon),
        acceptance=(mean[0], mean[1]),
        effective=(mean[2], mean[3]),
        from_truth=(mean[4], mean[5]),
        from_prior=mean[6],
        at_ends=mean[7],
        between=mean[8],
        r_hat=mean[9],
        noisy_counts=mean[10],
        noisy_counts_r_hat=mean[11],
    )


def table(*, effort: Effort, quick: bool) -> list[Row]:
    """All settings, or the two ends of epsilon with the wide base measure and L = 4."""
    bases, factors, epsilons = (BASES[-1:], (4,), (2.0, 250.0)) if quick else (BASES, FACTORS, EPSILONS)
    rows = []
    for base in bases:
        prior = prior_mean(base)
        for factor in factors:
            rows += [row(base=base, factor=factor, epsilon=epsilon, effort=effort, prior=prior) for epsilon in epsilons]
    return rows


def main() -> None:
    """Parse the arguments and print."""
    parser = argparse.ArgumentParser(prog="python -m experiments.mixture_global", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the wide base measure, L = 4, epsilon = 2 and 250 only")
    parser.add_argument("--json", action="store_true", help="the table, nothing else")
    parser.add_argument("--runs", type=int, default=Effort.runs, help="simulated releases for each setting")
    parser.add_argument("--draws", type=int, default=Effort.draws, help="kept draws of each of two chains")
    parser.add_argument("--seed", type=int, default=Effort.seed)
    arguments = parser.parse_args()
    effort = Effort(runs=arguments.runs, draws=arguments.draws, seed=arguments.seed)
    rows = table(effort=effort, quick=arguments.quick)
    if arguments.json:
        print(json.dumps([asdict(each) for each in rows], indent=1))
        return
    print(f"n = {RECORDS}, {released_draws()} draws released; {effort.runs} run(s); pairs are Neal 5 / slice.")
    print(
        f"{'base':>12} {'bins':>4} {'epsilon':>7} {'smoothing':>9} {'acceptance':>11} {'bound':>8} {'ESS/1000':>9} "
        f"{'from truth':>11} {'from prior':>10} {'at ends':>7} {'between':>7} {'R-hat':>5} | {'noisy counts':>12} {'R-hat':>5}"
    )
    for each in rows:
        print(
            f"{f'Gamma({each.base[0]:g},{each.base[1]:g})':>12} {each.bins:>4} {each.epsilon:>7g} {each.smoothing:>9.3g} "
            f"{f'{each.acceptance[0]:.3f}/{each.acceptance[1]:.3f}':>11} {each.bound:>8.1e} "
            f"{f'{each.effective[0]:.0f}/{each.effective[1]:.0f}':>9} "
            f"{f'{each.from_truth[0]:.3f}/{each.from_truth[1]:.3f}':>11} {each.from_prior:>10.3f} {each.at_ends:>7.3f} "
            f"{each.between:>7.3f} "
            f"{each.r_hat:>5.2f} | {each.noisy_counts:>12.3f} {each.noisy_counts_r_hat:>5.2f}"
        )
    for line in findings(rows):
        print(line)


def findings(rows: list[Row]) -> list[str]:
    """The paper's words beside ours, where epsilon is at least 50."""
    lines = []
    for base in dict.fromkeys(each.base for each in rows):
        high = [each for each in rows if each.base == base and each.epsilon >= 50]
        means = [
            f"L = {factor}: {np.mean([each.from_truth for each in high if each.factor == factor]):.3f} from the truth, "
            f"{np.mean([each.at_ends for each in high if each.factor == factor]):.3f} at the ends"
            for factor in dict.fromkeys(each.factor for each in high)
        ]
        said = PAPER.get(base, "(not the paper's base)")
        lines.append(f"  Gamma({base[0]:g}, {base[1]:g})  paper: {said}; here: {'; '.join(means)}")
    return lines


if __name__ == "__main__":
    main()
