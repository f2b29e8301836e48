"""Which depths of a noisy tree should be measured? Distances of the posterior mean from the data, layout by layout.

Five shapes over 4,096 cells, n records drawn from each, counts at the depths of a layout under noise whose deviation would be
sqrt(2)/epsilon if the leaves alone were measured (Laplace noise: epsilon under add-remove neighbours, delta = 0); twice that
where n is public (`--public`, replace-one neighbours). Printed are
the Wasserstein distance between the posterior mean of the shares and the data's, in 1/10,000 of the range, and the total
variation distance: geometric means over the shapes of the means over the repetitions. Columns of one's own, on 4,096 cells,
take the place of the shapes, and layouts that of those which are compared with the rule; weights are shares of the budget. The
noise is independent; with `--tied` every layout with Laplace noise is shown once more with the noise tied as the default's is.

    python -m benchmarks.tree_layout --repeats 1
    python -m benchmarks.tree_layout --column cps.csv.gz e00400 0:40950:10 --layout 3,12:7,3 --layout 3,7,12:1,1,1 --laplace
    python -m benchmarks.tree_layout --public --laplace --records 10000 --epsilons 4 --layout 4,8,12:1,1,1 --layout 4,8,12:2,2,1
"""

import argparse
import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from benchmarks.face_value import column_counts
from privurn.cell_tree import CellTree
from privurn.counts import CountTable
from privurn.inference.trees.approximation import approximate_posterior
from privurn.mechanisms.noisy_tree import PerturbedTree
from privurn.mechanisms.noisy_tree_recipe import tied_depths
from privurn.mechanisms.tree_layout import TreeLayout, tree_layout
from privurn.privacy.laws.noisy_tree import TreeNoise

CELLS = 4096
SETTINGS = ((1_000, 0.1), (1_000, 1.0), (10_000, 1.0), (10_000, 4.0), (1_000_000, 0.1), (1_000_000, 4.0))
Floats = NDArray[np.float64]


def shapes(rng: np.random.Generator) -> dict[str, Floats]:
    """Probabilities of the cells: few cells, round numbers, two humps, two humps with nothing between, all alike."""
    x = (np.arange(CELLS) + 0.5) / CELLS

    def hump(middle: float, width: float) -> Floats:
        return np.exp(-0.5 * ((x - middle) / width) ** 2)

    sparse = np.zeros(CELLS)
    sparse[rng.choice(CELLS, 40, replace=False)] = 0.2 + rng.pareto(1.2, 40)
    spikes = 0.5 * hump(0.3, 0.18) / hump(0.3, 0.18).sum()
    for step, share in ((256, 0.2), (64, 0.3)):
        round_numbers = np.where(np.arange(CELLS) % step == 0, hump(0.3, 0.2), 0.0)
        spikes += share * round_numbers / round_numbers.sum()
    smooth = hump(0.35, 0.12) + 0.3 * hump(0.7, 0.08) + 0.02
    gaps = np.where((x > 0.1) & (x < 0.25), hump(0.17, 0.03), 0.0) + np.where((x > 0.6) & (x < 0.9), 0.7 * hump(0.7, 0.07), 0.0)
    found = {"sparse": sparse, "spikes": spikes, "smooth": smooth, "bimodal": gaps, "uniform": np.ones(CELLS)}
    return {name: each / each.sum() for name, each in found.items()}


def even(depths: tuple[int, ...]) -> TreeLayout:
    return TreeLayout(depths, (1.0 / len(depths),) * len(depths))


def mechanism(layout: TreeLayout, *, noise: TreeNoise, deviation: float, n: int | None) -> PerturbedTree:
    """Noise that costs what the deviation on the leaves alone does: sums of precisions, or of their squares, are kept."""
    precisions = np.array(layout.precisions)
    if noise == "discrete-laplace":
        scales = deviation / math.sqrt(2.0) * precisions.sum() / precisions
    else:
        scales = deviation * math.sqrt((precisions**2).sum()) / precisions
    return PerturbedTree(n=n, shape=(CELLS,), depths=layout.depths, scales=tuple(scales.tolist()), noise=noise)


def posterior_mean(made: PerturbedTree, counts: NDArray[np.int64], rng: np.random.Generator) -> Floats:
    noisy = made.simulate(CountTable.from_cells(np.arange(CELLS), counts), rng=rng)
    found = approximate_posterior(made.measurements(noisy)).counts
    return np.asarray(found / found.sum())


def distances(made: PerturbedTree, shares: Floats, *, n: int, seed: list[int]) -> tuple[float, float]:
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(n, shares)
    gap = posterior_mean(made, counts, rng) - counts / n
    return float(np.abs(np.cumsum(gap)).mean()), 0.5 * float(np.abs(gap).sum())


def figures(made: PerturbedTree, populations: dict[str, Floats], *, n: int, repeats: int) -> tuple[float, float]:
    found = [
        np.mean([distances(made, shares, n=n, seed=[n, i, place]) for i in range(repeats)], axis=0)
        for place, shares in enumerate(populations.values())
    ]
    wasserstein, variation = np.exp(np.mean(np.log(found), axis=0))
    return 1e4 * float(wasserstein), float(variation)


def layout(asked: str) -> TreeLayout:
    """From "2,6,12:2,2,1": depths, and weights that are shared out."""
    depths, weights = asked.split(":")
    precisions = np.array([float(each) for each in weights.split(",")])
    return TreeLayout(tuple(int(each) for each in depths.split(",")), tuple((precisions / precisions.sum()).tolist()))


USUAL = {
    "leaves": even((12,)),
    "5, 12": even((5, 12)),
    "4, 8, 12": even((4, 8, 12)),
    "2, 4, .., 12": even((2, 4, 6, 8, 10, 12)),
}


def compare(
    populations: dict[str, Floats],
    layouts: dict[str, TreeLayout],
    *,
    settings: tuple[tuple[int, float], ...],
    noises: tuple[TreeNoise, ...],
    repeats: int,
    public: bool,
    tied: bool,
) -> None:
    tree = CellTree((CELLS,))
    for noise in noises:
        print(f"\n{noise}: 10,000 W1 / TV\n{'n':>9}{'epsilon':>9}  layout")
        for n, epsilon in settings:
            deviation = (2.0 if public else 1.0) * math.sqrt(2.0) / epsilon
            rule = tree_layout(tree, noise=noise, flat_deviation=deviation, n=n, secret=not public)
            for name, each in (layouts | {f"rule ({', '.join(map(str, rule.depths))})": rule}).items():
                made = mechanism(each, noise=noise, deviation=deviation, n=n if public else None)
                rows = {name: made}
                if tied and noise == "discrete-laplace":
                    rows[f"{name}, tied"] = replace(made, tied=tied_depths(made, n=n))
                for row, one in rows.items():
                    wasserstein, variation = figures(one, populations, n=n, repeats=repeats)
                    print(f"{n:>9,}{epsilon:>9}  {row:24}{wasserstein:8.3g} / {variation:.3g}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=1, help="data sets for each shape and setting")
    parser.add_argument("--column", nargs=3, action="append", default=[], metavar=("FILE", "COLUMN", "GRID"))
    parser.add_argument("--layout", action="append", default=[], metavar="DEPTHS:WEIGHTS", help="for example 2,6,12:2,2,1")
    parser.add_argument("--laplace", action="store_true", help="no Gaussian noise")
    parser.add_argument("--public", action="store_true", help="n is public (replace-one neighbours)")
    parser.add_argument("--tied", action="store_true", help="with noise that sums up as well")
    parser.add_argument("--records", type=int, nargs="+", help="with --epsilons, in place of the usual settings")
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.1, 1.0])
    asked = parser.parse_args() if __name__ == "__main__" else parser.parse_args([])
    counts = {f"{name} {grid}": column_counts(file, name, grid) for file, name, grid in asked.column}
    populations = {name: each / each.sum() for name, each in counts.items()} or shapes(np.random.default_rng(5))
    compare(
        populations,
        {each: layout(each) for each in asked.layout} or USUAL,
        settings=tuple((n, each) for n in asked.records for each in asked.epsilons) if asked.records else SETTINGS,
        noises=("discrete-laplace",) if asked.laplace else ("discrete-laplace", "discrete-gaussian"),
        repeats=asked.repeats,
        public=asked.public,
        tied=asked.tied,
    )


if __name__ == "__main__":
    main()
