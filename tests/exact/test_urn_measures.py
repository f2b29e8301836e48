"""Posteriors of urn releases against enumeration of every confidential sample, in fractions (docs/proofs/posteriors.md)."""

from collections import Counter, defaultdict
from fractions import Fraction
from itertools import product
from math import comb, factorial, prod

import numpy as np
import pytest
from papers.urn_moments import CompositionMoments, MeasureMoments, debiased
from urn_laws import count_vectors, dirichlet_multinomial_law, pitman_yor_law

from privurn.errors import ModelError
from privurn.inference.counts.composition import Composition, composition
from privurn.inference.counts.urn_measures import MeasurePosterior, measure_posterior
from privurn.mechanisms.base_measures import FiniteBase
from privurn.mechanisms.dirichlet_multinomial import DirichletMultinomial
from privurn.mechanisms.label_discovery import DiscoveredUrn, LabelDiscovery
from privurn.mechanisms.likelihood import Numbers
from privurn.mechanisms.pitman_yor import PitmanYor
from privurn.mechanisms.posterior_sample import PosteriorSample
from privurn.privacy.profile import Guarantee

F = Fraction
PARAMETERS = [(F(1), F(0)), (F(5, 2), F(0)), (F(1), F(1, 2)), (F(-1, 4), F(1, 2)), (F(2), F(1, 5))]
SIZES = [(1, 1), (1, 3), (3, 1), (2, 3), (3, 3)]
CLOSE = 1e-12


def rising(a, k):
    return prod((a + i for i in range(k)), start=F(1))


def dirichlet_multinomial(counts, shapes):
    """P(counts), counts unordered."""
    n = sum(counts)
    ways = F(factorial(n), prod(factorial(c) for c in counts))
    return ways * prod((rising(a, c) for a, c in zip(shapes, counts, strict=True)), start=F(1)) / rising(sum(shapes), n)


def pattern(values):
    """Values numbered by first appearance: all that a base without atoms tells."""
    names = {}
    return tuple(names.setdefault(value, len(names)) for value in values)


def joint(n, m, strength, discount):
    """Every (x, Z) of the model and the mechanism: x by the prior's urn, Z by the mechanism's."""
    for drawn, probability in pitman_yor_law({}, strength=strength, discount=discount, m=n).items():
        x = Counter(f"x{label[1]}" for label in drawn)
        for z, share in pitman_yor_law(dict(x), strength=strength, discount=discount, m=m).items():
            yield x, z, probability * share


def cases(n, m, strength, discount, *, flags=False, old_only=False):
    """{what is published: [(C of the released labels, x, Z, probability)]}."""
    found = defaultdict(list)
    for x, z, probability in joint(n, m, strength, discount):
        seen = [value for value in z if value in x] if old_only else z
        labels = list(dict.fromkeys(seen))
        held = tuple(x[label] if isinstance(label, str) else 0 for label in labels)
        key = (pattern(seen), tuple(isinstance(label, str) for label in labels)) if flags else pattern(seen)
        found[key].append((held, x, z, probability))
    return found


def closed_form(key, n, strength, discount, **more):
    counts = np.bincount(key)
    return MeasurePosterior(
        labels=tuple(range(len(counts))), counts=counts, n=n, strength=float(strength), discount=float(discount), **more
    )


def expectation(rows, value):
    return sum((p * value(held, x, z) for held, x, z, p in rows), F(0)) / sum(p for *_, p in rows)


def law_of_counts(rows):
    law = defaultdict(Fraction)
    for held, _, _, p in rows:
        law[held] += p
    total = sum(law.values())
    return {held: p / total for held, p in law.items()}


@pytest.mark.parametrize(("strength", "discount"), PARAMETERS)
@pytest.mark.parametrize(("n", "m"), SIZES)
def test_the_confidential_counts_continue_the_release(n, m, strength, discount):
    """C | Z ~ Dirichlet-multinomial(n; S - discount, strength + k discount), exactly: (x, Z) is exchangeable."""
    for key, rows in cases(n, m, strength, discount).items():
        s = np.bincount(key).tolist()
        shapes = [each - discount for each in s] + [strength + len(s) * discount]
        expected = {c[:-1]: dirichlet_multinomial(c, shapes) for c in count_vectors(n, len(shapes))}
        assert law_of_counts(rows) == {c: p for c, p in expected.items() if p}


@pytest.mark.parametrize(("strength", "discount"), PARAMETERS)
@pytest.mark.parametrize(("n", "m"), SIZES)
def test_moments_of_the_population(n, m, strength, discount):
    size = strength + n
    for key, rows in cases(n, m, strength, discount).items():
        found = closed_form(key, n, strength, discount)
        moments = MeasureMoments(found)
        for j in range(len(found.labels)):

            def first(held, x, z, j=j):
                return (held[j] - discount) / size if held[j] else F(0)

            def second(held, x, z, j=j):
                return (held[j] - discount) * (held[j] - discount + 1) / (size * (size + 1)) if held[j] else F(0)

            mean = expectation(rows, first)
            assert moments.mean()[j] == pytest.approx(float(mean), abs=CLOSE)
            assert moments.variance()[j] == pytest.approx(float(expectation(rows, second) - mean**2), abs=CLOSE)
            absent = expectation(rows, lambda held, x, z, j=j: F(held[j] == 0))
            assert moments.absent_probability[j] == pytest.approx(float(absent), abs=CLOSE)
            shares = expectation(rows, lambda held, x, z, j=j: F(held[j], n))
            squares = expectation(rows, lambda held, x, z, j=j: F(held[j], n) ** 2)
            assert moments.mean(about="sample")[j] == pytest.approx(float(shares), abs=CLOSE)
            assert moments.variance(about="sample")[j] == pytest.approx(float(squares - shares**2), abs=CLOSE)
        unseen = expectation(rows, lambda held, x, z: (strength + discount * len(x)) / size)
        assert moments.unseen_probability() == pytest.approx(float(unseen), abs=CLOSE)


@pytest.mark.parametrize(("strength", "discount"), PARAMETERS)
@pytest.mark.parametrize(("n", "m"), SIZES)
def test_predictions_of_the_urn(n, m, strength, discount):
    """The next record of the urn, after x and Z: proposition 1, and the discovery probability from Z alone."""
    for key, rows in cases(n, m, strength, discount).items():
        found = closed_form(key, n, strength, discount)
        moments = MeasureMoments(found)
        for j, s in enumerate(found.counts.tolist()):
            copied = expectation(rows, lambda held, x, z, j=j, s=s: (held[j] + s - discount) / (strength + n + m))
            assert copied == (s - discount) / (strength + m)
            assert moments.mean(about="urn")[j] == pytest.approx(float(copied), abs=CLOSE)
        new = expectation(rows, lambda held, x, z: (strength + discount * len({*x, *z})) / (strength + n + m))
        assert moments.unseen_probability(about="urn") == pytest.approx(float(new), abs=CLOSE)


def test_the_posterior_in_print_is_not_the_population_s():
    """Two cells, alpha = 1, n = m = 1, S = (1, 0): the mean of p is 5/9, that of Dirichlet(alpha + S) 2/3."""
    mean = weight = F(0)
    for x in range(2):
        alphas = (F(1) + (x == 0), F(1) + (x == 1))
        weight += F(1, 2) * alphas[0] / 3
        mean += F(1, 2) * alphas[0] / 3 * alphas[0] / 3
    assert mean / weight == F(5, 9)
    urn = DirichletMultinomial(n=1, cells=2, alpha=F(1), records=1)
    found = composition(urn, counts=[1, 0])
    assert CompositionMoments(found).population_mean[0] == pytest.approx(5 / 9, abs=CLOSE)
    assert found.urn[0] / found.urn.sum() == pytest.approx(2 / 3, abs=CLOSE)


@pytest.mark.parametrize(("n", "m"), [(2_000, 250), (2_000, 2_000), (2_000, 20_000)])
def test_how_much_too_narrow_the_posterior_in_print_is(n, m):
    """Prior out of the picture: v (1/m + 2/n) for the population, v/m for the urn's limit; to a part in m/10."""
    found = Composition(n=n, prior=np.full(2, 1e-6), released=np.array([m // 2, m // 2]))
    _, deviation = CompositionMoments(found).linear([0.0, 1.0])
    assert deviation**2 == pytest.approx(0.25 * (1 / m + 2 / n), rel=10.0 / min(n, m))


@pytest.mark.parametrize(("strength", "discount"), PARAMETERS)
@pytest.mark.parametrize(("n", "m"), SIZES)
def test_labels_that_show_whether_the_data_hold_them(n, m, strength, discount):
    """C given Z and the flags: the same law, conditioned on C_j >= 1 for labels of the data and C_j = 0 for the others."""
    for (key, flags), rows in cases(n, m, strength, discount, flags=True).items():
        s = np.bincount(key).tolist()
        shapes = [each - discount for each in s] + [strength + len(s) * discount]
        weights = {
            c[:-1]: dirichlet_multinomial(c, shapes)
            for c in count_vectors(n, len(shapes))
            if all((held > 0) == flag for held, flag in zip(c[:-1], flags, strict=True))
        }
        total = sum(weights.values())
        assert law_of_counts(rows) == {c: p / total for c, p in weights.items() if p}


@pytest.mark.parametrize(("n", "m"), SIZES)
@pytest.mark.parametrize("strength", [F(1), F(5, 2)])
def test_only_old_values_published(n, m, strength):
    """Without a discount: Dirichlet-multinomial(n; S, strength), every C_j >= 1; how many were left out says nothing."""
    for key, rows in cases(n, m, strength, F(0), old_only=True).items():
        if not key:
            continue
        shapes = [F(each) for each in np.bincount(key).tolist()] + [strength]
        weights = {c[:-1]: dirichlet_multinomial(c, shapes) for c in count_vectors(n, len(shapes)) if min(c[:-1]) > 0}
        total = sum(weights.values())
        assert law_of_counts(rows) == {c: p / total for c, p in weights.items()}


def test_only_old_values_with_a_discount_have_another_law():
    """Why that is refused: the number left out depends on all distinct values of x."""
    strength, discount = F(1), F(1, 2)
    rows = cases(3, 2, strength, discount, old_only=True)[(0,)]
    shapes = [1 - discount, strength + discount]
    weights = {c[:-1]: dirichlet_multinomial(c, shapes) for c in count_vectors(3, 2) if c[0] > 0}
    assert law_of_counts(rows) != {c: p / sum(weights.values()) for c, p in weights.items()}
    with pytest.raises(ModelError, match="only old values"):
        measure_posterior(
            PitmanYor(n=3, records=2, strength=strength, discount=discount, old_values_only=True), labels=["a"], counts=[1]
        )


def test_atoms_with_a_discount_break_exchangeability():
    """Why that is refused: equal values of x are one table to the mechanism, whatever the prior made them."""
    strength, discount, cells = F(1), F(1, 2), 2

    def two_records(first_then_second):
        """P(x = a, Z = b) with n = m = 1: copy the only table, or open one with a draw from the base."""
        a, b = first_then_second
        return F(1, cells) * ((1 - discount) * (a == b) + (strength + discount) * F(1, cells)) / (strength + 1)

    def three_records(a, b, c):
        """P(x = (a, b), Z = c): x by the prior's restaurant (tables latent), Z by the mechanism (one table a value)."""
        shared = F(1, cells) * (1 - discount) / (strength + 1) * (a == b)
        apart = F(1, cells) ** 2 * (strength + discount) / (strength + 1)
        values = Counter([a, b])
        copied = (values[c] - discount) if values[c] else F(0)
        return (shared + apart) * (copied + (strength + discount * len(values)) * F(1, cells)) / (strength + 2)

    assert two_records((0, 1)) == two_records((1, 0))
    assert sum(three_records(*abc) for abc in product(range(2), repeat=3)) == 1
    assert three_records(0, 0, 1) != three_records(0, 1, 0)
    urn = PitmanYor(n=2, records=1, strength=strength, discount=discount, base=FiniteBase(cells=2))
    with pytest.raises(ModelError, match="atoms"):
        measure_posterior(urn, labels=[0], counts=[1])
    with pytest.raises(ModelError, match="pitman-yor"):
        composition(urn, counts=[1, 0])


ALPHAS = [(F(1), F(1)), (F(1, 2), F(3)), (F(1), F(2), F(1, 3))]


@pytest.mark.parametrize("alphas", ALPHAS)
@pytest.mark.parametrize(("n", "m"), [(1, 1), (2, 3), (3, 2)])
def test_compositions(alphas, n, m):
    """C | S, p | S and linear functionals of p, for every release, against enumeration of C."""
    values = np.array([0.0, 1.0, 5.0])[: len(alphas)]
    for s in count_vectors(m, len(alphas)):
        law = {
            c: dirichlet_multinomial(c, alphas)
            * dirichlet_multinomial(s, [a + each for a, each in zip(alphas, c, strict=True)])
            for c in count_vectors(n, len(alphas))
        }
        evidence = sum(law.values())
        law = {c: p / evidence for c, p in law.items()}
        after = [a + each for a, each in zip(alphas, s, strict=True)]
        assert law == {c: dirichlet_multinomial(c, after) for c in law}

        urn = DirichletMultinomial(n=n, cells=len(alphas), alpha=alphas, records=m)
        found = CompositionMoments(composition(urn, counts=s))
        size = sum(alphas) + n
        firsts, seconds = [], []
        for i, alpha in enumerate(alphas):
            first = sum(p * (alpha + c[i]) / size for c, p in law.items())
            second = sum(p * (alpha + c[i]) * (alpha + c[i] + 1) / (size * (size + 1)) for c, p in law.items())
            assert found.population_mean[i] == pytest.approx(float(first), abs=CLOSE)
            assert found.population_variance[i] == pytest.approx(float(second - first**2), abs=CLOSE)
            assert found.counts_mean[i] == pytest.approx(float(sum(p * c[i] for c, p in law.items())), abs=CLOSE)
            square = sum(p * c[i] ** 2 for c, p in law.items()) - sum(p * c[i] for c, p in law.items()) ** 2
            assert found.counts_variance[i] == pytest.approx(float(square), abs=CLOSE)
            marginal = [float(sum(p for c, p in law.items() if c[i] == k)) for k in range(n + 1)]
            assert found.count_law(i) == pytest.approx(marginal, abs=CLOSE)
            firsts.append(float(first))
            seconds.append(
                [
                    float(sum(p * (alpha + c[i]) * (other + c[j] + (i == j)) / (size * (size + 1)) for c, p in law.items()))
                    for j, other in enumerate(alphas)
                ]
            )
        mean, deviation = found.linear(values)
        assert mean == pytest.approx(values @ firsts, abs=CLOSE)
        assert deviation**2 == pytest.approx(values @ np.array(seconds) @ values - (values @ firsts) ** 2, abs=1e-11)


@pytest.mark.parametrize("alphas", ALPHAS)
@pytest.mark.parametrize(("n", "m"), [(2, 2), (3, 2)])
def test_debiased_estimates_and_their_variances_are_unbiased(alphas, n, m):
    urn = DirichletMultinomial(n=n, cells=len(alphas), alpha=alphas, records=m)
    p = np.array([F(1, 2), F(1, 2)] if len(alphas) == 2 else [F(1, 2), F(1, 3), F(1, 6)])
    releases = {s: debiased(composition(urn, counts=s)) for s in count_vectors(m, len(alphas))}
    about_p = np.zeros((3, len(alphas)))
    for c in count_vectors(n, len(alphas)):
        law = Counter()
        for sequence, probability in dirichlet_multinomial_law(c, alphas=alphas, m=m).items():
            law[tuple(sequence.count(i) for i in range(len(alphas)))] += probability
        shares = np.array(c) / n
        weights = {s: float(probability) for s, probability in law.items()}
        assert sum(w * releases[s].estimate for s, w in weights.items()) == pytest.approx(shares, abs=CLOSE)
        variance = sum(w * (releases[s].estimate - shares) ** 2 for s, w in weights.items())
        assert sum(w * releases[s].sample_error ** 2 for s, w in weights.items()) == pytest.approx(variance, abs=CLOSE)
        a = n + float(sum(alphas))
        mean = (np.array(c) + np.array(alphas, float)) / a
        worth = releases[next(iter(weights))].effective_sample_size
        assert mean * (1.0 - mean) / worth == pytest.approx(variance, abs=CLOSE)
        sampled = float(factorial(n) * prod((each**k / factorial(k) for each, k in zip(p, c, strict=True)), start=F(1)))
        for s, w in weights.items():
            estimate = releases[s].estimate
            inside = (releases[s].sample_error ** 2 + estimate * (1 - estimate) / n) * n / (n - 1)  # before the cut at 0
            terms = (estimate, (estimate - p.astype(float)) ** 2, inside)
            about_p += sampled * w * np.array(terms)
    assert about_p[0] == pytest.approx(p.astype(float), abs=CLOSE)
    assert about_p[1] == pytest.approx(about_p[2], abs=CLOSE)


def test_a_dirichlet_process_on_a_finite_base_and_a_posterior_sample_are_the_same_urn():
    urn = DirichletMultinomial(n=7, cells=3, alpha=(F(1), F(1, 2), F(1, 2)), records=4)
    process = PitmanYor(n=7, records=4, strength=F(2), base=FiniteBase(cells=3, weights=(2, 1, 1)))
    sample = PosteriorSample(n=7, cells=3, alpha=urn.alpha, records=4)
    expected = CompositionMoments(composition(urn, counts=[1, 3, 0]))
    for given in (composition(process, counts=[1, 3, 0]), composition(sample, counts=[0.25, 0.75, 0.0])):
        other = CompositionMoments(given)
        assert other.population_mean == pytest.approx(expected.population_mean, abs=CLOSE)
        assert other.counts_variance == pytest.approx(expected.counts_variance, abs=CLOSE)


def test_one_released_record_has_no_error_estimate():
    found = debiased(composition(DirichletMultinomial(n=10, cells=2, alpha=F(1), records=1), counts=[1, 0]))
    assert np.isnan(found.sample_error).all()
    assert np.isfinite(found.estimate).all()


@pytest.mark.parametrize(("log_rho", "shape"), list(product([-6.0, -1.0, 0.0, 2.0, 6.0], [0.1, 0.9, 1.0, 1.5, 7.3, 250.0])))
def test_the_rejection_bound_is_the_largest_weight(log_rho, shape):
    """Exactness of `update_held_counts` rests on it."""
    from privurn._kernels.counts.measures import largest_log_weight, log_weight

    rho = float(np.exp(log_rho))
    weights = [log_weight(c, shape, -np.log1p(1.0 / rho)) for c in range(int(3.0 * shape * rho) + 50)]
    for lowest in (0, 1):
        assert largest_log_weight(lowest, shape, rho) == pytest.approx(max(weights[lowest:]), abs=1e-9)


def test_refusals():
    fresh = PitmanYor(n=10, records=3, strength=F(1))
    for arguments, words in (
        ({"labels": ["a", "b"], "counts": [2, 2]}, "add up"),
        ({"labels": ["a", "a"], "counts": [2, 1]}, "distinct"),
        ({"labels": ["a", "b"], "counts": [3, 0]}, "at least 1"),
        ({"labels": ["a", "b"], "counts": [1.5, 1.5]}, "can publish"),
        ({"labels": ["a", "b"], "counts": [2, 1], "of_data": [True]}, "of_data"),
    ):
        with pytest.raises(ModelError, match=words):
            measure_posterior(fresh, **arguments)
    old = PitmanYor(n=10, records=3, strength=F(1), old_values_only=True)
    found = measure_posterior(old, labels=["a"], counts=[2])
    with pytest.raises(ModelError, match="left out"):
        found.draw(1, rng=np.random.default_rng(1), about="urn")
    with pytest.raises(ModelError, match="closed form"):
        MeasureMoments(found)
    with pytest.raises(ModelError, match="must be true"):
        measure_posterior(old, labels=["a"], counts=[2], of_data=[False])
    urn = DirichletMultinomial(n=10, cells=2, alpha=F(1), records=3)
    discovered = DiscoveredUrn(
        n=10,
        records=3,
        discovery=LabelDiscovery(scale=2.0, threshold=5),
        urn=urn,
        urn_guarantee=Guarantee(epsilon=10.0, delta=0.5),
    )
    with pytest.raises(ModelError, match="open domain"):
        measure_posterior(discovered, labels=["a", "other"], counts=[2, 1])
    with pytest.raises(ModelError, match="open domain"):
        measure_posterior(urn, labels=["a", "b"], counts=[2, 1])
    with pytest.raises(ModelError, match="one for each"):
        composition(fresh, counts=[3])
    with pytest.raises(ModelError, match="secret"):
        composition(DirichletMultinomial(n=None, cells=2, alpha=F(1), records=3), counts=[1, 2])
    with pytest.raises(ModelError, match="several"):
        composition(PosteriorSample(n=10, cells=2, alpha=F(1), draws=2), counts=[0.5, 0.5] * 2)
    for counts, words in (([1, 1], "add up"), ([1, 1, 1], "for each"), ([4, -1], "negative"), ([1.5, 1.5], "can publish")):
        with pytest.raises(ModelError, match=words):
            composition(urn, counts=counts)
    with pytest.raises(ModelError, match="probability 0"):
        Composition(n=2, prior=np.array([0.0, 1.0]), released=np.array([1, 0]))


def test_labels_made_up_by_the_urn_show_it():
    fresh = PitmanYor(n=10, records=5, strength=F(1))
    labels = ("a", "new_1", "new_x", None, "new_12")
    assert fresh.likelihood(Numbers(np.ones(5), labels)).of_data.tolist() == [True, False, True, True, False]


def test_enumeration_weights_are_a_law():
    """The enumeration itself: total mass 1, and the number of ways is the multinomial's."""
    assert sum(p for *_, p in joint(3, 2, F(1), F(1, 2))) == 1
    assert sum(dirichlet_multinomial(c, [F(1), F(2), F(3)]) for c in count_vectors(4, 3)) == 1
    assert dirichlet_multinomial((1, 1), [F(1), F(1)]) == F(1, comb(3, 1))
