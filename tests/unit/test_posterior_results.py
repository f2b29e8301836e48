"""What a posterior offers: views, the same draws from the same seed, debiased estimates, files, pictures."""

import itertools
from dataclasses import replace
from fractions import Fraction
from math import comb, lgamma

import numpy as np
import pyarrow as pa
import pytest
from papers.urn_moments import debiased

from privurn import OpenLabels, OpenUrn, release
from privurn.domain import Bins, Categories, Grid, JointDomain
from privurn.errors import FormatError, ModelError
from privurn.inference.counts.composition import composition
from privurn.inference.counts.model import CountModel
from privurn.inference.counts.released import Observed
from privurn.inference.infer import infer
from privurn.inference.run import Run
from privurn.mechanisms.dirichlet_multinomial import DirichletMultinomial
from privurn.mechanisms.perturbed_histogram import PerturbedHistogram
from privurn.mechanisms.posterior_sample import PosteriorSample
from privurn.privacy.entropy import SeededEntropy

pytestmark = pytest.mark.filterwarnings("ignore::privurn.inference.draws.NotMixed")
"""Chains are short: what they say is not judged here."""

DOMAIN = JointDomain({"x": Grid(0, 1, "0.1")})
URN = DirichletMultinomial(n=500, cells=11, alpha=Fraction(4), records=400)
COUNTS = np.array([5, 20, 40, 60, 80, 70, 50, 30, 20, 15, 10])
RELEASE = Observed(mechanism=URN, domain=DOMAIN, counts=COUNTS)
FIVE = ["mean", "variance", "q0.5", "cdf(0.3)", "P(x>0.75)"]
QUICK = Run(draws=60, chains=2, warm_up=20, seed=3)


@pytest.fixture(scope="module")
def flat():
    return infer(RELEASE, ask=FIVE, run=QUICK)


@pytest.fixture(scope="module")
def closed():
    return infer(RELEASE, CountModel(prior="mechanism"), ask=FIVE, run=QUICK)


def test_population_and_sample_come_from_one_chain(flat):
    assert flat.draws.markov
    assert flat.names == tuple(FIVE)
    assert flat.draws["mean"].shape == (2, 60)
    assert set(flat.views) == {"population", "sample"}
    assert flat.sample.of == "sample"
    assert flat.sample.population.draws is flat.draws
    shares = flat.sample.draws["P(x>0.75)"] * URN.n
    assert np.allclose(shares, np.rint(shares))  # the sample has whole records
    assert flat.draws.attributes["prior"] == "flat, worth 1 to 11 records in all"
    with pytest.raises(ModelError, match="mechanism's own prior"):
        _ = flat.urn


def test_the_same_seed_gives_the_same_draws(flat, closed):
    for prior, first in ((None, flat), ("mechanism", closed)):
        again = infer(RELEASE, CountModel(prior=prior), ask=FIVE, run=replace(QUICK, threads=1))
        assert all(np.array_equal(again.draws[name], first.draws[name]) for name in FIVE)
    unseeded = infer(RELEASE, CountModel(prior="mechanism"), run=Run(draws=5))
    assert np.array_equal(unseeded.ask(unseeded.names).draws["mean"], unseeded.draws["mean"])


def test_the_closed_form_is_independent_and_switches(closed):
    assert not closed.draws.markov
    assert closed.problems() == ()
    urn = closed.urn
    assert urn.of == "urn"
    assert urn.draws["mean"].std() < closed.draws["mean"].std()
    other = closed.ask({"square": lambda x: x**2})
    assert other.names == ("square",)


def test_long_runs_do_not_depend_on_their_pieces(closed, monkeypatch):
    monkeypatch.setattr("privurn.inference.counts.sampling.AT_ONCE", 11 * 7)
    again = infer(RELEASE, CountModel(prior="mechanism"), ask=FIVE, run=QUICK)
    assert np.array_equal(again.draws["variance"], closed.draws["variance"])


def test_other_priors():
    """A strong prior wins; one for each cell is one for each cell."""
    strong = infer(RELEASE, CountModel(prior=np.append(1e9, np.ones(10))), ask="P(x=0)", run=QUICK)
    assert strong.summary()[0].mean > 0.99
    even = infer(RELEASE, CountModel(prior="flat"), ask="mean", run=QUICK)
    assert np.array_equal(even.draws["mean"], infer(RELEASE, ask="mean", run=QUICK).draws["mean"])
    worth = even.draws.sample_stats["prior records"]
    assert 1 <= worth.min() < worth.max() <= 11
    one = infer(RELEASE, CountModel(prior=1), ask="mean", run=QUICK)
    assert one.draws.attributes["prior"] == "Dirichlet(1 in each cell)"
    for wrong in (0, -1, np.nan, np.ones(3), "jeffreys", "one"):
        with pytest.raises(ModelError):
            infer(RELEASE, CountModel(prior=wrong), run=QUICK)
    with pytest.raises(ModelError, match="of="):
        infer(RELEASE, of="everything", run=QUICK)
    with pytest.raises(ModelError, match="one release only"):
        infer([RELEASE, RELEASE], CountModel(prior="mechanism"), run=QUICK)


def test_face_value_and_naive(flat):
    values = np.arange(11) / 10
    assert flat.face_value["mean"] == pytest.approx(COUNTS @ values / 400)
    naive = flat.naive()
    exact = (COUNTS + 1.0) / 411
    error = np.sqrt((exact @ values**2 - (exact @ values) ** 2) / 412 / naive["mean"].size)
    assert abs(naive["mean"].mean() - exact @ values) < 6 * error
    probabilities = Observed(
        mechanism=PosteriorSample(n=500, cells=11, alpha=Fraction(4), records=400, draws=2),
        domain=DOMAIN,
        counts=np.array([COUNTS, COUNTS[::-1]]) / 400,
    )
    assert probabilities.face_value.sum() == pytest.approx(500)
    noisy = PerturbedHistogram(n=500, cells=11, records=11, noise="laplace", scale=2.0, publish="counts")
    below = Observed(mechanism=noisy, domain=DOMAIN, counts=COUNTS - 10.0)
    assert below.face_value.min() == 0.0


def test_a_secret_number_of_records_is_drawn_too():
    noise = PerturbedHistogram(n=None, cells=11, records=11, noise="discrete-laplace", scale=2.0, publish="counts")
    found = infer(Observed(mechanism=noise, domain=DOMAIN, counts=COUNTS.astype(float)), ask="mean", run=QUICK)
    assert abs(found.draws["n"].mean() - 400) < 60
    assert [each.name for each in found.summary()] == ["mean", "n"]
    secret = DirichletMultinomial(n=None, cells=11, alpha=Fraction(4), records=400)
    found = infer(
        Observed(mechanism=secret, domain=DOMAIN, counts=COUNTS), CountModel(prior="mechanism"), ask="mean", of="urn", run=QUICK
    )
    assert found.draws["mean"].shape == (2, 60)
    with pytest.raises(ModelError, match="secret"):
        _ = found.population


def test_draws_without_records_are_left_out_and_counted():
    """A functional of no records is undefined; where n is secret the sample may hold none."""
    noise = PerturbedHistogram(n=None, cells=3, records=3, noise="discrete-laplace", scale=2.0, publish="counts")
    few = Observed(mechanism=noise, domain=JointDomain({"x": Grid(0, 1, "0.5")}), counts=np.array([1.0, 0.0, -1.0]))
    found = infer(few, ask=["mean", "P(x>0.2)"], run=Run(draws=300, chains=2, seed=1))
    empty = found.draws["n"] == 0
    assert found.undefined == {}  # the population has a law, whatever the sample holds
    assert 0 < empty.sum() < 300
    assert found.sample.undefined == {"mean": empty.sum(), "P(x>0.2)": empty.sum()}
    mean, share, n = found.sample.summary(level=0.5)
    kept = [chain[~none] for chain, none in zip(found.sample.draws["mean"], empty, strict=True)]
    length = min(map(len, kept))
    assert mean.mean == pytest.approx(np.mean([chain[:length] for chain in kept]))
    assert np.isfinite([mean.deviation, share.lower, share.upper, share.effective_draws, share.r_hat]).all()
    assert n.mean == found.draws["n"].mean()
    assert found.sample.problems() == ()
    for kind in ("density", "cdf", "intervals"):
        found.sample.plot(kind=kind)
    nothing = replace(
        found.sample, views={"sample": replace(found.draws, variables={"mean": np.full((2, 3), np.nan)}, sample_stats={})}
    )
    assert nothing.undefined == {"mean": 6}
    assert np.isnan(nothing.summary()[0].mean)
    half = np.array([[np.nan, np.nan, np.nan], [1.0, np.nan, 3.0]])
    one = replace(found.sample, views={"sample": replace(found.draws, variables={"mean": half}, sample_stats={})})
    assert one.summary()[0].mean == 2.0


def test_open_labels_are_of_one_column(tmp_path):
    towns = pa.table({"town": ["x", "y"] * 500})
    options = {"domain": OpenLabels(), "mechanism": OpenUrn(), "epsilon": 1, "delta": 1e-2}
    made = release(towns, entropy=SeededEntropy(1), **options).save(tmp_path / "labels")
    for source in (made, tmp_path / "labels", [str(tmp_path / "labels")]):
        found = infer(source, ask=["P(town=x)", "P(x=x)"], run=Run(draws=5, seed=1))
        assert np.array_equal(found.draws["P(town=x)"], found.draws["P(x=x)"])
        for ask in (found.ask, lambda each, source=source: infer(source, ask=each)):
            for wrong in ("P(nocolumn=x)", "P(town=x, nocolumn!=y)"):
                with pytest.raises(FormatError, match="no column 'nocolumn'") as caught:
                    ask(wrong)
                assert "'town'" in caught.value.hint


# ---- debiased estimates, by enumeration -------------------------------------------------------------------------------


def dirichlet_multinomial(size, shapes):
    """All outcomes and their probabilities."""
    total = sum(shapes)
    for counts in itertools.product(range(size + 1), repeat=len(shapes)):
        if sum(counts) == size:
            log = (
                sum(lgamma(a + c) - lgamma(a) for a, c in zip(shapes, counts, strict=True))
                + lgamma(total)
                - lgamma(total + size)
            )
            ways = 1
            left = size
            for c in counts:
                ways, left = ways * comb(left, c), left - c
            yield np.array(counts), ways * np.exp(log)


def test_debiased_estimates_are_unbiased_and_so_are_their_variances():
    alpha, held, m = (Fraction(1, 2), Fraction(2), Fraction(1)), np.array([3, 0, 2]), 4
    urn = DirichletMultinomial(n=5, cells=3, alpha=alpha, records=m)
    domain = JointDomain({"x": Grid(0, 4, 2)})
    found = []
    for released, probability in dirichlet_multinomial(m, [float(a) + c for a, c in zip(alpha, held, strict=True)]):
        result = infer(
            Observed(mechanism=urn, domain=domain, counts=released),
            CountModel(prior="mechanism"),
            ask=["mean", "P(x>1)", "sd"],
            of="sample",
            run=Run(draws=1, chains=1, seed=1),
        )
        mean, share = result.debiased()
        cells = debiased(composition(urn, counts=released))
        assert share.value == pytest.approx(cells.estimate[1:].sum())
        assert share.standard_error == pytest.approx(cells.sample_error[0])  # the complement is one cell
        population = result.population.debiased()[1]
        assert population.standard_error == pytest.approx(cells.population_error[0])
        found.append((probability, mean.value, mean.standard_error**2))
    weight, value, variance = np.array(found).T
    truth = held @ np.array([0, 2, 4]) / 5
    assert weight.sum() == pytest.approx(1.0)
    assert weight @ value == pytest.approx(truth)
    assert weight @ variance == pytest.approx(weight @ (value - truth) ** 2)


def test_what_has_no_debiased_estimate(closed):
    with pytest.raises(ModelError, match="sample or the population"):
        closed.urn.debiased()
    assert [each.name for each in closed.debiased()] == ["mean", "cdf(0.3)", "P(x>0.75)"]
    assert closed.debiased().left_out == ("variance", "q0.5")
    assert "left_out=('variance', 'q0.5')" in repr(closed.debiased())
    assert closed.ask("mean").debiased().left_out == ()
    with_nulls = JointDomain({"x": Grid(0, 1, "0.1", nulls="cell")})
    urn = DirichletMultinomial(n=500, cells=12, alpha=Fraction(4), records=400)
    found = infer(
        Observed(mechanism=urn, domain=with_nulls, counts=np.append(COUNTS, 0)),
        CountModel(prior="mechanism"),
        ask=["mean", "P(x>0.75)"],
        run=Run(draws=2),
    )
    shares = debiased(composition(urn, counts=np.append(COUNTS, 0))).estimate
    mean, share = found.debiased()
    assert mean.value == pytest.approx(shares[:-1] @ np.linspace(0, 1, 11) / shares[:-1].sum())
    assert share.value == pytest.approx(shares[8:11].sum())
    assert [(row.unbiased, row.unbiased_error) for row in found.summary()] == [
        (each.value, each.standard_error) for each in found.debiased()
    ]


# ---- files and pictures -------------------------------------------------------------------------------------------------


def test_files(flat, tmp_path):
    import xarray as xr

    path = flat.save(tmp_path / "draws.nc")
    with xr.open_datatree(path, engine="h5netcdf") as tree:
        assert np.array_equal(tree["posterior"]["P(x>0.75)"].values, flat.draws["P(x>0.75)"])
        assert tree["posterior"].attrs["of"] == "population"
        assert tree["posterior"].attrs["within_bins"] == "uniform"
    assert tuple(flat.to_datatree()["posterior"].data_vars) == tuple(FIVE)
    domain = JointDomain({"x": Categories(["a/b", "c"], outside="null")})
    urn = DirichletMultinomial(n=50, cells=3, alpha=Fraction(4), records=40)
    slashed = infer(
        Observed(mechanism=urn, domain=domain, counts=np.array([20, 20, 0])), CountModel(prior="mechanism"), run=Run(draws=5)
    )
    assert slashed.names == ("P(x=a/b)", "P(x=c)")
    assert slashed.save(tmp_path / "slash.nc").exists()


def test_pictures(flat, closed, tmp_path):
    from privurn.drawing import save

    for i, (found, options) in enumerate(
        [
            (flat, {"kind": "density", "naive": True}),
            (flat, {"kind": "intervals", "naive": True, "level": 0.5}),
            (closed.sample, {"kind": "cdf", "naive": True}),
            (closed, {}),
        ]
    ):
        assert save(found.plot(**options), tmp_path / f"{i}.png").stat().st_size > 5000
    with pytest.raises(FormatError, match="not known"):
        flat.plot(kind="pie")


def test_cdf_of_bins_and_of_what_has_none():
    urn = DirichletMultinomial(n=50, cells=3, alpha=Fraction(4), records=40)
    bins = Observed(mechanism=urn, domain=JointDomain({"my age": Bins([0, 18, 65, 120])}), counts=np.array([10, 20, 10]))
    figure = infer(bins, CountModel(prior="mechanism"), run=Run(draws=20)).plot(kind="cdf")
    mean, released = (line.get_ydata() for line in figure.axes[0].lines)
    assert (mean[0], mean[-1], released[-1]) == (0.0, 1.0, 1.0)
    assert np.all(np.diff(mean) >= 0.0)
    both = infer(bins, CountModel(prior="mechanism"), run=Run(draws=20, seed=1))
    drawn = both.plot(kind="cdf", naive=True).axes[0]
    assert [each.get_label() for each in drawn.lines] == ["posterior mean", "naive mean", "released table"]
    asked = [f"cdf('my age', {place!r})" for place in drawn.lines[1].get_xdata().tolist()]
    naive = both.ask(asked).naive()
    assert drawn.lines[1].get_ydata() == pytest.approx([naive[each].mean() for each in asked])
    towns = Observed(
        mechanism=urn, domain=JointDomain({"town": Categories(["a", "b"], outside="other")}), counts=np.array([10, 20, 10])
    )
    with pytest.raises(ModelError, match="column of numbers"):
        infer(towns, CountModel(prior="mechanism"), run=Run(draws=20)).plot(kind="cdf")


def test_defaults_suit_the_domain():
    urn = DirichletMultinomial(n=50, cells=12, alpha=Fraction(4), records=48)
    domain = JointDomain({"age": Bins([0, 18, 65, 120]), "sex": Categories(["f", "m", "x, y"], outside="other")})
    found = infer(
        Observed(mechanism=urn, domain=domain, counts=np.full(12, 4)), CountModel(prior="mechanism"), run=Run(draws=5)
    )
    assert found.names[:2] == ("mean(age)", "sd(age)")
    assert found.names[5:] == ("P(sex=f)", "P(sex=m)", 'P(sex="x, y")')
    assert "of the population" in repr(found)
