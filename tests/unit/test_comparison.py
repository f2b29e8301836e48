"""Comparing mechanisms: at the same guarantee, reproducible, and right about where errors come from."""

import subprocess
import sys
from fractions import Fraction
from typing import get_args

import numpy as np
import pytest
from scipy.stats import norm

import privurn
from privurn.cli.compare_mechanisms import mechanisms_by_name
from privurn.counts import CountTable
from privurn.domain import Bins, Categories, Grid, JointDomain, OpenLabels
from privurn.errors import CalibrationError, DomainError, FormatError, ModelError, NotCertifiable, SamplingError
from privurn.mechanisms.asymptotic_pseudo_posterior import ASYMPTOTIC, AsymptoticPseudo, Variant
from privurn.mechanisms.base_measures import FiniteBase, FreshLabels
from privurn.mechanisms.dirichlet_multinomial import DirichletMultinomial
from privurn.mechanisms.mechanism import Mechanism
from privurn.mechanisms.models import Beta, Normal
from privurn.mechanisms.pitman_yor import PitmanYor
from privurn.mechanisms.pseudo_posterior import Pseudo
from privurn.privacy.profile import Guarantee
from privurn.reports.comparison import distances
from privurn.reports.comparison.candidates import NO_CERTIFICATE, candidates
from privurn.reports.comparison.comparison import Runs, coarser_grid, compare, compare_counts
from privurn.reports.comparison.parallel import run_tasks
from privurn.reports.comparison.pictures import density_overlays, error_boxes
from privurn.reports.comparison.samples import Sample
from privurn.reports.comparison.simulation import coarsened, refined, simulated_release
from privurn.reports.comparison.yardsticks import yardstick
from privurn.tables import count_cells, open_table

FALSE_ALARM = 1e-6
GRID = JointDomain({"x": Grid(0, 100, 2)})
RNG = np.random.default_rng(8)
ROWS = np.clip(np.round(RNG.gamma(3.0, 9.0, 4000)), 0, 100)
LARGE_DELTA = Guarantee(epsilon=1.0, delta=2e-2)


def counted(rows, domain):
    with open_table(np.asarray(rows)) as source:
        return count_cells(source, JointDomain({"value": domain}))


COUNTS = counted(ROWS, Grid(0, 100, 2))


def compared(*, mechanisms=None, model=None, asymptotic=False, **given):
    """Of mechanisms by name, as the command line has them."""
    asked = mechanisms_by_name(mechanisms, model=model, asymptotic=asymptotic)
    usual = {"guarantee": LARGE_DELTA, "runs": 12, "processes": 1}
    return compare_counts(COUNTS, domain=GRID, mechanisms=asked, **{**usual, **given})


def compared_objects(asked, **given):
    usual = {"guarantee": LARGE_DELTA, "runs": 2, "processes": 1}
    return compare_counts(COUNTS, domain=GRID, mechanisms=asked, **{**usual, **given})


def able_by_name(names, *, model=None, **given):
    asked = mechanisms_by_name(names, model=model)
    return candidates(n=4000, cells=51, guarantee=LARGE_DELTA, asked=asked, **given)[0]


@pytest.mark.parametrize("guarantee", [LARGE_DELTA, Guarantee(epsilon=0.5, delta=1e-6), Guarantee(epsilon=2.0, delta=0.0)])
def test_every_candidate_meets_the_guarantee(guarantee):
    able, refused = candidates(n=4000, cells=51, guarantee=guarantee, coarser=(5, 11))
    assert len({each.mechanism.name for each in able} | {each.name for each in refused}) >= 6
    assert len({each.mechanism.name for each in able}) >= 4
    for each in able:
        assert each.mechanism.profile.delta(guarantee.epsilon) <= guarantee.delta, each.name
        assert each.mechanism.n == 4000
        assert all((each.sources.shrinkage, each.sources.noise, each.size))


def test_mechanisms_by_name():
    able = able_by_name(["perturbed-histogram"], coarser=(5, 11))
    assert [each.name for each in able] == [
        "perturbed-histogram",
        "perturbed-histogram, Gaussian",
        "perturbed-histogram, counts",
        "perturbed-histogram, 11 cells",
    ]
    one = able_by_name(["perturbed-histogram, Gaussian"], coarser=(5, 11))
    assert [each.name for each in one] == ["perturbed-histogram, Gaussian"]
    with pytest.raises(FormatError, match="not known"):
        mechanisms_by_name(["gaussian"])


def test_mechanisms_are_objects_with_options_of_their_own():
    asked = [privurn.Urn(), privurn.Urn(records=30), privurn.NoisyCounts(smoothing=0.25), privurn.NoisyCounts(publish="counts")]
    found = compared_objects(asked, n_records=50)
    assert {each.name: each.output for each in found.results if "11 cells" not in each.name} == {
        "dirichlet-multinomial": "50 records",
        "dirichlet-multinomial, records=30": "30 records",
        "perturbed-histogram, smoothing=0.25": "50 records",
        "perturbed-histogram, counts": "51 noisy counts",
    }
    for wrong in ("dirichlet-multinomial", privurn.Laplace(), 3):
        with pytest.raises(FormatError, match=r"is no mechanism\.\n  For example mechanisms=\[privurn\.Urn\(\)"):
            compared_objects([wrong])


def test_a_whole_table_is_compared_in_python_too():
    rows = np.array([(k % 3, k % 2, k % 5) for k in range(60)], [(name, float) for name in "abc"])
    columns = {"a": Grid(0, 2, 1), "b": Grid(0, 1, 1), "c": Grid(0, 4, 1)}
    given = {"epsilon": 2, "delta": 1e-3, "runs": Runs(1)}
    found = compare(rows, domain=privurn.TableDomain(columns), **given)
    assert set(found.medians) == {"noisy-marginals", "columns shuffled", "resample of the data"}
    one = compare(rows, domain=JointDomain(columns), mechanisms=[privurn.Marginals(order=1)], **given)
    assert one.medians["noisy-marginals"] != found.medians["noisy-marginals"]
    with pytest.raises(ModelError, match="with one mechanism"):
        compare(rows, domain=privurn.TableDomain(columns), records=5, **given)


def test_what_release_would_take_is_named_where_it_is_compared_by_itself():
    """Several columns with more than 100 joint cells are released as a whole table where nothing is asked for."""
    few = JointDomain({"age": Grid(0, 49, 1), "sex": Categories(["f", "m"])})
    many = JointDomain({"age": Grid(0, 50, 1), "sex": Categories(["f", "m"])})
    for domain, told in ((few, []), (many, ["noisy-marginals"])):
        given = {"n": 4000, "cells": domain.size, "guarantee": LARGE_DELTA, "domain": domain}
        refused = {each.name: each.reason for each in candidates(**given)[1]}
        assert [name for name in refused if name == "noisy-marginals"] == told
        assert all("alone" in refused[name] for name in told)
        assert "noisy-marginals" not in [each.name for each in candidates(**given, asked=[privurn.Urn()])[1]]


def test_what_cannot_be_had_is_refused_with_a_reason():
    found = compared(guarantee=Guarantee(epsilon=1.0, delta=1e-6), mechanisms=["dirichlet-multinomial", "dirichlet-process"])
    assert {each.name for each in found.results} == {"dirichlet-multinomial", "dirichlet-multinomial, 11 cells"}
    assert [each.name for each in found.refused] == ["dirichlet-process"]
    assert "a larger delta: delta=" in found.refused[0].reason
    assert any(sentence.startswith("dirichlet-process cannot be used") for sentence in found.words)
    with pytest.raises(CalibrationError, match="no mechanism"):
        compared(guarantee=Guarantee(epsilon=1.0, delta=1e-6), mechanisms=["dirichlet-process"])


# -- simulated releases have the right law


def rejected(simulated, expected, *, variance_of_sum):
    """Two-sided z-test of the mean of many runs."""
    z = (np.mean(simulated) - expected) / np.sqrt(variance_of_sum / len(simulated))
    return bool(abs(z) > norm.isf(FALSE_ALARM / 2))


@pytest.mark.parametrize("weights", [None, (1, 2, 3, 4, 0, 0, 0, 0, 0)])
def test_simulated_urns_keep_the_mean(weights):
    table = CountTable(np.array([1, 4, 7]), np.array([12, 1, 7]))
    urn = PitmanYor(n=20, records=30, strength=Fraction(3), discount=Fraction(1, 2), base=FiniteBase(cells=9, weights=weights))
    rng = np.random.default_rng(1)
    drawn = np.array([simulated_release(urn, table, cells=9, rng=rng) for _ in range(4000)])
    assert (drawn.sum(axis=1) == 30).all()
    base = np.full(9, 1 / 9) if weights is None else np.array(weights) / 10
    own = np.zeros(9)
    own[table.values] = table.counts - 0.5
    expected = 30 * (own + (3 + 3 * 0.5) * base) / 23
    for cell in (1, 3, 4):
        variance = drawn[:, cell].var()
        assert not rejected(drawn[:, cell], expected[cell], variance_of_sum=variance)
        if cell == 1:
            continue  # too large for half a record to show
        without_discount = 30 * (own[cell] + 0.5 * (own[cell] > 0) + 3 * base[cell]) / 23  # sigma forgotten
        assert rejected(drawn[:, cell], without_discount, variance_of_sum=variance)


def test_simulated_urns_need_their_own_base():
    for base in (FreshLabels(), FiniteBase(cells=8)):
        urn = PitmanYor(n=20, records=3, strength=Fraction(1), base=base)
        with pytest.raises(ModelError):
            simulated_release(urn, CountTable(np.array([1]), np.array([20])), cells=9, rng=np.random.default_rng(1))


def test_every_candidate_releases_what_it_says():
    able, _ = candidates(n=4000, cells=51, guarantee=LARGE_DELTA)
    rng = np.random.default_rng(2)
    for each in able:
        release = simulated_release(each.mechanism, COUNTS, cells=51, rng=rng)
        assert release.shape == (51,)
        assert release.min() >= 0
        assert release.sum() > 0
        if each.records is not None:
            assert release.sum() == each.records
            assert each.output == ("1 record" if each.records == 1 else f"{each.records:,} records")


def test_a_mechanism_without_a_twin_is_drawn_exactly_from_a_seed():
    urn = candidates(n=4000, cells=51, guarantee=LARGE_DELTA, asked=[privurn.Urn()])[0][0].mechanism

    class Twinless(DirichletMultinomial):
        simulate = Mechanism.simulate

    twinless = Twinless.from_parameters(urn.parameters())
    first, again = (simulated_release(twinless, COUNTS, cells=51, rng=np.random.default_rng(3)) for _ in range(2))
    assert np.array_equal(first, again)
    assert first.sum() == urn.records


def test_coarse_counts_are_those_of_the_coarse_grid():
    rows = np.random.default_rng(4).uniform(-20, 130, 3000)  # beyond both ends
    fine, coarse = Grid(0, 100, 2), Grid(0, 100, 10)
    assert coarser_grid(JointDomain({"x": fine})) == (5, 11)
    found = coarsened(counted(rows, fine), group=5)
    assert np.array_equal(found.dense(11), counted(rows, coarse).dense(11))
    spread = refined(found.dense(11), group=5, cells=51)
    assert spread[10] == found.dense(11)[2]
    assert spread.sum() == 3000
    with pytest.raises(ModelError):
        coarsened(found, group=2)
    for none in ({"x": Grid(0, 64, 1)}, {"x": Grid(0, 10, 1)}, {"x": Grid(0, 100, 2, outside="other")}, {"x": Bins(range(60))}):
        assert coarser_grid(JointDomain(none)) is None


# -- what is measured


def test_numbers_are_measured_by_the_distances():
    stick = yardstick(COUNTS, domain=GRID)
    release = COUNTS.dense(51)[::-1].copy()
    a, b = (Sample.from_weights(2.0 * np.arange(51), weights) for weights in (COUNTS.dense(51), release))
    found = dict(zip([metric.name for metric in stick.metrics], stick.measure(release), strict=True))
    assert found["wasserstein"] == distances.wasserstein(a, b)
    assert found["kolmogorov"] == distances.kolmogorov(a, b)
    assert found["density"] == distances.density_distance(a, b, bandwidth=distances.bandwidth(a, least=2.0))
    edges = [2 * np.ceil(51 * i / 20) - 1 for i in range(21)]  # runs of 51 cells in 20
    assert found["total_variation"] == pytest.approx(distances.total_variation(a, b, edges=edges))
    assert found["mean"] == pytest.approx(abs(distances.mean(a) - distances.mean(b)))
    assert found["quantile_90"] == abs(np.subtract(*(distances.quantiles(each, probabilities=[0.9])[0] for each in (a, b))))
    assert not stick.measure(COUNTS.dense(51)).any()
    curve = stick.curves(COUNTS.dense(51))[0]
    expected = distances.density(a, at=np.array(stick.axes[0].at), bandwidth=distances.bandwidth(a, least=2.0))
    assert curve == pytest.approx(expected, rel=1e-9)


def test_missing_numbers_count_as_a_bin_only():
    domain = Grid(0, 3, 1, nulls="cell", outside="other")
    table = CountTable.from_cells(np.arange(6), np.array([4, 0, 0, 4, 0, 2]))
    stick = yardstick(table, domain=JointDomain({"x": domain}))
    moved = stick.measure(np.array([4, 0, 0, 4, 2, 0]))
    assert moved[0] == 0.0
    assert moved[3] == pytest.approx(0.2)
    nothing = stick.measure(np.array([0, 0, 0, 0, 1, 1]))
    assert np.isnan(nothing[0])
    assert nothing[3] == pytest.approx(0.8)
    assert stick.axes[0].labels == ("0", "1", "2", "3", "other", "null")
    with pytest.raises(DomainError, match="number"):
        yardstick(CountTable(np.array([5]), np.array([3])), domain=JointDomain({"x": domain}))


def test_categories_and_joint_columns():
    domain = JointDomain({"sex": Categories(["f", "m"], outside="null"), "age": Grid(0, 40, 10), "pay": Bins([0, 5, 9])})
    cells = np.random.default_rng(5).integers(0, domain.size, 500)
    table = CountTable.from_cells(*np.unique(cells, return_counts=True))
    stick = yardstick(table, domain=domain)
    dense = table.dense(domain.size)
    assert stick.measure(dense) == pytest.approx([0.0] * 4, abs=1e-12)
    assert stick.measure(dense / dense.sum()) == pytest.approx([0.0] * 4, abs=1e-9)  # shares, not counts
    assert (stick.measure(np.ones(domain.size)) > 0).all()
    assert [axis.column for axis in stick.axes] == ["sex", "age", "pay"]
    assert stick.curves(dense)[0].sum() == pytest.approx(1.0)
    words = yardstick(
        CountTable(np.array([0, 2]), np.array([6, 2])), domain=JointDomain({"c": Categories(["a", "b"], outside="other")})
    )
    assert words.measure(np.array([2, 2, 0])) == pytest.approx([0.5, 0.5])
    assert words.axes[0].labels == ("a", "b", "other")
    only_words = JointDomain({"a": Categories(["x"], outside="other"), "b": Categories(["y"], outside="other")})
    assert len(yardstick(CountTable(np.array([0]), np.array([2])), domain=only_words).metrics) == 3


# -- the whole comparison


def test_the_same_seed_gives_the_same_numbers_however_it_is_run():
    alone = compared(mechanisms=["smoothed-histogram"], seed=5)
    everything = compared(seed=5, processes=2)
    same = next(each for each in everything.results if each.name == "smoothed-histogram")
    assert np.array_equal(alone.results[0].errors, same.errors)
    assert np.array_equal(alone.plain.errors, everything.plain.errors)
    assert alone.results[0].systematic == same.systematic
    assert not np.array_equal(alone.results[0].errors, compared(mechanisms=["smoothed-histogram"], seed=6).results[0].errors)
    assert len(np.unique(same.errors[:, 0])) == 12  # every run is a release of its own


def test_results_are_ordered_and_summarised():
    found = compared()
    medians = [each.medians[0] for each in found.results]
    assert medians == sorted(medians)
    assert len({each.name.partition(",")[0] for each in found.results}) == 8
    best = found.best
    assert best.medians[0] == np.median(best.errors[:, 0])
    low, high = np.quantile(best.errors[:, 1], [0.25, 0.75])
    assert best.spreads[1] == pytest.approx((high - low) / 2)
    data = found.to_confidential()
    assert data["confidential"] is True
    assert data["results"][0]["median"]["wasserstein"] == best.medians[0]
    assert data["words"][0].startswith(f"{best.name} did best: median W1 ")


def test_words_name_the_true_source_of_the_error():
    found = {each.name: each for each in compared(runs=20).results}
    assert "the floor" in found["dirichlet-process"].reason  # a handful of records
    assert "noise" in found["perturbed-histogram, counts"].reason
    wide = CountTable(np.array([3, 30]), np.array([2000, 2000]))  # on the coarse grid both values move by two fifths of a step

    def on_two_values(guarantee, name):
        given = {"domain": GRID, "guarantee": guarantee, "runs": 10, "processes": 1}
        every = compare_counts(wide, **given, mechanisms=mechanisms_by_name([name.partition(",")[0]])).results
        return next(each for each in every if each.name == name)

    shrunk = on_two_values(Guarantee(epsilon=0.05, delta=1e-6), "smoothed-histogram")
    assert "shrinkage" in shrunk.reason
    assert shrunk.systematic > 0.6 * shrunk.medians[0]
    assert "bins" in on_two_values(Guarantee(epsilon=8.0, delta=0.0), "perturbed-histogram, 11 cells").reason
    sampled = on_two_values(Guarantee(epsilon=8.0, delta=0.0), "perturbed-histogram")
    assert "number of records" in sampled.reason


def test_results_are_confidential():
    found = compared(mechanisms=["perturbed-histogram"], runs=2)
    assert repr(found) == "Comparison(confidential)"
    assert repr(found.best) == "Result(confidential)"
    with pytest.raises(NotCertifiable):
        found.to_public()


def test_tables_in_and_bad_input():
    found = compare(ROWS, domain=Grid(0, 100, 2), epsilon=1, delta=2e-2, runs=Runs(2, processes=1))
    again = compared(runs=2)
    assert [each.name for each in found.results] == [each.name for each in again.results]
    assert np.array_equal(found.best.errors, again.best.errors)
    two = np.zeros(9, [("a", float), ("b", float)])
    joint = compare(two, domain={"a": Grid(0, 2, 1), "b": Grid(0, 2, 1)}, epsilon=1, runs=Runs(2))
    assert joint.cells == 9
    for wrong in (
        lambda: compare(two, domain=Grid(0, 2, 1), epsilon=1),
        lambda: compare(two, domain={"c": Grid(0, 2, 1)}, epsilon=1),
        lambda: compare(ROWS, domain=OpenLabels(), epsilon=1),
        lambda: compare(ROWS, domain={"value": OpenLabels()}, epsilon=1),
        lambda: compare(ROWS, domain=Grid(0, 10**7, 1), epsilon=1),
    ):
        with pytest.raises(DomainError):
            wrong()
    for given in ({"runs": Runs(0)}, {"runs": Runs(seed=-1)}, {"runs": Runs(processes=0)}, {"epsilon": -1.0}):
        with pytest.raises(ModelError):
            compare(ROWS, **{"domain": Grid(0, 100, 2), "epsilon": 1.0, **given})


@pytest.mark.parametrize(
    ("rows", "domain"),
    [
        ([5.0] * 40, Grid(0, 100, 2)),  # all rows in one cell
        ([1.0, 2.0], Grid(0, 1000, 1)),  # more cells than rows
        (["a", "b"] * 20, Categories(["a", "b"], outside="other")),
        ([1.0] * 9, Bins([0, 5])),  # one bin
    ],
)
def test_odd_tables_are_compared(rows, domain):
    found = compare(np.array(rows), domain=domain, epsilon=1, delta=1e-3, runs=Runs(3, processes=1))
    assert np.isfinite(found.best.medians).all()
    assert density_overlays(found) is not None


def test_progress_counts_releases():
    seen = []
    compared(mechanisms=["smoothed-histogram"], runs=12, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (24, 24)  # the plain sample counts too
    assert seen == sorted(seen)


# -- models of the column

CURVE = Normal(mean=(0, 100), deviation=(1, 100), points=(40, 20))
REFERENCE = Normal(mean=(20, 40), deviation=(10, 30), points=(3, 3))


def test_a_model_adds_the_pseudo_posterior_as_a_release_would_make_it():
    found = compared_objects([Pseudo(model=CURVE), Pseudo(model=CURVE, reference=REFERENCE)], runs=12)
    assert {each.name for each in found.results} == {"pseudo-posterior", "pseudo-posterior, reference"}
    assert not found.uncertified
    assert "the model" in found.best.reason  # a normal curve on gamma rows
    able = able_by_name(["pseudo-posterior"], model=CURVE, domain=GRID)
    assert [each.name for each in able] == ["pseudo-posterior"]
    assert able[0].mechanism.profile.delta(LARGE_DELTA.epsilon) <= LARGE_DELTA.delta
    everything = compared(model=CURVE, runs=4, seed=5)
    alone = compared(model=CURVE, runs=4, seed=5, mechanisms=["pseudo-posterior"], processes=2)
    same = next(each for each in everything.results if each.name == "pseudo-posterior")
    assert np.array_equal(alone.best.errors, same.errors)


def test_the_shared_law_changes_nothing():
    mechanism = able_by_name(["pseudo-posterior"], model=CURVE, domain=GRID)[0].mechanism
    law = mechanism.shared_law(COUNTS)
    with_law, without = (
        simulated_release(mechanism, COUNTS, cells=51, rng=np.random.default_rng(4), law=each) for each in (law, None)
    )
    assert np.array_equal(with_law, without)
    assert candidates(n=4000, cells=51, guarantee=LARGE_DELTA)[0][0].mechanism.shared_law(COUNTS) is None


def test_what_is_only_asymptotic_is_marked_and_never_best():
    """At this guarantee the unweighted posterior is nearer than anything private: it must not win."""
    rows = np.clip(np.round(np.random.default_rng(1).normal(50, 12, 300)), 0, 100)
    found = compare(
        rows,
        domain=Grid(0, 100, 2),
        epsilon=0.02,
        mechanisms=[
            privurn.Smoothed(),
            Pseudo(model=CURVE),
            *(AsymptoticPseudo(model=CURVE, variant=variant) for variant in get_args(Variant)),
        ],
        runs=Runs(5, processes=1),
    )
    assert {each.name for each in found.uncertified} == set(ASYMPTOTIC)
    assert {each.name for each in found.results} == {"smoothed-histogram", "pseudo-posterior"}
    unweighted = next(each for each in found.uncertified if each.name.endswith("unweighted"))
    assert unweighted.medians[0] < found.best.medians[0]
    assert found.best in found.results
    assert "unweighted" not in found.words[0]
    told = [sentence for sentence in found.words if sentence.startswith("asymptotic")]
    assert len(told) == 4
    assert all(NO_CERTIFICATE in each and "not ranked" in each for each in told)
    data = found.to_confidential()
    assert [each["mechanism"] for each in data["uncertified"]] == [each.name for each in found.uncertified]
    assert all(each["certificate"] == NO_CERTIFICATE for each in data["uncertified"])
    assert not any("asymptotic" in each["mechanism"] for each in data["results"])
    titles = [panel.get_title() for panel in density_overlays(found).axes]
    labels = [label.get_text() for label in error_boxes(found).axes[0].get_yticklabels()]
    for shown in (titles, labels):
        assert sum(NO_CERTIFICATE in each for each in shown) == 4
        assert all(NO_CERTIFICATE in each for each in shown if "asymptotic" in each)


def test_asymptotic_ways_are_asked_for():
    with pytest.raises(ModelError, match="needs a model"):
        compared(asymptotic=True)
    for names in (["pseudo-posterior"], ["pseudo-posterior, reference"], ["asymptotic pseudo-posterior"]):
        with pytest.raises(ModelError, match="more than its name"):
            compared(mechanisms=names)
    one = compared(
        model=CURVE,
        asymptotic=True,
        runs=2,
        mechanisms=["smoothed-histogram", "asymptotic pseudo-posterior, weighted-e"],
    )
    assert [each.name for each in one.uncertified] == ["asymptotic pseudo-posterior, weighted-e"]
    with pytest.raises(CalibrationError, match="no mechanism meets"):  # nothing without a certificate meets a guarantee
        compared(model=CURVE, asymptotic=True, runs=2, mechanisms=["asymptotic pseudo-posterior"])


def test_a_model_that_does_not_fit_is_refused_in_words():
    found = compared(model=Beta(points=(10, 10)), runs=2)  # rows from 0 to 100
    assert [each.name for each in found.refused] == ["pseudo-posterior"]
    assert "beta" in found.refused[0].reason
    two = np.zeros(9, [("a", float), ("b", float)])
    joint = compare(
        two,
        domain={"a": Grid(0, 2, 1), "b": Grid(0, 2, 1)},
        epsilon=1,
        runs=Runs(2),
        mechanisms=[privurn.Urn(), privurn.NoisyCounts(), Pseudo(model=CURVE)],
    )
    assert "pseudo-posterior" in [each.name for each in joint.refused]


# -- pictures


def test_pictures_say_that_they_are_confidential(tmp_path):
    found = compared(runs=4)
    overlay, boxes = density_overlays(found), error_boxes(found, metric="median")
    for figure in (overlay, boxes):
        assert "CONFIDENTIAL" in figure.get_suptitle()
        figure.savefig(tmp_path / "picture.png")
        assert (tmp_path / "picture.png").stat().st_size > 10_000
    titles = [panel.get_title() for panel in overlay.axes if panel.get_title()]
    assert len(titles) == len(found.results)
    labels = [label.get_text() for label in boxes.axes[0].get_yticklabels()]
    assert labels[0].startswith(found.best.name)
    assert "not private" in labels[-1]
    top = max(float(result.curves[0].max()) for result in found.results)
    assert overlay.axes[0].get_ylim()[1] >= top  # no curve leaves the picture
    with pytest.raises(FormatError):
        density_overlays(found, column="other")
    with pytest.raises(FormatError):
        error_boxes(found, metric="other")


def test_few_cells_are_drawn_as_bars():
    found = compare(
        np.array(["a", "b", "b"]),
        domain=Categories(["a", "b", "long name"], outside="other"),
        epsilon=1,
        delta=0.5,
        runs=Runs(3),
    )
    axes = density_overlays(found).axes[: len(found.results)]
    assert all(len(panel.patches) == 4 for panel in axes)
    assert [label.get_text() for label in axes[-1].get_xticklabels()] == ["a", "b", "long name", "other"]


# -- other processes

JOB = """
import os
from privurn.errors import ModelError

class Square:
    def run(self, task):
        if task == 3:
            return os.getpid()
        return task * task

class Fails:
    def __init__(self, how):
        self.how = how
    def run(self, task):
        if self.how == "ours":
            raise ModelError("said so.", hint="Do otherwise")
        if self.how == "death":
            os._exit(1)
        raise ValueError("secret 12345")
"""


@pytest.fixture
def jobs(tmp_path, monkeypatch):
    (tmp_path / "jobs_for_workers.py").write_text(JOB)
    monkeypatch.syspath_prepend(str(tmp_path))
    import jobs_for_workers

    return jobs_for_workers


def test_work_is_done_elsewhere_in_order(jobs):
    import os

    assert run_tasks(jobs.Square(), [1, 2, 4, 5], processes=2) == [1, 4, 16, 25]
    assert run_tasks(jobs.Square(), [3], processes=2) != [os.getpid()]
    assert run_tasks(jobs.Square(), [3]) == [os.getpid()]  # short work stays here
    assert run_tasks(jobs.Square(), [], processes=2) == []


def test_failures_come_back_without_details(jobs):
    with pytest.raises(ModelError, match="said so") as ours:
        run_tasks(jobs.Fails("ours"), [1, 2], processes=2)
    assert ours.value.hint == "Do otherwise"
    with pytest.raises(SamplingError, match="ValueError") as other:
        run_tasks(jobs.Fails("other"), [1], processes=2)
    assert "12345" not in str(other.value)
    with pytest.raises(SamplingError):
        run_tasks(jobs.Fails("death"), [1, 2, 3], processes=2)


def test_a_script_is_not_run_a_second_time(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import numpy as np, privurn\n"
        "from privurn.reports.comparison.comparison import Runs, compare\n"
        "open('started', 'a').write('x')\n"
        "compare(np.arange(50.0), domain=privurn.Grid(0, 50, 1), epsilon=1, runs=Runs(10, processes=2))\n"
        "print('done')\n"
    )
    done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "done\n", done.stderr
    assert (tmp_path / "started").read_text() == "x"
