"""How far from the data are records that are meant for use at face value, beside peers that publish noisy counts?

W1 between cumulative shares, in cells. Ours: what the default release measures (its own layout, discrete Laplace noise), then
records by balanced rounding of the Polya tree's posterior mean counts. Peers: flat noisy counts, and
hierarchical noisy counts made consistent (HB: Hay et al. 2010, branching of Qardaji et al. 2013), both unclipped, with W1
between signed cumulative shares, which favours them. Replace-one, public n, delta = 0; medians over paired runs.

    python -m benchmarks.face_value [RUNS]
"""

import sys
import time

import numpy as np
from numpy.typing import NDArray

from privurn.counts import CountTable
from privurn.inference.trees.approximation import approximate_posterior
from privurn.inference.trees.synthetic import balanced_counts
from privurn.mechanisms.tree_layout import calibrate_noisy_tree
from privurn.mechanisms.tree_measurements import TreeMeasurements
from privurn.privacy.additive_noise import simulated_noise
from privurn.privacy.profile import Guarantee

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

CELLS = 4096
RUNS = 20
SIZES, EPSILONS = (1_000, 10_000, 1_000_000), (0.1, 1.0, 4.0)
MODERATE = 1e4
"""n epsilon up to which at most 0.5 of HB's W1 is asked for, as a geometric mean; 0.65 beyond."""


def shapes(cells: int = CELLS) -> dict[str, Floats]:
    """Five laws on a line of cells."""
    x = np.arange(cells) * (CELLS / cells)
    rng = np.random.default_rng(5)
    sparse = np.zeros(cells)
    sparse[rng.choice(cells, 25, replace=False)] = rng.dirichlet(np.full(25, 0.5))
    smooth = np.exp(-0.5 * (np.log((x + 1.0) / 900.0) / 0.6) ** 2) / (x + 1.0)
    smooth /= smooth.sum()
    spikes, at = 0.4 * smooth, np.arange(0, cells, max(2, 100 * cells // CELLS))
    heaped = smooth[at] * np.where(np.arange(len(at)) % 5 == 0, 5.0, 1.0)
    spikes[at] += 0.6 * heaped / heaped.sum()
    bimodal = np.exp(-0.5 * ((x - 800.0) / 150.0) ** 2) + 0.6 * np.exp(-0.5 * ((x - 3000.0) / 80.0) ** 2)
    bimodal[(x < 400) | ((x > 1100) & (x < 2750)) | (x > 3300)] = 0.0
    flat = np.full(cells, 1.0 / cells)
    return {"sparse": sparse, "spikes": spikes, "smooth": smooth, "bimodal": bimodal / bimodal.sum(), "uniform": flat}


def distance(shares: Floats, counts: Whole) -> float:
    """W1 in cells, between signed cumulative shares."""
    return float(np.abs(np.cumsum(shares - counts / counts.sum())).sum())


def measure(counts: Whole, epsilon: float, rng: np.random.Generator) -> TreeMeasurements:
    """What the default release measures at this guarantee, with simulated noise."""
    mechanism = calibrate_noisy_tree(n=int(counts.sum()), shape=(len(counts),), guarantee=Guarantee(epsilon=epsilon, delta=0.0))
    return mechanism.measurements(mechanism.simulate(CountTable(np.flatnonzero(counts), counts[counts > 0]), rng=rng))


def flat_counts(counts: Whole, epsilon: float, rng: np.random.Generator) -> Floats:
    """Noise on every cell."""
    noisy = counts + simulated_noise(counts.shape, noise="laplace", scale=2.0 / epsilon, rng=rng)
    return np.asarray(noisy / counts.sum(), np.float64)


def branching(cells: int) -> tuple[int, int]:
    """Branching and height with the least mean variance of ranges (Qardaji, Yang and Li 2013, equation 3)."""
    found = []
    for b in range(2, cells + 1):
        height = int(np.ceil(np.log(cells) / np.log(b) - 1e-9))
        found.append(((b - 1) * height**3 - 2.0 * (b + 1) * height**2 / 3.0, b, height))
        if height == 1:
            break
    return min(found)[1:]


def hierarchical_counts(counts: Whole, epsilon: float, rng: np.random.Generator) -> Floats:
    """HB: every level of a tree with equal shares, made consistent by least squares, n known."""
    n, (b, height) = int(counts.sum()), branching(len(counts))
    padded = np.zeros(b**height)
    padded[: len(counts)] = counts
    scale = 2.0 * height / epsilon
    levels = [padded.reshape(b**level, -1).sum(axis=1) for level in range(1, height + 1)]
    noisy = [each + simulated_noise(each.shape, noise="laplace", scale=scale, rng=rng) for each in levels]
    own = 2.0 * scale**2
    up, variance = [noisy[-1]], own
    for each in reversed(noisy[:-1]):
        below, spread = up[0].reshape(-1, b).sum(axis=1), b * variance
        share = spread / (own + spread)
        up.insert(0, share * each + (1.0 - share) * below)
        variance = own * share
    down = np.array([float(n)])
    for each in up:
        groups = each.reshape(-1, b)
        down = (groups + (down - groups.sum(axis=1))[:, None] / b).ravel()
    return np.asarray(down[: len(counts)] / n, np.float64)


def published_records(counts: Whole, epsilon: float, rng: np.random.Generator) -> tuple[Floats, float]:
    """Shares of n published records, and the processor time that making them took."""
    measured = measure(counts, epsilon, rng)
    begin = time.process_time()
    found = approximate_posterior(measured)
    records, _ = balanced_counts(measured.tree, found.counts, rng=rng)
    return np.asarray(records / counts.sum(), np.float64), time.process_time() - begin


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 and __name__ == "__main__" else RUNS
    published_records(np.ones(CELLS, np.int64), 1.0, np.random.default_rng(0))  # compile
    logs: dict[bool, list[float]] = {True: [], False: []}
    worst, slowest = 0.0, 0.0
    print("       n  epsilon  law       of HB   of the better   (twice its standard error)")
    for n in SIZES:
        for epsilon in EPSILONS:
            for name, law in shapes().items():
                ours, hb, flat = np.empty(runs), np.empty(runs), np.empty(runs)
                for run in range(runs):
                    rng = np.random.default_rng([run, n])
                    counts = rng.multinomial(n, law)
                    shares, seconds = published_records(counts, epsilon, rng)
                    slowest = max(slowest, seconds)
                    ours[run] = distance(shares, counts)
                    hb[run] = distance(hierarchical_counts(counts, epsilon, rng), counts)
                    flat[run] = distance(flat_counts(counts, epsilon, rng), counts)
                ratio = float(np.median(ours) / np.median(hb))
                better = hb if np.median(hb) <= np.median(flat) else flat
                beside = float(np.median(ours) / np.median(better))
                error = 2.0 * beside * float(np.std(np.log(ours / better))) / np.sqrt(runs)
                logs[n * epsilon <= MODERATE].append(np.log(ratio))
                worst = max(worst, beside - error)
                print(f"{n:8,}  {epsilon:7g}  {name:8}  {ratio:5.2f}   {beside:13.2f}   ({error:.2f})", flush=True)
    for moderate, target in ((True, 0.5), (False, 0.65)):
        found = float(np.exp(np.mean(logs[moderate])))
        print(
            f"geometric mean of W1 against HB, n epsilon {'up to' if moderate else 'beyond'} 1e4: {found:.2f} (target {target})"
        )
    print(f"worst case against the better peer, less two standard errors: {worst:.2f} (target 1.1); slowest {slowest:.2f} s")


if __name__ == "__main__":
    main()
