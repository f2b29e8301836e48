"""Noisy trees: every pair of tiny tables against the profile, the drawn law, the least noise, and what is refused."""

import itertools
import json
import math
from collections import Counter, defaultdict
from dataclasses import replace
from functools import cache
from itertools import combinations

import mpmath
import numpy as np
import pytest
from mpmath import mp, mpf
from scipy.stats import chi2

from privurn.cell_tree import CellTree
from privurn.counts import CountTable
from privurn.domain import Grid, JointDomain
from privurn.errors import CalibrationError, ModelError
from privurn.mechanisms.noisy_tree import MOST_CELLS, PerturbedTree
from privurn.mechanisms.noisy_tree_recipe import calibrate_noisy_tree, cumulative_variance
from privurn.mechanisms.recipe import Public
from privurn.mechanisms.tree_layout import spread, tree_layout
from privurn.privacy.additive_noise import noise_deviation
from privurn.privacy.entropy import SystemEntropy
from privurn.privacy.laws import shift_losses
from privurn.privacy.laws.noisy_counts import NoisyCountsProfile
from privurn.privacy.laws.noisy_tree import NoisyTreeProfile
from privurn.privacy.noisy_tree_calibration import smallest_tree_scales
from privurn.privacy.profile import GroupProfile, Guarantee
from privurn.releases.usual import usual

LAPLACE, GAUSSIAN = "discrete-laplace", "discrete-gaussian"
NOISES = (LAPLACE, GAUSSIAN)
EPSILONS = (0.0, 1e-5, 0.2, 0.7, 1.3, 2.4, 5.0, 11.0)


@pytest.fixture(autouse=True)
def nothing_kept():
    shift_losses.composed.cache_clear()
    yield
    shift_losses.composed.cache_clear()


# ---- the truth, by enumeration ---------------------------------------------------------------------------------------


NEGLIGIBLE = 1e-24


@cache
def coordinate_losses(noise, scale, shift):
    """{whole number: probability} of one integer moved by `shift`; the loss is that number times `unit(noise, scale)`."""
    if noise == LAPLACE:
        r = math.exp(-1 / scale)
        mass = {k: (1 - r) / (1 + r) * r ** abs(k) for k in range(1, shift)}
        mass |= {0: 1 / (1 + r), shift: r**shift / (1 + r)}  # everything up to 0, everything from `shift` on
        return {abs(k - shift) - abs(k): p for k, p in mass.items()}
    reach = math.ceil(9 * scale) + 6
    weights = {k: math.exp(-0.5 * (k / scale) ** 2) for k in range(-reach, reach + 1)}
    total = math.fsum(weights.values())
    return {(k - shift) ** 2 - k**2: w / total for k, w in weights.items() if w > NEGLIGIBLE}


def unit(noise, scale):
    return 1 / scale if noise == LAPLACE else 0.5 / scale**2


@cache
def joint_losses(noise, moved):
    """Losses and probabilities of integers moved independently: all combinations, whole numbers of one scale added exactly."""
    losses, masses = np.zeros(1), np.ones(1)
    for scale in sorted({scale for scale, _ in moved}):
        law = {0: 1.0}
        for shift in (shift for own, shift in moved if own == scale):
            added = defaultdict(float)
            for (x, p), (y, q) in itertools.product(law.items(), coordinate_losses(noise, scale, shift).items()):
                added[x + y] += p * q
            law = {x: p for x, p in added.items() if p > NEGLIGIBLE}
        losses = np.add.outer(losses, unit(noise, scale) * np.array(list(law))).ravel()
        masses = np.multiply.outer(masses, np.array(list(law.values()))).ravel()
    return losses[masses > NEGLIGIBLE], masses[masses > NEGLIGIBLE]


def divergence(noise, moved, epsilon):
    losses, masses = joint_losses(noise, moved)
    return float(masses @ np.maximum(0.0, -np.expm1(np.minimum(epsilon - losses, 0.0))))


def tables(mechanism, most):
    """All tables of up to `most` records (of exactly as many where n is public)."""
    sizes = range(most + 1) if mechanism.n is None else [most]
    for size in sizes:
        for records in itertools.combinations_with_replacement(range(mechanism.cells), size):
            yield np.bincount(np.array(records, int), minlength=mechanism.cells)


def measured(mechanism, counts):
    """Every number the mechanism measures, with the scale of its noise."""
    found = mechanism.exact_counts(CountTable.from_cells(np.arange(mechanism.cells), counts))
    scales = [scale for scale, level in zip(mechanism.scales, found.levels, strict=True) for _ in level]
    return np.concatenate([*found.levels, found.special]), scales + [mechanism.special_scale] * len(found.special)


@cache
def moves(mechanism, contributions):
    """Which numbers move by how much between any two tables within `contributions` records of each other."""
    found = set()
    for first, second in itertools.product(list(tables(mechanism, contributions)), repeat=2):
        apart = np.abs(first - second).sum()
        if 0 < (apart if mechanism.n is None else apart // 2) <= contributions:
            (one, scales), (other, _) = measured(mechanism, first), measured(mechanism, second)
            found.add(tuple(sorted((s, abs(int(d))) for s, d in zip(scales, one - other, strict=True) if d)))
    return frozenset(found)


def truth(mechanism, contributions, epsilon):
    return max(divergence(mechanism.noise, moved, epsilon) for moved in moves(mechanism, contributions))


def tree(secret, **options):
    return PerturbedTree(n=None if secret else 2, **options)


LAYOUTS = {
    "leaves of three": {"shape": (3,), "depths": (2,), "scales": (0.8,)},
    "two depths": {"shape": (3,), "depths": (1, 2), "scales": (1.1, 1.1)},
    "two scales": {"shape": (4,), "depths": (1, 2), "scales": (0.7, 1.2)},
    "two columns": {"shape": (2, 2), "depths": (1, 2), "scales": (1.5, 0.9)},
    "one special": {"shape": (2,), "special": (1,), "depths": (1,), "scales": (1.3,), "special_scale": 0.6},
    "two special": {"shape": (2,), "special": (2,), "depths": (1,), "scales": (1.3,), "special_scale": 0.6},
    "quiet special": {"shape": (3,), "special": (2,), "depths": (1, 2), "scales": (1.3, 0.9), "special_scale": 0.9},
    "loud special": {"shape": (3,), "special": (2,), "depths": (1, 2), "scales": (1.0, 0.8), "special_scale": 0.4},
}
CASES = [(name, noise, secret) for name in LAYOUTS for noise in NOISES for secret in (False, True)]


@pytest.mark.parametrize("contributions", [1, 2])
@pytest.mark.parametrize(("layout", "noise", "secret"), CASES)
def test_no_two_tables_exceed_the_profile_and_some_attain_it(layout, noise, secret, contributions):
    mechanism = tree(secret, noise=noise, **LAYOUTS[layout])
    profile = mechanism.profile.group(contributions)
    assert profile.neighbouring == ("add-remove" if secret else "replace-one")
    for epsilon in EPSILONS:
        exact = truth(mechanism, contributions, epsilon)
        claimed = profile.delta(epsilon)
        if epsilon >= profile.pure_epsilon:
            assert claimed == 0.0
            assert exact < 1e-11
        else:
            assert claimed >= exact * (1 - 1e-10) - 1e-13, epsilon
            assert claimed <= exact * (1 + 2e-4) + 1e-13, epsilon
            if profile.tight:
                assert claimed <= exact * (1 + 1e-9) + 1e-13, epsilon


@pytest.mark.parametrize("contributions", [1, 2])
@pytest.mark.parametrize(("layout", "secret"), [(name, secret) for name in LAYOUTS for secret in (False, True)])
def test_pure_epsilon_is_the_largest_log_ratio(layout, secret, contributions):
    mechanism = tree(secret, noise=LAPLACE, **LAYOUTS[layout])
    largest = max(math.fsum(d / s for s, d in moved) for moved in moves(mechanism, contributions))
    claimed = mechanism.profile.group(contributions).pure_epsilon
    assert largest * (1 - 1e-14) <= claimed <= largest + 1e-9
    below = math.nextafter(claimed, 0.0)
    assert mechanism.profile.group(contributions).delta(below) > 0.0
    assert mechanism.profile.group(contributions).delta(claimed) == 0.0


@pytest.mark.parametrize("secret", [False, True])
def test_the_root_is_a_level_like_any_other_where_n_is_secret(secret):
    layout = {"shape": (2,), "depths": (0, 1), "scales": (1.0, 2.0), "noise": LAPLACE}
    if not secret:
        with pytest.raises(ModelError, match="root"):
            tree(secret, **layout)
        return
    mechanism = tree(secret, **layout)
    assert mechanism.profile.pure_epsilon == 1.5
    for epsilon in EPSILONS:
        assert mechanism.profile.delta(epsilon) == pytest.approx(truth(mechanism, 1, epsilon), rel=1e-11)


@pytest.mark.parametrize("contributions", [1, 2])
@pytest.mark.parametrize("noise", NOISES)
def test_a_measured_root_is_accounted_for(noise, contributions):
    mechanism = tree(True, shape=(2,), depths=(0, 1), scales=(1.0, 2.0), noise=noise)
    profile = mechanism.profile.group(contributions)
    for epsilon in EPSILONS:
        exact = truth(mechanism, contributions, epsilon)
        assert exact * (1.0 - 1e-12) <= profile.delta(epsilon) <= exact + 1e-9 + 1e-6 * exact


@pytest.mark.parametrize("noise", NOISES)
def test_losses_add_up_to_the_joint_law_of_all_outputs(noise):
    """Without losses: the whole law of (root, two leaves, special), output by output, before and after a record comes."""
    mechanism = PerturbedTree(
        n=None, shape=(2,), special=(1,), depths=(0, 1), scales=(0.5, 0.4), special_scale=0.3, noise=noise
    )
    reach = 12 if noise == LAPLACE else 7

    def law(counts):
        joint = np.ones(())
        for number, scale in zip(*measured(mechanism, counts), strict=True):
            k = np.arange(-reach, reach + 1) - number
            weights = np.exp(-np.abs(k) / scale) * math.tanh(0.5 / scale)
            if noise == GAUSSIAN:
                weights = np.exp(-0.5 * (k / scale) ** 2) / np.exp(-0.5 * (np.arange(-60, 61) / scale) ** 2).sum()
            joint = np.multiply.outer(joint, weights)
        return joint

    for epsilon in (0.0, 0.9, 3.0):
        pairs = [(law(np.eye(3, dtype=int)[cell]), law(np.zeros(3, int))) for cell in range(3)]
        exact = max(np.maximum(0.0, p - math.exp(epsilon) * q).sum() for a, b in pairs for p, q in ((a, b), (b, a)))
        assert mechanism.profile.delta(epsilon) == pytest.approx(exact, rel=1e-7)


@pytest.mark.parametrize(
    ("noise", "moved"),
    [
        (LAPLACE, ((0.9, 1, 2), (2.3, 1, 2))),
        (LAPLACE, ((0.9, 3, 2), (2.3, 2, 1), (1.7, 1, 1))),
        (GAUSSIAN, ((0.6, 1, 2), (1.3, 1, 2))),
        (GAUSSIAN, ((3.2, 2, 3),)),
        (GAUSSIAN, ((0.5, 2, 1), (3.2, 1, 1))),
    ],
)
def test_never_below_fifty_digits(noise, moved):
    with mp.workdps(50):
        laws = []
        for scale, shift, times in moved:
            one = defaultdict(mpf)
            if noise == LAPLACE:
                r = mpmath.exp(-1 / mpf(scale))
                for j in range(shift + 1):
                    mass = (1 - r) / (1 + r) * r**j if 0 < j < shift else r**j / (1 + r)
                    one[shift - 2 * j] += mass
                unit = 1 / mpf(scale)
            else:
                total = mpmath.jtheta(3, 0, mpmath.exp(-1 / (2 * mpf(scale) ** 2)))
                for k in range(-math.ceil(17 * scale), math.ceil(17 * scale) + 1):
                    one[shift * (shift + 2 * k)] += mpmath.exp(-(mpf(k) ** 2) / (2 * mpf(scale) ** 2)) / total
                unit = 1 / (2 * mpf(scale) ** 2)
            both = {0: mpf(1)}
            for _ in range(times):
                added = defaultdict(mpf)
                for (x, p), (y, q) in itertools.product(both.items(), one.items()):
                    added[x + y] += p * q
                both = added
            laws.append({x * unit: p for x, p in both.items()})
        largest = sum(max(law) for law in laws)
        for share in (0.0, 0.11, 0.3, 0.999999) if noise == LAPLACE else (0.0, 0.03, 0.1):
            epsilon = float(share * largest)
            exact = mpf(0)
            for combination in itertools.product(*(law.items() for law in laws)):
                loss = sum(x for x, _ in combination)
                if loss > epsilon:
                    exact += mpmath.fprod(p for _, p in combination) * -mpmath.expm1(mpf(epsilon) - loss)
            claimed = mpf(shift_losses.divergence("laplace" if noise == LAPLACE else "gaussian", moved, epsilon))
            assert exact <= claimed <= exact * (1 + mpf("1e-8")) + mpf("1e-80")


# ---- what a smaller claim would miss ---------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("secret", [False, True])
def test_a_missing_depth_or_a_forgotten_special_cell_is_caught(noise, secret):
    plain, beside = (tree(secret, noise=noise, **LAYOUTS[layout]) for layout in ("two scales", "loud special"))
    wrong = [
        (plain, replace(plain.profile, scales=(0.7,))),
        (plain, replace(plain.profile, scales=(1.2,))),
        (beside, replace(beside.profile, special_cells=0, special_scale=None)),
        (beside, replace(beside.profile, special_scale=0.8)),
    ]
    if not secret:
        wrong += [
            (plain, replace(plain.profile, neighbouring="add-remove")),
            (beside, replace(beside.profile, special_cells=1)),
        ]
    for mechanism, claim in wrong:
        assert any(truth(mechanism, 1, epsilon) > 1.05 * claim.delta(epsilon) for epsilon in (*EPSILONS, 4.4, 4.9))
        assert all(
            truth(mechanism, 1, epsilon) <= mechanism.profile.delta(epsilon) * (1 + 1e-9) + 1e-13 for epsilon in EPSILONS
        )


@pytest.mark.parametrize("noise", NOISES)
def test_shifts_are_cheaper_than_group_privacy_and_dearer_than_one_record(noise):
    single = tree(True, noise=noise, **LAYOUTS["two scales"]).profile
    for epsilon in (0.3, 1.0, 2.5):
        assert (
            single.delta(epsilon) < single.group(2).delta(epsilon) < GroupProfile(single=single, contributions=2).delta(epsilon)
        )
    assert single.group(2).group(3) == single.group(6)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("secret", [False, True])
@pytest.mark.parametrize("layout", ["two scales", "loud special"])
def test_rho_bounds_every_renyi_divergence(noise, secret, layout):
    mechanism = tree(secret, noise=noise, **LAYOUTS[layout])
    for contributions in (1, 2):
        rho = mechanism.profile.group(contributions).zcdp
        ratios = []
        for moved in moves(mechanism, contributions):
            losses, masses = joint_losses(noise, moved)
            for order in (1.05, 2.0, 3.0):
                ratios.append(math.log(masses @ np.exp((order - 1) * losses)) / (order - 1) / order)
        assert max(ratios) <= rho * (1 + 1e-9)
        if noise == GAUSSIAN and contributions == 1:
            assert max(ratios) >= rho * (1 - 1e-9)


# ---- large cases -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("secret", [False, True])
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("scale", [0.3, 4.0, 700.0])
def test_one_depth_is_a_noisy_histogram(noise, secret, scale):
    relation = "add-remove" if secret else "replace-one"
    profile = NoisyTreeProfile(noise=noise, scales=(scale,), neighbouring=relation)
    counts = NoisyCountsProfile(cells=9, noise=noise, scale=scale, neighbouring=relation)
    assert profile.pure_epsilon == counts.pure_epsilon
    assert profile.zcdp == pytest.approx(counts.zcdp, rel=1e-12)
    for epsilon in (-0.4, 0.0, 0.3 / scale, 0.9 / scale, 1.7 / scale, 6.0 / scale):
        assert profile.delta(epsilon) == pytest.approx(counts.delta(epsilon), rel=1e-9, abs=1e-290)


def test_the_continuous_gaussian_is_no_bound():
    assert NoisyTreeProfile(noise=GAUSSIAN, scales=(0.5, 0.5)).delta(6.0) == pytest.approx(0.670, abs=5e-4)


@pytest.mark.parametrize(
    ("noise", "scales", "contributions"),
    [(GAUSSIAN, (1.5, 2.0, 11.0), 1), (GAUSSIAN, (0.7, 0.9, 1.1, 4.0), 1), (LAPLACE, (5.0, 7.0, 11.0), 40)],
)
def test_laws_with_too_many_terms_are_split_upwards(noise, scales, contributions, monkeypatch):
    profile = NoisyTreeProfile(noise=noise, scales=scales, neighbouring="add-remove", contributions=contributions)
    monkeypatch.setattr(shift_losses, "MOST_TERMS", 2**20)
    assert profile.tight
    epsilons = [0.0, 0.5, 1.5, 4.0] if noise == GAUSSIAN else [0.0, 1.0, 5.0, 12.0, 16.0]
    exact = [profile.delta(epsilon) for epsilon in epsilons]
    shift_losses.composed.cache_clear()
    monkeypatch.setattr(shift_losses, "MOST_TERMS", 2**10)
    monkeypatch.setattr(shift_losses, "SPLIT_POINTS", 2**12)
    assert not profile.tight
    for epsilon, right in zip(epsilons, exact, strict=True):
        assert right * (1 - 1e-12) <= profile.delta(epsilon) <= right * 1.02 + 1e-30


def test_runs_of_whole_numbers_stay_above(monkeypatch):
    profile = NoisyTreeProfile(noise=GAUSSIAN, scales=(900.0, 1200.0))
    epsilons = (0.0, 0.001, 0.004, 0.008)
    exact = [profile.delta(epsilon) for epsilon in epsilons]
    assert profile.tight
    shift_losses.composed.cache_clear()
    monkeypatch.setattr(shift_losses, "LARGEST_EXACT_DEVIATION", 100.0)
    monkeypatch.setattr(shift_losses, "MOST_TERMS", 2**15)
    assert not profile.tight
    for epsilon, right in zip(epsilons, exact, strict=True):
        assert right <= profile.delta(epsilon) <= 1.02 * right


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_many_records_of_one_person_are_bounded_from_above(noise, relation):
    """Special cells that are covered by no depth: five records in ranges, against all ways to share them."""
    made = {"noise": noise, "scales": (6.0, 6.0), "neighbouring": relation}
    ranged = NoisyTreeProfile(**made, special_cells=2, special_scale=2.5, contributions=5)
    for epsilon in (0.5, 1.5):
        halves = [[(6.0, u), (6.0, u), (2.5, 5 - u)] for u in range(6)]
        cases = halves if relation == "add-remove" else [a + b for a, b in itertools.combinations_with_replacement(halves, 2)]
        exact = 0.0
        for case in cases:
            moved = tuple((scale, shift, times) for (scale, shift), times in Counter(case).items() if shift)
            exact = max(exact, shift_losses.divergence("laplace" if noise == LAPLACE else "gaussian", moved, epsilon))
        assert exact * (1 - 1e-9) <= ranged.delta(epsilon) <= min(1.0, 3 * exact)
    assert not ranged.tight


def test_hopeless_noise_claims_nothing():
    for noise in NOISES:
        assert NoisyTreeProfile(noise=noise, scales=(1e-120, 1.0)).delta(1.0) == 1.0
        assert NoisyTreeProfile(noise=noise, scales=(1e-3, 1.0)).delta(1.0) == 1.0
        assert NoisyTreeProfile(noise=noise, scales=(2.0**53, 2.0**50)).delta(1e-3) <= 1e-200
    large = NoisyTreeProfile(noise=LAPLACE, scales=(1e6, 3e6), contributions=10**6)
    assert 0.0 < large.delta(1.0) < 1.0
    assert large.pure_epsilon == pytest.approx(8 / 3)


# ---- the mechanism ---------------------------------------------------------------------------------------------------

TRIPLES = 2**11
FALSE_ALARM = 1e-10


def drawn_triples(mechanism, counts, spoil=None):
    """Noise of (parent, left, right), TRIPLES times, and of the special cells."""
    table = CountTable.from_cells(np.arange(mechanism.cells), counts)
    drawn, exact = mechanism.draw(table, entropy=SystemEntropy()).counts, mechanism.exact_counts(table)
    parents, leaves = (noisy - true for noisy, true in zip(drawn.levels, exact.levels, strict=True))
    special = drawn.special - exact.special
    if spoil == "off by one":
        leaves = leaves + 1
    if spoil == "shared":
        parents = leaves[::2]
    if spoil == "same special":
        special = special[:1].repeat(len(special))
    return np.stack([parents, leaves[::2], leaves[1::2]]), special


def rejected(mechanism, noise, special):
    """Chi-square test of the joint law of triples and of the law of special noise, in bins up to -1, 0, from 1 on."""

    def bins(scale):
        if mechanism.noise == LAPLACE:
            none = math.tanh(0.5 / scale)
        else:
            none = 1 / np.exp(-0.5 * (np.arange(-100, 101) / scale) ** 2).sum()
        return np.array([(1 - none) / 2, none, (1 - none) / 2])

    coarse, fine = (bins(scale) for scale in mechanism.scales)
    joint = np.bincount(np.array([9, 3, 1]) @ (np.sign(noise) + 1), minlength=27)
    alone = np.bincount(np.sign(special) + 1, minlength=3)
    for seen, shares in ((joint, np.einsum("i,j,k", coarse, fine, fine).ravel()), (alone, bins(mechanism.special_scale))):
        expected = seen.sum() * shares
        if ((seen - expected) ** 2 / expected).sum() > chi2.isf(FALSE_ALARM, len(seen) - 1):
            return True
    return False


@pytest.mark.parametrize("noise", NOISES)
def test_the_drawn_law_is_that_of_independent_noise(noise):
    cells = 2 * TRIPLES
    mechanism = PerturbedTree(
        n=None, shape=(cells,), special=(1_000,), depths=(11, 12), scales=(0.9, 1.4), special_scale=0.7, noise=noise
    )
    counts = np.random.default_rng(3).poisson(2.0, mechanism.cells)
    assert not rejected(mechanism, *drawn_triples(mechanism, counts)), f"fails with probability {2 * FALSE_ALARM} when right"
    for spoil in ("off by one", "shared", "same special"):
        assert rejected(mechanism, *drawn_triples(mechanism, counts, spoil))
    assert rejected(replace(mechanism, scales=(1.3, 1.4)), *drawn_triples(mechanism, counts))
    twin = mechanism.simulate(CountTable.from_cells(np.arange(mechanism.cells), counts), rng=np.random.default_rng(4))
    exact = mechanism.exact_counts(CountTable.from_cells(np.arange(mechanism.cells), counts))
    parents, leaves = (noisy - true for noisy, true in zip(twin.levels, exact.levels, strict=True))
    assert not rejected(mechanism, np.stack([parents, leaves[::2], leaves[1::2]]), twin.special - exact.special)
    assert np.std(leaves) == pytest.approx(mechanism.noise_deviations[1], rel=0.1)
    assert np.std(twin.special - exact.special) == pytest.approx(
        noise_deviation(noise=noise.removeprefix("discrete-"), scale=mechanism.special_scale), rel=0.1
    )


def test_nodes_and_special_cells_are_those_of_the_domain():
    """Two columns, one with an "other" and a null cell: counted node by node from the records themselves."""
    domain = JointDomain({"x": Grid(0, 4, 1, outside="other", nulls="cell"), "y": Grid(0, 2, 1)})
    mechanism = PerturbedTree(
        n=40, shape=(5, 3), special=(2, 0), depths=(1, 3, 5), scales=(1.0, 1.0, 1.0), special_scale=1.0, noise=LAPLACE
    )
    assert mechanism.cells == domain.size
    rng = np.random.default_rng(1)
    x, y = rng.integers(0, 7, 40), rng.integers(0, 3, 40)
    cells, counts = np.unique(x + 7 * y, return_counts=True)
    exact = mechanism.exact_counts(CountTable.from_cells(cells, counts))
    inside = x < 5
    box = CellTree((5, 3))
    for depth, level in zip(mechanism.depths, exact.levels, strict=True):
        ends = [*box.starts[depth][1:], box.cells]
        held = [set(box.order[start:end].tolist()) for start, end in zip(box.starts[depth], ends, strict=True)]
        assert level.tolist() == [sum(int(c) in node for c in (x + 5 * y)[inside]) for node in held]
        assert level.sum() == inside.sum()
    assert exact.special.tolist() == [int(((x == a) & (y == b)).sum()) for b in range(3) for a in (5, 6)]
    drawn = mechanism.draw(CountTable.from_cells(cells, counts), entropy=SystemEntropy())
    columns = drawn.columns()
    assert tuple(columns) == mechanism.beside
    assert {len(each) for each in columns.values()} == {mechanism.rows, len(drawn.cells)} == {mechanism.records}
    assert columns["depth"][-6:].tolist() == [-1] * 6
    assert drawn.cells[-6:].tolist() == [5, 6, 12, 13, 19, 20]
    for depth, node, cell in zip(columns["depth"][:-6], columns["node"], drawn.cells, strict=False):
        first = box.order[box.starts[depth][node]]
        assert cell == first % 5 + 7 * (first // 5)


def test_the_number_of_records_must_be_the_planned_one():
    with pytest.raises(ModelError, match="another number"):
        PerturbedTree(n=3, shape=(2,), depths=(1,), scales=(1.0,), noise=LAPLACE).draw(
            CountTable(np.array([0]), np.array([2])), entropy=SystemEntropy()
        )


def test_parameters_give_the_same_mechanism_back():
    for secret, noise, layout in itertools.product((False, True), NOISES, LAYOUTS.values()):
        made = tree(secret, noise=noise, **layout)
        assert PerturbedTree.from_parameters(json.loads(json.dumps(made.parameters()))) == made
    edited = tree(True, noise=LAPLACE, **LAYOUTS["two depths"]).parameters() | {"depths": [2, 1]}
    with pytest.raises(ModelError):
        PerturbedTree.from_parameters(edited)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"depths": (1, 4)}, "3 deep: depth 4 is below its leaves"),
        ({"depths": (2, 1)}, "must rise"),
        ({"depths": (1, 1)}, "must rise"),
        ({"depths": (0, 2)}, "root is not measured"),
        ({"depths": (), "scales": ()}, "at least one measured depth"),
        ({"scales": (1.0,)}, "needs the scale"),
        ({"scales": (1.0, 0.0)}, "positive scale"),
        ({"scales": (1.0, math.inf)}, "positive scale"),
        ({"noise": "laplace"}, "not known"),
        ({"n": 0}, "positive whole number"),
        ({"special": (1,)}, "special cells need a scale"),
        ({"special_scale": 1.0}, "special cells need a scale"),
        ({"special": (1, 0), "special_scale": 1.0}, "column by column"),
        ({"shape": (MOST_CELLS + 1,)}, "at most 5,000,000"),
        ({"shape": ()}, "one ordered column"),
        ({"shape": (0,)}, "one ordered column"),
        ({"shape": (2, 2, 2), "special": (0, 0, 0)}, "one ordered column"),
    ],
)
def test_impossible_trees_are_refused(changed, words):
    options = {"n": 5, "shape": (6,), "depths": (1, 3), "scales": (1.0, 1.0), "noise": LAPLACE}
    with pytest.raises(ModelError, match=words):
        PerturbedTree(**(options | changed))


# ---- least noise and layout ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("special", [0, 1, 2])
@pytest.mark.parametrize(("noise", "delta"), [(LAPLACE, 0.0), (LAPLACE, 1e-3), (GAUSSIAN, 1e-6)])
@pytest.mark.parametrize("contributions", [1, 2])
def test_the_least_noise_meets_the_guarantee_and_less_does_not(noise, delta, special, relation, contributions):
    guarantee = Guarantee(epsilon=0.8, delta=delta, neighbouring=relation, contributions=contributions)
    precisions = (0.7, 0.3) if noise == LAPLACE or special == 0 else (0.5, 0.5)
    found = smallest_tree_scales(noise=noise, precisions=precisions, guarantee=guarantee, special_cells=special)
    assert (found.special is None) == (special == 0)

    def profile(factor):
        return NoisyTreeProfile(
            noise=noise,
            scales=tuple(factor * each for each in found.depths),
            special_cells=special,
            special_scale=None if found.special is None else factor * found.special,
            neighbouring=relation,
        ).group(contributions)

    assert all(math.ldexp(math.frexp(each)[0], 22).is_integer() for each in found.depths)  # exact samplers are faster then
    assert profile(1.0).delta(guarantee.epsilon) <= delta
    assert profile(0.9999).delta(guarantee.epsilon) > delta
    if delta == 0.0:
        assert profile(1.0).pure_epsilon == pytest.approx(0.8, rel=1e-6)


def test_gaussian_noise_is_not_pure():
    with pytest.raises(CalibrationError, match="no pure epsilon"):
        smallest_tree_scales(noise=GAUSSIAN, precisions=(1.0,), guarantee=Guarantee(epsilon=1.0, delta=0.0))


def test_special_cells_cost_the_tree_nothing_at_a_pure_epsilon():
    guarantee = Guarantee(epsilon=1.0, delta=0.0, neighbouring="add-remove")
    plain = calibrate_noisy_tree(n=None, guess=10_000, shape=(4096,), guarantee=guarantee)
    beside = calibrate_noisy_tree(n=None, guess=10_000, shape=(4096,), special=(2,), guarantee=guarantee)
    assert beside.scales == plain.scales == (2.5, 2.5, 5.0)
    assert beside.special_scale == 1.0
    assert plain.profile.pure_epsilon == beside.profile.pure_epsilon == 1.0


def test_the_layout_follows_public_numbers_only():
    guarantee = Guarantee(epsilon=1.0, delta=0.0, neighbouring="add-remove")
    first, second = (calibrate_noisy_tree(n=n, guess=500, shape=(300,), guarantee=guarantee) for n in (10, 10**7))
    assert first == second
    assert first.n is None
    with pytest.raises(ModelError, match="public guess"):
        calibrate_noisy_tree(n=500, shape=(300,), guarantee=guarantee)
    public = Guarantee(epsilon=1.0, delta=0.0)
    assert calibrate_noisy_tree(n=500, guess=10**7, shape=(300,), guarantee=public) == calibrate_noisy_tree(
        n=500, shape=(300,), guarantee=public
    )


@pytest.mark.parametrize("noise", NOISES)
def test_layouts_grow_finer_with_the_records_and_end_at_the_leaves(noise):
    for shape in ((2,), (3,), (17,), (1000,), (4096,), (60, 50)):
        cells, before = CellTree(shape), 0
        for n in (1, 10, 100, 1_000, 10_000, 10**6, 10**9):
            layout = tree_layout(cells, noise=noise, flat_deviation=3.0, n=n)
            assert layout.depths[-1] == cells.depth
            assert sorted(set(layout.depths)) == list(layout.depths)
            assert layout.depths[0] >= 1
            assert math.fsum(layout.precisions) == pytest.approx(1.0)
            finest = layout.depths[-2] if len(layout.depths) > 1 else cells.depth
            assert finest >= before
            before = finest
    with pytest.raises(ModelError, match="one cell"):
        tree_layout(CellTree((1,)), noise=noise, flat_deviation=3.0, n=100)
    assert tree_layout(CellTree((1,)), noise=noise, flat_deviation=3.0, n=100, secret=True).depths == (0,)


@pytest.mark.parametrize(("cells", "depths"), [(32, (2, 5)), (1024, (2, 6, 10)), (4096, (3, 7, 12)), (5001, (3, 7, 13))])
def test_an_unknown_total_counts_as_one_more_depth(cells, depths):
    """Where the leaves are within reach, and the noise is Laplace noise."""
    tree, many = CellTree((cells,)), {"flat_deviation": 1.0, "n": 10**7}
    found = tree_layout(tree, noise=LAPLACE, secret=True, **many)
    assert found.depths == depths
    assert len(set(found.precisions)) == 1


@pytest.mark.parametrize(("n", "falling"), [(3_999, False), (4_001, True), (15_999, True), (16_001, False)])
def test_budget_falls_from_depth_to_depth_where_leaves_of_a_known_total_stand_out_a_little(n, falling):
    """From four to sixteen deviations of one column; all depths alike beyond, with a secret total and with Gaussian noise."""
    tree, least = CellTree((1000,)), {"flat_deviation": 1.0, "n": n}
    found = np.array(tree_layout(tree, noise=LAPLACE, **least).precisions)
    assert bool(np.allclose(found[1:] / found[:-1], 0.8)) is falling
    pair = tree_layout(CellTree((40, 25)), noise=LAPLACE, **least)
    for others in (tree_layout(tree, noise=LAPLACE, secret=True, **least), tree_layout(tree, noise=GAUSSIAN, **least), pair):
        assert len(set(others.precisions[:-1])) == 1
        assert others.precisions[-1] == others.precisions[0] or n < 4_000


@pytest.mark.parametrize("noise", NOISES)
def test_depths_for_an_unknown_total_have_nearly_the_least_error_of_shares(noise):
    """By least squares on trees whose leaves stand out; of columns that are even, and of those that fill a tenth of the cells.

    Against all sets of at most four depths for Laplace noise and five for Gaussian noise. Even spacing alone is far off.
    """
    power = 1.0 if noise == LAPLACE else 0.5
    for cells in (20, 47, 99, 150):
        tree = CellTree((cells,))
        columns = [np.arange(1, cells + 1) / cells, np.minimum(np.arange(1, cells + 1) / (0.1 * cells), 1.0)]

        def error(depths, tree=tree, columns=columns):
            covariance = _least_squares_covariance(tree, depths, float(len(depths)) ** power)
            cumulative = np.cumsum(np.cumsum(covariance, axis=0), axis=1)
            last = cumulative[:, -1]
            return np.array([(np.diag(cumulative) - 2 * f * last + f**2 * last[-1]).mean() ** 0.5 for f in columns])

        most = 4 if noise == LAPLACE else 5
        choices = [(*above, tree.depth) for count in range(most) for above in combinations(range(1, tree.depth), count)]
        errors = {depths: error(depths) for depths in choices}
        ruled = tree_layout(tree, noise=noise, flat_deviation=1.0, n=10**9, secret=True).depths
        assert errors[ruled].mean() < 1.06 * min(each.mean() for each in errors.values())
        if (noise, cells) == (LAPLACE, 99):
            assert errors[2, 7].mean() > 1.1 * errors[ruled].mean()


def _least_squares_covariance(tree, depths, deviation):
    """Of the leaves' counts, all nodes of these depths measured with this deviation."""
    information = np.zeros((tree.cells, tree.cells))
    for depth in depths:
        starts = tree.starts[depth]
        for first, end in zip(starts, [*starts[1:], tree.cells], strict=True):
            information[first:end, first:end] += deviation**-2
    return np.linalg.inv(information)


def test_evenly_spread_depths_have_nearly_the_least_error_whatever_the_number_of_cells():
    """Of all sets of depths with Laplace noise on equal shares; the last depth of most trees is filled in part."""
    excess = []
    for cells in sorted({round(2.0**x) for x in np.arange(4.1, 13.0, 0.27)} | {33, 4097, 5001}):
        tree = CellTree((cells,))

        def error(depths, tree=tree):
            made = PerturbedTree(
                n=10**9, shape=tree.shape, depths=depths, scales=(float(len(depths)),) * len(depths), noise=LAPLACE
            )
            return cumulative_variance(made, n=10**9)

        choices = [(*above, tree.depth) for count in range(4) for above in combinations(range(1, tree.depth), count)]
        ruled = tree_layout(tree, noise=LAPLACE, flat_deviation=1.0, n=10**9).depths
        excess.append(error(ruled) / min(map(error, choices)))
    assert max(excess) < 1.08
    assert np.mean(excess) < 1.01


@pytest.mark.parametrize(
    ("n", "epsilon", "secret", "depths", "leaves"),
    [
        (1_000, 0.1, True, (4, 12), 1 / 3),
        (1_000, 1.0, True, (2, 6, 12), 0.2),
        (10_000, 0.1, True, (2, 6, 12), 0.2),
        (10_000, 1.0, True, (3, 7, 12), 0.2),
        (10_000, 4.0, True, (3, 7, 12), 1 / 3),
        (1_000, 0.1, False, (4, 12), 1 / 3),
        (1_000, 1.0, False, (3, 6, 12), 0.2),
        (10_000, 1.0, False, (4, 8, 12), 0.2),
        (10**6, 0.1, False, (4, 8, 12), 16 / 61),
        (10**6, 0.1, True, (3, 7, 12), 1 / 3),
        (10**6, 1.0, False, (4, 8, 12), 1 / 3),
    ],
)
def test_layouts_of_4096_cells_are_those_that_were_measured(n, epsilon, secret, depths, leaves):
    """Those with Laplace noise whose errors docs/proofs/noisy-trees.md and docs/explanation/polya-trees.md tell."""
    guarantee = Guarantee(epsilon=epsilon, delta=0.0, neighbouring="add-remove" if secret else "replace-one")
    made = calibrate_noisy_tree(n=n, guess=n, shape=(4096,), guarantee=guarantee)
    assert made.depths == depths
    parts = [1.0 / each for each in made.scales]
    assert parts[-1] / sum(parts) == pytest.approx(leaves, rel=1e-5)
    falling = 0.8 if leaves == 16 / 61 else 1.0
    assert np.array(parts[1:-1]) / parts[:-2] == pytest.approx(falling, rel=1e-5)


@pytest.mark.parametrize(("epsilon", "n", "kind"), [(0.1, 10**6, GAUSSIAN), (1.0, 1000, LAPLACE)])
def test_the_noise_is_that_of_the_smaller_error(epsilon, n, kind):
    guarantee = Guarantee(epsilon=epsilon, delta=1e-6)
    chosen = calibrate_noisy_tree(n=n, shape=(4096,), guarantee=guarantee)
    both = [calibrate_noisy_tree(n=n, shape=(4096,), guarantee=guarantee, noise=noise) for noise in NOISES]
    assert chosen.noise == kind
    assert cumulative_variance(chosen, n=n) == min(cumulative_variance(each, n=n) for each in both)
    assert all(each.profile.delta(epsilon) <= 1e-6 for each in both)


def test_the_error_of_a_cumulative_count_is_that_of_least_squares():
    """Against the covariance of the least-squares estimate given the total, on a tree of 16 leaves with two depths measured."""
    made = PerturbedTree(n=10**9, shape=(16,), depths=(2, 4), scales=(5.0, 3.0), noise=GAUSSIAN)
    rows = [np.arange(16) // 4 == i for i in range(4)] + [np.arange(16) == i for i in range(16)]
    design, weights = np.array(rows, float), np.array([5.0**-2] * 4 + [3.0**-2] * 16)
    information = design.T @ (weights[:, None] * design)
    inverse = np.linalg.inv(information)
    ones = np.ones(16)
    covariance = inverse - np.outer(inverse @ ones, inverse @ ones) / (ones @ inverse @ ones)
    cumulative = np.tril(np.ones((16, 16)))
    exact = np.mean(np.diag(cumulative @ covariance @ cumulative.T))
    assert cumulative_variance(made, n=10**9) == pytest.approx(exact, rel=0.25)


@pytest.mark.parametrize(("noise", "spacing"), [(LAPLACE, 4.0), (GAUSSIAN, 2.0)])
def test_wide_gaps_above_narrow_ones_never_raise_the_error(noise, spacing):
    """Against depths rounded to the nearest, all with the noise that their number asks for; on 32 cells 5% less."""
    gains = []
    for depth in range(2, 18):
        count = max(1, round(depth / spacing))
        nearest = tuple(sorted({round(depth * i / count) for i in range(1, count + 1)}))
        errors = []
        for depths in (spread(float(depth), spacing), nearest):
            scale = len(depths) if noise == LAPLACE else len(depths) ** 0.5
            made = PerturbedTree(n=10**12, shape=(2**depth,), depths=depths, scales=(scale,) * len(depths), noise=noise)
            errors.append(cumulative_variance(made, n=10**12) ** 0.5)
        gains.append(errors[0] / errors[1])
    assert max(gains) <= 1.0 + 1e-9
    assert min(gains) < (0.99 if noise == LAPLACE else 0.95)


@pytest.mark.parametrize("neighbouring", ["replace-one", "add-remove"])
@pytest.mark.parametrize(("cells", "n", "epsilon"), [(4096, 100_000, 0.1), (4096, 1_000_000, 1.0), (100, 1_000, 1.0)])
def test_without_a_delta_the_default_errs_at_most_half_as_much_again(neighbouring, cells, n, epsilon):
    """Root mean squared error of cumulative counts, which is what W1 is made of; the default recipe, calibrated."""
    errors = []
    for delta in (0.0, 1e-6):
        guarantee = Guarantee(epsilon=epsilon, delta=delta, neighbouring=neighbouring)
        domain = JointDomain({"x": Grid(1, cells, 1)})
        secret = neighbouring == "add-remove"
        public = Public(n=None if secret else n, cells=cells, guarantee=guarantee, domain=domain)
        made = usual(domain)(records=n if secret else None).calibrate(public)
        errors.append(math.sqrt(cumulative_variance(made, n=n)))
    assert errors[0] <= 1.5 * errors[1]


def test_noise_deviations_are_those_of_the_laws():
    for noise, scale in itertools.product(("laplace", "gaussian"), (0.2, 0.7, 2.9, 3.1, 40.0)):
        k = np.arange(-4000, 4001)
        weights = np.exp(-np.abs(k) / scale) if noise == "laplace" else np.exp(-0.5 * (k / scale) ** 2)
        assert noise_deviation(noise=noise, scale=scale) == pytest.approx(math.sqrt(weights @ k**2 / weights.sum()), rel=1e-9)
