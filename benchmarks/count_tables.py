"""Does a sweep over a noisy table cost the same whatever n and the noise are, and how well does it mix?

Target: a million records cost what a thousand do (ratio near 1 in the same run), at every epsilon.

    python -m benchmarks.count_tables
"""

import time

import numpy as np

from privurn.inference.counts.latent_counts import LatentCounts
from privurn.inference.draws import effective_draws
from privurn.inference.size import SizePrior
from privurn.mechanisms.likelihood import NoisyCountsTerm
from privurn.mechanisms.sums.noise_law import NoiseLaw

CELLS, SWEEPS = 20, 2_000


def engine(n: int, *, epsilon: float) -> LatentCounts:
    rng = np.random.default_rng(1)
    law = NoiseLaw(kind="laplace", scale=1.0 / epsilon)
    counts = rng.multinomial(n, rng.dirichlet(np.ones(CELLS)))
    noisy = counts + law.simulate_units(CELLS, rng=rng)
    term = NoisyCountsTerm(noise="discrete-laplace", scale=law.scale, noisy=noisy)
    return LatentCounts(cells=CELLS, n=None, prior=np.ones(CELLS), terms=(term,), size_prior=SizePrior())


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
    for epsilon in (1.0, 0.01):
        base = None
        for n in (10**3, 10**6, 10**9):
            took, effective = measured(engine(n, epsilon=epsilon))
            base = base or took
            print(
                f"epsilon {epsilon:<5g} n = {n:<13,} {took / SWEEPS * 1e6:7.1f}  ({took / base:.2f} of n = 1,000)"
                f"  {1000 * effective / SWEEPS:6.0f}"
            )


if __name__ == "__main__":
    main()
