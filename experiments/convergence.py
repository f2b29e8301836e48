"""How fast a release approaches the data: figure 1 of the Pitman-Yor paper, from counts only.

    python -m experiments.convergence [--runs R] [--strengths T ...] [--seed S] [--quick] [--plot FILE] [--json]

M. C. Menicucci, M. Beraha, S. Favaro and R. Lazzarini (2026, arXiv 2606.26073), section 4.2: a population of a million records
T(G), G geometric(0.05) on 1, 2, ..., T the dyadic map 1/2, 1/4, 3/4, 1/8, ...; subsamples of n records; the Dirichlet process
urn with a uniform base on [0, 1] and strength 1, 10 or 100 releases the most records m that (2, delta)-DP admits, delta = 1e-2,
1e-3, 1e-4, or m = n/log n (private only asymptotically: its delta stands in the table). 100 runs. The population is simulated
here too; the paper's own is not published, nor are numbers of its figure, only the statement that the decay is "close to
n^(-1/2)" for the three finite deltas and slower for the fourth.

What the slope means. The paper draws the mean of W1 between the release and its confidential subsample against n; its
corollary 3 is about W1 to the distribution of the data. Both are printed, against n and against m, with standard errors. The
figure's reading, W1 to the subsample against n, is the one that must lie within 0.05 of -1/2. With 2,000 runs it is -0.500,
-0.499 and -0.515 at strength 1, each +- 0.003: at delta = 1e-4 the curve starts from m = 1 record, where n^(-1/2) is not yet
the law. m is a whole number and only nearly proportional to n; the slope against m shows that this matters little. The paper
takes m from its theorem 2, this module from the exact profile: at epsilon = 2 the two agree, as the table says.
"""

import argparse
import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.paper_anchor import theorem_2_records
from privurn.counts import CountTable
from privurn.mechanisms.pitman_yor import PitmanYor
from privurn.privacy.calibration import largest_records
from privurn.privacy.laws.urn import DirichletProcessProfile
from privurn.reports.comparison.distances import wasserstein
from privurn.reports.comparison.samples import Sample

Floats = NDArray[np.float64]

POPULATION = 10**6
SIZES = (10_000, 50_000, 75_000, 100_000, 200_000, 250_000, 500_000, 1_000_000)
STRENGTHS = (1, 10, 100)
EPSILON = 2.0
DELTAS = (1e-2, 1e-3, 1e-4)
ASYMPTOTIC = "m = n/log n"
SUCCESS = 0.05
LAST = 1023
"""G is beyond this with probability 2e-23; a population of a million does not show the difference."""

TARGET, TOLERANCE = -0.5, 0.05


@dataclass(frozen=True, kw_only=True)
class Point:
    """One point of a curve, releases of `records` out of n: W1 to the subsample (`data`) and to the law (`truth`)."""

    strength: int
    curve: str
    n: int
    records: int
    theorem_2: int | None
    delta: float
    data_mean: float
    data_error: float
    data_median: float
    truth_mean: float
    truth_error: float
    truth_median: float


@dataclass(frozen=True, kw_only=True)
class Slope:
    """Least squares on the log-log scale: log of the mean W1 to `reference` against the log of `against`."""

    strength: int
    curve: str
    reference: str
    against: str
    slope: float
    standard_error: float


def dyadic(k: NDArray[np.int64]) -> Floats:
    """The map T: 1, 2, 3, 4, ... to 1/2, 1/4, 3/4, 1/8, ..."""
    level = np.frexp(k.astype(np.float64))[1]  # floor(log2 k) + 1, exactly
    return np.asarray((2.0 * (k - 2.0 ** (level - 1)) + 1.0) / 2.0**level)


def support() -> tuple[Floats, Floats]:
    """Values in increasing order, and their probabilities."""
    k = np.arange(1, LAST + 1)
    masses = SUCCESS * (1.0 - SUCCESS) ** (k - 1)
    values = dyadic(k)
    order = np.argsort(values)
    return values[order], masses[order] / masses.sum()


def released(urn: PitmanYor, values: Floats, counts: NDArray[np.int64], *, rng: np.random.Generator) -> Sample:
    """One simulated release with a uniform base on [0, 1]; `counts` belong to `values` and may be 0."""
    held = np.flatnonzero(counts)
    old, new = urn.simulate(CountTable(held, counts[held]), rng=rng)
    everything = np.concatenate([values[held], rng.random(len(new))])
    order = np.argsort(everything, kind="stable")
    return Sample.from_weights(everything[order], np.concatenate([old, new])[order])


def most_records(*, n: int, strength: float, delta: float, epsilon: float = EPSILON) -> int:
    """The most records that the exact profile of the Dirichlet process urn admits."""
    profile = DirichletProcessProfile(n=n, records=1, strength=float(strength))
    return int(largest_records(profile, epsilon=epsilon, delta=delta))


def curves(n: int, strength: int) -> dict[str, tuple[int, int | None]]:
    """For each curve the number of records released out of n, and what theorem 2 would admit."""
    found: dict[str, tuple[int, int | None]] = {}
    for delta in DELTAS:
        theorem = theorem_2_records(n=n, strength=float(strength), epsilon=EPSILON, delta=delta)
        found[f"delta = {delta:g}"] = most_records(n=n, strength=strength, delta=delta), theorem
    return found | {ASYMPTOTIC: (int(n / math.log(n)), None)}


def simulate(*, strengths: Iterable[int] = STRENGTHS, sizes: Iterable[int] = SIZES, runs: int, seed: int) -> list[Point]:
    """Every point of every curve. All curves see the same subsamples, each with releases of its own."""
    values, law = support()
    truth = Sample(values, law)
    root = np.random.default_rng([seed, 0])
    population = root.multinomial(POPULATION, law)
    points = []
    for n in sizes:
        rng = np.random.default_rng([seed, n])
        subsamples = [rng.multivariate_hypergeometric(population, n) for _ in range(runs)]
        own = [Sample.from_weights(values, each) for each in subsamples]
        for strength in strengths:
            for curve, (records, theorem) in curves(n, strength).items():
                urn = PitmanYor(n=n, records=records, strength=Fraction(strength))
                drawn = [released(urn, values, each, rng=rng) for each in subsamples]
                to_data = np.array([wasserstein(a, b) for a, b in zip(drawn, own, strict=True)])
                to_truth = np.array([wasserstein(each, truth) for each in drawn])
                points.append(
                    Point(
                        strength=strength,
                        curve=curve,
                        n=n,
                        records=records,
                        theorem_2=theorem,
                        delta=float(urn.profile.delta(EPSILON)),
                        data_mean=float(to_data.mean()),
                        data_error=float(to_data.std(ddof=1) / math.sqrt(runs)),
                        data_median=float(np.median(to_data)),
                        truth_mean=float(to_truth.mean()),
                        truth_error=float(to_truth.std(ddof=1) / math.sqrt(runs)),
                        truth_median=float(np.median(to_truth)),
                    )
                )
    return points


def fitted(x: Floats, y: Floats, errors: Floats) -> tuple[float, float]:
    """Least-squares slope of log y on log x, and its standard error from the standard errors of the means y."""
    centred = np.log(x) - np.log(x).mean()
    lever = centred / np.sum(centred**2)
    return float(np.sum(lever * np.log(y))), float(np.sqrt(np.sum((lever * errors / y) ** 2)))


def slopes(points: list[Point]) -> list[Slope]:
    """Slopes of all curves, for both references and against both sizes."""
    found = []
    for strength, curve in dict.fromkeys((each.strength, each.curve) for each in points):
        own = [asdict(each) for each in points if (each.strength, each.curve) == (strength, curve)]
        column = {name: np.array([each[name] for each in own], float) for name in own[0] if name not in ("curve", "theorem_2")}
        for reference in ("data", "truth"):
            for against in ("n", "records"):
                slope, error = fitted(column[against], column[f"{reference}_mean"], column[f"{reference}_error"])
                names: dict[str, Any] = {"strength": strength, "curve": curve, "reference": reference, "against": against}
                found.append(Slope(**names, slope=slope, standard_error=error))
    return found


def within_target(found: list[Slope]) -> dict[str, bool]:
    """The figure's reading at strength 1: whether each finite-delta curve lies within the tolerance of -1/2."""
    return {
        each.curve: abs(each.slope - TARGET) <= TOLERANCE
        for each in found
        if (each.strength, each.reference, each.against) == (1, "data", "n") and each.curve != ASYMPTOTIC
    }


def show(points: list[Point], *, runs: int, seed: int) -> None:
    """Print points and slopes."""
    print(f"Simulated: one population of {POPULATION:,} dyadic values, {runs} subsamples of each n, seed {seed}.")
    print(
        f"W1 of m released records to their n confidential ones (data) and to the law of the data (truth); epsilon {EPSILON:g}."
    )
    found = slopes(points)
    for strength in dict.fromkeys(each.strength for each in points):
        print(f"\nstrength {strength}")
        print(
            f"{'':14}{'n':>10}{'m':>8}{'theorem 2':>11}{'exact delta':>13}"
            f"{'data: mean +- se':>24}{'median':>10}{'truth: mean +- se':>24}{'median':>10}"
        )
        for curve in curves(SIZES[0], strength):
            for each in points:
                if (each.strength, each.curve) == (strength, curve):
                    print(_line(each))
        print(f"{'slope':24}{'data, in n':>20}{'data, in m':>20}{'truth, in n':>20}{'truth, in m':>20}")
        for curve in dict.fromkeys(each.curve for each in points):
            row = [each for each in found if (each.strength, each.curve) == (strength, curve)]
            print(f"{curve:24}" + "".join(f"{f'{each.slope:.3f} +- {each.standard_error:.3f}':>20}" for each in row))
    verdicts = within_target(found)
    if verdicts:
        held = ", ".join(f"{curve} {'yes' if held else 'NO'}" for curve, held in verdicts.items())
        print(f"\nWithin {TOLERANCE} of {TARGET} (data, in n, strength 1): {held}.")
    print(f"{ASYMPTOTIC} should be slower: sqrt(log n/n) has slope {_asymptotic_slope(points):.3f} over these n.")


def _line(point: Point) -> str:
    theorem = "-" if point.theorem_2 is None else str(point.theorem_2)
    return (
        f"{point.curve:14}{point.n:>10,}{point.records:>8,}{theorem:>11}{point.delta:>13.3g}"
        f"{f'{point.data_mean:.5f} +- {point.data_error:.5f}':>24}{point.data_median:>10.5f}"
        f"{f'{point.truth_mean:.5f} +- {point.truth_error:.5f}':>24}{point.truth_median:>10.5f}"
    )


def _asymptotic_slope(points: list[Point]) -> float:
    n = np.array(sorted({each.n for each in points}), float)
    return fitted(n, np.sqrt(np.log(n) / n), np.zeros(len(n)))[0]


def draw(points: list[Point], file: Path) -> None:
    """Figure 1: a panel for each strength, bands of 99%, dashed lines of slope -1/2."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    strengths = list(dict.fromkeys(each.strength for each in points))
    figure, axes = pyplot.subplots(1, len(strengths), figsize=(5 * len(strengths), 4), squeeze=False, layout="constrained")
    for axis, strength in zip(axes[0], strengths, strict=True):
        for curve in dict.fromkeys(each.curve for each in points):
            own = [each for each in points if (each.strength, each.curve) == (strength, curve)]
            n, mean = np.array([each.n for each in own], float), np.array([each.data_mean for each in own])
            band = 2.576 * np.array([each.data_error for each in own])
            (line,) = axis.loglog(n, mean, marker=".", label=curve)
            axis.fill_between(n, mean - band, mean + band, alpha=0.25, color=line.get_color())
            axis.loglog(n, mean[0] * np.sqrt(n[0] / n), linestyle="--", linewidth=0.8, color=line.get_color())
        axis.set_title(f"strength {strength}")
        axis.set_xlabel("confidential records n")
    axes[0][0].set_ylabel("mean W1, release to data")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    figure.savefig(file, dpi=120)
    pyplot.close(figure)


def main() -> None:
    """Read the options, simulate, print."""
    parser = argparse.ArgumentParser(prog="python -m experiments.convergence", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=100, help="releases for each point (default 100, as in the paper)")
    parser.add_argument("--strengths", type=int, nargs="+", default=list(STRENGTHS), metavar="T")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="strength 1 only")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="write figure 1 as a picture")
    parser.add_argument("--json", action="store_true", help="points and slopes, nothing else")
    options = parser.parse_args()
    if options.runs < 2:
        parser.error("a standard error needs at least two runs")
    points = simulate(strengths=(1,) if options.quick else options.strengths, runs=options.runs, seed=options.seed)
    if options.plot is not None:
        draw(points, options.plot)
    if options.json:
        print(json.dumps({"points": [asdict(each) for each in points], "slopes": [asdict(each) for each in slopes(points)]}))
        return
    show(points, runs=options.runs, seed=options.seed)


if __name__ == "__main__":
    main()
