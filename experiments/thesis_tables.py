"""The thesis's tables of estimated delta again: its figure, our simulation, and the exact value beside them.

    python -m experiments.thesis_tables [--tables 1 2 5] [--simulations N] [--datasets D] [--seed S] [--quick] [--json]

R. Lazzarini, Bayesian nonparametric privacy-preserving synthetic data generation (M.Sc. thesis, Politecnico di Milano, 2022-23)
estimates delta~(epsilon) of its theorem 4.1, corollary 4.1 or proposition 4.2 by simulating releases of one table, in
tables 1-6 and 9-12. Here each is simulated again (papers.monte_carlo), computed exactly
(papers.thesis), and put beside what it leaves out: delta# of the later paper's theorem 1, and the tight
two-sided delta (privurn.privacy.instance.cost). Nothing is confidential: the tables of counts are simulated.
"""

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray
from papers.monte_carlo import monte_carlo_instance
from papers.thesis import proposition_4_2, theorem_4_1

from privurn.privacy.instance.cost import instance_delta
from privurn.privacy.instance.multiplicities import Multiplicities

Counts = NDArray[np.int64]

THEOREM = "theorem 4.1"
COROLLARY = "corollary 4.1"
PROPOSITION = "proposition 4.2"


@dataclass(frozen=True, kw_only=True)
class ThesisTable:
    """One table of the thesis: delta~(epsilon) of `statement`, m = `records` across, epsilon down.

    `published` holds, for each epsilon, (estimate, error) as printed; the error is None where none is printed. `simulate`
    makes a table of counts like the one behind it.
    """

    number: int
    statement: str
    n: int
    strength: float
    discount: float
    records: tuple[int, ...]
    published: dict[float, tuple[tuple[float, float | None], ...]]
    simulate: "Callable[[ThesisTable, np.random.Generator], Counts]"
    about: str
    note: str


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One cell: figures of delta~ (published, simulated, exact, lowest and highest over the simulated data sets) ...

    ... and of the same release by the later paper's delta# (`forward`) and by the tight divergence (`two_sided`).
    """

    table: int
    statement: str
    epsilon: float
    records: int
    published: float
    published_error: float | None
    estimate: float
    standard_error: float
    simulations: int
    exact: float
    lowest: float
    median: float
    highest: float
    forward: float
    forward_estimate: float
    two_sided: float
    two_sided_estimate: float


# Simulated data. The seed is ordinary: these tables are nobody's.


def without_singletons(table: ThesisTable, rng: np.random.Generator) -> Counts:
    """N records of a Pitman-Yor sample, those dropped whose value came once: the thesis's statements exclude them.

    Records are drawn until n of them share their value with another one (the last draw may bring two: then one record of
    the commonest value goes).
    """
    counts: list[int] = []
    drawn = kept = 0
    while kept < table.n:
        position = rng.random() * (table.strength + drawn)
        ends = np.cumsum(np.asarray(counts, dtype=float) - table.discount)
        value = int(np.searchsorted(ends, position, side="right"))
        drawn += 1
        if value == len(counts):
            counts.append(1)
        else:
            counts[value] += 1
            kept += 2 if counts[value] == 2 else 1
    shared = np.array([count for count in counts if count > 1], np.int64)
    shared[shared.argmax()] -= kept - table.n
    return shared


def like_the_scores(table: ThesisTable, rng: np.random.Generator) -> Counts:
    """School marks from 0 to 1 in steps of 0.01, with the mean and standard deviation of the thesis's table 7."""
    marks = np.rint(100.0 * rng.beta(5.1, 4.06, table.n)).astype(np.int64)
    counts = np.bincount(marks)
    return np.maximum(counts[counts > 0], 2)


def like_the_incomes(table: ThesisTable, rng: np.random.Generator) -> Counts:
    """3263 values, 1436 of them held once and then doubled as the thesis does, the others falling like 1/rank."""
    singles, others = 1436, 3263 - 1436
    weights = 1.0 / np.arange(1.0, others + 1.0)
    rest = 2 + rng.multinomial(table.n - 2 * singles - 2 * others, weights / weights.sum())
    return np.concatenate([np.full(singles, 2), rest]).astype(np.int64)


# The thesis's settings, and its figures as printed: a row for each epsilon, then estimate and error for each m.

FEW, MANY = (50, 125, 250), (500, 750, 1_250)
SETTINGS: dict[int, tuple[str, int, float, float, tuple[int, ...]]] = {  # statement, n, theta, sigma, m
    1: (THEOREM, 500, 3.0, 0.5, FEW),
    2: (THEOREM, 500, 3.0, 0.2, FEW),
    3: (COROLLARY, 500, 2.0, 0.0, FEW),
    4: (COROLLARY, 500, 5.0, 0.0, FEW),
    5: (PROPOSITION, 500, 3.0, 0.0, FEW),
    6: (PROPOSITION, 500, 5.0, 0.5, FEW),
    7: (COROLLARY, 39_374, 11.6257, 0.0, (5_000,)),
    8: (COROLLARY, 44_816 + 1_436, 2.0, 0.0, (2_000,)),
    9: (THEOREM, 5_000, 3.0, 0.2, MANY),
    10: (COROLLARY, 500, 10.0, 0.0, FEW),
    11: (COROLLARY, 5_000, 3.0, 0.0, MANY),
    12: (PROPOSITION, 5_000, 3.0, 0.5, FEW),
}
PUBLISHED = {
    1: """1    0.6973  0.0202   0.9154  0.0122   0.9768 0.0066
          2    0.6529  0.0210   0.8714  0.0147   0.9577 0.0088
          4    0.0817  0.0120   0.3943  0.0219   0.4459 0.0216
          5    0       0        0       0        0      0""",
    2: """1    0.5969  0.0216   0.6672  0.0208   0.8807 0.01418
          2    0.4009  0.0276   0.6967  0.02032  0.9133 0.0124
          4    0.00009 0.00004  0.0004  0.0008   0.0024 0.0022
          5    0       0        0       0        0      0""",
    3: """1    0.1561  0.0160   0.23830 0.01882  0.7834 0.0181
          1.8  0       0        0.0038  0.00271  0.0558 0.0101
          2.2  0       0        0.00009 0.0004   0.0024 0.0021
          3    0       0        0       0        0      0""",
    4: """1    0.3367  0.02087  0.6776  0.02064  0.9985 0.001709
          2    0.0004  0.00088  0.0759  0.01171  0.0017 0.001819
          2.8  0       0        0       0        0.0003 0.00007
          3    0       0        0       0        0      0""",
    5: """0.5  0.0005  0.0009   0.0128  0.0049   0.0450 0.0091
          1    0       0        0       0        0      0""",
    6: """0.5  0.8183  0.0202   0.9915  0.0031   0.999  0.0040
          0.9  0.00009 0.00044  0.01470 0.0053   0.1793 0.0169
          1.5  0       0        0       0        0      0""",
    7: "4.2 0 -",  # section 7.1, no error printed
    8: "2.5 0 -",  # section 7.2
    9: """1    0.4399  0.0340   0.6903  0.0216   0.7733 0.0184
          2    0.4558  0.0175   0.7591  0.0188   0.5271 0.0220
          3    0.0817  0.0120   0.3943  0.0219   0.4459 0.0216
          4    0.0002  0.0006   0       0        0.0080 0.00394""",
    10: """1   0.4499  0.0220   0.9133  0.9999   0.9999 0.0004
          2    0.00009 0.00044  0.0018  0.0019   0.0939 0.0129
          3    0.00009 0.00044  0.00009 0.00044  0.0006 0.0011
          3.2  0       0        0       0        0      0""",
    11: """1   0.5690  0.0210   0.8842  0.01413  0.9531 0.0179
          2    0       0        0.0005  0.0009   0.0022 0.0020
          4    0       0        0       0        0      0""",
    12: """0.8 0.0779  0.0118   0.1890  0.0120   0.1007 0.0133
          1.1  0       0        0       0        0      0""",
}
ABOUT = {
    7: "Table 7 compares means, quantiles and L2 distances of four mechanisms on school marks that we do not have. Its\n"
    "utility figures are not reproduced; only the privacy setting of its urn is (section 7.1: estimate 0 from 20,000\n"
    "simulations), on simulated marks with the mean and standard deviation that the table gives.",
    8: "Table 8 compares the same figures on a subsample of incomes that we do not have. Its utility figures are not\n"
    "reproduced; only the privacy setting of its urn is (section 7.2: estimate 0 from 10,000 simulations), on simulated\n"
    "counts with as many values and as many doubled singletons.",
}
NOTES = {
    1: "The row epsilon = 4 is printed again, digit for digit, as table 9's row epsilon = 3.",
    2: "Printed figures rise with epsilon at m = 125 and 250, which those of a single table of counts cannot.",
    9: "The row epsilon = 3 is table 1's row epsilon = 4, digit for digit.",
    10: "The error 0.9999 at epsilon = 1, m = 125 is printed so. At epsilon <= 2 a new value released once breaks the\n"
    "condition whatever the data (theta/e^epsilon > 1): delta~ >= 0.59 at m = 50, which rows 1 and 2 do not reach there.",
}


def _rows(text: str) -> dict[float, tuple[tuple[float, float | None], ...]]:
    rows = {}
    for each in text.splitlines():
        epsilon, *figures = each.split()
        pairs = zip(figures[::2], figures[1::2], strict=True)
        rows[float(epsilon)] = tuple((float(value), None if error == "-" else float(error)) for value, error in pairs)
    return rows


TABLES = {
    number: ThesisTable(
        number=number,
        statement=statement,
        n=n,
        strength=strength,
        discount=discount,
        records=records,
        published=_rows(PUBLISHED[number]),
        simulate={7: like_the_scores, 8: like_the_incomes}.get(number, without_singletons),
        about=ABOUT.get(number, ""),
        note=NOTES.get(number, ""),
    )
    for number, (statement, n, strength, discount, records) in SETTINGS.items()
}
DEFAULT = (1, 2, 3, 4, 5, 6, 9, 10, 11, 12)


def exact_thesis_figure(table: ThesisTable, counts: Counts, *, epsilon: float, records: int) -> float:
    """delta~(epsilon) of the table's statement, exactly."""
    figure = proposition_4_2 if table.statement == PROPOSITION else theorem_4_1
    found = figure(
        Multiplicities.of(counts), epsilon=epsilon, records=records, strength=table.strength, discount=table.discount
    )
    if found is None:
        raise ValueError("the statement does not cover this table of counts")
    return found


def reproduce(table: ThesisTable, *, simulations: int, datasets: int, seed: int) -> tuple[list[Counts], Iterator[Cell]]:
    """Simulated tables of counts, and the cells of `table`: simulated for the first one, exact for all of them."""
    rng = np.random.default_rng([seed, table.number])
    samples = [table.simulate(table, rng) for _ in range(datasets)]
    return samples, _cells(table, samples, simulations=simulations, seed=seed)


def _cells(table: ThesisTable, samples: list[Counts], *, simulations: int, seed: int) -> Iterator[Cell]:
    for epsilon, row in table.published.items():
        for records, (published, error) in zip(table.records, row, strict=True):
            exact = [exact_thesis_figure(table, each, epsilon=epsilon, records=records) for each in samples]
            report = instance_delta(
                samples[0], epsilon=epsilon, records=records, strength=table.strength, discount=table.discount
            )
            own_seed = np.random.SeedSequence([seed, table.number, round(10 * epsilon), records]).generate_state(1)[0]
            twin = monte_carlo_instance(
                samples[0],
                epsilon=epsilon,
                records=records,
                strength=table.strength,
                discount=table.discount,
                simulations=simulations,
                seed=int(own_seed),
                multiplicities=2,
            )
            estimate = twin.thesis_proposition if table.statement == PROPOSITION else twin.thesis_theorem
            assert estimate is not None
            yield Cell(
                table=table.number,
                statement=table.statement,
                epsilon=epsilon,
                records=records,
                published=published,
                published_error=error,
                estimate=estimate.value,
                standard_error=estimate.standard_error,
                simulations=simulations,
                exact=exact[0],
                lowest=min(exact),
                median=float(np.median(exact)),
                highest=max(exact),
                forward=report.delta_forward,
                forward_estimate=twin.delta_forward.value,
                two_sided=report.delta,
                two_sided_estimate=twin.delta.value,
            )


def agreement(cells: list[Cell]) -> tuple[int, int]:
    """Pairs of cells of one table that the published figures and the exact medians order alike, and all pairs that differ."""
    alike = pairs = 0
    for i, first in enumerate(cells):
        for second in cells[i + 1 :]:
            step = first.published - second.published
            if step != 0.0:
                pairs += 1
                alike += step * (first.median - second.median) > 0.0
    return alike, pairs


# Printing.


def shown(value: float) -> str:
    """Four decimals, or the power of ten of what would vanish in them."""
    return f"{value:.4f}" if value >= 5e-4 or value == 0.0 else f"{value:.0e}"


def header(table: ThesisTable, samples: list[Counts]) -> str:
    """What is reproduced, from what, and what to read the columns as."""
    sample = samples[0]
    lines = [
        f"Thesis table {table.number}: delta~(epsilon) of {table.statement}; n = {table.n:,}, theta = {table.strength:g}, "
        f"sigma = {table.discount:g}"
    ]
    if table.about:
        lines.append(table.about)
    else:
        lines.append(
            "Data: drawn from the process until n records share their value with another one; values that came once are left\n"
            "out (the statement excludes them; the thesis does not say how its simulated tables met that)."
        )
    lines.append(
        f"The first of {len(samples)} simulated tables has {sample.size} values, {int((sample == 2).sum())} of them held twice."
    )
    if table.statement == PROPOSITION:
        lines.append("Only old values are released; delta# and delta are those of the whole urn, of which that is a function.")
    if table.note:
        lines.append(table.note)
    return "\n".join(lines)


COLUMNS = (
    f"{'epsilon':>7} {'m':>5}  {'published':>16}  {'simulated':>16}  {'exact':>6}  {'over all tables':>16}  "
    f"{'delta# (simulated)':>18}  {'delta, both ways (simulated)':>28}"
)


def line(cell: Cell) -> str:
    """One row of the printed table."""
    published = shown(cell.published) + ("" if cell.published_error is None else f" +- {shown(cell.published_error)}")
    return (
        f"{cell.epsilon:>7g} {cell.records:>5}  {published:>16}  "
        f"{f'{shown(cell.estimate)} +- {cell.standard_error:.4f}':>16}  {shown(cell.exact):>6}  "
        f"{f'{shown(cell.lowest)} .. {shown(cell.highest)}':>16}  "
        f"{f'{shown(cell.forward)} ({shown(cell.forward_estimate)})':>18}  "
        f"{f'{shown(cell.two_sided)} ({shown(cell.two_sided_estimate)})':>28}"
    )


def show(table: ThesisTable, *, simulations: int, datasets: int, seed: int) -> tuple[int, int]:
    """Print one table, row by row; gives its `agreement`."""
    samples, cells = reproduce(table, simulations=simulations, datasets=datasets, seed=seed)
    print(header(table, samples))
    print(COLUMNS)
    done = []
    for cell in cells:
        print(line(cell), flush=True)
        done.append(cell)
    alike, pairs = agreement(done)
    if pairs:
        print(f"Trend: {alike} of the {pairs} pairs of cells that differ in print come in the same order.")
    print()
    return alike, pairs


LEGEND = """\
published  the thesis's estimate and its error as printed (10,000 simulations, one simulated table we do not have)
simulated  the same recipe here, +- one standard error; a 0 only says "below about 3 in the number of simulations"
exact      the probability that the simulation estimates, for the same simulated table; then its range over all of them
delta#     the later paper's theorem 1: one direction only, like delta~, but for one neighbour at a time
delta      the tight figure in both directions: the one to rely on. It never falls below the chance that a record whose
           value nobody shares is released, whatever epsilon
"""


def main() -> None:
    """Parse the arguments and print."""
    parser = argparse.ArgumentParser(prog="python -m experiments.thesis_tables", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tables", type=int, nargs="+", choices=sorted(TABLES), default=list(DEFAULT), metavar="N")
    parser.add_argument("--simulations", type=int, help="releases simulated for each cell (default 10,000)")
    parser.add_argument("--datasets", type=int, help="simulated tables with an exact figure (default 5)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="1,000 simulations and one data set unless given")
    parser.add_argument("--json", action="store_true", help="one list of cells, nothing else")
    arguments = parser.parse_args()
    simulations = arguments.simulations or (1_000 if arguments.quick else 10_000)
    datasets = arguments.datasets or (1 if arguments.quick else 5)
    chosen = [TABLES[number] for number in arguments.tables]
    if arguments.json:
        cells = [
            asdict(cell)
            for table in chosen
            for cell in reproduce(table, simulations=simulations, datasets=datasets, seed=arguments.seed)[1]
        ]
        print(json.dumps(cells, indent=1))
        return
    trend = [show(table, simulations=simulations, datasets=datasets, seed=arguments.seed) for table in chosen]
    if len(chosen) > 1:
        alike, pairs = (sum(each) for each in zip(*trend, strict=True))
        print(f"All tables: {alike} of the {pairs} pairs of cells that differ in print come in the same order.\n")
    print(LEGEND)
    if not {7, 8} & set(arguments.tables):
        print("Tables 7 and 8 compare the utility of mechanisms on real data; --tables 7 8 shows their privacy setting.")


if __name__ == "__main__":
    main()
