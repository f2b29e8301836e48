"""Tied noise: its drawn law, its moments, and every pair of tiny tables against the profile, by enumeration."""

import itertools
import json
import math
from collections import Counter, defaultdict
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.stats import chi2

import privurn
from privurn.cell_tree import CellTree
from privurn.counts import CountTable
from privurn.errors import ModelError
from privurn.mechanisms.noisy_tree import PerturbedTree
from privurn.mechanisms.noisy_tree_recipe import calibrate_noisy_tree, cumulative_variance, tied_depths
from privurn.mechanisms.tree_measurements import TreeMeasurements
from privurn.privacy import tied_noise as module
from privurn.privacy.entropy import SystemEntropy
from privurn.privacy.laws.noisy_tree import NoisyTreeProfile
from privurn.privacy.profile import Guarantee
from privurn.privacy.tied_noise import kept_share, tied_noise, tied_variances

EPSILONS = (0.0, 1e-5, 0.2, 0.7, 1.3, 2.4, 5.0)
REACH = 40.0
"""Scales of noise beyond which nothing is listed: less than 1e-16 of all."""


@cache
def group_law(k, above, below):
    """All noise of a group that is likely enough: rows (count, parts), and their probabilities."""
    reach = math.ceil(REACH * below) if k == 1 else math.ceil(26.0 * below)
    parts = np.array(list(itertools.product(range(-reach, reach + 1), repeat=k)))
    whole = parts.sum(axis=1)
    if above is None:
        parts, whole = parts[whole == 0], whole[whole == 0]
    logs = -np.abs(parts).sum(axis=1) / below - (0.0 if above is None else np.abs(whole) / above)
    masses = np.exp(logs)
    return np.column_stack([whole, parts]), masses / masses.sum()


# ---- the law ---------------------------------------------------------------------------------------------------------

FALSE_ALARM = 1e-10
GROUPS = {
    "parts are louder": (2, 0.7, 1.1),
    "count is louder": (2, 1.3, 0.8),
    "known": (3, None, 0.9),
    "one part": (1, 0.9, 1.2),
}


def rejected(parents, parts, *, k, above, below):
    """Chi-square test of the joint law of a group, outputs that are seldom taken together."""
    rows, masses = group_law(k, above, below)
    seen = Counter(map(tuple, np.column_stack([parents, parts.reshape(-1, k)]).tolist()))
    often = masses * len(parents) >= 20.0
    counted = np.array([seen[tuple(row)] for row in rows[often].tolist()])
    counted, shares = np.append(counted, len(parents) - counted.sum()), np.append(masses[often], 1.0 - masses[often].sum())
    expected = shares * len(parents)
    return ((counted - expected) ** 2 / expected).sum() > chi2.isf(FALSE_ALARM, len(expected) - 1)


@pytest.mark.parametrize("twin", [False, True])
@pytest.mark.parametrize("group", GROUPS)
def test_the_drawn_law_is_that_of_noise_that_sums_up(group, twin):
    k, above, below = GROUPS[group]
    rng = np.random.default_rng(5) if twin else None
    parents, parts = tied_noise(np.full(20_000, k), above=above, below=below, rng=rng)
    assert np.array_equal(parts.reshape(-1, k).sum(axis=1), parents)
    assert not rejected(parents, parts, k=k, above=above, below=below), f"fails with probability {FALSE_ALARM} when right"
    assert rejected(parents, parts, k=k, above=above, below=2.0 * below)
    if above is not None:
        assert rejected(parents, parts, k=k, above=0.4 * above, below=below)


@pytest.mark.parametrize("group", GROUPS)
def test_a_sampler_that_keeps_every_group_is_caught(group, monkeypatch):
    k, above, below = GROUPS[group]
    monkeypatch.setattr(module, "_geometric", lambda size, scale, rng: np.full(size, 2**40))
    parents, parts = tied_noise(np.full(20_000, k), above=above, below=below, rng=np.random.default_rng(1))
    assert rejected(parents, parts, k=k, above=above, below=below)


@pytest.mark.parametrize("planted", [False, True])
@pytest.mark.parametrize("group", GROUPS)
def test_all_randomness_comes_through_the_one_door(group, planted, monkeypatch):
    """What is published are numbers of OpenDP's at the accounted scale, but for the one that they leave."""
    k, above, below = GROUPS[group]
    given, real = [], module.noisy_integers

    def door(exact, *, noise, scale):
        found = real(exact, noise=noise, scale=scale)
        assert (noise, scale in (above, below), exact.any()) == ("laplace", True, False)
        given.append((scale, found.copy()))
        return found

    monkeypatch.setattr(module, "noisy_integers", door)
    if planted:
        rng = np.random.default_rng(1)
        monkeypatch.setattr(module, "_laplace", lambda size, *_: rng.integers(-9, 9, size))
    parents, parts = tied_noise(np.full(50, k), above=above, below=below)
    if planted:
        assert not given
        return
    rows = {
        tuple(row) for scale, found in given if scale == below and len(found) % k == 0 for row in found.reshape(-1, k).tolist()
    }
    sums = above is not None and above > below
    if sums:
        assert {tuple(row) for row in parts.reshape(-1, k).tolist()} <= rows
    else:
        assert {tuple(row[:-1]) for row in parts.reshape(-1, k).tolist()} <= {row[:-1] for row in rows}
        known = {0} if above is None else set(np.concatenate([found for scale, found in given if scale == above]).tolist())
        assert set(parents.tolist()) <= known


def test_groups_of_all_sizes_stand_in_their_order():
    sizes = np.array([3, 1, 2, 5, 1, 4] * 50)
    parents, parts = tied_noise(sizes, above=3.0, below=2.0, rng=np.random.default_rng(2))
    assert np.array_equal(np.add.reduceat(parts, np.cumsum(sizes) - sizes), parents)
    assert len(parts) == sizes.sum()
    nothing = tied_noise(np.zeros(0, np.int64), above=None, below=1.0)
    assert [len(each) for each in nothing] == [0, 0]


def test_geometric_numbers_and_what_is_kept_are_as_likely_as_they_should_be():
    drawn = module._geometric(20_000, 2.0, np.random.default_rng(3))
    assert drawn.min() == 0
    for least in (1, 2, 5):
        share = math.exp(-least / 2.0)
        assert abs((drawn >= least).mean() - share) < 7.0 * math.sqrt(share * (1 - share) / 20_000)  # 1e-11 by chance


@pytest.mark.parametrize(("k", "above", "below"), [(16, 6.0, 6.0), (16, 5.0, 10.0), (64, 5.0, 10.0), (16, None, 6.0)])
def test_as_many_numbers_are_drawn_as_a_plan_expects(k, above, below, monkeypatch):
    drawn, simulated = [], module._laplace

    def counted(size, scale, rng):
        drawn.append(size)
        return simulated(size, scale, rng)

    monkeypatch.setattr(module, "_laplace", counted)
    tied_noise(np.full(300, k), above=above, below=below, rng=np.random.default_rng(4))
    assert sum(drawn) == pytest.approx(300 * (k + 3) / kept_share(k, above=above, below=below), rel=0.25)


@pytest.mark.parametrize(
    ("k", "above", "below"),
    [(1, 0.9, 1.2), (2, 0.7, 1.1), (2, 3.0, 0.5), (2, None, 1.3), (3, 0.4, 0.9), (3, None, 0.6), (2, 40.0, 0.4), (2, 0.1, 4.0)],
)
def test_moments_are_those_of_the_law(k, above, below):
    rows, masses = group_law(k, above, below)
    whole, each = masses @ rows[:, 0] ** 2, masses @ rows[:, 1] ** 2
    found = tied_variances(float(k), above=above, below=below)
    if above is None:
        assert whole == 0.0
        assert found.above == 0.0
        assert found.below * (1.0 - 1.0 / k) == pytest.approx(each, rel=1e-9)
    else:
        assert 1.0 / (1.0 / found.above + 1.0 / (k * found.below)) == pytest.approx(whole, rel=1e-9)
        spread = found.below * (1.0 - 1.0 / k)
        assert whole / k**2 + spread == pytest.approx(each, rel=1e-9)


def test_moments_of_large_scales_are_those_of_their_limit():
    small, large = (tied_variances(16.0, above=scale, below=2.0 * scale) for scale in (1e3, 1e9))
    assert large.above / 1e18 == pytest.approx(small.above / 1e6, rel=1e-6)
    assert large.below / 1e18 == pytest.approx(small.below / 1e6, rel=1e-6)
    for scale in (1e-3, 0.02, 0.03):
        assert all(0.0 < each < 1e-6 for each in tied_variances(4.0, above=scale, below=scale))


@pytest.mark.parametrize(
    ("options", "words"),
    [({"above": 2.0**35, "below": 1.0}, "scales up to"), ({"above": 1.0, "below": 2.0**35}, "scales up to")],
)
def test_what_could_leave_the_integers_is_refused(options, words):
    with pytest.raises(ModelError, match=words):
        tied_noise(np.array([2]), **options)
    with pytest.raises(ModelError, match="groups of at most"):
        tied_noise(np.array([5000]), above=1.0, below=1.0)
    for above, below in [(1.0, 2000.0), (2000.0, 1.0)]:
        with pytest.raises(ModelError, match="a factor of at most 1,000"):
            tied_noise(np.array([2]), above=above, below=below)


def test_noise_beyond_all_reason_ends_in_an_error(monkeypatch):
    monkeypatch.setattr(module, "noisy_integers", lambda exact, **_: exact + 2**51)
    with pytest.raises(ModelError, match="too large"):
        tied_noise(np.array([2]), above=1.0, below=1.0)


# ---- the guarantee, by enumeration -----------------------------------------------------------------------------------

LAYOUTS = {
    "leaves below ranges": {"shape": (3,), "depths": (1, 2), "scales": (0.7, 1.1), "tied": (2,)},
    "leaves below ranges, equal": {"shape": (4,), "depths": (1, 2), "scales": (0.9, 0.9), "tied": (2,)},
    "loud ranges": {"shape": (4,), "depths": (1, 2), "scales": (2.0, 0.5), "tied": (2,)},
    "below the root": {"shape": (3,), "depths": (2,), "scales": (0.8,), "tied": (2,)},
    "below the root, then alone": {"shape": (4,), "depths": (1, 2), "scales": (0.8, 1.2), "tied": (1,)},
    "twice": {"shape": (5,), "depths": (1, 2, 3), "scales": (0.8, 1.2, 0.7), "tied": (1, 3)},
    "alone, then tied": {"shape": (5,), "depths": (1, 2, 3), "scales": (0.8, 1.2, 0.7), "tied": (3,)},
    "tied, then alone": {"shape": (5,), "depths": (1, 2, 3), "scales": (0.8, 1.2, 0.7), "tied": (2,)},
    "two columns": {"shape": (2, 2), "depths": (1, 2), "scales": (1.5, 0.9), "tied": (2,)},
    "special beside": {
        "shape": (3,),
        "special": (1,),
        "depths": (1, 2),
        "scales": (1.3, 0.9),
        "special_scale": 0.53,
        "tied": (2,),
    },
    "two special": {
        "shape": (3,),
        "special": (2,),
        "depths": (1, 2),
        "scales": (1.3, 0.9),
        "special_scale": 0.53,
        "tied": (2,),
    },
    "loud special": {
        "shape": (3,),
        "special": (2,),
        "depths": (1, 2),
        "scales": (1.3, 0.9),
        "special_scale": 1.0,
        "tied": (2,),
    },
}
SECRET = {"measured root": {"shape": (2,), "depths": (0, 1), "scales": (1.0, 1.4), "tied": (1,)}}
CASES = [
    (name, secret)
    for name, each in LAYOUTS.items()
    for secret in (False, True)
    if not secret or each["tied"][0] > each["depths"][0]
]
CASES += [(name, True) for name in SECRET]


def tree(layout, secret):
    return PerturbedTree(n=None if secret else 2, noise="discrete-laplace", **(LAYOUTS | SECRET)[layout])


def parts_of(mechanism):
    """Groups of numbers with noise of their own: (law's key, places among all numbers), a key being (k, above, below)."""
    first = np.cumsum([0, *(mechanism.tree.nodes(depth) for depth in mechanism.depths)])
    found, grouped = [], set()
    for depth in mechanism.tied:
        place = mechanism.depths.index(depth)
        above = mechanism.scales[place - 1] if place else None
        starts = mechanism.tree.starts
        top = mechanism.depths[place - 1] if place else 0
        for group, (start, end) in enumerate(zip(starts[top], [*starts[top][1:], mechanism.tree.cells], strict=True)):
            inside = np.flatnonzero((starts[depth] >= start) & (starts[depth] < end)) + first[place]
            parent = [first[place - 1] + group] if place else [None]
            found.append(((len(inside), above, mechanism.scales[place]), [*parent, *inside.tolist()]))
            grouped.update([*parent, *inside.tolist()])
    scales = [
        scale
        for scale, depth in zip(mechanism.scales, mechanism.depths, strict=True)
        for _ in range(mechanism.tree.nodes(depth))
    ]
    scales += [mechanism.special_scale] * (mechanism.cells - mechanism.tree.cells)
    found += [(("alone", scale), [i]) for i, scale in enumerate(scales) if i not in grouped]
    return found


@cache
def losses_of(key, shift):
    """{loss in parts of each scale: probability} of a group whose numbers move; a loss is (of the count, of the parts)."""
    if key[0] == "alone":
        k = np.arange(-math.ceil(REACH * key[1]), math.ceil(REACH * key[1]) + 1)
        rows, masses = k[:, None], np.exp(-np.abs(k) / key[1])
        masses /= masses.sum()
        losses = (np.abs(rows[:, 0] - shift[0]) - np.abs(rows[:, 0])) / key[1]
    else:
        (k, above, below), (rows, masses) = key, group_law(*key)
        moved = np.abs(rows - np.array(shift)) - np.abs(rows)
        losses = moved[:, 1:].sum(axis=1) / below + (0.0 if above is None else moved[:, 0] / above)
    found = defaultdict(float)
    for loss, mass in zip(np.round(losses, 12).tolist(), masses.tolist(), strict=True):
        found[loss] += mass
    return dict(found)


def tables(mechanism, most):
    sizes = range(most + 1) if mechanism.n is None else [most]
    for size in sizes:
        for records in itertools.combinations_with_replacement(range(mechanism.cells), size):
            yield np.bincount(np.array(records, int), minlength=mechanism.cells)


@cache
def pairs(layout, secret, contributions):
    """How the groups move between any two tables within so many records of each other."""
    mechanism = tree(layout, secret)
    numbers = {}
    for table in tables(mechanism, contributions):
        found = mechanism.exact_counts(CountTable.from_cells(np.arange(mechanism.cells), table))
        numbers[tuple(table)] = np.concatenate([*found.levels, found.special])
    found = set()
    for first, second in itertools.permutations(numbers, 2):
        apart = int(np.abs(np.subtract(first, second)).sum())
        if (apart if secret else apart // 2) > contributions:
            continue
        moved = numbers[second] - numbers[first]
        case = []
        for key, places in parts_of(mechanism):
            shift = tuple(0 if i is None else int(moved[i]) for i in places)
            if any(shift):
                case.append((key, shift))
        found.add(tuple(sorted(case, key=str)))
    return found


@cache
def laws(layout, secret, contributions):
    """Losses and probabilities for every such pair."""
    found = []
    for case in pairs(layout, secret, contributions):
        losses, masses = np.zeros(1), np.ones(1)
        for key, shift in case:
            law = losses_of(key, shift)
            losses = np.add.outer(losses, list(law)).ravel()
            masses = np.multiply.outer(masses, list(law.values())).ravel()
        found.append((losses, masses))
    return found


def truth(layout, secret, contributions, epsilon):
    return max(
        float(m @ np.maximum(0.0, -np.expm1(np.minimum(epsilon - x, 0.0)))) for x, m in laws(layout, secret, contributions)
    )


@pytest.mark.parametrize("contributions", [1, 2])
@pytest.mark.parametrize(("layout", "secret"), CASES)
def test_no_two_tables_exceed_the_profile(layout, secret, contributions):
    profile = tree(layout, secret).profile.group(contributions)
    largest = max(float(x.max()) for x, _ in laws(layout, secret, contributions))
    assert largest * (1.0 - 1e-9) <= profile.pure_epsilon <= largest * (1.0 + 1e-9)  # attained
    assert not profile.tight
    for epsilon in EPSILONS:
        exact, claimed = truth(layout, secret, contributions, epsilon), profile.delta(epsilon)
        assert claimed >= exact * (1.0 - 1e-9) - 1e-11, epsilon
        if epsilon >= profile.pure_epsilon:
            assert claimed == 0.0
        else:
            assert claimed <= math.tanh(0.5 * profile.pure_epsilon) * (1.0 + 1e-9)  # nor is it worse than nothing but epsilon


@pytest.mark.parametrize("contributions", [1, 2])
@pytest.mark.parametrize(("layout", "secret"), CASES)
def test_rho_bounds_every_renyi_divergence(layout, secret, contributions):
    profile = tree(layout, secret).profile.group(contributions)
    for losses, masses in laws(layout, secret, contributions):
        for order in (1.05, 2.0, 3.0, 8.0):
            assert math.log(masses @ np.exp((order - 1) * losses)) / (order - 1) / order <= profile.zcdp * (1 + 1e-9)
    assert profile.zcdp <= 0.5 * profile.pure_epsilon**2 * (1 + 1e-9)


@pytest.mark.parametrize("layout", ["leaves below ranges, equal", "loud ranges", "twice"])
def test_a_claim_of_independent_noise_would_be_false(layout):
    """Losses of tied noise go together; and of a group in which both records are, one moved count would not do."""
    claim = replace(tree(layout, False).profile, tied=())
    epsilons = np.linspace(0.0, claim.pure_epsilon, 40)
    assert max(truth(layout, False, 1, each) / max(claim.delta(each), 1e-300) for each in epsilons[:-1]) > 1.02


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"tied": (1,), "n": None}, "public"),
        ({"tied": (1,), "special": (1,), "special_scale": 1.0}, "public"),
        ({"tied": (1, 2)}, "not tied itself"),
        ({"tied": (2, 2)}, "not tied itself"),
        ({"tied": (3, 1)}, "not tied itself"),
        ({"tied": (4,)}, "measured depths"),
        ({"tied": (2,), "noise": "discrete-gaussian"}, "only Laplace"),
        ({"tied": (2,), "scales": (1.0, 2.0**40, 1.0)}, "scales up to"),
    ],
)
def test_what_cannot_be_tied_is_refused(changed, words):
    options = {"n": 5, "shape": (6,), "depths": (1, 2, 3), "scales": (1.0, 1.0, 1.0), "noise": "discrete-laplace"}
    PerturbedTree(**(options | {"tied": (1, 3)}))
    with pytest.raises(ModelError, match=words):
        PerturbedTree(**(options | changed))
    if "special" not in changed and changed.get("n", 5) and "measured" not in words and "scales" not in words:
        with pytest.raises(ModelError, match=words):
            NoisyTreeProfile(
                noise=changed.get("noise", "discrete-laplace"),
                scales=(1.0,) * 3,
                tied=tuple(each - 1 for each in changed["tied"]),
            )


# ---- the mechanism ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("layout", "secret"), CASES)
def test_a_certificate_gives_the_same_mechanism_back(layout, secret):
    made = tree(layout, secret)
    assert PerturbedTree.from_parameters(json.loads(json.dumps(made.parameters()))) == made
    edited = made.parameters() | {"tied": [made.depths[-1] + 1]}
    with pytest.raises(ModelError):
        PerturbedTree.from_parameters(edited)


def test_what_is_published_sums_up_where_it_is_tied_and_nowhere_else():
    options = {"n": 900, "shape": (1000,), "noise": "discrete-laplace", "tied": (4, 10)}
    made = PerturbedTree(depths=(4, 7, 10), scales=(3.0, 3.0, 3.0), **options)
    cells = np.random.default_rng(1).multinomial(900, np.full(1000, 1 / 1000))
    table = CountTable.from_cells(np.arange(1000), cells)
    for found in (made.draw(table, entropy=SystemEntropy()).counts, made.simulate(table, rng=np.random.default_rng(2))):
        top, middle, leaves = found.levels
        box = made.tree
        assert top.sum() == 900
        assert np.array_equal(np.add.reduceat(leaves, np.searchsorted(box.starts[10], box.starts[7])), middle)
        apart = np.add.reduceat(middle, np.searchsorted(box.starts[7], box.starts[4])) - top
        assert apart.any()  # fails with probability 1e-20: sixteen sums of nine numbers
        assert np.abs(leaves - cells).max() > 0


@pytest.mark.parametrize(
    ("layout", "secret"),
    [(name, secret) for name, secret in CASES if name not in ("special beside", "two special", "loud special")],
)
def test_stated_variances_of_estimates_without_a_prior_are_their_errors(layout, secret):
    """Estimates are linear in the numbers: their coefficients against the covariance of the enumerated noise."""
    made = tree(layout, secret)
    k = made.cells
    weights = np.random.default_rng(1).normal(size=(3, k))
    counts = CountTable.from_cells(np.arange(k), np.bincount([0, k - 1], minlength=k))
    exact = made.exact_counts(counts)
    sizes = [len(each) for each in exact.levels]

    def estimated(numbers):
        levels = tuple(np.split(numbers, np.cumsum(sizes)[:-1]))
        seen = made.measurements(type(exact)(levels, exact.special))
        return seen.unbiased_sums(weights, n=made.n)

    numbers = np.concatenate(exact.levels)
    value, variance = estimated(numbers)
    assert value == pytest.approx(weights @ counts.dense(k), abs=1e-9)
    moves = np.array([(estimated(numbers + 10**6 * unit)[0] - value) / 10**6 for unit in np.eye(len(numbers), dtype=np.int64)])
    covariance = np.zeros((len(numbers), len(numbers)))
    for key, places in parts_of(made):
        if key[0] == "alone":
            j = np.arange(-200, 201)
            masses = np.exp(-np.abs(j) / key[1])
            covariance[places[0], places[0]] = masses @ j**2 / masses.sum()
            continue
        rows, masses = group_law(*key)
        known = [i for i, place in enumerate(places) if place is not None]
        own = np.ix_([places[i] for i in known], [places[i] for i in known])
        covariance[own] = (rows[:, known] * masses[:, None]).T @ rows[:, known]
    assert variance == pytest.approx(np.einsum("if,ij,jf->f", moves, covariance, moves), rel=1e-7, abs=1e-12)


def test_measurements_know_what_may_be_tied():
    numbers, noise = (np.array([3, 2]), np.array([1, 2, 1, 1])), (("laplace", 1.0), ("gaussian", 1.0))
    with pytest.raises(ModelError, match="only Laplace noise of measured depths"):
        TreeMeasurements(CellTree((4,)), (1, 2), numbers, noise, total=5, tied=(2,))


# ---- the default -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("special", [0, 2])
def test_the_default_ties_what_it_may(relation, special):
    secret = relation == "add-remove"
    guarantee = Guarantee(epsilon=1.0, delta=0.0, neighbouring=relation)
    made = calibrate_noisy_tree(
        n=None if secret else 10**6, guess=10**6, shape=(4096,), special=(special,), guarantee=guarantee
    )
    assert made.tied == {(False, 0): (4, 12), (False, 2): (12,)}.get((secret, special), (7,))
    assert made.profile.pure_epsilon == 1.0
    plain = replace(made, tied=())
    assert plain.profile.pure_epsilon == 1.0  # the same noise would be independent at the same epsilon
    assert cumulative_variance(made, n=10**6) < cumulative_variance(plain, n=10**6)


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("cells", [100, 201, 501, 1024, 4096, 100_000])
def test_tying_lowers_the_error_by_a_few_per_cent(cells, relation):
    guarantee = Guarantee(epsilon=1.0, delta=0.0, neighbouring=relation)
    made = calibrate_noisy_tree(n=10**7, guess=10**7, shape=(cells,), guarantee=guarantee)
    errors = [math.sqrt(cumulative_variance(each, n=10**7)) for each in (made, replace(made, tied=()))]
    assert 0.94 < errors[0] / errors[1] < 0.985


def test_noise_is_independent_where_that_is_asked_for_and_costs_less_rho():
    values = np.arange(3000) % 64
    made = [
        privurn.release(values, privurn.NoisyTree(independent=each), domain=privurn.Grid(0, 63, 1), epsilon=1, ledger=False)
        for each in (False, True)
    ]
    tied, free = (each.certificate["mechanism"]["parameters"] for each in made)
    assert tied["tied"]
    assert not free["tied"]
    assert free["scales"] == tied["scales"]
    assert made[1].certificate["rho"] < 0.75 * made[0].certificate["rho"]


def test_large_groups_and_large_trees_are_not_tied():
    wide = PerturbedTree(n=10**6, shape=(4096,), depths=(2, 12), scales=(4.0, 4.0), noise="discrete-laplace")
    assert tied_depths(wide, n=10**6) == (2,)
    large = PerturbedTree(n=10**7, shape=(10**6,), depths=(4, 8, 12, 16, 20), scales=(10.0,) * 5, noise="discrete-laplace")
    assert 20 not in tied_depths(large, n=10**7)
    assert tied_depths(large, n=10**7)
    assert replace(large, tied=tied_depths(large, n=10**7)).drawn_anew < 250_000


def test_with_a_delta_noise_is_tied_where_that_is_nearer():
    """What is claimed of tied noise at a delta is coarser: at a large one independent noise is quieter."""
    small, large = (
        calibrate_noisy_tree(n=10**6, shape=(4096,), guarantee=Guarantee(epsilon=4.0, delta=delta), noise="discrete-laplace")
        for delta in (1e-6, 0.3)
    )
    assert small.tied
    assert not large.tied
    assert small.profile.delta(4.0) <= 1e-6
    assert large.profile.delta(4.0) <= 0.3
