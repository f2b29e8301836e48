"""From mechanisms and what they published to likelihoods of counts; states that can be started from; bad input."""

from fractions import Fraction

import numpy as np
import pytest

from privurn.counts import CountTable
from privurn.errors import ModelError
from privurn.inference.counts.latent_counts import LatentCounts
from privurn.inference.size import SizePrior
from privurn.mechanisms.base_measures import FiniteBase, FreshLabels
from privurn.mechanisms.dirichlet_multinomial import DirichletMultinomial
from privurn.mechanisms.likelihood import MixtureTerm, NoisyCountsTerm, NoisyRecordsTerm, Numbers, UrnTerm
from privurn.mechanisms.perturbed_histogram import PerturbedHistogram
from privurn.mechanisms.pitman_yor import PitmanYor
from privurn.mechanisms.posterior_sample import PosteriorSample
from privurn.mechanisms.smoothed_histogram import SmoothedHistogram
from privurn.privacy.entropy import SeededEntropy

COUNTS = CountTable.from_cells(np.arange(3), np.array([5, 0, 7]))


def urn(**changes):
    return DirichletMultinomial(**({"n": 12, "cells": 3, "alpha": Fraction(3, 2), "records": 8} | changes))


def histogram(**changes):
    return PerturbedHistogram(
        **({"n": 12, "cells": 3, "records": 8, "noise": "laplace", "scale": 2.0, "smoothing": Fraction(1, 4)} | changes)
    )


def test_urns():
    term = urn().likelihood(Numbers(np.array([1, 3, 4])))
    assert isinstance(term, UrnTerm)
    assert term.alpha.tolist() == [1.5] * 3
    assert term.released.tolist() == [[1, 3, 4]]
    uneven = urn(alpha=(Fraction(1), Fraction(2), Fraction(3))).likelihood(Numbers(np.array([1, 3, 4])))
    assert uneven.alpha.tolist() == [1, 2, 3]


def test_a_dirichlet_process_with_a_finite_base_is_an_urn():
    base = FiniteBase(cells=3, weights=(1, 0, 3))
    process = PitmanYor(n=12, records=4, strength=Fraction(8), base=base)
    assert process.likelihood(Numbers(np.array([1, 2, 1]))).alpha.tolist() == [2.0, 0.0, 6.0]
    old = PitmanYor(n=12, records=4, strength=Fraction(8), base=base, old_values_only=True)
    assert old.likelihood(Numbers(np.array([1, 0, 1]))).alpha.tolist() == [0.0, 0.0, 0.0]


def test_posterior_samples_are_urns_with_many_records():
    mechanism = PosteriorSample(n=12, cells=3, alpha=Fraction(2), records=1000, draws=2)
    drawn = mechanism.draw(COUNTS, entropy=SeededEntropy(1))
    term = mechanism.likelihood(Numbers(drawn.weights))
    assert term.released.sum(axis=1).tolist() == [1000, 1000]
    assert np.array_equal(term.released.ravel() / 1000, drawn.weights)


def test_smoothed_histograms():
    term = SmoothedHistogram(n=12, cells=3, records=8, weight=Fraction(1, 4)).likelihood(Numbers(np.array([1, 3, 4])))
    assert isinstance(term, MixtureTerm)
    assert term.weight == 0.25


@pytest.mark.parametrize("noise", ["laplace", "discrete-laplace", "discrete-gaussian"])
def test_noisy_counts_come_back_to_their_lattice(noise):
    mechanism = histogram(noise=noise, publish="counts", records=3, smoothing=Fraction(0))
    published = mechanism.draw(COUNTS, entropy=SeededEntropy(1)).weights
    term = mechanism.likelihood(Numbers(published))
    assert isinstance(term, NoisyCountsTerm)
    assert np.array_equal(term.noisy / (1024 if noise == "laplace" else 1), published)


def test_records_from_noisy_counts():
    term = histogram().likelihood(Numbers(np.array([1, 3, 4])))
    assert isinstance(term, NoisyRecordsTerm)
    assert (term.noise, term.scale, term.smoothing) == ("laplace", 2.0, 0.25)


@pytest.mark.parametrize(
    ("mechanism", "counts"),
    [
        (urn(), [1, 3]),
        (urn(), [1, 3, 5]),
        (urn(), [-1, 4, 5]),
        (urn(), [1.5, 2.5, 4]),
        (urn(), [np.nan, 4, 4]),
        (urn(), ["a", "b", "c"]),
        (histogram(publish="counts", records=3, smoothing=Fraction(0)), [1.0, 2.0001, 3.0]),
        (PosteriorSample(n=12, cells=3, alpha=Fraction(2), records=1000, draws=2), [0.5, 0.25, 0.25]),
        (PosteriorSample(n=12, cells=3, alpha=Fraction(2), records=1000), [0.5, 0.25, 0.3]),
        (PitmanYor(n=12, records=4, strength=Fraction(8), base=FreshLabels()), [1, 3]),
        (PitmanYor(n=12, records=4, strength=Fraction(8), discount=Fraction(1, 2), base=FiniteBase(cells=2)), [1, 3]),
    ],
)
def test_what_cannot_have_been_published_is_refused(mechanism, counts):
    with pytest.raises(ModelError):
        mechanism.likelihood(Numbers(np.array(counts)))


URN = UrnTerm(alpha=np.array([0.0, 0.0, 1.0]), released=np.array([[2, 1, 3]]))


@pytest.mark.parametrize(
    "fields",
    [
        {"n": 1},  # two cells cannot be empty
        {"n": -1},
        {"n": 5, "cells": 2},
        {"n": 5, "prior": np.array([1.0, 0.0, 1.0])},
        {"n": None, "size_prior": SizePrior(upper=0)},
        {"n": None, "terms": (MixtureTerm(weight=0.5, released=np.array([1, 1, 1])),)},
    ],
)
def test_impossible_models_are_refused(fields):
    with pytest.raises(ModelError):
        LatentCounts(**({"cells": 3, "prior": np.ones(3), "terms": (URN,)} | fields))


@pytest.mark.parametrize("n", [None, 2, 50])
def test_chains_start_in_possible_states_and_are_reproducible(n):
    hidden = NoisyRecordsTerm(noise="laplace", scale=3.0, smoothing=0.1, released=np.array([4, 0, 2]))
    model = LatentCounts(cells=3, n=n, prior=np.ones(3), terms=(URN, hidden), size_prior=SizePrior(upper=80))
    for seed in range(20):
        rng = np.random.default_rng(seed)
        state = model.start(rng)
        assert np.all(state["counts"][:2] >= 1)
        assert np.all(state["noisy"][0, [0, 2]] > 0)
        assert state["counts"].sum() <= 80 if n is None else state["counts"].sum() == n
        copy = {name: values.copy() for name, values in state.items()}
        again = np.random.default_rng()
        again.bit_generator.state = rng.bit_generator.state
        at_once, _ = model.draw(state, rng, draws=6, thin=2)
        in_pieces = []
        for times in (1, 1, 2, 2, 2, 2, 2):  # cutting a run into pieces changes nothing
            model.sweep(copy, again, times=times, warming=False)
            in_pieces.append(copy["counts"].copy())
        assert np.array_equal(at_once, in_pieces[1:])
        assert all(np.array_equal(state[name], copy[name]) for name in state)


@pytest.mark.parametrize("n", [None, 4, 10**9, 3 * 10**9])
def test_chains_start_where_noisy_counts_are(n):
    """Of a billion records as of a few: within some noise of what was published, and with as many records as there may be."""
    noisy = np.array([6 * 10**8, 4 * 10**8, -5]) if n != 4 else np.array([3, 0, -5])
    term = NoisyCountsTerm(noise="discrete-laplace", scale=2.0, noisy=noisy)
    model = LatentCounts(cells=3, n=n, prior=np.ones(3), terms=(term,), size_prior=SizePrior())
    for seed in range(20):
        counts = model.start(np.random.default_rng(seed))["counts"]
        assert counts.min() >= 0
        assert n is None or counts.sum() == n
        if n in (None, 10**9):
            assert np.abs(counts - np.maximum(noisy, 0)).max() < 200
    few = LatentCounts(cells=3, n=None, prior=np.ones(3), terms=(term,), size_prior=SizePrior(lower=10, upper=20))
    assert 10 <= few.start(np.random.default_rng(1))["counts"].sum() <= 20


def test_fingerprints_differ_where_models_do():
    base = {"cells": 3, "n": 9, "prior": np.ones(3), "terms": (URN,)}
    other = UrnTerm(alpha=URN.alpha, released=np.array([[2, 2, 2]]))
    made = [LatentCounts(**(base | each)) for each in ({}, {"n": 8}, {"prior": np.full(3, 2.0)}, {"terms": (other,)})]
    secret = [{}, {"size_prior": SizePrior(upper=9)}, {"terms": (URN, URN)}]
    made += [LatentCounts(**(base | {"n": None} | each)) for each in secret]
    assert len({each.fingerprint() for each in made}) == 7
    assert made[0].fingerprint() == LatentCounts(**base).fingerprint()
