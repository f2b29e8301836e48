"""How fast are sweeps of latent records, and what do interwoven moves buy?

Linear regression, 1,000 records, two covariates, bounds -5 and 5, noise of the moments Laplace(9 / epsilon). All on one core,
in processor time, so that other work on the machine does not count. Targets: a plain sweep at most 6 times what drawing its
random numbers alone costs, and at least 10,000 a second; effective draws of beta a second, interwoven against centred, at least
10 times at epsilon = 0.1 and 4 times at 1; of n at least 20 times at epsilon_n = 0.1; nothing unmixed at epsilon_n = 0.001.

    python -m benchmarks.regression
"""

import time
from typing import Any

import numba
import numpy as np

from privurn.inference.draws import Draws
from privurn.inference.run import Schedule, run_chains
from privurn.inference.sums.latent_chain import LatentChain
from privurn.inference.sums.observed import Observed
from privurn.inference.sums.regression_model import RegressionModel

MODEL = RegressionModel(lower=(-5.0,) * 3, upper=(5.0,) * 3, resolution=20)
RECORDS, CHAINS = 1000, 4


@numba.njit(nogil=True)  # type: ignore[untyped-decorator]
def random_numbers(rng: Any, records: int, sweeps: int) -> float:
    total = 0.0
    for _ in range(sweeps * records):
        total += rng.standard_normal() + rng.standard_normal() + rng.standard_normal() + rng.random()
    return total


def released(epsilon: float, epsilon_n: float, seed: int) -> Observed:
    rng = np.random.default_rng(seed)
    truth = MODEL.pack(beta=[0.0, -1.0, 1.0], tau=1.0, mu=[-1.0, 1.0], Phi=np.eye(2))
    moments = MODEL.statistic(MODEL.simulate(truth, n=RECORDS, rng=rng))
    return Observed(
        values=moments + 9.0 / epsilon * rng.laplace(size=9),
        scales=np.full(9, 9.0 / epsilon),
        noisy_n=RECORDS + rng.laplace() / epsilon_n,
        noisy_n_scale=1.0 / epsilon_n,
    )


def sweep_cost() -> None:
    sampler = LatentChain(model=MODEL, observed=released(1.0, 0.1, 1), moves="centred")
    rng = np.random.default_rng(1)
    state = sampler.start(rng)
    sampler.advance(state, rng, sweeps=500, thin=1, warming=True)
    random_numbers(rng, 10, 1)
    sweep, numbers = [], []
    for _ in range(30):
        begin = time.thread_time()
        sampler.advance(state, rng, sweeps=100, thin=100, warming=False)
        middle = time.thread_time()
        random_numbers(rng, int(state["count"][0]), 100)
        sweep.append((middle - begin) / 100)
        numbers.append((time.thread_time() - middle) / 100)
    ratio = np.median(np.array(sweep) / np.array(numbers))
    print(f"plain sweep: {1 / np.median(sweep):,.0f} a second, {ratio:.1f} times its random numbers alone")


def efficiency(observed: Observed, moves: str, *, draws: int, seed: int) -> tuple[float, float, Draws]:
    """Effective draws a second of processor time: the least of beta, and n."""
    sampler = LatentChain(model=MODEL, observed=observed, moves=moves)  # type: ignore[arg-type]
    warm = Schedule(chains=CHAINS, warm_up=2000, draws=1, seed=seed)
    run_chains(sampler, schedule=warm, threads=1)  # compiled by now; the warm-up's time is measured to be taken off
    begin = time.process_time()
    run_chains(sampler, schedule=warm, threads=1)
    middle = time.process_time()
    found = run_chains(sampler, schedule=Schedule(chains=CHAINS, warm_up=2000, draws=draws, seed=seed), threads=1)
    seconds = time.process_time() - middle - (middle - begin)
    rows = {row.name: row.effective_draws for row in found.summary()}
    return min(rows[name] for name in rows if name.startswith("beta")) / seconds, rows["n"] / seconds, found


def main() -> None:
    sweep_cost()
    for epsilon in (0.1, 1.0):
        observed = released(epsilon, 0.1, 1)
        plain = efficiency(observed, "centred", draws=20_000, seed=1)
        woven = efficiency(observed, "interwoven", draws=5_000, seed=1)
        for name, a, b in (("beta", plain[0], woven[0]), ("n", plain[1], woven[1])):
            print(
                f"epsilon {epsilon}, epsilon_n 0.1: effective draws of {name} a second: {a:.2f} centred, {b:.0f} interwoven, "
                f"{b / a:.0f} times"
            )
    for epsilon in (0.1, 1.0):
        for seed in range(3):
            *_, draws = efficiency(released(epsilon, 0.001, seed), "interwoven", draws=4_000, seed=seed)
            worst = draws.summary()
            print(
                f"epsilon {epsilon}, epsilon_n 0.001, data {seed}: largest R-hat {max(row.r_hat or 0.0 for row in worst):.3f}, "
                f"fewest effective draws {min(row.effective_draws for row in worst):.0f} of {CHAINS} x 4,000; "
                f"n {draws['n'].mean():.0f} +- {draws['n'].std():.0f}; unmixed: {len(draws.problems())}"
            )


if __name__ == "__main__":
    main()
