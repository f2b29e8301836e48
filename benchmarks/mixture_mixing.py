"""How many effective draws of what people ask does a mixture give for its time?

Three-component data of the mixture paper's section 4.1 behind Laplace noise, Gaussian kernel, Dirichlet process of strength 1,
n = 5,000: effective draws (bulk, of all chains together) of mean, median and the density at five points, the least of them, for
every sampler, with moves that sum clusters and values out (`regrouped`) and without them. Four chains one after the other share
the seconds of processor time; a quarter of them is warm-up. The last columns are effective draws in 60 s, warm-up counted, and
how many times those of plain Neal 5.

    python -m benchmarks.mixture_mixing [--size 5000] [--epsilons 2 10] [--seconds 60] [--only NAME ...] [--seed 1]

Limits at 60 s: auto at least 1,000 and 8 times plain Neal 5, every regrouped sampler at least 100.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.mixtures import BOUNDS, three_components
from privurn.inference.draws import effective_draws, potential_scale_reduction
from privurn.inference.mixtures import Keep, Neal5, Neal8, SliceSampler
from privurn.inference.mixtures.prior import measure_densities
from privurn.inference.mixtures.samplers import REGROUP, MixtureSampler

PLAIN: dict[str, Callable[..., MixtureSampler]] = {
    "neal5": Neal5,
    "slice": SliceSampler,
    "slice, marginal": lambda **given: SliceSampler(**given, marginal=True),
    "neal8": Neal8,
}
SAMPLERS = PLAIN | {f"{name}, regrouped": partial(make, regroup=REGROUP) for name, make in PLAIN.items()}
CHAINS, KEPT = 4, 500
"""Chains, and about so many draws of each that are kept."""

POINTS = (-5.0, -2.5, 0.0, 2.5, 5.0)
GRID = BOUNDS[0] + (BOUNDS[1] - BOUNDS[0]) * (np.arange(256) + 0.5) / 256


def figures(kernel: Any, weights: Any, atoms: Any) -> dict[str, Any]:
    """Mean, median and density of every drawn measure, within the bounds as summaries have them."""
    mass = measure_densities(kernel, weights, atoms, GRID)
    mass /= mass.sum(axis=1, keepdims=True)
    below = np.cumsum(mass, axis=1)
    found = {
        "mean": mass @ GRID,
        "median": np.array([np.interp(0.5, each, GRID + 0.5 * (GRID[1] - GRID[0])) for each in below]),
    }
    heights = measure_densities(kernel, weights, atoms, np.array(POINTS))
    return found | {f"density({x:g})": heights[:, i] for i, x in enumerate(POINTS)}


def chain(sampler: MixtureSampler, *, seed: int, seconds: float) -> tuple[dict[str, Any], int]:
    """Figures of one chain, and its sweeps, in so many seconds of processor time; a quarter is warm-up."""
    rng = np.random.default_rng(seed)
    state = sampler.start(rng)
    sampler.advance(state, rng, sweeps=1, thin=1, warming=True)  # compiles
    kept, _ = sampler.advance(state, rng, sweeps=1, thin=1, warming=False)
    figures(sampler.model.kernel, kept["weights"], kept["atoms"])
    start, warmed = time.thread_time(), 0
    while (spent := time.thread_time() - start) < 0.25 * seconds:
        sampler.advance(state, rng, sweeps=1, thin=1, warming=True)
        warmed += 1
    thin = max(1, round(3 * warmed / KEPT))
    found, sweeps = [], warmed
    while (spent := time.thread_time() - start) < seconds:
        kept, _ = sampler.advance(state, rng, sweeps=thin, thin=thin, warming=False)
        found.append(figures(sampler.model.kernel, kept["weights"], kept["atoms"]) | {"n_clusters": kept["n_clusters"]})
        sweeps += thin
    return {name: np.concatenate([each[name] for each in found]).astype(float) for name in found[0]}, round(sweeps / spent)


def effective(
    make: Callable[..., MixtureSampler], n: int, epsilon: float, *, seed: int, seconds: float
) -> tuple[Any, Any, int]:
    """Effective draws and R-hat of every figure, and sweeps a second."""
    model, z = three_components(n, epsilon, seed=seed)
    sampler = make(model=model, released=z, keep=Keep())
    runs = [chain(sampler, seed=seed + 1 + each, seconds=seconds / CHAINS) for each in range(CHAINS)]
    length = min(len(found["mean"]) for found, _ in runs)
    together = {name: np.stack([found[name][-length:] for found, _ in runs]) for name in runs[0][0]}
    draws = {name: effective_draws(each) for name, each in together.items()}
    return draws, {name: potential_scale_reduction(each) for name, each in together.items()}, runs[0][1]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mixture_mixing", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--size", type=int, default=5000)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[2.0, 10.0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--only", nargs="+", choices=list(SAMPLERS), default=list(SAMPLERS))
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    print(f"n = {asked.size:,}, {asked.seconds:g} s; effective draws (R-hat)")
    for epsilon in asked.epsilons:
        for name in asked.only:
            draws, scales, speed = effective(SAMPLERS[name], asked.size, epsilon, seed=asked.seed, seconds=asked.seconds)
            cells = "  ".join(f"{each} {draws[each]:.0f} ({scales[each]:.2f})" for each in draws)
            least = min(each for figure, each in draws.items() if figure != "n_clusters") * 60.0 / asked.seconds
            print(f"epsilon {epsilon:g}  {name:20} {speed:6,} sweeps/s  {cells}  least in 60 s: {least:,.0f}", flush=True)


if __name__ == "__main__":
    main()
