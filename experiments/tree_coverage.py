"""Do intervals from a noisy tree cover? Fixed truths, resampled with replacement; the default posterior, and combined copies.

    python -m experiments.tree_coverage [--runs R] [--only SETTING ...] [--minutes M] [--file FILE.jsonl]

For every setting: how often 95% intervals of the mean, the quartiles and ten ranges hold the truth, on average over them and in
the worst of them; how often they lie above the truth and below it; the width of the mean's interval over that of the plain one
from the confidential records; and coverage of the same figures, on average and in the worst of them, from 20 combined copies.

Every run is a line of the file, and the same command goes on where the file ends; every setting gets its first run before any
gets its second. About a second of one core a run.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.face_value import shapes
from numpy.typing import NDArray

from experiments.resumed import resumed
from privurn.counts import CountTable
from privurn.domain import Grid, JointDomain
from privurn.inference.counts.functionals import parse_functionals
from privurn.inference.counts.plans import reduce
from privurn.inference.trees.combine import combine, combine_quantile
from privurn.inference.trees.copies import drawn_tables
from privurn.inference.trees.independent import IndependentDraws
from privurn.mechanisms.noisy_tree_recipe import calibrate_noisy_tree
from privurn.privacy.profile import Guarantee

CELLS = 1024
DRAWS = 400
COPIES = 20
WIDTH = CELLS // 10
QUARTILES = (0.25, 0.5, 0.75)
RANGES = {f"P({low}<=x<{low + WIDTH})": low for low in range(0, 10 * WIDTH, WIDTH)}
ASKED = ("mean", *(f"q{each}" for each in QUARTILES), *RANGES)
SETTINGS = {
    "smooth-1": ("smooth", 10_000, 1.0, 0.0, "replace-one"),
    "smooth-0.1": ("smooth", 10_000, 0.1, 0.0, "replace-one"),
    "spikes-1": ("spikes", 10_000, 1.0, 1e-6, "replace-one"),
    "sparse-1": ("sparse", 5_000, 1.0, 0.0, "add-remove"),
    "bimodal-0.3": ("bimodal", 5_000, 0.3, 1e-6, "replace-one"),
    "uniform-1": ("uniform", 5_000, 1.0, 0.0, "add-remove"),
    "smooth-large": ("smooth", 50_000, 1.0, 0.0, "replace-one"),
    "spikes-large": ("spikes", 50_000, 1.0, 1e-6, "add-remove"),
}
"""Law, records, epsilon, delta, relation."""


def run(setting: str, number: int) -> dict[str, Any]:
    """One data set: truth and interval of each figure, the relative width of the mean's, and whether copies held it."""
    law_name, n, epsilon, delta, relation = SETTINGS[setting]
    law, values = shapes(CELLS)[law_name], np.arange(CELLS)
    asked = reduce(parse_functionals(ASKED), domain=JointDomain({"x": Grid(0, CELLS - 1, 1)}))
    truth = asked.evaluate(law)
    guarantee = Guarantee(epsilon=epsilon, delta=delta, neighbouring=relation)  # type: ignore[arg-type]
    secret = relation == "add-remove"
    mechanism = calibrate_noisy_tree(n=None if secret else n, guess=n, shape=(CELLS,), guarantee=guarantee)
    rng = np.random.default_rng([number, list(SETTINGS).index(setting)])
    counts = rng.multinomial(n, law)
    table = CountTable(np.flatnonzero(counts), counts[counts > 0])
    measured = mechanism.measurements(mechanism.simulate(table, rng=rng))
    drawn = IndependentDraws(measured).draw(DRAWS, rng=rng)
    rows = [asked.evaluate(each) for each in drawn.masses.T]
    intervals = {each: np.quantile([row[each] for row in rows], [0.025, 0.975]).tolist() for each in asked.names}
    plain = float(np.sqrt(counts @ values**2 / n - (counts @ values / n) ** 2)) / np.sqrt(n)
    return {
        "setting": setting,
        "run": number,
        "figures": {each: [truth[each], *intervals[each]] for each in asked.names},
        "width": float(np.subtract(*intervals["mean"][::-1])) / (2 * 1.96 * plain),
        "copies": by_copies(list(drawn_tables(measured, COPIES, rng=rng))),
    }


def by_copies(tables: list[NDArray[np.int64]]) -> dict[str, tuple[float, float]]:
    """Interval of each figure as an analyst would work it out from the copies."""
    values, sizes = np.arange(CELLS), [int(each.sum()) for each in tables]
    shares = [each / n for each, n in zip(tables, sizes, strict=True)]
    means = [float(each @ values) for each in shares]
    spreads = [float(each @ values**2) - mean**2 for each, mean in zip(shares, means, strict=True)]
    found = {"mean": combine(means, np.divide(spreads, sizes)).interval()}
    for level in QUARTILES:
        found[f"q{level}"] = combine_quantile([np.repeat(values, each) for each in tables], level).interval()
    for name, low in RANGES.items():
        q = np.array([each[low : low + WIDTH].sum() for each in shares])
        found[name] = combine(q, q * (1.0 - q) / sizes).interval()
    return found


def table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """A line for each setting."""
    worst_is = "worst (too high, too low)"
    yield f"{'setting':13}{'runs':>5}{'covered':>9}{'mean':>7}  {worst_is:45}{'width':>6}{'copies':>8}{'mean':>7}  {worst_is}"
    for setting in dict.fromkeys(row["setting"] for row in rows):
        own = [row for row in rows if row["setting"] == setting]
        figures = [[[*row["figures"][each]] for each in ASKED] for row in own]
        copies = [[[row["figures"][each][0], *row["copies"][each]] for each in ASKED] for row in own]
        width = np.mean([row["width"] for row in own])
        mean, first, told = covered(figures)
        mean_of_copies, first_of_copies, told_of_copies = covered(copies)
        parts = f"{len(own):>5}{mean:>9.3f}{first:>7.3f}  {told:45}{width:>6.2f}"
        yield f"{setting:13}{parts}{mean_of_copies:>8.3f}{first_of_copies:>7.3f}  {told_of_copies}"


def covered(rows: list[list[list[float]]]) -> tuple[float, float, str]:
    """Of truths and intervals of all runs: how often they hold on average, of the first figure, and of the worst in words."""
    truth, low, high = np.array(rows).transpose(2, 1, 0)
    above, below = (low > truth + 1e-12).mean(axis=1), (high < truth - 1e-12).mean(axis=1)
    held = 1.0 - above - below
    worst = int(np.argmin(held))
    return held.mean(), held[0], f"{held[worst]:.3f} {ASKED[worst]} ({above[worst]:.3f}, {below[worst]:.3f})"


def main() -> None:
    """Go on where the file ends, until the time is over; then the table."""
    parser = argparse.ArgumentParser(prog="python -m experiments.tree_coverage", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--only", nargs="+", choices=SETTINGS, default=list(SETTINGS), metavar="SETTING")
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--file", type=Path, default=Path("tree_coverage.jsonl"))
    options = parser.parse_args()
    found = resumed(run, options.only, runs=options.runs, number="run", file=options.file, minutes=options.minutes)
    for line in table(found):
        print(line)


if __name__ == "__main__":
    main()
