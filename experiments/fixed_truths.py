"""Coverage of 90% intervals at fixed truths, through `privurn.infer` at its defaults; beside it the unbiased estimate.

    python -m experiments.fixed_truths [--data-sets R] [--only WORD ...] [--minutes M] [--file FILE.jsonl]

Truths: lognormal incomes, the same heaped on round numbers, two humps, and a sparse one. 20, 200 and 2,000 cells; n = 500,
5,000 and 100,000; epsilon 0.1 and 1 (delta 1e-6, n public); the default release, flat noisy counts and the urn. Asked for:
mean, median, 90% quantile, and the shares beyond 50,000 and 100,000, all of the population.

Every data set is a line of the file, and a run takes up where the file ends: the same command goes on. A data set takes about
0.3 s of one core at 200 cells, some seconds at 2,000 and at 20 (a Markov chain), so that the full cross of 216 settings with 20
data sets takes about 3 hours. The table at the end says for every setting how often intervals held the truth (figures of which
the release tells little are left out), and how often the 90% interval of the unbiased estimate did.
"""

import argparse
import time
import warnings
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import privurn
from experiments.resumed import resumed
from privurn.counts import CountTable
from privurn.errors import InferenceWarning
from privurn.inference.cautions import tells_little
from privurn.inference.counts.functionals import parse_functionals
from privurn.inference.counts.plans import reduce
from privurn.inference.counts.released import Observed
from privurn.mechanisms.choice import choose
from privurn.mechanisms.likelihood import Numbers
from privurn.mechanisms.recipe import Public

TOP = 200_000
ASKED = ("mean", "q0.5", "q0.9", "P(x>50000)", "P(x>100000)")
LEVEL = 0.9
WITHIN = 1.6448536
DRAWS = 250
MECHANISMS = {"default": privurn.NoisyTree(), "noisy counts": privurn.NoisyCounts(publish="counts"), "urn": privurn.Urn()}
SETTINGS = {
    f"{truth}, {cells} cells, n {n}, epsilon {epsilon:g}, {name}": (truth, cells, n, epsilon, name)
    for truth, cells, n, epsilon, name in product(
        ("lognormal", "heaped", "bimodal", "sparse"), (20, 200, 2000), (500, 5000, 100_000), (1.0, 0.1), MECHANISMS
    )
}


def law(truth: str, cells: int) -> NDArray[np.float64]:
    """Probabilities of the points of the grid."""
    from scipy.stats import norm

    values = np.linspace(0.0, TOP, cells + 1)
    ends = np.append(values[:-1] + 0.5 * np.diff(values), np.inf)
    if truth == "bimodal":
        below = 0.6 * norm.cdf(ends, 30_000, 8_000) + 0.4 * norm.cdf(ends, 110_000, 15_000)
    else:
        below = norm.cdf(np.log(ends), 10.3, 0.6)
    shares = np.diff(below, prepend=0.0)
    if truth == "heaped":
        round_ones = np.arange(cells + 1) % 5 == 0
        shares = 0.4 * shares + 0.6 * np.where(round_ones, shares, 0.0) / shares[round_ones].sum()
    if truth == "sparse":
        shares = np.where(np.random.default_rng(7).random(cells + 1) < 0.1, shares + 0.01, 0.0)
    return np.asarray(shares / shares.sum())


def run(setting: str, number: int) -> dict[str, Any]:
    """One data set: interval, truth, unbiased estimate and whether little is told, for each figure."""
    truth, cells, n, epsilon, name = SETTINGS[setting]
    shares, domain = law(truth, cells), privurn.JointDomain({"x": privurn.Grid(0, TOP, TOP // cells)})
    exact = reduce(parse_functionals(ASKED), domain=domain).evaluate(shares)
    guarantee = privurn.Guarantee(epsilon=epsilon, delta=1e-6)
    mechanism, _ = choose(MECHANISMS[name], Public(n=n, cells=cells + 1, guarantee=guarantee, domain=domain))
    rng = np.random.default_rng([number, list(SETTINGS).index(setting)])
    counts = rng.multinomial(n, shares)
    table = CountTable(np.flatnonzero(counts), counts[counts > 0])
    observed = seen(mechanism, domain, mechanism.simulate(table, rng=rng))
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InferenceWarning)
        found = privurn.infer(observed, ask=ASKED, run=privurn.Run(draws=DRAWS, seed=number), level=LEVEL)
    before = found.prior_draws()
    figures = {
        each.name: {
            "truth": exact[each.name],
            "interval": [each.lower, each.upper],
            "unbiased": None if each.unbiased is None else [each.unbiased, each.unbiased_error],
            "little": bool(tells_little([each], before)),
        }
        for each in found.summary()
    }
    return {"setting": setting, "data_set": number, "figures": figures, "seconds": time.process_time() - started}


def seen(mechanism: Any, domain: privurn.JointDomain, released: Any) -> Observed:
    """A simulated release, as inference reads it."""
    if not mechanism.measures:
        return Observed(mechanism=mechanism, domain=domain, counts=np.asarray(released))
    numbers = np.concatenate([*released.levels, released.special])
    return Observed(
        mechanism=mechanism, domain=domain, counts=np.ones(domain.size), measured=mechanism.likelihood(Numbers(numbers))
    )


def table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Coverage by setting."""
    yield f"{'setting':58}{'data sets':>10}{'covered':>9}{'told little':>12}{'unbiased':>10}{'worst figure':>24}"
    for setting in dict.fromkeys(row["setting"] for row in rows):
        own = [row["figures"] for row in rows if row["setting"] == setting]
        held: dict[str, list[bool]] = {name: [] for name in ASKED}
        little, unbiased = [], []
        for figures in own:
            for name, each in figures.items():
                low, high = each["interval"]
                little.append(each["little"])
                if not each["little"]:
                    held[name].append(low - 1e-9 <= each["truth"] <= high + 1e-9)
                if each["unbiased"] is not None:
                    value, error = each["unbiased"]
                    unbiased.append(abs(value - each["truth"]) <= WITHIN * error)
        shares = {name: float(np.mean(found)) for name, found in held.items() if found}
        worst = min(shares, key=shares.__getitem__) if shares else "-"
        covered = f"{np.mean(list(shares.values())):.0%}" if shares else "-"
        told = f"{shares[worst]:.0%} ({worst})" if shares else "-"
        yield f"{setting:58}{len(own):>10}{covered:>9}{np.mean(little):>12.0%}{np.mean(unbiased):>10.0%}{told:>24}"


def main() -> None:
    """Go on where the file ends, until the time is over; then the table."""
    parser = argparse.ArgumentParser(prog="python -m experiments.fixed_truths", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data-sets", type=int, default=20)
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD", help="settings whose names hold all of these")
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--file", type=Path, default=Path("fixed_truths.jsonl"))
    options = parser.parse_args()
    wanted = [each for each in SETTINGS if all(f", {word}" in f", {each}" for word in options.only)]
    found = resumed(run, wanted, runs=options.data_sets, number="data_set", file=options.file, minutes=options.minutes)
    for line in table(found):
        print(line)


if __name__ == "__main__":
    main()
