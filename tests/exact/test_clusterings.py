"""Central clusterings against the least loss over all partitions, and losses against their definitions."""

from itertools import combinations
from math import log

import numpy as np
import pytest
from mixture_states import partitions

from privurn.errors import ModelError
from privurn.inference.mixtures.clustering import adjusted_rand_index, co_clustering, point_clustering, relabelled


def binder(a, b):
    pairs = list(combinations(range(len(a)), 2))
    return sum((a[i] == a[j]) != (b[i] == b[j]) for i, j in pairs) / len(pairs)


def variation_of_information(a, b):
    n = len(a)

    def entropy(labels):
        return -sum(labels.count(x) / n * log(labels.count(x) / n) for x in set(labels))

    joint = list(zip(a, b, strict=True))
    return 2 * entropy(joint) - entropy(list(a)) - entropy(list(b))


LOSSES = {"binder": binder, "variation-of-information": variation_of_information}


def near(truth, rng, *, size, share):
    """Clusterings around a truth: each row relabelled at random with probability `share`."""
    return [
        tuple(relabelled(np.where(rng.random(len(truth)) < share, rng.integers(0, 4, len(truth)), truth)).tolist())
        for _ in range(size)
    ]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(6))
def test_the_least_loss_over_all_partitions_is_found(loss, seed):
    rng = np.random.default_rng(seed)
    draws = near(rng.integers(0, 3, 7), rng, size=25, share=0.3)
    found = point_clustering(draws, loss=loss)

    def mean_loss(candidate):
        return np.mean([LOSSES[loss](candidate, draw) for draw in draws])

    assert found.expected_loss == pytest.approx(mean_loss(tuple(found.labels.tolist())), abs=1e-12)
    assert found.expected_loss == pytest.approx(min(mean_loss(each) for each in partitions(7)), abs=1e-12)


def test_a_wrong_candidate_has_a_larger_loss():
    rng = np.random.default_rng(1)
    truth = np.repeat([0, 1, 2], 40)
    draws = near(truth, rng, size=60, share=0.1)
    for loss, measure in LOSSES.items():
        found = point_clustering(draws, loss=loss)
        assert adjusted_rand_index(found.labels, truth) == 1.0
        assert found.n_clusters == 3
        merged = np.where(truth == 2, 1, truth)
        assert np.mean([measure(tuple(merged), draw) for draw in draws]) > found.expected_loss


def test_co_clustering_is_the_share_of_draws():
    rng = np.random.default_rng(2)
    draws = rng.integers(0, 3, size=(2, 50, 6))
    probabilities = co_clustering(draws).probabilities
    flat = draws.reshape(-1, 6)
    for i, j in combinations(range(6), 2):
        assert probabilities[i, j] == probabilities[j, i] == np.mean(flat[:, i] == flat[:, j])
    assert np.array_equal(np.diag(probabilities), np.ones(6))
    some = co_clustering(draws, rows=[4, 1])
    assert some.probabilities[0, 1] == probabilities[4, 1]


def test_adjusted_rand_index_of_a_known_pair():
    # Hubert and Arabie's formula by hand: table [[2, 1], [0, 3]], rows 3 + 3, columns 2 + 4
    expected = (4 - 6 * 7 / 15) / ((6 + 7) / 2 - 6 * 7 / 15)
    assert adjusted_rand_index([0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1, 1]) == pytest.approx(expected)
    rng = np.random.default_rng(3)
    values = [adjusted_rand_index(rng.integers(0, 3, 200), rng.integers(0, 3, 200)) for _ in range(200)]
    assert abs(np.mean(values)) < 6 * np.std(values) / np.sqrt(200)


def test_bad_input():
    with pytest.raises(ModelError, match="quadratic"):
        co_clustering(np.zeros((2, 5001), int))
    with pytest.raises(ModelError, match="whole labels"):
        co_clustering(np.zeros((2, 5)))
    with pytest.raises(ModelError, match="rows must be"):
        co_clustering(np.zeros((2, 5), int), rows=[7])
    with pytest.raises(ModelError, match="not known"):
        point_clustering(np.zeros((2, 5), int), loss="nonsense")
    with pytest.raises(ModelError, match="same rows"):
        adjusted_rand_index([0], [0])
