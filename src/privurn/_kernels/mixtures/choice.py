"""One of finitely many, in proportion to weights; and the heaviest of them first."""

import math

import numpy as np

from privurn._kernels.dispatch import inner


@inner
def chosen(weights, first, end, total, rng):
    """Index in first..end-1 drawn in proportion to weights, whose sum is `total`."""
    point = rng.random() * total
    h = first
    while h < end - 1 and point >= weights[h]:
        point -= weights[h]
        h += 1
    return h


@inner
def chosen_by_score(scores, size, rng):
    """An index drawn with probability proportional to e^score; changes the scores."""
    top = -math.inf
    for h in range(size):
        top = max(top, scores[h])
    total = 0.0
    for h in range(size):
        scores[h] = math.exp(scores[h] - top)
        total += scores[h]
    point = rng.random() * total
    last = 0
    for h in range(size):
        if scores[h] > 0.0:
            last = h
            if point < scores[h]:
                return h
            point -= scores[h]
    return last


@inner
def heaviest_first(weights):
    """Indices, the largest weight first. Shell's sort: np.argsort takes more than a second to compile."""
    size = weights.shape[0]
    order = np.empty(size, np.int64)
    for h in range(size):
        order[h] = h
    gap = 1
    while gap < size:
        gap = 3 * gap + 1
    while gap > 1:
        gap //= 3
        for at in range(gap, size):
            h, to = order[at], at
            while to >= gap and weights[order[to - gap]] < weights[h]:
                order[to] = order[to - gap]
                to -= gap
            order[to] = h
    return order
