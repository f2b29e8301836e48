"""Does a sweep over a noisy table cost the same whatever n and the noise are, and how well does it mix?

Target: a million records cost what a thousand do (ratio near 1 in the same run), at every epsilon.

    python -m benchmarks.count_tables
"""

import time

import numpy as np

from privurn.domain import Grid, JointDomain
from privurn.inference.counts.latent_counts import LatentCounts
from privurn.inference.counts.released import observe
from privurn.inference.draws import effective_draws
from privurn.inference.size import SizePrior
from privurn.mechanisms.sums.calibrating import Budget
from privurn.mechanisms.sums.statistic import NoisyStatistics
from privurn.mechanisms.sums.table_statistic import TableStatistic

CELLS, SWEEPS = 20, 2_000


def engine(n: int, *, epsilon: float, epsilon_n: float | None) -> LatentCounts:
    rng = np.random.default_rng(1)
    budget = Budget(
        epsilon=epsilon + (epsilon_n or 0.0), epsilon_n=epsilon_n, noise="discrete-laplace", neighbouring="add-remove"
    )
    mechanism = TableStatistic.calibrated(domain=JointDomain({"v": Grid(0, CELLS - 1, 1)}), budget=budget)
    counts = rng.multinomial(n, rng.dirichlet(np.ones(CELLS)))
    noisy = (counts + mechanism.noise.simulate_units(CELLS, rng=rng)).astype(np.float64)
    noisy_n = None
    if mechanism.size_noise is not None:
        noisy_n = float(n + mechanism.size_noise.simulate_units(1, rng=rng)[0])
    public = NoisyStatistics(mechanism=mechanism, values=noisy, noisy_n=noisy_n)
    observed = observe(public)
    return LatentCounts(cells=CELLS, n=None, prior=np.ones(CELLS), terms=observed.terms, size_prior=SizePrior())


def measured(model: LatentCounts) -> tuple[float, float]:
    """Seconds for all sweeps (the best of three), and effective draws of n in them."""
    rng = np.random.default_rng(2)
    state = model.start(rng)
    model.sweep(state, rng, times=200)
    best, effective = np.inf, 0.0
    for _ in range(3):
        start = time.perf_counter()
        counts, _ = model.draw(state, rng, draws=SWEEPS)
        best = min(best, time.perf_counter() - start)
        effective = effective_draws(counts.sum(axis=1).astype(np.float64)[None])
    return best, effective


def main() -> None:
    print(f"{CELLS} cells, {SWEEPS:,} sweeps; microseconds a sweep, and effective draws of n in each 1,000")
    for epsilon, epsilon_n in ((1.0, None), (1.0, 0.1), (0.01, None), (0.01, 1.0)):
        base = None
        for n in (10**3, 10**6, 10**9):
            took, effective = measured(engine(n, epsilon=epsilon, epsilon_n=epsilon_n))
            base = base or took
            known = "not published" if epsilon_n is None else f"epsilon_n {epsilon_n:g}"
            print(
                f"epsilon {epsilon:<5g} n {known:14} n = {n:<13,} {took / SWEEPS * 1e6:7.1f}  ({took / base:.2f} of n = 1,000)"
                f"  {1000 * effective / SWEEPS:6.0f}"
            )


if __name__ == "__main__":
    main()
