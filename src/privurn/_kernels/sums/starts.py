"""How well parameters fit what was released, roughly: for choosing where a chain starts. No move depends on it."""

import numpy as np

from privurn._kernels._compile import compiled
from privurn._kernels.arrays import update_filled
from privurn._kernels.sums.protocol import log_noise, update_record, update_statistic


@compiled
def update_fits(model, noise, thetas, n, most, rng, fits):
    """For each row of `thetas` the log density of the released sum around that of simulated records.

    Of n records at most `most` are simulated; their sum stands for that of all.
    """
    total, one, row = np.empty(len(noise.values)), np.empty(len(noise.values)), np.empty(model.columns)
    simulated = min(n, most)
    for i in range(thetas.shape[0]):
        update_filled(total, 0.0)
        for _ in range(simulated):
            update_record(model, thetas[i], rng, row)
            update_statistic(model, row, one)
            for j in range(len(total)):
                total[j] += one[j]
        for j in range(len(total)):
            total[j] *= n / simulated
        fits[i] = log_noise(noise, total)
