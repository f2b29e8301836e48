"""How long does an exact figure take?

Targets: calibrating records or alpha at n = 1e7 under 50 ms; a Dirichlet-multinomial or Dirichlet-process profile point
under 1 ms at n = 1.2e7; a Pitman-Yor point with a positive discount under 1 s at 1e5 records; composition of 1000 releases
under 5 s; instance level under 1 s; the law of new values under 0.5 s.

    python -m benchmarks.accounting
"""

import time
from collections.abc import Callable
from functools import partial

import numpy as np
from papers.discovery import new_values_law

from privurn.privacy.calibration import largest_records, smallest_alpha
from privurn.privacy.composition import compose
from privurn.privacy.instance.cost import instance_delta
from privurn.privacy.laws.urn import DirichletMultinomialProfile, DirichletProcessProfile, PitmanYorProfile

N = 10**7


def milliseconds(work: Callable[[int], object]) -> float:
    """Mean of five calls; each gets another number, so that no cache answers."""
    work(0)
    start = time.perf_counter()
    for i in range(1, 6):
        work(i)
    return (time.perf_counter() - start) * 200.0


def line(text: str, value: float, limit: float) -> None:
    print(f"{text:64}{value:10.3f} ms   limit {limit:g} ms")


def alpha(cells: int, records: int, i: int) -> object:
    return smallest_alpha(n=N + i, cells=cells, records=records, epsilon=1.0, delta=1e-6)


def most(cells: int, i: int) -> object:
    return largest_records(DirichletMultinomialProfile(n=N + i, cells=cells, alpha=20.0, records=1), epsilon=1.0, delta=1e-6)


def most_of_a_process(i: int) -> object:
    return largest_records(DirichletProcessProfile(n=N + i, records=1, strength=1.0), epsilon=1.0, delta=1e-4)


def point(prior: float, i: int) -> object:
    return DirichletMultinomialProfile(n=12 * 10**6 + i, cells=100, alpha=prior, records=12 * 10**6).delta(0.5)


def open_point(n: int, i: int) -> object:
    return PitmanYorProfile(n=n, records=10**5, strength=1.0, discount=0.5).delta(0.7 + 1e-9 * i)


def composed(i: int) -> object:
    part = DirichletMultinomialProfile(n=10**6 + i, cells=100, alpha=200.0, records=10**6)
    return compose([part], counts=[1000]).epsilon(1e-6)


def instance(i: int) -> object:
    counts = np.random.default_rng(i).integers(1, 800, 30_000)
    return instance_delta(counts, epsilon=1.0, records=10**4, strength=1.0, discount=0.5)


def new_values(i: int) -> object:
    return new_values_law(10**5, n=10**5, distinct=20_000 + i, strength=1.0, discount=0.5)


def main() -> None:
    for cells in (2, 100, 10_000):
        for records in (10**5, N):
            line(
                f"smallest alpha, n = 1e7, {cells} cells, {records:.0e} records",
                milliseconds(partial(alpha, cells, records)),
                50,
            )
        line(f"largest records, n = 1e7, {cells} cells", milliseconds(partial(most, cells)), 50)
    line("largest records, Dirichlet process, n = 1e7", milliseconds(most_of_a_process), 50)
    for prior in (3.0, 20.0, 1000.0):
        line(f"profile point, n = m = 1.2e7, alpha = {prior:g}", milliseconds(partial(point, prior)), 1)
    for n in (10**3, 10**6):
        line(f"profile point, Pitman-Yor, n = {n:.0e}, discount 0.5, 1e5 records", milliseconds(partial(open_point, n)), 1000)
    line("composition of 1000 identical releases", milliseconds(composed), 5000)
    line("instance level, both directions, 30,000 values", milliseconds(instance), 1000)
    line("law of the new values, n = m = 1e5", milliseconds(new_values), 500)


if __name__ == "__main__":
    main()
