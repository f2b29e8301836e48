"""How long does an exact figure take?

Targets: calibrating records or alpha at n = 1e7 under 50 ms; a Dirichlet-multinomial or Dirichlet-process profile point
under 1 ms at n = 1.2e7; a Pitman-Yor point with a positive discount under 1 s at 1e5 records.

    python -m benchmarks.accounting
"""

import time
from collections.abc import Callable
from functools import partial

from privurn.privacy.calibration import largest_records, smallest_alpha
from privurn.privacy.urn_accounting import DirichletMultinomialProfile, DirichletProcessProfile, PitmanYorProfile


def milliseconds(work: Callable[[], object]) -> float:
    work()
    start = time.perf_counter()
    for _ in range(5):
        work()
    return (time.perf_counter() - start) * 200.0


def line(text: str, value: float, limit: float) -> None:
    print(f"{text:64}{value:10.3f} ms   limit {limit:g} ms")


def main() -> None:
    n = 10**7
    for cells in (2, 100, 10_000):
        for records in (10**5, n):

            def alpha(cells: int = cells, records: int = records) -> object:
                smallest_alpha.cache_clear()
                return smallest_alpha(n=n, cells=cells, records=records, epsilon=1.0, delta=1e-6)

            line(f"smallest alpha, n = 1e7, {cells} cells, {records:.0e} records", milliseconds(alpha), 50)

        def most(cells: int = cells) -> object:
            profile = DirichletMultinomialProfile(n=n, cells=cells, alpha=20.0, records=1)
            return largest_records(profile, epsilon=1.0, delta=1e-6)

        line(f"largest records, n = 1e7, {cells} cells", milliseconds(most), 50)
    process = DirichletProcessProfile(n=n, records=1, strength=1.0)
    line(
        "largest records, Dirichlet process, n = 1e7",
        milliseconds(lambda: largest_records(process, epsilon=1.0, delta=1e-4)),
        50,
    )
    big = 12 * 10**6
    for alpha_value in (3.0, 20.0, 1000.0):
        point = DirichletMultinomialProfile(n=big, cells=100, alpha=alpha_value, records=big)
        line(f"profile point, n = m = 1.2e7, alpha = {alpha_value:g}", milliseconds(partial(point.delta, 0.5)), 1)
    start = time.perf_counter()
    PitmanYorProfile(n=10**6, records=10**5, strength=1.0, discount=0.5).delta(0.7)
    line("profile point, Pitman-Yor, discount 0.5, 1e5 records", (time.perf_counter() - start) * 1e3, 1000)


if __name__ == "__main__":
    main()
