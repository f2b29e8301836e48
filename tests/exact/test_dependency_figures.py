"""Figures that come from OpenDP or dp-accounting, each against our own enumeration.

Places that take something from these packages (test_every_place_is_known): `privacy/additive_noise.py` takes draws of integer
noise from OpenDP, never a privacy figure; `privacy/composition.py` takes convolutions of lattice laws from dp-accounting and
`privacy/laws/loss_law.py` hands it our laws. The settings are drawn once, from a fixed seed.
"""

import ast
import itertools
import math
import random

import mpmath
import numpy as np
import pytest
from mpmath import mp, mpf
from scipy.stats import binom

from privurn.privacy.additive_noise import log_mass, measurement, noisy_integers
from privurn.privacy.composition import compose, privacy_loss_distribution
from privurn.privacy.laws.label_discovery import LabelDiscoveryProfile
from privurn.privacy.laws.noise import DiscreteLaplaceProfile, RandomisedResponseProfile
from privurn.privacy.profile import PointProfile
from sources import FILES, nodes, place

SETTINGS = 250
"""Of each of the two kinds of compositions below: 500 together."""


def test_every_place_is_known():
    """Whoever imports one of the packages, or asks a privacy map, is listed at the top of this file."""
    importing, mapping = set(), set()
    for path in FILES:
        for node in nodes(path):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            importing |= {
                (place(path), name.split(".")[0]) for name in names if name.split(".")[0] in ("opendp", "dp_accounting")
            }
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "map":
                mapping.add(place(path))
    assert importing == {
        ("privacy/additive_noise.py", "opendp"),
        ("privacy/composition.py", "dp_accounting"),
        ("privacy/laws/loss_law.py", "dp_accounting"),
    }
    assert not mapping & {file for file, _ in importing}


# ---- compositions: all outcomes of two to four releases ----------------------------------------------------------------


def response_pairs(profile):
    """(P, Q) of the outcomes of randomised response, those of one likelihood ratio together."""
    e = mpmath.exp(-mpf(profile.epsilon0))
    kept = 1 / (1 + (profile.categories - 1) * e)
    return [(kept, kept * e), (kept * e, kept), ((profile.categories - 2) * kept * e,) * 2]


def count_pairs(profile):
    """The same for discrete Laplace noise on a count that moves by D: losses (D - 2j)/scale, j = 0..D."""
    r, steps = mpmath.exp(-1 / mpf(profile.scale)), profile.sensitivity
    w = (1 - r) / (1 + r)
    law = [1 / (1 + r), *(w * r**j for j in range(1, steps)), r**steps / (1 + r)]
    return [(p, p * r ** (steps - 2 * j)) for j, p in enumerate(law)]


def point_pairs(profile):
    """All is revealed with probability delta0, otherwise randomised response on two values."""
    lost, e = mpf(profile.delta0), mpmath.exp(-mpf(profile.epsilon0))
    kept = (1 - lost) / (1 + e)
    return [(lost, mpf(0)), (mpf(0), lost), (kept, kept * e), (kept * e, kept)]


PAIRS = {RandomisedResponseProfile: response_pairs, DiscreteLaplaceProfile: count_pairs, PointProfile: point_pairs}


def joint_outcomes(profiles):
    """(P, Q) of all outcomes of a plan; those of equal releases that differ in their order only are one."""
    parts = []
    for profile, equal in itertools.groupby(profiles):
        k = len(list(equal))
        outcomes = PAIRS[type(profile)](profile)
        joint = []
        for at in itertools.combinations_with_replacement(range(len(outcomes)), k):
            orders = math.factorial(k) // math.prod(math.factorial(at.count(i)) for i in set(at))
            joint.append(tuple(orders * math.prod(outcomes[i][side] for i in at) for side in (0, 1)))
        parts.append(joint)
    return [tuple(math.prod(pq[i] for pq in each) for i in (0, 1)) for each in itertools.product(*parts)]


def joint_delta(profiles, *epsilons):
    """Hockey stick of the joint release at each epsilon."""
    outcomes = joint_outcomes(profiles)
    return [sum((max(mpf(0), p - mpmath.exp(mpf(e)) * q) for p, q in outcomes), mpf(0)) for e in epsilons]


def random_part(rng):
    kind = rng.choice(list(PAIRS))
    if kind is RandomisedResponseProfile:
        return kind(categories=rng.choice([2, 3, 50]), epsilon0=10 ** rng.uniform(-2, 1))
    if kind is DiscreteLaplaceProfile:
        return kind(scale=10 ** rng.uniform(-0.5, 1.5), sensitivity=rng.randint(1, 3))
    return kind(epsilon0=10 ** rng.uniform(-2, 0.7), delta0=10 ** rng.uniform(-12, -0.5))


@pytest.mark.parametrize("block", range(5))
def test_composition_of_different_releases_by_enumeration(block):
    """Two to four releases: never below the truth, and above it by the rounding to the lattice only."""
    rng = random.Random(100 + block)
    with mp.workdps(30):
        for _ in range(SETTINGS // 5):
            parts = [random_part(rng) for _ in range(rng.choice([2, 2, 3, 3, 4]))]
            plan = compose(parts)
            largest = sum(getattr(part, "epsilon0", 0.0) or part.pure_epsilon for part in parts)
            epsilon = rng.choice([0.0, rng.random(), rng.random() ** 4, 1.0 - 10 ** rng.uniform(-6, -1)]) * largest
            # on a lattice of a thousand steps every part's loss is raised by less than a step of its own
            truth, above = joint_delta(parts, epsilon, epsilon - 2e-3 * largest)
            assert truth * (1 - mpf("1e-25")) <= mpf(plan.delta(epsilon))
            assert plan.delta(epsilon) <= float(above) * (1 + 1e-9) + 1e-11


@pytest.mark.parametrize("block", range(5))
def test_composition_of_equal_releases_by_enumeration(block):
    """dp-accounting's k-fold convolution, through our profile and through its own object."""
    rng = random.Random(200 + block)
    with mp.workdps(30):
        for _ in range(SETTINGS // 5):
            part, k = random_part(rng), rng.choice([2, 3, 4])
            plan = compose([part], counts=[k], points=200)
            theirs = privacy_loss_distribution(part, points=200).self_compose(k)
            largest = k * (getattr(part, "epsilon0", 0.0) or part.pure_epsilon)
            for share in (rng.random(), 1.0 - 10 ** rng.uniform(-6, -1)):
                truth, above = joint_delta([part] * k, share * largest, (share - 1e-2) * largest)
                assert truth * (1 - mpf("1e-25")) <= mpf(plan.delta(share * largest))
                assert float(truth) <= theirs.get_delta_for_epsilon(share * largest) + 1e-13
                assert plan.delta(share * largest) <= float(above) * (1 + 1e-9) + 1e-11


def test_without_its_cut_a_composition_would_claim_too_little():
    """The twin: the convolution alone, without the losses that the lattice leaves out, lies below the truth."""
    part = DiscreteLaplaceProfile(scale=0.02)  # a loss of 50 or of -50
    plan = compose([part], counts=[2])
    assert plan._beyond == 0.0  # nothing left out: the pure epsilon is on the lattice
    lossy = PointProfile(epsilon0=0.5, delta0=1e-25)
    plan = compose([lossy], counts=[2])
    [truth] = joint_delta([lossy] * 2, 2.0)
    joint, error = plan._convolved
    assert float(joint.get_delta_for_epsilon(2.0)) + error < truth <= mpf(plan.delta(2.0))


# ---- OpenDP: its threshold map, which we do not use, and the noise that we do ------------------------------------------


def test_opendp_figure_for_thresholds_is_not_ours():
    """Why it is not used: it leaves out the mass at the threshold, and counts two labels where one is the worst."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.map_domain(dp.atom_domain(T="i64"), dp.atom_domain(T="i64")), dp.l01inf_distance(dp.absolute_distance(T="i64"))
    rng = random.Random(3)
    sides = set()
    for _ in range(60):
        scale, threshold = 10 ** rng.uniform(-0.7, 1.0), rng.randint(2, 30)
        ours = LabelDiscoveryProfile(scale=scale, threshold=threshold).guarantee()
        epsilon, delta = (space >> dp.m.then_laplace_threshold(scale=scale, threshold=threshold)).map((2, 2, 1))
        assert epsilon == pytest.approx(ours.epsilon)
        truth = mpmath.exp(-(threshold - 1) / mpf(scale)) / (1 + mpmath.exp(-1 / mpf(scale)))
        assert mpf(ours.delta) >= truth
        if truth > mpf("1e-12"):
            sides.add(bool(delta < truth))
    assert sides == {True, False}


TOTAL_FALSE_ALARM = 1e-10
"""Of each test of a law below, over all its comparisons."""


def law_is_plausible(draws, noise, scale):
    """Exact binomial comparisons of P(X = k) and P(X <= k) for all k that matter, at TOTAL_FALSE_ALARM together."""
    support = np.arange(-400, 401)
    masses = np.exp(log_mass(support.astype(float), noise=noise, scale=scale))
    seen = np.array([np.count_nonzero(draws == k) for k in support])
    kept = masses > 1e-12
    assert seen[~kept].sum() == 0 or masses[~kept].sum() * len(draws) > 1e-11
    pairs = [(s, p) for s, p in zip(seen[kept], masses[kept], strict=True)]
    pairs += [(s, p) for s, p in zip(np.cumsum(seen)[kept], np.cumsum(masses)[kept], strict=True)]
    least = TOTAL_FALSE_ALARM / (2 * len(pairs))
    return all(min(binom.cdf(s, len(draws), min(1.0, p)), binom.sf(s - 1, len(draws), min(1.0, p))) > least for s, p in pairs)


@pytest.mark.parametrize(("noise", "scale"), [("laplace", 0.4), ("laplace", 2.5), ("gaussian", 0.6), ("gaussian", 4.0)])
def test_noise_has_the_scale_it_is_asked_for(noise, scale):
    """e^(-|k|/scale) and e^(-k^2/(2 scale^2)): the masses that profiles are computed from, and no others."""
    draws = noisy_integers(np.zeros(20_000, np.int64), noise=noise, scale=scale)
    assert law_is_plausible(draws, noise, scale)
    for wrong in (0.85 * scale, scale / 0.85):  # another scale would be seen
        assert not law_is_plausible(draws, noise, wrong)
    other = "gaussian" if noise == "laplace" else "laplace"
    assert not law_is_plausible(draws, other, scale)


def test_opendp_figures_for_noise_agree_with_ours():
    """Its maps of the two noises that are drawn, at 200 settings: no figure of ours is below, and both say the same."""
    rng = random.Random(4)
    for _ in range(100):
        scale, moved = 10 ** rng.uniform(-2, 6), rng.randint(1, 1000)
        ours = DiscreteLaplaceProfile(scale=scale, sensitivity=moved).pure_epsilon
        assert measurement("laplace", scale).map(moved) == pytest.approx(ours, rel=1e-12)
        assert mpf(ours) >= moved / mpf(scale)
        rho = measurement("gaussian", scale).map(float(moved))
        assert rho == pytest.approx(0.5 * (moved / scale) ** 2, rel=1e-12)
        assert math.isfinite(rho)
