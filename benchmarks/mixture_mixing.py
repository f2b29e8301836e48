"""How many effective draws of what people ask does a mixture give for its time?

Three-component data of the mixture paper's section 4.1, Dirichlet process, n = 5,000: effective draws (bulk, of all chains
together) of mean, median and the density at five points, and the least of them, for every sampler, with moves that sum clusters
and values out (`regrouped`) and without them (`plain`). Gaussian kernel and Laplace noise, or Gaussian noise with delta = 1e-6
where that is said; Neal 2 and Neal 3 need a conjugate pair, Gaussian noise and `total-gaussian`; samplers of one output for all
records have noisy counts of 40 bins; Beta kernels have the same values moved to [0, 1], and regrouped moves where nothing else
is said. Four chains one after the other share the seconds of processor time of one thread, compiling left out; a quarter is
warm-up.

    python -m benchmarks.mixture_mixing [--size 5000] [--epsilons 2 10] [--strength 1] [--seconds 60] [--only NAME ...]
                                        [--seed 1] [--keep F]

Each row shows the least effective draws in 60 s, warm-up counted, the limit (1,000 of regrouped Neal 5, which is what
`fit_mixture` takes by itself, and 8 times plain Neal 5 where that was run before; 100 of every other sampler as it runs by
default), and whether it is met; the last line says which are not. With `--keep` rows are written to a file, and those that it
has are not run again.
"""

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.mixtures import BOUNDS, three_components, three_values
from privurn.inference.draws import effective_draws, potential_scale_reduction
from privurn.inference.mixtures import DirichletProcess, Keep, MixtureModel, Neal5, Neal8, SliceSampler, TotalGaussianKernel
from privurn.inference.mixtures.global_samplers import GlobalMixtureModel, GlobalNeal5, GlobalSlice
from privurn.inference.mixtures.kernels import BetaKernel, GaussianKernel
from privurn.inference.mixtures.marginal_samplers import Neal2, Neal3
from privurn.inference.mixtures.posterior import choose_sampler, with_moves
from privurn.inference.mixtures.prior import measure_densities
from privurn.inference.mixtures.samplers import REGROUP, MixtureSampler
from privurn.mechanisms.local import GaussianChannel, LaplaceChannel, NoisyStatisticChannel
from privurn.mechanisms.local.statistics import HistogramStatistic


def gaussian_noise(n: int, epsilon: float, *, seed: int) -> tuple[MixtureModel, Any]:
    """The same values behind Gaussian noise, clamped as the default model has them."""
    rng = np.random.default_rng(seed)
    channel = GaussianChannel.calibrate(bounds=BOUNDS, epsilon=epsilon, delta=1e-6)
    return MixtureModel(channel=channel, kernel=GaussianKernel()), channel.simulate(three_values(n, rng), rng=rng)


def conjugate(n: int, epsilon: float, *, seed: int) -> tuple[MixtureModel, Any]:
    """The same releases, unclamped, with the kernel that stays conjugate."""
    model, z = gaussian_noise(n, epsilon, seed=seed)
    channel: Any = model.channel
    return MixtureModel(channel=channel, kernel=TotalGaussianKernel(noise=channel.scale), clamped=False), z


def beta_kernel(n: int, epsilon: float, *, seed: int, delta: float = 0.0) -> tuple[MixtureModel, Any]:
    """The same values moved to [0, 1] behind Laplace noise, or Gaussian where delta is positive, with Beta kernels."""
    rng = np.random.default_rng(seed)
    gaussian = delta and GaussianChannel.calibrate(bounds=UNIT, epsilon=epsilon, delta=delta)
    channel = gaussian or LaplaceChannel.calibrate(bounds=UNIT, epsilon=epsilon)
    values = (np.clip(three_values(n, rng), *BOUNDS) - BOUNDS[0]) / (BOUNDS[1] - BOUNDS[0])
    return MixtureModel(channel=channel, kernel=BetaKernel()), channel.simulate(values, rng=rng)


def one_output(n: int, epsilon: float, *, seed: int) -> tuple[GlobalMixtureModel, Any]:
    """Noisy counts of the same values."""
    rng, histogram = np.random.default_rng(seed), HistogramStatistic(bounds=BOUNDS, bins=40)
    channel = NoisyStatisticChannel.calibrate(statistic=histogram, n=n, noise="laplace", epsilon=epsilon)
    return GlobalMixtureModel(channel=channel, kernel=GaussianKernel()), channel.simulate(three_values(n, rng), rng=rng)


behind_gaussian = partial(beta_kernel, delta=1e-6)


RECORDS: dict[str, tuple[Callable[..., Any], Callable[..., MixtureSampler]]] = {
    "neal5": (three_components, Neal5),
    "neal5, Gaussian noise": (gaussian_noise, Neal5),
    "slice": (three_components, SliceSampler),
    "slice, marginal": (three_components, partial(SliceSampler, marginal=True)),
    "neal8": (three_components, Neal8),
    "neal2": (conjugate, Neal2),
    "neal3": (conjugate, Neal3),
    "neal5, Beta kernel, Gaussian noise": (behind_gaussian, Neal5),
    "slice, Beta kernel, Gaussian noise": (behind_gaussian, SliceSampler),
    "slice, marginal, Beta kernel, Gaussian noise": (behind_gaussian, partial(SliceSampler, marginal=True)),
    "neal8, Beta kernel, Gaussian noise": (behind_gaussian, Neal8),
}
SAMPLERS = {f"{name}, plain": each for name, each in RECORDS.items()}
SAMPLERS |= {f"{name}, regrouped": (data, partial(make, regroup=REGROUP)) for name, (data, make) in RECORDS.items()}
SAMPLERS["neal5, Beta kernel"] = (beta_kernel, partial(Neal5, regroup=REGROUP))
SAMPLERS["slice, Beta kernel"] = (beta_kernel, partial(SliceSampler, regroup=REGROUP))
SAMPLERS |= {"global neal5": (one_output, GlobalNeal5), "global slice": (one_output, GlobalSlice)}
BEST = {f"{name}, regrouped": f"{name}, plain" for name, (_, make) in RECORDS.items() if make is Neal5}
"""What `fit_mixture` takes by itself, and what it is compared with."""

LIMIT, TIMES, OTHERS = 1000, 8, 100
CHAINS, KEPT = 4, 2500
"""Chains, and about so many draws of each that are kept: all of the slowest sampler, whose draws are worth most."""

POINTS = (-5.0, -2.5, 0.0, 2.5, 5.0)
CELLS = (np.arange(256) + 0.5) / 256
UNIT = (0.0, 1.0)
"""Bounds of Beta kernels, whose points are those of the others moved there."""


def figures(kernel: Any, weights: Any, atoms: Any) -> dict[str, Any]:
    """Mean, median and density of every drawn measure, within the bounds as summaries have them."""
    low, high = UNIT if kernel.name == BetaKernel().name else BOUNDS
    grid, width = low + (high - low) * CELLS, (high - low) / len(CELLS)
    mass = measure_densities(kernel, weights, atoms, grid)
    mass /= mass.sum(axis=1, keepdims=True)
    below = np.cumsum(mass, axis=1)
    found = {
        "mean": mass @ grid,
        "median": np.array([np.interp(0.5, each, grid + 0.5 * width) for each in below]),
    }
    points = low + (high - low) * (np.array(POINTS) - BOUNDS[0]) / (BOUNDS[1] - BOUNDS[0])
    heights = measure_densities(kernel, weights, atoms, points)
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


def row(name: str, n: int, epsilon: float, *, strength: float, seed: int, seconds: float) -> dict[str, Any]:
    """Effective draws and R-hat of every figure, sweeps a second, and the least in 60 s."""
    data, make = SAMPLERS[name]
    model, z = data(n, epsilon, seed=seed)
    model = replace(model, mixing=DirichletProcess(strength=strength))
    sampler = make(model=model, released=z, keep=Keep())
    runs = [chain(sampler, seed=seed + 1 + each, seconds=seconds / CHAINS) for each in range(CHAINS)]
    length = min(len(found["mean"]) for found, _ in runs)
    together = {figure: np.stack([found[figure][-length:] for found, _ in runs]) for figure in runs[0][0]}
    figures = {figure: (effective_draws(each), potential_scale_reduction(each)) for figure, each in together.items()}
    least = min(draws for figure, (draws, _) in figures.items() if figure != "n_clusters") * 60.0 / seconds
    return {"figures": figures, "speed": runs[0][1], "least": least}


def shown(name: str, found: dict[str, Any], plain: dict[str, Any] | None) -> tuple[str, bool]:
    """A row in words, with its limit, and whether it is met."""
    cells = "  ".join(f"{figure} {draws:.0f} ({scale:.2f})" for figure, (draws, scale) in found["figures"].items())
    text, least = f"{name:55} {found['speed']:6,} sweeps/s  {cells}  least in 60 s: {found['least']:,.0f}", found["least"]
    if name.endswith(", plain"):
        return f"{text} (no limit)", True
    limit = LIMIT if name in BEST else OTHERS
    met, words = least >= limit, f"limit {limit:,}"
    if plain is not None:
        times = least / plain["least"]
        met, words = met and times >= TIMES, f"{words}; {times:.1f} times plain, limit {TIMES}"
    return f"{text} ({words}: {'met' if met else 'NOT MET'})", met


def taken(epsilon: float, n: int, *, seed: int) -> str:
    """The row of what `fit_mixture` takes by itself."""
    model, z = three_components(n, epsilon, seed=seed)
    sampler = with_moves(choose_sampler(model, z, keep=Keep())[0], "auto")
    return f"{sampler.name}, {'regrouped' if sampler.regroup else 'plain'}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mixture_mixing", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--size", type=int, default=5000)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[2.0, 10.0])
    parser.add_argument("--strength", type=float, default=1.0)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--only", nargs="+", choices=list(SAMPLERS), default=list(SAMPLERS), metavar="NAME")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path)
    asked = parser.parse_args()
    done = asked.keep.read_text().splitlines() if asked.keep and asked.keep.exists() else []
    kept = {tuple(key): found for key, found in map(json.loads, done)}
    print(f"n = {asked.size:,}, {asked.seconds:g} s of processor time; effective draws (R-hat)")
    missed = []
    for epsilon in asked.epsilons:
        print(f"epsilon {epsilon:g}  fit_mixture takes {taken(epsilon, asked.size, seed=asked.seed)}")
        for name in asked.only:
            key = (name, asked.size, epsilon, asked.strength, asked.seconds, asked.seed)
            if key not in kept:
                kept[key] = row(name, asked.size, epsilon, strength=asked.strength, seed=asked.seed, seconds=asked.seconds)
                if asked.keep:
                    with asked.keep.open("a") as file:
                        file.write(json.dumps([key, kept[key]]) + "\n")
            text, met = shown(name, kept[key], kept.get((BEST.get(name), *key[1:])))
            print(f"epsilon {epsilon:g}  {text}", flush=True)
            missed += [] if met else [f"{name} at epsilon {epsilon:g}"]
    print(f"limits not met: {'; '.join(missed) or 'none'}")


if __name__ == "__main__":
    main()
