"""Special cells beside a tree: few are flat by themselves, of many it is learnt how many are empty."""

import warnings

import numpy as np
import polars as pl
import pytest

import privurn
from privurn.cell_tree import CellTree
from privurn.errors import InferenceWarning
from privurn.inference.trees.approximation import FEW_SPECIAL, special_laws, special_means
from privurn.mechanisms.tree_measurements import TreeMeasurements
from privurn.privacy.additive_noise import log_mass, simulated_noise

PAIR = {"a": privurn.Grid(0, 98, 1, nulls="cell"), "b": privurn.Grid(0, 6, 1, outside="other")}
"""107 special cells, at most."""


def seen(special, scale=4.0):
    """Two cells, and special ones that were told with Laplace noise."""
    return TreeMeasurements(
        CellTree((2,)),
        (1,),
        (np.array([50, 50]),),
        (("laplace", scale),),
        total=None,
        special=tuple(int(each) for each in special),
        special_noise=("laplace", scale),
    )


def people(n, *, missing=0):
    a = np.random.default_rng(5).integers(0, 99, n).astype(float)
    return pl.DataFrame({"a": [None if i < missing else each for i, each in enumerate(a)], "b": a % 7})


@pytest.mark.parametrize("neighbouring", ["replace-one", "add-remove"])
def test_noise_on_many_empty_special_cells_is_not_taken_for_records(neighbouring):
    """Were each cell flat by itself, some 70 of 300 records would be missing or other."""
    how = {"epsilon": 1, "neighbouring": neighbouring, "domain": PAIR, "ledger": False}
    records = 300 if neighbouring == "add-remove" else None
    empty = privurn.release(people(300), privurn.NoisyTree(records=records), **how)
    filled = privurn.release(people(300, missing=120), privurn.NoisyTree(records=records), **how)
    assert empty.data["a"].null_count() + empty.data["b"].is_nan().sum() < 25
    assert 90 < filled.data["a"].null_count() < 150
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InferenceWarning)
        found = {each.name: each for each in privurn.infer(empty, ask=["mean(a)"]).summary()}
    if neighbouring == "add-remove":
        assert found["n"].lower <= 300 <= found["n"].upper


def test_few_special_cells_are_flat_by_themselves():
    noisy = (-3, 0, 9)[:FEW_SPECIAL]
    for (counts, masses), told in zip(special_laws(seen(noisy)), noisy, strict=True):
        flat = np.exp(log_mass(told - counts, noise="laplace", scale=4.0))
        assert np.allclose(masses / masses.sum(), flat / flat.sum())


def test_the_law_of_many_is_a_mixture_of_none_and_some():
    noisy = (-3, 0, 9, 2, 400, -1)
    laws = special_laws(seen(noisy))
    largest = max(counts[-1] for counts, _ in laws)
    odds = []
    for (counts, masses), told in zip(laws, noisy, strict=True):
        likelihood = np.exp(log_mass(told - counts, noise="laplace", scale=4.0))
        assert counts[0] == (0.0 if told < 40 * 4 else told - 160)
        some = likelihood / (counts + 4.0) / np.log1p(largest / 4.0)
        positive = counts > 0.0
        assert np.allclose(masses[positive] / masses[positive].sum(), some[positive] / some[positive].sum())
        if counts[0] == 0.0:
            odds.append((masses[0] / masses[1]) * (some[1] / likelihood[0]) - some[0] / likelihood[0])
    assert np.allclose(odds, odds[0])  # the share of empty cells over that of others: one number for all
    assert odds[0] > 1.0  # five of six look empty


def test_truths_rank_evenly_among_their_laws():
    """Counts drawn from the prior, two thirds of them none: randomised ranks are uniform; those of flat laws are not."""
    rng, ranks, flat = np.random.default_rng(3), [], []
    for _ in range(60):
        sizes = np.floor(4.0 * (np.exp(rng.random(40) * np.log1p(1_000 / 4.0)) - 1.0)).astype(np.int64)
        truth = np.where(rng.random(40) < 2 / 3, 0, sizes)
        noisy = truth + simulated_noise(truth.shape, noise="laplace", scale=4.0, rng=rng)
        for (counts, masses), right, told in zip(special_laws(seen(noisy)), truth, noisy, strict=True):
            if right >= counts[0]:
                ranks.append(_rank(counts, masses, right, rng))
                flat.append(_rank(counts, np.exp(log_mass(told - counts, noise="laplace", scale=4.0)), right, rng))
    assert _uniform(ranks) > 1e-3
    assert _uniform(flat) < 1e-9


def _rank(counts, masses, right, rng):
    """Where the truth stands in its law, at random within its own mass."""
    masses = masses / masses.sum()
    at = np.searchsorted(counts, right)
    return masses[:at].sum() + rng.random() * masses[at]


def _uniform(ranks):
    from scipy.stats import chisquare

    return chisquare(np.histogram(ranks, 10, (0.0, 1.0))[0]).pvalue


def test_means_of_cells_that_look_empty_fall_with_their_number():
    few, many = special_means(seen((1, -2, 0))), special_means(seen((1, -2, 0) * 20))
    assert few.min() > 2.0
    assert many.max() < 0.7
