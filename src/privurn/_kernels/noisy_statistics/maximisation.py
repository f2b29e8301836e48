"""Monte Carlo expectation and maximisation: sweeps at fixed parameters, their sufficient statistics averaged, then maximised.

summary   sufficient statistic of the complete data (number of records first), averaged with gain g: old + g (new - old)
"""

import numpy as np

from privurn._kernels._compile import compiled
from privurn._kernels.noisy_statistics.chain import update_jumps
from privurn._kernels.noisy_statistics.protocol import update_maximum, update_summary
from privurn._kernels.noisy_statistics.sweeps import update_records, update_sum


@compiled
def update_maximising_chain(
    model,
    noise,
    size,
    tuning,
    theta,
    records,
    count,
    numbers,
    summary,
    rng,
    sweeps,
    thin,
    warming,
    smallest_gain,
    kept,
    kept_n,
    rates,
):
    """Sweeps of records and jumps, each followed by one maximisation. Returns the records, perhaps moved to more room."""
    total = np.zeros(len(noise.entries))
    fresh = np.empty(len(summary))
    n = count[0]
    for sweep in range(sweeps):
        update_sum(model, records, n, total)
        share = update_records(model, noise, theta, records, n, total, rng) / max(1, n)
        records, n, hops = update_jumps(model, noise, size, theta, records, n, total, tuning, numbers, warming, rng)
        update_summary(model, records, n, fresh)
        numbers[1] += 1.0
        gain = 1.0 if numbers[1] == 1.0 else smallest_gain
        for j in range(len(summary)):
            summary[j] += gain * (fresh[j] - summary[j])
        update_maximum(model, summary, theta)
        if len(kept) > 0 and (sweep + 1) % thin == 0:
            at = sweep // thin
            kept[at] = theta
            kept_n[at] = n
            rates[at, 0] = share
            rates[at, 1] = hops / max(1, tuning.jumps)
    count[0] = n
    return records
