"""Log likelihood of counts given the records of their cells, drawn from noisy counts that were cut off at zero.

symbol      meaning
y           a noisy count, in steps from the first that noise can make of a window's first count on
masses      probabilities of noise of -far, ..., far steps
every       steps from one count of a window to the next
"""

import math

import numpy as np

from privurn._kernels._compile import compiled
from privurn._kernels.trees.lattice import LOWEST


@compiled
def update_logs(logs, starts, first, every, step, released, rate, masses):
    """Windows of counts, one for each cell: log of the sum over noise of a Poisson probability, up to what r fixes."""
    far = masses.shape[0] // 2
    for u in range(first.shape[0]):
        width = starts[u + 1] - starts[u]
        size = (width - 1) * every + masses.shape[0]
        poisson = np.empty(size)
        top = -math.inf
        for y in range(size):
            mean = rate * max(first[u] + (y - far) * step, 0.0)
            poisson[y] = -mean
            if released[u] > 0:
                poisson[y] = released[u] * math.log(mean) - mean if mean > 0.0 else -math.inf
            top = max(top, poisson[y])
        for y in range(size):
            poisson[y] = math.exp(poisson[y] - top)
        for x in range(width):
            total = 0.0
            for d in range(masses.shape[0]):
                total += masses[d] * poisson[x * every + d]
            logs[starts[u] + x] = top + (math.log(total) if total > 0.0 else LOWEST)
