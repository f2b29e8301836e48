"""Section 4.2 of the mixture paper: three Betas behind Laplace noise and behind Haar wavelets.

The paper's base measure is Gamma(2, 2) for both parameters, and its appendix B has exp(-2 (a + b)) in the full conditional: 2
is a rate. Under it a cluster that holds the 83 exact values of Beta(50, 50) is likeliest near Beta(9, 9), more than twice as
wide, so no channel can match the truth. Read as a scale (rate 0.5) it is likeliest near Beta(24, 24), and under rate 0.1, ours,
near Beta(42, 42). The rows at epsilon = 10,000 have next to no noise: what each base measure allows at best.
"""

import math
from itertools import product
from typing import Literal

import numpy as np

from experiments.mixture_runs import Effort, Floats, Row, error, medians, run
from privurn.inference.mixtures import BetaKernel, MixtureModel
from privurn.mechanisms.local import HaarWaveletChannel, LaplaceChannel, LocalChannel

BETAS = ((5.0, 50.0), (50.0, 50.0), (50.0, 5.0))
RATES = (2.0, 0.5, 0.1)
"""Of the base measure: as printed, with 2 read as a scale, and a wide one."""

UNNOISED = 10_000.0
SCALES: dict[Literal["butucea2020", "tight"], str] = {"butucea2020": "published", "tight": "tight"}


def truth(grid: Floats) -> Floats:
    """Density of the population at the grid."""
    logs = [
        (a - 1.0) * np.log(grid) + (b - 1.0) * np.log1p(-grid) - (math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b))
        for a, b in BETAS
    ]
    return np.asarray(np.mean(np.exp(logs), axis=0))


def beta_mixture(effort: Effort) -> list[Row]:
    """Section 4.2."""
    epsilons = (10.0, 250.0) if effort.quick else (2.0, 10.0, 50.0, 100.0, 250.0)
    levels = (4,) if effort.quick else (2, 4, 6)
    grid = (np.arange(256) + 0.5) / 256
    real = truth(grid)
    rows = []
    for epsilon in (*epsilons, UNNOISED):
        channels: dict[str, LocalChannel] = {"laplace": LaplaceChannel.calibrate(bounds=(0, 1), epsilon=epsilon)}
        for level, (rule, label) in product(levels if epsilon < UNNOISED else (), SCALES.items()):
            channels[f"J={level} {label}"] = HaarWaveletChannel.calibrate(
                bounds=(0, 1),
                levels=level,
                epsilon=epsilon,
                calibration=rule,
            )
        for rate, (name, channel) in product(RATES, channels.items()):
            repeats = []
            for r in range(effort.repeats):
                rng = np.random.default_rng([effort.seed, r])
                a, b = np.array(BETAS)[rng.integers(3, size=250)].T
                z = channel.simulate(rng.beta(a, b), rng=rng)
                model = MixtureModel(channel=channel, kernel=BetaKernel(rate=rate))
                sampler = "neal5" if epsilon < UNNOISED else "slice"  # no value from the kernel alone is that close
                found = run(model, z, sampler=sampler, effort=effort, seed=effort.seed)
                repeats.append({"acceptance": found["acceptance"], "error": error(found["density"], real)})
            rows.append({"epsilon": epsilon, "rate": rate, "channel": name, "bound": math.exp(-epsilon), **medians(repeats)})
    return rows
