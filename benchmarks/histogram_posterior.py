"""How long does the posterior of a histogram release take that knows how the release was made?

The case that the Pitman-Yor paper calls out: a perturbed histogram of 25 bins, n = 10,000, of which only 100 sampled records
are published; 1000 draws took "about six minutes", more with larger n. Here: processor time for 1000 effective draws (the
smallest effective number over all cells, of the confidential counts C and of the population's shares p), at
n = 10^4 and 10^7. Then the Dirichlet-multinomial release of n = 10,000 records over 100 cells with alpha = 15, and how often
95% intervals for a cell of true share 0.2 cover it.

    python -m benchmarks.histogram_posterior
"""

import time

import numpy as np
from numpy.typing import NDArray

from privurn.inference.counts.latent_counts import LatentCounts
from privurn.inference.draws import effective_draws
from privurn.mechanisms.likelihood import NoisyRecordsTerm, UrnTerm

BINS, RECORDS, SCALE = 25, 100, 2.0
SWEEPS, WARM_UP, REPEATS = 4_000, 200, 5
URN_N, URN_CELLS, URN_ALPHA, SHARE = 10_000, 100, 15.0, 0.2
REPLICATES = 100


def population(model: LatentCounts, counts: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.float64]:
    mass = rng.standard_gamma(model.prior + counts)
    return np.asarray(mass / mass.sum(axis=1, keepdims=True))


def chain(model: LatentCounts, rng: np.random.Generator, sweeps: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    state = model.start(rng)
    model.sweep(state, rng, times=WARM_UP, warming=True)
    counts, _ = model.draw(state, rng, draws=sweeps)
    return counts, population(model, counts, rng)


def smallest_ess(draws: NDArray[np.float64]) -> float:
    return min(effective_draws(draws[None, :, i]) for i in range(draws.shape[1]))


def measure(model: LatentCounts, rng: np.random.Generator) -> tuple[float, float, float]:
    """Best processor time of a run, effective draws of it (C and p, worst cell, mean of the runs)."""
    times, of_counts, of_shares = [], [], []
    for _ in range(REPEATS):
        begin = time.process_time()
        counts, shares = chain(model, rng, SWEEPS)
        times.append(time.process_time() - begin)
        of_counts.append(smallest_ess(counts.astype(np.float64)))
        of_shares.append(smallest_ess(shares))
    return min(times), float(np.mean(of_counts)), float(np.mean(of_shares))


def report(name: str, seconds: float, of_counts: float, of_shares: float) -> float:
    worst = min(of_counts, of_shares)
    thousand = 1000.0 * seconds / worst
    print(
        f"{name:28}{1e6 * seconds / (SWEEPS + WARM_UP):7.1f} us a sweep; effective draws a sweep: C {of_counts / SWEEPS:.2f},"
        f" p {of_shares / SWEEPS:.2f}; {1e6 * seconds / worst:6.0f} us each, 1000 of them {thousand:6.3f} s"
    )
    return thousand


def perturbed(n: int, released: NDArray[np.int64]) -> LatentCounts:
    term = NoisyRecordsTerm(noise="laplace", scale=SCALE, smoothing=0.0, released=released)
    return LatentCounts(cells=BINS, n=n, prior=np.ones(BINS), terms=(term,))


def urn(released: NDArray[np.int64], gamma: float = 1.0) -> LatentCounts:
    term = UrnTerm(alpha=np.full(URN_CELLS, URN_ALPHA), released=released[None, :])
    return LatentCounts(cells=URN_CELLS, n=URN_N, prior=np.full(URN_CELLS, gamma), terms=(term,))


def urn_release(rng: np.random.Generator) -> NDArray[np.int64]:
    truth = np.full(URN_CELLS, (1.0 - SHARE) / (URN_CELLS - 1))
    truth[0] = SHARE
    counts = rng.multinomial(URN_N, truth)
    released: NDArray[np.int64] = rng.multinomial(URN_N, rng.dirichlet(counts + URN_ALPHA))
    return released


def covers(shares: NDArray[np.float64]) -> bool:
    low, high = np.quantile(shares, [0.025, 0.975])
    return bool(low <= SHARE <= high)


def main() -> None:
    rng = np.random.default_rng(1)
    released = rng.multinomial(RECORDS, rng.dirichlet(np.ones(BINS)))
    chain(perturbed(10**4, released), rng, 10)  # compile
    print('the paper: "about six minutes" for 1000 draws at n = 10^4, and longer chains for larger n')
    thousand = {}
    for n in (10**4, 10**7):
        thousand[n] = report(f"perturbed histogram, n = {n:.0e}", *measure(perturbed(n, released), rng))
    print(f"n = 10^7 takes {thousand[10**7] / thousand[10**4]:.2f} times as long as n = 10^4 (target: at most 1.3)")
    model = urn(urn_release(rng))
    seconds, of_counts, of_shares = measure(model, rng)
    report("Dirichlet-multinomial, z=100", seconds, of_counts, of_shares)
    print(f"  {min(of_counts, of_shares) / seconds:.0f} effective draws a second in the worst of {URN_CELLS} cells")
    hits = np.zeros(3)
    for _ in range(REPLICATES):
        released = urn_release(rng)
        closed = rng.dirichlet(released + URN_ALPHA, size=1000)[:, 0]
        ours = [chain(urn(released, gamma), rng, 800)[1][:, 0] for gamma in (1.0, 1.0 / URN_CELLS)]
        hits += [covers(closed), *map(covers, ours)]
    rates = [f"{100.0 * each / REPLICATES:.0f}%" for each in hits]
    print(
        f"95% intervals for a cell of share {SHARE}, {REPLICATES} replicates at this one truth: Dirichlet(alpha + S) covers in"
    )
    print(f"  {rates[0]}, latent counts with a flat prior in {rates[1]}, with prior 1/cells in {rates[2]}")


if __name__ == "__main__":
    main()
