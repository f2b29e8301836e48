"""How wide is the interval of a mean beside the one from the data themselves?

Lognormal incomes, replace-one, n = 5,000, (1, 1e-6), 20 to 2,000 cells, `privurn.infer` at its defaults: the width of the 95%
interval of the mean over that of the confidential records, 2 x 1.96 sd/sqrt(n), averaged over data sets. The default release
has a limit, 1.35; noisy counts of the cells and the urn stand beside it.

    python -m benchmarks.mean_widths [data sets, 10]
"""

import sys
import warnings

import numpy as np
from experiments.fixed_truths import TOP, law, seen

import privurn
from privurn.counts import CountTable
from privurn.errors import InferenceWarning
from privurn.mechanisms.choice import choose
from privurn.mechanisms.recipe import Public

N, LIMIT, REACH = 5000, 1.35, 1.959964
RECIPES = {"default": privurn.NoisyTree(), "noisy counts": privurn.NoisyCounts(publish="counts"), "urn": privurn.Urn()}
CELLS = (20, 200, 2000)


def ratio(name: str, cells: int, number: int) -> float:
    """Of one data set."""
    domain, rng = privurn.JointDomain({"x": privurn.Grid(0, TOP, TOP // cells)}), np.random.default_rng([number, cells])
    guarantee = privurn.Guarantee(epsilon=1.0, delta=1e-6)
    mechanism, _ = choose(RECIPES[name], Public(n=N, cells=cells + 1, guarantee=guarantee, domain=domain))
    counts, values = rng.multinomial(N, law("lognormal", cells)), np.linspace(0.0, TOP, cells + 1)
    table = CountTable(np.flatnonzero(counts), counts[counts > 0])
    observed = seen(mechanism, domain, mechanism.simulate(table, rng=rng))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InferenceWarning)
        [row] = privurn.infer(observed, ask="mean", run=privurn.Run(seed=number)).summary()
    mean = counts @ values / N
    deviation = np.sqrt(counts @ (values - mean) ** 2 / (N - 1))
    return float((row.upper - row.lower) / (2.0 * REACH * deviation / np.sqrt(N)))


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    for name in RECIPES:
        for cells in CELLS:
            found = [ratio(name, cells, number) for number in range(runs)]
            met = "" if name != "default" else f"  limit {LIMIT}: {'met' if np.mean(found) <= LIMIT else 'NOT MET'}"
            shown = f"{np.mean(found):6.2f} times the non-private width on average, {max(found):.2f} at most"
            print(f"{name:13} {cells:5,} cells: {shown}{met}", flush=True)


if __name__ == "__main__":
    main()
