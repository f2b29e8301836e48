"""How far from the data are records that are meant for use at face value, beside peers that publish noisy counts?

W1 between cumulative shares, in cells, after clamping to the grid; medians over paired runs. Ours: what the default release
measures (its own layout), then as many records as there are confidential ones. Peers: flat noisy counts, hierarchical ones
made consistent (HB), and at delta = 0 those on a partition learnt in private (DAWA); all unclipped, with W1 between signed
cumulative shares, which favours them. DAWA has four variants (sums of buckets by flat noise or by HB, as they are or clipped
and scaled); the one with the least median is shown, chosen anew in every case, which favours it once more; at the end each
stands by itself too ("hb" is what its paper does). A secret n is the guess for our layout. Geometric means are over both
relations, and over each by itself. A run takes about 0.3 s of one core, the whole list about half an hour; every setting gets
its first run before any gets its second.

    python -m benchmarks.face_value --keep runs.jsonl  # goes on where it was stopped
    python -m benchmarks.face_value --runs 3 --records 1000 10000 --epsilons 0.1 1 --neighbouring add-remove
    python -m benchmarks.face_value --column cps.csv.gz e00200 0:500000:1000 --column adult.csv hours 1:99:1
"""

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product
from pathlib import Path
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from benchmarks.histogram_peers import flat_counts, hierarchical_counts, partitioned_counts
from privurn.counts import CountTable
from privurn.inference.trees.nearest import face_value_counts
from privurn.mechanisms.noisy_tree import PerturbedTree
from privurn.mechanisms.noisy_tree_recipe import calibrate_noisy_tree
from privurn.mechanisms.tree_measurements import TreeMeasurements
from privurn.privacy.profile import Guarantee, Neighbouring

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

CELLS = 4096
RUNS = 20
RELATIONS: tuple[Neighbouring, ...] = ("replace-one", "add-remove")
SIZES, EPSILONS, DELTAS = (1_000, 10_000, 1_000_000), (0.1, 1.0, 4.0), (0.0, 1e-6)
MODERATE = 1e4
"""n epsilon up to which at most 0.5 of HB's W1 is asked for, as a geometric mean; 0.65 beyond."""


def shapes(cells: int = CELLS) -> dict[str, Floats]:
    """Five laws on a line of cells."""
    x = np.arange(cells) * (CELLS / cells)
    rng = np.random.default_rng(5)
    sparse = np.zeros(cells)
    sparse[rng.choice(cells, 25, replace=False)] = rng.dirichlet(np.full(25, 0.5))
    smooth = np.exp(-0.5 * (np.log((x + 1.0) / 900.0) / 0.6) ** 2) / (x + 1.0)
    smooth /= smooth.sum()
    spikes, at = 0.4 * smooth, np.arange(0, cells, max(2, 100 * cells // CELLS))
    heaped = smooth[at] * np.where(np.arange(len(at)) % 5 == 0, 5.0, 1.0)
    spikes[at] += 0.6 * heaped / heaped.sum()
    bimodal = np.exp(-0.5 * ((x - 800.0) / 150.0) ** 2) + 0.6 * np.exp(-0.5 * ((x - 3000.0) / 80.0) ** 2)
    bimodal[(x < 400) | ((x > 1100) & (x < 2750)) | (x > 3300)] = 0.0
    flat = np.full(cells, 1.0 / cells)
    return {"sparse": sparse, "spikes": spikes, "smooth": smooth, "bimodal": bimodal / bimodal.sum(), "uniform": flat}


@dataclass(frozen=True)
class Case:
    """Where counts of cells come from: all of a column's, or records drawn anew in every run."""

    name: str
    counts: Callable[[np.random.Generator], Whole]
    n: int


def drawn_cases(sizes: tuple[int, ...], laws: dict[str, Floats]) -> list[Case]:
    """Records drawn from laws."""

    def case(name: str, law: Floats, n: int) -> Case:
        return Case(name, lambda rng: rng.multinomial(n, law), n)

    return [case(name, law, n) for n in sizes for name, law in laws.items()]


def demo_counts() -> Whole:
    """Incomes of the demo, on the grid 0:200000:1000."""
    from privurn.simulated.incomes import incomes

    return on_grid(incomes().astype(np.float64), "0:200000:1000")


def column_counts(file: str, column: str, grid: str) -> Whole:
    """Counts of a column of a CSV file on a grid; missing values are left out."""
    import duckdb

    asked = f'SELECT "{column}" AS x FROM read_csv(?) WHERE "{column}" IS NOT NULL'
    found = duckdb.connect().execute(asked, [file]).fetchnumpy()["x"]
    return on_grid(np.asarray(found, np.float64), grid)


def on_grid(values: Floats, grid: str) -> Whole:
    """Counts of a grid's points, values clamped to its ends."""
    low, high, step = (float(each) for each in grid.split(":"))
    points = round((high - low) / step) + 1
    cells = np.clip(np.rint((values - low) / step), 0, points - 1).astype(np.int64)
    return np.bincount(cells, minlength=points)


def distance(shares: Floats, counts: Whole) -> float:
    """W1 in cells, between signed cumulative shares."""
    return float(np.abs(np.cumsum(shares - counts / counts.sum())).sum())


def mean_error(shares: Floats, counts: Whole) -> float:
    """Of the mean over the mean, both counted from the low end of the grid."""
    cells = np.arange(len(counts))
    return float(shares @ cells * counts.sum() / (counts @ cells) - 1.0)


@cache
def calibrated(n: int, cells: int, guarantee: Guarantee) -> PerturbedTree:
    """What the default release measures at this guarantee."""
    return calibrate_noisy_tree(n=n, shape=(cells,), guarantee=guarantee, guess=n)


def measure(counts: Whole, guarantee: Guarantee, rng: np.random.Generator) -> TreeMeasurements:
    """The same with simulated noise."""
    mechanism = calibrated(int(counts.sum()), len(counts), guarantee)
    return mechanism.measurements(mechanism.simulate(CountTable(np.flatnonzero(counts), counts[counts > 0]), rng=rng))


def published_records(counts: Whole, guarantee: Guarantee, rng: np.random.Generator) -> tuple[Floats, float]:
    """Shares of as many published records, and the processor time that making them took."""
    measured = measure(counts, guarantee, rng)
    begin = time.process_time()
    records = face_value_counts(measured, records=int(counts.sum()), rng=rng)
    return np.asarray(records / counts.sum(), np.float64), time.process_time() - begin


def scaled(noisy: Floats) -> Floats:
    """Shares, negative numbers cut off."""
    kept = np.maximum(noisy, 0.0)
    return np.asarray(kept / max(kept.sum(), 1e-9), np.float64)


@dataclass
class Distances:
    """W1 of every run, by who published: `ours`, `flat`, `hb`, and at delta = 0 DAWA's variants; seconds and `mean` of ours."""

    runs: list[dict[str, float]] = field(default_factory=list)

    @staticmethod
    def measured(counts: Whole, guarantee: Guarantee, rng: np.random.Generator) -> dict[str, float]:
        """One run of each."""
        n, known = int(counts.sum()), guarantee.neighbouring == "replace-one"
        shares, seconds = published_records(counts, guarantee, rng)
        found = {"seconds": seconds, "ours": distance(shares, counts), "mean": mean_error(shares, counts)}
        found["flat"] = distance(flat_counts(counts, guarantee, rng) / n, counts)
        found["hb"] = distance(hierarchical_counts(counts, guarantee, rng, total=n if known else None) / n, counts)
        if guarantee.delta == 0.0:
            made = partitioned_counts(counts, guarantee, rng, total=n if known else None)
            for name, noisy in zip(("flat", "hb"), made, strict=True):
                found[f"dawa {name}"] = distance(noisy / n, counts)
                found[f"dawa {name} scaled"] = distance(scaled(noisy), counts)
        return found

    def of(self, name: str) -> Floats:
        """The distances of one of them."""
        return np.array([each[name] for each in self.runs])

    def best(self, *names: str) -> str:
        """The one with the least median."""
        return min(names, key=lambda each: float(np.median(self.of(each))))

    def ratio(self, peer: str) -> float:
        """Of the medians."""
        return float(np.median(self.of("ours")) / np.median(self.of(peer)))

    @property
    def to_dawa(self) -> float | None:
        """Ratio to its best variant."""
        return self.ratio(self.best(*self.variants)) if self.variants else None

    @property
    def variants(self) -> list[str]:
        """Of DAWA, by name."""
        return [each for each in self.runs[0] if each.startswith("dawa")]

    @property
    def better(self) -> tuple[float, float]:
        """Ratio to the better of flat and HB, and twice the standard error of the paired ratio, of runs with an error."""
        peer = self.best("flat", "hb")
        ratio, ours, theirs = self.ratio(peer), self.of("ours"), self.of(peer)
        told = (ours > 0.0) & (theirs > 0.0)  # little noise on few cells may be none at all
        return ratio, 2.0 * ratio * float(np.std(np.log(ours[told] / theirs[told]))) / np.sqrt(told.sum())


class Kept:
    """Runs in a file of JSON lines, so that a measurement can be stopped and gone on with; None: in memory only."""

    def __init__(self, file: str | None) -> None:
        self.file = None if file is None else Path(file)
        lines = self.file.read_text().splitlines() if self.file is not None and self.file.exists() else []
        self.found = {each["key"]: each["found"] for each in map(json.loads, lines)}

    def get(self, key: str, measure: Callable[[], dict[str, float]]) -> dict[str, float]:
        """What was found before, or is found now."""
        if key not in self.found:
            self.found[key] = measure()
            if self.file is not None:
                with self.file.open("a") as out:
                    out.write(json.dumps({"key": key, "found": self.found[key]}) + "\n")
        found: dict[str, float] = self.found[key]
        return found


def measure_all(cases: list[Case], guarantees: list[Guarantee], *, runs: int, kept: Kept) -> None:
    """Every setting once, and again; then a line for each, and geometric means at the end."""
    found = {(case, guarantee): Distances() for case in cases for guarantee in guarantees}
    for run, (case, guarantee) in product(range(runs), found):
        key = f"{case.name} {setting(case, guarantee)} {guarantee.neighbouring} {run}"
        rng = np.random.default_rng([run, crc32(key.encode())])  # settings of their own noise: else all fail where one does
        found[case, guarantee].runs.append(kept.get(key, lambda: Distances.measured(case.counts(rng), guarantee, rng)))  # noqa: B023
    show(found)


def setting(case: Case, guarantee: Guarantee) -> str:
    """The first columns of a line."""
    return f"{case.n:9,}  {guarantee.epsilon:7g}  {guarantee.delta:7g}"


def show(found: dict[tuple[Case, Guarantee], Distances]) -> None:
    """All lines."""
    logs: dict[str, list[float]] = {}
    worst = 0.0
    print(
        f"{'n':>9}  epsilon    delta  column              W1  mean off   of HB  of DAWA  of the better of flat and HB (2 s.e.)"
    )
    for (case, guarantee), each in found.items():
        to_better, error = each.better
        worst = max(worst, to_better - error)
        to_dawa = each.to_dawa
        dawa = "-" if to_dawa is None else f"{to_dawa:.2f}"
        ours = f"{np.median(each.of('ours')):9.3g}  {np.median(np.abs(each.of('mean'))):8.2%}"
        parts = f"{ours}  {each.ratio('hb'):6.2f}  {dawa:>7}  {to_better:.2f} ({error:.2f})"
        print(f"{setting(case, guarantee)}  {case.name:14} {parts}  {guarantee.neighbouring}", flush=True)
        size = "up to" if case.n * guarantee.epsilon <= MODERATE else "beyond"
        for only in ("", f", only {guarantee.neighbouring}"):
            logs.setdefault(f"HB, n epsilon {size} 1e4{only}", []).append(np.log(each.ratio("hb")))
        if to_dawa is not None:
            logs.setdefault(f"DAWA, n = {case.n:,}, epsilon = {guarantee.epsilon:g}", []).append(np.log(to_dawa))
        for variant in each.variants:
            name = f"DAWA, n = {case.n:,}, epsilon = {guarantee.epsilon:g}, only {variant.removeprefix('dawa ')}"
            logs.setdefault(name, []).append(np.log(each.ratio(variant)))
    for name, values in logs.items():
        targets = {"HB, n epsilon up to 1e4": " (target 0.5)", "HB, n epsilon beyond 1e4": " (target 0.65)"}
        target = targets.get(name.split(", only")[0], "")  # of each relation by itself too: one does not make up for the other
        print(f"geometric mean of W1 against {name}: {np.exp(np.mean(values)):.2f}{target}")
    print(f"worst case against the better of flat and HB, less two standard errors: {worst:.2f} (target 1.1)")
    for delta in sorted({guarantee.delta for _, guarantee in found} - {0.0}):
        ratios, alike = without_delta(found, delta)
        if ratios:
            medians, clear = np.array(ratios).T
            mean = np.exp(np.mean(np.log(medians)))
            largest = f"largest of {len(ratios)} settings {max(medians):.2f}, less two standard errors {max(clear):.2f}"
            print(f"W1 with delta = 0 over that with {delta:g}: geometric mean {mean:.2f}, {largest} (target 1.5)")
        print(f"the same is measured with delta = 0 and {delta:g} in {alike} more settings")
    print(f"slowest posterior and records: {max(each.of('seconds').max() for each in found.values()):.2f} s")


def without_delta(found: dict[tuple[Case, Guarantee], Distances], delta: float) -> tuple[list[tuple[float, float]], int]:
    """Of each setting: our W1 with delta = 0 over that with this delta, medians; and that less two standard errors.

    Left out, and counted, are settings where the same is measured with either: whatever their ratio is, it is chance.
    """
    ratios, same = [], 0
    for (case, guarantee), each in found.items():
        with_delta = replace(guarantee, delta=delta)
        other = found.get((case, with_delta)) if guarantee.delta == 0.0 else None
        if other is None:
            continue
        cells = len(case.counts(np.random.default_rng(0)))
        if alike(calibrated(case.n, cells, guarantee), calibrated(case.n, cells, with_delta)):
            same += 1
            continue
        ours, theirs = each.of("ours"), other.of("ours")
        ratio = float(np.median(ours) / np.median(theirs))
        variances = [np.var(np.log(runs[runs > 0.0])) / max(1, (runs > 0.0).sum()) for runs in (ours, theirs)]
        ratios.append((ratio, ratio * (1.0 - 2.0 * float(np.sqrt(sum(variances))))))
    return ratios, same


def alike(one: PerturbedTree, other: PerturbedTree) -> bool:
    """Whether they measure the same, with noise of the same size to a thousandth."""
    same = (one.noise, one.depths, one.tied) == (other.noise, other.depths, other.tied)
    return same and np.allclose(one.scales, other.scales, rtol=1e-3)


def main() -> None:
    counts = np.ones(CELLS, np.int64)
    published_records(counts, Guarantee(epsilon=1.0, delta=0.0), np.random.default_rng(0))  # compile
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--records", type=int, nargs="+", default=SIZES, help="of drawn shapes")
    parser.add_argument("--epsilons", type=float, nargs="+", default=EPSILONS)
    parser.add_argument("--deltas", type=float, nargs="+", default=DELTAS)
    parser.add_argument("--neighbouring", choices=RELATIONS, nargs="+", default=RELATIONS)
    parser.add_argument("--column", nargs=3, action="append", default=[], metavar=("FILE", "COLUMN", "GRID"))
    parser.add_argument("--resample", action="store_true", help="draw --records of each column instead of taking all")
    parser.add_argument("--keep", metavar="FILE", help="JSON lines of the runs: those that it holds are not made again")
    parser.add_argument("--only-columns", action="store_true", help="leave the drawn shapes and the demo out")
    asked = parser.parse_args() if __name__ == "__main__" else parser.parse_args([])
    columns = {f"{name} {grid}": column_counts(file, name, grid) for file, name, grid in asked.column}
    if not asked.only_columns:
        columns["demo"] = demo_counts()
    sizes = tuple(asked.records)
    cases = [] if asked.only_columns else drawn_cases(sizes, shapes())
    if asked.resample:
        cases += drawn_cases(sizes, {name: each / each.sum() for name, each in columns.items()})
    else:
        cases += [Case(name, lambda _, each=each: each, int(each.sum())) for name, each in columns.items()]  # type: ignore[misc]
    guarantees = [
        Guarantee(epsilon=epsilon, delta=delta, neighbouring=neighbouring)
        for neighbouring in asked.neighbouring
        for delta in asked.deltas
        for epsilon in asked.epsilons
    ]
    measure_all(cases, guarantees, runs=asked.runs, kept=Kept(asked.keep))


if __name__ == "__main__":
    main()
