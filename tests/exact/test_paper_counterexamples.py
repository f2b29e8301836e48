"""The smallest tables on which the papers' guarantees mean less than they seem to, in rational arithmetic.

Pages: docs/what-the-papers-guarantee.md, docs/proofs/one-sidedness.md, docs/proofs/corollary-2-gap.md.
"""

import math
from fractions import Fraction
from itertools import product

import mpmath
import pytest
from papers.discovery import empirical_bayes, new_values_law
from papers.thesis import theorem_4_1
from urn_laws import count_vectors, dirichlet_multinomial_law, hockey_stick, neighbours, pitman_yor_law

from privurn.privacy.instance.cost import instance_delta, instance_delta_public_domain, instance_epsilon_public_domain
from privurn.privacy.instance.multiplicities import Multiplicities
from privurn.privacy.laws.urn import DirichletProcessProfile

HALF, ONE = Fraction(1, 2), Fraction(1)
LARGE = Fraction(10**9)
STRENGTHS = [Fraction(1, 3), ONE, Fraction(5, 2)]
DISCOUNTS = [Fraction(0), Fraction(1, 5), HALF, Fraction(4, 5)]


def rising(u, k):
    return math.prod((u + i for i in range(k)), start=Fraction(1))


def floor(*, n, m, strength, discount):
    """Phi: chance that a record whose value nobody shares is released."""
    total = strength + n - 1
    return 1 - rising(total + discount, m) / rising(total + 1, m)


def partitions(n, largest=None):
    if n == 0:
        return [()]
    return [(first, *rest) for first in range(min(n, largest or n), 0, -1) for rest in partitions(n - first, first)]


def tables(sizes):
    """Tables of counts with so many records, values named 0, 1, ..."""
    return [dict(enumerate(table)) for n in sizes for table in partitions(n)]


def replaced(table, first, second):
    """The neighbour in which one record of value `first` has become `second`."""
    other = {**table, first: table[first] - 1}
    other[second] = other.get(second, 0) + 1
    return {value: count for value, count in other.items() if count}


def exceedance(first, second, ratio):
    """Probability, under `first`, of an output more than `ratio` times likelier under it: the papers' kind of figure."""
    return sum((p for key, p in first.items() if p > ratio * second.get(key, 0)), Fraction(0))


# One-sidedness.


def test_the_smallest_one_sided_table():
    """Two equal records, one released: nothing forwards from e^epsilon = 2 on, one third backwards at every epsilon."""
    law = {name: pitman_yor_law(table, strength=ONE, discount=Fraction(0), m=1) for name, table in PAIR.items()}
    assert law["x"] == {("A",): Fraction(2, 3), (("new", 0),): Fraction(1, 3)}
    assert law["y"] == {("A",): Fraction(1, 3), ("B",): Fraction(1, 3), (("new", 0),): Fraction(1, 3)}
    for ratio in (Fraction(2), Fraction(7), LARGE):
        assert exceedance(law["x"], law["y"], ratio) == 0
        assert hockey_stick(law["x"], law["y"], ratio) == 0
        assert hockey_stick(law["y"], law["x"], ratio) == Fraction(1, 3)
    report = instance_delta([2], epsilon=math.log(2.1), records=1, strength=1.0)
    assert report.delta_forward == 0.0
    assert report.delta == pytest.approx(1 / 3, rel=1e-12)


PAIR = {"x": {"A": 2}, "y": {"A": 1, "B": 1}}


def test_no_smaller_table_is_one_sided():
    """With one record both directions are phi."""
    for m, strength in product((1, 2, 3), STRENGTHS):
        x, y = (pitman_yor_law({name: 1}, strength=strength, discount=Fraction(0), m=m) for name in "AB")
        assert hockey_stick(x, y, LARGE) == hockey_stick(y, x, LARGE) == floor(n=1, m=m, strength=strength, discount=0)


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_equal_records_cost_nothing_forwards_and_phi_backwards(n):
    for m, strength in product((1, 2, 3, 4), STRENGTHS):
        ratio = 1 + Fraction(m, n - 1)
        x = pitman_yor_law({"A": n}, strength=strength, discount=Fraction(0), m=m)
        y = pitman_yor_law({"A": n - 1, "B": 1}, strength=strength, discount=Fraction(0), m=m)
        assert max(p / y[key] for key, p in x.items()) == ratio
        assert exceedance(x, y, ratio) == hockey_stick(x, y, ratio) == 0
        assert hockey_stick(y, x, ratio) == hockey_stick(y, x, LARGE) == Fraction(m) / (strength + n + m - 1)
        report = instance_delta([n], epsilon=math.log(ratio) + 1e-9, records=m, strength=float(strength))
        assert report.delta_forward == 0.0
        assert report.delta == pytest.approx(float(Fraction(m) / (strength + n + m - 1)), rel=1e-12)


@pytest.mark.parametrize("discount", DISCOUNTS)
def test_the_reverse_direction_always_contains_phi(discount):
    """Every table, one record replaced by a fresh value: releasing that value has probability phi there and 0 here."""
    for table, m in product(tables((1, 2, 3, 4)), (1, 2, 3)):
        strength = Fraction(3, 2)
        x = pitman_yor_law(table, strength=strength, discount=discount, m=m)
        phi = floor(n=sum(table.values()), m=m, strength=strength, discount=discount)
        for first in table:
            y = pitman_yor_law(replaced(table, first, "fresh"), strength=strength, discount=discount, m=m)
            level = sum((p for key, p in x.items() if "fresh" in key), Fraction(0))
            power = sum((p for key, p in y.items() if "fresh" in key), Fraction(0))
            assert (level, power) == (0, phi)
            assert hockey_stick(y, x, Fraction(3)) >= phi
            assert hockey_stick(y, x, LARGE) == phi


def test_forward_and_backward_may_be_as_far_apart_as_one_likes():
    for n, epsilon, most in [(10**3, 0.7, 1e-60), (10**4, 0.7, 1e-290)]:
        report = instance_delta([n // 2, n // 2], epsilon=epsilon, records=n // 2, strength=1.0)
        assert report.delta_forward < most
        assert report.delta > 0.33


# Probabilistic privacy against the tight divergence.


def test_a_probability_is_never_below_the_divergence_and_can_be_far_above():
    x = pitman_yor_law({"A": 2, "B": 2}, strength=ONE, discount=Fraction(0), m=1)
    y = pitman_yor_law({"A": 1, "B": 2, "C": 1}, strength=ONE, discount=Fraction(0), m=1)
    ratio = Fraction(19, 10)
    assert exceedance(x, y, ratio) == Fraction(2, 5)
    assert hockey_stick(x, y, ratio) == Fraction(2, 5) - ratio / 5 == Fraction(1, 50)


def test_the_probability_can_also_exceed_the_two_sided_divergence():
    """So the papers' figure is neither an upper nor a lower bound that one could correct by a factor."""
    report = instance_delta([2, 2], epsilon=math.log(1.9), records=1, strength=1.0)
    assert report.delta_forward == pytest.approx(2 / 5, rel=1e-12)
    assert report.delta == pytest.approx(1 / 5, rel=1e-12)


# Theorem 2.


def theorem_2(*, n, m, strength, ratio):
    return max(m / (strength + n + m - 1), 2 * m / ((strength + n) * (ratio - 1)))


def test_the_second_term_of_theorem_2_is_never_needed():
    """The largest divergence over all pairs of small tables is the first term, at every epsilon."""
    for n, m, strength in product((1, 2, 3, 4), (1, 2, 3), STRENGTHS):
        largest = dict.fromkeys((Fraction(11, 10), Fraction(2), Fraction(9)), Fraction(0))
        for table in tables((n,)):
            x = pitman_yor_law(table, strength=strength, discount=Fraction(0), m=m)
            for first, second in product(table, [*table, "fresh"]):
                if first != second:
                    y = pitman_yor_law(replaced(table, first, second), strength=strength, discount=Fraction(0), m=m)
                    for ratio, best in largest.items():
                        largest[ratio] = max(best, hockey_stick(x, y, ratio), hockey_stick(y, x, ratio))
        assert set(largest.values()) == {m / (strength + n + m - 1)}


def test_theorem_2_asks_nineteen_times_too_much_at_a_tenth():
    exact = DirichletProcessProfile(n=10**6, records=10, strength=1.0).delta(0.1)
    printed = theorem_2(n=10**6, m=10, strength=1.0, ratio=math.exp(0.1))
    assert printed / exact == pytest.approx(19.02, abs=0.01)


# Corollary 2 (discount below 0).


def corollary_2_holds(table, *, mass, ratio, m):
    return all(m <= (mass + count - 1) * (ratio - 1) for count in table.values())


def test_corollary_2_fails_with_a_single_record():
    """One cell, one record: the condition holds at e^epsilon = 2, and two neighbours never release the same value."""
    assert corollary_2_holds({"A": 1}, mass=1, ratio=2, m=1)
    x, y = (pitman_yor_law({name: 1}, strength=ONE, discount=-ONE, m=1) for name in "AB")
    assert (x, y) == ({("A",): 1}, {("B",): 1})
    assert hockey_stick(x, y, LARGE) == 1


def test_corollary_2_fails_when_a_singleton_becomes_an_old_value():
    """No fresh value in sight: A, B against A, A. The paper's proof says that no singularity happens here."""
    table = {"A": 1, "B": 1}
    assert corollary_2_holds(table, mass=1, ratio=2, m=1)
    x = pitman_yor_law(table, strength=Fraction(2), discount=-ONE, m=1)
    y = pitman_yor_law({"A": 2}, strength=Fraction(2), discount=-ONE, m=1)
    assert x == {("A",): HALF, ("B",): HALF}
    assert y == {("A",): Fraction(3, 4), (("new", 0),): Fraction(1, 4)}
    assert hockey_stick(x, y, LARGE) == HALF


@pytest.mark.parametrize("mass", [Fraction(1, 3), ONE, Fraction(5, 2), Fraction(40)])
def test_corollary_2_fails_for_every_table_with_a_singleton(mass):
    for table, m in product(tables((1, 2, 3, 4)), (1, 2, 3)):
        if 1 not in table.values():
            continue
        strength, ratio = len(table) * mass, 1 + m / mass
        assert corollary_2_holds(table, mass=mass, ratio=ratio, m=m)
        x = pitman_yor_law(table, strength=strength, discount=-mass, m=m)
        lone = min(table, key=lambda value: table[value])
        y = pitman_yor_law(replaced(table, lone, "fresh"), strength=strength, discount=-mass, m=m)
        leak = floor(n=sum(table.values()), m=m, strength=strength, discount=-mass)
        assert leak > 0
        assert hockey_stick(x, y, LARGE) == leak


def test_without_singletons_the_urn_of_a_fresh_neighbour_does_not_exist():
    """It would have one value more than cells, and "new" a negative mass."""
    for table, mass in product(tables((2, 3, 4, 5)), (ONE, Fraction(5, 2))):
        if min(table.values()) >= 2:
            other = replaced(table, next(iter(table)), "fresh")
            law = pitman_yor_law(other, strength=len(table) * mass, discount=-mass, m=1)
            assert law[("new", 0),] == -mass / (len(table) * mass + sum(table.values()))


def largest_ratios(counts, *, alpha, m):
    """Largest likelihood ratio (x over y, y over x) over the neighbours y of x on a public domain."""
    alphas = (alpha,) * len(counts)
    forward = backward = Fraction(0)
    for x, y in neighbours(len(counts), sum(counts)):
        if x == counts:
            p, q = (dirichlet_multinomial_law(each, alphas=alphas, m=m) for each in (x, y))
            forward = max(forward, *(p[key] / q[key] for key in p))
            backward = max(backward, *(q[key] / p[key] for key in p))
    return forward, backward


@pytest.mark.parametrize("alpha", [Fraction(1, 3), ONE, Fraction(5, 2)])
def test_on_a_public_domain_corollary_2_is_exact_when_no_cell_is_empty(alpha):
    for cells, n, m in product((2, 3), (2, 3, 4), (1, 2, 3)):
        for counts in count_vectors(n, cells):
            forward, backward = largest_ratios(counts, alpha=alpha, m=m)
            right = 1 + m / min(alpha + count - 1 if count else alpha for count in counts)
            assert max(forward, backward) == right
            printed = 1 + m / min(alpha + count - 1 for count in counts if count)
            assert forward == printed
            if all(counts):
                assert right == printed
            pure = instance_epsilon_public_domain(
                [each for each in counts if each], delta=0.0, cells=cells, records=m, alpha=float(alpha)
            )
            assert float(pure) == pytest.approx(math.log(right), rel=1e-12)


def test_an_empty_cell_breaks_the_reverse_direction():
    """A, A on the domain {A, B}, one released: 3/2 forwards as printed, 2 backwards."""
    assert largest_ratios((2, 0), alpha=ONE, m=1) == (Fraction(3, 2), 2)
    report = instance_delta_public_domain([2], cells=2, epsilon=math.log(1.5) + 1e-9, records=1, alpha=1.0)
    assert report.delta_forward_tight == 0.0
    assert report.delta == pytest.approx(float(HALF - Fraction(3, 2) / 4), rel=1e-6)


def test_the_quoted_condition_of_wasserman_and_zhou_is_off_by_one():
    """A, B on the domain {A, B}, one released: alpha + C >= m/(e^epsilon - 1) holds at 3/2, the ratio is 2."""
    counts, alpha, m, ratio = (1, 1), ONE, 1, Fraction(3, 2)
    assert all(alpha + count >= m / (ratio - 1) for count in counts)
    forward, _ = largest_ratios(counts, alpha=alpha, m=m)
    assert forward == 2
    x, y = (dirichlet_multinomial_law(each, alphas=(ONE, ONE), m=1) for each in (counts, (2, 0)))
    assert hockey_stick(x, y, ratio) == HALF - ratio / 4 == Fraction(1, 8)
    for single in count_vectors(1, 2):  # with one record the quoted condition is still right: no smaller counter-example
        assert max(largest_ratios(single, alpha=alpha, m=m)) <= 1 + m / min(alpha + count for count in single)


# The thesis.


def test_theorem_4_1_depends_on_the_unit_of_measurement():
    """A density has a unit: marks out of 1 or out of 100 are the same release, but not the same delta~."""
    table = Multiplicities.of([20, 30])
    setting = {"epsilon": 1.0, "records": 10, "strength": 1.0, "discount": 0.0}
    out_of_one = theorem_4_1(table, **setting)
    out_of_hundred = theorem_4_1(table, **setting, density_bounds=(0.01, 0.01))
    assert out_of_one < 0.05
    assert out_of_hundred > 0.15


@pytest.mark.parametrize("discount", DISCOUNTS)
def test_proposition_4_2_holds_forwards_and_hides_phi_backwards(discount):
    """Old values only. Fresh neighbours, which it omits, are covered forwards and cost phi backwards."""
    strength = Fraction(3, 2)
    for table, m, ratio in product(tables((2, 4, 5)), (1, 2, 3), (Fraction(3, 2), Fraction(4))):
        if min(table.values()) < 2:
            continue
        full = pitman_yor_law(table, strength=strength, discount=discount, m=m)
        bad = sum(p for key, p in full.items() if any(key.count(i) > (ratio - 1) * (table[i] - 1 - discount) for i in table))
        x = old_values(full, table)
        for first, second in product(table, [*table, "fresh"]):
            if first == second:
                continue
            other = replaced(table, first, second)
            y = old_values(pitman_yor_law(other, strength=strength, discount=discount, m=m), other)
            assert hockey_stick(x, y, ratio) <= bad
            if second == "fresh":
                phi = floor(n=sum(table.values()), m=m, strength=strength, discount=discount)
                assert hockey_stick(y, x, ratio) >= phi


def old_values(law, table):
    """Law of the release that keeps the table's own values only."""
    kept = {}
    for key, p in law.items():
        shown = tuple(value for value in key if value in table)
        kept[shown] = kept.get(shown, Fraction(0)) + p
    return kept


def test_doubling_singletons_doubles_the_leak():
    """Records A, B, B: the person behind A is the only reason that A can be released at all."""
    assert released("A", {"A": 1, "B": 2}) == Fraction(1, 4)
    assert released("A", {"A": 2, "B": 2}) == Fraction(2, 5)
    assert released("A", {"B": 3}) == 0


def released(value, table):
    law = pitman_yor_law(table, strength=ONE, discount=Fraction(0), m=1)
    return law.get((value,), Fraction(0))


def test_empirical_bayes_means_the_rising_factorial():
    """With it the thesis's own example comes out, with the power that is printed it does not."""
    n, k = 39_374, 95
    counts = [n // k + (i < n % k) for i in range(k)]  # at discount 0 only n and k matter
    assert empirical_bayes(counts).strength == pytest.approx(11.6257, abs=5e-5)
    assert (k - 1) / (n - k) == pytest.approx(0.0024, abs=1e-4)  # argmax of theta^(k-1) / (theta+1)^(n-1)


def test_the_alternating_sum_loses_nine_digits():
    n, j, m, k, theta, sigma = 50, 10, 30, 10, 1.0, 0.5

    def by_the_sum(number):
        weight = [number((-1) ** i * math.comb(k, i)) for i in range(k + 1)]
        terms = [
            w * math.prod((number(n - j * sigma - sigma * i) + s for s in range(m)), start=number(1))
            for i, w in enumerate(weight)
        ]
        opened = math.prod((number(theta + i * sigma) for i in range(j, j + k)), start=number(1))
        below = math.prod((number(theta + n) + s for s in range(m)), start=number(1))
        return float(sum(terms, number(0)) * opened / (below * math.factorial(k) * number(sigma) ** k))

    exact = by_the_sum(Fraction)
    assert new_values_law(m, n=n, distinct=j, strength=theta, discount=sigma).probability(k) == pytest.approx(exact, rel=1e-12)
    assert 1e-9 < abs(by_the_sum(float) / exact - 1) < 1e-5


def test_two_rows_of_table_10_lie_below_what_the_corollary_gives_for_any_data():
    """theta = 10: at epsilon = 1 and 2 a new value released once breaks corollary 4.1 whatever the table."""
    n, theta = 500, mpmath.mpf(10)
    assert theta / math.exp(2) > 1
    for m, printed in ((50, (0.4499, 0.00009)), (125, (0.0018,)), (250, (0.0939,))):
        with mpmath.workdps(60):
            none = mpmath.mpf(0)  # no new value comes exactly once: blocks of an Ewens partition of the L new records
            for new in range(m + 1):
                weight = mpmath.binomial(m, new) * mpmath.rf(theta, new) * mpmath.rf(n, m - new) / mpmath.rf(theta + n, m)
                series = sum(
                    (-theta) ** i / mpmath.factorial(i) * mpmath.rf(theta, new - i) / mpmath.factorial(new - i)
                    for i in range(new + 1)
                )
                none += weight * series * mpmath.factorial(new) / mpmath.rf(theta, new)
            least = float(1 - none)
        assert least > 0.59
        assert all(each < least - 0.1 for each in printed)
        exact = theorem_4_1(Multiplicities.of([250, 250]), epsilon=2.0, records=m, strength=10.0, discount=0.0)
        assert exact >= least
