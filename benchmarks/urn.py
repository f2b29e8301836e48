"""How fast are exact draws, and how much of the time goes into random bits?

Target: at least 5 million exact draws a second on one core at 30,000 distinct values, and bits not the bottleneck: the ratio
to drawing the operating system's random words alone is printed.

    python -m benchmarks.urn
"""

import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np

from privurn.counts import CountTable
from privurn.mechanisms.dirichlet_multinomial import DirichletMultinomial
from privurn.mechanisms.pitman_yor import PitmanYor
from privurn.privacy.entropy import SystemEntropy

DRAWS, VALUES = 5_000_000, 30_000


def seconds(work: Callable[[], object]) -> float:
    times = []
    for _ in range(4):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times[1:])


def main() -> None:
    counts = CountTable(np.arange(VALUES), np.random.default_rng(0).integers(1, 800, VALUES))
    entropy = SystemEntropy()
    words = seconds(lambda: entropy.words(DRAWS))
    print(f"{'random words alone':24}{DRAWS / words / 1e6:8.1f} million a second")
    urns = (
        DirichletMultinomial(n=counts.n, cells=10**6, alpha=Fraction("16.401"), records=DRAWS),
        PitmanYor(n=counts.n, strength=Fraction(1), records=DRAWS),
        PitmanYor(n=counts.n, strength=Fraction(1), discount=Fraction(1, 2), records=10**6),  # the most with a discount
    )
    for urn in urns:
        took = seconds(partial(urn.draw, counts, entropy=entropy)) * DRAWS / urn.records
        print(f"{urn.name:24}{DRAWS / took / 1e6:8.1f} million a second, {took / words:.1f} times the words alone")


if __name__ == "__main__":
    main()
