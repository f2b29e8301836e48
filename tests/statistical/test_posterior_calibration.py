"""Simulation-based calibration through `infer`: prior -> data -> release -> posterior, for every mechanism, n public or secret.

Ranks of the true functional among posterior draws are uniform where the posterior is right. A right one fails with probability
at most 1e-5 (`sampler_checks.sequential`); the planted bugs must fail. Draws of Markov chains are thinned until they are as
good as independent on these small domains.
"""

from fractions import Fraction

import numpy as np
import pytest
import sampler_checks as checks

from privurn.counts import CountTable
from privurn.domain import Grid, JointDomain
from privurn.inference.counts.functionals import parse_functionals
from privurn.inference.counts.model import CountModel
from privurn.inference.counts.plans import reduce
from privurn.inference.counts.released import Observed
from privurn.inference.infer import infer
from privurn.inference.run import Run
from privurn.inference.size import SizePrior
from privurn.mechanisms.base_measures import FiniteBase
from privurn.mechanisms.dirichlet_multinomial import DirichletMultinomial
from privurn.mechanisms.label_discovery import DiscoveredUrn, LabelDiscovery
from privurn.mechanisms.perturbed_histogram import PerturbedHistogram
from privurn.mechanisms.pitman_yor import PitmanYor
from privurn.mechanisms.posterior_sample import PosteriorSample
from privurn.mechanisms.smoothed_histogram import SmoothedHistogram
from privurn.privacy.profile import Guarantee

pytestmark = pytest.mark.filterwarnings("ignore::privurn.inference.draws.NotMixed")
"""Chains are short: what they say is not judged here."""

CELLS, N = 4, 25
DOMAIN = JointDomain({"x": Grid(0, 1, "1/3")})
ASKED = ["mean", "P(x<0.5)"]
REDUCTION = reduce(parse_functionals(ASKED), domain=DOMAIN)
DRAWS = 19
SIZE = 100

URN = DirichletMultinomial(n=N, cells=CELLS, alpha=Fraction(3), records=30)
LOPSIDED = DirichletMultinomial(n=N, cells=CELLS, alpha=(Fraction(1, 2), Fraction(3), Fraction(8), Fraction(1)), records=20)
PROCESS = PitmanYor(n=N, records=20, strength=Fraction(6), base=FiniteBase(cells=CELLS, weights=(1, 2, 3, 4)))
ONE_SAMPLE = PosteriorSample(n=N, cells=CELLS, alpha=Fraction(2), records=1000)
SMOOTHED = SmoothedHistogram(n=N, cells=CELLS, records=30, weight=Fraction(2, 5))
SIZES = SizePrior(lower=1, upper=40)
"""Of a secret n."""
SECRET_URN = DirichletMultinomial(n=None, cells=CELLS, alpha=Fraction(3), records=30)
SECRET_SAMPLE = PosteriorSample(n=None, cells=CELLS, alpha=Fraction(2), records=1000)
NAMED = DiscoveredUrn(
    n=N,
    records=30,
    discovery=LabelDiscovery(scale=1.0, threshold=10),
    urn=URN,
    urn_guarantee=Guarantee(epsilon=1.0, delta=1e-6),
)
"""Its labels are taken as listed beforehand, as its likelihood does."""


def noisy(noise, publish, scale=3.0, smoothing=Fraction(0), n=N):
    records = CELLS if publish == "counts" else 30
    return PerturbedHistogram(n=n, cells=CELLS, records=records, noise=noise, scale=scale, publish=publish, smoothing=smoothing)


def published(mechanism, counts, rng):
    """What the mechanism publishes of the confidential counts, by its floating-point twin."""
    if isinstance(mechanism, PitmanYor):
        alpha = float(mechanism.strength) * np.array(mechanism.base.weights) / sum(mechanism.base.weights)
        return rng.multinomial(mechanism.records, rng.dirichlet(counts + alpha))
    if isinstance(mechanism, DiscoveredUrn):
        mechanism = mechanism.urn
    table = CountTable.from_cells(np.arange(CELLS), counts)
    return mechanism.simulate(table, rng=rng)


def observed(mechanism, counts, rng):
    numbers = published(mechanism, counts, rng)
    return Observed(
        mechanism=mechanism, domain=DOMAIN, counts=np.atleast_2d(numbers) if "sample" in mechanism.name else numbers
    )


def right(releases, prior, of, seed, warm_up=40, thin=4):
    """Draws of the public function, by functional."""
    run = Run(draws=DRAWS, chains=1, warm_up=warm_up, thin=thin, threads=1, seed=seed)
    secret = releases[0].n is None
    found = infer(releases, CountModel(prior=prior, size=SIZES if secret else None), ask=ASKED, of=of, run=run)
    return {name: found.draws.flat(name) for name in [*ASKED, "n"][: 3 if secret else 2]}


def longer(releases, prior, of, seed):
    """The same with longer chains, for tests that would notice what is left of the start."""
    return right(releases, prior, of, seed, warm_up=200, thin=15)


def naive(releases, prior, of, seed):
    """The planted bug: the release taken for the data."""
    found = infer(releases, CountModel(prior=prior), ask=ASKED, of=of, run=Run(draws=DRAWS, chains=1, warm_up=0, seed=seed))
    return {name: found.naive().flat(name) for name in ASKED}


def urn_for_population(releases, prior, of, seed):
    """What the literature prints: the posterior of the urn's limit."""
    return right(releases, prior, "urn", seed)


def p_values(mechanisms, *, prior, of="population", analysis=right, seed=1):
    rng = np.random.default_rng(seed)
    weights = prior
    if isinstance(prior, str):
        alpha = mechanisms[0].alpha
        weights = np.array([float(each) for each in alpha]) if isinstance(alpha, tuple) else np.full(CELLS, float(alpha))

    def simulate(size):
        ranks = {}
        for _ in range(size):
            drawn = CELLS ** rng.random() / CELLS if prior is None else weights  # the default: its worth is drawn
            law = rng.dirichlet(np.broadcast_to(drawn, CELLS))
            n = mechanisms[0].n or int(rng.integers(SIZES.lower, SIZES.upper + 1))
            counts = rng.multinomial(n, law)
            releases = [observed(each, counts, rng) for each in mechanisms]
            draws = analysis(releases, prior, of, int(rng.integers(2**31)))
            truth = {**REDUCTION.evaluate(law if of == "population" else counts), "n": n}
            for name in draws:
                ranks.setdefault(name, []).append(checks.random_rank(truth[name], draws[name], rng))
        return [checks.rank_p_value(each, n_ranks=DRAWS + 1) for each in ranks.values()]

    return simulate


QUICK = {
    "urn, mechanism's prior": ([LOPSIDED], "mechanism", "population"),
    "urn, mechanism's prior, sample": ([URN], "mechanism", "sample"),
    "urn, one record in each cell": ([URN], 1.0, "population"),
    "urn, default prior": ([URN], None, "population"),
    "noisy counts": ([noisy("discrete-laplace", "counts")], 1.0, "population"),
    "noisy records": ([noisy("discrete-laplace", "records")], 1.0, "population"),
    "smoothed": ([SMOOTHED], 1.0, "population"),
}
LONG = {
    "noisy records, default prior": ([noisy("discrete-laplace", "records")], None, "sample"),
    "urn, sample": ([URN], 1.0, "sample"),
    "urn, another prior": ([LOPSIDED], np.array([0.4, 2.0, 1.0, 5.0]), "population"),
    "Dirichlet process": ([PROCESS], 1.0, "population"),
    "posterior sample": ([ONE_SAMPLE], 1.0, "population"),
    "posterior sample, mechanism's prior": ([ONE_SAMPLE], "mechanism", "population"),
    "Gaussian counts": ([noisy("discrete-gaussian", "counts")], 1.0, "sample"),
    "Laplace counts": ([noisy("laplace", "counts")], 1.0, "population"),
    "Gaussian records, smoothed": ([noisy("discrete-gaussian", "records", smoothing=Fraction(1, 5))], 1.0, "population"),
    "Laplace records": ([noisy("laplace", "records")], 1.0, "sample"),
    "smoothed, sample": ([SMOOTHED], 1.0, "sample"),
    "two releases": ([URN, noisy("discrete-laplace", "counts")], 1.0, "population"),
    "noisy counts, default prior": ([noisy("discrete-laplace", "counts")], None, "population"),
    "Gaussian counts, default prior": ([noisy("discrete-gaussian", "counts")], None, "population"),
    "smoothed, default prior": ([SMOOTHED], None, "population"),
    "Dirichlet process, default prior": ([PROCESS], None, "population"),
    "posterior sample, default prior": ([ONE_SAMPLE], None, "population"),
    "urn of labels that were named, default prior": ([NAMED], None, "population"),
    "three releases": ([LOPSIDED, SMOOTHED, noisy("discrete-laplace", "records")], 1.0, "sample"),
}


SECRET = {
    "urn, secret n": ([SECRET_URN], None, "population"),
    "posterior sample, secret n": ([SECRET_SAMPLE], None, "population"),
    "noisy counts, secret n": ([noisy("discrete-laplace", "counts", n=None)], None, "population"),
    "Gaussian counts, secret n": ([noisy("discrete-gaussian", "counts", n=None)], None, "population"),
    "noisy records, secret n": ([noisy("discrete-laplace", "records", n=None)], None, "population"),
}
LONG |= SECRET


def moderate(releases, prior, of, seed):
    """As long as a secret n of noisy counts needs at least."""
    return right(releases, prior, of, seed, warm_up=100, thin=12)


def longest(releases, prior, of, seed):
    """Longer still: a secret n moves slowly."""
    return right(releases, prior, of, seed, warm_up=400, thin=40)


SLOW = "noisy records"
QUICK |= {name: SECRET[name] for name in ["noisy counts, secret n"]}


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.long) if name == SLOW else name for name in QUICK])
def test_ranks_are_uniform(name):
    mechanisms, prior, of = QUICK[name]
    simulated = p_values(mechanisms, prior=prior, of=of, analysis=moderate if name in SECRET else right)
    assert checks.sequential(simulated, size=SIZE, growth=2), f"{name}: false-alarm rate {checks.ALPHA}"


@pytest.mark.long
@pytest.mark.parametrize("name", LONG | QUICK)
def test_ranks_are_uniform_in_many_runs(name):
    mechanisms, prior, of = (LONG | QUICK)[name]
    secret = name in SECRET
    simulated = p_values(mechanisms, prior=prior, of=of, analysis=longest if secret else longer, seed=2)
    assert checks.sequential(simulated, size=600 if secret else 2000), f"{name}: false-alarm rate {checks.ALPHA}"


@pytest.mark.parametrize("mechanism", [URN, SMOOTHED], ids=lambda each: each.name)
def test_an_analysis_that_ignores_the_mechanism_is_caught(mechanism):
    simulated = p_values([mechanism], prior=None, analysis=naive)
    assert not checks.sequential(simulated, size=2 * SIZE)


@pytest.mark.long
def test_the_urns_limit_is_not_the_population():
    """Dirichlet(alpha + S) is too narrow for the law that the records came from, even under the mechanism's own prior."""
    simulated = p_values([URN], prior="mechanism", analysis=urn_for_population)
    assert not checks.sequential(simulated, size=15 * SIZE)
