"""Densities and clusters behind noise: the mixture paper's sections 4.1, 4.2, 4.3 and 6, beside what it found.

    python -m experiments.mixture_paper [--sections 4.1 4.2 4.3 6] [--iterations I] [--repeats R] [--quick] [--seed S] [--json]
                                        [--figures DIR]

M. Beraha, S. Favaro and V. Rao, MCMC for Bayesian nonparametric mixture modeling under differential privacy (2024). The paper
ran 100,000 iterations, half of them burn-in, and 50 repeats; the default here is 20,000 and 1, which takes minutes. Half of the
iterations are warm-up; at most 1,000 draws are kept of the rest, and effective draws (ESS, of the number of clusters) are of
those. "us" is processor time of a sweep in microseconds, the sampler alone. Errors are
Hellinger distances (0 to 1) between posterior mean density and truth on the bounds; medians over repeats.

4.1   three Gaussians at -5, 0, 5 on [-10, 10], Laplace channel: Neal 5 with 1 and 5 auxiliary values, slice sampler,
      deconvolution estimate (its negative parts cut). ARI: point clustering (variation of information) against the truth.
      Figures 1 (n = 200), 9 (density with band), 10 (ARI), 11 (number of clusters), 2 (acceptance, ESS); --figures draws 9, 11.
4.2   three Betas on [0, 1], n = 250: Laplace channel, and the Haar wavelet with J = 2, 4, 6 with the published noise and with
      the least that has the same guarantee, by Neal 5. The paper's base measure, Gamma(2, rate 2) for both parameters, all but
      rules out the truth's 50, noise or not; beside it 2 read as a scale, and Gamma(2, rate 0.1), ours (`mixture_betas`).
4.3   Gaussian channel with the classical calibration (NOT a guarantee above epsilon = 1; kept to reproduce), n = 250: Neal 2,
      Neal 3 and Neal 5 under one and the same base measure (the paper gave Neal 5 another one), values not clamped.
6     blood donors. Their data are not public: this is a SIMULATED STAND-IN of the same size, bounds and noise, so only the
      comparisons between analyses mean anything. The base measure follows the bounds (the paper's followed the noisy data).

Everything is simulated with floating-point twins of the channels and a public seed: nothing here is a private release.
"""

import argparse
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.mixture_betas import beta_mixture
from experiments.mixture_findings import show
from experiments.mixture_runs import Effort, Floats, Row, error, medians, run, sweep_time
from privurn.inference.mixtures import GaussianKernel, MixtureModel, MixturePosterior
from privurn.inference.mixtures.clustering import adjusted_rand_index, point_clustering
from privurn.inference.mixtures.deconvolution import deconvolve
from privurn.inference.mixtures.reading import default_model
from privurn.inference.mixtures.results import default_grid, plot, prior_density
from privurn.inference.mixtures.total_gaussian import TotalGaussianKernel
from privurn.mechanisms.local import GaussianChannel, LaplaceChannel

BOUNDS = (-10.0, 10.0)
CENTRES = (-5.0, 0.0, 5.0)
DONORS, DONOR_BOUNDS, RHO = 100, (4.49, 7.6), 17.8
DONOR_GROUPS = ((0.55, 4.95, 0.25), (0.3, 5.8, 0.4), (0.15, 6.9, 0.35))
"""Share, mean and deviation of the stand-in's groups; invented."""

SECTIONS = ("4.1", "4.2", "4.3", "6")
LOOKED_AT = 100
"""Drawn clusterings that a point clustering is searched among."""


def normal(x: Floats, mean: float, deviation: float) -> Floats:
    """Normal density."""
    return np.asarray(np.exp(-0.5 * ((x - mean) / deviation) ** 2) / (deviation * math.sqrt(2.0 * math.pi)))


def within(bounds: tuple[float, float], draw: Callable[[int], Floats], n: int) -> Floats:
    """So many draws between the bounds, by rejection."""
    kept = np.empty(0)
    while len(kept) < n:
        more = draw(n)
        kept = np.concatenate([kept, more[(more > bounds[0]) & (more < bounds[1])]])
    return kept[:n]


def three_gaussians(n: int, rng: np.random.Generator) -> tuple[Floats, NDArray[np.int64]]:
    """Records, and the component of each."""
    which = rng.integers(3, size=n)
    y = np.asarray(CENTRES)[which] + rng.normal(size=n)
    while np.any(out := np.abs(y) > BOUNDS[1]):
        y[out] = np.asarray(CENTRES)[which[out]] + rng.normal(size=int(out.sum()))
    return y, which


SAMPLERS: dict[str, tuple[str, dict[str, Any]]] = {
    "neal5": ("neal5", {}),
    "neal5m5": ("neal5", {"values": 5}),
    "slice": ("slice", {}),
}


def gaussian_mixture(effort: Effort) -> list[Row]:
    """Section 4.1."""
    sizes, epsilons = ((50, 200), (2.0, 50.0)) if effort.quick else ((50, 200, 500, 1000), (1.0, 2.0, 5.0, 10.0, 50.0))
    rows = []
    warm(effort)
    for n in sizes:
        for epsilon in epsilons:
            channel = LaplaceChannel.calibrate(bounds=BOUNDS, epsilon=epsilon)
            model = MixtureModel(channel=channel, kernel=GaussianKernel())
            repeats = [
                _gaussian_repeat(model, channel, n, effort, effort.seed * 1000 + r, r == 0) for r in range(effort.repeats)
            ]
            rows.append({"n": n, "epsilon": epsilon, "bound": math.exp(-epsilon), **medians(repeats)})
    return rows


def warm(effort: Effort) -> None:
    """Compile, so that no setting is charged for it."""
    channel = LaplaceChannel.calibrate(bounds=BOUNDS, epsilon=10)
    model = MixtureModel(channel=channel, kernel=GaussianKernel())
    for name, options in SAMPLERS.values():
        run(model, np.zeros(3), sampler=name, effort=Effort(iterations=4), seed=effort.seed, labels=True, **options)


def _gaussian_repeat(model: MixtureModel, channel: LaplaceChannel, n: int, effort: Effort, seed: int, first: bool) -> Row:
    rng = np.random.default_rng([seed, n])
    y, which = three_gaussians(n, rng)
    z = channel.simulate(y, rng=rng)
    out: Row = {}
    curves = {}
    for label, (name, options) in SAMPLERS.items():
        found = run(model, z, sampler=name, effort=effort, seed=seed, labels=label == "slice", **options)
        curves[label] = found["density"]
        out |= {f"{label} {key}": found[key] for key in ("acceptance", "ess", "clusters")}
        out[f"{label} us"] = sweep_time(model, z, sampler=name, seed=seed, **options)
    slices: MixturePosterior = found["found"]  # the slice sampler's
    grid = default_grid(slices)
    truth = np.sum([normal(grid, m, 1.0) for m in CENTRES], axis=0)
    allocations = slices.draws.flat("allocations")
    chosen = allocations[np.linspace(0, len(allocations) - 1, min(LOOKED_AT, len(allocations))).astype(int)]
    out["ARI"] = adjusted_rand_index(which, point_clustering(chosen, starts=2).labels)
    out |= {f"{label} error": error(curve, truth) for label, curve in curves.items()}
    out["between"] = max(error(curves["neal5"], curves["slice"]), error(curves["neal5"], curves["neal5m5"]))
    out["from prior"] = error(curves["slice"], prior_density(model, grid))
    out["deconvolution error"] = error(deconvolve(z, channel=channel, grid=grid).density, truth)
    if effort.figures is not None and first:
        from privurn.drawing import save

        stem = f"n{n}-epsilon{channel.profile.pure_epsilon:.0f}"
        beside = {"truth": truth / 3.0}
        save(plot(slices, others=beside), effort.figures / f"density-{stem}.png")
        save(plot(slices, kind="clusters"), effort.figures / f"clusters-{stem}.png")
    return out


def gaussian_channel(effort: Effort) -> list[Row]:
    """Section 4.3."""
    deltas, epsilons = ((0.1,), (10.0, 50.0)) if effort.quick else ((0.01, 0.1, 0.25), (5.0, 10.0, 25.0, 50.0))
    rows = []
    for delta in deltas:
        for epsilon in epsilons:
            channel = GaussianChannel.calibrate(bounds=BOUNDS, epsilon=epsilon, delta=delta, calibration="classical")
            model = MixtureModel(channel=channel, kernel=TotalGaussianKernel(noise=channel.scale), clamped=False)
            repeats = []
            for r in range(effort.repeats):
                rng = np.random.default_rng([effort.seed, r])
                z = channel.simulate(three_gaussians(250, rng)[0], rng=rng)
                found = {
                    name: run(model, z, sampler=name, effort=effort, seed=effort.seed) for name in ("neal2", "neal3", "neal5")
                }
                truth = np.sum([normal(default_grid(found["neal3"]["found"]), m, 1.0) for m in CENTRES], axis=0)
                pairs = (("neal2", "neal3"), ("neal2", "neal5"), ("neal3", "neal5"))
                repeats.append(
                    {f"{name} ESS": each["ess"] for name, each in found.items()}
                    | {"between": max(error(found[a]["density"], found[b]["density"]) for a, b in pairs)}
                    | {"error": error(found["neal3"]["density"], truth)}
                )
            rows.append({"delta": delta, "epsilon": epsilon, "noise": channel.scale, **medians(repeats)})
    return rows


def donors(effort: Effort) -> list[Row]:
    """Section 6, on a simulated stand-in."""
    lower, upper = DONOR_BOUNDS
    shares, means, deviations = np.array(DONOR_GROUPS).T
    scale = (upper - lower) / math.sqrt(2.0 * RHO)
    exact = LaplaceChannel.calibrate(bounds=DONOR_BOUNDS, epsilon=10_000)
    noisy: dict[str, LaplaceChannel | GaussianChannel] = {
        "laplace": LaplaceChannel(bounds=DONOR_BOUNDS, scale=scale),
        "gaussian": GaussianChannel(bounds=DONOR_BOUNDS, scale=scale),
    }
    samplers = ("slice",) if effort.quick else ("slice", "neal5")
    collected: dict[tuple[str, str], list[Row]] = {}
    for r in range(effort.repeats):
        rng = np.random.default_rng([effort.seed, r])

        def draw(k: int, rng: np.random.Generator = rng) -> Floats:
            which = rng.choice(3, size=k, p=shares)
            return np.asarray(rng.normal(means[which], deviations[which]))

        y = within(DONOR_BOUNDS, draw, DONORS)
        open_model = default_model(exact)
        assert isinstance(open_model, MixtureModel)
        known = run(open_model, exact.simulate(y, rng=rng), sampler="slice", effort=effort, seed=effort.seed)
        for name, channel in noisy.items():
            z = channel.simulate(y, rng=rng)
            model = default_model(channel)
            assert isinstance(model, MixtureModel)
            fits = {sampler: run(model, z, sampler=sampler, effort=effort, seed=effort.seed) for sampler in samplers}
            for sampler, fit in fits.items():
                grid = default_grid(fit["found"])
                truth = np.sum([s * normal(grid, m, d) for s, m, d in DONOR_GROUPS], axis=0)
                band = [
                    float(np.mean(each.upper - each.lower))
                    for each in (fit["found"].density(grid), known["found"].density(grid))
                ]
                figures = {
                    "error": error(fit["density"], truth),
                    "from unnoised": error(fit["density"], known["density"]),
                    "between": error(fit["density"], fits["slice"]["density"]),
                    "deconvolution error": error(deconvolve(z, channel=channel, grid=grid).density, truth),
                    "band": band[0] / band[1],
                }
                collected.setdefault((name, sampler), []).append(figures)
    return [{"channel": a, "sampler": b, **medians(repeats)} for (a, b), repeats in collected.items()]


RUNNERS = {"4.1": gaussian_mixture, "4.2": beta_mixture, "4.3": gaussian_channel, "6": donors}


def main() -> None:
    """Parse the arguments and print."""
    parser = argparse.ArgumentParser(prog="python -m experiments.mixture_paper", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sections", nargs="+", choices=SECTIONS, default=list(SECTIONS))
    parser.add_argument("--iterations", type=int, default=Effort.iterations, help="half of them warm-up; the paper: 100000")
    parser.add_argument("--repeats", type=int, default=Effort.repeats, help="simulated data sets; the paper: 50")
    parser.add_argument("--quick", action="store_true", help="few settings")
    parser.add_argument("--seed", type=int, default=Effort.seed)
    parser.add_argument("--figures", type=Path, help="folder for pictures of 4.1")
    parser.add_argument("--json", action="store_true", help="the tables, nothing else")
    given = parser.parse_args()
    if given.iterations < 20 or given.repeats < 1:
        parser.error("at least 20 iterations and one repeat are needed")
    if given.figures is not None:
        given.figures.mkdir(parents=True, exist_ok=True)
    effort = Effort(
        iterations=given.iterations, repeats=given.repeats, quick=given.quick, seed=given.seed, figures=given.figures
    )
    tables = {}
    for section in given.sections:
        tables[section] = RUNNERS[section](effort)
        if not given.json:
            show(section, tables[section])
    if given.json:
        print(json.dumps(tables))


if __name__ == "__main__":
    main()
