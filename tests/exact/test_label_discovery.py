"""Naming labels: the law of the names by enumeration over all neighbouring tables, and what is claimed of it."""

import itertools
import json
import math

import mpmath
import numpy as np
import polars as pl
import pytest
from mpmath import mp, mpf
from scipy.stats import binom

import privurn
from privurn.counts import CountTable
from privurn.errors import CalibrationError, ModelError
from privurn.mechanisms.label_discovery import LabelDiscovery, calibrate_discovery
from privurn.mechanisms.registry import rebuild
from privurn.privacy.laws.label_discovery import (
    DiscoveredUrnProfile,
    LabelDiscoveryProfile,
    least_discovery,
)
from privurn.privacy.profile import GroupProfile, Guarantee, PointProfile

mp.dps = 40
REACH = 8


def upper_tail(short, scale):
    """P(X >= short) for discrete Laplace noise, from its masses and nothing else."""
    r = mpmath.exp(-1 / mpf(scale))
    w = (1 - r) / (1 + r)
    if short > 0:
        return w * r**short / (1 - r)
    return 1 - w * r ** (1 - short) / (1 - r)


def outcomes(count, scale, threshold, *, counts_too):
    """Law of what is told about one label: nothing, its name, or its name and its noisy count (cut off far out)."""
    if count == 0:
        return {None: mpf(1)}
    named = upper_tail(threshold - count, scale)
    if not counts_too:
        return {None: 1 - named, "named": named}
    far = threshold + REACH
    law = {v: upper_tail(v - count, scale) - upper_tail(v + 1 - count, scale) for v in range(threshold, far)}
    return {None: 1 - named, far: upper_tail(far - count, scale), **law}


def divergence(x, y, scale, threshold, epsilon, *, counts_too=False):
    """sup P - E Q over events, P and Q products over the labels whose counts differ."""
    ratio = mpmath.exp(mpf(epsilon))
    laws = [
        (outcomes(a, scale, threshold, counts_too=counts_too), outcomes(b, scale, threshold, counts_too=counts_too))
        for a, b in zip(x, y, strict=True)
        if a != b
    ]
    total = mpf(0)
    for told in itertools.product(*(set(p) | set(q) for p, q in laws)):
        p = mpmath.fprod(law.get(o, mpf(0)) for (law, _), o in zip(laws, told, strict=True))
        q = mpmath.fprod(law.get(o, mpf(0)) for (_, law), o in zip(laws, told, strict=True))
        total += max(mpf(0), p - ratio * q)
    return total


def tables(n, labels):
    return [t for t in itertools.product(range(n + 1), repeat=labels) if sum(t) == n]


def replaced(n, labels, k=1):
    """All ordered pairs of tables of n records that differ in at most k of them."""
    return [
        (x, y)
        for x, y in itertools.permutations(tables(n, labels), 2)
        if sum(max(0, a - b) for a, b in zip(x, y, strict=True)) <= k
    ]


def added(n, labels):
    pairs = [
        (x, tuple(c + (i == j) for j, c in enumerate(x)))
        for size in range(n + 1)
        for x in tables(size, labels)
        for i in range(labels)
    ]
    return pairs + [(y, x) for x, y in pairs]


def epsilons(scale):
    return (0.0, 0.05, 0.4 / scale, 0.9 / scale, 1 / scale, 1.05 / scale, 1.7 / scale, 2 / scale, 2.6 / scale)


@pytest.mark.parametrize("threshold", [2, 3])
@pytest.mark.parametrize("scale", [0.4, 1.0, 3.0, 20.0])
def test_one_replaced_record_by_enumeration(scale, threshold):
    """Three labels and 2T - 1 records hold every worst case: nothing exceeds the profile, and something attains it."""
    profile = LabelDiscoveryProfile(scale=scale, threshold=threshold)
    pairs = replaced(2 * threshold - 1, 3)
    for epsilon in epsilons(scale):
        worst = max(divergence(x, y, scale, threshold, epsilon) for x, y in pairs)
        claimed = mpf(profile.delta(epsilon))
        assert worst * (1 - mpf("1e-30")) <= claimed <= worst * (1 + mpf("1e-12"))


@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_noisy_counts_of_named_labels_cost_nothing_more(scale):
    profile = LabelDiscoveryProfile(scale=scale, threshold=2)
    for epsilon in (0.0, 0.3 / scale, 1.2 / scale, 2 / scale):
        worst = max(divergence(x, y, scale, 2, epsilon, counts_too=True) for x, y in replaced(3, 3) if min(x[0], y[0]) == 0)
        assert worst <= mpf(profile.delta(epsilon)) <= worst * (1 + mpf("1e-12"))


@pytest.mark.parametrize("threshold", [2, 4])
@pytest.mark.parametrize("scale", [0.4, 3.0, 20.0])
def test_one_record_more_or_less_by_enumeration(scale, threshold):
    profile = LabelDiscoveryProfile(scale=scale, threshold=threshold, neighbouring="add-remove")
    pairs = added(threshold, 2)
    for epsilon in epsilons(scale):
        worst = max(divergence(x, y, scale, threshold, epsilon) for x, y in pairs)
        assert worst * (1 - mpf("1e-30")) <= mpf(profile.delta(epsilon)) <= worst * (1 + mpf("1e-12"))


def test_negative_epsilon_is_the_mirror_image():
    profile = LabelDiscoveryProfile(scale=1.5, threshold=3)
    for epsilon in (-0.2, -1.0, -4.0):
        worst = max(divergence(x, y, 1.5, 3, epsilon) for x, y in replaced(5, 3))
        assert worst <= mpf(profile.delta(epsilon)) <= worst * (1 + mpf("1e-12"))


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("scale", [0.7, 3.0, 12.0])
@pytest.mark.parametrize("threshold", [2, 3, 4])
def test_several_records_of_one_person_by_enumeration(scale, threshold, k):
    """At epsilon = 2k/scale the claim is exact, whether the person's records hold one label or one each."""
    found = LabelDiscoveryProfile(scale=scale, threshold=threshold).guarantee(k)
    worst = max(divergence(x, y, scale, threshold, found.epsilon) for x, y in replaced(k + 1, 4, k))
    assert worst * (1 - mpf("1e-14")) <= mpf(found.delta) <= worst * (1 + mpf("1e-12"))
    assert found.epsilon == pytest.approx(2 * k / scale)
    assert (found.contributions, found.neighbouring) == (k, "replace-one")


def partitions(k, largest=None):
    if k == 0:
        yield ()
    for first in range(min(k, largest or k), 0, -1):
        for rest in partitions(k - first, first):
            yield (first, *rest)


def test_one_label_or_one_each_is_the_worst_partition():
    """Over all ways to spread a person's records over labels, and either extreme does occur."""
    seen = set()
    for scale, threshold, k in itertools.product((0.3, 1.0, 4.0, 30.0), (2, 3, 5, 9, 40), range(1, 11)):
        claimed = LabelDiscoveryProfile(scale=scale, threshold=threshold).group_point(k)[1]
        with mp.workdps(120):
            chances = {
                parts: 1 - mpmath.fprod(1 - upper_tail(threshold - held, scale) for held in parts) for parts in partitions(k)
            }
        worst = max(chances, key=chances.__getitem__)
        assert chances[worst] <= mpf(claimed) <= chances[worst] * (1 + mpf("1e-12"))
        seen.add("one label" if len(worst) == 1 else "one each" if len(worst) == k else "between")
    assert seen == {"one label", "one each"}
    assert LabelDiscoveryProfile(scale=5.0, threshold=40).guarantee(3).delta == pytest.approx(6.757e-4, rel=1e-3)
    assert LabelDiscoveryProfile(scale=5.0, threshold=40).named(3) == pytest.approx(3.361e-4, rel=1e-3)


@pytest.mark.parametrize(("scale", "threshold"), [(0.01, 2), (0.5, 4), (7.0, 5000), (1e9, 2 * 10**10), (2.0**53, 2**60)])
def test_the_whole_profile_in_forty_digits(scale, threshold):
    profile = LabelDiscoveryProfile(scale=scale, threshold=threshold)
    r = mpmath.exp(-1 / mpf(scale))
    q = r ** (threshold - 1) / (1 + r)
    for share in (0.0, 1e-9, 0.3, 0.5, 0.999999, 1.0, 1.0000001, 1.7, 2 - 1e-12, 2.0, 3.0):
        epsilon = share / scale
        if epsilon > 700:
            continue
        ratio = mpmath.exp(mpf(epsilon))
        truth = max(
            max(mpf(0), 1 - r * r * ratio) / (1 + r) ** 2,
            q + max(mpf(0), 1 - q - r * ratio) / (1 + r),
            (max(mpf(0), 1 - (1 - q) * r * ratio) + max(mpf(0), r - (1 - q) * ratio)) / (1 + r),
        )
        assert truth <= mpf(profile.delta(epsilon)) <= truth * (1 + mpf("2e-12")) + mpf("2e-290")


def test_calibration_ends_on_the_private_side_and_next_to_the_other():
    for epsilon, delta, k in itertools.product((0.01, 0.5, 1.0, 7.3, 60.0), (0.4, 1e-3, 1e-9, 1e-200), (1, 2, 7)):
        found = least_discovery(epsilon=epsilon, delta=delta, contributions=k)
        met = found.guarantee(k)
        assert met.epsilon <= epsilon
        assert met.delta <= delta
        if found.threshold > 2:
            assert LabelDiscoveryProfile(scale=found.scale, threshold=found.threshold - 1).guarantee(k).delta > delta
        with pytest.raises(ModelError):
            LabelDiscoveryProfile(scale=found.scale, threshold=1)


def test_what_cannot_be_calibrated_is_refused():
    for epsilon, delta in ((1e-90, 1e-6), (1.0, 0.0)):
        with pytest.raises(CalibrationError):
            least_discovery(epsilon=epsilon, delta=delta)
    with pytest.raises(CalibrationError, match="delta = 0"):
        calibrate_discovery(epsilon=1.0, delta=0.0)


# ---- what the noisy threshold really does ----------------------------------------------------------------------------

FALSE_ALARM = 1e-10
"""Of each of the ten comparisons below: together less than 1e-9."""


def plausible(named, total, chance):
    return min(binom.cdf(named, total, chance), binom.sf(named - 1, total, chance)) > FALSE_ALARM / 2


@pytest.mark.parametrize("scale", [0.5, 3.0])
def test_labels_are_named_as_often_as_claimed(scale):
    """A noisy count of exactly the threshold is named; a rule that left it out would be seen."""
    total, threshold = 20_000, 4
    for held in (1, 2, 3, 4, 6):
        table = CountTable(np.arange(total), np.full(total, held))
        named = int(LabelDiscovery(scale=scale, threshold=threshold).discover(table).sum())
        assert plausible(named, total, float(upper_tail(threshold - held, scale)))
        assert not plausible(named, total, float(upper_tail(threshold + 1 - held, scale)))


# ---- releases --------------------------------------------------------------------------------------------------------


def test_a_release_of_unique_labels_stays_within_delta():
    """Labels held once each, epsilon 8, delta 0.0012: at scale 1/2 a threshold of 4 names 0.0022 of them."""
    low = LabelDiscoveryProfile(scale=0.5, threshold=4)
    assert low.delta(4.0) == pytest.approx(math.exp(-6) / (1 + math.exp(-2)))
    assert low.delta(4.0) > 0.002
    labels = [f"person {i}" for i in range(40_000)]
    out = privurn.release(
        pl.DataFrame({"name": labels}), privurn.Discover(records=100), domain=privurn.OpenLabels(), epsilon=8, delta=0.0012
    )
    stated = json.loads(json.dumps(out.certificate["mechanism"]["parameters"]))
    assert stated["discovery"] == {"scale": 0.5, "threshold": 5, "distances": [2, 2, 1]}
    made = rebuild("label-discovery", stated)
    assert made.profile.delta(8.0) <= 0.0012
    assert plausible(len(out.certificate["domain"]["labels"]), 40_000, math.exp(-8) / (1 + math.exp(-2)))
    # what was once certified no longer is
    stated["discovery"]["threshold"] = 4
    assert rebuild("label-discovery", stated).profile.delta(8.0) > 0.0012


def test_several_contributions_are_paid_exactly_and_below_group_privacy():
    wanted = Guarantee(epsilon=2.0, delta=1e-4, contributions=3)
    frame = pl.DataFrame({"town": ["a"] * 3000 + ["b"] * 2000 + ["c"]})
    out = privurn.release(
        frame, privurn.Discover(records=50, share=0.4), domain=privurn.OpenLabels(), epsilon=2.0, delta=1e-4, contributions=3
    )
    mechanism = rebuild("label-discovery", out.certificate["mechanism"]["parameters"])
    together = mechanism.profile.group(wanted.contributions)
    assert isinstance(together, DiscoveredUrnProfile)
    first = mechanism.discovery.profile.guarantee(3)
    assert first.epsilon <= 0.8
    assert first.delta <= 4e-5
    assert 0.99e-4 <= together.delta(2.0) <= 1e-4
    assert together.delta(2.0) >= first.delta
    assert together.floor == together.delta(2.0)
    single = mechanism.profile.point
    chained = GroupProfile(single=single, contributions=3)
    assert isinstance(single, PointProfile)
    assert together.delta(3 * single.epsilon0) < chained.delta(3 * single.epsilon0)
    assert mechanism.profile.group(1).delta(1.0) == mechanism.profile.delta(1.0)
