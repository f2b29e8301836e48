"""Coverage of 95% intervals: the mechanism-aware posterior beside the analysis that takes the release for the data.

    python -m experiments.coverage [--replicates R] [--mechanisms NAME ...] [--seed S] [--json]

Two readings of "coverage", both of the population's functionals:

prior   truth drawn from the prior (flat: Dirichlet(1, .., 1) on the cells), then data, release, posterior. A right posterior
        covers exactly 95% on average, so the count over the replicates is binomial: it must lie in the band printed, which
        all the cells of the table leave together with probability at most FALSE_ALARM. Quantiles live on a grid, where a
        closed interval covers more than its level; so here the truth counts as covered where its rank among the draws, ties
        broken at random, is among the middle 95%.
fixed   one truth typical of use, the default prior (flat, its worth drawn as well): nothing promises 95% here, but it should
        be near. Closed intervals.

"naive" is Dirichlet(prior + released counts). "urn" is the posterior in print for an urn's release under the mechanism's own
prior, Dirichlet(alpha + S), taken for that of the population (docs/proofs/posteriors.md); "own prior" the right one.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from experiments.posterior_runs import (
    FUNCTIONALS,
    Chains,
    Floats,
    Whole,
    beta_mixture,
    closed_draws,
    dirichlet_draws,
    evaluate,
    face_value,
    latent_draws,
    on_grid,
    simulate,
)
from privurn.counts import CountTable
from privurn.inference.counts.composition import composition
from privurn.inference.counts.urn_measures import measure_posterior
from privurn.mechanisms.base_measures import FiniteBase
from privurn.mechanisms.dirichlet_multinomial import DirichletMultinomial
from privurn.mechanisms.mechanism import Mechanism
from privurn.mechanisms.perturbed_histogram import PerturbedHistogram
from privurn.mechanisms.pitman_yor import PitmanYor
from privurn.mechanisms.posterior_sample import PosteriorSample
from privurn.mechanisms.smoothed_histogram import SmoothedHistogram
from privurn.privacy.laws.noisy_counts import Noise

N = 400
LARGEST_N = 2 * N
RECORDS = 300
STEP = "0.1"
CELLS = 11
LEVEL = 0.95
FALSE_ALARM = 1e-3
DRAWS = 399
"""One less than a multiple of 40, so that the middle 95% of the ranks are 95% exactly."""
RUN = Chains(chains=1, warm=150, draws=DRAWS, thin=2)

VALID, NAIVE, URN = "valid", "naive", "urn"
OPEN = ("commonest label", "discovery")
Flags = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Row:
    """Coverage of one analysis of one mechanism's releases, for one functional and one reading."""

    mechanism: str
    reading: str
    analysis: str
    functional: str
    replicates: int
    covered: int

    @property
    def coverage(self) -> float:
        """Share of the replicates."""
        return self.covered / self.replicates


def mechanisms() -> dict[str, Mechanism]:
    """Every mechanism with a posterior on a public grid, with noise that matters at this n."""
    alpha = Fraction(10)

    def noisy(noise: Noise, *, n: int | None = N) -> Mechanism:
        return PerturbedHistogram(n=n, cells=CELLS, records=CELLS, noise=noise, scale=8.0, publish="counts")

    return {
        "Dirichlet-multinomial": DirichletMultinomial(n=N, cells=CELLS, alpha=alpha, records=RECORDS),
        "Dirichlet-multinomial, n secret": DirichletMultinomial(n=None, cells=CELLS, alpha=alpha, records=RECORDS),
        "Dirichlet process": PitmanYor(n=N, records=RECORDS, strength=Fraction(5), base=FiniteBase(cells=CELLS)),
        "posterior sample": PosteriorSample(n=N, cells=CELLS, alpha=alpha, records=10**6),
        "noisy counts, discrete Laplace": noisy("discrete-laplace"),
        "noisy counts, Laplace": noisy("laplace"),
        "noisy counts, discrete Gaussian": noisy("discrete-gaussian"),
        "noisy counts, n secret": noisy("discrete-laplace", n=None),
        "perturbed histogram, records": PerturbedHistogram(
            n=N, cells=CELLS, records=RECORDS, noise="discrete-laplace", scale=8.0, smoothing=Fraction(1, 10)
        ),
        "smoothed histogram": SmoothedHistogram(n=N, cells=CELLS, records=RECORDS, weight=Fraction(1, 4)),
    }


def covers(draws: Floats, truth: Floats, *, closed: bool, rng: np.random.Generator) -> Flags:
    """For each functional whether the middle 95% of the draws hold the truth: as closed intervals, or by random ranks."""
    if closed:
        low, high = np.quantile(draws, [0.5 - LEVEL / 2.0, 0.5 + LEVEL / 2.0], axis=0)
        return np.asarray((low - 1e-12 <= truth) & (truth <= high + 1e-12))
    below = (draws < truth - 1e-12).sum(axis=0)
    ranks = below + rng.integers((np.abs(draws - truth) <= 1e-12).sum(axis=0) + 1)
    cut = round((len(draws) + 1) * (1.0 - LEVEL) / 2.0)
    return np.asarray((ranks >= cut) & (ranks <= len(draws) - cut))


def replicate(mechanism: Mechanism, *, reading: str, rng: np.random.Generator) -> dict[str, Flags]:
    """Which functionals each analysis covers, for one truth, data set and release."""
    points, reduction = on_grid(STEP)
    by_prior = reading == "prior"
    prior = np.full(CELLS, 1.0 if by_prior else 1.0 / CELLS)
    law = rng.dirichlet(prior) if by_prior else beta_mixture(points)
    n = N if mechanism.n is not None else int(rng.integers(LARGEST_N + 1)) if by_prior else N
    released = simulate(mechanism, rng.multinomial(n, law), rng=rng)
    valid = latent_draws(
        mechanism, released, prior=prior, reduction=reduction, run=RUN, rng=rng, largest_n=LARGEST_N, shared=not by_prior
    )
    naive = dirichlet_draws(prior + face_value(mechanism, released), reduction=reduction, n_draws=DRAWS, rng=rng)
    truth = evaluate(reduction, law)
    return {
        VALID: covers(valid.flat, truth, closed=not by_prior, rng=rng),
        NAIVE: covers(naive.flat, truth, closed=not by_prior, rng=rng),
    }


def own_prior_replicate(mechanism: DirichletMultinomial, *, rng: np.random.Generator) -> dict[str, Flags]:
    """The mechanism's own prior, averaged over: independent draws of the population, and of the urn's limit."""
    _, reduction = on_grid(STEP)
    law = rng.dirichlet(np.full(CELLS, float(mechanism.prior_total) / CELLS))
    released = simulate(mechanism, rng.multinomial(N, law), rng=rng)
    found = composition(mechanism, counts=released)
    truth = evaluate(reduction, law)
    kinds = {VALID: "population", URN: "urn"}
    draws = {key: closed_draws(found, about=of, reduction=reduction, n_draws=DRAWS, rng=rng) for key, of in kinds.items()}
    return {key: covers(each.flat, truth, closed=False, rng=rng) for key, each in draws.items()}


def open_replicate(mechanism: PitmanYor, *, rng: np.random.Generator) -> dict[str, Flags]:
    """Open labels under the mechanism's own prior: the commonest released label's probability, and discovery."""
    theta, sigma = float(mechanism.strength), float(mechanism.discount)
    x = further(mechanism, np.ones(1, np.int64), mechanism.n - 1, rng=rng)
    x[0] += 1
    law = rng.dirichlet([*(x - sigma), theta + len(x) * sigma])  # p given x: (p, x) has the prior's law
    z = further(mechanism, x, mechanism.records, rng=rng)
    labels = np.flatnonzero(z)
    labels = labels[rng.permutation(len(labels))]  # numbers tell the order in which x showed them, which is not public
    truths = np.where(labels < len(x), law[np.minimum(labels, len(x) - 1)], 0.0)
    found = measure_posterior(mechanism, labels=labels.tolist(), counts=z[labels], of_data=labels < len(x))
    most = int(np.argmax(z[labels]))
    truth = np.array([truths[most], 1.0 - truths.sum()])
    answers = {}
    for key, about in ((VALID, "population"), (URN, "urn")):
        drawn = (
            found.draw(DRAWS, rng=rng)
            if about == "population"
            else measure_posterior(mechanism, labels=labels.tolist(), counts=z[labels]).draw(DRAWS, rng=rng, about="urn")
        )
        answers[key] = covers(np.column_stack([drawn.weights[:, most], drawn.elsewhere]), truth, closed=False, rng=rng)
    shares = rng.dirichlet(z[labels].astype(np.float64), size=DRAWS)
    naive = np.column_stack([shares[:, most], np.zeros(DRAWS)])
    answers[NAIVE] = covers(naive, truth, closed=False, rng=rng)
    return answers


def further(mechanism: PitmanYor, counts: Whole, records: int, *, rng: np.random.Generator) -> Whole:
    """How often each value, old ones first, comes in `records` further records of the urn that holds these counts."""
    urn = replace(mechanism, n=int(counts.sum()), records=records)
    return np.concatenate(urn.simulate(CountTable(np.arange(len(counts)), counts), rng=rng))


def band(replicates: int, *, cells: int) -> tuple[int, int]:
    """Fewest and most covered replicates of a right 95% interval, over `cells` cells together."""
    from scipy.stats import binom

    tail = FALSE_ALARM / (2.0 * cells)
    return int(binom.ppf(tail, replicates, LEVEL)), int(binom.isf(tail, replicates, LEVEL))


Study = tuple[str, str, tuple[str, ...], Callable[..., dict[str, Flags]]]


def studies() -> Iterator[Study]:
    """Name, reading, functionals and one replicate of each."""
    for name, mechanism in mechanisms().items():
        for reading in ("prior", "fixed"):
            yield name, reading, tuple(FUNCTIONALS), partial(replicate, mechanism, reading=reading)
    own = DirichletMultinomial(n=N, cells=CELLS, alpha=Fraction(10), records=RECORDS)
    yield "own prior", "prior", tuple(FUNCTIONALS), partial(own_prior_replicate, own)
    for label, discount in (("open labels, discount 0", Fraction(0)), ("open labels, discount 1/2", Fraction(1, 2))):
        urn = PitmanYor(n=N, records=RECORDS, strength=Fraction(5), discount=discount)
        yield label, "prior", OPEN, partial(open_replicate, urn)


def run(*, replicates: int, seed: int, names: list[str] | None = None, quiet: bool = True) -> list[Row]:
    """All studies; each replicate has a stream of its own."""
    rows = []
    for number, (name, reading, functionals, once) in enumerate(studies()):
        if names is not None and name not in names:
            continue
        if not quiet:
            print(f"{name}, {reading} ...", file=sys.stderr, flush=True)
        covered: dict[str, Whole] = {}
        for stream in np.random.SeedSequence([seed, number]).spawn(replicates):
            for analysis, found in once(rng=np.random.default_rng(stream)).items():
                covered[analysis] = covered.get(analysis, np.zeros(len(functionals), np.int64)) + found
        for analysis, counts in covered.items():
            for functional, count in zip(functionals, counts.tolist(), strict=True):
                rows.append(
                    Row(
                        mechanism=name,
                        reading=reading,
                        analysis=analysis,
                        functional=functional,
                        replicates=replicates,
                        covered=count,
                    )
                )
    return rows


def judged(rows: list[Row]) -> tuple[list[Row], tuple[int, int]]:
    """Cells that are promised 95%, and the band all of them must lie in."""
    promised = [each for each in rows if each.analysis == VALID and each.reading == "prior"]
    return promised, band(rows[0].replicates, cells=max(1, len(promised)))


def show(rows: list[Row], *, seed: int) -> None:
    """Print a line for each mechanism, reading and analysis."""
    promised, (low, high) = judged(rows)
    replicates = rows[0].replicates
    print(
        f"n = {N}, {CELLS} cells, m = {RECORDS}, {replicates} replicates, seed {seed}. Coverage of 95% intervals, in percent."
    )
    print(f"valid, prior: must lie in [{100 * low / replicates:.1f}, {100 * high / replicates:.1f}], {len(promised)} cells.\n")
    last: tuple[str, ...] = ()
    for key in dict.fromkeys((each.mechanism, each.reading, each.analysis) for each in rows):
        own = [each for each in rows if (each.mechanism, each.reading, each.analysis) == key]
        names = tuple(each.functional for each in own)
        if names != last:
            print(f"{'':34}{'reading':9}{'analysis':10}" + "".join(f"{name:>17}" for name in names))
            last = names
        print(f"{key[0]:34}{key[1]:9}{key[2]:10}" + "".join(f"{100 * each.coverage:>17.1f}" for each in own))
    outside = [each for each in promised if not low <= each.covered <= high]
    print(f"\n{len(promised) - len(outside)} of {len(promised)} cells lie in the band.")
    for each in outside:
        print(f"OUTSIDE: {each.mechanism}, {each.functional}: {100 * each.coverage:.1f}")


def main() -> None:
    """Read the options, simulate, print; exit code 1 where a promised cell is outside its band."""
    parser = argparse.ArgumentParser(prog="python -m experiments.coverage", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--replicates", type=int, default=500)
    parser.add_argument("--mechanisms", nargs="+", metavar="NAME", help="only these, as the table names them")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="the rows and the band, nothing else")
    options = parser.parse_args()
    known = {name for name, *_ in studies()}
    if options.replicates < 1 or (unknown := set(options.mechanisms or ()) - known):
        parser.error("at least one replicate is needed" if options.replicates < 1 else f"not known: {', '.join(unknown)}")
    rows = run(replicates=options.replicates, seed=options.seed, names=options.mechanisms, quiet=options.json)
    promised, (low, high) = judged(rows)
    if options.json:
        print(json.dumps({"band": [low, high], "rows": [asdict(each) for each in rows]}, indent=1))
    else:
        show(rows, seed=options.seed)
    sys.exit(0 if all(low <= each.covered <= high for each in promised) else 1)


if __name__ == "__main__":
    main()
