"""Every inference that can be started, at its defaults and through the public call, against a tiny case worked out otherwise.

A row is a registered mechanism, n public or secret, and a reference: enumeration, quadrature, or weighted draws from the prior.
Chains have fixed seeds, and the probabilities that they give to half-lines lie within five standard errors of those of the
reference; test_gate_rows.py demands a row for every mechanism, statistic and channel that is registered. The command line must
find, with the same seed, what Python finds.
"""

import inspect
import json
import warnings
from fractions import Fraction
from itertools import product
from math import factorial

import numpy as np
import pytest
from inference_references import CountPosterior, HiddenNoise, line, odds, parts, proportion, rate
from latent_count_laws import term_log
from mixture_states import log_urn, partitions
from typer.testing import CliRunner

import privurn
from privurn import CountModel, Run, SizePrior
from privurn.cli.infer import infer as infer_command
from privurn.cli.main import app
from privurn.inference.counts.released import Observed
from privurn.inference.counts.sampling import LENGTHS as COUNT_LENGTHS
from privurn.inference.draws import effective_draws
from privurn.inference.mixtures import CategoricalKernel, DirichletProcess, MixtureModel
from privurn.inference.mixtures.posterior import LENGTHS as MIXTURE_LENGTHS
from privurn.inference.sums import (
    BernoulliStatistic,
    Budget,
    DirichletStatistic,
    LogisticStatistic,
    NoisyStatistics,
    NormalStatistic,
    NotMixed,
    PoissonStatistic,
    RegressionStatistic,
)
from privurn.inference.sums.fit import LENGTHS as SUM_LENGTHS
from privurn.mechanisms.base_measures import FiniteBase
from privurn.mechanisms.dirichlet_multinomial import DirichletMultinomial
from privurn.mechanisms.label_discovery import DiscoveredUrn, LabelDiscovery
from privurn.mechanisms.likelihood import NoisyRecordsTerm, Numbers
from privurn.mechanisms.local.randomised_response import RandomisedResponseChannel
from privurn.mechanisms.perturbed_histogram import NoisyCounts, PerturbedHistogram
from privurn.mechanisms.pitman_yor import PitmanYor
from privurn.mechanisms.posterior_sample import PosteriorSample
from privurn.mechanisms.smoothed_histogram import SmoothedHistogram
from privurn.privacy.entropy import SeededEntropy
from privurn.releases.statistics import release_statistics

ERRORS = 5.0
GRID = privurn.JointDomain({"x": privurn.Grid(0, 2, 1)})


def assert_agreement(drawn, points, exact, exact_error=0.0):
    """Shares of draws (chain, draw) at most each point, against a reference; false alarms are settled by the seed."""
    values = np.asarray(drawn, np.float64)
    for x, wanted, other in zip(points, exact, np.broadcast_to(exact_error, len(points)), strict=True):
        below = (values <= x).astype(np.float64)
        spread = np.sqrt(max(below.var(), wanted * (1.0 - wanted)))
        error = np.hypot(spread / np.sqrt(effective_draws(below, of="mean")), other)
        assert abs(below.mean() - wanted) <= ERRORS * error + 1e-9, (x, below.mean(), wanted, error)


# ---- releases --------------------------------------------------------------------------------------------------------------

HALF = Fraction(1, 2)
RELEASES = {
    ("dirichlet-multinomial", "public"): (DirichletMultinomial(n=5, cells=3, alpha=HALF, records=7), [4, 1, 2]),
    ("dirichlet-multinomial", "secret"): (DirichletMultinomial(n=None, cells=3, alpha=HALF, records=7), [4, 1, 2]),
    ("dirichlet-process", "public"): (PitmanYor(n=5, records=7, strength=Fraction(2), base=FiniteBase(cells=3)), [4, 1, 2]),
    ("perturbed-histogram", "public"): (
        PerturbedHistogram(n=5, cells=3, records=3, noise="discrete-laplace", scale=1.0, publish="counts"),
        [4, 1, -1],
    ),
    ("perturbed-histogram", "secret"): (
        PerturbedHistogram(n=None, cells=3, records=3, noise="discrete-laplace", scale=1.0, publish="counts"),
        [6, 3, -1],
    ),
    ("perturbed-histogram gaussian", "public"): (
        PerturbedHistogram(n=5, cells=3, records=3, noise="discrete-gaussian", scale=1.2, publish="counts"),
        [4, 1, -1],
    ),
    ("perturbed-histogram gaussian", "secret"): (
        PerturbedHistogram(n=None, cells=3, records=3, noise="discrete-gaussian", scale=1.2, publish="counts"),
        [6, 3, -1],
    ),
    ("perturbed-histogram records", "public"): (
        PerturbedHistogram(n=4, cells=3, records=6, noise="discrete-laplace", scale=0.7),
        [4, 2, 0],
    ),
    ("perturbed-histogram records", "secret"): (
        PerturbedHistogram(n=None, cells=3, records=6, noise="discrete-laplace", scale=0.7),
        [4, 2, 0],
    ),
    ("smoothed-histogram", "public"): (SmoothedHistogram(n=5, cells=3, records=8, weight=HALF), [5, 2, 1]),
    ("posterior-sample", "public"): (PosteriorSample(n=5, cells=3, alpha=HALF, records=10, draws=2), [[5, 1, 4], [3, 3, 4]]),
    ("posterior-sample", "secret"): (PosteriorSample(n=None, cells=3, alpha=HALF, records=10), [[5, 1, 4]]),
    ("label-discovery", "public"): (
        DiscoveredUrn(
            n=5,
            records=7,
            discovery=LabelDiscovery(scale=1.0, threshold=10),
            urn=DirichletMultinomial(n=5, cells=3, alpha=HALF, records=7),
            urn_guarantee=privurn.Guarantee(epsilon=1.0, delta=1e-6),
        ),
        [4, 1, 2],
    ),
}
LARGEST = {
    "dirichlet-multinomial": 30,
    "perturbed-histogram": 30,
    "perturbed-histogram gaussian": 30,
    "perturbed-histogram records": 5,
    "posterior-sample": 30,
}
"""Bound of the flat prior of a secret n, so that everything can be listed."""


@pytest.mark.parametrize("row", RELEASES, ids=" ".join)
def test_releases_under_the_default_prior(row):
    mechanism, numbers = RELEASES[row]
    counts = np.array(numbers) / (10.0 if row[0] == "posterior-sample" else 1)
    observed = Observed(mechanism=mechanism, domain=GRID, counts=counts)
    largest = LARGEST.get(row[0])
    model = CountModel(size=SizePrior(upper=largest)) if row[1] == "secret" else None
    found = privurn.infer(observed, model, ask=["P(x=0)", "P(x=1)"], run=Run(seed=1))
    term = mechanism.likelihood(Numbers(counts))
    sizes = range(largest + 1) if row[1] == "secret" else [mechanism.n]
    hidden = isinstance(term, NoisyRecordsTerm)
    level = HiddenNoise(term, largest=max(sizes)) if hidden else lambda counts: term_log(term, counts)
    exact = CountPosterior(level, cells=3, sizes=sizes)
    points = (0.2, 0.4, 0.6, 0.8)
    for cell, name in enumerate(["P(x=0)", "P(x=1)"]):
        assert_agreement(found.draws[name], points, exact.share_cdf(cell=cell, at=points))
    if row[1] == "secret":
        ends = [largest // 6, largest // 3, largest // 2]
        assert_agreement(found.draws["n"], ends, exact.size_cdf(at=ends))


def test_a_secret_n_of_eight_records_in_three_cells():
    """Noisy counts of 8 records: the mean of n as the enumeration has it."""
    mechanism = PerturbedHistogram(n=None, cells=3, records=3, noise="discrete-laplace", scale=4.0, publish="counts")
    observed = Observed(mechanism=mechanism, domain=GRID, counts=np.array([5, 3, 0]))
    term = mechanism.likelihood(Numbers(observed.counts))
    mean = CountPosterior(lambda counts: term_log(term, counts), cells=3, sizes=range(61)).mean_size
    rows = privurn.infer(observed, CountModel(size=SizePrior(upper=60)), run=Run(draws=4000, seed=2)).summary()
    found = {each.name: each for each in rows}["n"]
    assert abs(found.mean - mean) < ERRORS * found.standard_error
    assert found.standard_error < 0.15


# ---- statistics ------------------------------------------------------------------------------------------------------------

BOUNDS = {"bounds": (-1, 1)}
MUCH = {
    "secret": Budget(epsilon=7, epsilon_n=2, neighbouring="add-remove"),
    "public": Budget(epsilon=5, neighbouring="replace-one"),
}
LITTLE = {
    "secret": Budget(epsilon=22, epsilon_n=2, neighbouring="add-remove"),
    "public": Budget(epsilon=20, neighbouring="replace-one"),
}
WHOLE = {"secret": Budget(epsilon=2, epsilon_n=1, noise="discrete-laplace", neighbouring="add-remove")}
WHOLE["public"] = Budget(epsilon=1, neighbouring="replace-one", noise="discrete-laplace")
MAKERS = {
    "bernoulli": (lambda budget: BernoulliStatistic.calibrated(column="y", budget=budget), WHOLE, [4.0], 6),
    "poisson": (lambda budget: PoissonStatistic.calibrated(column="y", upper=4, budget=budget), WHOLE, [9.0], 5),
    "normal": (
        lambda budget: NormalStatistic.calibrated(response="y", **BOUNDS, budget=budget),
        MUCH,
        [0.8, 0.9],
        4,
    ),
    "regression": (
        lambda budget: RegressionStatistic.calibrated(response="y", covariates=["x"], **BOUNDS, budget=budget),
        MUCH,
        [0.4, 0.8, 0.9, 0.5, 0.9],
        4,
    ),
    "logistic": (
        lambda budget: LogisticStatistic.calibrated(response="y", covariates=["x"], **BOUNDS, budget=budget),
        MUCH,
        [0.2, 0.9, -0.8, 1.1],
        4,
    ),
    "dirichlet": (
        lambda budget: DirichletStatistic.calibrated(parts=["a", "b"], floor=0.05, budget=budget),
        LITTLE,
        [-3.5, -2.4],
        4,
    ),
}
STATISTIC_ROWS = [(model, size) for model in (*MAKERS, "table") for size in ("public", "secret")]


def statistics_of(model, size):
    """Released numbers on the lattice of their noise, and what a reference needs to know of them."""
    make, budgets, values, n = MAKERS[model]
    mechanism = make(budgets[size])
    values = np.array(values) - n * mechanism.offsets
    public = n if size == "public" else None
    noisy_n = None if size == "public" else float(n)
    statistics = NoisyStatistics(mechanism=mechanism, values=values, n=public, noisy_n=noisy_n)
    size_scale = None if mechanism.size_noise is None else mechanism.size_noise.scale
    seen = {"values": values, "scale": mechanism.noise.scale, "n": public, "noisy_n": noisy_n, "size_scale": size_scale}
    return statistics, seen, float(mechanism.offsets.max())


def quiet(call, *given, **options):
    """The call without its warning: tails too heavy for a mean are no fault here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotMixed)
        return call(*given, **options)


WEIGHTED = 400_000
NAMES = {
    "normal": {"intercept": ("mean", ()), "tau": ("tau", ())},
    "regression": {"intercept": ("beta", (0,)), "slope": ("beta", (1,)), "tau": ("tau", ()), "mu": ("mu", (0,))},
    "logistic": {"intercept": ("beta", (0,)), "slope": ("beta", (1,)), "mu": ("mu", (0,))},
    "dirichlet": {"first": ("alpha", (0,)), "second": ("alpha", (1,))},
}
POINTS = {
    "normal": {"intercept": (-0.2, 0.1, 0.3, 0.8), "tau": (2.0, 10.0, 40.0)},
    "regression": {"intercept": (-0.5, 0.0, 0.3), "slope": (-1.0, 0.3, 1.5), "tau": (2.0, 20.0), "mu": (-0.2, 0.1, 0.4)},
    "logistic": {"intercept": (-3.0, 0.0, 3.0), "slope": (0.0, 3.0, 7.0), "mu": (-0.5, 0.0, 0.5)},
    "dirichlet": {"first": (1.0, 3.0, 10.0), "second": (1.0, 4.0, 12.0)},
}
SIZES = (2, 3, 4, 5)
WEIGHED_ROWS = [row for row in STATISTIC_ROWS if row[0] in NAMES]


@pytest.mark.parametrize(("model", "size"), WEIGHED_ROWS, ids=[" ".join(row) for row in WEIGHED_ROWS])
def test_statistics_against_weighted_draws_from_the_prior(model, size):
    statistics, seen, offset = statistics_of(model, size)
    most = 12 if size == "secret" else seen["n"]
    how = {"size": WEIGHTED, "rng": np.random.default_rng(3), "most": most}
    if model in ("normal", "regression"):
        reference = line(seen, offset=offset, **how)
    else:
        reference = odds(seen, offset=offset, **how) if model == "logistic" else parts(seen, floor=0.05, **how)
    assert 1.0 / (reference.weights**2).sum() > 1000.0  # draws that count
    found = quiet(privurn.infer, statistics, run=Run(seed=1)).draws
    points = POINTS[model] | ({"n": SIZES} if size == "secret" else {})
    exact, errors = reference.cdf(points)
    for name, at in points.items():
        variable, place = NAMES[model].get(name, (name, ()))
        assert_agreement(found[variable][(..., *place)], at, exact[name], errors[name])


@pytest.mark.parametrize("size", ["public", "secret"])
@pytest.mark.parametrize(("model", "at"), [("bernoulli", (0.3, 0.5, 0.7, 0.9)), ("poisson", (0.8, 1.6, 2.4, 4.0))])
def test_sums_against_enumeration(model, size, at):
    statistics, seen, _ = statistics_of(model, size)
    name, work = {"bernoulli": ("probability", proportion), "poisson": ("rate", lambda s, at: rate(s, upper=4, at=at))}[model]
    exact = work(seen, at={name: at, "n": (3, 5, 7, 9)})
    found = privurn.infer(statistics, run=Run(seed=1)).draws
    assert_agreement(found[name], at, exact[name])
    if size == "secret":
        assert_agreement(found["n"], (3, 5, 7, 9), exact["n"])


def test_a_secret_n_of_a_proportion_to_a_fortieth_of_its_deviation():
    """Jumps whose size follows n shift its mean by that much, which the usual length does not show."""
    mechanism = BernoulliStatistic.calibrated(
        column="y", budget=Budget(epsilon=0.7, epsilon_n=0.2, noise="discrete-laplace", neighbouring="add-remove")
    )
    statistics = NoisyStatistics(mechanism=mechanism, values=np.array([7.0]), noisy_n=12.0)
    assert (mechanism.noise.scale, mechanism.size_noise.scale) == (pytest.approx(2.0, rel=1e-5), pytest.approx(5.0, rel=1e-5))
    sizes, ones = np.mgrid[1:200, 0:200]
    weights = np.exp(-np.abs(12.0 - sizes) / 5.0 - np.abs(7.0 - ones) / 2.0) * (ones <= sizes) / (sizes + 1.0)
    mean = float((weights * sizes).sum() / weights.sum())
    found = privurn.infer(statistics, run=Run(draws=20_000, seed=1)).draws.summary(["n"])[0]
    assert found.standard_error < 0.02
    assert abs(found.mean - mean) < ERRORS * found.standard_error


def table_of(size):
    domain = {"y": privurn.Categories(["a", "b"], outside="other")}
    n = 6 if size == "public" else None
    mechanism = PerturbedHistogram(n=n, cells=3, records=3, noise="discrete-laplace", scale=2.0, publish="counts")
    return Observed(mechanism=mechanism, domain=privurn.JointDomain(domain), counts=np.array([5.0, 2.0, -1.0]))


@pytest.mark.parametrize("prior", [None, 1.0], ids=["default", "one each"])
@pytest.mark.parametrize("size", ["public", "secret"])
def test_tables_against_enumeration(size, prior):
    observed = table_of(size)

    def level(counts):
        return -np.abs(observed.counts - counts).sum() / observed.mechanism.scale

    exact = CountPosterior(level, cells=3, sizes=range(46) if size == "secret" else [6], each=prior)
    found = privurn.infer(observed, CountModel(prior=prior), ask="cells", run=Run(seed=1)).draws
    points = (0.1, 0.3, 0.5, 0.7)
    for cell in range(3):
        assert_agreement(found[f"P(x={['a', 'b', 'other'][cell]})"], points, exact.share_cdf(cell=cell, at=points))
    if size == "secret":
        assert_agreement(found["n"], (4, 6, 8, 11), exact.size_cdf(at=(4, 6, 8, 11)))


# ---- the command line says what Python says --------------------------------------------------------------------------------

RECORDS = {
    "bernoulli": [[1], [0], [1], [1]],
    "poisson": [[2], [0], [4], [1]],
    "normal": [[0.2], [-0.4], [0.5], [0.1]],
    "regression": [[0.1, 0.3], [-0.6, -0.2], [0.4, 0.5], [0.0, 0.2]],
    "logistic": [[0.1, 1], [-0.6, 0], [0.4, 1], [0.0, 0]],
    "dirichlet": [[0.4, 0.6], [0.3, 0.7], [0.5, 0.5], [0.2, 0.8]],
    "table": [["a"], ["b"], ["a"], ["a"]],
}
NAMED = {"regression": ["x", "y"], "logistic": ["x", "y"], "dirichlet": ["a", "b"]}


@pytest.mark.usefixtures("interpreted")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # plain numbers say where they overflow
@pytest.mark.parametrize(("model", "size"), STATISTIC_ROWS, ids=[" ".join(row) for row in STATISTIC_ROWS])
def test_the_command_and_the_object_that_was_released_give_the_same(model, size, tmp_path):
    """release_statistics(...) handed on as it is, and its folder to the command, both at their default priors."""
    import pandas as pd

    data = pd.DataFrame(RECORDS[model], columns=NAMED.get(model, ["y"]))
    if model == "table":
        neighbouring = "replace-one" if size == "public" else "add-remove"
        given = {"domain": {"y": privurn.Categories(["a", "b"], outside="other")}, "neighbouring": neighbouring}
        released = privurn.release(data, NoisyCounts(publish="counts"), epsilon=1, entropy=SeededEntropy(4), **given)
    else:
        make, budgets, *_ = MAKERS[model]
        mechanism = make(budgets[size])
        released = release_statistics(data, mechanism=mechanism, budget=budgets[size], entropy=SeededEntropy(4))
    released.save(tmp_path / "stats")
    short = ["--draws", "12", "--warm-up", "8", "--chains", "2", "--seed", "5", "--json"]
    told = CliRunner().invoke(app, ["infer", str(tmp_path / "stats"), *short])
    assert told.exit_code == 0, told.output
    rows = {row["name"]: row["mean"] for row in json.loads(told.stdout)["variables"]}
    found = quiet(privurn.infer, released, run=Run(chains=2, warm_up=8, draws=12, seed=5))
    own = {row.name: row.mean for row in found.summary()}
    assert rows
    assert rows == own


@pytest.mark.parametrize("size", ["public", "secret"])
def test_the_command_on_a_release_gives_what_python_gives(size, tmp_path):
    """All defaults but the seed."""
    pay = np.random.default_rng(2).gamma(4.0, 1.0, 60).clip(0, 10)
    neighbouring = "replace-one" if size == "public" else "add-remove"
    options = {
        "epsilon": 2,
        "delta": 1e-4,
        "neighbouring": neighbouring,
        "mechanism": privurn.Urn(records=20),
        "entropy": SeededEntropy(3),
    }
    privurn.release(pay, domain=privurn.Grid(0, 10, 2), **options).save(tmp_path / "out")
    told = CliRunner().invoke(app, ["infer", str(tmp_path / "out"), "--seed", "5", "--json"])
    assert told.exit_code == 0, told.output
    rows = {row["name"]: row["mean"] for row in json.loads(told.stdout)["variables"]}
    own = {row.name: row.mean for row in privurn.infer(tmp_path / "out", run=Run(seed=5)).summary()}
    assert rows == own
    assert ("n" in own) == (size == "secret")


def test_lengths_of_the_command_are_those_of_python():
    """The command leaves lengths to the engines, and its help says what they are."""
    options = {name: each.default for name, each in inspect.signature(infer_command).parameters.items()}
    assert (options["draws"], options["chains"]) == ("auto", Run().chains)
    assert options["warm_up"] is options["thin"] is None
    assert (COUNT_LENGTHS.warm_up, SUM_LENGTHS.warm_up, MIXTURE_LENGTHS.warm_up) == (500, 2000, 2000)
    assert (COUNT_LENGTHS.thin, SUM_LENGTHS.thin, MIXTURE_LENGTHS.thin) == (1, 1, 10)
    shown = CliRunner().invoke(app, ["infer", "--help"], env={"COLUMNS": "200"}).output
    assert "500 for counts, else 2000" in shown
    assert "10 for mixtures, else 1" in shown


def test_two_noisy_tables_tell_more_than_one():
    one, both = (privurn.infer([table_of("secret")] * times, run=Run(seed=1)) for times in (1, 2))
    assert one.names == both.names
    assert both.draws["n"].std() < one.draws["n"].std()


# ---- mixtures --------------------------------------------------------------------------------------------------------------


THREE = np.array([0, 1, 1])


def behind_randomised_response(strength):
    return MixtureModel(
        channel=RandomisedResponseChannel(categories=2, odds=Fraction(4)),
        kernel=CategoricalKernel(categories=(2,)),
        mixing=DirichletProcess(strength=strength),
    )


def clusterings(strength):
    """All clusterings of three records and latent codes: weight, number of clusters, and (zeros, ones) of each of them."""
    for c in partitions(3):
        for y in product(range(2), repeat=3):
            weight = np.exp(log_urn(c, ("DirichletProcess", {"strength": strength})))
            weight *= np.prod([0.8 if y[i] == z else 0.2 for i, z in enumerate(THREE)])
            members = [[y[i] for i in range(3) if c[i] == cluster] for cluster in set(c)]
            counts = [(len(each) - sum(each), sum(each)) for each in members]
            for zeros, ones in counts:  # a uniform prior of the probability: ones! zeros! / (1 + all)!
                weight *= factorial(ones) * factorial(zeros) / factorial(1 + ones + zeros)
            yield weight, counts


def test_a_mixture_of_categories_behind_randomised_response():
    """The number of clusters, through the public call at its defaults."""
    law = np.zeros(4)
    for weight, counts in clusterings(0.8):
        law[len(counts)] += weight
    law /= law.sum()
    found = privurn.infer(THREE, behind_randomised_response(0.8), run=Run(seed=1))
    assert_agreement(found.n_clusters, (1, 2), np.cumsum(law)[1:3])


def assert_mean(drawn, exact):
    """Mean of draws (chain, draw) against that of their law."""
    error = drawn.std() / np.sqrt(effective_draws(drawn, of="mean"))
    assert abs(drawn.mean() - exact) <= ERRORS * error, (drawn.mean(), exact, error)


def test_shares_of_a_mixture_with_many_atoms():
    """Mean and deviation of a share: given clusters the measure is a Dirichlet process, whose linear functionals have both.

    With H' = (s H + sum_h n_h delta(theta_h)) / (s + n), a share has the mean m = H'(theta) and the variance
    (H'(theta^2) - m^2) / (s + n + 1); theta_h is a Beta variable given its cluster.
    """
    s, total, moments = 50.0, 53.0, np.zeros(3)
    for weight, counts in clusterings(s):
        sizes = np.array([sum(each) for each in counts])
        means = np.array([1.0 + ones for _, ones in counts]) / (2.0 + sizes)
        variances = means * (1.0 - means) / (3.0 + sizes)
        mean = (0.5 * s + sizes @ means) / total
        square = mean**2 + sizes**2 @ variances / total**2
        within = ((s / 3.0 + sizes @ (variances + means**2)) / total - square) / (total + 1.0)
        moments += weight * np.array([1.0, mean, square + within])
    first, second = moments[1:] / moments[0]
    share = privurn.infer(THREE, behind_randomised_response(s), run=Run(seed=1)).draws["share"][..., 1]
    assert_mean(share, first)
    assert_mean((share - first) ** 2, second - first**2)
