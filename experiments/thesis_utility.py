"""The thesis's sections 7.1 and 7.2 again: tables 7 and 8 and figures 5 and 8 on simulated stand-ins.

    python -m experiments.thesis_utility [--tables 7 8] [--runs R] [--seed S] [--quick] [--json]

R. Lazzarini (M.Sc. thesis, Politecnico di Milano, 2022-2023) compares four mechanisms at the same epsilon on 39,374 school
marks (epsilon = 4.2, m = 5,000, 10 bins) and 44,816 incomes (epsilon = 2.5, m = 2,000, 25 bins). We have neither table.

Stand-ins. Marks: 95 marks from 0.04 to 0.98 with the thesis's mean and deviation, uniform within each of the 10 bins, as the
thesis says of its own; a smooth law beside it shows what that is worth. Incomes: 3,263 values, 1,436 of them held once, a
mixture of two normals with the thesis's mean, deviation and quartiles (experiments.census_column). Where the distinct incomes
lie is taken from the Dirichlet-multinomial row of table 8, so that row is no check of ours.

Comparable: mean, deviation and quartiles of a release against those of its own data; the order of the L2 distances between
mechanisms. Not comparable, as the output says: the L2 distances as numbers, and figure 8, whose curve has no numbers.

The privacy is not the same: the thesis's urn ("BNP") has a Monte Carlo delta of 0 in one direction, its
exact delta in both stands beside it; and its Dirichlet-multinomial takes the categories from the data, so a value of one's own
shows as soon as it is drawn. Rows of ours that meet the guarantee on a public domain are added.
"""

import argparse
import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from experiments.census_column import (
    SUMMARIES,
    Counts,
    Floats,
    Law,
    Way,
    in_bins,
    income_column,
    summary,
    wasserman_zhou_weight,
    within_bins,
)
from experiments.convergence import released
from privurn.counts import CountTable
from privurn.mechanisms.dirichlet_multinomial import DirichletMultinomial
from privurn.mechanisms.perturbed_histogram import calibrate_perturbed_histogram
from privurn.mechanisms.pitman_yor import PitmanYor
from privurn.mechanisms.smoothed_histogram import SmoothedHistogram
from privurn.privacy.calibration import round_up_to_rational, smallest_alpha
from privurn.privacy.histogram_calibration import weight_up
from privurn.privacy.profile import Guarantee
from privurn.reports.comparison.distances import bandwidth, density_distance, wasserstein
from privurn.reports.comparison.samples import Sample

MARKS = 101
LEAST_PRIOR = 1e-4
SMALL_DELTA = 1e-6
BANDWIDTHS = (0.02, 0.04, 0.06)
INCOME_LAW = Law(0.88516, (0.72789, 0.51525), (0.07985, 0.06661))
"""Solves for the five numbers of table 8's first row."""

PERTURBED, SMOOTHED, BNP, DIRICHLET = "Perturbed Hist", "Smoothed Hist", "BNP", "Dir-Multinomial"
OURS, OURS_DELTA = "public Dir-Multinomial", "public Dir-Multinomial, delta"


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One of the two sections: sizes, parameters, figures as printed (summaries, then the L2 distance), and the stand-in."""

    number: int
    title: str
    epsilon: float
    records: int
    bins: int
    strength: Fraction
    doubled: bool
    step: float
    sizes: tuple[int, ...]
    published: dict[str, tuple[float, ...]]
    published_weight: float | None
    published_curve: str
    simulate: Callable[[np.random.Generator], tuple[Floats, Counts]]
    reasons: tuple[str, ...]
    smooth: Callable[[np.random.Generator], tuple[Floats, Counts]] | None = None


@dataclass(frozen=True, kw_only=True)
class Row:
    """Medians over the runs of one mechanism, and what the thesis prints (None for a row of ours).

    `by_bandwidth` has the L2 distance for other bandwidths than the data's own.
    """

    table: int
    name: str
    guarantee: str
    summaries: tuple[float, ...]
    density_distance: float
    by_bandwidth: dict[float, float]
    wasserstein: float
    published: tuple[float, ...] | None


def marks(rng: np.random.Generator) -> tuple[Floats, Counts]:
    """95 marks, each held at least twice (theorem 4.1 wants it so), 39,374 records, uniform within the ten bins."""
    from scipy.special import betainc

    hundredths = np.arange(4, 99)
    mean, deviation = 0.56179, 0.15059  # of the beta law that gives the bins' shares: the marks then have the thesis's own
    total = mean * (1.0 - mean) / deviation**2 - 1.0
    shares = np.diff(betainc(mean * total, (1.0 - mean) * total, np.arange(11) / 10.0))
    inside = hundredths // 10
    masses = (shares / np.bincount(inside))[inside]
    return hundredths / 100.0, 2 + rng.multinomial(39_374 - 2 * len(hundredths), masses / masses.sum())


def smooth_marks(rng: np.random.Generator) -> tuple[Floats, Counts]:
    """The same sizes, mean and deviation from a beta law: not uniform within the bins."""
    from scipy.special import betainc

    values = np.arange(4, 99) / 100.0
    mean, deviation = 0.556774, 0.155934
    total = mean * (1.0 - mean) / deviation**2 - 1.0
    masses = betainc(mean * total, (1.0 - mean) * total, values + 0.005)
    masses -= betainc(mean * total, (1.0 - mean) * total, values - 0.005)
    return values, 2 + rng.multinomial(39_374 - 2 * len(values), masses / masses.sum())


def incomes(rng: np.random.Generator) -> tuple[Floats, Counts]:
    """3,263 incomes, 1,436 of them held once, 44,816 records."""
    return income_column(n=44_816, distinct=3_263, singletons=1_436, law=INCOME_LAW, rng=rng)


SETTINGS = {
    7: Setting(
        number=7,
        title="section 7.1, school marks",
        epsilon=4.2,
        records=5_000,
        bins=10,
        strength=Fraction("11.6257"),
        doubled=False,
        step=0.01,
        sizes=(100, 200, 1_000, 2_000, 5_000, 8_000, 10_000, 15_000, 18_000, 20_000, 30_000),
        published={
            "Private Data": (0.556774, 0.155934, 0.45, 0.56, 0.66),
            PERTURBED: (0.556711, 0.161562, 0.444715, 0.552957, 0.665898, 0.037517),
            SMOOTHED: (0.544161, 0.202949, 0.417069, 0.543319, 0.677291, 0.241838),
            BNP: (0.550162, 0.158369, 0.45, 0.55, 0.66, 0.036688),
            DIRICHLET: (0.554592, 0.169220, 0.45, 0.56, 0.67, 0.067266),
        },
        published_weight=0.2321,
        published_curve='figure 5 (no numbers; the text says "around 0.01" from m = 5,000 on)',
        simulate=marks,
        smooth=smooth_marks,
        reasons=(
            "the data are a stand-in: the thesis's marks are not public",
            "the thesis shows one release of each, ours are medians over runs",
            "it states no bandwidth for L2; ours is Silverman's for the data, the same for release and data",
            "its W1 of 0.01 at m = 5,000, and a BNP mean 2.8 standard errors off the data's, are more than 5,000 draws from "
            "the urn differ by here",
            "a bin's records are spread over the whole bin, but marks are the lower ends of hundredths: 0.005 on the mean",
        ),
    ),
    8: Setting(
        number=8,
        title="section 7.2, incomes",
        epsilon=2.5,
        records=2_000,
        bins=25,
        strength=Fraction(2),
        doubled=True,
        step=0.0,
        sizes=(100, 200, 500, 1_000, 2_000, 3_000),
        published={
            "Private Data": (0.703467, 0.103677, 0.647091, 0.714881, 0.773849),
            PERTURBED: (0.706685, 0.105617, 0.649485, 0.717137, 0.775253, 0.049465),
            SMOOTHED: (0.645578, 0.201736, 0.592295, 0.699857, 0.774461, 0.574438),
            BNP: (0.703734, 0.106889, 0.644440, 0.715106, 0.774801, 0.032337),
            DIRICHLET: (0.762070, 0.117283, 0.705627, 0.783804, 0.840608, 0.599707),
        },
        published_weight=None,
        published_curve="figure 8 (no numbers)",
        simulate=incomes,
        reasons=(
            "the data are a stand-in: which 44,816 incomes the thesis sampled is not stated",
            "the thesis shows one release of each, ours are medians over runs",
            "it states no bandwidth for L2; ours is Silverman's for the data, the same for release and data",
            "where the distinct incomes lie was taken from its Dir-Multinomial row, so that row is no check",
        ),
    ),
}


def thesis_urn(setting: Setting, counts: Counts, *, records: int) -> tuple[PitmanYor, Counts]:
    """The thesis's urn and the table that it sees: in section 7.2 every value held once is doubled."""
    seen = np.where(counts == 1, 2, counts) if setting.doubled else counts
    return PitmanYor(n=int(seen.sum()), records=records, strength=setting.strength), seen


def ways(setting: Setting, values: Floats, counts: Counts) -> list[Way]:
    """The thesis's four mechanisms with its parameters, then the Dirichlet-multinomial on a public domain."""
    n, m, epsilon, bins = int(counts.sum()), setting.records, setting.epsilon, setting.bins
    table = in_bins(values, counts, bins=bins)
    pure = f"{epsilon:g}-DP"
    perturbed = calibrate_perturbed_histogram(
        n=n, cells=bins, guarantee=Guarantee(epsilon=epsilon, delta=0.0), records=m, noise="laplace"
    )
    weight = weight_up(wasserman_zhou_weight(n=n, bins=bins, records=m, epsilon=epsilon))
    smoothed = SmoothedHistogram(n=n, cells=bins, records=m, weight=weight)
    urn, seen = thesis_urn(setting, counts, records=m)
    delta = math.ceil(1000.0 * urn.profile.delta(epsilon)) / 1000.0  # rounded up, as a guarantee must be
    least = m / np.expm1(epsilon)
    prior = np.maximum(LEAST_PRIOR, least - counts)

    def public(delta: float) -> Callable[[np.random.Generator], Sample]:
        """On all marks, or on the bins."""
        cells = MARKS if setting.step else bins
        alpha = round_up_to_rational(smallest_alpha(n=n, cells=cells, records=m, epsilon=epsilon, delta=delta))
        made = DirichletMultinomial(n=n, cells=cells, alpha=alpha, records=m)
        if not setting.step:
            return lambda rng: within_bins(made.simulate(table, rng=rng), rng=rng)
        on_marks = CountTable(np.rint(values * (MARKS - 1)).astype(np.int64), counts)
        grid = np.arange(MARKS) / (MARKS - 1)
        return lambda rng: Sample.from_weights(grid, made.simulate(on_marks, rng=rng))

    found: list[tuple[str, str, Callable[[np.random.Generator], Sample]]] = [
        (PERTURBED, pure, lambda rng: within_bins(perturbed.simulate(table, rng=rng), rng=rng)),
        (SMOOTHED, pure, lambda rng: within_bins(smoothed.simulate(table, rng=rng), rng=rng)),
        (BNP, f"({epsilon:g}, {delta:.3f})-DP", lambda rng: released(urn, values, seen, rng=rng)),
        (DIRICHLET, "none", lambda rng: Sample.from_weights(values, rng.multinomial(m, rng.dirichlet(counts + prior)))),
        (OURS, pure, public(0.0)),
        (OURS_DELTA, f"({epsilon:g}, {SMALL_DELTA:g})-DP", public(SMALL_DELTA)),
    ]
    return [Way(name=name, guarantee=words, records=m, release=release) for name, words, release in found]


def reproduce(setting: Setting, *, runs: int, seed: int) -> tuple[Sample, list[Row], dict[int, float]]:
    """The stand-in, the rows of the table, and the mean W1 of the thesis's urn for each number of records."""
    values, counts = setting.simulate(np.random.default_rng([seed, setting.number]))
    data = Sample(values, counts)
    widths = (bandwidth(data, least=setting.step), *BANDWIDTHS)
    rows = []
    for key, way in enumerate(ways(setting, values, counts)):
        rng = np.random.default_rng([seed, setting.number, key])
        drawn = [way.release(rng) for _ in range(runs)]
        distances = [float(np.median([density_distance(each, data, bandwidth=width) for each in drawn])) for width in widths]
        rows.append(
            Row(
                table=setting.number,
                name=way.name,
                guarantee=way.guarantee,
                summaries=tuple(map(float, np.median([summary(each) for each in drawn], axis=0))),
                density_distance=distances[0],
                by_bandwidth=dict(zip(BANDWIDTHS, distances[1:], strict=True)),
                wasserstein=float(np.median([wasserstein(each, data) for each in drawn])),
                published=setting.published.get(way.name),
            )
        )
    curve = {}
    for m in setting.sizes:
        urn, seen = thesis_urn(setting, counts, records=m)
        rng = np.random.default_rng([seed, setting.number, m])
        curve[m] = float(np.mean([wasserstein(released(urn, values, seen, rng=rng), data) for _ in range(runs)]))
    return data, rows, curve


def order(rows: list[Row], *, published: bool) -> list[str]:
    """The thesis's mechanisms by their L2 distance, the closest first."""
    found = {row.name: row.published[-1] if published else row.density_distance for row in rows if row.published is not None}
    return sorted(found, key=lambda name: found[name])


def show(setting: Setting, *, runs: int, seed: int) -> None:
    """Print one table."""
    data, rows, curve = reproduce(setting, runs=runs, seed=seed)
    n, singletons = int(data.total), int((data.weights == 1).sum())
    print(
        f"Thesis table {setting.number}, {setting.title}. Simulated stand-in: {n:,} records, {len(data.values):,} values, "
        f"{singletons:,} singletons.\nepsilon = {setting.epsilon:g}, m = {setting.records:,}, {setting.bins} bins; medians of "
        f"{runs} runs; as printed in the thesis below each."
    )
    weight = wasserman_zhou_weight(n=n, bins=setting.bins, records=setting.records, epsilon=setting.epsilon)
    stated = "not stated" if setting.published_weight is None else f"{setting.published_weight:g}"
    print(f"Weight of the smoothed histogram: {weight:.4f}; in the thesis {stated}.")
    print(f"{'':31}{'guarantee':>16}" + "".join(f"{name:>10}" for name in (*SUMMARIES, "L2", "W1")))
    print(f"{'Private Data':47}" + _numbers(summary(data)))
    print(f"{'    published':47}" + _numbers(setting.published["Private Data"]))
    for row in rows:
        print(f"{row.name:31}{row.guarantee:>16}" + _numbers((*row.summaries, row.density_distance, row.wasserstein)))
        if row.published is not None:
            print(f"{'    published':47}" + _numbers(row.published))
    print(f"By L2, published: {', '.join(order(rows, published=True))}.")
    print(f"By L2, ours:      {', '.join(order(rows, published=False))}.")
    if setting.smooth is not None:
        _, smooth, _ = reproduce(replace(setting, simulate=setting.smooth, sizes=()), runs=runs, seed=seed)
        print(f"By L2, ours, on marks that are not uniform within the bins: {', '.join(order(smooth, published=False))}.")
        print(
            "    The thesis says that its marks are, and that this helps the histograms; its parameters explain no difference."
        )
    print("Why the numbers are not the thesis's:")
    for reason in setting.reasons:
        print(f"    {reason};")
    print(f"    L2 for other bandwidths{'':5}" + "".join(f"{width:>10g}" for width in BANDWIDTHS) + f"{'published':>12}")
    for row in rows:
        if row.published is not None:
            print(f"        {row.name:24}" + _numbers(tuple(row.by_bandwidth.values())) + f"{row.published[-1]:>12.4f}")
    print(f"Mean W1 of BNP by m: {', '.join(f'{m:,}: {distance:.4f}' for m, distance in curve.items())}.")
    print(f"Published: {setting.published_curve}.")
    if setting.doubled:
        print("BNP sees the table with its singletons doubled; its delta is that of a record of that table, not of a person.")
    print()


def _numbers(values: tuple[float, ...]) -> str:
    return "".join(f"{each:>10.4f}" for each in values)


def main() -> None:
    """Read the options, simulate, print."""
    parser = argparse.ArgumentParser(prog="python -m experiments.thesis_utility", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tables", type=int, nargs="+", choices=sorted(SETTINGS), default=sorted(SETTINGS), metavar="N")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="10 runs")
    parser.add_argument("--json", action="store_true", help="the rows, nothing else")
    options = parser.parse_args()
    if options.runs < 1:
        parser.error("at least one run is needed")
    runs = min(options.runs, 10) if options.quick else options.runs
    if options.json:
        found: dict[str, Any] = {}
        for number in options.tables:
            data, rows, curve = reproduce(SETTINGS[number], runs=runs, seed=options.seed)
            found[str(number)] = {
                "n": int(data.total),
                "distinct": len(data.values),
                "singletons": int((data.weights == 1).sum()),
                "private": summary(data),
                "published_private": SETTINGS[number].published["Private Data"],
                "rows": [asdict(row) for row in rows],
                "curve": curve,
            }
        print(json.dumps(found))
        return
    for number in options.tables:
        show(SETTINGS[number], runs=runs, seed=options.seed)
    print("guarantee: for one replaced record; exact for BNP, both directions. none: the categories are those of the data.")


if __name__ == "__main__":
    main()
