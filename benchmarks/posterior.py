"""What do functionals of a posterior cost beside the Dirichlet weights they need?

Target: 100,000 draws of mean, variance, median, a cumulative and a tail probability take at most twice as long as NumPy needs
for the Dirichlet weights alone, in the same run. Where only the two shares are asked for, three groups of cells are enough.

    python -m benchmarks.posterior
"""

import time
from collections.abc import Callable

import numpy as np

from privurn._kernels.counts.functionals import update_composed, update_dirichlet
from privurn.domain import Grid, JointDomain
from privurn.inference.counts.functionals import parse_functionals
from privurn.inference.counts.plans import reduce

DRAWS = 100_000
FIVE = ["mean", "variance", "q0.5", "cdf(0.3)", "P(x>0.75)"]
BLOCK = 10_000_000
"""Weights that NumPy is asked for at once: a larger array would measure the memory."""


def seconds(work: Callable[[], object]) -> float:
    times = []
    for _ in range(3):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def measure(cells: int) -> None:
    rng = np.random.default_rng(0)
    domain = JointDomain({"x": Grid(0, 1, f"1/{cells - 1}")})
    prior, released = np.full(cells, 15.0), rng.multinomial(10_000, rng.dirichlet(np.ones(cells)))
    shapes, n = prior + released, 10_000
    rows = BLOCK // cells

    def weights() -> None:
        for _ in range(0, DRAWS, rows):
            rng.dirichlet(shapes, size=min(rows, DRAWS))

    alone = seconds(weights)
    print(f"{cells:5} cells: {DRAWS:,} Dirichlet weights with NumPy {alone:6.2f} s")
    for words, asked in (("all five functionals", FIVE), ("cdf and tail alone", FIVE[3:])):
        plan = reduce(parse_functionals(asked), domain=domain)
        out, own = np.empty((DRAWS, len(asked))), plan.grouped(shapes)
        update_dirichlet(out[:10], rng, own, plan.plan)
        took = seconds(lambda out=out, own=own, plan=plan: update_dirichlet(out, rng, own, plan.plan))  # type: ignore[misc]
        print(f"      {words:40} {took:6.2f} s, {took / alone:.2f} times the weights")
    plan = reduce(parse_functionals(FIVE), domain=domain)
    some = DRAWS // 10
    out, sample = np.empty((some, 5)), np.empty((some, 5))

    def composed() -> None:
        update_composed(out, sample, rng, plan.grouped(shapes), plan.grouped(prior), n, plan.plan)

    def both() -> None:
        rng.standard_gamma(prior + rng.multinomial(n, rng.dirichlet(shapes, size=some)))

    took, needed = seconds(composed), seconds(both)
    print(
        f"      {f'population and sample, {some:,} draws':40} {took:6.2f} s, {took / needed:.2f} times the weights and counts"
    )


def main() -> None:
    for cells in (100, 1000):
        measure(cells)


if __name__ == "__main__":
    main()
