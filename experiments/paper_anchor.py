"""How many records may be released: the paper's theorem 2 beside the exact profile of the Dirichlet process urn.

    python -m experiments.paper_anchor [--json]

M. C. Menicucci, M. Beraha, S. Favaro and R. Lazzarini, Bayesian nonparametric privacy-preserving synthetic data generation: I.
Discrete data (2026, arXiv 2606.26073) release m = 119 of n = 11,918,162 incomes at epsilon = 2, delta = 1e-5, theta = 1. The
exact profile says 119 too: there theorem 2's first term decides, and that term is exact. At small epsilon its second term
decides, which the exact profile does not contain (docs/proofs/global-profiles.md).
"""

import argparse
import json
import math
from dataclasses import asdict, dataclass

from privurn.privacy.calibration import largest_records
from privurn.privacy.laws.urn import DirichletProcessProfile

PUBLISHED_ANCHOR = 119
SETTINGS = {
    10**4: (1e-2, 1e-3, 1e-4),
    4 * 10**4: (1e-2, 1e-3, 1e-4),
    10**6: (1e-2, 1e-4, 1e-6),
    12 * 10**6: (1e-2, 1e-5, 1e-6),
}
EPSILONS = (0.1, 0.5, 2.0)


@dataclass(frozen=True, kw_only=True)
class Row:
    """Largest m at one setting: by the exact profile, and by theorem 2 as printed."""

    n: int
    strength: float
    epsilon: float
    delta: float
    exact: int
    theorem_2: int


def theorem_2_delta(*, n: int, records: int, strength: float, epsilon: float) -> float:
    """max{ m/(theta + n + m - 1), 2m/((theta + n)(e^epsilon - 1)) }: theorem 2 covers every delta above this.

    The first term is the chance that a record whose value nobody shares is released; the second comes from Markov's
    inequality.
    """
    shared_by_nobody = records / (strength + n + records - 1.0)
    markov = 2.0 * records / ((strength + n) * math.expm1(epsilon))
    return max(shared_by_nobody, markov)


def theorem_2_records(*, n: int, strength: float, epsilon: float, delta: float) -> int:
    """Largest m that theorem 2 covers; 0 when it covers none."""
    first = delta * (strength + n - 1.0) / (1.0 - delta)
    second = delta * (strength + n) * math.expm1(epsilon) / 2.0
    records = math.floor(min(first, second)) + 1  # from above, so that rounding cannot matter
    while records > 0 and not theorem_2_delta(n=n, records=records, strength=strength, epsilon=epsilon) < delta:
        records -= 1
    return records


def row(*, n: int, strength: float, epsilon: float, delta: float) -> Row:
    """Both figures at one setting."""
    profile = DirichletProcessProfile(n=n, records=1, strength=strength)
    return Row(
        n=n,
        strength=strength,
        epsilon=epsilon,
        delta=delta,
        exact=int(largest_records(profile, epsilon=epsilon, delta=delta)),
        theorem_2=theorem_2_records(n=n, strength=strength, epsilon=epsilon, delta=delta),
    )


def anchor() -> Row:
    """The setting of the paper's income example."""
    return row(n=11_918_162, strength=1.0, epsilon=2.0, delta=1e-5)


def table() -> list[Row]:
    """All settings at strength 1."""
    return [
        row(n=n, strength=1.0, epsilon=epsilon, delta=delta)
        for n, deltas in SETTINGS.items()
        for delta in deltas
        for epsilon in EPSILONS
    ]


def main() -> None:
    """Parse the arguments and print."""
    parser = argparse.ArgumentParser(prog="python -m experiments.paper_anchor", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="the anchor and the table, nothing else")
    arguments = parser.parse_args()
    first, rows = anchor(), table()
    if arguments.json:
        print(
            json.dumps(
                {"published": PUBLISHED_ANCHOR, "anchor": asdict(first), "table": [asdict(each) for each in rows]}, indent=1
            )
        )
        return
    print(
        f"n = {first.n:,}, theta = {first.strength:g}, epsilon = {first.epsilon:g}, delta = {first.delta:g}: published m = "
        f"{PUBLISHED_ANCHOR}, theorem 2 gives {first.theorem_2}, the exact profile {first.exact}.\n"
    )
    print("Largest m, theta = 1; the exact one is the same at every epsilon.")
    print(f"{'n':>12} {'delta':>7} {'exact':>8}  theorem 2 at epsilon = " + " ".join(f"{each:>7g}" for each in EPSILONS))
    for i in range(0, len(rows), len(EPSILONS)):
        same = rows[i : i + len(EPSILONS)]
        figures = " ".join(f"{each.theorem_2:>7}" for each in same)
        print(f"{same[0].n:>12,} {same[0].delta:>7g} {same[0].exact:>8}  {'':>22} {figures}")
    print("\nTheorem 2's second term over the exact delta, as n grows (it is the larger one below epsilon = log 3 = 1.0986):")
    for epsilon in (0.1, 0.5, 1.0, 2.0):
        print(f"  epsilon = {epsilon:<4g} 2/(e^epsilon - 1) = {2.0 / math.expm1(epsilon):.2f}")


if __name__ == "__main__":
    main()
