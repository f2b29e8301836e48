"""Coverage of 90% intervals at fixed truths, through `privurn.infer` at its defaults; beside it the unbiased estimate.

    python -m experiments.fixed_truths [--listed | --scarce] [--data-sets R] [--only WORD ...] [--minutes M] [--file FILE.jsonl]

Truths: lognormal incomes, the same heaped on round numbers, two humps, and a sparse one. 20, 200 and 2,000 cells; n = 500,
5,000 and 100,000; epsilon 0.1 and 1 (delta 1e-6, n public). The full cross, 72 settings, is for the default release and the urn
with 20 data sets; `--listed` takes 12 of the settings with 200 data sets, for these two and for every other mechanism of the
registry that has a likelihood of counts; `--scarce` takes records of noisy counts, as many as confidential ones, which are so
few that noise hides nearly all, with 60 data sets. Where a mechanism cannot have the guarantee its row says so. Asked for:
mean, median, 90% quantile, and the shares beyond 50,000 and 100,000, all of the population.

Every data set is a line of the file, and a run takes up where the file ends: the same command goes on. A data set takes 0.05 to
0.5 s of one core, so that the full cross takes about ten minutes, the default and the urn on the listed settings as long again,
and all others on them half an hour; records of noisy counts, which are fitted five times, take up to 0.8 s. The table at
the end says for every setting how often intervals held the truth (figures of which the release tells little in half of the data
sets or more are left out: to count just the data sets that tell more would be to choose by the outcome), how often the 90%
interval of the unbiased estimate did, and the verdict: between 86% and 97% on average over the figures, or else low or high;
figures that fail alone, where an exact binomial test at 1e-4 rejects every share of that band, are named. Where one prior
weight is all that inference has for many cells, it warns of that, and the table says so in place of a verdict.
"""

import argparse
import time
import warnings
from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

import privurn
from experiments.resumed import resumed
from privurn.counts import CountTable
from privurn.errors import CalibrationError, InferenceWarning, ModelError
from privurn.inference.cautions import tells_little
from privurn.inference.counts.functionals import parse_functionals
from privurn.inference.counts.plans import reduce
from privurn.inference.counts.released import Observed
from privurn.inference.trees.cells import usual_tree
from privurn.mechanisms.choice import choose
from privurn.mechanisms.likelihood import Numbers
from privurn.mechanisms.mechanism import Mechanism
from privurn.mechanisms.recipe import Public, Recipe
from privurn.mechanisms.registry import mechanisms, recipes

TOP = 200_000
ASKED = ("mean", "q0.5", "q0.9", "P(x>50000)", "P(x>100000)")
LEVEL = 0.9
WITHIN = 1.6448536
DRAWS, CHAINS = 250, (4, 2)
"""Draws of each chain, and chains: of a Markov chain, and of independent draws."""

TRUTHS, CELLS, SIZES, EPSILONS = ("lognormal", "heaped", "bimodal", "sparse"), (20, 200, 2000), (500, 5000, 100_000), (1.0, 0.1)
LISTED = (
    ("lognormal", 20, 500, 1.0),
    ("lognormal", 200, 5000, 1.0),
    ("lognormal", 2000, 100_000, 0.1),
    ("heaped", 20, 5000, 0.1),
    ("heaped", 200, 100_000, 1.0),
    ("heaped", 2000, 5000, 1.0),
    ("bimodal", 20, 100_000, 0.1),
    ("bimodal", 200, 500, 1.0),
    ("bimodal", 2000, 5000, 1.0),
    ("sparse", 20, 500, 1.0),
    ("sparse", 200, 5000, 0.1),
    ("sparse", 2000, 100_000, 1.0),
)
"""Truth, cells, n and epsilon: each truth with each number of cells, and every n four times."""

SCARCE = tuple(
    (truth, *rest) for rest in ((2000, 200, 1.0), (200, 50, 2.0), (2000, 50, 5.0), (2000, 500, 1.0)) for truth in TRUTHS
)
"""Where records of noisy counts are few."""

CROSSED = {"default": "noisy-tree", "urn": "dirichlet-multinomial"}
"""What the full cross is for."""

VARIANTS: dict[str, dict[str, Recipe]] = {
    "noisy-tree": {"default": privurn.NoisyTree()},
    "dirichlet-multinomial": {"urn": privurn.Urn()},
    "perturbed-histogram": {
        "noisy counts": privurn.NoisyCounts(publish="counts"),
        "Gaussian noisy counts": privurn.NoisyCounts(publish="counts", noise="discrete-gaussian"),
        "records of noisy counts": privurn.NoisyCounts(),
    },
}
"""What is asked for by something else than the name alone."""

ELSEWHERE = {
    "label-discovery": "labels that nobody listed: no numbers to take means of; given the labels it is the urn",
    "pitman-yor": "has a likelihood where labels are open alone",
    "noisy-marginals": "whole tables: experiments.table_coverage",
}
"""Mechanisms with a likelihood that have no row, and why."""


def told() -> dict[str, Recipe]:
    """Every registered mechanism with a likelihood, by what its rows are called."""
    found: dict[str, Recipe] = {}
    for name, kind in mechanisms().items():
        if kind.likelihood is not Mechanism.likelihood and name not in ELSEWHERE:
            found |= VARIANTS.get(name) or {name: recipes()[name]()}
    return found


MECHANISMS = told()


def named(truth: str, cells: int, n: int, epsilon: float, name: str) -> str:
    """A setting in words."""
    return f"{truth}, {cells} cells, n {n}, epsilon {epsilon:g}, {name}"


CROSS = {named(*each): each for each in product(TRUTHS, CELLS, SIZES, EPSILONS, CROSSED)}
TWELVE = {named(*each, name): (*each, name) for name in MECHANISMS for each in LISTED}
FEW = {named(*each, "records of noisy counts"): (*each, "records of noisy counts") for each in SCARCE}
SETTINGS = CROSS | TWELVE | FEW
PLACES = {
    named(*each): at for at, each in enumerate(product(TRUTHS, CELLS, SIZES, EPSILONS, ("default", "noisy counts", "urn")))
}
"""Data sets of these are seeded by their place, those of all others by a hash of their words: more settings change none."""

LOWEST, HIGHEST, RISK = 0.86, 0.97, 1e-4
"""The band of what intervals cover on average over the figures, and how unlikely a single figure must be to fail."""


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
        places = np.random.default_rng(7).random(cells + 1)
        shares = np.where(places < max(0.1, np.sort(places)[4]), shares + 0.01, 0.0)  # a tenth of the cells, no fewer than four
    return np.asarray(shares / shares.sum())


def run(setting: str, number: int) -> dict[str, Any]:
    """One data set: interval, truth, unbiased estimate and whether little is told, for each figure."""
    truth, cells, n, epsilon, name = SETTINGS[setting]
    shares, domain = law(truth, cells), privurn.JointDomain({"x": privurn.Grid(0, TOP, TOP // cells)})
    exact = reduce(parse_functionals(ASKED), domain=domain).evaluate(shares)
    try:
        mechanism = _mechanism(name, n, cells, epsilon)
    except (CalibrationError, ModelError):
        return {"setting": setting, "data_set": number, "figures": {}, "seconds": 0.0}
    rng = np.random.default_rng([number, PLACES.get(setting, crc32(setting.encode()))])
    counts = rng.multinomial(n, shares)
    table = CountTable(np.flatnonzero(counts), counts[counts > 0])
    observed = seen(mechanism, domain, mechanism.simulate(table, rng=rng))
    started = time.process_time()
    chains = CHAINS[usual_tree(domain)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InferenceWarning)
        found = privurn.infer(observed, ask=ASKED, run=privurn.Run(chains=chains, draws=DRAWS, seed=number), level=LEVEL)
    before = found.prior_draws()
    weighed = any("one prior weight" in str(each) for each in found.cautions())
    figures = {
        each.name: {
            "truth": exact[each.name],
            "interval": [each.lower, each.upper],
            "unbiased": None if each.unbiased is None else [each.unbiased, each.unbiased_error],
            "little": bool(tells_little([each], before)),
        }
        for each in found.summary()
    }
    spent = time.process_time() - started
    return {
        "setting": setting,
        "data_set": number,
        "figures": figures,
        "mixed": found.mixed,
        "weighed": weighed,
        "seconds": spent,
    }


@cache
def _mechanism(name: str, n: int, cells: int, epsilon: float) -> Any:
    """Calibrated once, since that may take longer than inference."""
    domain = privurn.JointDomain({"x": privurn.Grid(0, TOP, TOP // cells)})
    guarantee = privurn.Guarantee(epsilon=epsilon, delta=1e-6)
    return choose(MECHANISMS[name], Public(n=n, cells=cells + 1, guarantee=guarantee, domain=domain))[0]


def seen(mechanism: Any, domain: privurn.JointDomain, released: Any) -> Observed:
    """A simulated release, as inference reads it."""
    if not mechanism.measures:
        return Observed(mechanism=mechanism, domain=domain, counts=np.asarray(released))
    numbers = np.concatenate([*released.levels, released.special])
    return Observed(
        mechanism=mechanism, domain=domain, counts=np.ones(domain.size), measured=mechanism.likelihood(Numbers(numbers))
    )


def table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Coverage by setting, with a verdict."""
    head = f"{'setting':68}{'data sets':>10}{'covered':>9}{'told little':>12}{'unbiased':>10}{'worst figure':>24}"
    yield f"{head}  verdict"
    by_setting: dict[str, list[dict[str, Any]]] = {}
    weighed = {row["setting"] for row in rows if row.get("weighed")}
    unmixed: dict[str, int] = {}
    for row in rows:
        by_setting.setdefault(row["setting"], []).append(row["figures"])
        unmixed[row["setting"]] = unmixed.get(row["setting"], 0) + (not row.get("mixed", True))
    for setting, own in by_setting.items():
        if not own[0]:
            yield f"{setting:68}{'cannot have the guarantee':>36}"
            continue
        held: dict[str, list[bool]] = {name: [] for name in ASKED}
        little: dict[str, list[bool]] = {name: [] for name in ASKED}
        unbiased = []
        for figures in own:
            for name, each in figures.items():
                low, high = each["interval"]
                little[name].append(each["little"])
                held[name].append(low - 1e-9 <= each["truth"] <= high + 1e-9)
                if each["unbiased"] is not None:
                    value, error = each["unbiased"]
                    unbiased.append(abs(value - each["truth"]) <= WITHIN * error)
        held = {name: found for name, found in held.items() if np.mean(little[name]) < 0.5}
        shares = {name: float(np.mean(found)) for name, found in held.items() if found}
        worst = min(shares, key=shares.__getitem__) if shares else "-"
        covered = f"{np.mean(list(shares.values())):.0%}" if shares else "-"
        told = f"{shares[worst]:.0%} ({worst})" if shares else "-"
        beside = f"{np.mean(unbiased):.0%}" if unbiased else "-"
        line = f"{setting:68}{len(own):>10}{covered:>9}{np.mean(list(little.values())):>12.0%}{beside:>10}{told:>24}"
        judged = "warned: one prior weight" if setting in weighed else verdict(held)
        yield f"{line}  {judged}{f'; {unmixed[setting]} not mixed' if unmixed[setting] else ''}"


def verdict(held: dict[str, list[bool]]) -> str:
    """Whether the average over the figures is in the band, and which figures fail alone.

    >>> verdict({"mean": [True] * 18 + [False] * 2}), verdict({"mean": [True] * 10 + [False] * 10})
    ('holds', 'low')
    >>> verdict({"mean": [True] * 5 + [False] * 15, "q0.5": []})
    'low; alone: mean'
    """
    from scipy.stats import binom

    counted = {name: (sum(each), len(each)) for name, each in held.items() if each}
    if not counted:
        return "told little"
    average = float(np.mean([right / size for right, size in counted.values()]))
    words = "holds" if LOWEST <= average <= HIGHEST else "low" if average < LOWEST else "high"
    alone = [
        name
        for name, (right, size) in counted.items()
        if binom.cdf(right, size, LOWEST) < RISK or binom.sf(right - 1, size, HIGHEST) < RISK
    ]
    return f"{words}; alone: {', '.join(alone)}" if alone else words


def main() -> None:
    """Go on where the file ends, until the time is over; then the table."""
    parser = argparse.ArgumentParser(prog="python -m experiments.fixed_truths", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--listed", action="store_true", help="twelve settings and every mechanism")
    parser.add_argument("--scarce", action="store_true", help="few records of noisy counts")
    parser.add_argument("--data-sets", type=int, help="20, or 200 of the listed ones and 60 of the scarce")
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD", help="settings whose names hold all of these")
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--file", type=Path, default=Path("fixed_truths.jsonl"))
    options = parser.parse_args()
    settings, usual = (TWELVE, 200) if options.listed else (FEW, 60) if options.scarce else (CROSS, 20)
    wanted = [each for each in settings if all(f", {word}" in f", {each}" for word in options.only)]
    found = resumed(run, wanted, runs=options.data_sets or usual, number="data_set", file=options.file, minutes=options.minutes)
    for line in table(found):
        print(line)


if __name__ == "__main__":
    main()
