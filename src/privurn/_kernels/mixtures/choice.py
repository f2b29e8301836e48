"""One of finitely many, in proportion to weights."""

import math

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
