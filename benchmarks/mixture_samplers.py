"""Which sampler gives most for its time, and does sampler="auto" take it?

Three-component data of the mixture paper's section 4.1 behind Laplace noise, Gaussian kernel, Dirichlet process of strength 1:
effective draws of the number of clusters for each second of the thread's processor time, for every sampler that the pair has
(Neal 2, Neal 3 and split-merge need a pair that stays conjugate). Every seed has data and a chain of its own; medians over the
seeds. The last columns are what auto takes, and how many times as much the best one gives (limit: 2). A second number in
brackets is the least over the seeds: far below the median says that chains were too short to be sure.

    python -m benchmarks.mixture_samplers [--sizes 200 1000 10000] [--epsilons 2 10 50] [--seeds 3] [--seed 100] [--seconds 1]

`seconds` are those of n = 1,000 for one chain, after half as many of warm-up; n = 200 has half of that, n = 10,000 four times.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np

from benchmarks.mixtures import three_components
from privurn.inference.draws import effective_draws
from privurn.inference.mixtures import Keep, Neal5, SliceSampler
from privurn.inference.mixtures.marginal_samplers import Neal8
from privurn.inference.mixtures.posterior import choose_sampler
from privurn.inference.mixtures.samplers import MixtureSampler

SAMPLERS: dict[str, Callable[..., MixtureSampler]] = {
    "neal5": Neal5,
    "neal5, 5 values": lambda **given: Neal5(**given, values=5),
    "slice": SliceSampler,
    "slice, marginal": lambda **given: SliceSampler(**given, marginal=True),
    "neal8": Neal8,
}
SECONDS = {200: 0.5, 1000: 1.0, 10_000: 4.0}
PIECE = 0.02
"""Seconds of one compiled call, about."""


def effective_rate(sampler: MixtureSampler, *, seed: int, seconds: float) -> float:
    """Effective draws of the number of clusters for each second, after half as long a warm-up."""
    rng = np.random.default_rng(seed)
    state = sampler.start(rng)
    sampler.advance(state, rng, sweeps=2, thin=1, warming=True)  # compiles
    start = time.thread_time()
    sampler.advance(state, rng, sweeps=2, thin=1, warming=True)
    sweeps = max(1, int(PIECE / (0.5 * (time.thread_time() - start) + 1e-6)))
    kept, warmed, spent = [], 0.0, 0.0
    while spent < seconds:
        warming = warmed < 0.5 * seconds
        start = time.thread_time()
        draws, _ = sampler.advance(state, rng, sweeps=sweeps, thin=1, warming=warming)
        took = time.thread_time() - start
        if warming:
            warmed += took
        else:
            spent += took
            kept.append(draws["n_clusters"])
    values = np.concatenate(kept).astype(np.float64)
    if np.ptp(values) == 0.0:  # it never moved: no evidence of any effective draw but one
        return 1.0 / spent
    return effective_draws(values[None]) / spent


def cell(n: int, epsilon: float, *, seeds: range, seconds: float) -> float:
    """Print one line; how many times as much as auto's choice the best gives."""
    given = {seed: three_components(n, epsilon, seed=seed) for seed in seeds}
    found = {}
    for name, make in SAMPLERS.items():
        rates = [
            effective_rate(make(model=model, released=z, keep=Keep(atoms=0)), seed=seed + 1, seconds=seconds)
            for seed, (model, z) in given.items()
        ]
        found[name] = statistics.median(rates), min(rates)
    model, z = given[seeds[0]]
    auto, _ = choose_sampler(model, z, keep=Keep(atoms=0))
    chosen = "slice, marginal" if getattr(auto, "marginal", False) else auto.name
    factor = max(median for median, _ in found.values()) / found[chosen][0]
    figures = " ".join(f"{f'{median:.1f} ({least:.1f})':>18}" for median, least in found.values())
    print(f"{n:6} {epsilon:7.0f} {figures}  {chosen:15} {factor:5.2f}", flush=True)
    return factor


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mixture_samplers", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", choices=list(SECONDS), default=list(SECONDS))
    parser.add_argument("--epsilons", type=float, nargs="+", default=[2.0, 10.0, 50.0])
    parser.add_argument("--seeds", type=int, default=3, help="data sets, each with a chain of its own")
    parser.add_argument("--seed", type=int, default=100, help="the first of them")
    parser.add_argument("--seconds", type=float, default=1.0)
    asked = parser.parse_args()
    print(f"{'n':>6} {'epsilon':>7} " + " ".join(f"{name:>18}" for name in SAMPLERS) + f"  {'auto':15} times")
    seeds = range(asked.seed, asked.seed + 2 * asked.seeds, 2)
    worst = max(
        cell(n, epsilon, seeds=seeds, seconds=asked.seconds * SECONDS[n]) for n in asked.sizes for epsilon in asked.epsilons
    )
    print(f"largest factor: {worst:.2f} (limit 2)")


if __name__ == "__main__":
    main()
