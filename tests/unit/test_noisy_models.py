"""Models, chains and fits of noisy sums: their parts agree with closed forms, with each other and with the released object."""

import itertools
import math
import warnings
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from privurn._kernels.sums import chain, protocol, sweeps
from privurn.domain import Categories, JointDomain
from privurn.errors import FormatError, ModelError
from privurn.inference import run as running
from privurn.inference.counts import sampling
from privurn.inference.counts.released import Observed as ObservedCounts
from privurn.inference.infer import infer
from privurn.inference.run import Run, Schedule, run_chains
from privurn.inference.size import SizePrior
from privurn.inference.sums import fit as fitting
from privurn.inference.sums.dirichlet_model import DirichletModel
from privurn.inference.sums.fit import NotMixed, fit
from privurn.inference.sums.latent_chain import LatentChain, entry
from privurn.inference.sums.mcem import maximise
from privurn.inference.sums.mean_models import BernoulliModel, PoissonModel
from privurn.inference.sums.model import PythonModel
from privurn.inference.sums.observed import Observed
from privurn.inference.sums.regression_model import RegressionModel, RegressionPrior
from privurn.mechanisms.perturbed_histogram import PerturbedHistogram
from privurn.mechanisms.sums.calibrating import Budget
from privurn.mechanisms.sums.dirichlet_statistic import DirichletStatistic
from privurn.mechanisms.sums.regression_statistic import RegressionStatistic
from privurn.mechanisms.sums.sum_statistic import BernoulliStatistic
from privurn.privacy.entropy import SeededEntropy
from privurn.releases.statistics import release_statistics

REGRESSION = RegressionModel(lower=(-2.0, -1.0, -3.0), upper=(1.0, 2.0, 3.0), resolution=20, complement=True)
MODELS = [
    REGRESSION,
    RegressionModel(lower=(-1.5,), upper=(1.5,), name="normal"),
    DirichletModel(parts=("a", "b", "c"), floor=0.05, shape=2.0, rate=1.0, resolution=24),
    BernoulliModel(first=2.0, second=3.0),
    PoissonModel(upper=4),
]
every = pytest.mark.parametrize("model", MODELS, ids=lambda each: each.name)


def secret(values, scales, **others):
    return Observed(values=np.array(values), scales=np.array(scales), **{"noisy_n": 6.0, "noisy_n_scale": 1.0} | others)


@every
def test_parts_of_a_model_agree(model):
    rng = np.random.default_rng(1)
    for _ in range(5):
        theta = model.start(rng)
        records = model.simulate(theta, n=70, rng=rng)
        total, one = np.zeros(model.n_entries), np.zeros(model.n_entries)
        for row in records:
            protocol.update_statistic(model.record, row, one)
            total += one
        np.testing.assert_allclose(total, model.statistic(records), rtol=1e-12, atol=1e-12)

        standard, back = np.zeros((70, model.standard_width)), np.zeros_like(records)
        for i in range(70):
            protocol.update_standard(model.record, theta, records[i], rng, standard[i])
            protocol.update_restored(model.record, theta, standard[i], back[i])
        np.testing.assert_allclose(back, records, rtol=1e-9, atol=1e-9)
        protocol.update_total(model.record, theta, standard, 70, one)
        np.testing.assert_allclose(one, total, rtol=0, atol=1e-4)  # a value within 1e-10 of a rounding edge may fall either way

        free, again = np.zeros(len(theta) + 1), np.zeros_like(theta)
        protocol.update_free(model.record, theta, free)
        protocol.update_from_free(model.record, free[:-1], again)
        np.testing.assert_allclose(again, theta, rtol=1e-12)
        named = {name: values[0] for name, values in model.variables(theta[None]).items()}
        np.testing.assert_allclose(model.flat(named), theta, rtol=1e-8, atol=1e-10)


def test_log_prior_is_the_stated_law_with_its_jacobian():
    prior = RegressionPrior(
        coefficient_mean=np.array([0.3, -0.2, 0.1]),
        coefficient_precision=np.array([[2.0, 0.3, 0.0], [0.3, 1.0, 0.1], [0.0, 0.1, 0.5]]),
        precision_shape=3.0,
        precision_rate=1.5,
        covariate_mean=np.array([0.5, -1.0]),
        covariate_mean_variance=np.array([[1.0, 0.2], [0.2, 2.0]]),
        wishart_degrees=3.5,
        wishart_scale=np.array([[0.5, 0.1], [0.1, 0.8]]),
    )
    model = RegressionModel(lower=(-5.0,) * 3, upper=(5.0,) * 3, prior=prior)
    rng = np.random.default_rng(2)

    def natural(free):
        theta = np.zeros(9)
        protocol.update_from_free(model.record, free, theta)
        named = model.variables(theta[None])
        return np.concatenate([named["beta"][0], named["tau"], named["mu"][0], named["Phi"][0][np.tril_indices(2)]])

    gaps = []
    for _ in range(6):
        theta, free = model.start(rng), np.zeros(10)
        protocol.update_free(model.record, theta, free)
        steps = 1e-5 * np.eye(9)
        jacobian = np.array([(natural(free[:9] + h) - natural(free[:9] - h)) / 2e-5 for h in steps])
        named = {name: values[0] for name, values in model.variables(theta[None]).items()}
        law = (
            stats.multivariate_normal.logpdf(
                named["beta"], prior.coefficient_mean, np.linalg.inv(named["tau"] * prior.coefficient_precision)
            )
            + stats.gamma.logpdf(named["tau"], 1.5, scale=1 / 0.75)
            + stats.multivariate_normal.logpdf(named["mu"], prior.covariate_mean, prior.covariate_mean_variance)
            + stats.wishart.logpdf(named["Phi"], 3.5, prior.wishart_scale)
        )
        gaps.append(protocol.log_prior(model.record, theta) - law - np.linalg.slogdet(jacobian)[1])
    np.testing.assert_allclose(gaps, gaps[0], rtol=0, atol=1e-6)


@pytest.mark.parametrize("model", MODELS, ids=lambda each: each.name)
def test_compiled_code_does_what_the_source_says(model, filthy_memory):
    scales = np.full(model.n_entries, 0.8)
    sampler = LatentChain(model=model, observed=secret(np.linspace(-1, 2, model.n_entries), scales))
    results = []
    compiled, source = chain.update_interwoven_chain, chain.update_interwoven_chain.py_func
    for kernel, memory in ((compiled, nullcontext), (source, nullcontext), (source, filthy_memory)):
        rng = np.random.default_rng(4)
        state = sampler.start(rng)
        kept, kept_n, rates = np.empty((3, model.n_parameters)), np.empty(3, np.int64), np.zeros((3, 3))
        for sweeps_, warming, out in ((2, True, (kept[:0], kept_n[:0], rates[:0])), (3, False, (kept, kept_n, rates))):
            order = ("theta", "records", "count", "numbers", "mean", "covariance", "factor")
            tuning = chain.Tuning(2, 2, True, 0, max(1, model.standard_width))
            head = (model.record, sampler.noise(), sampler.observed.size_record(), tuning)
            with memory():
                state["records"] = kernel(*head, *(state[name] for name in order), rng, sweeps_, 1, warming, *out)
        results.append((kept, kept_n, rates, state["records"][: state["count"][0]]))
    for one, other, in_filth in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)
        np.testing.assert_array_equal(other, in_filth)


class Probe:
    """A generator whose uniform numbers are almost 1, so that an acceptance is compared with its exact probability."""

    def __init__(self, rng, *, up):
        self.rng, self.directions, self.levels = rng, [0.1 if up else 0.9], []

    def random(self):
        return self

    def __lt__(self, level):
        if self.directions and level == 0.5:
            return self.directions.pop() < level
        self.levels.append(level)
        return False

    def __rmul__(self, number):
        return (1.0 - 1e-9) * number

    def __getattr__(self, name):
        return getattr(self.rng, name)


@pytest.mark.parametrize(("epsilon", "epsilon_n"), [(1.0, 0.5), (0.1, 0.01), (3.0, 1.0)])
def test_acceptance_is_bounded_as_proposition_5_1_says(epsilon, epsilon_n):
    """Over random states, releases and directions; the statistic has add-remove sensitivity 9 (three columns)."""
    rng = np.random.default_rng(6)
    model = RegressionModel(lower=(-1.0,) * 3, upper=(1.0,) * 3)
    smallest = {"within": 1.0, "jump": 1.0, "from one": 1.0}
    for _ in range(300):
        n = int(rng.integers(1, 5))
        theta = model.start(rng)
        records = np.vstack([model.simulate(theta, n=n, rng=rng), np.zeros((4, 3))])
        total = model.statistic(records[:n])
        released = total + 9.0 / epsilon * rng.laplace(size=9)
        noisy = {"noisy_n": n + rng.laplace() / epsilon_n, "noisy_n_scale": 1.0 / epsilon_n}
        observed = secret(released, np.full(9, 9.0 / epsilon), **noisy)
        noise, size = observed.noise_record(), observed.size_record()
        probe = Probe(rng, up=bool(rng.integers(2)) or n == 1)
        sweeps.jumped(model.record, noise, size, theta, records.copy(), n, total.copy(), 1, probe)
        kind = "from one" if n == 1 else "jump"
        smallest[kind] = min([smallest[kind], *probe.levels[1::2]])
        probe = Probe(rng, up=True)
        probe.directions.clear()
        sweeps.update_records(model.record, noise, theta, records, n, total, probe)
        smallest["within"] = min([smallest["within"], *probe.levels[1::2]])
    assert math.exp(-2 * epsilon) <= smallest["within"] < 1.0
    assert math.exp(-(epsilon + epsilon_n)) <= smallest["jump"] < 1.0
    assert 0.5 * math.exp(-(epsilon + epsilon_n)) <= smallest["from one"] < 1.0


def test_latent_values_are_not_clamped_but_their_statistics_are():
    model = RegressionModel(lower=(-1.0,), upper=(1.0,))
    out = np.zeros(2)
    protocol.update_statistic(model.record, np.array([7.0]), out)
    assert list(out) == [1.0, 1.0]
    assert np.abs(model.simulate(model.pack(beta=[0.0], tau=0.01), n=100, rng=np.random.default_rng(1))).max() > 5.0


def test_runs_do_not_depend_on_how_they_are_cut_and_can_be_continued(tmp_path):
    sampler = LatentChain(model=BernoulliModel(), observed=secret([3.0], [1.0], noisy_n=3.0, noisy_n_scale=5.0))
    whole = run_chains(sampler, schedule=Schedule(chains=2, warm_up=100, draws=300, seed=1))
    file = tmp_path / "chains.npz"
    run_chains(sampler, schedule=Schedule(chains=2, warm_up=100, draws=100, seed=1), checkpoint=file)
    again = run_chains(sampler, schedule=Schedule(chains=2, warm_up=100, draws=300, seed=1), checkpoint=file, threads=1)
    np.testing.assert_array_equal(whole["probability"], again["probability"])
    np.testing.assert_array_equal(whole["n"], again["n"])
    assert set(whole.sample_stats) == {"acceptance_records", "acceptance_jumps", "acceptance_steps"}
    other = LatentChain(model=BernoulliModel(), observed=secret([4.0], [1.0], noisy_n=3.0, noisy_n_scale=5.0))
    with pytest.raises(FormatError):
        run_chains(other, schedule=Schedule(chains=2, warm_up=100, draws=300, seed=1), checkpoint=file)


def test_noise_on_n_that_vanishes_gives_the_public_n():
    """Exact: with n known the posterior of the number of ones is a product of two known laws."""
    seen = {"values": np.array([2.6]), "scales": np.array([1.5])}
    means = []
    for size in ({"n": 6}, {"noisy_n": 6.0, "noisy_n_scale": 1e-3}):
        found = fit(BernoulliModel(), observed=Observed(**seen, **size), run=Run(seed=3, draws=4000))
        assert np.all(found.draws["n"] == 6)
        means.append((found.draws["probability"].mean(), found.draws.summary(["probability"])[0].standard_error))
    ones = np.arange(7)
    weights = np.exp(-np.abs(2.6 - ones) / 1.5)
    exact = np.sum(weights * (ones + 1) / 8) / weights.sum()
    for mean, error in means:
        assert abs(mean - exact) < 5.0 * error  # one false alarm in 1.7 million


class Mean(PythonModel):
    """Normal records of variance 1, clamped to [-3, 3] in the sum; the mean is N(0, 1)."""

    n_parameters = n_entries = 1
    standard_width = 1
    parameter_names = ("mean",)

    def start(self, rng):
        return rng.standard_normal(1)

    def draw_parameters(self, records, *, parameters, rng):
        precision = 1.0 + len(records)
        return records.sum(axis=0) / precision + rng.standard_normal(1) / math.sqrt(precision)

    def draw_record(self, parameters, *, rng):
        return parameters + rng.standard_normal(1)

    def statistic(self, record):
        return np.clip(record, -3.0, 3.0)

    def standardise(self, parameters, record, *, rng):
        return record - parameters

    def restore(self, parameters, standard):
        return parameters + standard

    def log_prior(self, parameters):
        return -0.5 * float(parameters[0]) ** 2


@pytest.mark.parametrize("moves", ["centred", "interwoven"])
def test_a_model_in_plain_python(moves):
    observed = Observed(values=np.array([4.0]), scales=np.array([1.0]), n=3)
    found = fit(Mean(), observed=observed, moves=moves, run=Run(seed=5, draws=500, warm_up=100, chains=2))
    row = found.draws.summary(["mean"])[0]
    grid, records = np.linspace(-5, 6, 1101), np.random.default_rng(1).standard_normal((200_000, 3))
    # exact up to simulation: likelihood of each mean by averaging the mechanism over the same standard records
    likelihood = [np.exp(-np.abs(4.0 - np.clip(m + records, -3, 3).sum(axis=1))).mean() for m in grid[::20]]
    weights = np.array(likelihood) * np.exp(-0.5 * grid[::20] ** 2)
    exact = np.sum(weights * grid[::20]) / weights.sum()
    assert abs(row.mean - exact) < 5.0 * row.standard_error + 0.005
    assert found.synthetic(seed=1).shape == (3, 1)


def test_maximum_likelihood_of_a_proportion():
    observed = Observed(values=np.array([14.0]), scales=np.array([2.0]), n=40)
    found = maximise(BernoulliModel(), observed=observed, iterations=8000, seed=1)
    grid, ones = np.linspace(0.01, 0.99, 981), np.arange(41)
    likelihood = stats.binom.pmf(ones[:, None], 40, grid) * np.exp(-np.abs(14.0 - ones) / 2.0)[:, None]
    best = grid[np.argmax(likelihood.sum(axis=0))]
    spread = found.trace["probability"].std()
    assert found.problems == ()
    assert abs(found.estimate["probability"] - best) < 5.0 * found.monte_carlo_error["probability"] + spread**2


def test_from_a_released_object():
    budget = Budget(epsilon=1.5, epsilon_n=0.5, neighbouring="add-remove")
    mechanism = BernoulliStatistic.calibrated(column="yes", budget=budget)
    units = round(1.0 / mechanism.noise.step)
    released = mechanism.add_noise([30 * units], 100, entropy=SeededEntropy(1))
    found = infer(released, run=Run(seed=1))
    assert found.mixed
    assert abs(found.draws["n"].mean() - 100) < 30

    moments = RegressionStatistic.calibrated(response="y", covariates=("a", "b"), bounds=(-5, 5), budget=budget)
    model = RegressionModel.from_statistics(moments.add_noise([0] * 9, 50, entropy=SeededEntropy(1)))
    records = np.random.default_rng(1).normal(0, 3, (40, 3))
    expected = moments.record_units(records).sum(axis=0) * moments.noise.step
    np.testing.assert_allclose(model.statistic(records), expected, rtol=1e-12)

    logs = DirichletStatistic.calibrated(parts=("a", "b"), floor=0.01, budget=budget)
    compositions = DirichletModel.from_statistics(logs.add_noise([0, 0], 50, entropy=SeededEntropy(1)))
    drawn = compositions.simulate(np.array([0.7, 2.0]), n=30, rng=np.random.default_rng(1))
    expected = logs.record_units(np.exp(drawn)).sum(axis=0) * logs.noise.step
    np.testing.assert_allclose(compositions.statistic(drawn), expected, atol=30 * logs.noise.step)
    with pytest.raises(ModelError, match="not dirichlet"):
        DirichletModel.from_statistics(released)
    with pytest.raises(ModelError, match="has no prior"):
        Observed.from_statistics(
            BernoulliStatistic.calibrated(column="yes", budget=Budget(epsilon=1, neighbouring="replace-one")).add_noise(
                [1], 2, entropy=SeededEntropy(1)
            ),
            size_prior=SizePrior(upper=9),
        )


def test_chains_that_have_not_mixed_say_so():
    observed = secret([300.0], [10.0], noisy_n=1000.0, noisy_n_scale=100.0)
    with pytest.warns(NotMixed, match="NOT mixed after 60 draws"):
        found = fit(BernoulliModel(), observed=observed, moves="centred", run=Run(draws=60, warm_up=0, seed=1))
    assert not found.mixed
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fit(BernoulliModel(), observed=observed, run=Run(seed=1)).mixed


def stopping(after):
    """A progress function that interrupts a run once so many sweeps are done."""

    def progress(done, total, figures):
        if done >= after:
            raise KeyboardInterrupt

    return progress


@pytest.mark.parametrize("after", [110, 150, 230, 300])
def test_a_fit_of_a_chosen_length_goes_on_from_its_checkpoint(tmp_path, monkeypatch, after):
    """Interrupted before, just after and long after its first lengthening: the draws of a run in one go."""
    monkeypatch.setattr(fitting, "LENGTHS", replace(fitting.LENGTHS, draws=40))
    monkeypatch.setattr(running, "PIECES", 8)
    seen = secret([4.0], [1.0], noisy_n=8.0, noisy_n_scale=2.0)
    how, run = {"observed": seen, "moves": "centred"}, Run(warm_up=100, seed=2)
    whole = fit(BernoulliModel(), run=run, **how)
    assert whole.mixed
    assert whole.draws.n_draws >= 160
    file = tmp_path / "run.ckpt"
    with pytest.raises(KeyboardInterrupt):
        fit(BernoulliModel(), run=replace(run, checkpoint=file, progress=stopping(after)), **how)
    resumed = fit(BernoulliModel(), run=replace(run, checkpoint=file), **how)
    for name in whole.draws.variables:
        assert np.array_equal(whole.draws[name], resumed.draws[name])
    assert whole.draws.attributes == resumed.draws.attributes


def test_a_table_of_a_chosen_length_goes_on_from_its_checkpoint(tmp_path, monkeypatch):
    mechanism = PerturbedHistogram(n=None, cells=3, records=3, noise="discrete-laplace", scale=2.0, publish="counts")
    domain = JointDomain({"y": Categories(["a", "b"], outside="other")})
    statistics = ObservedCounts(mechanism=mechanism, domain=domain, counts=np.array([9.0, 4.0, 1.0]))
    monkeypatch.setattr(sampling, "LENGTHS", replace(sampling.LENGTHS, draws=15, warm_up=20))
    run = Run(seed=3)
    whole = infer(statistics, ask="cells", run=run).draws
    assert whole.n_draws >= 30
    file = tmp_path / "run.ckpt"
    with pytest.raises(KeyboardInterrupt):
        infer(statistics, ask="cells", run=replace(run, checkpoint=file, progress=stopping(40)))
    resumed = infer(statistics, ask="cells", run=replace(run, checkpoint=file)).draws
    assert all(np.array_equal(resumed[name], whole[name]) for name in whole.names)


def test_what_release_statistics_returns_can_be_handed_on():
    """People as in the how-to page, at the default prior: the slope and n are found, and the object needs no unwrapping."""
    rng = np.random.default_rng(1)
    age = rng.uniform(18, 70, 1000)
    pay = 9000 + 600 * age + rng.normal(0, 9000, 1000)
    budget = Budget(epsilon=10.1, epsilon_n=0.1, neighbouring="add-remove")
    bounds = {"column_0": (0, 120), "column_1": (0, 100_000)}
    mechanism = RegressionStatistic.calibrated(response="column_1", covariates=["column_0"], bounds=bounds, budget=budget)
    released = release_statistics(np.column_stack([age, pay]), mechanism=mechanism, budget=budget, entropy=SeededEntropy(1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotMixed)
        found = infer(released, run=Run(chains=2, warm_up=500, draws=500, seed=1))
    rows = {row.name: row for row in found.draws.summary()}
    assert rows["beta[column_0]"].lower < 600 < rows["beta[column_0]"].upper
    assert rows["beta[column_0]"].deviation < 100
    assert abs(rows["n"].mean - 1000) < 60
    with pytest.raises(FormatError, match="is no release"):
        infer({"values": [1.0]})


def test_bad_input():
    with pytest.raises(ModelError, match="no posterior"):
        Observed(values=np.array([1.0]), scales=np.array([1.0]))
    for wrong in ({"scales": np.array([0.0])}, {"values": np.array([np.nan])}, {"n": 0}, {"n": 4, "noisy_n": 3.0}):
        with pytest.raises(ModelError):
            Observed(**{"values": np.array([1.0]), "scales": np.array([1.0]), "noisy_n": None} | wrong)
    with pytest.raises(ModelError, match="contingency table"):
        fit(BernoulliModel(), observed=Observed(values=np.array([1.0]), scales=np.array([1.0]), n=10**10))
    public = Observed(values=np.array([1.0]), scales=np.array([1.0]), n=5)
    with pytest.raises(ModelError, match="do not belong together"):
        LatentChain(model=REGRESSION, observed=public)
    with pytest.raises(ModelError, match="moves"):
        LatentChain(model=BernoulliModel(), observed=public, moves="sideways")
    for name, value in (("precision_rate", 0.0), ("coefficient_precision", -1.0), ("wishart_degrees", 0.5)):
        with pytest.raises(ModelError):
            RegressionModel(lower=(-1.0,) * 3, upper=(1.0,) * 3, prior=RegressionPrior(**{name: value}))


def test_interpreted_models_are_not_compiled():
    assert entry(chain.update_centred_chain, Mean()) is chain.update_centred_chain.py_func
    assert entry(chain.update_centred_chain, BernoulliModel()) is chain.update_centred_chain
    assert list(itertools.islice(Mean().variables(np.ones((2, 1))), 1)) == ["mean"]
